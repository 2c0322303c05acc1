#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "waymark/core/gap.h"
#include "waymark/coresight/deformatter.h"
#include "waymark/flow/each_instruction.h"
#include "waymark/flow/unit_signals.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/program/plan.h"

namespace waymark::program {

namespace {

struct Collected final : ByteSink {
    void write(Bytes piece) override { bytes.insert(bytes.end(), piece.begin(), piece.end()); }
    std::vector<std::uint8_t> bytes;
};

/// Extracts the bytes of one source from frames, and the place of the first trigger among them.
struct OneSource {
    coresight::TraceId wanted;
    std::vector<std::uint8_t> bytes{};
    std::optional<std::size_t> triggered{};
    void data(coresight::TraceId id, Bytes piece, Offset) {
        if (id == wanted) bytes.insert(bytes.end(), piece.begin(), piece.end());
    }
    void trigger(coresight::TraceId id, Offset, std::uint8_t) {
        if (id == coresight::trigger_id && !triggered) triggered = bytes.size();
    }
    void gap(const Gap&) {}
    void reset(Offset) {}
};

/// A run of blocks around everything that the program watches, identical for each unit.
class Execution {
public:
    Execution(const flow::UnitFactory& units, const flow::UnitOptions& options, std::uint64_t seed)
        : isa_(units.traces_aarch64() ? isa::Isa::a64 : isa::Isa::a32),
          each_instruction_(flow::traces_each_instruction(units)),
          decode_(units.decode_options(options)),
          threads_(options.context_id_bytes != 0),
          random_(seed) {
        for (const auto* const ranges : {&options.view, &options.exclude})
            for (const flow::AddressRange& range : *ranges) {
                const std::uint64_t first = range.first.value, end = range.end.value;
                for (const std::uint64_t at : {first, end, first + (end - first) / 2})
                    for (const int words : {-2, -1, 0, 1}) look_at(at + static_cast<std::uint64_t>(4 * words));
            }
        if (options.trigger_at) {
            look_at(options.trigger_at->value);
            look_at(options.trigger_at->value - 8);
        }
        // Other places, near and far.
        constexpr unsigned others = 12;
        for (unsigned n = 0; n < others; ++n) look_at((n % 3 == 0 ? 0x40000000 : 0x10000) + 0x40 * std::uint64_t{n});
        now_.address = places_.back();
        now_.isa = isa_;
    }

    [[nodiscard]] isa::Place begin() const { return now_; }
    [[nodiscard]] flow::Context context() const {
        flow::Context context;
        context.ns = true;
        context.aarch64 = isa_ == isa::Isa::a64;
        if (context.aarch64) context.el = std::uint8_t{0};
        if (threads_) context.context_id = thread_;
        return context;
    }

    /// Number of blocks, or of instructions for a unit that traces each, and of exceptions.
    [[nodiscard]] std::uint64_t given() const { return given_; }

    /// Executes one block, or an exception and the way back.
    void step(flow::Unit& unit, std::uint64_t cycle) {
        constexpr unsigned one_exception_in = 50, one_switch_in = 200, most_instructions = 8;
        auto straight = static_cast<std::uint32_t>(4 * below(most_instructions));
        for (; each_instruction_ && straight != 0; straight -= 4) {
            isa::Instruction ordinary;
            ordinary.bytes = 4;
            const isa::Place next{now_.address + 4, isa_};
            unit.waypoint({}, {now_.address, isa_, ordinary, true, next}, cycle);
            ++given_;
            now_ = next;
        }
        const flow::Straight before{straight, static_cast<std::uint8_t>(straight == 0 ? 0 : 4)};
        if (below(one_exception_in) == 0) {
            now_.address.value += straight;
            ++given_;
            unit.exception(before, flow::ExceptionClass::irq, std::nullopt, cycle);
            if (threads_ && below(2) == 0) {
                thread_ += 1;
                unit.context(context());
            }
            unit.resume(now_, cycle);
            return;
        }
        if (below(one_switch_in) == 0) {
            go(places_[below(places_.size())]);
            unit.resume(now_, cycle);
            return;
        }
        const Address at{now_.address.value + straight};
        const bool conditional = below(3) == 0;
        const isa::Instruction instruction = isa::decode_instr(at, isa_, opcode(conditional), false, decode_);
        const bool passed = !conditional || below(2) == 0;
        isa::Place next{{at.value + 4}, isa_};
        if (passed) next.address = conditional ? instruction.target : places_[below(places_.size())];
        unit.waypoint(before, {at, isa_, instruction, passed, next}, cycle);
        ++given_;
        now_ = next;
    }

private:
    void look_at(std::uint64_t address) {
        address &= ~std::uint64_t{3};
        if (isa_ != isa::Isa::a64) address &= 0xffffffff;
        places_.push_back({address});
    }
    void go(Address address) { now_.address = address; }
    [[nodiscard]] std::uint64_t below(std::uint64_t count) { return random_() % count; }
    /// A conditional branch forward by 16 bytes, or an indirect branch.
    [[nodiscard]] std::uint32_t opcode(bool conditional) const {
        if (isa_ == isa::Isa::a64) return conditional ? 0x54000080 : 0xd61f0000;  // b.eq .+16, br x0
        return conditional ? 0x0a000002 : 0xe12fff10;                             // beq .+16, bx r0
    }

