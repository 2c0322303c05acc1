/// Assembles packets and gaps to batches of records; used by both decoders.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "waymark/spe/parser.h"
#include "waymark/spe/record.h"
#include "waymark/spe/reference_decoder.h"

namespace waymark::spe {

/// A handler for `Parser` that stops after each record.
class RecordBuilder {
public:
    RecordBuilder(RecordSink& out, Start start)
        : out_(out), columns_(std::make_unique<RecordColumns>()), synchronised_(start == Start::record) {}

    void operator()(const AddressPacket& p, Extent at) {
        switch (begin(at); static_cast<AddressIndex>(p.index.value)) {
            case AddressIndex::pc: return set(RecordColumn::pc, record_.pc, p.address);
            case AddressIndex::branch_target: return set(RecordColumn::branch_target, record_.branch_target, p.address);
            case AddressIndex::data_virtual: return set(RecordColumn::data_virtual, record_.data_virtual, p.address);
            case AddressIndex::data_physical: return set(RecordColumn::data_physical, record_.data_physical, p.address);
            case AddressIndex::previous_target:
                return set(RecordColumn::previous_target, record_.previous_target, p.address);
        }
        defect(Defect::unnamed);
    }
    void operator()(const Counter& p, Extent at) {
        switch (begin(at); static_cast<CounterIndex>(p.index.value)) {
            case CounterIndex::total: return set(RecordColumn::total_latency, record_.total_latency, p.cycles);
            case CounterIndex::issue: return set(RecordColumn::issue_latency, record_.issue_latency, p.cycles);
            case CounterIndex::translation:
                return set(RecordColumn::translation_latency, record_.translation_latency, p.cycles);
            case CounterIndex::alternate_issue:
                return set(RecordColumn::alternate_issue_latency, record_.alternate_issue_latency, p.cycles);
            case CounterIndex::reserved: break;
        }
        defect(Defect::unnamed);
    }
    void operator()(const Events& p, Extent at) {
        begin(at);
        set(RecordColumn::events, record_.events, p.events.value);
    }
    void operator()(const OperationType& p, Extent at) {
        begin(at);
        if (p.kind == OperationClass::reserved) return defect(Defect::unnamed);
        record_.operation_class = p.kind;
        set(RecordColumn::operation, record_.operation_type, p.type);
    }
    void operator()(const DataSource& p, Extent at) {
        begin(at);
        set(RecordColumn::data_source, record_.data_source, p.source.value);
    }
    void operator()(const Context& p, Extent at) {
        begin(at);
        if (p.index == 0) return set(RecordColumn::context_el1, record_.context_el1, p.context);
        if (p.index == 1) return set(RecordColumn::context_el2, record_.context_el2, p.context);
        defect(Defect::unnamed);
    }
    void operator()(const Timestamp& p, Extent at) {
        begin(at);
        set(RecordColumn::timestamp, record_.timestamp, p.timestamp);
        end(at);
    }
    void operator()(const End&, Extent at) {
        begin(at);
        end(at);
    }
    void operator()(const Padding&, Extent at) {
        if (!open_ && synchronised_) totals_.padding_bytes += at.bytes;
    }
    void operator()(const Alignment&, Extent at) {
        if (open_)
            defect(Defect::aligned);
        else if (synchronised_)
            totals_.alignment_bytes += at.bytes;
    }
    void operator()(const Unknown&, Extent at) {
        begin(at);
        defect(Defect::unnamed);
    }
    void operator()(const Gap& gap) {
        if (gap.reason == GapReason::incomplete_packet || gap.reason == GapReason::framing) {
            cut_ = gap;  // leave() follows
            return;
        }
        begin({gap.first, gap.bytes()});
        defect(Defect::damaged);
        damaged_ += gap.bytes();
        if (synchronised_) report({0, gap, true});
    }

    /// A record ended with the latest packet.
    [[nodiscard]] bool done() const { return ended_; }
    void resume() { ended_ = false; }
    /// Whether no record is open, so that the next byte begins a record or is padding.
    [[nodiscard]] bool between_records() const { return !open_ && synchronised_; }

