#include "waymark/analysis/profile.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace waymark::analysis {

namespace {

/// How an operation type contributes to the sums.
struct Traits {
    Profile::Kind kind = Profile::Kind::other;
    bool vector{}, atomic{};
    std::uint32_t length_bits{};
};

constexpr unsigned classes = 3;

std::array<Traits, classes * 256> make_traits() {
    std::array<Traits, classes * 256> out;
    for (unsigned c = 0; c < classes; ++c) {
        for (unsigned type = 0; type < 256; ++type) {
            const auto operation_class = static_cast<spe::OperationClass>(c);
            const spe::Operation o = spe::operation(operation_class, static_cast<std::uint8_t>(type));
            Traits& t = out[c * 256 + type];
            using Operation = spe::Operation::Kind;
            if (operation_class == spe::OperationClass::branch)
                t.kind = Profile::Kind::branch;
            else if (operation_class == spe::OperationClass::load_store)
                t.kind = o.store ? Profile::Kind::store : Profile::Kind::load;
            t.vector = o.kind == Operation::sve || o.kind == Operation::sme || o.kind == Operation::sve_memory ||
                       o.kind == Operation::simd_fp || o.simd;
            t.atomic = o.kind == Operation::extended && (o.atomic || o.exclusive || o.acquire_release);
            t.length_bits = o.length_bits();
        }
    }
    return out;
}

enum Event : unsigned {
    retired = 1,
    l1d_miss = 3,
    tlb_walk = 5,
    not_taken = 6,
    mispredict = 7,
    llc_miss = 9,
    remote = 10,
    misaligned = 11,
    partial_predicate = 17,
    empty_predicate = 18,
};

}  // namespace

Measures& Measures::operator+=(const Measures& o) {
    samples += o.samples;
    timed += o.timed;
    total += o.total;
    issued += o.issued;
    issue += o.issue;
    executed += o.executed;
    execution += o.execution;
    translated += o.translated;
    translation += o.translation;
    loads += o.loads;
    stores += o.stores;
    branches += o.branches;
    walks += o.walks;
    walk_total += o.walk_total;
    walk_translation += o.walk_translation;
    l1_misses += o.l1_misses;
    llc_misses += o.llc_misses;
    remote += o.remote;
    from_other += o.from_other;
    misaligned += o.misaligned;
    mispredicts += o.mispredicts;
    not_taken += o.not_taken;
    not_retired += o.not_retired;
    vector += o.vector;
    partial += o.partial;
    empty += o.empty;
    atomics += o.atomics;
    atomic_total += o.atomic_total;
    longest = std::max(longest, o.longest);
    return *this;
}

/// Samples that differ only in latencies: everything else that is summed is equal.
struct Profile::Tally {
    /// PC, events, mapping and thread, process and core, `present`, data source and operation.
    using Key = std::array<std::uint64_t, 5>;
    /// A sum of 32 bits can hold this many latencies of 16 bits.
    static constexpr std::uint32_t most_samples = 65536;

    Key key{};
    std::uint32_t samples{}, total{}, issue{}, execution{}, translation{}, longest{};
};
/// The sums that tallies are finally added to.
struct Profile::Sums {
    Traits traits;
    Measures* thread{};
    std::uint32_t place{}, source{};  ///< `full`: in none
    bool sourced{};
};
/// A hash table of tallies. If two keys share a row, the later one evicts the earlier one.
struct Profile::Tallies {
    std::array<Tally, 4096> rows{};
    std::array<Sums, 4096> sums{};
};

Profile::Profile() = default;
Profile::~Profile() = default;

