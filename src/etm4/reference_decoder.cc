/// Sections refer to docs/spec/etm4.md. This decoder shares with `Decoder` only the formats of packets, the tables of
/// exception types, and the layers below: a fault in one decoder is not in the other.
#include "waymark/etm4/reference_decoder.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <deque>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>

#include "waymark/etm4/exceptions.h"
#include "waymark/etm4/parser.h"
#include "waymark/follow/reference_follower.h"

namespace waymark::etm4 {

namespace reference {

// ---- section 6: addresses

/// The address in a packet, in the alignment of A64 and A32 (IS0) or T32 (IS1).
struct FullAddress {
    Address address{};
    bool is1{};
};

/// Section 6, "Address bytes": a packet replaces the low bits of the most recent address.
[[nodiscard]] std::uint64_t bits_replaced(const SentAddress& sent) {
    switch (sent.bytes) {
        case 1: return sent.is1 ? 0xff : 0x1ff;
        case 2: return sent.is1 ? 0xffff : 0x1'ffff;
        case 4: return 0xffff'ffff;
        default: return ~std::uint64_t{0};
    }
}

/// Section 6, "Address history buffer": the last three addresses, the most recent one first.
class HistoryBuffer {
public:
    /// Section 4: every Trace Info sets all entries to {0, IS0}.
    void reset() { entries_ = {FullAddress{}, FullAddress{}, FullAddress{}}; }
    /// Every packet with an address pushes its result as entry 0.
    void push(const std::optional<FullAddress>& address) {
        entries_[2] = entries_[1];
        entries_[1] = entries_[0];
        entries_[0] = address;
    }
    /// A short or long address.
    FullAddress complete(const SentAddress& sent) {
        const std::uint64_t replaced = bits_replaced(sent);
        const std::uint64_t before = entries_[0] ? entries_[0]->address.value : 0;
        const FullAddress result{{(before & ~replaced) | sent.value}, sent.is1};
        push(result);
        return result;
    }
    /// An exact match. nullopt: the entry is from before the place where the decoder began.
    std::optional<FullAddress> match(unsigned entry) {
        const std::optional<FullAddress> result = entries_[entry];
        push(result);
        return result;
    }

private:
    std::array<std::optional<FullAddress>, 3> entries_{};
};

// ---- section 14, step 4: elements

namespace element {

/// A P0 element from before the first Trace Info: SPEC gives only the number of such elements (section 4).
struct Placeholder {};
/// Section 7.
struct Atom {
    bool e{};
};
/// Section 9, with the address and context from the packets after it.
struct Exception {
    unsigned type{};
    bool at_branch_target{};  ///< E = 10
    std::optional<FullAddress> address{};
    std::optional<ContextFields> context{};
};
/// Section 10, with the address and context from the packets after it.
struct Q {
    std::optional<std::uint32_t> count{};
    std::optional<FullAddress> address{};
    std::optional<ContextFields> context{};
};
/// Section 11.
struct SourceAddress {
    FullAddress source;
};
/// Section 9.
struct FunctionReturn {};
struct ExceptionReturn {
    bool p0{};
};
/// Section 6.
struct Address {
    FullAddress target;
};
struct Context {
    ContextFields fields;
};
/// Section 5.
struct TraceOn {};
struct Timestamp {
    flow::Timestamp timestamp;
};
struct CycleCount {
    flow::Cycles cycles;
};
/// Section 4: a Trace Info packet other than the first.
struct TraceInfo {};
/// Sections 5 and 11: events, timestamp markers, instrumentation.
struct Marker {
    flow::Mark mark;
};
/// Section 11.
struct Transaction {
    flow::Mark mark;
    bool p0{};
};

}  // namespace element

using Element = std::variant<element::Placeholder, element::Atom, element::Exception, element::Q,
                             element::SourceAddress, element::FunctionReturn, element::ExceptionReturn,
                             element::Address, element::Context, element::TraceOn, element::Timestamp,
                             element::CycleCount, element::TraceInfo, element::Marker, element::Transaction>;

/// Section 8: "P0 elements".
[[nodiscard]] bool is_p0(const Element& e) {
    using namespace element;
    if (const auto* r = std::get_if<ExceptionReturn>(&e)) return r->p0;
    if (const auto* t = std::get_if<Transaction>(&e)) return t->p0;
    return std::holds_alternative<Placeholder>(e) || std::holds_alternative<Atom>(e) ||
           std::holds_alternative<Exception>(e) || std::holds_alternative<Q>(e) ||
           std::holds_alternative<SourceAddress>(e) || std::holds_alternative<FunctionReturn>(e);
}
/// Section 8: elements that a cancel leaves in place; and section 19: a Trace Info stays too.
[[nodiscard]] bool survives_cancel(const Element& e) {
    using namespace element;
    return std::holds_alternative<Marker>(e) || std::holds_alternative<Timestamp>(e) ||
           std::holds_alternative<CycleCount>(e) || std::holds_alternative<TraceInfo>(e);
}
/// Section 8: elements that a Mispredict looks for. A placeholder may be an atom.
[[nodiscard]] bool may_be_atom(const Element& e) {
    return std::holds_alternative<element::Atom>(e) || std::holds_alternative<element::Placeholder>(e);
}

// ---- section 14, step 4: the effects of a packet on waiting elements

struct Requests {
    std::uint64_t commit{}, cancel{};
    bool mispredict{};
    std::optional<element::CycleCount> count{};
    bool sequence_error{};
};
inline constexpr Requests wrong{.sequence_error = true};

// ---- section 8: the queue of elements

/// Elements from the oldest to the newest. For a unit that does not speculate (MAXSPEC = 0), the queue is empty between
/// packets.
class Queue {
public:
    explicit Queue(bool speculates) : speculates_(speculates) {}

