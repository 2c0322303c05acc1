#include "waymark/fleet/receipt.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "durable_file.h"
#include "waymark/core/numbers.h"
#include "waymark/fleet/survey.h"
#include "whole_number.h"

namespace waymark::fleet {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

std::string document(const json& value) { return value.dump(1, ' ', false, json::error_handler_t::replace) + "\n"; }

json to_json(const std::vector<NotDecoded>& list) {
    json out = json::array();
    for (const NotDecoded& n : list)
        out.push_back(
            {{"capture", n.what}, {"why", n.why}, {"worth_retrying", n.worth_retrying}, {"changed", n.changed}});
    return out;
}
std::vector<NotDecoded> captures_in(const json& value) {
    std::vector<NotDecoded> out;
    for (const json& n : value)
        out.push_back({n.at("capture").get<std::string>(), n.at("why").get<std::string>(),
                       n.at("worth_retrying").get<bool>(), n.value("changed", false)});
    return out;
}

json to_json(const answers::Account& account) {
    json out = json::array();
    const auto put = [](json& row, const char* name, const std::optional<std::uint64_t>& size) {
        if (size) row[name] = *size;
    };
    for (const answers::AccountRow& row : account) {
        json& each = out.emplace_back(json{
            {"reason", answers::account_reason_words[static_cast<std::size_t>(row.reason)]}, {"times", row.times}});
        if (!row.of.empty()) each["of"] = row.of;
        put(each, "bytes", row.bytes);
        put(each, "instructions", row.instructions);
        put(each, "ranges", row.ranges);
        put(each, "records", row.records);
    }
    return out;
}
answers::Account account_in(const json& value) {
    answers::Account out;
    const auto size = [](const json& row, const char* name) {
        return row.contains(name) ? std::optional(whole<std::uint64_t>(row.at(name))) : std::nullopt;
    };
    for (const json& row : value) {
        const auto& words = answers::account_reason_words;
        const auto reason = std::find(words.begin(), words.end(), row.at("reason").get<std::string>());
        // The reason comes from another version, whose receipts have another identity (finished_shard).
        if (reason == words.end()) continue;
        answers::add(out, {static_cast<answers::AccountReason>(reason - words.begin()), row.value("of", std::string()),
                           whole<std::uint64_t>(row.at("times")), size(row, "bytes"), size(row, "instructions"),
                           size(row, "ranges"), size(row, "records")});
    }
    return out;
}

json to_json(const std::vector<CaptureProfile>& profiles) {
    json out = json::array();
    for (const CaptureProfile& p : profiles)
        out.push_back({{"capture", p.capture}, {"program", p.program}, {"cost", p.cost}, {"groups", p.by_group}});
    return out;
}

/// Throws json::exception if a group is missing.
std::array<std::uint64_t, CaptureProfile::groups> groups_in(const json& value) {
    std::array<std::uint64_t, CaptureProfile::groups> out{};
    for (std::size_t g = 0; g < out.size(); ++g) out[g] = whole<std::uint64_t>(value.at(g));
    return out;
}

/// nullopt if the file does not exist or is damaged.
template <class Fields>
std::optional<Fields> read_fields(const fs::path& path, void (*read)(const json&, Fields&)) {
    const auto text = read_small_file(path);
    if (!text) return std::nullopt;
    try {
        Fields out;
        read(json::parse(*text), out);
        return out;
    } catch (const json::exception&) {
        return std::nullopt;
    }
}

/// The last nonempty line of a text file.
std::string last_line(const fs::path& path) {
    const auto text = read_small_file(path);
    if (!text) return {};
    std::string_view rest = *text;
    while (!rest.empty()) {
        while (!rest.empty() && (rest.back() == '\n' || rest.back() == '\r' || rest.back() == ' '))
            rest.remove_suffix(1);
        const std::size_t at = rest.rfind('\n');
        const std::string_view line = at == rest.npos ? rest : rest.substr(at + 1);
        if (!line.empty()) return std::string(line);
    }
    return {};
}

}  // namespace

