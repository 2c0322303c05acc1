/// Sums over program flow that do not depend on order: executions of each edge, targets of indirect branches, costs of
/// calls, durations of exceptions, places of losses.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "waymark/analysis/flow_code.h"
#include "waymark/analysis/key_index.h"

namespace waymark::analysis {

/// Work done: the base of every metric of flow.
struct Work {
    std::uint64_t instructions{}, cycles{};
    Work& operator+=(const Work& o) {
        // Loaded one after the other: one load of both would wait for the store of a single one.
        instructions += o.instructions;
        if (o.cycles != 0) cycles += o.cycles;
        return *this;
    }
    friend Work operator+(Work a, const Work& b) { return a += b; }
    friend Work operator-(const Work& a, const Work& b) {
        return {a.instructions - b.instructions, a.cycles - b.cycles};
    }
    friend bool operator==(const Work&, const Work&) = default;
};

/// An edge, and the place to which it led.
struct Way {
    std::uint32_t edge{};
    std::uint64_t to{};
    [[nodiscard]] std::uint64_t hash() const { return mix(to, edge); }
    friend auto operator<=>(const Way&, const Way&) = default;
};
struct WaySum {
    std::uint64_t times{};    ///< only for indirect branches; a direct one went there as often as its edge ran
    std::uint64_t returns{};  ///< of calls
    Work inclusive;           ///< between call and return, for calls that have returned
    friend bool operator==(const WaySum&, const WaySum&) = default;
};

/// A call that an earlier source of the same thread made, and that had not returned when that source ended. Its frame
/// continues in the next source (FlowCalls::hand_over), which does not have the block.
struct CarriedCall {
    flow::Block block;  ///< the block that ends with the call
    std::uint64_t to{};
};

/// Executions of one kind of exception.
struct ExceptionSum {
    std::uint64_t times{}, nested{};
    std::uint64_t returned{};
    Work least{std::numeric_limits<std::uint64_t>::max(), std::numeric_limits<std::uint64_t>::max()}, most{}, sum{};
    friend bool operator==(const ExceptionSum&, const ExceptionSum&) = default;
};

/// A stretch of execution that the trace does not contain.
struct Loss {
    enum class From : std::uint8_t {
        unknown,  ///< its beginning is not known
        place,    ///< at `from`; whether that instruction ran is not known
        function  ///< after an indirect branch at `from`, which may have led to any place in its function
    };
    From how{};
    std::uint64_t from{}, to{};
    bool regained{};  ///< flow returned, at `to`
    bool inside{};    ///< flow returned to the address after a call or exception: only the callee was lost
    bool off{};       ///< the unit stopped by its programming inside a function, not at an exception
    bool begins{};    ///< flow returned at the beginning of a function
    bool handler{};   ///< began with an exception whose handler the unit excluded; traced code did not run meanwhile
    [[nodiscard]] std::uint64_t hash() const {
        return mix(mix(from, to), static_cast<unsigned>(how) * 16U + (regained ? 8U : 0U) + (inside ? 4U : 0U) +
                                      (off ? 2U : 0U) + (begins ? 1U : 0U) + (handler ? 64U : 0U));
    }
    /// Whether the unit was off inside a function, so that the code that ran meanwhile is not known.
    [[nodiscard]] bool is_stretch_off() const {
        return off && regained && !inside && !(how == From::place && from == to);
    }
    friend auto operator<=>(const Loss&, const Loss&) = default;
};

/// A function continued elsewhere than after a call: a longjmp, or the handler of a C++ exception.
struct Resumption {
    std::uint64_t from{};  ///< the return address of the call; if interrupted, the interrupted address
    std::uint64_t to{};
    bool interrupted{};
    [[nodiscard]] std::uint64_t hash() const { return mix(mix(from, to), interrupted ? 1U : 0U); }
    friend auto operator<=>(const Resumption&, const Resumption&) = default;
};

/// One thread's sums.
class FlowCounts {
public:
    /// Edges from here on do not belong to blocks: the n-th is the n-th CarriedCall.
    static constexpr std::uint32_t first_carried = 0xf0000000;
    static constexpr std::size_t most_ways = std::size_t{1} << 22, most_losses = std::size_t{1} << 16,
                                 most_resumptions = std::size_t{1} << 16;

    FlowCode::Known known;
    std::vector<std::uint64_t> times;         ///< by edge
    std::vector<std::uint64_t> block_cycles;  ///< by block: cycles that came with it; only with calls

