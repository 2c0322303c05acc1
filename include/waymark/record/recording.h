/// What takes in the chunks that QEMU's plugin fills (record/ring.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "waymark/core/result.h"

namespace waymark::record {

class Recording {
public:
    virtual ~Recording() = default;
    /// A chunk of definitions. Borrowed for the call, like that of `execution`.
    virtual void definitions(std::span<const std::uint32_t> parts) = 0;
    /// A chunk of what a thread executed.
    virtual void execution(std::uint32_t thread, std::span<const std::uint32_t> chunk) = 0;
    /// Writes out what is there, so that little is missing if the recording is cut off by force.
    [[nodiscard]] virtual Status flush() = 0;
    /// Nothing further is recorded.
    [[nodiscard]] virtual bool stopped() const = 0;
    /// What kept something from being written, once it happened.
    [[nodiscard]] virtual const std::optional<Error>& failure() const = 0;
};

}  // namespace waymark::record
