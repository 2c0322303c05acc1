#include "waymark/analysis/branches.h"

namespace waymark::analysis {

BranchSum& BranchSum::operator+=(const BranchSum& o) {
    samples += o.samples;
    mispredicts += o.mispredicts;
    not_taken += o.not_taken;
    not_retired += o.not_retired;
    total += o.total;
    return *this;
}

void Branches::add(const BranchPair& pair, const BranchSum& sum) {
    all_ += sum;
    const std::uint32_t at = pairs_.find_or_add(pair);
    if (at == KeyIndex<BranchPair>::full) {
        rest_ += sum;
        return;
    }
    if (at == sums_.size()) sums_.emplace_back();
    sums_[at] += sum;
}

void Branches::consume(const SampleBatch& batch) {
    constexpr unsigned retired = 1, not_taken = 6, mispredict = 7;
    const spe::RecordColumns& c = batch.records;
    for (const std::uint16_t i : batch.rows) {
        const auto has = [&](spe::RecordColumn column) {
            return (c.present[i] >> static_cast<unsigned>(column) & 1U) != 0;
        };
        if (!has(spe::RecordColumn::operation) ||
            static_cast<spe::OperationClass>(c.operation_class[i]) != spe::OperationClass::branch)
            continue;
        const spe::ProgramAddress from = spe::program_address(c.pc[i]);
        BranchPair pair{batch.mapping[i],    from.exception_level,
                        c.operation_type[i], has(spe::RecordColumn::branch_target),
                        from.address.value,  0};
        if (pair.has_target) pair.to = spe::program_address(c.branch_target[i]).address.value;
        const std::uint64_t events = c.events[i];
        add(pair, {1, events >> mispredict & 1U, events >> not_taken & 1U,
                   has(spe::RecordColumn::events) ? (events >> retired & 1U) ^ 1U : 0, c.total_latency[i]});
    }
}

void Branches::join(SampleSink& fork) {
    const auto& other = static_cast<const Branches&>(fork);
    for (std::size_t i = 0; i < other.sums_.size(); ++i) add(other.pairs()[i], other.sums_[i]);
    all_ += other.rest_;
    rest_ += other.rest_;
}

}  // namespace waymark::analysis
