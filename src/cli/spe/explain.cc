/// `waymark spe explain`: why a Statistical Profiling unit takes samples, or none.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "../options.h"
#include "../table.h"
#include "commands.h"
#include "waymark/capture/text_file.h"
#include "waymark/spe/explain.h"
#include "waymark/spe/register_file.h"

namespace waymark::cli {

namespace {

using nlohmann::ordered_json;
using spe::Decision;
using spe::Fact;
using spe::State;
using spe::Why;

struct ExplainOptions {
    std::vector<std::string> arguments;
    std::map<std::string, std::string> registers;  ///< by published name
    std::vector<std::string> with, without;
    std::string version = "v1.0", revision, format = "text", output;
    bool as_printed = false;
};

struct Feature {
    std::string_view name;
    bool spe::Architecture::*member;
};
constexpr Feature features[] = {
    {"EL2", &spe::Architecture::el2},         {"EL3", &spe::Architecture::el3},
    {"SEL2", &spe::Architecture::secure_el2}, {"RME", &spe::Architecture::rme},
    {"ECV", &spe::Architecture::ecv},         {"SVE", &spe::Architecture::sve},
    {"SPE_FnE", &spe::Architecture::fn_e},    {"SPE_FDS", &spe::Architecture::fds},
    {"SPE_EFT", &spe::Architecture::eft},     {"SPE_SME", &spe::Architecture::sme},
    {"SPE_EXC", &spe::Architecture::exc},     {"SPE_nVM", &spe::Architecture::n_vm},
};

std::string feature_names() {
    std::string out;
    for (const Feature& feature : features) out += (out.empty() ? "" : ", ") + std::string(feature.name);
    return out;
}

/// Registers as given, and what the rest is taken for.
class Input {
public:
    static Result<Input> from(const ExplainOptions& options) {
        Input input;
        std::vector<spe::Setting> settings, own;
        const auto add = [&](std::string_view name, std::string_view value) -> waymark::Status {
            auto setting = spe::read_setting(name, value);
            if (!setting)
                return Error{Errc::usage, setting.error().message + ". waymark spe explain --help lists the registers"};
            if (std::any_of(own.begin(), own.end(), [&](const auto& other) { return other.name == setting->name; }))
                return Error{Errc::usage, setting->name + " is given twice"};
            if (spe::base_unclear(value) && setting->name.find('.') == setting->name.npos)
                input.notes_.push_back(
                    fmt::format("{}={} is decimal; write 0x{} if it is hexadecimal", setting->name, value, value));
            own.push_back(std::move(*setting));
            return Nothing{};
        };
        // Files first, so that the command line can change what they say.
        for (const std::string& argument : options.arguments)
            if (argument.find('=') == argument.npos) WM_RETURN_IF_ERROR(input.read_file(argument, settings));
        for (const auto& [name, value] : options.registers)
            if (!value.empty()) WM_RETURN_IF_ERROR(add(name, value));
        for (const std::string& argument : options.arguments)
            if (const std::size_t equals = argument.find('='); equals != argument.npos)
                WM_RETURN_IF_ERROR(add(argument.substr(0, equals), argument.substr(equals + 1)));
        // A whole register must not undo one of its fields.
        std::stable_partition(own.begin(), own.end(), [](const auto& o) { return o.name.find('.') == o.name.npos; });
        settings.insert(settings.end(), own.begin(), own.end());
        if (settings.empty())
            return Error{Errc::usage,
                         (input.unknown_.empty()
                              ? "no register is given"
                              : "no register is given that profiling depends on, only " + names(input.unknown_)) +
                             std::string(": name some, as in 'waymark spe explain PMBLIMITR_EL1=0x1 "
                                         "PMSCR_EL1.E0SPE=1', or a file that holds them")};
        WM_RETURN_IF_ERROR(input.build(options, settings));
        return input;
    }

