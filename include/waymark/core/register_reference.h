/// The purpose of a unit's registers. Names, places and bits come from their descriptions (core/registers.h), the
/// meaning of each field from a table of the unit. docs/registers/ and the output of `waymark explain NAME` are made
/// from both.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/registers.h"

namespace waymark {

/// One row of a unit's table of meanings. `name` is `TRCCONFIGR.BB` for a field of one register, `.EVENT.SEL` for a
/// field that several registers have with one meaning, and `TRCCONFIGR` for the register as a whole.
struct RegisterMeaning {
    std::string_view name, text;
};

/// A field as the reference shows it.
struct FieldReference {
    std::string_view name;
    unsigned hi = 0, lo = 0;
    std::string_view meaning;  ///< empty: the unit's table lacks it, which a test refuses
};

/// A register as the reference shows it, or a group of equal registers: TRCACVR0 to TRCACVR15.
struct RegisterReference {
    std::string_view name, title;
    std::vector<std::string> places;     ///< of each register of the group: `0x010`, `S3_0_C9_C9_0`; empty: it has none
    unsigned bits = 32;                  ///< of its value: 32 or 64
    std::string_view purpose;            ///< a sentence or two; may be empty
    std::vector<FieldReference> fields;  ///< from the highest bit down, without reserved bits
    unsigned first = 0;                  ///< number of the first register of a group in names
    std::span<const RegisterMeaning> meanings{};  ///< the unit's table of meanings; empty: it has none
};

/// The registers of one kind of unit.
struct UnitReference {
    std::string_view title;          ///< `Program Trace Macrocell (PTM)`
    std::string_view document;       ///< its file in docs/registers/, without suffix; empty: the unit has no reference
    std::string_view specification;  ///< its file in docs/spec/, without suffix
    std::vector<RegisterReference> registers;
};

/// The text of the table's row `name`. If there is none: for a field, the text of the row `.FIELD`; otherwise empty.
[[nodiscard]] constexpr std::string_view meaning_of(std::span<const RegisterMeaning> table, std::string_view name) {
    for (const RegisterMeaning& row : table)
        if (row.name == name) return row.text;
    const std::size_t dot = name.find('.');
    if (dot == 0 || dot == name.npos) return {};
    return meaning_of(table, name.substr(dot));
}

/// The reference of a register of this type, or of a group, whose first register is at `place` (empty: it is not a
/// register on a bus). Its fields come from `fields_of()`; `table` lives as long as the result.
template <class Register>
[[nodiscard]] RegisterReference reference_of(std::string place, std::span<const RegisterMeaning> table) {
    RegisterReference out;
    out.name = Register::name;
    out.title = Register::title;
    if (!place.empty()) out.places.push_back(std::move(place));
    out.bits = 8 * register_bytes<Register>;
    out.purpose = meaning_of(table, Register::name);
    out.meanings = table;
    for (const RegisterField& field : fields_of(Register{})) {
        if (field.reserved() || field.name.starts_with("other[") || field.name == "reserved") continue;
        out.fields.push_back({field.name, field.hi, field.lo,
                              meaning_of(table, std::string(Register::name) + "." + std::string(field.name))});
    }
    return out;
}

}  // namespace waymark
