/// The packets of the model, and the state against which they are compressed: context, addresses, counts and times as
/// last sent (docs/spec/etm4.md, 4 to 8 and 10; docs/spec/etm4-registers.md, 2.13 to 2.18).
#pragma once

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "model_output.h"
#include "waymark/flow/flow.h"

namespace waymark::etm4 {

class ModelPackets : protected ModelOutput {
protected:
    ModelPackets(const ModelConfig& config, ByteSink& trace)
        : ModelOutput(config, trace),
          threshold_(config.registers.ccctlr.threshold),
          // Branch broadcast takes precedence over the return stack (2.18), and readers of the stream do not know the
          // regions of broadcast. So a unit with both features never matches, which is permitted.
          stack_entries_(config_.return_stack && !config_.branch_broadcast
                             ? std::min<std::size_t>(choices_.return_stack_depth, 15)
                             : 0) {}
    ~ModelPackets() = default;

    // ---- synchronisation

    /// A-sync and Trace Info (2.13). `in_transaction`: a Transaction Start packet was sent, and the transaction
    /// continues.
    void send_sync(bool in_transaction) {
        flush_atoms();
        sync_bytes_ = 0;
        send(ASync{});
        TraceInfo info;
        info.sections = 1;
        info.info_section = (config_.cycle_counting ? 1U : 0U) | (in_transaction ? 0x40U : 0U);
        if (depth() != 0) {
            info.sections |= 4;
            info.speculation = depth();
        }
        if (config_.cycle_counting) {
            info.sections |= 8;
            info.threshold = threshold_;
        }
        send(info);
        stack_.clear();
        sent_context_.reset();
        address_due_ = AddressDue::always;
        if (config_.timestamps) timestamp_due_ = true;
    }
    void send_trace_on() {
        send(TraceOn{});
        stack_.clear();
        address_due_ = AddressDue::always;
    }
    void forget_sent() {
        stack_.clear();
        sent_context_.reset();
        count_from_.reset();
        timestamp_due_ = false;
        address_due_ = AddressDue::always;
    }

    // ---- context and address

    [[nodiscard]] ContextFields fields_of(const flow::Context& context, isa::Isa isa) const {
        ContextFields out;
        out.el = context.el ? *context.el : std::uint8_t{static_cast<std::uint8_t>(context.hyp ? 2 : 0)};
        out.ns = context.ns;
        out.nse = context.nse;
        out.sf = isa == isa::Isa::a64;
        if (config_.context_id_trace && config_.context_id_bytes != 0) {
            out.has_context_id = true;
            out.context_id = context.context_id.value_or(0);
        }
        if (config_.vmid_trace && config_.vmid_bytes != 0) {
            out.has_vmid = true;
            const unsigned bits = 8U * config_.vmid_bytes;
            out.vmid = static_cast<std::uint32_t>(context.vmid.value_or(0) & ((std::uint64_t{1} << bits) - 1));
        }
        return out;
    }
    /// The reason why readers do not know where execution continues.
    enum class AddressDue : std::uint8_t { no, branch_target, always };

    /// Sends the context and address of the next traced instruction, as far as readers do not know them (2.13, steps 3
    /// and 4).
    void send_place(const isa::Place& place, const ContextFields& context) {
        const bool context_due = sent_context_ != context;
        if (address_due_ != AddressDue::no) {
            send_address(place, context_due ? &context : nullptr);
            address_due_ = AddressDue::no;
        } else if (context_due) {
            Context p;
            static_cast<ContextFields&>(p) = context;
            p.has_payload = true;
            send(p);
        }
        sent_context_ = context;
    }
    [[nodiscard]] bool context_known(const ContextFields& context) const { return sent_context_ == context; }

    /// Sends an address in the fewest bytes. `p0`: number of P0 elements that it completes.
    void send_address(const isa::Place& to, const ContextFields* context, std::uint32_t p0 = 0) {
        const KnownAddress place = place_of(to);
        if (context != nullptr) {
            AddressWithContext p;
            static_cast<ContextFields&>(p) = *context;
            const KnownAddress& last = state_.addresses().entry(0);
            const bool wide = ((place.address.value ^ last.address.value) | ~last.known) >> 32 != 0;
            p.address = sent(place, wide ? 8 : 4);
            send(p, p0);
            return;
        }
        const CompressedAddress compressed = compress(place, state_.addresses());
        if (compressed.entry)
            send(ExactMatchAddress{*compressed.entry}, p0);
        else if (compressed.sent.bytes <= 2)
            send(ShortAddress{compressed.sent}, p0);
        else
            send(LongAddress{compressed.sent}, p0);
    }
    /// ETE: the P0 instruction at `from` was taken. Returns false if the packet is lost.
    bool send_source(const isa::Place& from) {
        const CompressedAddress compressed = compress(place_of(from), state_.addresses());
        if (compressed.entry) return send(ExactMatchSourceAddress{*compressed.entry}, 1);
        if (compressed.sent.bytes <= 2) return send(ShortSourceAddress{compressed.sent}, 1);
        return send(LongSourceAddress{compressed.sent}, 1);
    }
    /// `count` instructions led to `to`. Returns false if the packet is lost.
    bool send_q(const isa::Place& to, std::uint32_t count) {
        const CompressedAddress compressed = compress(place_of(to), state_.addresses());
        Q q{.address = compressed.sent, .count = count};
        const auto is1 = static_cast<std::uint8_t>(compressed.sent.is1 ? 1 : 0);
        if (compressed.entry) {
            q.type = *compressed.entry;
        } else if (compressed.sent.bytes <= 4) {
            q.type = static_cast<std::uint8_t>((compressed.sent.bytes <= 2 ? 5 : 0xa) + is1);
        } else {
            q.type = 0xc;
            begin_group();
            send(q);
            send(LongAddress{compressed.sent}, 1);
            return end_group();
        }
        return send(q, 1);
    }

