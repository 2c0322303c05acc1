// Converts entries to elements one by one: the meaning of each, and its effect on later ones (docs/spec/dpu.md, 7.4).
#pragma once

#include <algorithm>
#include <array>

#include "waymark/dpu/element.h"
#include "waymark/dpu/parser.h"
#include "waymark/dpu/state.h"

namespace waymark::dpu {

class ElementBuilder {
public:
    ElementBuilder(ElementSink& out, const StartState& start) : out_(out) { state_.begin(start); }

    // E1, E2, E3: the counters at one instant, in every mode.
    WM_INLINE void operator()(const TaskSwitch& e, const EntryExtent& at) {
        Element& element = change(ElementKind::task_switch, e.last_pc, e.first_pc, at);
        read(element, e.counters, e.context);
        count<TaskSwitch>(at);
    }
    WM_INLINE void operator()(const Flow& e, const EntryExtent& at) {
        Element& element = change(ElementKind::flow, e.last_pc, e.first_pc, at);
        read(element, e.counters, e.context);
        count<Flow>(at);
    }
    WM_INLINE void operator()(const Sample& e, const EntryExtent& at) {
        Element& element = add(ElementKind::sample, at);
        read(element, e.counters, e.context);
        count<Sample>(at);
    }

    // A raw pair does not show the context to which it leads. If the context changed, a context entry after the pair
    // shows it (5.3).
    WM_INLINE void operator()(const RawPair& e, const EntryExtent& at) {
        show_context(change(ElementKind::pair, e.source, e.destination, at));
        after_pair_ = true;
        count<RawPair>(at);
    }
    WM_INLINE void operator()(const CompressedFlow& e, const EntryExtent& at) {
        Element& element = change(ElementKind::pair, e.source, e.destination, at);
        state_.show(e.context);
        show_context(element);
        after_pair_ = true;
        count<CompressedFlow>(at);
    }
    WM_INLINE void operator()(const RawPc& e, const EntryExtent& at) {
        Element& element = add(ElementKind::pc, at);
        element.from = e.pc;
        show_run(element);
        show_context(element);
        count<RawPc>(at);
    }
    WM_INLINE void operator()(const CompressedPc& e, const EntryExtent& at) {
        Element& element = add(ElementKind::pc, at);
        element.from = e.pc;
        show_run(element);
        state_.show(e.context);
        show_context(element);
        count<CompressedPc>(at);
    }

    // Loops do not end the straight run: it passes through the loop's body once, and continues after it.
    WM_INLINE void operator()(const ShortLoop& e, const EntryExtent& at) {
        loop(ElementKind::short_loop, e.id, e.last_address, e.reps, at);
        count<ShortLoop>(at);
    }
    WM_INLINE void operator()(const LongLoop& e, const EntryExtent& at) {
        loop(ElementKind::long_loop, e.id, e.last_address, e.reps, at);
        count<LongLoop>(at);
    }

    void operator()(const UserData& e, const EntryExtent& at) {
        Element& element = add(ElementKind::user_data, at);
        element.value = e.data;
        state_.show(e.context);
        show_context(element);
        count<UserData>(at);
    }
    WM_INLINE void operator()(const UserRaw& e, const EntryExtent& at) {
        // Literal data do not show which context wrote them, regardless of the context at the time of enabling.
        add(ElementKind::user_raw, at).value = e.data;
        count<UserRaw>(at);
    }
    void operator()(const ContextEntry& e, const EntryExtent& at) {
        const bool directly = after_pair_;
        Element& element = add(ElementKind::context, at);
        if (!at.doubtful) state_.show(e.context);
        show_context(element);
        if (at.doubtful) {
            element.context = e.context;  // the context as in the entry, for listings
            element.flags |= Element::doubtful | StreamState::context_known;
        } else if (directly) {
            element.flags |= Element::at_destination;
        }
        count<ContextEntry>(at);
    }
    // Pads mark where tracing was held (5.10): no entry shows events during the hold. A run of pads gives one element.
    void operator()(const Pad&, const EntryExtent& at) {
        if (!held_ && !at.doubtful) {
            state_.lose();
            state_.lossy = true;
            add(ElementKind::held, at);
            held_ = true;
            ++totals_.holds;
        }
        count<Pad>(at);
    }
    void operator()(const Closed&, const EntryExtent& at) {
        if (!closed_) show_context(add(ElementKind::closed, at));
        closed_ = true;
        count<Closed>(at);
    }
    void operator()(const GapEntry& e, const EntryExtent& at) {
        state_.lose();
        state_.lossy = true;
        Element& element = add(ElementKind::lost, at);
        element.value = e.lost;
        if (at.doubtful)
            element.flags |= Element::doubtful;
        else
            totals_.lost += e.lost;
        count<GapEntry>(at);
    }
    void operator()(const Gap& gap) {
        // Memory that was never written proves nothing, not even that something is missing.
        if (gap.reason != GapReason::padding) state_.lose();
        // If a buffer wrapped, only earlier trace is missing (12.1).
        if (gap.reason != GapReason::padding && gap.reason != GapReason::unsynchronised) state_.lossy = true;
        Element& element = add(ElementKind::gap, EntryExtent{gap.first, gap.bytes()});
        element.reason = gap.reason;
        element.value = static_cast<std::uint32_t>(std::min<std::uint64_t>(gap.bytes(), 0xffffffffU));
        show_context(element);
        ++totals_.gaps[static_cast<std::size_t>(gap.reason)];
        totals_.gap_bytes[static_cast<std::size_t>(gap.reason)] += gap.bytes();
    }

