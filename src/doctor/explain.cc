#include "waymark/doctor/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "waymark/analysis/samples.h"
#include "waymark/capture/device_file.h"
#include "waymark/capture/dpu_folder.h"
#include "waymark/capture/snapshot_sinks.h"
#include "waymark/core/registers.h"
#include "waymark/core/wire.h"
#include "waymark/doctor/capture_input.h"
#include "waymark/doctor/dpu_input.h"
#include "waymark/dpu/explain.h"
#include "waymark/dpu/packet.h"
#include "waymark/dpu/program_effects.h"
#include "waymark/dpu/register_program.h"
#include "waymark/flow/tee.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/packet_counter.h"
#include "waymark/pipeline/protocols.h"
#include "waymark/pipeline/run.h"
#include "waymark/protocol/adapters.h"
#include "waymark/sink/explain.h"
#include "waymark/spe/explanation.h"

namespace waymark::doctor {

namespace {

/// Name of the field that contains bit `n` of a register; empty if there is none.
std::string_view field_with_bit(const pipeline::Protocol& protocol, const std::string& name, unsigned n) {
    class Set final : public protocol::FieldVisitor {
    public:
        void number(std::string_view field, std::uint64_t value) override {
            if (value != 0) found = field;
        }
        void text(std::string_view, std::string_view) override {}
        std::string_view found;
    } set;
    protocol.visit_register({name, std::uint64_t{1} << n, {}, 64}, set);
    return set.found;
}

/// The fields of a register, from the lowest bit up; empty if the unit has no such register.
std::vector<RegisterField> fields_called(const pipeline::Protocol& protocol, const std::string& name) {
    std::vector<RegisterField> out;
    for (unsigned n = 0; n < 64; ++n) {
        const std::string_view field = field_with_bit(protocol, name, n);
        if (field.empty()) continue;
        if (!out.empty() && out.back().name == field && out.back().hi + 1 == n)
            out.back().hi = n;
        else
            out.push_back({field, n, n});
    }
    return out;
}

/// The unit's own name for a register; nullopt if it has no such register.
std::optional<std::string> name_in(const pipeline::Protocol& protocol, std::string_view written) {
    const std::string name = protocol::upper(written);
    for (const std::string& candidate : {name, name + "R"})
        if (!field_with_bit(protocol, candidate, 0).empty()) return candidate;
    return std::nullopt;
}

/// The units that know most of these registers, the first one before others. Units may have registers with the same
/// names: an objection to a value, such as that of an identification register, outweighs a name.
std::vector<const pipeline::Protocol*> units_with_most(const std::vector<flow::RegisterSetting>& settings) {
    std::vector<const pipeline::Protocol*> best;
    std::ptrdiff_t most = 0;
    std::vector<RegisterValue> values;
    for (const flow::RegisterSetting& s : settings)
        if (s.field.empty()) values.push_back({protocol::upper(s.name), s.value, {}, 32});
    for (const pipeline::Protocol* protocol : pipeline::protocols()) {
        const auto explanation = protocol->explain(values, {});
        if (!explanation) continue;
        const auto known = std::count_if(settings.begin(), settings.end(),
                                         [&](const auto& s) { return name_in(*protocol, s.name).has_value(); });
        const auto objections = std::count_if(explanation->findings.begin(), explanation->findings.end(),
                                              [](const auto& f) { return f.effect != protocol::TraceEffect::note; });
        if (known == 0 || (!best.empty() && known - objections < most)) continue;
        if (known - objections > most) best.clear();
        best.push_back(protocol);
        most = known - objections;
    }
    return best;
}

std::string explained_units() {
    std::string out;
    for (const pipeline::Protocol* protocol : pipeline::protocols())
        if (protocol->explain({}, {})) out += fmt::format("{}; ", protocol->words().types);
    return out + "SPE; DPU; ETB and TMC; TPIU; funnel; replicator; CTI";
}

/// The kinds of units whose registers have a text format of their own.
enum class Family { flow, spe, dpu };

/// Counts the words of a text that begin like registers of each family.
void count_names(std::string_view text, std::array<std::size_t, 3>& of) {
    static constexpr std::pair<std::string_view, Family> prefixes[] = {
        {"TRC", Family::flow}, {"ETM", Family::flow}, {"PMS", Family::spe}, {"PMB", Family::spe}, {"DP_", Family::dpu}};
    const auto in_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
    for (std::size_t at = 0; at < text.size();) {
        if (!in_word(text[at])) {
            ++at;
            continue;
        }
        std::size_t end = at;
        while (end < text.size() && in_word(text[end])) ++end;
        const std::string word = protocol::upper(text.substr(at, std::min<std::size_t>(end - at, 3)));
        for (const auto& [prefix, family] : prefixes)
            if (word == prefix) ++of[static_cast<std::size_t>(family)];
        at = end;
    }
}

/// A register of which only some fields were given.
struct PartlyGiven {
    std::string name;
    std::vector<RegisterField> open;  ///< the others
};
using ExplainValues = std::function<protocol::UnitExplanation(const std::vector<RegisterValue>&)>;

std::uint64_t field_mask(const RegisterField& f) {
    const std::uint64_t ones = f.width() >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << f.width()) - 1;
    return ones << f.lo;
}

/// Keeps the elements of `items` that `others` has too.
template <class T>
void intersect(std::vector<T>& items, const std::vector<T>& others) {
    std::erase_if(items, [&](const T& item) { return std::find(others.begin(), others.end(), item) == others.end(); });
}

/// The conclusions with one choice of the values of fields that were not given.
struct Conclusion {
    explicit Conclusion(protocol::UnitExplanation explanation) : e(std::move(explanation)) {}
    protocol::UnitExplanation e;

