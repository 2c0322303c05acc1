/// The last traced address in the inner loop of the fast decoder: address and Thumb bit in one register, which is also
/// the key of a block's start (follow::Starts::key).
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "waymark/pft/codec.h"
#include "waymark/pft/state.h"

namespace waymark::pft {

class LastTarget {
public:
    /// Whether the place is A32 or T32, at an address that such an instruction can have.
    [[nodiscard]] static bool holds(const Place& place) {
        return (place.isa == Isa::t32 && (place.address.value & 1U) == 0) ||
               (place.isa == Isa::a32 && (place.address.value & 3U) == 0);
    }
    /// Precondition: holds(place).
    explicit LastTarget(const Place& place)
        : key_(static_cast<std::uint32_t>(place.address.value) | (place.isa == Isa::t32 ? 1U : 0U)) {}

    [[nodiscard]] WM_INLINE std::uint32_t key() const { return key_; }
    WM_INLINE void set_key(std::uint32_t key) { key_ = key; }
    [[nodiscard]] Place place() const { return {{std::uint64_t{key_ & ~1U}}, (key_ & 1U) != 0 ? Isa::t32 : Isa::a32}; }

    /// Reads the address bytes of a branch packet without information bytes; the caller has checked the first byte, and
    /// 5 bytes must be readable. Returns the number of address bytes; 0, without effect, for all other packets.
    WM_INLINE unsigned take(const std::uint8_t* at) {
        std::uint32_t w = 0;
        for (unsigned i = 0; i < 4; ++i) w |= std::uint32_t{at[i]} << 8 * i;
        const std::uint32_t ends = ~w & 0x80808080U;
        if (ends == 0) return take_five(w, at[4]);
        const unsigned last = static_cast<unsigned>(std::countr_zero(ends)) / 8;
        const Form& form = forms[last];
        if ((w & form.information) != 0) [[unlikely]]
            return 0;
        // Does not use a mask from the table, since later instructions would wait for it.
        const std::uint32_t bits = pack(w & (ends ^ (ends - 1)));
        // Bit 0 of the first byte is 1: in Thumb it becomes bit 0 of the key. In A32 all bits are one place higher.
        // Branchless, since a program with both instruction sets would make the branch hard to predict.
        const std::uint32_t a32 = ~key_ & 1U, twice = 0U - a32;
        const std::uint32_t sent = bits ^ a32;
        key_ = (key_ & ~(form.covered + (form.covered & twice))) | (sent + (sent & twice));
        return last + 1;
    }

private:
    /// Indexed by the number of bytes minus one.
    struct Form {
        std::uint32_t covered;      ///< bits of the key in Thumb; in A32 one bit higher
        std::uint32_t information;  ///< announces information bytes
    };
    static constexpr std::array<Form, 4> forms{
        {{0x7f, 0}, {0x1fff, 0x4000}, {0xfffff, 0x400000}, {0x7ffffff, 0x40000000}}};

    /// Joins the low 7 bits of four bytes.
    [[nodiscard]] WM_INLINE static std::uint32_t pack(std::uint32_t bytes) {
        return (bytes & 0x7fU) | (bytes >> 1 & 0x3f80U) | (bytes >> 2 & 0x1fc000U) | (bytes >> 3 & 0xfe00000U);
    }
    WM_INLINE unsigned take_five(std::uint32_t w, std::uint32_t fifth) {
        const std::uint32_t bits = pack(w);
        const std::uint32_t a32 = fifth >> 3 == 1 ? 1 : 0;
        if (a32 == 0 && fifth >> 4 != 1) return 0;
        key_ = (bits ^ a32) << a32 | fifth << (28 + a32);
        return 5;
    }

    std::uint32_t key_;
};

}  // namespace waymark::pft
