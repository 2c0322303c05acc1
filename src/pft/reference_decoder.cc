#include "waymark/pft/reference_decoder.h"

#include <optional>
#include <utility>

#include "elements.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/isa/it_block.h"
#include "waymark/pft/parser.h"

namespace waymark::pft {

using isa::Instruction;
using isa::Waypoint;

class ReferenceDecoder::Machine {
public:
    Machine(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out)
        : config_(config), code_(code), out_(out), elements_(config_, out), parser_(config_, *this) {}

    void feed(Bytes bytes) { parser_.feed(bytes); }
    void begin_at(Offset at, const Standing& standing) {
        parser_.resume_at(at);
        at_ = at;
        elements_.event(at, flow::TraceOn{flow::TraceOnReason::recovered, flow::no_cycles});
        CoreState state;
        state.ns = standing.ns;
        state.hyp = standing.hyp;
        state.address = standing.current.address;
        state.isa = standing.current.isa;
        state.alt_isa = state.isa == Isa::tee;
        synced_ = true;
        set_both_states(state);
        last_state_.address = standing.last.address;
        last_state_.isa = standing.last.isa;
        for (const Place& place : standing.returns) stack_.push({place.address, place.isa, standing.ns});
    }
    void reset() { parser_.reset(); }
    void finish() {
        parser_.finish();
        if (!synced_ && async_seen_) elements_.waited_for_isync(async_end_, parser_.offset());
        forget();
        elements_.forget();
        out_.flush();
    }
    [[nodiscard]] std::uint64_t packets() const { return packets_; }
    [[nodiscard]] std::array<Offset, 2> pending() const {
        return {parser_.pending(), async_seen_ ? async_end_ : elements_.unplaced_first().value_or(parser_.pending())};
    }
    [[nodiscard]] bool amid_packet() const { return parser_.progress().amid_packet(); }

    // ---- packets, as section 4.1 dispatches them

    void operator()(const Gap& gap) {
        if (!synced_ && async_seen_) elements_.waited_for_isync(async_end_, gap.first);
        forget();
        elements_.gap(gap);
    }
    void operator()(const ASync&, Extent at) {
        ++packets_;
        if (synced_ || async_seen_) return;
        async_seen_ = true;
        async_end_ = at.end();
    }
    void operator()(const ISync& p, Extent at) {
        ++packets_;
        at_ = at.first;
        if (!synced_) elements_.waited_for_isync(async_end_, at.first);
        analyze_isync(p);
    }
    void operator()(const Timestamp& p, Extent at) {
        ++packets_;
        if (synced_)
            elements_.timestamp(at.first, p);
        else
            elements_.timestamp_unsynced(p);
    }
    void operator()(const BranchAddress& p, Extent at) {
        if (!begin(at)) return;
        check_vmid();
        if (p.exception() == 0)
            branch_no_excp(p);
        else
            branch_with_excp(p);
    }
    void operator()(const Atom& p, Extent at) {
        if (!begin(at)) return;
        check_vmid();
        analyze_atomheader(p);
    }
    void operator()(const WaypointUpdate& p, Extent at) {
        if (begin(at)) analyze_waypoint_update(p);
    }
    void operator()(const ContextId& p, Extent at) {
        if (begin(at)) analyze_cid(p);
    }
    void operator()(const Vmid& p, Extent at) {
        if (begin(at)) analyze_vmid(p);
    }
    void operator()(const ExceptionReturn&, Extent at) {
        if (begin(at)) analyze_eret();
    }
    void operator()(const Trigger&, Extent at) {
        if (begin(at)) elements_.event(at_, flow::Trigger{});
    }
    void operator()(const Ignore&, Extent) { ++packets_; }

private:
    /// Counts the packet; false when no I-sync has come yet, so that it means nothing.
    bool begin(Extent at) {
        ++packets_;
        at_ = at.first;
        return synced_;
    }

