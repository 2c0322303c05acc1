#include "waymark/analysis/flow_levels.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

namespace waymark::analysis {

ExecutionLevel level_of(const flow::Context& context) {
    return {context.security(), context.el, context.hyp && !context.el, context.aarch64, false};
}

std::string level_text(std::uint8_t el, bool m_profile) {
    if (m_profile) return el == 0 ? "Thread mode" : "Handler mode";
    return fmt::format("EL{}", el);
}

void FlowLevels::close(const Work& done) {
    (now_ ? sums_[*now_].work : before_) += done - since_;
    since_ = done;
}

void FlowLevels::change(const flow::Context& context, const Work& done) {
    const ExecutionLevel level = level_of(context);
    if (now_ == level) return;
    close(done);
    if (!now_) first_ = level;
    now_ = level;
    ++sums_[level].entered;
}

void FlowLevels::begin(const flow::Context& context, const Work& done) {
    since_ = done;
    change(context, done);
}

void FlowLevels::join(const FlowLevels& next, const Work& done) {
    (now_ ? sums_[*now_].work : before_) += next.before_;
    for (const auto& [level, sum] : next.sums_) {
        sums_[level].work += sum.work;
        sums_[level].entered += sum.entered;
    }
    since_ = done;
    if (!next.first_) return;
    // The next part begins in the level in which this part ended: its first entry was not a change.
    if (now_ == next.first_) --sums_[*next.first_].entered;
    if (!now_) first_ = next.first_;
    now_ = next.now_;
}

std::vector<answers::LevelRow> level_rows(const std::map<ExecutionLevel, LevelSum>& sums, bool cycles) {
    constexpr std::array<std::string_view, 4> securities{"Secure", "Non-secure", "Root", "Realm"};
    std::vector<answers::LevelRow> rows;
    for (const auto& [level, sum] : sums) {
        answers::LevelRow row{.security = std::string(securities[static_cast<unsigned>(level.security)]),
                              .level = level.el    ? level_text(*level.el, level.m_profile)
                                       : level.hyp ? "Hyp"
                                                   : "",
                              .state = level.aarch64 ? "AArch64" : "AArch32",
                              .entered = sum.entered,
                              .costs = {sum.work.instructions}};
        if (cycles) row.costs.push_back(sum.work.cycles);
        rows.push_back(std::move(row));
    }
    return rows;
}

}  // namespace waymark::analysis
