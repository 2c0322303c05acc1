// Reports memory that the description names but that is missing.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "examination.h"

namespace waymark::doctor {

void MissingMemory::report() const {
    std::map<std::filesystem::path, Lack> lacks;
    std::set<std::tuple<std::filesystem::path, std::uint64_t, std::uint64_t>> seen;
    for (const capture::MemoryDump& dump : session_.capture.dumps) {
        std::error_code error;
        const std::uintmax_t size = std::filesystem::file_size(dump.file, error);
        const std::uint64_t there = error || size < dump.offset ? 0 : size - dump.offset;
        if (!error && there != 0 && there >= dump.length.value_or(0)) continue;
        Lack& lack = lacks[dump.file];
        lack.cores.push_back(dump.core);
        // Several cores often list the same dump.
        if (!seen.insert({dump.file, dump.address.value, dump.offset}).second) continue;
        lack.there = !error;
        ++lack.pieces;
        const std::uint64_t from = dump.address.value + there;
        lack.first = std::min(lack.first, Address{from});
        lack.open |= !dump.length;
        lack.bytes += dump.length ? *dump.length - there : 0;
        constexpr std::uint64_t top = ~std::uint64_t{0};
        lack.ranges.emplace_back(from, dump.length ? dump.address.value + *dump.length - 1 : std::max(top, from));
    }
    for (const auto& [file, lack] : lacks) report(file, lack);
}

void MissingMemory::report(const std::filesystem::path& file, const Lack& lack) const {
    std::uint64_t went = 0, ranges = 0, judged = 0, explained = 0;
    for (std::size_t i = 0; i < report_.sources.size(); ++i) {
        if (known_[i] == nullptr || !report_.sources[i].has_flow()) continue;
        const bool sees = std::any_of(lack.cores.begin(), lack.cores.end(), [&](const std::string& core) {
            return core.empty() || known_[i]->core.empty() || core == known_[i]->core;
        });
        if (!sees) continue;
        ++judged;
        ranges += own_memory_[i].totals.ranges;
        for (const auto& place : own_memory_[i].no_memory_at)
            if (std::any_of(lack.ranges.begin(), lack.ranges.end(), [&](const auto& range) {
                    return range.first <= place.first && place.first <= range.second;
                }))
                went += place.second;
        if (report_.sources[i].image && !report_.images[*report_.sources[i].image].argument.empty()) ++explained;
    }
    std::string found = fmt::format("{} {}: ", file.filename().string(), lack.there ? "is cut" : "is not there");
    found += lack.open ? fmt::format("memory from {:#010x} on is missing", lack.first.value)
                       : fmt::format("{} of memory {} missing, from {:#010x} on", bytes_text(lack.bytes),
                                     are(lack.bytes), lack.first.value);
    if (lack.pieces > 1) found += fmt::format(", in {}", counted(lack.pieces, "piece"));
    if (judged != 0 && ranges == 0)
        found += "; without it nothing of the trace can be decoded";
    else if (went != 0)
        found += fmt::format("; execution went there {}, and what ran there is not decoded", counted(went, "time"));
    else if (judged != 0)
        found += "; execution was not seen to go there";
    add_finding({judged != 0 && explained == judged ? Severity::note
                 : judged != 0 && ranges == 0       ? Severity::error
                                                    : Severity::warning,
                 "image-missing",
                 {},
                 {},
                 {},
                 std::move(found),
                 "the whole file that trace.ini names",
                 "it was not copied with the capture, or was cut",
                 "copy it into the capture's folder, or give the program that ran with --image FILE[@ADDRESS]"});
}

}  // namespace waymark::doctor
