#include "flow_sink.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <variant>

#include "waymark/flow/blocks.h"
#include "waymark/flow/summary.h"

namespace waymark::capi {

namespace {

// Blocks and ranges are passed to the callback without conversion.
template <class C, class Ours>
constexpr bool is_same_size = sizeof(C) == sizeof(Ours) && alignof(C) == alignof(Ours);
static_assert(is_same_size<wm_block, flow::Block> && is_same_size<wm_range, flow::Range>);
static_assert(offsetof(wm_block, target) == offsetof(flow::Block, target) &&
              offsetof(wm_block, bytes) == offsetof(flow::Block, bytes) &&
              offsetof(wm_block, instructions) == offsetof(flow::Block, instructions) &&
              offsetof(wm_block, section) == offsetof(flow::Block, section) &&
              offsetof(wm_block, isa) == offsetof(flow::Block, isa) &&
              offsetof(wm_block, end) == offsetof(flow::Block, end) &&
              offsetof(wm_block, last_bytes) == offsetof(flow::Block, last_bytes) &&
              offsetof(wm_block, flags) == offsetof(flow::Block, flags));
static_assert(offsetof(wm_range, offset) == offsetof(flow::Range, offset) &&
              offsetof(wm_range, cycles) == offsetof(flow::Range, cycles) &&
              offsetof(wm_range, times) == offsetof(flow::Range, times));
static_assert(WM_NO_CYCLES == flow::no_cycles && WM_A64 == static_cast<int>(isa::Isa::a64) &&
              WM_END_BARRIER == static_cast<int>(flow::End::barrier) && WM_BLOCK_LINK == flow::Block::link &&
              WM_BLOCK_CONDITIONAL == flow::Block::conditional && WM_BLOCK_RETURN == flow::Block::function_return &&
              WM_BLOCK_EXCEPTION_RETURN == flow::Block::exception_return &&
              WM_BLOCK_UNDEFINED == flow::Block::undefined && WM_BLOCK_WAIT == flow::Block::wait &&
              WM_BLOCK_TRANSACTION == flow::Block::transaction_start);
static_assert(sizeof(wm_event) == 64 && sizeof(wm_packet) == 40);
template <wm_event_kind kind, class T>
constexpr bool is_kind = std::is_same_v<std::variant_alternative_t<kind, flow::What>, T>;
static_assert(is_kind<WM_EVENT_GAP, Gap> && is_kind<WM_EVENT_TRACE_ON, flow::TraceOn> &&
              is_kind<WM_EVENT_CONTEXT, flow::Context> && is_kind<WM_EVENT_TIMESTAMP, flow::Timestamp> &&
              is_kind<WM_EVENT_EXCEPTION, flow::Exception> &&
              is_kind<WM_EVENT_EXCEPTION_RETURN, flow::ExceptionReturn> &&
              is_kind<WM_EVENT_NO_MEMORY, flow::NoMemory> && is_kind<WM_EVENT_TRIGGER, flow::Trigger> &&
              is_kind<WM_EVENT_CYCLES, flow::Cycles> && is_kind<WM_EVENT_INCONSISTENCY, flow::Inconsistency> &&
              is_kind<WM_EVENT_ATOMS, flow::Atoms> && is_kind<WM_EVENT_REACHED, flow::Reached> &&
              is_kind<WM_EVENT_UNTRACED, flow::Untraced> && is_kind<WM_EVENT_MARK, flow::Mark> &&
              std::variant_size_v<flow::What> == WM_EVENT_MARK + 1);

/// Fills in the members that events of each kind have, besides their place.
struct EventMaker {
    wm_event& e;

    // Stores a name, which must be a string literal: it lives as long as the program and is zero-terminated.
    void call(std::string_view name) const { e.name = name.data(); }
    void flag(unsigned bit, bool is_set) const { e.flags |= is_set ? bit : 0U; }

