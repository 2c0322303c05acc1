/// `waymark export`: answers for other programs.
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <filesystem>
#include <memory>

#include "answers.h"
#include "commands.h"
#include "options.h"
#include "views.h"
#include "waymark/capture/placed_file.h"
#include "waymark/core/file_error.h"
#include "waymark/exports/sqlite.h"
#include "waymark/exports/tables.h"
#include "waymark/exports/write.h"
#include "waymark/listing/table.h"

namespace waymark::cli {

namespace {

namespace fs = std::filesystem;
using answers::Answers;
using exports::ExportReport;

struct ExportOptions {
    AnswersOptions answers;
    std::string format, metric, table, of_image;
    std::uint64_t max_bytes = 0;  // 0: not given
    bool list = false, bolt_traces = false;
    std::string list_version;  // empty: not given
    exports::CoveredSources coverage;
    std::vector<std::string> prefixes;  // OLD=NEW
    std::string autofdo_addresses;      // empty: not given
};

std::string format_names() {
    std::string out;
    for (const exports::Format& f : exports::formats()) out += (out.empty() ? "" : ", ") + std::string(f.name);
    return out;
}

/// A list of the formats: for each, its contents, the programs that open it, and its requirements.
std::string format_list() {
    std::string out;
    for (const exports::Format& f : exports::formats())
        out += fmt::format("  {:<16}{}.\n  {:<16}Opens in: {}; needs: {}\n", f.name, f.what, "", f.opens, f.needs);
    return out;
}

ExitStatus print_list() {
    auto out = Output::open("-");
    if (!out) return fail(out.error());
    out->write(format_list());
    return out->close();
}

/// Data that a capture lacks are not an error of the command line.
ExitStatus fail_export(const Error& error) {
    if (error.code != Errc::not_found) return fail(error);
    say("error", error.message);
    return nothing;
}

/// For Option::transform: `200K` becomes a number of bytes; 0 is refused.
Check byte_count() {
    return {[sizes = with_size_unit(false)](std::string& text) {
        const std::string given = text;
        std::string wrong;
        try {
            wrong = sizes.wrong(text);
        } catch (const std::exception& error) {
            wrong = error.what();
        }
        if (wrong.empty() && text != "0" && given.front() != '-') return std::string();
        return fmt::format("'{}' is not a number of bytes; give one such as 200000, 500K or 3M", given);
    }};
}

class ExportCommand {
public:
    explicit ExportCommand(const ExportOptions& options) : options_(options), path_(options.answers.input.output) {}

