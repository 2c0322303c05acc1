/// Random programs of the core that a DPU watches, and random programs of the unit, for tests of conclusions.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "waymark/dpu/register_program.h"
#include "waymark/record_dpu/dpu.h"

namespace waymark::record::dpu_runs {

inline constexpr std::uint32_t nop = 0xe320f000, svc = 0xef000000, bx_lr = 0xe12fff1e;
inline constexpr std::uint32_t long_back = 0x1afffffb, short_back = 0x1afffffd;  // over 4 and 2 instructions
inline constexpr std::uint32_t functions = 3;
constexpr std::uint32_t base_of(std::uint32_t function) { return 0x8000 + function * 0x1000; }
constexpr std::uint32_t branch(std::uint32_t opcode, std::uint32_t from, std::uint32_t to) {
    return opcode | ((to - from - 8) >> 2 & 0xffffff);
}

/// Blocks of a function, one after the other in memory.
enum Part : std::uint32_t { long_loop, short_loop, call, datum, system, leave, parts };
inline constexpr std::array<std::uint32_t, parts> part_bytes{16, 8, 8, 8, 8, 8};
constexpr std::uint32_t address_of(std::uint32_t function, std::uint32_t part) {
    std::uint32_t at = base_of(function);
    for (std::uint32_t p = 0; p < part; ++p) at += part_bytes[p];
    return at;
}
constexpr std::uint32_t last_of(std::uint32_t function, std::uint32_t part) {
    return address_of(function, part) + part_bytes[part] - 4;
}
constexpr std::uint32_t block_of(std::uint32_t function, std::uint32_t part) { return 1 + function * parts + part; }

inline std::vector<std::uint32_t> definitions() {
    std::vector<std::uint32_t> words;
    const auto block = [&](std::uint32_t id, std::uint32_t address, const std::vector<std::uint32_t>& code) {
        static const std::string text = "nop ";
        BlockPart part;
        part.id = id;
        part.address = address;
        part.instructions = static_cast<std::uint32_t>(code.size());
        part.code_bytes = part.instructions * 4;
        part.text_bytes = static_cast<std::uint32_t>(text.size());
        part.words = static_cast<std::uint32_t>(sizeof part / 4 + code.size() + 1);
        const std::size_t at = words.size();
        words.resize(at + part.words);
        auto* to = reinterpret_cast<std::uint8_t*>(words.data() + at);
        std::memcpy(to, &part, sizeof part);
        std::memcpy(to + sizeof part, code.data(), part.code_bytes);
        std::memcpy(to + sizeof part + part.code_bytes, text.data(), text.size());
    };
    for (std::uint32_t f = 0; f < functions; ++f) {
        const auto put = [&](std::uint32_t part, const std::vector<std::uint32_t>& code) {
            block(block_of(f, part), address_of(f, part), code);
        };
        put(long_loop, {nop, nop, nop, long_back});
        put(short_loop, {nop, short_back});
        put(call, {nop, f + 1 < functions ? branch(0xeb000000, last_of(f, call), base_of(f + 1)) : nop});
        put(datum, {nop, svc});
        put(system, {nop, svc});
        put(leave, {nop, f == 0 ? branch(0xea000000, last_of(f, leave), base_of(0)) : bx_lr});
    }
    return words;
}

struct Loop {
    std::uint64_t runs = 0, iterations = 0;
};

/// The threads' execution, in pieces that stay together, and the test's knowledge about it.
class Threads {
public:
    explicit Threads(std::uint32_t seed) : random_(seed) {
        const std::uint32_t threads = 1 + below(3);
        for (std::uint32_t t = 0; t < threads; ++t) {
            pieces_.emplace_back();
            for (std::uint32_t i = 0, n = 2 + below(6); i < n; ++i) execute(pieces_.back(), 0);
            pieces_.back().push_back({words::thread_end});
        }
    }
    /// `until`: the recording ends when the threads have run this share of their pieces, in per cent.
    void on(DpuRecorder& recorder, std::uint32_t until = 100) {
        recorder.definitions(definitions());
        std::size_t all = 0, executed = 0;
        for (const auto& pieces : pieces_) all += pieces.size();
        std::vector<std::size_t> done(pieces_.size());
        std::size_t left = pieces_.size();
        for (std::size_t thread = 0; left != 0; thread = below(static_cast<std::uint32_t>(pieces_.size()))) {
            if (done[thread] == pieces_[thread].size()) continue;
            if (until < 100 && executed * 100 >= all * until) return;
            std::vector<std::uint32_t> chunk;
            for (std::uint32_t n = 1 + below(12); n != 0 && done[thread] < pieces_[thread].size(); --n) {
                const auto& piece = pieces_[thread][done[thread]++];
                ++executed;
                chunk.insert(chunk.end(), piece.begin(), piece.end());
            }
            left -= done[thread] == pieces_[thread].size() ? 1 : 0;
            recorder.execution(static_cast<std::uint32_t>(thread + 1), chunk);
        }
    }
    std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
    bool chance(std::uint32_t percent) { return below(100) < percent; }
    std::map<std::uint32_t, Loop> loops;           // by last address
    std::map<std::uint32_t, std::uint64_t> calls;  // by function entered

private:
    using Pieces = std::vector<std::vector<std::uint32_t>>;
    void execute(Pieces& to, std::uint32_t f) {
        for (const std::uint32_t part : {long_loop, short_loop}) {
            const std::uint32_t times = 1 + below(7);
            for (std::uint32_t i = 0; i < times; ++i) to.push_back({block_of(f, part)});
            if (times == 1) continue;  // such a run leaves no trace
            ++loops[last_of(f, part)].runs;
            loops[last_of(f, part)].iterations += times;
        }
        to.push_back({block_of(f, call)});
        if (f + 1 < functions) {
            ++calls[base_of(f + 1)];
            execute(to, f + 1);
        }
        // Sometimes more than the unit can hold.
        for (std::uint32_t n = chance(4) ? 60 + below(140) : 1; n != 0; --n) {
            // Words with which the unit fills lines may also be data.
            const std::uint32_t value = chance(20)   ? 0xfff0aa01
                                        : chance(20) ? 0xfff0a001
                                                     : static_cast<std::uint32_t>(random_());
            to.push_back({block_of(f, datum), words::system_call | words::user_data_call,
                          words::half | (value & 0xffff), words::half | value >> 16});
        }
        to.push_back({block_of(f, system), words::system_call | 4});
        to.push_back({block_of(f, leave)});
    }

