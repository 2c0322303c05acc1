#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "objects.h"
#include "waymark/core/byte_sink.h"
#include "waymark/core/wire.h"
#include "waymark/flow/each_instruction.h"
#include "waymark/flow/exception.h"
#include "waymark/flow/unit.h"
#include "waymark/flow/unit_signals.h"
#include "waymark/pipeline/protocols.h"

struct wm_model {
    waymark::ByteCollector trace;
    waymark::flow::UnitOptions options;
    const waymark::flow::UnitFactory* factory{};
    std::unique_ptr<waymark::flow::Unit> unit;
    waymark::isa::DecodeOptions waypoints;
    bool each_instruction = false;    ///< the unit traces every instruction
    std::vector<std::uint8_t> taken;  ///< by wm_model_take
    bool finished = false;
    bool niden = true, dbgen = false, spniden = true, spiden = false, powered = true;
    [[nodiscard]] waymark::flow::TracePermission permission() const {
        const bool any = niden || dbgen;
        return {any, any && (spniden || spiden)};
    }

    // The place of execution. Instructions since the last waypoint are `straight`; a waypoint whose outcome the next
    // instruction shows is `pending`.
    bool started = false;
    waymark::flow::Context context{.ns = true};
    waymark::isa::Place here{};
    waymark::flow::Straight straight;
    struct Pending {
        waymark::Address address;
        waymark::isa::Instruction instruction;
        bool failed = false;  ///< the caller states that its condition failed
    };
    std::optional<Pending> pending;
    bool away = false;  ///< in a handler that the unit does not see
    std::uint64_t cycle = 0;

    waymark::Status execute(const wm_executed& executed);
    waymark::Status arrive(waymark::isa::Place place);
};

namespace waymark::capi {

namespace {

using flow::UnitOptions;

const flow::UnitFactory* unit_called(std::string_view name) {
    for (const flow::UnitFactory* units : pipeline::flow_units())
        if (pipeline::option_name(*units) == name) return units;
    return nullptr;
}

/// A member of UnitOptions that is a number or a flag.
struct NumberSetting {
    std::string_view name;
    void (*set)(UnitOptions&, std::uint64_t);
};
template <auto member>
constexpr NumberSetting setting(std::string_view name) {
    return {name, [](UnitOptions& o, std::uint64_t value) {
                using Type = std::remove_reference_t<decltype(o.*member)>;
                o.*member = static_cast<Type>(value);
            }};
}
constexpr std::array number_settings{
    setting<&UnitOptions::cycle_accurate>("cycle_accurate"),
    setting<&UnitOptions::timestamps>("timestamps"),
    setting<&UnitOptions::return_stack>("return_stack"),
    setting<&UnitOptions::branch_broadcast>("branch_broadcast"),
    setting<&UnitOptions::context_id_bytes>("context_id_bytes"),
    setting<&UnitOptions::sync_bytes>("sync_bytes"),
    setting<&UnitOptions::fifo_bytes>("fifo_bytes"),
    setting<&UnitOptions::drain_cycles>("drain_cycles"),
    setting<&UnitOptions::cycle_threshold>("cycle_threshold"),
    setting<&UnitOptions::speculation_depth>("speculation_depth"),
    setting<&UnitOptions::seed>("seed"),
};

Status set_setting(UnitOptions& options, std::string_view text) {
    const std::size_t sign = text.find('=');
    const std::string_view name = text.substr(0, sign);
    const std::string_view value = sign == text.npos ? std::string_view() : text.substr(sign + 1);
    if (name == "core" && !value.empty()) {
        options.core = value;
        return Nothing{};
    }
    if (name == "register") {
        WM_ASSIGN_OR_RETURN(const auto settings, flow::read_register_settings(value, "register"));
        options.registers.insert(options.registers.end(), settings.begin(), settings.end());
        return Nothing{};
    }
    for (const NumberSetting& known : number_settings) {
        if (known.name != name) continue;
        std::uint64_t number = 0;
        if (!wire::scan_number(value, number) || number > 0xffffffff)
            return Error{Errc::usage, fmt::format("the setting {} takes a number, not '{}'", name, value)};
        known.set(options, number);
        return Nothing{};
    }
    std::string names = "core, register";
    for (const NumberSetting& known : number_settings) names += fmt::format(", {}", known.name);
    return Error{Errc::usage, fmt::format("there is no setting '{}'; expected NAME=VALUE with one of {}", text, names)};
}

Error contradiction(const wm_executed& executed, std::string_view what) {
    return {Errc::usage, fmt::format("the instruction at {:#x}: {}", executed.address, what)};
}

std::optional<flow::ExceptionClass> exception_called(std::string_view name) {
    for (unsigned i = 0; i < flow::exception_classes; ++i)
        if (flow::name(static_cast<flow::ExceptionClass>(i)) == name) return static_cast<flow::ExceptionClass>(i);
    return std::nullopt;
}

std::string exception_names() {
    std::string out;
    for (unsigned i = 0; i < flow::exception_classes; ++i)
        out += fmt::format("{}{}", out.empty() ? "" : ", ", flow::name(static_cast<flow::ExceptionClass>(i)));
    return out;
}

}  // namespace
}  // namespace waymark::capi

