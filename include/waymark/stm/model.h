/// Converts messages to packets of STPv2, like a macrocell: for tests and ground truth.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "waymark/protocol/message.h"
#include "waymark/stm/encoder.h"

namespace waymark::stm {

class Model {
public:
    /// `version` is 3 for timestamps in binary, 4 for Gray code.
    explicit Model(std::uint8_t version = 3) : version_(version) {}
    /// Sends ASYNC and VERSION; master and channel are sent again after them.
    void sync();
    /// Adds one message of kind text, flag, trigger, frequency or overflow. A timestamp has the fewest nibbles that
    /// represent it.
    void add(const protocol::Message& message);
    void add_packet(const Packet& packet) { encode(writer_, packet); }
    /// Returns the complete bytes since the last call, and removes them from bytes(). If only one nibble of the last
    /// byte is written, that byte stays until the other nibble is written.
    [[nodiscard]] std::vector<std::uint8_t> take() {
        std::vector<std::uint8_t> kept(writer_.half() ? bytes_.end() - 1 : bytes_.end(), bytes_.end());
        bytes_.resize(bytes_.size() - kept.size());
        return std::exchange(bytes_, std::move(kept));
    }
    [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }

private:
    void select(const protocol::Message& message);
    [[nodiscard]] Stamp stamp(std::uint64_t time);

    std::uint8_t version_;
    std::optional<std::uint32_t> master_, channel_;
    std::optional<std::uint64_t> time_;
    std::vector<std::uint8_t> bytes_;
    NibbleWriter writer_{bytes_};
};

}  // namespace waymark::stm
