// Finds out how a buffer is framed.
#include <fmt/format.h>

#include <algorithm>

#include "examination.h"
#include "waymark/coresight/bypass.h"
#include "waymark/coresight/dstream.h"
#include "waymark/coresight/guess.h"

namespace waymark::doctor {

namespace {

using capture::Buffer;
using coresight::TraceId;

/// Splits the frames of one piece into streams.
class Split {
public:
    Split(std::array<std::vector<Stretch>, coresight::trace_ids>& out, Offset base, bool first_piece)
        : out_(out), base_(base), first_piece_(first_piece) {}
    void data(TraceId id, Bytes bytes, Offset first) {
        if (!first_named) first_named = id;
        Stretch*& stretch = current_[id.value];
        if (stretch == nullptr) {
            std::vector<Stretch>& all = out_[id.value];
            all.emplace_back();
            stretch = &all.back();
            stretch->head = first_piece_ && all.size() == 1;
        }
        stretch->offsets.add({stretch->bytes.size()}, base_ + first.value);
        stretch->bytes.insert(stretch->bytes.end(), bytes.begin(), bytes.end());
    }
    void trigger(TraceId id, Offset at, std::uint8_t payload) {
        if (payload != 0 && !coresight::is_source({payload}))
            current_.fill(nullptr);
        else if (id == coresight::trigger_id)
            triggers.push_back(base_ + at.value);
    }
    /// Any source may have sent these bytes, so the bytes that follow do not continue an earlier packet
    /// (pipeline::Stray, which counts them).
    void stray(TraceId, Bytes, Offset) { current_.fill(nullptr); }
    /// Data behind a reset are not of the source that sent the first ones.
    void unassociated(Bytes bytes, Offset first) {
        if (!first_piece_ || was_reset_ || first_named) return;
        if (nobodys.empty()) nobodys.push_back({.head = true});
        nobodys.front().offsets.add({nobodys.front().bytes.size()}, base_ + first.value);
        nobodys.front().bytes.insert(nobodys.front().bytes.end(), bytes.begin(), bytes.end());
    }
    void gap(const Gap& gap) { gaps.push_back({base_ + gap.first.value, base_ + gap.end.value, gap.reason}); }
    void reset(Offset) {
        current_.fill(nullptr);
        was_reset_ = true;
    }

