/// The model of a Micro Trace Buffer: receives executed instructions, and writes its memory and registers
/// (docs/spec/mtb.md, 1 to 3).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "waymark/core/register_value.h"
#include "waymark/mtb/packet.h"

namespace waymark::mtb {

struct ModelConfig {
    unsigned mask = 6;        ///< the buffer has 2^(mask + 4) bytes
    std::uint32_t block = 0;  ///< its offset in the memory; a multiple of its size
    std::uint32_t base = 0x20000000;
    std::optional<std::uint32_t> stop_at{};  ///< watermark at which tracing stops
};

class Model {
public:
    explicit Model(const ModelConfig& config);

    /// Sets and clears EN of MTB_MASTER.
    void enable(bool on);
    [[nodiscard]] bool enabled() const { return enabled_; }
    /// An instruction completed, and execution continues at `next`, which may be an EXC_RETURN value.
    void instruction(std::uint32_t address, unsigned bytes, std::uint32_t next) {
        if (next != address + bytes) write(address, next, false);
    }
    /// An exception was taken. `preferred_return`: the value with which a return began, if the exception is chained to
    /// the one that ended.
    void exception(std::uint32_t preferred_return, std::uint32_t handler) { write(preferred_return, handler, true); }
    /// The second half of a return: execution continues at `to`.
    void returned(std::uint32_t exc_return, std::uint32_t to) { write(exc_return, to, true); }

    /// The contents of the buffer in memory order.
    [[nodiscard]] const std::vector<std::uint8_t>& buffer() const { return buffer_; }
    [[nodiscard]] std::vector<RegisterValue> registers() const;
    /// Number of packets written.
    [[nodiscard]] std::uint64_t packets() const { return packets_; }

private:
    void write(std::uint32_t source, std::uint32_t destination, bool atomic);

    const ModelConfig config_;
    std::vector<std::uint8_t> buffer_;
    std::uint32_t at_ = 0;
    std::uint64_t packets_ = 0;
    bool enabled_ = false, started_ = false, wrapped_ = false;
};

}  // namespace waymark::mtb
