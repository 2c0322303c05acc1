/// Registers of ETMv4 and ETE. Any values make a configuration, and each wrong value is reported with its register; a
/// unit as a model, programmed in any way while anything runs, stays within its rules and sends trace that decoders
/// understand.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "elements.h"
#include "etm4_input.h"
#include "waymark/core/byte_sink.h"
#include "waymark/core/registers.h"
#include "waymark/etm4/access.h"
#include "waymark/etm4/decoder.h"
#include "waymark/etm4/model.h"
#include "waymark/etm4/reference_decoder.h"

namespace {

using namespace waymark;

/// A sentence about registers names at least one.
void check_sentence(const std::string& text) {
    if (text.find("TRC") == text.npos || text.size() < 20) std::abort();
}

/// With any registers: notes in words, and a configuration that its own registers give again.
void check_config(fuzz::Input& input) {
    etm4::RegisterValues r;
    unsigned given = input.byte();
    given = given << 8U | input.byte();
    for (auto* value : {&r.configr, &r.traceidr, &r.idr0, &r.idr1, &r.idr2, &r.idr8, &r.devarch, &r.idr9, &r.idr10,
                        &r.idr11, &r.idr12, &r.idr13}) {
        if ((given & 1U) != 0) *value = input.word();
        given >>= 1U;
    }
    for (const auto profile : {etm4::CoreProfile::a, etm4::CoreProfile::r, etm4::CoreProfile::m}) {
        const etm4::ReadConfig read = etm4::read_config(r, profile);
        for (const std::string& note : read.notes) check_sentence(note);
        // Assumed values are among the written registers, so nothing is left to assume when they are read again.
        const etm4::RegisterValues written = etm4::to_registers(read.config);
        const etm4::ReadConfig again = etm4::read_config(written, profile);
        const etm4::ReadConfig third = etm4::read_config(etm4::to_registers(again.config), profile);
        if (third.config != again.config) std::abort();
    }
}

class Driver {
public:
    Driver(const etm4::ModelConfig& config, fuzz::Input& input)
        : input_(input), config_(config), model_(config, trace_) {
        model_.set_context(context());
        model_.discontinuity(arrival());
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
    [[nodiscard]] flow::Context context() {
        const unsigned b = input_.byte();
        flow::Context c;
        c.el = static_cast<std::uint8_t>(b & 3U);
        c.hyp = c.el == 2;
        c.ns = (b & 4U) != 0;
        c.nse = (b & 8U) != 0;
        c.aarch64 = true;
        if ((b & 0x10U) != 0) c.context_id = b;
        if ((b & 0x20U) != 0) c.vmid = b;
        return c;
    }
    [[nodiscard]] etm4::Arrival arrival() {
        place_ = {{std::uint64_t{input_.byte()} * 4}, isa::Isa::a64};
        if ((place_.address.value & 0x80U) != 0) place_.address.value |= 0xffff'8000'0000'0000;
        return {place_, cycle_};
    }
    void write(unsigned offset, std::uint32_t value, etm4::Requester from) {
        const etm4::AccessResult result = model_.write(offset, value, cycle_, from);
        if (etm4::register_at(offset) == nullptr && result == etm4::AccessResult::done) std::abort();
        const etm4::ReadResult read = model_.read(offset, cycle_, from);
        if (read.result != etm4::AccessResult::done && read.value != 0) std::abort();
    }
    void act(unsigned what) {
        using isa::Waypoint;
        switch (what & 15U) {
            case 0: {
                // Mostly registers that are there.
                unsigned offset = input_.byte();
                offset = (offset << 8U | input_.byte()) & 0xffcU;
                if ((what & 16U) != 0) {
                    const auto& places = etm4::register_places();
                    offset = places[offset / 4 % places.size()].offset;
                }
                // Software unlocks a unit before it programs it.
                return write(offset, input_.word(),
                             (what & 32U) != 0 ? etm4::Requester::external : etm4::Requester::software);
            }
            case 1:
            case 2: return write(etm4::Trcprgctlr::offset, what >> 4U & 1U, etm4::Requester::software);
            case 3: return model_.run(4U * (what >> 4U), (place_.address.value += 4U * (what >> 4U), cycle_));
            case 4: {
                etm4::ExceptionTaken taken{.type = what >> 4U, .back = {}, .handler = {}, .cycle = cycle_};
                if ((what & 0x80U) != 0) taken.handler = arrival().place;
                model_.set_context(context());
                model_.exception(taken);
                if (!taken.handler) model_.discontinuity(arrival());
                return;
            }
            case 5: return model_.discontinuity(arrival());
            case 6: model_.debug_entry(cycle_); return model_.debug_exit(arrival());
            case 7:
                return (what & 16U) != 0   ? model_.flush()
                       : (what & 32U) != 0 ? model_.wait(cycle_)
                                           : model_.request_sync();
            case 8: return model_.set_external_input(what >> 4U & 3U, (what & 0x80U) != 0);
            case 9: return model_.instrument(input_.word(), cycle_);
            case 10:
                if ((what & 16U) != 0) return model_.transaction_start(cycle_);
                if ((what & 32U) != 0) return model_.transaction_commit(cycle_);
                return model_.transaction_fail(arrival());
            case 11:
                if ((what & 16U) != 0) return model_.set_os_lock((what & 32U) != 0, cycle_);
                return model_.set_power((what & 0xe0U) != 0, cycle_);
            default: {
                isa::Instruction i;
                i.bytes = 4;
                i.waypoint = (what & 16U) != 0   ? Waypoint::direct
                             : (what & 32U) != 0 ? Waypoint::indirect
                                                 : Waypoint::barrier;
                i.link = i.waypoint != Waypoint::barrier && (what & 64U) != 0;
                i.conditional = i.waypoint == Waypoint::direct && (what & 64U) == 0;
                i.exception_return = i.waypoint == Waypoint::indirect && !i.link && (what & 0x80U) != 0;
                const bool passed = !i.conditional || (what & 0x80U) != 0;
                const Address at = place_.address;
                isa::Place next{{at.value + 4}, isa::Isa::a64};
                if (passed && i.waypoint != Waypoint::barrier) next = arrival().place;
                i.target = next.address;
                if (i.exception_return) model_.set_context(context());
                model_.retire_block({.address = at,
                                     .isa = isa::Isa::a64,
                                     .instruction = i,
                                     .passed = passed,
                                     .next = next,
                                     .cycle = cycle_});
                place_ = next;
            }
        }
    }
    /// Ends a session: its trace has no fault, and both decoders agree.
    void check_session() {
        const bool enabled = model_.registers().prgctlr.enable;
        if (enabled && !session_) session_ = {before_, etm4::packets_of(model_.registers(), config_.profile)};
        if (!enabled && session_) {
            const Bytes bytes = Bytes(trace_.bytes()).subspan(session_->first);
            const auto elements = fuzz::decode<etm4::ReferenceDecoder>(bytes, session_->config);
            // Only the trace that had no power to be sent is missing.
            for (const synthetic::Element& e : elements)
                if (e.kind == synthetic::Kind::gap && static_cast<GapReason>(e.c) != GapReason::unsynchronised)
                    std::abort();
            if (fuzz::decode<etm4::Decoder>(bytes, session_->config) != elements) std::abort();
            for (const etm4::Objection& o : etm4::objections_to(model_.registers())) check_sentence(o.message);
            session_.reset();
        }
        if (!session_) before_ = trace_.bytes().size();
    }

    struct Session {
        std::size_t first;
        etm4::Config config;
    };
    fuzz::Input& input_;
    const etm4::ModelConfig config_;
    ByteCollector trace_;
    etm4::Model model_;
    isa::Place place_{{}, isa::Isa::a64};
    std::uint64_t cycle_ = 1;
    std::optional<Session> session_;
    std::size_t before_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input({data, size});
    check_config(input);
    etm4::Config config = fuzz::etm4_config(input);
    // Features that the model does not have (docs/spec/etm4-registers.md, 2): data and conditional trace, M profile.
    config.profile = etm4::CoreProfile::a;
    config.conditional = 0;
    config.data_trace = config.p0_loads = config.p0_stores = false;
    config.max_speculation %= 100;
    etm4::ModelChoices choices;
    const unsigned how = input.byte();
    if ((how & 1U) != 0) choices.fifo_bytes = 64U + how;
    if ((how & 2U) != 0) choices.mispredict_one_in = 3;
    if ((how & 4U) != 0) choices.q_one_in = 3;
    if ((how & 8U) != 0) choices.source_address_after = how >> 6U;
    choices.seed = how;
    Driver(etm4::ModelConfig{etm4::tracing_registers(config), config.profile, choices}, input).run();
    return 0;
}