    /// Tracing was off for an unknown time, and begins again at `at`.
    void restart(const StartState& start, Offset at) {
        state_.begin(start);
        state_.lossy = true;
        show_context(add(ElementKind::enabled, EntryExtent{at, 0}));
        ++totals_.offs;
    }
    void flush() {
        if (size_ != 0) out_.consume({{elements_.data(), size_}, {readings_.data(), read_}});
        size_ = read_ = 0;
    }
    Totals& totals() { return totals_; }

private:
    static constexpr std::size_t capacity = 1000;

    template <class P>
    WM_INLINE void count(const EntryExtent& at) {
        ++totals_.entries[entry_index<P>];
        totals_.entry_bytes += at.bytes;
        if (at.doubtful) ++totals_.doubtful;
    }
    WM_INLINE Element& add(ElementKind kind, const EntryExtent& at) {
        if (size_ == capacity) [[unlikely]]
            flush();
        Element& element = elements_[size_++];
        element = {};
        element.offset = at.first;
        element.kind = kind;
        after_pair_ = closed_ = held_ = false;
        return element;
    }
    WM_INLINE void show_run(Element& element) const {
        element.start = state_.destination;
        element.flags |= state_.known & Element::run_known;
    }
    WM_INLINE void show_context(Element& element) const {
        element.context = state_.context;
        element.flags |= state_.known & StreamState::context_known;
    }
    WM_INLINE Element& change(ElementKind kind, std::uint32_t from, std::uint32_t to, const EntryExtent& at) {
        Element& element = add(kind, at);
        element.from = from;
        element.to = to;
        show_run(element);
        state_.destination = to;
        state_.known |= Element::run_known;
        return element;
    }
    WM_INLINE void loop(ElementKind kind, std::uint8_t id, std::uint32_t last, std::uint32_t reps,
                        const EntryExtent& at) {
        Element& element = add(kind, at);
        element.from = last;
        element.value = reps;
        show_run(element);
        state_.show_id(id);
        show_context(element);
    }

    /// Adds the reading to the element, and begins the next interval.
    WM_INLINE void read(Element& element, const Counters& values, const TaskContext& context) {
        state_.show(context);
        show_context(element);
        element.value = static_cast<std::uint32_t>(read_);
        Reading& reading = readings_[read_++];
        reading.values = values;
        reading.wide = 0;
        reading.flags =
            static_cast<std::uint8_t>((state_.counted ? 0 : Reading::first) | (state_.lossy ? Reading::lossy : 0) |
                                      (state_.mixed ? Reading::mixed : 0));
        for (unsigned i = 0; i < counter_count; ++i) {
            const std::uint32_t delta = state_.counted ? counted(state_.counters[i], values[i]) : 0;
            reading.deltas[i] = delta;
            totals_.deltas[i] += delta;
            reading.wide = static_cast<std::uint8_t>(reading.wide | is_wide(delta) << i);
        }
        ++totals_.readings;
        if (reading.wide != 0) ++totals_.wide;
        state_.counters = values;
        state_.counted = true;
        state_.reading_context = context;
        state_.reading_known = StreamState::context_known;
        state_.lossy = state_.mixed = false;
    }

    ElementSink& out_;
    StreamState state_;
    Totals totals_;
    bool after_pair_ = false;  // the previous element is a pair
    bool closed_ = false;      // the previous element is `closed`
    bool held_ = false;        // the previous element is `held`
    std::size_t size_ = 0, read_ = 0;
    std::array<Element, capacity> elements_;
    std::array<Reading, capacity> readings_;
};

}  // namespace waymark::dpu
