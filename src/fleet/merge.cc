#include "waymark/fleet/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "durable_file.h"
#include "hasher.h"
#include "waymark/answers/file.h"
#include "waymark/answers/parts.h"
#include "waymark/answers/sum.h"
#include "waymark/capture/placed_file.h"
#include "waymark/core/numbers.h"
#include "waymark/fleet/receipt.h"
#include "waymark/pipeline/answers_file.h"
#include "whole_number.h"

namespace waymark::fleet {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

struct DoneShard {
    std::uint32_t number{};
    Receipt receipt;
    std::set<std::string> machines;
};

/// The state of a job for merging. Captures of shards are not kept.
struct JobState {
    Manifest manifest;
    std::vector<DoneShard> done;  // by number
    std::vector<MissingShard> missing;
};

std::set<std::string> machines_of(const Shard& shard) {
    std::set<std::string> out;
    for (const PlannedCapture& c : shard.captures)
        if (!c.machine.empty()) out.insert(c.machine);
    return out;
}

Result<JobState> read_state(const JobFolder& job, std::uint64_t first, std::uint64_t end) {
    JobState out;
    WM_ASSIGN_OR_RETURN(out.manifest, read_manifest(job));
    WM_RETURN_IF_ERROR(read_shards(job, out.manifest, [&](Shard&& shard) {
        if (shard.number < first || shard.number >= end) return;
        if (auto receipt = finished_shard(job, shard, false))
            out.done.push_back({shard.number, std::move(*receipt), machines_of(shard)});
        else
            out.missing.push_back({shard.number, shard.captures.size(), why_missing(job, shard)});
    }));
    return out;
}

/// Refuses answers that must not be added, although each file is valid.
Status check_mixture(const std::vector<DoneShard>& shards) {
    const DoneShard* first = nullptr;
    std::map<std::string, std::pair<std::string, std::uint32_t>> nameless;
    for (const DoneShard& s : shards) {
        if (s.receipt.answers_bytes == 0) continue;
        if (first == nullptr) first = &s;
        if (s.receipt.unit != first->receipt.unit)
            return Error{Errc::usage,
                         fmt::format("shard {} is of unit {}, shard {} of unit {}: their figures do not add "
                                     "up; plan a job for each unit",
                                     first->number, first->receipt.unit, s.number, s.receipt.unit)};
        for (const auto& [name, hash] : s.receipt.nameless) {
            const auto [at, fresh] = nameless.try_emplace(name, hash, s.number);
            if (at->second.first != hash)
                return Error{
                    Errc::usage,
                    fmt::format("{} has no build ID, and it is another program in shard {} than in shard {}, so "
                                "their figures must not be added; plan a job for each build, or link with "
                                "--build-id",
                                name, at->second.second, s.number)};
        }
    }
    return Nothing{};
}

// ---- intermediate sums

/// The range of shards that a sum of a level covers.
std::pair<std::uint64_t, std::uint64_t> covered(unsigned level, std::uint32_t node, std::uint64_t shards) {
    std::uint64_t width = 1;
    for (unsigned l = 0; l < level; ++l) width *= merge_fan_in;
    return {std::min(node * width, shards), std::min((node + std::uint64_t{1}) * width, shards)};
}

/// Describes the contents of a sum: the shards [first, last) of `done`, by their identities and answers.
std::string content_of(const DoneShard* first, const DoneShard* last) {
    Hasher hasher;
    for (; first != last; ++first) {
        hasher.add(std::uint64_t{first->number});
        hasher.add(first->receipt.identity);
        hasher.add(first->receipt.answers_hash);
    }
    return hasher.text();
}

/// A sum that still matches its shards. `bad_format`: it does not match, with the reason; `not_found`: there is none.
Result<WrittenFile> usable_node(const JobFolder& job, unsigned level, std::uint32_t node, const std::string& content) {
    WM_ASSIGN_OR_RETURN(const std::string text, read_small_file(job.of_node(level, node, "json")));
    const fs::path answers = job.of_node(level, node, "answers");
    const auto wrong = [&](std::string_view why) {
        return Error{Errc::bad_format, fmt::format("{}: {}", answers.string(), why)};
    };
    WrittenFile expected;
    try {
        const json value = json::parse(text);
        if (value.at("content") != content) return wrong("shards were decoded after that, or are missing in it");
        expected = {whole<std::uint64_t>(value.at("answers_bytes")), value.at("answers_hash").get<std::string>()};
    } catch (const json::exception& error) {
        return wrong(error.what());
    }
    const auto found = hash_of_file(answers);
    if (!found || found->bytes != expected.bytes || found->hash != expected.hash) return wrong("it is damaged");
    return expected;
}

/// Adds up files, one after another.
class FileAdder {
public:
    explicit FileAdder(const JobFolder& job) : job_(job) {}

