/// The definitions in a chunk of the ring (record/ring.h), part by part.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

#include "waymark/core/types.h"
#include "waymark/record/code.h"
#include "waymark/record/ring.h"

namespace waymark::record {

/// A part: its header and the data after it. Borrows from the chunk.
class DefinitionPart {
public:
    explicit DefinitionPart(std::span<const std::uint32_t> words)
        : kind_(static_cast<PartKind>(words[0])),
          bytes_(reinterpret_cast<const std::uint8_t*>(words.data()), words.size_bytes()) {}

    /// Copies the header. Returns false if the part is of another kind, or shorter than its header states.
    template <class Header>
    [[nodiscard]] bool is(Header& header) const {
        if (kind_ != header.kind || bytes_.size() < sizeof header) return false;
        std::memcpy(&header, bytes_.data(), sizeof header);
        const std::size_t rest = bytes_.size() - sizeof header;
        if constexpr (std::is_same_v<Header, BlockPart>)
            return header.id <= words::max_block &&
                   std::uint64_t{header.code_bytes} + std::uint64_t{header.text_bytes} <= rest;
        else if constexpr (std::is_same_v<Header, PagePart>)
            return page_bytes <= rest;
        else
            return true;
    }

    /// The data after the header.
    template <class Header>
    [[nodiscard]] Bytes after(const Header& header) const {
        return bytes_.subspan(sizeof header);
    }

    /// The name after the header.
    template <class Header>
    [[nodiscard]] std::string_view name(const Header& header) const {
        const Bytes text = after(header);
        return {reinterpret_cast<const char*>(text.data()), std::min<std::size_t>(header.name_bytes, text.size())};
    }

    /// The block that the part defines.
    [[nodiscard]] Definition definition(const BlockPart& block) const {
        const std::uint8_t* const code = after(block).data();
        return {{block.address},
                {code, code + block.code_bytes},
                block.instructions,
                block.second == 0 ? std::nullopt : std::optional<Address>{{block.second}},
                {reinterpret_cast<const char*>(code) + block.code_bytes, block.text_bytes}};
    }

private:
    PartKind kind_;
    Bytes bytes_;
};

/// Calls f(DefinitionPart) for each part; an impossible part ends the chunk.
template <class F>
void for_each_part(std::span<const std::uint32_t> parts, F&& f) {
    while (parts.size() >= 2) {
        const std::size_t words = parts[1];
        if (words < 2 || words > parts.size()) return;
        f(DefinitionPart(parts.first(words)));
        parts = parts.subspan(words);
    }
}

/// Whether a recording that knows `known` blocks may receive a block with this number. The plugin counts blocks, so a
/// number that is far off did not come from the plugin.
[[nodiscard]] constexpr bool may_follow(std::uint32_t block, std::size_t known) {
    constexpr std::size_t ahead = 1 << 16;
    return block <= known + ahead;
}

}  // namespace waymark::record
