/// Reads the results of a capture: functions, lines, branches, loops and calls; and stores them in a file. Begin with
/// pipeline::flow_answers or answers::read_answers.
#pragma once

#include "waymark/answers/answers.h"
#include "waymark/answers/costs.h"
#include "waymark/answers/file.h"
#include "waymark/answers/table.h"
#include "waymark/answers/views.h"
#include "waymark/core/byte_sink.h"
#include "waymark/core/result.h"
#include "waymark/doctor/capture_input.h"
#include "waymark/pipeline/answers_file.h"
#include "waymark/pipeline/flow_answers.h"
#include "waymark/pipeline/session.h"
