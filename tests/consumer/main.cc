#include <array>
#include <cstdint>
#include <cstdio>

#include "waymark/core/cursor.h"
#include "waymark/core/result.h"
#include "waymark/isa/isa.h"

namespace {

// A Thumb I-sync packet's address (docs/spec/pft.md, 2.6): the header byte, then four address bytes with T in bit 0.
waymark::Result<waymark::Address> isync_address(waymark::Bytes bytes) {
    waymark::Cursor cursor(bytes);
    if (cursor.u8() != 0x08) return waymark::Error{waymark::Errc::bad_format, "not an I-sync"};
    const auto address = cursor.le(4);
    if (cursor.step() != waymark::Step::ok) return waymark::Error{waymark::Errc::bad_format, "I-sync cut short"};
    return waymark::Address{address & ~std::uint64_t{1}};
}

}  // namespace

int main() {
    constexpr std::array<std::uint8_t, 6> packet{0x08, 0x7d, 0x0f, 0x00, 0x80, 0x01};
    const auto address = isync_address(packet);
    if (!address || *address != waymark::Address{0x80000f7c}) return 1;
    const auto isa = waymark::isa::name(waymark::isa::Isa::t32);
    std::printf("%.*s 0x%llx\n", static_cast<int>(isa.size()), isa.data(),
                static_cast<unsigned long long>(address->value));
    return 0;
}
