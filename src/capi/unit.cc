/// Models of units that are programmed by registers: trace buffers and what is between them and the sources, the
/// profiling unit SPE, the DPU of a DSP.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "objects.h"
#include "waymark/core/wire.h"
#include "waymark/dpu/model.h"
#include "waymark/sink/bus.h"
#include "waymark/sink/cti.h"
#include "waymark/sink/programming.h"
#include "waymark/sink/tmc.h"
#include "waymark/sink/tpiu.h"
#include "waymark/spe/model.h"

namespace waymark::capi {

namespace {

Error wrong(std::string message) { return {Errc::usage, std::move(message)}; }

/// `name=value` texts, each used once.
class UnitSettings {
public:
    explicit UnitSettings(const char* const* texts) {
        for (; texts != nullptr && *texts != nullptr; ++texts) {
            const std::string_view text = *texts;
            const std::size_t sign = text.find('=');
            rest_.emplace_back(text.substr(0, sign), sign == text.npos ? std::string_view() : text.substr(sign + 1));
        }
    }
    std::optional<std::string_view> take(std::string_view name) {
        known_ += fmt::format("{}{}", known_.empty() ? "" : ", ", name);
        const auto found = std::find_if(rest_.begin(), rest_.end(), [&](const auto& s) { return s.first == name; });
        if (found == rest_.end()) return {};
        const std::string_view value = found->second;
        rest_.erase(found);
        return value;
    }
    Status number(std::string_view name, std::uint64_t& to, std::uint64_t most = ~std::uint64_t{0}) {
        const auto text = take(name);
        if (!text) return Nothing{};
        std::uint64_t value = 0;
        if (!wire::scan_number(*text, value) || value > most)
            return wrong(fmt::format("the setting {} takes a number up to {:#x}, not '{}'", name, most, *text));
        to = value;
        return Nothing{};
    }
    [[nodiscard]] Status all_taken() const {
        if (rest_.empty()) return Nothing{};
        return wrong(
            fmt::format("there is no setting '{}'; expected NAME=VALUE with one of {}", rest_.front().first, known_));
    }

private:
    std::vector<std::pair<std::string_view, std::string_view>> rest_;
    std::string known_;
};

/// Maximum size of the memory that a caller requests.
constexpr std::uint64_t most_memory = std::uint64_t{1} << 30;

}  // namespace

/// A unit. Operations that this kind of unit lacks are refused.
class ModelledUnit {
public:
    ModelledUnit() = default;
    ModelledUnit(const ModelledUnit&) = delete;
    ModelledUnit& operator=(const ModelledUnit&) = delete;
    virtual ~ModelledUnit() = default;

    virtual Status write(std::string_view name, std::uint64_t value) = 0;
    virtual Result<std::uint64_t> read(std::string_view name) = 0;
    virtual Status signal(std::string_view name, std::uint64_t value) = 0;
    virtual Result<bool> line(std::string_view name) = 0;
    virtual Status send(std::uint8_t, Bytes) {
        return lacks("bytes of sources", "a trace buffer, trace port, funnel or replicator");
    }
    virtual Status retire(const wm_operation&) { return lacks("operations", "spe"); }
    virtual Result<std::pair<std::string, std::string>> decide(std::string_view, const wm_operation*) {
        return lacks("decisions", "spe");
    }
    virtual Status run(std::uint64_t, std::span<const wm_event_count>, const wm_eonce_item*) {
        return lacks("events and items", "dpu");
    }
    [[nodiscard]] virtual std::vector<std::uint8_t> memory() const { return {}; }
    virtual std::vector<std::uint8_t> take() { return {}; }

    std::vector<std::uint8_t> shown;  ///< what the last call lent to the caller
    std::string answer, why;

protected:
    static Error lacks(std::string_view what, std::string_view unit) {
        return wrong(fmt::format("this unit takes no {}; {} does", what, unit));
    }
    static Error no_signal(std::string_view name, std::string_view known) {
        return wrong(fmt::format("there is no signal '{}'; known are {}", name, known));
    }
    static Error no_line(std::string_view name, std::string_view known) {
        return wrong(fmt::format("there is no line '{}'; known are {}", name, known));
    }
};

namespace {

// ---- the way of the trace

/// A component with registers of 32 bits at offsets.
template <class Model>
class Component : public ModelledUnit {
public:
    Status write(std::string_view name, std::uint64_t value) override {
        WM_ASSIGN_OR_RETURN(const std::uint32_t offset, offset_of(name));
        if (value > 0xffffffff) return wrong(fmt::format("{}: {:#x} has more than 32 bits", name, value));
        if (std::string refused = model().write_register(offset, static_cast<std::uint32_t>(value)); !refused.empty())
            return wrong(std::move(refused));
        return Nothing{};
    }
    Result<std::uint64_t> read(std::string_view name) override {
        WM_ASSIGN_OR_RETURN(const std::uint32_t offset, offset_of(name));
        return std::uint64_t{model().read_register(offset)};
    }

protected:
    [[nodiscard]] virtual Model& model() = 0;
    static Status check_id(std::uint8_t id) {
        if (coresight::is_source({id})) return Nothing{};
        return wrong(fmt::format("trace ID {:#04x}: sources have 0x01 to 0x6f", id));
    }

private:
    static Result<std::uint32_t> offset_of(std::string_view name) {
        std::string names;
        for (std::uint32_t offset = 0; offset < 0x400; offset += 4) {
            const auto known = Model::register_name(offset);
            if (known.empty()) continue;
            if (known == name) return offset;
            names += fmt::format("{}{}", names.empty() ? "" : ", ", known);
        }
        return wrong(fmt::format("there is no register '{}'; known are {}", name, names));
    }
};

class BufferUnit final : public Component<sink::Tmc> {
public:
    explicit BufferUnit(const sink::TmcConfig& config) : tmc_(config) {}

