// Examines buffers, and the sources in them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "contents.h"
#include "examination.h"
#include "plain_text.h"
#include "waymark/capture/sigrok.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/id_register.h"
#include "waymark/protocol/listed_packets.h"

namespace waymark::doctor {

using capture::Buffer;
using coresight::TraceId;

void Buffers::look_at(const Buffer& buffer) {
    auto sample = take_sample(buffer, options_.most_bytes);
    if (!sample && sample.error().code == Errc::unsupported) {
        add_finding({Severity::error,
                     "no-trace-line",
                     buffer.name,
                     {},
                     {},
                     sample.error().message,
                     "a line that carries trace",
                     "the pin was not among the channels, was idle, or was sampled too rarely",
                     "record again with SWO, or with the clock and data lines of the trace port, among the channels"});
        return;
    }
    if (!sample) {
        report_.cut = true;
        if (is_empty(buffer))
            report_empty(buffer, sample.error().message);
        else
            add_finding({Severity::error,
                         "unreadable",
                         buffer.name,
                         {},
                         {},
                         sample.error().message,
                         "a readable file",
                         "the file is missing or not permitted",
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
                     "a file that can be read completely",
                     "a damaged disk or compressed file",
                     "get the file again; the part before the error was examined"});
    }
    report_wiring(buffer);
    ExaminedBuffer out;
    out.name = buffer.name;
    out.files = buffer.files;
    out.parts = buffer.parts;
    out.container = buffer.container;
    out.looked_at = sample->bytes();
    out.bytes = sample->size_bytes;
    out.pieces = static_cast<unsigned>(sample->pieces.size());
    if (out.looked_at == 0) {
        report_empty(buffer, "the buffer is empty");
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
    if (look_beyond(buffer, *sample, out)) {
        report_.buffers.push_back(std::move(out));
        samples_.emplace_back();
        return;
    }
    const Taken taken = choose_reading(buffer, *sample, out);
    report_frames(buffer, out, taken);
    find_sources(buffer, out, taken);
    report_.buffers.push_back(std::move(out));
    samples_.push_back(std::move(*sample));
}

/// Whether its files are there, without a byte.
bool Buffers::is_empty(const Buffer& buffer) {
    return !buffer.files.empty() && std::all_of(buffer.files.begin(), buffer.files.end(), [](const std::string& file) {
        std::error_code failed;
        return std::filesystem::file_size(file, failed) == 0 && !failed;
    });
}
void Buffers::report_empty(const Buffer& buffer, const std::string& found) {
    add_finding({Severity::error,
                 std::string(empty_buffer),
                 buffer.name,
                 {},
                 {},
                 found,
                 "trace",
                 "nothing was recorded, or the file was not written",
                 "record again; waymark explain reads the registers of the units and of the buffer"});
}

/// Reports that samples of a logic analyser were read as the bytes of a pin or port.
void Buffers::report_wiring(const Buffer& buffer) {
    if (buffer.container != nullptr || buffer.files.size() != 1 || buffer.files.front() == "-") return;
    const auto found = capture::logic_wiring(buffer.files.front());
    if (!found || !*found) return;
    const capture::LogicWiring& wiring = **found;
    const bool uart = wiring.kind == capture::LogicWiring::Kind::uart;
    constexpr double mega = 1e6;
    std::string how =
        fmt::format("frames of a trace port of {} on {}", counted(wiring.channels.size(), "data line"), wiring.lines);
    if (uart && wiring.sample_rate > 0)
        how = fmt::format("characters of a UART of {:.3g} Mbaud on {}",
                          wiring.sample_rate / wiring.samples_per_bit / mega, wiring.lines);
    else if (uart)
        how = fmt::format("characters of a UART on {}", wiring.lines);
    if (uart) how += fmt::format(", {:.1f} samples a bit", wiring.samples_per_bit);
    if (!wiring.others.empty()) how += fmt::format("; {} carry characters too", fmt::join(wiring.others, ", "));
    add_finding({Severity::note,
                 "logic-samples",
                 buffer.name,
                 {},
                 {},
                 fmt::format("a session of sigrok: {}", how),
                 "bytes of trace units",
                 "a logic analyser recorded the pins",
                 "nothing; every command reads these bytes from the file, and offsets count them"});
    if (wiring.bad_characters != 0)
        add_finding({Severity::warning,
                     "logic-damage",
                     buffer.name,
                     {},
                     {},
                     fmt::format("{} of the first {} have no stop bit", grouped(wiring.bad_characters),
                                 counted(wiring.characters + wiring.bad_characters, "character")),
                     "a stop bit at the end of each character",
                     "spikes, a session that begins within a character, or too few samples a bit",
                     "their bytes are omitted; sample at least three times a bit"});
}

/// A text that lists packets is replaced by their bytes.
bool Buffers::take_listing(const Buffer& buffer, BufferSample& sample, ExaminedBuffer& out) {
    const auto text = plain_text(sample.pieces.front().bytes);
    if (!text) return false;
    for (const Protocol* protocol : pipeline::protocols()) {
        const auto* const lists = protocol::listed_packets(protocol);
        if (lists == nullptr) continue;
        std::optional<protocol::ListedTrace> found = lists->read_text(*text);
        if (!found) continue;
        add_finding(
            {Severity::warning,
             "text-of-packets",
             buffer.name,
             {},
             Offset{},
             fmt::format("a text with {}", found->how),
             "the bytes themselves",
             "a debugger or script printed packets that it read from the buffer",
             "--write-snapshot DIR writes the packets in the unit's own form; all findings below are about them"});
        for (CaptureFinding& lack : found->lacks) {
            lack.buffer = buffer.name;
            add_finding(std::move(lack));
        }
        out.listed = protocol;
        out.decoded = std::make_shared<const std::vector<std::uint8_t>>(found->bytes);
        out.looked_at = found->bytes.size();
        sample.pieces.front().bytes = std::move(found->bytes);
        sample.size_bytes = out.looked_at;
        out.bytes = out.looked_at;
        return true;
    }
    return false;
}

/// Returns true if the buffer contains no trace. A text of digits is replaced by the bytes that the digits stand for.
bool Buffers::look_beyond(const Buffer& buffer, BufferSample& sample, ExaminedBuffer& out) {
    if (sample.whole() && sample.pieces.size() == 1 && take_listing(buffer, sample, out)) return false;
    std::vector<DecodedText> readings;
    if (sample.whole() && sample.pieces.size() == 1) readings = decode_text(sample.pieces.front().bytes);
    if (!readings.empty()) {
        auto best = readings.begin();
        std::uint64_t most = 0;
        for (auto reading = readings.begin(); reading != readings.end(); ++reading) {
            ExaminedBuffer tried = out;
            BufferSample bytes;
            bytes.pieces.push_back({{}, reading->bytes});
            bytes.size_bytes = reading->bytes.size();
            tried.looked_at = reading->bytes.size();
            const FramingChoice choice(examination_);
            if (choice.recognises(buffer, bytes, tried)) {
                best = reading;
                break;
            }
            // No reading is certain: choose the one with the most recognised bytes.
            const std::size_t findings = report_.findings.size();
            const std::uint64_t found = choice.recognised_bytes(choice.choose(buffer, bytes, tried));
            report_.findings.resize(findings);
            if (found <= most) continue;
            most = found;
            best = reading;
        }
        add_finding({Severity::warning,
                     "text-of-bytes",
                     buffer.name,
                     {},
                     Offset{},
                     fmt::format("a text with {}: {}", best->how, bytes_text(best->bytes.size())),
                     "the bytes themselves",
                     "a debugger or tool printed the buffer, or wrote it for another tool",
                     "--write-snapshot DIR writes the bytes; all findings below are about them"});
        if (!best->lacks.empty())
            add_finding({Severity::warning,
                         "text-lacks-bytes",
                         buffer.name,
                         {},
                         Offset{},
                         "the text lacks bytes: " + best->lacks,
                         "every byte of the buffer, at consecutive addresses",
                         "lines were lost or changed, or the tool could not read a part of memory",
                         "print the buffer again; all offsets after the first place are too small"});
        out.decoded = std::make_shared<const std::vector<std::uint8_t>>(best->bytes);
        out.looked_at = best->bytes.size();
        sample.pieces.front().bytes = std::move(best->bytes);
        sample.size_bytes = out.looked_at;
        out.bytes = out.looked_at;
    }
    if (readings.empty() && sample.whole() && sample.pieces.size() == 1)
        if (auto found = coresight::read_orbflow(sample.pieces.front().bytes))
            take_orbflow(buffer, std::move(*found), sample, out);
    auto no_trace = no_trace_in(sample);
    if (!no_trace) return false;
    out.format = Buffer::Format::unknown;
    out.no_trace = no_trace->found;
    add_finding({Severity::error,
                 std::move(no_trace->kind),
                 buffer.name,
                 {},
                 Offset{},
                 "no trace: " + no_trace->found,
                 "bytes of a trace unit",
                 std::move(no_trace->cause),
                 std::move(no_trace->advice)});
    return true;
}

/// Replaces the frames that a probe added by their payload.
void Buffers::take_orbflow(const Buffer& buffer, coresight::Orbflow found, BufferSample& sample, ExaminedBuffer& out) {
    std::string tags;
    for (unsigned tag = 0; tag < found.bytes.size(); ++tag)
        if (found.bytes[tag] != 0)
            tags += fmt::format("{}{} under tag {}", tags.empty() ? "" : ", ", bytes_text(found.bytes[tag]), tag);
    if (found.other_bytes != 0) tags += fmt::format(", {} of the probe's own", bytes_text(found.other_bytes));
    add_finding({Severity::warning,
                 "orbflow",
                 buffer.name,
                 {},
                 Offset{},
                 fmt::format("{} of ORBFLOW: {}", counted(found.frames, "frame"), tags),
                 "bytes of trace units",
                 "an ORBTrace probe or orbuculum wrote the file",
                 fmt::format("--write-snapshot DIR writes {}; all findings below are about them",
                             found.framed ? "the bytes of all tags as CoreSight frames" : "the bytes of the tag")});
    if (found.damaged_frames != 0 || found.cut_bytes != 0)
        add_finding({Severity::warning,
                     "orbflow-damage",
                     buffer.name,
                     {},
                     found.first_damage,
                     fmt::format("{} with another sum ({}), and {} of frames that the file cuts",
                                 counted(found.damaged_frames, "frame"), bytes_text(found.damaged_bytes),
                                 bytes_text(found.cut_bytes)),
                     "frames whose bytes add up to 0",
                     "bytes were lost between the probe and the file",
                     "their bytes are omitted; packets next to them may be damaged"});
    out.decoded = std::make_shared<const std::vector<std::uint8_t>>(found.payload);
    out.looked_at = found.payload.size();
    sample.pieces.front().bytes = std::move(found.payload);
    sample.size_bytes = out.looked_at;
    out.bytes = out.looked_at;
}

namespace {

/// Whether synchronisation packets, zeros and 80, are there with the bits of each byte in reverse order, and no other.
bool has_turned_syncs(Bytes bytes) {
    constexpr std::uint64_t least_zeros = 5;
    std::uint64_t zeros = 0, turned = 0;
    for (const std::uint8_t byte : bytes) {
        if (zeros >= least_zeros && byte == 0x80) return false;
        turned += zeros >= least_zeros && byte == 0x01 ? 1 : 0;
        zeros = byte == 0 ? zeros + 1 : 0;
    }
    return turned != 0;
}

}  // namespace

/// Examines the bytes as they are, or with reversed words if only those give trace.
Taken Buffers::choose_reading(const Buffer& buffer, BufferSample& sample, ExaminedBuffer& out) {
    const FramingChoice choice(examination_);
    if (may_replace(sample, out)) {
        take_fill_off(buffer, sample, out);
        if (auto taken = take_frames_without_ids(buffer, sample, out)) return std::move(*taken);
        take_half_syncs_out(buffer, sample, out);
    }
    const ExaminedBuffer before = out;
    Taken taken = choice.choose(buffer, sample, out);
    // Any bytes contain packets of an ITM, but syncs do not occur by chance.
    const bool known = choice.recognised_bytes(taken) != 0;
    if (known && leave_rest_out(buffer, sample, out, taken)) taken = FramingChoice::frames(sample);
    if (!may_replace(sample, out) || (known && !has_turned_syncs(sample.pieces.front().bytes))) {
        name_head(buffer, sample, out, taken);
        return taken;
    }
    struct Order {
        void (*turn)(std::vector<std::uint8_t>&, std::size_t);
        std::size_t word_size;
        const char *how, *expected, *because;
    };
    constexpr const char *turned = "each word of {} bits turned round",
                         *halves = "the halves of each word of {} bits exchanged",
                         *lowest = "the byte at the lowest address first",
                         *saved = "memory was saved by words, or read by a debugger of the other byte order",
                         *pins = "a probe or logic analyser read the line with another order or level of bits";
    std::vector<Order> orders{Order{swap_words, 4, turned, lowest, saved},
                              Order{swap_words, 8, turned, lowest, saved},
                              Order{swap_words, 2, turned, lowest, saved},
                              Order{swap_halves, 8, halves, lowest, saved},
                              Order{swap_halves, 4, halves, lowest, saved},
                              Order{invert, 1, "the {} bits of each byte inverted", "1 for the high level", pins}};
    const Order bits{swap_bits, 1, "the {} bits of each byte in reverse order", "bit 0 sent first", pins};
    orders.insert(has_turned_syncs(sample.pieces.front().bytes) ? orders.begin() : orders.end() - 1, bits);
    for (const Order& order : orders) {
        if (known && order.turn != swap_bits) continue;
        BufferSample swapped = sample;
        order.turn(swapped.pieces.front().bytes, order.word_size);
        ExaminedBuffer as_swapped = before;
        if (!choice.recognises(buffer, swapped, as_swapped)) continue;
        add_finding({Severity::warning,
                     "byte-order",
                     buffer.name,
                     {},
                     Offset{},
                     fmt::format("the bytes are not recognised as they stand, but with {} they are",
                                 fmt::format(fmt::runtime(order.how), order.word_size * 8)),
                     order.expected,
                     order.because,
                     "--write-snapshot DIR writes the bytes in order; all findings below are about them"});
        out = before;
        sample = std::move(swapped);
        out.decoded = std::make_shared<const std::vector<std::uint8_t>>(sample.pieces.front().bytes);
        return choice.choose(buffer, sample, out);
    }
    if (known) name_head(buffer, sample, out, taken);
    return taken;
}

void Buffers::report_frames(const Buffer& buffer, ExaminedBuffer& out, const Taken& taken) {
    out.frames = taken.frames;
    const coresight::Totals& t = taken.frames;
    if (out.format == Buffer::Format::source_data || out.format == Buffer::Format::unknown) return;
    // Nothing shows that bytes of no known protocol are frames, unless a description does.
    if (report_.labelled || FramingChoice::recognised_bytes(taken) != 0)
        for (pipeline::Damage& damage : pipeline::damage_in({buffer.name, out.format, t, taken.gaps}))
            report_frame_damage(std::move(damage), out);
    if (t.unassociated != 0 && out.pieces == 1 && !taken.head_named)
        add_finding({Severity::note,
                     "no-id-yet",
                     buffer.name,
                     {},
                     {},
                     fmt::format("{} before the first trace ID", bytes_text(t.unassociated)),
                     "an ID first",
                     "the buffer wrapped: the ID they belong to was overwritten",
                     "nothing; a larger buffer loses less"});
    if (!taken.triggers.empty())
        add_finding({Severity::note,
                     "trigger",
                     buffer.name,
                     {},
                     taken.triggers.front(),
                     fmt::format("a trigger is marked in the frames{}; {} follow",
                                 taken.triggers.size() == 1
                                     ? std::string()
                                     : fmt::format(", and {} after it", counted(taken.triggers.size() - 1, "other")),
                                 bytes_text(out.bytes.value_or(t.bytes_read) - taken.triggers.front().value)),
                     "nothing in particular",
                     "the trace bus had a trigger there, or a trigger input of the trace buffer rose",
                     "nothing; the code that led to it is before this place"});
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

void Buffers::report_frame_damage(pipeline::Damage damage, const ExaminedBuffer& buffer) {
    using Kind = pipeline::Damage::Kind;
    // A stream with syncs may end anywhere, even within its first frame.
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
            "read the buffer again; trace continues at the next synchronisation after each damage");
    else if (damage.kind == Kind::no_frame_sync && buffer.pieces == 1)
        add(Severity::note, "no-frame-sync", "a sync first",
            buffer.frames.fsyncs == 0 ? "give the actual format of the buffer" : "nothing");
    else if (cut)
        add(Severity::error, "cut", "a multiple of 16 bytes",
            "copy the whole file, or read out the whole buffer, if it still exists");
    else if (damage.kind == Kind::partial_frame)
        add(Severity::note, "cut-frame", "a multiple of 16 bytes", "nothing, unless the file was cut");
}

void Buffers::find_sources(const Buffer& buffer, const ExaminedBuffer& out, const Taken& taken) {
    const auto described = [&](std::optional<TraceId> id) -> const pipeline::Source* {
        for (const std::string& name : buffer.sources)
            for (const pipeline::Source& source : session_.sources)
                if (source.name == name && (!id || source.trace_id == id)) return &source;
        return nullptr;
    };
    const auto take = [&](const std::vector<Stretch>& stretches, std::optional<TraceId> id) {
        ExaminedSource source;
        const pipeline::Source* known = described(id);
        source.described = known != nullptr;
        source.name = known != nullptr ? known->name : id ? fmt::format("source_{:02x}", id->value) : "source";
        source.buffer = buffer.name;
        source.trace_id = id ? id : known != nullptr ? known->trace_id : std::nullopt;
        for (const Stretch& s : stretches) source.bytes += s.bytes.size();
        source.identity = identify(stretches, id.has_value(), known != nullptr ? known->protocol : nullptr, out.listed);
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
    for (const ExaminedSource& source : report_.sources) {
        if (source.buffer != buffer.name) continue;
        if (source.described && source.identity.protocol == nullptr)
            add_finding(source, Severity::note, std::string(not_recognised), first_offset(source),
                        fmt::format("{} of a protocol that Waymark does not know", bytes_text(source.bytes)),
                        fmt::format("{}, to be decoded", pipeline::decoded_trace()),
                        fmt::format("the description says {}; the source's findings list what was tried",
                                    described(source.trace_id)->type),
                        "another tool for this source; the others are decoded without it");
    }
}

/// For a source whose description lacks its trace ID: reports which IDs of the buffer may belong to it.
void Buffers::report_no_id(const Buffer& buffer, const pipeline::Source& source) {
    const auto* const protocol =
        source.protocol;  // null for units of another kind: then IDs whose bytes match no protocol are candidates
    std::vector<std::string> ids;
    std::string setting;
    std::uint64_t bytes = 0;
    // There may be too few messages to recognise the protocol.
    const bool messages = protocol != nullptr && !protocol->decodes_flow();
    for (const ExaminedSource& other : report_.sources)
        if (other.buffer == buffer.name && !other.described &&
            (other.identity.protocol == protocol || (messages && other.identity.protocol == nullptr))) {
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
                 fmt::format("{} lacks {}, so no byte is known to belong to this source; {}", where, name,
                             ids.empty() ? "and there is no byte with an ID that no source has"
                                         : fmt::format("{} {} with IDs that no source has: {}", bytes_text(bytes),
                                                       are(bytes), fmt::join(ids, ", "))),
                 fmt::format("the trace ID that the unit was programmed with, in {}", name),
                 "the register was not read out, or was left out of the description",
                 ids.empty() ? fmt::format("write {}=ID into [regs] of {}, or remove the source", name, where)
                             : fmt::format("write {} into [regs] of {}{}", setting, where,
                                           ids.size() == 1 ? "" : ", or another of these IDs: try each")});
}

void Buffers::report_absent(const Buffer& buffer, const pipeline::Source& source) {
    // An undescribed source with the same protocol is the likely one.
    const ExaminedSource* likely = nullptr;
    for (const ExaminedSource& other : report_.sources)
        if (other.buffer == buffer.name && !other.described && other.identity.protocol != nullptr &&
            other.identity.protocol == source.protocol)
            likely = &other;
    const std::string_view id_register = pipeline::trace_id_register(source.registers, source.type);
    if (likely != nullptr)
        add_finding({Severity::error, "trace-id", buffer.name, source.name, first_offset(*likely).value_or(Offset{}),
                     fmt::format("no byte of trace ID {:#04x}, but {} of {} with {:#04x}, which no source has",
                                 source.trace_id->value, bytes_text(likely->bytes), source.protocol->words().trace,
                                 likely->trace_id->value),
                     fmt::format("{}={:#04x}", id_register, likely->trace_id->value),
                     "the ID was programmed again, or the register was read from another unit",
                     fmt::format("write {}={:#04x} for {}", id_register, likely->trace_id->value, source.name)});
    else
        add_finding({Severity::note,
                     std::string(no_bytes),
                     buffer.name,
                     source.name,
                     {},
                     fmt::format("no byte of trace ID {:#04x}", source.trace_id->value),
                     "some of its trace",
                     "the core was off or idle, its unit was not enabled or left out all that ran, or its trace was "
                     "overwritten",
                     "nothing, if nothing of this source was to be traced"});
}

}  // namespace waymark::doctor