    /// Errors: `bad_format`: the file is not the one that its task wrote.
    Status add_shard(const DoneShard& shard) {
        if (shard.receipt.answers_bytes == 0) return Nothing{};
        const fs::path path = job_.of_shard(shard.number, "answers");
        WM_ASSIGN_OR_RETURN(const WrittenFile file, hash_of_file(path));
        if (file.hash != shard.receipt.answers_hash)
            return Error{Errc::bad_format,
                         fmt::format("{} is not what its task wrote: its hash differs", path.string())};
        return add_file(path);
    }
    Status add_file(const fs::path& path) {
        WM_ASSIGN_OR_RETURN(answers::Answers answers, pipeline::read_summand(path.string()));
        sum_.add(std::move(answers));
        return Nothing{};
    }
    [[nodiscard]] answers::AnswersSum& sum() { return sum_; }

private:
    const JobFolder& job_;
    answers::AnswersSum sum_;
};

/// The inputs of merge_job: shards, and intermediate sums that replace some of them.
class JobMerge {
public:
    JobMerge(const JobFolder& job, JobState state) : job_(job), state_(std::move(state)), adder_(job) {
        outcome_.shards = state_.manifest.shards;
        outcome_.missing = std::move(state_.missing);
        outcome_.not_decoded = state_.manifest.unreadable;
    }

    Result<MergeOutcome> run(const std::string& output) {
        WM_RETURN_IF_ERROR(check_mixture(state_.done));
        levels_ = merge_levels(outcome_.shards);
        add(levels_ + 1, 0);  // all of them
        if (adder_.sum().empty()) return std::move(outcome_);
        answers::Answers sum = adder_.sum().take();
        outcome_.machines = machines_.size();
        for (const answers::Image& image : sum.images) outcome_.builds += !image.build_id.empty();
        outcome_.spread = spread_of(std::move(profiles_));
        say_what_is_missing(sum);
        say_what_is_behind(sum);
        const fs::path place = output.empty() ? job_.result() : fs::absolute(output);
        capture::TemporaryName::remove_leftovers(place);
        WM_ASSIGN_OR_RETURN(const WrittenFile file,
                            write_durably(place, [&](ByteSink& sink) { answers::write_answers(sum, sink); }));
        outcome_.answers_bytes = file.bytes;
        return std::move(outcome_);
    }

private:
    /// Adds the shards that a sum covers: the sum itself if it is usable, otherwise its shards.
    void add(unsigned level, std::uint32_t node) {
        const auto [begin, end] = covered(level, node, outcome_.shards);
        const DoneShard* const first = place(begin);
        const DoneShard* const last = place(end);
        if (first == last) return;
        if (level <= levels_ && is_added(level, node, first, last)) return;
        if (level > 1) {
            for (std::uint32_t below = node * merge_fan_in; below < (node + 1) * merge_fan_in; ++below)
                add(level - 1, below);
            return;
        }
        for (const DoneShard* shard = first; shard != last; ++shard) {
            const Status added = adder_.add_shard(*shard);
            if (added)
                count(*shard);
            else
                outcome_.missing.push_back({shard->number, shard->receipt.captures, added.error().message});
        }
    }
    bool is_added(unsigned level, std::uint32_t node, const DoneShard* first, const DoneShard* last) {
        const auto usable = usable_node(job_, level, node, content_of(first, last));
        const Status added =
            usable ? usable->bytes == 0 ? Status(Nothing{}) : adder_.add_file(job_.of_node(level, node, "answers"))
                   : Status(usable.error());
        if (!added) {
            if (added.error().code != Errc::not_found) outcome_.ignored.push_back(added.error().message);
            return false;
        }
        ++outcome_.intermediate_files;
        for (const DoneShard* shard = first; shard != last; ++shard) count(*shard);
        return true;
    }
    [[nodiscard]] const DoneShard* place(std::uint64_t number) const {
        const DoneShard* const first = state_.done.data();
        return std::lower_bound(first, first + state_.done.size(), number,
                                [](const DoneShard& s, std::uint64_t n) { return s.number < n; });
    }
    void count(const DoneShard& shard) {
        ++outcome_.merged;
        outcome_.captures += shard.receipt.captures;
        const std::vector<NotDecoded>& not_decoded = shard.receipt.not_decoded;
        outcome_.not_decoded.insert(outcome_.not_decoded.end(), not_decoded.begin(), not_decoded.end());
        outcome_.cut.insert(outcome_.cut.end(), shard.receipt.cut.begin(), shard.receipt.cut.end());
        profiles_.insert(profiles_.end(), shard.receipt.profiles.begin(), shard.receipt.profiles.end());
        machines_.insert(shard.machines.begin(), shard.machines.end());
        outcome_.recorded_ns += shard.receipt.recorded_ns;
        outcome_.timed_captures += shard.receipt.timed_captures;
        outcome_.seconds += shard.receipt.seconds;
        outcome_.processor_seconds += shard.receipt.processor_seconds;
        outcome_.memory_bytes = std::max(outcome_.memory_bytes, shard.receipt.memory_bytes);
    }