    std::vector<Gap> gaps;
    std::vector<Offset> triggers;
    std::vector<Stretch> nobodys;
    std::optional<TraceId> first_named;

private:
    std::array<std::vector<Stretch>, coresight::trace_ids>& out_;
    const Offset base_;
    const bool first_piece_;
    bool was_reset_ = false;
    std::array<Stretch*, coresight::trace_ids> current_{};
};

void add(coresight::Totals& to, const coresight::Totals& t, Offset base) {
    to.bytes_read += t.bytes_read;
    to.id_bytes += t.id_bytes;
    to.aux_bytes += t.aux_bytes;
    to.fsyncs += t.fsyncs;
    to.hsyncs += t.hsyncs;
    for (std::size_t i = 0; i < t.data.size(); ++i) to.data[i] += t.data[i];
    for (std::size_t i = 0; i < t.lost.size(); ++i) to.lost[i] += t.lost[i];
    to.unassociated += t.unassociated;
    to.footer_bytes += t.footer_bytes;
    to.frames += t.frames;
    to.barriers += t.barriers;
    to.damaged_frames += t.damaged_frames;
    to.sync_losses += t.sync_losses;
    if (!to.first_forbidden && t.first_forbidden) to.first_forbidden = base + t.first_forbidden->value;
    if (!to.first_id && t.first_id) to.first_id = base + t.first_id->value;
    if (!to.first_fsync && t.first_fsync) to.first_fsync = base + t.first_fsync->value;
}

/// The beginning of the bytes, after the syncs of a port that was idle at first: the framing is judged by it.
Bytes head_of(const BufferSample& sample) {
    constexpr std::size_t head_bytes = 1 << 16;
    Bytes all = sample.pieces.front().bytes;
    all = all.subspan(coresight::idle_bytes(all));
    return all.first(std::min(all.size(), head_bytes));
}

Taken take_apart(const BufferSample& sample, Buffer::Format format, std::uint64_t skip) {
    Taken out;
    coresight::DstreamLayout layout{coresight::Framing::aligned, false};
    if (format == Buffer::Format::dstream_coresight && !sample.pieces.empty()) {
        layout = coresight::dstream_layout(head_of(sample));
    }
    const bool framed = format != Buffer::Format::source_data;
    for (const Piece& piece : sample.pieces) {
        const bool first = &piece == &sample.pieces.front();
        const std::uint64_t drop = framed ? std::min<std::uint64_t>(skip, piece.bytes.size()) : 0;
        Bytes bytes = Bytes(piece.bytes).subspan(drop);
        const Offset base = piece.first + drop;
        if (!framed) {
            Stretch stretch;
            if (&piece == &sample.pieces.back())
                stretch.end_mark_bytes = bytes.size() - coresight::strip_bypass_padding(bytes).size();
            stretch.bytes.assign(bytes.begin(), bytes.end());
            stretch.offsets.add({0}, base);
            stretch.head = first;
            out.bare.push_back(std::move(stretch));
            continue;
        }
        Split split(out.by_id, base, first);
        coresight::DstreamDeformatter deformatter(layout, base);
        deformatter.feed(bytes, split);
        deformatter.finish(split);
        add(out.frames, deformatter.totals(), base);
        if (first) {
            out.nobodys = std::move(split.nobodys);
            out.first_named = split.first_named;
        }
        out.gaps.insert(out.gaps.end(), split.gaps.begin(), split.gaps.end());
        out.triggers.insert(out.triggers.end(), split.triggers.begin(), split.triggers.end());
    }
    return out;
}

Buffer::Format format_of(const coresight::FramingGuess& guess) {
    const coresight::BufferKind kind = guess.kind;
    return guess.footers                            ? Buffer::Format::dstream_coresight
           : kind == coresight::BufferKind::aligned ? Buffer::Format::coresight
           : kind == coresight::BufferKind::tpiu    ? Buffer::Format::dstream_coresight
                                                    : Buffer::Format::source_data;
}

/// Number of bytes, in this framing, that belong to sources with a recognised protocol.
std::uint64_t recognised(const Taken& taken) {
    std::uint64_t sum = 0;
    const auto add_bytes = [&](const std::vector<Stretch>& stretches, bool framed) {
        if (stretches.empty()) return;
        // A part is enough to choose a framing, and there are many framings to try.
        constexpr std::size_t enough_bytes = 1 << 18;
        const auto longest =
            std::max_element(stretches.begin(), stretches.end(),
                             [](const Stretch& a, const Stretch& b) { return a.bytes.size() < b.bytes.size(); });
        std::vector<Stretch> part(1, *longest);
        if (part.front().bytes.size() > enough_bytes) {
            part.front().bytes.resize(enough_bytes);
            part.front().end_mark_bytes = 0;
        }
        if (identify(part, framed).protocol == nullptr) return;
        for (const Stretch& s : stretches) sum += s.bytes.size();
    };
    for (const auto& stretches : taken.by_id) add_bytes(stretches, true);
    add_bytes(taken.bare, false);
    add_bytes(taken.nobodys, true);
    return sum;
}

/// Whether there is stronger evidence for a protocol than that packets can be parsed: synchronisations prove some
/// setting, or entries are consistent.
bool is_certain(const Identity& identity) {
    return identity.protocol != nullptr &&
           (identity.entries != 0 || std::any_of(identity.facts.begin(), identity.facts.end(), [](const auto& fact) {
                return fact.certainty == protocol::Certainty::proven;
            }));
}

/// Any bytes can be read as frames. Returns the reason to doubt the framing if no source is recognised, or an empty
/// string.
std::string why_no_frames(const Taken& taken) {
    constexpr auto plausible = 16;  // maximum number of sources on one bus
    const auto ids = std::count_if(taken.by_id.begin(), taken.by_id.end(), [](const auto& s) { return !s.empty(); });
    std::uint64_t reserved = 0;
    for (unsigned id = 0; id < coresight::trace_ids; ++id)
        if (id != 0 && !coresight::is_source({static_cast<std::uint8_t>(id)}))
            for (const Stretch& s : taken.by_id[id]) reserved += s.bytes.size();
    const std::uint64_t forbidden = taken.frames.lost[static_cast<unsigned>(GapReason::framing)];
    if (ids <= plausible && reserved == 0 && forbidden == 0) return {};
    return fmt::format(
        "read as CoreSight frames they belong to {}, {} of them to reserved ones, and {} are in invalid frames",
        counted(static_cast<std::uint64_t>(ids), "trace ID"), bytes_text(reserved), bytes_text(forbidden));
}

}  // namespace

bool has_async(const std::vector<Stretch>& stretches) {
    for (const Stretch& stretch : stretches) {
        std::uint64_t zeros = 0;
        for (const std::uint8_t byte : stretch.bytes) {
            if (byte == 0x80 && zeros >= 5) return true;
            zeros = byte == 0 ? zeros + 1 : 0;
        }
    }
    return false;
}

Taken FramingChoice::choose(const Buffer& buffer, const BufferSample& sample, ExaminedBuffer& out) const {
    if (out.listed != nullptr) {
        out.format = Buffer::Format::source_data;
        return take_apart(sample, out.format, 0);
    }
    const Bytes head = head_of(sample);
    out.guess = coresight::guess_framing(head);
    out.format = format_of(out.guess);
    if (report_.labelled && buffer.format != Buffer::Format::unknown) return hold_against(buffer, sample, out);
    Taken taken = take_apart(sample, out.format, 0);
    const std::uint64_t as_guessed = recognised(taken);
    if (as_guessed * 2 >= out.looked_at) return taken;
    // A short or odd dump may be misinterpreted; the framing that explains most bytes is right.
    std::uint64_t most = as_guessed;
    const auto consider = [&](Buffer::Format format, std::uint64_t skip) {
        Taken other = take_apart(sample, format, skip);
        const std::uint64_t bytes = recognised(other);
        if (bytes <= most) return;
        most = bytes;
        taken = std::move(other);
        out.format = format;
        out.skipped = skip;
    };
    for (const Buffer::Format format :
         {Buffer::Format::coresight, Buffer::Format::dstream_coresight, Buffer::Format::source_data})
        if (format != out.format) consider(format, 0);
    if (most * 4 < out.looked_at)
        for (std::uint64_t skip = 1; skip < 16 && skip < head.size(); ++skip)
            if (coresight::guess_framing(head.subspan(skip)).kind == coresight::BufferKind::aligned)
                consider(Buffer::Format::coresight, skip);
    if (most == 0 && out.format == Buffer::Format::coresight) {
        out.not_frames = why_no_frames(taken);
        if (!out.not_frames.empty()) {
            out.format = Buffer::Format::unknown;
            return take_apart(sample, Buffer::Format::source_data, 0);
        }
    }
    if (out.skipped != 0)
        add_finding({Severity::warning,
                     "frame-offset",
                     buffer.name,
                     {},
                     Offset{out.skipped},
                     fmt::format("frames without any sync begin {} into the file", bytes_text(out.skipped)),
                     "a frame at the first byte",
                     "the dump begins inside a frame, or after a header",
                     fmt::format("drop the first {} (--write-snapshot does)", bytes_text(out.skipped))});
    return taken;
}

Taken FramingChoice::bare(const BufferSample& sample) { return take_apart(sample, Buffer::Format::source_data, 0); }
Taken FramingChoice::frames(const BufferSample& sample) { return take_apart(sample, Buffer::Format::coresight, 0); }

std::uint64_t FramingChoice::recognised_bytes(const Taken& taken) { return recognised(taken); }

bool FramingChoice::recognises(const Buffer& buffer, const BufferSample& sample, ExaminedBuffer& out) const {
    const std::size_t findings = report_.findings.size();
    const Taken taken = choose(buffer, sample, out);
    report_.findings.resize(findings);
    if (recognised(taken) == 0) return false;
    // Of the many sources that noise seems to have, some resemble packets for a few bytes.
    constexpr std::uint64_t least_share = 4;
    std::uint64_t all = 0, known = 0, certain = 0;
    const auto look_at = [&](const std::vector<Stretch>& stretches, bool framed) {
        std::uint64_t bytes = 0;
        for (const Stretch& s : stretches) bytes += s.bytes.size();
        all += bytes;
        if (bytes == 0) return;
        const Identity identity = identify(stretches, framed);
        known += identity.protocol != nullptr ? bytes : 0;
        certain += is_certain(identity) ? bytes : 0;
    };
    for (unsigned id = 1; id < coresight::trace_ids; ++id) look_at(taken.by_id[id], true);
    look_at(taken.bare, false);
    // If the frames contain almost only trace of units that send no synchronisation, that is no accident either.
    const bool framed = out.format != Buffer::Format::source_data && known * 10 >= all * 9;
    return framed || (certain != 0 && certain * least_share >= all);
}

/// Checks whether the buffer is framed as the description says.
Taken FramingChoice::hold_against(const Buffer& buffer, const BufferSample& sample, ExaminedBuffer& out) const {
    Taken declared = take_apart(sample, buffer.format, 0);
    const Buffer::Format guessed = out.format;
    out.format = buffer.format;
    if (guessed == buffer.format) return declared;
    const std::uint64_t as_declared = recognised(declared);
    Taken other = take_apart(sample, guessed, 0);
    const std::uint64_t as_guessed = recognised(other);
    if (as_guessed <= as_declared) return declared;
    const Offset at = declared.frames.first_forbidden.value_or(Offset{});
    add_finding(
        {Severity::error,
         "framing",
         buffer.name,
         {},
         at,
         fmt::format("parsed as {}, {} of {} examined belong to a source of a known protocol; parsed as {}, {} do",
                     capture::name(buffer.format), as_declared, bytes_text(out.looked_at), capture::name(guessed),
                     as_guessed),
         fmt::format("format={}", capture::name(guessed)),
         guessed == Buffer::Format::source_data
             ? "the formatter was in bypass, or something took the frames apart already"
             : "the formatter was on",
         buffer.container
             ? "the AUX records, which contain the format, are missing or wrong: copy the whole "
               "file again, or record again"
             : fmt::format("set format={} for the buffer in trace.ini, if there is one", capture::name(guessed))});
    out.format = guessed;
    return other;
}

}  // namespace waymark::doctor
