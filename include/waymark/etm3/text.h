/// Converts packets to text and back, in the notation of `waymark packets`, and explains packets that are partial on
/// the wire.
#pragma once

#include <string>
#include <string_view>

#include "waymark/core/gap.h"
#include "waymark/core/packet_text.h"
#include "waymark/core/result.h"
#include "waymark/etm3/packet.h"
#include "waymark/etm3/state.h"

namespace waymark::etm3 {

using wire::fields_text, wire::to_text;

/// The inverse of to_text. `bad_format`: unknown name, or a field is missing, in the wrong place or has an invalid
/// value; the message names it.
[[nodiscard]] Result<Packet> from_text(std::string_view text, const Config& config);

/// The reason for an I-sync, as a word.
[[nodiscard]] std::string_view name(ISyncReason reason);

/// Called with every packet and gap of a stream, in order.
class Explainer {
public:
    explicit Explainer(const Config& config) : config_(config) {}
    /// A short phrase, such as `to 0xc0010ef4 T32, IRQ`; empty if the fields are enough.
    [[nodiscard]] std::string operator()(const Packet& packet);
    void operator()(const Gap&) {
        last_ = {};
        synced_ = false;
        timestamps_.forget();
        data_.reset();
    }

private:
    [[nodiscard]] std::string explain(const BranchAddress& p);
    [[nodiscard]] std::string explain(const ISync& p);
    [[nodiscard]] std::string explain(const ISyncCycles& p) { return explain(static_cast<const ISync&>(p)); }
    [[nodiscard]] std::string explain(const Timestamp& p);
    [[nodiscard]] std::string explain(const NormalData& p);
    [[nodiscard]] std::string explain(const OutOfOrderPlaceholder& p) { return data_text(p.addressed, p.address); }
    [[nodiscard]] std::string explain(const ValueNotTraced& p) { return data_text(p.addressed, p.address); }
    [[nodiscard]] static std::string explain(const auto&) { return {}; }
    [[nodiscard]] std::string data_text(bool addressed, const SentDataAddress& address);

    const Config config_;
    LastState last_;
    bool synced_ = false;
    TimestampState timestamps_;
    std::optional<std::uint32_t> data_;  // the last data address
};

}  // namespace waymark::etm3
