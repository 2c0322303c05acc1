#include "waymark/flow/unit_program.h"

#include <fmt/format.h>

#include "waymark/core/nearest.h"
#include "waymark/core/wire.h"

namespace waymark::flow {

namespace {

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view blank = " \t\r\n";
    const std::size_t first = text.find_first_not_of(blank);
    if (first == std::string_view::npos) return {};
    return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

Error wrong(const RegisterSetting& s, std::string_view what) {
    return {Errc::usage, fmt::format("{}: {}{}{}: {}", s.where, s.name, s.field.empty() ? "" : ".", s.field, what)};
}

}  // namespace

Result<std::vector<RegisterSetting>> read_register_settings(std::string_view text, const std::string& name) {
    std::vector<RegisterSetting> out;
    if (text.find('\0') != std::string_view::npos)
        return Error{Errc::bad_format,
                     fmt::format("{} is no text; expected lines NAME VALUE, as in 'TRCCCCTLR 0x100'", name)};
    bool counts = true;
    for (unsigned number = 1; !text.empty(); ++number) {
        const std::size_t end = text.find('\n');
        std::string_view line = text.substr(0, end);
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        line = trimmed(line.substr(0, line.find_first_of("#;")));
        if (line.empty()) continue;
        if (line.front() == '[') {
            counts = line == "[regs]";
            continue;
        }
        if (!counts) continue;
        const std::string where = fmt::format("{}:{}", name, number);
        const auto bad = [&](std::string_view what) {
            return Error{Errc::bad_format,
                         fmt::format("{}: {}; expected NAME VALUE, as in 'TRCCCCTLR 0x100', 'TRCVICTLR.SSSTATUS 1' "
                                     "or 'TRCVICTLR SSSTATUS=1'",
                                     where, what)};
        };
        // The line has the form NAME FIELD=VALUE FIELD=VALUE …
        if (const std::size_t blank = line.find_first_of(" \t"); blank != std::string_view::npos) {
            const std::string_view rest = trimmed(line.substr(blank));
            if (rest.find('=') != std::string_view::npos && rest.front() != '=') {
                for (std::string_view words = rest; !words.empty();) {
                    const std::string_view word = words.substr(0, words.find_first_of(" \t"));
                    words = trimmed(words.substr(word.size()));
                    const std::size_t equals = word.find('=');
                    RegisterSetting setting{std::string(line.substr(0, blank)), std::string(word.substr(0, equals)), 0,
                                            where};
                    if (equals == std::string_view::npos || equals == 0 ||
                        !wire::scan_number(word.substr(equals + 1), setting.value))
                        return bad(fmt::format("'{}' is no FIELD=VALUE", word));
                    out.push_back(std::move(setting));
                }
                continue;
            }
        }
        // The name of a field may contain blanks; the value is the last word.
        const std::size_t split = line.find_last_of(" \t=");
        if (split == std::string_view::npos) return bad(fmt::format("'{}' has no value", line));
        RegisterSetting setting;
        setting.where = where;
        const std::string_view digits = line.substr(split + 1);
        if (!wire::scan_number(digits, setting.value)) return bad(fmt::format("'{}' is not a number", digits));
        std::string_view left = trimmed(line.substr(0, line.find_last_not_of(" \t=", split) + 1));
        if (const std::size_t more = left.find('('); more != std::string_view::npos && left.back() == ')')
            left = trimmed(left.substr(0, more));
        const std::size_t dot = left.find('.');
        setting.name = left.substr(0, dot);
        if (dot != std::string_view::npos) setting.field = left.substr(dot + 1);
        if (setting.name.empty() || setting.name.find_first_of(" \t") != std::string::npos)
            return bad(fmt::format("'{}' is not the name of a register", left));
        out.push_back(std::move(setting));
    }
    return out;
}

Result<std::uint64_t> value_after(const RegisterSetting& s, const SettableRegister& r) {
    const auto ones = [](unsigned bits) { return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1; };
    std::uint64_t value = s.value;
    if (s.field.empty()) {
        if (value > ones(8 * r.bytes)) return wrong(s, fmt::format("{:#x} is more than {} bits", value, 8 * r.bytes));
    } else {
        const auto field = std::find_if(r.fields.begin(), r.fields.end(),
                                        [&](const RegisterField& f) { return !f.reserved() && f.name == s.field; });
        if (field == r.fields.end()) {
            std::string names;
            for (const RegisterField& f : r.fields)
                if (!f.reserved()) names += fmt::format("{}{}", names.empty() ? "" : ", ", f.name);
            return wrong(s, fmt::format("{} has no such field; it has {}", r.name, names));
        }
        if (value > ones(field->width()))
            return wrong(s, fmt::format("{:#x} is too large; the field has {} bit{}, up to {:#x}", value,
                                        field->width(), field->width() == 1 ? "" : "s", ones(field->width())));
        const std::uint64_t mask = ones(field->width()) << field->lo;
        value = (r.value & ~mask) | value << field->lo;
    }
    if (value == r.value) return value;
    if (r.writable == 0) return wrong(s, fmt::format("the register is read-only; it is {:#x}", r.value));
    if (const std::uint64_t fixed = (value ^ r.value) & ~r.writable; fixed != 0)
        return wrong(s, fmt::format("bits {:#x} are reserved or not implemented in this unit, where they are {:#x}; "
                                    "bits {:#x} can be written",
                                    fixed, r.value & fixed, r.writable));
    return value;
}

Error unknown_register(const RegisterSetting& s, std::string_view unit, const std::vector<std::string_view>& names) {
    const std::string_view near = nearest(s.name, names);
    return wrong(s, fmt::format("{} has no such register{}", unit,
                                near.empty() ? std::string() : fmt::format("; is {} meant?", near)));
}

}  // namespace waymark::flow
