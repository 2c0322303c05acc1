#include "waymark/pipeline/damage.h"

#include <fmt/format.h>

#include <array>

#include "waymark/core/numbers.h"
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
    Words{Kind::trigger_ids, "have the trace ID of a trigger or flush, but are none", missing},
    Words{Kind::padding, "are padding (trace ID 0x00) that is not zero", missing},
    Words{Kind::damaged_ids, "have trace IDs that no described source has",
          "frames are damaged there, and these bytes are missing from the source that sent them, or a source is not "
          "described"},
};

}  // namespace

std::vector<Damage> damage_in(const BufferReport& buffer) {
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
        out.push_back({words.kind,
                       sum.first,
                       buffer.name,
                       {},
                       fmt::format("{} {}", how_many, what),
                       std::string(words.means),
                       fmt::format("buffer {}: {}, first at offset {:#x}, {}: {}", buffer.name, how_many,
                                   sum.first.value, what, words.means)});
    }
    const Sum& others = sums[static_cast<std::size_t>(Kind::undescribed_ids)];
    if (others.bytes != 0) {
        const std::string bytes = counted(others.bytes, "byte");
        const std::string what = fmt::format("of trace IDs that no described source has ({})", others.ids);
        const std::string means = fmt::format("to decode them add sources with that {}, unless the frames are damaged",
                                              trace_id_register({}, {}));
        out.push_back({Kind::undescribed_ids,
                       others.first,
                       buffer.name,
                       {},
                       fmt::format("{} {}", bytes, what),
                       means,
                       fmt::format("buffer {}: {}, first at offset {:#x}, {}; {}", buffer.name, bytes,
                                   others.first.value, what, means)});
    }
    return out;
}

std::optional<Damage> damage_in(const StreamReport& stream) {
    if (!stream.silent_from) return std::nullopt;
    const std::string others = fmt::format("while {} of other sources follow", counted(stream.bytes_of_others, "byte"));
    const std::string means = "what it sent later may have gone to their trace IDs";
    return Damage{Kind::silence,
                  *stream.silent_from,
                  stream.buffer,
                  stream.source->name,
                  fmt::format("it falls silent inside a packet, {}", others),
                  means,
                  fmt::format("source {}: it falls silent inside a packet at offset {:#x} of buffer {}, {}: {}",
                              stream.source->label(), stream.silent_from->value, stream.buffer, others, means)};
}

}  // namespace waymark::pipeline