    static Result<std::unique_ptr<ModelledUnit>> make(sink::SinkKind kind, UnitSettings& settings) {
        sink::TmcConfig config{.kind = kind};
        WM_LEAVE_IF_ERROR(settings.number("memory_bytes", config.memory_bytes, most_memory));
        WM_LEAVE_IF_ERROR(settings.number("base", config.base));
        WM_LEAVE_IF_ERROR(settings.all_taken());
        WM_LEAVE_IF_ERROR(config.check());
        return std::unique_ptr<ModelledUnit>(std::make_unique<BufferUnit>(config));
    }

    Status signal(std::string_view name, std::uint64_t) override {
        if (name == "trigger")
            tmc_.trigger();
        else if (name == "flush")
            tmc_.flush();
        else
            return no_signal(name, "trigger, flush");
        return Nothing{};
    }
    Result<bool> line(std::string_view name) override {
        if (name == "stopped") return tmc_.stopped();
        if (name == "triggered") return tmc_.triggered();
        if (name == "wrapped") return tmc_.wrapped();
        return no_line(name, "stopped, triggered, wrapped");
    }
    Status send(std::uint8_t id, Bytes bytes) override {
        WM_LEAVE_IF_ERROR(check_id(id));
        tmc_.write({id}, bytes);
        return Nothing{};
    }
    [[nodiscard]] std::vector<std::uint8_t> memory() const override { return tmc_.contents(); }
    std::vector<std::uint8_t> take() override { return tmc_.drain(most_memory); }

private:
    sink::Tmc& model() override { return tmc_; }
    sink::Tmc tmc_;
};

class PortUnit final : public Component<sink::Tpiu> {
public:
    explicit PortUnit(const sink::TpiuConfig& config) : tpiu_(config) {}

    static Result<std::unique_ptr<ModelledUnit>> make(UnitSettings& settings) {
        sink::TpiuConfig config;
        std::uint64_t widths = config.widths;
        WM_LEAVE_IF_ERROR(settings.number("widths", widths, 0xffffffff));
        WM_LEAVE_IF_ERROR(settings.all_taken());
        config.widths = static_cast<std::uint32_t>(widths);
        WM_LEAVE_IF_ERROR(config.check());
        return std::unique_ptr<ModelledUnit>(std::make_unique<PortUnit>(config));
    }
    Status signal(std::string_view name, std::uint64_t) override {
        if (name == "trigger")
            tpiu_.trigger();
        else if (name == "flush")
            tpiu_.flush();
        else if (name == "idle")
            tpiu_.idle();
        else
            return no_signal(name, "trigger, flush, idle");
        return Nothing{};
    }
    Result<bool> line(std::string_view name) override {
        if (name == "stopped") return tpiu_.stopped();
        return no_line(name, "stopped");
    }
    Status send(std::uint8_t id, Bytes bytes) override {
        WM_LEAVE_IF_ERROR(check_id(id));
        tpiu_.write({id}, bytes);
        return Nothing{};
    }
    std::vector<std::uint8_t> take() override { return tpiu_.take(); }

private:
    sink::Tpiu& model() override { return tpiu_; }
    sink::Tpiu tpiu_;
};

/// The end of a bus that keeps what comes: a trace ID and a byte by turns.
class KeptBus final : public coresight::BusSink {
public:
    void write(coresight::TraceId id, Bytes bytes) override {
        for (const std::uint8_t byte : bytes) kept_.insert(kept_.end(), {id.value, byte});
    }
    void flush() override {}
    std::vector<std::uint8_t> take() { return std::exchange(kept_, {}); }

private:
    std::vector<std::uint8_t> kept_;
};

class FunnelUnit final : public Component<sink::BusFunnel> {
public:
    explicit FunnelUnit(unsigned inputs) : funnel_(inputs, out_) {}

    static Result<std::unique_ptr<ModelledUnit>> make(UnitSettings& settings) {
        std::uint64_t inputs = sink::BusFunnel::most_inputs;
        WM_LEAVE_IF_ERROR(settings.number("inputs", inputs, sink::BusFunnel::most_inputs));
        WM_LEAVE_IF_ERROR(settings.all_taken());
        if (inputs == 0) return wrong("inputs 0: a funnel has 1 to 8");
        return std::unique_ptr<ModelledUnit>(std::make_unique<FunnelUnit>(static_cast<unsigned>(inputs)));
    }
    Status signal(std::string_view name, std::uint64_t value) override {
        if (name == "input") {
            if (value >= funnel_.inputs())
                return wrong(fmt::format("input {}: this funnel has 0 to {}", value, funnel_.inputs() - 1));
            input_ = static_cast<unsigned>(value);
        } else if (name == "pass") {
            (void)funnel_.pass(value);
        } else if (name == "flush") {
            funnel_.flush();
        } else {
            return no_signal(name, "input, pass, flush");
        }
        return Nothing{};
    }
    Result<bool> line(std::string_view name) override {
        if (name == "waiting") return funnel_.waiting_bytes() != 0;
        return no_line(name, "waiting");
    }
    Status send(std::uint8_t id, Bytes bytes) override {
        WM_LEAVE_IF_ERROR(check_id(id));
        if (bytes.size() > most_memory - funnel_.waiting_bytes())
            return wrong("1 GiB of bytes would wait; let them pass (signal pass)");
        funnel_.offer(input_, {id}, bytes);
        return Nothing{};
    }
    std::vector<std::uint8_t> take() override { return out_.take(); }

private:
    sink::BusFunnel& model() override { return funnel_; }
    KeptBus out_;
    sink::BusFunnel funnel_;
    unsigned input_ = 0;
};

class ReplicatorUnit final : public Component<sink::BusReplicator> {
public:
    static Result<std::unique_ptr<ModelledUnit>> make(UnitSettings& settings) {
        WM_LEAVE_IF_ERROR(settings.all_taken());
        return std::unique_ptr<ModelledUnit>(std::make_unique<ReplicatorUnit>());
    }
    Status signal(std::string_view name, std::uint64_t value) override {
        if (name != "output") return no_signal(name, "output");
        if (value >= outputs_.size()) return wrong(fmt::format("output {}: a replicator has 0 and 1", value));
        taken_ = static_cast<std::size_t>(value);
        return Nothing{};
    }
    Result<bool> line(std::string_view name) override { return no_line(name, "none"); }
    Status send(std::uint8_t id, Bytes bytes) override {
        WM_LEAVE_IF_ERROR(check_id(id));
        replicator_.write({id}, bytes);
        return Nothing{};
    }
    std::vector<std::uint8_t> take() override { return outputs_[taken_].take(); }

private:
    sink::BusReplicator& model() override { return replicator_; }
    std::array<KeptBus, sink::BusReplicator::outputs> outputs_;
    sink::BusReplicator replicator_{outputs_[0], outputs_[1]};
    std::size_t taken_ = 0;
};

/// An interface, and another one in its matrix that the caller's channels come from.
class CrossTriggerUnit final : public Component<sink::Cti> {
public:
    explicit CrossTriggerUnit(const sink::CtiConfig& config)
        : config_(config), cti_(config), others_(sink::CtiConfig{.channels = config.channels}) {
        matrix_.connect(cti_);
        matrix_.connect(others_);
        others_.write_register(sink::Cti::gate, ~0U);
        others_.write_register(sink::Cti::control, 1);
    }