    ExitStatus run() {
        if (options_.list) return print_list();
        if (const ExitStatus wrong = check(); wrong != decoded) return wrong;
        AnswersOptions wanted = options_.answers;
        wanted.calls = format_->calls;
        wanted.timeline = format_->timeline;
        wanted.instructions = format_->instructions;
        wanted.ranges = format_->ranges;
        wanted.inlined =
            is_table_format() || is_coverage() || format_->name == "pprof" || format_->name == "llvm-profile";
        // Functions that were never entered count as not covered.
        wanted.all_functions = is_coverage() || is_table_format();
        // Formats that list each instruction also contain its text.
        wanted.disassembly = is_table_format();
        const auto answers = answers_of(wanted);
        if (!answers) return fail_answers(answers.error(), {wanted.input.capture});
        const auto metric = exports::find_metric(*answers, options_.metric);
        if (!metric) return fail_export(metric.error());
        metric_ = *metric;
        const ExitStatus status = write_all(*answers);
        if (status != decoded) return status == nothing && answers->cut ? unreadable : status;
        // The file does not show missing parts. A cut was reported when the capture was read.
        say_head(*answers);
        return answers->cut ? unreadable : decoded;
    }

private:
    ExitStatus write_all(const Answers& a) const {
        if (format_->name == "sqlite") return write_database(a);
        if (is_table_format() && options_.table.empty()) return write_folder(a);
        return finish(write_file(path_, [&](ByteSink& sink) { return write(a, sink); }));
    }
    [[nodiscard]] bool is_table_format() const {
        return format_->name == "csv" || format_->name == "jsonl" || format_->name == "sqlite";
    }
    [[nodiscard]] bool is_coverage() const { return format_->name == "lcov" || format_->name == "cobertura"; }
    /// Refuses combinations of options that are impossible.
    ExitStatus check() {
        const auto wrong = [](const std::string& text) {
            say("error", text + ". See waymark export --help");
            return usage;
        };
        if (options_.answers.input.capture.empty())
            return wrong("no capture given: waymark export CAPTURE --to FORMAT -o FILE");
        if (options_.format.empty()) return wrong("no format given: name it with --to: " + format_names());
        format_ = exports::find_format(options_.format);
        const std::string_view name = format_->name;
        const bool text_table = name == "csv" || name == "jsonl";
        if (!options_.table.empty()) {
            if (!text_table) return wrong("--table is for csv and jsonl");
            if (exports::find_table(options_.table) == nullptr) {
                std::string names;
                for (const exports::TableInfo& t : exports::tables())
                    names += (names.empty() ? "" : ", ") + std::string(t.name);
                return wrong(fmt::format("there is no table '{}'; there are: {}", options_.table, names));
            }
        }
        const bool of_one = name == "bolt" || name == "autofdo-text" || name == "profgen" || name == "profgen-script";
        if (!options_.of_image.empty() && !of_one)
            return wrong("--of-image is for bolt, autofdo-text, profgen and profgen-script");
        if (options_.bolt_traces && name != "bolt") return wrong("--bolt-traces is for bolt");
        if (!options_.list_version.empty() && name != "branch-list")
            return wrong("--branch-list-version is for branch-list");
        if (!options_.autofdo_addresses.empty() && name != "autofdo-text")
            return wrong("--autofdo-addresses is for autofdo-text");
        coverage_ = options_.coverage;
        if (!is_coverage() && !(coverage_.only.empty() && coverage_.source_roots.empty() && options_.prefixes.empty() &&
                                coverage_.code == answers::CodeKind::system))
            return wrong("--only, --code, --source-root and --path-prefix are for lcov and cobertura");
        if (coverage_.end_lines && name != "lcov") return wrong("--lcov-end-lines is for lcov");
        for (const std::string& prefix : options_.prefixes) {
            const std::size_t equals = prefix.find('=');
            if (equals == 0 || equals == prefix.npos)
                return wrong(fmt::format("--path-prefix takes OLD=NEW, and '{}' is none", prefix));
            coverage_.prefixes.emplace_back(prefix.substr(0, equals), prefix.substr(equals + 1));
        }
        for (std::string& root : coverage_.source_roots) root = fs::absolute(root).lexically_normal().string();
        if (options_.format == exports::old_name_of_llvm_profile)
            say("note",
                "autofdo is the older name of llvm-profile, LLVM's sample profile; Google's AutoFDO text is "
                "autofdo-text");
        if (options_.max_bytes != 0 && name != "perfetto" && name != "firefox" && name != "speedscope")
            return wrong("--max-size is for formats with a timeline: perfetto, firefox, speedscope");
        if (path_.empty() || path_ == "-") {
            if (name == "sqlite") return wrong("--to sqlite needs a file: -o FILE");
            if (text_table && options_.table.empty())
                return wrong(
                    fmt::format("--to {} writes a folder of tables: name it with -o, or one with --table", name));
            if ((name == "perfetto" || name == "pprof" || name == "branch-list") && ::isatty(STDOUT_FILENO) == 1)
                return wrong(fmt::format("--to {} writes binary data, not for a terminal: name a file with -o", name));
            path_ = "-";
        } else if (const auto error = capture::would_replace(path_, options_.answers.input.files())) {
            return fail(*error);
        }
        return decoded;
    }

