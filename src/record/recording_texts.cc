#include "waymark/record/recording_texts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "waymark/core/wire.h"

namespace waymark::record {

Result<std::pair<std::string, std::uint64_t>> read_setting(const std::string& text, std::string_view option,
                                                           std::string_view example) {
    const auto equals = text.find('=');
    std::uint64_t value = 0;
    if (equals == text.npos || !wire::scan_number(text.substr(equals + 1), value))
        return Error{Errc::usage, fmt::format("{} {}: expected such as {}", option, text, example)};
    return std::pair(text.substr(0, equals), value);
}

Result<std::optional<sink::PathSetup>> read_sink(const std::string& text, std::optional<std::uint64_t> after,
                                                 bool scatter_list) {
    if (text.empty()) {
        if (after)
            return Error{Errc::usage,
                         "--stop-after-trigger is only for --sink, as in --sink tmc-etb --stop-after-trigger 1024"};
        if (scatter_list) return Error{Errc::usage, "--scatter-list is only for --sink tmc-etr"};
        return std::optional<sink::PathSetup>();
    }
    const std::size_t colon = text.find(':');
    const std::string kind = text.substr(0, colon);
    std::uint64_t number = 0;
    if (colon != text.npos && !wire::scan_number(text.substr(colon + 1), number))
        return Error{Errc::usage, fmt::format("--sink {}: expected {} after the colon, as in {}", text,
                                              kind == "tpiu" ? "the number of pins" : "the size in bytes",
                                              kind == "tpiu" ? "tpiu:4" : kind + ":4096")};
    if (kind == "tpiu") {
        constexpr unsigned usual_pins = 4, most_pins = 32;
        if (after || scatter_list)
            return Error{Errc::usage,
                         "--stop-after-trigger and --scatter-list are for trace buffers, not for --sink tpiu"};
        sink::PathSetup port;
        port.port_pins =
            colon == text.npos ? usual_pins : static_cast<unsigned>(std::min<std::uint64_t>(number, most_pins + 1));
        return std::optional(std::move(port));
    }
    std::vector<std::string_view> names;
    std::optional<sink::SinkSetup> out;
    for (const sink::SinkName& one : sink::sink_names()) {
        names.push_back(one.name);
        if (one.name == kind) out = sink::SinkSetup{.buffer = {.kind = one.kind}};
    }
    if (!out)
        return Error{Errc::usage, fmt::format("--sink {}: there are {}, each with :BYTES or without, and tpiu, with "
                                              ":PINS or without; etr and trbe go with --as perf only",
                                              text, fmt::join(names, ", "))};
    if (scatter_list && out->buffer.kind != sink::SinkKind::etr)
        return Error{Errc::usage, fmt::format("--scatter-list is only for --sink tmc-etr, not for {}", kind)};
    if (colon != text.npos) out->buffer.memory_bytes = number;
    // The address of an ETR's memory does not matter here, but the setup needs one.
    constexpr std::uint64_t somewhere = 0x80000000;
    if (out->buffer.kind == sink::SinkKind::etr) out->buffer.base = somewhere;
    out->after_trigger = after;
    out->scatter_list = scatter_list;
    return std::optional(sink::PathSetup{.buffer = std::move(out), .registers = {}});
}

Result<std::vector<flow::RegisterSetting>> strobing(const std::string& text) {
    constexpr unsigned long most = 65535;
    const std::size_t slash = text.find('/');
    const auto number = [](const std::string& digits) -> std::uint64_t {
        if (digits.empty() || digits.size() > 5 || digits.find_first_not_of("0123456789") != digits.npos) return 0;
        return std::stoul(digits);
    };
    const std::uint64_t window = number(text.substr(0, slash)),
                        period = slash == text.npos ? 0 : number(text.substr(slash + 1));
    if (window == 0 || period == 0 || window > most || period > most)
        return Error{Errc::usage, fmt::format("--strobe {}: expected WINDOW/PERIOD, two numbers from 1 to {}, such as "
                                              "5000/10000",
                                              text, most)};
    const auto set = [](std::string name, std::uint64_t value, std::string field = {}) {
        return flow::RegisterSetting{std::move(name), std::move(field), value, "--strobe"};
    };
    return std::vector{set("TRCRSCTLR2", 0x20001),      set("TRCRSCTLR3", 0x20002),  set("TRCCNTRLDVR0", window),
                       set("TRCCNTVR0", window),        set("TRCCNTCTLR0", 0x10001), set("TRCCNTRLDVR1", period),
                       set("TRCCNTVR1", period),        set("TRCCNTCTLR1", 0x8102),  set("TRCSEQEVR0", 0x0081),
                       set("TRCVICTLR", 3, "EVENT.SEL")};
}

}  // namespace waymark::record
