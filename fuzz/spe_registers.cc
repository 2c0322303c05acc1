/// Registers as text from hostile files, and states of any values: reading ends, a plain dump of the read registers
/// reads the same again, and every state is explained.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "waymark/core/result.h"
#include "waymark/spe/explain.h"
#include "waymark/spe/register_file.h"

namespace {

using namespace waymark;

spe::Registers registers_of(const spe::Settings& settings) {
    spe::Registers r;
    for (const spe::NamedValue& setting : settings.settings)
        WM_CHECK(setting.name.find('.') == setting.name.npos ? r.set(setting.name, setting.value)
                                                             : r.set_field(setting.name, setting.value));
    return r;
}

void check_explained(const spe::Registers& registers) {
    for (unsigned version = 0; version <= static_cast<unsigned>(spe::Version::v1_5); ++version) {
        spe::State s;
        s.arch = spe::Architecture::of(static_cast<spe::Version>(version)).with(registers.pmsidr_el1);
        s.arch.rme = registers.scr_el3.nse;
        s.regs = registers;
        for (const bool current : {false, true}) {
            spe::ExplainOptions options;
            options.current_level_only = current;
            const spe::Explanation e = spe::explain(s, options);
            WM_CHECK(!e.levels.empty());
            for (const spe::Level& level : e.levels) {
                WM_CHECK(level.sampled || !level.samples());
                for (const spe::RegisterFinding& f : level.obstacles)
                    WM_CHECK(!f.text.empty() && !f.facts.empty() && !f.facts[0].name.empty());
            }
            for (const spe::RegisterFinding& finding : e.findings) WM_CHECK(!finding.text.empty());
        }
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto settings = spe::read_settings({reinterpret_cast<const char*>(data), size});
    if (!settings) {
        WM_CHECK(!settings.error().message.empty());
        return 0;
    }
    std::string dump;
    for (const spe::NamedValue& setting : settings->settings)
        dump += setting.name + " " + std::to_string(setting.value) + "\n";
    const spe::Registers registers = registers_of(*settings);
    const auto again = spe::read_settings(dump);
    // Sixteen decimal digits would be read as hexadecimal.
    bool plain = true;
    for (const spe::NamedValue& setting : settings->settings) plain &= std::to_string(setting.value).size() != 16;
    if (plain) WM_CHECK(again && again->settings == settings->settings && registers_of(*again) == registers);
    check_explained(registers);
    return 0;
}
