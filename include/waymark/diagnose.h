/// Finds out the contents of a dump and the problems of a capture. Begin with doctor::examine.
#pragma once

#include "waymark/core/result.h"
#include "waymark/doctor/capture_input.h"
#include "waymark/doctor/examine.h"
#include "waymark/doctor/finding.h"
#include "waymark/pipeline/session.h"
