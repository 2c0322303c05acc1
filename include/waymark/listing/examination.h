/// The result of an examination by `doctor`, as text, table and JSON.
#pragma once

#include <string>

#include "waymark/answers/table.h"
#include "waymark/doctor/examine.h"
#include "waymark/listing/text.h"

namespace waymark::listing {

[[nodiscard]] answers::Table findings_table(const doctor::ExaminationReport& report);
/// `format`: text or json.
void print_examination(TextSink& out, const doctor::ExaminationReport& report, LineFormat format);
/// A description of a file without a description, of which the examination is all that is known.
void print_bare_info(TextSink& out, const std::string& capture, const doctor::ExaminationReport& report,
                     LineFormat format);

}  // namespace waymark::listing
