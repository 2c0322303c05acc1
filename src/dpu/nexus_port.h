/// The Nexus interface behind switch 2. It has its own queue, so that slow output here never delays the trace buffer
/// (docs/spec/dpu.md, sections 5.8 and 11.3).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "waymark/dpu/model.h"
#include "waymark/dpu/nexus.h"

namespace waymark::dpu {

class NexusPort {
public:
    /// Tracing was enabled: messages are sent from here on.
    void open(TraceMode mode, bool flow_complete, const ModelChoices& choices, const CoreContext& context,
              const Counters& counters) {
        queue_bytes_ = choices.nexus_queue_bytes;
        bytes_per_cycle_ = choices.nexus_bytes_per_cycle;
        mode_ = mode;
        // Losses from before tracing was disabled are still reported.
        if (!std::exchange(closing_, false)) overrun_ = 0;
        mapper_.emplace(made_, mode, flow_complete, std::uint8_t{0}, counters);
        send([&] { mapper_->enabled(process(context)); });
    }
    [[nodiscard]] bool open() const { return mapper_.has_value() && !closing_; }
    /// Tracing is disabled. If the queue has no room for the last messages, they wait for room.
    void close() {
        if (!open()) return;
        closing_ = true;
        send_end();
    }
    /// Tracing is held and continues later: the time between is unknown to readers.
    void hold() {
        if (open()) send([&] { mapper_->disabled(); });
    }
    void resume() {
        if (open()) send([&] { mapper_->forget(); });
    }

    void entry(const Entry& entry, const CoreContext& context, std::optional<nexus::BranchType> type = {}) {
        send([&] { mapper_->entry(entry, process(context), type); });
    }
    /// Takes an item before the trace buffer's filters.
    void item(const EonceItem& item) {
        const std::uint32_t src = item.src & ~1U, dst = item.dst & ~1U;
        const bool pc = item.kind == ItemKind::mark;
        send([&] {
            if (pc)
                mapper_->entry(RawPc{src, {}}, process(item.after));
            else
                mapper_->pair(src, dst, branch_type(item.kind));
            mapper_->owner(process(item.after));
        });
    }
    void owner(const CoreContext& context) {
        send([&] { mapper_->owner(process(context)); });
    }
    void watchpoint(unsigned channel) {
        send([&] { mapper_->watchpoint(1U << channel); }, nexus::ErrorMessage::watchpoint);
    }

    /// `cycles` cycles pass, and bytes leave the queue.
    void drain(std::vector<std::uint8_t>& out, std::uint64_t cycles) {
        if (queue_.empty()) return;
        const std::uint64_t most =
            bytes_per_cycle_ == 0 ? 0 : std::min<std::uint64_t>(queue_.size(), cycles) * bytes_per_cycle_;
        const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(std::min<std::uint64_t>(queue_.size(), most));
        out.insert(out.end(), queue_.begin(), end);
        queue_.erase(queue_.begin(), end);
        if (closing_) send_end();
    }
    [[nodiscard]] bool idle() const { return queue_.empty(); }
    /// The queue is empty, or can never be emptied.
    [[nodiscard]] bool drained() const { return queue_.empty() || bytes_per_cycle_ == 0; }
    /// Number of messages that found no room.
    [[nodiscard]] std::uint64_t lost() const { return lost_; }

    /// Number of bytes queued so far, including those that were sent.
    [[nodiscard]] std::uint64_t accepted() const { return accepted_; }

    /// A return from an exception is sent like an exception.
    [[nodiscard]] static nexus::BranchType branch_type(ItemKind kind) {
        switch (kind) {
            case ItemKind::interrupt:
            case ItemKind::rte: return nexus::BranchType::exception;
            case ItemKind::loop_short:
            case ItemKind::loop_long: return nexus::BranchType::hardware_loop;
            default: return nexus::BranchType::indirect;
        }
    }

private:
    [[nodiscard]] static nexus::Process process(const CoreContext& c) { return {c.supervisor, c.pid, c.did}; }

    void send_end() {
        if (!send([&] { mapper_->disabled(); })) return;
        closing_ = false;
        mapper_.reset();
    }

    /// Adds messages to the queue as a whole or not at all; after an overrun an error message comes first.
    template <class F>
    bool send(F&& f, std::uint32_t other_classes = 0) {
        made_.clear();
        if (overrun_ != 0) mapper_->lost(overrun_);
        f();
        if (queue_.size() + made_.size() > queue_bytes_) {
            if (closing_) return false;  // it waits for room
            overrun_ |= nexus::lost_classes(mode_) | other_classes;
            ++lost_;
            return false;
        }
        overrun_ = 0;
        queue_.insert(queue_.end(), made_.begin(), made_.end());
        accepted_ += made_.size();
        return true;
    }

    std::vector<std::uint8_t> made_, queue_;
    std::optional<nexus::Mapper> mapper_;
    TraceMode mode_{};
    std::uint32_t queue_bytes_ = 0, bytes_per_cycle_ = 0, overrun_ = 0;
    std::uint64_t lost_ = 0, accepted_ = 0;
    bool closing_ = false;  ///< tracing is disabled, and the messages about this still wait for room
};

}  // namespace waymark::dpu