    static Result<std::unique_ptr<ModelledUnit>> make(UnitSettings& settings) {
        sink::CtiConfig config;
        std::uint64_t triggers = config.triggers, channels = config.channels, acknowledged = 0;
        WM_LEAVE_IF_ERROR(settings.number("triggers", triggers, sink::Cti::most));
        WM_LEAVE_IF_ERROR(settings.number("channels", channels, sink::Cti::most));
        WM_LEAVE_IF_ERROR(settings.number("acknowledged", acknowledged, 0xffffffff));
        WM_LEAVE_IF_ERROR(settings.all_taken());
        config.triggers = static_cast<unsigned>(triggers);
        config.channels = static_cast<unsigned>(channels);
        config.acknowledged = static_cast<std::uint32_t>(acknowledged);
        WM_LEAVE_IF_ERROR(config.check());
        return std::unique_ptr<ModelledUnit>(std::make_unique<CrossTriggerUnit>(config));
    }
    Status signal(std::string_view name, std::uint64_t value) override {
        if (value > 1) return wrong(fmt::format("{} {}: it is 1 or 0", name, value));
        if (const auto input = number_of(name, "input", config_.triggers))
            cti_.set_trigger_in(*input, value != 0);
        else if (const auto channel = number_of(name, "channel", config_.channels))
            others_.write_register(value != 0 ? sink::Cti::appset : sink::Cti::appclear, 1U << *channel);
        else
            return no_signal(name, names("input"));
        return Nothing{};
    }
    Result<bool> line(std::string_view name) override {
        if (const auto output = number_of(name, "output", config_.triggers)) return cti_.trigger_out(*output);
        if (const auto channel = number_of(name, "channel", config_.channels))
            return (cti_.read_register(sink::Cti::choutstatus) >> *channel & 1U) != 0;
        return no_line(name, names("output"));
    }

private:
    sink::Cti& model() override { return cti_; }
    /// The number in a name such as `input4`; nothing if it is another name, or there are not as many.
    static std::optional<unsigned> number_of(std::string_view name, std::string_view word, unsigned count) {
        std::uint64_t number = 0;
        if (!name.starts_with(word) || !wire::scan_number(name.substr(word.size()), number) || number >= count)
            return {};
        return static_cast<unsigned>(number);
    }
    [[nodiscard]] std::string names(std::string_view trigger) const {
        return fmt::format("{0}0 to {0}{1}, channel0 to channel{2}", trigger, config_.triggers - 1,
                           config_.channels - 1);
    }

    const sink::CtiConfig config_;
    sink::Cti cti_, others_;
    sink::Ctm matrix_;
};

// ---- SPE

spe::Executed executed(const wm_operation& o, std::uint64_t cycle) {
    spe::Executed out;
    using Kind = spe::Operation::Kind;
    out.pc = {o.pc};
    out.cycle = cycle;
    out.events = o.events;
    out.retired = (o.flags & WM_OP_NOT_RETIRED) == 0;
    out.condition_failed = (o.flags & WM_OP_NOT_TAKEN) != 0;
    out.total_latency = o.total_latency;
    out.issue_latency = o.issue_latency;
    out.translation_latency = o.translation_latency;
    if ((o.flags & WM_OP_HAS_DATA_SOURCE) != 0) out.data_source = o.data_source;
    spe::Operation& op = out.operation;
    const bool simd = (o.flags & WM_OP_SIMD_FP) != 0, atomic = (o.flags & WM_OP_ATOMIC) != 0;
    switch (o.kind) {
        case WM_OP_LOAD:
        case WM_OP_STORE: {
            op.kind = atomic ? Kind::extended : simd ? Kind::simd_fp : Kind::general;
            op.load = o.kind == WM_OP_LOAD;
            op.store = o.kind == WM_OP_STORE;
            op.atomic = atomic;
            spe::Access access;
            access.address = {o.address};
            if ((o.flags & WM_OP_HAS_PHYSICAL) != 0) access.physical = Address{o.physical};
            out.access = access;
            break;
        }
        case WM_OP_BRANCH:
            op.kind = Kind::branch;
            op.conditional = (o.flags & WM_OP_CONDITIONAL) != 0;
            op.indirect = (o.flags & WM_OP_INDIRECT) != 0;
            out.target.address = {o.address};
            break;
        default: op.kind = Kind::other; op.conditional = (o.flags & WM_OP_CONDITIONAL) != 0;
    }
    return out;
}

std::string in_words(const spe::Why& why) {
    std::string out = fmt::format("{} ({})", why.text, why.row);
    for (const spe::Fact& fact : why.facts)
        if (!fact.name.empty()) out += fmt::format("; {} = {:#x}", fact.name, fact.value);
    return out;
}

class SpeUnit final : public ModelledUnit {
public:
    SpeUnit(const spe::ModelConfig& config, std::unique_ptr<spe::ProfilingBuffer> buffer)
        : buffer_(std::move(buffer)), model_(config, *buffer_) {}

