#include "waymark/fleet/manifest.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "durable_file.h"
#include "hasher.h"
#include "waymark/capture/placed_file.h"
#include "waymark/core/quote.h"
#include "whole_number.h"

namespace waymark::fleet {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr std::string_view format_name = "waymark fleet job";
constexpr unsigned format_version = 1;

/// JSON texts are UTF-8, but file names need not be. Invalid bytes would become U+FFFD, so such names are refused when
/// a job is planned.
std::string dumped(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

json to_json(const Shard& shard) {
    // Most captures of a shard ran the same files: each is stored once.
    std::vector<RanFile> ran;
    for (const PlannedCapture& c : shard.captures) ran.insert(ran.end(), c.ran.begin(), c.ran.end());
    std::sort(ran.begin(), ran.end());
    ran.erase(std::unique(ran.begin(), ran.end()), ran.end());
    json files = json::array();
    for (const RanFile& f : ran) files.push_back({{"name", f.name}, {"build_id", f.build_id}});
    json captures = json::array();
    for (const PlannedCapture& c : shard.captures) {
        json numbers = json::array();
        for (const RanFile& f : c.ran) numbers.push_back(std::lower_bound(ran.begin(), ran.end(), f) - ran.begin());
        captures.push_back({{"path", c.path},
                            {"unit", c.unit},
                            {"trace_bytes", c.trace_bytes},
                            {"bytes", c.bytes},
                            {"changed", c.changed},
                            {"sample", c.sample},
                            {"machine", c.machine},
                            {"needs_files", c.needs_files},
                            {"recorded_ns", c.recorded_ns},
                            {"timeline", c.timeline},
                            {"ran", std::move(numbers)}});
    }
    return {{"shard", shard.number},
            {"identity", shard.identity},
            {"seconds", shard.seconds},
            {"files", std::move(files)},
            {"captures", std::move(captures)}};
}

/// Throws json::exception if the value is not a shard.
Shard shard_of(const json& value) {
    Shard out;
    out.number = whole<std::uint32_t>(value.at("shard"));
    out.identity = value.at("identity").get<std::string>();
    out.seconds = value.at("seconds").get<double>();
    std::vector<RanFile> ran;
    for (const json& f : value.at("files"))
        ran.push_back({f.at("name").get<std::string>(), f.at("build_id").get<std::string>()});
    for (const json& c : value.at("captures")) {
        PlannedCapture capture;
        capture.path = c.at("path").get<std::string>();
        capture.unit = c.at("unit").get<std::string>();
        capture.trace_bytes = whole<std::uint64_t>(c.at("trace_bytes"));
        capture.bytes = whole<std::uint64_t>(c.at("bytes"));
        capture.changed = whole<std::int64_t>(c.at("changed"));
        capture.sample = c.at("sample").get<std::string>();
        capture.machine = c.at("machine").get<std::string>();
        capture.needs_files = c.at("needs_files").get<bool>();
        capture.recorded_ns = whole<std::uint64_t>(c.at("recorded_ns"));
        capture.timeline = c.at("timeline").get<bool>();
        for (const json& number : c.at("ran")) {
            const auto n = whole<std::size_t>(number);
            if (n < ran.size()) capture.ran.push_back(ran[n]);
        }
        out.captures.push_back(std::move(capture));
    }
    return out;
}

Error damaged(const fs::path& file, std::uint64_t line, std::string_view found) {
    return {Errc::bad_format,
            fmt::format("{}, line {}: {}; the plan is damaged: plan the job again", file.string(), line, found)};
}

/// Calls `each` with the number and text of each line of the plan's shards, until it returns false.
Status read_lines(const JobFolder& job, const Manifest& manifest,
                  const std::function<Result<bool>(std::uint64_t, const std::string&)>& each) {
    std::ifstream in(job.shards());
    std::string line;
    // A process that was killed may have begun to add further lines.
    for (std::uint64_t number = 0; number < manifest.shards; ++number) {
        if (!std::getline(in, line))
            return damaged(
                job.shards(), number + 1,
                fmt::format("the file ends, and {} has {} shards", job.manifest().string(), manifest.shards));
        WM_ASSIGN_OR_RETURN(const bool goes_on, each(number, line));
        if (!goes_on) break;
    }
    return Nothing{};
}

Result<Shard> parsed(const JobFolder& job, std::uint64_t number, const std::string& line) {
    try {
        Shard shard = shard_of(json::parse(line));
        if (shard.number != number)
            return damaged(job.shards(), number + 1, fmt::format("found shard {}", shard.number));
        return shard;
    } catch (const json::exception& error) {
        return damaged(job.shards(), number + 1, error.what());
    }
}

}  // namespace

std::uint64_t Shard::trace_bytes() const {
    std::uint64_t sum = 0;
    for (const PlannedCapture& c : captures) sum += c.trace_bytes;
    return sum;
}

fs::path JobFolder::of_shard(std::uint32_t shard, const char* kind) const {
    return folder_ / "shards" / fmt::format("{:06}.{}", shard, kind);
}
fs::path JobFolder::log_of_shard(std::uint32_t shard) const { return logs() / fmt::format("{:06}.log", shard); }
fs::path JobFolder::of_node(unsigned level, std::uint32_t node, const char* kind) const {
    return folder_ / "merged" / fmt::format("{}-{:06}.{}", level, node, kind);
}

std::string identity_of(const Shard& shard, const Manifest& manifest) {
    Hasher hasher;
    hasher.add(format_name);
    hasher.add(std::uint64_t{format_version});
    hasher.add(manifest.version);
    hasher.add(std::uint64_t{manifest.options.size()});
    for (const std::string& option : manifest.options) hasher.add(option);
    for (const PlannedCapture& c : shard.captures) {
        hasher.add(c.path);
        hasher.add(c.bytes);
        hasher.add(c.sample);
        hasher.add(std::uint64_t{c.timeline});
    }
    return hasher.text();
}

Result<Manifest> read_manifest(const JobFolder& job) {
    auto text = read_small_file(job.manifest(), std::uint64_t{1} << 30);
    if (!text && text.error().code == Errc::not_found)
        return Error{Errc::not_found,
                     fmt::format("{} is not the folder of a job: it contains no manifest.json; make one "
                                 "with waymark fleet plan CAPTURE… -o {}",
                                 job.path().string(), shell_file(job.path().string()))};
    if (!text) return std::move(text.error());
    try {
        const json value = json::parse(*text);
        if (value.at("format") != format_name)
            return Error{Errc::bad_format, fmt::format("{}: format is {}, expected \"{}\"", job.manifest().string(),
                                                       value.at("format").dump(), format_name)};
        if (value.at("format_version") != format_version)
            return Error{
                Errc::unsupported,
                fmt::format("{}: version {} of the format; this waymark knows version {}: use the waymark that "
                            "planned the job",
                            job.manifest().string(), value.at("format_version").dump(), format_version)};
        Manifest out;
        out.version = value.at("waymark").get<std::string>();
        out.options = value.at("options").get<std::vector<std::string>>();
        out.shards = whole<std::uint64_t>(value.at("shards"));
        out.captures = whole<std::uint64_t>(value.at("captures"));
        out.trace_bytes = whole<std::uint64_t>(value.at("trace_bytes"));
        out.seconds = value.at("seconds").get<double>();
        for (const json& u : value.at("unreadable"))
            out.unreadable.push_back({u.at("input").get<std::string>(), u.at("why").get<std::string>()});
        return out;
    } catch (const json::exception& error) {
        return Error{Errc::bad_format, fmt::format("{}: {}; the plan is damaged: plan the job again",
                                                   job.manifest().string(), error.what())};
    }
}

Status read_shards(const JobFolder& job, const Manifest& manifest, const std::function<void(Shard&&)>& each) {
    return read_lines(job, manifest, [&](std::uint64_t number, const std::string& line) -> Result<bool> {
        WM_ASSIGN_OR_RETURN(Shard shard, parsed(job, number, line));
        each(std::move(shard));
        return true;
    });
}

Result<Shard> read_shard(const JobFolder& job, const Manifest& manifest, std::uint32_t number) {
    if (number >= manifest.shards)
        return Error{Errc::usage, fmt::format("the job in {} has no shard {}; its shards are 0 to {}",
                                              job.path().string(), number, manifest.shards - 1)};
    Shard found;
    WM_RETURN_IF_ERROR(read_lines(job, manifest, [&](std::uint64_t at, const std::string& line) -> Result<bool> {
        if (at != number) return true;
        WM_ASSIGN_OR_RETURN(found, parsed(job, at, line));
        return false;
    }));
    return found;
}

Status write_plan(const JobFolder& job, const Manifest& manifest, std::uint64_t shards_before,
                  const std::vector<Shard>& added) {
    // A writer that was killed here leaves temporary files, which the next one removes.
    for (const fs::path& place : {job.shards(), job.manifest()}) capture::TemporaryName::remove_leftovers(place);
    std::ifstream before(job.shards());
    WM_RETURN_IF_ERROR(write_durably(job.shards(), [&](ByteSink& sink) {
        const auto put = [&](std::string line) {
            line += '\n';
            sink.write({reinterpret_cast<const std::uint8_t*>(line.data()), line.size()});
        };
        std::string line;
        for (std::uint64_t n = 0; n < shards_before && std::getline(before, line); ++n) put(line);
        for (const Shard& shard : added) put(dumped(to_json(shard)));
    }));
    json unreadable = json::array();
    for (const NotDecoded& u : manifest.unreadable) unreadable.push_back({{"input", u.what}, {"why", u.why}});
    const json head{{"format", format_name},
                    {"format_version", format_version},
                    {"waymark", manifest.version},
                    {"options", manifest.options},
                    {"shards", manifest.shards},
                    {"captures", manifest.captures},
                    {"trace_bytes", manifest.trace_bytes},
                    {"seconds", manifest.seconds},
                    {"unreadable", std::move(unreadable)}};
    return write_durably(job.manifest(), head.dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

}  // namespace waymark::fleet
