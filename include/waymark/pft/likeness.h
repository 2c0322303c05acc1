/// The result of parsing bytes as Program Flow Trace with one configuration. For undescribed bytes every configuration
/// is tried; only the right one parses from each A-sync to the next.
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
    std::uint64_t errors{}, lost_bytes{};  ///< stretches that are not packets
    std::uint64_t context_changes{};       ///< periodic I-syncs with another Context ID that no packet announced
    std::uint64_t backwards_gray{}, backwards_binary{};  ///< timestamps smaller than the previous one, in both readings
    std::uint64_t unsynchronised_bytes{}, padding_bytes{}, overflows{};
    std::optional<Offset> first_async{}, first_error{}, first_overflow{}, first_padding{};
    std::optional<Offset> first_context_change{};
    std::optional<Offset> first_backwards_gray{}, first_backwards_binary{}, first_timestamp{};
    std::uint64_t least_spacing = ~std::uint64_t{0}, most_spacing{}, spacings{}, spacing_sum{};  ///< of A-syncs, bytes

    /// Amount of evidence against the configuration; 0: none.
    [[nodiscard]] std::uint64_t against() const;
};
[[nodiscard]] Likeness likeness(const std::vector<protocol::Stretch>& stretches, const Config& config);

/// The result of recognition, and the parts of the configuration that it proves. Stored as protocol::Evidence in an
/// Identity of this protocol.
struct Recognised final : protocol::Evidence {
    Config config;
    Likeness likeness;                          ///< under that configuration
    std::vector<std::uint8_t> context_sizes{};  ///< other possible sizes of Context IDs
    bool cycle_accurate_proven{}, context_id_proven{}, timestamp_size_proven{}, encoding_proven{}, version_proven{};
};

/// protocol::Protocol::identify, without `out.protocol` and `out.configuration`.
[[nodiscard]] std::shared_ptr<const Recognised> recognise(const std::vector<protocol::Stretch>& stretches,
                                                          protocol::Identity& out);

}  // namespace waymark::pft
