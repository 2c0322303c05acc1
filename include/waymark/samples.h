/// For reading records of the Statistical Profiling Extension. Begin with analysis::open_samples for perf.data files
/// and profiling buffers, and with spe::Decoder for bytes.
#pragma once

#include "waymark/analysis/quality.h"
#include "waymark/analysis/samples.h"
#include "waymark/core/result.h"
#include "waymark/spe/decoder.h"
#include "waymark/spe/explain.h"
#include "waymark/spe/packet.h"
#include "waymark/spe/parser.h"
#include "waymark/spe/record.h"
#include "waymark/spe/text.h"