    isa::Isa isa_;
    bool each_instruction_;
    isa::DecodeOptions decode_;
    bool threads_;
    std::mt19937_64 random_;
    std::vector<Address> places_;
    isa::Place now_{};
    std::uint32_t thread_ = 100;
    std::uint64_t given_ = 0;
};

constexpr unsigned blocks = 2000;

/// Passes all blocks to the unit, the first one soon after the cycle `at`. Returns the cycle of the last one.
std::uint64_t execute(flow::Unit& unit, Execution& execution, std::uint64_t at) {
    for (unsigned n = 0; n < blocks; ++n) {
        at += 1 + n % 7;
        execution.step(unit, at);
    }
    return at;
}

/// The trace of a unit, and its length whenever the unit triggered.
struct Sent {
    std::vector<std::uint8_t> bytes;
    std::vector<std::size_t> triggers;
};

/// The sink of a plan as a model, programmed by the plan: a trace buffer or a trace port.
class PlannedSink {
public:
    explicit PlannedSink(const Plan& plan) : plan_(plan) {
        if (!plan.wanted.sink) {
            port_ = std::make_unique<sink::Tpiu>(sink::TpiuConfig{.widths = 1U << (plan.wanted.port_pins - 1)});
            registers_ = sink::locked_port(*port_);
            return;
        }
        config_ = plan.wanted.sink->buffer;
        // The trace of the trial run has some kilobytes, so a buffer of gigabytes is not needed.
        constexpr std::uint64_t most_bytes = std::uint64_t{1} << 20;
        memory_bytes_ = config_.memory_bytes = std::min(config_.memory_bytes, most_bytes);
        if (config_.kind == sink::SinkKind::etr) {
            // Its program sets size and address.
            config_.memory_bytes = sink::ScatterEntry::page_bytes;
            config_.base = 0;
        }
        buffer_ = std::make_unique<sink::Tmc>(config_);
        registers_ = sink::locked_port(*buffer_);
        // A list with one page after the other; the pages follow the list.
        buffer_->on_list([this](std::uint64_t address) -> std::optional<std::uint32_t> {
            const std::uint64_t list = plan_.wanted.sink->buffer.base, n = (address - list) / 4;
            const std::uint64_t pages = memory_bytes_ / sink::ScatterEntry::page_bytes;
            if (address < list || n >= pages) return std::nullopt;
            return sink::ScatterEntry::word(n + 1 == pages ? sink::ScatterEntry::last : sink::ScatterEntry::page,
                                            list + (n + 1) * sink::ScatterEntry::page_bytes);
        });
    }
    PlannedSink(const PlannedSink&) = delete;
    PlannedSink& operator=(const PlannedSink&) = delete;

