/// What the bytes of one trace source are: which protocol, and how its unit was programmed, as far as the bytes prove
/// it. Every alternative is tried; only the right one parses from each synchronisation point to the next.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/pft/config.h"
#include "waymark/pipeline/offsets.h"

namespace waymark::doctor {

/// Bytes of one source that follow one another, and where they stood in the buffer.
struct Stretch {
    std::vector<std::uint8_t> bytes;
    pipeline::OffsetMap offsets;
    bool head = false;  ///< the source's first bytes in the buffer
    /// So many bytes at the end may be the end mark of a buffer in bypass (coresight/bypass.h). They are, unless the
    /// last packet needs them, which only a configuration decides: `take_end_mark_off`.
    std::size_t end_mark_bytes{};
};

enum class Protocol : std::uint8_t { unknown, pft, spe, dpu };
[[nodiscard]] std::string_view name(Protocol protocol);

/// How Program Flow Trace parses under one configuration.
struct PftParse {
    std::uint64_t bytes{}, packets{}, asyncs{}, isyncs{}, periodic_isyncs{}, branches{}, atoms{}, exceptions{};
    std::uint64_t context_ids{}, vmids{}, exception_returns{}, hyp{};
    std::uint64_t timestamps{}, whole_timestamps{};
    std::uint64_t errors{}, lost_bytes{};  ///< stretches that are no packets
    std::uint64_t context_changes{};       ///< a periodic I-sync with another Context ID and no packet that said so
    std::uint64_t backwards_gray{}, backwards_binary{};  ///< timestamps below the one before, read either way
    std::uint64_t unsynchronised_bytes{}, padding_bytes{}, overflows{}, cut_bytes{};
    std::optional<Offset> first_async{}, first_error{}, first_overflow{}, first_padding{}, first_cut{};
    std::optional<Offset> first_context_change{};
    std::optional<Offset> first_backwards_gray{}, first_backwards_binary{}, first_timestamp{};
    std::uint64_t least_spacing = ~std::uint64_t{0}, most_spacing{}, spacings{}, spacing_sum{};  ///< of A-syncs, bytes

    /// What speaks against the configuration; 0: nothing.
    [[nodiscard]] std::uint64_t against() const;
};
/// Takes the end mark off stretches of Program Flow Trace, where it is one under this configuration.
void take_end_mark_off(std::vector<Stretch>& stretches, const pft::Config& config);
[[nodiscard]] PftParse parse_pft(const std::vector<Stretch>& stretches, const pft::Config& config);

/// Something that was tried, and what it gave.
struct Tried {
    std::string what, result;
    friend bool operator==(const Tried&, const Tried&) = default;
};

/// A field of the configuration.
struct Fact {
    std::string what, value;
    bool proven{};      ///< the bytes contradict every other value
    std::string proof;  ///< why, or what is missing
    friend bool operator==(const Fact&, const Fact&) = default;
};

struct Identity {
    Protocol protocol{};
    std::vector<Tried> tried;
    // Program Flow Trace only.
    pft::Config config;
    PftParse parse;  ///< under that configuration
    std::vector<Fact> facts;
    bool cycle_accurate_proven{}, context_id_proven{}, timestamp_size_proven{}, encoding_proven{}, version_proven{};
    // Samples (spe) and entries (dpu) only.
    std::uint64_t entries{}, lost_bytes{};  ///< how many; bytes that are in none, or damaged in one
};

/// Judges one source. Never fails; time is a small multiple of the bytes, for sixteen configurations are tried.
/// `framed`: the bytes came in frames of a trace bus, where units that write to memory themselves (SPE, DPU) send
/// nothing.
[[nodiscard]] Identity identify(const std::vector<Stretch>& stretches, bool framed = false);

}  // namespace waymark::doctor
