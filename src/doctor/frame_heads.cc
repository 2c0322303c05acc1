// The two ends of frames: what a reader begins with, full syncs or an ID before the data; and memory behind the last
// frame.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "contents.h"
#include "examination.h"
#include "waymark/coresight/bare_frames.h"

namespace waymark::doctor {

using capture::Buffer;
using coresight::TraceId;

namespace {

void replace(std::vector<std::uint8_t> bytes, BufferSample& sample, ExaminedBuffer& out) {
    out.looked_at = bytes.size();
    out.bytes = out.looked_at;
    out.decoded = std::make_shared<const std::vector<std::uint8_t>>(bytes);
    sample.pieces.front().bytes = std::move(bytes);
    sample.size_bytes = out.looked_at;
}

BufferSample sample_of(std::vector<std::uint8_t> bytes) {
    BufferSample out;
    out.size_bytes = bytes.size();
    out.pieces.push_back({{}, std::move(bytes)});
    return out;
}

std::uint64_t size_of(const std::vector<Stretch>& stretches) {
    std::uint64_t sum = 0;
    for (const Stretch& s : stretches) sum += s.bytes.size();
    return sum;
}

using KnownIds = std::array<bool, coresight::trace_ids>;

/// Whether the frame names a source that is not known, or an ID that no source has. Triggers and padding are known.
bool names_a_stranger(Bytes frame, const KnownIds& known) {
    for (std::size_t i = 0; i + 1 < coresight::frame_bytes; i += 2)
        if ((frame[i] & 1U) != 0 && !known[frame[i] >> 1]) return true;
    return false;
}

/// Where the frames end and other bytes begin, which name other sources in nearly every frame, however the frames are
/// aligned; nullopt if the frames do not end like this.
std::optional<std::size_t> end_of_frames(Bytes bytes, const KnownIds& known) {
    constexpr std::size_t frame_bytes = coresight::frame_bytes, least_frames = 16;
    const std::size_t frames = bytes.size() / frame_bytes;
    // Nine in ten of the frames behind the place.
    const auto mostly = [](std::size_t strangers, std::size_t all) { return strangers * 10 >= all * 9; };
    std::optional<std::size_t> begin;
    for (std::size_t n = frames, strangers = 0; n-- > 0;) {
        const bool stranger = names_a_stranger(bytes.subspan(n * frame_bytes, frame_bytes), known);
        strangers += stranger ? 1U : 0U;
        if (stranger && mostly(strangers, frames - n)) begin = n;
    }
    if (!begin || *begin == 0 || frames - *begin < least_frames) return std::nullopt;
    // Where bytes are missing, frames go on at another alignment.
    const Bytes rest = bytes.subspan(*begin * frame_bytes);
    for (std::size_t skip = 1; skip < frame_bytes; ++skip) {
        std::size_t strangers = 0, all = 0;
        for (std::size_t at = skip; at + frame_bytes <= rest.size(); at += frame_bytes, ++all)
            strangers += names_a_stranger(rest.subspan(at, frame_bytes), known) ? 1U : 0U;
        if (!mostly(strangers, all)) return std::nullopt;
    }
    return *begin * frame_bytes;
}

}  // namespace

/// Leaves out the end of a buffer whose bytes are no frames, as in a memory that the sink did not fill. Returns true if
/// the sample has become shorter.
bool Buffers::leave_rest_out(const Buffer& buffer, BufferSample& sample, ExaminedBuffer& out, const Taken& taken) {
    if (out.format != Buffer::Format::coresight || !sample.whole() || sample.pieces.size() != 1) return false;
    if (taken.frames.fsyncs != 0 || taken.frames.hsyncs != 0)
        return false;  // of a port, whose file ends with its trace
    KnownIds known{};
    known[0] = known[coresight::trigger_id.value] = known[coresight::flush_id.value] = true;
    for (unsigned n = 1; n < coresight::trace_ids; ++n)
        if (coresight::is_source({static_cast<std::uint8_t>(n)}) && !taken.by_id[n].empty())
            known[n] = identify(taken.by_id[n]).protocol != nullptr;
    const std::vector<std::uint8_t>& bytes = sample.pieces.front().bytes;
    const auto frames = end_of_frames(Bytes(bytes).subspan(out.skipped), known);
    if (!frames) return false;
    const std::size_t end = out.skipped + *frames;
    const bool replaces = may_replace(sample, out);
    add_finding(
        {Severity::warning,
         "no-frames",
         buffer.name,
         {},
         Offset{end},
         fmt::format("the last {} are no frames: nearly each would name a source that the {} before do not have",
                     bytes_text(bytes.size() - end), bytes_text(end)),
         "frames up to the end, or zeros",
         "the sink did not write this part of its memory, which has its contents from power-up or from before",
         replaces
             ? "nothing; these bytes are left out, by --write-snapshot DIR too"
             : fmt::format("cut the file after {}; other commands take the rest for damaged frames", bytes_text(end))});
    if (!replaces) return false;
    replace({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(end)}, sample, out);
    return true;
}

/// Leaves out the end of a buffer that no unit wrote. The packets of one source may repeat for long, those in frames
/// may not.
void Buffers::take_fill_off(const Buffer& buffer, BufferSample& sample, ExaminedBuffer& out) {
    const std::vector<std::uint8_t>& bytes = sample.pieces.front().bytes;
    auto fill = fill_at_the_end(bytes);
    if (!fill) return;
    const FramingChoice choice(examination_);
    ExaminedBuffer with = out;
    if (choice.recognises(buffer, sample, with) && with.format == Buffer::Format::source_data) return;
    const auto before = [&](std::size_t end) {
        return sample_of({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(end)});
    };
    // A sink writes whole frames.
    const std::size_t frames =
        (fill->begin + coresight::frame_bytes - 1) / coresight::frame_bytes * coresight::frame_bytes;
    for (const std::size_t end : {frames, fill->begin}) {
        BufferSample written = before(std::min(end, bytes.size()));
        ExaminedBuffer without = out;
        without.looked_at = written.bytes();
        if (!choice.recognises(buffer, written, without)) continue;
        if (end == frames && without.format == Buffer::Format::source_data) continue;
        add_finding({Severity::note,
                     "fill",
                     buffer.name,
                     {},
                     Offset{written.bytes()},
                     fmt::format("the last {} repeat {}", bytes_text(bytes.size() - written.bytes()),
                                 hex_bytes(fill->repeated, fill->repeated.size())),
                     "trace up to the end, or zeros",
                     "memory was filled before, and the sink did not write this part",
                     "nothing; these bytes are left out, by --write-snapshot DIR too"});
        replace(std::move(written.pieces.front().bytes), sample, out);
        return;
    }
}

void Buffers::take_half_syncs_out(const Buffer& buffer, BufferSample& sample, ExaminedBuffer& out) {
    auto found = coresight::read_half_syncs(sample.pieces.front().bytes);
    if (!found) return;
    const BufferSample frames = sample_of(found->frames);
    ExaminedBuffer tried = out;
    tried.looked_at = found->frames.size();
    const FramingChoice choice(examination_);
    if (!choice.recognises(buffer, frames, tried) || tried.format != Buffer::Format::coresight) return;
    add_finding(
        {Severity::warning,
         "half-syncs",
         buffer.name,
         {},
         found->first,
         fmt::format("{} and no full sync: frames without any sync, once these are removed",
                     counted(found->count, "half sync")),
         "full syncs, which show where a frame begins",
         "the trace port was not programmed to send them (FSCR), or the recording is shorter than their distance",
         "--write-snapshot DIR writes the frames; all findings below are about them"});
    replace(std::move(found->frames), sample, out);
}

std::optional<Taken> Buffers::take_frames_without_ids(const Buffer& buffer, BufferSample& sample, ExaminedBuffer& out) {
    for (std::size_t skip = 0; skip < coresight::frame_bytes; ++skip) {
        auto found = coresight::read_frames_without_ids(sample.pieces.front().bytes, skip);
        if (!found) continue;
        // Words whose halves are all even look like such frames: an MTB may write them.
        const std::vector<Stretch> plain = FramingChoice::bare(sample).bare;
        if (const Identity as_it_is = identify(plain); as_it_is.protocol != nullptr && !leaves_bytes(as_it_is, plain))
            return std::nullopt;
        const BufferSample data = sample_of(*found);
        Taken taken = FramingChoice::bare(data);
        const Identity identity = identify(taken.bare);
        if (identity.protocol == nullptr) continue;
        add_finding({Severity::warning,
                     "no-id",
                     buffer.name,
                     {},
                     Offset{skip},
                     fmt::format("frames without any sync and without any trace ID{}: {} of one source, {}",
                                 skip == 0 ? std::string() : fmt::format(", from byte {} on", skip),
                                 bytes_text(found->size()), name(identity.protocol)),
                     "an ID before the data, and again in the eighth frame at the latest",
                     "the buffer wrapped, its only source was named once, and that ID was overwritten",
                     "--write-snapshot DIR writes the bytes of the source; all findings below are about them"});
        replace(std::move(*found), sample, out);
        out.format = Buffer::Format::source_data;
        return taken;
    }
    return std::nullopt;
}

/// Data before the first ID are of one source. Sources that a formatter names in each eighth frame have few of them.
void Buffers::name_head(const Buffer& buffer, BufferSample& sample, ExaminedBuffer& out, Taken& taken) {
    constexpr std::uint64_t frames_to_repeat = 8;
    const std::uint64_t bytes = size_of(taken.nobodys);
    if (out.format != Buffer::Format::coresight || bytes <= frames_to_repeat * coresight::frame_data_bytes) return;
    const Identity head = identify(taken.nobodys, true);
    std::vector<TraceId> alike;
    std::optional<TraceId> unused;
    for (unsigned n = 1; n < coresight::trace_ids; ++n) {
        const TraceId id{static_cast<std::uint8_t>(n)};
        if (!coresight::is_source(id)) continue;
        constexpr unsigned usual = 0x10;  // of the first trace unit
        if (taken.by_id[n].empty() && !unused && n >= usual) unused = id;
        // The first ID changed the source, or it would have been there before.
        if (head.protocol == nullptr || taken.by_id[n].empty() || taken.first_named == id) continue;
        if (identify(taken.by_id[n], true).protocol == head.protocol) alike.push_back(id);
    }
    std::vector<std::string> names;
    for (const TraceId id : alike) names.push_back(fmt::format("{:#04x}", id.value));
    const bool decided = head.protocol != nullptr && alike.size() <= 1 && unused;
    const TraceId taken_for = alike.size() == 1 ? alike.front() : unused.value_or(TraceId{1});
    std::string whose = "they fit no known protocol";
    if (head.protocol != nullptr)
        whose = fmt::format("{}, {}", name(head.protocol),
                            alike.empty()       ? fmt::format("of a source that sends nothing later, so its ID is not "
                                                                    "known: {:#04x} stands for it",
                                                              taken_for.value)
                            : alike.size() == 1 ? "as only " + names.front() + " sends it later"
                                                : fmt::format("as {} send it later", fmt::join(names, ", ")));
    const bool rewrite = decided && may_replace(sample, out);
    add_finding({Severity::warning,
                 "no-id-yet",
                 buffer.name,
                 {},
                 Offset{},
                 fmt::format("{} before the first trace ID: {}", bytes_text(bytes), whose),
                 "an ID first, and again in the eighth frame at the latest",
                 "the buffer wrapped: the ID was overwritten, and the formatter does not repeat IDs",
                 rewrite ? "--write-snapshot DIR writes a frame with that ID before them; all below is about that, and "
                           "offsets are 16 bytes larger"
                         : "nothing; a larger buffer loses less"});
    taken.head_named = true;
    if (!rewrite) return;
    const Bytes all = Bytes(sample.pieces.front().bytes).subspan(out.skipped);
    const auto first = coresight::frame_that_names(taken_for);
    std::vector<std::uint8_t> with(first.begin(), first.end());
    with.insert(with.end(), all.begin(), all.end());
    out.skipped = 0;
    replace(std::move(with), sample, out);
    taken = FramingChoice::frames(sample);
    taken.head_named = true;
}

}  // namespace waymark::doctor
