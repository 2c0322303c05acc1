#include "diagnosis.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/pft/protocol.h"

namespace waymark::pft {

namespace {

using protocol::CaptureFinding;
using protocol::Severity;
using protocol::Stretch;

std::string bytes_text(std::uint64_t n) { return counted(n, "byte"); }
std::string hex(Address address) { return fmt::format("{:#010x}", address.value); }

class Findings {
public:
    void add(Severity severity, std::string kind, std::optional<Offset> at, std::string found, std::string expected,
             std::string cause, std::string advice) {
        findings_.push_back({severity,
                             std::move(kind),
                             {},
                             {},
                             at,
                             std::move(found),
                             std::move(expected),
                             std::move(cause),
                             std::move(advice)});
    }
    [[nodiscard]] std::vector<CaptureFinding> take() { return std::move(findings_); }

private:
    std::vector<CaptureFinding> findings_;
};

}  // namespace

protocol::Settled settle_on(const Recognised& identity, const Config& ini, const std::vector<Stretch>& stretches,
                            std::string_view source) {
    Findings out;
    const Likeness as_described = likeness(stretches, ini);
    const auto wrong = [&](std::string kind, std::string says, std::string bytes, std::string reg) {
        out.add(
            Severity::error, std::move(kind),
            as_described.first_error ? as_described.first_error : as_described.first_context_change,
            fmt::format("{}; parsed so, {} ({}) without packets, and {} without a statement", says,
                        counted(as_described.errors, "stretch", "stretches"), bytes_text(as_described.lost_bytes),
                        counted(as_described.context_changes, "Context ID changes", "Context IDs change")),
            fmt::format("{}: so {} without packets", bytes, counted(identity.likeness.errors, "stretch", "stretches")),
            "the registers were read before or after another setting was in force, or from another unit",
            fmt::format("correct {} of {}", reg, source));
    };
    const bool worse = as_described.against() > identity.likeness.against();
    if (worse && ini.cycle_accurate != identity.config.cycle_accurate && identity.cycle_accurate_proven)
        wrong("cycle-accurate", ini.cycle_accurate ? "ETMCR says cycle-accurate" : "ETMCR says no cycle counts",
              identity.config.cycle_accurate ? "cycle counts in the bytes" : "no cycle counts in the bytes",
              "ETMCR bit 12");
    if (worse && ini.context_id_bytes != identity.config.context_id_bytes && identity.context_id_proven)
        wrong("context-id-size", fmt::format("ETMCR says Context IDs of {}", bytes_text(ini.context_id_bytes)),
              fmt::format("Context IDs of {}", bytes_text(identity.config.context_id_bytes)), "ETMCR bits 15:14");
    if (worse && ini.timestamp_bytes != identity.config.timestamp_bytes && identity.timestamp_size_proven)
        wrong("timestamp-size", fmt::format("ETMCCER says timestamps of {} bits", ini.timestamp_bytes == 9 ? 64 : 48),
              fmt::format("timestamps of {} bits", identity.config.timestamp_bytes == 9 ? 64 : 48), "ETMCCER bit 29");
    if (identity.encoding_proven && ini.gray_timestamps != identity.config.gray_timestamps &&
        ini.timestamp_bytes == identity.config.timestamp_bytes)
        out.add(Severity::warning, "timestamp-encoding",
                ini.gray_timestamps ? identity.likeness.first_backwards_gray : identity.likeness.first_backwards_binary,
                fmt::format("with the encoding of ETMCCER, {} of {} backwards",
                            ini.gray_timestamps ? identity.likeness.backwards_gray : identity.likeness.backwards_binary,
                            counted(identity.likeness.timestamps, "timestamp goes", "timestamps go")),
                ini.gray_timestamps ? "natural binary" : "Gray code", "ETMCCER or ETMIDR is of another unit",
                fmt::format("correct ETMCCER bit 28 of {}", source));
    if (!ini.timestamps && identity.likeness.timestamps != 0)
        out.add(Severity::warning, "timestamps-on", identity.likeness.first_timestamp,
                fmt::format("{}, but ETMCR bit 28 is 0", counted(identity.likeness.timestamps, "timestamp")),
                "ETMCR bit 28 set", "ETMCR is not the value in force while tracing",
                fmt::format("correct ETMCR of {}", source));
    // The description is trusted unless the bytes contradict it.
    Config config = ini;
    if (worse) {
        config.cycle_accurate = identity.config.cycle_accurate;
        config.context_id_bytes = identity.config.context_id_bytes;
        config.timestamp_bytes = identity.config.timestamp_bytes;
        if (identity.encoding_proven) config.gray_timestamps = identity.config.gray_timestamps;
    }
    return {configuration(config), out.take()};
}

std::vector<CaptureFinding> health_of(const Config& config, const std::vector<Stretch>& stretches) {
    Findings out;
    const Likeness p = likeness(stretches, config);
    if (p.errors != 0)
        out.add(Severity::warning, "damaged-packets", p.first_error,
                fmt::format("{} ({}) without packets, under any configuration",
                            counted(p.errors, "stretch", "stretches"), bytes_text(p.lost_bytes)),
                "packets up to the next A-sync", "bytes were damaged or lost on their way",
                "trace continues at the A-sync behind each; read the buffer again if it matters");
    if (p.overflows != 0)
        out.add(Severity::warning, "overflow", p.first_overflow,
                fmt::format("the unit's FIFO overflowed {}", counted(p.overflows, "time")), "none",
                "the sources send more than the trace bus takes",
                "trace less (address ranges, no cycle counts, no branch broadcast), or widen the trace port");
    if (p.unsynchronised_bytes != 0)
        out.add(Severity::note, "unsynchronised", stretches.front().offsets.capture({0}),
                fmt::format("{} before an A-sync", bytes_text(p.unsynchronised_bytes)), "an A-sync first",
                stretches.size() > 1 ? "the beginning of a buffer that wrapped, and of each examined piece"
                                     : "the beginning of a buffer that wrapped",
                "waymark flow --recover gives what can be recovered; a smaller ETMSYNCFR loses less");
    if (p.spacings != 0 && p.most_spacing > 16 * 1024)
        out.add(Severity::warning, "sync-spacing", p.first_async,
                fmt::format("up to {} between A-syncs (least {}, mean {})", bytes_text(p.most_spacing), p.least_spacing,
                            p.spacing_sum / p.spacings),
                "about 1024 bytes", "ETMSYNCFR is large or 0",
                "a smaller ETMSYNCFR: less is lost at each damage, and at the beginning of the buffer");
    const std::uint64_t backwards = config.gray_timestamps ? p.backwards_gray : p.backwards_binary;
    if (backwards != 0)
        out.add(Severity::warning, "time-backwards",
                config.gray_timestamps ? p.first_backwards_gray : p.first_backwards_binary,
                fmt::format("{} of {} {} below the one before", backwards, counted(p.timestamps, "timestamp"),
                            are(backwards)),
                "timestamps that grow", "the time source was set again, damage, or another encoding",
                "do not compare times across these places");
    if (p.padding_bytes > 64)
        out.add(Severity::note, "trailing-zeros", p.first_padding,
                fmt::format("{} of zeros at the end", bytes_text(p.padding_bytes)), "trace", "the buffer was not full",
                "nothing");
    return out.take();
}

std::vector<CaptureFinding> differences_of(const Config& proven, const Config& described, std::string_view source) {
    Findings out;
    if (proven.return_stack != described.return_stack)
        out.add(Severity::error, "return-stack", {},
                fmt::format("ETMCR says return stack {}; decoded so, the image is contradicted",
                            described.return_stack ? "on" : "off"),
                fmt::format("return stack {}", proven.return_stack ? "on" : "off"),
                "ETMCR is not the value in force while tracing", fmt::format("correct ETMCR bit 29 of {}", source));
    if (proven.barrier_waypoints != described.barrier_waypoints)
        out.add(Severity::error, "barrier-waypoints", {},
                fmt::format("ETMCCER says DMB and DSB are {}waypoints", described.barrier_waypoints ? "" : "no "),
                proven.barrier_waypoints ? "waypoints" : "no waypoints", "ETMCCER is of another unit",
                fmt::format("correct ETMCCER bit 24 of {}", source));
    return out.take();
}

std::string sentence_of(const flow::Inconsistency& what) {
    using flow::Conflict;
    const std::string found = hex(what.found), expected = hex(what.expected);
    switch (what.conflict) {
        case Conflict::sync_disagrees:
            return what.found == what.expected
                       ? fmt::format("the I-sync confirms {}, but not the instruction set or context reached", found)
                       : fmt::format("the I-sync contains {}, but the walk has reached {}", expected, found);
        case Conflict::branch_disagrees:
            return fmt::format("the branch packet goes to {}, the image's direct branch to {}", expected, found);
        case Conflict::update_behind:
            return fmt::format("the waypoint update contains {}, which the walk has passed ({} is next)", expected,
                               found);
        case Conflict::no_return_address:
            return fmt::format("no address for the indirect branch at {}, nor a return stack entry", found);
        case Conflict::undefined_reached:
            return fmt::format("an atom leads over the undefined instruction at {}", found);
        case Conflict::runaway_walk:
            return fmt::format("an atom, but no branch up to {}, which is farther than any block goes", found);
        case Conflict::update_disagrees:
            return fmt::format("the waypoint update names {}, but the program leads to {}", expected, found);
        case Conflict::vmid_missing:
            return "VMIDs are traced (ETMCR bit 30), but none is between an I-sync and the packet here";
        case Conflict::always_taken:
            return fmt::format("an atom shows that the branch at {} was not taken, but it has no condition", found);
        case Conflict::address_disagrees: return fmt::format("the trace goes on at {}, from {}", expected, found);
        case Conflict::no_exception_return:
            return fmt::format("an exception return, but the instruction at {} is not one", found);
        case Conflict::time_goes_back:
            return fmt::format("a timestamp of {} after one of {}", what.expected.value, what.found.value);
    }
    return {};
}

}  // namespace waymark::pft