/// Execution arrives at a place, which shows the outcome of the last waypoint.
waymark::Status wm_model::arrive(waymark::isa::Place place) {
    using namespace waymark;
    if (!started) {
        unit->context(context);
        unit->start(place, cycle);
        if (flow::UnitSignals* const signals = flow::signals_of(*unit); signals != nullptr)
            signals->permit(permission(), cycle);
        started = true;
        here = place;
        return Nothing{};
    }
    if (away) {
        unit->resume(place, cycle);
        away = false;
        here = place;
        return Nothing{};
    }
    if (!pending) {
        if (place == here) return Nothing{};
        return Error{
            Errc::usage,
            fmt::format("execution continued at {:#x} ({}), but the instruction before it is not a branch, and ends at "
                        "{:#x} ({}); an instruction or an exception (wm_model_exception) is missing",
                        place.address.value, isa::name(place.isa), here.address.value, isa::name(here.isa))};
    }
    const isa::Instruction& i = pending->instruction;
    const isa::Place behind{pending->address + i.bytes, here.isa};
    const isa::Place target{i.target, i.target_isa};
    bool passed = place != behind;
    if (i.waypoint == isa::Waypoint::barrier)
        passed = !pending->failed;
    else if (i.waypoint == isa::Waypoint::direct) {
        if (place == behind) passed = target == behind && !pending->failed;
        if (place != behind && place != target)
            return Error{Errc::usage, fmt::format("execution went on at {:#x} ({}), but the branch at {:#x} leads to "
                                                  "{:#x} ({}) or, if not taken, to {:#x}",
                                                  place.address.value, isa::name(place.isa), pending->address.value,
                                                  target.address.value, isa::name(target.isa), behind.address.value)};
    } else if (place == behind && !i.conditional && !pending->failed) {
        passed = true;
    }
    if (i.waypoint == isa::Waypoint::barrier && place != behind)
        return Error{Errc::usage, fmt::format("execution went on at {:#x}, but the barrier at {:#x} ends at {:#x}",
                                              place.address.value, pending->address.value, behind.address.value)};
    unit->waypoint(straight, {pending->address, here.isa, i, passed, place}, cycle);
    pending.reset();
    straight = {};
    here = place;
    return Nothing{};
}

waymark::Status wm_model::execute(const wm_executed& executed) {
    using namespace waymark;
    if (executed.isa > WM_A64 || executed.isa == WM_JAZELLE)
        return capi::contradiction(executed, fmt::format("{} is no instruction set; expected WM_A32, WM_T32, WM_TEE or "
                                                         "WM_A64",
                                                         executed.isa));
    if (executed.cycle != 0 && executed.cycle < cycle)
        return capi::contradiction(
            executed,
            fmt::format("cycle {} comes before {}, the cycle of the previous instruction", executed.cycle, cycle));
    const auto isa = static_cast<isa::Isa>(executed.isa);
    const bool is_thumb = isa == isa::Isa::t32 || isa == isa::Isa::tee;
    const bool is_wide = is_thumb && executed.opcode > 0xffff;
    if (is_thumb && isa::is_thumb_32(is_wide ? executed.opcode >> 16 : executed.opcode) != is_wide)
        return capi::contradiction(executed, fmt::format("{:#x} is no T32 opcode: write a halfword, or first << 16 | "
                                                         "second",
                                                         executed.opcode));
    WM_LEAVE_IF_ERROR(arrive({{executed.address}, isa}));
    cycle = executed.cycle != 0 ? executed.cycle : cycle + 1;
    const isa::Instruction i = isa::decode_instr({executed.address}, isa, executed.opcode, is_wide, waypoints);
    if (each_instruction && i.waypoint == isa::Waypoint::none) {
        const isa::Place behind{here.address + i.bytes, here.isa};
        unit->waypoint({}, {here.address, here.isa, i, (executed.flags & WM_CONDITION_FAILED) == 0, behind}, cycle);
        here = behind;
        return Nothing{};
    }
    if (i.waypoint != isa::Waypoint::none) {
        pending = Pending{{executed.address}, i, (executed.flags & WM_CONDITION_FAILED) != 0};
        return Nothing{};
    }
    straight.bytes += i.bytes;
    straight.last_bytes = i.bytes;
    here.address = here.address + i.bytes;
    return Nothing{};
}

