/// A unit with its trace buffer in memory, for the tests of the model.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/dpu/encoder.h"
#include "waymark/dpu/model.h"
#include "waymark/dpu/parser.h"

namespace waymark::dpu::test {

inline constexpr CoreContext user(std::uint8_t pid) { return {false, pid, pid}; }
inline constexpr CoreContext supervisor(std::uint8_t pid) { return {true, pid, pid}; }

inline EonceItem item(ItemKind kind, std::uint32_t src, std::uint32_t dst, CoreContext after) {
    EonceItem i;
    i.kind = kind;
    i.src = src;
    i.dst = dst;
    i.after = after;
    return i;
}
inline EonceItem edca(unsigned channel, CoreContext after) {
    EonceItem i = item(ItemKind::edca, 0, 0, after);
    i.channel = static_cast<std::uint8_t>(channel);
    return i;
}

/// DP_TC of a trace mode, with the fields given as further bits.
inline constexpr std::uint32_t trace_control(TraceMode mode, std::uint32_t more = 0) {
    return 0x00200001U | static_cast<std::uint32_t>(mode) << 1 | more;
}
inline constexpr std::uint32_t tc_tmpdis = 1U << 12, tc_idflt = 1U << 11, tc_ctxen = 1U << 10, tc_uden = 1U << 7,
                               tc_sample = 1U << 6, tc_tids = 1U << 5, tc_single = 1U << 8, tc_request = 2U << 8;

/// Checks every period of a unit's trace: the unit's own reader understands the words, with any program.
class PeriodCheck {
public:
    /// The output of a cycle or a stretch.
    void take(const Model& model, const CycleOutput& out) {
        // Writes act in single cycles, and the buffer is empty when a period begins.
        for (const Burst& burst : out.bursts) words_.insert(words_.end(), burst.used().begin(), burst.used().end());
        while (first_.size() < model.periods().size()) first_.push_back(words_.size() - held_in(out));
    }
    /// Pieces that are no entry. `model`: in its state at the end.
    [[nodiscard]] std::uint64_t misunderstood(const Model& model) const {
        std::uint64_t wrong = 0;
        for (std::size_t i = 0; i < first_.size(); ++i) {
            const std::size_t end = i + 1 < first_.size() ? first_[i + 1] : words_.size();
            std::vector<std::uint8_t> bytes;
            for (std::size_t at = first_[i]; at < end; ++at) append_word(bytes, words_[at], ByteOrder::big);
            const TraceFormat format = model.config().format(from_value<DpTc>(model.periods()[i].tc));
            Count count;
            Parser<Count> parser(format, ByteOrder::big, count);
            parser.feed(bytes);
            parser.finish(i + 1 < first_.size() || model.idle());
            wrong += count.gaps;
        }
        return wrong;
    }

private:
    struct Count {
        std::uint64_t gaps = 0;
        void operator()(const auto&, dpu::EntryExtent) {}
        void operator()(const Gap& gap) { gaps += gap.reason != GapReason::incomplete_packet; }
    };
    /// A period begins with its own cycle, whose entries may leave in that cycle.
    [[nodiscard]] static std::size_t held_in(const CycleOutput& out) {
        std::size_t words = 0;
        for (const Burst& burst : out.bursts) words += burst.used().size();
        return words;
    }

    std::vector<std::uint32_t> words_;
    std::vector<std::size_t> first_;
};

class Driver {
public:
    static constexpr std::uint32_t base = 0x20000000;

    explicit Driver(const ModelConfig& config = {}, std::uint32_t lines = 4, ByteOrder order = ByteOrder::big)
        : model(config), vtb(base, base + 32 * (lines - 1), order) {
        write({{DpTsa::offset, base}, {DpTea::offset, base + 32 * (lines - 1)}, {DpTw::offset, base}});
        in.ctx = user(5);
    }
    static ModelConfig traced(TraceMode mode) {
        ModelConfig config;
        config.eonce = EonceSetup::for_mode(mode);
        return config;
    }

    void write(std::uint32_t offset, std::uint32_t value) { model.write(offset, value); }
    void write(std::initializer_list<std::pair<std::uint32_t, std::uint32_t>> writes) {
        for (const auto& [offset, value] : writes) model.write(offset, value);
    }
    [[nodiscard]] std::uint32_t read(std::uint32_t offset) const { return model.read(offset); }
    template <class Register>
    [[nodiscard]] Register get() const {
        return from_value<Register>(model.read(Register::offset));
    }

    void take(const CycleOutput& out) { keep(out); }
    const CycleOutput& step() { return keep(model.step(in)); }
    const CycleOutput& step(std::vector<EonceItem> items) {
        in.items = items;
        const CycleOutput& out = keep(model.step(in));
        in.items = {};
        if (!items.empty()) in.ctx = items.back().after;
        return out;
    }
    void step(unsigned times) {
        for (unsigned i = 0; i < times; ++i) step();
    }
    /// The totals of a stretch, its last cycle left to step().
    void run(std::uint64_t cycles, std::initializer_list<std::pair<EventWire, std::uint64_t>> totals = {}) {
        for (const auto& [wire, n] : totals) in.set(wire, n);
        const CycleOutput* out = model.run(in, cycles);
        WM_CHECK(out != nullptr);
        keep(*out);
        in.wire = {};
    }
    /// Steps until everything is in memory.
    void settle() {
        for (unsigned i = 0; i < 1000; ++i) {
            step();
            if (!get<DpSr>().twba) return;
        }
        WM_CHECK(false);
    }
    void close() {
        write(DpTc::offset, read(DpTc::offset) & ~1U);
        settle();
    }
    /// Lines as they were written, whether or not they are still in memory.
    [[nodiscard]] std::string words() const { return hex(written); }
    [[nodiscard]] static std::string hex(std::span<const std::uint32_t> words) {
        constexpr char digits[] = "0123456789ABCDEF";
        std::string out;
        for (const std::uint32_t word : words) {
            if (!out.empty()) out += ' ';
            for (unsigned i = 8; i-- > 0;) out += digits[word >> 4 * i & 0xfU];
        }
        return out;
    }
    [[nodiscard]] std::string memory() const {
        std::vector<std::uint32_t> all;
        for (std::uint32_t at = 0; at < vtb.bytes().size(); at += 4) all.push_back(vtb.word(base + at));
        return hex(all);
    }

    Model model;
    VirtualTraceBuffer vtb;
    CycleInput in;
    std::vector<std::uint32_t> written;
    std::vector<Burst> bursts;
    std::vector<ProgrammingError> errors;

private:
    const CycleOutput& keep(const CycleOutput& out) {
        for (const Burst& burst : out.bursts) {
            WM_CHECK(vtb.store(burst) || burst.fixed);
            written.insert(written.end(), burst.used().begin(), burst.used().end());
            bursts.push_back(burst);
        }
        errors.insert(errors.end(), out.errors.begin(), out.errors.end());
        return out;
    }
};

}  // namespace waymark::dpu::test
