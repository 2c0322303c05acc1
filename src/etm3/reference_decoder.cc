/// The reference decoder: the steps of docs/spec/etmv3.md, section 7, one after another. It is written from that
/// document alone. It shares packets and parser with the fast decoder; the meaning of packets and the decompression of
/// addresses are its own.
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "waymark/etm3/decoder.h"
#include "waymark/etm3/exceptions.h"
#include "waymark/etm3/parser.h"
#include "waymark/follow/elements.h"
#include "waymark/follow/reference_follower.h"
#include "waymark/follow/time_order.h"

namespace waymark::etm3 {

namespace {

/// One element that a packet announces and a later packet may cancel (step 4).
struct Announced {
    enum class Kind : std::uint8_t { passed, failed, exception_return } kind{};
    std::uint32_t cycles = flow::no_cycles;
    Offset at{};
};

/// Section 3, read literally: a P-header as the letters W, E and N of its row.
struct Letters {
    std::array<char, 24> letter{};
    unsigned count = 0;
    void add(char c, unsigned times = 1) {
        for (unsigned i = 0; i < times; ++i) letter[count++] = c;
    }
};
Letters letters_of(std::uint8_t header, bool cycle_accurate) {
    Letters out;
    const auto bit = [&](unsigned n) { return (header >> n & 1U) != 0; };
    const auto two_atoms = [&] {
        out.add(bit(3) ? 'N' : 'E');
        out.add(bit(2) ? 'N' : 'E');
    };
    if (!cycle_accurate) {
        if (bit(1)) {  // format 2: 1000FF10
            two_atoms();
        } else {  // format 1: 1NEEEE00
            out.add('E', header >> 2 & 15U);
            if (bit(6)) out.add('N');
        }
    } else if (header == 0x80) {  // format 0
        out.add('W');
    } else if (bit(1) && bit(4)) {  // format 4: 10010F10
        out.add(bit(2) ? 'N' : 'E');
    } else if (bit(1)) {  // format 2
        out.add('W');
        two_atoms();
    } else if (bit(5)) {  // format 3: 1E1WWW00
        out.add('W', (header >> 2 & 7U) + 1U);
        if (bit(6)) out.add('E');
    } else {  // format 1: 1N0EEE00
        for (unsigned i = 0; i < (header >> 2 & 7U); ++i) {
            out.add('W');
            out.add('E');
        }
        if (bit(6)) {
            out.add('W');
            out.add('N');
        }
    }
    return out;
}

/// The last address and the state of the core that packets have given (sections 4 and 5).
struct Memory {
    std::uint32_t address = 0;
    Isa isa = Isa::a32;
    bool alt_isa = false, ns = false, hyp = false;
    std::optional<std::uint32_t> context_id, vmid;

    [[nodiscard]] follow::Place place() const { return {{address}, isa}; }
    [[nodiscard]] flow::Context context() const {
        return {.ns = ns, .hyp = hyp, .context_id = context_id, .vmid = vmid};
    }
    /// Section 4: the address bytes replace the low bits; five bytes replace all and name the instruction set.
    void take(const SentTarget& sent, bool alternative) {
        if (sent.bytes == 5) isa = sent.isa == Isa::t32 && alt_isa ? Isa::tee : sent.isa;
        const unsigned align = isa == Isa::a32 ? 2U : isa == Isa::jazelle ? 0U : 1U;
        // Byte 0 has six address bits, each later one seven; the last of two to four bytes has six in the alternative
        // encoding, where its bit 6 announces exception bytes.
        unsigned width = 6 + 7 * (sent.bytes - 1U);
        if (alternative && sent.bytes > 1) --width;
        const std::uint64_t replaced =
            sent.bytes == 5 ? 0xffffffffU : ((std::uint64_t{1} << width) - 1U) << align & 0xffffffffU;
        address = static_cast<std::uint32_t>((address & ~replaced) | (std::uint64_t{sent.bits} << align & replaced));
        // An unaligned value cannot be the address of an instruction.
        address &= ~((1U << align) - 1U);
        if (isa == Isa::t32 || isa == Isa::tee) isa = alt_isa ? Isa::tee : Isa::t32;
    }
};

/// Section 6: the last timestamp. Bits that are not sent stay; only a whole timestamp makes all of them known.
struct Clock {
    std::uint64_t sent = 0;
    bool whole = false;

