#include <string>

#include "macrocell.h"
#include "waymark/core/registers.h"
#include "waymark/etm4/config.h"
#include "waymark/etm4/model.h"
#include "waymark/etm4/registers.h"

namespace waymark::record {

namespace {

/// The address of an exception that is chained to the one that ended (docs/spec/etm4.md, 9).
constexpr std::uint32_t no_return_address = 0xfffffffe;

etm4::ModelConfig etm4_config(const std::string& core) {
    etm4::Config packets;
    packets.version = 0x42;
    packets.profile = isa::CoreProfile::m;
    packets.address_bytes = 4;
    packets.context_id_bytes = packets.vmid_bytes = 0;
    packets.commit_mode_1 = true;
    etm4::ModelConfig config{.registers = etm4::tracing_registers(packets), .profile = packets.profile};
    // Thread and Handler mode (docs/spec/etm4-registers.md, 3).
    config.registers.idr3.exlevel_s = 9;
    config.registers.idr3.exlevel_ns = 0;
    if (core == "Cortex-M7") {
        etm4::Registers& r = config.registers;
        r.idr0 = from_value<etm4::Trcidr0>(0x080006e1);
        r.idr1 = from_value<etm4::Trcidr1>(0x4100f401);
        r.idr2 = from_value<etm4::Trcidr2>(0x00000004);
        r.idr3 = from_value<etm4::Trcidr3>(0x07090004);
        r.idr4 = from_value<etm4::Trcidr4>(0x00114000);
        r.idr5 = from_value<etm4::Trcidr5>(0x90c70002);
    }
    return config;
}

/// The exception type of docs/spec/etm4.md, section 9.
std::uint32_t exception_type(std::uint32_t number) {
    constexpr std::uint32_t first_interrupt = 16, small_numbers = 8, other_interrupts = 0x200;
    if (number < first_interrupt) return number;
    const std::uint32_t interrupt = number - first_interrupt;
    return interrupt + (interrupt < small_numbers ? first_interrupt : other_interrupts);
}

class Etm4 final : public EtmModel {
public:
    Etm4(const std::string& core, ByteSink& trace) : config_(etm4_config(core)), model_(config_, trace) {}

    void start(const CoreInstruction& first, std::uint64_t cycle) override {
        go_to(state_of(first.before));
        model_.start({thumb_at(first.address), cycle});
    }
    void instruction(const Step& step) override {
        const CoreInstruction& i = step.instruction;
        if (i.decoded.waypoint == isa::Waypoint::none) return model_.run(i.bytes, step.cycle);
        const std::uint32_t after = i.address + i.bytes;
        etm4::Retired retired;
        retired.address = {i.address};
        retired.isa = isa::Isa::t32;
        retired.instruction = i.decoded;
        retired.instruction.exception_return = step.returns;
        // The end of a low-overhead loop depends on a count that is not known here.
        retired.passed = passes(i) && (!i.decoded.conditional || step.chained || step.next != after);
        retired.next = thumb_at(step.chained ? no_return_address : step.next);
        retired.cycle = step.cycle;
        go_to(step.after);
        model_.retire_block(retired);
    }
    void exception(const Taken& taken) override {
        etm4::ExceptionTaken out;
        out.type = exception_type(taken.number);
        if (taken.chained) out.back = thumb_at(no_return_address);
        out.handler = thumb_at(taken.vector);
        out.cycle = taken.cycle;
        go_to(taken.after);
        model_.exception(out);
    }
    void discontinuity(std::uint32_t to, const CoreMode& after, std::uint64_t cycle) override {
        go_to(after);
        model_.discontinuity({thumb_at(to), cycle});
    }
    void enable(bool on, std::uint64_t cycle) override {
        (void)model_.write(etm4::Trcprgctlr::offset, on ? 1 : 0, cycle);
    }
    void finish() override { model_.finish(); }
    [[nodiscard]] bool shows_all() const override { return false; }
    [[nodiscard]] std::uint64_t bytes() const override { return model_.counts().bytes; }
    [[nodiscard]] capture::Source source(coresight::TraceId trace_id) const override {
        etm4::Registers r = config_.registers;
        r.traceidr.trace_id = trace_id.value;
        r.prgctlr.enable = true;
        capture::Source out{.name = std::string(etm4_name), .type = "ETM4"};
        const auto add = [&](const auto& value, const char* name) {
            out.registers.push_back({name, to_value(value), {}, 32});
        };
        add(r.prgctlr, "TRCPRGCTLR");
        add(r.configr, "TRCCONFIGR");
        add(r.traceidr, "TRCTRACEIDR");
        add(r.victlr, "TRCVICTLR");
        add(r.idr0, "TRCIDR0");
        add(r.idr1, "TRCIDR1");
        add(r.idr2, "TRCIDR2");
        add(r.idr3, "TRCIDR3");
        add(r.idr4, "TRCIDR4");
        add(r.idr5, "TRCIDR5");
        add(r.idr8, "TRCIDR8");
        return out;
    }

private:
    /// Thread mode has level 0, Handler mode level 3 (docs/spec/etm4.md, 6).
    void go_to(const CoreMode& state) {
        flow::Context context;
        context.ns = state.ns;
        context.el = static_cast<std::uint8_t>(state.handler ? 3 : 0);
        model_.set_context(context);
    }

    const etm4::ModelConfig config_;
    etm4::Model model_;
};

}  // namespace

std::unique_ptr<EtmModel> make_etm4(const std::string& core, ByteSink& trace) {
    return std::make_unique<Etm4>(core, trace);
}

}  // namespace waymark::record
