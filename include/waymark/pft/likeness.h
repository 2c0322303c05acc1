/// How bytes parse as Program Flow Trace under one configuration. Every configuration is tried on bytes that nothing
/// describes; only the right one parses from each A-sync to the next.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/pft/config.h"
#include "waymark/protocol/protocol.h"

namespace waymark::pft {

struct Likeness {
    std::uint64_t bytes{}, packets{}, asyncs{}, isyncs{}, branches{}, atoms{}, exceptions{}, vmids{},
        exception_returns{};
    std::uint64_t timestamps{}, whole_timestamps{};
    std::uint64_t errors{}, lost_bytes{};  ///< stretches that are no packets
    std::uint64_t context_changes{};       ///< a periodic I-sync with another Context ID and no packet that said so
    std::uint64_t backwards_gray{}, backwards_binary{};  ///< timestamps below the one before, read either way
    std::uint64_t unsynchronised_bytes{}, padding_bytes{}, overflows{};
    std::optional<Offset> first_async{}, first_error{}, first_overflow{}, first_padding{};
    std::optional<Offset> first_context_change{};
    std::optional<Offset> first_backwards_gray{}, first_backwards_binary{}, first_timestamp{};
    std::uint64_t least_spacing = ~std::uint64_t{0}, most_spacing{}, spacings{}, spacing_sum{};  ///< of A-syncs, bytes

    /// What speaks against the configuration; 0: nothing.
    [[nodiscard]] std::uint64_t against() const;
};
[[nodiscard]] Likeness likeness(const std::vector<protocol::Stretch>& stretches, const Config& config);

/// What the recognised bytes are, and which parts of the configuration they prove. Of class protocol::Evidence in an
/// Identity of this protocol.
struct Recognised final : protocol::Evidence {
    Config config;
    Likeness likeness;                          ///< under that configuration
    std::vector<std::uint8_t> context_sizes{};  ///< other sizes of Context IDs that nothing speaks against either
    bool cycle_accurate_proven{}, context_id_proven{}, timestamp_size_proven{}, encoding_proven{}, version_proven{};
};

/// protocol::Protocol::identify, but for `out.protocol` and `out.configuration`.
[[nodiscard]] std::shared_ptr<const Recognised> recognise(const std::vector<protocol::Stretch>& stretches,
                                                          protocol::Identity& out);

}  // namespace waymark::pft
