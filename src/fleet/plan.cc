#include "waymark/fleet/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "durable_file.h"
#include "waymark/answers/answers.h"
#include "waymark/capture/module_map.h"
#include "waymark/capture/placed_file.h"
#include "waymark/core/file_error.h"
#include "waymark/core/numbers.h"
#include "waymark/core/quote.h"
#include "waymark/fleet/inputs.h"
#include "waymark/fleet/survey.h"
#include "waymark/image/debug_info.h"
#include "waymark/image/memory_map.h"

namespace waymark::fleet {

namespace fs = std::filesystem;

namespace {

// Cost of decoding on one core, as measured (docs/fleet.md), rounded up: a plan needs only the order of magnitude.
// `status` uses the measured rates of the job itself.
constexpr double flow_bytes_per_second = 40e6, sample_bytes_per_second = 20e6, counter_bytes_per_second = 20e6;
constexpr double seconds_of_capture = 0.03;  // opening a capture, and adding its answers to the sum
constexpr double seconds_of_file = 0.02;     // reading the names of a file that ran
constexpr std::string_view planning =
    "another 'waymark fleet plan' or 'fleet add' is writing its plan; wait until it has ended, or name another folder";
// Size of a shard's answers: its code, and a few bytes for each capture.
constexpr std::uint64_t answers_bytes_of_shard = 500'000, answers_bytes_of_capture = 200;

double default_rate(const PlannedCapture& capture) {
    if (capture.unit == "SPE") return sample_bytes_per_second;
    if (capture.unit == "DPU") return counter_bytes_per_second;
    return flow_bytes_per_second;
}

std::vector<std::uint8_t> bytes_of_hex(const std::string& text) {
    std::vector<std::uint8_t> out;
    for (std::size_t at = 0; at + 2 <= text.size(); at += 2) {
        std::uint8_t byte = 0;
        std::from_chars(text.data() + at, text.data() + at + 2, byte, 16);
        out.push_back(byte);
    }
    return out;
}

/// Refuses captures of several units, whose answers cannot be added.
Status one_unit(const std::vector<std::pair<std::string, std::uint64_t>>& units) {
    std::string found;
    std::size_t known = 0;
    for (const auto& [unit, captures] : units) {
        if (unit.empty()) continue;
        ++known;
        found += fmt::format("{}{} of unit {}", found.empty() ? "" : ", ", counted(captures, "capture"), unit);
    }
    if (known < 2) return Nothing{};
    return Error{
        Errc::usage,
        fmt::format("the captures are of several units, whose figures do not add up: {}; plan a job for each", found)};
}

/// Checks whether the files that ran can be found.
std::vector<MissingFile> missing_files(const std::vector<PlannedCapture>& captures, const PlanRequest& request) {
    std::map<RanFile, MissingFile> ran;
    for (const PlannedCapture& c : captures)
        for (const RanFile& f : c.ran) {
            MissingFile& m = ran.try_emplace(f, MissingFile{f, {}}).first->second;
            ++m.captures;
            m.trace_bytes += c.trace_bytes;
            m.has_code |= c.needs_files;
        }
    std::set<std::string> given;  // build IDs of the files in the options
    for (const std::string& file : request.given)
        if (const auto argument = image::parse_image_argument(file); argument)
            if (const auto info = image::DebugInfo::open(argument->path); info && !info->build_id().empty())
                given.insert(capture::hex_text(info->build_id()));
    std::vector<MissingFile> out;
    for (auto& [file, missing] : ran) {
        if (given.contains(file.build_id)) continue;
        const auto found = image::find_file(file.name, bytes_of_hex(file.build_id), request.files);
        if (found) continue;
        missing.why = found.error().message;
        out.push_back(std::move(missing));
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const MissingFile& a, const MissingFile& b) { return a.trace_bytes > b.trace_bytes; });
    return out;
}

/// Surveys captures and divides them into shards, numbered from `first`.
class Planner {
public:
    Planner(const JobFolder& job, const PlanRequest& request) : job_(job), request_(request) {}

    /// `known`: captures already in the plan.
    Status survey(const std::map<std::string, PlannedCapture>& known) {
        for (const auto& [path, capture] : known) sample_orders_.push_back(answers::sample_order(path));
        WM_ASSIGN_OR_RETURN(FoundCaptures found, find_captures(request_.inputs));
        summary_.repeated = found.repeated;
        summary_.barren = std::move(found.barren);
        std::uint64_t done = 0;
        for (const std::string& path : found.paths) {
            if (request_.progress) request_.progress(done++, found.paths.size());
            if (const auto before = known.find(path); before != known.end()) {
                WM_ASSIGN_OR_RETURN(const FileState now, file_state(path));
                if (now.bytes != before->second.bytes || now.sample != before->second.sample)
                    return Error{Errc::usage, fmt::format("{} changed since it was planned, so its answers are of "
                                                          "another capture; plan a job anew",
                                                          path)};
                ++summary_.known;
                continue;
            }
            auto capture = survey_capture(path, request_.bare);
            if (capture)
                captures_.push_back(std::move(*capture));
            else
                summary_.unreadable.push_back({path, capture.error().message});
        }
        std::map<std::string, std::uint64_t> units;
        std::set<std::string> machines, builds;
        for (const PlannedCapture& c : captures_) {
            ++units[c.unit];
            if (!c.machine.empty()) machines.insert(c.machine);
            for (const RanFile& f : c.ran)
                if (!f.build_id.empty()) builds.insert(f.build_id);
            summary_.trace_bytes += c.trace_bytes;
            summary_.bytes += c.bytes;
        }
        summary_.units.assign(units.begin(), units.end());
        summary_.captures = captures_.size();
        summary_.machines = machines.size();
        summary_.builds = builds.size();
        return Nothing{};
    }