    void add(Offset at, Element e) {
        if (is_p0(e)) ++depth_;
        entries_.push_back({at, false, std::move(e)});
    }
    /// "Speculation depth = number of uncommitted P0."
    [[nodiscard]] std::uint64_t depth() const { return depth_; }
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    [[nodiscard]] std::optional<Offset> oldest() const {
        return entries_.empty() ? std::nullopt : std::optional(entries_.front().at);
    }

    /// "Commit the n oldest uncommitted P0." False if there are fewer.
    [[nodiscard]] bool commit(std::uint64_t n) {
        if (n > depth_) return false;
        depth_ -= n;
        for (auto e = entries_.begin(); n != 0; ++e)
            if (waits(*e)) {
                e->committed = true;
                --n;
            }
        return true;
    }
    /// Section 5: the cycle count belongs to the youngest committed P0. Elements before the oldest uncommitted P0 are
    /// delivered at once (section 19), so they come before the count.
    void add_behind_committed(Offset at, const element::CycleCount& count) {
        entries_.insert(first_uncommitted(), {at, false, count});
    }
    /// "Cancel the n newest uncommitted P0", and non-P0 elements that are newer than the oldest of these. False if
    /// there are fewer.
    [[nodiscard]] bool cancel(std::uint64_t n) {
        if (n > depth_) return false;
        depth_ -= n;
        std::deque<Entry> survive;
        while (n != 0) {
            Entry newest = std::move(entries_.back());
            entries_.pop_back();
            if (is_p0(newest.element))
                --n;
            else if (survives_cancel(newest.element))
                survive.push_front(std::move(newest));
        }
        for (Entry& e : survive) entries_.push_back(std::move(e));
        return true;
    }
    /// "Walking from newest, delete address elements seen before the atom (the wrong target), keep other elements, flip
    /// the atom's E/N." False if there is neither an atom nor a placeholder.
    [[nodiscard]] bool mispredict() {
        const auto newest =
            std::find_if(entries_.rbegin(), entries_.rend(), [](const Entry& e) { return may_be_atom(e.element); });
        if (newest == entries_.rend()) return false;
        if (auto* atom = std::get_if<element::Atom>(&newest->element)) atom->e = !atom->e;
        entries_.erase(
            std::remove_if(newest.base(), entries_.end(),
                           [](const Entry& e) { return std::holds_alternative<element::Address>(e.element); }),
            entries_.end());
        return true;
    }

    /// Elements before the oldest uncommitted P0 are delivered at once (section 19). But a Mispredict may still flip
    /// the newest atom although it is committed (section 8), and remove addresses after it.
    template <class Commit>
    void deliver(Commit&& take) {
        auto end = first_uncommitted();
        if (speculates_) {
            auto e = end;
            while (e != entries_.begin() && !may_be_atom(std::prev(e)->element)) --e;
            if (e != entries_.begin()) end = std::prev(e);
        }
        deliver_before(end - entries_.begin(), take);
    }
    /// Like `deliver`, when no Mispredict can follow.
    template <class Commit>
    void deliver_committed(Commit&& take) {
        deliver_before(first_uncommitted() - entries_.begin(), take);
    }
    /// Step 9: delivers committed elements and those that survive a cancel, and drops the rest. Returns the number of
    /// P0 elements dropped.
    template <class Commit>
    std::uint64_t discard(Commit&& take) {
        deliver_committed(take);
        for (const Entry& e : entries_)
            if (survives_cancel(e.element)) take(e.at, e.element);
        entries_.clear();
        return std::exchange(depth_, 0);
    }

private:
    struct Entry {
        Offset at;  ///< of its packet
        bool committed{};
        Element element;
    };
    [[nodiscard]] static bool waits(const Entry& e) { return is_p0(e.element) && !e.committed; }
    [[nodiscard]] std::deque<Entry>::iterator first_uncommitted() {
        return std::find_if(entries_.begin(), entries_.end(), waits);
    }
    template <class Commit>
    void deliver_before(std::ptrdiff_t count, Commit& take) {
        for (; count != 0; --count) {
            const Entry oldest = std::move(entries_.front());
            entries_.pop_front();
            take(oldest.at, oldest.element);
        }
    }

    const bool speculates_;
    std::deque<Entry> entries_;
    std::uint64_t depth_ = 0;
};

/// Maximum number of waiting elements. No unit has more; a damaged MAXSPEC must not exhaust memory.
constexpr std::size_t most_elements = std::size_t{1} << 20;

/// Section 15: which instructions are P0. Section 14: "Return stack".
[[nodiscard]] follow::Rules follow_rules(const Config& config) {
    follow::Rules rules;
    rules.walk.most_bytes = config.max_walk_bytes;
    rules.walk.decode.wait_waypoints = config.wfx_p0;
    rules.walk.decode.transaction_start_waypoints = config.ete();
    rules.return_stack = config.return_stack;
    rules.indirect = follow::Rules::Indirect::waits;
    rules.report_exception_returns = config.ete();
    return rules;
}

}  // namespace reference

class ReferenceDecoder::Machine {
    using FullAddress = reference::FullAddress;
    using Requests = reference::Requests;

public:
    Machine(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out)
        : config_(config),
          rules_(reference::follow_rules(config_)),
          code_(code),
          out_(out),
          elements_(out),
          follower_(rules_, code, elements_),
          queue_(config_.max_speculation != 0),
          parser_(config_, *this) {}

