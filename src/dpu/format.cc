#include "waymark/dpu/format.h"

#include <array>

namespace waymark::dpu {

std::string_view name(TraceMode mode) {
    constexpr std::array<std::string_view, trace_modes> names{"EONCE_RAW", "EONCE_COMP", "TASK", "FLOW",
                                                              "SWSAMPLE",  "EDCA5",      "USER", "USERRAW"};
    const auto i = static_cast<std::size_t>(mode);
    return i < names.size() ? names[i] : "reserved";
}

std::string_view counter_name(unsigned counter) {
    constexpr std::array<std::string_view, counter_count> names{"A0", "A1", "A2", "B0", "B1", "B2"};
    return names.at(counter);
}

std::string_view name(FlagKind kind) {
    switch (kind) {
        case FlagKind::dummy: return "DUMMY";
        case FlagKind::user_task: return "USER TASK";
        case FlagKind::supervisor_task: return "SUPERVISOR TASK";
        case FlagKind::short_loop: return "SHORT LOOP";
        case FlagKind::long_loop: return "LONG LOOP";
        case FlagKind::vtb_filled: return "VTB FILLED";
        case FlagKind::user_data: return "USER DATA";
        case FlagKind::gap: return "GAP";
    }
    return "reserved";
}

}  // namespace waymark::dpu
