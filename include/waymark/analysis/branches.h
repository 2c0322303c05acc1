/// Sampled branches: source, target, count, and count of mispredictions. For readers, and for tools that lay out code
/// by its execution.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "waymark/analysis/key_index.h"
#include "waymark/analysis/samples.h"

namespace waymark::analysis {

struct BranchPair {
    std::uint32_t mapping{};  ///< mapping of the branch, as in SampleBatch
    std::uint8_t exception_level{}, operation_type{};
    bool has_target{};
    std::uint64_t from{}, to{};  ///< addresses; `to` as in the record: the next instruction if not taken
    [[nodiscard]] std::uint64_t hash() const {
        return mix(mix(from, to), std::uint64_t{mapping} << 16 | std::uint64_t{exception_level} << 12 |
                                      std::uint64_t{has_target} << 8 | operation_type);
    }
    friend auto operator<=>(const BranchPair&, const BranchPair&) = default;
};

struct BranchSum {
    std::uint64_t samples{}, mispredicts{}, not_taken{}, not_retired{}, total{};
    friend bool operator==(const BranchSum&, const BranchSum&) = default;
    BranchSum& operator+=(const BranchSum& other);
    [[nodiscard]] std::uint64_t taken() const { return samples - not_taken; }
};

class Branches final : public SampleSink {
public:
    static constexpr std::size_t most_pairs = 1 << 22;
    void consume(const SampleBatch& batch) override;
    [[nodiscard]] std::unique_ptr<SampleSink> fork() const override { return std::make_unique<Branches>(); }
    void join(SampleSink& fork) override;

    /// In the order of first occurrence, which differs between runs in parallel.
    [[nodiscard]] const std::vector<BranchPair>& pairs() const { return pairs_.keys(); }
    [[nodiscard]] const std::vector<BranchSum>& sums() const { return sums_; }
    [[nodiscard]] const BranchSum& all() const { return all_; }
    /// Sum of the branches for which the table had no room.
    [[nodiscard]] const BranchSum& rest() const { return rest_; }

private:
    void add(const BranchPair& pair, const BranchSum& sum);
    KeyIndex<BranchPair> pairs_{most_pairs};
    std::vector<BranchSum> sums_;
    BranchSum all_, rest_;
};

}  // namespace waymark::analysis