extern "C" {

wm_status wm_model_new(const char* unit, const char* const* settings, wm_model** model, wm_error** error) {
    using namespace waymark;
    if (unit == nullptr) return capi::missing(error, "wm_model_new", "unit");
    if (model == nullptr) return capi::missing(error, "wm_model_new", "model");
    return capi::guarded(error, [&] {
        auto out = std::make_unique<wm_model>();
        out->factory = capi::unit_called(unit);
        if (out->factory == nullptr)
            return capi::fail(error, WM_USAGE,
                              fmt::format("there is no unit '{}'; known are {}", unit, pipeline::flow_unit_names()));
        out->options = out->factory->defaults();
        for (; settings != nullptr && *settings != nullptr; ++settings)
            if (const Status set = capi::set_setting(out->options, *settings); !set)
                return capi::fail(error, set.error());
        if (const Status fits = out->factory->check(out->options); !fits) return capi::fail(error, fits.error());
        out->waypoints = out->factory->decode_options(out->options);
        out->each_instruction = flow::traces_each_instruction(*out->factory);
        out->unit = out->factory->make(out->options, out->trace);
        *model = out.release();
        return WM_OK;
    });
}

void wm_model_free(wm_model* model) { delete model; }

wm_status wm_model_state(wm_model* model, const wm_core_state* state, wm_error** error) {
    using namespace waymark;
    if (model == nullptr) return capi::missing(error, "wm_model_state", "model");
    if (state == nullptr) return capi::missing(error, "wm_model_state", "state");
    return capi::guarded(error, [&] {
        wm_core_state s{};
        std::memcpy(&s, state, std::min(state->struct_bytes, sizeof s));
        flow::Context& c = model->context;
        c.ns = s.non_secure != 0;
        c.hyp = s.hyp != 0;
        c.nse = s.nse != 0;
        c.aarch64 = s.aarch64 != 0;
        c.el = c.aarch64 ? std::optional<std::uint8_t>(s.level & 3U) : std::nullopt;
        c.context_id = s.has_context_id != 0 ? std::optional(s.context_id) : std::nullopt;
        if (model->started) model->unit->context(c);
        return WM_OK;
    });
}

wm_status wm_model_execute(wm_model* model, const wm_executed* list, size_t count, size_t each_bytes,
                           wm_error** error) {
    using namespace waymark;
    if (model == nullptr) return capi::missing(error, "wm_model_execute", "model");
    if (list == nullptr && count != 0) return capi::missing(error, "wm_model_execute", "list");
    return capi::guarded(error, [&] {
        if (model->finished) return capi::fail(error, WM_USAGE, "the model is finished: nothing more can be executed");
        for (std::size_t i = 0; i < count; ++i) {
            wm_executed executed{};
            std::memcpy(&executed, reinterpret_cast<const char*>(list) + i * each_bytes,
                        std::min(each_bytes, sizeof executed));
            if (const Status done = model->execute(executed); !done) return capi::fail(error, done.error());
        }
        return WM_OK;
    });
}

wm_status wm_model_exception(wm_model* model, const char* kind, uint64_t preferred_return, uint64_t handler,
                             wm_isa handler_isa, uint64_t cycle, wm_error** error) {
    using namespace waymark;
    if (model == nullptr) return capi::missing(error, "wm_model_exception", "model");
    if (kind == nullptr) return capi::missing(error, "wm_model_exception", "kind");
    return capi::guarded(error, [&] {
        const auto found = capi::exception_called(kind);
        if (!found)
            return capi::fail(error, WM_USAGE,
                              fmt::format("there is no exception '{}'; known are {}", kind, capi::exception_names()));
        if (!model->started || model->finished || model->away)
            return capi::fail(error, WM_USAGE, "an exception is taken at a place where nothing is executed");
        // The instruction set in which execution would have continued: the instruction set of a direct branch's target,
        // or the same.
        isa::Isa isa = model->here.isa;
        if (model->pending && model->pending->instruction.waypoint == isa::Waypoint::direct &&
            model->pending->instruction.target.value == preferred_return)
            isa = model->pending->instruction.target_isa;
        if (model->pending)
            if (const Status arrived = model->arrive({{preferred_return}, isa}); !arrived)
                return capi::fail(error, arrived.error());
        if (cycle != 0 && cycle >= model->cycle) model->cycle = cycle;
        const flow::Straight before = model->straight;
        model->straight = {};
        model->away = handler == WM_NOT_RECORDED;
        const isa::Place to{{handler}, static_cast<isa::Isa>(handler_isa)};
        model->unit->exception(before, *found, model->away ? std::nullopt : std::optional(to), model->cycle);
        model->here = to;
        return WM_OK;
    });
}

const char* wm_exception_name(size_t index) {
    return index < waymark::flow::exception_classes
               ? waymark::flow::name(static_cast<waymark::flow::ExceptionClass>(index)).data()
               : nullptr;
}

wm_status wm_model_signal(wm_model* model, const char* signal, int value, wm_error** error) {
    using namespace waymark;
    if (model == nullptr) return capi::missing(error, "wm_model_signal", "model");
    if (signal == nullptr) return capi::missing(error, "wm_model_signal", "signal");
    return capi::guarded(error, [&] {
        const flow::MakesUnitSignals* const makes = flow::with_signals(*model->factory);
        flow::UnitSignals* const signals = flow::signals_of(*model->unit);
        const auto refuse = [&](std::string_view why) {
            return capi::fail(error, WM_USAGE, fmt::format("the signal {}: {}", signal, why));
        };
        if (makes == nullptr || signals == nullptr) return refuse("the model of this unit has none");
        const bool only_check = value == WM_SIGNAL_CHECK;
        if (value != 0 && value != 1 && !only_check) return refuse(fmt::format("the value is 0 or 1, not {}", value));
        if (model->finished) return refuse("the model is finished: nothing more can be executed");
        const flow::MakesUnitSignals::Signals has = makes->signals(model->options);
        const std::string_view name = signal;
        const bool on = value == 1;
        bool* const level = name == "NIDEN"     ? &model->niden
                            : name == "DBGEN"   ? &model->dbgen
                            : name == "SPNIDEN" ? &model->spniden
                            : name == "SPIDEN"  ? &model->spiden
                                                : nullptr;
        if (level == nullptr && name != "power" && name != "os_lock")
            return refuse("there is no such signal; known are NIDEN, DBGEN, SPNIDEN, SPIDEN, power, os_lock");
        if (!has.non_secure && (name == "NIDEN" || name == "DBGEN"))
            return refuse("the unit always traces Non-secure state");
        if (level != nullptr) {
            if (only_check) return WM_OK;
            *level = on;
            if (model->started) signals->permit(model->permission(), model->cycle);
            return WM_OK;
        }
        if (!model->started) return refuse("nothing was executed yet");
        if (name == "os_lock" && !has.os_lock) return refuse("the unit has no OS Lock");
        if (only_check) return WM_OK;
        if (name == "os_lock") {
            signals->set_os_lock(on, model->cycle);
            return WM_OK;
        }
        signals->set_power(on, model->cycle);
        if (!std::exchange(model->powered, on) && on) model->unit->program(model->options, model->cycle);
        return WM_OK;
    });
}

wm_status wm_model_finish(wm_model* model, wm_error** error) {
    if (model == nullptr) return waymark::capi::missing(error, "wm_model_finish", "model");
    return waymark::capi::guarded(error, [&] {
        if (!model->finished && model->started) {
            // The target of the last branch is not known.
            model->pending.reset();
            model->unit->finish();
        }
        model->finished = true;
        return WM_OK;
    });
}

size_t wm_model_take(wm_model* model, const uint8_t** bytes) {
    size_t count = 0;
    const uint8_t* first = nullptr;
    if (model != nullptr)
        waymark::capi::guarded(nullptr, [&] {
            model->taken = model->trace.take();
            first = model->taken.data();
            count = model->taken.size();
            return WM_OK;
        });
    if (bytes != nullptr) *bytes = first;
    return count;
}

wm_status wm_options_describe(wm_options* options, const wm_model* model, wm_error** error) {
    using namespace waymark;
    if (options == nullptr) return capi::missing(error, "wm_options_describe", "options");
    if (model == nullptr) return capi::missing(error, "wm_options_describe", "model");
    return capi::guarded(error, [&] {
        constexpr std::uint8_t id = 0x10;
        options->input.protocol = model->factory->source_type(model->options);
        options->core = model->factory->core_type(model->options);
        options->registers = model->factory->registers(model->options, id);
        return WM_OK;
    });
}

}  // extern "C"
