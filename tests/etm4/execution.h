/// Random executions of random programs, given to the model instruction by instruction: the truth is known without any
/// decoder, and compared with the decoders' results for the model's bytes.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "etm4/program.h"
#include "etm4/simulation.h"
#include "support/elements.h"
#include "support/run_counts.h"
#include "waymark/core/byte_sink.h"
#include "waymark/etm4/model.h"

namespace waymark::etm4::test {

class Execution : public Program {
public:
    struct Options {
        Contents contents{};
        bool batched = false;     ///< P0 instructions are given many at once
        bool one_by_one = false;  ///< the same blocks are given one after the other
        bool transactions = false;
        /// Whether a block of these instructions is to be traced; called once for each block in order. Empty: all
        /// blocks are traced.
        std::function<bool(const std::vector<std::uint64_t>& starts, const flow::Context&)> view{};
        bool unknown_handlers = true;  ///< some exceptions lead to a place that is not recorded
        unsigned most_cycles = 40;     ///< from one P0 element to the next
        bool interrupts = true;        ///< exceptions, debug state, and jumps of other code on the core
        /// The unit is sometimes disabled, and enabled again later; this function programs it meanwhile, and returns
        /// the `view` from then on.
        std::function<decltype(view)(Model&, std::uint64_t cycle, wire::Random&)> program{};
    };
    /// A P0 element: the code that ran with it, and where.
    struct Ran {
        std::vector<std::string> lines;
        flow::Context context;
        std::uint64_t cycle{};
        bool lost = false;
        bool begins = false;  ///< a session: the cycle count begins again
    };

    Execution(const ModelConfig& config, std::uint64_t seed, const Options& options)
        : Program(packets_of(config.registers, config.profile), seed, options.contents),
          config_(packets_of(config.registers, config.profile)),
          options_(options),
          view_(options.view),
          model_(config, trace_) {}

    std::vector<Ran> truth;
    /// All that ran, traced or not.
    RunCounts counted;
    /// Cycles from each element, or from where tracing began, to the next element that was traced.
    std::uint64_t traced_cycles = 0;
    [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return trace_.bytes(); }
    [[nodiscard]] const ModelCounts& counts() const { return model_.counts(); }
    [[nodiscard]] Model& model() { return model_; }

    void run(unsigned steps) {
        context_ = random_context();
        place_ = arrival();
        model_.set_context(context_);
        model_.start({place_, cycle_});
        ++cycle_;  // it runs from the next cycle on (2.1)
        if (view_) traced_ = active_at_first();
        for (unsigned i = 0; i < steps; ++i) {
            cycle_ += below(options_.most_cycles);
            const std::uint64_t what = below(60);
            switch (options_.interrupts || what > 8 || (what > 3 && what < 7) ? what : 59) {
                case 0: leave(); break;
                case 1:
                case 2:
                case 3: exception(); break;
                case 4:
                    give_blocks();
                    model_.wait(cycle_);
                    break;
                case 5:
                    if (one_in(4)) give_blocks(), model_.request_sync();
                    break;
                case 6:
                    give_blocks();
                    model_.instrument(random_(), cycle_);
                    break;
                case 7:
                    if (options_.transactions) transaction();
                    break;
                case 8:
                    if (one_in(4)) debug();
                    break;
                case 9:
                    if (options_.program) reprogram();
                    break;
                default: step(); break;
            }
            mark_lost();
        }
        give_blocks();
        mark_lost();
        model_.finish();
        // No element comes after those that waited.
        mark_lost(true);
        // Code that ran after the last session with trace is not part of the recording.
        if (!enabled_ || begins_) counted = run_when_disabled_;
    }

private:
    [[nodiscard]] flow::Context random_context() {
        flow::Context c;
        c.el = static_cast<std::uint8_t>(below(4));
        c.ns = one_in(2);
        c.nse = config_.ete() && one_in(4);
        c.hyp = c.el == 2;
        c.aarch64 = !options_.contents.aarch32 || c.el >= 2 || one_in(2);
        if (config_.context_id_trace) c.context_id = static_cast<std::uint32_t>(below(3));
        if (config_.vmid_trace) c.vmid = static_cast<std::uint32_t>(below(3));
        return c;
    }
    [[nodiscard]] isa::Place arrival() {
        const auto [address, isa] = somewhere(context_.aarch64);
        return {{address}, isa};
    }
    [[nodiscard]] Piece piece() const { return ahead(place_); }
    void runs(const Piece& piece, std::size_t instructions) {
        for (std::size_t i = 0; i < instructions; ++i) counted.ran(piece.starts[i]);
    }

