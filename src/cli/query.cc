/// `waymark query`: runs SQL on a database that `waymark export --to sqlite` wrote.
#include <memory>
#include <optional>

#include "commands.h"
#include "options.h"
#include "waymark/listing/database.h"

namespace waymark::cli {

namespace {

struct QueryOptions {
    std::string file, sql, format = "text", output;
};

ExitStatus run_query(const QueryOptions& options) {
    const auto db = exports::Database::open(options.file);
    if (!db) return fail(db.error());
    std::optional<exports::DatabaseRows> answer;
    if (!options.sql.empty()) {
        auto rows = db->select(options.sql);
        if (!rows) return fail(rows.error());
        answer = std::move(*rows);
    }
    auto out = Output::open(options.output, {options.file});
    if (!out) return fail(out.error());
    const listing::LineFormat format = listing::format_of(options.format);
    if (answer) {
        const waymark::Status all = listing::print_rows(*out, *answer, format);
        const ExitStatus closed = out->close();
        if (all) return closed;
        say("error", all.error().message);
        return unreadable;
    }
    const auto tables = db->tables();
    if (!tables)
        return fail(
            {tables.error().code, fmt::format("{}: {}; was the file cut?", options.file, tables.error().message)});
    listing::print_tables(*out, *tables, format);
    return out->close();
}

}  // namespace

Run add_query(const Command& app) {
    const Command command = app.add("query");
    auto options = std::make_shared<QueryOptions>();
    command.option("FILE", options->file);
    command.option("SQL", options->sql);
    command.option("--format", options->format);
    command.option("--output", options->output);
    return [options] { return run_query(*options); };
}

}  // namespace waymark::cli
