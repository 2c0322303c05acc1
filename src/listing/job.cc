#include "waymark/listing/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <string_view>

#include "print.h"
#include "waymark/answers/account_effects.h"
#include "waymark/core/numbers.h"

namespace waymark::listing {

namespace {

using nlohmann::ordered_json;

/// Prints the first `most` of `all` lines, and how many more there are.
void print_some(TextSink& out, std::size_t all, std::size_t most, const std::function<void(std::size_t)>& print_one) {
    for (std::size_t n = 0; n < all && n < most; ++n) print_one(n);
    if (all > most) print(out, "  … and {} more\n", grouped(all - most));
}

/// Prints what is missing, and why, below a title.
void print_missing(TextSink& out, std::string_view title, const std::vector<fleet::NotDecoded>& captures,
                   std::size_t most) {
    if (captures.empty()) return;
    print(out, "\n{}:\n", title);
    print_some(out, captures.size(), most,
               [&](std::size_t n) { print(out, "  {}\n", about(captures[n].what, captures[n].why)); });
}
void print_missing(TextSink& out, std::string_view title, const std::vector<fleet::MissingShard>& shards,
                   std::size_t most) {
    if (shards.empty()) return;
    print(out, "\n{}:\n", title);
    print_some(out, shards.size(), most, [&](std::size_t n) {
        print(out, "  {} ({}): {}\n", shards[n].number, counted(shards[n].captures, "capture"), shards[n].why);
    });
}

void print_status(TextSink& out, const fleet::JobStatus& s, const std::vector<fleet::QueuedTasks>& queued) {
    print(out, "shards    {} of {} done ({})", grouped(s.done), grouped(s.manifest.shards),
          share_text(s.done, s.manifest.shards));
    if (s.failed != 0) print(out, ", {} failed", grouped(s.failed));
    if (s.begun != 0) print(out, ", {} begun", grouped(s.begun));
    if (s.waiting != 0) print(out, ", {} waiting", grouped(s.waiting));
    print(out, "\ncaptures  {} of {} decoded, {} of {} of trace\n", grouped(s.captures_done),
          grouped(s.manifest.captures), size_text(s.trace_bytes_done), size_text(s.manifest.trace_bytes));
    print_account(out, s.account, 10);
    if (s.done != 0)
        print(out, "rate      {} MB/s on a core, with the start of each task; the largest task took {}\n",
              decimal_text(s.bytes_per_second() / 1e6), size_text(s.memory_bytes));
    if (s.done != s.manifest.shards) {
        const std::uint64_t running = std::max<std::uint64_t>(1, s.begun);
        print(out, "left      {} on one core, {} on the {} at work\n", elapsed_text(s.seconds_left()),
              elapsed_text(s.seconds_left() / static_cast<double>(running)), grouped(running));
    }
    for (const fleet::QueuedTasks& q : queued)
        print(out, "Slurm     {} {}: {}{}\n", grouped(q.tasks), q.what, q.state,
              q.reason.empty() || q.reason == "None" ? "" : " (" + q.reason + ")");
    print(out, "result    {}\n", s.has_result ? "written; merge again if shards were decoded since" : "not merged yet");
    constexpr std::size_t most = 20;
    if (!s.running.empty()) {
        print(out, "\nbegun:\n");
        print_some(out, s.running.size(), most, [&](std::size_t n) {
            const fleet::RunningShard& r = s.running[n];
            print(out, "  {} on {}: {} of {}, {} of {}\n", r.number, r.progress.host, grouped(r.progress.captures_done),
                  counted(r.progress.captures, "capture"), size_text(r.progress.bytes_done),
                  size_text(r.progress.bytes));
        });
    }
    print_missing(out, "failed", s.failures, most);
    print_missing(out, "not decoded", s.not_decoded, most);
    print_missing(out, "decoded in part", s.cut, most);
}

ordered_json status_json(const fleet::JobStatus& s, const std::vector<fleet::QueuedTasks>& queued) {
    ordered_json failures = ordered_json::array(), missing = ordered_json::array(), tasks = ordered_json::array(),
                 cut = ordered_json::array();
    for (const fleet::MissingShard& f : s.failures)
        failures.push_back({{"shard", f.number}, {"captures", f.captures}, {"why", f.why}});
    for (const fleet::NotDecoded& n : s.not_decoded) missing.push_back({{"capture", n.what}, {"why", n.why}});
    for (const fleet::NotDecoded& n : s.cut) cut.push_back({{"capture", n.what}, {"why", n.why}});
    for (const fleet::QueuedTasks& q : queued)
        tasks.push_back({{"what", q.what}, {"state", q.state}, {"reason", q.reason}, {"tasks", q.tasks}});
    return {{"shards", s.manifest.shards},
            {"done", s.done},
            {"failed", s.failed},
            {"begun", s.begun},
            {"waiting", s.waiting},
            {"captures", s.manifest.captures},
            {"captures_decoded", s.captures_done},
            {"run", answers::account_sentence(s.account)},
            {"trace_bytes", s.manifest.trace_bytes},
            {"trace_bytes_decoded", s.trace_bytes_done},
            {"bytes_per_second", s.bytes_per_second()},
            {"seconds_left", s.seconds_left()},
            {"memory_bytes", s.memory_bytes},
            {"has_result", s.has_result},
            {"failures", std::move(failures)},
            {"not_decoded", std::move(missing)},
            {"decoded_in_part", std::move(cut)},
            {"queued", std::move(tasks)}};
}

}  // namespace

std::string elapsed_text(double seconds) {
    const auto whole = static_cast<std::uint64_t>(seconds + 0.5);
    if (whole < 100) return fmt::format("{} s", whole);
    const std::uint64_t minutes = (whole + 30) / 60;
    if (minutes < 100) return fmt::format("{} min", minutes);
    return fmt::format("{} h {} min", grouped(minutes / 60), minutes % 60);
}

void print_plan(TextSink& out, const fleet::PlanSummary& s, unsigned cores) {
    const std::string trace = size_text(s.trace_bytes);
    print(out, "captures       {}, {} of trace", grouped(s.captures), trace);
    if (s.machines != 0) print(out, ", of {}", counted(s.machines, "machine"));
    for (const auto& [unit, captures] : s.units)
        if (!unit.empty()) print(out, ", unit {}", unit);
    print(out, "\n");
    if (s.known != 0) print(out, "               {} are in the plan already\n", grouped(s.known));
    if (s.repeated != 0) print(out, "               {} named more than once\n", grouped(s.repeated));
    print(out, "builds         {} of programs and libraries; {} not found\n", grouped(s.builds),
          s.missing.empty() ? "none" : grouped(s.missing.size()));
    print(out, "shards         {}; the longest takes about {}\n", grouped(s.shards), elapsed_text(s.longest));
    print(out, "time           about {} on one core, {} on {} (estimated; fleet status corrects it)\n",
          elapsed_text(s.seconds), elapsed_text(s.elapsed), counted(cores, "core"));
    print(out, "disk           about {} for answers (estimated){}; the captures have {}\n", size_text(s.answers_bytes),
          s.free_bytes ? fmt::format(", {} free", size_text(*s.free_bytes)) : "", size_text(s.bytes));
    constexpr std::size_t most = 20;
    if (!s.missing.empty()) {
        print(out,
              "\nnot found, so without names, and without code where only the file has it; give --symfs or "
              "--debug-dir:\n");
        print_some(out, s.missing.size(), most, [&](std::size_t n) {
            const fleet::MissingFile& m = s.missing[n];
            print(out, "  {}{}: in {}, {} of trace{}\n", m.file.name,
                  m.file.build_id.empty() ? "" : " (build ID " + m.file.build_id + ")", counted(m.captures, "capture"),
                  size_text(m.trace_bytes), m.has_code ? "; its code is needed" : "");
        });
    }
    if (!s.unreadable.empty()) {
        print(out, "\nin no shard, because they cannot be read:\n");
        print_some(out, s.unreadable.size(), most, [&](std::size_t n) { print(out, "  {}\n", s.unreadable[n].why); });
    }
}

void print_job_status(TextSink& out, const fleet::JobStatus& status, const std::vector<fleet::QueuedTasks>& queued,
                      LineFormat format) {
    if (format == LineFormat::json) return out.write(json_text(status_json(status, queued)) + "\n");
    print_status(out, status, queued);
}

void print_merged(TextSink& out, const fleet::MergeOutcome& m, std::size_t most) {
    print(out, "shards    {} of {} merged\n", grouped(m.merged), grouped(m.shards));
    print(out, "captures  {}{}\n", grouped(m.captures),
          (m.not_decoded.empty() ? "" : fmt::format("; {} not decoded", grouped(m.not_decoded.size()))) +
              (m.cut.empty() ? "" : fmt::format("; {} in part", grouped(m.cut.size()))));
    if (m.machines != 0) print(out, "machines  {}\n", grouped(m.machines));
    print(out, "builds    {} of programs and libraries\n", grouped(m.builds));
    if (const std::string recorded = fleet::recorded_text(m); !recorded.empty()) print(out, "recorded  {}\n", recorded);
    print(out, "work      {} of tasks, {} of processors; the largest task took {}\n", elapsed_text(m.seconds),
          elapsed_text(m.processor_seconds), size_text(m.memory_bytes));
    if (!m.spread.empty()) {
        print(out,
              "\nby program: cost of a capture (least, median, most); the median distance between\n"
              "profiles (0: alike, 1: nothing in common)\n");
        print_some(out, m.spread.size(), most, [&](std::size_t n) {
            const fleet::ProgramSpread& s = m.spread[n];
            print(out, "  {}: {}; {}, {}, {}; {}\n", s.program.empty() ? "(not known)" : s.program,
                  counted(s.captures, "capture"), grouped(s.least), grouped(s.median), grouped(s.most),
                  decimal_text(s.median_distance));
        });
    }
    for (const fleet::ProgramSpread& s : m.spread) {
        if (s.outliers.empty()) continue;
        print(out, "\nprofiles that differ by {} or more from the other captures of {}:\n", fleet::least_outlying,
              s.program.empty() ? "the job" : s.program);
        print_some(out, s.outliers.size(), most, [&](std::size_t n) {
            print(out, "  {} {}\n", decimal_text(s.outliers[n].distance), s.outliers[n].capture);
        });
    }
    print_missing(out, "shards that are missing", m.missing, most);
    print_missing(out, "captures that are missing", m.not_decoded, most);
    print_missing(out, "captures of which a part is missing", m.cut, most);
}

}  // namespace waymark::listing
