/// The state on which packets of ITM and DWT depend: where they begin, the page of stimulus ports, and both clocks
/// (docs/spec/itm.md, 2 and 3).
#pragma once

#include <cstdint>
#include <optional>

#include "waymark/core/gap.h"
#include "waymark/itm/config.h"
#include "waymark/itm/packet.h"

namespace waymark::itm {

class SourceState {
public:
    explicit SourceState(const Config& config) : prescaler_(config.prescaler) {}

    void see(const Extension& p) {
        if (!p.more && !p.hardware) page_ = p.low;
    }
    void see(const Overflow&) { exact_ = false; }
    void see(const ShortTimestamp& p) { local_ += std::uint64_t{p.delta} * prescaler_; }
    void see(const LocalTimestamp& p) { local_ += p.delta.value * prescaler_; }
    void see(const GlobalTimestamp1& p) {
        const std::uint64_t mask = (std::uint64_t{1} << p.width()) - 1;
        global_ = (global_ & ~mask) | (p.time() & mask);
        if (p.bits_27_0.bytes == 4 && p.wrapped()) high_known_ = false;
    }
    void see(const GlobalTimestamp2& p) {
        global_ = (global_ & 0x3ff'ffffU) | p.high.value << 26;
        high_known_ = true;
    }
    void see(const Sync&) { confirmed_ = true; }
    void see(const auto&) {}
    void see(const Gap& gap) {
        if (!is_loss(gap.reason)) return;
        confirmed_ = false;
        page_.reset();
        high_known_ = false;
        exact_ = false;
    }

    /// Whether a synchronisation packet came, without damage after it: then packets certainly begin where they are
    /// read. Otherwise this is an assumption.
    [[nodiscard]] bool confirmed() const { return confirmed_; }
    /// The port number, 0 to 255; nullopt after lost bytes, until a packet gives the page.
    [[nodiscard]] std::optional<unsigned> port(const Stimulus& p) const {
        if (!page_) return {};
        return *page_ * 32U + p.port;
    }
    /// Sum of the cycles of all local timestamps since the first packet.
    [[nodiscard]] std::uint64_t local() const { return local_; }
    /// Whether nothing was lost before. Otherwise `local` is a lower bound: timestamps were lost, or one of them
    /// counted from an unknown point.
    [[nodiscard]] bool exact() const { return exact_; }
    /// The global time; nullopt if the upper bits are not known.
    [[nodiscard]] std::optional<std::uint64_t> global() const {
        if (!high_known_) return {};
        return global_;
    }

private:
    unsigned prescaler_;
    std::optional<unsigned> page_ = 0U;
    std::uint64_t local_ = 0, global_ = 0;
    bool high_known_ = false, confirmed_ = false, exact_ = true;
};

}  // namespace waymark::itm
