/// Encodes entries as words, and words as bytes of memory (docs/spec/dpu.md, section 7).
#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

#include "waymark/core/wire.h"
#include "waymark/dpu/packet.h"

namespace waymark::dpu {

/// Converts fields to words: a walker like those in core/wire.h.
class WordWriter {
public:
    explicit WordWriter(std::vector<std::uint32_t>& out) : out_(out) {}

    template <class... Parts>
    WM_INLINE void word(Parts... parts) {
        wire::check_tiling<32, Parts...>();
        out_.push_back((put(parts) | ... | 0U));
    }
    template <class T, class Codec>
    WM_INLINE void field(std::string_view, const T& value, const Codec& codec) {
        ok_ = codec.write(out_, value) && ok_;
    }
    /// Whether every field had a value that its format can represent.
    [[nodiscard]] bool ok() const { return ok_; }

private:
    template <unsigned Hi, unsigned Lo, class T>
    static std::uint32_t put(wire::Bits<Hi, Lo, T> part) {
        return (static_cast<std::uint32_t>(part.value) & wire::mask_of<Hi - Lo + 1>) << Lo;
    }
    template <unsigned Hi, unsigned Lo>
    static std::uint32_t put(wire::Fixed<Hi, Lo> part) {
        return part.value << Lo;
    }

    std::vector<std::uint32_t>& out_;
    bool ok_ = true;
};

/// Appends the words of an entry; counter values are taken modulo 2^31. Returns false, without appending anything, if a
/// program counter is odd or in the flag page (6.2), or a count is 0 or has more than 31 bits.
template <class P>
[[nodiscard]] bool encode(std::vector<std::uint32_t>& out, const P& entry, const TraceFormat& format) {
    const std::size_t before = out.size();
    WordWriter writer(out);
    P::fields(writer, entry, format);
    if (!writer.ok()) out.resize(before);
    return writer.ok();
}
[[nodiscard]] inline bool encode(std::vector<std::uint32_t>& out, const Entry& entry, const TraceFormat& format) {
    return std::visit([&](const auto& p) { return encode(out, p, format); }, entry);
}

/// Appends the bytes of a word in memory order.
inline void append_word(std::vector<std::uint8_t>& out, std::uint32_t word, ByteOrder order) {
    for (unsigned i = 0; i < 4; ++i)
        out.push_back(static_cast<std::uint8_t>(word >> 8 * (order == ByteOrder::big ? 3 - i : i)));
}

}  // namespace waymark::dpu