Status write_receipt(const JobFolder& job, std::uint32_t shard, const Receipt& r) {
    return write_durably(job.of_shard(shard, "json"), document({{"shard", shard},
                                                                {"identity", r.identity},
                                                                {"answers_bytes", r.answers_bytes},
                                                                {"answers_hash", r.answers_hash},
                                                                {"unit", r.unit},
                                                                {"captures", r.captures},
                                                                {"trace_bytes", r.trace_bytes},
                                                                {"recorded_ns", r.recorded_ns},
                                                                {"timed_captures", r.timed_captures},
                                                                {"not_decoded", to_json(r.not_decoded)},
                                                                {"cut", to_json(r.cut)},
                                                                {"nameless", r.nameless},
                                                                {"account", to_json(r.account)},
                                                                {"profiles", to_json(r.profiles)},
                                                                {"input_hash", r.input_hash},
                                                                {"host", r.host},
                                                                {"seconds", r.seconds},
                                                                {"processor_seconds", r.processor_seconds},
                                                                {"memory_bytes", r.memory_bytes}}));
}

Result<Receipt> read_receipt(const JobFolder& job, std::uint32_t shard) {
    const fs::path path = job.of_shard(shard, "json");
    WM_ASSIGN_OR_RETURN(const std::string text, read_small_file(path));
    try {
        const json value = json::parse(text);
        Receipt out;
        out.identity = value.at("identity").get<std::string>();
        out.answers_bytes = whole<std::uint64_t>(value.at("answers_bytes"));
        out.answers_hash = value.at("answers_hash").get<std::string>();
        out.unit = value.at("unit").get<std::string>();
        out.captures = whole<std::uint64_t>(value.at("captures"));
        out.trace_bytes = whole<std::uint64_t>(value.at("trace_bytes"));
        out.recorded_ns = whole<std::uint64_t>(value.at("recorded_ns"));
        out.timed_captures = whole<std::uint64_t>(value.at("timed_captures"));
        out.not_decoded = captures_in(value.at("not_decoded"));
        out.cut = captures_in(value.value("cut", json::array()));
        out.nameless = value.at("nameless").get<std::map<std::string, std::string>>();
        out.account = account_in(value.value("account", json::array()));
        for (const json& profile : value.at("profiles"))
            out.profiles.push_back({profile.at("capture").get<std::string>(), profile.at("program").get<std::string>(),
                                    whole<std::uint64_t>(profile.at("cost")), groups_in(profile.at("groups"))});
        out.input_hash = value.at("input_hash").get<std::string>();
        out.host = value.at("host").get<std::string>();
        out.seconds = value.at("seconds").get<double>();
        out.processor_seconds = value.at("processor_seconds").get<double>();
        out.memory_bytes = whole<std::uint64_t>(value.at("memory_bytes"));
        return out;
    } catch (const json::exception& error) {
        return Error{Errc::bad_format, fmt::format("{} is damaged: {}", path.string(), error.what())};
    }
}

Result<Receipt> finished_shard(const JobFolder& job, const Shard& shard, bool thorough) {
    WM_ASSIGN_OR_RETURN(Receipt receipt, read_receipt(job, shard.number));
    if (receipt.identity != shard.identity)
        return Error{Errc::bad_format,
                     fmt::format("{} is of another plan: other captures, options or version of waymark",
                                 job.of_shard(shard.number, "json").string())};
    if (receipt.answers_bytes == 0) return receipt;
    const fs::path answers = job.of_shard(shard.number, "answers");
    std::error_code none;
    const std::uintmax_t bytes = fs::file_size(answers, none);
    const auto wrong = [&](std::string_view found) {
        return Error{Errc::bad_format, fmt::format("{} is not what its task wrote: {}", answers.string(), found)};
    };
    if (none) return wrong("it is gone");
    if (bytes != receipt.answers_bytes)
        return wrong(
            fmt::format("found {}, expected {}", counted(bytes, "byte"), counted(receipt.answers_bytes, "byte")));
    if (thorough) {
        WM_ASSIGN_OR_RETURN(const WrittenFile file, hash_of_file(answers));
        if (file.hash != receipt.answers_hash) return wrong("its hash differs");
    }
    return receipt;
}

