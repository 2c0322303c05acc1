#include "waymark/mtb/decoder.h"

#include <array>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "waymark/follow/elements.h"
#include "waymark/follow/follower.h"
#include "waymark/follow/parallel.h"
#include "waymark/follow/reference_follower.h"
#include "waymark/mtb/exceptions.h"
#include "waymark/mtb/parser.h"

namespace waymark::mtb {

namespace {

using isa::Isa, isa::Place;

/// The state between two packets. The follower keeps the place of execution.
struct BetweenPackets {
    bool running = false;                      ///< a packet came, and no gap since then
    std::optional<std::uint32_t> returning{};  ///< the value with which a return began
};

/// A stream is never cut, so there is no state at a cut.
struct NoState {
    [[nodiscard]] flow::Context context() const { return {}; }
    void carry(NoState) {}
};

template <class Follower, class Out>
class JumpMachine {
public:
    /// All arguments except `config` are borrowed and must outlive this object. `logs`: shared by several machines that
    /// decode the same stream.
    JumpMachine(const Config& config, const isa::CodeReader& code, Out& out,
                std::shared_ptr<follow::BlockLogs> logs = {})
        : config_(config),
          code_(code),
          out_(out),
          elements_(out),
          follower_(make_follower(std::move(logs))),
          vectors_(code, config.vtor),
          parser_(config_, *this) {
        show_no_context();
    }

    void feed(Bytes bytes) { parser_.feed(bytes); }
    void reset(GapReason why) { parser_.reset(why); }
    void finish() {
        parser_.finish();
        forget();
        out_.flush();
    }
    [[nodiscard]] std::uint64_t packets() const { return packets_; }
    [[nodiscard]] Offset offset() const { return parser_.offset(); }
    [[nodiscard]] std::array<Offset, 2> pending() const {
        return {parser_.pending(), elements_.unplaced_first().value_or(parser_.pending())};
    }
    [[nodiscard]] bool amid_packet() const { return parser_.progress().amid_packet(); }

    void operator()(const JumpPacket& p, Extent extent) {
        ++packets_;
        const Offset at = extent.first;
        const std::uint32_t source = p.source.address, destination = p.destination.address;
        if (!between_.running || p.starts()) {
            // The source address ends a stretch whose beginning is not known.
            follower_.lose();
            elements_.event(at, flow::TraceOn{p.starts() ? flow::TraceOnReason::enabled : flow::TraceOnReason::begin});
            between_ = {.running = true};
            if (p.atomic() && is_return_value(source)) between_.returning = source;
        }
        if (between_.returning)
            come_back(p, at);
        else if (p.atomic())
            interrupt(source, destination, at);
        else if (follower_.known())
            jump(source, destination, at);
        between_.returning.reset();
        if (is_return_value(destination)) {
            between_.returning = destination;
            follower_.leave();
        } else if (destination == lockup_address && p.atomic()) {
            follower_.lose();
        } else {
            follower_.go({{destination}, Isa::t32}, {}, at);
        }
    }
    void operator()(const Gap& gap) {
        forget();
        elements_.event(gap.first, gap);
    }

    // ---- for follow::Parallel

    struct Snapshot {
        JumpProgress parser;
        BetweenPackets between;
        follow::FollowerState follower{};
        typename follow::Elements<Out>::State elements{};
    };
    [[nodiscard]] Snapshot snapshot() const {
        return {parser_.progress(), between_, follower_.snapshot(), elements_.state()};
    }
    void resume(const Snapshot& s) {
        parser_.resume(s.parser);
        between_ = s.between;
        elements_.resume(s.elements);
        follower_.resume(s.follower);
    }
    void begin_at(Offset at, const NoState&) {
        parser_.resume_at(at);
        between_ = {};
        follower_.resume({});
        show_no_context();
    }
    [[nodiscard]] static bool continues(const Snapshot&, Offset, const NoState&) { return false; }
    using Carried = NoState;
    [[nodiscard]] static Carried carried(const Snapshot&) { return {}; }
    using Late = NoState;
    [[nodiscard]] Late late() const { return {}; }
    [[nodiscard]] static bool late_contradicts(const Config&, const Snapshot&, const Late&) { return false; }
    static void complete_late(const Config&, const Snapshot&, const Late&, const follow::Batches&, Snapshot&) {}

private:
    [[nodiscard]] Follower make_follower(std::shared_ptr<follow::BlockLogs> logs) {
        const follow::Rules rules{.walk = {{}, config_.max_walk_bytes}};
        if constexpr (std::is_same_v<Follower, follow::ReferenceFollower>)
            return Follower(rules, code_, elements_);
        else
            return Follower(rules, code_, elements_, std::move(logs));
    }

    void contradict(flow::Conflict conflict, std::uint32_t found, std::uint32_t expected, Offset at) {
        elements_.event(at, flow::Inconsistency{conflict, {found}, {expected}});
    }

