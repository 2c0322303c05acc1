/// How a System Trace Macrocell was programmed, as far as the meaning of its messages depends on that
/// (docs/spec/stm.md, 5). The bytes parse alike with any configuration.
#pragma once

#include <cstdint>
#include <optional>

namespace waymark::stm {

struct Config {
    bool hardware_events{};
    std::optional<std::uint16_t> hardware_master{};  ///< the master under which hardware events are sent
    bool operator==(const Config&) const = default;
};

}  // namespace waymark::stm
