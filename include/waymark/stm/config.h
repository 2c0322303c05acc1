/// The programming of a System Trace Macrocell, as far as the meaning of its messages depends on it (docs/spec/stm.md,
/// 5). The configuration does not change how bytes are parsed.
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
