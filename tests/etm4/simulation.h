/// Random programs, random executions of them and the trace a unit would send: ground truth for decoders. The
/// simulation decides about the execution, instruction by instruction; it uses only packets, their encoder, compress()
/// and decode_instr() of the code under test.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "etm4/program.h"
#include "support/elements.h"
#include "support/synthetic.h"
#include "waymark/etm4/encoder.h"
#include "waymark/etm4/state.h"
#include "waymark/isa/decode_instr.h"

namespace waymark::etm4::test {

inline std::string range_line(std::uint64_t start, std::uint64_t end, std::uint64_t instructions,
                              std::string_view outcome) {
    return "range " + std::to_string(start) + ".." + std::to_string(end) + " n=" + std::to_string(instructions) + " " +
           std::string(outcome);
}

/// The lines of a decoder's elements as a Simulation writes them; without contexts and gaps.
inline std::vector<std::string> lines_of(const std::vector<synthetic::Element>& elements) {
    using synthetic::Kind;
    std::vector<std::string> out;
    const auto cycles = [](std::uint32_t c) { return c == flow::no_cycles ? "" : " cycles " + std::to_string(c); };
    for (const synthetic::Element& e : elements) switch (e.kind) {
            case Kind::range:
                out.push_back(range_line(e.block.start, e.block.start + e.block.bytes, e.block.instructions,
                                         e.block.end == flow::End::not_a_waypoint ? "cut"
                                         : e.taken                                ? "E"
                                                                                  : "N"));
                break;
            case Kind::exception:
                out.push_back("exception " + std::to_string(e.a) + " back " + std::to_string(e.b));
                break;
            case Kind::exception_return: out.push_back("exception return"); break;
            case Kind::timestamp: out.push_back("timestamp " + std::to_string(e.a) + cycles(e.cycles)); break;
            case Kind::cycles: out.push_back("cycles " + std::to_string(e.cycles)); break;
            case Kind::mark: out.push_back("mark " + std::to_string(e.a) + " " + std::to_string(e.b)); break;
            case Kind::trace_on: out.push_back("trace on " + std::to_string(e.a)); break;
            case Kind::context:
            case Kind::gap: break;
            default: out.push_back("unexpected" + to_text(e)); break;
        }
    return out;
}

class Simulation : public Program {
public:
    struct Options {
        bool source_addresses = false;  ///< some P0 instructions come as Source Address packets (ETE)
        bool aarch32 = true;            ///< AArch32 code is part of the program
        bool overflows = true;
        bool newest_instructions = true;    ///< compare and branch (FEAT_CMPBR)
        bool contexts_change = true;        ///< handlers may have another exception level, width, identifier
        bool exception_returns = true;      ///< ERET is part of the program
        bool exceptions_at_targets = true;  ///< some exceptions are taken at the target of the branch before (E = 10)
    };

    Simulation(const Config& config, std::uint64_t seed, const Options& options)
        : Program(config, seed, {options.aarch32, options.newest_instructions, options.exception_returns}),
          config_(config),
          options_(options),
          state_(config) {}

    std::vector<std::uint8_t> bytes;
    std::vector<std::string> truth;
    std::uint64_t cancelled = 0;  ///< P0 elements of wrong paths

    void run(unsigned steps) {
        context_.has_payload = true;
        context_.sf = true;
        context_.el = 1;
        synchronise();
        trace_on("1");
        for (unsigned i = 0; i < steps; ++i) {
            if (one_in(60)) synchronise(), send_place(true);
            if (one_in(80)) trace_off_and_on();
            if (options_.overflows && one_in(150)) overflow();
            if (one_in(12)) extras();
            if (one_in(25))
                exception();
            else
                step(true);
            if (one_in(8)) commit_some();
        }
        flush();
        if (depth_ != 0 && one_in(2)) emit(Commit{static_cast<std::uint32_t>(depth_)}), commit(depth_);
        release();
        discard();
    }

private:
    /// Elements that wait for their commit.
    struct Waits {
        bool p0 = false, kept = false;
        std::vector<std::string> lines;
    };
    struct Core {
        std::uint64_t at{};
        isa::Isa isa = isa::Isa::a64;
        std::vector<std::pair<std::uint64_t, isa::Isa>> stack;
        bool may_push = true;
    };
    // ---- packets