    static Result<std::unique_ptr<ModelledUnit>> make(UnitSettings& settings) {
        auto version = spe::Version::v1_2;
        if (const auto text = settings.take("version")) {
            bool known = false;
            for (auto n = static_cast<unsigned>(spe::Version::v1_0); n <= static_cast<unsigned>(spe::Version::v1_5);
                 ++n)
                if (spe::name(static_cast<spe::Version>(n)) == *text)
                    version = static_cast<spe::Version>(n), known = true;
            if (!known) return wrong(fmt::format("version {}: expected v1.0 to v1.5", *text));
        }
        std::uint64_t base = 0x80000000, bytes = 1U << 20, interval = 0, seed = 0, in_flight = 1;
        WM_LEAVE_IF_ERROR(settings.number("memory_base", base));
        WM_LEAVE_IF_ERROR(settings.number("memory_bytes", bytes, most_memory));
        WM_LEAVE_IF_ERROR(settings.number("interval", interval, 0xffffff00));
        WM_LEAVE_IF_ERROR(settings.number("seed", seed));
        WM_LEAVE_IF_ERROR(settings.number("in_flight", in_flight, 0xffff));
        WM_LEAVE_IF_ERROR(settings.all_taken());
        if (base % 0x1000 != 0 || bytes % 0x1000 != 0 || bytes == 0 || base + bytes < base)
            return wrong("memory_base and memory_bytes must be multiples of 0x1000, like PMBLIMITR_EL1");
        if (interval % 256 != 0) return wrong(fmt::format("interval {}: it must be a multiple of 256", interval));
        auto buffer = std::make_unique<spe::ProfilingBuffer>(Address{base}, bytes);
        constexpr std::uint32_t any_interval = 4096;
        spe::ModelConfig config = spe::ModelConfig::linux_user(
            version, interval != 0 ? static_cast<std::uint32_t>(interval) : any_interval, *buffer);
        config.choices.seed = seed;
        config.choices.in_flight = static_cast<std::uint32_t>(in_flight);
        if (interval == 0) spe::reset(config.state, spe::ResetValues::zero);
        WM_LEAVE_IF_ERROR(config.check());
        return std::unique_ptr<ModelledUnit>(std::make_unique<SpeUnit>(config, std::move(buffer)));
    }

