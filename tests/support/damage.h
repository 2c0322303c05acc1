/// Damaged trace, and the flow that must be right again after the damage.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "support/elements.h"
#include "support/random.h"

namespace waymark::synthetic {

/// Bytes with a place where some were changed, dropped or inserted.
struct Damage {
    std::vector<std::uint8_t> bytes;
    std::size_t first, end;  ///< [first, end) of the whole bytes
    std::uint64_t added, dropped;
};

inline Damage damage(const std::vector<std::uint8_t>& bytes, Random& random) {
    Damage d{bytes, 0, 0, 0, 0};
    const auto size = static_cast<std::uint32_t>(bytes.size());
    d.first = random.below(size);
    const std::uint32_t length =
        std::min(1 + random.below(random.half() ? 4 : 60), size - static_cast<std::uint32_t>(d.first));
    d.end = d.first + length;
    const auto at = d.bytes.begin() + static_cast<std::ptrdiff_t>(d.first);
    switch (random.below(4)) {
        case 0: *at = static_cast<std::uint8_t>(*at ^ (1U << random.below(8))); break;
        case 1:
            for (std::uint32_t i = 0; i < length; ++i)
                at[static_cast<std::ptrdiff_t>(i)] = static_cast<std::uint8_t>(random());
            break;
        case 2:
            d.bytes.erase(at, at + static_cast<std::ptrdiff_t>(length));
            d.dropped = length;
            break;
        default: {
            std::vector<std::uint8_t> more(length);
            for (auto& byte : more) byte = static_cast<std::uint8_t>(random.half() ? random() : 0);
            d.bytes.insert(at, more.begin(), more.end());
            d.added = length;
            break;
        }
    }
    return d;
}

/// Flow after offset `from`, each element with the context it ran in: it must be right again after a synchronisation.
/// The VMID may stay unknown up to its packet. Whether time went back depends on earlier trace.
inline std::vector<Element> flow_after(const std::vector<Element>& elements, std::uint64_t from, std::uint64_t add,
                                       std::uint64_t subtract) {
    std::vector<Element> out;
    std::uint64_t context = 0;
    for (const Element& e : elements) {
        if (e.kind == Kind::context) context = e.a | e.b << 1 | e.c << 2;
        const bool time =
            e.kind == Kind::inconsistency && static_cast<flow::Conflict>(e.a) == flow::Conflict::time_goes_back;
        if (e.offset <= from || e.kind == Kind::context || time) continue;
        Element next = e;
        next.offset = e.offset + add - subtract;
        if (e.kind == Kind::range || e.kind == Kind::exception || e.kind == Kind::exception_return) next.d = context;
        out.push_back(next);
    }
    return out;
}

}  // namespace waymark::synthetic