    /// When VMIDs are traced, one follows each I-sync before the next atom or branch packet (2.6).
    void check_vmid() {
        if (!std::exchange(vmid_due_, false)) return;
        elements_.event(at_, flow::Inconsistency{
                                 flow::Conflict::vmid_missing, have_address_ ? current_state_.address : Address{}, {}});
    }

    /// As before the first byte: nothing is known of the core.
    void forget() {
        synced_ = async_seen_ = vmid_due_ = false;
        lose_address();
        current_state_ = last_state_ = {};  // the VMID too is unknown until its packet comes
    }

    // ---- the operations of section 4.2, under their own names

    void branch_no_excp(const BranchAddress& p) {
        // Step 1, repaired: the target is kept aside, because the walk starts from the old CurrentState.
        const CoreState target = branch_target(p, last_state_, config_);
        if (!have_address_ || !walk_to_waypoint()) {  // steps 2 to 5
            elements_.stray_cycles(at_, p.cycles);
            set_both_states(target);
            return;
        }
        const Instruction instruction = waypoint_;
        const Address here = current_state_.address;
        end_range(true, elements_.cycles(p.cycles));
        // A packet may sit on a direct branch (4.6, 4.8) and then names the target the instruction names; if not, the
        // code was modified or the image is wrong. The packet is right either way.
        if (instruction.waypoint != Waypoint::indirect &&
            (instruction.target != target.address || instruction.target_isa != target.isa))
            elements_.event(at_,
                            flow::Inconsistency{flow::Conflict::branch_disagrees, instruction.target, target.address});
        push_if_link(instruction, here);  // step 6b, with the branch instruction's own ISA and security state
        set_both_states(target);          // step 6a
    }

    void branch_with_excp(const BranchAddress& p) {
        const CoreState target = branch_target(p, last_state_, config_);
        flow::Exception exception{p.exception(), {}, {}, elements_.cycles(p.cycles)};
        if (have_address_) exception.preferred_return = current_state_.address;  // 4.7
        const bool debug_entry = p.exception() == 1;
        if (!debug_entry) exception.vector = target.address;
        elements_.event(at_, exception);
        if (debug_entry) {
            // Address and state in this packet mean nothing (4.7); an I-sync follows when the core leaves Debug state.
            last_state_ = target;
            return lose_address();
        }
        set_both_states(target);
    }

    void analyze_atomheader(const Atom& p) {
        const std::uint32_t count = elements_.cycles(p.outcome.cycles);
        for (unsigned i = 0; i < p.outcome.atoms.count; ++i) {
            if (!have_address_ || !walk_to_waypoint()) {
                // The rest of the packet cannot be placed (4.4).
                elements_.unplaced(at_, p.outcome.atoms, i);
                return elements_.stray_cycles(at_, p.outcome.cycles);
            }
            const Instruction instruction = waypoint_;
            const Address here = current_state_.address;
            const bool e = p.outcome.atoms.e(i);
            end_range(e, count);
            if (!e) {
                current_state_.address = advance(here, instruction.bytes);
                continue;
            }
            const ReturnStack::Entry back{advance(here, instruction.bytes), current_state_.isa, current_state_.ns};
            current_state_.address = instruction.target;
            current_state_.isa = instruction.target_isa;
            if (instruction.waypoint == Waypoint::indirect) take_from_return_stack(here);
            if (config_.return_stack && instruction.link && have_address_) stack_.push(back);
        }
    }

    /// An E atom on an indirect branch: the macrocell's return stack matched, so ours knows where it went (4.5).
    void take_from_return_stack(Address here) {
        if (!config_.return_stack || stack_.empty()) {
            elements_.event(at_, flow::Inconsistency{flow::Conflict::no_return_address, here, {}});
            return lose_address();
        }
        const ReturnStack::Entry entry = stack_.pop();
        current_state_.address = entry.address;
        current_state_.isa = entry.isa;
        current_state_.ns = entry.ns;
        elements_.context(at_, current_state_);
    }

    void analyze_cid(const ContextId& p) {
        last_state_.context_id = current_state_.context_id = p.context_id;
        elements_.context(at_, current_state_);
    }