    Status write(std::string_view name, std::uint64_t value) override {
        bool known = false;
        spe::Registers after = model_.registers();
        known = name.find('.') == name.npos ? after.set(name, value) : after.set_field(name, value);
        if (!known) return no_register(name, value);
        if (name.starts_with("PMSIDR_EL1") || name.starts_with("PMBIDR_EL1"))
            return wrong(fmt::format("{}: an ID register is read-only", name));
        model_.change(cycle_, [&](spe::State& state) { state.regs = after; });
        return Nothing{};
    }
    Result<std::uint64_t> read(std::string_view name) override {
        if (const auto value = model_.registers().get(name)) return *value;
        const std::size_t dot = name.find('.');
        const auto field = model_.registers().field(name);
        const auto whole = model_.registers().get(name.substr(0, dot));
        if (!field || !whole) return no_register(name, 0);
        return *whole >> field->lo & (~std::uint64_t{0} >> (64 - field->width()));
    }
    Status signal(std::string_view name, std::uint64_t value) override {
        if (name == "exception_level") {
            if (value > 3) return wrong(fmt::format("exception level {}: it must be 0 to 3", value));
            model_.set_exception_level(cycle_, static_cast<std::uint8_t>(value));
        } else if (name == "PSB") {
            model_.psb_csync();
        } else if (name == "DSB") {
            model_.dsb();
        } else if (name == "drain") {
            model_.drain(cycle_);
        } else if (name == "cycle") {
            if (value < cycle_) return wrong(fmt::format("cycle {} comes before {}", value, cycle_));
            cycle_ = value;
            model_.advance(cycle_);
        } else if (name == "counter") {
            model_.set_counter(value);
        } else if (name == "CONTEXTIDR_EL1" || name == "CONTEXTIDR_EL2") {
            if (value > 0xffffffff) return wrong(fmt::format("{}: {:#x} has more than 32 bits", name, value));
            (name.back() == '1' ? context_el1_ : context_el2_) = static_cast<std::uint32_t>(value);
            model_.set_context(context_el1_, context_el2_);
        } else {
            return no_signal(name, "exception_level, PSB, DSB, drain, cycle, counter, CONTEXTIDR_EL1, CONTEXTIDR_EL2");
        }
        return Nothing{};
    }
    Result<bool> line(std::string_view name) override {
        if (name == "PMBIRQ") return model_.pmbirq();
        if (name == "enabled") return model_.enabled();
        return no_line(name, "PMBIRQ, enabled");
    }
    Status retire(const wm_operation& o) override {
        if (o.cycle != 0 && o.cycle < cycle_)
            return wrong(fmt::format("the operation at {:#x}: cycle {} comes before {}", o.pc, o.cycle, cycle_));
        if (o.kind > WM_OP_BRANCH)
            return wrong(fmt::format("the operation at {:#x}: there is no kind {}", o.pc, o.kind));
        cycle_ = o.cycle != 0 ? o.cycle : cycle_ + 1;
        model_.retire(executed(o, cycle_));
        return Nothing{};
    }
    Result<std::pair<std::string, std::string>> decide(std::string_view function, const wm_operation* o) override {
        const spe::State& s = model_.state();
        using Answer = std::pair<std::string, std::string>;
        const auto truth = [](const spe::Decision<bool>& d) {
            return Answer{d.value ? "TRUE" : "FALSE", in_words(d.why)};
        };
        const auto named = [](const auto& d) { return Answer{std::string(spe::name(d.value)), in_words(d.why)}; };
        if (function == "CheckProfilingBufferAccess") return named(spe::CheckProfilingBufferAccess(s));
        if (function == "CheckStatisticalProfilingAccess") return named(spe::CheckStatisticalProfilingAccess(s));
        if (function == "ProfilingBufferOwner") {
            const spe::Decision<spe::Owner> d = spe::ProfilingBufferOwner(s);
            return Answer{fmt::format("{} EL{}", spe::name(d.value.state), d.value.el), in_words(d.why)};
        }
        if (function == "ProfilingBufferEnabled") return truth(spe::ProfilingBufferEnabled(s));
        if (function == "StatisticalProfilingEnabled") return truth(spe::StatisticalProfilingEnabled(s));
        if (function == "CollectContextIDR1") return truth(spe::CollectContextIDR1(s));
        if (function == "CollectContextIDR2") return truth(spe::CollectContextIDR2(s));
        if (function == "CollectPhysicalAddress") return truth(spe::CollectPhysicalAddress(s));
        if (function == "CollectTimeStamp") return named(spe::CollectTimeStamp(s));
        if (function == "CollectRecord") {
            if (o == nullptr) return wrong("CollectRecord: it needs an operation, and none is given");
            if (!spe::StatisticalProfilingEnabled(s))
                return wrong("CollectRecord: profiling is off (StatisticalProfilingEnabled), so there is no sample");
            if (o->kind > WM_OP_BRANCH) return wrong(fmt::format("CollectRecord: there is no kind {}", o->kind));
            const spe::Executed e = executed(*o, cycle_);
            return truth(spe::CollectRecord(s, e.events, e.total_latency, spe::filter_type(e.operation)));
        }
        return wrong(
            fmt::format("there is no function '{}'; known are CheckProfilingBufferAccess, "
                        "CheckStatisticalProfilingAccess, ProfilingBufferOwner, ProfilingBufferEnabled, "
                        "StatisticalProfilingEnabled, CollectContextIDR1, CollectContextIDR2, "
                        "CollectPhysicalAddress, CollectTimeStamp, CollectRecord",
                        function));
    }
    [[nodiscard]] std::vector<std::uint8_t> memory() const override {
        const Bytes written = buffer_->written(model_.pointer());
        return {written.begin(), written.end()};
    }

private:
    static Error no_register(std::string_view name, std::uint64_t value) {
        return wrong(fmt::format("there is no register or field '{}' that {:#x} fits; docs/registers/spe.md lists them",
                                 name, value));
    }
    std::unique_ptr<spe::ProfilingBuffer> buffer_;
    spe::Model model_;
    std::uint64_t cycle_ = 0;
    std::uint32_t context_el1_ = 0, context_el2_ = 0;
};

// ---- DPU

constexpr std::array<std::string_view, 12> item_names{
    "call", "ret", "rte", "interrupt", "cof", "loop_short", "loop_long", "mark", "exec_set", "edca", "edcd", "debugev"};
struct EonceClass {
    std::string_view name;
    bool dpu::EonceSetup::*member;
};
constexpr std::array eonce_classes{
    EonceClass{"TCHOF", &dpu::EonceSetup::tchof},    EonceClass{"TINT", &dpu::EonceSetup::tint},
    EonceClass{"TEXEC", &dpu::EonceSetup::texec},    EonceClass{"TMARK", &dpu::EonceSetup::tmark},
    EonceClass{"TLOOP", &dpu::EonceSetup::tloop},    EonceClass{"TSUB", &dpu::EonceSetup::tsub},
    EonceClass{"TRTE", &dpu::EonceSetup::trte},      EonceClass{"TCOUNT", &dpu::EonceSetup::tcount},
    EonceClass{"TCNTEXT", &dpu::EonceSetup::tcntext}};

class DpuUnit final : public ModelledUnit {
public:
    explicit DpuUnit(const dpu::ModelConfig& config) : model_(config) {}

    static Result<std::unique_ptr<ModelledUnit>> make(UnitSettings& settings) {
        dpu::ModelConfig config;
        std::uint64_t base = config.dpu_base;
        WM_LEAVE_IF_ERROR(settings.number("base", base, 0xffffffff));
        config.dpu_base = static_cast<std::uint32_t>(base);
        for (const EonceClass& known : eonce_classes) {
            std::uint64_t on = 0;
            WM_LEAVE_IF_ERROR(settings.number(known.name, on, 1));
            config.eonce.*known.member = on != 0;
        }
        WM_LEAVE_IF_ERROR(settings.all_taken());
        WM_LEAVE_IF_ERROR(config.check());
        return std::unique_ptr<ModelledUnit>(std::make_unique<DpuUnit>(config));
    }

