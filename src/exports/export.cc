#include "waymark/exports/export.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace waymark::exports {

namespace {

constexpr std::array all_formats{
    Format{.name = "perfetto",
           .what = "what ran when: tracks, slices, counters, gaps",
           .opens = "ui.perfetto.dev, trace_processor",
           .needs = "a timeline",
           .extension = ".pftrace",
           .timeline = true},
    Format{.name = "firefox",
           .what = "what ran when and who called whom, as samples and markers",
           .opens = "profiler.firefox.com",
           .needs = "a timeline or costs",
           .extension = ".json",
           .calls = true,
           .timeline = true,
           .instructions = true},
    Format{.name = "speedscope",
           .what = "what ran when and who called whom",
           .opens = "speedscope.app, npx speedscope",
           .needs = "a timeline or costs",
           .extension = ".speedscope.json",
           .calls = true,
           .timeline = true,
           .instructions = true},
    Format{.name = "folded",
           .what = "call stacks with their cost, one per line",
           .opens = "flamegraph.pl, inferno, speedscope",
           .needs = "costs; stacks need a call tree",
           .extension = ".folded",
           .calls = true,
           .instructions = true},
    Format{.name = "pprof",
           .what = "call stacks with all costs",
           .opens = "pprof, Pyroscope, Parca",
           .needs = "costs; stacks need a call tree",
           .extension = ".pb.gz",
           .calls = true,
           .instructions = true},
    Format{.name = "callgrind",
           .what = "cost of instructions, lines and calls, counts of jumps",
           .opens = "KCachegrind, callgrind_annotate",
           .needs = "costs; lines need debug information",
           .extension = ".callgrind",
           .calls = true,
           .instructions = true},
    Format{.name = "lcov",
           .what = "coverage of lines, functions and branches",
           .opens = "genhtml, lcov, IDEs",
           .needs = "program flow and debug information",
           .extension = ".info",
           .calls = true,
           .instructions = true},
    Format{.name = "cobertura",
           .what = "coverage of lines, functions and branches",
           .opens = "GitLab, Jenkins, Azure",
           .needs = "program flow and debug information",
           .extension = ".xml",
           .calls = true,
           .instructions = true},
    Format{.name = "llvm-profile",
           .what = "LLVM's sample profile of lines, calls and inlined calls, as text",
           .opens = "clang -fprofile-sample-use, llvm-profdata",
           .needs = "debug information",
           .extension = ".prof",
           .calls = true,
           .instructions = true},
    Format{.name = "autofdo-text",
           .what = "exact ranges and branches of one file, as offsets in it",
           .opens = "create_llvm_prof --profiler text",
           .needs = "program flow, or samples, in files that are found",
           .extension = ".autofdo.txt",
           .ranges = true},
    Format{.name = "profgen",
           .what = "exact ranges and branches of one file, unsymbolised",
           .opens = "llvm-profgen --unsymbolized-profile",
           .needs = "program flow in files that are found",
           .extension = ".profgen.txt",
           .ranges = true},
    Format{.name = "profgen-script",
           .what = "the same, as perf script prints samples with branch stacks",
           .opens = "llvm-profgen --perfscript",
           .needs = "program flow in files that are found",
           .extension = ".perfscript",
           .ranges = true},
    Format{.name = "bolt",
           .what = "branches, and the straight-line code between them",
           .opens = "perf2bolt --pa",
           .needs = "branches",
           .extension = ".preagg",
           .instructions = true,
           .ranges = true},
    Format{.name = "branch-list",
           .what = "exact branches of all files, by build ID",
           .opens = "simpleperf inject",
           .needs = "program flow in files that are found",
           .extension = ".branch_list",
           .ranges = true},
    Format{.name = "csv",
           .what = "one table with --table, or all into a folder",
           .opens = "spreadsheets, pandas, DuckDB",
           .needs = "nothing",
           .extension = ".csv",
           .calls = true,
           .timeline = true,
           .instructions = true},
    Format{.name = "jsonl",
           .what = "the same tables, a JSON object for each row",
           .opens = "jq, DuckDB, scripts",
           .needs = "nothing",
           .extension = ".jsonl",
           .calls = true,
           .timeline = true,
           .instructions = true},
    Format{.name = "sqlite",
           .what = "all tables in one file, with a description of each column",
           .opens = "waymark query, sqlite3",
           .needs = "nothing",
           .extension = ".sqlite",
           .calls = true,
           .timeline = true,
           .instructions = true},
};

}  // namespace

std::span<const Format> formats() { return all_formats; }

const Format* find_format(std::string_view name) {
    if (name == old_name_of_llvm_profile) name = "llvm-profile";
    const auto at =
        std::find_if(all_formats.begin(), all_formats.end(), [&](const Format& f) { return f.name == name; });
    return at == all_formats.end() ? nullptr : &*at;
}

Result<std::size_t> find_metric(const answers::Answers& answers, std::string_view name) {
    const auto& metrics = answers.metrics;
    if (metrics.empty()) return Error{Errc::not_found, "nothing was counted, so there is no metric"};
    if (name.empty()) return std::size_t{0};
    std::string names;
    std::size_t found = metrics.size(), many = 0;
    for (std::size_t i = 0; i < metrics.size(); ++i) {
        if (metrics[i].name == name) return i;
        if (metrics[i].name.find(name) != std::string::npos) {
            found = i;
            ++many;
        }
        names += (names.empty() ? "" : ", ") + metrics[i].name;
    }
    if (many == 1) return found;
    return Error{Errc::usage, fmt::format("--metric '{}' is {}; there are: {}", name,
                                          many == 0 ? "not counted" : "not the name of one alone", names)};
}

}  // namespace waymark::exports
