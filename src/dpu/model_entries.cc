/// Triggers and entries, and how entries become lines of trace.
#include "model_unit.h"

#include <fmt/format.h>

namespace waymark::dpu {

// ---- 5 and 6: triggers and entries

void Model::Unit::entries(const CycleInput& in) {
    now_ = in.ctx;
    const bool raw = nexus_.open() && registers_.tc.nexus_mode() == NexusMode::raw && phase_ == Phase::run;
    if (raw) nexus_.owner(now_);
    if (compressor_.pending() && compressor_.context() != shown_as(now_)) flush_compressor();
    for (const EonceItem& item : in.items) {
        if (phase_ == Phase::run) {
            if (nexus_.open()) nexus_item(item);
            trace_item(item);
        }
        now_ = item.after;
        if (compressor_.pending() && compressor_.context() != shown_as(now_)) flush_compressor();
    }
    if (std::exchange(sample_queued_, false)) {
        flush_compressor();
        sample(now_, {}, [&] { return Sample{shown_as(now_), shadow_}; });
    }
    for (const std::uint32_t datum : user_data_) {
        flush_compressor();
        if (format_.mode == TraceMode::user_raw)
            emit(UserRaw{datum}, now_);
        else
            emit(UserData{shown_as(now_), datum}, now_);
    }
    user_data_.clear();
    if (phase_ == Phase::run)
        context_entry_if_due();
    else if (flushing())
        closing();
}

/// Sends watchpoints, and under NXMODE 10 every item in the EOnCE's form. An address in the unit's own page is reported
/// at the place of tracing.
void Model::Unit::nexus_item(const EonceItem& item) {
    if (item.kind == ItemKind::edca) nexus_.watchpoint(item.channel % 6U);
    if (registers_.tc.nexus_mode() != NexusMode::raw || item.kind == ItemKind::exec_set) return;
    if (config_.eonce.passes(item.kind)) nexus_.item(item);
}

void Model::Unit::trace_item(const EonceItem& item) {
    const DpTc& tc = registers_.tc;
    if (!format_.mode) return;
    const bool edca5 = item.kind == ItemKind::edca && item.channel == 5;
    if (*format_.mode == TraceMode::edca5 ? !edca5 : !config_.eonce.passes(item.kind)) return;
    if (tc.idflt && !id_match(now_) && !id_match(item.after)) return;
    const TaskContext after = shown_as(item.after);
    const bool interrupts = item.kind == ItemKind::interrupt || item.kind == ItemKind::rte;
    const std::uint32_t src = item.src & ~1U, dst = item.dst & ~1U;
    switch (*format_.mode) {
        case TraceMode::eonce_raw: return trace_raw(item);
        case TraceMode::eonce_comp: return compress(item);
        case TraceMode::task:
            if (!interrupts || after == last_switch_) return;
            last_switch_ = after;
            if (refused(src, "source") || refused(dst, "destination")) return;
            return sample(item.after, item.kind, [&] { return TaskSwitch{src, dst, shadow_, after}; });
        case TraceMode::flow:
            if (!interrupts && item.kind != ItemKind::call && item.kind != ItemKind::ret) return;
            if (refused(src, "source") || refused(dst, "destination")) return;
            return sample(item.after, item.kind, [&] { return Flow{src, dst, shadow_, after}; });
        case TraceMode::edca5: return sample(item.after, item.kind, [&] { return Sample{after, shadow_}; });
        case TraceMode::sw_sample:
        case TraceMode::user:
        case TraceMode::user_raw: return;
    }
}

/// A trigger: loads the shadow registers, unless an entry still occupies them (5.2).
template <class Make>
void Model::Unit::sample(const CoreContext& context, std::optional<ItemKind> kind, Make&& make) {
    if (cycle_ < shadow_busy_until_) return lose();
    capture(all_counters);
    ++counts_.triggers;
    const std::uint32_t rate = config_.choices.drain_words_per_cycle;
    const auto entry = make();
    if (emit(entry, context, kind) && rate != 0) shadow_busy_until_ = cycle_ + (entry.info.words + rate - 1) / rate;
}

/// 6.2: a program counter cannot lie in the page of the flags.
bool Model::Unit::refused(std::uint32_t pc, std::string_view what) {
    if (!format_.in_flag_page(pc)) return false;
    report(DpTc::offset, fmt::format("the {} {:#x} of a change of flow lies in the unit's own page at {:#x}, where no "
                                     "program can be; its entry is lost. Give the unit another base address",
                                     what, pc, format_.dpu_base));
    lose();
    return true;
}

void Model::Unit::trace_raw(const EonceItem& item) {
    const std::uint32_t src = item.src & ~1U, dst = item.dst & ~1U;
    EonceCounters counters{};
    unsigned c = 0;
    if (config_.eonce.tcount) counters[c++] = item.count & counter_mask;
    if (config_.eonce.tcntext) counters[c++] = item.ext & counter_mask;
    const bool one =
        item.kind == ItemKind::loop_short || item.kind == ItemKind::mark || item.kind == ItemKind::exec_set;
    if (one || item.kind == ItemKind::loop_long) context_entry_if_due();
    if (refused(src, "source") || (!one && refused(dst, "destination"))) return;
    if (one)
        emit(RawPc{src, counters}, item.after, item.kind);
    else
        emit(RawPair{src, dst, counters}, item.after, item.kind);
}

void Model::Unit::compress(const EonceItem& item) {
    const std::uint32_t src = item.src & ~1U, dst = item.dst & ~1U;
    const TaskContext after = shown_as(item.after);
    const auto kind = Compressor::kind_of(item.kind, src, dst);
    const std::uint32_t second = kind == Compressor::Loop::Kind::short_loop ? 0 : dst;
    if (compressor_.again(kind, src, second, after)) {
        if (compressor_.full()) flush_compressor();
        return;
    }
    flush_compressor();
    const bool pc = item.kind == ItemKind::mark || item.kind == ItemKind::exec_set;
    if (pc || kind == Compressor::Loop::Kind::short_loop || kind == Compressor::Loop::Kind::long_loop)
        context_entry_if_due();
    if (refused(src, "source") || (!pc && refused(second, "destination"))) return;
    if (pc)
        emit(CompressedPc{src, after}, item.after, item.kind);
    else if (kind == Compressor::Loop::Kind::none)
        emit(CompressedFlow{src, dst, after}, item.after, item.kind);
    else
        compressor_.begin(kind, src, second, after, item.after);
}

void Model::Unit::flush_compressor() {
    if (!compressor_.pending()) return;
    const Compressor::Loop loop = compressor_.take();
    using Kind = Compressor::Loop::Kind;
    if (loop.kind == Kind::short_loop)
        emit(ShortLoop{loop.context.id, loop.src, loop.reps}, loop.core);
    else if (loop.kind == Kind::long_loop || loop.reps > 1)
        emit(LongLoop{loop.context.id, loop.src, loop.reps}, loop.core);
    else
        emit(CompressedFlow{loop.src, loop.dst, loop.context}, loop.core, ItemKind::cof);
}

/// 5.3: writes a context entry if no other entry has shown the present context.
void Model::Unit::context_entry_if_due() {
    const TaskContext now = shown_as(now_);
    const auto due = [&] {
        if (context_due_) return true;
        if (!in_eonce_mode() || shown_ == now) return false;
        // A filter passes a change from or to a context that matches.
        return !registers_.tc.idflt || id_match(now_) || shown_matches_;
    };
    if (!due()) return;
    flush_compressor();
    if (!due()) return;
    context_due_ = false;
    if (!emit(ContextEntry{now}, now_)) {
        // A gap entry will request the context entry again.
        shown_ = now;
        shown_matches_ = id_match(now_);
    }
    context_due_ = false;
}

// ---- trace write management

/// Moves an entry through switch 2 to the buffer. An entry is accepted whole or not at all (5.5).
template <class E>
bool Model::Unit::emit(const E& entry, const CoreContext& context, std::optional<ItemKind> kind) {
    const bool gap = gap_waits();
    words_.clear();
    if (gap) WM_CHECK(encode(words_, GapEntry{lost_}, format_));
    WM_CHECK(encode(words_, entry, format_));
    if (registers_.tc.nexus_mode() != NexusMode::only) {
        if (!buffer_.fits(words_.size()) && !make_room(words_.size())) {
            lose();
            return false;
        }
        buffer_.put(words_);
        counts_.words += words_.size();
    }
    ++counts_.entries;
    if constexpr (requires { entry.context; }) {
        shown_ = entry.context;
        shown_matches_ = id_match(context);
    }
    if (nexus_.open()) {
        if (gap) mirror(GapEntry{lost_}, context);
        mirror(entry, context, kind);
    }
    if (gap) {
        ++counts_.gaps;
        lost_ = 0;
        context_due_ = shows_context();
    }
    return true;
}

/// Entries for the buffer also go to the Nexus interface (NXMODE 01, 11), except entries of execution sets.
void Model::Unit::mirror(const Entry& entry, const CoreContext& context, std::optional<ItemKind> kind) {
    if (registers_.tc.nexus_mode() == NexusMode::raw || kind == ItemKind::exec_set) return;
    nexus_.entry(entry, context, kind ? std::optional(NexusPort::branch_type(*kind)) : std::nullopt);
}

void Model::Unit::lose() {
    ++counts_.lost;
    ++lost_now_;
    if (lost_ < counter_mask) ++lost_;
    registers_.mr.tlost = true;
}

/// 5.10: the remaining words are written, and the line is filled.
void Model::Unit::closing() {
    if (!flushed_) {
        flush_compressor();
        flushed_ = true;
        if (phase_ == Phase::flush) nexus_.hold();
    }
    if (gap_waits()) {
        words_.clear();
        WM_CHECK(encode(words_, GapEntry{lost_}, format_));
        if (registers_.tc.nexus_mode() != NexusMode::only) {
            if (!buffer_.fits(words_.size()) && !make_room(words_.size())) return;
            buffer_.put(words_);
            counts_.words += words_.size();
        }
        if (nexus_.open()) mirror(GapEntry{lost_}, now_);
        ++counts_.gaps;
        lost_ = 0;
        context_due_ = shows_context();
    }
    // A hold is marked by at least one pad, so that readers know that its interval contains more than the trace shows.
    const bool whole_line = hold_due_ && buffer_.missing() == 0;
    if (whole_line && !buffer_.fits(TraceWriteBuffer::line_words) && !make_room(TraceWriteBuffer::line_words)) return;
    if (const unsigned missing = whole_line ? TraceWriteBuffer::line_words : buffer_.missing(); missing != 0) {
        words_.clear();
        for (unsigned i = 0; i < missing; ++i)
            WM_CHECK(phase_ == Phase::close && !hold_due_ ? encode(words_, Closed{}, format_)
                                                          : encode(words_, Pad{}, format_));
        buffer_.put(words_);
        counts_.words += missing;
    }
    if (std::exchange(hold_due_, false)) context_due_ = shows_context();
    if (phase_ == Phase::close) nexus_.close();
}

}  // namespace waymark::dpu