    Status enable(const Component& planned) {
        std::vector<flow::RegisterStep> steps = planned.program.enable;
        if (buffer_ && config_.kind == sink::SinkKind::etr)
            for (flow::RegisterStep& step : steps)
                if (step.offset == sink::Tmc::rsz) step.value = static_cast<std::uint32_t>(memory_bytes_ / 4);
        return carry_out(steps);
    }
    Status carry_out(std::span<const flow::RegisterStep> steps) { return flow::carry_out(steps, *registers_, cycle_); }
    [[nodiscard]] coresight::BusSink& end() { return buffer_ ? static_cast<coresight::BusSink&>(*buffer_) : *port_; }
    void trigger() { buffer_ ? buffer_->trigger() : port_->trigger(); }
    /// Whether the sink stopped before software stopped it.
    [[nodiscard]] bool stopped() const { return buffer_ ? buffer_->stopped() : port_->stopped(); }
    [[nodiscard]] bool wrapped() const { return buffer_ && buffer_->wrapped(); }
    /// What a debugger reads from the buffer, or what left through the pins.
    [[nodiscard]] OneSource contents(coresight::TraceId id) {
        OneSource out{id};
        coresight::Deformatter deformatter(
            coresight::DeformatterOptions{buffer_ ? coresight::Framing::aligned : coresight::Framing::tpiu});
        const std::vector<std::uint8_t> bytes = buffer_ ? buffer_->contents() : port_->take();
        deformatter.feed(bytes, out);
        deformatter.finish(out);
        return out;
    }

private:
    const Plan& plan_;
    sink::TmcConfig config_{};
    std::uint64_t memory_bytes_ = 0, cycle_ = 0;
    std::unique_ptr<sink::Tmc> buffer_;
    std::unique_ptr<sink::Tpiu> port_;
    std::unique_ptr<flow::RegisterPort> registers_;
};

/// The place in `trace` of bytes that are not the end of the trace, but contain the byte before `trigger` or follow it.
std::optional<std::size_t> place_around(std::span<const std::uint8_t> trace, std::span<const std::uint8_t> part,
                                        std::size_t trigger) {
    const std::size_t earliest = trigger > part.size() ? trigger - part.size() : 0;
    const auto at =
        std::search(trace.begin() + static_cast<std::ptrdiff_t>(earliest), trace.end(), part.begin(), part.end());
    if (at == trace.end() && !part.empty()) return std::nullopt;
    return static_cast<std::size_t>(at - trace.begin());
}

/// Passes the trace through funnel, replicator and sink, and the unit's triggers through the cross-trigger interfaces
/// or on the trace bus, as programmed, and compares what the sink has after the stop. What the plan does not program is
/// open.
Status store(const Plan& plan, const Sent& sent, Proof& proof) {
    const auto component = [&](std::string_view variable) -> const Component* {
        for (const Component& c : plan.components)
            if (c.variable == variable) return &c;
        return nullptr;
    };
    const Component* const planned = component("sink");
    if (planned == nullptr) return Nothing{};
    PlannedSink end(plan);
    WM_RETURN_IF_ERROR(end.enable(*planned));
    std::uint64_t cycle = 0;
    const coresight::TraceId id{plan.wanted.trace_id};
    sink::Ctm matrix;
    sink::Cti unit_cti(sink::CtiConfig{}), sink_cti(sink::CtiConfig{.acknowledged = 0xff});
    matrix.connect(unit_cti);
    matrix.connect(sink_cti);
    // They passed nothing on before.
    for (sink::Cti* const cti : {&unit_cti, &sink_cti}) cti->write_register(sink::Cti::gate, 0);
    const auto unit_cti_port = sink::locked_port(unit_cti), sink_cti_port = sink::locked_port(sink_cti);
    const Component *const takes = component("sink_cti"), *const gives = component("unit_cti");
    if (takes != nullptr) {
        WM_RETURN_IF_ERROR(flow::carry_out(takes->program.enable, *sink_cti_port, cycle));
        sink_cti.on_trigger_out([&](unsigned output, bool active) {
            if (active && output == plan.wanted.cross_trigger->output) end.trigger();
        });
    }
    sink::NoSink nothing;
    const bool second = plan.wanted.replicator_output == 1U;
    sink::BusReplicator replicator(second ? static_cast<coresight::BusSink&>(nothing) : end.end(),
                                   second ? end.end() : static_cast<coresight::BusSink&>(nothing));
    const auto replicator_port = sink::locked_port(replicator);
    if (const Component* const c = component("replicator")) {
        // It was closed before.
        constexpr std::uint32_t all = 0xff;
        for (const std::uint32_t offset : {sink::BusReplicator::idfilter0, sink::BusReplicator::idfilter1})
            replicator.write_register(offset, all);
        WM_RETURN_IF_ERROR(flow::carry_out(c->program.enable, *replicator_port, cycle));
    }
    sink::BusFunnel funnel(sink::BusFunnel::most_inputs, replicator);
    const auto funnel_port = sink::locked_port(funnel);
    const Component* const joins = component("funnel");
    if (joins != nullptr) WM_RETURN_IF_ERROR(flow::carry_out(joins->program.enable, *funnel_port, cycle));
    if (gives != nullptr) WM_RETURN_IF_ERROR(flow::carry_out(gives->program.enable, *unit_cti_port, cycle));
    const auto pass = [&](coresight::TraceId from, Bytes bytes) {
        if (joins != nullptr)
            funnel.write(*plan.wanted.funnel_port, from, bytes);
        else
            replicator.write(from, bytes);
    };
    std::size_t at = 0;
    for (const std::size_t trigger : sent.triggers) {
        pass(id, Bytes(sent.bytes).subspan(at, trigger - at));
        at = trigger;
        if (gives != nullptr) {
            unit_cti.set_trigger_in(plan.wanted.cross_trigger->input, true);
            unit_cti.set_trigger_in(plan.wanted.cross_trigger->input, false);
        } else {
            pass(coresight::trigger_id, Bytes(&id.value, 1));
        }
    }
    pass(id, Bytes(sent.bytes).subspan(at));
    const bool stopped = end.stopped();
    for (const auto& [c, port] : {std::pair{gives, unit_cti_port.get()},
                                  {joins, funnel_port.get()},
                                  {component("replicator"), replicator_port.get()},
                                  {takes, sink_cti_port.get()}})
        if (c != nullptr) WM_RETURN_IF_ERROR(flow::carry_out(c->program.disable, *port, cycle));
    WM_RETURN_IF_ERROR(end.carry_out(planned->program.disable));
    const bool all = !end.wrapped();
    const OneSource stored = end.contents(id);
    WM_RETURN_IF_ERROR(end.carry_out(planned->program.release));
    const std::span<const std::uint8_t> trace = sent.bytes;
    proof.stored_bytes = stored.bytes.size();
    proof.triggers = sent.triggers.size();
    // The stored bytes begin here.
    std::optional<std::size_t> begin;
    if (stopped && !sent.triggers.empty())
        begin = all ? std::optional<std::size_t>(0) : place_around(trace, stored.bytes, sent.triggers.front());
    else if (stored.bytes.size() <= trace.size() && (!all || stored.bytes.size() == trace.size()))
        begin = trace.size() - stored.bytes.size();
    proof.stored_same =
        begin && *begin + stored.bytes.size() <= trace.size() &&
        std::equal(stored.bytes.begin(), stored.bytes.end(), trace.begin() + static_cast<std::ptrdiff_t>(*begin));
    const bool kept = begin && !sent.triggers.empty() && sent.triggers.front() >= *begin;
    // A buffer marks the first trigger; in one that wrapped, that mark may be gone.
    proof.triggered_same = all || stopped ? stored.triggered.has_value() == kept &&
                                                (!kept || *begin + *stored.triggered == sent.triggers.front())
                                          : true;
    return Nothing{};
}

}  // namespace

Result<Proof> prove(const Plan& plan, std::uint64_t seed) {
    const Wanted& wanted = plan.wanted;
    Proof proof;
    proof.blocks = blocks;
    // Programs the unit like `record`.
    Collected expected;
    Sent sent;
    // The second unit is started after accesses and waits; both start in the same cycle.
    constexpr std::uint64_t begins = 1000;
    {
        Execution execution(*wanted.units, wanted.unit, seed);
        const auto unit =
            wanted.units->make(wanted.cross_trigger ? wanted.cross_trigger->reported : wanted.unit, expected);
        if (flow::UnitSignals* const signals = flow::signals_of(*unit))
            signals->on_trigger([&] { sent.triggers.push_back(expected.bytes.size()); });
        unit->context(execution.context());
        unit->start(execution.begin(), begins);
        execute(*unit, execution, begins);
        unit->finish();
        proof.traced = execution.given() - std::min(execution.given(), unit->untraced());
    }
    Collected given;
    {
        Execution execution(*wanted.units, wanted.unit, seed);
        const auto unit = wanted.units->make_unprogrammed(wanted.unit, seed, given);
        const flow::ComponentProgram& program = plan.components.back().program;
        std::uint64_t cycle = begins / 2;
        unit->context(execution.context());
        // The last write starts the unit, at the same time as the other unit.
        const auto last_write = std::find_if(program.enable.rbegin(), program.enable.rend(), [](const auto& step) {
            return step.kind == flow::RegisterStep::Kind::write;
        });
        const std::span<const flow::RegisterStep> steps = program.enable;
        const auto before = static_cast<std::size_t>(program.enable.rend() - last_write) - 1;
        WM_RETURN_IF_ERROR(flow::carry_out(steps.first(before), *unit->registers(), cycle));
        // The unit may have traced before, in its initial state.
        given.bytes.clear();
        cycle = begins;
        unit->resume(execution.begin(), cycle);
        WM_RETURN_IF_ERROR(flow::carry_out(steps.subspan(before), *unit->registers(), cycle));
        cycle = execute(*unit, execution, begins);
        WM_RETURN_IF_ERROR(flow::carry_out(program.disable, *unit->registers(), cycle));
        WM_RETURN_IF_ERROR(flow::carry_out(program.release, *unit->registers(), cycle));
    }
    proof.wanted_bytes = expected.bytes.size();
    proof.given_bytes = given.bytes.size();
    const auto [a, b] =
        std::mismatch(expected.bytes.begin(), expected.bytes.end(), given.bytes.begin(), given.bytes.end());
    if (a != expected.bytes.end() || b != given.bytes.end())
        proof.differs_at = static_cast<std::uint64_t>(a - expected.bytes.begin());
    if (proof.differs_at) return proof;
    sent.bytes = std::move(given.bytes);
    WM_RETURN_IF_ERROR(store(plan, sent, proof));
    return proof;
}

}  // namespace waymark::program
