#include "waymark/pft/likeness.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/pft/parser.h"
#include "waymark/pft/state.h"

namespace waymark::pft {

namespace {

using protocol::Certainty;
using protocol::Identity;
using protocol::Stretch;

/// Counts the packets of one stretch.
class Counter {
public:
    Counter(Likeness& out, const Stretch& stretch, const Config& config)
        : out_(out), stretch_(stretch), config_(config) {}

    template <class P>
    void operator()(const P& packet, Extent at) {
        ++out_.packets;
        count(packet, at);
    }
    void operator()(const Gap& gap) {
        context_.reset();
        last_async_.reset();
        timestamps_.forget();
        previous_.reset();
        switch (gap.reason) {
            case GapReason::reserved_header:
            case GapReason::malformed_packet:
                ++out_.errors;
                out_.lost_bytes += gap.bytes();
                note(out_.first_error, gap.first);
                break;
            case GapReason::padding:
                out_.padding_bytes += gap.bytes();
                note(out_.first_padding, gap.first);
                break;
            case GapReason::incomplete_packet:
            case GapReason::stopped: break;
            case GapReason::unsynchronised:
            case GapReason::framing:
            case GapReason::missing: out_.unsynchronised_bytes += gap.bytes(); break;
        }
    }

private:
    void note(std::optional<Offset>& first, Offset at) const {
        if (!first) first = stretch_.offsets.capture(at);
    }
    void count(const ASync&, Extent at) {
        ++out_.asyncs;
        note(out_.first_async, at.first);
        if (last_async_) {
            const std::uint64_t spacing = at.first - *last_async_;
            out_.least_spacing = std::min(out_.least_spacing, spacing);
            out_.most_spacing = std::max(out_.most_spacing, spacing);
            out_.spacing_sum += spacing;
            ++out_.spacings;
        }
        last_async_ = at.first;
    }
    void count(const ISync& p, Extent at) {
        ++out_.isyncs;
        if (p.reason == ISyncReason::overflow_restart) {
            ++out_.overflows;
            note(out_.first_overflow, at.first);
        }
        if (config_.context_id_bytes == 0) return;
        if (p.reason == ISyncReason::periodic && context_ && *context_ != p.context_id) {
            ++out_.context_changes;
            note(out_.first_context_change, at.first);
        }
        context_ = p.context_id;
    }
    void count(const ContextId& p, Extent) { context_ = p.context_id; }
    void count(const Timestamp& p, Extent at) {
        ++out_.timestamps;
        note(out_.first_timestamp, at.first);
        if (p.value.bytes == config_.timestamp_bytes) ++out_.whole_timestamps;
        timestamps_.update(p.value, config_);
        if (!timestamps_.known()) return;
        const std::uint64_t sent = timestamps_.transmitted();
        if (previous_) {
            if (from_gray(sent) < from_gray(*previous_)) {
                ++out_.backwards_gray;
                note(out_.first_backwards_gray, at.first);
            }
            if (sent < *previous_) {
                ++out_.backwards_binary;
                note(out_.first_backwards_binary, at.first);
            }
        }
        previous_ = sent;
    }
    void count(const BranchAddress& p, Extent) {
        ++out_.branches;
        if (p.exception() != 0) ++out_.exceptions;
    }
    void count(const Atom& p, Extent) { out_.atoms += p.outcome.atoms.count; }
    void count(const Vmid&, Extent) { ++out_.vmids; }
    void count(const ExceptionReturn&, Extent) { ++out_.exception_returns; }
    void count(const auto&, Extent) {}