    [[nodiscard]] const State& state() const { return state_; }
    /// Something of this register was given; or this field, by a name such as `PMBLIMITR_EL1.LIMIT`.
    [[nodiscard]] bool given(std::string_view register_name) const {
        if (register_name.find('.') != register_name.npos) return field_given(register_name);
        return std::any_of(names_.begin(), names_.end(),
                           [&](std::string_view name) { return name.substr(0, name.find('.')) == register_name; });
    }
    /// This field was, or its whole register.
    [[nodiscard]] bool field_given(std::string_view field) const {
        return names_.contains(std::string(field)) || names_.contains(std::string(field.substr(0, field.find('.'))));
    }
    /// Fields that were not given and are not taken for 0.
    [[nodiscard]] const std::vector<Fact>& assumed() const { return assumed_; }
    /// What is to be said of how the input was read.
    [[nodiscard]] std::vector<std::string> notes() const {
        std::vector<std::string> out = notes_;
        if (!unknown_.empty())
            out.push_back("not registers that profiling depends on, so left aside: " + names(unknown_));
        return out;
    }

private:
    static std::string names(const std::vector<std::string>& list) {
        std::string out;
        for (const std::string& name : list) out += (out.empty() ? "" : ", ") + json_string(name);
        return out;
    }

    waymark::Status read_file(const std::string& path, std::vector<spe::Setting>& settings) {
        std::error_code none;
        if (path != "-" && !std::filesystem::exists(path, none))
            return Error{Errc::not_found,
                         path +
                             ": there is no such file; a register is given as NAME=VALUE, and anything "
                             "without a = is a file"};
        WM_ASSIGN_OR_RETURN(const std::string text, capture::read_text_file(path, capture::most_settings_bytes));
        auto read = spe::read_settings(text);
        if (!read) return Error{read.error().code, path + ": " + read.error().message};
        settings.insert(settings.end(), read->settings.begin(), read->settings.end());
        unknown_.insert(unknown_.end(), read->unknown.begin(), read->unknown.end());
        for (const std::string& note : read->notes) notes_.push_back(path + ": " + note);
        return Nothing{};
    }

    waymark::Status build(const ExplainOptions& options, const std::vector<spe::Setting>& settings) {
        spe::Registers& r = state_.regs;
        for (const spe::Setting& setting : settings) names_.insert(setting.name);
        const auto set = [&](const spe::Setting& setting) {
            return setting.name.find('.') == setting.name.npos ? r.set(setting.name, setting.value)
                                                               : r.set_field(setting.name, setting.value);
        };
        // The given registers show whose the buffer most likely is: a kernel at EL2 keeps it.
        for (const spe::Setting& setting : settings) static_cast<void>(set(setting));
        const bool host = r.hcr_el2.tge || given("PMSCR_EL2");
        r = {};
        for (const Fact& fact :
             {Fact{"MDCR_EL2.E2PB", host ? 0b00U : 0b11U}, {"MDCR_EL3.NSPB", 0b11}, {"SCR_EL3.NS", 1}}) {
            WM_CHECK(r.set_field(fact.name, fact.value));
            if (!field_given(fact.name)) assumed_.push_back(fact);
        }
        for (const spe::Setting& setting : settings) WM_CHECK(set(setting));
        return features_of(options);
    }

    waymark::Status features_of(const ExplainOptions& options) {
        for (unsigned v = 0; v <= static_cast<unsigned>(spe::Version::v1_5); ++v)
            if (name(static_cast<spe::Version>(v)) == options.version)
                state_.arch = spe::Architecture::of(static_cast<spe::Version>(v));
        if (given("PMSIDR_EL1")) state_.arch = state_.arch.with(state_.regs.pmsidr_el1);
        if (!options.revision.empty())
            state_.arch.revision = options.revision == "first" ? spe::Revision::first : spe::Revision::modern;
        state_.arch.as_printed = options.as_printed;
        const auto turn = [&](const std::vector<std::string>& names, bool on) {
            for (const std::string& name : names)
                for (const Feature& feature : features)
                    if (feature.name == name) state_.arch.*feature.member = on;
        };
        for (const std::string& name : options.with)
            if (std::find(options.without.begin(), options.without.end(), name) != options.without.end())
                return Error{Errc::usage, name + " is named by --with and by --without"};
        turn(options.with, true);
        turn(options.without, false);
        // The first revision knows of no Realm.
        if (state_.arch.rme) {
            if (options.revision == "first")
                return Error{Errc::usage, "RME is of the modern revision: leave out --revision first or --with RME"};
            state_.arch.revision = spe::Revision::modern;
        }
        if (!state_.arch.el3 && state_.regs.pstate.el == spe::EL3)
            return Error{Errc::usage, "PSTATE.EL is 3, but EL3 is not implemented (--without EL3)"};
        if (!state_.arch.el2 && state_.regs.pstate.el == spe::EL2)
            return Error{Errc::usage, "PSTATE.EL is 2, but EL2 is not implemented (--without EL2)"};
        std::erase_if(assumed_, [&](const Fact& fact) {
            return fact.name.starts_with("MDCR_EL2") ? !state_.arch.el2 : !state_.arch.el3;
        });
        return Nothing{};
    }