    void feed(Bytes bytes) { parser_.feed(bytes); }
    void reset(GapReason why) { parser_.reset(why); }
    void begin_at(Offset at, const follow::Standing& standing, std::uint32_t threshold) {
        parser_.resume_at(at);
        elements_.event(at, flow::TraceOn{flow::TraceOnReason::recovered, flow::no_cycles});
        sync_ = Sync::decode;
        const auto sent = [](const isa::Place& place) {
            return FullAddress{place.address, place.isa == isa::Isa::t32};
        };
        for (const auto& place : {standing.earlier[1], standing.earlier[0]})
            history_.push(place ? std::optional(sent(*place)) : std::nullopt);
        last_ = sent(standing.last);
        history_.push(last_);
        threshold_ = threshold;
        context_ = {.ns = standing.ns,
                    .hyp = standing.hyp,
                    .nse = standing.nse,
                    .aarch64 = standing.current.isa == isa::Isa::a64,
                    .el = {}};
        need_context_ = false;
        follower_.go(standing.current, context_, at);
        for (const isa::Place& place : standing.returns) follower_.push({place, standing.ns});
        add_placeholders(at, standing.uncommitted);
    }
    void finish() {
        parser_.finish();
        end_of_trace(parser_.offset());
        out_.flush();
    }
    [[nodiscard]] std::uint64_t packets() const { return packets_; }
    [[nodiscard]] std::array<Offset, 2> pending() const {
        Offset oldest = parser_.pending();
        for (const std::optional<Offset>& at :
             {sync_ == Sync::decode ? std::nullopt : std::optional(lost_from_),
              incomplete_ ? std::optional(incomplete_->at) : std::nullopt, queue_.oldest(), elements_.unplaced_first()})
            if (at) oldest = std::min(oldest, *at);
        return {parser_.pending(), oldest};
    }
    [[nodiscard]] bool amid_packet() const { return parser_.progress().amid_packet(); }

    // ---- section 14, steps 1 to 3: synchronisation

    /// The parser could not read these bytes (section 19: nothing is trusted up to the next A-sync).
    void operator()(const Gap& gap) { bad_packet(gap.first, gap.end, GapReason::unsynchronised, gap); }
    /// WAIT_SYNC: "ignore packets until ASYNC; then WAIT_TINFO".
    void operator()(const ASync&, Extent at) {
        ++packets_;
        if (sync_ != Sync::wait_sync) return;
        report_lost(at.first);
        sync_ = Sync::wait_tinfo;
        lost_from_ = at.end();
        lost_why_ = GapReason::unsynchronised;
    }
    /// WAIT_TINFO: "ignore all until TRACE_INFO".
    void operator()(const TraceInfo& p, Extent at) {
        if (sync_ == Sync::decode && !contradicts(p)) return decode(p, at);
        ++packets_;
        if (sync_ == Sync::wait_sync) return;
        if (sync_ == Sync::decode) {
            end_of_flow(at.first);
            prev_overflow_ = false;
        }
        report_lost(at.first);
        sync_ = Sync::decode;
        at_ = at.first;
        first_trace_info(p);
        resolve({}, at);
    }
    /// Section 5: ETE allows Event packets between A-sync and the first Trace Info.
    void operator()(const Event& p, Extent at) {
        const flow::Mark mark{flow::Mark::Kind::unit_events, p.events, 0};
        if (sync_ == Sync::wait_tinfo && config_.ete()) return before_trace_info(mark, at);
        decode(p, at);
    }
    /// Section 2.17 of etm4-registers.md: instrumentation "needs no Trace Info, needs the A-sync".
    void operator()(const Instrumentation& p, Extent at) {
        if (sync_ == Sync::wait_tinfo) return before_trace_info(mark_of(p), at);
        decode(p, at);
    }
    /// Section 3, and step 9.
    void operator()(const Discard&, Extent at) {
        ++packets_;
        if (sync_ == Sync::decode) discard(at);
    }
    /// Step 4: "prev_overflow = true, then as DISCARD".
    void operator()(const Overflow&, Extent at) {
        ++packets_;
        if (sync_ != Sync::decode) return;
        discard(at);
        prev_overflow_ = true;
    }
    void operator()(const auto& p, Extent at) { decode(p, at); }

private:
    enum class Sync : std::uint8_t { wait_sync, wait_tinfo, decode };

    // ---- bytes without synchronisation

    void no_sync(Offset from, GapReason why) {
        sync_ = Sync::wait_sync;
        lost_from_ = from;
        lost_why_ = why;
    }
    void report_lost(Offset end) {
        if (sync_ != Sync::decode && lost_from_ < end) elements_.event(lost_from_, Gap{lost_from_, end, lost_why_});
    }
    void before_trace_info(const flow::Mark& mark, Extent at) {
        ++packets_;
        report_lost(at.first);
        lost_from_ = at.end();
        elements_.event(at.first, mark);
    }

    // ---- section 4: Trace Info

    /// "First Trace Info after (re)sync": SPEC placeholders are the oldest elements.
    void first_trace_info(const TraceInfo& p) {
        packet_level(p);
        trace_begins_ = true;
        add_placeholders(at_, p.speculation);
        if (p.in_transaction()) queue_.add(at_, transaction(flow::Mark::Kind::transaction_inside, false));
    }
    /// "Effects at packet level, every Trace Info."
    void packet_level(const TraceInfo& p) {
        time_ = 0;
        time_base_known_ = true;
        history_.reset();
        threshold_ = p.threshold;
    }
    /// Placeholders beyond MAXSPEC are committed at once (section 8); only the newest of them could still be
    /// mispredicted.
    void add_placeholders(Offset at, std::uint64_t count) {
        const std::uint64_t most = std::min<std::uint64_t>(config_.max_speculation, reference::most_elements) + 1;
        for (std::uint64_t n = std::min(count, most); n != 0; --n) queue_.add(at, reference::element::Placeholder{});
    }
    /// Section 19: a Trace Info between an exception or Q and its address is an error, and so is a Trace Info whose
    /// SPEC differs from the number of uncommitted P0. A Trace Info without SPEC is not compared.
    [[nodiscard]] bool contradicts(const TraceInfo& p) const {
        return incomplete_ || (p.has_speculation() && p.speculation != queue_.depth());
    }

    // ---- step 4, DECODE: a packet appends elements and asks for commits, cancels and a mispredict