    void operator()(const Gap& gap) const {
        e.offset = gap.first.value;
        e.value = gap.bytes();
        e.detail = static_cast<std::uint32_t>(gap.reason);
        call(waymark::name(gap.reason));
    }
    void operator()(const flow::TraceOn& on) const {
        e.cycles = on.cycles;
        e.detail = static_cast<std::uint32_t>(on.reason);
        call(flow::name(on.reason));
    }
    void operator()(const flow::Context& c) const {
        e.value = c.context_id.value_or(0);
        e.other = c.vmid.value_or(0);
        e.detail = c.el ? *c.el : WM_NO_LEVEL;
        flag(WM_EVENT_HAS_VALUE, c.context_id.has_value());
        flag(WM_EVENT_HAS_OTHER, c.vmid.has_value());
        flag(WM_EVENT_NON_SECURE, c.ns);
        flag(WM_EVENT_HYP, c.hyp);
        flag(WM_EVENT_NSE, c.nse);
        flag(WM_EVENT_AARCH64, c.aarch64);
        call(flow::name(c.security()));
    }
    void operator()(const flow::Timestamp& t) const {
        e.value = t.value;
        e.cycles = t.cycles;
        flag(WM_EVENT_PARTIAL, !t.known);
        flag(WM_EVENT_FREQUENCY_CHANGED, t.frequency_changed);
        flag(WM_EVENT_COUNTED_AGAIN, t.counted_again);
    }
    void operator()(const flow::Exception& x) const {
        e.cycles = x.cycles;
        e.detail = x.type->number;
        e.address = x.preferred_return.value_or(Address{}).value;
        e.other = x.vector.value_or(Address{}).value;
        flag(WM_EVENT_HAS_ADDRESS, x.preferred_return.has_value());
        flag(WM_EVENT_HAS_OTHER, x.vector.has_value());
        call(x.type->name);
    }
    void operator()(const flow::ExceptionReturn&) const {}
    void operator()(const flow::NoMemory& no) const { e.address = no.address.value; }
    void operator()(const flow::Trigger&) const {}
    void operator()(const flow::Cycles& c) const {
        e.cycles = c.cycles.value_or(WM_NO_CYCLES);
        e.value = c.cycles.value_or(0);
        flag(WM_EVENT_HAS_VALUE, c.cycles.has_value());
        flag(WM_EVENT_OF_FLOW, c.of != flow::Cycles::Of::unknown);
    }
    void operator()(const flow::Inconsistency& i) const {
        e.detail = static_cast<std::uint32_t>(i.conflict);
        e.address = i.found.value;
        e.other = i.expected.value;
        call(flow::name(i.conflict));
    }
    void operator()(const flow::Atoms& atoms) const {
        e.value = atoms.taken;
        e.other = atoms.not_taken;
    }
    void operator()(const flow::Reached& reached) const { e.address = reached.address.value; }
    void operator()(const flow::Untraced& u) const {
        e.address = u.from.value;
        e.other = u.to.value;
        e.value = u.instructions;
        flag(WM_EVENT_HAS_ADDRESS, u.from_known);
    }
    void operator()(const flow::Mark& mark) const {
        e.detail = static_cast<std::uint32_t>(mark.kind);
        e.value = mark.value;
        e.other = mark.level;
    }
};

void sum_up(wm_totals& totals, const flow::What& what) {
    if (const auto* gap = std::get_if<Gap>(&what)) {
        totals.gaps += gap->reason == GapReason::stopped ? 0 : 1;
        totals.gap_bytes += gap->bytes();
    } else if (const auto* on = std::get_if<flow::TraceOn>(&what)) {
        totals.overflows += on->reason == flow::TraceOnReason::overflow;
    } else if (std::holds_alternative<flow::Exception>(what)) {
        ++totals.exceptions;
    } else if (std::holds_alternative<flow::ExceptionReturn>(what)) {
        ++totals.exception_returns;
    } else if (std::holds_alternative<flow::Context>(what)) {
        ++totals.contexts;
    } else if (std::holds_alternative<flow::Timestamp>(what)) {
        ++totals.timestamps;
    } else if (std::holds_alternative<flow::NoMemory>(what)) {
        ++totals.no_memory;
    } else if (std::holds_alternative<flow::Inconsistency>(what)) {
        ++totals.inconsistencies;
    } else if (const auto* cycles = std::get_if<flow::Cycles>(&what)) {
        totals.cycles += cycles->cycles.value_or(0);
    }
}

/// A range is four numbers, which the processor can load at once.
using Row [[gnu::vector_size(sizeof(flow::Range))]] = std::uint32_t;
constexpr std::size_t offset_in_row = 1, cycles_in_row = 2, times_in_row = 3;
static_assert(sizeof(Row) == sizeof(flow::Range) && offsetof(flow::Range, offset) == offset_in_row * 4 &&
              offsetof(flow::Range, cycles) == cycles_in_row * 4 && offsetof(flow::Range, times) == times_in_row * 4);

/// Called for every range. Most ranges have no cycle count and ran once: for them, a single member has to be added.
void add_ranges(wm_totals& totals, const flow::Batch& batch) {
    const flow::Block* const blocks = batch.blocks.data();
    std::uint64_t instructions = 0;
    // Bits that all ranges have, and bits that any range has.
    Row all = ~Row{}, any{};
    for (const flow::Range& range : batch.ranges) {
        instructions += blocks[range.block()].instructions;
        Row row;
        std::memcpy(&row, &range, sizeof row);
        all &= row;
        any |= row;
    }
    totals.instructions += instructions;
    if (all[cycles_in_row] == flow::no_cycles && all[times_in_row] == 1 && any[times_in_row] == 1) return;
    for (const flow::Range& range : batch.ranges) {
        totals.instructions += std::uint64_t{blocks[range.block()].instructions} * (range.times - 1U);
        totals.cycles += range.cycles == flow::no_cycles ? 0 : range.cycles;
    }
}

const wm_block* blocks_of(std::span<const flow::Block> blocks) {
    return reinterpret_cast<const wm_block*>(blocks.data());
}

}  // namespace

void add_totals(wm_totals& to, const wm_totals& from) {
    for (const auto member :
         {&wm_totals::bytes, &wm_totals::packets, &wm_totals::ranges, &wm_totals::instructions, &wm_totals::cycles,
          &wm_totals::exceptions, &wm_totals::exception_returns, &wm_totals::contexts, &wm_totals::timestamps,
          &wm_totals::gaps, &wm_totals::gap_bytes, &wm_totals::overflows, &wm_totals::no_memory,
          &wm_totals::inconsistencies, &wm_totals::samples})
        to.*member += from.*member;
}

void StreamSink::take_events(const flow::Batch& batch, bool wanted) {
    troubles_.consume(batch, [this](Offset at) { return offsets_.capture(at).value; });
    events_.clear();
    for (const flow::Event& event : batch.events) {
        sum_up(totals_, event.what);
        if (!wanted) continue;
        wm_event& e = events_.emplace_back();
        e = {static_cast<std::uint32_t>(event.what.index()),
             event.before,
             event.offset.value,
             0,
             0,
             0,
             WM_NO_CYCLES,
             0,
             0,
             0,
             ""};
        std::visit(EventMaker{e}, event.what);
    }
}

std::span<flow::Range> BatchSink::room(std::size_t least) {
    const std::span<flow::Range> given = given_room(least);
    writes_there_ = !given.empty();
    return given;
}

std::span<flow::Range> BatchSink::given_room(std::size_t least) {
    if (callbacks_.room == nullptr || callbacks_.stopped) return {};
    std::size_t count = least;
    wm_range* const given = callbacks_.room(&source_, &count, callbacks_.room_user);
    if (given == nullptr || count < least) {
        callbacks_.stopped = true;
        return {};
    }
    return {reinterpret_cast<flow::Range*>(given), count};
}

flow::Batch BatchSink::moved(const flow::Batch& batch) {
    constexpr std::uint64_t far = 0x3fffffff;
    const std::size_t count = batch.ranges.size();
    if (room_.size() < count) room_ = given_room(std::max<std::size_t>(count, flow::BatchWriter::batch_ranges));
    if (callbacks_.stopped) return {};
    if (batch.base.value - base_.value > far || batch.ranges.back().offset > far) base_ = batch.base;
    Row further{};
    further[offset_in_row] = static_cast<std::uint32_t>(batch.base - base_);
    for (std::size_t i = 0; i < count; ++i) {
        Row row;
        std::memcpy(&row, &batch.ranges[i], sizeof row);
        row += further;
        std::memcpy(static_cast<void*>(&room_[i]), &row, sizeof row);
    }
    const std::span<const flow::Range> there = room_.first(count);
    room_ = room_.subspan(count);
    return {batch.blocks, base_, there, batch.events};
}

void BatchSink::consume(const flow::Batch& delivered) {
    if (callbacks_.stopped) return;
    const bool moves = callbacks_.room != nullptr && !writes_there_ && !delivered.ranges.empty();
    const flow::Batch batch = moves ? moved(delivered) : delivered;
    if (callbacks_.stopped) return;
    take_events(batch, true);
    totals_.ranges += batch.ranges.size();
    add_ranges(totals_, batch);
    const wm_flow_batch out{sizeof(wm_flow_batch),
                            &source_,
                            buffer_.c_str(),
                            blocks_of(batch.blocks),
                            batch.blocks.size(),
                            reinterpret_cast<const wm_range*>(batch.ranges.data()),
                            batch.ranges.size(),
                            batch.base.value,
                            events_.data(),
                            events_.size(),
                            &offsets_};
    callbacks_.call(callbacks_.flow, &out, callbacks_.flow_user);
}

void CountSink::take_counts(const flow::EdgeCounts& counts) {
    totals_.cycles += counts.cycles;
    for (std::size_t edge = 0; edge < counts.times.size() && edge / 2 < counts.blocks.size(); ++edge) {
        totals_.ranges += counts.times[edge];
        totals_.instructions += counts.times[edge] * counts.blocks[edge / 2].instructions;
    }
    const std::size_t known = std::min(counts.times.size(), 2 * counts.blocks.size());
    const wm_counts out{sizeof(wm_counts),   &source_, buffer_.c_str(), blocks_of(counts.blocks), counts.blocks.size(),
                        counts.times.data(), known,    counts.cycles};
    callbacks_.call(callbacks_.counts, &out, callbacks_.counts_user);
}

void PacketSink::packet(const protocol::PacketView& packet, protocol::Extent at) {
    if (callbacks_.stopped) return;
    ++totals_.packets;
    add({at.first.value, static_cast<std::uint32_t>(at.bytes), 0, "", "", ""}, std::string(packet.name()),
        packet.fields_text(), packet.meaning());
}

void PacketSink::gap(const Gap& gap) {
    if (callbacks_.stopped) return;
    ++totals_.gaps;
    totals_.gap_bytes += gap.bytes();
    add({gap.first.value, static_cast<std::uint32_t>(std::min<std::uint64_t>(gap.bytes(), 0xffffffff)), 1, "", "", ""},
        std::string(waymark::name(gap.reason)), "", "");
}

void PacketSink::add(const wm_packet& packet, std::string name, std::string fields, std::string meaning) {
    packets_.push_back(packet);
    texts_.push_back(std::move(name));
    texts_.push_back(std::move(fields));
    texts_.push_back(std::move(meaning));
    if (packets_.size() == most) deliver();
}

void PacketSink::deliver() {
    if (packets_.empty()) return;
    for (std::size_t i = 0; i < packets_.size(); ++i) {
        packets_[i].name = texts_[3 * i].c_str();
        packets_[i].fields = texts_[3 * i + 1].c_str();
        packets_[i].meaning = texts_[3 * i + 2].c_str();
    }
    const wm_packet_batch out{sizeof(wm_packet_batch), &source_, buffer_.c_str(), packets_.data(), packets_.size()};
    callbacks_.call(callbacks_.packets, &out, callbacks_.packets_user);
    packets_.clear();
    texts_.clear();
}

}  // namespace waymark::capi
