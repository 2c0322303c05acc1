/// A unit under test: configurations, operations, and the fate of samples.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "spe/state.h"
#include "spe/support.h"
#include "waymark/spe/model.h"

namespace waymark::spe::test {

struct Witness final : SampleWitness {
    std::vector<SampleFate> samples;
    void sampled(const SampleFate& sample) override { samples.push_back(sample); }

    [[nodiscard]] std::vector<std::uint64_t> members(Fate fate) const {
        std::vector<std::uint64_t> out;
        for (const SampleFate& s : samples)
            if (s.fate == fate) out.push_back(s.member);
        return out;
    }
    [[nodiscard]] std::vector<Record> written() const {
        std::vector<Record> out;
        for (const SampleFate& s : samples)
            if (s.fate == Fate::written) out.push_back(s.record.value());
        return out;
    }
};

/// A unit of v1.0 at EL1, which owns the buffer, without contexts and timestamps; it chooses every 257th member, and
/// writes records without padding.
inline ModelConfig plain_config(const ProfilingBuffer& buffer) {
    ModelConfig config;
    State& s = config.state;
    s.regs.scr_el3.ns = true;
    s.regs.mdcr_el3.nspb = 0b11;
    s.regs.mdcr_el2.e2pb = 0b11;
    s.regs.pmscr_el1.e0spe = s.regs.pmscr_el1.e1spe = true;
    s.regs.pmblimitr_el1.e = true;
    s.regs.pmblimitr_el1.limit = buffer.end().value >> 12;
    s.regs.pmbptr_el1.ptr = buffer.base().value;
    s.regs.pmsirr_el1.interval = 1;
    PmsidrEl1& id = s.regs.pmsidr_el1;
    id.fe = id.ft = id.fl = id.arch_inst = id.lds = true;
    id.count_size = 2;
    id.max_size = 6;
    s.regs.pstate.el = EL1;
    return config;
}

inline Executed other(std::uint64_t pc, std::uint64_t cycle, std::uint32_t total = 1) {
    Executed op;
    op.pc = {pc};
    op.cycle = cycle;
    op.total_latency = total;
    return op;
}
inline Executed load(std::uint64_t pc, std::uint64_t cycle, std::uint64_t address, std::uint32_t total = 4) {
    Executed op = other(pc, cycle, total);
    op.operation.kind = Operation::Kind::general;
    op.operation.load = true;
    op.access = Access{.address = {address}, .physical = Address{address + 0x8000'0000}};
    return op;
}
inline Executed store(std::uint64_t pc, std::uint64_t cycle, std::uint64_t address, std::uint32_t total = 4) {
    Executed op = load(pc, cycle, address, total);
    op.operation.load = false;
    op.operation.store = true;
    return op;
}
inline Executed branch(std::uint64_t pc, std::uint64_t cycle, std::uint64_t target, bool taken = true) {
    Executed op = other(pc, cycle);
    op.operation.kind = Operation::Kind::branch;
    op.operation.conditional = !taken;
    op.condition_failed = !taken;
    op.target.address = {target};
    return op;
}

/// A unit with its memory.
class UnitUnderTest {
public:
    ProfilingBuffer buffer{Address{0x1000}, 0x1000};
    ModelConfig config = plain_config(buffer);
    Witness witness;

    /// The model; it is made at the first call, with the `config` of that time.
    Model& model() {
        if (!model_) {
            const Status status = config.check();
            EXPECT_TRUE(status) << status.error().message;
            model_ = std::make_unique<Model>(config, buffer, &witness);
        }
        return *model_;
    }
    Registers& regs() { return config.state.regs; }

    /// Skips to the next chosen member, and makes `op` that member; time advances to its end.
    void sample(Executed op) {
        op.cycle = cycle_;
        cycle_ += op.total_latency;
        const std::uint64_t chosen = model().counts().chosen;
        while (model().counts().chosen == chosen && !model().pmbirq()) {
            model().skip(model().until_next());
            model().retire(op);
        }
        model().advance(cycle_);
    }
    /// The bytes below the write pointer.
    [[nodiscard]] Bytes bytes() { return buffer.written(model().pointer()); }
    [[nodiscard]] std::vector<std::uint64_t> cold_start_members(std::uint64_t members) {
        for (std::uint64_t i = 1; i <= members; ++i) model().retire(other(i, i));
        model().psb_csync();
        return witness.members(Fate::written);
    }
    void set_cycle(std::uint64_t cycle) { cycle_ = cycle; }

private:
    std::unique_ptr<Model> model_;
    std::uint64_t cycle_ = 0;
};

}  // namespace waymark::spe::test