    void step() {
        const Piece p = piece();
        const isa::Instruction& last = p.last;
        const std::uint64_t size = last.bytes;
        runs(p, p.starts.size());
        const bool passed = last.waypoint != isa::Waypoint::direct || !last.conditional || one_in(2);
        if (last.waypoint == isa::Waypoint::direct && last.conditional) counted.branched(p.end - size, passed);
        isa::Place next{{p.end}, place_.isa};
        if (passed && last.waypoint == isa::Waypoint::direct) next = {last.target, last.target_isa};
        flow::Context after = context_;
        if (last.exception_return && one_in(2)) after = random_context(), after.aarch64 = context_.aarch64;
        if (passed && last.waypoint == isa::Waypoint::indirect) {
            std::tie(next.address.value, next.isa) = somewhere(context_.aarch64);
            const bool returns =
                !calls_.empty() && one_in(2) && (calls_.back().isa == isa::Isa::a64) == context_.aarch64;
            if (returns) next = calls_.back(), calls_.pop_back();
        }
        if (passed && last.link) calls_.push_back({{p.end}, place_.isa});
        Ran ran{{range_line(p.starts.front(), p.end, p.starts.size(), passed ? "E" : "N")}, context_, cycle_};
        if (last.exception_return) ran.lines.emplace_back("exception return");
        const Address at{p.end - size};
        if (!(after == context_)) give_blocks(), model_.set_context(after);
        if (options_.batched && one_in(8)) give_blocks();
        if (options_.batched && pieces_.size() < 30) {
            pieces_.push_back(p);
            blocks_.push_back({.instruction = nullptr,
                               .cycle = cycle_,
                               .address = at,
                               .next = next.address,
                               .isa = place_.isa,
                               .next_isa = next.isa,
                               .bytes_before = {},
                               .passed = passed});
        } else {
            give_blocks();
            // Some of the code before it is passed separately.
            if (p.starts.size() > 1 && one_in(3))
                model_.run(static_cast<std::uint32_t>(p.starts[1] - p.starts[0]), cycle_);
            model_.retire_block({.address = at,
                                 .isa = place_.isa,
                                 .instruction = last,
                                 .passed = passed,
                                 .next = next,
                                 .cycle = cycle_});
        }
        if (view_ && enabled_) traced_ = view_(p.starts, context_);
        spend(traced_ && enabled_);
        if (traced_ && enabled_) ran_now(std::move(ran));
        context_ = after;
        place_ = next;
    }
    void exception() {
        give_blocks();
        const flow::Context interrupted = context_;
        const Piece p = piece();
        const std::size_t before = below(p.starts.size());
        runs(p, before);
        Ran ran{{}, context_, cycle_};
        if (before != 0) ran.lines.push_back(range_line(p.starts.front(), p.starts[before], before, "cut"));
        constexpr std::uint32_t types[] = {0x02, 0x03, 0x04, 0x06, 0x07, 0x0a, 0x0b, 0x0c, 0x0e, 0x0f};
        const std::uint32_t type = types[below(std::size(types))];
        ran.lines.push_back("exception " + std::to_string(type) + " back " + std::to_string(p.starts[before]));
        const bool known = !options_.unknown_handlers || one_in(2);
        model_.run(static_cast<std::uint32_t>(p.starts[before] - p.starts[0]), cycle_);
        if (one_in(2)) context_ = random_context();
        model_.set_context(context_);
        const isa::Place handler = arrival();
        ExceptionTaken taken{.type = type, .back = {}, .handler = {}, .cycle = cycle_};
        if (known) taken.handler = handler;
        // If no instruction precedes the exception, it is traced if the code before it was.
        const std::uint64_t untraced = model_.counts().untraced;
        model_.exception(taken);
        bool traced = model_.counts().untraced == untraced;
        if (view_ && enabled_) {
            if (before != 0)
                traced_ =
                    view_({p.starts.begin(), p.starts.begin() + static_cast<std::ptrdiff_t>(before)}, interrupted);
            traced = traced_;
        }
        spend(traced && enabled_);
        if (traced) ran_now(std::move(ran));
        if (known) {
            place_ = handler;
            return;
        }
        mark_lost();
        cycle_ += below(1000);
        leave();
    }
    /// 2.12: an ETE follows TRCRSR.TA, which does not change where nothing is recorded.
    void forget_traced() {
        if (view_ && !config_.ete()) traced_ = false;
    }
    [[nodiscard]] bool active_at_first() { return model_.registers().rsr.ta; }
    void reprogram() {
        give_blocks();
        mark_lost();
        if (enabled_) {
            EXPECT_EQ(model_.write(Trcprgctlr::offset, 0, cycle_), AccessResult::done);
            enabled_ = false;
            mark_lost(true);
            // A session without trace does not show which code ran in it and before.
            if (!begins_) run_when_disabled_ = counted;
            return;
        }
        constexpr unsigned most_waiting = 1'000'000;
        unsigned waited = 0;
        while ((model_.read(Trcstatr::offset, ++cycle_).value & 1U) == 0 && waited < most_waiting) ++waited;
        EXPECT_LT(waited, most_waiting);
        // Nothing in the trace shows which code ran before the first session with trace.
        if (truth.empty()) counted = {};
        view_ = options_.program(model_, cycle_, random_);
        EXPECT_EQ(model_.write(Trcprgctlr::offset, 1, cycle_), AccessResult::done);
        enabled_ = begins_ = true;
        ++cycle_;
        traced_ = !view_ || active_at_first();
    }
    void leave() {
        give_blocks();
        if (one_in(2)) context_ = random_context();
        model_.set_context(context_);
        place_ = arrival();
        forget_traced();
        model_.discontinuity({place_, cycle_});
    }
    void debug() {
        give_blocks();
        const std::uint64_t untraced = model_.counts().untraced;
        model_.debug_entry(cycle_);
        if (model_.counts().untraced == untraced)
            ran_now({{"exception 1 back " + std::to_string(place_.address.value)}, context_, cycle_});
        mark_lost();
        forget_traced();
        context_ = random_context();
        model_.set_context(context_);
        place_ = arrival();
        model_.debug_exit({place_, cycle_});
    }
    void transaction() {
        give_blocks();
        if (!in_transaction_) {
            in_transaction_ = true;
            model_.transaction_start(cycle_);
        } else if (one_in(2)) {
            in_transaction_ = false;
            model_.transaction_commit(cycle_);
        } else {
            in_transaction_ = false;
            place_ = arrival();
            model_.transaction_fail({place_, cycle_});
        }
    }