    void decode(const auto& p, Extent at) {
        ++packets_;
        if (sync_ != Sync::decode) return;
        at_ = at.first;
        resolve(append(p), at);
    }

    /// An Exception, or a Q without an address, "only becomes complete when its following Address packet has arrived"
    /// (section 8). Its element is appended then. Contexts, and packets that do not concern execution, may come before;
    /// packets below that call `appended` are errors between the two (section 19).
    struct Incomplete {
        Offset at;
        std::variant<reference::element::Exception, reference::element::Q> element;
    };
    Requests appended(reference::Element e) {
        if (incomplete_) return reference::wrong;
        queue_.add(at_, std::move(e));
        return {};
    }
    /// Appends an element that may come between the two.
    Requests appended_anywhere(reference::Element e) {
        queue_.add(at_, std::move(e));
        return {};
    }

    /// Section 7.
    Requests append(const Atom& p) { return append_atoms(p.atoms); }
    Requests append_atoms(const Atoms& atoms) {
        if (incomplete_) return reference::wrong;
        for (unsigned i = 0; i < atoms.count; ++i) queue_.add(at_, reference::element::Atom{atoms.is_e(i)});
        return {};
    }

    /// Section 6.
    Requests append(const ShortAddress& p) { return append_address(history_.complete(p.address), {}); }
    Requests append(const LongAddress& p) { return append_address(history_.complete(p.address), {}); }
    Requests append(const ExactMatchAddress& p) { return append_address(history_.match(p.entry), {}); }
    Requests append(const AddressWithContext& p) { return append_address(history_.complete(p.address), p); }
    /// "Context first, then address."
    Requests append_address(const std::optional<FullAddress>& target, const std::optional<ContextFields>& context) {
        if (!target) return reference::wrong;
        if (incomplete_) return complete(*target, context);
        if (context) queue_.add(at_, reference::element::Context{*context});
        queue_.add(at_, reference::element::Address{*target});
        return {};
    }
    /// Step 4: "If this packet carried an address and pending_addr was set: depth += 1, pending_addr = false."
    Requests complete(const FullAddress& target, const std::optional<ContextFields>& context) {
        const Incomplete whole = std::move(*incomplete_);
        incomplete_.reset();
        std::visit(
            [&](auto e) {
                e.address = target;
                if (context) e.context = context;
                queue_.add(whole.at, std::move(e));
            },
            whole.element);
        return {};
    }
    /// `80`: the same context as before.
    Requests append(const Context& p) {
        if (!p.has_payload) return {};
        const ContextFields& fields = p;
        if (!incomplete_) return appended(reference::element::Context{fields});
        std::visit([&](auto& e) { e.context = fields; }, incomplete_->element);
        return {};
    }

    /// Section 9.
    Requests append(const Exception& p) {
        // Section 9, "ETE fixed-size forms". Section 6: address 0 goes into the history buffer.
        if (p.address_unknown(config_)) history_.push(FullAddress{});
        if (p.is_transaction_failure(config_))
            return appended(transaction(flow::Mark::Kind::transaction_failed, false));
        const reference::element::Exception e{.type = p.type(), .at_branch_target = p.e1 && !p.e0};
        if (p.is_pe_reset(config_)) return appended(e);
        return append_incomplete(e);
    }
    Requests append_incomplete(const std::variant<reference::element::Exception, reference::element::Q>& e) {
        if (incomplete_) return reference::wrong;
        incomplete_ = {at_, e};
        return {};
    }
    /// "On cores of the M profile ... it is P0."
    Requests append(const ExceptionReturn&) {
        return appended(reference::element::ExceptionReturn{.p0 = config_.profile == CoreProfile::m});
    }
    Requests append(const FunctionReturn&) { return appended(reference::element::FunctionReturn{}); }

    /// Section 10.
    Requests append(const Q& p) {
        reference::element::Q q;
        if (p.type != 0xf) q.count = p.count;
        switch (p.type) {
            case 0x0:
            case 0x1:
            case 0x2: q.address = history_.match(p.type); break;
            case 0x5:
            case 0x6:
            case 0xa:
            case 0xb: q.address = history_.complete(p.address); break;
            default: return append_incomplete(q);
        }
        return q.address ? appended(q) : reference::wrong;
    }

    /// Section 11.
    Requests append(const ShortSourceAddress& p) { return append_source(history_.complete(p.address)); }
    Requests append(const LongSourceAddress& p) { return append_source(history_.complete(p.address)); }
    Requests append(const ExactMatchSourceAddress& p) { return append_source(history_.match(p.entry)); }
    Requests append_source(const std::optional<FullAddress>& source) {
        return source ? appended(reference::element::SourceAddress{*source}) : reference::wrong;
    }
    /// "P0 when COMMTRANS=0."
    Requests append(const TransactionStart&) {
        return appended(transaction(flow::Mark::Kind::transaction_started, config_.transaction_start_p0));
    }
    Requests append(const TransactionCommit&) {
        return appended(transaction(flow::Mark::Kind::transaction_committed, false));
    }
    static reference::element::Transaction transaction(flow::Mark::Kind kind, bool p0) {
        return {{.kind = kind, .value = 0, .level = 0}, p0};
    }
    Requests append(const Instrumentation& p) { return appended_anywhere(reference::element::Marker{mark_of(p)}); }
    static flow::Mark mark_of(const Instrumentation& p) { return {flow::Mark::Kind::instrumentation, p.value, p.el}; }

