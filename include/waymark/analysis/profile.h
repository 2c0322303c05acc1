/// Where sampled operations spend their cycles: sums by program address, thread, data source and latency. All numbers
/// are whole, so that parts add up to exactly what one pass over everything gives.
///
/// Every sample counts once in every table: unlike the sample groups of other tools, tables divide the samples and do
/// not overlap within themselves.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "waymark/analysis/key_index.h"
#include "waymark/analysis/samples.h"
#include "waymark/answers/interval.h"

namespace waymark::analysis {

/// Sums over samples. Latencies are in cycles.
struct Measures {
    std::uint64_t samples{};
    std::uint64_t timed{}, total{};             ///< samples with a total latency, and their sum
    std::uint64_t issued{}, issue{};            ///< samples that waited to be issued, and their sum
    std::uint64_t executed{}, execution{};      ///< total latency minus issue latency, where both are known
    std::uint64_t translated{}, translation{};  ///< samples that waited for the MMU, and their sum
    std::uint64_t loads{}, stores{}, branches{};
    std::uint64_t walks{}, walk_total{},
        walk_translation{};  ///< memory operations with a table walk, and their latencies
    std::uint64_t l1_misses{}, llc_misses{}, remote{}, from_other{}, misaligned{};  ///< of memory operations
    std::uint64_t mispredicts{}, not_taken{};                                       ///< of branches
    std::uint64_t not_retired{};
    std::uint64_t vector{}, partial{}, empty{};  ///< SVE, SME or Advanced SIMD operations, and their predicates
    std::uint64_t atomics{},
        atomic_total{};  ///< atomic, exclusive, acquire or release operations, and their total latency
    std::uint64_t longest{};

    Measures& operator+=(const Measures& other);
    friend bool operator==(const Measures&, const Measures&) = default;
    [[nodiscard]] std::uint64_t memory() const { return loads + stores; }
};

/// A program address in a mapping (SampleBatch::mapping).
struct SampledPlace {
    std::uint32_t mapping{};
    std::uint64_t pc{};
    std::uint8_t exception_level{};
    [[nodiscard]] std::uint64_t hash() const { return mix(pc, mapping | std::uint64_t{exception_level} << 32); }
    friend auto operator<=>(const SampledPlace&, const SampledPlace&) = default;
};

class Profile final : public SampleSink {
public:
    enum class Kind : std::uint8_t { load, store, branch, other };
    static constexpr unsigned kinds = 4, buckets = 17;  ///< bucket 0: 0 cycles; n: 2^(n-1) up to 2^n - 1
    /// Places, and pairs of place and source, beyond this number are counted together, as `rest`.
    static constexpr std::size_t most_places = 1 << 22;

    struct PlaceRow {
        SampledPlace place;
        Measures measures;
    };
    struct Thread {
        std::uint32_t pid{}, tid{};
        friend auto operator<=>(const Thread&, const Thread&) = default;
    };
    /// Loads at one place that got their data from one source.
    struct SourceKey {
        std::uint32_t place{};  ///< index of the place
        std::uint32_t midr{};   ///< of the core, which determines the meaning of the code; 0: not known
        std::uint16_t code{};
        [[nodiscard]] std::uint64_t hash() const { return mix(place, std::uint64_t{midr} << 16 | code); }
        friend bool operator==(const SourceKey&, const SourceKey&) = default;
    };
    struct SourceSum {
        std::uint64_t samples{}, total{};
        friend bool operator==(const SourceSum&, const SourceSum&) = default;
    };

    Profile();
    ~Profile() override;
    /// The functions below return the results after all joins.
    void consume(const SampleBatch& batch) override;
    [[nodiscard]] std::unique_ptr<SampleSink> fork() const override { return std::make_unique<Profile>(); }
    void join(SampleSink& fork) override;

    [[nodiscard]] Measures all() const;
    /// In order of first occurrence, which differs between runs in parallel.
    [[nodiscard]] const std::vector<SampledPlace>& places() const { return places_.keys(); }
    [[nodiscard]] const std::vector<Measures>& measures() const { return measures_; }
    [[nodiscard]] const Measures& rest() const { return rest_; }
    [[nodiscard]] const std::map<Thread, Measures>& threads() const { return threads_; }
    [[nodiscard]] const std::vector<SourceKey>& sources() const { return sources_.keys(); }
    [[nodiscard]] const std::vector<SourceSum>& source_sums() const { return source_sums_; }
    [[nodiscard]] std::uint64_t rest_sources() const { return rest_sources_; }
    [[nodiscard]] const std::array<std::array<std::uint64_t, buckets>, kinds>& latency() const { return latency_; }
    /// Number of samples whose counter saturated: it is assumed to have 12 bits if no sample shows more.
    [[nodiscard]] std::uint64_t saturated() const { return all_.longest > 4095 ? at_65535_ : at_4095_; }
    /// By SVE vector length or SME tile size in bits; 0: not known.
    [[nodiscard]] const std::map<std::uint32_t, std::uint64_t>& vector_lengths() const { return vector_lengths_; }

private:
    struct Tally;
    struct Sums;
    struct Tallies;
    void begin(Tally& tally, Sums& to, const std::array<std::uint64_t, 5>& key);
    void add(const Tally& tally, const Sums& to);
    void finish();

    std::unique_ptr<Tallies> tallies_;
    KeyIndex<SampledPlace> places_{most_places};
    std::vector<Measures> measures_;
    Measures all_, rest_;
    std::map<Thread, Measures> threads_;
    KeyIndex<SourceKey> sources_{most_places};
    std::vector<SourceSum> source_sums_;
    std::uint64_t rest_sources_ = 0;
    std::array<std::array<std::uint64_t, buckets>, kinds> latency_{};
    std::uint64_t at_4095_ = 0, at_65535_ = 0;
    std::map<std::uint32_t, std::uint64_t> vector_lengths_;
};

}  // namespace waymark::analysis