    void spend(bool traced) {
        if (traced) traced_cycles += cycle_ - spent_until_;
        spent_until_ = cycle_;
    }
    void ran_now(Ran ran) {
        ran.begins = std::exchange(begins_, false);
        truth.push_back(std::move(ran));
        // The last element may be the lost one.
        last_lost_ = lost_now() && model_.counts().overflowed != overflowed_;
    }
    [[nodiscard]] bool lost_now() const { return model_.overflowing(); }
    /// The FIFO lost the newest elements: the last one if it is losing (or `last_waited`), and the waiting ones.
    void mark_lost(bool last_waited = false) {
        std::uint64_t count = model_.counts().overflowed - overflowed_;
        overflowed_ = model_.counts().overflowed;
        if (count == 0) return;
        auto ran = truth.rbegin();
        if (!last_waited && !last_lost_ && !lost_now() && ran != truth.rend()) ++ran;
        for (; ran != truth.rend() && count != 0; ++ran) {
            if (ran->lost) continue;
            ran->lost = true;
            --count;
        }
        last_lost_ = false;
    }
    /// Gives the model the blocks that were kept back.
    void give_blocks() {
        if (blocks_.empty()) return;
        for (std::size_t i = 0; i < blocks_.size(); ++i) blocks_[i].instruction = &pieces_[i].last;
        for (std::size_t at = 0; options_.one_by_one && at < blocks_.size(); ++at) {
            const RetiredBlock& b = blocks_[at];
            model_.retire_block({.address = b.address,
                                 .isa = b.isa,
                                 .instruction = *b.instruction,
                                 .passed = b.passed,
                                 .next = {b.next, b.next_isa},
                                 .cycle = b.cycle});
        }
        for (std::size_t at = 0; !options_.one_by_one && at < blocks_.size();)
            at += model_.retire_blocks(std::span<const RetiredBlock>(blocks_).subspan(at));
        blocks_.clear();
        pieces_.clear();
    }

