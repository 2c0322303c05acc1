/// Sums over program flow whose order does not matter: how often each edge ran, where indirect branches led, what calls
/// cost from call to return, how long exceptions took, where flow was lost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "waymark/analysis/flow_code.h"
#include "waymark/analysis/key_index.h"

namespace waymark::analysis {

/// Work done: what every metric of flow is made of.
struct Work {
    std::uint64_t instructions{}, cycles{};
    Work& operator+=(const Work& o) {
        // One after the other: a load of both at once would wait for a store of one.
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

/// A way from an edge to where it led.
struct Way {
    std::uint32_t edge{};
    std::uint64_t to{};
    [[nodiscard]] std::uint64_t hash() const { return mix(to, edge); }
    friend auto operator<=>(const Way&, const Way&) = default;
};
struct WaySum {
    std::uint64_t times{};    ///< indirect branches only; direct ones went as often as their edge ran
    std::uint64_t returns{};  ///< of calls
    Work inclusive;           ///< between call and return, of calls that have returned
    friend bool operator==(const WaySum&, const WaySum&) = default;
};

/// A call that an earlier source of the same thread made and that had not returned when that source ended. Its frame
/// goes on in the next source (FlowCalls::hand_over), which does not have the block.
struct CarriedCall {
    flow::Block block;  ///< that ends with the call
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
        unknown,  ///< nothing is known of where it began
        place,    ///< at `from`, which did not run or of which it is not known
        function  ///< after an indirect branch at `from`, which may have led anywhere in its function
    };
    From how{};
    std::uint64_t from{}, to{};
    bool regained{};  ///< flow came back, at `to`
    bool inside{};    ///< to where a call or exception returns: only what was called was lost
    bool off{};       ///< the unit's own choice amid a function, not at an exception
    bool begins{};    ///< flow came back where a function begins
    [[nodiscard]] std::uint64_t hash() const {
        return mix(mix(from, to), static_cast<unsigned>(how) * 16U + (regained ? 8U : 0U) + (inside ? 4U : 0U) +
                                      (off ? 2U : 0U) + (begins ? 1U : 0U));
    }
    /// The unit was off amid a function, and what ran meanwhile is not known.
    [[nodiscard]] bool is_stretch_off() const {
        return off && regained && !inside && !(how == From::place && from == to);
    }
    friend auto operator<=>(const Loss&, const Loss&) = default;
};

/// A function went on elsewhere than where a call returns: a longjmp, or the handler of a C++ exception.
struct Resumption {
    std::uint64_t from{};  ///< where the call would have returned; if interrupted, where it was
    std::uint64_t to{};
    bool interrupted{};
    [[nodiscard]] std::uint64_t hash() const { return mix(mix(from, to), interrupted ? 1U : 0U); }
    friend auto operator<=>(const Resumption&, const Resumption&) = default;
};

/// One thread's sums.
class FlowCounts {
public:
    /// Edges from here on are no edges of blocks: the n-th is the n-th CarriedCall.
    static constexpr std::uint32_t first_carried = 0xf0000000;
    static constexpr std::size_t most_ways = std::size_t{1} << 22, most_losses = std::size_t{1} << 16,
                                 most_resumptions = std::size_t{1} << 16;

    FlowCode::Known known;
    std::vector<std::uint64_t> times;         ///< by edge
    std::vector<std::uint64_t> block_cycles;  ///< by block: what came with it; with calls only

    void reach(FlowCode& code, std::span<const flow::Block> blocks) {
        if (known.blocks.size() >= blocks.size()) return;
        code.extend(known, blocks);
        make_room();
    }
    /// All blocks that any thread has met.
    void reach(FlowCode& code) {
        code.extend(known, {});
        make_room();
    }
    void make_room() {
        times.resize(known.edges.size());
        recent_.resize(known.edges.size());
        block_cycles.resize(known.blocks.size());
    }
    /// Null where there is no room.
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
    /// Its number, which `sum` takes; 0: it is not there.
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
    /// How often each was.
    [[nodiscard]] const std::vector<std::uint64_t>& loss_times() const { return loss_times_; }

    std::map<flow::ExceptionType, ExceptionSum> exceptions;
    std::vector<std::uint64_t> ends;      ///< where flow was to go on when the stream ended
    std::vector<WaySum> carried;          ///< by CarriedCall; the last ones may be missing
    std::uint64_t cycles{};               ///< of all ranges and events
    std::uint64_t unseen_instructions{};  ///< that ran in no range (flow::Untraced)
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
    std::vector<std::uint32_t> recent_;  // by edge: the way last gone, plus 1
    KeyIndex<Loss> losses_{most_losses};
    std::vector<std::uint64_t> loss_times_;
    KeyIndex<Resumption> resumptions_{most_resumptions};
    std::vector<std::uint64_t> resumption_times_;
};

/// Sums in use by as many threads as work at once.
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
    /// Only while no lease is out.
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
