/// The state on which packets of STPv2 depend: master and channel, and the timestamp (docs/spec/stm.md, 3).
#pragma once

#include <cstdint>
#include <optional>

#include "waymark/core/gap.h"
#include "waymark/stm/config.h"
#include "waymark/stm/packet.h"

namespace waymark::stm {

class SourceState {
public:
    explicit SourceState(const Config&) {}

    void see(const Master8& p) { set_master(p.value); }
    void see(const Master16& p) { set_master(p.value); }
    void see(const Channel8& p) {
        if (channel_) channel_ = (*channel_ & 0xff00U) | p.value;
    }
    void see(const Channel16& p) { channel_ = p.value; }
    void see(const MasterError&) { channel_ = 0; }
    void see(const GlobalError&) {
        master_.reset();
        channel_.reset();
    }
    void see(const VersionPacket& p) {
        version_ = p.version;
        if (master_)
            set_master(0);
        else
            channel_.reset();  // the channel of an unknown master
    }
    void see(const auto& p) {
        if constexpr (requires { p.time; }) stamp(p.time);
    }
    void see(const Gap& gap) {
        if (!is_loss(gap.reason)) return;
        master_.reset();
        channel_.reset();
        exact_ = false;
    }

    /// nullopt after lost bytes, until a packet gives the master.
    [[nodiscard]] std::optional<std::uint32_t> master() const { return master_; }
    [[nodiscard]] std::optional<std::uint32_t> channel() const { return channel_; }
    /// The last timestamp; nullopt if none was sent yet, or if no VERSION shows how to read it.
    [[nodiscard]] std::optional<std::uint64_t> time() const { return time_; }
    /// Whether no bytes were lost before it, or a whole timestamp was sent since. Otherwise the upper bits may have
    /// grown.
    [[nodiscard]] bool exact() const { return exact_; }
    /// The version of the last VERSION packet.
    [[nodiscard]] std::optional<std::uint8_t> version() const { return version_; }

private:
    static constexpr std::uint8_t binary = 3, gray = 4;

    void set_master(std::uint32_t master) {
        master_ = master;
        channel_ = 0;
    }
    void stamp(const Stamp& stamp) {
        if (version_ != binary && version_ != gray) return;
        const std::uint64_t sent =
            stamp.nibbles == 16 ? ~std::uint64_t{0} : (std::uint64_t{1} << 4 * stamp.nibbles) - 1;
        std::uint64_t value = time_.value_or(0);
        if (version_ == gray) value ^= value >> 1;
        value = (value & ~sent) | stamp.low;
        if (version_ == gray)
            for (unsigned shift = 1; shift != 64; shift *= 2) value ^= value >> shift;
        time_ = value;
        exact_ = exact_ || stamp.nibbles == 16;
    }

    std::optional<std::uint32_t> master_, channel_;
    std::optional<std::uint64_t> time_;
    std::optional<std::uint8_t> version_;
    bool exact_ = true;
};

}  // namespace waymark::stm