void Profile::consume(const SampleBatch& batch) {
    if (!tallies_) tallies_ = std::make_unique<Tallies>();
    const spe::RecordColumns& c = batch.records;
    for (const std::uint16_t i : batch.rows) {
        const std::uint64_t pc = c.pc[i], events = c.events[i];
        const Tally::Key key{pc, events, std::uint64_t{batch.mapping[i]} << 32 | batch.tid[i],
                             std::uint64_t{batch.pid[i]} << 32 | batch.stream.midr,
                             std::uint64_t{c.present[i]} << 32 | std::uint64_t{c.data_source[i]} << 16 |
                                 std::uint64_t{c.operation_class[i]} << 8 | c.operation_type[i]};
        const std::size_t at =
            (pc >> 2 ^ pc >> 14 ^ events * 0x9e5 ^ std::uint64_t{c.data_source[i]} << 7) % tallies_->rows.size();
        Tally& tally = tallies_->rows[at];
        if (tally.key != key || tally.samples == 0 || tally.samples == Tally::most_samples) [[unlikely]] {
            add(tally, tallies_->sums[at]);
            begin(tally, tallies_->sums[at], key);
        }
        const std::uint32_t total = c.total_latency[i], issue = c.issue_latency[i];
        ++tally.samples;
        tally.total += total;
        tally.issue += issue;
        tally.execution += total - std::min(total, issue);
        tally.translation += c.translation_latency[i];
        tally.longest = std::max(tally.longest, total);
        if ((c.present[i] >> static_cast<unsigned>(spe::RecordColumn::total_latency) & 1U) == 0) continue;
        const Kind kind = tallies_->sums[at].traits.kind;
        ++latency_[static_cast<unsigned>(kind)][static_cast<unsigned>(std::bit_width(total))];
        at_4095_ += total == 4095;
        at_65535_ += total == 65535;
    }
}

/// Begins a tally for samples with this key. Their place, mapping and thread are numbered now, in the order of first
/// use.
void Profile::begin(Tally& tally, Sums& to, const Tally::Key& key) {
    static const auto traits_of = make_traits();
    const auto has = [&](spe::RecordColumn column) {
        return (key[4] >> (32 + static_cast<unsigned>(column)) & 1U) != 0;
    };
    tally = {};
    tally.key = key;
    const auto operation = static_cast<std::uint16_t>(key[4]);
    to = {};
    if (has(spe::RecordColumn::operation) && operation < traits_of.size()) to.traits = traits_of[operation];
    to.thread = &threads_[{static_cast<std::uint32_t>(key[3] >> 32), static_cast<std::uint32_t>(key[2])}];
    const spe::ProgramAddress pc = spe::program_address(key[0]);
    to.place = places_.find_or_add({static_cast<std::uint32_t>(key[2] >> 32), pc.address.value, pc.exception_level});
    if (to.place == measures_.size()) measures_.emplace_back();
    to.sourced = to.traits.kind == Kind::load && has(spe::RecordColumn::data_source);
    if (!to.sourced) return;
    to.source = KeyIndex<SourceKey>::full;
    if (to.place != KeyIndex<SampledPlace>::full)
        to.source = sources_.find_or_add(
            {to.place, static_cast<std::uint32_t>(key[3]), static_cast<std::uint16_t>(key[4] >> 16)});
    if (to.source == source_sums_.size()) source_sums_.emplace_back();
}