    const Config config_;
    const Options options_;
    decltype(Options::view) view_;
    bool enabled_ = true, begins_ = false;
    std::uint64_t spent_until_ = 0;
    RunCounts run_when_disabled_;
    ByteCollector trace_;
    Model model_;
    flow::Context context_;
    isa::Place place_;
    std::vector<isa::Place> calls_;
    std::vector<RetiredBlock> blocks_;
    std::deque<Piece> pieces_;
    std::uint64_t cycle_ = 1, overflowed_ = 0;
    bool in_transaction_ = false, last_lost_ = false;
    bool traced_ = true;  ///< the last block was traced; only with `view`
};

/// Compares decoded elements with the truth; returns the first difference in words, empty if there is none. Counts and
/// times of a unit that does not speculate have to fit too. Every `timestamp` is in cycles. The Exception Return packet
/// of an ETMv4 comes after the atom of its instruction, so the FIFO may lose it alone: an Overflow follows the atom, at
/// the end of `bytes` without an element that shows it.
inline std::string difference_from(const std::vector<synthetic::Element>& elements,
                                   const std::vector<Execution::Ran>& truth, const Config& config, Bytes bytes) {
    using synthetic::Element, synthetic::Kind;
    std::vector<const Execution::Ran*> kept;
    for (const Execution::Ran& ran : truth)
        if (!ran.lost) kept.push_back(&ran);
    std::size_t next = 0, line = 0;
    bool overflow = false;  // after the last element that was found
    const auto may_be_lost = [&] {
        if (next == kept.size() || kept[next]->lines[line] != "exception return") return false;
        if (overflow) return true;
        const Execution::Ran* const after = kept[next] + 1;
        return after != truth.data() + truth.size() && after->lost;
    };
    std::optional<std::uint64_t> cycle, counted;
    std::uint64_t context_bits = 0, el = 0, cid = Element::absent, vmid = Element::absent;
    for (const Element& e : elements) {
        if (e.kind == Kind::context) {
            context_bits = e.a, el = e.b >> 8, cid = e.c, vmid = e.d;
            continue;
        }
        if (e.kind == Kind::trace_on || e.kind == Kind::gap) {
            if (e.kind == Kind::gap) return "a gap: " + to_text(e);
            if (static_cast<flow::TraceOnReason>(e.a) == flow::TraceOnReason::overflow) {
                counted.reset();
                overflow = true;
            }
            continue;
        }
        if (e.kind == Kind::mark) {
            if (static_cast<flow::Mark::Kind>(e.a) == flow::Mark::Kind::uncommitted) return "uncommitted elements";
            continue;
        }
        if (e.kind == Kind::timestamp) {
            if (config.max_speculation == 0 && e.a != cycle.value_or(0))
                return "timestamp " + std::to_string(e.a) + " of cycle " + std::to_string(cycle.value_or(0));
            if (config.max_speculation == 0 && e.cycles != flow::no_cycles && counted && e.cycles != *cycle - *counted)
                return "cycles of a timestamp: " + std::to_string(e.cycles);
            continue;
        }
        if (e.kind == Kind::cycles) {
            // The count of the last committed element, whether the unit speculates or not.
            if (e.cycles != flow::no_cycles && counted && e.cycles != *cycle - *counted)
                return "cycles " + std::to_string(e.cycles) + " instead of " + std::to_string(*cycle - *counted);
            counted = cycle;
            continue;
        }
        const std::vector<std::string> found = lines_of({e});
        const std::string text = found.empty() ? to_text(e) : found.front();
        if (text != "exception return" && may_be_lost()) ++next, line = 0;
        overflow = false;
        if (next == kept.size()) return "after the last: " + text;
        const Execution::Ran& ran = *kept[next];
        if (ran.lines[line] != text)
            return "element " + std::to_string(next) + ": " + text + " instead of " + ran.lines[line];
        if (ran.begins && line == 0) counted.reset();
        const flow::Context& c = ran.context;
        if (e.kind == Kind::range) {
            const std::uint64_t bits = (c.ns ? 1U : 0U) | (c.nse ? 2U : 0U) | (c.aarch64 ? 4U : 0U);
            const bool same = context_bits == bits && el == *c.el + 1U &&
                              (config.context_id_trace ? cid == c.context_id.value_or(0) : cid == Element::absent) &&
                              (config.vmid_trace ? vmid == c.vmid.value_or(0) : vmid == Element::absent);
            if (!same) return "element " + std::to_string(next) + " in another context: " + text;
        }
        cycle = ran.cycle;
        // A count beyond the counter's width is unknown, and is not an element.
        if (counted && ((*cycle - *counted) >> config.cycle_count_bits) != 0) counted = cycle;
        if (++line == ran.lines.size()) ++next, line = 0;
    }
    overflow = bytes.size() >= 2 && bytes[bytes.size() - 2] == 0x00 && bytes.back() == 0x05;
    if (may_be_lost()) ++next;
    return next == kept.size() ? std::string() : "missing: " + kept[next]->lines[line];
}

}  // namespace waymark::etm4::test
