#include "waymark/analysis/dpu_findings.h"

#include <fmt/format.h>

#include <algorithm>

#include "waymark/core/numbers.h"

namespace waymark::analysis {

namespace {

using answers::AccountReason;
using DpuKind = DpuFinding::Kind;
using enum answers::Finding::Severity;

/// `it` or `them`.
const char* pronoun(std::uint64_t n) { return n == 1 ? "it" : "them"; }

DpuFinding doubted_readings(const DpuDoubted& doubted, const DpuSaid& said, unsigned counter) {
    const bool one = doubted.readings == 1;
    std::string what = fmt::format(
        "{} of counters cannot be true: the trace is damaged {}, and {} omitted", counted(doubted.readings, "reading"),
        one ? fmt::format("at offset {:#x}", doubted.first->value)
            : fmt::format("from offset {:#x} to {:#x}", doubted.first->value, doubted.last->value),
        one ? "it is" : "they are");
    if (doubted.intervals != 0)
        what += fmt::format("; the time around {}, {}in {}, is <unattributed>", pronoun(doubted.readings),
                            said.events[counter].empty()
                                ? std::string()
                                : fmt::format("{} {} ", grouped(doubted.counts[counter]), said.events[counter]),
                            counted(doubted.intervals, "stretch", "stretches"));
    return {DpuKind::readings,
            bad,
            std::move(what),
            "The trace was damaged on its way: read the buffer again, or record again; waymark packets shows the "
            "entries",
            doubted.first,
            {},
            std::max(doubted.intervals, std::uint64_t{1}),
            {},
            doubted.readings};
}

/// `lossy`: count of intervals in which entries are missing.
DpuFinding wide_intervals(const DpuWide& wide, std::uint64_t intervals, bool lossy) {
    std::string names;
    for (unsigned c = 0; c < dpu::counter_count; ++c)
        if ((wide.counters >> c & 1U) != 0)
            names += fmt::format("{}{}", names.empty() ? "" : ", ", dpu::counter_name(c));
    return {
        lossy ? DpuKind::wide_lossy : DpuKind::wide,
        bad,
        fmt::format("{} {}in which a counter ({}) decreased by 2^30 or more{}: {}. Do not trust the output about {}",
                    counted(intervals, "interval"), lossy ? "with entries missing " : "", names,
                    wide.first ? fmt::format(", the first up to offset {:#x}", wide.first->value)
                               : std::string(", up to the final values"),
                    wide_means, pronoun(intervals)),
        lossy ? "First fix the cause of lost entries: they contain the readings in between"
              : "Read the counters more often (mode sample with a shorter period)",
        wide.first,
        {},
        intervals};
}

std::optional<AccountReason> reason_of(DpuKind kind) {
    switch (kind) {
        case DpuKind::no_room:
        case DpuKind::no_room_unseen: return AccountReason::overflow;
        case DpuKind::held:
        case DpuKind::off:
        case DpuKind::unplaced: return AccountReason::held;
        case DpuKind::overwritten: return AccountReason::overwritten;
        case DpuKind::cut_head: return AccountReason::unsynchronised;
        case DpuKind::cut: return AccountReason::cut;
        case DpuKind::gap:
        case DpuKind::next_to_gap: return AccountReason::packets;
        case DpuKind::incomplete: return AccountReason::recorder;
        case DpuKind::ended: return AccountReason::after_end;
        case DpuKind::readings:
        case DpuKind::wide:
        case DpuKind::wide_lossy:
        case DpuKind::beyond: return AccountReason::contradiction;
        case DpuKind::rewritten:
        case DpuKind::unmoved: return std::nullopt;
    }
    return std::nullopt;
}

}  // namespace

std::vector<DpuFinding> dpu_losses(const DpuSaid& said) {
    std::vector<DpuFinding> out;
    const dpu::Totals& t = said.totals;
    if (t.lost != 0)
        out.push_back({DpuKind::no_room,
                       warning,
                       fmt::format("{} found no room in the trace write buffer; the intervals around are "
                                   "<unattributed>",
                                   counted(t.lost, "entry", "entries")),
                       "Trace less: mode task instead of flow, a filter, or an ID",
                       {},
                       {},
                       1,
                       {},
                       t.lost});
    if (said.lost_unseen)
        out.push_back({DpuKind::no_room_unseen, warning,
                       "entries found no room in the trace write buffer (DP_MR.TLOST); the trace does not show how "
                       "many, and where",
                       "Trace less, or write less to DP_TD"});
    if (t.holds != 0)
        out.push_back({DpuKind::held,
                       warning,
                       fmt::format("tracing was held (TMPDIS) {}: events of that time are not in the trace; the "
                                   "intervals around it are <unattributed>",
                                   counted(t.holds, "time")),
                       "Hold tracing for a short time, or not at all",
                       {},
                       {},
                       t.holds});
    const std::uint64_t off = said.off_cycles.value_or(0);
    if (said.offs != 0 || off != 0)
        out.push_back({DpuKind::off,
                       warning,
                       fmt::format("tracing was off (EN = 0) {}{}: events of that time are not in the trace{}",
                                   said.offs != 0 ? counted(said.offs, "time") : std::string("at an end of the run"),
                                   off == 0          ? std::string()
                                   : said.run_cycles ? fmt::format(", for {} of the run's {}", grouped(off),
                                                                   counted(*said.run_cycles, "cycle"))
                                                     : fmt::format(", for {}", counted(off, "cycle")),
                                   said.offs != 0 ? "; the intervals around are <unattributed>" : ""),
                       "Leave tracing on from the first instruction to the last",
                       {},
                       {},
                       std::max(said.offs, std::uint64_t{1})});
    if (said.unplaced != 0)
        out.push_back({DpuKind::unplaced,
                       bad,
                       fmt::format("tracing was off (EN = 0) {}, but its place in the trace is not known: everything "
                                   "is read as one stretch of trace",
                                   counted(said.unplaced, "time")),
                       "Give DP_TSA, DP_TEA and DP_TW in dpu.ini",
                       {},
                       {},
                       said.unplaced});
    if (said.overwritten)
        out.push_back({DpuKind::overwritten, warning, "older trace was overwritten; earlier counts are <before>",
                       "Record into a larger buffer, or stop earlier"});
    if (said.missing_bytes != 0)
        out.push_back(
            {DpuKind::cut,
             bad,
             fmt::format("the file of the buffer lacks {} that the unit wrote", counted(said.missing_bytes, "byte")),
             "Give the whole file",
             {},
             {},
             1,
             said.missing_bytes});
    else if (said.cut)
        out.push_back({DpuKind::cut, bad, "the file of the buffer is cut", "Give the whole file"});
    for (unsigned r = 0; r < gap_reasons; ++r)
        if (const auto reason = static_cast<GapReason>(r); t.gap_bytes[r] != 0 && reason != GapReason::padding)
            out.push_back({said.overwritten && reason == GapReason::unsynchronised ? DpuKind::cut_head : DpuKind::gap,
                           warning,
                           fmt::format("{} in {}: {}", counted(t.gap_bytes[r], "byte"),
                                       counted(t.gaps[r], "stretch", "stretches"),
                                       reason == GapReason::framing ? "incomplete entries" : name(reason)),
                           {},
                           {},
                           reason,
                           std::max(t.gaps[r], std::uint64_t{1}),
                           t.gap_bytes[r]});
    if (!said.complete)
        out.push_back({DpuKind::incomplete, warning, "the unit still held trace when the buffer was read",
                       "Disable tracing and wait for DP_SR.TWBA to clear before reading"});
    if (!said.ended.empty())
        out.push_back({DpuKind::ended, warning,
                       fmt::format("the recording ended {}: later events are not in it", said.ended),
                       "Record with a larger --limit, or without one"});
    return out;
}

std::string dpu_left_out(const DpuSaid& said) {
    if (said.filter.empty()) return {};
    if (said.filter_changed)
        return fmt::format(
            "IDFLT was on for a part of the trace or changed: there, counts of others than {} are <filtered>",
            said.filter);
    return fmt::format("IDFLT: events of others than {} are not in the trace, and their counts are <filtered>",
                       said.filter);
}

answers::Account dpu_account(const DpuSaid& said, const DpuCosts& costs) {
    answers::Account out;
    if (said.totals.entry_bytes != 0)
        answers::add(out, {.reason = AccountReason::decoded,
                           .bytes = said.totals.entry_bytes,
                           .records = costs.readings() != 0 ? std::optional(costs.readings()) : std::nullopt});
    std::vector<DpuFinding> found = dpu_losses(said);
    for (DpuFinding& doubt : dpu_doubts(costs, said, 0)) found.push_back(std::move(doubt));
    for (const DpuFinding& each : found)
        if (const auto reason = reason_of(each.kind))
            answers::add(out, {.reason = *reason, .times = each.times, .bytes = each.bytes, .records = each.records});
    if (!said.filter.empty())
        answers::add(out, {.reason = AccountReason::filtered, .of = "others than " + said.filter});
    using enum dpu::TraceMode;
    if (said.mode == user || said.mode == user_raw)
        answers::add(out, {.reason = AccountReason::filtered,
                           .of = fmt::format("all but user data, by mode {}", said.mode_text)});
    if (said.mode == sw_sample || said.mode == edca5) answers::add(out, {.reason = AccountReason::sampled});
    return out;
}

bool is_whole(const DpuSaid& said, const DpuCosts& costs) {
    answers::Account account = dpu_account(said, costs);
    std::erase_if(account, [](const answers::AccountRow& row) { return row.reason == AccountReason::filtered; });
    return !answers::completeness(account).lower_bounds && !costs.has_unattributed();
}

std::vector<DpuFinding> dpu_doubts(const DpuCosts& costs, const DpuSaid& said, unsigned counter) {
    std::vector<DpuFinding> out;
    if (costs.doubted().readings != 0) out.push_back(doubted_readings(costs.doubted(), said, counter));
    const DpuWide& wide = costs.wide();
    if (wide.intervals != wide.lossy) out.push_back(wide_intervals(wide, wide.intervals - wide.lossy, false));
    if (wide.lossy != 0) out.push_back(wide_intervals(wide, wide.lossy, true));
    if (wide.beyond != 0)
        out.push_back({DpuKind::beyond,
                       bad,
                       fmt::format("{} in which WAIT or a stall counted more than CYCLES: a damaged word. Do not trust "
                                   "the output about {}",
                                   counted(wide.beyond, "interval"), pronoun(wide.beyond)),
                       "Read the buffer again, or record again",
                       {},
                       {},
                       wide.beyond});
    for (unsigned c = 0; c < dpu::counter_count; ++c)
        if (said.rewritten[c])
            out.push_back({DpuKind::rewritten, note,
                           fmt::format("the value of counter {} was written while tracing was on: differences across "
                                       "the write are not counts",
                                       dpu::counter_name(c))});
    if (said.totals.doubtful != 0)
        out.push_back({DpuKind::next_to_gap,
                       note,
                       fmt::format("{} next to damage, left out", counted(said.totals.doubtful, "entry", "entries")),
                       {},
                       {},
                       {},
                       1,
                       {},
                       said.totals.doubtful});
    const auto all = costs.reconciled(costs.total());
    bool any = false, moved = false;
    for (unsigned c = 0; c < dpu::counter_count; ++c) {
        any |= !said.events[c].empty();
        moved |= !said.events[c].empty() && all[c].sum != 0;
    }
    if (costs.readings() != 0 && any && !moved)
        out.push_back({DpuKind::unmoved, note,
                       "no counter changed: was one enabled (TENM of DP_TAC and DP_TBC), and did its event occur?"});
    return out;
}

}  // namespace waymark::analysis
