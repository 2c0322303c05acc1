/// Values of the DPU's counters: for one interval, as sums, and with their owner (docs/spec/dpu.md, section 12).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <tuple>

#include "waymark/dpu/registers.h"
#include "waymark/dpu/state.h"

namespace waymark::analysis {

/// By counter, A0 to B2. Sums have 64 bits, since counters have 31 bits and wrap.
using DpuCounts = std::array<std::uint64_t, dpu::counter_count>;
void add(DpuCounts& to, const DpuCounts& counts);

/// The owner of an interval (12.1).
struct DpuOwner {
    enum class Kind : std::uint8_t { context, sampled, tail_context, between, filtered, before, tail, unattributed };
    Kind kind{};
    dpu::TaskContext context{},
        other{};  ///< context: from `context` to `between`; `other`: the other context for between
    [[nodiscard]] bool is_context() const { return kind <= Kind::tail_context; }
    auto operator<=>(const DpuOwner& o) const {
        const auto key = [](const DpuOwner& w) {
            return std::tuple(w.is_context() ? Kind::context : w.kind, w.context.supervisor, w.context.id,
                              w.other.supervisor, w.other.id);
        };
        return key(*this) <=> key(o);
    }
    bool operator==(const DpuOwner& o) const { return (*this <=> o) == 0; }
};
/// The owner as text: `user 5`, `<between user 5 and supervisor 5>`.
[[nodiscard]] std::string to_text(const DpuOwner& owner);
[[nodiscard]] std::string to_text(const dpu::TaskContext& context);

/// Sum, minimum and maximum of a repeated quantity.
struct DpuSpread {
    std::uint64_t times = 0;
    DpuCounts sum{}, least{}, most{};
    void take(const DpuCounts& counts);
};

}  // namespace waymark::analysis
