/// Trace in frames beside that of another source, as random runs of account tests have it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/coresight/formatter.h"

namespace waymark::account_test {

/// Chances of a test, as a function.
template <class Random>
class OneIn {
public:
    explicit OneIn(Random& random) : random_(&random) {}
    bool operator()(unsigned n) const { return below(n) == 0; }
    [[nodiscard]] std::size_t below(unsigned n) const { return static_cast<std::size_t>((*random_)() % n); }

private:
    Random* random_;
};

/// The IDs of the source that a test is about, and of the other.
inline constexpr std::uint8_t first_id = 0x10, second_id = 0x12;

struct Frames {
    std::vector<std::uint8_t> bytes;
    bool strays = false, damaged = false;
};

/// Puts the bytes of two sources into frames. Then frames are damaged, or pieces of the first source have the ID of no
/// source. `silent`: the first ends within a packet, and so much of the second follows that this is noticed.
template <class Named, class OneIn>
Frames in_frames(Bytes first, Bytes second, const Named& named, const OneIn& one_in, bool silent) {
    const coresight::TraceId nobody{static_cast<std::uint8_t>(one_in(2) ? 0x74 : 0x30)};
    std::size_t strays = named(one_in(4), "strays") ? 1 + one_in.below(3) : 0;
    Frames out;
    coresight::Formatter formatter(out.bytes);
    const auto send = [&](coresight::TraceId id, Bytes& from) {
        const std::size_t size = std::min(from.size(), 1 + one_in.below(60));
        formatter.add(id, from.first(size));
        from = from.subspan(size);
    };
    while (!first.empty() || !second.empty()) {
        const bool stray = strays != 0 && !first.empty() && one_in(4);
        strays -= stray ? 1 : 0;
        out.strays |= stray;
        send(stray ? nobody : coresight::TraceId{first_id}, first);
        send({second_id}, second);
    }
    constexpr std::array<std::uint8_t, 2> more{0x01, 0x41};  // a packet of an ITM
    constexpr unsigned enough = 200;
    for (unsigned i = 0; silent && i < enough; ++i) formatter.add({second_id}, more);
    formatter.flush();
    const auto frames = static_cast<unsigned>(out.bytes.size() / coresight::frame_bytes);
    out.damaged = !out.strays && frames != 0 && named(one_in(4), "damaged-frames");
    if (out.damaged)
        for (std::size_t n = 1 + one_in.below(3); n != 0; --n)
            out.bytes[coresight::frame_bytes * one_in.below(frames)] = 0xff;
    return out;
}

}  // namespace waymark::account_test