    [[nodiscard]] const std::vector<protocol::TraceCondition>& obstacles(const std::string& level) const {
        static const std::vector<protocol::TraceCondition> none;
        const auto it = std::find_if(e.levels.begin(), e.levels.end(), [&](const auto& l) { return l.name == level; });
        return it == e.levels.end() ? none : it->obstacles;
    }
    [[nodiscard]] const protocol::TraceContent* content(const std::string& what) const {
        const auto it =
            std::find_if(e.contents.begin(), e.contents.end(), [&](const auto& c) { return c.what == what; });
        return it == e.contents.end() ? nullptr : &*it;
    }
    [[nodiscard]] bool traces_as(const Conclusion& o) const {
        return e.findings == o.e.findings && e.undecided == o.e.undecided &&
               std::equal(e.levels.begin(), e.levels.end(), o.e.levels.begin(), o.e.levels.end(),
                          [](const auto& a, const auto& b) { return a.name == b.name && a.obstacles == b.obstacles; });
    }
};
bool same_content(const protocol::TraceContent* a, const protocol::TraceContent* b) {
    return a != nullptr && b != nullptr && a->traced == b->traced && a->text == b->text;
}

/// Explains registers of which some fields were not given. The explanation contains what is true for several values of
/// every such field, and names the fields that decide the rest.
void explain_partly(ExplainedSource& out, const std::vector<PartlyGiven>& partly, const ExplainValues& explain) {
    const Conclusion base(explain(out.registers));
    out.explanation = base.e;
    if (partly.empty()) return;
    struct Variant {
        std::string field;  ///< empty: several
        Conclusion conclusion;
    };
    std::vector<Variant> variants;
    std::vector<RegisterValue> all = out.registers;
    const auto value_of = [](std::vector<RegisterValue>& registers, const std::string& name) -> std::uint64_t& {
        return std::find_if(registers.begin(), registers.end(), [&](const auto& r) { return r.name == name; })->value;
    };
    for (const PartlyGiven& part : partly)
        for (const RegisterField& f : part.open) {
            const std::uint64_t mask = field_mask(f), lowest = std::uint64_t{1} << f.lo;
            value_of(all, part.name) |= mask;
            for (const std::uint64_t bits : {mask, lowest}) {
                std::vector<RegisterValue> changed = out.registers;
                value_of(changed, part.name) |= bits;
                variants.push_back({fmt::format("{}.{}", part.name, f.name), Conclusion(explain(changed))});
                if (mask == lowest) break;
            }
        }
    variants.push_back({"", Conclusion(explain(all))});

    protocol::UnitExplanation& e = out.explanation;
    out.undecided_contents.assign(e.contents.size(), {});
    const auto once = [](std::vector<std::string>& names, const std::string& name) {
        if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    };
    for (const Variant& v : variants) {
        intersect(e.findings, v.conclusion.e.findings);
        for (protocol::TracedLevel& level : e.levels) intersect(level.obstacles, v.conclusion.obstacles(level.name));
        intersect(e.undecided, v.conclusion.e.undecided);
        intersect(e.undescribed, v.conclusion.e.undescribed);
    }
    for (const Variant& v : variants) {
        if (!v.conclusion.traces_as(base)) once(e.undecided, v.field);
        for (std::size_t i = 0; i < e.contents.size(); ++i)
            if (!same_content(v.conclusion.content(e.contents[i].what), &e.contents[i]))
                once(out.undecided_contents[i], v.field);
    }
}

Family family_of(const GivenRegisters& given) {
    std::array<std::size_t, 3> of{};
    for (const auto& file : given.files) count_names(file.text, of);
    for (const auto& setting : given.settings) count_names(setting.name, of);
    return static_cast<Family>(std::max_element(of.begin(), of.end()) - of.begin());
}

/// Whether no name begins as registers of a trace source do.
bool names_no_source(const GivenRegisters& given) {
    std::array<std::size_t, 3> of{};
    for (const auto& file : given.files) count_names(file.text, of);
    for (const auto& setting : given.settings) count_names(setting.name, of);
    return std::all_of(of.begin(), of.end(), [](std::size_t n) { return n == 0; });
}

/// Notes which fields of a register are given after this setting. `whole`: all fields were given before.
void give(std::vector<PartlyGiven>& partly, const flow::RegisterSetting& setting, const flow::SettableRegister& it,
          bool whole) {
    auto found = std::find_if(partly.begin(), partly.end(), [&](const PartlyGiven& p) { return p.name == it.name; });
    if (setting.field.empty()) {
        if (found != partly.end()) partly.erase(found);
        return;
    }
    if (found == partly.end()) {
        if (whole) return;
        found = partly.insert(found, {it.name, it.fields});
        std::erase_if(found->open, [](const RegisterField& f) { return f.reserved(); });
    }
    std::erase_if(found->open, [&](const RegisterField& f) { return f.name == setting.field; });
    if (found->open.empty()) partly.erase(found);
}

Result<ExplainedSource> explain_spe(const GivenRegisters& given) {
    spe::ExplainInput input;
    for (const auto& file : given.files) WM_RETURN_IF_ERROR(input.add_file(file.name, file.text));
    // A later setting replaces an earlier one.
    std::map<std::string, std::uint64_t> settings;
    for (const auto& s : given.settings) settings[s.field.empty() ? s.name : s.name + "." + s.field] = s.value;
    for (const auto& [name, value] : settings) WM_RETURN_IF_ERROR(input.add(name, fmt::format("{:#x}", value)));
    WM_RETURN_IF_ERROR(input.finish({}));
    ExplainedSource out;
    spe::CommonExplanation common = spe::unit_explanation(input, input.explain());
    out.explanation = std::move(common.unit);
    out.undecided = std::move(common.undecided);
    out.undecided_contents = std::move(common.undecided_contents);
    out.remarks = input.notes();
    spe::Registers::for_each(input.state().regs, [&](const auto& r) {
        if (input.given(r.name)) out.registers.push_back({std::string(r.name), to_value(r), {}, 8 * r.bytes});
    });
    return out;
}

/// The contents of the registers after `writes`.
dpu::Registers after(const dpu::RegisterProgram& writes) {
    dpu::Registers out;
    for (const dpu::RegisterWrite& w : writes) out.set(w.offset, w.value);
    return out;
}

Result<ExplainedSource> explain_dpu(const GivenRegisters& given) {
    dpu::RegisterProgram writes;
    for (const auto& file : given.files) {
        const auto program = dpu::read_program(file.text);
        if (!program) return Error{program.error().code, fmt::format("{}: {}", file.name, program.error().message)};
        writes.insert(writes.end(), program->begin(), program->end());
    }
    const bool program = !writes.empty();
    ExplainedSource out;
    const auto written = [&](std::string_view name) {
        return std::any_of(writes.begin(), writes.end(),
                           [&](const auto& w) { return dpu::Registers::find(w.offset)->name == name; });
    };
    std::vector<PartlyGiven> partly;
    for (const flow::RegisterSetting& setting : given.settings) {
        const auto about = dpu::Registers::find(setting.name);
        if (!about) {
            out.ignored.push_back(setting.name);
            continue;
        }
        const dpu::Registers now = after(writes);
        const flow::SettableRegister it{std::string(about->name), *now.get(about->offset), 0xffffffff, 4,
                                        now.fields(about->offset)};
        WM_ASSIGN_OR_RETURN(const std::uint64_t value, flow::value_after(setting, it));
        give(partly, setting, it, written(about->name));
        writes.push_back(
            {writes.empty() ? 0 : writes.back().cycle, about->offset, static_cast<std::uint32_t>(value), 0});
    }
    const dpu::Registers registers = after(writes);
    dpu::ExplainOptions options;
    options.given = written;
    dpu::Registers::for_each(registers, [&](const auto& r) {
        if (written(r.name)) out.registers.push_back({std::string(r.name), to_value(r), {}, 32});
    });
    explain_partly(out, partly, [&](const std::vector<RegisterValue>& values) {
        dpu::Registers all = registers;
        for (const RegisterValue& r : values)
            all.set(dpu::Registers::find(r.name)->offset, static_cast<std::uint32_t>(r.value));
        return dpu::explain(all, options);
    });
    if (program)
        for (const dpu::Diagnosis& d : dpu::diagnose(writes, dpu::config_for(writes, {})))
            out.explanation.findings.push_back({protocol::TraceEffect::note, "",
                                                d.line == 0 ? d.message : fmt::format("line {}: {}", d.line, d.message),
                                                "", "3"});
    return out;
}

// ---- captures

std::vector<TraceCost::Kind> sorted(const std::map<std::string, TraceCost::Kind>& kinds) {
    std::vector<TraceCost::Kind> out;
    for (const auto& [name, kind] : kinds) out.push_back({name, kind.count, kind.bytes});
    std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    return out;
}

/// Adds up the packets of a source.
class PacketBytes final : public protocol::PacketListener {
public:
    void packet(const protocol::PacketView& packet, protocol::Extent at) override {
        TraceCost::Kind& kind = kinds[std::string(packet.name())];
        ++kind.count;
        kind.bytes += at.bytes;
        bytes += at.bytes;
    }
    void gap(const Gap&) override {}
    std::map<std::string, TraceCost::Kind> kinds;
    std::uint64_t bytes = 0;
};

std::string not_measured(std::string_view unit, const std::string& why) {
    return fmt::format("the effect of {} was not measured: {}", unit, why);
}

/// Adds a remark to a source about the size of its trace, unless another source has the same remark.
void remark(std::vector<ExplainedSource>& all, ExplainedSource& to, std::string text) {
    for (const ExplainedSource& o : all)
        if (std::find(o.remarks.begin(), o.remarks.end(), text) != o.remarks.end()) return;
    to.remarks.push_back(std::move(text));
}

/// Measures the trace of each explained source.
void measure(const pipeline::Session& session, std::vector<ExplainedSource>& out) {
    const auto sources = session.select({});
    if (!sources) {
        if (!out.empty()) remark(out, out.front(), not_measured("an instruction", sources.error().message));
        return;
    }
    for (const pipeline::Source* source : *sources) {
        const auto it = std::find_if(out.begin(), out.end(), [&](const auto& o) { return o.source == source->name; });
        if (it == out.end() || !source->has_packets()) continue;
        PacketBytes packets;
        std::vector<std::unique_ptr<flow::Tee>> tees;
        const std::vector<const pipeline::Source*> alone{source};
        const pipeline::Report report = pipeline::run(session, alone, [&](const pipeline::StreamInfo& stream) {
            return pipeline::packet_consumer(stream, packets);
        });
        const auto lacks = [&](const pipeline::Report& of) {
            for (const std::string& why : pipeline::read_errors(session, of))
                remark(out, *it,
                       packets.bytes == 0 ? not_measured("an instruction", why)
                                          : "the effect is measured on a part of the trace: " + why);
        };
        lacks(report);
        if (packets.bytes == 0) continue;
        if (source->has_flow())
            lacks(pipeline::run(session, alone, [&](const pipeline::StreamInfo& stream) {
                tees.push_back(std::make_unique<flow::Tee>([](Offset at) { return at.value; }, nullptr));
                return pipeline::flow_consumer(stream, *tees.back(), pipeline::DecoderKind::fast);
            }));
        TraceCost cost;
        cost.unit = "instruction";
        cost.bytes = packets.bytes;
        cost.kinds = sorted(packets.kinds);
        for (const auto& tee : tees) {
            cost.units += tee->totals().instructions;
            cost.unplaced += tee->totals().no_memory;
        }
        it->cost = std::move(cost);
    }
}

/// Adds up the entries of a DPU's trace.
class EntryTotals final : public dpu::ElementSink {
public:
    void consume(const dpu::Batch&) override {}
};

/// The cost of the entries in a DPU's folder; nullopt if there are no entries.
Result<std::optional<TraceCost>> dpu_cost(const std::string& path, std::vector<std::string>& remarks) {
    WM_ASSIGN_OR_RETURN(const DpuInput input, DpuInput::open(path));
    EntryTotals sink;
    WM_ASSIGN_OR_RETURN(const pipeline::DpuDecoded decoded,
                        pipeline::decode_dpu(input.trace(), input.trace_bytes(), sink));
    if (input.is_cut(decoded)) remarks.push_back("the effect is measured on a part of the trace: " + input.cut_text());
    std::optional<TraceCost> out;
    if (decoded.totals.entry_bytes == 0) return out;
    TraceCost& c = out.emplace();
    c.unit = "entry";
    c.bytes = decoded.totals.entry_bytes;
    std::size_t i = 0;
    for (const std::string& name : protocol::names_of<dpu::Entries>()) {
        const std::uint64_t n = decoded.totals.entries[i++];
        if (n != 0) c.kinds.push_back({name, n, 0});
        c.units += n;
    }
    return out;
}

Result<ExplainedSource> explain_dpu_folder(const std::string& path, bool cost) {
    WM_ASSIGN_OR_RETURN(const capture::DpuCapture capture, capture::read_dpu_folder(path));
    ExplainedSource out;
    dpu::Registers registers;
    for (const capture::Register& r : capture.registers)
        if (const auto about = dpu::Registers::find(r.name)) {
            registers.set(about->offset, static_cast<std::uint32_t>(r.value));
            out.registers.push_back({std::string(about->name), r.value, {}, 32});
        } else {
            out.ignored.push_back(r.name);
        }
    // The registers show the state after tracing stopped. If tracing was on before, the question is about that state.
    const bool was_on = capture.initial || capture.lines_written.value_or(0) != 0 || !capture.periods.empty();
    if (was_on && (!registers.tc.en || registers.tc.tmpdis)) {
        if (!registers.tc.en && !capture.periods.empty())
            registers.tc = from_value<dpu::DpTc>(capture.periods.back().dp_tc);
        registers.tc.en = true;
        registers.tc.tmpdis = false;
        out.remarks.push_back(
            "tracing was on, and DP_TC was read after it was stopped; the explanation is of DP_TC while tracing was "
            "on");
    }
    dpu::ExplainOptions options;
    options.given = [&](std::string_view name) { return capture.find_register(name) != nullptr; };
    if (capture.eonce_classes) {
        dpu::EonceSetup& eonce = options.eonce.emplace();
        const auto on = [&](std::string_view name) {
            return std::find(capture.eonce_classes->begin(), capture.eonce_classes->end(), name) !=
                   capture.eonce_classes->end();
        };
        eonce = {on("TCHOF"), on("TINT"), on("TEXEC"), on("TMARK"), on("TLOOP"), on("TSUB"), on("TRTE"), false, false};
    }
    out.explanation = dpu::explain(registers, options);
    if (!cost) return out;
    if (auto measured = dpu_cost(path, out.remarks))
        out.cost = *std::move(measured);
    else
        out.remarks.push_back(not_measured("an entry", measured.error().message));
    return out;
}

class NoSampleSink final : public analysis::SampleSink {
public:
    void consume(const analysis::SampleBatch&) override {}
    [[nodiscard]] std::unique_ptr<SampleSink> fork() const override { return std::make_unique<NoSampleSink>(); }
    void join(SampleSink&) override {}
};

/// The registers that Linux's driver derives from the event that perf asked for (docs/spec/spe.md, 5.3).
void add_event(const capture::perf::Attr& attr, GivenRegisters& to) {
    const auto bit = [](std::uint64_t word, unsigned n) { return word >> n & 1U; };
    const auto set = [&](std::string name, std::string field, std::uint64_t value) {
        to.settings.push_back({std::move(name), std::move(field), value, "the event"});
    };
    // The bits exclude_user and exclude_kernel of perf_event_attr.
    set("PMSCR_EL1", "E0SPE", bit(attr.flags, 4) ^ 1U);
    set("PMSCR_EL1", "E1SPE", bit(attr.flags, 5) ^ 1U);
    set("PMSCR_EL1", "TS", bit(attr.config, 0));
    set("PMSCR_EL1", "PA", bit(attr.config, 1));
    set("PMSCR_EL1", "PCT", bit(attr.config, 2));
    set("PMSIRR_EL1", "INTERVAL", std::min<std::uint64_t>(attr.sample_period >> 8, 0xffffff));
    set("PMSIRR_EL1", "RND", bit(attr.config, 16));
    const std::uint64_t types = attr.config >> 32 & 7U, latency = attr.config2 & 0xfff;
    set("PMSFCR_EL1", "B", bit(attr.config, 32));
    set("PMSFCR_EL1", "LD", bit(attr.config, 33));
    set("PMSFCR_EL1", "ST", bit(attr.config, 34));
    set("PMSFCR_EL1", "FT", types != 0 ? 1 : 0);
    set("PMSFCR_EL1", "FE", attr.config1 != 0 ? 1 : 0);
    set("PMSFCR_EL1", "FL", latency != 0 ? 1 : 0);
    if (attr.config1 != 0) set("PMSEVFR_EL1", "", attr.config1);
    if (latency != 0) set("PMSLATFR_EL1", "MINLAT", latency);
}

Result<std::vector<ExplainedSource>> explain_samples(const open::Container& container, bool cost) {
    WM_ASSIGN_OR_RETURN(const analysis::SampleCapture capture, open::open_samples(container));
    std::vector<ExplainedSource> out;
    for (const capture::perf::Attr* attr : capture.attrs()) {
        GivenRegisters given;
        add_event(*attr, given);
        WM_ASSIGN_OR_RETURN(ExplainedSource unit, explain_spe(given));
        unit.source = attr->name;
        unit.remarks.push_back("the registers are those that Linux makes of the event that perf asked for");
        out.push_back(std::move(unit));
    }
    if (out.empty())
        return Error{
            Errc::unsupported,
            container.name() + ": the file contains no event of a profiling unit, so its registers are not known"};
    if (!cost) return out;
    NoSampleSink sink;
    const analysis::SampleTotals totals = analysis::run_samples(capture, {}, sink, 1);
    TraceCost c;
    c.unit = "sample";
    for (const analysis::StreamTotals& s : totals.streams) {
        c.bytes += s.totals.record_bytes;
        c.units += s.totals.records;
    }
    for (const Error& error : totals.errors)
        out.front().remarks.push_back(c.bytes == 0 ? not_measured("a sample", error.message)
                                                   : "the effect is measured on a part of the trace: " + error.message);
    // If one unit had several events, the file does not tell which event a record belongs to.
    if (c.bytes != 0 && out.size() == 1) out.front().cost = std::move(c);
    return out;
}

}  // namespace

