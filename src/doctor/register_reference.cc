#include "waymark/doctor/register_reference.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "waymark/dpu/register_reference.h"
#include "waymark/pipeline/protocols.h"
#include "waymark/protocol/adapters.h"
#include "waymark/sink/register_reference.h"
#include "waymark/spe/register_reference.h"

namespace waymark::doctor {

namespace {

/// A name in capitals without underlines: manuals write ITM_TCR, captures ITMTCR.
std::string plain(std::string_view name) {
    std::string out = protocol::upper(name);
    std::erase(out, '_');
    return out;
}

/// Whether `written`, a plain name, is the name of this register, with or without its last R.
bool is_name(std::string_view written, const RegisterReference& r) {
    const std::string name = plain(r.name);
    return written == name || std::string(written) + "R" == name;
}
/// The index of a register in this group by its plain name `written`: 3 for `TRCACVR3`. nullopt if it is not such a
/// name, or the group is smaller.
std::optional<unsigned> index_in(std::string_view written, const RegisterReference& r) {
    const std::string name = plain(r.name);
    if (r.places.size() == 1 || !written.starts_with(name)) return std::nullopt;
    const std::string_view digits = written.substr(name.size());
    unsigned number = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (digits.empty() || error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    if (number < r.first || number - r.first >= r.places.size()) return std::nullopt;
    return number - r.first;
}

/// The fields of a register that `written`, in capitals, names; all fields if it is empty.
std::vector<FieldReference> fields_meant(std::string_view written, const RegisterReference& r) {
    if (written.empty()) return r.fields;
    std::vector<FieldReference> out;
    for (const FieldReference& f : r.fields) {
        const std::string name = protocol::upper(f.name);
        if (name == written || name.starts_with(std::string(written) + ".")) out.push_back(f);
    }
    return out;
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

std::string bits_of(const FieldReference& f) {
    return f.hi == f.lo ? std::to_string(f.hi) : fmt::format("{}:{}", f.hi, f.lo);
}

/// Text for a cell of a table, in which no character may end the cell.
std::string cell(std::string_view text) {
    std::string out;
    for (const char c : text) {
        if (c == '|') out += '\\';
        out += c;
    }
    return out;
}

}  // namespace

std::vector<UnitReference> register_references() {
    std::vector<UnitReference> out;
    for (const pipeline::Protocol* protocol : pipeline::protocols())
        if (UnitReference unit = protocol->register_reference(); !unit.registers.empty())
            out.push_back(std::move(unit));
    out.push_back(spe::register_reference());
    out.push_back(dpu::register_reference());
    out.push_back(sink::register_reference());
    for (UnitReference& unit : sink::path_register_references()) out.push_back(std::move(unit));
    return out;
}

Result<std::vector<NamedRegister>> registers_called(std::string_view name) {
    const std::size_t dot = name.find('.');
    const std::string written = plain(name.substr(0, dot));
    const std::string field = dot == name.npos ? std::string() : protocol::upper(name.substr(dot + 1));
    const std::vector<UnitReference> units = register_references();
    std::vector<NamedRegister> out;
    std::string without_field;
    const auto add = [&](const UnitReference& unit, const RegisterReference& r, std::optional<unsigned> index) {
        NamedRegister named{{unit.title, unit.document, unit.specification, {r}}, fields_meant(field, r), index};
        if (!field.empty() && named.fields.empty()) {
            std::vector<std::string_view> has;
            for (const FieldReference& f : r.fields) has.push_back(f.name);
            without_field = fmt::format("{} has no such field; it has {}", r.name, fmt::join(has, ", "));
            return;
        }
        out.push_back(std::move(named));
    };
    for (const UnitReference& unit : units)
        for (const RegisterReference& r : unit.registers)
            if (is_name(written, r)) add(unit, r, std::nullopt);
    if (out.empty() && without_field.empty())
        for (const UnitReference& unit : units)
            for (const RegisterReference& r : unit.registers)
                if (const auto index = index_in(written, r)) add(unit, r, index);
    if (!out.empty()) return out;
    if (!without_field.empty()) return Error{Errc::not_found, fmt::format("{}: {}", name, without_field)};
    return Error{Errc::not_found,
                 fmt::format("{}: no unit has a register with that name; docs/registers/ lists them", name)};
}

std::string document_of(const UnitReference& unit) {
    std::string out = fmt::format(
        "# Registers: {}\n\n"
        "Made from the descriptions of the registers and their tables of meanings: `WM_UPDATE_APPROVED=1 ctest -R "
        "doctor.RegisterReference` writes\nthis file. How the unit behaves is in [its specification](../spec/{}.md); "
        "`waymark explain NAME` shows one register, and\n[explain](../explain.md) what values of several do together. "
        "Bits that are not listed are reserved, or no concern of tracing.\n\n",
        unit.title, unit.specification);
    out += "| Register | Place | Title |\n|---|---|---|\n";
    for (const RegisterReference& r : unit.registers)
        out += fmt::format("| [{0}](#{1}) | {2} | {3} |\n", r.name, lower(r.name),
                           r.places.empty() ? "–" : r.places.front(), cell(r.title));
    for (const RegisterReference& r : unit.registers) {
        out += fmt::format("\n## {}\n\n", r.name);
        std::string title(r.title);
        if (!title.empty()) title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
        out += fmt::format("{}: {} bits", title, r.bits);
        if (!r.places.empty()) out += fmt::format(" at {}", r.places.front());
        if (r.places.size() > 1) out += fmt::format(" to {}, {} registers", r.places.back(), r.places.size());
        out += '.';
        if (!r.purpose.empty()) out += fmt::format(" {}", r.purpose);
        out += '\n';
        if (r.fields.empty()) continue;
        out += "\n| Bits | Field | Meaning |\n|---|---|---|\n";
        for (const FieldReference& f : r.fields)
            out += fmt::format("| {} | {} | {} |\n", bits_of(f), cell(f.name), cell(f.meaning));
    }
    return out;
}

std::string index_of(const std::vector<UnitReference>& units) {
    std::string out =
        "# Registers\n\nWhat each register and field of each unit is for, made from the descriptions that decoders, "
        "models "
        "and `waymark explain` use.\n\n| Unit | Registers |\n|---|---|\n";
    for (const UnitReference& unit : units)
        out += fmt::format("| [{}]({}.md) | {} |\n", unit.title, unit.document, unit.registers.size());
    return out;
}

}  // namespace waymark::doctor
