#include "waymark/sink/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <string>
#include <utility>

#include "waymark/core/numbers.h"

namespace waymark::sink {

namespace {

using protocol::TraceEffect;

bool equal_letters(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](unsigned char x, unsigned char y) { return std::toupper(x) == std::toupper(y); });
}

std::optional<std::uint64_t> value_of(const std::vector<RegisterValue>& registers, std::string_view name) {
    for (const RegisterValue& r : registers)
        if (equal_letters(r.name, name)) return r.value;
    return std::nullopt;
}

class BufferExplainer {
public:
    BufferExplainer(SinkKind kind, const std::vector<RegisterValue>& registers, bool saved)
        : kind_(kind), registers_(registers), saved_(saved) {}

    protocol::UnitExplanation explain() {
        out_.unit = name(kind_);
        out_.document = "docs/spec/tmc.md";
        out_.levels.push_back({"what reaches the buffer", {}});
        capture();
        stopped();
        level();
        memory();
        contents();
        return std::move(out_);
    }

private:
    [[nodiscard]] std::optional<std::uint64_t> value(std::string_view name) const { return value_of(registers_, name); }
    std::optional<std::uint64_t> asked(std::string_view name) {
        const auto out = value(name);
        if (!out && std::find(out_.undecided.begin(), out_.undecided.end(), name) == out_.undecided.end())
            out_.undecided.emplace_back(name);
        return out;
    }
    [[nodiscard]] bool bit(std::string_view name, std::uint32_t mask) const {
        return (value(name).value_or(0) & mask) != 0;
    }
    void find(TraceEffect effect, std::string field, std::string text, std::string remedy, std::string section) {
        out_.findings.push_back({effect, std::move(field), std::move(text), std::move(remedy), std::move(section)});
    }
    [[nodiscard]] bool circular() const { return kind_ == SinkKind::etb11 || value("MODE") == 0; }
    /// Whether the registers show that trace was written. They never show that none was written: reading makes RRP
    /// equal to RWP.
    [[nodiscard]] bool shows_trace() const {
        if (circular() && bit("STS", Sts::full)) return true;
        const auto written = value("RWP"), read = value("RRP");
        return written && read && *written != *read;
    }
    /// Whether the registers show that there is no trace left to read.
    [[nodiscard]] bool nothing_left() const {
        const auto written = value("RWP");
        return written && written == value("RRP") && value("STS") && !bit("STS", Sts::full);
    }

    void capture() {
        const auto ctl = asked("CTL");
        if (!ctl || (*ctl & Ctl::trace_capt_en) != 0) return;
        const std::string remedy = saved_ ? "" : "program the other registers, then write 1 to CTL.TraceCaptEn";
        // A value read after the stop does not describe the time before.
        if (shows_trace()) {
            find(TraceEffect::note, "CTL.TraceCaptEn",
                 fmt::format("CTL.TraceCaptEn is 0: capture was off when the registers were read; before that it was "
                             "on, as {} shows",
                             circular() && bit("STS", Sts::full) ? "STS.Full" : "RWP"),
                 "", "2.1");
        } else if (!saved_ && nothing_left()) {
            find(TraceEffect::stops, "CTL.TraceCaptEn",
                 "CTL.TraceCaptEn is 0: capture is off, or was when the registers were read, and nothing is left to "
                 "read",
                 remedy, "2.1");
        } else {
            if (!saved_)
                for (const std::string_view name : {"RWP", "RRP", "STS"}) static_cast<void>(asked(name));
            find(TraceEffect::note, "CTL.TraceCaptEn",
                 "CTL.TraceCaptEn is 0: capture was off when the registers were read; they do not show whether it was "
                 "on before",
                 remedy, "2.1");
        }
    }

    void stopped() {
        const bool by_trigger = bit("FFCR", Ffcr::stop_on_trig_evt) && bit("STS", Sts::triggered);
        if (by_trigger)
            find(TraceEffect::may, "FFCR.StopOnTrigEvt",
                 "FFCR.StopOnTrigEvt is 1 and STS.Triggered is 1: the trigger counter reached 0, and what came after "
                 "that was not captured",
                 "write a larger number to TRG for more trace after the trigger, or 0 to FFCR.StopOnTrigEvt", "3.2");
        if (bit("FFCR", Ffcr::stop_on_trig_evt) && value("STS") && !bit("STS", Sts::triggered) && circular()) {
            const auto left = value("TRG");
            const bool stopped = bit("STS", Sts::ready);
            find(TraceEffect::note, "STS.Triggered",
                 fmt::format(
                     "FFCR.StopOnTrigEvt is 1 and STS.Triggered is 0: the trigger had not stopped the capture when "
                     "the registers were read; no trigger came, or {} was stored after it",
                     stopped || !left ? std::string("too little trace")
                                      : fmt::format("less than the {:#x} words of TRG and one more", *left)),
                 "check what makes the trigger, and the path from there to TRIGIN: the unit's event, the trace bus, "
                 "the cross-trigger channels",
                 "3.2");
        }
        const bool ft_stopped = bit("FFSR", Ffsr::ft_stopped) && bit("CTL", Ctl::trace_capt_en);
        if (ft_stopped && !by_trigger && bit("FFCR", Ffcr::stop_on_fl))
            find(TraceEffect::may, "FFCR.StopOnFl",
                 "FFCR.StopOnFl is 1 and the formatter has stopped (FFSR.FtStopped): a flush ended the capture",
                 "write 0 to FFCR.StopOnFl if flushes must not end the capture", "3.3");
        else if (ft_stopped && !by_trigger) {
            const bool maybe_by_trigger = bit("FFCR", Ffcr::stop_on_trig_evt) && !asked("STS");
            find(
                !value("FFCR") || maybe_by_trigger ? TraceEffect::may
                : saved_                           ? TraceEffect::note
                                                   : TraceEffect::stops,
                "FFSR.FtStopped",
                maybe_by_trigger ? "FFSR.FtStopped is 1: the formatter has stopped; STS, which shows whether the "
                                   "trigger stopped it, is not given"
                : value("FFCR")
                    ? "FFSR.FtStopped is 1: the formatter has stopped and accepts no trace"
                    : "FFSR.FtStopped is 1: the formatter has stopped; FFCR, which selects what stops it, is not given",
                "write 0 to CTL.TraceCaptEn, wait for STS.TMCReady, and write 1 again", "3.3");
        }
        if (bit("STS", Sts::mem_err))
            find(TraceEffect::stops, "STS.MemErr",
                 "STS.MemErr is 1: a write to memory failed, or authentication forbids it, and the formatter stopped",
                 "check DBALO, DBAHI and AXICTL, and that invasive debug is permitted; then write 1 to STS.MemErr",
                 "2.2");
    }

