#include "waymark/sink/path.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <utility>

namespace waymark::sink {

namespace {

using flow::RegisterSetting, flow::RegisterStep;

constexpr std::uint32_t first_unused_offset = 0x400;

template <class Model>
std::optional<std::uint32_t> offset_of(std::string_view name) {
    for (std::uint32_t offset = 0; offset < first_unused_offset; offset += 4)
        if (Model::register_name(offset) == name) return offset;
    return std::nullopt;
}

/// The registers of the modelled components.
bool is_known(std::string_view name, bool port) {
    return offset_of<BusFunnel>(name) || offset_of<BusReplicator>(name) || offset_of<Cti>(name) ||
           (port ? offset_of<Tpiu>(name) : offset_of<Tmc>(name));
}

}  // namespace

Status PathSetup::check() const {
    if (buffer) WM_RETURN_IF_ERROR(buffer->check());
    constexpr unsigned most_pins = 32;
    if (!buffer && (port_pins == 0 || port_pins > most_pins))
        return Error{Errc::usage, fmt::format("a trace port of {} pins: give 1 to {}", port_pins, most_pins)};
    constexpr std::uint64_t most_value = 0xffffffff;
    for (const RegisterSetting& s : registers) {
        const std::string where = s.where.empty() ? std::string() : s.where + ": ";
        if (!s.field.empty())
            return Error{Errc::usage,
                         fmt::format("{}{}.{}: give the whole value of {}", where, s.name, s.field, s.name)};
        if (!is_known(s.name, !buffer))
            return Error{Errc::usage,
                         fmt::format("{}{} is no register of the funnel (FUNCTL, PRICTL), the replicator (IDFILTER0, "
                                     "IDFILTER1), the cross triggers (CTICONTROL, …) or the {}",
                                     where, s.name, name())};
        if (s.value > most_value)
            return Error{Errc::usage, fmt::format("{}{} {:#x}: registers have 32 bits", where, s.name, s.value)};
    }
    if (registers.empty()) return Nothing{};
    SinkPath trial(*this);
    trial.connect(0);
    if (!trial.refused_.empty()) return Error{Errc::usage, trial.refused_};
    return Nothing{};
}

std::string PathSetup::name() const {
    return buffer ? std::string(sink::name(buffer->buffer.kind)) : std::string("TPIU");
}

SinkPath::SinkPath(const PathSetup& setup) : setup_(setup) {
    coresight::BusSink* end = nullptr;
    if (setup_.buffer) {
        TmcConfig found = setup_.buffer->buffer;
        if (found.kind == SinkKind::etr) {
            // Its program sets size and address.
            found.memory_bytes = ScatterEntry::page_bytes;
            found.base = 0;
        }
        tmc_ = std::make_unique<Tmc>(found);
        if (setup_.buffer->scatter_list) make_list(*setup_.buffer);
        sink_program_ = program_of(*setup_.buffer);
        sink_port_ = locked_port(*tmc_);
        enable(sink_program_, *tmc_, *sink_port_);
        end = tmc_.get();
    } else {
        tpiu_ = std::make_unique<Tpiu>(TpiuConfig{.widths = 1U << (setup_.port_pins - 1)});
        sink_program_ = port_program(setup_.port_pins);
        sink_port_ = locked_port(*tpiu_);
        enable(sink_program_, *tpiu_, *sink_port_);
        end = tpiu_.get();
    }
    replicator_ = std::make_unique<BusReplicator>(*end, nothing_);
    enable(replicator_program(0), *replicator_, *locked_port(*replicator_));
    funnel_ = std::make_unique<BusFunnel>(BusFunnel::most_inputs, *replicator_);
    funnel_port_ = locked_port(*funnel_);
    // The sink acknowledges its trigger inputs.
    sink_cti_ = std::make_unique<Cti>(CtiConfig{.acknowledged = 1U << sink_trigger_output | 1U << sink_flush_output});
    matrix_.connect(*sink_cti_);
    sink_cti_->on_trigger_out([this](unsigned output, bool active) {
        if (!active) return;
        if (output == sink_trigger_output) tmc_ ? tmc_->trigger() : tpiu_->trigger();
        if (output == sink_flush_output) tmc_ ? tmc_->flush() : tpiu_->flush();
    });
    enable(sink_trigger_program(), *sink_cti_, *locked_port(*sink_cti_));
}

/// Pages that do not follow each other, in a list of several pages.
void SinkPath::make_list(const SinkSetup& setup) {
    const std::uint64_t pages = setup.buffer.memory_bytes / ScatterEntry::page_bytes;
    const std::uint64_t tables = setup.buffer.base;
    const std::uint64_t in_table = ScatterEntry::in_page - 1;  // the last word is the link
    const std::uint64_t first_page = tables + (pages / in_table + 2) * ScatterEntry::page_bytes;
    std::uint64_t at = tables;
    for (std::uint64_t n = 0; n < pages; ++n) {
        if (n != 0 && n % in_table == 0) {
            const std::uint64_t next = tables + n / in_table * ScatterEntry::page_bytes;
            list_[at] = ScatterEntry::word(ScatterEntry::link, next);
            at = next;
        }
        list_[at] = ScatterEntry::word(n + 1 == pages ? ScatterEntry::last : ScatterEntry::page,
                                       first_page + (pages - 1 - n) * 2 * ScatterEntry::page_bytes);
        at += 4;
    }
    tmc_->on_list([this](std::uint64_t address) -> std::optional<std::uint32_t> {
        const auto found = list_.find(address);
        return found == list_.end() ? std::nullopt : std::optional(found->second);
    });
}

const RegisterSetting* SinkPath::setting(std::string_view name) const {
    // The last one holds.
    const auto found = std::find_if(setup_.registers.rbegin(), setup_.registers.rend(),
                                    [&](const RegisterSetting& s) { return s.name == name; });
    return found == setup_.registers.rend() ? nullptr : &*found;
}

template <class Model>
void SinkPath::enable(const flow::ComponentProgram& program, Model& model, flow::RegisterPort& port) {
    std::vector<RegisterStep> steps = program.enable;
    std::vector<RegisterStep> more;
    for (const RegisterSetting& s : setup_.registers) {
        const std::optional<std::uint32_t> offset = offset_of<Model>(s.name);
        if (!offset || setting(s.name) != &s) continue;
        const auto value = static_cast<std::uint32_t>(s.value);
        const auto last = std::find_if(steps.rbegin(), steps.rend(), [&](const RegisterStep& step) {
            return step.kind == RegisterStep::Kind::write && step.offset == *offset;
        });
        if (last != steps.rend())
            last->value = value;
        else
            more.push_back(flow::write_step(*offset, value, s.name, s.where));
    }
    // The last step starts the component.
    steps.insert(steps.end() - 1, more.begin(), more.end());
    std::uint64_t cycle = 0;
    for (const RegisterStep& step : steps) {
        if (flow::carry_out(std::span(&step, 1), port, cycle)) continue;
        const RegisterSetting* const given = setting(step.name);
        WM_CHECK(given != nullptr);
        if (refused_.empty())
            refused_ = fmt::format("{}{}{} {:#x} is refused: {}", given->where, given->where.empty() ? "" : ": ",
                                   given->name, given->value, model.write_register(step.offset, step.value));
    }
}

void SinkPath::connect(unsigned source) {
    const unsigned input = input_of(source);
    std::unique_ptr<Cti>& cti = unit_ctis_[input];
    if (cti) return;
    cti = std::make_unique<Cti>(CtiConfig{});
    matrix_.connect(*cti);
    enable(unit_trigger_program(), *cti, *locked_port(*cti));
    flow::ComponentProgram program = funnel_program(input);
    for (RegisterStep& step : program.enable)
        if (step.offset == BusFunnel::functl) step.value |= funnel_->read_register(BusFunnel::functl) & 0xff;
    enable(program, *funnel_, *funnel_port_);
}

void SinkPath::write(unsigned source, coresight::TraceId id, Bytes bytes) {
    WM_CHECK(unit_ctis_[input_of(source)] != nullptr);
    funnel_->write(input_of(source), id, bytes);
}

void SinkPath::trigger(unsigned source) {
    Cti& cti = *unit_ctis_[input_of(source)];
    cti.set_trigger_in(unit_trigger_input, true);
    cti.set_trigger_in(unit_trigger_input, false);
}

void SinkPath::stop() {
    std::uint64_t cycle = 0;
    // The registers may have been given other values, so that some steps have nothing to do.
    const std::uint32_t formatter = tmc_ ? Tmc::ffcr : Tpiu::ffcr;
    constexpr std::uint32_t format_bits = 3;
    for (RegisterStep step : sink_program_.disable) {
        if (step.kind == RegisterStep::Kind::write && step.offset == formatter) {
            const std::uint32_t now = tmc_ ? tmc_->read_register(formatter) : tpiu_->read_register(formatter);
            step.value = (step.value & ~format_bits) | (now & format_bits);
            if (tmc_ && tmc_->read_register(Tmc::mode) != 0) step.value &= ~Ffcr::stop_on_trig_evt;
        }
        WM_CHECK(flow::carry_out(std::span(&step, 1), *sink_port_, cycle));
    }
}

std::vector<SinkPath::Device> SinkPath::devices() const {
    std::vector<Device> out;
    out.push_back({setup_.name(), setup_.name(), tmc_ ? tmc_->registers() : tpiu_->registers(), false});
    out.push_back({"REPLICATOR", "Replicator", replicator_->registers()});
    out.push_back({"FUNNEL", "Funnel", funnel_->registers()});
    out.push_back({"CTI_SINK", "CTI", sink_cti_->registers()});
    for (unsigned n = 0; n < unit_ctis_.size(); ++n)
        if (unit_ctis_[n]) out.push_back({fmt::format("CTI_{}", n), "CTI", unit_ctis_[n]->registers()});
    return out;
}

}  // namespace waymark::sink
