#include "waymark/sink/programming.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace waymark::sink {

namespace {

using flow::AccessResult, flow::ReadResult, flow::RegisterStep, flow::wait_step, flow::write_step;

/// Software lock access and status, as in all CoreSight components.
constexpr unsigned lock_access = 0xfb0;

/// Write bursts of 16 and non-secure accesses.
constexpr std::uint32_t axi_control = 0xf00 | 2;
constexpr std::uint32_t axi_scatter = 1U << 7;

RegisterStep write_named(std::uint32_t offset, std::uint32_t value, std::string why) {
    return write_step(offset, value, std::string(Tmc::register_name(offset)), std::move(why));
}
RegisterStep wait_named(std::uint32_t offset, std::uint32_t mask, std::uint32_t value, std::string why) {
    return wait_step(offset, mask, value, std::string(Tmc::register_name(offset)), std::move(why));
}

template <class Model>
class LockedPort final : public flow::RegisterPort {
public:
    explicit LockedPort(Model& model) : model_(model) {}

    AccessResult write(unsigned offset, std::uint32_t value, std::uint64_t) override {
        if (offset == lock_access) {
            locked_ = value != flow::UnitLocks::unlock_key;
            return AccessResult::done;
        }
        if (Model::register_name(offset).empty()) return AccessResult::not_present;
        if (locked_) return AccessResult::locked;
        return model_.write_register(offset, value).empty() ? AccessResult::done : AccessResult::not_idle;
    }
    ReadResult read(unsigned offset, std::uint64_t) override {
        if (Model::register_name(offset).empty()) return {AccessResult::not_present, 0};
        return {AccessResult::done, model_.read_register(offset)};
    }

private:
    Model& model_;
    bool locked_ = true;
};

RegisterStep unlock() { return write_step(lock_access, flow::UnitLocks::unlock_key, "LAR", "open the software lock"); }
RegisterStep lock() { return write_step(lock_access, 0, "LAR", "set the software lock"); }

RegisterStep write_cti(std::uint32_t offset, std::uint32_t value, std::string why) {
    return write_step(offset, value, Cti::register_name(offset), std::move(why));
}

/// Maps one trigger to the channel, or the channel to it.
flow::ComponentProgram trigger_program(std::uint32_t mapping, std::string why) {
    flow::ComponentProgram out;
    out.enable.push_back(unlock());
    out.enable.push_back(write_cti(Cti::control, 0, "nothing is mapped while it is programmed"));
    out.enable.push_back(write_cti(mapping, 1U << trigger_channel, std::move(why)));
    out.enable.push_back(write_cti(Cti::gate, 1U << trigger_channel, "the channel reaches the other interfaces"));
    out.enable.push_back(write_cti(Cti::control, 1, "map"));
    out.disable.push_back(write_cti(Cti::control, 0, "stop mapping"));
    out.disable.push_back(lock());
    out.not_in_files.emplace_back("cross triggers, which Linux connects by other files");
    return out;
}

}  // namespace

std::span<const SinkName> sink_names() {
    static constexpr std::array names{SinkName{"etb", SinkKind::etb11}, SinkName{"tmc-etb", SinkKind::etb},
                                      SinkName{"tmc-etf", SinkKind::etf}, SinkName{"tmc-etr", SinkKind::etr}};
    return names;
}

Status SinkSetup::check() const {
    WM_RETURN_IF_ERROR(buffer.check());
    if (buffer.memory_bytes / 4 > 0xffffffff || buffer.memory_bytes < 256)
        return Error{Errc::usage, fmt::format("a trace buffer of {} bytes: give 256 or more", buffer.memory_bytes)};
    if (scatter_list &&
        (buffer.kind != SinkKind::etr || buffer.base % ScatterEntry::page_bytes != 0 ||
         buffer.base > ScatterEntry::most_address || buffer.memory_bytes % ScatterEntry::page_bytes != 0))
        return Error{
            Errc::usage,
            fmt::format("a scatter list at {:#x} for {} bytes: only an ETR has one; its address, below 2^40, and "
                        "the size are multiples of {:#x}",
                        buffer.base, buffer.memory_bytes, ScatterEntry::page_bytes)};
    if (after_trigger && (*after_trigger % 4 != 0 || *after_trigger == 0 || *after_trigger > most_after_trigger()))
        return Error{Errc::usage,
                     fmt::format("{} bytes after the trigger: give a multiple of 4, at most {} of the {} bytes of the "
                                 "buffer, or the trigger itself is overwritten",
                                 *after_trigger, most_after_trigger(), buffer.memory_bytes)};
    return Nothing{};
}

