/// Lists and counts packets of any protocol. Begin with doctor::open_capture and pipeline::packet_consumer.
#pragma once

#include "waymark/core/gap.h"
#include "waymark/core/result.h"
#include "waymark/doctor/capture_input.h"
#include "waymark/pipeline/packet_counter.h"
#include "waymark/pipeline/protocols.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"
#include "waymark/protocol/packets.h"