    std::mt19937 random_;
    std::vector<Pieces> pieces_;
};

/// A random program of the unit's registers.
inline std::string registers(Threads& run, dpu::TraceMode mode) {
    std::string out = "DP_TSA 0x20000000\n";
    out += run.chance(15) ? "DP_TEA 0x20000060\n" : "DP_TEA 0x2000ffe0\n";
    out +=
        "DP_TW 0x20000000\nDP_TAC TENM=immediate CMODE=trace TCEN=1 CEG=2\n"
        "DP_TBC TENM=immediate CMODE=trace TCEN=1 CEG=7\n";
    out += fmt::format("DP_CR TIDCM=program\nDP_RPID {}\n", 2 + run.below(3));
    bool en = true, held = false, filter = run.chance(25);
    const bool user_data = run.chance(50);
    const auto control = [&] {
        return fmt::format("DP_TC TMODE={} EN={} TMPDIS={} IDFLT={} UDEN={}{}\n", dpu::name(mode), en ? 1 : 0,
                           held ? 1 : 0, filter ? 1 : 0, user_data ? 1 : 0,
                           mode == dpu::TraceMode::sw_sample ? " SAMPLE=1" : "");
    };
    std::uint32_t at = run.chance(10) ? 1 + run.below(500) : 0;
    out += (at == 0 ? "" : fmt::format("@{} ", at)) + control();
    if (run.chance(30)) return out;
    for (std::uint32_t i = 0, n = 1 + run.below(4); i < n; ++i) {
        at += 100 + run.below(900);
        switch (run.below(4)) {
            case 0: en = !en; break;
            case 1: held = !held; break;
            case 2: filter = !filter; break;
            default: out += fmt::format("@{} DP_RPID {}\n", at, 2 + run.below(3)); continue;
        }
        out += fmt::format("@{} {}", at, control());
    }
    return out;
}

}  // namespace waymark::record::dpu_runs
