#include "waymark/record/recorded_extent.h"

#include <algorithm>
#include <string>

namespace waymark::record {

CompletedPart completed_part(const Code& code, std::optional<std::uint32_t> end, bool stopped,
                             std::optional<std::uint32_t> cut) {
    if (!end && cut) {
        end = cut;
        stopped = true;
    }
    const auto size = static_cast<std::uint32_t>(code.instructions.size());
    if (stopped && (*end >= size || !code.instructions[*end].may_stop)) return {0, size, false};
    return {0, std::min(end.value_or(size), size), stopped};
}

void RecordedExtent::mapped(const MapPart& part, std::string_view name) {
    for (std::optional<CodePlace>* place : {&start_, &stop_})
        if (*place) (*place)->mapped(std::string(name), {part.address}, part.file_offset, part.bytes);
}

std::optional<RecordedExtent::Piece> RecordedExtent::piece(const Code& code, CompletedPart part, bool anyway) {
    if (!began_ && !anyway) {
        const std::optional<Address> start = start_->address();
        const auto index = start ? code.index_of(*start) : std::nullopt;
        if (!index || *index >= part.end) return std::nullopt;
        part.first = *index;
        began_ = true;
    }
    const std::optional<Address> stop = stop_ ? stop_->address() : std::nullopt;
    if (!stop) return Piece{part};
    const bool has_stop = *stop >= code.address && *stop < code.end();
    const auto index = code.index_of(*stop);
    if (!index || *index < part.first || *index >= part.end) return Piece{part, false, has_stop};
    return Piece{{part.first, *index, false}, true, has_stop};
}

}  // namespace waymark::record