    State state_;
    std::set<std::string> names_;  ///< of registers and fields given
    std::vector<Fact> assumed_;
    std::vector<std::string> unknown_, notes_;
};

/// `0`, `0b11`: a value as one writes that field.
std::string value_text(const State& s, std::string_view name, std::uint64_t value) {
    auto field = s.regs.field(name);
    if (field) field->value = value;
    std::string out;
    if (field)
        out = spe::field_text(*field);
    else
        wire::append_number(out, value);
    return out;
}

/// Where a field holds upper bits of an address, the whole of it.
std::string address_text(std::string_view name, std::uint64_t value) {
    return name == "PMBLIMITR_EL1.LIMIT" && value != 0 ? fmt::format("{:#x}", value << 12) : std::string();
}

/// `PMSCR_EL1.E1SPE = 0`.
std::string assignment(const State& s, std::string_view name, std::uint64_t value) {
    const std::string address = address_text(name, value);
    return fmt::format("{} = {}{}", name, value_text(s, name, value),
                       address.empty() ? "" : " (address " + address + ")");
}

/// This is a field of a register, and not of the state it is asked in.
bool of_register(std::string_view name) {
    return !spe::Registers::canonical(name.substr(0, name.find('.'))).empty() && !name.starts_with("PSTATE");
}

std::string facts_text(const Input& input, const auto& facts) {
    std::string out;
    for (const Fact& fact : facts) {
        if (fact.name.empty()) continue;
        if (!out.empty()) out += ", ";
        out += assignment(input.state(), fact.name, fact.value);
        if (of_register(fact.name) && !input.field_given(fact.name)) out += " (not given)";
    }
    return out;
}

/// The text of a reason, with its section.
std::string why_text(const Input& input, const Why& why) {
    return fmt::format("{}: {} ({})", facts_text(input, why.facts), why.text, why.row);
}
std::string why_text(const Input& input, const spe::Finding& f) {
    const std::string facts = facts_text(input, f.facts);
    return fmt::format("{}{}{} ({})", facts, facts.empty() ? "" : ": ", f.text, f.section);
}

class TextReport {
public:
    TextReport(const Input& input, const spe::Explanation& e, Output& out)
        : input_(input), s_(input.state()), e_(e), out_(out) {}

    void print() {
        head();
        samples();
        out_.print("\nbuffer\n  owner  {:<14}  {}\n",
                   fmt::format("{} EL{}", name(e_.owner.value.state), e_.owner.value.el),
                   why_text(input_, e_.owner.why));
        out_.print("  on     {:<14}  {}\n", e_.buffer ? "yes" : "no", why_text(input_, e_.buffer.why));
        accesses();
        for (const spe::Level& level : e_.levels)
            if (level.samples()) record(level);
        findings();
    }

private:
    void head() {
        const spe::Architecture& a = s_.arch;
        out_.print(
            "Statistical Profiling {}, {} state, functions of the {} revision; sections are of docs/spec/spe.md\n",
            name(a.version), name(SecurityStateBelowEL3(s_)), a.revision == spe::Revision::first ? "first" : "modern");
        std::string assumed;
        for (const Fact& fact : input_.assumed())
            assumed += fmt::format("{}{} as {}", assumed.empty() ? "" : ", ", fact.name,
                                   value_text(s_, fact.name, fact.value));
        out_.print("what is not given counts as 0{}{}\n", assumed.empty() ? "" : "; ", assumed);
    }

    void samples() {
        out_.print("\nsamples\n");
        for (const spe::Level& level : e_.levels) {
            if (level.samples()) {
                out_.print("  EL{}  yes   {}\n", level.el, why_text(input_, level.sampled.why));
                continue;
            }
            for (const spe::Finding& f : level.obstacles) {
                const bool first = &f == &level.obstacles.front();
                out_.print("  {}  {}{}\n", first ? fmt::format("EL{}", level.el) : "   ",
                           first ? "none  " : "      then ", why_text(input_, f));
                remedy(f, "             ");
            }
        }
    }