    template <class P>
    void emit(const P& packet) {
        flush();
        encode(bytes, packet, config_);
        state_(packet);
    }
    /// Sends the atoms that are due.
    void flush() {
        std::size_t from = 0;
        while (from < atoms_.size()) {
            std::size_t most = std::min<std::size_t>(24, atoms_.size() - from);
            if (one_in(3)) most = 1 + below(most);
            for (std::size_t count = most; count != 0; --count) {
                Atoms atoms{static_cast<std::uint8_t>(count), 0};
                for (std::size_t i = 0; i < count; ++i) atoms.e |= (atoms_[from + i] ? 1U : 0U) << i;
                if (atom_header(atoms) == 0) continue;
                encode(bytes, Atom{atoms}, config_);
                from += count;
                counted(count);
                break;
            }
        }
        atoms_.clear();
    }
    /// P0 elements were sent: commits the oldest ones, as far as the unit's depth of speculation requires.
    void counted(std::uint64_t p0) {
        depth_ += p0;
        if (depth_ > config_.max_speculation) commit(depth_ - config_.max_speculation);
        release();
    }
    void commit(std::uint64_t count) {
        depth_ -= count;
        while (count != 0) {
            if (waits_.front().p0) --count;
            deliver_front();
        }
    }
    void release() {
        // Unsent atoms are no P0 elements to the decoder, but keep their order.
        while (!waits_.empty() && !waits_.front().p0) deliver_front();
    }
    void deliver_front() {
        truth.insert(truth.end(), waits_.front().lines.begin(), waits_.front().lines.end());
        waits_.erase(waits_.begin());
    }
    void discard() {
        for (const Waits& w : waits_)
            if (w.kept) truth.insert(truth.end(), w.lines.begin(), w.lines.end());
        waits_.clear();
        if (depth_ != 0) truth.push_back("mark " + mark(flow::Mark::Kind::uncommitted) + " " + std::to_string(depth_));
        depth_ = 0;
    }
    static std::string mark(flow::Mark::Kind kind) { return std::to_string(static_cast<unsigned>(kind)); }
    void wait(bool p0, bool kept, std::vector<std::string> lines) {
        waits_.push_back({p0, kept, std::move(lines)});
        made_p0_ += p0 ? 1 : 0;
    }

    [[nodiscard]] KnownAddress place_of(std::uint64_t at, isa::Isa isa) const { return {{at}, isa == isa::Isa::t32}; }
    void send_address(std::uint64_t at, isa::Isa isa, bool with_context) {
        flush();
        const KnownAddress place = place_of(at, isa);
        if (with_context) {
            if (one_in(3)) {
                emit(context_);
                return send_address(at, isa, false);
            }
            AddressWithContext p;
            static_cast<ContextFields&>(p) = context_;
            const bool wide = (at ^ state_.addresses().entry(0).address.value) >> 32 != 0 || one_in(4);
            p.address = {at & address_mask(wide ? 8 : 4, place.is1), static_cast<std::uint8_t>(wide ? 8 : 4),
                         place.is1};
            return emit(p);
        }
        const CompressedAddress compressed = compress(place, state_.addresses());
        if (compressed.entry)
            emit(ExactMatchAddress{*compressed.entry});
        else if (compressed.sent.bytes <= 2)
            emit(ShortAddress{compressed.sent});
        else
            emit(LongAddress{compressed.sent});
    }
    void send_source(std::uint64_t at, isa::Isa isa) {
        const CompressedAddress compressed = compress(place_of(at, isa), state_.addresses());
        if (compressed.entry)
            emit(ExactMatchSourceAddress{*compressed.entry});
        else if (compressed.sent.bytes <= 2)
            emit(ShortSourceAddress{compressed.sent});
        else
            emit(LongSourceAddress{compressed.sent});
    }
    void send_place(bool with_context) {
        send_address(core_.at, core_.isa, with_context);
        core_.may_push = true;
    }

