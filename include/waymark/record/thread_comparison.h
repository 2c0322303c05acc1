/// What each thread executed, decoded from trace of CPUs between which threads move: how often each address ran, held
/// against the truth of the threads. The order between CPUs is not compared.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>

#include "waymark/flow/flow.h"
#include "waymark/record/truth.h"

namespace waymark::record {

/// How often addresses were executed: by the address at which that changes, by how much.
class ExecutedAddresses {
public:
    void add(std::uint64_t start, std::uint64_t end, std::int64_t times) {
        changes_[start] += times;
        changes_[end] -= times;
    }
    ExecutedAddresses& operator+=(const ExecutedAddresses& other) {
        for (const auto& [address, change] : other.changes_) changes_[address] += change;
        return *this;
    }
    struct Change {
        std::uint64_t address{};
        std::int64_t more{};  ///< times that it ran here more often than in the other
    };
    /// The first address that ran more often than in `other`, or else more seldom; nothing: they are equal.
    [[nodiscard]] std::optional<Change> difference(const ExecutedAddresses& other) const;
    /// The first address that ran more often than in `other`.
    [[nodiscard]] std::optional<Change> excess(const ExecutedAddresses& other) const;

private:
    [[nodiscard]] std::optional<Change> first(const ExecutedAddresses& other, bool seldom_too) const;
    std::map<std::uint64_t, std::int64_t> changes_;
};

struct ThreadExecution {
    ExecutedAddresses addresses;
    std::uint64_t instructions{};
};
/// By thread; that of no thread that is known is `nothing`.
using ThreadExecutions = std::map<std::optional<std::uint32_t>, ThreadExecution>;

/// Takes the decoded flow of one source, with addresses as they were.
class ThreadExecutionSink final : public flow::Sink {
public:
    /// The thread that a context means; nothing: it names none.
    using ThreadOf = std::function<std::optional<std::uint32_t>(const flow::Context&)>;
    explicit ThreadExecutionSink(ThreadOf thread_of) : thread_of_(std::move(thread_of)) {
        thread_ = thread_of_(flow::Context{});
    }
    void consume(const flow::Batch& batch) override;
    void add_to(ThreadExecutions& all) const;
    [[nodiscard]] std::uint64_t no_memory() const { return no_memory_; }

private:
    ThreadOf thread_of_;
    std::optional<std::uint32_t> thread_;
    std::map<std::optional<std::uint32_t>, std::unordered_map<std::uint32_t, std::uint64_t>> times_;  // by block
    std::vector<flow::Block> blocks_;
    std::uint64_t no_memory_ = 0;
};

/// What the ranges of a truth executed. `comparable`: whether the code at an address is in a file; what is not is left
/// out, and its instructions are counted in `left_out`. Lost ranges are left out.
[[nodiscard]] ThreadExecution execution_of(RangeReader& truth, const std::function<bool(std::uint64_t)>& comparable,
                                           std::uint64_t& left_out);

/// The thread of a SourceTruth beside perf.data, `PID/TID`; nothing: it is none.
[[nodiscard]] std::optional<std::uint32_t> thread_of_truth(const SourceTruth& truth);

}  // namespace waymark::record