    void remedy(const spe::Finding& f, std::string_view indent) {
        if (f.remedy) out_.print("{}set {}\n", indent, assignment(s_, f.facts[0].name, *f.remedy));
    }

    void accesses() {
        out_.print("\naccesses to registers\n");
        for (const spe::Level& level : e_.levels) {
            if (level.el == spe::EL0) continue;
            access(level.el, "PMB*", level.buffer_access);
            access(level.el, "PMS*", level.profiling_access);
            for (const spe::RegisterAccess& own : level.own_accesses) access(level.el, own.name, own.access);
        }
        if (std::all_of(e_.levels.begin(), e_.levels.end(), [](const auto& level) { return level.el == spe::EL0; }))
            out_.print("  EL0  {}\n", name(spe::SysRegAccess::UNDEFINED));
    }
    void access(unsigned el, std::string_view which, const Decision<spe::SysRegAccess>& d) {
        if (d.value == spe::SysRegAccess::OK)
            out_.print("  EL{}  {}  {}\n", el, which, name(d.value));
        else
            out_.print("  EL{}  {}  {:<9}  {}\n", el, which, name(d.value), why_text(input_, d.why));
    }

    void record(const spe::Level& level) {
        out_.print("\na record at EL{} holds\n", level.el);
        out_.print("  always              PC, total and issue latency, events, operation type\n");
        out_.print("  branches            target address\n");
        const bool unknown = !input_.given("PMSIDR_EL1");
        out_.print("  loads and stores    data virtual address, translation latency{}\n",
                   unknown                  ? "; data source of loads if PMSIDR_EL1.LDS = 1"
                   : s_.regs.pmsidr_el1.lds ? "; data source of loads"
                                            : "");
        const auto row = [&](std::string_view what, bool yes, std::string_view as, const Why& why) {
            out_.print("  {:<18}  {:<8}  {}\n", what, yes ? as : "no", why_text(input_, why));
        };
        row("physical address", level.physical_address, "yes", level.physical_address.why);
        row("CONTEXTIDR_EL1", level.context_idr1, "yes", level.context_idr1.why);
        row("CONTEXTIDR_EL2", level.context_idr2, "yes", level.context_idr2.why);
        row("timestamp", level.time_stamp.value != spe::TimeStamp::None, name(level.time_stamp.value),
            level.time_stamp.why);
    }

    void findings() {
        bool head = false;
        for (const spe::Finding& finding : e_.findings) {
            if (shown(finding)) continue;
            if (!head) out_.print("\nfurther\n");
            head = true;
            constexpr std::string_view weights[] = {"no samples", "perhaps", "note"};
            out_.print("  {:<10}  {}\n", weights[static_cast<unsigned>(finding.weight)], why_text(input_, finding));
            remedy(finding, "              ");
        }
    }
    /// Some level names it already, as what prevents sampling.
    [[nodiscard]] bool shown(const spe::Finding& finding) const {
        return finding.weight == spe::Weight::stops &&
               std::any_of(e_.levels.begin(), e_.levels.end(), [&](const spe::Level& level) {
                   return std::any_of(level.obstacles.begin(), level.obstacles.end(),
                                      [&](const spe::Finding& f) { return f.text == finding.text; });
               });
    }

    const Input& input_;
    const State& s_;
    const spe::Explanation& e_;
    Output& out_;
};

class JsonReport {
public:
    explicit JsonReport(const Input& input) : input_(input), s_(input.state()) {}

