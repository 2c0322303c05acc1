#include "waymark/pipeline/damage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "kernel_modules.h"
#include "waymark/core/numbers.h"
#include "waymark/image/debuginfod.h"
#include "waymark/pipeline/gathered.h"
#include "waymark/pipeline/message_answers.h"
#include "waymark/pipeline/protocols.h"

namespace waymark::pipeline {

namespace {

using Kind = Damage::Kind;

Kind kind_of(const Stray& stray) {
    using coresight::TraceIdClass;
    switch (coresight::classify(stray.id)) {
        case TraceIdClass::null: return Kind::padding;
        case TraceIdClass::trigger:
        case TraceIdClass::flush: return Kind::trigger_ids;
        case TraceIdClass::source: return stray.damage ? Kind::damaged_ids : Kind::undescribed_ids;
        default: return Kind::reserved_ids;
    }
}

struct Words {
    Kind kind;
    std::string_view found, means;
};
constexpr std::string_view missing =
    "frames are damaged there, and these bytes are missing from the source that sent them";
constexpr std::array all_words{
    Words{Kind::reserved_ids, "have reserved trace IDs", missing},
    Words{Kind::trigger_ids, "have the trace ID of a trigger or flush, but are neither", missing},
    Words{Kind::padding, "are padding (trace ID 0x00) that is not zero", missing},
    Words{Kind::damaged_ids, "have trace IDs that no described source has",
          "frames are damaged there, and these bytes are missing from the source that sent them, or a source is not "
          "described"},
};

/// Number of occurrences, and number of bytes of trace that they concern.
struct Size {
    std::uint64_t times = 1;
    std::optional<std::uint64_t> bytes{};
};

Damage of_buffer(Kind kind, Severity severity, Offset first, std::string_view buffer, Size size, std::string found,
                 std::string means, std::string sentence) {
    return {kind,
            severity,
            first,
            std::string(buffer),
            {},
            std::move(found),
            std::move(means),
            fmt::format("buffer {}: {}", buffer, sentence),
            size.times,
            size.bytes};
}

}  // namespace

// ---- buffers

std::vector<Damage> stray_damage(const BufferReport& buffer) {
    struct Sum {
        std::uint64_t bytes = 0, stretches = 0;
        Offset first;
        std::string ids;
    };
    std::array<Sum, static_cast<std::size_t>(Kind::silence)> sums;
    for (const Stray& stray : buffer.strays) {
        Sum& sum = sums[static_cast<std::size_t>(kind_of(stray))];
        if (sum.bytes == 0 || stray.first < sum.first) sum.first = stray.first;
        sum.bytes += stray.bytes;
        sum.stretches += stray.stretches;
        sum.ids += fmt::format("{}{:#04x}", sum.ids.empty() ? "" : ", ", stray.id.value);
    }
    std::vector<Damage> out;
    for (const Words& words : all_words) {
        const Sum& sum = sums[static_cast<std::size_t>(words.kind)];
        if (sum.bytes == 0) continue;
        const std::string how_many =
            fmt::format("{} in {}", counted(sum.bytes, "byte"), counted(sum.stretches, "stretch", "stretches"));
        const std::string what = fmt::format(
            "{}{}", words.found, words.kind == Kind::padding ? std::string() : fmt::format(" ({})", sum.ids));
        out.push_back(
            of_buffer(words.kind, Severity::warning, sum.first, buffer.name, {sum.stretches, sum.bytes},
                      fmt::format("{} {}", how_many, what), std::string(words.means),
                      fmt::format("{}, first at offset {:#x}, {}: {}", how_many, sum.first.value, what, words.means)));
    }
    const Sum& others = sums[static_cast<std::size_t>(Kind::undescribed_ids)];
    if (others.bytes != 0) {
        const std::string bytes = counted(others.bytes, "byte");
        const std::string what = fmt::format("of trace IDs that no described source has ({})", others.ids);
        const std::string means = fmt::format("to decode them add sources with that {}, unless the frames are damaged",
                                              trace_id_register({}, {}));
        out.push_back(
            of_buffer(Kind::undescribed_ids, Severity::warning, others.first, buffer.name,
                      {others.stretches, others.bytes}, fmt::format("{} {}", bytes, what), means,
                      fmt::format("{}, first at offset {:#x}, {}; {}", bytes, others.first.value, what, means)));
    }
    return out;
}

std::vector<Damage> damage_in(const FrameLosses& frames) {
    std::vector<Damage> out;
    const coresight::Totals& t = frames.totals;
    const std::string_view format = capture::name(frames.format);
    const auto lost = [&](GapReason reason) { return t.lost[static_cast<unsigned>(reason)]; };
    const auto add = [&](Kind kind, GapReason reason, auto&& words) {
        if (lost(reason) == 0) return;
        const auto gap =
            std::find_if(frames.gaps.begin(), frames.gaps.end(), [&](const Gap& g) { return g.reason == reason; });
        const bool known = gap != frames.gaps.end();
        const auto stretches = static_cast<std::uint64_t>(std::max<std::ptrdiff_t>(
            1,
            std::count_if(frames.gaps.begin(), frames.gaps.end(), [&](const Gap& g) { return g.reason == reason; })));
        const auto [found, means, sentence] =
            words(counted(lost(reason), "byte"),
                  known ? fmt::format(" from offset {:#x} on", gap->first.value) : std::string());
        out.push_back(of_buffer(kind, Severity::warning, known ? gap->first : Offset{}, frames.buffer,
                                {stretches, lost(reason)}, found, means, sentence));
    };
    struct Texts {
        std::string found, means, sentence;
    };
    add(Kind::lost_frames, GapReason::framing, [&](const std::string& bytes, const std::string& from) {
        const std::string why = t.damaged_frames != 0 ? counted(t.damaged_frames, "frame has the forbidden ID 0x7f",
                                                                "frames have the forbidden ID 0x7f")
                                                      : "the place of the frames was lost " + times(t.sync_losses);
        const std::string means = fmt::format("the file is damaged, or not of format {}", format);
        return Texts{fmt::format("{} lost: {}", bytes, why), means,
                     fmt::format("{} lost{}: {}; {}", bytes, from, why, means)};
    });
    add(Kind::no_frame_sync, GapReason::unsynchronised, [&](const std::string& bytes, const std::string& from) {
        const std::string means =
            t.fsyncs == 0 ? "the bytes may be framed otherwise" : "normal where recording began inside a frame";
        return Texts{fmt::format("no frame sync in {}, so their frames are not known", bytes), means,
                     fmt::format("no frame sync in {}{}, so their frames are not known; {}", bytes, from, means)};
    });
    add(Kind::partial_frame, GapReason::incomplete_packet, [&](const std::string& bytes, const std::string& from) {
        const std::string means = fmt::format("the file was cut, or is not of format {}", format);
        return Texts{fmt::format("its end ({}) is no whole frame", bytes), means,
                     fmt::format("its end{} ({}) is no whole frame; {}", from, bytes, means)};
    });
    return out;
}

std::optional<Damage> cut_of(const BufferReport& buffer) {
    const auto& written = buffer.buffer->length;
    const auto damage = [&](std::string found, std::string means) {
        std::string sentence = fmt::format("{}; {}", found, means);
        Size size;
        if (buffer.bytes < *written) size.bytes = *written - buffer.bytes;
        return of_buffer(Kind::cut, Severity::error, {buffer.bytes}, buffer.name, size, std::move(found),
                         std::move(means), std::move(sentence));
    };
    if (written && !buffer.error && buffer.bytes < *written)
        return damage(fmt::format("{} of the {} that were written are missing at its end (length in trace.ini)",
                                  counted(*written - buffer.bytes, "byte"), counted(*written, "byte")),
                      "the file was cut");
    if (written && !buffer.error && buffer.bytes > *written)
        return damage(fmt::format("{} were written to it (length in trace.ini), but it holds {}",
                                  counted(*written, "byte"), grouped(buffer.bytes)),
                      "it is another file, or the capture is a mixture of two");
    if (!buffer.framed || buffer.buffer->format != capture::Buffer::Format::coresight) return std::nullopt;
    for (Damage& each : damage_in({buffer.name, buffer.buffer->format, buffer.frames, buffer.gaps}))
        if (each.kind == Kind::partial_frame) {
            each.kind = Kind::cut;
            each.severity = Severity::error;
            return std::move(each);
        }
    return std::nullopt;
}

std::vector<Damage> damage_in(const BufferReport& buffer) {
    std::vector<Damage> out, last;
    auto cut = cut_of(buffer);
    const bool is_cut = cut.has_value();
    if (cut) out.push_back(std::move(*cut));
    if (!buffer.framed) return out;
    for (Damage& each : damage_in({buffer.name, buffer.buffer->format, buffer.frames, buffer.gaps}))
        if (each.kind != Kind::partial_frame)
            out.push_back(std::move(each));
        else if (!is_cut)
            last.push_back(std::move(each));
    for (Damage& each : stray_damage(buffer)) out.push_back(std::move(each));
    std::move(last.begin(), last.end(), std::back_inserter(out));
    return out;
}

std::optional<std::string> error_of(const BufferReport& buffer) {
    if (!buffer.error) return std::nullopt;
    return fmt::format("buffer {}: {}{}", buffer.name, buffer.error->message,
                       buffer.bytes == 0 ? "" : fmt::format(" ({} read)", counted(buffer.bytes, "byte")));
}

namespace {

/// Number of bytes of a source in a buffer, as far as the buffer separates its sources.
std::uint64_t bytes_of(const Source& source, const BufferReport& buffer) {
    const std::vector<std::string>& names = buffer.buffer->sources;
    if (std::find(names.begin(), names.end(), source.name) == names.end()) return 0;
    if (buffer.framed) return source.trace_id ? buffer.frames.data[source.trace_id->value] : 0;
    return names.size() == 1 ? buffer.bytes : 0;
}

/// Whether the unit traces program flow: it has a protocol of program flow, or is an older trace macrocell.
bool traces_flow(const Source& source) { return source.has_packets() || source.type.starts_with("ETM"); }

/// Whether the unit never traces program flow: it traces a bus (HTM) or signals (ELA). Any unit of unknown type may.
bool traces_no_flow(const Source& source) { return source.type.starts_with("HTM") || source.type.starts_with("ELA"); }

}  // namespace

std::vector<Damage> not_decoded(const Session& session, const std::vector<const Source*>& selected,
                                const Report& report) {
    struct Sum {
        std::uint64_t bytes = 0, count = 0;
        std::string sources, buffer;
        std::set<std::string> names{};
    };
    Sum flow, unknown, without_flow, others;
    std::uint64_t all = 0;
    for (const BufferReport& buffer : report.buffers) {
        for (const Source& source : session.sources) all += bytes_of(source, buffer);
        for (const Source* source : selected) {
            const std::uint64_t bytes = source->has_flow() ? 0 : bytes_of(*source, buffer);
            if (bytes == 0) continue;
            Sum& sum = has_messages(*source)     ? without_flow
                       : traces_flow(*source)    ? flow
                       : traces_no_flow(*source) ? others
                                                 : unknown;
            sum.bytes += bytes;
            if (sum.buffer.empty()) sum.buffer = buffer.name;
            const std::string name =
                fmt::format("{} ({})", source->label(), source->type.empty() ? "of unknown type" : source->type);
            if (!sum.names.insert(name).second) continue;  // the same source in another buffer
            sum.sources += fmt::format("{}{}", sum.sources.empty() ? "" : ", ", name);
            ++sum.count;
        }
    }
    std::vector<Damage> out;
    for (const auto& [sum, severity] : {std::pair(&flow, Severity::warning), std::pair(&unknown, Severity::warning),
                                        std::pair(&without_flow, Severity::note), std::pair(&others, Severity::note)}) {
        if (sum->bytes == 0) continue;
        Damage damage;
        damage.kind = Kind::not_decoded;
        damage.severity = severity;
        damage.buffer = sum->buffer;
        damage.times = sum->count;
        damage.bytes = sum->bytes;
        damage.of = sum->sources;
        const std::string why = sum == &without_flow
                                    ? fmt::format("no program flow: waymark messages lists what {} sent", sum->sources)
                                    : "not decoded: Waymark does not decode the protocol of " + sum->sources;
        damage.found = fmt::format("{} of {} of sources ({:.0f} %) are {}", grouped(sum->bytes), counted(all, "byte"),
                                   100.0 * static_cast<double>(sum->bytes) / static_cast<double>(all), why);
        if (sum == &flow) damage.means = "no figure contains what ran on the cores of these sources";
        if (sum == &unknown) damage.means = "if these sources trace what ran on a core, no figure contains it";
        damage.sentence = damage.means.empty() ? damage.found : damage.found + "; " + damage.means;
        out.push_back(std::move(damage));
    }
    return out;
}

std::vector<std::string> file_damage(const Session& session) {
    std::vector<capture::Problem> damaged;
    std::copy_if(session.problems.begin(), session.problems.end(), std::back_inserter(damaged),
                 [](const capture::Problem& p) { return p.kind == capture::Problem::Kind::damage; });
    return gathered(damaged);
}

std::vector<std::string> read_errors(const Session& session, const Report& report) {
    std::vector<std::string> out = file_damage(session);
    for (const BufferReport& buffer : report.buffers) {
        if (auto cut = cut_of(buffer)) out.push_back(std::move(cut->sentence));
        if (auto unread = error_of(buffer)) out.push_back(std::move(*unread));
    }
    return out;
}

// ---- sources

std::optional<Damage> silence_of(const StreamReport& stream) {
    if (!stream.silent_from) return std::nullopt;
    const std::string others = fmt::format("while {} of other sources follow", counted(stream.bytes_of_others, "byte"));
    const std::string means = "what it sent later may have gone to their trace IDs";
    return Damage{
        Kind::silence,
        Severity::warning,
        *stream.silent_from,
        stream.buffer,
        stream.source->name,
        fmt::format("it sends nothing more in the middle of a packet, {}", others),
        means,
        fmt::format("source {}: it sends nothing more in the middle of a packet at offset {:#x} of buffer {}, {}: {}",
                    stream.source->label(), stream.silent_from->value, stream.buffer, others, means)};
}

namespace {

/// The sentence has the form `source 0x10 PTM_0: FOUND, first at offset 0x1d of buffer ETB_0: MEANS`, with `how` in
/// place of `, first` and `then` after the place.
Damage of_source(Kind kind, Severity severity, const Source& source, std::string_view buffer,
                 const flow::Trouble& trouble, std::string found, std::string means, std::string_view how,
                 std::string_view then) {
    std::string sentence = fmt::format("source {}: {}{} at offset {:#x} of buffer {}{}{}", source.label(), found, how,
                                       trouble.offset, buffer, then, means);
    // Only gaps have bytes.
    const std::optional<std::uint64_t> bytes = trouble.bytes != 0 ? std::optional(trouble.bytes) : std::nullopt;
    return {kind,
            severity,
            Offset{trouble.offset},
            std::string(buffer),
            source.name,
            std::move(found),
            std::move(means),
            std::move(sentence),
            trouble.times,
            bytes};
}

/// The image that contains an address.
std::string image_at(const image::MemoryMap& memory, std::uint64_t address) {
    for (const image::Region& region : memory.regions())
        if (!region.shadowed_by && address >= region.address.value && address - region.address.value < region.bytes)
            return memory.sections()[region.section].name;
    return memory.sections().size() == 1 ? memory.sections().front().name : "the image";
}

/// `settings`: one register or several (protocol::Words::settings).
std::string not_in_force(std::string_view settings) {
    const bool several = settings.find(" and ") != settings.npos || settings.find(" to ") != settings.npos;
    return fmt::format("{} {} in force while tracing", settings, several ? "are not the values" : "is not the value");
}

}  // namespace

std::vector<Damage> packet_damage(const Source& source, std::string_view buffer, const flow::Troubles& troubles) {
    std::vector<Damage> out;
    const protocol::Words& words = source.protocol->words();
    const auto gap = [&](GapReason reason) { return troubles.gaps[static_cast<unsigned>(reason)]; };
    for (const GapReason reason : {GapReason::reserved_header, GapReason::malformed_packet})
        if (const flow::Trouble lost = gap(reason); lost.times != 0)
            out.push_back(
                of_source(Kind::lost_packets, Severity::error, source, buffer, lost,
                          fmt::format("{}: {} lost in {} up to the next {}", name(reason), counted(lost.bytes, "byte"),
                                      counted(lost.times, "stretch", "stretches"), words.sync),
                          words.settings.empty() ? "The bytes are damaged"
                                                 : "The bytes are damaged, or " + not_in_force(words.settings),
                          ", first", ". "));
    for (const GapReason reason : {GapReason::framing, GapReason::missing})
        if (const flow::Trouble cut = gap(reason); cut.bytes != 0)
            out.push_back(
                of_source(Kind::cut_packets, Severity::warning, source, buffer, cut,
                          fmt::format("{} of packets that were cut in two where {}", counted(cut.bytes, "byte"),
                                      reason == GapReason::framing ? "frames were lost" : "trace is missing"),
                          {}, ", first", {}));
    if (const flow::Trouble cut = gap(GapReason::incomplete_packet); cut.times != 0)
        out.push_back(of_source(
            Kind::last_packet, Severity::note, source, buffer, cut,
            fmt::format("{} cut off ({})", counted(cut.times, "packet is", "packets are"), counted(cut.bytes, "byte")),
            "normal where recording stopped; otherwise the file was cut", cut.times == 1 ? "," : ", first", ": "));
    return out;
}

std::vector<Damage> damage_in(const StreamReport& stream, const flow::Troubles& troubles, std::uint64_t ranges) {
    std::vector<Damage> out;
    const Source& source = *stream.source;
    const std::string& buffer = stream.buffer;
    const protocol::Words& words = source.protocol->words();
    // A missing VMID does not concern the image.
    flow::Troubles of_image = troubles;
    const flow::Trouble no_vmid =
        std::exchange(of_image.contradictions[static_cast<unsigned>(flow::Conflict::vmid_missing)], {});
    if (no_vmid.times != 0)
        out.push_back(of_source(Kind::contradiction, Severity::error, source, buffer, no_vmid,
                                fmt::format("VMIDs are traced, and {} none came after an I-sync", times(no_vmid.times)),
                                "The bytes are damaged, or " + not_in_force(words.settings), ", first", ". "));
    if (const flow::Trouble all = of_image.contradicted(); all.times != 0) {
        const std::string image = image_at(*source.memory, all.address);
        // A wrong image contradicts the trace everywhere; damage and modified code do so in a few places.
        const bool rare = all.times * 50 < ranges;
        std::string means =
            rare ? fmt::format("The trace is damaged there, or the code in {} was modified in memory", image)
                 : fmt::format("The program that ran is probably not {} (give the right one with --image)", image);
        if (!rare && !words.settings.empty()) means += ", or " + not_in_force(words.settings);
        out.push_back(of_source(Kind::contradiction, Severity::error, source, buffer, all,
                                fmt::format("trace and image contradict each other {}", times(all.times)),
                                std::move(means), ", first",
                                fmt::format(": {}. ", source.protocol->sentence(of_image.first_contradiction()))));
    }
    if (const flow::Trouble& far = troubles.long_walks; far.times != 0)
        out.push_back(
            of_source(Kind::no_branch, Severity::warning, source, buffer, far,
                      fmt::format("{} no branch follows for more than 64 KiB, first from {:#010x} on", times(far.times),
                                  far.address),
                      fmt::format("{} is empty there or not the program that ran (give the right one with --image)",
                                  image_at(*source.memory, far.address)),
                      ",", ": "));
    // Where several processes lack code, missing_code() reports each missing file once.
    if (const flow::Trouble& no = troubles.no_memory; no.times != 0 && source.code == nullptr)
        out.push_back(of_source(
            Kind::no_image, Severity::warning, source, buffer, no,
            fmt::format("execution led to code without an image {}, first to {:#010x}", times(no.times), no.address),
            "give what is there with --image FILE[@ADDRESS]", {}, "; "));
    if (troubles.no_memory.times != 0 && source.code == nullptr && troubles.without_code != 0)
        out.back().ranges = troubles.without_code;
    if (const flow::Trouble& unplaced = troubles.unplaced; unplaced.times != 0)
        out.push_back(of_source(
            Kind::unplaced, Severity::warning, source, buffer, unplaced,
            fmt::format("flow is unknown in {}: {} without an address", counted(unplaced.times, "stretch", "stretches"),
                        counted(unplaced.amount, "waypoint")),
            "no figure contains what ran there", ", first", "; "));
    if (troubles.unplaced.times != 0) out.back().ranges = troubles.unplaced.amount;
    if (const flow::Trouble& hidden = troubles.untraced; hidden.times != 0)
        out.push_back(
            of_source(Kind::untraced, Severity::warning, source, buffer, hidden,
                      fmt::format("the trace omits the way through {}: {}{} ran there unseen",
                                  counted(hidden.times, "stretch", "stretches"), counted(hidden.amount, "instruction"),
                                  troubles.untraced_unsized == 0
                                      ? ""
                                      : fmt::format(", and an unknown number in {} of these",
                                                    counted(troubles.untraced_unsized, "stretch", "stretches"))),
                      hidden.amount != 0 ? "turn Q elements off (TRCCONFIGR.QE) to see all that runs"
                                         : "units leave out what ran between the last waypoint and a reset",
                      ", first", "; "));
    if (troubles.untraced.times != 0 && troubles.untraced_unsized == 0)
        out.back().instructions = troubles.untraced.amount;
    if (const flow::Trouble& open = troubles.uncommitted; open.times != 0)
        out.push_back(of_source(Kind::uncommitted, Severity::warning, source, buffer, open,
                                fmt::format("{} neither committed nor cancelled where flow ends: left out",
                                            counted(open.amount, "P0 element is", "P0 elements are")),
                                "whether these ran is unknown", ", first", "; "));
    if (troubles.uncommitted.times != 0) out.back().ranges = troubles.uncommitted.amount;
    if (const flow::Trouble& full = troubles.overflows; full.times != 0)
        out.push_back(of_source(
            Kind::overflow, Severity::warning, source, buffer, full,
            fmt::format("the unit's FIFO overflowed {}: {} missing", times(full.times),
                        has_messages(source) ? "messages are" : "stretches of execution are"),
            !has_messages(source)
                ? "trace less (address filters, no cycle counts or branch broadcasting), or raise the trace clock"
                : "send less (fewer ports, fewer samples), or raise the speed of the port",
            ", first", "; "));
    if (const auto& head = troubles.gaps[static_cast<unsigned>(GapReason::unsynchronised)]; head.times != 0)
        out.push_back(of_source(
            Kind::unsynchronised, has_messages(source) ? Severity::note : Severity::warning, source, buffer, head,
            fmt::format("the trace begins inside a packet: {} {}", counted(head.bytes, "byte"),
                        has_messages(source)
                            ? "of its rest"
                            : "before the first synchronisation. What ran there, and before, is not known"),
            {}, ", first", {}));
    auto silence = silence_of(stream);
    const bool silent = silence.has_value();
    if (silent) out.push_back(std::move(*silence));
    for (Damage& each : packet_damage(source, buffer, troubles))
        if (!silent || each.kind != Kind::last_packet) out.push_back(std::move(each));
    return out;
}

namespace {

/// Whether the code around an address of the kernel is known. Then only the target of a branch there is unknown.
bool has_section_around(const Session& session, Address address) {
    return std::any_of(session.sources.begin(), session.sources.end(), [&](const Source& source) {
        if (source.memory == nullptr) return false;
        const auto& sections = source.memory->sections();
        return std::any_of(sections.begin(), sections.end(), [&](const image::Section& s) {
            return address >= s.address && address - s.address < s.bytes;
        });
    });
}

}  // namespace

std::vector<Damage> missing_code(const Session& session, const Report& report, std::size_t most) {
    if (session.capture.spaces == nullptr) return {};
    std::map<std::optional<std::uint32_t>, MissingCode> all;
    for (const StreamReport& stream : report.streams) {
        const auto* consumer = dynamic_cast<const FlowConsumer*>(stream.consumer.get());
        if (consumer == nullptr) continue;
        for (const MissingCode& code : consumer->missing()) {
            const auto [at, fresh] = all.try_emplace(code.name, code);
            if (fresh) continue;
            at->second.times += code.times;
            at->second.outcomes += code.outcomes;
            at->second.first = std::min(at->second.first, code.first);
            at->second.threads.insert(at->second.threads.end(), code.threads.begin(), code.threads.end());
        }
    }
    std::vector<MissingCode> sorted;
    for (const auto& [name, code] : all) sorted.push_back(code);
    std::stable_sort(sorted.begin(), sorted.end(), [](const MissingCode& a, const MissingCode& b) {
        return a.outcomes != b.outcomes ? a.outcomes > b.outcomes : a.times > b.times;
    });
    std::vector<Damage> out;
    for (const MissingCode& code : sorted) {
        if (out.size() == most) {
            Damage more;
            more.kind = Damage::Kind::missing_code;
            more.severity = Severity::warning;
            more.found = fmt::format("the code of {} more is not known", counted(sorted.size() - most, "file"));
            more.sentence = more.found;
            std::uint64_t outcomes = 0;
            more.times = 0;
            for (std::size_t i = most; i < sorted.size(); ++i) {
                more.times += sorted[i].times;
                outcomes += sorted[i].outcomes;
            }
            if (outcomes != 0) more.ranges = outcomes;
            out.push_back(std::move(more));
            break;
        }
        // Each outcome belongs to the branch that ends a range.
        const std::string cost =
            fmt::format("execution went there {}, which cost {} of code: outcomes of branches have no address",
                        times(code.times), counted(code.outcomes, "range"));
        Damage damage;
        damage.kind = Damage::Kind::missing_code;
        damage.severity = Severity::warning;
        damage.times = code.times;
        if (code.outcomes != 0) damage.ranges = code.outcomes;
        if (!code.name) {
            const std::set<std::uint32_t> threads(code.threads.begin(), code.threads.end());
            const std::string whose = threads.empty() ? ""
                                                      : fmt::format(", of thread{} {}", threads.size() == 1 ? "" : "s",
                                                                    fmt::join(threads, ", "));
            damage.found =
                fmt::format("no mapping is known at {:#x} and other addresses{}: {}", code.first.value, whose, cost);
            if (code.first.value >> 63 != 0)
                damage.means =
                    "it is kernel code, and the file has no map of the kernel: record as root, or with "
                    "kernel.kptr_restrict 0";
            else if (session.capture.sampled && session.capture.spaces->names().empty())
                damage.means =
                    "the file has no maps, so it is not known which program ran, nor, if the file does not name it, on "
                    "which machine: give the program with its load address (--image FILE@0, or the address if it can "
                    "be loaded anywhere), or write the text again with perf script -F +brstack --show-mmap-events";
            else
                damage.means = fmt::format(
                    "the maps of {} are not in the file: FORK or MMAP2 records were lost (a larger ring, perf record "
                    "-m SIZE, loses fewer), the file was not copied whole, or the process started before the "
                    "recording. --image does not help: copy the file again, or record again from the start",
                    threads.empty() ? "what ran" : "its process");
        } else {
            const capture::AddressSpaces::Name& name = session.capture.spaces->names()[*code.name];
            const std::string id = capture::hex_text(name.build_id);
            damage.of = std::filesystem::path(name.file).filename().string();
            damage.found = fmt::format("the code of {}{} is not known: {}", name.file,
                                       id.empty() ? "" : fmt::format(" (build ID {})", id), cost);
            const bool file = name.file.starts_with('/') && !name.file.starts_with("//");
            if (is_kernel_module(name.file) && has_section_around(session, code.first)) {
                damage.found = fmt::format("where branches of {} lead is not known: {}", name.file, cost);
                damage.means =
                    "they lead into the kernel or other modules, whose addresses are in a copy of the recorded "
                    "machine's "
                    "/proc/kallsyms (--kallsyms FILE) or in its vmlinux (--image FILE)";
            } else if (name.file == "[kernel.kallsyms]")
                damage.means = "give the vmlinux of the recorded kernel with --image FILE";
            else if (name.file == "[vdso]" && id.size() > 2)
                damage.means = fmt::format(
                    "copy the vDSO of the recorded kernel from perf's cache to "
                    "DIR/.build-id/{}/{}/vdso (--debug-dir DIR)",
                    id.substr(0, 2), id.substr(2));
            else if (!file)
                damage.means = "no file contains it; perf.data does not contain generated code";
            else
                damage.means = fmt::format(
                    "give the file with --image FILE, or copy it to {}DIR{} (--symfs DIR, for copies of all files of "
                    "the "
                    "recorded machine)",
                    id.size() > 2
                        ? fmt::format("DIR/.build-id/{}/{}/elf (--debug-dir DIR) or to ", id.substr(0, 2), id.substr(2))
                        : "",
                    name.file);
            if (const std::string silent = image::silent_servers(); file && !silent.empty())
                damage.means += fmt::format(" ({})", silent);
        }
        damage.sentence = damage.found + "; " + damage.means;
        out.push_back(std::move(damage));
    }
    return out;
}

std::vector<Damage> uncertain_code(const Session& session, const Report& report) {
    if (session.capture.spaces == nullptr) return {};
    std::map<std::pair<std::uint32_t, std::uint32_t>, UncertainCode> all;
    for (const StreamReport& stream : report.streams) {
        const auto* consumer = dynamic_cast<const FlowConsumer*>(stream.consumer.get());
        if (consumer == nullptr) continue;
        for (const UncertainCode& code : consumer->uncertain()) {
            const auto [at, fresh] = all.try_emplace({code.name, code.other}, code);
            if (fresh) continue;
            at->second.ranges += code.ranges;
            at->second.instructions += code.instructions;
            at->second.first = std::min(at->second.first, code.first);
        }
    }
    std::vector<UncertainCode> sorted;
    for (const auto& [names, code] : all) sorted.push_back(code);
    std::stable_sort(sorted.begin(), sorted.end(),
                     [](const UncertainCode& a, const UncertainCode& b) { return a.instructions > b.instructions; });
    const auto& names = session.capture.spaces->names();
    std::vector<Damage> out;
    for (const UncertainCode& code : sorted) {
        Damage damage;
        damage.kind = Damage::Kind::uncertain_code;
        damage.severity = Severity::warning;
        damage.instructions = code.instructions;
        damage.ranges = code.ranges;
        damage.of = fmt::format("{} or {}", std::filesystem::path(names[code.name].file).filename().string(),
                                std::filesystem::path(names[code.other].file).filename().string());
        damage.found = fmt::format(
            "{} ran at {:#x} and other addresses at which {} and {} were mapped within one AUX range: they are counted "
            "for {}, but it is uncertain to which of the files they belong",
            counted(code.instructions, "instruction"), code.first.value, names[code.name].file, names[code.other].file,
            names[code.name].file);
        damage.means = "record with a smaller AUX buffer (perf record -m ,SIZE), whose ranges are shorter";
        damage.sentence = damage.found + "; " + damage.means;
        out.push_back(std::move(damage));
    }
    return out;
}

std::vector<Damage> code_damage(const Session& session, const Report& report) {
    std::vector<Damage> out = missing_code(session, report);
    for (Damage& damage : uncertain_code(session, report)) out.push_back(std::move(damage));
    return out;
}

}  // namespace waymark::pipeline
