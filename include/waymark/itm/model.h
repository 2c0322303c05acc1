/// The model of ITM and DWT: receives messages, and writes bytes (docs/spec/itm.md, 1 and 2). It also stores the
/// messages that a decoder must find in its bytes.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "waymark/itm/config.h"
#include "waymark/itm/encoder.h"
#include "waymark/protocol/message.h"

namespace waymark::itm {

struct ModelConfig {
    Config config{};
    bool timestamps = true;           ///< a local timestamp after each message
    std::uint64_t sync_messages = 0;  ///< number of messages between synchronisation packets; 0: none
    /// The port takes one byte in `cycles_per_byte` cycles, and the FIFO has room for `fifo_bytes`; messages for which
    /// there is no room are lost. 0: no message is lost.
    std::uint64_t fifo_bytes = 0, cycles_per_byte = 1;
    bool keep_truth = true;  ///< stores the expected messages; off in recordings, which may be long
};

class Model {
public:
    explicit Model(const ModelConfig& config) : config_(config) {}

    /// Adds an event in a cycle, which must not be before the cycle of the previous message. Of `message`, the fields
    /// of its kind are sent: text, sample, exception, access, counters or time (with its upper bits).
    void tell(std::uint64_t cycle, protocol::Message message);
    /// A synchronisation packet, as sent when the unit is enabled.
    void sync();
    /// Returns the bytes since the last call and removes them from bytes().
    [[nodiscard]] std::vector<std::uint8_t> take() { return std::exchange(bytes_, {}); }

    [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }
    /// The messages that a decoder finds in the bytes.
    [[nodiscard]] const std::vector<protocol::Message>& truth() const { return truth_; }

private:
    void add_packets(std::vector<std::uint8_t>& out, const protocol::Message& message);
    [[nodiscard]] bool fits(std::uint64_t cycle, std::size_t bytes);

    ModelConfig config_;
    std::vector<std::uint8_t> bytes_;
    std::vector<protocol::Message> truth_;
    std::uint32_t page_ = 0;
    std::uint64_t stamped_ = 0;                // time of the last local timestamp, in ticks
    std::uint64_t sum_ = 0;                    // sum of all local timestamps, in ticks
    std::uint64_t told_ = 0;                   // messages sent
    std::uint64_t waiting_ = 0, drained_ = 0;  // bytes in the FIFO at cycle drained_
    bool lost_ = false, confirmed_ = false, at_least_ = false;
};

}  // namespace waymark::itm