void Profile::add(const Tally& tally, const Sums& to) {
    if (tally.samples == 0) return;
    const auto has = [&](spe::RecordColumn column) {
        return (tally.key[4] >> (32 + static_cast<unsigned>(column)) & 1U) != 0;
    };
    const std::uint64_t n = tally.samples, events = tally.key[1];
    const auto with = [&](Event bit) { return (events >> bit & 1U) != 0 ? n : 0; };
    const Traits& t = to.traits;
    Measures m;
    m.samples = n;
    if (has(spe::RecordColumn::total_latency)) {
        m.timed = n;
        m.total = tally.total;
        m.longest = tally.longest;
    }
    if (has(spe::RecordColumn::issue_latency)) {
        m.issued = n;
        m.issue = tally.issue;
        if (m.timed != 0) {
            m.executed = n;
            m.execution = tally.execution;
        }
    }
    if (has(spe::RecordColumn::translation_latency)) {
        m.translated = n;
        m.translation = tally.translation;
    }
    if (t.kind == Kind::load || t.kind == Kind::store) {
        (t.kind == Kind::load ? m.loads : m.stores) = n;
        m.walks = with(tlb_walk);
        if (m.walks != 0) {
            m.walk_total = m.total;
            m.walk_translation = m.translation;
        }
        m.l1_misses = with(l1d_miss);
        m.llc_misses = with(llc_miss);
        m.remote = with(remote);
        if (from_another_core(events, static_cast<std::uint32_t>(tally.key[3]),
                              has(spe::RecordColumn::data_source)
                                  ? std::optional(static_cast<std::uint16_t>(tally.key[4] >> 16))
                                  : std::nullopt))
            m.from_other = n;
        m.misaligned = with(misaligned);
        if (t.atomic) {
            m.atomics = n;
            m.atomic_total = m.total;
        }
    } else if (t.kind == Kind::branch) {
        m.branches = n;
        m.mispredicts = with(mispredict);
        m.not_taken = with(not_taken);
    }
    if (has(spe::RecordColumn::events)) m.not_retired = n - with(retired);
    if (t.vector) {
        m.vector = n;
        m.partial = with(partial_predicate);
        m.empty = with(empty_predicate);
        vector_lengths_[t.length_bits] += n;
    }
    all_ += m;
    *to.thread += m;
    (to.place == KeyIndex<SampledPlace>::full ? rest_ : measures_[to.place]) += m;
    if (!to.sourced) return;
    if (to.source == KeyIndex<SourceKey>::full) {
        rest_sources_ += n;
        return;
    }
    source_sums_[to.source].samples += n;
    source_sums_[to.source].total += m.total;
}

void Profile::finish() {
    if (!tallies_) return;
    for (std::size_t i = 0; i < tallies_->rows.size(); ++i) add(tallies_->rows[i], tallies_->sums[i]);
    tallies_.reset();
}

void Profile::join(SampleSink& fork) {
    auto& other = static_cast<Profile&>(fork);
    finish();
    other.finish();
    std::vector<std::uint32_t> number(other.places().size());
    for (std::size_t i = 0; i < other.places().size(); ++i) {
        number[i] = places_.find_or_add(other.places()[i]);
        if (number[i] == KeyIndex<SampledPlace>::full) {
            rest_ += other.measures_[i];
            continue;
        }
        if (number[i] == measures_.size()) measures_.emplace_back();
        measures_[number[i]] += other.measures_[i];
    }
    for (std::size_t i = 0; i < other.sources().size(); ++i) {
        SourceKey key = other.sources()[i];
        key.place = number[key.place];
        const std::uint32_t source =
            key.place == KeyIndex<SampledPlace>::full ? KeyIndex<SourceKey>::full : sources_.find_or_add(key);
        if (source == KeyIndex<SourceKey>::full) {
            rest_sources_ += other.source_sums_[i].samples;
            continue;
        }
        if (source == source_sums_.size()) source_sums_.emplace_back();
        source_sums_[source].samples += other.source_sums_[i].samples;
        source_sums_[source].total += other.source_sums_[i].total;
    }
    for (const auto& [thread, m] : other.threads_) threads_[thread] += m;
    for (const auto& [bits, count] : other.vector_lengths_) vector_lengths_[bits] += count;
    for (unsigned k = 0; k < kinds; ++k)
        for (unsigned b = 0; b < buckets; ++b) latency_[k][b] += other.latency_[k][b];
    all_ += other.all_;
    rest_ += other.rest_;
    rest_sources_ += other.rest_sources_;
    at_4095_ += other.at_4095_;
    at_65535_ += other.at_65535_;
}

Measures Profile::all() const { return all_; }

}  // namespace waymark::analysis