    void take(const TimestampValue& value, const Config& config) {
        if (value.bytes == config.timestamp_bytes) {
            sent = value.value;
            whole = true;
            return;
        }
        const std::uint64_t replaced = (std::uint64_t{1} << 7 * value.bytes) - 1U;
        sent = (sent & ~replaced) | (value.value & replaced);
    }
    [[nodiscard]] std::uint64_t now(const Config& config) const {
        if (!config.gray_timestamps) return sent;
        // Bit n of the number is the XOR of the bits n and above of the code.
        std::uint64_t binary = 0, bit = 0;
        for (unsigned n = 64; n-- > 0;) {
            bit ^= sent >> n & 1U;
            binary |= bit << n;
        }
        return binary;
    }
};

class Steps {
public:
    Steps(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out)
        : config_(config),
          out_(out),
          elements_(out),
          follower_({.walk = {{}, config.max_walk_bytes, true}, .indirect = follow::Rules::Indirect::waits}, code,
                    elements_),
          parser_(config_, *this) {}

    void feed(Bytes bytes) { parser_.feed(bytes); }
    void reset(GapReason why) { parser_.reset(why); }
    void finish() {
        parser_.finish();
        lose_synchronisation(parser_.offset());  // step 8
        elements_.forget();
        out_.flush();
    }
    [[nodiscard]] std::uint64_t packets() const { return packets_; }
    [[nodiscard]] std::array<Offset, 2> pending() const {
        Offset first = elements_.unplaced_first().value_or(parser_.pending());
        if (state_ == State::wait_isync) first = std::min(first, behind_async_);
        if (!announced_.empty()) first = std::min(first, announced_.front().at);
        return {parser_.pending(), first};
    }
    [[nodiscard]] bool amid_packet() const { return parser_.progress().amid_packet(); }

    // ---- steps 2 and 3: synchronisation

    void operator()(const ASync&, Extent at) {
        ++packets_;
        if (state_ != State::wait_async) return;  // while synchronised it has no effect, and does not end a wait
        state_ = State::wait_isync;
        behind_async_ = at.end();
    }
    void operator()(const ISync& p, Extent at) {
        ++packets_;
        isync(p, std::nullopt, at.first);
    }
    void operator()(const ISyncCycles& p, Extent at) {
        ++packets_;
        isync(p, p.cycles, at.first);
    }
    void operator()(const Gap& gap) {
        if (is_loss(gap.reason)) announced_.clear();  // what is lost may cancel them
        lose_synchronisation(gap.first);
        elements_.event(gap.first, gap);
        elements_.forget();
    }

    // ---- step 4: one packet after another

    void operator()(const CycleCount& p, Extent at) {
        if (begin()) elements_.event(at.first, flow::Cycles{.cycles = p.cycles});
    }
    void operator()(const Trigger&, Extent at) {
        if (begin()) elements_.event(at.first, flow::Trigger{});
    }
    void operator()(const ContextId& p, Extent at) {
        if (!begin()) return;
        memory_.context_id = p.context_id;
        follower_.set_context(memory_.context(), at.first);
    }
    void operator()(const Vmid& p, Extent at) {
        if (!begin()) return;
        memory_.vmid = p.vmid;
        follower_.set_context(memory_.context(), at.first);
    }
    void operator()(const Timestamp& p, Extent at) {
        clock_.take(p.value, config_);  // step 3: before the I-sync too
        if (!begin()) return;
        const flow::Timestamp now{clock_.now(config_), clock_.whole && clock_.sent != 0, p.frequency_changed};
        if (const auto before = times_.take(now))
            elements_.event(at.first, flow::Inconsistency{flow::Conflict::time_goes_back, {*before}, {now.value}});
        elements_.event(at.first, now);
    }
    /// It waits together with the outcome of its instruction: the next packet may cancel both.
    void operator()(const ExceptionReturn&, Extent at) {
        ++packets_;
        if (state_ != State::decode) return;
        if (!announced_.empty() && announced_.back().kind == Announced::Kind::exception_return) commit();
        announced_.push_back({Announced::Kind::exception_return, flow::no_cycles, at.first});
    }

