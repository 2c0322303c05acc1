/// Decodes program flow: ranges, events, counts of blocks, and losses. Begin with doctor::open_capture and
/// pipeline::run; a class derived from flow::Sink receives the output.
#pragma once

#include "waymark/capture/snapshot.h"
#include "waymark/core/result.h"
#include "waymark/doctor/capture_input.h"
#include "waymark/flow/exception.h"
#include "waymark/flow/flow.h"
#include "waymark/flow/summary.h"
#include "waymark/flow/tee.h"
#include "waymark/flow/troubles.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/flow_filter.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"