    Status write(std::string_view name, std::uint64_t value) override {
        const std::size_t dot = name.find('.');
        const auto about = dpu::Registers::find(name.substr(0, dot));
        if (!about) return no_register(name);
        if (about->access == dpu::Permission::read_only) return wrong(fmt::format("{} is read-only", about->name));
        if (dot != name.npos) {
            const auto field = field_of(about->offset, name.substr(dot + 1));
            if (!field) return no_register(name);
            const std::uint64_t ones = ~std::uint64_t{0} >> (64 - field->width());
            if (value > ones) return wrong(fmt::format("{}: {:#x} is more than {:#x}", name, value, ones));
            value = (others(*about) & ~(ones << field->lo)) | value << field->lo;
        }
        if (value > 0xffffffff) return wrong(fmt::format("{}: {:#x} has more than 32 bits", name, value));
        model_.write(about->offset, static_cast<std::uint32_t>(value));
        written_[about->offset] = static_cast<std::uint32_t>(value);
        return Nothing{};
    }
    Result<std::uint64_t> read(std::string_view name) override {
        const std::size_t dot = name.find('.');
        const auto about = dpu::Registers::find(name.substr(0, dot));
        if (!about) return no_register(name);
        const std::uint64_t value = model_.read(about->offset);
        if (dot == name.npos) return value;
        const auto field = field_of(about->offset, name.substr(dot + 1));
        if (!field) return no_register(name);
        return value >> field->lo & (~std::uint64_t{0} >> (64 - field->width()));
    }
    Status signal(std::string_view name, std::uint64_t value) override {
        const auto id = [&](std::uint8_t& to) -> Status {
            if (value > 0xff) return wrong(fmt::format("{} {}: an ID has 8 bits", name, value));
            to = static_cast<std::uint8_t>(value);
            return Nothing{};
        };
        if (name == "PID") return id(state_.ctx.pid);
        if (name == "DID") return id(state_.ctx.did);
        for (const auto& [known, member] :
             {std::pair{"supervisor", &state_.ctx.supervisor}, std::pair{"debug", &state_.in_debug},
              std::pair{"DPUE", &state_.dpue}, std::pair{"bus_others", &state_.bus_others}})
            if (name == known) {
                if (value > 1) return wrong(fmt::format("{} {}: it is 1 or 0", name, value));
                *member = value != 0;
                return Nothing{};
            }
        return no_signal(name, "supervisor, PID, DID, debug, DPUE, bus_others");
    }
    Result<bool> line(std::string_view name) override {
        if (name == "interrupt0") return pic_[0];
        if (name == "interrupt1") return pic_[1];
        if (name == "debug_request") return debug_request_;
        if (name == "idle") return model_.idle();
        return no_line(name, "interrupt0, interrupt1, debug_request, idle");
    }
    Status run(std::uint64_t cycles, std::span<const wm_event_count> events, const wm_eonce_item* item) override {
        dpu::CycleInput in = state_;
        if (cycles == 0) return wrong("0 cycles: give at least 1");
        if (cycles > most_cycles) return wrong(fmt::format("{} cycles: give at most {}", cycles, most_cycles));
        std::array<bool, dpu::event_wires> given{};
        for (const wm_event_count& e : events) {
            const auto wire = e.name == nullptr ? std::nullopt : dpu::event_wire(e.name);
            if (!wire || dpu::is_own(*wire))
                return wrong(
                    fmt::format("there is no event '{}' from outside the unit; section 8 of docs/spec/dpu.md "
                                "has their names",
                                e.name == nullptr ? "" : e.name));
            if (dpu::is_duration(*wire) && e.times > cycles)
                return wrong(fmt::format("{}: {} of {} cycles", e.name, e.times, cycles));
            if (std::exchange(given[static_cast<std::size_t>(*wire)], true))
                return wrong(fmt::format("{} is given twice; give it once, with the sum", e.name));
            in.set(*wire, e.times);
        }
        dpu::EonceItem one;
        if (item != nullptr) {
            const auto kind = item->kind == nullptr
                                  ? item_names.end()
                                  : std::find(item_names.begin(), item_names.end(), std::string_view(item->kind));
            if (kind == item_names.end())
                return wrong(fmt::format("there is no item '{}'; known are {}", item->kind == nullptr ? "" : item->kind,
                                         fmt::join(item_names, ", ")));
            if (cycles != 1) return wrong("an item belongs to one cycle: give 1 cycle");
            one.kind = static_cast<dpu::ItemKind>(kind - item_names.begin());
            if (one.kind == dpu::ItemKind::edca && item->channel > 5)
                return wrong(fmt::format("edca of channel {}: channels are 0 to 5", item->channel));
            if (item->supervisor > 1) return wrong(fmt::format("supervisor {}: it must be 1 or 0", item->supervisor));
            if (std::any_of(std::begin(item->reserved), std::end(item->reserved), [](auto b) { return b != 0; }))
                return wrong("the reserved bytes of an item must be 0");
            one.channel = item->channel;
            one.src = item->source;
            one.dst = item->destination;
            one.count = item->count;
            one.ext = item->extension;
            one.after = {item->supervisor != 0, item->pid, item->did};
            in.items = {&one, 1};
        }
        pic_ = {};
        debug_request_ = false;
        written_.clear();
        Mistakes mistakes;
        if (item == nullptr)
            if (const dpu::CycleOutput* const out = model_.run(in, cycles)) {
                note(*out, mistakes);
                return mistakes.told();
            }
        const auto totals = in.wire;
        for (std::uint64_t n = 0; n < cycles; ++n) {
            // Distributes the totals evenly over cycles: the part up to the end of this cycle, less the part before it.
            for (std::size_t w = 0; w < totals.size(); ++w)
                in.wire[w] = share(totals[w], n + 1, cycles) - share(totals[w], n, cycles);
            note(model_.step(in), mistakes);
        }
        if (item != nullptr) state_.ctx = one.after;
        return mistakes.told();
    }
    [[nodiscard]] std::vector<std::uint8_t> memory() const override {
        return buffer_ ? std::vector<std::uint8_t>(buffer_->bytes().begin(), buffer_->bytes().end())
                       : std::vector<std::uint8_t>();
    }
    std::vector<std::uint8_t> take() override { return std::exchange(nexus_, {}); }

private:
    static constexpr std::uint64_t most_cycles = std::uint64_t{1} << 32;
    static constexpr std::size_t most_nexus = std::size_t{64} << 20;