    void synchronise() {
        emit(ASync{});
        TraceInfo info;
        info.sections = 1;
        info.info_section = config_.cycle_counting ? 1 : 0;
        if (depth_ != 0) {
            info.sections |= 4;
            info.speculation = static_cast<std::uint32_t>(depth_);
        }
        if (config_.cycle_counting) {
            info.sections |= 8;
            info.threshold = 0x16;
        }
        emit(info);
        core_.stack.clear();
        core_.may_push = false;
    }
    void trace_on(const std::string& reason) {
        std::tie(core_.at, core_.isa) = somewhere(context_.sf);
        core_.stack.clear();
        emit(TraceOn{});
        wait(false, false, {"trace on " + reason});
        send_place(true);
        release();
    }
    void trace_off_and_on() {
        flush();
        if (depth_ != 0) emit(Commit{static_cast<std::uint32_t>(depth_)}), commit(depth_), release();
        trace_on("1");
    }
    void overflow() {
        flush();
        emit(Overflow{});
        discard();
        state_(Gap{});
        synchronise();
        trace_on("2");
    }

    void extras() {
        switch (below(5)) {
            case 0:
                emit(Event{static_cast<std::uint8_t>(1 + below(15))});
                wait(false, true, {"mark " + mark(flow::Mark::Kind::unit_events) + " " + std::to_string(last_event())});
                break;
            case 1: {
                if (!config_.timestamps) return;
                if (config_.timestamp_markers) {
                    emit(TimestampMarker{});
                    wait(false, true, {"mark " + mark(flow::Mark::Kind::timestamp_marker) + " 0"});
                }
                time_ += one_in(5) ? random_() >> 20 : below(1000);
                Timestamp p{compress_timestamp(time_, state_.timestamps().value()), 0, false};
                std::string line = "timestamp " + std::to_string(time_);
                if (config_.cycle_counting && one_in(2)) {
                    p.has_cycles = true;
                    p.cycles = static_cast<std::uint32_t>(below(4096));
                    line += " cycles " + std::to_string(p.cycles);
                }
                emit(p);
                wait(false, true, {line});
                break;
            }
            case 2: {
                if (!config_.cycle_counting) return;
                flush();
                const std::uint64_t n = std::min<std::uint64_t>(depth_, below(6));
                const bool commits = config_.max_speculation != 0 && !config_.commit_mode_1;
                std::uint32_t cycles = 0;
                if (commits && n >= 1 && n <= 4 && one_in(2)) {
                    CycleCountF3 p{static_cast<std::uint8_t>(n - 1), static_cast<std::uint8_t>(below(4))};
                    cycles = p.count;
                    emit(p);
                } else if (commits && n >= 1 && one_in(2)) {
                    // Bit 0 of the count, which OpenCSD 1.3.3 takes for F, is 0.
                    CycleCountF2 p{static_cast<std::uint8_t>(n - 1), static_cast<std::uint8_t>(below(8) * 2), false};
                    cycles = p.count;
                    emit(p);
                } else {
                    CycleCountF1 p;
                    p.commit = commits ? static_cast<std::uint32_t>(n) : 0;
                    p.count = cycles = static_cast<std::uint32_t>(below(3000));
                    emit(p);
                }
                // A count follows the elements that it commits, and precedes all waiting elements.
                if (commits) commit(n);
                release();
                truth.push_back("cycles " + std::to_string(cycles + 0x16));
                break;
            }
            case 3:
                if (config_.version < 0x53) return;
                emit(Instrumentation{random_(), 1});
                wait(false, true,
                     {"mark " + mark(flow::Mark::Kind::instrumentation) + " " + std::to_string(last_value())});
                break;
            default:
                if (config_.version >= 0x43) emit(Ignore{});
                break;
        }
        release();
    }
    [[nodiscard]] unsigned last_event() const { return bytes.back() & 0xfU; }
    [[nodiscard]] std::uint64_t last_value() const {
        std::uint64_t value = 0;
        for (unsigned n = 0; n < 8; ++n) value = value << 8 | bytes[bytes.size() - 1 - n];
        return value;
    }
    void commit_some() {
        flush();
        if (depth_ == 0) return;
        const std::uint64_t n = 1 + below(depth_);
        emit(Commit{static_cast<std::uint32_t>(n)});
        commit(n);
        release();
    }

    // ---- execution

