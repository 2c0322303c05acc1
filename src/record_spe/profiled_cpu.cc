#include "profiled_cpu.h"

#include <algorithm>

namespace waymark::record {

namespace perf = capture::perf;

namespace {

/// The state at the beginning of a system.
void begin_system(spe::Registers& r, const ProfilerOptions& options) {
    r.pstate.el = spe::EL3;
    r.scr_el3 = {};
    r.hcr_el2 = {};
    const bool ts = r.pmscr_el2.ts, pa = r.pmscr_el2.pa;
    r.pmscr_el1 = {};
    r.pmscr_el2 = {};
    if (options.begins_off) {
        r.mdcr_el2 = {};
        r.mdcr_el3 = {};
        r.pmblimitr_el1 = {};
        r.pmbptr_el1 = {};
    } else {
        r.pmscr_el2.e2spe = r.pmscr_el2.e0hspe = r.pmscr_el1.e1spe = r.pmscr_el1.e0spe = true;
        r.pmscr_el1.ts = r.pmscr_el2.ts = ts;
        r.pmscr_el1.pa = r.pmscr_el2.pa = pa;
    }
    for (const spe::NamedValue& value : options.registers)
        if (!r.set(value.name, value.value)) r.set_field(value.name, value.value);
}

spe::ModelConfig config_of(std::uint32_t number, const ProfilerOptions& options, CounterRatio counter,
                           const spe::ProfilingBuffer& buffer) {
    // A Neoverse N1 is v1.0 and has no SVE; the other modelled CPUs have SVE, and v1.1 is the first version that
    // reports it.
    constexpr std::uint64_t part = 0xff00fff0, neoverse_n1 = 0x4100d0c0;
    const spe::Version least = (options.machine.midr & part) == neoverse_n1 ? spe::Version::v1_0 : spe::Version::v1_1;
    const spe::Version version = std::max(options.spe.version(), least);
    spe::ModelConfig config = options.spe.unit(version, buffer);
    config.choices.seed = options.seed + number;
    config.choices.counter_first = options.machine.counter_hz;
    config.choices.counter_numerator = static_cast<std::uint32_t>(counter.numerator);
    config.choices.counter_denominator = static_cast<std::uint32_t>(counter.denominator);
    if (options.system) begin_system(config.state.regs, options);
    return config;
}

/// The inverse of SpeOptions::program().
ProgrammedEvent event_of(const spe::Registers& r) {
    SpeOptions o;
    o.ts_enable = o.pa_enable = false;
    o.jitter = r.pmsirr_el1.rnd;
    constexpr std::uint8_t discard_mode = 0b10;
    o.discard = r.pmblimitr_el1.fm == discard_mode;
    const spe::PmsfcrEl1& f = r.pmsfcr_el1;
    if (f.ft) {
        o.branch_filter = f.b;
        o.load_filter = f.ld;
        o.store_filter = f.st;
        o.simd_filter = f.simd;
        o.float_filter = f.fp;
        o.branch_filter_mask = f.b_m;
        o.load_filter_mask = f.ld_m;
        o.store_filter_mask = f.st_m;
        o.simd_filter_mask = f.simd_m;
        o.float_filter_mask = f.fp_m;
    }
    const auto value = [&](std::string_view name) { return r.get(name).value_or(0); };
    return {.period = std::uint64_t{r.pmsirr_el1.interval} << 8,
            .config = o.config(),
            .config1 = f.fe ? value("PMSEVFR_EL1") : 0,
            .config2 = f.fl ? value("PMSLATFR_EL1") & 0xfffU : 0,
            .config3 = f.fn_e ? value("PMSNEVFR_EL1") : 0,
            .config4 = f.fds ? ~value("PMSDSFR_EL1") : 0};
}

}  // namespace

void ProfiledCpu::notice_programming() {
    const std::uint64_t chosen = model_.counts().chosen;
    if (chosen != chosen_) programmed_[event_of(model_.registers())] += chosen - chosen_;
    chosen_ = chosen;
}

ProfiledCpu::ProfiledCpu(std::uint32_t number, const ProfilerOptions& options, CounterRatio counter)
    : number_(number),
      buffer_(Address{0x10'0000'0000 + (std::uint64_t{number} << 32)}, options.aux_bytes),
      start_(buffer_.base()),
      system_(options.system),
      model_(config_of(number, options, counter, buffer_),
             options.system ? static_cast<spe::ProfilingMemory&>(written_) : buffer_) {
    if (system_) start_ = model_.pointer();
}

std::uint64_t ProfiledCpu::write_out(perf::PerfWriter& writer, const perf::PerfWriter::At& at, std::uint64_t cycle,
                                     bool last) {
    const spe::Registers before = model_.registers();
    model_.drain(cycle);
    const bool collided = model_.registers().pmbsr_el1.coll;
    const std::vector<std::uint8_t> taken = written_.take();
    const Bytes trace = system_ ? Bytes(taken) : buffer_.written(model_.pointer());
    if (!trace.empty() || collided) {
        perf::Chunk chunk;
        chunk.ring = ring_;
        chunk.reference = number_;
        chunk.index = chunk.cpu = number_;
        if (!trace.empty()) writer.auxtrace(chunk, trace);
        perf::AuxRange range;
        range.offset = ring_;
        range.bytes = trace.size();
        range.flags = collided ? perf::AuxRange::collision : 0;
        writer.aux(range, at);
        ring_ += trace.size();
    }
    if (!last)
        model_.change(cycle, [&](spe::State& s) {
            s.regs.pmscr_el1 = before.pmscr_el1;
            s.regs.pmscr_el2 = before.pmscr_el2;
            s.regs.pmbsr_el1 = {};
            s.regs.pmbptr_el1.ptr = start_.value;
            s.regs.pmblimitr_el1 = before.pmblimitr_el1;
        });
    return trace.size();
}

}  // namespace waymark::record
