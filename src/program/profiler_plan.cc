#include "waymark/program/profiler_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <set>
#include <utility>

#include "waymark/spe/architecture.h"

namespace waymark::program {

namespace {

using Kind = ProfilerStep::Kind;

constexpr std::uint64_t page_bytes = 4096;

/// The unit that `record` models for these options.
spe::ModelConfig unit_of(const ProfilerPlan& plan, const spe::ProfilingBuffer& buffer, std::uint64_t seed) {
    spe::ModelConfig config = plan.options.unit(plan.options.version(), buffer);
    config.choices.seed = seed;
    return config;
}

ProfilerStep write(std::string_view name, std::uint64_t value, std::string why) {
    return {Kind::write, std::string(name), value, std::move(why)};
}
ProfilerStep barrier(Kind kind, std::string why) { return {kind, {}, 0, std::move(why)}; }

/// Profiling ends, and the samples go to memory.
void add_stop(std::vector<ProfilerStep>& out) {
    out.push_back(write("PMSCR_EL2", 0, "no more samples"));
    out.push_back(barrier(Kind::isb, "from here on"));
    out.push_back(barrier(Kind::psb_csync, "the samples taken so far are on their way"));
    out.push_back(barrier(Kind::dsb, "and in memory"));
    out.push_back(write("PMBLIMITR_EL1", 0, "turn the buffer off"));
    out.push_back(barrier(Kind::isb, "before the buffer's registers are read or written"));
}

std::vector<std::string> needs_of(const record::SpeOptions& options) {
    std::vector<std::string> out{fmt::format("ID_AA64DFR0_EL1.PMSVer is {} or more: {}",
                                             static_cast<unsigned>(options.version()), spe::name(options.version())),
                                 "MDCR_EL2.E2PB is 0 and MDCR_EL3.NSPB is 3: EL2 owns the buffer"};
    const auto need = [&](bool wanted, const char* text) {
        if (wanted) out.emplace_back(text);
    };
    need(options.event_filter != 0, "PMSIDR_EL1.FE is 1: filtering by events");
    need(options.branch_filter || options.load_filter || options.store_filter,
         "PMSIDR_EL1.FT is 1: filtering by types of operations");
    need(options.min_latency != 0, "PMSIDR_EL1.FL is 1: filtering by latency");
    need(options.inv_event_filter != 0, "PMSIDR_EL1.FnE is 1: filtering by events that did not happen");
    need(options.inv_event_filter != 0, "MDCR_EL3.EnPMSN is 1: PMSNEVFR_EL1 is written without a trap");
    need(options.inv_data_src_filter != 0, "PMSIDR_EL1.FDS is 1: filtering by data sources");
    need(options.inv_data_src_filter != 0, "MDCR_EL3.EnPMS3 is 1: PMSDSFR_EL1 is written without a trap");
    need(options.extended_types(), "PMSIDR_EL1.EFT is 1: exact types, SIMD and floating point");
    return out;
}

/// The registers that decide what is sampled. Others may trap to EL3.
std::vector<std::string_view> filter_registers(const record::SpeOptions& options) {
    std::vector<std::string_view> out{"PMSFCR_EL1", "PMSEVFR_EL1", "PMSLATFR_EL1", "PMSIRR_EL1", "PMSICR_EL1"};
    if (options.inv_event_filter != 0) out.push_back("PMSNEVFR_EL1");
    if (options.inv_data_src_filter != 0) out.push_back("PMSDSFR_EL1");
    return out;
}

std::string_view why(std::string_view name) {
    if (name == "PMSFCR_EL1") return "which filters count";
    if (name == "PMSEVFR_EL1") return "events that must have happened";
    if (name == "PMSNEVFR_EL1") return "events that must not have happened";
    if (name == "PMSDSFR_EL1") return "data sources of loads to keep";
    if (name == "PMSLATFR_EL1") return "least latency";
    if (name == "PMSIRR_EL1") return "how often a sample is taken";
    return "count anew to the first sample";
}

/// Makes the steps on a model. Errors: `bad_format`: the architecture refuses one.
Status carry_out(std::span<const ProfilerStep> steps, spe::Model& model, std::uint64_t& cycle) {
    for (const ProfilerStep& step : steps) {
        ++cycle;
        switch (step.kind) {
            case Kind::isb: break;  // the model applies each write at once
            case Kind::psb_csync: model.psb_csync(); break;
            case Kind::dsb: model.dsb(); break;
            case Kind::write: {
                const spe::SysRegAccess access = check_register_access(model.state(), step.name);
                if (access != spe::SysRegAccess::OK)
                    return Error{Errc::bad_format, fmt::format("a write to {}: {}", step.name, spe::name(access))};
                bool known = false;
                model.change(cycle, [&](spe::State& s) { known = s.regs.set(step.name, step.value); });
                WM_CHECK(known);
                break;
            }
        }
    }
    return Nothing{};
}

/// Operations as a program may execute them: the same for each unit.
class Operations {
public:
    explicit Operations(std::uint64_t seed) : random_(seed) {}
    spe::Executed next() {
        spe::Executed e;
        e.pc = Address{0x400000 + 4 * (count_++ % 1000)};
        e.cycle = cycle_ += 1 + below(3);
        e.total_latency = 1 + (below(8) == 0 ? below(600) : below(8));
        e.issue_latency = std::min(e.total_latency, below(4));
        using spe::Operation;
        switch (below(4)) {
            case 0:
                e.operation.kind = Operation::Kind::branch;
                e.operation.conditional = below(2) == 0;
                e.condition_failed = e.operation.conditional && below(2) == 0;
                e.target.address = Address{0x400000 + 4 * std::uint64_t{below(1000)}};
                if (below(4) == 0) e.events |= spe::event::mispredict;
                break;
            case 1:
            case 2:
                e.operation.kind = below(4) == 0 ? Operation::Kind::simd_fp : Operation::Kind::general;
                e.operation.load = below(2) == 0;
                e.operation.store = !e.operation.load;
                e.access.emplace();
                e.access->address = e.access->physical.emplace(Address{0x10000 + 8 * std::uint64_t{below(4096)}});
                e.events |= spe::event::l1d_access | spe::event::tlb_access;
                if (below(4) == 0) e.events |= spe::event::l1d_refill;
                if (below(8) == 0) e.events |= spe::event::tlb_walk;
                if (below(8) == 0) e.events |= spe::event::llc_access | spe::event::llc_miss;
                e.data_source = static_cast<std::uint16_t>(below(16));
                break;
            default: e.operation.floating_point = below(4) == 0; break;
        }
        return e;
    }
    void begin(std::uint64_t cycle) { cycle_ = cycle; }
    [[nodiscard]] std::uint64_t cycle() const { return cycle_; }

private:
    std::uint32_t below(std::uint32_t n) { return static_cast<std::uint32_t>(random_() % n); }
    std::mt19937_64 random_;
    std::uint64_t count_ = 0, cycle_ = 0;
};

/// Executes operations at EL0 for a number of samples.
std::uint64_t execute(spe::Model& model, Operations& operations, std::uint64_t count) {
    for (std::uint64_t n = 0; n < count; ++n) model.retire(operations.next());
    return operations.cycle();
}

}  // namespace

Result<ProfilerPlan> make_profiler_plan(const record::SpeOptions& options, std::uint64_t buffer,
                                        std::uint64_t buffer_bytes) {
    const auto wrong = [](std::string message) { return Error{Errc::usage, std::move(message)}; };
    WM_RETURN_IF_ERROR(record::check(options));
    if (buffer % page_bytes != 0)
        return wrong(fmt::format("--buffer-address {:#x}: a profiling buffer begins at a multiple of {:#x}", buffer,
                                 page_bytes));
    if (buffer_bytes == 0 || buffer_bytes % page_bytes != 0)
        return wrong(
            fmt::format("--buffer-size {}: a profiling buffer has a multiple of {} bytes", buffer_bytes, page_bytes));
    if (buffer > ~std::uint64_t{0} - buffer_bytes)
        return wrong(fmt::format("--buffer-address {:#x}: the buffer reaches beyond the last address", buffer));
    ProfilerPlan plan;
    plan.options = options;
    plan.buffer = buffer;
    plan.buffer_bytes = buffer_bytes;
    plan.needs = needs_of(options);
    // Only its place counts here.
    const spe::Registers wanted = [&] {
        spe::ModelConfig config = options.unit(options.version(), spe::ProfilingBuffer(Address{0}, page_bytes));
        config.state.regs.pmbptr_el1.ptr = buffer;
        config.state.regs.pmblimitr_el1.limit = (buffer + buffer_bytes) / page_bytes;
        return config.state.regs;
    }();
    const auto value = [&](std::string_view name) { return wanted.get(name).value_or(0); };
    add_stop(plan.start);
    plan.start.push_back(write("PMBSR_EL1", 0, "no event of the buffer is waiting"));
    plan.start.push_back(write("PMBPTR_EL1", value("PMBPTR_EL1"), "the beginning of the buffer"));
    for (const std::string_view name : filter_registers(options))
        plan.start.push_back(write(name, value(name), std::string(why(name))));
    plan.start.push_back(write("PMBLIMITR_EL1", value("PMBLIMITR_EL1"), "the end of the buffer, and turn it on"));
    plan.start.push_back(barrier(Kind::isb, "all of this comes before the first sample"));
    plan.start.push_back(write("PMSCR_EL2", value("PMSCR_EL2"), "sample EL0"));
    plan.start.push_back(barrier(Kind::isb, "from here on"));
    add_stop(plan.stop);
    return plan;
}

std::vector<std::string> order_objections(const ProfilerPlan& plan) {
    std::vector<std::string> out;
    // Facts that are certain; at first nothing is known.
    bool stopped = false, stop_seen = false, synchronised = false, drained = false, off = false, off_seen = false;
    bool pending = false;  // registers were written since the last ISB
    unsigned number = 0;
    const auto object = [&](const ProfilerStep& step, std::string_view text) {
        out.push_back(fmt::format("step {}, {}: {}", number, step.name, text));
    };
    for (const auto* const list : {&plan.start, &plan.stop}) {
        for (const ProfilerStep& step : *list) {
            ++number;
            if (step.kind == Kind::isb) {
                stop_seen = stopped;
                off_seen = off;
                pending = false;
            } else if (step.kind == Kind::psb_csync) {
                synchronised = stop_seen;
            } else if (step.kind == Kind::dsb) {
                drained = synchronised;
            } else if (step.name.starts_with("PMSCR")) {
                if (step.value == 0) {
                    stopped = true;
                    continue;
                }
                if (pending) object(step, "profiling is turned on before an ISB after the other registers");
                if (off) object(step, "profiling is turned on while the buffer is off");
                stopped = stop_seen = synchronised = drained = false;
            } else if (step.name == "PMBLIMITR_EL1") {
                const bool on = (step.value & 1U) != 0;
                if (!on && !drained)
                    object(step, "the buffer is turned off before PSB CSYNC and DSB: samples are lost");
                if (on && !stop_seen) object(step, "the buffer is turned on while profiling may be on");
                off = !on;
                if (on) off_seen = false;
                pending = true;
            } else {
                if (step.name.starts_with("PMB") && !off_seen) object(step, "it is written while the buffer may be on");
                if (!stop_seen) object(step, "it is written while profiling may be on");
                pending = true;
            }
        }
        if (list == &plan.start && (stopped || off)) out.emplace_back("at the end of the start profiling is off");
    }
    if (!drained || !off_seen)
        out.emplace_back("at the end of the stop the buffer is not off, with all samples in memory");
    return out;
}

Result<ProfilerProof> prove(const ProfilerPlan& plan, std::uint64_t seed) {
    ProfilerProof proof;
    proof.objections = order_objections(plan);
    // Some hundred samples; the trial run does not need the whole buffer.
    constexpr std::uint64_t samples = 300, begins = 1000, most_bytes = std::uint64_t{1} << 16;
    const std::uint64_t bytes = std::min(plan.buffer_bytes, most_bytes);
    proof.operations = std::min<std::uint64_t>(samples * std::max(plan.options.period, 256U), 120'000);
    std::vector<std::uint8_t> wanted, given;
    const auto written = [](const spe::ProfilingBuffer& buffer, const spe::Model& model) {
        const Bytes all = buffer.written(model.pointer());
        return std::vector<std::uint8_t>(all.begin(), all.end());
    };
    {
        spe::ProfilingBuffer buffer(Address{plan.buffer}, bytes);
        spe::Model model(unit_of(plan, buffer, seed), buffer);
        Operations operations(seed);
        operations.begin(begins);
        model.drain(execute(model, operations, proof.operations) + 1);
        wanted = written(buffer, model);
        proof.samples = model.counts().with(spe::Fate::written);
    }
    {
        spe::ProfilingBuffer buffer(Address{plan.buffer}, bytes);
        spe::ModelConfig config = unit_of(plan, buffer, seed);
        const spe::Registers right = config.state.regs;
        spe::Registers found = right;
        std::mt19937_64 random(seed);
        for (const std::string_view name : filter_registers(plan.options)) found.set(name, random());
        for (const std::string_view name : {"PMSCR_EL2", "PMBSR_EL1", "PMBPTR_EL1", "PMBLIMITR_EL1"})
            found.set(name, random());
        found.pstate.el = spe::EL2;
        // Firmware lets EL2 write the registers (needs_of()).
        for (const std::string_view field : {"MDCR_EL3.EnPMSN", "MDCR_EL3.EnPMS3"}) WM_CHECK(found.set_field(field, 1));
        config.state.regs = found;
        spe::Model model(config, buffer);
        std::uint64_t cycle = begins / 2;
        std::vector<ProfilerStep> start = plan.start;
        for (ProfilerStep& step : start)  // the buffer of the trial run is smaller
            if (step.name == "PMBLIMITR_EL1" && (step.value & 1U) != 0) {
                spe::PmblimitrEl1 limit = from_value<spe::PmblimitrEl1>(step.value);
                limit.limit = (plan.buffer + bytes) / page_bytes;
                step.value = to_value(limit);
            }
        WM_RETURN_IF_ERROR(carry_out(start, model, cycle));
        model.set_exception_level(begins, spe::EL0);
        Operations operations(seed);
        operations.begin(begins);
        cycle = execute(model, operations, proof.operations) + 1;
        model.set_exception_level(cycle, spe::EL2);
        WM_RETURN_IF_ERROR(carry_out(plan.stop, model, cycle));
        given = written(buffer, model);
    }
    proof.wanted_bytes = wanted.size();
    proof.given_bytes = given.size();
    const auto [a, b] = std::mismatch(wanted.begin(), wanted.end(), given.begin(), given.end());
    if (a != wanted.end() || b != given.end()) proof.differs_at = static_cast<std::uint64_t>(a - wanted.begin());
    return proof;
}

}  // namespace waymark::program