    Likeness& out_;
    const Stretch& stretch_;
    const Config& config_;
    std::optional<std::uint32_t> context_;
    std::optional<Offset> last_async_;
    TimestampState timestamps_;
    std::optional<std::uint64_t> previous_;
};

std::string text(std::uint8_t context_id_bytes) {
    return context_id_bytes == 0 ? "not traced" : counted(context_id_bytes, "byte");
}

std::string verdict(const Likeness& p) {
    if (p.asyncs == 0) return "no A-sync (00 00 00 00 00 80)";
    if (p.isyncs == 0) return fmt::format("{}, but no I-sync", counted(p.asyncs, "A-sync"));
    return fmt::format(
        "{}, {}, {}, {} ({}) without packets{}", counted(p.packets, "packet"), counted(p.asyncs, "A-sync"),
        counted(p.isyncs, "I-sync"), counted(p.errors, "stretch", "stretches"), counted(p.lost_bytes, "byte"),
        p.context_changes != 0 ? fmt::format(", {} unsaid", counted(p.context_changes, "Context ID that changes",
                                                                    "Context IDs that change"))
                               : "");
}

/// Whether the bytes are Program Flow Trace or a part of a stream; some damage is no reason to doubt.
bool is_like(const Likeness& p) {
    if (p.asyncs == 0 || p.isyncs == 0) return false;
    const std::uint64_t parsed = p.bytes - p.lost_bytes - p.unsynchronised_bytes - p.padding_bytes;
    return p.errors * 4 <= p.asyncs + p.isyncs && p.lost_bytes * 2 <= parsed;
}

struct Alternative {
    Config config;
    Likeness parse;
};

std::vector<Alternative> alternatives(const std::vector<Stretch>& stretches) {
    std::vector<Alternative> out;
    for (const bool cycles : {false, true})
        for (const std::uint8_t context : std::initializer_list<std::uint8_t>{0, 1, 2, 4})
            for (const std::uint8_t timestamp : std::initializer_list<std::uint8_t>{7, 9}) {
                Config c;
                c.cycle_accurate = cycles;
                c.context_id_bytes = context;
                c.timestamp_bytes = timestamp;
                out.push_back({c, likeness(stretches, c)});
            }
    return out;
}

/// The minimum evidence against any alternative with another value of this field; nullopt if there is none.
template <class Field>
const Alternative* best_other(const std::vector<Alternative>& all, const Alternative& best, Field&& field) {
    const Alternative* other = nullptr;
    for (const Alternative& a : all)
        if (field(a.config) != field(best.config) && (other == nullptr || a.parse.against() < other->parse.against()))
            other = &a;
    return other;
}

void find_facts(Identity& to, Recognised& out, const std::vector<Alternative>& all, const Alternative& best) {
    const auto compare = [&](auto&& field, std::string what, std::string value, auto&& other_value) {
        const Alternative* other = best_other(all, best, field);
        const bool proven = other->parse.against() > best.parse.against();
        to.facts.push_back({std::move(what), std::move(value), proven ? Certainty::proven : Certainty::assumed,
                            proven ? fmt::format("{}: {}, here {}", other_value(other->config),
                                                 counted(other->parse.against(), "contradiction"), best.parse.against())
                                   : fmt::format("{} would parse as well", other_value(other->config))});
        return proven;
    };
    const Likeness& p = best.parse;
    out.cycle_accurate_proven = compare(
        [](const Config& c) { return c.cycle_accurate; }, "cycle counts", best.config.cycle_accurate ? "yes" : "no",
        [](const Config& c) { return std::string(c.cycle_accurate ? "with them" : "without them"); });
    out.context_id_proven =
        compare([](const Config& c) { return c.context_id_bytes; }, "Context ID", text(best.config.context_id_bytes),
                [](const Config& c) { return text(c.context_id_bytes); });
    if (p.timestamps != 0) {
        const auto bits = [](const Config& c) { return fmt::format("{} bits", c.timestamp_bytes == 9 ? 64 : 48); };
        out.timestamp_size_proven =
            compare([](const Config& c) { return c.timestamp_bytes; }, "timestamps", bits(best.config), bits);
        out.encoding_proven = p.backwards_gray != p.backwards_binary;
        to.facts.push_back({"timestamp encoding", out.config.gray_timestamps ? "Gray" : "natural binary",
                            out.encoding_proven ? Certainty::proven : Certainty::assumed,
                            out.encoding_proven ? fmt::format("as Gray code {} of {} go backwards, as binary {}",
                                                              p.backwards_gray, p.timestamps, p.backwards_binary)
                                                : "too few timestamps to decide"});
    } else {
        to.facts.push_back({"timestamps", "none", Certainty::likely, "no timestamp packet"});
    }
    std::string why;
    if (p.vmids != 0) why = counted(p.vmids, "VMID packet");
    if (p.exception_returns != 0) why = counted(p.exception_returns, "exception return packet");
    if (p.timestamps != 0 && best.config.timestamp_bytes == 9 && out.timestamp_size_proven) why = "64-bit timestamps";
    if (!out.config.gray_timestamps && out.encoding_proven) why = "timestamps in natural binary";
    out.version_proven = !why.empty();
    if (!why.empty())
        out.config.minor_version = 1;
    else
        out.config.minor_version = p.timestamps != 0 && out.config.gray_timestamps && out.encoding_proven ? 0 : 1;
    to.facts.push_back({"version", fmt::format("PFT v1.{}", out.config.minor_version),
                        out.version_proven ? Certainty::proven : Certainty::assumed,
                        !why.empty()                    ? why + ", which only v1.1 has"
                        : out.config.minor_version == 0 ? "Gray code, and nothing that only v1.1 has"
                                                        : "nothing in the bytes distinguishes v1.0 from v1.1"});
}

std::string syncs_text(const Likeness& p) {
    if (p.spacings == 0) return counted(p.asyncs, "A-sync");
    if (p.least_spacing == p.most_spacing)
        return fmt::format("{} A-syncs, {} apart", grouped(p.asyncs), counted(p.least_spacing, "byte"));
    return fmt::format("{} A-syncs, {} to {} bytes apart, {} in the mean", grouped(p.asyncs), grouped(p.least_spacing),
                       grouped(p.most_spacing), grouped(p.spacing_sum / p.spacings));
}

}  // namespace

std::uint64_t Likeness::against() const {
    // With a wrong size of timestamps, no timestamp is ever whole.
    return errors + context_changes + (timestamps != 0 && whole_timestamps == 0 ? timestamps : 0);
}

Likeness likeness(const std::vector<Stretch>& stretches, const Config& config) {
    Likeness out;
    for (const Stretch& stretch : stretches) {
        Counter counter(out, stretch, config);
        Parser<Counter> parser(config, counter);
        out.bytes += protocol::feed(parser, stretch, [&] { return parser.progress().amid_packet(); });
        parser.finish();
    }
    return out;
}

std::shared_ptr<const Recognised> recognise(const std::vector<Stretch>& stretches, Identity& to) {
    const std::vector<Alternative> all = alternatives(stretches);
    const auto best = std::min_element(all.begin(), all.end(), [](const Alternative& a, const Alternative& b) {
        return a.parse.against() < b.parse.against();
    });
    to.tried.push_back({"Program Flow Trace (PTM), 16 configurations", "at best " + verdict(best->parse)});
    if (!is_like(best->parse)) return nullptr;
    const auto out = std::make_shared<Recognised>();
    out->config = best->config;
    out->likeness = best->parse;
    for (const Alternative& a : all) {
        Config same = a.config;
        same.context_id_bytes = best->config.context_id_bytes;
        if (same == best->config && a.config != best->config && a.parse.against() == best->parse.against())
            out->context_sizes.push_back(a.config.context_id_bytes);
    }
    out->config.timestamps = best->parse.timestamps != 0;
    out->config.vmid_trace = best->parse.vmids != 0;
    out->config.gray_timestamps = best->parse.backwards_gray <= best->parse.backwards_binary;
    if (out->config.timestamp_bytes == 9) out->config.gray_timestamps = false;
    find_facts(to, *out, all, *best);
    to.waypoints = best->parse.atoms + best->parse.branches - best->parse.exceptions;
    to.first_sync = best->parse.first_async;
    to.remarks.emplace_back("syncs", syncs_text(best->parse));
    return out;
}

}  // namespace waymark::pft
