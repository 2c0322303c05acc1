// Words beside the figures of a DPU: random programs of the core under random programs of the unit, which trace all of
// the run or a part of it. A figure that is called exact is the true one, a lower bound is not above it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "support/sanitized.h"
#include "support/temporary_folder.h"
#include "waymark/analysis/dpu_answers.h"
#include "waymark/analysis/dpu_findings.h"
#include "waymark/doctor/dpu.h"
#include "waymark/doctor/dpu_input.h"
#include "waymark/dpu/register_program.h"
#include "waymark/record_dpu/dpu.h"
#include "waymark/record_dpu/dpu_truth.h"

namespace waymark::record {
namespace {

constexpr std::uint32_t nop = 0xe320f000, svc = 0xef000000, bx_lr = 0xe12fff1e;
constexpr std::uint32_t long_back = 0x1afffffb, short_back = 0x1afffffd;  // over 4 and 2 instructions
constexpr std::uint32_t functions = 3;
constexpr std::uint32_t base_of(std::uint32_t function) { return 0x8000 + function * 0x1000; }
constexpr std::uint32_t branch(std::uint32_t opcode, std::uint32_t from, std::uint32_t to) {
    return opcode | ((to - from - 8) >> 2 & 0xffffff);
}

/// Blocks of a function, one behind the other.
enum Part : std::uint32_t { long_loop, short_loop, call, datum, system, leave, parts };
constexpr std::array<std::uint32_t, parts> part_bytes{16, 8, 8, 8, 8, 8};
constexpr std::uint32_t address_of(std::uint32_t function, std::uint32_t part) {
    std::uint32_t at = base_of(function);
    for (std::uint32_t p = 0; p < part; ++p) at += part_bytes[p];
    return at;
}
constexpr std::uint32_t last_of(std::uint32_t function, std::uint32_t part) {
    return address_of(function, part) + part_bytes[part] - 4;
}
constexpr std::uint32_t block_of(std::uint32_t function, std::uint32_t part) { return 1 + function * parts + part; }

std::vector<std::uint32_t> definitions() {
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

/// What threads execute, in pieces that stay together, and what is known of it.
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
    void on(DpuRecorder& recorder) {
        recorder.definitions(definitions());
        std::vector<std::size_t> done(pieces_.size());
        std::size_t left = pieces_.size();
        for (std::size_t thread = 0; left != 0; thread = below(static_cast<std::uint32_t>(pieces_.size()))) {
            if (done[thread] == pieces_[thread].size()) continue;
            std::vector<std::uint32_t> chunk;
            for (std::uint32_t n = 1 + below(12); n != 0 && done[thread] < pieces_[thread].size(); --n) {
                const auto& piece = pieces_[thread][done[thread]++];
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
            if (times == 1) continue;  // such a run leaves nothing
            ++loops[last_of(f, part)].runs;
            loops[last_of(f, part)].iterations += times;
        }
        to.push_back({block_of(f, call)});
        if (f + 1 < functions) {
            ++calls[base_of(f + 1)];
            execute(to, f + 1);
        }
        // Now and then more than the unit has room for.
        for (std::uint32_t n = chance(4) ? 60 + below(140) : 1; n != 0; --n) {
            // Words that the unit fills lines with are data, too.
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
std::string registers(Threads& run, dpu::TraceMode mode) {
    std::string out = "DP_TSA 0x20000000\n";
    out += run.chance(15) ? "DP_TEA 0x20000060\n" : "DP_TEA 0x2000ffe0\n";
    out +=
        "DP_TW 0x20000000\nDP_TAC TENM=immediate CMODE=trace TCEN=1 CEG=2\n"
        "DP_TBC TENM=immediate CMODE=trace TCEN=1 CEG=7\n";
    out += fmt::format("DP_CR TIDCM=program\nDP_RPID {}\n", 2 + run.below(3));
    bool en = true, held = false, filter = run.chance(25);
    const bool user_data = run.chance(50);
    const auto control = [&] {
        return fmt::format("DP_TC TMODE={} EN={} TMPDIS={} IDFLT={} UDEN={}\n", dpu::name(mode), en ? 1 : 0,
                           held ? 1 : 0, filter ? 1 : 0, user_data ? 1 : 0);
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

bool has(const std::string& text, std::string_view part) { return text.find(part) != text.npos; }

/// What is called what.
struct Census {
    std::uint64_t exact = 0, bounds = 0, runs = 0;
};

class DpuWords {
public:
    DpuWords(const doctor::DpuInput& input, const DpuTruth& truth, const Threads& run, Census& census)
        : truth_(truth), run_(run), census_(census) {
        setup_ = input.setup();
        auto sums = doctor::add_up(input.trace(), input.trace_bytes(), setup_, code_);
        EXPECT_TRUE(sums.has_value());
        sums_ = std::move(*sums);
        said_ = input.said(setup_, sums_.decoded);
    }
    void check() {
        ++census_.runs;
        tasks();
        if (said_.mode == dpu::TraceMode::flow) calls();
        if (said_.mode == dpu::TraceMode::eonce_comp) loops();
        data();
    }

private:
    [[nodiscard]] const analysis::DpuCosts& costs() const { return *sums_.costs; }
    [[nodiscard]] answers::Trust trust(std::string_view view) const { return analysis::trust_in(view, said_, costs()); }
    void figure(const std::string& what, const answers::Trust& trust, std::uint64_t shown, std::uint64_t truth) {
        if (has(trust.exact, "lower bound")) {
            ++census_.bounds;
            EXPECT_LE(shown, truth) << what << ": " << trust.exact;
        } else {
            ++census_.exact;
            EXPECT_EQ(shown, truth) << what << ": " << trust.exact;
        }
    }
    void tasks() {
        const answers::Trust words = trust("tasks");
        const bool changes = costs().knows_stays();
        const bool eonce = said_.mode == dpu::TraceMode::eonce_raw || said_.mode == dpu::TraceMode::eonce_comp;
        std::map<DpuTruth::Context, analysis::DpuTask> shown;
        for (const auto& [who, task] : costs().tasks())
            if (who.is_context()) shown[{who.context.supervisor, who.context.id}] = task;
        for (const auto& [context, task] : shown) {
            const auto found = truth_.contexts.find(context);
            const DpuTruth::Counted truth = found == truth_.contexts.end() ? DpuTruth::Counted{} : found->second;
            const std::string who = fmt::format("{} {}", context.supervisor ? "supervisor" : "user", context.id);
            if (changes || eonce) figure("stays of " + who, words, task.entered, truth.times);
            if (!changes) continue;
            if (!has(words.exact, "lower bound")) {
                EXPECT_EQ(task.stays.times, task.entered) << who;
            }
            for (unsigned c = 0; c < dpu::counter_count; ++c)
                if (truth_.counters[c])
                    figure(fmt::format("{} of {}", said_.events[c], who), words, task.sum[c],
                           truth.happened.count[*truth_.counters[c]]);
        }
        if (!changes || has(words.exact, "lower bound") || costs().filtered()) return;
        EXPECT_TRUE(has(words.exact, "every figure")) << words.exact;
        for (const auto& [context, truth] : truth_.contexts) EXPECT_TRUE(shown.contains(context));
    }
    void calls() {
        const answers::Trust words = trust("functions");
        for (const auto& [address, times] : run_.calls) {
            std::uint64_t shown = 0;
            for (const auto& [f, cost] : costs().functions())
                if (f.address == address) shown += cost.calls;
            figure(fmt::format("calls of {:#x}", address), words, shown, times);
        }
        std::uint64_t services = 0, interrupts = 0;
        for (const auto& [entry, service] : costs().services()) services += service.stays.times;
        for (const auto& [key, change] : truth_.changes)
            if (key.first == "interrupt") interrupts += change.times;
        figure("interrupts", trust("interrupts"), services, interrupts);
    }
    void loops() {
        const answers::Trust words = trust("loops");
        for (const auto& [last, truth] : run_.loops) {
            const auto found = costs().loops().find({last, 0});
            const analysis::DpuLoop loop = found == costs().loops().end() ? analysis::DpuLoop{} : found->second;
            figure(fmt::format("runs of {:#x}", last), words, loop.runs, truth.runs);
            figure(fmt::format("iterations of {:#x}", last), words, loop.iterations(), truth.iterations);
        }
    }
    void data() {
        std::vector<std::uint32_t> truth, shown;
        for (const auto& [id, value] : truth_.user_data) truth.push_back(value);
        bool right_tasks = true;
        auto at = truth_.user_data.begin();
        for (const analysis::DpuDatum& d : costs().data()) {
            shown.push_back(d.value);
            // Whoever is named wrote it.
            at = std::find_if(at, truth_.user_data.end(), [&](const auto& each) {
                return each.second == d.value && (!d.context || d.context->id == each.first);
            });
            right_tasks &= at != truth_.user_data.end();
            if (at != truth_.user_data.end()) ++at;
        }
        const bool traced = said_.mode == dpu::TraceMode::user || said_.mode == dpu::TraceMode::user_raw;
        if (!traced && shown.empty()) return;
        EXPECT_TRUE(right_tasks);
        const answers::Trust words = trust("data");
        if (has(words.exact, "there may have been more")) {
            ++census_.bounds;
        } else {
            ++census_.exact;
            EXPECT_EQ(shown, truth) << words.exact;
        }
    }

    const DpuTruth& truth_;
    const Threads& run_;
    Census& census_;
    analysis::DpuCode code_;
    analysis::DpuSetup setup_;
    doctor::DpuSums sums_;
    analysis::DpuSaid said_;
};

TEST(DpuWordsProperty, ExactIsExactAndABoundIsOne) {
    using enum dpu::TraceMode;
    constexpr std::array modes{task, flow, flow, eonce_comp, eonce_comp, eonce_raw, user, user_raw};
    Census census;
    const char* const text = std::getenv("WAYMARK_PROPERTY_ROUNDS");
    const std::uint64_t rounds =
        sized(1000U, 120U) * (text == nullptr ? 1 : std::max(1UL, std::strtoul(text, nullptr, 10)));
    for (std::uint32_t seed = 0; seed < rounds; ++seed) {
        Threads run(seed);
        const dpu::TraceMode mode = modes[seed % modes.size()];
        const std::string writes = registers(run, mode);
        SCOPED_TRACE(fmt::format("seed {}:\n{}", seed, writes));
        const TemporaryFolder temporary;
        DpuOptions options;
        const auto program = dpu::read_program(writes);
        ASSERT_TRUE(program.has_value()) << program.error().message;
        options.program = *program;
        options.folder = temporary.path() / "out";
        options.command = {"./program"};
        options.core.miss_cycles = 0;
        options.core.os_cycles = 10;
        options.choices.bus_cycles_per_line = run.chance(60) ? 1 : 20 + run.below(100);
        if (!resolve(options)) continue;  // nothing would be traced
        auto recorder = DpuRecorder::create(options);
        ASSERT_TRUE(recorder.has_value()) << recorder.error().message;
        run.on(**recorder);
        ASSERT_TRUE((*recorder)->finish(whole_run).has_value());
        const auto input = doctor::DpuInput::open(options.folder.string());
        ASSERT_TRUE(input.has_value()) << input.error().message;
        const auto truth = read_dpu_truth(options.folder);
        ASSERT_TRUE(truth.has_value());
        DpuWords(*input, *truth, run, census).check();
        if (HasFatalFailure()) return;
    }
    // The runs are of all kinds.
    EXPECT_GT(census.exact, rounds);
    EXPECT_GT(census.bounds, rounds);
}

}  // namespace
}  // namespace waymark::record
