/// Beginnings of loops for which the trace has only the last address (docs/spec/dpu.md, 5.4).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "waymark/dpu/element.h"

namespace waymark::dpu {

/// Beginnings by last address: from the program's image, which is set first and stays, or from a pair that jumped back
/// from the same address. Bounded: after `most` loops, later ones stay unknown.
class LoopStarts {
public:
    static constexpr std::size_t most = std::size_t{1} << 20;

    /// Sets a beginning from the image.
    void set(std::uint32_t last_address, std::uint32_t start) { put(last_address, {start, true}); }
    /// A change of flow of any kind.
    void saw(std::uint32_t source, std::uint32_t destination) {
        if (destination <= source) put(source, {destination, false});
    }
    /// The same from a decoder's elements; all except pairs are ignored.
    void saw(const Element& element) {
        if (element.kind == ElementKind::pair) saw(element.from, element.to);
    }
    [[nodiscard]] std::optional<std::uint32_t> find(std::uint32_t last_address) const {
        const auto found = starts_.find(last_address);
        return found == starts_.end() ? std::nullopt : std::optional(found->second.address);
    }

private:
    struct Start {
        std::uint32_t address{};
        bool fixed = false;
    };
    void put(std::uint32_t last_address, const Start& start) {
        const auto found = starts_.find(last_address);
        if (found != starts_.end()) {
            if (start.fixed || !found->second.fixed) found->second = start;
        } else if (starts_.size() < most) {
            starts_.emplace(last_address, start);
        }
    }

    std::unordered_map<std::uint32_t, Start> starts_;
};

}  // namespace waymark::dpu
