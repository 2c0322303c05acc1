/// How far samples can be trusted: how they were taken, what was lost, and known errata of the core (docs/spec/spe.md,
/// 1.2, 1.3, 4.9, 6.4, 6.5).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/analysis/samples.h"

namespace waymark::analysis {

/// A published erratum of a core that affects samples.
struct Erratum {
    std::uint32_t number{};
    std::string_view text;
    friend bool operator==(const Erratum&, const Erratum&) = default;
};
[[nodiscard]] std::vector<Erratum> sampling_errata(std::uint32_t midr);
/// The core's name: `Neoverse N1 r3p1`, `implementer 0x41 part 0xfff r0p0`; `not known` for 0. `modelled`: the unit was
/// a model with that number: `modelled (near a Neoverse N1)`.
[[nodiscard]] std::string core_name(std::uint32_t midr, bool modelled = false);
/// Whether `waymark record` made the samples: their latencies, data sources and events of caches, TLBs and prediction
/// come from a model.
[[nodiscard]] bool is_modelled(const capture::perf::PerfData& data);

/// Flags of AUX records: number of stretches of the buffer, and their bytes. A flag applies to its whole stretch, so it
/// is not known how many samples are affected.
struct Flagged {
    std::uint64_t stretches{}, bytes{};
    friend bool operator==(const Flagged&, const Flagged&) = default;
};

struct StreamQuality {
    std::uint32_t cpu{}, tid{}, midr{};
    std::uint64_t bytes{}, records{}, selected{}, no_pc{}, damaged{}, inconsistent{};
    std::uint64_t lost_bytes{};  ///< bytes outside of records: the gaps in Totals, unreadable bytes and missing bytes
    std::uint64_t damaged_bytes{};  ///< inside records
    Flagged collided, truncated, partial, overwritten;
    std::optional<double> mean_ns{};  ///< mean time between records; needs a clock conversion and two records
    std::uint64_t min_interval{};     ///< minimum interval of the CPU; 0: not known
};

/// How sampling was programmed; one entry for each event.
struct Sampling {
    std::uint64_t asked{};  ///< sample_period: requested number of population members between samples
    /// The interval that the unit was given: rounded down to 256, not below the CPU's minimum. If it changed, the
    /// shortest and the longest one; else both are equal.
    std::uint64_t interval{}, longest{};
    bool jitter{};
    bool timestamps{}, physical_addresses{};
    std::vector<std::string> filters{};  ///< active filters: `loads`, `latency >= 30 cycles`, `events 0x80`
    /// Bounds of the number of population members that one record represents.
    [[nodiscard]] double scale_low() const { return static_cast<double>(interval) + 1; }
    [[nodiscard]] double scale_high() const { return static_cast<double>(longest) + (jitter ? 128.5 : 1); }
};

struct Quality {
    std::vector<StreamQuality> streams;
    std::vector<Sampling> sampling;                         ///< empty for a bare buffer
    std::vector<std::pair<std::uint32_t, Erratum>> errata;  ///< cores (MIDR) with a known erratum
    Flagged collided, truncated, partial;                   ///< of all AUX records, including those without a stream
    std::uint64_t lost_events{};                            ///< number of perf's own records that were lost
    std::uint64_t container_lost_bytes{}, container_losses{};
    bool unfinished{};  ///< the recorder ended before it had finished the file
    bool modelled{};    ///< set by `is_modelled`; then errata of silicon do not apply
    bool clock{};       ///< timestamps can be compared with perf's records
    std::uint64_t records{}, selected{}, without_thread{}, with_context{}, without_mapping{};
    std::uint64_t without_address{}, sve_without_address{};  ///< of loads and stores: as SampleTotals has them

    [[nodiscard]] std::uint64_t lost_bytes() const;
    [[nodiscard]] std::uint64_t damaged_bytes() const;
};

/// A sentence about Quality::without_address: how many samples are SVE operations, and why these have no address; empty
/// if there are none.
[[nodiscard]] std::string why_no_address(const Quality& quality);

/// `256`, or `256 to 1,024 (it changed)`.
[[nodiscard]] std::string interval_text(const Sampling& sampling);

/// The reason why there are no samples.
[[nodiscard]] std::string why_no_samples(const SampleCapture& capture, const Quality& quality);

[[nodiscard]] Quality quality_of(const SampleCapture& capture, const SampleTotals& totals);

}  // namespace waymark::analysis
