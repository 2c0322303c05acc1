/// The result of an examination by `doctor`, as text, table and JSON.
#pragma once

#include <string>

#include "waymark/doctor/examine.h"
#include "waymark/listing/text.h"

namespace waymark::listing {

/// In TSV the findings alone.
void print_examination(TextSink& out, const doctor::ExaminationReport& report, LineFormat format);
/// A description of a file without a description, of which the examination is all that is known.
void print_bare_info(TextSink& out, const std::string& capture, const doctor::ExaminationReport& report,
                     LineFormat format);

}  // namespace waymark::listing
