#include "waymark/dpu/text.h"

#include <fmt/format.h>

namespace waymark::dpu {

Result<Entry> from_text(std::string_view text, const TraceFormat& format) {
    return wire::packet_from_text<Entries, Entry>(text, "trace entry", format);
}

namespace {

std::string text(const TaskContext& c) { return fmt::format("{} {}", c.supervisor ? "supervisor" : "user", c.id); }
std::string change(std::uint32_t from, std::uint32_t to, const TaskContext& c) {
    return fmt::format("{:#x} → {:#x}, now {}", from, to, text(c));
}
std::string loop(std::string_view kind, std::uint32_t last, std::uint32_t reps) {
    return fmt::format("{} loop ending at {:#x} jumped back {} time{}", kind, last, reps, reps == 1 ? "" : "s");
}

std::string meaning(const TaskSwitch& e) { return change(e.last_pc, e.first_pc, e.context); }
std::string meaning(const Flow& e) { return change(e.last_pc, e.first_pc, e.context); }
std::string meaning(const Sample& e) { return fmt::format("counters in {}", text(e.context)); }
std::string meaning(const RawPair& e) { return fmt::format("{:#x} → {:#x}", e.source, e.destination); }
std::string meaning(const RawPc&) { return {}; }
std::string meaning(const CompressedFlow& e) { return change(e.source, e.destination, e.context); }
std::string meaning(const CompressedPc&) { return {}; }
std::string meaning(const ShortLoop& e) { return loop("short", e.last_address, e.reps); }
std::string meaning(const LongLoop& e) { return loop("long", e.last_address, e.reps); }
std::string meaning(const UserData&) { return {}; }
std::string meaning(const UserRaw&) { return {}; }
std::string meaning(const ContextEntry&) { return {}; }
std::string meaning(const Pad&) { return "fills the line after a flush"; }
std::string meaning(const Closed&) { return "tracing was turned off"; }
std::string meaning(const GapEntry& e) {
    return fmt::format("no room for {} entr{}", e.lost, e.lost == 1 ? "y" : "ies");
}

}  // namespace

std::string explain(const Entry& entry) {
    return std::visit([](const auto& e) { return meaning(e); }, entry);
}

}  // namespace waymark::dpu