    static std::uint64_t share(std::uint64_t all, std::uint64_t n, std::uint64_t cycles) {
        return all / cycles * n + all % cycles * n / cycles;
    }
    static Error no_register(std::string_view name) {
        return wrong(
            fmt::format("there is no register or field '{}'; registers are {}", name, dpu::Registers::names()));
    }
    [[nodiscard]] std::optional<dpu::Field> field_of(std::uint32_t offset, std::string_view name) const {
        for (const dpu::Field& f : model_.registers().fields(offset))
            if (!f.reserved() && f.name == name) return f;
        return std::nullopt;
    }
    /// The bits of a register outside one field, as a write of that field leaves them.
    [[nodiscard]] std::uint64_t others(const dpu::Registers::About& about) const {
        // Writing 1 would clear the other flags.
        if (about.access == dpu::Permission::write_1_to_clear) return 0;
        // The model shows EN and TMPDIS of DP_TC only when they are in effect.
        const auto written = written_.find(about.offset);
        return written != written_.end() ? written->second : model_.read(about.offset);
    }

    /// The first mistake, and the number of mistakes: a run may have one in every cycle.
    struct Mistakes {
        std::string first;
        std::uint64_t count = 0;
        template <class F>
        void add(F&& text) {
            if (count++ == 0) first = std::forward<F>(text)();
        }
        [[nodiscard]] Status told() const {
            if (count == 0) return Nothing{};
            const std::string more = count == 1 ? "" : fmt::format(", and {} more", count - 1);
            return wrong(fmt::format("{}{}; the cycles ran nevertheless", first, more));
        }
    };
    void note(const dpu::CycleOutput& out, Mistakes& mistakes) {
        for (std::size_t i = 0; i < pic_.size(); ++i) pic_[i] = pic_[i] || out.pic[i];
        debug_request_ = debug_request_ || out.debug_request;
        const std::size_t room = std::min(out.nexus.size(), most_nexus - nexus_.size());
        nexus_.insert(nexus_.end(), out.nexus.begin(), out.nexus.begin() + static_cast<std::ptrdiff_t>(room));
        if (room != out.nexus.size())
            mistakes.add([] {
                return fmt::format("{} bytes of Nexus messages wait for wm_unit_take, and later messages are lost",
                                   most_nexus);
            });
        for (const dpu::ProgrammingError& e : out.errors)
            mistakes.add([&] { return fmt::format("cycle {}: {}", e.cycle, e.message); });
        for (const dpu::Burst& burst : out.bursts) store(burst, mistakes);
    }
    void store(const dpu::Burst& burst, Mistakes& mistakes) {
        const dpu::Registers r = model_.registers();
        const auto first = static_cast<std::uint32_t>(to_value(r.tsa)),
                   last = static_cast<std::uint32_t>(to_value(r.tea));
        if (last < first || last - first >= most_memory) {
            mistakes.add([&] {
                return fmt::format("DP_TSA {:#x} to DP_TEA {:#x} is not a buffer of up to 1 GiB", first, last);
            });
            return;
        }
        if (!buffer_ || std::pair(first, last) != place_) {
            buffer_.emplace(first, last);
            place_ = {first, last};
        }
        if (!buffer_->store(burst) && !burst.fixed)
            mistakes.add([&] { return fmt::format("the lines at {:#x} lie outside the buffer", burst.address); });
    }

    dpu::Model model_;
    dpu::CycleInput state_;
    std::optional<dpu::VirtualTraceBuffer> buffer_;
    std::pair<std::uint32_t, std::uint32_t> place_{};
    std::vector<std::uint8_t> nexus_;
    std::map<std::uint32_t, std::uint32_t> written_;  // since the last cycle: the last value for each offset
    std::array<bool, 2> pic_{};
    bool debug_request_ = false;
};

Result<std::unique_ptr<ModelledUnit>> make_unit(std::string_view kind, const char* const* texts) {
    UnitSettings settings(texts);
    std::string known;
    for (const sink::SinkName& sink : sink::sink_names()) {
        if (sink.name == kind) return BufferUnit::make(sink.kind, settings);
        known += fmt::format("{}, ", sink.name);
    }
    if (kind == "tpiu") return PortUnit::make(settings);
    if (kind == "funnel") return FunnelUnit::make(settings);
    if (kind == "replicator") return ReplicatorUnit::make(settings);
    if (kind == "cti") return CrossTriggerUnit::make(settings);
    if (kind == "spe") return SpeUnit::make(settings);
    if (kind == "dpu") return DpuUnit::make(settings);
    return wrong(
        fmt::format("there is no unit '{}' that is programmed by registers; known are {}tpiu, funnel, replicator, cti, "
                    "spe, dpu; for ptm, etmv4 and "
                    "others use wm_model_new",
                    kind, known));
}

}  // namespace
}  // namespace waymark::capi

struct wm_unit {
    std::unique_ptr<waymark::capi::ModelledUnit> model;
};

