// Takes facts from the registers of a description.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "examination.h"
#include "waymark/protocol/adapters.h"

namespace waymark::doctor {

namespace {

using protocol::Certainty;
using protocol::Setting;

/// The setting that a fact from the bytes refers to, by the fact's words.
const Setting* setting_of(const std::vector<Setting>& settings, std::string_view what) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 4> other_words{
        {{"unit", "version"},
         {"cycle counts", "cycle counting"},
         {"branches", "branch output"},
         {"oldest packet", "pointer"}}};
    for (const auto& [fact, setting] : other_words)
        if (what == fact) what = setting;
    const std::string wanted = protocol::upper(what);
    const auto found = std::find_if(settings.begin(), settings.end(), [&](const Setting& s) {
        const std::string words = protocol::upper(protocol::setting_words(s));
        return words == wanted || words == wanted + " BYTES";
    });
    return found == settings.end() ? nullptr : &*found;
}

/// The value of a setting, as facts name it.
std::string value_of(const Setting& setting, std::string_view what) {
    if (const auto* const number = std::get_if<std::uint64_t>(&setting.value);
        number != nullptr && setting.name.ends_with("_bytes"))
        return *number == 0 ? "not traced" : counted(*number, "byte");
    std::string value = protocol::value_words(setting);
    if (what == "oldest packet") return "by the pointer, " + value;
    if (what == "unit") value.resize(std::min(value.size(), value.find_first_of(". ")));  // of `ETMv4.2`, `ETE 1.0`
    return value;
}

/// The registers of a description that decide about settings: registers with a bit that changes a setting.
class GivenSettings {
public:
    explicit GivenSettings(const pipeline::Source& described)
        : described_(described), settings_(described.configuration->settings()) {
        for (const capture::Register& given : described.registers) {
            std::vector<capture::Register> changed = described.registers;
            capture::Register& there = changed[static_cast<std::size_t>(&given - described.registers.data())];
            for (unsigned bit = 0; bit < std::min(given.bits, 64U); ++bit) {
                there.value = given.value ^ std::uint64_t{1} << bit;
                const protocol::Configured other =
                    described.protocol->configure({described.name, described.type, described.core_type, changed});
                if (other.configuration != nullptr) compare(other.configuration->settings(), given);
            }
        }
    }
    [[nodiscard]] const std::vector<Setting>& settings() const { return settings_; }
    /// `TRCIDR1=0x4100f401`; empty if no given register decides.
    [[nodiscard]] std::string registers_of(const Setting& setting) const {
        std::string out;
        const auto found = deciding_.find(setting.name);
        if (found == deciding_.end()) return out;
        for (const capture::Register& r : described_.registers)
            if (std::find(found->second.begin(), found->second.end(), r.name) != found->second.end())
                out += fmt::format("{}{}={:#x}", out.empty() ? "" : ", ", r.name, r.value);
        return out;
    }

private:
    void compare(const std::vector<Setting>& other, const capture::Register& given) {
        for (const Setting& mine : settings_) {
            const auto theirs =
                std::find_if(other.begin(), other.end(), [&](const Setting& s) { return s.name == mine.name; });
            if (theirs != other.end() && *theirs == mine) continue;
            std::vector<std::string>& names = deciding_[mine.name];
            if (std::find(names.begin(), names.end(), given.name) == names.end()) names.push_back(given.name);
        }
    }

    const pipeline::Source& described_;
    std::vector<Setting> settings_;
    std::map<std::string, std::vector<std::string>> deciding_;
};

}  // namespace

void take_given_facts(ExaminedSource& source, const pipeline::Source& described) {
    const auto open = [](const InferredField& f) { return f.certainty != Certainty::proven; };
    std::vector<InferredField>& facts = source.identity.facts;
    if (std::none_of(facts.begin(), facts.end(), open)) return;
    const GivenSettings given(described);
    const std::vector<Setting> settled = source.configuration->settings();
    for (InferredField& fact : facts) {
        if (!open(fact)) continue;
        if (fact.what == "core" && !described.core_type.empty()) {
            fact.value = described.core_type;
            fact.certainty = Certainty::proven;
            fact.proof = "the type of the core in the description";
            continue;
        }
        const Setting* const setting = setting_of(given.settings(), fact.what);
        if (setting == nullptr) continue;
        // If the bytes contradict a setting, that is a finding of its own.
        if (std::find(settled.begin(), settled.end(), *setting) == settled.end()) continue;
        const std::string registers = given.registers_of(*setting);
        if (registers.empty()) continue;
        fact.value = value_of(*setting, fact.what);
        fact.certainty = Certainty::proven;
        fact.proof = registers + " of the description";
    }
}

}  // namespace waymark::doctor
