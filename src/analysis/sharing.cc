#include "waymark/analysis/sharing.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace waymark::analysis {

namespace perf = capture::perf;

namespace {

struct Access {
    LineKey line;
    Accessor accessor;
    std::uint32_t offset{};
    bool store{};
};

enum class Reached : std::uint8_t { no_memory, no_address, no_accessor, access };

/// Which cache line row `i` accesses, and how.
Reached access_of(const SampleBatch& batch, std::size_t i, std::uint32_t line_bytes, Access& out) {
    const spe::RecordColumns& c = batch.records;
    const auto has = [&](spe::RecordColumn column) {
        return (c.present[i] >> static_cast<unsigned>(column) & 1U) != 0;
    };
    if (!has(spe::RecordColumn::operation) ||
        static_cast<spe::OperationClass>(c.operation_class[i]) != spe::OperationClass::load_store)
        return Reached::no_memory;
    std::uint64_t address = 0;
    out.line.physical = has(spe::RecordColumn::data_physical);
    if (out.line.physical) {
        address = spe::physical_address(c.data_physical[i]).address.value;
        out.line.pid = 0;
    } else if (has(spe::RecordColumn::data_virtual)) {
        address = spe::data_address(c.data_virtual[i]).address.value;
        // The upper half of the address space is the kernel's, the same in every process.
        out.line.pid = address >> 63 != 0 ? perf::nobody : batch.pid[i];
    } else {
        return Reached::no_address;
    }
    out.line.line = address & ~std::uint64_t{line_bytes - 1};
    out.offset = static_cast<std::uint32_t>(address & (line_bytes - 1));
    // An atomic operation writes, even one that stores the old value back and so counts as a load.
    const spe::Operation operation = spe::operation(spe::OperationClass::load_store, c.operation_type[i]);
    out.store = operation.store || operation.atomic;
    if (batch.tid[i] != perf::nobody)
        out.accessor.value = batch.tid[i] & ~Accessor::cpu_flag;
    else if (batch.stream.cpu != perf::nobody)
        out.accessor.value = (batch.stream.cpu & 0xffffffU) | Accessor::cpu_flag;
    else
        return Reached::no_accessor;
    return Reached::access;
}

}  // namespace

std::string_view name(SharedLine::Kind kind) {
    switch (kind) {
        case SharedLine::Kind::false_sharing: return "false";
        case SharedLine::Kind::mixed: return "mixed";
        case SharedLine::Kind::true_sharing: return "true";
    }
    return "";
}

LineCandidates::LineCandidates(std::uint32_t line_bytes) : line_bytes_(line_bytes) {}

void LineCandidates::consume(const SampleBatch& batch) {
    Access a;
    for (const std::uint16_t i : batch.rows) {
        switch (access_of(batch, i, line_bytes_, a)) {
            case Reached::no_memory: continue;
            case Reached::no_address: ++without_address_; continue;
            case Reached::no_accessor: ++without_accessor_; continue;
            case Reached::access: break;
        }
        ++accesses_;
        const std::size_t at = a.line.hash() % cells;
        const std::uint32_t me = a.accessor.value + 1;
        if (owner_[at] == nobody)
            owner_[at] = me;
        else if (owner_[at] != me)
            owner_[at] = many;
        stored_[at] |= a.store ? 1U : 0U;
    }
}

void LineCandidates::join(SampleSink& fork) {
    const auto& other = static_cast<const LineCandidates&>(fork);
    for (std::size_t i = 0; i < cells; ++i) {
        if (owner_[i] == nobody)
            owner_[i] = other.owner_[i];
        else if (other.owner_[i] != nobody && other.owner_[i] != owner_[i])
            owner_[i] = many;
        stored_[i] |= other.stored_[i];
    }
    accesses_ += other.accesses_;
    without_address_ += other.without_address_;
    without_accessor_ += other.without_accessor_;
}

