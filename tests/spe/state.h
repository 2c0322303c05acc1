/// States of a processing element for tests, in the notation of docs/spec/spe.md, 3.14: `E2PB=11, EL=0` changes the
/// default state there.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/wire.h"
#include "waymark/spe/architecture.h"

namespace waymark::spe::test {

/// The default state of 3.14.
inline State default_state() {
    State s;
    Registers& r = s.regs;
    r.scr_el3.ns = true;
    r.mdcr_el3.nspb = 0b11;
    r.pmblimitr_el1.e = true;
    r.pmscr_el1.e0spe = r.pmscr_el1.e1spe = r.pmscr_el2.e2spe = r.pmscr_el2.e0hspe = true;
    r.pmscr_el1.cx = r.pmscr_el2.cx = r.pmscr_el1.pa = r.pmscr_el2.pa = r.pmscr_el1.ts = r.pmscr_el2.ts = true;
    r.pstate.el = EL1;
    return s;
}

inline std::vector<std::string> split(std::string_view text, std::string_view separator) {
    std::vector<std::string> out;
    while (true) {
        const std::size_t end = text.find(separator);
        std::string_view part = text.substr(0, end);
        while (part.starts_with(' ')) part.remove_prefix(1);
        while (part.ends_with(' ')) part.remove_suffix(1);
        out.emplace_back(part);
        if (end == text.npos) return out;
        text.remove_prefix(end + separator.size());
    }
}

/// Applies one word of the notation; false if there is no such word.
inline bool apply(State& s, std::string_view name, std::string_view value_text) {
    std::uint64_t value = 0;
    if (name == "E2PB" || name == "NSPB")
        for (const char c : value_text) value = value << 1 | static_cast<unsigned>(c - '0');
    else if (!wire::scan_number(value_text, value))
        return false;
    const bool on = value != 0;
    const auto answer = on ? Choices::Answer::yes : Choices::Answer::no;
    struct FieldName {
        std::string_view name, field;
    };
    constexpr FieldName fields[] = {{"NS", "SCR_EL3.NS"},           {"NSPB", "MDCR_EL3.NSPB"},
                                    {"E2PB", "MDCR_EL2.E2PB"},      {"TPMS", "MDCR_EL2.TPMS"},
                                    {"TGE", "HCR_EL2.TGE"},         {"EL", "PSTATE.EL"},
                                    {"a32", "PSTATE.nRW"},          {"E", "PMBLIMITR_EL1.E"},
                                    {"S", "PMBSR_EL1.S"},           {"E0SPE", "PMSCR_EL1.E0SPE"},
                                    {"E1SPE", "PMSCR_EL1.E1SPE"},   {"E2SPE", "PMSCR_EL2.E2SPE"},
                                    {"E0HSPE", "PMSCR_EL2.E0HSPE"}, {"CX1", "PMSCR_EL1.CX"},
                                    {"CX2", "PMSCR_EL2.CX"},        {"PA1", "PMSCR_EL1.PA"},
                                    {"PA2", "PMSCR_EL2.PA"},        {"TS1", "PMSCR_EL1.TS"},
                                    {"TS2", "PMSCR_EL2.TS"},        {"PCT1", "PMSCR_EL1.PCT"},
                                    {"PCT2", "PMSCR_EL2.PCT"},      {"FE", "PMSFCR_EL1.FE"},
                                    {"FT", "PMSFCR_EL1.FT"},        {"FL", "PMSFCR_EL1.FL"},
                                    {"FnE", "PMSFCR_EL1.FnE"},      {"FDS", "PMSFCR_EL1.FDS"},
                                    {"B", "PMSFCR_EL1.B"},          {"LD", "PMSFCR_EL1.LD"},
                                    {"ST", "PMSFCR_EL1.ST"},        {"FP", "PMSFCR_EL1.FP"},
                                    {"SIMD", "PMSFCR_EL1.SIMD"},    {"Bm", "PMSFCR_EL1.Bm"},
                                    {"LDm", "PMSFCR_EL1.LDm"},      {"STm", "PMSFCR_EL1.STm"},
                                    {"FPm", "PMSFCR_EL1.FPm"},      {"SIMDm", "PMSFCR_EL1.SIMDm"},
                                    {"EVFR", "PMSEVFR_EL1.E"},      {"NEVFR", "PMSNEVFR_EL1.E"},
                                    {"DSFR", "PMSDSFR_EL1.S"},      {"MINLAT", "PMSLATFR_EL1.MINLAT"}};
    for (const FieldName& f : fields)
        if (f.name == name) return s.regs.set_field(f.field, value);
    if (name == "spe")
        s.arch.version = on ? Version::v1_0 : Version::none;
    else if (name == "el2")
        s.arch.el2 = on;
    else if (name == "el3")
        s.arch.el3 = on;
    else if (name == "sel2")
        s.arch.secure_el2 = s.regs.scr_el3.eel2 = on;
    else if (name == "secureonly")
        s.arch.secure_only = on;
    else if (name == "oa32")
        s.el_using_aarch32 = {on, on, on, on};
    else if (name == "Z")
        s.choices[Unpredictable::ZEROPMSEVFR] = answer;
    else if (name == "N")
        s.choices[Unpredictable::NOOPTYPES] = answer;
    else if (name == "L")
        s.choices[Unpredictable::ZEROMINLATENCY] = answer;
    else if (name == "BADPMSFCR")
        s.choices[Unpredictable::BADPMSFCR] = answer;
    else
        return false;
    return true;
}

/// The default state with these changes.
inline State state_of(std::string_view changes) {
    State s = default_state();
    if (changes.empty() || changes == "(default)" || changes == "all filters off") return s;
    for (const std::string& change : split(changes, ",")) {
        const auto words = split(change, "=");
        EXPECT_TRUE(words.size() == 2 && apply(s, words[0], words[1])) << "'" << change << "' says nothing";
    }
    return s;
}

}  // namespace waymark::spe::test