    void say_what_is_missing(answers::Answers& sum) {
        std::sort(outcome_.missing.begin(), outcome_.missing.end(),
                  [](const MissingShard& a, const MissingShard& b) { return a.number < b.number; });
        std::uint64_t captures = outcome_.not_decoded.size();
        for (const MissingShard& m : outcome_.missing) captures += m.captures;
        if (captures == 0) return;
        answers::Finding finding{
            answers::Finding::Severity::warning,
            fmt::format("{} of {} that the job names {} missing here.", grouped(captures),
                        counted(state_.manifest.captures + state_.manifest.unreadable.size(), "capture"),
                        are(captures)),
            "waymark fleet status lists them with the reasons; then decode what is missing and merge again"};
        // The most severe finding comes first; good findings are dropped if there is another one.
        using Severity = answers::Finding::Severity;
        std::erase_if(sum.health, [](const answers::Finding& f) { return f.severity == Severity::good; });
        const auto at = std::find_if(sum.health.begin(), sum.health.end(),
                                     [](const answers::Finding& f) { return f.severity < Severity::bad; });
        sum.health.insert(at, std::move(finding));
    }

    /// Adds findings about how far the result can be relied on.
    void say_what_is_behind(answers::Answers& sum) const {
        std::uint64_t outliers = 0;
        for (const ProgramSpread& s : outcome_.spread) outliers += s.outliers.size();
        std::string what = fmt::format("These figures are of {}", counted(outcome_.captures, "capture"));
        if (outcome_.machines != 0) what += fmt::format(" of {}", counted(outcome_.machines, "machine"));
        what += fmt::format(", of {} of programs and libraries", counted(outcome_.builds, "build"));
        if (const std::string recorded = recorded_text(outcome_); !recorded.empty())
            what += ", recorded in " + recorded;
        what += ".";
        add_spread(sum, outcome_.spread);
        if (outliers != 0)
            what += fmt::format(" The profiles of {} differ from the others of their program by {} or more.",
                                counted(outliers, "capture"), least_outlying);
        sum.health.push_back({answers::Finding::Severity::note, std::move(what),
                              outliers == 0 ? "" : "the table of captures that differ lists them"});
        answers::sort_findings(sum);
    }

    const JobFolder& job_;
    JobState state_;
    FileAdder adder_;
    unsigned levels_ = 0;
    std::vector<CaptureProfile> profiles_;
    std::set<std::string> machines_;
    MergeOutcome outcome_;
};

}  // namespace

