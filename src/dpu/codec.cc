#include "waymark/dpu/codec.h"

namespace waymark::dpu {

void TaskFlag::print(std::string& out, const TaskContext& context) {
    out += context.supervisor ? "supervisor:" : "user:";
    out += std::to_string(context.id);
}

bool TaskFlag::scan(std::string_view text, TaskContext& context) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return false;
    const std::string_view privilege = text.substr(0, colon);
    std::uint64_t id = 0;
    if ((privilege != "user" && privilege != "supervisor") || !wire::scan_number(text.substr(colon + 1), id) ||
        id > 0xff)
        return false;
    context = {privilege == "supervisor", static_cast<std::uint8_t>(id)};
    return true;
}

}  // namespace waymark::dpu