void Sharing::add(const LineKey& line, AccessKey key, const Sum& sum) {
    key.line = lines_.find_or_add(line);
    const std::uint32_t at =
        key.line == KeyIndex<LineKey>::full ? KeyIndex<AccessKey>::full : accesses_.find_or_add(key);
    if (at == KeyIndex<AccessKey>::full) {
        left_out_ += sum.samples;
        return;
    }
    if (at == sums_.size()) sums_.emplace_back();
    sums_[at].samples += sum.samples;
    sums_[at].total += sum.total;
    sums_[at].from_other += sum.from_other;
}

void Sharing::consume(const SampleBatch& batch) {
    const spe::RecordColumns& c = batch.records;
    Access a;
    for (const std::uint16_t i : batch.rows) {
        if (access_of(batch, i, candidates_.line_bytes(), a) != Reached::access || !candidates_.candidate(a.line))
            continue;
        const bool sourced = (c.present[i] >> static_cast<unsigned>(spe::RecordColumn::data_source) & 1U) != 0;
        const bool other =
            from_another_core(c.events[i], batch.stream.midr, sourced ? std::optional(c.data_source[i]) : std::nullopt);
        add(a.line, {0, a.offset, batch.mapping[i], a.accessor, spe::program_address(c.pc[i]).address.value, a.store},
            {1, c.total_latency[i], other ? 1U : 0U});
    }
}

void Sharing::join(SampleSink& fork) {
    const auto& other = static_cast<const Sharing&>(fork);
    for (std::size_t i = 0; i < other.sums_.size(); ++i) {
        const AccessKey& key = other.accesses_.keys()[i];
        add(other.lines_.keys()[key.line], key, other.sums_[i]);
    }
    left_out_ += other.left_out_;
}

std::vector<SharedLine> Sharing::lines() const {
    std::vector<SharedLine> all(lines_.keys().size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i].key = lines_.keys()[i];
    for (std::size_t i = 0; i < sums_.size(); ++i) {
        const AccessKey& k = accesses_.keys()[i];
        const Sum& s = sums_[i];
        SharedLine& line = all[k.line];
        line.accesses.push_back({k.accessor, k.offset, k.mapping, k.pc, k.store, s.samples, s.total, s.from_other});
        (k.store ? line.stores : line.loads) += s.samples;
        line.total += s.total;
        line.from_other += s.from_other;
    }
    std::vector<SharedLine> out;
    for (SharedLine& line : all) {
        std::set<Accessor> accessors, writers;
        std::map<std::uint32_t, std::set<Accessor>> writers_of, users_of;  // by offset
        for (const LineAccess& a : line.accesses) {
            accessors.insert(a.accessor);
            users_of[a.offset].insert(a.accessor);
            if (!a.store) continue;
            writers.insert(a.accessor);
            writers_of[a.offset].insert(a.accessor);
        }
        if (accessors.size() < 2 || writers.empty()) continue;
        bool together = false;
        for (const auto& [offset, by] : writers_of) together = together || users_of[offset].size() > 1;
        for (const LineAccess& a : line.accesses) {
            const auto here = writers_of.find(a.offset);
            const std::size_t own_here = here == writers_of.end() ? 0 : here->second.count(a.accessor);
            const bool other_here = here != writers_of.end() && here->second.size() > own_here;
            const bool other_in_line = writers.size() > writers.count(a.accessor);
            if (other_in_line && !other_here) line.apart += a.samples;
        }
        line.kind = !together         ? SharedLine::Kind::false_sharing
                    : line.apart != 0 ? SharedLine::Kind::mixed
                                      : SharedLine::Kind::true_sharing;
        line.accessors = static_cast<std::uint32_t>(accessors.size());
        line.writers = static_cast<std::uint32_t>(writers.size());
        std::sort(line.accesses.begin(), line.accesses.end(), [](const LineAccess& a, const LineAccess& b) {
            return std::tie(a.offset, a.accessor, a.store, a.pc, a.mapping) <
                   std::tie(b.offset, b.accessor, b.store, b.pc, b.mapping);
        });
        out.push_back(std::move(line));
    }
    std::sort(out.begin(), out.end(), [](const SharedLine& a, const SharedLine& b) {
        const auto rank = [](const SharedLine& l) { return std::make_tuple(l.kind, ~l.apart, ~l.samples(), l.key); };
        return rank(a) < rank(b);
    });
    return out;
}

}  // namespace waymark::analysis
