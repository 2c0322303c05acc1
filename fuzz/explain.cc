/// What `waymark explain` reads: settings, files of registers, device files of snapshots of trace sources and buffers.
/// Everything is explained or refused with a reason; and what stops a unit by a part of the registers stops it by all.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/capture/device_file.h"
#include "waymark/core/result.h"
#include "waymark/doctor/explain.h"

namespace {

using namespace waymark;

void check_sentences(const doctor::ExplainedSource& unit) {
    const protocol::UnitExplanation& e = unit.explanation;
    WM_CHECK(!e.unit.empty() && !e.document.empty() && !e.levels.empty());
    for (const protocol::TraceCondition& f : e.findings) WM_CHECK(!f.text.empty() && !f.section.empty());
    for (const protocol::TracedLevel& level : e.levels) {
        WM_CHECK(!level.name.empty());
        for (const protocol::TraceCondition& f : level.obstacles)
            WM_CHECK(!f.text.empty() && f.effect != protocol::TraceEffect::note);
    }
    for (const protocol::TraceContent& content : e.contents) WM_CHECK(!content.what.empty());
    WM_CHECK(unit.undecided_contents.empty() || unit.undecided_contents.size() == e.contents.size());
    for (const std::string& name : e.undecided) WM_CHECK(!name.empty());
}

void check_explained(const doctor::GivenRegisters& given) {
    const auto units = doctor::explain_registers(given, {});
    if (!units) {
        WM_CHECK(!units.error().message.empty());
        return;
    }
    WM_CHECK(!units->empty());
    for (const doctor::ExplainedSource& unit : *units) check_sentences(unit);
}

/// Each register counts once, so that leaving one out leaves nothing else in its place.
std::vector<flow::RegisterSetting> settings_in(std::string_view text) {
    std::vector<flow::RegisterSetting> out;
    const auto read = flow::read_register_settings(text, "registers");
    if (!read) return out;
    std::set<std::string> names;
    for (const flow::RegisterSetting& setting : *read) {
        // `trcconfig` and TRCCONFIGR are one register.
        std::string name;
        for (const char c : setting.name) name += static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
        if (!name.empty() && name.back() == 'R') name.pop_back();
        if (names.insert(name).second) out.push_back(setting);
    }
    return out;
}

void check_parts(const std::vector<flow::RegisterSetting>& all) {
    const auto whole = doctor::explain_settings(all, {});
    if (!whole) return;
    for (const unsigned kept : {0U, 1U}) {
        std::vector<flow::RegisterSetting> part;
        for (std::size_t i = 0; i < all.size(); ++i)
            if (i % 2 == kept) part.push_back(all[i]);
        const auto some = doctor::explain_settings(part, {});
        // Other names may belong to another unit.
        if (!some || some->explanation.document != whole->explanation.document) continue;
        if (some->explanation.stopped()) WM_CHECK(whole->explanation.stopped());
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size > 4096) return 0;
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    check_explained({{{"registers.txt", std::string(text)}}, {}});
    if (const auto device = capture::read_device_file(text, "device.ini"))
        for (const capture::Problem& problem : device->problems) WM_CHECK(!problem.message.empty());
    check_parts(settings_in(text));
    return 0;
}
