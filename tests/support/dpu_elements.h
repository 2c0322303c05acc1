/// Elements of a Debug and Profiling Unit's trace, written in order.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "waymark/analysis/dpu.h"
#include "waymark/dpu/state.h"

namespace waymark::support {

/// Contexts for the tests.
inline constexpr dpu::TaskContext user5{false, 5}, os5{true, 5}, user7{false, 7}, os7{true, 7};

/// Elements with their readings, as from a decoder. Counters begin at the values in `setup`.
class DpuElements {
public:
    explicit DpuElements(analysis::DpuSetup setup) : setup_(std::move(setup)) {
        if (setup_.initial) values_ = *setup_.initial;
    }
    dpu::Element& element(dpu::ElementKind kind) {
        dpu::Element& e = elements_.emplace_back();
        e.kind = kind;
        return e;
    }
    /// A reading after this many events of A0 and A1, with a change of flow to a context.
    void change(dpu::ElementKind kind, std::uint32_t from, std::uint32_t to, dpu::TaskContext context, std::uint32_t a0,
                std::uint32_t a1 = 0, std::uint8_t flags = 0) {
        dpu::Element& e = element(kind);
        e.from = from;
        e.to = to;
        e.context = context;
        e.flags = dpu::Element::id_known | dpu::Element::privilege_known;
        e.value = static_cast<std::uint32_t>(readings_.size());
        dpu::Reading& r = readings_.emplace_back();
        r.flags = flags;
        r.deltas = {a0, a1, 0, 0, 0, 0};
        r.wide = static_cast<std::uint8_t>(dpu::is_wide(a0) ? 1 : 0);
        for (unsigned i = 0; i < 2; ++i) values_[i] = (values_[i] - r.deltas[i]) & dpu::counter_mask;
        r.values = values_;
    }
    /// Changes bits of a counter in a reading, as damage in a trace does.
    void damage(std::size_t number, unsigned counter, std::uint32_t flipped) {
        readings_.at(number).values[counter] ^= flipped;
        for (const std::size_t n : {number, number + 1}) {
            if (n >= readings_.size() || readings_[n].has(dpu::Reading::first)) continue;
            const dpu::Counters& before = n == 0 ? *setup_.initial : readings_[n - 1].values;
            dpu::Reading& r = readings_[n];
            r.deltas[counter] = dpu::counted(before[counter], r.values[counter]);
            r.wide = static_cast<std::uint8_t>((r.wide & ~(1U << counter)) | (dpu::is_wide(r.deltas[counter]) ? 1U : 0U)
                                                                                 << counter);
        }
    }

protected:
    /// The end of the trace is this many events of A0 later.
    void end_after(std::uint32_t a0) {
        setup_.final = values_;
        (*setup_.final)[0] = (values_[0] - a0) & dpu::counter_mask;
    }

    analysis::DpuSetup setup_;
    std::vector<dpu::Element> elements_;
    std::vector<dpu::Reading> readings_;

private:
    dpu::Counters values_{};
};

/// A whole trace in one mode, of task 5 in user state; A0 counts cycles. Counters wrap at once.
[[nodiscard]] inline analysis::DpuSetup dpu_setup(dpu::TraceMode mode) {
    analysis::DpuSetup s;
    s.mode = mode;
    s.complete = true;
    s.initial_context = dpu::TaskContext{false, 5};
    s.initial = dpu::Counters{100, 100, 100, 100, 100, 100};
    s.cycles = 0;
    return s;
}

}  // namespace waymark::support