std::string recorded_text(const MergeOutcome& outcome) {
    if (outcome.recorded_ns == 0) return {};
    const double seconds = static_cast<double>(outcome.recorded_ns) / 1e9;
    const std::string time = seconds < 1     ? fmt::format("{:.3f} s", seconds)
                             : seconds < 600 ? fmt::format("{:.1f} s", seconds)
                                             : fmt::format("{:.1f} hours", seconds / 3600);
    if (outcome.timed_captures == outcome.captures) return time;
    return fmt::format("{} ({} of them; of the others it is not known)", time,
                       counted(outcome.timed_captures, "capture"));
}

unsigned merge_levels(std::uint64_t shards) {
    unsigned levels = 0;
    for (std::uint64_t files = shards; files > merge_fan_in; files = (files + merge_fan_in - 1) / merge_fan_in)
        ++levels;
    return levels;
}

std::uint32_t nodes_of_level(std::uint64_t shards, unsigned level) {
    std::uint64_t nodes = shards;
    for (unsigned l = 0; l < level; ++l) nodes = (nodes + merge_fan_in - 1) / merge_fan_in;
    return static_cast<std::uint32_t>(nodes);
}

Result<MergeOutcome> merge_job(const JobFolder& job, const std::string& output) {
    WM_ASSIGN_OR_RETURN(JobState state, read_state(job, 0, ~std::uint64_t{0}));
    return JobMerge(job, std::move(state)).run(output);
}

Status merge_node(const JobFolder& job, unsigned level, std::uint32_t node) {
    WM_ASSIGN_OR_RETURN(const Manifest manifest, read_manifest(job));
    const unsigned levels = merge_levels(manifest.shards);
    if (level < 1 || level > levels || node >= nodes_of_level(manifest.shards, level))
        return Error{Errc::usage, fmt::format("the job in {} has no intermediate sum {} of level {}: {} take {}",
                                              job.path().string(), node, level, counted(manifest.shards, "shard"),
                                              counted(levels, "level"))};
    const auto [begin, end] = covered(level, node, manifest.shards);
    WM_ASSIGN_OR_RETURN(const JobState state, read_state(job, begin, end));
    WM_RETURN_IF_ERROR(check_mixture(state.done));
    const DoneShard* const first = state.done.data();
    const DoneShard* const last = first + state.done.size();
    const std::string content = content_of(first, last);
    if (usable_node(job, level, node, content)) return Nothing{};
    FileAdder adder(job);
    const auto number = [](const DoneShard& s, std::uint64_t n) { return s.number < n; };
    for (std::uint64_t at = begin; at < end;) {
        const auto below =
            static_cast<std::uint32_t>(level == 1 ? 0 : at / covered(level - 1, 0, ~std::uint64_t{0}).second);
        const std::uint64_t next = level == 1 ? end : covered(level - 1, below, manifest.shards).second;
        const DoneShard* const from = std::lower_bound(first, last, at, number);
        const DoneShard* const to = std::lower_bound(first, last, next, number);
        at = next;
        if (from == to) continue;
        if (level > 1) {
            const auto usable = usable_node(job, level - 1, below, content_of(from, to));
            if (usable) {
                if (usable->bytes != 0) WM_RETURN_IF_ERROR(adder.add_file(job.of_node(level - 1, below, "answers")));
                continue;
            }
        }
        for (const DoneShard* shard = from; shard != to; ++shard) WM_RETURN_IF_ERROR(adder.add_shard(*shard));
    }
    WrittenFile file;
    if (!adder.sum().empty()) {
        const answers::Answers sum = adder.sum().take();
        WM_ASSIGN_OR_RETURN(file, write_durably(job.of_node(level, node, "answers"),
                                                [&](ByteSink& sink) { answers::write_answers(sum, sink); }));
    }
    return write_durably(
        job.of_node(level, node, "json"),
        json{{"content", content}, {"answers_bytes", file.bytes}, {"answers_hash", file.hash}}.dump() + "\n");
}

}  // namespace waymark::fleet