    [[nodiscard]] ordered_json of(const spe::Explanation& e) const {
        ordered_json assumed = ordered_json::object(), levels = ordered_json::array(), findings = ordered_json::array();
        for (const Fact& fact : input_.assumed())
            assumed[std::string(fact.name)] = value_text(s_, fact.name, fact.value);
        for (const spe::Level& level : e.levels) levels.push_back(of(level));
        for (const spe::Finding& finding : e.findings) {
            constexpr std::string_view weights[] = {"stops", "may", "note"};
            ordered_json out = reason(finding);
            out["weight"] = weights[static_cast<unsigned>(finding.weight)];
            findings.push_back(std::move(out));
        }
        return {
            {"samples", e.samples()},
            {"version", name(s_.arch.version)},
            {"revision", s_.arch.revision == spe::Revision::first ? "first" : "modern"},
            {"security_state", name(SecurityStateBelowEL3(s_))},
            {"assumed", assumed},
            {"owner", {{"state", name(e.owner.value.state)}, {"el", e.owner.value.el}, {"why", reason(e.owner.why)}}},
            {"buffer", answer(e.buffer.value, e.buffer.why)},
            {"levels", levels},
            {"findings", findings}};
    }

private:
    [[nodiscard]] ordered_json reason(std::string_view section, std::string_view text, const auto& facts,
                                      const std::optional<std::uint64_t>& remedy) const {
        ordered_json conditions = ordered_json::array();
        std::string_view first;
        for (const Fact& fact : facts) {
            if (fact.name.empty()) continue;
            if (first.empty()) first = fact.name;
            ordered_json condition{{"name", fact.name}, {"value", value_text(s_, fact.name, fact.value)}};
            if (const std::string address = address_text(fact.name, fact.value); !address.empty())
                condition["address"] = address;
            if (of_register(fact.name)) condition["given"] = input_.field_given(fact.name);
            conditions.push_back(std::move(condition));
        }
        ordered_json out{{"section", section}, {"text", text}, {"conditions", conditions}};
        if (remedy) {
            out["remedy"] = {{"name", first}, {"value", value_text(s_, first, *remedy)}};
            if (const std::string address = address_text(first, *remedy); !address.empty())
                out["remedy"]["address"] = address;
        }
        return out;
    }
    [[nodiscard]] ordered_json reason(const spe::Finding& f) const {
        return reason(f.section, f.text, f.facts, f.remedy);
    }
    [[nodiscard]] ordered_json reason(const Why& why) const { return reason(why.row, why.text, why.facts, why.remedy); }
    [[nodiscard]] ordered_json answer(const ordered_json& value, const Why& why) const {
        return {{"value", value}, {"why", reason(why)}};
    }
    [[nodiscard]] ordered_json of(const spe::Level& level) const {
        ordered_json obstacles = ordered_json::array(), own_accesses = ordered_json::array();
        for (const spe::Finding& f : level.obstacles) obstacles.push_back(reason(f));
        for (const spe::RegisterAccess& own : level.own_accesses) {
            own_accesses.push_back(answer(name(own.access.value), own.access.why));
            own_accesses.back()["register"] = own.name;
        }
        const ordered_json why = level.samples() ? reason(level.sampled.why) : obstacles.front();
        ordered_json out{{"el", level.el},
                         {"sampled", {{"value", level.samples()}, {"why", why}}},
                         {"obstacles", obstacles},
                         {"buffer_access", answer(name(level.buffer_access.value), level.buffer_access.why)},
                         {"profiling_access", answer(name(level.profiling_access.value), level.profiling_access.why)},
                         {"own_accesses", own_accesses}};
        if (level.samples())
            out["record"] = {{"physical_address", answer(level.physical_address.value, level.physical_address.why)},
                             {"context_idr1", answer(level.context_idr1.value, level.context_idr1.why)},
                             {"context_idr2", answer(level.context_idr2.value, level.context_idr2.why)},
                             {"time_stamp", answer(name(level.time_stamp.value), level.time_stamp.why)}};
        return out;
    }