    [[nodiscard]] std::vector<Shard> shards(std::uint64_t first, const Manifest& manifest) {
        summary_.missing = missing_files(captures_, request_);
        const auto seconds = [&](const PlannedCapture& c) { return seconds_of(c); };
        for (const PlannedCapture& c : captures_) summary_.seconds += seconds(c);
        choose_timelines();
        std::vector<Shard> out = make_shards(std::move(captures_), target(), seconds);
        for (Shard& shard : out) {
            shard.number = static_cast<std::uint32_t>(first++);
            shard.identity = identity_of(shard, manifest);
            summary_.longest = std::max(summary_.longest, shard.seconds);
        }
        summary_.shards = out.size();
        const double cores = std::max(1U, request_.cores);
        summary_.elapsed = std::max(summary_.longest, summary_.seconds / cores);
        summary_.answers_bytes = out.size() * answers_bytes_of_shard + summary_.captures * answers_bytes_of_capture;
        // The folder is created last.
        fs::path existing = fs::absolute(job_.path());
        std::error_code none;
        while (!fs::exists(existing, none) && existing.has_relative_path()) existing = existing.parent_path();
        const fs::space_info space = fs::space(existing, none);
        if (!none) summary_.free_bytes = space.available;
        return out;
    }
    [[nodiscard]] PlanSummary& summary() { return summary_; }

private:
    /// Only timelines that the sum of all captures keeps are computed.
    void choose_timelines() {
        for (const PlannedCapture& c : captures_) sample_orders_.push_back(answers::sample_order(c.path));
        std::sort(sample_orders_.begin(), sample_orders_.end());
        const std::uint64_t most = sample_orders_[std::min(sample_orders_.size(), answers::most_samples) - 1];
        for (PlannedCapture& c : captures_) c.timeline = answers::sample_order(c.path) <= most;
    }
    [[nodiscard]] double seconds_of(const PlannedCapture& c) const {
        const double rate = request_.bytes_per_second > 0 ? request_.bytes_per_second : default_rate(c);
        return seconds_of_capture + seconds_of_file * static_cast<double>(c.ran.size()) +
               static_cast<double>(c.trace_bytes) / rate;
    }
    /// The target time of a shard: two minutes, and less if some cores would be idle.
    [[nodiscard]] double target() const {
        if (request_.shard_seconds > 0) return request_.shard_seconds;
        constexpr double most = 120, least = 1, shards_per_core = 4;
        return std::clamp(summary_.seconds / (shards_per_core * std::max(1U, request_.cores)), least, most);
    }

    const JobFolder& job_;
    const PlanRequest& request_;
    std::vector<PlannedCapture> captures_;
    std::vector<std::uint64_t> sample_orders_;
    PlanSummary summary_;
};

Error nothing_found(const PlanSummary& summary) {
    const std::string first = !summary.unreadable.empty() ? summary.unreadable.front().why
                              : !summary.barren.empty()
                                  ? fmt::format(
                                        "{} contains no capture: neither perf.data files nor folders with a "
                                        "snapshot.ini or dpu.ini",
                                        summary.barren.front())
                                  : std::string("name captures, folders, patterns or @LIST");
    return {summary.unreadable.empty() ? Errc::usage : Errc::unreadable, "no capture to plan: " + first};
}

}  // namespace

std::vector<Shard> make_shards(std::vector<PlannedCapture> captures, double target,
                               const std::function<double(const PlannedCapture&)>& seconds) {
    struct Item {
        double seconds;
        PlannedCapture capture;
    };
    std::vector<Item> items;
    items.reserve(captures.size());
    for (PlannedCapture& c : captures) {
        const double cost = seconds(c);
        items.push_back({cost, std::move(c)});
    }
    // Captures that ran the same files become neighbours, so that a shard reads few files. Among them, the largest come
    // first, and names break ties.
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
        return std::tie(a.capture.unit, a.capture.ran, b.seconds, a.capture.path) <
               std::tie(b.capture.unit, b.capture.ran, a.seconds, b.capture.path);
    });
    std::vector<Shard> out;
    for (Item& item : items) {
        // The last capture of a shard may exceed its time by half of the capture's own.
        const bool full = !out.empty() && out.back().seconds + item.seconds / 2 > target;
        if (out.empty() || full || out.back().captures.front().unit != item.capture.unit) out.emplace_back();
        out.back().seconds += item.seconds;
        out.back().captures.push_back(std::move(item.capture));
    }
    std::stable_sort(out.begin(), out.end(), [](const Shard& a, const Shard& b) { return a.seconds > b.seconds; });
    return out;
}