    /// Section 5.
    Requests append(const TraceOn&) { return appended(reference::element::TraceOn{}); }
    Requests append(const Event& p) {
        return appended_anywhere(reference::element::Marker{{flow::Mark::Kind::unit_events, p.events, 0}});
    }
    Requests append(const TimestampMarker&) {
        return appended_anywhere(reference::element::Marker{{flow::Mark::Kind::timestamp_marker, 0, 0}});
    }
    /// "k bytes (k<9) update bits 7k-1:0 of the previous timestamp; 9 bytes update all 64." "CC field: masked to
    /// CCSIZE bits. NOT offset by the threshold." "Value 0 = timestamp unknown."
    Requests append(const Timestamp& p) {
        if (p.value.bytes == 9) {
            time_ = p.value.value;
            time_base_known_ = true;
        } else {
            const std::uint64_t updated = (std::uint64_t{1} << (7 * p.value.bytes)) - 1;
            time_ = (time_ & ~updated) | (p.value.value & updated);
        }
        flow::Timestamp timestamp{.value = time_, .known = time_base_known_ && time_ != 0, .counted_again = true};
        if (p.has_cycles) timestamp.cycles = p.cycles & ((1U << config_.cycle_count_bits) - 1);
        return appended_anywhere(reference::element::Timestamp{timestamp});
    }
    /// "Format 1": the commit field, and the count unless U.
    Requests append(const CycleCountF1& p) {
        return cycle_count(p.commit, p.unknown ? std::nullopt : std::optional(p.count));
    }
    /// "Format 2": F=0: AAAA+1; F=1: AAAA + MAXSPEC - 15. Section 19: below 15 it commits nothing.
    Requests append(const CycleCountF2& p) {
        const std::uint64_t near_maximum = std::uint64_t{p.commit} + config_.max_speculation;
        if (!p.from_maximum) return cycle_count(p.commit + 1U, p.count);
        return cycle_count(near_maximum < 15 ? 0 : near_maximum - 15, p.count);
    }
    /// "Format 3": AA+1.
    Requests append(const CycleCountF3& p) { return cycle_count(p.commit + 1U, p.count); }
    /// "With COMMOPT=1 the commit part is ignored"; section 19: this is also true if MAXSPEC is 0. The count is field +
    /// T.
    [[nodiscard]] Requests cycle_count(std::uint64_t commit, const std::optional<std::uint32_t>& field) const {
        Requests r;
        if (!config_.commit_mode_1 && config_.max_speculation != 0) r.commit = commit;
        flow::Cycles cycles{.of = flow::Cycles::Of::flow, .threshold = threshold_};
        if (field) cycles.cycles = *field + threshold_;
        r.count = {cycles};
        return r;
    }
    /// Section 4: "Later Trace Info".
    Requests append(const TraceInfo& p) {
        packet_level(p);
        return appended_anywhere(reference::element::TraceInfo{});
    }

    /// Section 8.
    Requests append(const Commit& p) { return {.commit = p.count}; }
    Requests append(const CancelF1& p) {
        return {.cancel = p.count, .mispredict = p.mispredict, .sequence_error = incomplete_.has_value()};
    }
    Requests append(const CancelF2& p) { return after_atoms(atoms_of(p.atoms), 1); }
    Requests append(const CancelF3& p) { return after_atoms(atoms_of(p.atom ? 1 : 0), p.count + 2U); }
    Requests append(const Mispredict& p) { return after_atoms(atoms_of(p.atoms), 0); }
    /// "First add atoms", then cancel, then mispredict.
    Requests after_atoms(const Atoms& atoms, unsigned cancel) {
        Requests r = append_atoms(atoms);
        r.cancel = cancel;
        r.mispredict = true;
        return r;
    }
    /// "AA=00 none, 01 E, 10 EE, 11 N."
    [[nodiscard]] static Atoms atoms_of(unsigned aa) {
        switch (aa) {
            case 0: return {0, 0};
            case 1: return {1, 1};
            case 2: return {2, 3};
            default: return {1, 0};
        }
    }

    /// Ignore; and packets of data and conditional trace, which is not decoded (sections 5, 12 and 13).
    Requests append(const Ignore&) { return {}; }
    Requests append(const BranchFutureFlush&) { return {}; }
    Requests append(const ConditionalInstructionF1&) { return {}; }
    Requests append(const ConditionalInstructionF2&) { return {}; }
    Requests append(const ConditionalInstructionF3&) { return {}; }
    Requests append(const ConditionalFlush&) { return {}; }
    Requests append(const ConditionalResultF1&) { return {}; }
    Requests append(const ConditionalResultsF1&) { return {}; }
    Requests append(const ConditionalResultF2&) { return {}; }
    Requests append(const ConditionalResultF3&) { return {}; }
    Requests append(const ConditionalResultF4&) { return {}; }
    Requests append(const NumberedDataSyncMarker&) { return {}; }
    Requests append(const UnnumberedDataSyncMarker&) { return {}; }

    // ---- step 5, RESOLVE

    /// Section 8: "commit, then cancel, then mispredict".
    void resolve(const Requests& requests, Extent at) {
        const auto take = [this](Offset where, const reference::Element& e) { commit(where, e); };
        if (queue_.size() > reference::most_elements) queue_.deliver_committed(take);
        if (requests.sequence_error || queue_.size() > reference::most_elements) return sequence_error(at);
        if (!queue_.commit(std::max(requests.commit, over_maximum()))) return sequence_error(at);
        if (requests.count) queue_.add_behind_committed(at.first, *requests.count);
        if (!queue_.cancel(requests.cancel)) return sequence_error(at);
        // Section 2.16 of etm4-registers.md: with MAXSPEC = 0 there is no Mispredict.
        if (requests.mispredict && (config_.max_speculation == 0 || !queue_.mispredict())) return sequence_error(at);
        queue_.deliver(take);
    }
    /// "When it exceeds MAXSPEC the excess oldest P0 are committed automatically."
    [[nodiscard]] std::uint64_t over_maximum() const {
        return queue_.depth() - std::min<std::uint64_t>(queue_.depth(), config_.max_speculation);
    }
    /// "Sequence error": the packet is impossible here. Section 19: a gap up to the next A-sync.
    void sequence_error(Extent at) { bad_packet(at.first, at.first, GapReason::malformed_packet, {}); }