bool is_as_planned(const Shard& shard, const NotDecoded& left_out) {
    const auto planned = std::find_if(shard.captures.begin(), shard.captures.end(),
                                      [&](const PlannedCapture& c) { return c.path == left_out.what; });
    if (planned == shard.captures.end()) return false;
    const auto now = file_state(planned->path);
    return now && now->bytes == planned->bytes && now->sample == planned->sample;
}

bool is_worth_running_again(const Shard& shard, const Receipt& receipt) {
    return std::any_of(receipt.not_decoded.begin(), receipt.not_decoded.end(),
                       [&](const NotDecoded& n) { return n.worth_retrying || (n.changed && is_as_planned(shard, n)); });
}

Status write_last_words(const JobFolder& job, std::uint32_t shard, LastWords words) {
    if (const auto before = read_last_words(job, shard)) words.attempts += before->attempts;
    ++words.attempts;
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return write_durably(
        job.of_shard(shard, "failed"),
        document({{"shard", shard},
                  {"why", words.why},
                  {"host", host_name()},
                  {"attempts", words.attempts},
                  {"seconds_since_1970", std::chrono::duration_cast<std::chrono::seconds>(now).count()}}));
}

std::optional<LastWords> read_last_words(const JobFolder& job, std::uint32_t shard) {
    return read_fields<LastWords>(job.of_shard(shard, "failed"), [](const json& value, LastWords& out) {
        out.why = value.at("why").get<std::string>();
        out.host = value.at("host").get<std::string>();
        out.attempts = whole<std::uint64_t>(value.at("attempts"));
        out.seconds_since_1970 = whole<std::uint64_t>(value.at("seconds_since_1970"));
    });
}

Status write_progress(const JobFolder& job, std::uint32_t shard, const ShardProgress& p) {
    return replace_file(job.of_shard(shard, "progress"), document({{"shard", shard},
                                                                   {"host", p.host},
                                                                   {"process", p.process},
                                                                   {"captures_done", p.captures_done},
                                                                   {"captures", p.captures},
                                                                   {"bytes_done", p.bytes_done},
                                                                   {"bytes", p.bytes},
                                                                   {"capture", p.capture}}));
}

std::optional<ShardProgress> read_progress(const JobFolder& job, std::uint32_t shard) {
    return read_fields<ShardProgress>(job.of_shard(shard, "progress"), [](const json& value, ShardProgress& out) {
        out.host = value.at("host").get<std::string>();
        out.process = whole<std::int64_t>(value.at("process"));
        out.captures_done = whole<std::uint64_t>(value.at("captures_done"));
        out.captures = whole<std::uint64_t>(value.at("captures"));
        out.bytes_done = whole<std::uint64_t>(value.at("bytes_done"));
        out.bytes = whole<std::uint64_t>(value.at("bytes"));
        out.capture = value.at("capture").get<std::string>();
    });
}

std::string why_missing(const JobFolder& job, const Shard& shard) {
    const auto receipt = finished_shard(job, shard, false);
    if (!receipt && receipt.error().code == Errc::bad_format) return receipt.error().message;
    const auto words = read_last_words(job, shard.number);
    const auto progress = read_progress(job, shard.number);
    std::string out;
    if (progress)
        out = fmt::format("it began on {} and did not end: {} of {} decoded{}", progress->host,
                          grouped(progress->captures_done), counted(progress->captures, "capture"),
                          progress->capture.empty() ? "" : ", then " + progress->capture);
    if (words)
        out = fmt::format("{}{} (on {}, attempt {})", out.empty() ? "" : out + "; before that: ", words->why,
                          words->host, words->attempts);
    if (out.empty()) return "it has not run";
    if (!words)
        if (const std::string line = last_line(job.log_of_shard(shard.number)); !line.empty())
            out += fmt::format("; the last line of its log: {}", line);
    return out;
}

}  // namespace waymark::fleet