    Result<ExportReport> write(const Answers& a, ByteSink& sink) const {
        if (!options_.table.empty()) return write_table(a, *exports::find_table(options_.table), sink);
        exports::WriteOptions how{metric_,
                                  {},
                                  options_.of_image,
                                  options_.bolt_traces,
                                  branch_list_version(options_.list_version),
                                  coverage_,
                                  options_.autofdo_addresses == "loaded"};
        if (options_.max_bytes != 0) how.most_bytes = options_.max_bytes;
        return exports::write(*format_, a, how, sink);
    }
    Result<ExportReport> write_table(const Answers& a, const exports::TableInfo& table, ByteSink& sink) const {
        return format_->name == "csv" ? exports::write_csv(a, table, sink) : exports::write_jsonl(a, table, sink);
    }

    template <class Write>
    Result<ExportReport> write_file(const std::string& path, Write&& write_to) const {
        WM_ASSIGN_OR_RETURN(const auto sink, capture::FileSink::open(path, options_.answers.input.files()));
        WM_ASSIGN_OR_RETURN(ExportReport report, write_to(*sink));
        WM_RETURN_IF_ERROR(sink->commit());
        return report;
    }
    ExitStatus finish(const Result<ExportReport>& report) const {
        if (!report) return fail_export(report.error());
        for (const std::string& note : report->notes) say("note", note);
        if (path_ != "-")
            say("note",
                fmt::format("wrote {}, {}; opens in {}", path_, counted(report->bytes, "byte"), format_->opens));
        return decoded;
    }

    ExitStatus write_database(const Answers& a) const {
        std::error_code none;
        if (fs::is_directory(path_, none)) return fail(cannot_create(path_, EISDIR));
        if (fs::exists(path_, none) && !fs::is_regular_file(path_, none))
            return fail({Errc::usage, path_ + " is not a regular file, which SQLite needs; name another file with -o"});
        if (const fs::path folder = fs::path(path_).parent_path(); !folder.empty() && !fs::is_directory(folder, none))
            return fail(cannot_create(path_, fs::exists(folder, none) ? ENOTDIR : ENOENT));
        const capture::TemporaryName name(path_);
        const fs::path& temporary = name.path();
        auto report = exports::write_sqlite(a, temporary);
        std::error_code error;
        if (report) fs::rename(temporary, path_, error);
        if (!report || error) fs::remove(temporary, none);
        // The unit of the exported objects has another name here.
        if (!report)
            if (auto& said = report.error().message; said.find(temporary.string()) != said.npos)
                said.replace(said.find(temporary.string()), temporary.string().size(), path_);
        if (error) return fail({Errc::unreadable, fmt::format("cannot write {}: {}", path_, error.message())});
        return finish(report);
    }

