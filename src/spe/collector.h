/// Data that are recorded about a chosen operation (docs/spec/spe.md, 1.4 and 3.11).
#pragma once

#include <cstdint>
#include <optional>

#include "interval.h"
#include "waymark/spe/model.h"
#include "waymark/spe/sampling.h"

namespace waymark::spe {

/// An operation that is being sampled.
struct PendingSample {
    SampleFate fate;
    Record record;
    std::uint64_t end{};
    OpType optype{};
    SampleDetails details;
    std::optional<TimeStamp> timestamp_at_end{};
};

/// Collects the data for a record, and the state that is needed for this besides the registers.
class SampleCollector {
public:
    /// Both are borrowed.
    SampleCollector(const State& state, const ModelChoices& choices);

    /// `member`: number of members of the population so far, including this one.
    [[nodiscard]] PendingSample begin(const Executed& op, std::uint64_t member);

    /// Adds the record's data about the end of the operation.
    void complete(PendingSample& sample) const {
        if (sample.timestamp_at_end) sample.record.timestamp = ticks(*sample.timestamp_at_end, sample.end);
    }

    /// A branch was taken: the next record may contain it as the previous branch (FEAT_SPE_PBT).
    void taken(const BranchTarget& target, bool enabled);

    void set_context(std::uint32_t el1, std::uint32_t el2) {
        context_el1_ = el1;
        context_el2_ = el2;
    }
    void set_counter(std::uint64_t ticks) { counter_ = ticks; }
    void set_counter_offsets(std::uint64_t virtual_offset, std::uint64_t physical_offset) {
        virtual_offset_ = virtual_offset;
        physical_offset_ = physical_offset;
    }

private:
    /// An operation that both loads and stores is sampled as one of the two (3.11).
    void choose_access(Executed& op);
    [[nodiscard]] SampleDetails details(const Executed& op, OpType optype) const;
    [[nodiscard]] bool has_source(const Executed& op, OpType optype) const;
    [[nodiscard]] std::uint64_t target_payload(const BranchTarget& target) const;
    /// 1.4 and 3.11: collects the record's contents.
    void fill(PendingSample& sample, const Executed& op);
    void fill_access(PendingSample& sample, const Executed& op, std::uint16_t translation);
    [[nodiscard]] bool enabled_at_el2() const;
    [[nodiscard]] std::uint64_t events_of(const Executed& op) const;
    [[nodiscard]] std::uint64_t ticks(TimeStamp kind, std::uint64_t cycle) const;

    const State& state_;
    const ModelChoices& choices_;
    std::uint64_t events_;  ///< events that are recorded
    RandomSource copies_;
    std::optional<std::uint64_t> previous_target_;
    std::uint32_t context_el1_ = 0, context_el2_ = 0;
    std::optional<std::uint64_t> counter_;
    std::uint64_t virtual_offset_ = 0, physical_offset_ = 0;
};

}  // namespace waymark::spe