    const Input& input_;
    const State& s_;
};

Status explain(const ExplainOptions& options) {
    const auto input = Input::from(options);
    if (!input) return fail(input.error());
    for (const std::string& note : input->notes()) say("note", note);
    spe::ExplainOptions how;
    how.current_level_only = input->given("PSTATE");
    how.given = [&](std::string_view name) { return input->given(name); };
    const spe::Explanation explanation = spe::explain(input->state(), how);
    auto out = Output::open(options.output);
    if (!out) return fail(out.error());
    if (options.format == "json")
        out->write(json_text(JsonReport(*input).of(explanation)) + "\n");
    else
        TextReport(*input, explanation, *out).print();
    if (out->close() != decoded) return unreadable;
    return explanation.samples() ? decoded : nothing;
}

}  // namespace

Run add_spe_explain(CLI::App& spe) {
    auto options = std::make_shared<ExplainOptions>();
    CLI::App& command = *spe.add_subcommand("explain", "Say why a unit takes samples, or none, from its registers");
    command
        .add_option("SETTING", options->arguments,
                    "A register or one field of it, PMSCR_EL1=0x6b or MDCR_EL2.E2PB=0b11; or a file of registers (- is "
                    "standard input): lines 'NAME VALUE', or JSON")
        ->take_all();
    command.add_option("--spe", options->version, "Version of the extension: v1.0 to v1.5, or none")
        ->type_name("VERSION")
        ->transform(one_of({"none", "v1.0", "v1.1", "v1.2", "v1.3", "v1.4", "v1.5"}))
        ->transform([](std::string text) { return text.starts_with("1.") ? "v" + text : text; })
        ->capture_default_str();
    command
        .add_option("--revision", options->revision,
                    "Text of the functions to follow: first (Armv8.2) or modern; that of the version if not given")
        ->type_name("NAME")
        ->transform(one_of({"first", "modern"}));
    command.add_flag("--as-printed", options->as_printed,
                     "Read CollectContextIDR2 of the first revision as printed, with its test inverted");
    std::vector<std::string> names;
    for (const Feature& feature : features) names.emplace_back(feature.name);
    command.add_option("--with", options->with, "Implemented: " + feature_names() + ". May be repeated")
        ->type_name("FEATURE")
        ->transform(one_of(names))
        ->allow_extra_args(false)
        ->take_all();
    command
        .add_option("--without", options->without,
                    "Not implemented. EL2, EL3 and what --spe and PMSIDR_EL1 name are implemented unless left out here")
        ->type_name("FEATURE")
        ->transform(one_of(names))
        ->allow_extra_args(false)
        ->take_all();
    command.add_option("--format", options->format, "text or json")
        ->type_name("NAME")
        ->transform(one_of({"text", "json"}))
        ->capture_default_str();
    command.add_option("-o,--output", options->output, "Write there instead of to standard output")->type_name("FILE");
    const spe::Registers registers;
    spe::Registers::for_each(registers, [&](const auto& r) {
        command.add_option("--" + std::string(r.name), options->registers[std::string(r.name)], std::string(r.title))
            ->type_name("VALUE")
            ->group("Registers (0x hexadecimal, 0b binary, else decimal; see below)");
    });
    command.footer(
        "For each exception level it shows whether operations there are sampled, and if not, each condition that "
        "stands\n"
        "in the way, with the value that would remove it; who owns the profiling buffer; which register accesses "
        "trap,\n"
        "and to where; what a record would hold; and what the filters, the interval and the buffer do to the samples.\n"
        "With PSTATE.EL only that level is asked about. What is in brackets, such as (3.4 row 7), is the section of\n"
        "docs/spec/spe.md that says so; 'first' and 'modern' are the two revisions that its section 3 distinguishes. "
        "RME is "
        "of "
        "the\nmodern one.\n"
        "\n"
        "What is not given counts as 0, but three fields that software seldom can read or prints: MDCR_EL3.NSPB gives\n"
        "the buffer to Non-secure state, SCR_EL3.NS is Non-secure, and MDCR_EL2.E2PB gives the buffer to EL1, or keeps "
        "it\n"
        "for EL2 if HCR_EL2.TGE is 1 or PMSCR_EL2 is given. Conditions that rest on such a value say '(not given)'. "
        "An\n"
        "interval or a write pointer that is not given is no fault: it is not judged, and a note says so.\n"
        "\n"
        "A number without 0x or 0b is decimal, unless it has a letter from a to f or sixteen digits: then it is "
        "hexadecimal,\nand in a file so are all others without. Whole registers for which that matters are noted. A "
        "register given on the\ncommand line outdoes that of a file, and a field outdoes its register.\n"
        "\n"
        "  waymark spe explain PMBLIMITR_EL1=0x80001 PMSCR_EL1.E0SPE=1 PMSIRR_EL1=0x1000\n"
        "  waymark spe explain registers.txt --spe v1.2 PMBSR_EL1=0\n"
        "\n"
        "Exit status: 0 samples are taken; 1 none are; 2 usage; 3 a file cannot be read, or the output not be "
        "written.\n");
    return [options] { return explain(*options); };
}

}  // namespace waymark::cli
