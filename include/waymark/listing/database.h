/// Rows and tables of SQLite files (exports/database.h) as text, TSV and JSON.
#pragma once

#include <vector>

#include "waymark/core/result.h"
#include "waymark/exports/database.h"
#include "waymark/listing/text.h"

namespace waymark::listing {

/// Prints all rows. Errors: the errors of DatabaseRows::next; the rows before it are printed.
[[nodiscard]] Status print_rows(TextSink& out, exports::DatabaseRows& rows, LineFormat format);
/// Prints what the tables of a database contain; text and JSON also have example queries.
void print_tables(TextSink& out, const std::vector<exports::KnownTable>& tables, LineFormat format);

}  // namespace waymark::listing
