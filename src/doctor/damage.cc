// Reports damage that the pipeline finds, for all commands.
#include <fmt/format.h>

#include <algorithm>

#include "examination.h"
#include "waymark/capture/byte_file.h"
#include "waymark/coresight/dstream.h"
#include "waymark/doctor/profile_view.h"
#include "waymark/pipeline/account.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/packet_counter.h"
#include "waymark/pipeline/protocols.h"
#include "waymark/protocol/ring.h"

namespace waymark::doctor {

using capture::Buffer;

namespace {

void add_stray(std::vector<pipeline::Stray>& to, const pipeline::Stray& stray) {
    const auto same = std::find_if(to.begin(), to.end(), [&](const pipeline::Stray& s) { return s.id == stray.id; });
    if (same == to.end()) return to.push_back(stray);
    same->bytes += stray.bytes;
    same->stretches += stray.stretches;
    same->damage &= stray.damage;
}

/// The bytes of a piece that come before its first frame.
std::size_t before_frames(const ExaminedBuffer& buffer, const Piece& piece) {
    // Footers of a DSTREAM are found by their distance from the beginning of the data.
    constexpr std::uint64_t block_bytes = coresight::dstream_block_bytes;
    const std::uint64_t before = buffer.format == Buffer::Format::dstream_coresight
                                     ? (block_bytes - piece.first.value % block_bytes) % block_bytes
                                     : buffer.skipped;
    return static_cast<std::size_t>(std::min<std::uint64_t>(before, piece.bytes.size()));
}
Result<std::unique_ptr<capture::ByteStream>> frames_of(const ExaminedBuffer& buffer, const Piece& piece) {
    const Bytes bytes = Bytes(piece.bytes).subspan(before_frames(buffer, piece));
    return capture::from_memory({bytes.begin(), bytes.end()});
}

/// Puts the bytes of a unit that writes into a ring of memory in the order of writing.
void arrange(Buffer& buffer, const protocol::RingSource& ring, const std::vector<std::uint8_t>& bytes) {
    const protocol::Arrangement found = ring.arrange(bytes);
    for (const protocol::Arrangement::Piece& each : found.pieces)
        buffer.parts.push_back({.offset = each.offset,
                                .bytes = each.bytes,
                                .follows = !each.lost && !buffer.parts.empty(),
                                .lost = each.lost});
    buffer.wrapped = found.wrapped;
    buffer.ends = found.ends;
    buffer.container = capture::byte_file_from_memory(bytes, buffer.name);
}

/// The account of the bytes of a profiling buffer, if they are a file as they are.
answers::Account account_of_samples(const ExaminedBuffer& buffer) {
    if (buffer.files.size() != 1 || buffer.decoded != nullptr || buffer.files.front() == "-") return {};
    ProfileViewOptions options;
    options.input.capture = buffer.files.front();
    auto view = ProfileView::open(options);
    if (!view) return {};
    view->run();
    return view->account();
}

}  // namespace

/// A session that decodes the buffer with the sources that were recognised in it.
pipeline::Session DamageOfBuffer::session_of(const ExaminedBuffer& buffer) const {
    pipeline::Session out;
    capture::Buffer& read = out.capture.buffers.emplace_back();
    read.name = buffer.name;
    read.format = buffer.format;
    // Without a description it is not known which IDs belong to sources.
    read.other_sources = !report_.labelled;
    for (const Buffer& b : session_.capture.buffers)
        if (report_.labelled && b.name == buffer.name) {
            read.other_sources = b.other_sources;
            for (const pipeline::Source& s : session_.sources)
                if (std::find(b.sources.begin(), b.sources.end(), s.name) != b.sources.end()) out.sources.push_back(s);
        }
    for (const ExaminedSource& source : report_.sources) {
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

void DamageOfBuffer::add_code(pipeline::Source& to, const ExaminedSource& source) const {
    to.type = source.configuration->source_type();
    to.names = std::make_shared<pipeline::Names>();
    to.memory = std::make_shared<image::MemoryMap>();
    if (!source.image) return;
    if (auto loaded = load_arguments(report_.images[*source.image].arguments())(0); loaded)
        to.memory = std::move(*loaded);
}

answers::Account DamageOfBuffer::account(const ExaminedBuffer& buffer, const BufferSample& sample) const {
    if (buffer.format == Buffer::Format::unknown || sample.pieces.size() != 1) return {};
    const auto samples = std::find_if(report_.sources.begin(), report_.sources.end(), [&](const ExaminedSource& s) {
        return s.buffer == buffer.name && s.identity.protocol != nullptr &&
               s.identity.protocol == pipeline::protocol_of_unit("SPE");
    });
    if (samples != report_.sources.end()) return account_of_samples(buffer);
    pipeline::Session session = session_of(buffer);
    session.capture.path = session_.capture.path;
    std::vector<const pipeline::Source*> selected;
    for (pipeline::Source& to : session.sources)
        for (const ExaminedSource& source : report_.sources)
            if (source.buffer == buffer.name && source.name == to.name) {
                if (!source.has_flow() && !source.has_messages()) return {};
                add_code(to, source);
                selected.push_back(&to);
            }
    if (selected.empty()) return {};
    const Piece& piece = sample.pieces.front();
    pipeline::OpenBuffer open = [&](const Buffer&) { return frames_of(buffer, piece); };
    if (const auto* ring = dynamic_cast<const protocol::RingSource*>(selected.front()->configuration.get())) {
        arrange(session.capture.buffers.front(), *ring, piece.bytes);
        open = {};
    }
    answers::Account out = pipeline::account_of(session, selected, {}, nullptr, open);
    if (sample.damage) answers::add(out, {.reason = answers::AccountReason::cut});
    return out;
}

void DamageOfBuffer::look_for(const ExaminedBuffer& buffer, const BufferSample& sample) {
    if (buffer.format == Buffer::Format::unknown) return;
    const pipeline::Session session = session_of(buffer);
    std::vector<const pipeline::Source*> selected;
    for (const pipeline::Source& s : session.sources) selected.push_back(&s);
    pipeline::BufferReport all;
    all.name = buffer.name;
    std::vector<Cut> cuts(report_.sources.size());
    for (const Piece& piece : sample.pieces) {
        const std::size_t skip = before_frames(buffer, piece);
        const Offset base = piece.first + skip;
        const pipeline::Report report = pipeline::run(
            session, selected,
            [](const pipeline::StreamInfo& stream) -> std::unique_ptr<pipeline::Consumer> {
                if (!stream.source.has_packets()) return nullptr;
                return std::make_unique<pipeline::PacketCounter>(stream);
            },
            {}, [&](const Buffer&) { return frames_of(buffer, piece); });
        for (pipeline::Stray stray : report.buffers.front().strays) {
            stray.first = base + stray.first.value;
            add_stray(all.strays, stray);
        }
        // If only a part was examined, a source may continue.
        for (const pipeline::StreamReport& stream : report.streams)
            report_stream(buffer, stream, base, sample.whole(), cuts);
    }
    for (std::size_t i = 0; i < cuts.size(); ++i)
        if (cuts[i].bytes != 0)
            add_finding(report_.sources[i], Severity::warning, "packets-cut-in-two", cuts[i].first,
                        fmt::format("{} of packets that were cut in two where frames were lost",
                                    counted(cuts[i].bytes, "byte")),
                        "whole packets", "the other findings about this buffer's frames show what was lost",
                        "read the buffer again; trace continues at the next synchronisation after each damage");
    for (const pipeline::Damage& damage : pipeline::stray_damage(all)) report_damage(damage);
    report_unknown_ids(buffer, all.strays);
}
void DamageOfBuffer::report_damage(const pipeline::Damage& damage) {
    using Kind = pipeline::Damage::Kind;
    if (damage.kind == Kind::undescribed_ids) return;  // reported below, with the contents of each
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
                 "read the buffer again; trace continues at the next synchronisation after each damage"});
}

void DamageOfBuffer::report_stream(const ExaminedBuffer& buffer, const pipeline::StreamReport& stream, Offset base,
                                   bool whole, std::vector<Cut>& cuts) {
    const auto* counter = dynamic_cast<const pipeline::PacketCounter*>(stream.consumer.get());
    if (counter == nullptr) return;
    const auto source = std::find_if(report_.sources.begin(), report_.sources.end(), [&](const ExaminedSource& s) {
        return s.buffer == buffer.name && s.name == stream.source->name;
    });
    if (source == report_.sources.end()) return;
    const auto& gaps = counter->survey().gaps;
    for (const GapReason reason : {GapReason::framing, GapReason::missing}) {
        const auto& cut = gaps[static_cast<unsigned>(reason)];
        if (cut.bytes == 0) continue;
        Cut& sum = cuts[static_cast<std::size_t>(source - report_.sources.begin())];
        if (sum.bytes == 0 || base + cut.first.value < sum.first) sum.first = base + cut.first.value;
        sum.bytes += cut.bytes;
    }
    const auto damage = whole ? pipeline::silence_of(stream) : std::nullopt;
    if (damage)
        add_finding(*source, Severity::warning, "silence", base + damage->first.value, damage->found,
                    "a source that ends between two packets, or where recording stops", damage->means,
                    "read the buffer again: bytes of this source are missing, or are assigned to other sources");
    else if (const auto& cut = gaps[static_cast<unsigned>(GapReason::incomplete_packet)]; whole && cut.bytes != 0)
        add_finding(*source, Severity::note, "cut-packet", base + cut.first.value,
                    fmt::format("the last {} {} a packet that is cut off", bytes_text(cut.bytes),
                                cut.bytes == 1 ? "begins" : "begin"),
                    "a whole packet", "recording stopped there, or the file was cut",
                    "nothing, unless the file was cut");
}

void DamageOfBuffer::report_unknown_ids(const ExaminedBuffer& buffer, const std::vector<pipeline::Stray>& strays) {
    for (const ExaminedSource& source : report_.sources) {
        if (!report_.labelled || source.buffer != buffer.name || source.described) continue;
        const bool damaged = std::any_of(strays.begin(), strays.end(),
                                         [&](const pipeline::Stray& s) { return s.damage && s.id == source.trace_id; });
        if (damaged) continue;
        add_finding(source, Severity::warning, "unknown-id", first_offset(source),
                    fmt::format("{} of trace ID {:#04x}: {}", bytes_text(source.bytes), source.trace_id->value,
                                name(source.identity.protocol)),
                    "IDs of described sources only", "a source is missing from the description, or has another ID",
                    source.identity.protocol != nullptr && source.identity.protocol->trace_id()
                        ? fmt::format("describe it: a device with {}={:#04x}",
                                      source.identity.protocol->trace_id()->register_name, source.trace_id->value)
                        : fmt::format("describe it, unless the frames are damaged: a device with this ID in the "
                                      "register of its kind (TRCTRACEIDR={:#04x} of an ETMv4 or ETE)",
                                      source.trace_id->value));
    }
}

}  // namespace waymark::doctor
