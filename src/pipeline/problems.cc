#include "waymark/pipeline/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/diagnosis.h"
#include "waymark/pipeline/id_register.h"
#include "waymark/pipeline/packet_counter.h"

namespace waymark::pipeline {

namespace {

bool is_of(const Session& session, std::string_view buffer, std::string_view source) {
    return std::any_of(session.capture.buffers.begin(), session.capture.buffers.end(), [&](const capture::Buffer& b) {
        return b.name == buffer && std::find(b.sources.begin(), b.sources.end(), source) != b.sources.end();
    });
}

/// Converts the gaps of a survey to the form of a decoded stream's gaps.
flow::Troubles troubles_of(const protocol::Survey& survey) {
    flow::Troubles out;
    for (unsigned reason = 0; reason < gap_reasons; ++reason) {
        const auto& gap = survey.gaps[reason];
        out.gaps[reason] = {.times = gap.times, .bytes = gap.bytes, .offset = gap.first.value};
    }
    return out;
}

}  // namespace

std::vector<IdBytes> ids_in(const BufferReport& buffer, const Session& session) {
    std::vector<IdBytes> out;
    const std::vector<std::string>& names = buffer.buffer->sources;
    for (std::uint8_t id = 1; id < 0x70; ++id) {
        if (buffer.frames.data[id] == 0) continue;
        const auto source = std::find_if(session.sources.begin(), session.sources.end(), [&](const Source& s) {
            return s.trace_id && s.trace_id->value == id &&
                   std::find(names.begin(), names.end(), s.name) != names.end();
        });
        out.push_back({{id}, buffer.frames.data[id], source == session.sources.end() ? nullptr : &*source});
    }
    return out;
}

std::vector<std::string> problems_in(const Session& session, const std::vector<const Source*>& selected,
                                     const Report& report) {
    std::vector<std::string> out;
    for (const BufferReport& b : report.buffers) {
        if (b.error) out.push_back(fmt::format("buffer {}: {}", b.name, b.error->message));
        for (Damage& damage : damage_in(b)) out.push_back(std::move(damage.sentence));
        if (!b.framed) continue;
        const coresight::Totals& t = b.frames;
        if (t.accounted() != b.bytes)
            out.push_back(fmt::format("buffer {}: {} of its {} bytes are accounted for; this is a fault of Waymark",
                                      b.name, grouped(t.accounted()), grouped(b.bytes)));
        // If the buffer may contain other sources, states the known facts about them.
        std::string others;
        std::uint64_t bytes = 0;
        for (const IdBytes& of : ids_in(b, session)) {
            const bool shown = std::any_of(b.strays.begin(), b.strays.end(),
                                           [&](const Stray& stray) { return stray.id.value == of.id.value; });
            if (of.source != nullptr || shown) continue;
            bytes += of.bytes;
            others += fmt::format("{}{:#04x}", others.empty() ? "" : ", ", of.id.value);
        }
        if (bytes == 0) continue;
        std::string how = fmt::format("to decode them add sources with that {}", trace_id_register({}, {}));
        // The bytes probably belong to a source without an ID.
        for (const Source& source : session.sources)
            if (!source.trace_id && is_of(session, b.name, source.name)) {
                how = fmt::format("if they are {}'s, write {}=ID into its [regs]", source.name, id_register(source));
                break;
            }
        out.push_back(fmt::format("buffer {}: {} of trace IDs that no described source has ({}); {}", b.name,
                                  counted(bytes, "byte"), others, how));
    }
    const auto failed = [&](const std::string& name) {
        return std::any_of(report.buffers.begin(), report.buffers.end(),
                           [&](const auto& b) { return b.name == name && b.error.has_value(); });
    };
    for (const Source* source : selected) {
        const bool tied = std::any_of(report.streams.begin(), report.streams.end(),
                                      [&](const StreamReport& s) { return s.source == source; });
        // A capture in parts does not tell which sources a buffer contains.
        if (!tied && source->has_flow() && session.capture.spaces == nullptr)
            out.push_back(fmt::format("source {}: it belongs to no trace buffer", source->name));
    }
    for (const StreamReport& s : report.streams) {
        const auto* counter = dynamic_cast<const PacketCounter*>(s.consumer.get());
        if (counter == nullptr) continue;
        const protocol::Survey& survey = counter->survey();
        if (s.bytes == 0 && failed(s.buffer)) continue;
        // A source without an ID has no bytes (see above).
        if (s.bytes == 0 && !s.source->trace_id) continue;
        if (s.bytes == 0)
            out.push_back(fmt::format("source {}: it has no byte in buffer {}; the core may have been off or idle",
                                      s.source->label(), s.buffer));
        else if (!survey.first_sync)
            out.push_back(fmt::format("source {}: it cannot be decoded: {}", s.source->label(),
                                      no_sync(session.capture, {s.source}, s.bytes)));
        for (const std::string& trouble : survey.troubles)
            out.push_back(fmt::format("source {}: {}", s.source->label(), trouble));
        auto silence = silence_of(s);
        const bool silent = silence.has_value();
        if (silent) out.push_back(std::move(silence->sentence));
        for (Damage& damage : packet_damage(*s.source, s.buffer, troubles_of(survey)))
            if (!silent || damage.kind != Damage::Kind::last_packet) out.push_back(std::move(damage.sentence));
        std::uint64_t in_gaps = 0;
        for (const auto& gap : survey.gaps) in_gaps += gap.bytes;
        if (survey.bytes_in_packets + in_gaps != s.bytes)
            out.push_back(fmt::format("source {}: {} of its {} bytes are accounted for; this is a fault of Waymark",
                                      s.source->label(), grouped(survey.bytes_in_packets + in_gaps), grouped(s.bytes)));
        // If there are processes, missing mappings are reported instead.
        if (s.source->has_flow() && s.source->memory->empty() && !session.capture.spaces)
            out.push_back(
                fmt::format("source {}: no program image; flow needs one (--image FILE[@ADDRESS])", s.source->label()));
    }
    return out;
}

}  // namespace waymark::pipeline
