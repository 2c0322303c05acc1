#include <algorithm>
#include <array>
#include <random>
#include <utility>

#include "waymark/core/gap.h"
#include "waymark/coresight/deformatter.h"
#include "waymark/flow/each_instruction.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/program/plan.h"

namespace waymark::program {

namespace {

struct Collected final : ByteSink {
    void write(Bytes piece) override { bytes.insert(bytes.end(), piece.begin(), piece.end()); }
    std::vector<std::uint8_t> bytes;
};

/// Extracts the bytes of one source from frames.
struct OneSource {
    coresight::TraceId wanted;
    std::vector<std::uint8_t> bytes;
    void data(coresight::TraceId id, Bytes piece, Offset) {
        if (id == wanted) bytes.insert(bytes.end(), piece.begin(), piece.end());
    }
    void trigger(coresight::TraceId, Offset, std::uint8_t) {}
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

/// Passes the trace through funnel, replicator and buffer, as programmed, and returns the contents of the buffer after
/// the stop. What the plan does not program is open.
Status store(const Plan& plan, Bytes trace, Proof& proof) {
    const auto component = [&](std::string_view variable) -> const Component* {
        for (const Component& c : plan.components)
            if (c.variable == variable) return &c;
        return nullptr;
    };
    const Component* const buffer = component("sink");
    if (buffer == nullptr) return Nothing{};
    // The trace of the trial run has some kilobytes, so a buffer of gigabytes is not needed.
    constexpr std::uint64_t most_bytes = std::uint64_t{1} << 20;
    sink::TmcConfig config = plan.wanted.sink->buffer;
    config.memory_bytes = std::min(config.memory_bytes, most_bytes);
    const std::uint64_t pages = config.memory_bytes / sink::ScatterEntry::page_bytes;
    std::vector<flow::RegisterStep> enable = buffer->program.enable;
    if (config.kind == sink::SinkKind::etr) {
        // Its program sets size and address.
        for (flow::RegisterStep& step : enable)
            if (step.offset == sink::Tmc::rsz) step.value = static_cast<std::uint32_t>(config.memory_bytes / 4);
        config.memory_bytes = 4096;
        config.base = 0;
    }
    sink::Tmc tmc(config);
    // A list with one page after the other; the pages follow the list.
    tmc.on_list([&](std::uint64_t address) -> std::optional<std::uint32_t> {
        const std::uint64_t n = (address - plan.wanted.sink->buffer.base) / 4;
        if (address < plan.wanted.sink->buffer.base || n >= pages) return std::nullopt;
        return sink::ScatterEntry::word(n + 1 == pages ? sink::ScatterEntry::last : sink::ScatterEntry::page,
                                        plan.wanted.sink->buffer.base + (n + 1) * sink::ScatterEntry::page_bytes);
    });
    const auto port = sink::locked_port(tmc);
    std::uint64_t cycle = 0;
    WM_RETURN_IF_ERROR(flow::carry_out(enable, *port, cycle));
    const coresight::TraceId id{plan.wanted.trace_id};
    sink::NoSink nothing;
    const bool second = plan.wanted.replicator_output == 1U;
    sink::BusReplicator replicator(second ? static_cast<coresight::BusSink&>(nothing) : tmc,
                                   second ? static_cast<coresight::BusSink&>(tmc) : nothing);
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
    if (joins != nullptr)
        funnel.write(*plan.wanted.funnel_port, id, trace);
    else
        replicator.write(id, trace);
    for (const std::string_view variable : {"funnel", "replicator"})
        if (const Component* const c = component(variable))
            WM_RETURN_IF_ERROR(
                flow::carry_out(c->program.disable, variable == "funnel" ? *funnel_port : *replicator_port, cycle));
    WM_RETURN_IF_ERROR(flow::carry_out(buffer->program.disable, *port, cycle));
    OneSource source{id, {}};
    coresight::Deformatter deformatter;
    deformatter.feed(tmc.contents(), source);
    deformatter.finish(source);
    const std::vector<std::uint8_t>& stored = source.bytes;
    WM_RETURN_IF_ERROR(flow::carry_out(buffer->program.release, *port, cycle));
    proof.stored_bytes = stored.size();
    const bool all = !tmc.wrapped();
    proof.stored_same = stored.size() <= trace.size() && (!all || stored.size() == trace.size()) &&
                        std::equal(stored.rbegin(), stored.rend(), trace.rbegin());
    return Nothing{};
}

}  // namespace

Result<Proof> prove(const Plan& plan, std::uint64_t seed) {
    const Wanted& wanted = plan.wanted;
    Proof proof;
    proof.blocks = blocks;
    // Programs the unit like `record`.
    Collected expected;
    // The second unit is started after accesses and waits; both start in the same cycle.
    constexpr std::uint64_t begins = 1000;
    {
        Execution execution(*wanted.units, wanted.unit, seed);
        const auto unit = wanted.units->make(wanted.unit, expected);
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
    WM_RETURN_IF_ERROR(store(plan, given.bytes, proof));
    return proof;
}

}  // namespace waymark::program