    // ---- steps 9 to 11: flow ends

    /// Step 9.
    void discard(Extent at) {
        end_of_flow(at.first);
        no_sync(at.end(), GapReason::unsynchronised);
    }
    /// Step 10: "... or overflow if prev_overflow".
    void end_of_trace(Offset at) {
        end_of_flow(at);
        if (std::exchange(prev_overflow_, false))
            elements_.event(at, flow::Mark{flow::Mark::Kind::overflow_at_end, 0, 0});
        report_lost(at);
        no_sync(at, GapReason::unsynchronised);
    }
    /// Step 11: "reset decoder completely"; synchronisation is lost from `from` on. `gap`: the parser's report.
    void bad_packet(Offset at, Offset from, GapReason why, const std::optional<Gap>& gap) {
        end_of_flow(at);
        prev_overflow_ = false;
        report_lost(at);
        if (gap) elements_.event(gap->first, *gap);
        no_sync(from, why);
    }
    /// Uncommitted elements will never be committed, including an incomplete exception or Q. From here on, the place
    /// and state of the core are not known.
    void end_of_flow(Offset at) {
        std::uint64_t lost = queue_.discard([this](Offset where, const reference::Element& e) { commit(where, e); });
        if (incomplete_) ++lost;
        if (lost != 0) elements_.event(at, flow::Mark{flow::Mark::Kind::uncommitted, lost, 0});
        incomplete_.reset();
        context_ = {};
        need_context_ = true;
        address_waits_ = trace_begins_ = false;
        pushes_allowed_ = true;
        newest_time_ = 0;
        follower_.forget();
        elements_.forget();
    }

    // ---- step 6: commit of each element kind

    void commit(Offset at, const reference::Element& e) {
        std::visit([&](const auto& kind) { commit_one(at, kind); }, e);
    }

    /// "TRACE_ON: emit; clear prev_overflow; flush return stack." Earlier code does not lead here (section 5).
    void commit_one(Offset at, const reference::element::TraceOn&) {
        trace_begins_ = address_waits_ = false;
        follower_.lose();
        const bool overflow = std::exchange(prev_overflow_, false);
        elements_.event(at, flow::TraceOn{overflow ? flow::TraceOnReason::overflow : flow::TraceOnReason::enabled,
                                          flow::no_cycles});
    }
    /// "ADDRESS: cancel pending return-stack pop; allow pushes again after Trace Info; set current address and ISA."
    /// Section 7: an address that differs from the known place of execution is impossible.
    void commit_one(Offset at, const reference::element::Address& e) {
        last_ = e.target;
        address_waits_ = need_context_;
        if (need_context_) return;
        follower_.expect(place_of(last_), at);
        continue_at_last(at);
    }
    /// "CONTEXT: update state and recompute ISA with the IS of the address last seen; need_ctxt = false."
    void commit_one(Offset at, const reference::element::Context& e) { set_context(at, e.fields); }
    /// "EVENT, MARKER, ITE: emit the matching element."
    void commit_one(Offset at, const reference::element::Marker& e) { elements_.event(at, e.mark); }
    void commit_one(Offset at, const reference::element::CycleCount& e) { elements_.event(at, e.cycles); }
    /// Timestamps never decrease.
    void commit_one(Offset at, const reference::element::Timestamp& e) {
        if (e.timestamp.known) {
            if (e.timestamp.value < newest_time_)
                elements_.event(
                    at, flow::Inconsistency{flow::Conflict::time_goes_back, {newest_time_}, {e.timestamp.value}});
            newest_time_ = e.timestamp.value;
        }
        elements_.event(at, e.timestamp);
    }
    /// Section 19: after a Transaction Failure the address shows where execution resumes; nothing is popped.
    void commit_one(Offset at, const reference::element::Transaction& e) {
        if (e.mark.kind == flow::Mark::Kind::transaction_failed) leave();
        elements_.event(at, e.mark);
    }
    /// "ATOM: (a) pop; (b) if need_ctxt or need_addr: consume silently; else step 7", which is the follower's.
    void commit_one(Offset at, const reference::element::Atom& e) {
        if (ready(at) && follower_.atom(e.e, at)) return;
        address_waits_ = false;  // execution has left the place
        elements_.unplaced(at, {.taken = e.e ? 1U : 0U, .not_taken = e.e ? 0U : 1U});
    }
    /// "Placeholder: consume."
    void commit_one(Offset, const reference::element::Placeholder&) {}
    /// "EXCEPTION_RETURN: emit." Section 9: it follows an ERET-like instruction, so the branch before it is one. In the
    /// M profile any branch to EXC_RETURN is.
    void commit_one(Offset at, const reference::element::ExceptionReturn&) {
        const std::optional<follow::Place> branch = follower_.branch_that_waits();
        if (branch && config_.profile != CoreProfile::m) {
            const auto i = isa::decode_at(code_, context_.space(), branch->address, branch->isa, rules_.walk.decode);
            if (i && !i->exception_return)
                elements_.event(at, flow::Inconsistency{flow::Conflict::no_exception_return, branch->address, {}});
        }
        elements_.event(at, flow::ExceptionReturn{});
    }
    /// Section 5: "no output".
    void commit_one(Offset, const reference::element::FunctionReturn&) {}
    /// "TRACE_INFO marker: forbid pushes until address; flush return stack."
    void commit_one(Offset, const reference::element::TraceInfo&) {
        pushes_allowed_ = false;
        follower_.forbid_pushes();
        follower_.clear_return_stack();
    }

