/// The execution, counted without any decoder.
#pragma once

#include <array>
#include <cstdint>
#include <map>

namespace waymark {

struct RunCounts {
    std::uint64_t instructions{};
    std::map<std::uint64_t, std::uint64_t> times{};  ///< executions, by address
    /// For every conditional branch, and possibly other waypoints: how often it was taken, and how often not, by
    /// address.
    std::map<std::uint64_t, std::array<std::uint64_t, 2>> directions{};

    void ran(std::uint64_t address) {
        ++instructions;
        ++times[address];
    }
    void branched(std::uint64_t address, bool taken) { ++directions[address][taken ? 0 : 1]; }
    void add(const RunCounts& other) {
        instructions += other.instructions;
        for (const auto& [address, count] : other.times) times[address] += count;
        for (const auto& [address, ways] : other.directions)
            for (std::size_t way = 0; way < ways.size(); ++way) directions[address][way] += ways[way];
    }
    [[nodiscard]] std::uint64_t of(std::uint64_t address) const {
        const auto found = times.find(address);
        return found == times.end() ? 0 : found->second;
    }
    [[nodiscard]] std::array<std::uint64_t, 2> directions_of(std::uint64_t address) const {
        const auto found = directions.find(address);
        return found == directions.end() ? std::array<std::uint64_t, 2>{} : found->second;
    }
};

}  // namespace waymark
