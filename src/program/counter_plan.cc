#include "waymark/program/counter_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "waymark/dpu/vtb.h"
#include "waymark/flow/register_steps.h"

namespace waymark::program {

namespace {

using flow::wait_step, flow::write_step;

constexpr std::uint32_t trace_buffer_active = 1U << 6;  ///< DP_SR.TWBA
constexpr std::uint32_t all_causes = 0xdff;             ///< the bits of DP_MR that writing 1 clears

/// The register program of the options, with the buffer at its place.
dpu::RegisterProgram program_at(const CounterWanted& wanted) {
    dpu::RegisterProgram out = *wanted.options.program;
    std::uint32_t from = 0;
    for (const dpu::RegisterWrite& w : out)
        if (w.offset == dpu::DpTsa::offset) from = w.value;
    for (dpu::RegisterWrite& w : out)
        for (const std::uint32_t pointer :
             {dpu::DpTsa::offset, dpu::DpTea::offset, dpu::DpTer::offset, dpu::DpTw::offset})
            if (w.offset == pointer) w.value += wanted.buffer - from;
    return out;
}

flow::RegisterStep write(std::uint32_t offset, std::uint32_t value, std::string why) {
    return write_step(offset, value, std::string(dpu::Registers::find(offset)->name), std::move(why));
}

/// Disables the counters of a triad at once.
template <class Control>
flow::RegisterStep stop_triad(const char* why) {
    Control control;
    control.tdm = static_cast<std::uint8_t>(dpu::Selector::immediate);
    control.tcen = true;
    return write(Control::offset, to_value(control), why);
}

void add_stop(std::vector<flow::RegisterStep>& out, std::uint32_t trace_control) {
    auto off = from_value<dpu::DpTc>(trace_control);
    off.en = off.sample = off.tmpdis = false;
    out.push_back(write(dpu::DpTc::offset, to_value(off), "stop tracing; what waits goes to memory"));
    out.push_back(wait_step(dpu::DpSr::offset, trace_buffer_active, 0, "DP_SR", "until it is in memory"));
    out.push_back(stop_triad<dpu::DpTac>("stop the counters of triad A"));
    out.push_back(stop_triad<dpu::DpTbc>("stop the counters of triad B"));
}

/// The unit's registers, each access a cycle.
class Port final : public flow::RegisterPort {
public:
    explicit Port(dpu::Model& model, std::vector<dpu::Burst>& bursts) : model_(model), bursts_(bursts) {}
    flow::AccessResult write(unsigned offset, std::uint32_t value, std::uint64_t) override {
        const auto about = dpu::Registers::find(static_cast<std::uint32_t>(offset));
        if (!about) return flow::AccessResult::not_present;
        if (about->access == dpu::Permission::read_only) return flow::AccessResult::read_only;
        model_.write(static_cast<std::uint32_t>(offset), value);
        step({});
        return flow::AccessResult::done;
    }
    flow::ReadResult read(unsigned offset, std::uint64_t) override {
        step({});
        return {flow::AccessResult::done, model_.read(static_cast<std::uint32_t>(offset))};
    }
    void step(const dpu::CycleInput& in) {
        const dpu::CycleOutput& out = model_.step(in);
        bursts_.insert(bursts_.end(), out.bursts.begin(), out.bursts.end());
        errors_ += out.errors.size();
    }
    [[nodiscard]] std::size_t errors() const { return errors_; }

private:
    dpu::Model& model_;
    std::vector<dpu::Burst>& bursts_;
    std::size_t errors_ = 0;
};

/// Cycles of a core at work, the same for each unit.
class Activity {
public:
    explicit Activity(std::uint64_t seed) : random_(seed) {}
    void run(Port& port, unsigned cycles) {
        for (unsigned n = 0; n < cycles; ++n) {
            dpu::CycleInput in;
            in.ctx = context_;
            for (unsigned wire = 0; wire < dpu::event_wires; ++wire)
                if (!dpu::is_own(static_cast<dpu::EventWire>(wire)) && below(4) == 0) in.wire[wire] = 1;
            dpu::EonceItem item;
            constexpr dpu::ItemKind kinds[] = {dpu::ItemKind::cof, dpu::ItemKind::call, dpu::ItemKind::ret,
                                               dpu::ItemKind::mark, dpu::ItemKind::rte};
            item.kind = kinds[below(5)];
            item.src = 0x1000 + 2 * below(100);
            item.dst = 0x1000 + 2 * below(100);
            if (below(20) == 0) {
                if (item.kind == dpu::ItemKind::rte) {
                    context_.pid = static_cast<std::uint8_t>(below(4));
                    context_.supervisor = !context_.supervisor;
                }
                item.after = context_;
                in.items = {&item, 1};
            }
            port.step(in);
        }
    }

private:
    std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
    std::mt19937_64 random_;
    dpu::CoreContext context_{};
};

std::vector<std::uint8_t> words_of(const std::vector<dpu::Burst>& bursts) {
    std::vector<std::uint8_t> out;
    const auto word = [&](std::uint32_t w) {
        for (unsigned byte = 0; byte < 4; ++byte) out.push_back(static_cast<std::uint8_t>(w >> 8 * byte));
    };
    for (const dpu::Burst& burst : bursts) {
        word(burst.address);
        for (const std::uint32_t w : burst.used()) word(w);
    }
    return out;
}

}  // namespace

Result<Plan> make_counter_plan(const CounterWanted& wanted) {
    const auto wrong = [](std::string message) { return Error{Errc::usage, std::move(message)}; };
    if (wanted.buffer % dpu::line_bytes != 0)
        return wrong(fmt::format("--buffer-address {:#x}: a virtual trace buffer begins at a multiple of {}",
                                 wanted.buffer, dpu::line_bytes));
    if (wanted.options.buffer_bytes > 0xffffffff - std::uint64_t{wanted.buffer})
        return wrong(fmt::format("--buffer-address {:#x}: the buffer reaches beyond the last address", wanted.buffer));
    const dpu::RegisterProgram program = program_at(wanted);
    for (const dpu::RegisterWrite& w : program)
        if (w.cycle != 0)
            return wrong(
                fmt::format("line {}: a script writes all registers at once; leave out '@{}'", w.line, w.cycle));
    Component unit{"Debug and Profiling Unit", "unit", wanted.base, {}};
    auto& on = unit.program.enable;
    add_stop(on, 0);
    on.push_back(write(dpu::DpMr::offset, all_causes, "no cause of an interrupt or debug request is left"));
    // Registers that the program does not write have their values after a reset.
    std::set<std::uint32_t> written;
    for (const dpu::RegisterWrite& w : program) written.insert(w.offset);
    const dpu::Registers at_reset;
    dpu::Registers::for_each(at_reset, [&]<class Register>(const Register& r) {
        const bool acts = Register::offset == dpu::DpTac::offset || Register::offset == dpu::DpTbc::offset ||
                          Register::offset == dpu::DpTc::offset || Register::offset == dpu::DpMr::offset ||
                          Register::offset == dpu::DpTd::offset;
        if (Register::access != dpu::Permission::read_only && !acts && !written.contains(Register::offset))
            on.push_back(write(Register::offset, to_value(r), std::string(Register::title) + ": not used"));
    });
    for (const dpu::RegisterWrite& w : program) {
        const auto about = dpu::Registers::find(w.offset);
        on.push_back(write(w.offset, w.value, std::string(about->title)));
    }
    std::uint32_t control = 0;
    for (const dpu::RegisterWrite& w : program)
        if (w.offset == dpu::DpTc::offset) control = w.value;
    add_stop(unit.program.disable, control);
    unit.program.needs.emplace_back(
        "M_CR.DPUE (bit 4) is 1: the unit is enabled; only a reset lets software do this again");
    Plan plan;
    plan.components.push_back(std::move(unit));
    return plan;
}

Result<Proof> prove_counters(const CounterWanted& wanted, const Plan& plan, std::uint64_t seed) {
    constexpr unsigned cycles = 5000;
    Proof proof;
    proof.blocks = cycles;
    proof.counted = "cycles";
    dpu::ModelConfig config;
    config.eonce = wanted.options.eonce;
    config.choices = wanted.options.choices;
    const flow::ComponentProgram& program = plan.components.front().program;
    const auto finish = [&](Port& port, dpu::Model& model, std::vector<dpu::Burst>& bursts,
                            std::vector<std::uint8_t>& out) -> Status {
        std::uint64_t cycle = 0;
        WM_RETURN_IF_ERROR(flow::carry_out(program.disable, port, cycle));
        out = words_of(bursts);
        for (const std::uint32_t value : model.values())
            for (unsigned byte = 0; byte < 4; ++byte) out.push_back(static_cast<std::uint8_t>(value >> 8 * byte));
        return Nothing{};
    };
    std::vector<std::uint8_t> expected, given;
    {
        dpu::Model model(config);
        std::vector<dpu::Burst> bursts;
        Port port(model, bursts);
        // Each access takes a cycle, in which some counters count.
        for (const dpu::RegisterWrite& w : program_at(wanted)) port.write(w.offset, w.value, 0);
        Activity activity(seed);
        activity.run(port, cycles);
        proof.traced = model.counts().entries;
        WM_RETURN_IF_ERROR(finish(port, model, bursts, expected));
    }
    {
        dpu::Model model(config);
        std::vector<dpu::Burst> bursts;
        Port port(model, bursts);
        std::mt19937_64 random(seed);
        // Some other program ran before: it counted and traced.
        const dpu::Registers any;
        dpu::Registers::for_each(any, [&]<class Register>(const Register&) {
            const auto value = static_cast<std::uint32_t>(random());
            if (Register::access != dpu::Permission::read_only && dpu::wrong_value(Register::offset, value).empty())
                model.write(Register::offset, value);
        });
        dpu::DpTac before;
        before.tenm = static_cast<std::uint8_t>(dpu::Selector::immediate);
        before.tcen = true;
        before.ceg = static_cast<std::uint8_t>(random() % dpu::event_sets);
        model.write(dpu::DpTac::offset, to_value(before));
        model.write(dpu::DpTsa::offset, 0x40000000);
        model.write(dpu::DpTea::offset, 0x40000fe0);
        model.write(dpu::DpTw::offset, 0x40000000);
        dpu::DpTc tc;
        tc.en = true;
        tc.tmode = static_cast<std::uint8_t>(dpu::TraceMode::task);
        model.write(dpu::DpTc::offset, to_value(tc));
        Activity earlier(seed + 1);
        earlier.run(port, 500);
        std::uint64_t cycle = 0;
        WM_RETURN_IF_ERROR(flow::carry_out(program.enable, port, cycle));
        bursts.clear();
        Activity activity(seed);
        activity.run(port, cycles);
        WM_RETURN_IF_ERROR(finish(port, model, bursts, given));
    }
    proof.wanted_bytes = expected.size();
    proof.given_bytes = given.size();
    const auto [a, b] = std::mismatch(expected.begin(), expected.end(), given.begin(), given.end());
    if (a != expected.end() || b != given.end()) proof.differs_at = static_cast<std::uint64_t>(a - expected.begin());
    return proof;
}

}  // namespace waymark::program