    /// Step 8.
    void commit_one(Offset at, const reference::element::Exception& e) {
        flow::Exception exception{&exception_type(e.type, config_), {}, {}, flow::no_cycles};
        if (!e.address) {  // section 9: PE Reset
            elements_.event(at, exception);
            follower_.lose();
            address_waits_ = false;
            return;
        }
        // Section 19: "an exception with E = 10 does not pop the return stack".
        if (!e.at_branch_target) (void)ready(at);
        if (e.context) set_context(at, *e.context);
        if (!tail_chained(e)) {
            last_ = *e.address;
            exception.preferred_return = address_of(last_);
            if (e.at_branch_target)
                branch_went_to_last(at);
            else
                executed_up_to_last(at);
        }
        elements_.event(at, exception);
        leave();  // the handler's address comes in a separate packet
    }
    /// Section 9: "return address 0xFFFFFFFE = tail-chained".
    [[nodiscard]] bool tail_chained(const reference::element::Exception& e) const {
        return config_.profile == CoreProfile::m && e.address->address.value == 0xffff'fffe;
    }
    /// E = 10: "also is the target of the previous taken indirect branch (no instruction since)".
    void branch_went_to_last(Offset at) {
        if (need_context_) return;
        follower_.expect(place_of(last_), at);
        continue_at_last(at);
    }
    /// E = 01: "walk until the next address equals R ... No range if equal."
    void executed_up_to_last(Offset at) {
        if (!follower_.known()) return;
        const Address reached = instruction_interrupted(place_of(last_));
        if (follower_.place().address != reached) follower_.walk_to(reached, follow::Stop::before, at);
    }
    /// A core of the M profile may interrupt a load or store of several registers, and gives the address of its second
    /// half: the instruction is executed again.
    [[nodiscard]] Address instruction_interrupted(const follow::Place& to) const {
        const follow::Place from = follower_.place();
        if (config_.profile != CoreProfile::m || to.isa != isa::Isa::t32 || to.address <= from.address)
            return to.address;
        const follow::Walk way =
            follow::walk_to(code_, context_.space(), from, to.address, follow::Stop::before, rules_.walk);
        const bool second_half =
            way.end == follow::WalkEnd::passed && way.instruction.bytes == 4 && way.last.value + 2 == to.address.value;
        return second_half ? way.last : to.address;
    }

    /// Section 10.
    void commit_one(Offset at, const reference::element::Q& e) {
        // If the unit omitted the address of a return, the return went to the address on its return stack (section 2.18
        // of etm4-registers.md). After any other indirect branch the path is unknown (section 19).
        if (follower_.returns()) (void)follower_.ready(at);
        last_ = *e.address;
        const Address to = address_of(last_);
        const std::uint64_t count = e.count.value_or(0);
        if (!follower_.known())
            elements_.event(at, flow::Untraced{{}, to, count, false});
        else if (!walk_instructions(count, place_of(last_), at))
            elements_.event(at, flow::Untraced{follower_.place().address, to, count, true});
        leave();
        if (e.context) set_context(at, *e.context);
        commit_one(at, reference::element::Address{*e.address});
    }
    /// "Walk `count` instructions from the current address, stopping at the first direct/indirect branch." True: "all
    /// `count` instructions were walked and (the end equals Q address or the last one is a branch)", and these are
    /// reported. False: nothing was done.
    bool walk_instructions(std::uint64_t count, const follow::Place& to, Offset at) {
        follow::Place from = follower_.place();
        std::uint64_t bytes = 0;
        for (unsigned barriers = 0; count != 0 && bytes <= rules_.walk.most_bytes; ++barriers) {
            const follow::Walk leg = follow::walk(code_, context_.space(), from, rules_.walk);
            if (leg.end != follow::WalkEnd::waypoint || leg.instructions > count)
                return arrives(from, to, count) && report_barriers(barriers, at) && report_arrival(to, at);
            count -= leg.instructions;
            bytes += leg.bytes;
            if (leg.instruction.waypoint != isa::Waypoint::barrier)
                return count == 0 && outcome_shows(leg) && report_barriers(barriers, at) && report_branch(leg, to, at);
            from = {leg.after, from.isa};
            if (count == 0) return from == to && report_barriers(barriers + 1, at);
        }
        return false;
    }
    /// The end equals the Q address, `count` instructions from here, with no P0 instruction between.
    [[nodiscard]] bool arrives(const follow::Place& from, const follow::Place& to, std::uint64_t count) const {
        if (to.address < from.address || to.isa != from.isa) return false;
        const follow::Walk way =
            follow::walk_to(code_, context_.space(), from, to.address, follow::Stop::before, rules_.walk);
        return way.end == follow::WalkEnd::arrived && way.instructions == count;
    }
    /// Section 19: the address after a conditional branch to the next instruction does not show its outcome.
    [[nodiscard]] static bool outcome_shows(const follow::Walk& leg) {
        return !leg.instruction.conditional || leg.instruction.target != leg.after;
    }
    bool report_barriers(unsigned count, Offset at) {
        for (; count != 0; --count) (void)follower_.atom(true, at);
        return true;
    }
    bool report_arrival(const follow::Place& to, Offset at) {
        follower_.walk_to(to.address, follow::Stop::before, at);
        return true;
    }
    /// "It does not push the return stack for a BL inside Q."
    bool report_branch(const follow::Walk& leg, const follow::Place& to, Offset at) {
        if (leg.instruction.conditional && leg.after == to.address)
            (void)follower_.atom(false, at);
        else
            (void)follower_.branch(to, at, flow::no_cycles, false);
        return true;
    }

