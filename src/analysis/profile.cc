#include "waymark/analysis/profile.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace waymark::analysis {

namespace {

/// What an operation type means for the sums.
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
            using Kind = spe::Operation::Kind;
            if (operation_class == spe::OperationClass::branch)
                t.kind = Profile::Kind::branch;
            else if (operation_class == spe::OperationClass::load_store)
                t.kind = o.store ? Profile::Kind::store : Profile::Kind::load;
            t.vector = o.kind == Kind::sve || o.kind == Kind::sme || o.kind == Kind::sve_memory ||
                       o.kind == Kind::simd_fp || o.simd;
            t.atomic = o.kind == Kind::extended && (o.atomic || o.exclusive || o.acquire_release);
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
    snooped = 23,
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
    snooped += o.snooped;
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

Interval wilson_95(std::uint64_t part, std::uint64_t all) {
    if (all == 0) return {0, 1};
    constexpr double z = 1.959963984540054;
    const double n = static_cast<double>(all), p = static_cast<double>(part) / n;
    const double middle = p + z * z / (2 * n), width = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
    const double scale = 1 + z * z / n;
    // The share itself is inside, also where rounding has it otherwise.
    return {std::clamp((middle - width) / scale, 0.0, p), std::clamp((middle + width) / scale, p, 1.0)};
}

void Profile::consume(const SampleBatch& batch) {
    static const auto traits_of = make_traits();
    const spe::Columns& c = batch.records;
    Thread thread_now;
    Measures* thread = nullptr;
    for (const std::uint16_t i : batch.rows) {
        const auto has = [&](spe::Column column) { return (c.present[i] >> static_cast<unsigned>(column) & 1U) != 0; };
        const std::uint64_t events = c.events[i];
        const auto event = [&](Event bit) { return events >> bit & 1U; };

        static constexpr Traits nothing;
        const auto operation_class = static_cast<unsigned>(c.operation_class[i]);
        const Traits& t = has(spe::Column::operation) && operation_class < classes
                              ? traits_of[operation_class * 256 + c.operation_type[i]]
                              : nothing;
        Measures m;
        m.samples = 1;
        const std::uint64_t total = c.total_latency[i], issue = c.issue_latency[i];
        if (has(spe::Column::total_latency)) {
            m.timed = 1;
            m.total = m.longest = total;
            ++latency_[static_cast<unsigned>(t.kind)][static_cast<unsigned>(std::bit_width(total))];
            at_4095_ += total == 4095;
            at_65535_ += total == 65535;
        }
        if (has(spe::Column::issue_latency)) {
            m.issued = 1;
            m.issue = issue;
            if (m.timed != 0) {
                m.executed = 1;
                m.execution = total - std::min(total, issue);
            }
        }
        if (has(spe::Column::translation_latency)) {
            m.translated = 1;
            m.translation = c.translation_latency[i];
        }
        if (t.kind == Kind::load || t.kind == Kind::store) {
            (t.kind == Kind::load ? m.loads : m.stores) = 1;
            if (event(tlb_walk) != 0) {
                m.walks = 1;
                m.walk_total = m.total;
                m.walk_translation = m.translation;
            }
            m.l1_misses = event(l1d_miss);
            m.llc_misses = event(llc_miss);
            m.remote = event(remote);
            m.snooped = event(snooped);
            m.misaligned = event(misaligned);
            if (t.atomic) {
                m.atomics = 1;
                m.atomic_total = m.total;
            }
        } else if (t.kind == Kind::branch) {
            m.branches = 1;
            m.mispredicts = event(mispredict);
            m.not_taken = event(not_taken);
        }
        if (has(spe::Column::events)) m.not_retired = event(retired) ^ 1U;
        if (t.vector) {
            m.vector = 1;
            m.partial = event(partial_predicate);
            m.empty = event(empty_predicate);
            ++vector_lengths_[t.length_bits];
        }

        all_ += m;
        if (thread == nullptr || thread_now.tid != batch.tid[i] || thread_now.pid != batch.pid[i]) {
            thread_now = {batch.pid[i], batch.tid[i]};
            thread = &threads_[thread_now];
        }
        *thread += m;

        const spe::ProgramAddress pc = spe::program_address(c.pc[i]);
        const std::uint32_t place = places_.find_or_add({batch.mapping[i], pc.address.value, pc.exception_level});
        const bool full = place == KeyIndex<Place>::full;
        if (full) {
            rest_ += m;
        } else {
            if (place == measures_.size()) measures_.emplace_back();
            measures_[place] += m;
        }
        if (t.kind != Kind::load || !has(spe::Column::data_source)) continue;
        const std::uint32_t source =
            full ? KeyIndex<SourceKey>::full : sources_.find_or_add({place, batch.stream.midr, c.data_source[i]});
        if (source == KeyIndex<SourceKey>::full) {
            ++rest_sources_;
            continue;
        }
        if (source == source_sums_.size()) source_sums_.emplace_back();
        ++source_sums_[source].samples;
        source_sums_[source].total += m.total;
    }
}

void Profile::join(SampleSink& fork) {
    const auto& other = static_cast<const Profile&>(fork);
    std::vector<std::uint32_t> number(other.places().size());
    for (std::size_t i = 0; i < other.places().size(); ++i) {
        number[i] = places_.find_or_add(other.places()[i]);
        if (number[i] == KeyIndex<Place>::full) {
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
            key.place == KeyIndex<Place>::full ? KeyIndex<SourceKey>::full : sources_.find_or_add(key);
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
