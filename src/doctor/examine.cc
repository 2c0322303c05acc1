#include "waymark/doctor/examine.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/coresight/bypass.h"
#include "waymark/coresight/dstream.h"
#include "waymark/flow/summary.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/id_register.h"
#include "waymark/pipeline/packet_counter.h"
#include "waymark/pipeline/recover.h"

namespace waymark::doctor {

namespace {

using capture::Buffer;
using coresight::TraceId;

std::string bytes_text(std::uint64_t n) { return counted(n, "byte"); }

/// Takes the frames of one piece apart.
class Split {
public:
    Split(std::array<std::vector<Stretch>, coresight::trace_ids>& out, Offset base, bool first_piece)
        : out_(out), base_(base), first_piece_(first_piece) {}
    void data(TraceId id, Bytes bytes, Offset first) {
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
    void trigger(TraceId, Offset, std::uint8_t payload) {
        if (payload != 0 && !coresight::is_source({payload})) current_.fill(nullptr);
    }
    /// Any source may have sent these bytes, so what follows does not continue what came before (pipeline::Stray, which
    /// counts them).
    void stray(TraceId, Bytes, Offset) { current_.fill(nullptr); }
    void gap(const Gap& gap) { gaps.push_back({base_ + gap.first.value, base_ + gap.end.value, gap.reason}); }
    void reset(Offset) { current_.fill(nullptr); }

    std::vector<Gap> gaps;

private:
    std::array<std::vector<Stretch>, coresight::trace_ids>& out_;
    const Offset base_;
    const bool first_piece_;
    std::array<Stretch*, coresight::trace_ids> current_{};
};

/// A buffer, taken apart as one framing has it.
struct Taken {
    std::array<std::vector<Stretch>, coresight::trace_ids> by_id;
    std::vector<Stretch> bare;
    coresight::Totals frames;
    std::vector<Gap> gaps;
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

Taken take_apart(const Sample& sample, Buffer::Format format, std::uint64_t skip) {
    Taken out;
    coresight::DstreamLayout layout{coresight::Framing::aligned, false};
    if (format == Buffer::Format::dstream_coresight && !sample.pieces.empty()) {
        constexpr std::size_t head_bytes = 1 << 16;
        const Bytes all = sample.pieces.front().bytes;
        layout = coresight::dstream_layout(all.first(std::min(all.size(), head_bytes)));
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
        out.gaps.insert(out.gaps.end(), split.gaps.begin(), split.gaps.end());
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

class Examiner {
public:
    Examiner(const pipeline::Session& session, bool labelled, const ExamineOptions& options)
        : session_(session), options_(options) {
        report_.labelled = labelled;
    }

    Report run() {
        for (const capture::Problem& problem : session_.problems) {
            if (!problem.lacks.empty()) continue;  // reported below, with what it costs
            if (problem.kind == capture::Problem::Kind::part) {
                add_finding({Severity::warning,
                             "part-of-run",
                             {},
                             {},
                             {},
                             capture::to_string(problem),
                             "the whole run",
                             "the recording was limited by its options",
                             "take what did not run as not observed; record without the limit if all is needed"});
                continue;
            }
            if (problem.kind == capture::Problem::Kind::names) {
                add_finding({Severity::warning,
                             std::string(missing_names),
                             {},
                             {},
                             {},
                             capture::to_string(problem),
                             "what says which code is called how: the files that were mapped, and where",
                             "it was moved, removed or built again since",
                             "nothing for the trace, which is whole without it; for names do what is said there"});
                continue;
            }
            add_finding({Severity::warning,
                         "description",
                         {},
                         {},
                         {},
                         capture::to_string(problem),
                         "a description without contradictions",
                         "the ini files, or what was given for them",
                         "put the description right; where it is silent, what is inferred below holds"});
        }
        if (session_.capture.buffers.empty())
            add_finding({Severity::error,
                         "no-buffer",
                         {},
                         {},
                         {},
                         "the capture names no trace buffer",
                         "at least one",
                         "[trace_buffers] is missing from its trace.ini",
                         "name the file of the trace"});
        for (const Buffer& buffer : session_.capture.buffers) look_at(buffer);
        for (std::size_t i = 0; i < report_.sources.size(); ++i) configure(report_.sources[i], stretches_[i]);
        for (std::size_t i = 0; i < report_.buffers.size(); ++i) look_for_damage(report_.buffers[i], samples_[i]);
        for (std::size_t i = 0; i < report_.sources.size(); ++i) judge(report_.sources[i], stretches_[i]);
        check_images();
        check_dumps();
        conclude();
        return std::move(report_);
    }

private:
    void add_finding(Finding finding) { report_.findings.push_back(std::move(finding)); }
    void add_finding(const SourceReport& source, Severity severity, std::string kind, std::optional<Offset> at,
                     std::string found, std::string expected, std::string cause, std::string advice) {
        add_finding({severity, std::move(kind), source.buffer, source.name, at, std::move(found), std::move(expected),
                     std::move(cause), std::move(advice)});
    }

    void add_findings(const SourceReport& source, std::vector<Finding> findings) {
        for (Finding& finding : findings) {
            finding.buffer = source.buffer;
            finding.source = source.name;
            add_finding(std::move(finding));
        }
    }

    // ---- buffers

    void look_at(const Buffer& buffer) {
        auto sample = take_sample(buffer.files, options_.most_bytes);
        if (!sample) {
            report_.cut = true;
            add_finding({Severity::error,
                         "unreadable",
                         buffer.name,
                         {},
                         {},
                         sample.error().message,
                         "a readable file",
                         "the file is missing, empty or not permitted",
                         "name the right file, or make it readable"});
            return;
        }
        if (sample->damage) {
            report_.cut = true;
            add_finding({Severity::error,
                         "unreadable",
                         buffer.name,
                         {},
                         sample->damage->offset.value_or(Offset{}),
                         sample->damage->message,
                         "a file that can be read to its end",
                         "a damaged disk or compressed file",
                         "get the file anew; what came before was looked at"});
        }
        BufferReport out;
        out.name = buffer.name;
        out.files = buffer.files;
        out.looked_at = sample->bytes();
        out.bytes = sample->size_bytes;
        out.pieces = static_cast<unsigned>(sample->pieces.size());
        if (out.looked_at == 0) {
            add_finding({Severity::error,
                         "empty",
                         buffer.name,
                         {},
                         {},
                         "the buffer holds no byte",
                         "trace",
                         "nothing was recorded, or the file was not written",
                         "record again"});
            report_.buffers.push_back(std::move(out));
            samples_.emplace_back();
            return;
        }
        if (buffer.length && out.bytes && *out.bytes < *buffer.length) {
            report_.cut = true;
            add_finding({Severity::error,
                         "cut",
                         buffer.name,
                         {},
                         Offset{*out.bytes},
                         fmt::format("the file holds {}", bytes_text(*out.bytes)),
                         fmt::format("the {} that were written (length in trace.ini)", bytes_text(*buffer.length)),
                         "the file was cut",
                         "copy the whole file again"});
        }
        const Taken taken = choose_framing(buffer, *sample, out);
        report_frames(buffer, out, taken);
        find_sources(buffer, out, taken);
        report_.buffers.push_back(std::move(out));
        samples_.push_back(std::move(*sample));
    }

    /// Bytes of sources whose protocol is recognised, taken apart so.
    static std::uint64_t recognised(const Taken& taken) {
        std::uint64_t sum = 0;
        const auto add_bytes = [&](const std::vector<Stretch>& stretches, bool framed) {
            if (stretches.empty()) return;
            // A part will do to choose by, and there is much to choose from.
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
        return sum;
    }

    Taken choose_framing(const Buffer& buffer, const Sample& sample, BufferReport& out) {
        constexpr std::size_t head_bytes = 1 << 16;
        const Bytes all = sample.pieces.front().bytes;
        const Bytes head = all.first(std::min(all.size(), head_bytes));
        out.guess = coresight::guess_framing(head);
        out.format = format_of(out.guess);
        if (report_.labelled && buffer.format != Buffer::Format::unknown) return hold_against(buffer, sample, out);
        Taken taken = take_apart(sample, out.format, 0);
        const std::uint64_t as_guessed = recognised(taken);
        if (as_guessed * 2 >= out.looked_at) return taken;
        // A short or odd dump may be taken for the wrong thing; whichever framing explains most bytes is right.
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
                         fmt::format("frames begin {} into the file", bytes_text(out.skipped)),
                         "a frame at the first byte",
                         "the dump begins inside a frame, or behind a header",
                         fmt::format("drop the first {} (--write-snapshot does)", bytes_text(out.skipped))});
        return taken;
    }

    /// Any bytes can be read as frames. What speaks against it where no source is recognised; empty: nothing.
    static std::string why_no_frames(const Taken& taken) {
        constexpr auto plausible = 16;  // sources of one bus
        const auto ids =
            std::count_if(taken.by_id.begin(), taken.by_id.end(), [](const auto& s) { return !s.empty(); });
        std::uint64_t reserved = 0;
        for (unsigned id = 0; id < coresight::trace_ids; ++id)
            if (id != 0 && !coresight::is_source({static_cast<std::uint8_t>(id)}))
                for (const Stretch& s : taken.by_id[id]) reserved += s.bytes.size();
        const std::uint64_t forbidden = taken.frames.lost[static_cast<unsigned>(GapReason::framing)];
        if (ids <= plausible && reserved == 0 && forbidden == 0) return {};
        return fmt::format(
            "as CoreSight frames they would be of {}, {} of them under reserved ones, and {} in frames that cannot be",
            counted(static_cast<std::uint64_t>(ids), "trace ID"), bytes_text(reserved), bytes_text(forbidden));
    }

    /// The description says how the buffer is framed. Is it?
    Taken hold_against(const Buffer& buffer, const Sample& sample, BufferReport& out) {
        Taken declared = take_apart(sample, buffer.format, 0);
        const Buffer::Format guessed = out.format;
        out.format = buffer.format;
        if (guessed == buffer.format) return declared;
        const std::uint64_t as_declared = recognised(declared);
        Taken other = take_apart(sample, guessed, 0);
        const std::uint64_t as_guessed = recognised(other);
        if (as_guessed <= as_declared) return declared;
        const Offset at = declared.frames.first_forbidden.value_or(Offset{});
        add_finding({Severity::error,
                     "framing",
                     buffer.name,
                     {},
                     at,
                     fmt::format("read as {}, {} of {} looked at belong to a source of a known protocol; as {}, {} do",
                                 capture::name(buffer.format), as_declared, bytes_text(out.looked_at),
                                 capture::name(guessed), as_guessed),
                     fmt::format("format={}", capture::name(guessed)),
                     guessed == Buffer::Format::source_data
                         ? "the formatter was in bypass, or something took the frames apart already"
                         : "the formatter was on",
                     fmt::format("write format={} into the buffer's section of trace.ini", capture::name(guessed))});
        out.format = guessed;
        return other;
    }

    void report_frames(const Buffer& buffer, BufferReport& out, const Taken& taken) {
        out.frames = taken.frames;
        const coresight::Totals& t = taken.frames;
        if (out.format == Buffer::Format::source_data || out.format == Buffer::Format::unknown) return;
        for (pipeline::Damage& damage : pipeline::damage_in({buffer.name, out.format, t, taken.gaps}))
            report_frame_damage(std::move(damage), out);
        if (t.unassociated != 0 && out.pieces == 1)
            add_finding({Severity::note,
                         "no-id-yet",
                         buffer.name,
                         {},
                         {},
                         fmt::format("{} before the first trace ID", bytes_text(t.unassociated)),
                         "an ID first",
                         "the buffer wrapped: the ID they belong to was overwritten",
                         "nothing; a larger buffer loses less"});
        if (const auto idle = t.padding_bytes(); idle * 2 > t.bytes_read)
            add_finding({Severity::note,
                         "idle",
                         buffer.name,
                         {},
                         {},
                         fmt::format("{} of {} are padding (null ID)", idle, bytes_text(t.bytes_read)),
                         "mostly trace",
                         "the sources had little to send while the formatter was flushed, or the buffer is not full",
                         "nothing, unless trace is missing"});
    }

    void report_frame_damage(pipeline::Damage damage, const BufferReport& buffer) {
        using Kind = pipeline::Damage::Kind;
        // A stream with syncs ends anywhere, and so does one whose first frame is not all there.
        const bool cut =
            damage.kind == Kind::partial_frame && buffer.format == Buffer::Format::coresight && buffer.skipped == 0;
        report_.cut |= cut;
        const auto add = [&](Severity severity, std::string kind, std::string expected, std::string advice) {
            add_finding({severity,
                         std::move(kind),
                         damage.buffer,
                         {},
                         damage.first,
                         std::move(damage.found),
                         std::move(expected),
                         std::move(damage.means),
                         std::move(advice)});
        };
        if (damage.kind == Kind::lost_frames)
            add(Severity::warning, "damaged-frames", "frames with IDs of sources",
                "get the buffer anew; trace continues at the next synchronisation after each damage");
        else if (damage.kind == Kind::no_frame_sync && buffer.pieces == 1)
            add(Severity::note, "no-frame-sync", "a sync first",
                buffer.frames.fsyncs == 0 ? "give the format the buffer has" : "nothing");
        else if (cut)
            add(Severity::error, "cut", "a multiple of 16 bytes",
                "copy the whole file, or read the whole buffer out, if it is still there");
        else if (damage.kind == Kind::partial_frame)
            add(Severity::note, "cut-frame", "a multiple of 16 bytes", "nothing, unless the file was cut");
    }

    void find_sources(const Buffer& buffer, const BufferReport& out, const Taken& taken) {
        const auto described = [&](std::optional<TraceId> id) -> const pipeline::Source* {
            for (const std::string& name : buffer.sources)
                for (const pipeline::Source& source : session_.sources)
                    if (source.name == name && (!id || source.trace_id == id)) return &source;
            return nullptr;
        };
        const auto take = [&](const std::vector<Stretch>& stretches, std::optional<TraceId> id) {
            SourceReport source;
            const pipeline::Source* known = described(id);
            source.described = known != nullptr;
            source.name = known != nullptr ? known->name : id ? fmt::format("source_{:02x}", id->value) : "source";
            source.buffer = buffer.name;
            source.trace_id = id ? id : known != nullptr ? known->trace_id : std::nullopt;
            for (const Stretch& s : stretches) source.bytes += s.bytes.size();
            source.identity = identify(stretches, id.has_value());
            source.configuration = source.identity.configuration;
            source.configured = known != nullptr && source.configuration && known->protocol == source.identity.protocol;
            report_.sources.push_back(std::move(source));
            stretches_.push_back(stretches);
            known_.push_back(known);
            own_memory_.emplace_back();
        };
        if (out.format == Buffer::Format::source_data || out.format == Buffer::Format::unknown)
            return take(taken.bare, std::nullopt);
        for (unsigned id = 0; id < coresight::trace_ids; ++id)
            if (coresight::is_source({static_cast<std::uint8_t>(id)}) && !taken.by_id[id].empty())
                take(taken.by_id[id], TraceId{static_cast<std::uint8_t>(id)});
        if (!report_.labelled) return;
        for (const std::string& name : buffer.sources)
            for (const pipeline::Source& source : session_.sources)
                if (source.name == name && !source.trace_id)
                    report_no_id(buffer, source);
                else if (source.name == name && taken.by_id[source.trace_id->value].empty())
                    report_absent(buffer, source);
        for (const SourceReport& source : report_.sources) {
            if (source.buffer != buffer.name) continue;
            if (source.described && source.identity.protocol == nullptr)
                add_finding(source, Severity::note, "not-recognised", first_offset(source),
                            fmt::format("{} of a protocol that Waymark does not know", bytes_text(source.bytes)),
                            fmt::format("{}, to be decoded", pipeline::decoded_trace()),
                            fmt::format("the description says {}; what was tried stands with the source",
                                        described(source.trace_id)->type),
                            "another tool for this source; the others are decoded without it");
        }
    }
    [[nodiscard]] std::string name_of(const SourceReport& source) const {
        return std::string(name(source.identity.protocol));
    }
    [[nodiscard]] std::optional<Offset> first_offset(const SourceReport& source) const {
        const auto& stretches = stretches_[static_cast<std::size_t>(&source - report_.sources.data())];
        return stretches.empty() ? std::optional<Offset>() : stretches.front().offsets.capture({0});
    }

    /// A source whose description lacks its trace ID: which IDs of the buffer may be its.
    void report_no_id(const Buffer& buffer, const pipeline::Source& source) {
        const auto* const protocol = source.protocol;  // null of other units: then the bytes that are of no protocol
        std::vector<std::string> ids;
        std::string setting;
        std::uint64_t bytes = 0;
        for (const SourceReport& other : report_.sources)
            if (other.buffer == buffer.name && !other.described && other.identity.protocol == protocol) {
                ids.push_back(fmt::format("{:#04x}", other.trace_id->value));
                bytes += other.bytes;
                if (setting.empty()) setting = pipeline::id_setting(source, *other.trace_id);
            }
        const std::string_view name = pipeline::id_register(source);
        const capture::Source* const described = session_.capture.find_source(source.name);
        const std::string where =
            described == nullptr || described->file.empty() ? std::string("the description") : described->file;
        add_finding({Severity::error,
                     "no-trace-id",
                     buffer.name,
                     source.name,
                     {},
                     fmt::format("{} lacks {}, so no byte is known to be of this source; {}", where, name,
                                 ids.empty() ? "nor is there a byte of an ID that no source has"
                                             : fmt::format("{} {} of IDs that no source has: {}", bytes_text(bytes),
                                                           are(bytes), fmt::join(ids, ", "))),
                     fmt::format("the trace ID that the unit was programmed with, in {}", name),
                     "the register was not read out, or was left out of the description",
                     ids.empty() ? fmt::format("write {}=ID into [regs] of {}, or remove the source", name, where)
                                 : fmt::format("write {} into [regs] of {}{}", setting, where,
                                               ids.size() == 1 ? "" : ", or another of these IDs: try each")});
    }

    void report_absent(const Buffer& buffer, const pipeline::Source& source) {
        // A stranger that speaks the same protocol is likely to be it.
        const SourceReport* likely = nullptr;
        for (const SourceReport& other : report_.sources)
            if (other.buffer == buffer.name && !other.described && other.identity.protocol != nullptr &&
                other.identity.protocol == source.protocol)
                likely = &other;
        const std::string_view id_register = pipeline::trace_id_register(source.registers, source.type);
        if (likely != nullptr)
            add_finding({Severity::error, "trace-id", buffer.name, source.name,
                         first_offset(*likely).value_or(Offset{}),
                         fmt::format("no byte of trace ID {:#04x}, but {} of {} under {:#04x}, which no source has",
                                     source.trace_id->value, bytes_text(likely->bytes), source.protocol->words().trace,
                                     likely->trace_id->value),
                         fmt::format("{}={:#04x}", id_register, likely->trace_id->value),
                         "the ID was programmed anew, or the register was read from another unit",
                         fmt::format("write {}={:#04x} for {}", id_register, likely->trace_id->value, source.name)});
        else
            add_finding({Severity::note,
                         "no-bytes",
                         buffer.name,
                         source.name,
                         {},
                         fmt::format("no byte of trace ID {:#04x}", source.trace_id->value),
                         "some trace of it",
                         "the core was off or idle, its unit not enabled, or its trace overwritten",
                         "nothing, if the core did not run"});
    }

    // ---- sources

    /// How the source's unit was programmed is settled, and with it which bytes are trace.
    void configure(SourceReport& source, std::vector<Stretch>& stretches) {
        if (!source.configuration) return;
        const std::size_t index = static_cast<std::size_t>(&source - report_.sources.data());
        if (source.configured) {
            protocol::Settled settled = source.identity.protocol->settle(source.identity, *known_[index]->configuration,
                                                                         stretches, source.name);
            source.configuration = std::move(settled.configuration);
            add_findings(source, std::move(settled.findings));
        }
        take_end_mark_off(stretches, *source.configuration);
        source.bytes = 0;
        for (const Stretch& s : stretches) source.bytes += s.bytes.size();
    }

    void judge(SourceReport& source, const std::vector<Stretch>& stretches) {
        if (source.identity.protocol == nullptr) return;
        add_findings(source, source.identity.protocol->health(source.identity, source.configuration.get(), stretches,
                                                              source.buffer));
        if (!source.has_flow()) return;
        const std::size_t index = static_cast<std::size_t>(&source - report_.sources.data());
        judge_images(source, stretches, known_[index]);
        recover(source, stretches, known_[index]);
    }

    // ---- damage, as the pipeline finds it for all commands

    /// The buffer as it is to be decoded, with the sources that were recognised in it.
    [[nodiscard]] pipeline::Session session_of(const BufferReport& buffer) const {
        pipeline::Session out;
        capture::Buffer& read = out.capture.buffers.emplace_back();
        read.name = buffer.name;
        read.format = buffer.format;
        // Without a description nobody knows which IDs are those of sources.
        read.other_sources = !report_.labelled;
        for (const Buffer& b : session_.capture.buffers)
            if (report_.labelled && b.name == buffer.name) {
                read.other_sources = b.other_sources;
                for (const pipeline::Source& s : session_.sources)
                    if (std::find(b.sources.begin(), b.sources.end(), s.name) != b.sources.end())
                        out.sources.push_back(s);
            }
        for (const SourceReport& source : report_.sources) {
            if (source.buffer != buffer.name || !source.configuration) continue;
            if (report_.labelled && !source.described) continue;
            auto at = std::find_if(out.sources.begin(), out.sources.end(),
                                   [&](const pipeline::Source& s) { return s.name == source.name; });
            if (at == out.sources.end()) at = out.sources.insert(at, pipeline::Source{});
            at->name = source.name;
            at->trace_id = source.trace_id;
            at->protocol = source.identity.protocol;
            at->configuration = source.configuration;
        }
        for (const pipeline::Source& s : out.sources) read.sources.push_back(s.name);
        return out;
    }

    void look_for_damage(const BufferReport& buffer, const Sample& sample) {
        if (buffer.format == Buffer::Format::unknown) return;
        const pipeline::Session session = session_of(buffer);
        std::vector<const pipeline::Source*> selected;
        for (const pipeline::Source& s : session.sources) selected.push_back(&s);
        pipeline::BufferReport all;
        all.name = buffer.name;
        std::vector<Cut> cuts(report_.sources.size());
        for (const Piece& piece : sample.pieces) {
            // Footers of a DSTREAM are found by their distance from where reading begins.
            constexpr std::uint64_t block_bytes = coresight::dstream_block_bytes;
            const std::uint64_t before = buffer.format == Buffer::Format::dstream_coresight
                                             ? (block_bytes - piece.first.value % block_bytes) % block_bytes
                                             : buffer.skipped;
            const std::uint64_t skip = std::min<std::uint64_t>(before, piece.bytes.size());
            const Offset base = piece.first + skip;
            const pipeline::Report report = pipeline::run(
                session, selected,
                [](const pipeline::StreamInfo& stream) -> std::unique_ptr<pipeline::Consumer> {
                    if (!stream.source.has_packets()) return nullptr;
                    return std::make_unique<pipeline::PacketCounter>(stream);
                },
                {},
                [&](const Buffer&) -> Result<std::unique_ptr<capture::ByteStream>> {
                    const Bytes bytes = Bytes(piece.bytes).subspan(skip);
                    return capture::from_memory({bytes.begin(), bytes.end()});
                });
            for (pipeline::Stray stray : report.buffers.front().strays) {
                stray.first = base + stray.first.value;
                add_stray(all.strays, stray);
            }
            // Where not all was looked at, a source may well go on.
            for (const pipeline::StreamReport& stream : report.streams)
                report_stream(buffer, stream, base, sample.whole(), cuts);
        }
        for (std::size_t i = 0; i < cuts.size(); ++i)
            if (cuts[i].bytes != 0)
                add_finding(report_.sources[i], Severity::warning, "packets-cut-in-two", cuts[i].first,
                            fmt::format("{} of packets that were cut in two where frames were lost",
                                        counted(cuts[i].bytes, "byte")),
                            "whole packets", "the other findings about this buffer's frames say what was lost",
                            "get the buffer anew; trace continues at the next synchronisation after each damage");
        for (const pipeline::Damage& damage : pipeline::stray_damage(all)) report_damage(damage);
        report_unknown_ids(buffer, all.strays);
    }
    static void add_stray(std::vector<pipeline::Stray>& to, const pipeline::Stray& stray) {
        const auto same =
            std::find_if(to.begin(), to.end(), [&](const pipeline::Stray& s) { return s.id == stray.id; });
        if (same == to.end()) return to.push_back(stray);
        same->bytes += stray.bytes;
        same->stretches += stray.stretches;
        same->damage &= stray.damage;
    }

    void report_damage(const pipeline::Damage& damage) {
        using Kind = pipeline::Damage::Kind;
        if (damage.kind == Kind::undescribed_ids) return;  // below, with what each of them is
        const std::string_view kind = damage.kind == Kind::reserved_ids  ? "reserved-id"
                                      : damage.kind == Kind::damaged_ids ? "damaged-id"
                                                                         : "stray-bytes";
        add_finding({Severity::warning,
                     std::string(kind),
                     damage.buffer,
                     {},
                     damage.first,
                     damage.found,
                     damage.kind == Kind::damaged_ids ? "IDs of described sources only"
                                                      : "IDs 0x01 to 0x6f, padding of zeros, and triggers (0x7d) that "
                                                        "name a source",
                     damage.means,
                     "get the buffer anew; trace continues at the next synchronisation after each damage"});
    }

    /// Packets of a source that were cut in two, in all pieces of a buffer that were looked at.
    struct Cut {
        Offset first{};
        std::uint64_t bytes{};
    };
    void report_stream(const BufferReport& buffer, const pipeline::StreamReport& stream, Offset base, bool whole,
                       std::vector<Cut>& cuts) {
        const auto* counter = dynamic_cast<const pipeline::PacketCounter*>(stream.consumer.get());
        if (counter == nullptr) return;
        const auto source = std::find_if(report_.sources.begin(), report_.sources.end(), [&](const SourceReport& s) {
            return s.buffer == buffer.name && s.name == stream.source->name;
        });
        if (source == report_.sources.end()) return;
        const auto& gaps = counter->survey().gaps;
        if (const auto& cut = gaps[static_cast<unsigned>(GapReason::framing)]; cut.bytes != 0) {
            Cut& sum = cuts[static_cast<std::size_t>(source - report_.sources.begin())];
            if (sum.bytes == 0) sum.first = base + cut.first.value;
            sum.bytes += cut.bytes;
        }
        const auto damage = whole ? pipeline::silence_of(stream) : std::nullopt;
        if (damage)
            add_finding(*source, Severity::warning, "silence", base + damage->first.value, damage->found,
                        "a source that ends between two packets, or where recording stops", damage->means,
                        "get the buffer anew: bytes of this source are missing, or are taken for others'");
        else if (const auto& cut = gaps[static_cast<unsigned>(GapReason::incomplete_packet)]; whole && cut.bytes != 0)
            add_finding(*source, Severity::note, "cut-packet", base + cut.first.value,
                        fmt::format("the last {} {} a packet that is cut off", bytes_text(cut.bytes),
                                    cut.bytes == 1 ? "begins" : "begin"),
                        "a whole packet", "recording stopped there, or the file was cut",
                        "nothing, unless the file was cut");
    }

    void report_unknown_ids(const BufferReport& buffer, const std::vector<pipeline::Stray>& strays) {
        for (const SourceReport& source : report_.sources) {
            if (!report_.labelled || source.buffer != buffer.name || source.described) continue;
            const bool damaged = std::any_of(strays.begin(), strays.end(), [&](const pipeline::Stray& s) {
                return s.damage && s.id == source.trace_id;
            });
            if (damaged) continue;
            add_finding(source, Severity::warning, "unknown-id", first_offset(source),
                        fmt::format("{} of trace ID {:#04x}: {}", bytes_text(source.bytes), source.trace_id->value,
                                    name_of(source)),
                        "IDs of described sources only", "a source was left out of the description, or has another ID",
                        source.identity.protocol != nullptr && source.identity.protocol->trace_id()
                            ? fmt::format("describe it: a device with {}={:#04x}",
                                          source.identity.protocol->trace_id()->register_name, source.trace_id->value)
                            : fmt::format("describe it, unless the frames are damaged: a device with this ID in the "
                                          "register of its kind (TRCTRACEIDR={:#04x} of an ETMv4 or ETE)",
                                          source.trace_id->value));
        }
    }

    // ---- images

    using SharedConfiguration = std::shared_ptr<const Configuration>;

    /// Which of the variants the image needs, where `free`: they differ in what bytes alone do not show.
    static Trial best_trial(const std::vector<Stretch>& stretches, SharedConfiguration& configuration,
                            const isa::CodeReader& code, bool free) {
        Trial best = try_image(stretches, *configuration, code);
        if (!free || best.contradictions == 0) return best;
        for (SharedConfiguration& variant : configuration->variants()) {
            Trial trial = try_image(stretches, *variant, code);
            if (!better(trial, best)) continue;
            best = std::move(trial);
            configuration = std::move(variant);
        }
        return best;
    }
    static bool better(const Trial& a, const Trial& b) {
        if (a.proven() != b.proven()) return a.proven();
        if (a.agrees() != b.agrees()) return a.agrees();
        return a.contradictions * std::max<std::uint64_t>(b.totals.ranges, 1) <
               b.contradictions * std::max<std::uint64_t>(a.totals.ranges, 1);
    }

    void judge_images(SourceReport& source, const std::vector<Stretch>& stretches, const pipeline::Source* known) {
        Trial& own = own_memory_[static_cast<std::size_t>(&source - report_.sources.data())];
        if (known != nullptr && !known->memory->empty()) {
            ImageVerdict verdict{"the capture's memory", source.name, {}, {}, {}};
            judge_memory(source, stretches, *known, verdict);
            own = verdict.trial;
            report_.images.push_back(std::move(verdict));
        } else if (known != nullptr && !session_.capture.dumps.empty()) {
            own = try_image(stretches, *source.configuration, *known->memory);
        }
        for (const std::string& argument : options_.images) {
            ImageVerdict verdict{argument, source.name, {}, {}, {}};
            judge_image(source, stretches, argument, verdict);
            report_.images.push_back(std::move(verdict));
        }
        for (ImageVerdict& v : report_.images) {
            if (v.source != source.name) continue;
            v.trial.waypoints = waypoints_of(source);
            if (v.shift) v.shift->trial.waypoints = waypoints_of(source);
        }
        for (std::size_t i = 0; i < report_.images.size(); ++i) {
            const ImageVerdict& v = report_.images[i];
            if (v.source != source.name || !fits(v)) continue;
            const auto rank = [&](std::size_t k) {
                const ImageVerdict& w = report_.images[k];
                const Trial& trial = w.shift ? w.shift->trial : w.trial;
                return std::pair(w.kind != ImageVerdict::Kind::in_part, trial.totals.ranges);
            };
            if (!source.image || rank(i) > rank(*source.image)) source.image = i;
        }
    }

    void judge_memory(SourceReport& source, const std::vector<Stretch>& stretches, const pipeline::Source& known,
                      ImageVerdict& verdict) {
        const SharedConfiguration before = source.configuration;
        verdict.trial = best_trial(stretches, source.configuration, *known.memory, true);
        if (!source.configuration->equals(*before)) {
            // Damage contradicts the image under every setting. A setting is wrong only if another removes most
            // contradictions, and decodes no less.
            Trial as_described = try_image(stretches, *before, *known.memory);
            const bool removes_them = verdict.trial.contradictions * 4 <= as_described.contradictions &&
                                      verdict.trial.totals.ranges * 10 >= as_described.totals.ranges * 9;
            if (!removes_them && !as_described.ended) {
                source.configuration = before;
                verdict.trial = std::move(as_described);
            }
        }
        if (verdict.trial.agrees() && !source.configuration->equals(*before)) {
            std::vector<Finding> wrong = source.configuration->differences(*before, source.name);
            const auto at = first_contradiction(stretches, *before, *known.memory);
            for (Finding& finding : wrong) finding.offset = at;
            add_findings(source, std::move(wrong));
        }
        classify(verdict, waypoints_of(source));
        if (fits(verdict)) return;
        const auto& dumps = session_.capture.dumps;
        const bool one = std::count_if(dumps.begin(), dumps.end(), [&](const capture::MemoryDump& d) {
                             return d.core.empty() || d.core == known.core;
                         }) == 1;
        if (one) {
            const auto dump = std::find_if(dumps.begin(), dumps.end(), [&](const capture::MemoryDump& d) {
                return d.core.empty() || d.core == known.core;
            });
            image::MemoryMap map;
            if (!map.add_file(dump->file, dump->address, dump->offset, dump->length)) return;
            verdict.shift = find_shift(stretches, {source.configuration}, map, {});
            if (verdict.shift) {
                verdict.kind = ImageVerdict::Kind::shifted;
                verdict.argument = fmt::format("{}@{:#x}", dump->file.string(),
                                               (dump->address.value + verdict.shift->bytes) & 0xffffffffU);
            }
        }
    }
    static std::optional<Offset> first_contradiction(const std::vector<Stretch>& stretches,
                                                     const Configuration& configuration, const isa::CodeReader& code) {
        const Trial trial = try_image(stretches, configuration, code);
        return trial.first ? std::optional(trial.first->offset) : std::nullopt;
    }
    /// Atoms and branch packets of the trace.
    static std::uint64_t waypoints_of(const SourceReport& source) { return source.identity.waypoints; }
    static void classify(ImageVerdict& verdict, std::uint64_t waypoints) {
        using Kind = ImageVerdict::Kind;
        Trial& trial = verdict.trial;
        trial.waypoints = waypoints;
        const bool most = trial.contradictions == 0 && trial.totals.ranges != 0 &&
                          trial.percent_explained() >= percent_to_agree &&
                          trial.strayed <= 1 + trial.totals.ranges / 10;
        verdict.kind = trial.proven() || most ? Kind::matches
                       : trial.agrees() && trial.contradictions != 0 && trial.confirmed >= paths_to_prove
                           ? Kind::in_part
                       : trial.contradictions != 0 ? Kind::contradicts
                                                   : Kind::not_reached;
    }
    static bool fits(const ImageVerdict& verdict) {
        using Kind = ImageVerdict::Kind;
        return verdict.kind == Kind::matches || verdict.kind == Kind::in_part || verdict.kind == Kind::shifted;
    }

    void judge_image(SourceReport& source, const std::vector<Stretch>& stretches, const std::string& argument,
                     ImageVerdict& verdict) {
        const LoadImage load = load_argument(argument);
        const Mapping mapping = mapping_of(argument, session_.capture.modules);
        if (!mapping.build_id.empty()) {
            verdict.kind = ImageVerdict::Kind::other_build;
            verdict.why = fmt::format("its build ID is {}; {}", mapping.build_id,
                                      mapping.build_id_there.empty()
                                          ? "no file that was mapped while the trace was taken has that"
                                          : "that of the file of this name that ran is " + mapping.build_id_there);
            return;
        }
        const auto map = load(mapping.load_bias.value_or(0));
        if (!map) {
            verdict.kind = ImageVerdict::Kind::unreadable;
            verdict.why = map.error().message;
            return;
        }
        SharedConfiguration configuration = source.configuration;
        verdict.trial = best_trial(stretches, configuration, **map, !source.configured);
        classify(verdict, waypoints_of(source));
        if (fits(verdict)) {
            verdict.argument = mapping.load_bias ? fmt::format("{}@{:#x}", argument, *mapping.load_bias) : argument;
            if (!source.configured) source.configuration = configuration;
            return;
        }
        if (mapping.load_bias) return;  // no other address comes into question
        std::vector<SharedConfiguration> configurations{source.configuration};
        if (!source.configured)
            for (SharedConfiguration& variant : source.configuration->variants())
                configurations.push_back(std::move(variant));
        verdict.shift = find_shift(stretches, configurations, **map, grid_of(argument));
        if (verdict.shift) source.configuration = configurations[verdict.shift->configuration];
        if (!verdict.shift) return;
        verdict.kind = ImageVerdict::Kind::shifted;
        const auto parsed = image::parse_image_argument(argument);
        verdict.argument =
            fmt::format("{}@{:#x}", parsed->path.string(),
                        (parsed->address.value_or(Address{}).value + verdict.shift->bytes) & 0xffffffffU);
    }

    void check_images() {
        for (const SourceReport& source : report_.sources) {
            if (!source.has_flow()) continue;
            std::string right;
            if (source.image) {
                const ImageVerdict& v = report_.images[*source.image];
                right = v.argument.empty() ? v.image : v.argument;
            }
            bool any = false;
            for (const ImageVerdict& v : report_.images) {
                if (v.source != source.name) continue;
                any = true;
                report_image(source, v, right);
            }
            if (!any && session_.capture.dumps.empty())
                add_finding(
                    source, Severity::note, "no-image", source.identity.first_sync, "no program image was given",
                    "the program that ran", "the capture has no memory of its own, and there is no --image",
                    "give it with --image FILE[@ADDRESS]: flow needs it, and it proves what the bytes alone do not");
        }
    }
    void report_image(const SourceReport& source, const ImageVerdict& v, const std::string& right) {
        using Kind = ImageVerdict::Kind;
        const std::string other = right.empty() || v.image == right
                                      ? std::string("give the program that ran with --image FILE[@ADDRESS]")
                                      : fmt::format("use {}, which agrees with the trace", right);
        const std::uint64_t ranges = v.trial.totals.ranges;
        if (v.kind == Kind::contradicts)
            add_finding(source, Severity::error, "image", v.trial.first->offset,
                        fmt::format("{} does not fit: {} ({})", v.image,
                                    source.identity.protocol->sentence(v.trial.first->what), evidence(v.trial)),
                        "no contradiction: trace and code of one program agree everywhere; " + proof_needs(),
                        "damaged trace, another program or version, another load address, or code that was modified in "
                        "memory",
                        other);
        if (v.kind == Kind::shifted) {
            const auto signed_shift = static_cast<std::int32_t>(static_cast<std::uint32_t>(v.shift->bytes));
            const bool raw = v.trial.first == std::nullopt && ranges == 0;
            add_finding(
                source, Severity::error, "image-shift",
                v.trial.first ? v.trial.first->offset : v.trial.first_no_memory.value_or(Offset{}),
                v.trial.first ? fmt::format("{}: {}", v.image, source.identity.protocol->sentence(v.trial.first->what))
                : raw
                    ? fmt::format("{} has nothing at {:#010x}, where execution goes", v.image, v.trial.no_memory.value)
                    : fmt::format("{} holds too little of what ran", v.image),
                fmt::format("the same image loaded {:#x} bytes {}: there {}",
                            signed_shift < 0 ? -std::int64_t{signed_shift} : std::int64_t{signed_shift},
                            signed_shift < 0 ? "lower" : "higher", evidence(v.shift->trial)),
                fmt::format("wrong load address; shift found by {}, and proven by decoding ({})",
                            counted(v.shift->votes, "agreeing address", "agreeing addresses"), proof_needs()),
                fmt::format("--image {}", v.argument));
        }
        if (v.kind == Kind::not_reached)
            add_finding(source, right.empty() ? Severity::warning : Severity::note, "image-not-reached",
                        v.trial.first_no_memory.value_or(Offset{}),
                        ranges == 0
                            ? fmt::format("{} does not fit: it holds no address the trace names (first {:#010x})",
                                          v.image, v.trial.no_memory.value)
                            : fmt::format("{} does not fit: {}", v.image, evidence(v.trial)),
                        fmt::format("the program that ran: {}% of the trace explained, or a proof, also at another "
                                    "address; {}",
                                    percent_to_agree, proof_needs()),
                        "another program, or too little of the trace ran in it", other);
        if (v.kind == Kind::other_build)
            add_finding(source, Severity::error, "image-other-build", {}, fmt::format("{}: {}", v.image, v.why),
                        "a file that was mapped", "the file was built anew, or is another program", other);
        if (v.kind == Kind::unreadable)
            add_finding(source, Severity::error, "image-unreadable", {}, v.why, "an ELF file or a raw dump",
                        "the file cannot be used", "name another file");
        if (v.kind == Kind::in_part)
            add_finding(
                source, Severity::warning, "image-here-and-there", v.trial.first->offset,
                fmt::format("{}: {} in {}, first: {}", v.image, counted(v.trial.contradictions, "contradiction"),
                            counted(ranges, "range"), source.identity.protocol->sentence(v.trial.first->what)),
                "none", "code that was modified in memory, damaged trace, or another version of the program",
                "get the buffer anew if the trace is damaged; else give the code as it was with a further --image");
        if ((v.kind == Kind::matches || v.kind == Kind::in_part) && v.trial.totals.no_memory != 0)
            add_finding(source, Severity::note, "image-partial", v.trial.first_no_memory,
                        fmt::format("{}: execution went {} where it holds nothing, first to {:#010x}", v.image,
                                    counted(v.trial.totals.no_memory, "time"), v.trial.no_memory.value),
                        "all code that ran", "the image is a part of memory", "give the rest with a further --image");
    }

    // ---- memory that the description names and that is not there

    struct Lack {
        std::uint64_t pieces = 0, bytes = 0;  ///< of memory
        bool there = false, open = false;     ///< the file is; a dump of unknown length is among them
        Address first{~std::uint64_t{0}};
        std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;  ///< [first, second]
        std::vector<std::string> cores;
    };

    void check_dumps() {
        std::map<std::filesystem::path, Lack> lacks;
        std::set<std::tuple<std::filesystem::path, std::uint64_t, std::uint64_t>> seen;
        for (const capture::MemoryDump& dump : session_.capture.dumps) {
            std::error_code error;
            const std::uintmax_t size = std::filesystem::file_size(dump.file, error);
            const std::uint64_t there = error || size < dump.offset ? 0 : size - dump.offset;
            if (!error && there != 0 && there >= dump.length.value_or(0)) continue;
            Lack& lack = lacks[dump.file];
            lack.cores.push_back(dump.core);
            // Several cores often list one and the same dump.
            if (!seen.insert({dump.file, dump.address.value, dump.offset}).second) continue;
            lack.there = !error;
            ++lack.pieces;
            const std::uint64_t from = dump.address.value + there;
            lack.first = std::min(lack.first, Address{from});
            lack.open |= !dump.length;
            lack.bytes += dump.length ? *dump.length - there : 0;
            constexpr std::uint64_t top = 0xffffffff;
            lack.ranges.emplace_back(from, dump.length ? dump.address.value + *dump.length - 1 : std::max(top, from));
        }
        for (const auto& [file, lack] : lacks) report_lack(file, lack);
    }

    void report_lack(const std::filesystem::path& file, const Lack& lack) {
        std::uint64_t went = 0, ranges = 0, judged = 0, explained = 0;
        for (std::size_t i = 0; i < report_.sources.size(); ++i) {
            if (known_[i] == nullptr || !report_.sources[i].has_flow()) continue;
            const bool sees = std::any_of(lack.cores.begin(), lack.cores.end(), [&](const std::string& core) {
                return core.empty() || known_[i]->core.empty() || core == known_[i]->core;
            });
            if (!sees) continue;
            ++judged;
            ranges += own_memory_[i].totals.ranges;
            for (const auto& place : own_memory_[i].no_memory_at)
                if (std::any_of(lack.ranges.begin(), lack.ranges.end(), [&](const auto& range) {
                        return range.first <= place.first && place.first <= range.second;
                    }))
                    went += place.second;
            if (report_.sources[i].image && !report_.images[*report_.sources[i].image].argument.empty()) ++explained;
        }
        std::string found = fmt::format("{} {}: ", file.filename().string(), lack.there ? "is cut" : "is not there");
        found += lack.open ? fmt::format("memory from {:#010x} on is missing", lack.first.value)
                           : fmt::format("{} of memory {} missing, from {:#010x} on", bytes_text(lack.bytes),
                                         are(lack.bytes), lack.first.value);
        if (lack.pieces > 1) found += fmt::format(", in {}", counted(lack.pieces, "piece"));
        if (judged != 0 && ranges == 0)
            found += "; without it nothing of the trace can be decoded";
        else if (went != 0)
            found += fmt::format("; execution went there {}, and what ran there is not decoded", counted(went, "time"));
        else if (judged != 0)
            found += "; execution was not seen to go there";
        add_finding({judged != 0 && explained == judged ? Severity::note
                     : judged != 0 && ranges == 0       ? Severity::error
                                                        : Severity::warning,
                     "image-missing",
                     {},
                     {},
                     {},
                     std::move(found),
                     "the whole file that the description names",
                     "it was not copied with the capture, or was cut",
                     "copy it into the capture's folder, or give the program that ran with --image FILE[@ADDRESS]"});
    }

    // ---- the head

    void recover(SourceReport& source, const std::vector<Stretch>& stretches, const pipeline::Source* known) {
        if (stretches.empty() || !stretches.front().head || !source.identity.protocol->recovers_head()) return;
        std::shared_ptr<const image::MemoryMap> map;
        if (source.image) {
            const ImageVerdict& v = report_.images[*source.image];
            if (v.argument.empty()) {
                if (known != nullptr) map = known->memory;
            } else if (auto loaded = load_argument(v.argument)(0); loaded) {
                map = *loaded;
            }
        }
        if (!map) return;
        const Bytes bytes = stretches.front().bytes;
        constexpr std::size_t most = std::size_t{1} << 20;
        source.head = source.configuration->recover_head(*map, pipeline::code_extents(*map),
                                                         bytes.first(std::min(bytes.size(), most)));
    }

    // ---- the sum

    /// Findings of one kind in one buffer, such as one for each of a hundred trace IDs, are one.
    void gather() {
        constexpr std::size_t shown = 3;
        std::map<std::tuple<Severity, std::string, std::string, std::string>, std::vector<std::size_t>> kinds;
        for (std::size_t i = 0; i < report_.findings.size(); ++i) {
            const Finding& f = report_.findings[i];
            if (!f.kind.starts_with("image"))
                kinds[{f.severity, f.kind, f.buffer, without_particulars(f.found)}].push_back(i);
        }
        std::vector<bool> gone(report_.findings.size());
        for (const auto& [key, alike] : kinds) {
            if (alike.size() <= shown) continue;
            Finding& first = report_.findings[alike.front()];
            std::string others;
            for (std::size_t k = 1; k < alike.size(); ++k) {
                const Finding& f = report_.findings[alike[k]];
                gone[alike[k]] = true;
                if (k < shown) others += (others.empty() ? "" : "; ") + f.found;
            }
            first.found += fmt::format("; and {} more of this kind, such as: {}", grouped(alike.size() - 1), others);
        }
        std::size_t at = 0;
        std::erase_if(report_.findings, [&](const Finding&) { return gone[at++]; });
    }

    void conclude() {
        gather();
        std::stable_sort(report_.findings.begin(), report_.findings.end(), [](const Finding& a, const Finding& b) {
            return std::pair(a.severity, a.offset) < std::pair(b.severity, b.offset);
        });
        const auto is = [&](auto&& test) { return std::any_of(report_.sources.begin(), report_.sources.end(), test); };
        report_.recognised = is([](const SourceReport& s) { return s.identity.protocol != nullptr; });
        const bool flow = is([](const SourceReport& s) { return s.has_flow(); });
        const bool code = is([](const SourceReport& s) { return s.image.has_value(); });
        const bool lacks = std::any_of(report_.findings.begin(), report_.findings.end(), [](const Finding& f) {
            return f.kind == "image-missing" && f.severity != Severity::note;
        });
        const std::size_t errors = report_.count(Severity::error), warnings = report_.count(Severity::warning);
        const std::string known =
            warnings == 0 ? std::string() : fmt::format("; {} in it should be known", counted(warnings, "thing"));
        if (!report_.recognised)
            report_.verdict =
                report_.sources.empty()
                    ? "There are no bytes of a trace source to diagnose."
                    : "Nothing here is trace of a protocol that Waymark knows; what was tried stands below.";
        else if (errors != 0)
            report_.verdict =
                fmt::format("This capture needs {} before it can be trusted.", counted(errors, "correction"));
        else if (flow && !code)
            report_.verdict = fmt::format(
                "The packets of this capture are read, but without the program that ran they decode to nothing{}.",
                known);
        else if (lacks)
            report_.verdict =
                fmt::format("This capture decodes in part, for memory that it names is missing{}.", known);
        else if (warnings != 0)
            report_.verdict = fmt::format("This capture decodes{}.", known);
        else
            report_.verdict = "Nothing is wrong with this capture.";
    }

    const pipeline::Session& session_;
    const ExamineOptions& options_;
    Report report_;
    std::vector<Sample> samples_;                  // of report_.buffers
    std::vector<std::vector<Stretch>> stretches_;  // of report_.sources
    std::vector<const pipeline::Source*> known_;   // of report_.sources; null: not described
    std::vector<Trial> own_memory_;                // of report_.sources: decoded with the capture's own memory
};

}  // namespace

std::string_view name(ImageVerdict::Kind kind) {
    switch (kind) {
        case ImageVerdict::Kind::matches: return "agrees";
        case ImageVerdict::Kind::in_part: return "agrees in part";
        case ImageVerdict::Kind::contradicts: return "does not fit";
        case ImageVerdict::Kind::not_reached: return "not reached";
        case ImageVerdict::Kind::shifted: return "agrees elsewhere";
        case ImageVerdict::Kind::other_build: return "another build";
        case ImageVerdict::Kind::unreadable: return "unreadable";
    }
    return "?";
}

std::size_t Report::count(Severity severity) const {
    return static_cast<std::size_t>(
        std::count_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.severity == severity; }));
}

Report examine(const pipeline::Session& session, bool labelled, const ExamineOptions& options) {
    return Examiner(session, labelled, options).run();
}

}  // namespace waymark::doctor