namespace {

/// explain_settings() of this unit.
Result<ExplainedSource> explain_unit(const pipeline::Protocol& protocol,
                                     const std::vector<flow::RegisterSetting>& settings, std::string_view core) {
    ExplainedSource out;
    std::vector<PartlyGiven> partly;
    for (const flow::RegisterSetting& setting : settings) {
        const auto name = name_in(protocol, setting.name);
        if (!name) {
            out.ignored.push_back(setting.name);
            continue;
        }
        flow::SettableRegister it{*name, 0, ~std::uint64_t{0}, 4, fields_called(protocol, *name)};
        if (it.fields.back().hi >= 32)
            it.bytes = 8;
        else
            it.writable = 0xffffffff;
        auto found = std::find_if(out.registers.begin(), out.registers.end(),
                                  [&](const RegisterValue& r) { return r.name == *name; });
        const bool before = found != out.registers.end();
        if (!before) found = out.registers.insert(found, {*name, 0, {}, 8 * it.bytes});
        it.value = found->value;
        flow::RegisterSetting named = setting;
        named.name = *name;
        WM_ASSIGN_OR_RETURN(found->value, flow::value_after(named, it));
        give(partly, named, it, before);
    }
    explain_partly(out, partly,
                   [&](const std::vector<RegisterValue>& registers) { return *protocol.explain(registers, core); });
    return out;
}

}  // namespace