    // ---- step 6: P-headers

    void operator()(const PHeader& p, Extent at) {
        if (!begin()) return;
        const Letters letters = letters_of(p.header, config_.cycle_accurate);
        std::uint32_t cycles = 0;
        for (unsigned i = 0; i < letters.count; ++i) {
            if (letters.letter[i] == 'W') {
                ++cycles;
                continue;
            }
            commit();  // only the last outcome of the header can be cancelled (6d)
            announced_.push_back({letters.letter[i] == 'E' ? Announced::Kind::passed : Announced::Kind::failed,
                                  config_.cycle_accurate ? cycles : flow::no_cycles, at.first});
            cycles = 0;
        }
        if (cycles != 0) elements_.event(at.first, flow::Cycles{.cycles = cycles});
    }

    // ---- step 7: branch packets

    void operator()(const BranchAddress& p, Extent at) {
        ++packets_;
        if (state_ != State::decode) return;
        const std::uint32_t exception = exception_of(p);
        if (cancels(p)) cancel();
        commit();
        if (p.target.information) {
            memory_.ns = p.ns;
            memory_.alt_isa = p.alt_isa;
            if (p.more && !p.second_is_resume) memory_.hyp = (p.second & 0x20U) != 0;
        }
        memory_.take(p.target, config_.alternative_branches);
        if (exception == 0) {
            // Several packets for one instruction: each is applied, and the last one counts.
            if (instruction_since_address_) follower_.expect(memory_.place(), at.first);
            return continue_at(at.first);
        }
        flow::Exception taken{&exception_type(exception, config_.m_profile), {}, {}, flow::no_cycles};
        if (taken.type->kind != flow::ExceptionClass::debug_halt) {
            taken.vector = Address{memory_.address};
            follower_.exception(taken, at.first);
            return continue_at(at.first);
        }
        // In Debug state nothing is traced; an I-sync follows its end.
        follower_.exception(taken, at.first);
        follower_.lose();
    }

    /// Ignore and data packets come between an instruction and the packet that cancels it, and do not concern flow.
    void operator()(const auto&, Extent) { ++packets_; }

private:
    enum class State : std::uint8_t { wait_async, wait_isync, decode };

    /// Counts a packet, which confirms the announced elements; false if no I-sync has come yet.
    bool begin() {
        ++packets_;
        if (state_ != State::decode) return false;
        commit();
        return true;
    }

    /// Section 4: four bits in byte 0, five more in byte 1; the deprecated fifth address byte has its own numbers.
    [[nodiscard]] static std::uint32_t exception_of(const BranchAddress& p) {
        if (p.target.old != 0) switch (p.target.old & 7U) {
                case 0: return 8;   // reset
                case 1: return 14;  // IRQ
                case 4: return 5;   // Jazelle
                case 5: return 15;  // FIQ
                case 6: return 4;   // asynchronous data abort
                case 7: return 1;   // debug halt
                default: return 6;  // reserved
            }
        if (!p.target.information) return 0;
        std::uint32_t number = p.exception_3_0;
        if (p.more && !p.second_is_resume) number |= (p.second & 0x1fU) << 4;
        return number;
    }
    [[nodiscard]] static bool cancels(const BranchAddress& p) {
        return p.target.old != 0 ? (p.target.old & 8U) != 0 : p.target.information && p.cancelled;
    }
    /// Cancels the announced elements; on the M profile only an exception return packet, if there is one.
    void cancel() {
        if (config_.m_profile && !announced_.empty() && announced_.back().kind == Announced::Kind::exception_return) {
            announced_.pop_back();
            return;
        }
        announced_.clear();
        instruction_since_address_ = false;
    }
    void commit() {
        for (const Announced& a : std::exchange(announced_, {})) {
            if (a.kind == Announced::Kind::exception_return)
                elements_.event(a.at, flow::ExceptionReturn{});
            else
                execute(a);
        }
    }
    /// 6a to 6c: the instruction at the current address has run.
    void execute(const Announced& a) {
        instruction_since_address_ = true;
        const bool passed = a.kind == Announced::Kind::passed;
        if (follower_.ready(a.at) && follower_.atom(passed, a.at, a.cycles)) return;
        flow::Atoms lost;
        ++(passed ? lost.taken : lost.not_taken);
        elements_.unplaced(a.at, lost);
        if (a.cycles != flow::no_cycles && a.cycles != 0) elements_.event(a.at, flow::Cycles{.cycles = a.cycles});
    }