    /// Writes a file for each table that has rows, and a file that lists them: all files or none.
    ExitStatus write_folder(const Answers& a) const {
        std::error_code error, none;
        if (fs::equivalent(path_, options_.answers.input.capture, error))
            return fail({Errc::usage, path_ + " is the capture; name another folder for the output"});
        if (fs::exists(path_, none) && !fs::is_directory(path_, none))
            return fail(
                {Errc::usage, fmt::format("{} is a file, and --to {} writes a folder of tables; name another, or "
                                          "one table with --table",
                                          path_, format_->name)});
        const auto folder = capture::PlacedFolder::open(path_);
        if (!folder) return fail(folder.error());
        const std::string manifest = fmt::format("manifest-{}.json", format_->name);
        ExportReport all;
        std::string empty;
        using answers::Column;
        answers::Table listed{
            .columns = {Column::text("table"), Column::text("file"), Column::count("rows"), Column::count("bytes")}};
        for (const exports::TableInfo& table : exports::tables()) {
            std::uint64_t rows = 0;
            table.rows(a, [&](auto) { ++rows; });
            if (rows == 0) {
                empty += (empty.empty() ? "" : ", ") + std::string(table.name);
                continue;
            }
            const std::string file = file_of(table);
            const auto report = write_part(**folder, file, [&](ByteSink& sink) { return write_table(a, table, sink); });
            if (!report) return fail_export(report.error());
            all.bytes += report->bytes;
            listed.add({table.name, file, rows, report->bytes});
        }
        const auto written = write_part(**folder, manifest, [&](ByteSink& sink) -> Result<ExportReport> {
            const std::string text =
                listing::rows_json({{"format", std::string(format_->name)}, {"capture", a.capture}}, listed, "tables");
            sink.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
            return ExportReport{text.size(), {}};
        });
        if (!written) return fail_export(written.error());
        all.bytes += written->bytes;
        const auto done = (*folder)->commit(manifest, [&](const fs::path& name) {
            const auto tables = exports::tables();
            return name == manifest || std::any_of(tables.begin(), tables.end(), [&](const exports::TableInfo& table) {
                       return name == file_of(table);
                   });
        });
        if (!done) return fail(done.error());
        if (!empty.empty()) all.notes.push_back("these tables are empty and have no file: " + empty);
        return finish(all);
    }
    [[nodiscard]] std::string file_of(const exports::TableInfo& table) const {
        return std::string(table.name) + std::string(format_->extension);
    }
    /// Writes a file in a folder that does not have its final name yet; messages use the final name.
    template <class Write>
    Result<ExportReport> write_part(const capture::PlacedFolder& folder, const std::string& name,
                                    Write&& write_to) const {
        auto report = write_file((folder.folder() / name).string(), write_to);
        if (!report) {
            auto& said = report.error().message;
            if (const auto at = said.find(folder.folder().string()); at != said.npos)
                said.replace(at, folder.folder().string().size(), path_);
        }
        return report;
    }

    const ExportOptions& options_;
    std::string path_;
    const exports::Format* format_ = nullptr;
    std::size_t metric_ = 0;
    exports::CoveredSources coverage_;
};

}  // namespace

Run add_export(const Command& app) {
    const Command command = app.add("export");
    auto options = std::make_shared<ExportOptions>();
    options->answers.input.add_to(command);
    options->answers.input.selection.add_to(command);
    command.get_option("CAPTURE")->required(false)->description(
        "The capture: a snapshot folder or its snapshot.ini, a perf.data file (CoreSight or SPE), a folder "
        "with a dpu.ini, an answers file; or a bare trace file (.gz and .zst too), which needs --protocol");
    std::vector<std::string> names;
    for (const exports::Format& f : exports::formats()) names.emplace_back(f.name);
    names.emplace_back(exports::old_name_of_llvm_profile);
    command.option("--to", options->format)->transform(one_of(names));
    // Users try this name from other commands here too.
    command
        .add_function(
            "--format",
            [](const std::string& format) {
                refuse_value("--format",
                             fmt::format("say --to {}: this is how waymark export takes the format", format));
            },
            "")
        ->group("");
    command.option("--metric", options->metric);
    command.option("--max-size", options->max_bytes)->transform(byte_count());
    add_timestamp_hz(command, options->answers);
    command.option("--table", options->table);
    command.option("--of-image", options->of_image);
    command.flag("--bolt-traces", options->bolt_traces);
    command.option("--branch-list-version", options->list_version);
    command.option("--autofdo-addresses", options->autofdo_addresses);
    command.option("--only", options->coverage.only);
    add_code(command, options->coverage.code, "lcov, cobertura: ");
    command.option("--source-root", options->coverage.source_roots);
    command.option("--path-prefix", options->prefixes);
    command.flag("--lcov-end-lines", options->coverage.end_lines);
    command.option("--jobs", options->answers.jobs)->check(range(0U, 256U));
    command.option("--kallsyms", options->answers.kallsyms);
    command.flag("--list", options->list);
    command.fill_footer("formats", format_list());
    return [options] { return ExportCommand(*options).run(); };
}

}  // namespace waymark::cli