namespace {

/// The condition holds for the explained unit, and not for `other`.
void depends_on_unit(protocol::TraceCondition& f, const std::string& other) {
    if (f.effect != protocol::TraceEffect::stops) return;
    f.effect = protocol::TraceEffect::may;
    f.unless = fmt::format("the unit is an {}", other);
    f.text += ", unless " + f.unless;
}

/// Another unit has registers with the same names: what holds for one of them only is not known.
void compare(protocol::UnitExplanation& e, const protocol::UnitExplanation& other) {
    const auto stopped = [](const std::vector<protocol::TraceCondition>& all) {
        return std::any_of(all.begin(), all.end(),
                           [](const auto& f) { return f.effect == protocol::TraceEffect::stops; });
    };
    if (!other.stopped()) {
        for (protocol::TraceCondition& f : e.findings) depends_on_unit(f, other.unit);
        for (protocol::TracedLevel& level : e.levels) {
            const auto same = std::find_if(other.levels.begin(), other.levels.end(),
                                           [&](const protocol::TracedLevel& l) { return l.name == level.name; });
            if (same == other.levels.end() || stopped(same->obstacles) || !stopped(level.obstacles)) continue;
            for (protocol::TraceCondition& f : level.obstacles) depends_on_unit(f, other.unit);
        }
    }
    e.unit += " or " + other.unit;
}

}  // namespace

