#include "support/trace_writer.h"

#include <algorithm>

#include "waymark/pft/exceptions.h"

namespace waymark::synthetic {

using flow::Block;
using flow::End;
using pft::ISyncReason;
using pft::Place;

TraceWriter::TraceWriter(const pft::Config& config, const TraceWriterOptions& options)
    : config_(config), options_(options), random_(options.seed) {
    // Far from 0, which means "unknown", and with distinct high bytes for the 64-bit form.
    timestamp_base_ = (random_() >> (config_.timestamp_bytes == 9 ? 2 : 18)) | 0x100000;
}

void TraceWriter::waypoint(const Executed& w) {
    const std::uint64_t last = w.block.start + w.block.bytes - w.block.last_bytes;
    const bool traced = enter({{w.block.start}, w.block.isa}, last);
    last_waypoint_cycle_ = w.cycle;
    ns_ = w.ns;
    hyp_ = w.hyp;
    if (traced) {
        ++traced_count_;
        Block block = w.block;
        if (last - block.start > 4096) {  // 5.3, rule 3
            Block before = block;
            before.bytes -= block.last_bytes;
            --before.instructions;
            before.last_bytes = w.before_last_bytes;
            before.end = End::not_a_waypoint;
            before.target = before.flags = 0;
            expect_range(update(before), before, false);
            block.start = last;
            block.bytes = block.last_bytes;
            block.instructions = 1;
            block.section = w.last_section;
        }
        const bool was_ns = traced_ns_;
        const bool indirect = block.end == End::indirect;
        const bool exception_return = (block.flags & Block::exception_return) != 0;
        const bool tee = w.to.isa == Isa::tee;
        const bool news = w.ns != traced_ns_ || w.hyp != traced_hyp_ || tee != (base_.isa == Isa::tee) ||
                          tee != (other_base_.isa == Isa::tee);
        const bool on_top = config_.return_stack && !stack_.empty() && stack_.back().certain &&
                            stack_.back().address == w.to.address.value && stack_.back().isa == w.to.isa &&
                            stack_.back().ns == w.ns;
        const bool broadcast =
            config_.branch_broadcast &&
            (block.end == End::direct || (block.end == End::barrier && random_.chance(options_.barrier_packet_chance)));
        const std::uint32_t cycles = count(w.cycle);
        if (!w.passed) {
            atom(false, block, cycles);
        } else if (!news && (indirect ? on_top && !exception_return : !broadcast)) {
            atom(true, block, cycles);
            if (indirect) stack_.pop_back();
        } else {
            flush_atoms();
            expect_range(here(), block, true, delivered(cycles));
            tell_context(branch(w.to, 0, w.ns, w.hyp, cycles));
        }
        if (w.passed && config_.return_stack && (block.flags & Block::link) != 0) {
            // If a change of security state made by MSR is not reported yet, the specification and hardware may push
            // different states: such an entry never matches.
            stack_.push_back({w.block.start + w.block.bytes, block.isa, was_ns, was_ns == w.ns});
            if (stack_.size() > options_.return_stack_depth) stack_.pop_front();
        }
        if (w.passed && exception_return && config_.minor_version >= 1) {
            flush_atoms();
            expect_event(here(), flow::ExceptionReturn{});
            send(pft::ExceptionReturn{});
            timestamp(false);
        }
        if (block.end == End::barrier) timestamp(false);
        if (w.to.isa == Isa::jazelle) stop(ISyncReason::trace_enabled);
    }
}

void TraceWriter::exception(const Interrupted& e) {
    const std::uint64_t last = e.block.start + e.block.bytes - e.block.last_bytes;
    const bool debug = e.number == 1;
    const bool traced = enter({{e.block.start}, e.block.isa}, last);
    last_waypoint_cycle_ = e.cycle;
    ns_ = e.ns;
    hyp_ = e.hyp;
    if (traced) {
        ++traced_count_;
        flush_atoms();
        flow::Exception expected_exception{&pft::exception_type(e.number), Address{e.block.start}, std::nullopt,
                                           flow::no_cycles};
        if (e.update && e.block.instructions != 0) {
            Block block = e.block;
            block.end = End::not_a_waypoint;
            block.target = block.flags = 0;
            expect_range(update(block), block, false);
            expected_exception.preferred_return = Address{block.start + block.bytes};
        }
        const std::uint32_t cycles = count(e.cycle);
        expected_exception.cycles = delivered(cycles);
        const Place vector = debug || e.hidden ? Place{{0}, Isa::a32} : e.vector;
        if (!debug) expected_exception.vector = vector.address;
        expect_event(here(), expected_exception);
        if (debug || e.hidden) {
            // No new state is revealed: the preceding state is sent. (In a debug entry it has no meaning anyway.)
            const std::uint64_t at = branch(vector, e.number, traced_ns_, traced_hyp_, cycles);
            if (!debug) tell_context(at);
            stop(debug ? ISyncReason::debug_exit : ISyncReason::trace_enabled);
        } else {
            tell_context(branch(vector, e.number, e.ns, e.hyp, cycles));
            timestamp(false);
        }
    } else if (debug) {
        restart_ = ISyncReason::debug_exit;
    }
}

void TraceWriter::context_id(std::uint32_t value) {
    context_id_ = config_.context_id_bytes == 0   ? 0
                  : config_.context_id_bytes == 4 ? value
                                                  : value & ((1U << (8 * config_.context_id_bytes)) - 1);
    if (!tracing_ || config_.context_id_bytes == 0 || sent_context_id_ == context_id_) return;
    flush_atoms();
    const std::uint64_t at = here();
    send(pft::ContextId{context_id_});
    sent_context_id_ = context_id_;
    tell_context(at);
}

void TraceWriter::vmid(std::uint8_t value) {
    vmid_ = value;
    if (tracing_ && config_.vmid_trace && sent_vmid_ != value) send_vmid();
}

void TraceWriter::overflow(unsigned waypoints) {
    if (!tracing_) return;
    stop(ISyncReason::overflow_restart);
    overflow_left_ = waypoints;
    whole_timestamp_sent_ = false;
}

void TraceWriter::tell_context(std::uint64_t offset) {
    if (!options_.keep_truth) return;
    const flow::Context now{traced_ns_, traced_hyp_, sent_context_id_, sent_vmid_};
    if (told_context_ == now) return;
    told_context_ = now;
    expect_event(offset, now);
}

/// Whether a block [start, end] that ran is traced; sends the packets that belong at a block's start. 5.3, rules 1 and
/// 2.
bool TraceWriter::enter(const Place& start, std::uint64_t end) {
    if (overflow_left_ != 0) {
        --overflow_left_;
        return false;
    }
    if (!enabled_ || !in_ranges(start.address.value, end)) {
        if (tracing_) stop(ISyncReason::trace_enabled);
        return false;
    }
    if (tracing_) {
        boundary(start);
    } else {
        // This I-sync satisfies a pending request.
        const bool requested = !started_ || isync_pending_;
        if (!started_) send_async();
        send_isync(restart_, start);
        tracing_ = started_ = true;
        restart_ = ISyncReason::trace_enabled;
        after_isync(requested || !whole_timestamp_sent_);
    }
    if (vmid_pending_) send_vmid();
    return true;
}

/// 5.6.
bool TraceWriter::in_ranges(std::uint64_t start, std::uint64_t end) const {
    if (options_.ranges.empty()) return true;
    return std::any_of(options_.ranges.begin(), options_.ranges.end(), [&](const auto& range) {
               return options_.exclude ? range.first <= start && range.second > end
                                       : range.first <= end && range.second > start;
           }) != options_.exclude;
}

void TraceWriter::stop(ISyncReason restart) {
    flush_atoms();
    tracing_ = false;
    restart_ = restart;
}

void TraceWriter::send_async() {
    last_async_ = synced_at_ = here();
    async_is_new_ = true;
    send(pft::ASync{});
}

void TraceWriter::send_isync(ISyncReason reason, const Place& place) {
    flush_atoms();
    pft::ISync p;
    p.address_31_1 = static_cast<std::uint32_t>(place.address.value >> 1);
    p.reason = reason;
    p.thumb = place.isa != Isa::a32;
    p.alt_isa = place.isa == Isa::tee;
    p.ns = ns_;
    p.hyp = hyp_;
    p.context_id = context_id_;
    const std::uint64_t at = here();
    if (reason != ISyncReason::periodic) {
        constexpr flow::TraceOnReason reasons[] = {flow::TraceOnReason::begin, flow::TraceOnReason::enabled,
                                                   flow::TraceOnReason::overflow, flow::TraceOnReason::debug_restart};
        p.cycles = count(last_waypoint_cycle_);
        expect_event(at, flow::TraceOn{reasons[static_cast<unsigned>(reason)], delivered(p.cycles)});
    }
    send(p);
    syncs_.push_back({last_async_, at, async_is_new_});
    async_is_new_ = isync_pending_ = false;
    stack_.clear();
    base_ = other_base_ = place;
    traced_ns_ = ns_;
    traced_hyp_ = hyp_;
    if (config_.context_id_bytes != 0) sent_context_id_ = context_id_;
    tell_context(at);
}

/// A VMID and a timestamp follow an I-sync, the first before the next branch or atom.
void TraceWriter::after_isync(bool whole_timestamp) {
    vmid_pending_ = config_.vmid_trace;
    if (vmid_pending_ && random_.half()) send_vmid();
    timestamp(whole_timestamp);
}

void TraceWriter::send_vmid() {
    flush_atoms();
    const std::uint64_t at = here();
    send(pft::Vmid{vmid_});
    sent_vmid_ = vmid_;
    vmid_pending_ = false;
    tell_context(at);
}

/// Periodic synchronisation, 5.5: neither the A-sync waits for the atoms nor the I-sync for the A-sync.
void TraceWriter::boundary(const Place& start) {
    if (options_.sync_bytes != 0 && !isync_pending_ && here() - synced_at_ >= options_.sync_bytes) {
        send_async();
        isync_pending_ = true;
    }
    if (isync_pending_ && (!options_.delay_isync || random_.chance(6000))) {
        send_isync(ISyncReason::periodic, start);
        after_isync(true);
    }
    noise();
}

void TraceWriter::noise() {
    if (random_.chance(options_.trigger_chance)) {
        expect_event(here(), flow::Trigger{});
        send(pft::Trigger{});
    }
    if (random_.chance(options_.ignore_chance)) send(pft::Ignore{});
    if (random_.chance(options_.timestamp_chance)) timestamp(random_.chance(1000));
}

void TraceWriter::timestamp(bool whole) {
    if (!config_.timestamps) return;
    flush_atoms();
    const std::uint64_t at = here();
    // v1.1 gives the time of the last waypoint, v1.0 the time of the packet.
    const std::uint64_t late = config_.minor_version == 0 ? random_.below(4) : 0;
    const std::uint64_t now = std::max(count_base_, last_waypoint_cycle_ + late);
    const std::uint64_t width_mask = config_.timestamp_bytes == 9 ? ~std::uint64_t{0} : (std::uint64_t{1} << 48) - 1;
    // A late timestamp does not make time go back.
    const std::uint64_t before = config_.gray_timestamps ? pft::from_gray(sent_timestamp_) : sent_timestamp_;
    const std::uint64_t value = std::max((timestamp_base_ + now / 2) & width_mask, before);
    const std::uint64_t sent = config_.gray_timestamps ? pft::to_gray(value) : value;
    pft::Timestamp p;
    p.value = pft::compress_timestamp(sent, sent_timestamp_, whole, config_);
    p.cycles = count(now);
    p.frequency_changed = random_.chance(200);
    sent_timestamp_ = sent;
    whole_timestamp_sent_ |= p.value.bytes == config_.timestamp_bytes;
    send(p);
    expect_event(at, flow::Timestamp{value, whole_timestamp_sent_, p.frequency_changed, delivered(p.cycles)});
}

void TraceWriter::atom(bool e, const Block& block, std::uint32_t cycles) {
    if (config_.cycle_accurate) {
        expect_range(here(), block, e, cycles);
        send(pft::Atom{{{1, static_cast<std::uint8_t>(e ? 0 : 1)}, cycles}});
        return;
    }
    atoms_[atom_count_++] = {e, block};
    if (atom_count_ == atoms_.size()) flush_atoms();
}

void TraceWriter::flush_atoms() {
    if (atom_count_ == 0) return;
    const std::uint64_t at = here();
    pft::Atom p{{{static_cast<std::uint8_t>(atom_count_), 0}, 0}};
    for (unsigned i = 0; i < atom_count_; ++i) {
        expect_range(at, atoms_[i].block, atoms_[i].e);
        p.outcome.atoms.n = static_cast<std::uint8_t>(p.outcome.atoms.n << 1 | (atoms_[i].e ? 0 : 1));
    }
    atom_count_ = 0;
    send(p);
}

/// Sends that the last instruction of `walked` was executed.
std::uint64_t TraceWriter::update(const Block& walked) {
    flush_atoms();
    const std::uint64_t at = here();
    const Place place{{walked.start + walked.bytes - walked.last_bytes}, walked.isa};
    pft::WaypointUpdate p;
    p.target = compressed(place, 1);
    const bool tee = place.isa == Isa::tee;
    p.target.information = tee != (base_.isa == Isa::tee) || tee != (other_base_.isa == Isa::tee);
    p.alt_isa = tee && p.target.information;
    send(p);
    base_ = place;
    return at;
}

/// 2.5; returns the packet's offset.
std::uint64_t TraceWriter::branch(const Place& to, std::uint32_t exception, bool ns, bool hyp, std::uint32_t cycles) {
    flush_atoms();
    const std::uint64_t at = here();
    const bool tee = to.isa == Isa::tee;
    pft::BranchAddress p;
    const bool information = exception != 0 || ns != traced_ns_ || hyp != traced_hyp_ ||
                             tee != (base_.isa == Isa::tee) || tee != (other_base_.isa == Isa::tee);
    p.target = compressed(to, information ? 2 : 1);
    p.target.information = information;
    p.cycles = cycles;
    if (information) {
        p.exception_3_0 = static_cast<std::uint8_t>(exception & 0xf);
        p.exception_8_4 = static_cast<std::uint8_t>(exception >> 4);
        p.more = hyp || hyp != traced_hyp_ || exception > 15;
        p.alt_isa = tee;
        p.ns = ns;
        p.hyp = p.more && hyp;
    }
    if (!config_.cycle_accurate) p.cycles = 0;
    send(p);
    base_ = other_base_ = to;
    traced_ns_ = ns;
    traced_hyp_ = hyp;
    return at;
}

pft::Target TraceWriter::compressed(const Place& to, unsigned least) const {
    const pft::Target one = pft::compress(to, base_, least);
    const pft::Target other = pft::compress(to, other_base_, least);
    return one.bytes >= other.bytes ? one : other;
}

/// Cycles since the last count, which is set to the present one. 32 bits wide.
std::uint32_t TraceWriter::count(std::uint64_t cycle) {
    if (!config_.cycle_accurate) return 0;
    const auto cycles = static_cast<std::uint32_t>(cycle - count_base_);
    count_base_ = cycle;
    return cycles;
}

}  // namespace waymark::synthetic
