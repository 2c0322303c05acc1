/// For opening a capture that a user names, and for its contents: sources, buffers, memory, problems. Begin
/// with doctor::open_capture; docs/library.md has an example of each header of this kind.
#pragma once

#include "waymark/capture/capture.h"
#include "waymark/capture/perf_data.h"
#include "waymark/capture/snapshot.h"
#include "waymark/core/result.h"
#include "waymark/doctor/capture_input.h"
#include "waymark/pipeline/gathered.h"
#include "waymark/pipeline/protocols.h"
#include "waymark/pipeline/session.h"
