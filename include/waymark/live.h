/// Decodes trace that arrives piece by piece, from a port or a network. Begin with capture::raw_capture, which
/// describes the unit, and pipeline::PieceReader.
#pragma once

#include "waymark/capture/byte_stream.h"
#include "waymark/capture/capture.h"
#include "waymark/core/result.h"
#include "waymark/flow/flow.h"
#include "waymark/flow/summary.h"
#include "waymark/flow/tee.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/piece_reader.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"