    void reach(FlowCode& code, std::span<const flow::Block> blocks) {
        if (known.blocks.size() >= blocks.size()) return;
        code.extend(known, blocks);
        make_room();
    }
    /// Makes room for all blocks that any thread has met.
    void reach(FlowCode& code) {
        code.extend(known, {});
        make_room();
    }
    void make_room() {
        times.resize(known.edges.size());
        recent_.resize(known.edges.size());
        block_cycles.resize(known.blocks.size());
    }
    /// Sets all counts to zero.
    void count_anew() {
        FlowCounts fresh;
        fresh.known = std::move(known);
        fresh.make_room();
        *this = std::move(fresh);
    }
    /// Null if there is no room.
    [[nodiscard]] WaySum* way(std::uint32_t edge, std::uint64_t to) {
        if (edge >= first_carried) [[unlikely]] {
            const std::size_t number = edge - first_carried;
            if (number >= carried.size()) carried.resize(number + 1);
            return &carried[number];
        }
        std::uint32_t& recent = recent_[edge];
        if (recent == 0 || ways_.keys()[recent - 1] != Way{edge, to}) {
            const std::uint32_t number = ways_.find_or_add({edge, to});
            if (number == KeyIndex<Way>::full) {
                ++ways_left_out;
                return nullptr;
            }
            if (number == sums_.size()) sums_.emplace_back();
            recent = number + 1;
        }
        return &sums_[recent - 1];
    }
    /// The number of the known way `sum`; 0 if it is not known.
    [[nodiscard]] std::uint32_t known_way(std::uint32_t edge, std::uint64_t to) const {
        if (edge >= first_carried) return 0;
        const std::uint32_t recent = recent_[edge];
        if (recent != 0 && ways_.keys()[recent - 1] == Way{edge, to}) return recent;
        const std::uint32_t number = ways_.find({edge, to});
        return number == KeyIndex<Way>::full ? 0 : number + 1;
    }
    [[nodiscard]] WaySum& sum(std::uint32_t known_way) { return sums_[known_way - 1]; }
    void lost(const Loss& loss) {
        const std::uint32_t number = losses_.find_or_add(loss);
        if (number == KeyIndex<Loss>::full) {
            ++losses_left_out;
            return;
        }
        if (number == loss_times_.size()) loss_times_.push_back(0);
        ++loss_times_[number];
    }
    void resumed(const Resumption& how) {
        const std::uint32_t number = resumptions_.find_or_add(how);
        if (number == KeyIndex<Resumption>::full) return;
        if (number == resumption_times_.size()) resumption_times_.push_back(0);
        ++resumption_times_[number];
    }
    [[nodiscard]] const std::vector<Resumption>& resumptions() const { return resumptions_.keys(); }
    [[nodiscard]] const std::vector<std::uint64_t>& resumption_times() const { return resumption_times_; }
    [[nodiscard]] const std::vector<Way>& ways() const { return ways_.keys(); }
    [[nodiscard]] const std::vector<WaySum>& way_sums() const { return sums_; }
    [[nodiscard]] const std::vector<Loss>& losses() const { return losses_.keys(); }
    /// Number of occurrences of each loss.
    [[nodiscard]] const std::vector<std::uint64_t>& loss_times() const { return loss_times_; }

    std::map<flow::ExceptionType, ExceptionSum> exceptions;
    std::vector<std::uint64_t> ends;      ///< places where flow would have continued when the stream ended
    std::vector<WaySum> carried;          ///< by CarriedCall; the last ones may be missing
    std::uint64_t cycles{};               ///< of all ranges and events
    std::uint64_t unseen_instructions{};  ///< instructions that ran outside of ranges (flow::Untraced)
    std::uint64_t ways_left_out{}, losses_left_out{};

    void exception_took(const flow::ExceptionType& type, const Work& work) {
        ExceptionSum& e = exceptions[type];
        ++e.returned;
        e.sum += work;
        e.least = {std::min(e.least.instructions, work.instructions), std::min(e.least.cycles, work.cycles)};
        e.most = {std::max(e.most.instructions, work.instructions), std::max(e.most.cycles, work.cycles)};
    }

private:
    KeyIndex<Way> ways_{most_ways};
    std::vector<WaySum> sums_;
    std::vector<std::uint32_t> recent_;  // by edge: number of the way taken last, plus 1
    KeyIndex<Loss> losses_{most_losses};
    std::vector<std::uint64_t> loss_times_;
    KeyIndex<Resumption> resumptions_{most_resumptions};
    std::vector<std::uint64_t> resumption_times_;
};

/// Sums, one for each of the threads that work at the same time.
class CountsPool {
public:
    class Lease {
    public:
        explicit Lease(CountsPool& pool) : pool_(pool), counts_(pool.take()) {}
        ~Lease() { pool_.give(std::move(counts_)); }
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        FlowCounts& operator*() const { return *counts_; }
        FlowCounts* operator->() const { return counts_.get(); }

    private:
        CountsPool& pool_;
        std::unique_ptr<FlowCounts> counts_;
    };
    /// Call only while no lease exists.
    [[nodiscard]] const std::vector<std::unique_ptr<FlowCounts>>& all() const { return free_; }

private:
    std::unique_ptr<FlowCounts> take() {
        const std::scoped_lock lock(mutex_);
        if (free_.empty()) return std::make_unique<FlowCounts>();
        auto counts = std::move(free_.back());
        free_.pop_back();
        return counts;
    }
    void give(std::unique_ptr<FlowCounts> counts) {
        const std::scoped_lock lock(mutex_);
        free_.push_back(std::move(counts));
    }
    std::mutex mutex_;
    std::vector<std::unique_ptr<FlowCounts>> free_;
};

}  // namespace waymark::analysis