    /// One piece of code, up to and including its P0 instruction.
    void step(bool may_mispredict) {
        const Piece piece = ahead({{core_.at}, core_.isa});
        const isa::Instruction& last = piece.last;
        bool taken = last.waypoint != isa::Waypoint::direct || !last.conditional || one_in(2);
        // In A32 any instruction may fail its condition; here only branches have one.
        const bool mispredicts = may_mispredict && config_.max_speculation >= 8 && last.conditional &&
                                 last.waypoint == isa::Waypoint::direct && one_in(6);
        if (mispredicts) return mispredict(piece, taken);
        const bool all_n = std::none_of(atoms_.begin(), atoms_.end(), [](bool e) { return e; });
        if (options_.source_addresses && taken && all_n && one_in(6))
            source_address(piece);
        else
            atom(piece, taken);
        go_on(piece, taken);
    }
    void atom(const Piece& piece, bool taken) {
        std::vector<std::string> lines{
            range_line(piece.starts.front(), piece.end, piece.starts.size(), taken ? "E" : "N")};
        const bool returns = taken && piece.last.exception_return;
        if (returns && config_.ete()) lines.emplace_back("exception return");
        wait(true, false, std::move(lines));
        atoms_.push_back(taken);
        if (returns && !config_.ete()) {
            emit(ExceptionReturn{});
            wait(false, false, {"exception return"});
            release();
        }
    }
    /// All atoms that are due are N, and the packet includes them.
    void source_address(const Piece& piece) {
        Waits merged;
        const std::size_t first = waits_.size() - atoms_.size();
        for (std::size_t i = first; i < waits_.size(); ++i)
            merged.lines.insert(merged.lines.end(), waits_[i].lines.begin(), waits_[i].lines.end());
        waits_.resize(first);
        made_p0_ -= atoms_.size();
        atoms_.clear();
        merged.lines.push_back(range_line(piece.starts.front(), piece.end, piece.starts.size(), "E"));
        if (piece.last.exception_return) merged.lines.emplace_back("exception return");
        wait(true, false, std::move(merged.lines));
        send_source(piece.starts.back(), core_.isa);
        counted(1);
    }
    /// Where execution continues after a P0 instruction, and the packets for it.
    void go_on(const Piece& piece, bool taken) {
        const isa::Instruction& last = piece.last;
        const std::pair<std::uint64_t, isa::Isa> after{piece.end, core_.isa};
        if (!taken) {
            core_.at = piece.end;
            return;
        }
        if (config_.return_stack && last.link && core_.may_push) {
            core_.stack.push_back(after);
            if (core_.stack.size() > 16) core_.stack.erase(core_.stack.begin());
        }
        if (last.waypoint != isa::Waypoint::indirect) {
            core_.at = last.target.value;
            core_.isa = last.target_isa;
            // Branch broadcast names targets that follow from the program.
            if (last.waypoint == isa::Waypoint::direct && config_.branch_broadcast) send_place(false);
            return;
        }
        std::pair<std::uint64_t, isa::Isa> to = somewhere(context_.sf);
        // No branch changes between AArch32 and AArch64.
        if (!core_.stack.empty() && (core_.stack.back().second == isa::Isa::a64) == context_.sf && one_in(2))
            to = core_.stack.back();
        const bool known = !core_.stack.empty() && core_.stack.back() == to;
        if (known) core_.stack.pop_back();
        std::tie(core_.at, core_.isa) = to;
        if (known) return;
        if (options_.exceptions_at_targets && one_in(8)) return exception_at_target();
        send_place(false);
    }
    void mispredict(const Piece& piece, bool taken) {
        const Core core = core_;
        const Context context = context_;
        flush();
        atom(piece, !taken);
        const std::uint64_t before = made_p0_;
        go_on(piece, !taken);
        const std::uint64_t wrong = below(4);
        if (wrong != 0) flush();  // so that no Source Address takes the atom in
        for (std::uint64_t i = 0; i < wrong; ++i) {
            step(false);
            if (one_in(4)) extras_that_stay();
        }
        const bool in_packet = wrong == 0 && atoms_.size() == 1 && one_in(2);
        if (in_packet) {
            // The packet itself contains the atom.
            const bool e = atoms_.front();
            atoms_.clear();
            emit(Mispredict{static_cast<std::uint8_t>(e ? 1 : 3)});
            counted(1);
        } else {
            flush();
            const std::uint64_t n = made_p0_ - before;
            if (n == 1 && one_in(2))
                emit(CancelF2{0});
            else if (n >= 2 && n <= 5 && one_in(2))
                emit(CancelF3{static_cast<std::uint8_t>(n - 2), false});
            else if (n != 0 && one_in(2))
                emit(CancelF1{static_cast<std::uint32_t>(n), true});
            else {
                if (n != 0) emit(CancelF1{static_cast<std::uint32_t>(n), false});
                emit(Mispredict{0});
            }
            cancel(n);
        }
        // Now the newest P0 element is the atom, with its outcome inverted.
        for (auto w = waits_.rbegin(); w != waits_.rend(); ++w)
            if (w->p0) {
                w->lines = {range_line(piece.starts.front(), piece.end, piece.starts.size(), taken ? "E" : "N")};
                break;
            }
        core_ = core;
        context_ = context;
        const bool broadcasts = config_.branch_broadcast && taken;
        core_.at = taken ? piece.last.target.value : piece.end;
        core_.isa = taken ? piece.last.target_isa : core_.isa;
        if (config_.return_stack && taken && piece.last.link && core_.may_push)
            core_.stack.emplace_back(piece.end, core.isa);
        if (broadcasts) send_place(false);
        release();
    }
    void extras_that_stay() {
        emit(Event{static_cast<std::uint8_t>(1 + below(15))});
        wait(false, true, {"mark " + mark(flow::Mark::Kind::unit_events) + " " + std::to_string(last_event())});
        release();
    }
    void cancel(std::uint64_t n) {
        cancelled += n;
        depth_ -= n;
        std::vector<Waits> stay;
        while (n != 0) {
            Waits w = std::move(waits_.back());
            waits_.pop_back();
            if (w.p0)
                --n;
            else if (w.kept)
                stay.push_back(std::move(w));
        }
        for (auto w = stay.rbegin(); w != stay.rend(); ++w) waits_.push_back(std::move(*w));
    }