Result<ExplainedSource> explain_settings(const std::vector<flow::RegisterSetting>& settings, std::string_view core) {
    const std::vector<const pipeline::Protocol*> units = units_with_most(settings);
    if (units.empty())
        return Error{Errc::usage,
                     settings.empty()
                         ? fmt::format("no registers are given; explained are the units {}", explained_units())
                         : fmt::format("{}: {} is not a register of a unit that is explained: {}",
                                       settings.front().where, settings.front().name, explained_units())};
    WM_ASSIGN_OR_RETURN(ExplainedSource out, explain_unit(*units.front(), settings, core));
    // Two units may have the same names: only an identification register shows which one it is.
    for (std::size_t n = 1; n < units.size(); ++n) {
        const auto other = explain_unit(*units[n], settings, core);
        if (!other) continue;
        compare(out.explanation, other->explanation);
        out.remarks.push_back(fmt::format(
            "an {} has registers with these names too; give the identification register for an answer about "
            "one unit",
            other->explanation.unit));
    }
    return out;
}

namespace {

/// Whether the capture has bytes that may come from the trace buffer with that name. Memory that was never written
/// contains zeros.
bool has_bytes_of(const capture::Capture& capture, const std::string& sink) {
    const auto has = [](const capture::Buffer& buffer) {
        const auto stream = capture::open_buffer(buffer);
        if (!stream) return false;
        std::array<std::uint8_t, 4096> piece{};
        for (unsigned i = 0; i < 256; ++i) {
            const auto n = (*stream)->read(piece);
            if (!n || *n == 0) return false;
            if (std::any_of(piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(*n),
                            [](std::uint8_t byte) { return byte != 0; }))
                return true;
        }
        return false;
    };
    const auto named = std::find_if(capture.buffers.begin(), capture.buffers.end(),
                                    [&](const capture::Buffer& buffer) { return buffer.name == sink; });
    if (named != capture.buffers.end()) return has(*named);
    return std::any_of(capture.buffers.begin(), capture.buffers.end(), has);
}

}  // namespace

