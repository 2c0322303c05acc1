#include "waymark/isa/cores.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "waymark/core/letter_changes.h"
#include "waymark/core/utf8.h"

namespace waymark::isa {

namespace {

struct Core {
    std::string_view name;
    CoreProfile profile;
    std::uint8_t implementer = 0;  ///< MIDR[31:24]; 0: an architecture, which has no MIDR
    std::uint16_t part = 0;        ///< MIDR[15:4]
};

constexpr auto a = CoreProfile::a, r = CoreProfile::r, m = CoreProfile::m;
constexpr Core cores[] = {
    {"Cortex-A5", a, 0x41, 0xc05},
    {"Cortex-A7", a, 0x41, 0xc07},
    {"Cortex-A8", a, 0x41, 0xc08},
    {"Cortex-A9", a, 0x41, 0xc09},
    {"Cortex-A12", a, 0x41, 0xc0d},
    {"Cortex-A15", a, 0x41, 0xc0f},
    {"Cortex-A17", a, 0x41, 0xc0e},
    {"Cortex-A32", a, 0x41, 0xd01},
    {"Cortex-A34", a, 0x41, 0xd02},
    {"Cortex-A35", a, 0x41, 0xd04},
    {"Cortex-A53", a, 0x41, 0xd03},
    {"Cortex-A55", a, 0x41, 0xd05},
    {"Cortex-A57", a, 0x41, 0xd07},
    {"Cortex-A65", a, 0x41, 0xd06},
    {"Cortex-A65AE", a, 0x41, 0xd43},
    {"Cortex-A72", a, 0x41, 0xd08},
    {"Cortex-A73", a, 0x41, 0xd09},
    {"Cortex-A75", a, 0x41, 0xd0a},
    {"Cortex-A76", a, 0x41, 0xd0b},
    {"Cortex-A76AE", a, 0x41, 0xd0e},
    {"Cortex-A77", a, 0x41, 0xd0d},
    {"Cortex-A78", a, 0x41, 0xd41},
    {"Cortex-A78AE", a, 0x41, 0xd42},
    {"Cortex-A78C", a, 0x41, 0xd4b},
    {"Cortex-A510", a, 0x41, 0xd46},
    {"Cortex-A520", a, 0x41, 0xd80},
    {"Cortex-A710", a, 0x41, 0xd47},
    {"Cortex-A715", a, 0x41, 0xd4d},
    {"Cortex-A720", a, 0x41, 0xd81},
    {"Cortex-A720AE", a, 0x41, 0xd89},
    {"Cortex-A725", a, 0x41, 0xd87},
    {"Cortex-X1", a, 0x41, 0xd44},
    {"Cortex-X1C", a, 0x41, 0xd4c},
    {"Cortex-X2", a, 0x41, 0xd48},
    {"Cortex-X3", a, 0x41, 0xd4e},
    {"Cortex-X4", a, 0x41, 0xd82},
    {"Cortex-X925", a, 0x41, 0xd85},
    {"Cortex-R4", r, 0x41, 0xc14},
    {"Cortex-R5", r, 0x41, 0xc15},
    {"Cortex-R7", r, 0x41, 0xc17},
    {"Cortex-R8", r, 0x41, 0xc18},
    {"Cortex-R52", r, 0x41, 0xd13},
    {"Cortex-R52+", r, 0x41, 0xd16},
    {"Cortex-R82", r, 0x41, 0xd15},
    {"Cortex-M0", m, 0x41, 0xc20},
    {"Cortex-M0+", m, 0x41, 0xc60},
    {"Cortex-M1", m, 0x41, 0xc21},
    {"Cortex-M3", m, 0x41, 0xc23},
    {"Cortex-M4", m, 0x41, 0xc24},
    {"Cortex-M7", m, 0x41, 0xc27},
    {"Cortex-M23", m, 0x41, 0xd20},
    {"Cortex-M33", m, 0x41, 0xd21},
    {"Cortex-M35P", m, 0x41, 0xd31},
    {"Cortex-M52", m, 0x41, 0xd24},
    {"Cortex-M55", m, 0x41, 0xd22},
    {"Cortex-M85", m, 0x41, 0xd23},
    {"STAR-MC1", m, 0x63, 0x132},
    {"Neoverse E1", a, 0x41, 0xd4a},
    {"Neoverse N1", a, 0x41, 0xd0c},
    {"Neoverse N2", a, 0x41, 0xd49},
    {"Neoverse N3", a, 0x41, 0xd8e},
    {"Neoverse V1", a, 0x41, 0xd40},
    {"Neoverse V2", a, 0x41, 0xd4f},
    {"Neoverse V3", a, 0x41, 0xd84},
    {"Olympus", a, 0x4e, 0x010},
    {"AmpereOne", a, 0xc0, 0xac3},
    {"AmpereOne A", a, 0xc0, 0xac4},
    {"TSV110", a, 0x48, 0xd01},
    {"HIP09", a, 0x48, 0xd02},
    {"HIP12", a, 0x48, 0xd06},
    {"ARMv7-A", a},
    {"ARMv8-A", a},
    {"ARMv9-A", a},
    {"ARM-AA64", a},
    {"ARMv7-R", r},
    {"ARMv8-R", r},
    {"ARMv6-M", m},
    {"ARMv7-M", m},
    {"ARMv7E-M", m},
    {"ARMv8-M", m},
    {"ARMv8.1-M", m},
};

/// A name reduced to its letters in lower case, digits and plus signs, which distinguish cores.
std::string bare(std::string_view name) {
    if (const std::size_t vendor = name.find(','); vendor != name.npos) name.remove_prefix(vendor + 1);
    std::string out;
    for (const char c : name) {
        if (c >= 'A' && c <= 'Z')
            out += static_cast<char>(c - 'A' + 'a');
        else if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+')
            out += c;
    }
    return out;
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Whether `name` is the family's name with a number.
bool numbered(std::string_view name, std::string_view family) {
    return name.starts_with(family) && name.size() > family.size() && is_digit(name[family.size()]);
}

/// The profile at the end of an architecture's name, such as `armv81m`.
std::optional<CoreProfile> architecture(std::string_view name) {
    if (!numbered(name, "armv")) return std::nullopt;
    name.remove_prefix(4);
    while (!name.empty() && is_digit(name.front())) name.remove_prefix(1);
    if (name == "a") return a;
    if (name == "r") return r;
    // `main` and `base`: ARMv8-M.main, ARMv8-M.base.
    for (const std::string_view of_m : {"m", "em", "mmain", "mbase"})
        if (name == of_m) return m;
    return std::nullopt;
}

}  // namespace

std::optional<CoreProfile> core_profile(std::string_view core) {
    const std::string name = bare(core);
    for (const Core& each : cores)
        if (bare(each.name) == name) return each.profile;
    for (const auto& [family, profile] :
         {std::pair("cortexa", a), std::pair("cortexx", a), std::pair("cortexr", r), std::pair("cortexm", m),
          std::pair("starmc", m), std::pair("neoversee", a), std::pair("neoversen", a), std::pair("neoversev", a)})
        if (numbered(name, family)) return profile;
    return architecture(name);
}

std::string_view core_name(std::uint8_t implementer, std::uint16_t part) {
    for (const Core& each : cores)
        if (each.implementer != 0 && each.implementer == implementer && each.part == part) return each.name;
    return {};
}

const std::vector<std::string_view>& core_names() {
    static const std::vector<std::string_view> names = [] {
        std::vector<std::string_view> out;
        for (const Core& each : cores) out.push_back(each.name);
        return out;
    }();
    return names;
}

Status check_core(std::string_view what, std::string_view core) {
    if (core_profile(core)) return Nothing{};
    std::vector<std::pair<std::size_t, std::string_view>> near;
    const std::string word = bare(core.substr(0, 64));  // no name is longer
    for (const std::string_view name : core_names()) near.emplace_back(letter_changes(word, bare(name)), name);
    std::stable_sort(near.begin(), near.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    std::string known;
    for (const auto& [distance, name] : near) known += (known.empty() ? "" : ", ") + std::string(name);
    return Error{Errc::usage,
                 fmt::format("{} '{}': no core of that name is known. Known cores, the nearest names first: {}", what,
                             one_line(core), known)};
}

}  // namespace waymark::isa