    void exception() {
        const Piece piece = ahead({{core_.at}, core_.isa});
        const std::size_t before = below(piece.starts.size());  // number of executed instructions
        std::vector<std::string> lines;
        if (before != 0) lines.push_back(range_line(piece.starts.front(), piece.starts[before], before, "cut"));
        take_exception(piece.starts[before], std::move(lines), false);
    }
    /// The exception is taken at the target of the indirect branch before.
    void exception_at_target() { take_exception(core_.at, {}, true); }
    void take_exception(std::uint64_t back, std::vector<std::string> lines, bool at_target) {
        constexpr std::uint8_t types[] = {0x02, 0x03, 0x04, 0x0b, 0x0c, 0x0e, 0x0f};
        flush();
        Exception p;
        p.type_4_0 = types[below(std::size(types))];
        p.e1 = at_target;
        p.e0 = !at_target;
        emit(p);
        lines.push_back("exception " + std::to_string(p.type()) + " back " + std::to_string(back));
        send_address(back, core_.isa, false);
        wait(true, false, std::move(lines));
        counted(1);
        // The handler, perhaps of another exception level and width.
        if (options_.contexts_change && one_in(2)) {
            context_.el = static_cast<std::uint8_t>(below(4));
            context_.ns = one_in(2);
            context_.sf = !options_.aarch32 || one_in(2) || context_.el >= 2;
            context_.has_context_id = config_.context_id_bytes != 0 && one_in(2);
            context_.context_id = static_cast<std::uint32_t>(below(4));
            std::tie(core_.at, core_.isa) = somewhere(context_.sf);
            send_place(true);
        } else {
            std::tie(core_.at, core_.isa) = somewhere(context_.sf);
            send_place(false);
        }
    }

    const Config config_;
    const Options options_;
    PacketState state_;
    Core core_;
    Context context_;
    std::vector<bool> atoms_;
    std::vector<Waits> waits_;
    std::uint64_t depth_ = 0, time_ = 0;
    std::uint64_t made_p0_ = 0;  // P0 elements so far, committed or cancelled
};

}  // namespace waymark::etm4::test