    /// Section 11, "Source Address", by its decode steps.
    void commit_one(Offset at, const reference::element::SourceAddress& e) {
        last_ = e.source;
        if (need_context_) return elements_.unplaced(at, {.taken = 1, .not_taken = 0});
        // Section 19: it pops the return stack, as an atom does.
        const bool known = ready(at);
        // Step 1: "ISA = current".
        follow::Place source = place_of(e.source);
        if (known) source.isa = follower_.place().isa;
        if (isa::fetch(code_, context_.space(), source.address, source.isa).bytes == 0) {
            elements_.event(at, flow::NoMemory{source.address});
            return follower_.lose();
        }
        // Steps 2 to 4: from the current address "if known and <= S", past branches that were not taken.
        if (known) {
            const Address here = follower_.place().address;
            if (here > source.address)
                elements_.event(at, flow::Inconsistency{flow::Conflict::update_behind, here, source.address});
            else if (follower_.source(source.address, at))
                return;
        }
        only_the_source(source, at);
    }
    /// Step 2: "When the current address was unknown or beyond S, only the one instruction is reported."
    void only_the_source(const follow::Place& source, Offset at) {
        begin_trace(at);
        go(source, at);
        const follow::Walk one = follow::walk(code_, context_.space(), source, rules_.walk);
        if (one.end == follow::WalkEnd::waypoint && one.instructions == 1) {
            (void)follower_.atom(true, at);
            return;
        }
        elements_.event(at, flow::Inconsistency{flow::Conflict::update_disagrees, one.last, source.address});
        elements_.event(at, flow::Reached{source.address});
        follower_.lose();
    }

    // ---- shared by several kinds of elements

    /// Section 6, "Instruction set from address". AArch32 has addresses of 32 bits.
    [[nodiscard]] follow::Place place_of(const FullAddress& a) const {
        if (context_.aarch64) return {a.address, isa::Isa::a64};
        return {address_of(a), a.is1 ? isa::Isa::t32 : isa::Isa::a32};
    }
    [[nodiscard]] Address address_of(const FullAddress& a) const {
        return need_context_ || context_.aarch64 ? a.address : Address{a.address.value & 0xffff'ffffU};
    }
    /// "If a return-stack pop is pending, pop." The place of execution is known then. A unit that sends Q elements and
    /// has no return stack omits addresses before a Q: that is not a contradiction.
    bool ready(Offset at) {
        if (config_.q_elements && !config_.return_stack) return follower_.known();
        return follower_.ready(at);
    }
    /// Execution is elsewhere, at a place that no packet has given yet.
    void leave() {
        address_waits_ = false;
        follower_.leave();
    }
    /// Execution continues there. Only an address packet allows pushes again, although the follower's `go` would also
    /// allow them.
    void go(const follow::Place& place, Offset at) {
        follower_.go(place, context_, at);
        if (!pushes_allowed_) follower_.forbid_pushes();
    }
    /// The unit sent no Trace On since the first Trace Info, so execution had begun before.
    void begin_trace(Offset at) {
        if (std::exchange(trace_begins_, false))
            elements_.event(at, flow::TraceOn{flow::TraceOnReason::begin, flow::no_cycles});
    }
    void continue_at_last(Offset at) {
        begin_trace(at);
        pushes_allowed_ = true;
        // Loads and stores are not decoded: an atom may belong to any of them, and cannot be placed.
        if (config_.p0_loads || config_.p0_stores) return elements_.context(at, context_);
        go(place_of(last_), at);
    }
    /// Section 6, "Context info byte". Step 6: "CID/VMID are included only if present in the packet"; an identifier
    /// that is not sent keeps its value.
    void set_context(Offset at, const ContextFields& fields) {
        begin_trace(at);
        const bool width_changes = !need_context_ && fields.sf != context_.aarch64;
        context_.ns = fields.ns;
        context_.nse = fields.nse;
        context_.hyp = fields.el == 2 && config_.profile != CoreProfile::m;
        context_.aarch64 = fields.sf;
        context_.el = fields.el;
        if (fields.has_context_id && config_.context_id_bytes != 0) context_.context_id = fields.context_id;
        if (fields.has_vmid && config_.vmid_bytes != 0) context_.vmid = fields.vmid;
        need_context_ = false;
        if (std::exchange(address_waits_, false)) return continue_at_last(at);
        // "Recompute ISA with the IS of the address last seen": if the width is the same, the code tells the
        // instruction set.
        if (follower_.known() && width_changes)
            go(place_of({follower_.place().address, last_.is1}), at);
        else
            follower_.set_context(context_, at);
    }

    const Config config_;
    const follow::Rules rules_;
    const isa::CodeReader& code_;
    flow::BatchWriter& out_;
    follow::Elements<flow::BatchWriter> elements_;
    follow::ReferenceFollower follower_;

    // Synchronisation: bytes from `lost_from_` on are lost and not reported yet, unless in DECODE.
    Sync sync_ = Sync::wait_sync;
    Offset lost_from_{};
    GapReason lost_why_ = GapReason::unsynchronised;

    // The addresses against which packets are compressed, from the last Trace Info on.
    reference::HistoryBuffer history_;
    std::uint64_t time_ = 0;
    bool time_base_known_ = false;
    std::uint32_t threshold_ = 0;

    // Elements that wait for their address or commit.
    std::optional<Incomplete> incomplete_;  // pending_addr
    reference::Queue queue_;

    // The known state of the core, in addition to the follower's.
    flow::Context context_;
    bool need_context_ = true;    // need_ctxt
    FullAddress last_;            // the address last seen
    bool address_waits_ = false;  // `last_` came before any context
    bool prev_overflow_ = false;
    bool trace_begins_ = false;  // neither Trace On, address nor context came since the first Trace Info
    bool pushes_allowed_ = true;
    std::uint64_t newest_time_ = 0;

    Offset at_{};  // of the packet
    std::uint64_t packets_ = 0;
    FastParser<Machine> parser_;
};

ReferenceDecoder::ReferenceDecoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out)
    : machine_(hold<Machine>(config, code, out)) {}

void ReferenceDecoder::begin_at(Offset at, const follow::Standing& standing, std::uint32_t threshold) {
    machine_.begin_at(at, standing, threshold);
}

}  // namespace waymark::etm4