namespace {

/// nullopt: there is no explanation for the type of the device.
std::optional<ExplainedSource> explain_sink(const capture::SinkDevice& device, bool saved) {
    ExplainedSource unit;
    unit.source = device.name;
    for (const capture::Register& r : device.registers) unit.registers.push_back({r.name, r.value, {}, 32});
    auto explained = sink::explain_device(device.type.empty() ? device.name : device.type, unit.registers, saved);
    if (!explained) return std::nullopt;
    unit.explanation = std::move(explained->explanation);
    unit.role = explained->role;
    unit.has_trace = saved;
    return unit;
}

/// Explains registers of a trace buffer, or of what is before it. nullopt: they are of a trace source.
Result<std::optional<ExplainedSource>> explain_as_sink(const GivenRegisters& given) {
    std::vector<flow::RegisterSetting> settings;
    for (const auto& file : given.files) {
        const auto more = flow::read_register_settings(file.text, file.name);
        if (!more) return std::optional<ExplainedSource>();
        settings.insert(settings.end(), more->begin(), more->end());
    }
    settings.insert(settings.end(), given.settings.begin(), given.settings.end());
    std::vector<std::string> names;
    for (const flow::RegisterSetting& s : settings) names.push_back(s.name);
    const std::string_view type = sink::device_with(names);
    if (type.empty()) return std::optional<ExplainedSource>();
    capture::SinkDevice device{.name = {}, .type = std::string(type), .registers = {}};
    std::vector<std::string> ignored;
    for (const flow::RegisterSetting& s : settings) {
        if (!s.field.empty())
            return Error{Errc::usage,
                         fmt::format("{}: {}.{}: give the whole value of {}", s.where, s.name, s.field, s.name)};
        if (!sink::device_has(type, s.name)) {
            ignored.push_back(s.name);
            continue;
        }
        // A later setting replaces an earlier one.
        std::erase_if(device.registers, [&](const capture::Register& r) { return r.name == s.name; });
        device.registers.push_back({s.name, s.value, {}, 32});
    }
    std::optional<ExplainedSource> out = explain_sink(device, false);
    if (out) out->ignored = std::move(ignored);
    return out;
}

Result<ExplainedSource> explain_one(const GivenRegisters& given, std::string_view core) {
    if (names_no_source(given)) {
        WM_ASSIGN_OR_RETURN(std::optional<ExplainedSource> device, explain_as_sink(given));
        if (device) return *std::move(device);
    }
    switch (family_of(given)) {
        case Family::spe: return explain_spe(given);
        case Family::dpu: return explain_dpu(given);
        case Family::flow: break;
    }
    std::vector<flow::RegisterSetting> settings;
    for (const auto& file : given.files) {
        WM_ASSIGN_OR_RETURN(const auto more, flow::read_register_settings(file.text, file.name));
        settings.insert(settings.end(), more.begin(), more.end());
    }
    settings.insert(settings.end(), given.settings.begin(), given.settings.end());
    return explain_settings(settings, core);
}

}  // namespace

