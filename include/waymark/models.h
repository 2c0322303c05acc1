/// Generates the trace that a unit sends for given instructions. Begin with pipeline::flow_units.
#pragma once

#include "waymark/core/byte_sink.h"
#include "waymark/core/result.h"
#include "waymark/coresight/formatter.h"
#include "waymark/flow/unit.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/isa/isa.h"
#include "waymark/isa/place.h"
#include "waymark/pipeline/protocols.h"
