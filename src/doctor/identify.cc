#include "waymark/doctor/identify.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "text.h"
#include "waymark/dpu/decoder.h"
#include "waymark/pft/parser.h"
#include "waymark/pft/state.h"
#include "waymark/spe/decoder.h"

namespace waymark::doctor {

namespace {

std::uint64_t bytes_of(const std::vector<Stretch>& stretches) {
    std::uint64_t sum = 0;
    for (const Stretch& stretch : stretches) sum += stretch.bytes.size();
    return sum;
}

/// Counts the packets of one stretch.
class PftCounter {
public:
    PftCounter(PftParse& out, const Stretch& stretch, const pft::Config& config)
        : out_(out), stretch_(stretch), config_(config) {}

    template <class P>
    void operator()(const P& packet, pft::Extent at) {
        ++out_.packets;
        count(packet, at);
    }
    void operator()(const Gap& gap) {
        context_.reset();
        last_async_.reset();
        gray_ = binary_ = {};
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
                out_.cut_bytes += gap.bytes();
                note(out_.first_cut, gap.first);
                break;
            case GapReason::unsynchronised:
            case GapReason::framing: out_.unsynchronised_bytes += gap.bytes(); break;
        }
    }

private:
    void note(std::optional<Offset>& first, Offset at) const {
        if (!first) first = stretch_.offsets.capture(at);
    }
    void count(const pft::ASync&, pft::Extent at) {
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
    void count(const pft::ISync& p, pft::Extent at) {
        ++out_.isyncs;
        if (p.hyp) ++out_.hyp;
        if (p.reason == pft::ISyncReason::overflow_restart) {
            ++out_.overflows;
            note(out_.first_overflow, at.first);
        }
        if (p.reason == pft::ISyncReason::periodic) {
            ++out_.periodic_isyncs;
            if (config_.context_id_bytes != 0 && context_ && *context_ != p.context_id) {
                ++out_.context_changes;
                note(out_.first_context_change, at.first);
            }
        }
        if (config_.context_id_bytes != 0) context_ = p.context_id;
    }
    void count(const pft::ContextId& p, pft::Extent) {
        ++out_.context_ids;
        context_ = p.context_id;
    }
    void count(const pft::Timestamp& p, pft::Extent at) {
        ++out_.timestamps;
        note(out_.first_timestamp, at.first);
        if (p.value.bytes == config_.timestamp_bytes) ++out_.whole_timestamps;
        gray_.update(p.value, config_);
        if (!gray_.known()) return;
        const std::uint64_t sent = gray_.transmitted();
        if (previous_) {
            if (pft::from_gray(sent) < pft::from_gray(*previous_)) {
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
    void count(const pft::BranchAddress& p, pft::Extent) {
        ++out_.branches;
        if (p.exception() != 0) ++out_.exceptions;
        if (p.hyp) ++out_.hyp;
    }
    void count(const pft::Atom& p, pft::Extent) { out_.atoms += p.outcome.atoms.count; }
    void count(const pft::Vmid&, pft::Extent) { ++out_.vmids; }
    void count(const pft::ExceptionReturn&, pft::Extent) { ++out_.exception_returns; }
    void count(const auto&, pft::Extent) {}

    PftParse& out_;
    const Stretch& stretch_;
    const pft::Config& config_;
    std::optional<std::uint32_t> context_;
    std::optional<Offset> last_async_;
    pft::TimestampState gray_, binary_;
    std::optional<std::uint64_t> previous_;
};

std::string text(std::uint8_t context_id_bytes) {
    return context_id_bytes == 0 ? "not traced" : counted(context_id_bytes, "byte");
}

std::string verdict(const PftParse& p) {
    if (p.asyncs == 0) return "no A-sync (00 00 00 00 00 80)";
    if (p.isyncs == 0) return fmt::format("{}, but no I-sync", counted(p.asyncs, "A-sync"));
    return fmt::format(
        "{}, {}, {}, {} ({}) without packets{}", counted(p.packets, "packet"), counted(p.asyncs, "A-sync"),
        counted(p.isyncs, "I-sync"), counted(p.errors, "stretch", "stretches"), counted(p.lost_bytes, "byte"),
        p.context_changes != 0 ? fmt::format(", {} unsaid", counted(p.context_changes, "Context ID that changes",
                                                                    "Context IDs that change"))
                               : "");
}

/// Program Flow Trace, or some of it: damage here and there is no reason to doubt.
bool is_pft(const PftParse& p) {
    if (p.asyncs == 0 || p.isyncs == 0) return false;
    const std::uint64_t parsed = p.bytes - p.lost_bytes - p.unsynchronised_bytes - p.padding_bytes;
    return p.errors * 4 <= p.asyncs + p.isyncs && p.lost_bytes * 4 <= parsed;
}

struct Alternative {
    pft::Config config;
    PftParse parse;
};

std::vector<Alternative> alternatives(const std::vector<Stretch>& stretches) {
    std::vector<Alternative> out;
    for (const bool cycles : {false, true})
        for (const std::uint8_t context : std::initializer_list<std::uint8_t>{0, 1, 2, 4})
            for (const std::uint8_t timestamp : std::initializer_list<std::uint8_t>{7, 9}) {
                pft::Config c;
                c.cycle_accurate = cycles;
                c.context_id_bytes = context;
                c.timestamp_bytes = timestamp;
                out.push_back({c, parse_pft(stretches, c)});
            }
    return out;
}

/// The least that speaks against any alternative with another value of this field; nothing if there is none.
template <class Field>
const Alternative* best_other(const std::vector<Alternative>& all, const Alternative& best, Field&& field) {
    const Alternative* other = nullptr;
    for (const Alternative& a : all)
        if (field(a.config) != field(best.config) && (other == nullptr || a.parse.against() < other->parse.against()))
            other = &a;
    return other;
}

void find_facts(Identity& out, const std::vector<Alternative>& all, const Alternative& best) {
    const auto compare = [&](auto&& field, std::string what, std::string value, auto&& other_value) {
        const Alternative* other = best_other(all, best, field);
        const bool proven = other->parse.against() > best.parse.against();
        out.facts.push_back({std::move(what), std::move(value), proven,
                             proven
                                 ? fmt::format("{}: {}, here {}", other_value(other->config),
                                               counted(other->parse.against(), "contradiction"), best.parse.against())
                                 : fmt::format("{} would parse as well", other_value(other->config))});
        return proven;
    };
    const PftParse& p = best.parse;
    out.cycle_accurate_proven =
        compare([](const pft::Config& c) { return c.cycle_accurate; }, "cycle counts",
                best.config.cycle_accurate ? "yes" : "no",
                [](const pft::Config& c) { return std::string(c.cycle_accurate ? "with them" : "without them"); });
    out.context_id_proven =
        compare([](const pft::Config& c) { return c.context_id_bytes; }, "Context ID",
                text(best.config.context_id_bytes), [](const pft::Config& c) { return text(c.context_id_bytes); });
    if (p.timestamps != 0) {
        const auto bits = [](const pft::Config& c) { return fmt::format("{} bits", c.timestamp_bytes == 9 ? 64 : 48); };
        out.timestamp_size_proven =
            compare([](const pft::Config& c) { return c.timestamp_bytes; }, "timestamps", bits(best.config), bits);
        out.encoding_proven = p.backwards_gray != p.backwards_binary;
        out.facts.push_back({"timestamp encoding", out.config.gray_timestamps ? "Gray" : "natural binary",
                             out.encoding_proven,
                             out.encoding_proven ? fmt::format("as Gray code {} of {} go backwards, as binary {}",
                                                               p.backwards_gray, p.timestamps, p.backwards_binary)
                                                 : "too few timestamps to tell"});
    } else {
        out.facts.push_back({"timestamps", "none", true, "no timestamp packet"});
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
    out.facts.push_back({"version", fmt::format("PFT v1.{}", out.config.minor_version), out.version_proven,
                         !why.empty()                    ? why + ", which only v1.1 has"
                         : out.config.minor_version == 0 ? "Gray code, and nothing that only v1.1 has"
                                                         : "nothing in the bytes tells v1.0 from v1.1"});
}

bool try_pft(Identity& out, const std::vector<Stretch>& stretches) {
    const std::vector<Alternative> all = alternatives(stretches);
    const auto best = std::min_element(all.begin(), all.end(), [](const Alternative& a, const Alternative& b) {
        return a.parse.against() < b.parse.against();
    });
    out.tried.push_back({"Program Flow Trace (PTM), 16 configurations", "at best " + verdict(best->parse)});
    if (!is_pft(best->parse)) return false;
    out.protocol = Protocol::pft;
    out.config = best->config;
    out.parse = best->parse;
    out.config.timestamps = out.parse.timestamps != 0;
    out.config.vmid_trace = out.parse.vmids != 0;
    out.config.gray_timestamps = out.parse.backwards_gray <= out.parse.backwards_binary;
    if (out.config.timestamp_bytes == 9) out.config.gray_timestamps = false;
    find_facts(out, all, *best);
    return true;
}

class CountRecords final : public spe::RecordSink {
public:
    void consume(const spe::RecordBatch& batch) override {
        for (std::size_t i = 0; i < batch.records.size; ++i) {
            const spe::Record r = batch.records.row(i);
            // What a sample has: where it was, and what it was.
            if (r.defects == 0 && r.has(spe::Column::pc) && r.has(spe::Column::events) && r.has(spe::Column::operation))
                ++sound;
        }
    }
    std::uint64_t sound = 0;
};

bool try_spe(Identity& out, const std::vector<Stretch>& stretches) {
    std::uint64_t records = 0, sound = 0, lost = 0, bytes = 0, padding = 0;
    for (const Stretch& stretch : stretches) {
        CountRecords sink;
        spe::Decoder decoder(sink);
        decoder.feed(stretch.bytes);
        decoder.finish();
        const spe::Totals& t = decoder.totals();
        records += t.records;
        sound += sink.sound;
        lost += t.lost_bytes + t.damaged_bytes;
        padding += t.padding_bytes;
        bytes += t.bytes;
    }
    out.tried.push_back({"Statistical Profiling records",
                         fmt::format("{}, {} of them sound, {} of {} in none", counted(records, "record"), sound, lost,
                                     counted(bytes, "byte"))});
    if (sound == 0 || sound * 2 < records || lost * 4 > bytes - padding) return false;
    out.protocol = Protocol::spe;
    out.entries = records;
    out.lost_bytes = lost;
    return true;
}

class NoElements final : public dpu::ElementSink {
public:
    void consume(const dpu::Batch&) override {}
};

bool try_dpu(Identity& out, const std::vector<Stretch>& stretches) {
    std::uint64_t best_entries = 0, best_bytes = 0, best_lost = 0;
    std::string order;
    for (const dpu::ByteOrder o : {dpu::ByteOrder::big, dpu::ByteOrder::little}) {
        std::uint64_t entries = 0, in_entries = 0, lost = 0;
        for (const Stretch& stretch : stretches) {
            NoElements sink;
            dpu::Format format;
            format.mode.reset();
            dpu::Decoder decoder(format, o, sink);
            decoder.feed(stretch.bytes);
            decoder.finish(false);
            const dpu::Totals& t = decoder.totals();
            for (const std::uint64_t n : t.entries) entries += n;
            in_entries += t.entry_bytes;
            lost += t.lost_bytes();
        }
        if (order.empty() || in_entries > best_bytes) {
            best_entries = entries;
            best_bytes = in_entries;
            best_lost = lost;
            order = o == dpu::ByteOrder::big ? "big-endian" : "little-endian";
        }
    }
    out.tried.push_back({"Debug and Profiling Unit words (layout WL-1, base 0xfff0a000)",
                         fmt::format("{} in {} {}, {} in none", counted(best_entries, "entry", "entries"),
                                     counted(best_bytes, "byte"), order, counted(best_lost, "byte"))});
    if (best_entries < 4 || best_lost * 4 > best_bytes) return false;
    out.protocol = Protocol::dpu;
    out.entries = best_entries;
    out.lost_bytes = best_lost;
    out.facts.push_back({"byte order", order, true, counted(best_entries, "entry", "entries")});
    return true;
}

}  // namespace

std::string_view name(Protocol protocol) {
    switch (protocol) {
        case Protocol::unknown: return "not recognised";
        case Protocol::pft: return "Program Flow Trace (PTM)";
        case Protocol::spe: return "Statistical Profiling (SPE)";
        case Protocol::dpu: return "Debug and Profiling Unit (DPU)";
    }
    return "?";
}

std::uint64_t PftParse::against() const {
    // Where the size of timestamps is wrong, none is ever whole.
    return errors + context_changes + (timestamps != 0 && whole_timestamps == 0 ? timestamps : 0);
}

namespace {

/// Feeds a stretch to a parser as the pipeline does: an end mark is trace where a packet needs it. Returns how many
/// bytes were trace.
std::size_t feed(auto& parser, const Stretch& stretch) {
    const std::size_t trace = stretch.bytes.size() - stretch.end_mark_bytes;
    parser.feed(Bytes(stretch.bytes).first(trace));
    if (stretch.end_mark_bytes == 0 || !parser.progress().amid_packet()) return trace;
    parser.feed(Bytes(stretch.bytes).subspan(trace));
    return stretch.bytes.size();
}

struct Ignore {
    void operator()(const auto&, pft::Extent) {}
    void operator()(const Gap&) {}
};

}  // namespace

void take_end_mark_off(std::vector<Stretch>& stretches, const pft::Config& config) {
    for (Stretch& stretch : stretches) {
        if (stretch.end_mark_bytes == 0) continue;
        Ignore ignore;
        pft::Parser<Ignore> parser(config, ignore);
        stretch.bytes.resize(feed(parser, stretch));
        stretch.end_mark_bytes = 0;
    }
}

PftParse parse_pft(const std::vector<Stretch>& stretches, const pft::Config& config) {
    PftParse out;
    for (const Stretch& stretch : stretches) {
        PftCounter counter(out, stretch, config);
        pft::Parser<PftCounter> parser(config, counter);
        out.bytes += feed(parser, stretch);
        parser.finish();
    }
    return out;
}

Identity identify(const std::vector<Stretch>& stretches, bool framed) {
    Identity out;
    if (bytes_of(stretches) == 0) {
        out.tried.push_back({"nothing", "there are no bytes"});
        return out;
    }
    if (!try_pft(out, stretches) && !framed && !try_spe(out, stretches)) (void)try_dpu(out, stretches);
    return out;
}

}  // namespace waymark::doctor