flow::ComponentProgram program_of(const SinkSetup& setup) {
    flow::ComponentProgram out;
    const bool tmc = setup.buffer.kind != SinkKind::etb11, etr = setup.buffer.kind == SinkKind::etr;
    auto& on = out.enable;
    on.push_back(unlock());
    on.push_back(write_named(Tmc::ctl, 0, "stop: the buffer is programmed only while it is disabled"));
    on.push_back(wait_named(Tmc::sts, Sts::ready, Sts::ready, tmc ? "until TMCReady is 1" : "until AcqComp is 1"));
    if (etr) {
        const std::uint64_t base = setup.buffer.base;
        on.push_back(write_named(Tmc::rsz, static_cast<std::uint32_t>(setup.buffer.memory_bytes / 4),
                                 fmt::format("the size: {} bytes, in words", setup.buffer.memory_bytes)));
        on.push_back(write_named(Tmc::axictl, axi_control | (setup.scatter_list ? axi_scatter : 0),
                                 setup.scatter_list ? "bursts of 16, non-secure, with a scatter list"
                                                    : "bursts of 16, non-secure, no scatter lists"));
        on.push_back(write_named(Tmc::dbalo, static_cast<std::uint32_t>(base),
                                 setup.scatter_list ? "where the scatter list lies" : "where the buffer lies"));
        on.push_back(write_named(Tmc::dbahi, static_cast<std::uint32_t>(base >> 32), "its upper address bits"));
    } else if (!tmc) {
        on.push_back(write_named(Tmc::rwp, 0, "write from the beginning"));
    }
    if (tmc) on.push_back(write_named(Tmc::mode, 0, "circular: the newest trace is kept"));
    std::uint32_t formatter = Ffcr::en_ft | Ffcr::en_ti | Ffcr::f_on_fl_in | Ffcr::trig_on_trig_in;
    if (setup.after_trigger) formatter |= Ffcr::stop_on_trig_evt;
    on.push_back(write_named(
        Tmc::trg, setup.after_trigger ? static_cast<std::uint32_t>(*setup.after_trigger / 4 - 1) : 0,
        setup.after_trigger ? fmt::format("stop {} bytes after the trigger, in words less one", *setup.after_trigger)
                            : "no words are counted after a trigger"));
    on.push_back(write_named(Tmc::ffcr, formatter,
                             setup.after_trigger ? "frames with triggers marked; the trigger stops the capture"
                                                 : "frames with triggers marked"));
    on.push_back(write_named(Tmc::ctl, Ctl::trace_capt_en, "start"));

    if (!etr && setup.after_trigger)
        out.needs.push_back(fmt::format("RSZ, the size in words, is more than {}, or the trigger itself is overwritten",
                                        *setup.after_trigger / 4));
    if (etr) out.driver_files.push_back({"buffer_size", fmt::format("{:#x}", setup.buffer.memory_bytes)});
    if (setup.after_trigger && tmc)
        out.not_in_files.emplace_back("a capture that stops at a trigger (the driver leaves FFCR.StopOnTrigEvt 0)");
    // The driver of the older ETB always stops at a trigger.
    if (setup.after_trigger && !tmc)
        out.driver_files.push_back({"trigger_cntr", fmt::format("{:#x}", *setup.after_trigger / 4 - 1)});

    // Two writes: a manual flush stops the capture only if StopOnFl was 1 before (3.3).
    const std::uint32_t stopping = formatter | Ffcr::stop_on_fl;
    out.disable.push_back(write_named(Tmc::ffcr, stopping, "a flush stops the capture"));
    out.disable.push_back(
        write_named(Tmc::ffcr, stopping | Ffcr::flush_man, "flush: trace that is still in the units is stored"));
    out.disable.push_back(wait_named(Tmc::ffcr, Ffcr::flush_man, 0, "until the flush is done"));
    out.disable.push_back(wait_named(Tmc::sts, Sts::ready, Sts::ready, "until everything is in the buffer"));
    out.release.push_back(write_named(Tmc::ctl, 0, "disable"));
    out.release.push_back(lock());
    return out;
}

