#include "waymark/dpu/registers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "names.h"
#include "waymark/dpu/events.h"

namespace waymark::dpu {

namespace {

auto with_offset(std::uint32_t offset) {
    return [offset]<class Register>(const Register&) { return Register::offset == offset; };
}

std::optional<Registers::About> find_if(auto&& wanted) {
    std::optional<Registers::About> found;
    const Registers none;
    Registers::for_each(none, [&](const auto& r) {
        using Register = std::remove_cvref_t<decltype(r)>;
        const Registers::About about{Register::name, Register::title, Register::section, Register::offset,
                                     Register::access};
        if (wanted(about)) found = about;
    });
    return found;
}

/// Describes a code that its field does not define; empty if the code is valid.
std::string wrong_code(const Field& field) {
    const std::string_view n = field.name;
    if (n == "CEG" && field.value >= event_sets)
        return fmt::format("CEG {} is reserved and counts nothing; event sets are 0 to {}", field.value,
                           event_sets - 1);
    if (n == "CMODE" && field.value > 1)
        return fmt::format("CMODE {} is reserved and treated as one-shot; write 0 for one-shot, 1 for trace mode",
                           field.value);
    if ((n == "TDM" || n == "TENM" || n == "DM" || n == "ENM") && field.value >= 10 && field.value <= 14)
        return fmt::format("{} {} is reserved and never happens; write 0 to 9, or 15 for at once", n, field.value);
    if (n == "TMODE" && field.value >= trace_modes)
        return fmt::format("TMODE {} is reserved and traces nothing; write 0 to {}", field.value, trace_modes - 1);
    if (n == "VTBWM" && field.value == 3)
        return "VTBWM 3 is reserved and taken for overwrite; write 0 to overwrite, 1 for a single address, 2 for trace "
               "event requests";
    return {};
}

}  // namespace

std::string to_text(const std::vector<Field>& fields) {
    std::string out;
    for (const Field& field : fields) {
        if (field.value == 0) continue;
        if (!out.empty()) out += ' ';
        out += field.name;
        out += '=';
        wire::append_number(out, field.value);
    }
    return out;
}

std::optional<Registers::About> Registers::find(std::string_view name) {
    return find_if(
        [&](const About& about) { return same_name(name, about.name) || same_name(name, about.name.substr(3)); });
}

std::optional<Registers::About> Registers::find(std::uint32_t offset) {
    return find_if([&](const About& about) { return about.offset == offset; });
}

std::string Registers::names() {
    std::string out;
    const Registers none;
    for_each(none, [&](const auto& r) {
        if (!out.empty()) out += ", ";
        out += std::remove_cvref_t<decltype(r)>::name;
    });
    return out;
}

bool Registers::set(std::uint32_t offset, std::uint32_t value) {
    return visit_registers(*this, with_offset(offset),
                           [&](auto& r) { r = from_value<std::remove_cvref_t<decltype(r)>>(value); });
}

std::optional<std::uint32_t> Registers::get(std::uint32_t offset) const {
    std::optional<std::uint32_t> value;
    visit_registers(*this, with_offset(offset), [&](const auto& r) { value = to_value(r); });
    return value;
}

std::vector<Field> Registers::fields(std::uint32_t offset) const {
    std::vector<Field> out;
    visit_registers(*this, with_offset(offset), [&](const auto& r) { out = fields_of(r); });
    return out;
}

std::string wrong_value(std::uint32_t offset, std::uint32_t value) {
    if (offset % 4 != 0)
        return fmt::format(
            "{:#x} is not the offset of a register; offsets are multiples of 4 and are accessed as 32 bits", offset);
    const auto about = Registers::find(offset);
    if (!about)
        return fmt::format("there is no register at {:#x}; the write is ignored. There are {}", offset,
                           Registers::names());
    if (about->access == Permission::read_only)
        return fmt::format("{} can only be read; the write is ignored", about->name);
    Registers registers;
    registers.set(offset, value);
    // Addresses of lines: low bits are ignored on purpose (3.4).
    const bool line = offset == DpTsa::offset || offset == DpTea::offset || offset == DpTw::offset;
    for (const Field& field : registers.fields(offset)) {
        if (field.reserved() && field.value != 0 && line)
            return fmt::format("{} is the address of a line of 32 bytes; bits 4 to 0 are ignored, write {:#x}",
                               about->name, value & ~31U);
        if (field.reserved() && field.value != 0)
            return fmt::format("{} has {} = {:#x}; write 0 there", about->name, field.name, field.value);
        if (std::string wrong = wrong_code(field); !wrong.empty()) return std::string(about->name) + "." + wrong;
    }
    return {};
}

}  // namespace waymark::dpu
