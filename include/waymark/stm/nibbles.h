/// Consecutive numbers of four bits (nibbles). In each byte the low nibble comes first; in each value the most
/// significant nibble comes first (docs/spec/stm.md, 1).
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "waymark/core/cursor.h"
#include "waymark/core/types.h"

namespace waymark::stm {

[[nodiscard]] WM_INLINE unsigned nibble_at(const std::uint8_t* bytes, std::size_t at) {
    return bytes[at / 2] >> 4 * (at % 2) & 0xfU;
}

/// The 16 nibbles from nibble `at` on, the first one least significant. Reads nine bytes, from the byte of nibble `at`
/// on.
[[nodiscard]] WM_INLINE std::uint64_t sixteen_nibbles(const std::uint8_t* bytes, std::size_t at) {
    const std::uint8_t* const from = bytes + at / 2;
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    return at % 2 != 0 ? word >> 4 | std::uint64_t{from[8]} << 60 : word;
}
/// The number of the first `count` of them, 1 to 16, the first one most significant.
[[nodiscard]] WM_INLINE std::uint64_t number_of(std::uint64_t nibbles, unsigned count) {
    nibbles = __builtin_bswap64(nibbles);
    nibbles = (nibbles & 0x0f0f'0f0f'0f0f'0f0fU) << 4 | (nibbles >> 4 & 0x0f0f'0f0f'0f0f'0f0fU);
    return nibbles >> (64 - 4 * count);
}

/// Reads forward over borrowed bytes, starting at a nibble. After a failure, all later reads fail too.
class NibbleCursor {
public:
    WM_INLINE NibbleCursor(Bytes bytes, std::size_t at) : bytes_(bytes), at_(at) {}

    /// `count` nibbles, 0 to 16, the first one most significant.
    WM_INLINE std::uint64_t take(unsigned count) {
        if (step_ != Step::ok || count == 0) [[unlikely]]
            return 0;
        const std::size_t byte = at_ / 2;
        std::uint64_t value = 0;
        if (byte + 9 <= bytes_.size()) [[likely]] {
            value = number_of(sixteen_nibbles(bytes_.data(), at_), count);
        } else {
            if (2 * bytes_.size() - at_ < count) {
                step_ = Step::need_more;
                return 0;
            }
            for (unsigned i = 0; i < count; ++i) value = value << 4 | nibble_at(bytes_.data(), at_ + i);
        }
        at_ += count;
        return value;
    }
    /// The packet contradicts its opcode.
    WM_INLINE void bad() {
        if (step_ == Step::ok) step_ = Step::bad;
    }
    [[nodiscard]] WM_INLINE Step step() const { return step_; }
    /// The next nibble.
    [[nodiscard]] WM_INLINE std::size_t at() const { return at_; }

private:
    Bytes bytes_;
    std::size_t at_;
    Step step_ = Step::ok;
};

/// Appends nibbles to bytes. A byte with only one nibble has 0 in its high nibble, which is a NULL packet.
class NibbleWriter {
public:
    explicit NibbleWriter(std::vector<std::uint8_t>& out) : out_(out) {}
    void put(std::uint64_t value, unsigned count) {
        for (unsigned i = count; i != 0; --i) {
            const auto nibble = static_cast<std::uint8_t>(value >> 4 * (i - 1) & 0xfU);
            if (half_)
                out_.back() = static_cast<std::uint8_t>(out_.back() | nibble << 4);
            else
                out_.push_back(nibble);
            half_ = !half_;
        }
    }
    /// Whether the last byte has only one nibble.
    [[nodiscard]] bool half() const { return half_; }

private:
    std::vector<std::uint8_t>& out_;
    bool half_ = false;
};

/// Nibbles → fields (core/wire.h); every field has a codec.
class NibbleFieldReader {
public:
    WM_INLINE explicit NibbleFieldReader(NibbleCursor& cursor) : cursor_(cursor) {}
    template <class T, class Codec>
    WM_INLINE void field(std::string_view, T& value, const Codec& codec) {
        codec.read(cursor_, value);
    }

private:
    NibbleCursor& cursor_;
};

/// Fields → nibbles.
class NibbleFieldWriter {
public:
    explicit NibbleFieldWriter(NibbleWriter& out) : out_(out) {}
    template <class T, class Codec>
    void field(std::string_view, const T& value, const Codec& codec) {
        codec.write(out_, value);
    }

private:
    NibbleWriter& out_;
};

}  // namespace waymark::stm
