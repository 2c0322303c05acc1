/// How far samples can be trusted, what they count, and summary figures.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "spe_fill.h"
#include "waymark/capture/perf_part.h"
#include "waymark/core/numbers.h"

namespace waymark::analysis {
namespace {

using Severity = answers::Finding::Severity;

std::string bytes_text(std::uint64_t n) { return counted(n, "byte", "bytes"); }

/// The scale as text, such as `1,025 to 1,152.5 operations`; empty if not known.
std::string scale_text(const SpeFill& fill) {
    if (fill.quality.sampling.empty()) return {};
    const Sampling& s = fill.quality.sampling.front();
    return s.scale_low() == s.scale_high() ? fmt::format("{:.0f}", s.scale_low())
                                           : fmt::format("{:.0f} to {:.1f}", s.scale_low(), s.scale_high());
}

void metrics(SpeFill& fill) {
    const std::string scale = scale_text(fill);
    std::string note = "how many operations a sample represents is not known";
    if (!scale.empty())
        note = fmt::format("a sample represents about {} operations{}", scale,
                           fill.quality.sampling.front().filters.empty() ? "" : " of those the filters let pass");
    if (fill.quality.sampling.size() > 1) note += "; samples of several events, this is the first's interval";
    fill.out.metrics.push_back({"samples", "samples", false, note});
    fill.out.metrics.push_back({"latency cycles", "cycles", false, "sum of the samples' total latencies"});
    fill.out.metrics.push_back({"translation cycles", "cycles", false, "sum of what samples waited for the MMU"});
    fill.out.metrics.push_back({"last-level misses", "samples", false, "loads and stores that missed the last cache"});
    fill.out.metrics.push_back({"mispredictions", "samples", false, "branches that were predicted wrongly"});
}

/// PERF_RECORD_THROTTLE.
constexpr std::uint32_t throttle = 5;

void health(SpeFill& fill) {
    const Quality& q = fill.quality;
    fill.out.cut = !fill.capture.damage.empty() || !fill.totals.errors.empty() || q.container_losses != 0;
    for (const Error& error : fill.capture.damage) fill.say(Severity::bad, error.message, "Copy the file again");
    for (const Error& error : fill.totals.errors) fill.say(Severity::bad, error.message, "Copy the file again");
    if (q.container_losses != 0)
        fill.say(Severity::bad,
                 fmt::format("{} of the file's own structure {} damaged{}", counted(q.container_losses, "place"),
                             are(q.container_losses),
                             q.container_lost_bytes == 0 ? "" : ", " + bytes_text(q.container_lost_bytes) + " lost"),
                 "Copy the file again; the results cover only the part that could be read");
    if (const auto part = capture::perf::recorded_part(fill.capture.data->version); !part.ends.empty())
        fill.say(Severity::warning, fmt::format("The recording ended {}: later events are not in it", part.ends));
    if (q.unfinished)
        fill.say(Severity::warning, "The recorder was ended before it had finished the file",
                 "End perf record with Ctrl-C, and wait until it has ended");
    if (q.lost_bytes() != 0)
        fill.say(Severity::bad, fmt::format("{} of trace in no record", bytes_text(q.lost_bytes())),
                 "waymark spe quality shows on which CPU");
    if (q.damaged_bytes() != 0)
        fill.say(Severity::warning,
                 fmt::format("{} inside records {}; the records were kept", bytes_text(q.damaged_bytes()),
                             q.damaged_bytes() == 1 ? "is no packet" : "are no packets"));
    if (q.truncated.stretches != 0 || q.partial.stretches != 0)
        fill.say(Severity::warning,
                 fmt::format("The buffer was full in {}: samples are missing after them",
                             counted(q.truncated.stretches, "stretch", "stretches")),
                 "Record with a larger buffer (perf record -m ,16M) or a longer interval (-c)");
    if (q.collided.stretches != 0)
        fill.say(Severity::warning,
                 fmt::format("Samples collided in {}: the unit was still busy with the previous sample, so long "
                             "operations are sampled too rarely",
                             counted(q.collided.stretches, "stretch", "stretches")),
                 "Record with a longer interval (perf record -c)");
    if (const auto found = fill.capture.data->counts.find(throttle); found != fill.capture.data->counts.end())
        fill.say(Severity::warning,
                 fmt::format("The kernel stopped sampling {} for a while, because it took too much time",
                             counted(found->second, "time", "times")),
                 "Record with a longer interval, or raise kernel.perf_event_max_sample_rate");
    const auto overwritten = static_cast<std::uint64_t>(
        std::count_if(q.streams.begin(), q.streams.end(), [](const auto& s) { return s.overwritten.stretches != 0; }));
    if (overwritten != 0)
        fill.say(Severity::warning,
                 fmt::format("The buffers of {} are snapshots: each contains only the last samples",
                             counted(overwritten, "stream")),
                 "Record without a snapshot (perf record without -S) to have all samples");
    if (q.lost_events != 0)
        fill.say(Severity::warning,
                 fmt::format("perf lost {} about threads and mappings: names may be wrong",
                             counted(q.lost_events, "record", "records")),
                 "Record with a larger ring (perf record -m)");
    if (q.modelled)
        fill.say(Severity::note,
                 "Modelled, not silicon: operations, their order, addresses and branches are the program's; latencies, "
                 "data sources and events of caches, TLBs and prediction come from the modelled machine");
    for (const auto& [midr, erratum] : q.errata)
        fill.say(Severity::note, fmt::format("Erratum {} of {}: {}", erratum.number, core_name(midr), erratum.text));
    if (q.without_address != 0) {
        const std::string why = why_no_address(q);
        fill.say(Severity::note, fmt::format("No address of {} of loads and stores is known{}",
                                             counted(q.without_address, "sample", "samples"),
                                             why.empty() ? "" : fmt::format(" ({})", why)));
    }
    if (!fill.capture.bare && q.without_thread != 0)
        fill.say(Severity::note,
                 fmt::format("The thread is not known of {}", counted(q.without_thread, "sample", "samples")),
                 "Record with context packets (as root), or with switch events");
    if (!fill.capture.bare && q.without_mapping != 0)
        fill.say(Severity::note, fmt::format("{} outside every known mapping",
                                             counted(q.without_mapping, "sample lies", "samples lie")));
    if (!fill.capture.bare && !q.clock)
        fill.say(Severity::note,
                 "The file does not contain its clock: samples count as if every mapping had existed all the time");
    if (fill.capture.bare)
        fill.say(Severity::note, "Bare bytes of a buffer: neither threads nor programs nor the interval are known",
                 "perf record writes them all into its perf.data");
    if (fill.gathered.profile.rest().samples != 0)
        fill.say(Severity::note, fmt::format("{} at further addresses are only in the sum",
                                             counted(fill.gathered.profile.rest().samples, "sample", "samples")));
    if (fill.gathered.branches.rest().samples != 0)
        fill.say(Severity::note, fmt::format("{} had no room and are not among the branches",
                                             counted(fill.gathered.branches.rest().samples, "sample", "samples")));
    if (std::none_of(fill.out.account.begin(), fill.out.account.end(), [](const answers::AccountRow& row) {
            return answers::account_rule(row.reason).state == answers::AccountState::lost;
        }))
        fill.say(Severity::good, fill.capture.bare ? "No sample in these bytes is damaged" : "No sample was lost");
    if (q.selected != 0 && q.selected < answers::few_samples)
        fill.say(Severity::warning, fmt::format("{}: too few", counted(q.selected, "sample", "samples")),
                 "Record longer, or with a shorter interval (perf record -c)");
}

void summary(SpeFill& fill) {
    const Quality& q = fill.quality;
    const auto figure = [&](const char* name, std::string value, std::string note = {}) {
        fill.out.summary.push_back({name, std::move(value), std::move(note)});
    };
    figure("samples", grouped(q.selected),
           q.selected == q.records ? "" : fmt::format("of {} records", grouped(q.records)));
    figure("latency cycles", grouped(fill.gathered.profile.all().total), "of the samples, not of the program");
    if (const std::string scale = scale_text(fill); !scale.empty())
        figure("operations per sample", scale,
               fmt::format("interval {}", interval_text(fill.quality.sampling.front())));
    if (!q.sampling.empty()) {
        std::string filters;
        for (const std::string& f : q.sampling.front().filters) filters += (filters.empty() ? "" : "; ") + f;
        figure("filters", filters.empty() ? "none" : filters);
    }
    std::set<std::uint32_t> midrs;
    for (const StreamQuality& s : q.streams)
        if (s.records != 0) midrs.insert(s.midr);
    std::string cores;
    for (const std::uint32_t midr : midrs) cores += (cores.empty() ? "" : ", ") + core_name(midr, q.modelled);
    figure("cores", cores,
           q.modelled ? "latencies, data sources and events of caches, TLBs and prediction are the model's" : "");
    figure("threads", grouped(fill.gathered.profile.threads().size()));
}

}  // namespace

answers::Account samples_account(const SampleCapture& capture, const SampleTotals& totals, const Quality& q) {
    using answers::AccountReason;
    answers::Account out;
    const auto add = [&](answers::AccountRow row) {
        if (row.times != 0) answers::add(out, std::move(row));
    };
    // The size of damage, if it is known; 0 means not known.
    const auto known = [](std::uint64_t size) { return size != 0 ? std::optional(size) : std::nullopt; };
    std::uint64_t bytes = 0, damaged_streams = 0, overwritten = 0, missing = q.container_lost_bytes;
    for (const StreamQuality& s : q.streams) {
        bytes += s.bytes;
        overwritten += s.overwritten.stretches != 0 ? 1 : 0;
    }
    std::uint64_t damaged = 0;
    for (const StreamTotals& s : totals.streams) {
        const std::uint64_t here = s.totals.lost_bytes + s.totals.damaged_bytes;
        damaged += here;
        damaged_streams += here != 0 ? 1 : 0;
        missing += s.missing_bytes + s.unread_bytes;
    }
    const capture::perf::RecordedPart part = capture::perf::recorded_part(capture.data->version);
    if (!part.ends.empty()) add({.reason = AccountReason::after_end});
    if (!part.left_out.empty()) add({.reason = AccountReason::filtered, .of = part.left_out});
    // The remains of a damaged record may not show which code ran.
    if (q.selected != 0) {
        add({.reason = AccountReason::decoded, .bytes = bytes, .records = q.selected});
        add({.reason = AccountReason::sampled});
    }
    for (const Sampling& sampling : q.sampling)
        if (!sampling.filters.empty())
            add({.reason = AccountReason::filtered, .of = fmt::format("{}", fmt::join(sampling.filters, ", "))});
    add({.reason = AccountReason::packets, .times = damaged_streams, .bytes = known(damaged)});
    add({.reason = AccountReason::overflow, .times = q.truncated.stretches + q.partial.stretches});
    add({.reason = AccountReason::collided, .times = q.collided.stretches});
    add({.reason = AccountReason::overwritten, .times = overwritten});
    // Number of damaged or missing places in the file. Missing trace without a known place counts as one.
    const std::uint64_t places =
        q.container_losses + capture.damage.size() + totals.errors.size() + (q.unfinished ? 1U : 0U);
    add({.reason = AccountReason::cut,
         .times = std::max<std::uint64_t>(places, missing != 0 ? 1 : 0),
         .bytes = known(missing)});
    const auto throttled = capture.data->counts.find(throttle);
    add({.reason = AccountReason::recorder,
         .times = (throttled != capture.data->counts.end() ? throttled->second : 0) + q.lost_events});
    if (!capture.bare && q.without_thread != 0) add({.reason = AccountReason::no_context, .records = q.without_thread});
    return out;
}

void fill_sample_health(SpeFill& fill) {
    metrics(fill);
    fill.out.account = samples_account(fill.capture, fill.totals, fill.quality);
    health(fill);
    const bool filtered = has_reason(fill.out.account, answers::AccountReason::filtered);
    fill.out.trust.push_back(
        {"functions", "how many samples were taken where",
         fmt::format("shares of all that {}, with 95 % confidence intervals",
                     filtered ? "the filters let pass" : "ran"),
         fmt::format("calls, and what ran between samples{}", filtered ? " or was filtered out" : "")});
    summary(fill);
}

}  // namespace waymark::analysis
