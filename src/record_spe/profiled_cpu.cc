#include "profiled_cpu.h"

#include <algorithm>

namespace waymark::record {

namespace perf = capture::perf;

namespace {

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
    return config;
}

}  // namespace

ProfiledCpu::ProfiledCpu(std::uint32_t number, const ProfilerOptions& options, CounterRatio counter)
    : number_(number),
      buffer_(Address{0x10'0000'0000 + (std::uint64_t{number} << 32)}, options.aux_bytes),
      model_(config_of(number, options, counter, buffer_), buffer_) {}

std::uint64_t ProfiledCpu::write_out(perf::PerfWriter& writer, const perf::PerfWriter::At& at, std::uint64_t cycle,
                                     bool last) {
    const spe::Registers before = model_.registers();
    model_.drain(cycle);
    const bool collided = model_.registers().pmbsr_el1.coll;
    const Bytes trace = buffer_.written(model_.pointer());
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
            s.regs.pmbptr_el1.ptr = buffer_.base().value;
            s.regs.pmblimitr_el1 = before.pmblimitr_el1;
        });
    return trace.size();
}

}  // namespace waymark::record