namespace {

/// Calls `f` with the unit's model; `f` returns a Status.
template <class F>
wm_status with_unit(const char* function, wm_unit* unit, wm_error** error, F&& f) {
    if (unit == nullptr) return waymark::capi::missing(error, function, "unit");
    return waymark::capi::guarded(error, [&]() -> wm_status {
        const waymark::Status done = std::forward<F>(f)(*unit->model);
        return done ? WM_OK : waymark::capi::fail(error, done.error());
    });
}

/// An operation of a program, which may be compiled with another version of the header.
wm_operation operation_at(const void* first, std::size_t bytes) {
    wm_operation out{};
    std::memcpy(&out, first, std::min(bytes, sizeof out));
    return out;
}

/// The result of `f` for the unit's model, lent to the caller; nothing if there is no memory for it.
template <class F>
size_t lend(wm_unit* unit, const uint8_t** to, F&& f) noexcept {
    size_t count = 0;
    const uint8_t* bytes = nullptr;
    if (unit != nullptr)
        waymark::capi::guarded(nullptr, [&] {
            unit->model->shown = std::forward<F>(f)(*unit->model);
            bytes = unit->model->shown.data();
            count = unit->model->shown.size();
            return WM_OK;
        });
    if (to != nullptr) *to = bytes;
    return count;
}

}  // namespace

extern "C" {

wm_status wm_unit_new(const char* kind, const char* const* settings, wm_unit** unit, wm_error** error) {
    using namespace waymark;
    if (kind == nullptr) return capi::missing(error, "wm_unit_new", "kind");
    if (unit == nullptr) return capi::missing(error, "wm_unit_new", "unit");
    return capi::guarded(error, [&] {
        WM_TRY(auto made, capi::make_unit(kind, settings));
        *unit = new wm_unit{std::move(made)};
        return WM_OK;
    });
}

void wm_unit_free(wm_unit* unit) { delete unit; }

wm_status wm_unit_write(wm_unit* unit, const char* name, uint64_t value, wm_error** error) {
    if (name == nullptr) return waymark::capi::missing(error, "wm_unit_write", "name");
    return with_unit("wm_unit_write", unit, error, [&](auto& model) { return model.write(name, value); });
}

wm_status wm_unit_read(wm_unit* unit, const char* name, uint64_t* value, wm_error** error) {
    if (name == nullptr) return waymark::capi::missing(error, "wm_unit_read", "name");
    if (value == nullptr) return waymark::capi::missing(error, "wm_unit_read", "value");
    return with_unit("wm_unit_read", unit, error, [&](auto& model) -> waymark::Status {
        WM_ASSIGN_OR_RETURN(*value, model.read(name));
        return waymark::Nothing{};
    });
}

wm_status wm_unit_signal(wm_unit* unit, const char* signal, uint64_t value, wm_error** error) {
    if (signal == nullptr) return waymark::capi::missing(error, "wm_unit_signal", "signal");
    return with_unit("wm_unit_signal", unit, error, [&](auto& model) { return model.signal(signal, value); });
}

wm_status wm_unit_line(wm_unit* unit, const char* line, int* level, wm_error** error) {
    if (line == nullptr) return waymark::capi::missing(error, "wm_unit_line", "line");
    if (level == nullptr) return waymark::capi::missing(error, "wm_unit_line", "level");
    return with_unit("wm_unit_line", unit, error, [&](auto& model) -> waymark::Status {
        WM_ASSIGN_OR_RETURN(*level, model.line(line));
        return waymark::Nothing{};
    });
}

wm_status wm_unit_send(wm_unit* unit, uint8_t trace_id, const uint8_t* bytes, size_t count, wm_error** error) {
    if (bytes == nullptr && count != 0) return waymark::capi::missing(error, "wm_unit_send", "bytes");
    return with_unit("wm_unit_send", unit, error,
                     [&](auto& model) { return model.send(trace_id, waymark::Bytes(bytes, count)); });
}

wm_status wm_unit_retire(wm_unit* unit, const wm_operation* list, size_t count, size_t each_bytes, wm_error** error) {
    if (list == nullptr && count != 0) return waymark::capi::missing(error, "wm_unit_retire", "list");
    return with_unit("wm_unit_retire", unit, error, [&](auto& model) -> waymark::Status {
        for (std::size_t i = 0; i < count; ++i)
            WM_LEAVE_IF_ERROR(
                model.retire(operation_at(reinterpret_cast<const char*>(list) + i * each_bytes, each_bytes)));
        return waymark::Nothing{};
    });
}

wm_status wm_unit_decide(wm_unit* unit, const char* function, const wm_operation* operation, size_t operation_bytes,
                         const char** answer, const char** why, wm_error** error) {
    if (function == nullptr) return waymark::capi::missing(error, "wm_unit_decide", "function");
    return with_unit("wm_unit_decide", unit, error, [&](auto& model) -> waymark::Status {
        const wm_operation known = operation == nullptr ? wm_operation{} : operation_at(operation, operation_bytes);
        WM_ASSIGN_OR_RETURN(auto decided, model.decide(function, operation == nullptr ? nullptr : &known));
        std::tie(model.answer, model.why) = std::move(decided);
        if (answer != nullptr) *answer = model.answer.c_str();
        if (why != nullptr) *why = model.why.c_str();
        return waymark::Nothing{};
    });
}

wm_status wm_unit_run(wm_unit* unit, uint64_t cycles, const wm_event_count* events, size_t count,
                      const wm_eonce_item* item, wm_error** error) {
    if (events == nullptr && count != 0) return waymark::capi::missing(error, "wm_unit_run", "events");
    return with_unit("wm_unit_run", unit, error,
                     [&](auto& model) { return model.run(cycles, std::span(events, count), item); });
}

size_t wm_unit_memory(wm_unit* unit, const uint8_t** bytes) {
    return lend(unit, bytes, [](auto& model) { return model.memory(); });
}

size_t wm_unit_take(wm_unit* unit, const uint8_t** bytes) {
    return lend(unit, bytes, [](auto& model) { return model.take(); });
}

}  // extern "C"