    void level() {
        const auto mode = kind_ == SinkKind::etb11 ? std::optional<std::uint64_t>(0) : asked("MODE");
        if (mode && *mode != 0) {
            find(TraceEffect::may, "MODE",
                 *mode == 2
                     ? "MODE is 2, hardware FIFO: trace passes on to the next sink, and nothing is kept here"
                     : "MODE is 1, software FIFO: trace stays until it is read from RRD; what does not fit is lost",
                 "write 0 to MODE, with CTL.TraceCaptEn 0, for a circular buffer", "2.3");
            return;
        }
        const bool on = bit("CTL", Ctl::trace_capt_en);
        if (on && bit("STS", Sts::empty))
            find(TraceEffect::may, "STS.Empty",
                 fmt::format(
                     "STS.Empty is 1: capture is on, and no trace had come when the registers were read{}. Check what "
                     "is before the buffer: the ports of the funnel, the replicator's filter, and the sources",
                     circular() ? "" : ", or, in a FIFO mode, everything was read"),
                 "", "2.2");
        else if (nothing_left() && !saved_)
            find(TraceEffect::may, "RWP",
                 "RWP and RRP are equal and STS.Full is 0: nothing is left to read; nothing was written, or "
                 "everything was read",
                 "", "2.4");
        if (bit("STS", Sts::full))
            find(TraceEffect::note, "STS.Full",
                 fmt::format("STS.Full is 1: {}the buffer wrapped, the oldest trace is overwritten, and the oldest "
                             "byte that is left lies at RWP",
                             circular() ? "" : "in circular mode "),
                 "", "2.2");
    }

    void memory() {
        const auto words = value("RSZ"), trg = value("TRG");
        if (words && *words == 0)
            find(TraceEffect::stops, "RSZ", "RSZ is 0: there is no memory to write to",
                 kind_ == SinkKind::etr ? "write the size of the memory in words to RSZ" : "", "2.4");
        if (words && trg && *words != 0 && *trg + 1 >= *words)
            find(
                TraceEffect::note, "TRG",
                fmt::format("TRG is {:#x}, not below the {:#x} words of the memory: when the counter has run down, the "
                            "trigger itself is overwritten",
                            *trg, *words),
                "write a smaller number to TRG", "3.2");
        if (value("FFCR") && !bit("FFCR", Ffcr::en_ft))
            find(TraceEffect::note, "FFCR.EnFt",
                 "FFCR.EnFt is 0: trace is stored without its source's ID, so trace of several sources cannot be "
                 "separated",
                 "write 1 to FFCR.EnFt while the formatter is stopped", "3.1");
    }

    void contents() {
        if (!value("FFCR")) {
            out_.undescribed.emplace_back("FFCR");
            return;
        }
        const auto row = [&](std::string what, std::uint32_t mask, std::string text, std::string field) {
            out_.contents.push_back({std::move(what), bit("FFCR", mask), std::move(text), "FFCR." + std::move(field)});
        };
        row("source IDs", Ffcr::en_ft, "frames of 16 bytes", "EnFt");
        row("trigger marks", Ffcr::en_ti, "", "EnTI");
    }

    SinkKind kind_;
    const std::vector<RegisterValue>& registers_;
    bool saved_;
    protocol::UnitExplanation out_;
};

}  // namespace

std::optional<SinkKind> kind_of(std::string_view type) {
    const auto holds = [&](std::string_view word) {
        return std::search(type.begin(), type.end(), word.begin(), word.end(), [](unsigned char a, unsigned char b) {
                   return std::toupper(a) == std::toupper(b);
               }) != type.end();
    };
    if (holds("ETR")) return SinkKind::etr;
    if (holds("ETF")) return SinkKind::etf;
    if (holds("ETB")) return holds("TMC") ? SinkKind::etb : SinkKind::etb11;
    if (holds("TMC")) return SinkKind::etb;
    return std::nullopt;
}

protocol::UnitExplanation explain(SinkKind kind, const std::vector<RegisterValue>& registers, bool saved) {
    return BufferExplainer(kind, registers, saved).explain();
}

NotHeld not_held(SinkKind kind, const std::vector<RegisterValue>& registers) {
    const auto bit = [&](std::string_view name, std::uint32_t mask) {
        return (value_of(registers, name).value_or(0) & mask) != 0;
    };
    const bool circular = kind == SinkKind::etb11 || value_of(registers, "MODE").value_or(0) == 0;
    return {.older = circular && bit("STS", Sts::full),
            .later = bit("FFCR", Ffcr::stop_on_trig_evt) && bit("STS", Sts::triggered)};
}

}  // namespace waymark::sink