std::vector<ExplainedSource> explained_sinks(const capture::Capture& capture) {
    std::vector<ExplainedSource> out;
    if (capture.path.filename() != "snapshot.ini" && capture.path.filename() != "contents.ini") return out;
    const auto sinks = capture::read_snapshot_sinks(capture.path);
    if (!sinks) return out;
    for (const capture::SinkDevice& device : *sinks)
        if (!device.registers.empty())
            if (auto explained = explain_sink(device, has_bytes_of(capture, device.name)))
                out.push_back(*std::move(explained));
    return out;
}

Result<std::vector<ExplainedSource>> explain_registers(const GivenRegisters& given, std::string_view core) {
    std::vector<ExplainedSource> out;
    GivenRegisters others{{}, given.settings};
    std::vector<capture::Source> sources;
    for (const GivenRegisters::File& file : given.files) {
        const auto device = capture::read_device_file(file.text, file.name);
        if (!device) {
            others.files.push_back(file);
            continue;
        }
        for (const capture::Problem& problem : device->problems)
            return Error{Errc::bad_format, fmt::format("{}:{}: {}", file.name, problem.line, problem.message)};
        if (device->source) {
            sources.push_back(*device->source);
        } else if (device->sink) {
            auto explained = explain_sink(*device->sink, false);
            if (!explained)
                return Error{Errc::unsupported,
                             fmt::format("{}: '{}' is not explained; ETB, TMC-ETB, TMC-ETF, TMC-ETR, TPIU, funnel, "
                                         "replicator and CTI are",
                                         file.name, device->sink->type)};
            out.push_back(*std::move(explained));
        } else {
            return Error{
                Errc::unsupported,
                fmt::format(
                    "{}: it describes neither a trace source nor a trace buffer; give the file of one, or the folder",
                    file.name)};
        }
    }
    const bool more = !others.files.empty() || !others.settings.empty();
    if (more && (sources.size() > 1 || !out.empty()))
        return Error{Errc::usage,
                     "further registers can only be given together with the file of one trace source, and without the "
                     "file of a trace buffer; leave them out"};
    if (sources.empty() && out.empty()) {
        WM_ASSIGN_OR_RETURN(ExplainedSource unit, explain_one(given, core));
        out.push_back(std::move(unit));
    }
    for (auto source = sources.rbegin(); source != sources.rend(); ++source) {
        std::vector<flow::RegisterSetting> settings;
        for (const capture::Register& r : source->registers) settings.push_back({r.name, {}, r.value, source->name});
        for (const auto& file : others.files) {
            WM_ASSIGN_OR_RETURN(const auto read, flow::read_register_settings(file.text, file.name));
            settings.insert(settings.end(), read.begin(), read.end());
        }
        settings.insert(settings.end(), others.settings.begin(), others.settings.end());
        const pipeline::Protocol* const protocol = pipeline::protocol_of(source->type);
        const bool explained = protocol != nullptr && protocol->explain({}, {});
        WM_ASSIGN_OR_RETURN(ExplainedSource unit,
                            explained ? explain_unit(*protocol, settings, core) : explain_settings(settings, core));
        unit.source = source->name;
        out.insert(out.begin(), std::move(unit));
    }
    return out;
}

