#include "waymark/spe/registers.h"

#include <algorithm>
#include <cctype>
#include <type_traits>

namespace waymark::spe {

namespace {

bool same_name(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](unsigned char x, unsigned char y) { return std::toupper(x) == std::toupper(y); });
}

auto with_name(std::string_view name) {
    return [name]<class Register>(const Register&) { return Register::name == name; };
}

/// Splits `MDCR_EL2.E2PB` into register and field.
std::pair<std::string_view, std::string_view> split(std::string_view name) {
    const std::size_t dot = name.find('.');
    if (dot == name.npos) return {name, {}};
    return {name.substr(0, dot), name.substr(dot + 1)};
}

std::string binary(std::uint64_t value, unsigned width) {
    std::string out = "0b";
    for (unsigned i = width; i-- > 0;) out += static_cast<char>('0' + (value >> i & 1));
    return out;
}

}  // namespace

std::string field_text(const Field& field) {
    if (field.width() > 1 && field.width() <= 3 && field.name != "EL") return binary(field.value, field.width());
    std::string out;
    wire::append_number(out, field.value);
    return out;
}

std::string to_text(const std::vector<Field>& fields) {
    std::string out;
    for (const Field& field : fields) {
        if (field.value == 0) continue;
        if (!out.empty()) out += ' ';
        out += field.name;
        out += '=';
        out += field_text(field);
    }
    return out;
}

std::string to_text(const Encoding& e) {
    const auto number = [](unsigned n) { return std::to_string(n); };
    return "S" + number(e.op0) + "_" + number(e.op1) + "_C" + number(e.crn) + "_C" + number(e.crm) + "_" +
           number(e.op2);
}

std::string_view Registers::canonical(std::string_view name) {
    struct Alias {
        std::string_view alias, name;
    };
    constexpr Alias aliases[] = {
        {"PMSCR_EL12", PmscrEl1::name}, {"PMBSR_EL12", PmbsrEl1::name}, {"CurrentEL", Pstate::name}};
    for (const Alias& alias : aliases)
        if (same_name(name, alias.alias)) return alias.name;
    std::string_view found;
    Registers none;
    for_each(none, [&](auto& r) {
        using Register = std::remove_cvref_t<decltype(r)>;
        if (same_name(name, Register::name)) found = Register::name;
    });
    return found;
}

bool Registers::set(std::string_view name, std::uint64_t value) {
    return visit_registers(*this, with_name(canonical(name)),
                           [&](auto& r) { r = from_value<std::remove_cvref_t<decltype(r)>>(value); });
}

std::optional<std::uint64_t> Registers::get(std::string_view name) const {
    std::optional<std::uint64_t> value;
    visit_registers(*this, with_name(canonical(name)), [&](const auto& r) { value = to_value(r); });
    return value;
}

std::vector<Field> Registers::fields(std::string_view name) const {
    std::vector<Field> out;
    visit_registers(*this, with_name(canonical(name)), [&](const auto& r) { out = fields_of(r); });
    return out;
}

std::optional<Field> Registers::field(std::string_view name) const {
    const auto [register_name, field_name] = split(name);
    for (const Field& field : fields(register_name))
        if (same_name(field.name, field_name)) return field;
    return std::nullopt;
}

bool Registers::set_field(std::string_view name, std::uint64_t value) {
    const auto found = field(name);
    if (!found) return false;
    const std::uint64_t ones = ~std::uint64_t{0} >> (64 - found->width());
    if (value > ones) return false;
    const std::string_view register_name = split(name).first;
    const std::uint64_t whole = get(register_name).value_or(0);
    return set(register_name, (whole & ~(ones << found->lo)) | value << found->lo);
}

}  // namespace waymark::spe