    /// Step 5.
    void isync(const ISync& p, std::optional<std::uint32_t> cycles, Offset at) {
        commit();
        const bool first = state_ != State::decode;
        if (first && behind_async_ < at) elements_.event(at, Gap{behind_async_, at, GapReason::unsynchronised});
        Memory to;
        to.alt_isa = p.alt_isa;
        to.ns = p.ns;
        to.hyp = p.hyp;
        if (config_.context_id_bytes != 0) to.context_id = p.context_id;
        to.vmid = memory_.vmid;
        const bool thumb = (p.address & 1U) != 0;
        to.isa = p.jazelle ? Isa::jazelle : !thumb ? Isa::a32 : p.alt_isa ? Isa::tee : Isa::t32;
        to.address = to.isa == Isa::t32 || to.isa == Isa::tee ? p.address & ~1U : p.address;
        if (p.in_progress && !config_.data_only)
            to.take(p.current, false);  // the address so far belonged to a transfer
        if (first || p.reason != ISyncReason::periodic) {
            flow::TraceOnReason why = flow::TraceOnReason::begin;
            if (p.reason == ISyncReason::trace_enabled) why = flow::TraceOnReason::enabled;
            if (p.reason == ISyncReason::overflow_restart) why = flow::TraceOnReason::overflow;
            if (p.reason == ISyncReason::debug_exit) why = flow::TraceOnReason::debug_restart;
            // In elements the largest count means "none", so it is delivered as an event of its own.
            if (cycles == flow::no_cycles) elements_.event(at, flow::Cycles{.cycles = *cycles});
            elements_.event(at, flow::TraceOn{why, cycles.value_or(flow::no_cycles)});
        } else {
            if (!config_.data_only) follower_.confirm(to.place(), to.context(), at);
            if (cycles && *cycles != 0) elements_.event(at, flow::Cycles{.cycles = *cycles});
        }
        state_ = State::decode;
        memory_ = to;
        if (!config_.data_only) return continue_at(at);
        follower_.lose();
        follower_.set_context(memory_.context(), at);
    }

    void continue_at(Offset at) {
        instruction_since_address_ = false;
        follower_.go(memory_.place(), memory_.context(), at);
    }

    /// Step 1.
    void lose_synchronisation(Offset at) {
        commit();
        if (state_ == State::wait_isync && behind_async_ < at)
            elements_.event(at, Gap{behind_async_, at, GapReason::unsynchronised});
        state_ = State::wait_async;
        memory_ = {};
        clock_ = {};
        times_ = {};
        instruction_since_address_ = false;
        follower_.forget();
    }

    const Config config_;
    flow::BatchWriter& out_;
    follow::Elements<flow::BatchWriter> elements_;
    follow::ReferenceFollower follower_;
    FastParser<Steps> parser_;

    State state_ = State::wait_async;
    Offset behind_async_{};
    Memory memory_;
    Clock clock_;
    follow::TimeOrder times_;
    std::vector<Announced> announced_;
    bool instruction_since_address_ = false;
    std::uint64_t packets_ = 0;
};

}  // namespace

ReferenceDecoder::ReferenceDecoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out) {
    hold<Steps>(config, code, out);
}

}  // namespace waymark::etm3
