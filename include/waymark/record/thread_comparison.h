/// The execution of each thread, decoded from the trace of CPUs between which threads move: how often each address ran,
/// compared with the truth of the threads. The order between CPUs is not compared.
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

/// How often addresses were executed, as a list of changes: address and difference.
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
        std::int64_t more{};  ///< number of executions here minus those in the other
    };
    /// The first address that ran more often than in `other`, otherwise the first one that ran less often; nullopt:
    /// they are equal.
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
/// Executions by thread; executions of unknown threads have the key nullopt.
using ThreadExecutions = std::map<std::optional<std::uint32_t>, ThreadExecution>;

/// Takes the decoded flow of one source, with the addresses of its own memory.
class ThreadExecutionSink final : public flow::Sink {
public:
    /// The thread that a context names; nullopt if it names none.
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

/// Executions in the ranges of a truth. `comparable`: whether the code at an address is in a file; other code is
/// omitted, and its instructions are counted in `left_out`. Lost ranges are omitted.
[[nodiscard]] ThreadExecution execution_of(RangeReader& truth, const std::function<bool(std::uint64_t)>& comparable,
                                           std::uint64_t& left_out);

/// The thread of a SourceTruth next to perf.data, from its name `PID/TID`; nullopt: it does not belong to a thread.
[[nodiscard]] std::optional<std::uint32_t> thread_of_truth(const SourceTruth& truth);

}  // namespace waymark::record