    void analyze_vmid(const Vmid& p) {
        vmid_due_ = false;
        last_state_.vmid = current_state_.vmid = p.vmid;
        elements_.context(at_, current_state_);
    }

    void analyze_waypoint_update(const WaypointUpdate& p) {
        const Place place = complete(p.target, last_state_.place());  // step 1
        if (config_.update_is_compression_base) {                     // OQ1
            if (p.target.information) last_state_.alt_isa = p.alt_isa;
            last_state_.address = place.address;
            last_state_.isa = with_alt_isa(place.isa, last_state_.alt_isa);
        }
        const Address waypoint = place.address;
        if (!have_address_) return elements_.event(at_, flow::Reached{waypoint});
        if (waypoint < current_state_.address) {  // repair: nothing is left to output
            elements_.event(at_, flow::Inconsistency{flow::Conflict::update_behind, current_state_.address, waypoint});
            return;
        }
        begin_range();
        Address last;
        do {
            Instruction instruction;
            if (!decode_instr(instruction, waypoint)) return elements_.event(at_, flow::Reached{waypoint});
            last = current_state_.address;
            // Repair of steps 5 and 6: a waypoint instruction still gets its own atom or branch packet.
            if (instruction.waypoint != Waypoint::none) break;
            output(instruction);                                                          // step 3
            current_state_.address = advance(current_state_.address, instruction.bytes);  // step 4 with its repair
        } while (current_state_.address <= waypoint &&
                 current_state_.address >= range_.start);  // the latter: 2^32 passed
        cut_range();
        // Beyond a waypoint instruction, or amid another one: the image or the trace is wrong.
        if (last != waypoint)
            elements_.event(at_, flow::Inconsistency{flow::Conflict::update_disagrees, last, waypoint});
    }

    void analyze_eret() { elements_.event(at_, flow::ExceptionReturn{}); }

    /// Section 4.3.
    void analyze_isync(const ISync& p) {
        const CoreState state = isync_state(p, current_state_, config_);
        const bool confirms = synced_ && p.reason == ISyncReason::periodic;
        if (!confirms) {
            elements_.trace_on(at_, p);
        } else if (have_address_) {
            const bool known_context = current_state_.context_id.has_value();
            if (state.address != current_state_.address || state.isa != current_state_.isa ||
                (known_context && state.context_id != current_state_.context_id))
                elements_.event(
                    at_, flow::Inconsistency{flow::Conflict::sync_disagrees, current_state_.address, state.address});
        }
        synced_ = true;
        async_seen_ = false;
        vmid_due_ = config_.vmid_trace && config_.minor_version >= 1;  // v1.0 has none (2.8)
        stack_.clear();
        set_both_states(state);
    }

    /// Where CurrentState points, decoded. False when that is not possible: the walk so far is output and the reason
    /// reported; flow is unknown up to the next address. An undefined instruction raises its exception, so no walk can
    /// pass it; `raised` names the one that a waypoint update says has done so.
    bool decode_instr(Instruction& instruction, std::optional<Address> raised = {}) {
        const Address address = current_state_.address;
        const auto walked = static_cast<std::uint32_t>(address.value - range_.start.value);
        if (walked >= config_.max_walk_bytes)
            return give_up(flow::Inconsistency{flow::Conflict::runaway_walk, address, {}});
        const isa::Fetched fetched = isa::fetch(code_, current_state_.space(), address, current_state_.isa);
        if (fetched.bytes == 0) return give_up(flow::NoMemory{address});
        instruction = isa::decode_instr(address, current_state_.isa, fetched.opcode, fetched.bytes == 4,
                                        {.dmb_dsb_waypoints = config_.barrier_waypoints});
        const bool may_be_passed = it_.next(fetched, current_state_.isa);
        if (instruction.undefined && address != raised && !may_be_passed)
            return give_up(flow::Inconsistency{flow::Conflict::undefined_reached, address, {}});
        if (range_.instructions == 0) range_.section = fetched.section;
        return true;
    }

