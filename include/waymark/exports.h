/// Writes answers in formats of other programs, as tables or as an HTML report. Begin with exports::find_format and
/// exports::write.
#pragma once

#include "waymark/answers/answers.h"
#include "waymark/core/byte_sink.h"
#include "waymark/core/result.h"
#include "waymark/doctor/capture_input.h"
#include "waymark/exports/database.h"
#include "waymark/exports/export.h"
#include "waymark/exports/sqlite.h"
#include "waymark/exports/tables.h"
#include "waymark/exports/write.h"
#include "waymark/pipeline/flow_answers.h"
#include "waymark/pipeline/session.h"
#include "waymark/report/report.h"