    /// Whether the instruction is a barrier: passing a barrier is its outcome, and it has no packet.
    [[nodiscard]] bool is_barrier(Address address) const {
        const auto there = isa::decode_at(code_, {}, address, Isa::t32, {});
        return there && there->waypoint == isa::Waypoint::barrier;
    }
    /// Passes the branches before `source`, none of which was taken. Returns false if the path cannot be followed,
    /// which is reported. Precondition: the place of execution is known.
    bool pass_branches(std::uint32_t source, Offset at) {
        const std::uint64_t from = follower_.place().address.value;
        if (source < from || source - from > config_.max_walk_bytes) {
            contradict(source < from ? flow::Conflict::update_behind : flow::Conflict::runaway_walk,
                       static_cast<std::uint32_t>(from), source, at);
            follower_.lose();
            return false;
        }
        for (;;) {
            const auto branch = follower_.next_branch();
            if (!branch || branch->address.value >= source || branch->address.value < from) return true;
            if (!follower_.atom(is_barrier(branch->address), at)) return false;
            if (follower_.place().address.value > source) {
                contradict(flow::Conflict::update_behind, static_cast<std::uint32_t>(follower_.place().address.value),
                           source, at);
                follower_.lose();
                return false;
            }
        }
    }

    /// The instruction at `source` was the last one before execution continued elsewhere.
    void jump(std::uint32_t source, std::uint32_t destination, Offset at) {
        if (!pass_branches(source, at)) return elements_.unplaced(at, {1, 0});
        const auto branch = follower_.next_branch();
        if (branch && branch->address.value == source)
            follower_.branch({{destination}, Isa::t32}, at);
        else  // any instruction can have a packet
            follower_.walk_to({source}, follow::Stop::after, at);
    }
    /// An exception was taken before the instruction at `source`, or a debugger moved the PC.
    void interrupt(std::uint32_t source, std::uint32_t destination, Offset at) {
        if (follower_.known() && pass_branches(source, at)) follower_.walk_to({source}, follow::Stop::before, at);
        take_exception(destination, Address{source}, at);
    }
    void take_exception(std::uint32_t destination, std::optional<Address> preferred_return, Offset at) {
        flow::Exception e{&exception_or_debugger(), preferred_return, Address{destination}, flow::no_cycles};
        if (destination == lockup_address)
            e.type = &lockup();
        else if (const flow::ExceptionType* type = vectors_.find(destination))
            e.type = type;
        follower_.exception(e, at);
    }
    /// Handles the second half of a return, or an exception that is chained to the one that ended.
    void come_back(const JumpPacket& p, Offset at) {
        if (p.source.address != *between_.returning || !p.atomic())
            contradict(flow::Conflict::address_disagrees, *between_.returning, p.source.address, at);
        elements_.event(at, flow::ExceptionReturn{});
        const flow::ExceptionType* const type = vectors_.find(p.destination.address);
        if ((type != nullptr && type->kind != flow::ExceptionClass::reset) || p.destination.address == lockup_address)
            take_exception(p.destination.address, {}, at);
    }

    /// Resets to the state before the first byte: nothing is known of the core.
    void forget() {
        between_ = {};
        follower_.forget();
        elements_.forget();
        show_no_context();
    }
    /// An MTB does not trace the core's state, so none is reported.
    void show_no_context() { elements_.resume({.context = flow::Context{}}); }

    const Config config_;
    const isa::CodeReader& code_;
    Out& out_;
    follow::Elements<Out> elements_;
    Follower follower_;
    Vectors vectors_;
    Parser<JumpMachine> parser_;
    BetweenPackets between_;
    std::uint64_t packets_ = 0;
};

template <class Out>
using FastJumpMachine = JumpMachine<follow::Follower<Out>, Out>;

struct ParallelJumps {
    using Config = mtb::Config;
    struct Cut {
        using State = NoState;
        std::size_t at{};
        State state;
    };
    template <class Out>
    using Decoder = FastJumpMachine<Out>;
    static std::optional<Cut> find_cut(Bytes, std::size_t, std::size_t, const Config&) { return {}; }
};

}  // namespace

Decoder::Decoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out) {
    hold<FastJumpMachine<flow::BatchWriter>>(config, code, out);
}

ReferenceDecoder::ReferenceDecoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out) {
    hold<JumpMachine<follow::ReferenceFollower, flow::BatchWriter>>(config, code, out);
}

ParallelDecoder::ParallelDecoder(const Config& config, const isa::CodeReader& code, flow::BlockTable& table,
                                 flow::Sink& sink, const Options& options)
    : HeldParallel(follow::make_parallel<ParallelJumps>(config, code, table, sink, options)) {}

}  // namespace waymark::mtb
