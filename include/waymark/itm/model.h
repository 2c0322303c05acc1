/// ITM and DWT as a model: messages in, bytes out (docs/spec/itm.md, 1 and 2). It knows what a decoder must
/// find in its bytes.
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
    std::uint64_t sync_messages = 0;  ///< a synchronisation packet after that many messages; 0: none
    /// The port takes one byte in `cycles_per_byte`, and the FIFO holds `fifo_bytes`; what does not fit is lost.
    /// 0: nothing is.
    std::uint64_t fifo_bytes = 0, cycles_per_byte = 1;
    bool keep_truth = true;  ///< what a decoder finds is kept; not in recordings, which may be long
};

class Model {
public:
    explicit Model(const ModelConfig& config) : config_(config) {}

    /// Something happens in a cycle, which is no earlier than that of the message before. Of `message` the fields that
    /// its kind has are sent: text, sample, exception, access, counters or time (its upper bits too).
    void tell(std::uint64_t cycle, protocol::Message message);
    /// A synchronisation packet, as the unit sends it when it is enabled.
    void sync();
    /// The bytes since the last call, which are then no longer in bytes().
    [[nodiscard]] std::vector<std::uint8_t> take() { return std::exchange(bytes_, {}); }

    [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }
    /// What a decoder finds in the bytes.
    [[nodiscard]] const std::vector<protocol::Message>& truth() const { return truth_; }

private:
    void add_packets(std::vector<std::uint8_t>& out, const protocol::Message& message);
    [[nodiscard]] bool fits(std::uint64_t cycle, std::size_t bytes);

    ModelConfig config_;
    std::vector<std::uint8_t> bytes_;
    std::vector<protocol::Message> truth_;
    std::uint32_t page_ = 0;
    std::uint64_t stamped_ = 0;                // in ticks: of the last local timestamp
    std::uint64_t sum_ = 0;                    // in ticks: of all local timestamps
    std::uint64_t told_ = 0;                   // messages sent
    std::uint64_t waiting_ = 0, drained_ = 0;  // bytes in the FIFO at cycle drained_
    bool lost_ = false, confirmed_ = false, at_least_ = false;
};

}  // namespace waymark::itm