Result<std::vector<ExplainedSource>> explain_capture(const std::string& path, bool cost,
                                                     const std::function<void(const std::string&)>& note) {
    CaptureInput input;
    input.capture = path;
    if (input.container().contents() == open::Content::counters) {
        WM_ASSIGN_OR_RETURN(ExplainedSource unit, explain_dpu_folder(path, cost));
        std::vector<ExplainedSource> out;
        out.push_back(std::move(unit));
        return out;
    }
    if (input.container().contents() == open::Content::samples) return explain_samples(input.container(), cost);
    WM_ASSIGN_OR_RETURN(const pipeline::Session session, open_capture(input, nullptr, note));
    std::vector<ExplainedSource> out;
    for (const capture::Source& source : session.capture.sources) {
        const pipeline::Protocol* const protocol = pipeline::protocol_of(source.type);
        if (protocol == nullptr) continue;
        auto explanation = protocol->explain(source.registers, source.core_type);
        if (!explanation) continue;
        ExplainedSource unit;
        unit.source = source.name;
        unit.registers = source.registers;
        unit.explanation = *std::move(explanation);
        unit.not_permitted = capture::not_permitted(session.capture);
        out.push_back(std::move(unit));
    }
    for (ExplainedSource& sink : explained_sinks(session.capture)) out.push_back(std::move(sink));
    if (out.empty())
        return Error{
            Errc::unsupported,
            fmt::format("{}: it has no source of a unit that is explained; explained are {}", path, explained_units())};
    if (cost) measure(session, out);
    return out;
}

}  // namespace waymark::doctor