flow::ComponentProgram funnel_program(unsigned port) {
    constexpr std::uint32_t hold_time = 3U << 8;  // four transactions
    flow::ComponentProgram out;
    out.enable.push_back(unlock());
    out.enable.push_back(write_step(funnel_control, hold_time | 1U << port, "FUNCTL",
                                    fmt::format("open input {} and close the others", port)));
    out.disable.push_back(write_step(funnel_control, hold_time, "FUNCTL", "close the inputs"));
    out.disable.push_back(lock());
    return out;
}

flow::ComponentProgram replicator_program(unsigned output) {
    constexpr std::uint32_t all = 0xff, none = 0;
    flow::ComponentProgram out;
    out.enable.push_back(unlock());
    for (const std::uint32_t n : {0U, 1U}) {
        const std::uint32_t offset = n == 0 ? BusReplicator::idfilter0 : BusReplicator::idfilter1;
        out.enable.push_back(write_step(
            offset, n == output ? none : all, std::string(BusReplicator::register_name(offset)),
            n == output ? fmt::format("output {} takes all trace IDs", n) : fmt::format("output {} takes none", n)));
        out.disable.push_back(write_step(offset, all, std::string(BusReplicator::register_name(offset)),
                                         fmt::format("output {} takes no more trace", n)));
    }
    out.disable.push_back(lock());
    return out;
}

flow::ComponentProgram port_program(unsigned pins) {
    const auto write = [](std::uint32_t offset, std::uint32_t value, std::string why) {
        return write_step(offset, value, std::string(Tpiu::register_name(offset)), std::move(why));
    };
    constexpr std::uint32_t frames_between_syncs = 64;
    constexpr std::uint32_t formatter = Tpiu::en_ftc | Tpiu::en_f_cont | Tpiu::f_on_fl_in | Tpiu::trig_in;
    flow::ComponentProgram out;
    out.enable.push_back(unlock());
    out.enable.push_back(write(Tpiu::cspsr, 1U << (pins - 1), fmt::format("a port of {} pins", pins)));
    out.enable.push_back(write(Tpiu::fscr, frames_between_syncs, "a full sync each 64 frames"));
    out.enable.push_back(write(Tpiu::ffcr, formatter, "frames, with triggers marked, without TRACECTL"));
    out.disable.push_back(write(Tpiu::ffcr, formatter | Tpiu::stop_fl, "a flush stops the formatter"));
    out.disable.push_back(write(Tpiu::ffcr, formatter | Tpiu::stop_fl | Tpiu::f_on_man,
                                "flush: trace that is still in the units leaves"));
    out.disable.push_back(wait_step(Tpiu::ffsr, Tpiu::ft_stopped, Tpiu::ft_stopped, "FFSR", "until everything left"));
    out.release.push_back(lock());
    return out;
}

flow::ComponentProgram unit_trigger_program(unsigned input) {
    return trigger_program(Cti::inen + 4 * input, "the unit's trigger makes channel 0 active");
}
flow::ComponentProgram sink_trigger_program(unsigned output) {
    return trigger_program(Cti::outen + 4 * output, "channel 0 makes the sink's trigger input active");
}

std::unique_ptr<flow::RegisterPort> locked_port(Tmc& tmc) { return std::make_unique<LockedPort<Tmc>>(tmc); }
std::unique_ptr<flow::RegisterPort> locked_port(BusFunnel& funnel) {
    return std::make_unique<LockedPort<BusFunnel>>(funnel);
}
std::unique_ptr<flow::RegisterPort> locked_port(BusReplicator& replicator) {
    return std::make_unique<LockedPort<BusReplicator>>(replicator);
}
std::unique_ptr<flow::RegisterPort> locked_port(Tpiu& tpiu) { return std::make_unique<LockedPort<Tpiu>>(tpiu); }
std::unique_ptr<flow::RegisterPort> locked_port(Cti& cti) { return std::make_unique<LockedPort<Cti>>(cti); }

}  // namespace waymark::sink
