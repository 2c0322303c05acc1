/// Exports answers as one SQLite file with descriptions of its tables; and writes the document about them.
#pragma once

#include <filesystem>

#include "waymark/exports/export.h"

namespace waymark::exports {

/// Every table of exports/tables.h, a table `schema` that explains each column, and views for the common questions.
/// `path` must not exist. Errors: `unreadable`: the file cannot be written; it is then not usable.
[[nodiscard]] Result<ExportReport> write_sqlite(const answers::Answers& answers, const std::filesystem::path& path);

/// A question and the statement that answers it.
struct ExampleQuery {
    std::string_view question, sql;
};
[[nodiscard]] std::span<const ExampleQuery> example_queries();

/// The statements that create the tables and views, with the meaning of each column as a comment.
[[nodiscard]] std::string sqlite_schema();
/// docs/sqlite-schema.md.
[[nodiscard]] std::string sqlite_document();

}  // namespace waymark::exports