    bool give_up(flow::What why) {
        cut_range();
        elements_.event(at_, std::move(why));
        lose_address();
        return false;
    }

    /// Steps b of analyze_atomheader and 2 to 5 of branch_no_excp: outputs instructions up to and including the next
    /// waypoint instruction, which is left in `waypoint_` with CurrentState still on it.
    bool walk_to_waypoint() {
        begin_range();
        for (;;) {
            if (!decode_instr(waypoint_)) return false;
            output(waypoint_);
            if (waypoint_.waypoint != Waypoint::none) return true;
            current_state_.address = advance(current_state_.address, waypoint_.bytes);
        }
    }

    void push_if_link(const Instruction& instruction, Address here) {
        if (config_.return_stack && instruction.link)
            stack_.push({advance(here, instruction.bytes), current_state_.isa, current_state_.ns});
    }

    void set_both_states(const CoreState& state) {
        last_state_ = current_state_ = state;
        have_address_ = true;
        elements_.context(at_, state);
        if (state.isa == Isa::jazelle) lose_address();  // bytecodes are never traced (4.7)
    }

    void lose_address() {
        have_address_ = false;
        stack_.clear();  // a linking branch may go unseen from here on (4.5, rule 4)
    }

    // ---- instruction objects, joined to ranges

    void begin_range() {
        range_ = {current_state_.address, {}, 0, 0, 0};
        it_ = {};
    }
    void output(const Instruction& instruction) {
        ++range_.instructions;
        range_.bytes += instruction.bytes;
        range_.last = instruction;
    }
    [[nodiscard]] std::uint32_t block(flow::End end, std::uint8_t flags, Address target) {
        return out_.table().intern({range_.start.value, target.value, range_.bytes, range_.instructions, range_.section,
                                    current_state_.isa, end, range_.last.bytes, flags});
    }
    /// The range ends in the waypoint instruction just output.
    void end_range(bool passed, std::uint32_t cycles) {
        const Instruction& last = range_.last;
        out_.range(block(block_end(last.waypoint), block_flags(last), last.target) * 2 + (passed ? 1U : 0U), at_,
                   cycles);
    }
    /// The range ends somewhere else: its outcome is unknown.
    void cut_range() {
        if (range_.instructions != 0) out_.range(block(flow::End::not_a_waypoint, 0, {}) * 2, at_);
    }

    struct Walked {
        Address start;
        Instruction last;
        std::uint32_t bytes, instructions, section;
    };

    const Config config_;
    const isa::CodeReader& code_;
    flow::BatchWriter& out_;
    Elements<flow::BatchWriter> elements_;
    Parser<Machine> parser_;

    CoreState last_state_, current_state_;
    bool synced_ = false, have_address_ = false;
    bool vmid_due_ = false;    // an I-sync came, and no VMID since, though VMIDs are traced
    bool async_seen_ = false;  // not synced: an A-sync has come, its I-sync not yet
    Offset async_end_{};
    ReturnStack stack_;

    Offset at_{};  // of the packet at hand
    Walked range_{};
    isa::ItBlock it_{};  ///< where the walk is in one
    Instruction waypoint_;
    std::uint64_t packets_ = 0;
};

ReferenceDecoder::ReferenceDecoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out)
    : machine_(std::make_unique<Machine>(config, code, out)) {}
ReferenceDecoder::~ReferenceDecoder() = default;
void ReferenceDecoder::feed(Bytes bytes) { machine_->feed(bytes); }
void ReferenceDecoder::begin_at(Offset at, const Standing& standing) { machine_->begin_at(at, standing); }
void ReferenceDecoder::reset() { machine_->reset(); }
void ReferenceDecoder::finish() { machine_->finish(); }
std::uint64_t ReferenceDecoder::packets() const { return machine_->packets(); }
std::array<Offset, 2> ReferenceDecoder::pending() const { return machine_->pending(); }
bool ReferenceDecoder::amid_packet() const { return machine_->amid_packet(); }

}  // namespace waymark::pft
