/// Registers of an ETMv3: a unit as a model, programmed in any way while anything runs, stays within its rules, sends
/// trace that both decoders read alike, and traces nothing where its registers are explained to prevent it.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "elements.h"
#include "pft_input.h"
#include "waymark/core/byte_sink.h"
#include "waymark/core/registers.h"
#include "waymark/etm3/decoder.h"
#include "waymark/etm3/model.h"
#include "waymark/flow/blocks.h"
#include "waymark/isa/isa.h"
#include "waymark/pft/access.h"
#include "waymark/pft/explain.h"

namespace {

using namespace waymark;

bool traces_nothing(const etm3::Registers& registers) {
    const protocol::UnitExplanation e = pft::explain(
        registers, {}, [](std::string_view) { return true; }, pft::Macrocell::etmv3);
    for (const protocol::TraceCondition& f : e.findings)
        if (f.text.empty() || f.section.empty()) std::abort();
    return e.stopped();
}

class Driver {
public:
    Driver(const etm3::ModelConfig& config, fuzz::Input& input) : input_(input), model_(config, trace_) {
        model_.start({place_, false, false, cycle_});
        begin_session();
    }

    void run() {
        for (unsigned steps = 0; steps < 300 && !input_.rest().empty(); ++steps) {
            cycle_ += input_.byte() & 0x1fU;
            act(input_.byte());
            check_session();
        }
        model_.finish();
        check_session();
    }

private:
    [[nodiscard]] isa::Place any_place() { return {{std::uint64_t{input_.byte()} * 4}, isa::Isa::a32}; }
    void write(unsigned number, std::uint32_t value, etm3::Requester from) {
        const etm3::AccessResult result = model_.write(number, value, cycle_, from);
        const bool known = pft::register_access(model_.registers(), number).present || number >= 0xc0;
        if (!known && result == etm3::AccessResult::done) std::abort();
        const etm3::ReadResult read = model_.read(number, cycle_, from);
        if (read.result != etm3::AccessResult::done && read.value != 0) std::abort();
    }
    void act(unsigned what) {
        switch (what & 15U) {
            case 0: {
                unsigned number = input_.byte();
                if ((what & 16U) != 0) {
                    const auto& places = pft::register_places();
                    number = places[number % places.size()].number;
                } else if ((what & 64U) != 0) {
                    number += 0x300;
                }
                return write(number, input_.word(),
                             (what & 32U) != 0 ? etm3::Requester::external : etm3::Requester::software);
            }
            case 1:
            case 2: return model_.set_programming((what & 16U) != 0, cycle_);
            case 3: {
                etm3::ExceptionTaken taken;
                taken.number = what >> 4U;
                taken.vector = place_ = any_place();
                taken.cycle = cycle_;
                taken.cancels = (what & 0x40U) != 0;
                return model_.exception(taken);
            }
            case 4: return model_.discontinuity({place_ = any_place(), (what & 16U) != 0, (what & 32U) != 0, cycle_});
            case 5: model_.debug_entry(cycle_); return model_.debug_exit({place_ = any_place(), false, false, cycle_});
            case 6:
                return (what & 16U) != 0   ? model_.flush()
                       : (what & 32U) != 0 ? model_.wait(cycle_)
                       : (what & 64U) != 0 ? model_.trigger()
                                           : model_.request_sync();
            case 7: return model_.set_external_input(1 + (what >> 4U & 3U), (what & 0x80U) != 0);
            case 8: return model_.set_user_mode((what & 16U) != 0);
            case 9: return model_.set_context_id(input_.word());
            case 10: return model_.set_power((what & 0xe0U) != 0, cycle_);
            default: {
                etm3::Executed e;
                e.address = place_.address;
                e.isa = isa::Isa::a32;
                e.instruction.bytes = 4;
                e.instruction.waypoint = (what & 16U) != 0   ? isa::Waypoint::direct
                                         : (what & 32U) != 0 ? isa::Waypoint::indirect
                                                             : isa::Waypoint::none;
                e.passed = (what & 64U) != 0;
                const bool jumps = e.passed && e.instruction.waypoint != isa::Waypoint::none;
                e.next = jumps ? any_place() : isa::Place{{place_.address.value + 4}, isa::Isa::a32};
                e.instruction.target = e.next.address;
                e.cycle = cycle_;
                place_ = e.next;
                return model_.instruction(e);
            }
        }
    }
    void begin_session() {
        const etm3::Registers now = model_.registers();
        first_ = trace_.bytes().size();
        open_ = !now.cr.programming;
        config_ = {};
        config_.registers = now;
        nothing_ = traces_nothing(now);
        traced_ = model_.counts().instructions;
    }
    /// A session ends with the Programming bit, without power, or by a write: its trace reads alike, and where the
    /// registers prevented trace, there is none.
    void check_session() {
        const etm3::Registers now = model_.registers();
        if (open_ && nothing_ && traces_nothing(now) && model_.counts().instructions != traced_) std::abort();
        if (open_ && now.cr.programming) {
            const Bytes bytes = Bytes(trace_.bytes()).subspan(first_);
            if (fuzz::decode<etm3::ReferenceDecoder>(bytes, config_.packets()) !=
                fuzz::decode<etm3::Decoder>(bytes, config_.packets()))
                std::abort();
            for (const std::string& objection : pft::objections_to(now))
                if (objection.find("ETM") == objection.npos) std::abort();
            open_ = false;
        }
        if (!open_ || nothing_ != traces_nothing(now)) begin_session();
    }

    fuzz::Input& input_;
    ByteCollector trace_;
    etm3::Model model_;
    etm3::ModelConfig config_;
    isa::Place place_{{0x8000}, isa::Isa::a32};
    std::uint64_t cycle_ = 1, traced_ = 0;
    std::size_t first_ = 0;
    bool open_ = false, nothing_ = false;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input({data, size});
    etm3::ModelConfig config;
    const unsigned how = input.byte();
    config.registers.ccr = from_value<pft::Etmccr>((how & 1U) != 0 ? input.word() : 0x8d294004);
    if ((how & 2U) != 0) config.choices.fifo_bytes = 64U + how;
    config.registers.cr.cycle_accurate = (how & 4U) != 0;
    config.registers.cr.timestamps = (how & 8U) != 0;
    config.registers.cr.context_id_size = how >> 4U & 3U;
    Driver(config, input).run();
    return 0;
}