    // ---- return stack (2.18)

    void push(const isa::Place& after) {
        if (stack_entries_ == 0) return;
        if (stack_.size() == stack_entries_) stack_.erase(stack_.begin());
        stack_.push_back(after);
    }
    /// An indirect branch went to `target`: true if readers find the target by the return stack.
    bool matches(const isa::Place& target) {
        if (stack_.empty() || stack_.back() != target) return false;
        stack_.pop_back();
        return true;
    }

    // ---- counts and times

    /// Commits the last P0 element sent, from cycle `cycle`, and all elements before it; sends a count if one is due
    /// (2.14). Without speculation commits are implied.
    void commit(std::uint64_t cycle) {
        const bool due =
            config_.cycle_counting && (!count_from_ || cycle - *count_from_ >= std::max<std::uint64_t>(threshold_, 1));
        if (!due) {
            if (config_.max_speculation != 0) commit_all();
            return;
        }
        flush_atoms();
        std::uint32_t commits = 0;
        if (config_.max_speculation != 0) {
            if (config_.commit_mode_1)
                commit_all();
            else
                commits = depth();
            if (!config_.commit_mode_1 && commits == 0) return;
        }
        if (!send_count(cycle, commits)) return;
        committed(commits);
        count_from_ = cycle;
    }
    /// `cycle`: cycle of the most recent P0 element (2.15).
    void send_timestamp(std::uint64_t cycle) {
        flush_atoms();
        if (config_.timestamp_markers) send(TimestampMarker{});
        std::uint64_t value = choices_.timestamp_first +
                              cycle * choices_.timestamp_numerator / std::max(choices_.timestamp_denominator, 1U);
        if (config_.timestamp_bits == 48) value &= (std::uint64_t{1} << 48) - 1;
        Timestamp p{compress_timestamp(value, state_.timestamps().value()), 0, false};
        if (config_.cycle_counting && count_from_ && cycle - *count_from_ <= most_cycles()) {
            p.has_cycles = true;
            p.cycles = static_cast<std::uint32_t>(cycle - *count_from_);
        }
        if (send(p)) timestamp_due_ = false;
    }

    [[nodiscard]] std::uint64_t most_cycles() const { return (std::uint64_t{1} << config_.cycle_count_bits) - 1; }

    const std::uint32_t threshold_;
    const std::size_t stack_entries_;
    std::optional<std::uint64_t> count_from_;  ///< the cycle of the last count; nullopt: the next count is unknown
    AddressDue address_due_ = AddressDue::always;
    bool timestamp_due_ = false;

private:
    /// Bits below the alignment become 0.
    [[nodiscard]] static KnownAddress place_of(const isa::Place& to) {
        const bool is1 = to.isa == isa::Isa::t32;
        return {{to.address.value & address_mask(8, is1)}, is1};
    }
    [[nodiscard]] static SentAddress sent(const KnownAddress& place, std::uint8_t bytes) {
        return {place.address.value & address_mask(bytes, place.is1), bytes, place.is1};
    }
    /// `commits`: number of P0 elements that it commits, in commit mode 0 of a unit that speculates.
    bool send_count(std::uint64_t cycle, std::uint32_t commits) {
        // The first count, and a count beyond the counter's width, are unknown.
        if (!count_from_ || cycle - *count_from_ > most_cycles()) return send(CycleCountF1{commits, 0, true});
        // commit() ensures that the count is at least the threshold.
        const auto count = static_cast<std::uint32_t>(cycle - *count_from_ - threshold_);
        const bool mode_1 = config_.commit_mode_1;
        if (mode_1 || commits != 0) {
            if (count <= 3 && (mode_1 || commits <= 4))
                return send(CycleCountF3{static_cast<std::uint8_t>(mode_1 ? 0 : commits - 1),
                                         static_cast<std::uint8_t>(count)});
            if (count <= 15 && choices_.cycle_count_format_2) {
                const auto c = static_cast<std::uint8_t>(count);
                if (mode_1) return send(CycleCountF2{15, c, true});
                if (commits <= 16) return send(CycleCountF2{static_cast<std::uint8_t>(commits - 1), c, false});
                const std::uint32_t most = config_.max_speculation;
                if (commits <= most && commits + 15 >= most)
                    return send(CycleCountF2{static_cast<std::uint8_t>(commits + 15 - most), c, true});
            }
        }
        return send(CycleCountF1{commits, count, false});
    }

    std::optional<ContextFields> sent_context_;
    std::vector<isa::Place> stack_;
};

}  // namespace waymark::etm4
