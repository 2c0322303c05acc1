/// The interface of a receiver of the chunks that QEMU's plugin filled (record/ring.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "waymark/core/result.h"

namespace waymark::record {

class Recording {
public:
    virtual ~Recording() = default;
    /// A chunk of definitions. The memory is borrowed for the call; this also applies to `execution`.
    virtual void definitions(std::span<const std::uint32_t> parts) = 0;
    /// A chunk of the execution of a thread.
    virtual void execution(std::uint32_t thread, std::span<const std::uint32_t> chunk) = 0;
    /// Writes all buffered data, so that little is missing if the recording is killed.
    [[nodiscard]] virtual Status flush() = 0;
    /// Nothing further is recorded.
    [[nodiscard]] virtual bool stopped() const = 0;
    /// The first error of writing, if there was one.
    [[nodiscard]] virtual const std::optional<Error>& failure() const = 0;
};

}  // namespace waymark::record