    /// The stream ends or jumps at `at`; the parser knows this already. A jump is always reported.
    void leave(Offset at, bool jump, Start next) {
        const GapReason reason = jump ? GapReason::framing : GapReason::incomplete_packet;
        Gap gap{at, at, reason};
        if (!synchronised_) {
            gap.first = unsynchronised_from_;
            gap.reason = GapReason::unsynchronised;
        } else if (open_) {
            gap.first = record_.first;
        } else if (cut_) {
            gap = *cut_;
        }
        if (gap.bytes() != 0) lose(gap);
        if (gap.bytes() == 0 ? jump : jump && gap.reason != GapReason::framing)
            report({0, {at, at, GapReason::framing}, false});
        cut_.reset();
        open_ = ended_ = false;
        synchronised_ = next == Start::record;
        unsynchronised_from_ = at;
    }

    void flush() {
        if (columns_->size == 0 && gaps_.empty()) return;
        out_.consume({*columns_, gaps_});
        columns_->size = 0;
        gaps_.clear();
    }

    /// The batch being filled; call `push` or `pushed` after each row.
    [[nodiscard]] RecordColumns& columns() { return *columns_; }
    void pushed(std::uint64_t bytes) {
        ++totals_.records;
        totals_.record_bytes += bytes;
        if (columns_->size == RecordColumns::capacity) flush();
    }
    [[nodiscard]] Totals& totals() { return totals_; }

private:
    void begin(Extent at) {
        if (open_) return;
        record_ = {};
        record_.first = at.first;
        damaged_ = 0;
        open_ = true;
    }
    template <class T, class V>
    void set(RecordColumn column, T& place, V value) {
        if (record_.has(column)) defect(Defect::repeated);
        record_.present = static_cast<std::uint16_t>(record_.present | 1U << static_cast<unsigned>(column));
        place = static_cast<T>(value);
    }
    void defect(Defect which) {
        record_.defects = static_cast<std::uint8_t>(record_.defects | 1U << static_cast<unsigned>(which));
    }
    void end(Extent last) {
        open_ = false;
        ended_ = true;
        if (!synchronised_) {
            synchronised_ = true;
            return lose({unsynchronised_from_, last.end(), GapReason::unsynchronised});
        }
        const std::uint64_t bytes = last.end() - record_.first;
        record_.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(bytes, 0xffffffffU));
        if (!record_.has(RecordColumn::pc)) defect(Defect::no_pc);
        if (bytes > max_record_bytes) defect(Defect::oversized);
        if (inconsistent()) defect(Defect::inconsistent);
        constexpr auto timestamp_alone =
            static_cast<std::uint16_t>(1U << static_cast<unsigned>(RecordColumn::timestamp));
        const auto no_pc_alone = static_cast<std::uint8_t>(1U << static_cast<unsigned>(Defect::no_pc));
        totals_.empty += (record_.present & ~timestamp_alone) == 0 && record_.defects == no_pc_alone;
        totals_.damaged_bytes += damaged_;
        for (unsigned d = 0; d < defect_count; ++d) totals_.defects[d] += record_.defects >> d & 1U;
        columns_->push(record_);
        pushed(bytes);
    }
    /// Whether the record contradicts section 1.4: the data that each class collects.
    [[nodiscard]] bool inconsistent() const {
        if (!record_.has(RecordColumn::operation)) return false;
        const bool data = record_.has(RecordColumn::data_virtual) || record_.has(RecordColumn::data_physical) ||
                          record_.has(RecordColumn::data_source);
        // A branch that accessed the guarded control stack is a memory access, too.
        const bool memory =
            record_.operation_class == OperationClass::load_store ||
            (record_.operation_class == OperationClass::branch && (record_.operation_type & 0x04U) != 0);
        return (data && !memory) ||
               (record_.has(RecordColumn::branch_target) && record_.operation_class != OperationClass::branch);
    }
    void lose(const Gap& gap) {
        totals_.lost_bytes += gap.bytes();
        ++totals_.gaps[static_cast<std::size_t>(gap.reason)];
        report({0, gap, false});
    }
    void report(RecordGap gap) {
        gap.before = static_cast<std::uint32_t>(columns_->size);
        gaps_.push_back(gap);
        if (gaps_.size() == RecordColumns::capacity) flush();
    }

    RecordSink& out_;
    std::unique_ptr<RecordColumns> columns_;
    std::vector<RecordGap> gaps_;
    Record record_{};
    std::uint64_t damaged_ = 0;  // bytes of gaps inside record_
    std::optional<Gap> cut_;     // bytes that the parser had not finished at the end or at a jump
    Offset unsynchronised_from_{};
    bool open_ = false, ended_ = false, synchronised_;
    Totals totals_;
};

}  // namespace waymark::spe
