#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/sink/bus.h"
#include "waymark/sink/cti.h"
#include "waymark/sink/explain.h"
#include "waymark/sink/tmc.h"
#include "waymark/sink/tpiu.h"

namespace waymark::sink {

namespace {

using protocol::TraceEffect;

std::string upper(std::string_view text) {
    std::string out(text);
    for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return out;
}

/// The name in a row of names of one register: this toolkit's, the manuals', Linux's.
using Names = std::initializer_list<std::string_view>;

class PathExplainer {
public:
    PathExplainer(std::string unit, std::string document, std::string level,
                  const std::vector<RegisterValue>& registers)
        : registers_(registers) {
        out_.unit = std::move(unit);
        out_.document = std::move(document);
        out_.levels.push_back({std::move(level), {}});
    }

    [[nodiscard]] std::optional<std::uint64_t> value(Names names) const {
        for (const std::string_view name : names)
            for (const RegisterValue& r : registers_)
                if (upper(r.name) == name) return r.value;
        return std::nullopt;
    }
    /// The value of a register that decides.
    std::optional<std::uint64_t> asked(Names names) {
        const auto out = value(names);
        if (!out) out_.undecided.emplace_back(*names.begin());
        return out;
    }
    void find(TraceEffect effect, std::string field, std::string text, std::string remedy, std::string section) {
        out_.findings.push_back({effect, std::move(field), std::move(text), std::move(remedy), std::move(section)});
    }
    void content(std::string what, bool traced, std::string text, std::string field) {
        out_.contents.push_back({std::move(what), traced, std::move(text), std::move(field)});
    }
    [[nodiscard]] protocol::UnitExplanation take() { return std::move(out_); }

private:
    const std::vector<RegisterValue>& registers_;
    protocol::UnitExplanation out_;
};

/// `0, 2 and 5 to 7`: the numbers of the bits that are `wanted`.
std::string numbers(std::uint64_t bits, unsigned count, bool wanted) {
    std::vector<std::string> parts;
    const auto is = [&](unsigned n) { return n < count && ((bits >> n & 1U) != 0) == wanted; };
    for (unsigned n = 0; n < count; ++n) {
        if (!is(n)) continue;
        unsigned last = n;
        while (is(last + 1)) ++last;
        if (last > n + 1) {
            parts.push_back(fmt::format("{} to {}", n, last));
            n = last;
        } else {
            parts.push_back(std::to_string(n));
        }
    }
    std::string out;
    for (std::size_t i = 0; i < parts.size(); ++i)
        out += (i == 0 ? "" : i + 1 == parts.size() ? " and " : ", ") + parts[i];
    return out;
}

constexpr const char* bus_document = "docs/spec/trace-bus.md";

protocol::UnitExplanation explain_funnel(const std::vector<RegisterValue>& registers) {
    PathExplainer out("Funnel", bus_document, "what reaches the funnel", registers);
    constexpr std::uint64_t ports = 0xff;
    if (const auto control = out.asked({"FUNCTL", "CTRL_REG", "FUNNELCONTROL", "FUNNEL_CTRL", "CTL"})) {
        if ((*control & ports) == 0)
            out.find(TraceEffect::stops, "FUNCTL",
                     fmt::format("FUNCTL[7:0] is 0x00 (FUNCTL is {:#x}): all inputs are closed, and nothing passes",
                                 *control),
                     "write 1 to the bit of FUNCTL for the input of each source", "2.1");
        else if ((*control & ports) != ports)
            out.find(TraceEffect::may, "FUNCTL",
                     fmt::format("FUNCTL[7:0] is {:#04x}: only input {} is open, as usual where no other input has a "
                                 "source; trace that comes to input {} is lost",
                                 *control & ports, numbers(*control, 8, true), numbers(*control, 8, false)),
                     "if a source is at one of these inputs, write 1 to its bit of FUNCTL", "2.1");
        if ((*control & 0xf00) == 0xf00)
            out.find(TraceEffect::note, "FUNCTL.HT", "FUNCTL[11:8] is 0xf: this hold time is reserved",
                     "write 0x3 to bits 11:8: four transactions", "2.1");
    }
    return out.take();
}

protocol::UnitExplanation explain_replicator(const std::vector<RegisterValue>& registers) {
    PathExplainer out("Replicator", bus_document, "what reaches the replicator", registers);
    for (const unsigned n : {0U, 1U}) {
        const std::string name = fmt::format("IDFILTER{}", n);
        const auto filter = n == 0 ? out.value({"IDFILTER0"}) : out.value({"IDFILTER1"});
        if (!filter || (*filter & 0xff) == 0) continue;
        std::string ids;
        for (unsigned bit = 0; bit < 8; ++bit)
            if ((*filter >> bit & 1U) != 0)
                ids += fmt::format("{}{:#04x} to {:#04x}", ids.empty() ? "" : ", ", 16 * bit, 16 * bit + 15);
        const bool all = (*filter & 0xff) == 0xff;
        const auto other = n == 0 ? out.value({"IDFILTER1"}) : out.value({"IDFILTER0"});
        // As software gives all trace to one of two sinks.
        const bool usual = all && other && (*other & 0xff) == 0;
        out.find(
            usual ? TraceEffect::note : TraceEffect::may, name,
            all ? fmt::format("{}[7:0] is 0xff: output {} takes no trace", name, n)
                : fmt::format("{}[7:0] is {:#04x}: output {} leaves out trace IDs {}", name, *filter & 0xff, n, ids),
            fmt::format("write 0 to {} if the sink of output {} is to have this trace", name, n), "3.1");
    }
    const auto first = out.asked({"IDFILTER0"}), second = out.asked({"IDFILTER1"});
    if (first && second)
        if (const std::uint64_t both = *first & *second & 0xff; both == 0xff)
            out.find(TraceEffect::stops, "IDFILTER0", "IDFILTER0 and IDFILTER1 are 0xff: neither output takes trace",
                     "write 0 to the filter of the output whose sink is read", "3.1");
    return out.take();
}

protocol::UnitExplanation explain_port(const std::vector<RegisterValue>& registers, bool saved) {
    PathExplainer out("TPIU", bus_document, "what reaches the trace port", registers);
    const auto ffcr = out.asked({"FFCR", "FFCTRL", "TPIU_FFCR"});
    const auto size = out.value({"CSPSR", "CURRENT_PORT_SIZE", "TPIU_CSPSR"});
    const auto sizes = out.value({"SSPSR", "SUPPORTED_PORT_SIZES", "TPIU_SSPSR"});
    const auto status = out.value({"FFSR", "FFSTS", "TPIU_FFSR"});
    if (size && ((*size & (*size - 1)) != 0 || *size == 0))
        out.find(TraceEffect::may, "CSPSR",
                 fmt::format("CSPSR is {:#x}: not exactly one bit is 1, so the size of the "
                             "port is UNPREDICTABLE",
                             *size),
                 "write 1 to bit n - 1 alone, for n pins", "4.1");
    else if (size && sizes && (*size & *sizes) == 0)
        out.find(TraceEffect::may, "CSPSR",
                 fmt::format("CSPSR is {:#x}, a size that SSPSR, {:#x}, does not have", *size, *sizes),
                 "write a bit that is 1 in SSPSR", "4.1");
    if (ffcr) {
        const bool continuous = (*ffcr & Tpiu::en_f_cont) != 0, frames = (*ffcr & Tpiu::en_ftc) != 0;
        if (!continuous && !frames)
            out.find(TraceEffect::note, "FFCR.EnFTC",
                     "FFCR.EnFTC and FFCR.EnFCont are 0: trace leaves without its source's ID, so trace of several "
                     "sources cannot be separated",
                     "write 1 to FFCR.EnFTC and FFCR.EnFCont while the formatter is stopped", "4.2");
        else if (!continuous)
            out.find(TraceEffect::note, "FFCR.EnFCont",
                     "FFCR.EnFCont is 0: frames have no synchronisation between them, and the analyser needs the pin "
                     "TRACECTL",
                     "write 1 to FFCR.EnFCont for an analyser without TRACECTL", "4.2");
        const std::uint64_t stops = Tpiu::stop_fl | Tpiu::stop_trig;
        if (status && (*status & Tpiu::ft_stopped) != 0)
            out.find(saved                  ? TraceEffect::note
                     : (*ffcr & stops) != 0 ? TraceEffect::may
                                            : TraceEffect::stops,
                     "FFSR.FtStopped",
                     (*ffcr & Tpiu::stop_trig) != 0
                         ? "FFSR.FtStopped is 1 and FFCR.StopTrig is 1: a trigger or a flush stopped the formatter"
                     : (*ffcr & Tpiu::stop_fl) != 0
                         ? "FFSR.FtStopped is 1 and FFCR.StopFl is 1: a flush stopped the formatter"
                         : "FFSR.FtStopped is 1: the formatter has stopped and accepts no trace",
                     "write 0 to FFCR.StopFl and FFCR.StopTrig", "4.4");
        out.content("source IDs", continuous || frames, "frames of 16 bytes", "FFCR.EnFTC");
        out.content("synchronisation", continuous, "between frames, for a reader that begins anywhere", "FFCR.EnFCont");
        out.content("trigger marks", continuous && (*ffcr & (Tpiu::trig_in | Tpiu::trig_evt | Tpiu::trig_fl)) != 0, "",
                    "FFCR.TrigIn");
    }
    if (const auto count = out.value({"FSCR", "TPIU_FSCR"}); count && (*count & 0xfff) == 0)
        out.find(TraceEffect::note, "FSCR",
                 "FSCR is 0: no synchronisation is sent periodically, so a reader must have "
                 "the trace from its beginning",
                 "write 0x40 to FSCR: a full sync each 64 frames", "4.3");
    if (const auto pattern = out.value({"CTPR", "CURRENT_TEST_PATTERN_MODES"}); pattern && (*pattern & 0x30000) != 0)
        out.find(TraceEffect::stops, "CTPR", fmt::format("CTPR is {:#x}: the port sends a test pattern", *pattern),
                 "write 0 to CTPR", "4.1");
    return out.take();
}

protocol::UnitExplanation explain_cti(const std::vector<RegisterValue>& registers) {
    PathExplainer out("CTI", "docs/spec/cti.md", "triggers", registers);
    const auto on = out.value({"CTICONTROL", "CTICTRL", "CONTROL"});
    if (on && (*on & 1U) == 0)
        out.find(TraceEffect::note, "CTICONTROL.GLBEN",
                 "CTICONTROL.GLBEN is 0: no trigger is passed on, so nothing that is to stop at a trigger stops",
                 "write 1 to CTICONTROL.GLBEN", "3");
    std::uint64_t in = 0, left = 0;
    bool any = false;
    std::string inputs, outputs;
    for (unsigned n = 0; n < Cti::most; ++n) {
        const std::string enable = fmt::format("CTIINEN{}", n), to = fmt::format("CTIOUTEN{}", n);
        if (const auto v = out.value({enable})) {
            any = true;
            in |= *v;
            if (*v != 0)
                inputs += fmt::format("{}input {} to channel {}", inputs.empty() ? "" : ", ", n, numbers(*v, 32, true));
        }
        if (const auto v = out.value({to})) {
            any = true;
            left |= *v;
            if (*v != 0)
                outputs +=
                    fmt::format("{}channel {} to output {}", outputs.empty() ? "" : ", ", numbers(*v, 32, true), n);
        }
    }
    if (any && in == 0 && left == 0)
        out.find(TraceEffect::note, "CTIINEN", "CTIINENn and CTIOUTENn are 0: no trigger is mapped to a channel",
                 "write the channel's bit to CTIINENn of the input, and to CTIOUTENn of the output", "3");
    if (const auto gate = out.value({"CTIGATE", "GATE"}); gate && (in & ~*gate) != 0)
        out.find(TraceEffect::note, "CTIGATE",
                 fmt::format("CTIGATE is {:#x}: channels {} do not reach the other interfaces", *gate,
                             numbers(in & ~*gate, 32, true)),
                 "write 1 to the channel's bit of CTIGATE", "3");
    out.content("inputs", !inputs.empty(), inputs, "CTIINENn");
    out.content("outputs", !outputs.empty(), outputs, "CTIOUTENn");
    return out.take();
}

constexpr std::string_view device_types[] = {"TMC-ETR", "TMC", "TPIU", "Funnel", "Replicator", "CTI"};

bool is_one_of(std::string_view name, Names names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}

template <class Model>
bool has_register(std::string_view name) {
    constexpr std::uint32_t end = 0x400;
    for (std::uint32_t offset = 0; offset < end; offset += 4)
        if (Model::register_name(offset) == name) return true;
    return false;
}

}  // namespace

bool device_has(std::string_view type, std::string_view written) {
    const std::string name = upper(written);
    const bool only_etr = is_one_of(name, {"AXICTL", "DBALO", "DBAHI", "RRPHI", "RWPHI"});
    if (type == "TMC-ETR") return has_register<Tmc>(name);
    if (type == "TMC") return has_register<Tmc>(name) && !only_etr;
    if (type == "TPIU")
        return has_register<Tpiu>(name) ||
               is_one_of(name, {"CURRENT_PORT_SIZE", "SUPPORTED_PORT_SIZES", "CURRENT_TEST_PATTERN_MODES"}) ||
               name.starts_with("TPIU_");
    if (type == "Funnel")
        return has_register<BusFunnel>(name) || is_one_of(name, {"CTRL_REG", "FUNNELCONTROL", "FUNNEL_CTRL",
                                                                 "PRIORITY_CTRL_REG", "PRIORITYCONTROL", "PRIORITY"});
    if (type == "Replicator") return has_register<BusReplicator>(name);
    return type == "CTI" && has_register<Cti>(name);
}

std::string_view device_with(const std::vector<std::string>& names) {
    std::string_view best;
    std::ptrdiff_t most = 0;
    // Of equal ones the later: it has no register that is not among the names.
    for (const std::string_view type : device_types) {
        const auto has =
            std::count_if(names.begin(), names.end(), [&](const std::string& name) { return device_has(type, name); });
        if (has == 0 || has < most || (has == most && type != "TMC")) continue;
        best = type;
        most = has;
    }
    return best;
}

std::optional<ExplainedDevice> explain_device(std::string_view type, const std::vector<RegisterValue>& registers,
                                              bool saved) {
    if (const auto kind = kind_of(type)) return ExplainedDevice{SinkRole::sink, explain(*kind, registers, saved)};
    const std::string written = upper(type);
    const auto has = [&](std::initializer_list<std::string_view> words) {
        return std::any_of(words.begin(), words.end(),
                           [&](std::string_view word) { return written.find(word) != written.npos; });
    };
    if (has({"TPIU"})) return ExplainedDevice{SinkRole::sink, explain_port(registers, saved)};
    if (has({"FUNNEL", "CSTF", "CSATBFUNNEL"})) return ExplainedDevice{SinkRole::link, explain_funnel(registers)};
    if (has({"REPLICATOR", "REPLIC"})) return ExplainedDevice{SinkRole::link, explain_replicator(registers)};
    if (has({"CTI"})) return ExplainedDevice{SinkRole::triggers, explain_cti(registers)};
    return std::nullopt;
}

}  // namespace waymark::sink
