#include "waymark/doctor/register_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "waymark/dpu/register_reference.h"
#include "waymark/pipeline/protocols.h"
#include "waymark/protocol/adapters.h"
#include "waymark/sink/register_reference.h"
#include "waymark/spe/register_reference.h"

namespace waymark::doctor {

namespace {

/// Whether `written`, in capitals, is the name of this register, or that without its last R.
bool is_name(std::string_view written, const RegisterReference& r) {
    return written == r.name || std::string(written) + "R" == r.name;
}
/// Whether `written`, in capitals, is the name of one register of this group: `TRCACVR3`.
bool is_one_of(std::string_view written, const RegisterReference& r) {
    if (r.count == 1 || !written.starts_with(r.name) || written.size() == r.name.size()) return false;
    return std::all_of(written.begin() + static_cast<std::ptrdiff_t>(r.name.size()), written.end(),
                       [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

std::string bits_of(const FieldReference& f) {
    return f.hi == f.lo ? std::to_string(f.hi) : fmt::format("{}:{}", f.hi, f.lo);
}

/// A cell of a table: no text may end it.
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
    return out;
}

std::vector<NamedRegister> registers_called(std::string_view name) {
    const std::size_t dot = name.find('.');
    const std::string written = protocol::upper(name.substr(0, dot));
    const std::string field = dot == name.npos ? std::string() : protocol::upper(name.substr(dot + 1));
    const std::vector<UnitReference> units = register_references();
    std::vector<NamedRegister> out;
    const auto add = [&](auto means) {
        for (const UnitReference& unit : units)
            for (const RegisterReference& r : unit.registers) {
                if (!means(written, r)) continue;
                std::string_view found;
                for (const FieldReference& f : r.fields)
                    if (protocol::upper(f.name) == field) found = f.name;
                if (field.empty() || !found.empty())
                    out.push_back({{unit.title, unit.document, unit.specification, {r}}, found});
            }
    };
    add(is_name);
    if (out.empty()) add(is_one_of);
    return out;
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
        out += fmt::format("| [{0}](#{1}) | {2} | {3} |\n", r.name, lower(r.name), r.place, cell(r.title));
    for (const RegisterReference& r : unit.registers) {
        out += fmt::format("\n## {}\n\n", r.name);
        std::string title(r.title);
        if (!title.empty()) title[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(title[0])));
        out += fmt::format("{}: {} bits at {}", title, r.bits, r.place);
        if (r.count > 1) out += fmt::format(", the first of {}", r.count);
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
