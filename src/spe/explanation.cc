#include "waymark/spe/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "waymark/core/wire.h"
#include "waymark/spe/text.h"

namespace waymark::spe {

namespace {

using nlohmann::ordered_json;

struct Feature {
    std::string_view name;
    bool Architecture::*member;
};
constexpr Feature features[] = {
    {"EL2", &Architecture::el2},      {"EL3", &Architecture::el3},     {"SEL2", &Architecture::secure_el2},
    {"RME", &Architecture::rme},      {"ECV", &Architecture::ecv},     {"SVE", &Architecture::sve},
    {"SPE_FnE", &Architecture::fn_e}, {"SPE_FDS", &Architecture::fds}, {"SPE_EFT", &Architecture::eft},
    {"SPE_SME", &Architecture::sme},  {"SPE_EXC", &Architecture::exc}, {"SPE_nVM", &Architecture::n_vm},
};

std::string list_of(const std::vector<std::string>& names) {
    std::string out;
    for (const std::string& name : names)
        out +=
            (out.empty() ? "" : ", ") + ordered_json(name).dump(-1, ' ', false, ordered_json::error_handler_t::replace);
    return out;
}

/// A value in the usual notation of its field: `0`, `0b11`.
std::string value_text(const State& s, std::string_view name, std::uint64_t value) {
    auto field = s.regs.field(name);
    if (field) field->value = value;
    std::string out;
    if (field)
        out = field_text(*field);
    else
        wire::append_number(out, value);
    return out;
}

/// If a field has the upper bits of an address, the whole address.
std::string address_text(std::string_view name, std::uint64_t value) {
    return name == "PMBLIMITR_EL1.LIMIT" && value != 0 ? fmt::format("{:#x}", value << 12) : std::string();
}

/// An assignment such as `PMSCR_EL1.E1SPE = 0`.
std::string assignment(const State& s, std::string_view name, std::uint64_t value) {
    const std::string address = address_text(name, value);
    return fmt::format("{} = {}{}", name, value_text(s, name, value),
                       address.empty() ? "" : " (address " + address + ")");
}

/// Whether the name is a field of a register, not of the state in question.
bool of_register(std::string_view name) {
    return !Registers::canonical(name.substr(0, name.find('.'))).empty() && !name.starts_with("PSTATE");
}

std::string facts_text(const ExplainInput& input, const auto& facts) {
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
std::string why_text(const ExplainInput& input, const Why& why) {
    return fmt::format("{}: {} ({})", facts_text(input, why.facts), why.text, why.row);
}
std::string why_text(const ExplainInput& input, const RegisterFinding& f) {
    const std::string facts = facts_text(input, f.facts);
    return fmt::format("{}{}{} ({})", facts, facts.empty() ? "" : ": ", f.text, f.section);
}

class TextReport {
public:
    TextReport(const ExplainInput& input, const Explanation& e) : input_(input), s_(input.state()), e_(e) {}

    std::string text() {
        head();
        samples();
        print("\nbuffer\n  owner  {:<14}  {}\n", fmt::format("{} EL{}", name(e_.owner.value.state), e_.owner.value.el),
              why_text(input_, e_.owner.why));
        print("  on     {:<14}  {}\n", e_.buffer ? "yes" : "no", why_text(input_, e_.buffer.why));
        accesses();
        for (const Level& level : e_.levels)
            if (level.samples()) record(level);
        findings();
        return std::move(out_);
    }

private:
    template <class... Args>
    void print(fmt::format_string<Args...> format, Args&&... args) {
        fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
    }
    void head() {
        const Architecture& a = s_.arch;
        print("Statistical Profiling {}, {} state, functions of the {} revision; sections are of docs/spec/spe.md\n",
              name(a.version), name(SecurityStateBelowEL3(s_)), a.revision == Revision::first ? "first" : "modern");
        std::string assumed;
        for (const Fact& fact : input_.assumed())
            assumed += fmt::format("{}{} as {}", assumed.empty() ? "" : ", ", fact.name,
                                   value_text(s_, fact.name, fact.value));
        print("what is not given counts as 0{}{}\n", assumed.empty() ? "" : "; ", assumed);
    }

    void samples() {
        print("\nsamples\n");
        for (const Level& level : e_.levels) {
            if (level.samples()) {
                print("  EL{}  yes   {}\n", level.el, why_text(input_, level.sampled.why));
                continue;
            }
            for (const RegisterFinding& f : level.obstacles) {
                const bool first = &f == &level.obstacles.front();
                print("  {}  {}{}\n", first ? fmt::format("EL{}", level.el) : "   ", first ? "none  " : "      then ",
                      why_text(input_, f));
                remedy(f, "             ");
            }
        }
    }

    void remedy(const RegisterFinding& f, std::string_view indent) {
        if (f.remedy) print("{}set {}\n", indent, assignment(s_, f.facts[0].name, *f.remedy));
    }

    void accesses() {
        print("\naccesses to registers\n");
        for (const Level& level : e_.levels) {
            if (level.el == EL0) continue;
            access(level.el, "PMB*", level.buffer_access);
            access(level.el, "PMS*", level.profiling_access);
            for (const OwnAccess& own : level.own_accesses) access(level.el, own.name, own.access);
        }
        if (std::all_of(e_.levels.begin(), e_.levels.end(), [](const auto& level) { return level.el == EL0; }))
            print("  EL0  {}\n", name(SysRegAccess::UNDEFINED));
    }
    void access(unsigned el, std::string_view which, const Decision<SysRegAccess>& d) {
        if (d.value == SysRegAccess::OK)
            print("  EL{}  {}  {}\n", el, which, name(d.value));
        else
            print("  EL{}  {}  {:<9}  {}\n", el, which, name(d.value), why_text(input_, d.why));
    }

    void record(const Level& level) {
        print("\na record at EL{} contains\n", level.el);
        print("  always              PC, total and issue latency, events, operation type\n");
        print("  branches            target address\n");
        const bool unknown = !input_.given("PMSIDR_EL1");
        print("  loads and stores    data virtual address, translation latency{}\n",
              unknown                  ? "; data source of loads if PMSIDR_EL1.LDS = 1"
              : s_.regs.pmsidr_el1.lds ? "; data source of loads"
                                       : "");
        const auto row = [&](std::string_view what, bool yes, std::string_view as, const Why& why) {
            print("  {:<18}  {:<8}  {}\n", what, yes ? as : "no", why_text(input_, why));
        };
        row("physical address", level.physical_address, "yes", level.physical_address.why);
        row("CONTEXTIDR_EL1", level.context_idr1, "yes", level.context_idr1.why);
        row("CONTEXTIDR_EL2", level.context_idr2, "yes", level.context_idr2.why);
        row("timestamp", level.time_stamp.value != TimeStamp::None, name(level.time_stamp.value), level.time_stamp.why);
    }

    void findings() {
        bool head = false;
        for (const RegisterFinding& finding : e_.findings) {
            if (is_obstacle(finding)) continue;
            if (!head) print("\nfurther\n");
            head = true;
            constexpr std::string_view weights[] = {"no samples", "perhaps", "note"};
            print("  {:<10}  {}\n", weights[static_cast<unsigned>(finding.weight)], why_text(input_, finding));
            remedy(finding, "              ");
        }
    }
    /// Whether some level already names it as the condition that prevents sampling.
    [[nodiscard]] bool is_obstacle(const RegisterFinding& finding) const {
        return finding.weight == Weight::stops &&
               std::any_of(e_.levels.begin(), e_.levels.end(), [&](const Level& level) {
                   return std::any_of(level.obstacles.begin(), level.obstacles.end(),
                                      [&](const RegisterFinding& f) { return f.text == finding.text; });
               });
    }

    const ExplainInput& input_;
    const State& s_;
    const Explanation& e_;
    std::string out_;
};

class JsonReport {
public:
    explicit JsonReport(const ExplainInput& input) : input_(input), s_(input.state()) {}

    [[nodiscard]] ordered_json of(const Explanation& e) const {
        ordered_json assumed = ordered_json::object(), levels = ordered_json::array(), findings = ordered_json::array();
        for (const Fact& fact : input_.assumed())
            assumed[std::string(fact.name)] = value_text(s_, fact.name, fact.value);
        for (const Level& level : e.levels) levels.push_back(of(level));
        for (const RegisterFinding& finding : e.findings) {
            constexpr std::string_view weights[] = {"stops", "may", "note"};
            ordered_json out = reason(finding);
            out["weight"] = weights[static_cast<unsigned>(finding.weight)];
            findings.push_back(std::move(out));
        }
        return {
            {"samples", e.samples()},
            {"version", name(s_.arch.version)},
            {"revision", s_.arch.revision == Revision::first ? "first" : "modern"},
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
    [[nodiscard]] ordered_json reason(const RegisterFinding& f) const {
        return reason(f.section, f.text, f.facts, f.remedy);
    }
    [[nodiscard]] ordered_json reason(const Why& why) const { return reason(why.row, why.text, why.facts, why.remedy); }
    [[nodiscard]] ordered_json answer(const ordered_json& value, const Why& why) const {
        return {{"value", value}, {"why", reason(why)}};
    }
    [[nodiscard]] ordered_json of(const Level& level) const {
        ordered_json obstacles = ordered_json::array(), own_accesses = ordered_json::array();
        for (const RegisterFinding& f : level.obstacles) obstacles.push_back(reason(f));
        for (const OwnAccess& own : level.own_accesses) {
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

    const ExplainInput& input_;
    const State& s_;
};

/// The answer in the terms that all units share.
class CommonReport {
public:
    CommonReport(const ExplainInput& input, const Explanation& e) : input_(input), s_(input.state()), e_(e) {}

    CommonExplanation of() {
        const State& s = s_;
        out_.unit = fmt::format("SPE {}", name(s.arch.version));
        out_.document = "docs/spec/spe.md";
        for (const Level& level : e_.levels) add(level);
        for (const RegisterFinding& f : e_.findings)
            if (f.weight != Weight::stops || !at_a_level(f)) out_.findings.push_back(condition(f));
        // A condition that no level names does not stop sampling by itself, since the levels name the conditions that
        // do.
        for (protocol::TraceCondition& f : out_.findings)
            if (f.effect == protocol::TraceEffect::stops) f.effect = protocol::TraceEffect::note;
        filters();
        lift();
        contents();
        return {std::move(out_), std::move(undecided_), std::move(undecided_contents_)};
    }

private:
    [[nodiscard]] protocol::TraceCondition condition(const RegisterFinding& f) const {
        protocol::TraceCondition out;
        out.effect = f.weight == Weight::stops ? protocol::TraceEffect::stops
                     : f.weight == Weight::may ? protocol::TraceEffect::may
                                               : protocol::TraceEffect::note;
        const std::string facts = facts_text(input_, f.facts);
        out.text = facts + (facts.empty() ? "" : ": ") + f.text;
        out.section = f.section;
        if (!f.facts.empty()) {
            out.field = std::string(f.facts[0].name);
            if (f.remedy) out.remedy = "set " + assignment(s_, f.facts[0].name, *f.remedy);
        }
        return out;
    }
    /// Filters that leave samples out: none of their combinations is a mistake, but each may leave nothing.
    void filters() {
        const PmsfcrEl1& c = s_.regs.pmsfcr_el1;
        const auto add = [&](std::string_view field, std::string text, std::string section) {
            const bool named = std::any_of(out_.findings.begin(), out_.findings.end(), [&](const auto& f) {
                return f.effect != protocol::TraceEffect::note && f.field == field;
            });
            if (named) return;
            out_.findings.push_back({protocol::TraceEffect::may, std::string(field),
                                     fmt::format("{} = 1: {}", field, text),
                                     fmt::format("set {} = 0 to keep all samples", field), std::move(section)});
        };
        if (c.ft) {
            std::string kinds;
            for (const auto& [on, name] : {std::pair{c.b, "branches"}, {c.ld, "loads"}, {c.st, "stores"}})
                if (on) kinds += (kinds.empty() ? "" : ", ") + std::string(name);
            if (!kinds.empty()) add("PMSFCR_EL1.FT", "of all operations only " + kinds + " are kept", "2.3");
        }
        if (c.fl && s_.regs.pmslatfr_el1.minlat != 0)
            add("PMSFCR_EL1.FL",
                fmt::format("only operations that take {} cycles or more (PMSLATFR_EL1.MINLAT) are kept",
                            static_cast<unsigned>(s_.regs.pmslatfr_el1.minlat)),
                "2.4");
        if (c.fe)
            add("PMSFCR_EL1.FE",
                fmt::format("only operations with all events of PMSEVFR_EL1, {:#x}, are kept",
                            to_value(s_.regs.pmsevfr_el1)),
                "2.4");
        if (c.fds)
            add("PMSFCR_EL1.FDS",
                fmt::format("only loads with a data source of PMSDSFR_EL1, {:#x}, are kept",
                            to_value(s_.regs.pmsdsfr_el1)),
                "2.4");
        if (c.fn_e)
            add("PMSFCR_EL1.FnE",
                fmt::format("only operations without any event of PMSNEVFR_EL1, {:#x}, are kept",
                            to_value(s_.regs.pmsnevfr_el1)),
                "2.4");
    }
    [[nodiscard]] bool at_a_level(const RegisterFinding& finding) const {
        return std::any_of(e_.levels.begin(), e_.levels.end(), [&](const Level& level) {
            return std::any_of(level.obstacles.begin(), level.obstacles.end(),
                               [&](const RegisterFinding& f) { return f.text == finding.text; });
        });
    }
    void add(const Level& level) {
        protocol::TracedLevel& out = out_.levels.emplace_back();
        out.name = fmt::format("EL{}", level.el);
        std::vector<std::string>& undecided = undecided_.emplace_back();
        for (const RegisterFinding& f : level.obstacles) {
            const std::string_view field = f.facts.empty() ? std::string_view() : f.facts[0].name;
            if (!field.empty() && of_register(field) && !input_.field_given(field))
                undecided.emplace_back(field);
            else
                out.obstacles.push_back(condition(f));
        }
    }
    /// An obstacle at every level is an obstacle of the unit.
    void lift() {
        if (out_.levels.empty()) return;
        const auto obstacles = out_.levels[0].obstacles;
        for (const protocol::TraceCondition& f : obstacles) {
            const auto has = [&](const protocol::TracedLevel& level) {
                return std::find(level.obstacles.begin(), level.obstacles.end(), f) != level.obstacles.end();
            };
            if (!std::all_of(out_.levels.begin(), out_.levels.end(), has)) continue;
            out_.findings.push_back(f);
            for (protocol::TracedLevel& level : out_.levels) std::erase(level.obstacles, f);
        }
        const std::vector<std::string> undecided = undecided_[0];
        for (const std::string& field : undecided) {
            const auto has = [&](const std::vector<std::string>& level) {
                return std::find(level.begin(), level.end(), field) != level.end();
            };
            if (!std::all_of(undecided_.begin(), undecided_.end(), has)) continue;
            out_.undecided.push_back(field);
            for (std::vector<std::string>& level : undecided_) std::erase(level, field);
        }
    }
    void contents() {
        const auto row = [&](std::string what, bool traced, std::string text, std::string field) {
            out_.contents.push_back({std::move(what), traced, std::move(text), std::move(field)});
            undecided_contents_.emplace_back();
        };
        row("PC, events, type", true, "with total and issue latency; target addresses of branches", "");
        row("data addresses", true, "of loads and stores, with the latency of translation", "");
        row("data source", !input_.given("PMSIDR_EL1") || s_.regs.pmsidr_el1.lds,
            input_.given("PMSIDR_EL1") ? "of loads" : "of loads, if PMSIDR_EL1.LDS is 1", "PMSIDR_EL1.LDS");
        // Uses the levels at which samples may be taken; if there are none, all levels.
        const auto asked = [&](std::string what, auto&& of, std::string field) {
            std::string at, none;
            std::vector<std::string> open;
            bool any = false;
            for (const Level& level : e_.levels) {
                if (!level.samples() && e_.samples()) continue;
                const auto [here, why] = of(level);
                std::string& text = here ? at : none;
                text += fmt::format("{}EL{}: {}", text.empty() ? "" : "; ", level.el, why_text(input_, why));
                any |= here;
                for (const Fact& fact : why.facts)
                    if (!here && !fact.name.empty() && of_register(fact.name) && !input_.field_given(fact.name) &&
                        std::find(open.begin(), open.end(), fact.name) == open.end())
                        open.emplace_back(fact.name);
            }
            row(std::move(what), any, any ? at : open.empty() ? none : "", std::move(field));
            if (!any) undecided_contents_.back() = std::move(open);
        };
        asked(
            "physical addresses",
            [](const Level& l) { return std::pair(l.physical_address.value, l.physical_address.why); }, "PMSCR_EL1.PA");
        asked(
            "CONTEXTIDR_EL1", [](const Level& l) { return std::pair(l.context_idr1.value, l.context_idr1.why); },
            "PMSCR_EL1.CX");
        asked(
            "CONTEXTIDR_EL2", [](const Level& l) { return std::pair(l.context_idr2.value, l.context_idr2.why); },
            "PMSCR_EL2.CX");
        asked(
            "timestamps",
            [](const Level& l) { return std::pair(l.time_stamp.value != TimeStamp::None, l.time_stamp.why); },
            "PMSCR_EL1.TS");
        for (const std::string_view name : {"PMSIRR_EL1", "PMSFCR_EL1", "PMSCR_EL1"})
            if (!input_.given(name)) out_.undescribed.emplace_back(name);
    }

    const ExplainInput& input_;
    const State& s_;
    const Explanation& e_;
    protocol::UnitExplanation out_;
    std::vector<std::vector<std::string>> undecided_, undecided_contents_;
};

}  // namespace

std::vector<std::string> ExplainedUnit::features() {
    std::vector<std::string> out;
    for (const Feature& feature : spe::features) out.emplace_back(feature.name);
    return out;
}

Status ExplainInput::add(std::string_view name, std::string_view value) {
    auto setting = read_setting(name, value);
    if (!setting)
        return Error{Errc::usage, setting.error().message + ". waymark spe explain --help lists the registers"};
    if (std::any_of(own_.begin(), own_.end(), [&](const auto& other) { return other.name == setting->name; }))
        return Error{Errc::usage, setting->name + " is given twice"};
    if (base_unclear(value) && setting->name.find('.') == setting->name.npos)
        notes_.push_back(fmt::format("{}={} is decimal; write 0x{} if it is hexadecimal", setting->name, value, value));
    own_.push_back(std::move(*setting));
    return Nothing{};
}

Status ExplainInput::add_file(const std::string& path, std::string_view text) {
    auto read = read_settings(text);
    if (!read) return Error{read.error().code, path + ": " + read.error().message};
    settings_.insert(settings_.end(), read->settings.begin(), read->settings.end());
    unknown_.insert(unknown_.end(), read->unknown.begin(), read->unknown.end());
    for (const std::string& note : read->notes) notes_.push_back(path + ": " + note);
    return Nothing{};
}

Status ExplainInput::finish(const ExplainedUnit& unit) {
    // A whole register must not undo a setting of one of its fields.
    std::stable_partition(own_.begin(), own_.end(), [](const auto& o) { return o.name.find('.') == o.name.npos; });
    settings_.insert(settings_.end(), own_.begin(), own_.end());
    if (settings_.empty())
        return Error{Errc::usage,
                     (unknown_.empty()
                          ? "no register is given"
                          : "none of the given registers is one that profiling depends on, only " + list_of(unknown_)) +
                         std::string(": give some, as in 'waymark spe explain PMBLIMITR_EL1=0x1 PMSCR_EL1.E0SPE=1', or "
                                     "a file that contains them")};
    Registers& r = state_.regs;
    for (const NamedValue& setting : settings_) names_.insert(setting.name);
    const auto set = [&](const NamedValue& setting) {
        return setting.name.find('.') == setting.name.npos ? r.set(setting.name, setting.value)
                                                           : r.set_field(setting.name, setting.value);
    };
    // The given registers show the buffer's most likely owner: a kernel at EL2 keeps it.
    for (const NamedValue& setting : settings_) static_cast<void>(set(setting));
    const bool host = r.hcr_el2.tge || given("PMSCR_EL2");
    r = {};
    for (const Fact& fact : {Fact{"MDCR_EL2.E2PB", host ? 0b00U : 0b11U}, {"MDCR_EL3.NSPB", 0b11}, {"SCR_EL3.NS", 1}}) {
        WM_CHECK(r.set_field(fact.name, fact.value));
        if (!field_given(fact.name)) assumed_.push_back(fact);
    }
    for (const NamedValue& setting : settings_) WM_CHECK(set(setting));
    return choose_unit(unit);
}

Status ExplainInput::choose_unit(const ExplainedUnit& unit) {
    for (unsigned v = 0; v <= static_cast<unsigned>(Version::v1_5); ++v)
        if (name(static_cast<Version>(v)) == unit.version) state_.arch = Architecture::of(static_cast<Version>(v));
    if (given("PMSIDR_EL1")) state_.arch = state_.arch.with(state_.regs.pmsidr_el1);
    if (!unit.revision.empty()) state_.arch.revision = unit.revision == "first" ? Revision::first : Revision::modern;
    state_.arch.as_printed = unit.as_printed;
    const auto turn = [&](const std::vector<std::string>& names, bool on) {
        for (const std::string& name : names)
            for (const Feature& feature : features)
                if (feature.name == name) state_.arch.*feature.member = on;
    };
    for (const std::string& name : unit.with)
        if (std::find(unit.without.begin(), unit.without.end(), name) != unit.without.end())
            return Error{Errc::usage, name + " is named by --with and by --without"};
    turn(unit.with, true);
    turn(unit.without, false);
    // The first revision has no Realm state.
    if (state_.arch.rme) {
        if (unit.revision == "first")
            return Error{Errc::usage, "RME belongs to the modern revision: leave out --revision first or --with RME"};
        state_.arch.revision = Revision::modern;
    }
    if (!state_.arch.el3 && state_.regs.pstate.el == EL3)
        return Error{Errc::usage, "PSTATE.EL is 3, but EL3 is not implemented (--without EL3)"};
    if (!state_.arch.el2 && state_.regs.pstate.el == EL2)
        return Error{Errc::usage, "PSTATE.EL is 2, but EL2 is not implemented (--without EL2)"};
    std::erase_if(assumed_, [&](const Fact& fact) {
        return fact.name.starts_with("MDCR_EL2") ? !state_.arch.el2 : !state_.arch.el3;
    });
    return Nothing{};
}

bool ExplainInput::given(std::string_view register_name) const {
    if (register_name.find('.') != register_name.npos) return field_given(register_name);
    return std::any_of(names_.begin(), names_.end(),
                       [&](std::string_view name) { return name.substr(0, name.find('.')) == register_name; });
}
bool ExplainInput::field_given(std::string_view field) const {
    return names_.contains(std::string(field)) || names_.contains(std::string(field.substr(0, field.find('.'))));
}
std::vector<std::string> ExplainInput::notes() const {
    std::vector<std::string> out = notes_;
    if (!unknown_.empty()) out.push_back("not registers that profiling depends on, so ignored: " + list_of(unknown_));
    return out;
}

Explanation ExplainInput::explain() const {
    ExplainOptions how;
    how.current_level_only = given("PSTATE");
    how.given = [&](std::string_view name) { return given(name); };
    return spe::explain(state_, how);
}

std::string explanation_text(const ExplainInput& input, const Explanation& explanation) {
    return TextReport(input, explanation).text();
}
CommonExplanation unit_explanation(const ExplainInput& input, const Explanation& explanation) {
    return CommonReport(input, explanation).of();
}
std::string explanation_json(const ExplainInput& input, const Explanation& explanation) {
    return JsonReport(input).of(explanation).dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace waymark::spe