Result<PlanSummary> plan_job(const JobFolder& job, const PlanRequest& request) {
    std::error_code error;
    const auto no_plan = [&]() -> Status {
        if (!fs::exists(job.manifest(), error)) return Nothing{};
        return Error{Errc::usage, fmt::format("{} has a plan already: add captures with waymark fleet add {}, or give "
                                              "another folder",
                                              job.path().string(), shell_file(job.path().string()))};
    };
    WM_RETURN_IF_ERROR(no_plan());
    Planner planner(job, request);
    WM_RETURN_IF_ERROR(planner.survey({}));
    if (planner.summary().captures == 0) return nothing_found(planner.summary());
    WM_RETURN_IF_ERROR(one_unit(planner.summary().units));
    Manifest manifest;
    manifest.version = request.version;
    manifest.options = request.options;
    const std::vector<Shard> shards = planner.shards(0, manifest);
    const PlanSummary& summary = planner.summary();
    manifest.shards = summary.shards;
    manifest.captures = summary.captures;
    manifest.trace_bytes = summary.trace_bytes;
    manifest.seconds = summary.seconds;
    manifest.unreadable = summary.unreadable;
    if (const fs::path above = fs::path(job.path()).parent_path(); !above.empty()) fs::create_directories(above, error);
    // The job's folder appears at once and complete, written by one process: it is created under a temporary name and
    // renamed.
    WM_ASSIGN_OR_RETURN(const auto folder, capture::PlacedFolder::open(job.path().string()));
    for (const char* name : {"shards", "merged", "logs"})
        if (!fs::create_directory(folder->folder() / name, error))
            return cannot_create(job.path() / name, error ? error.value() : EEXIST);
    if (Status written = write_plan(JobFolder(folder->folder()), manifest, 0, shards); !written)
        return folder->as_placed(std::move(written.error()));
    const Status placed = folder->commit_new();
    // Another process may have finished meanwhile.
    if (!placed) WM_RETURN_IF_ERROR(no_plan());
    WM_RETURN_IF_ERROR(placed);
    return std::move(planner.summary());
}

Result<PlanSummary> add_to_job(const JobFolder& job, const PlanRequest& request) {
    WM_ASSIGN_OR_RETURN(Manifest manifest, read_manifest(job));
    WM_ASSIGN_OR_RETURN([[maybe_unused]] const FolderLock lock, FolderLock::take(job.path(), planning));
    // From here on the lock is held, so no other process changes the plan.
    WM_ASSIGN_OR_RETURN(manifest, read_manifest(job));
    if (manifest.version != request.version)
        return Error{Errc::usage, fmt::format("{} was planned with waymark {}, and this is {}: use that one, or plan a "
                                              "job anew",
                                              job.path().string(), manifest.version, request.version)};
    std::map<std::string, PlannedCapture> known;
    std::map<std::string, std::uint64_t> units;
    WM_RETURN_IF_ERROR(read_shards(job, manifest, [&](Shard&& shard) {
        for (PlannedCapture& c : shard.captures) {
            ++units[c.unit];
            std::string path = c.path;
            known.emplace(std::move(path), std::move(c));
        }
    }));
    Planner planner(job, request);
    WM_RETURN_IF_ERROR(planner.survey(known));
    PlanSummary& summary = planner.summary();
    if (summary.captures == 0 && summary.known == 0) return nothing_found(summary);
    for (const auto& [unit, captures] : summary.units) units[unit] += captures;
    WM_RETURN_IF_ERROR(one_unit({units.begin(), units.end()}));
    const std::vector<Shard> shards = planner.shards(manifest.shards, manifest);
    const std::uint64_t before = manifest.shards;
    manifest.shards += summary.shards;
    manifest.captures += summary.captures;
    manifest.trace_bytes += summary.trace_bytes;
    manifest.seconds += summary.seconds;
    // An input that was unreadable before may be readable now.
    std::set<std::string> now;
    for (const Shard& shard : shards)
        for (const PlannedCapture& c : shard.captures) now.insert(c.path);
    for (const NotDecoded& u : summary.unreadable) now.insert(u.what);
    std::erase_if(manifest.unreadable, [&](const NotDecoded& u) { return now.contains(u.what); });
    manifest.unreadable.insert(manifest.unreadable.end(), summary.unreadable.begin(), summary.unreadable.end());
    WM_RETURN_IF_ERROR(write_plan(job, manifest, before, shards));
    return std::move(summary);
}

}  // namespace waymark::fleet
