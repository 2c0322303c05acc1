#include "waymark/listing/explanation.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "print.h"
#include "waymark/core/numbers.h"

namespace waymark::listing {

namespace {

using nlohmann::ordered_json;
using protocol::TraceCondition, protocol::TracedLevel, protocol::UnitExplanation, protocol::TraceEffect;

bool stops(const TracedLevel& level) {
    return std::any_of(level.obstacles.begin(), level.obstacles.end(),
                       [](const TraceCondition& f) { return f.effect == TraceEffect::stops; });
}

/// Registers without a given value that decide for this level alone.
std::vector<std::string> undecided_at(const doctor::ExplainedSource& source, const TracedLevel& level) {
    const auto at = static_cast<std::size_t>(&level - source.explanation.levels.data());
    return at < source.undecided.size() ? source.undecided[at] : std::vector<std::string>();
}

/// "nothing" if the level is not traced, or the condition that decides there.
std::string_view traced_word(const doctor::ExplainedSource& source, const TracedLevel& level) {
    const UnitExplanation& unit = source.explanation;
    if (unit.stopped() || stops(level)) return "no";
    if (!unit.undecided.empty() || !undecided_at(source, level).empty()) return "not known";
    const bool depends =
        !level.obstacles.empty() || std::any_of(unit.findings.begin(), unit.findings.end(),
                                                [](const TraceCondition& f) { return f.effect == TraceEffect::may; });
    return depends ? "in part" : "yes";
}

/// Registers without a given value that decide whether this is in the trace.
std::vector<std::string> undecided_of(const doctor::ExplainedSource& source, const protocol::TraceContent& content) {
    const auto at = static_cast<std::size_t>(&content - source.explanation.contents.data());
    return at < source.undecided_contents.size() ? source.undecided_contents[at] : std::vector<std::string>();
}
std::string_view content_word(const doctor::ExplainedSource& source, const protocol::TraceContent& content) {
    return !undecided_of(source, content).empty() ? "not known" : content.traced ? "yes" : "no";
}

void print_indented(TextSink& out, std::string_view text, std::string_view first, std::size_t columns) {
    const std::string rest(first.size(), ' ');
    std::string_view before = first;
    for (const std::string& line : wrapped(text, columns - first.size())) {
        print(out, "{}{}\n", before, line);
        before = rest;
    }
}

void print_finding(TextSink& out, const TraceCondition& f, std::size_t columns) {
    print_indented(out, f.section.empty() ? f.text : fmt::format("{} ({})", f.text, f.section), "  - ", columns);
    if (!f.remedy.empty()) print_indented(out, f.remedy, "    To change it: ", columns);
}

constexpr std::string_view word(Tracing tracing) {
    return tracing == Tracing::yes ? "yes" : tracing == Tracing::no ? "no" : "not known";
}

/// Whether the trace was read, and belongs to this unit.
bool has_traced(const doctor::ExplainedSource& source) { return source.cost && source.cost->bytes != 0; }

/// `yes`: traces at one level or more, at least in part. `not_known`: the result depends on registers that were not
/// given.
Tracing tracing_of(const doctor::ExplainedSource& source) {
    const UnitExplanation& unit = source.explanation;
    if (!unit.traces()) return Tracing::no;
    if (std::any_of(unit.findings.begin(), unit.findings.end(),
                    [](const TraceCondition& f) { return !f.unless.empty(); }))
        return Tracing::not_known;
    const bool some = std::any_of(unit.levels.begin(), unit.levels.end(), [&](const TracedLevel& level) {
        const std::string_view traced = traced_word(source, level);
        return traced == "yes" || traced == "in part";
    });
    return some || has_traced(source) ? Tracing::yes : Tracing::not_known;
}
bool passes_triggers(const doctor::ExplainedSource& unit) { return unit.role == sink::SinkRole::triggers; }

/// What a component after the sources does, for which "what runs is traced" says nothing.
std::string verdict_on_path(const doctor::ExplainedSource& unit) {
    if (passes_triggers(unit))
        return unit.explanation.findings.empty() ? "It passes triggers on." : "It may not pass triggers on.";
    switch (tracing_of(unit)) {
        case Tracing::no: return "With these values no trace passes.";
        case Tracing::not_known: return "None of the given values stops the trace; it is not known whether it passes.";
        case Tracing::yes: break;
    }
    const bool part = std::any_of(unit.explanation.findings.begin(), unit.explanation.findings.end(),
                                  [](const TraceCondition& f) { return f.effect == TraceEffect::may; });
    return part ? "With these values a part of the trace passes." : "With these values all trace passes.";
}

std::string verdict(const doctor::ExplainedSource& source) {
    const UnitExplanation& unit = source.explanation;
    if (source.role && *source.role != sink::SinkRole::sink) return verdict_on_path(source);
    if (unit.stopped()) return "With these values nothing is traced.";
    if (!unit.traces()) return "With these values nothing is traced at any level.";
    for (const TraceCondition& f : unit.findings)
        if (!f.unless.empty()) return fmt::format("With these values nothing is traced, unless {}.", f.unless);
    const bool open = std::any_of(unit.levels.begin(), unit.levels.end(),
                                  [&](const TracedLevel& level) { return traced_word(source, level) == "not known"; });
    if (tracing_of(source) == Tracing::not_known)
        return "None of the given values prevents tracing; it is not known whether the unit traces.";
    if (open && has_traced(source))
        return "None of the given values prevents tracing, and the capture has trace of the unit.";
    if (open) return "None of the given values prevents tracing.";
    const auto in_full = [&](const TracedLevel& level) { return traced_word(source, level) == "yes"; };
    const bool full = std::all_of(unit.levels.begin(), unit.levels.end(), in_full);
    return fmt::format("With these values {} is traced{}.", full ? "everything that runs" : "a part of what runs",
                       source.not_permitted.empty() ? "" : ", if signals permit it");
}

/// The cost as a sentence: `0.18 bytes for each instruction: 45 bytes, 254 instructions`.
std::string cost_sentence(const doctor::TraceCost& cost) {
    const std::string bytes = counted(cost.bytes, "byte");
    if (cost.units == 0) return fmt::format("{} of trace; the number of {}s is not known", bytes, cost.unit);
    const bool entries = cost.unit == "entry";
    return fmt::format(
        "{}{:.3g} bytes for each {}: {}, {}{}", cost.unplaced != 0 ? "at most " : "", cost.each(), cost.unit, bytes,
        entries ? counted(cost.units, "entry", "entries") : counted(cost.units, cost.unit),
        cost.unplaced != 0 ? fmt::format("; at {} code ran that is in no image", counted(cost.unplaced, "place")) : "");
}

void print_cost(TextSink& out, const doctor::TraceCost& cost) {
    print(out, "\nCost, measured on this trace\n  {}\n", cost_sentence(cost));
    std::size_t wide = 0;
    for (const auto& kind : cost.kinds) wide = std::max(wide, kind.name.size());
    for (const auto& kind : cost.kinds) {
        print(out, "  {:<{}}  {:>10}", kind.name, wide, grouped(kind.count));
        if (kind.bytes != 0)
            print(out, "  {:>12}  {:5.1f} %", counted(kind.bytes, "byte"),
                  100.0 * static_cast<double>(kind.bytes) / static_cast<double>(cost.bytes));
        out.write("\n");
    }
}

void print_unit(TextSink& out, const doctor::ExplainedSource& unit, std::size_t columns) {
    const UnitExplanation& e = unit.explanation;
    print(out, "{}{}: {}\n", e.unit, unit.source.empty() ? "" : fmt::format(", source '{}'", unit.source),
          verdict(unit));
    for (const auto& [effect, title] :
         {std::pair{TraceEffect::stops, "Why nothing is traced"}, std::pair{TraceEffect::may, "Conditions"},
          std::pair{TraceEffect::note, "Worth knowing"}}) {
        bool first = true;
        for (const TraceCondition& f : e.findings) {
            if (f.effect != effect) continue;
            if (std::exchange(first, false)) print(out, "\n{}\n", title);
            print_finding(out, f, columns);
        }
    }
    if (!unit.not_permitted.empty()) {
        out.write("\nTrace that signals prevented in this capture\n");
        for (const capture::NotPermitted& one : unit.not_permitted)
            print_indented(
                out,
                fmt::format("{}: {}", one.reason,
                            one.instructions ? counted(*one.instructions, "instruction") : "its size is not known"),
                "  - ", columns);
    }
    if (!passes_triggers(unit)) print(out, "\n{}\n", unit.role ? "What passes" : "Traced at each level");
    std::size_t widest = 0;
    for (const TracedLevel& level : e.levels) widest = std::max(widest, level.name.size());
    for (const TracedLevel& level : e.levels) {
        if (passes_triggers(unit)) break;
        const std::string head = fmt::format("  {:<{}}  {:<9}  ", level.name, widest, traced_word(unit, level));
        if (level.obstacles.empty() && undecided_at(unit, level).empty())
            print(out, "{}\n", head.substr(0, head.find_last_not_of(' ') + 1));
        std::string_view before = head;
        const std::string rest(head.size(), ' ');
        for (const TraceCondition& f : level.obstacles) {
            print_indented(
                out, fmt::format("{} ({}){}", f.text, f.section, f.remedy.empty() ? "" : "; to change it: " + f.remedy),
                before, columns);
            before = rest;
        }
        if (!undecided_at(unit, level).empty())
            print_indented(out, fmt::format("not given: {}", fmt::join(undecided_at(unit, level), ", ")), before,
                           columns);
    }
    if (!e.contents.empty()) {
        print(out, "\n{}\n", passes_triggers(unit) ? "What is mapped" : "Contents of the trace");
        std::size_t wide = 0, word = 3;
        for (const auto& c : e.contents) wide = std::max(wide, c.what.size());
        for (const auto& c : e.contents) word = std::max(word, content_word(unit, c).size());
        for (const auto& c : e.contents) {
            std::string text = c.text;
            if (const auto open = undecided_of(unit, c); !open.empty())
                text = fmt::format("not given: {}", fmt::join(open, ", "));
            if (!c.field.empty() && !c.traced && text.empty()) text = fmt::format("({} does not request it)", c.field);
            const std::string head = fmt::format("  {:<{}}  {:<{}}  ", content_word(unit, c), word, c.what, wide);
            if (text.empty())
                print(out, "{}\n", head.substr(0, head.find_last_not_of(' ') + 1));
            else
                print_indented(out, text, head, columns);
        }
    }
    if (unit.cost) print_cost(out, *unit.cost);
    const auto missing = [&](const std::vector<std::string>& names, std::string_view what) {
        if (names.empty()) return;
        out.write("\n");
        print_indented(out, fmt::format("Not given, so {}: {}.", what, fmt::join(names, ", ")), "", columns);
    };
    missing(e.undecided, e.traces() ? "it is not known whether there is trace" : "not judged");
    missing(e.undescribed, "the contents of the trace are not fully known");
    print(out, "\nNumbers in brackets are sections of {}.\n", e.document);
}

ordered_json finding_json(const TraceCondition& f) {
    ordered_json out{{"effect", name(f.effect)}, {"field", f.field}, {"text", f.text}};
    if (!f.remedy.empty()) out["remedy"] = f.remedy;
    out["section"] = f.section;
    return out;
}
ordered_json findings_json(const std::vector<TraceCondition>& findings) {
    ordered_json out = ordered_json::array();
    for (const TraceCondition& f : findings) out.push_back(finding_json(f));
    return out;
}

ordered_json unit_json(const doctor::ExplainedSource& unit) {
    const UnitExplanation& e = unit.explanation;
    ordered_json out{{"unit", e.unit}};
    if (!unit.source.empty()) out["source"] = unit.source;
    out["traces"] = e.traces();
    out["tracing"] = word(tracing_of(unit));
    out["document"] = e.document;
    out["findings"] = findings_json(e.findings);
    if (!unit.not_permitted.empty()) {
        ordered_json kept_out = ordered_json::array();
        for (const capture::NotPermitted& one : unit.not_permitted) {
            ordered_json row{{"reason", one.reason}};
            if (one.instructions) row["instructions"] = *one.instructions;
            if (one.ranges) row["ranges"] = *one.ranges;
            kept_out.push_back(std::move(row));
        }
        out["not_permitted"] = std::move(kept_out);
    }
    ordered_json levels = ordered_json::array();
    for (const TracedLevel& level : e.levels)
        levels.push_back({{"level", level.name},
                          {"traced", traced_word(unit, level)},
                          {"obstacles", findings_json(level.obstacles)},
                          {"undecided", undecided_at(unit, level)}});
    out["levels"] = std::move(levels);
    ordered_json contents = ordered_json::array();
    for (const auto& c : e.contents) {
        ordered_json row{{"what", c.what}, {"traced", c.traced}};
        if (const auto open = undecided_of(unit, c); !open.empty()) {
            row["traced"] = nullptr;
            row["undecided"] = open;
        }
        if (!c.text.empty()) row["text"] = c.text;
        if (!c.field.empty()) row["field"] = c.field;
        contents.push_back(std::move(row));
    }
    out["contents"] = std::move(contents);
    if (unit.cost) {
        ordered_json kinds = ordered_json::array();
        for (const auto& kind : unit.cost->kinds) {
            ordered_json row{{"name", kind.name}, {"count", kind.count}};
            if (kind.bytes != 0) row["bytes"] = kind.bytes;
            kinds.push_back(std::move(row));
        }
        out["cost"] = {{"unit", unit.cost->unit},
                       {"units", unit.cost->units},
                       {"bytes", unit.cost->bytes},
                       {"unplaced", unit.cost->unplaced},
                       {"kinds", std::move(kinds)}};
    }
    ordered_json registers = ordered_json::object();
    for (const RegisterValue& r : unit.registers) registers[r.name] = fmt::format("{:#x}", r.value);
    out["registers"] = std::move(registers);
    out["undecided"] = e.undecided;
    out["undescribed"] = e.undescribed;
    out["ignored"] = unit.ignored;
    if (!unit.remarks.empty()) out["remarks"] = unit.remarks;
    return out;
}

std::string bits_text(const FieldReference& f) {
    return f.hi == f.lo ? std::to_string(f.hi) : fmt::format("{}:{}", f.hi, f.lo);
}

/// ` at 0x418`, or ` at 0x400 to 0x478, 16 registers`; empty for what has no place.
std::string place_text(const doctor::NamedRegister& named) {
    const RegisterReference& r = named.unit.registers.front();
    if (r.places.empty()) return {};
    if (r.places.size() == 1 || named.index) return fmt::format(" at {}", r.places[named.index.value_or(0)]);
    return fmt::format(" at {} to {}, {} registers", r.places.front(), r.places.back(), r.places.size());
}
std::string name_text(const doctor::NamedRegister& named) {
    const RegisterReference& r = named.unit.registers.front();
    return named.index ? fmt::format("{}{}", r.name, *named.index + r.first) : std::string(r.name);
}

void print_register(TextSink& out, const doctor::NamedRegister& named, std::size_t columns) {
    const RegisterReference& r = named.unit.registers.front();
    print_indented(
        out,
        fmt::format("{}, {}: {}, {} bits{}", name_text(named), r.title, named.unit.title, r.bits, place_text(named)),
        "", columns);
    if (!r.purpose.empty()) print_indented(out, r.purpose, "", columns);
    if (!named.fields.empty()) out.write("\n");
    std::size_t wide = 0;
    for (const FieldReference& f : named.fields)
        if (f.name.size() <= 30) wide = std::max(wide, f.name.size());
    for (const FieldReference& f : named.fields) {
        const std::string head = fmt::format("  {:>5}  {:<{}}  ", bits_text(f), f.name, wide);
        if (f.name.size() <= wide) {
            print_indented(out, f.meaning, head, columns);
        } else {
            print(out, "{}\n", head.substr(0, head.find_last_not_of(' ') + 1));
            print_indented(out, f.meaning, std::string(11 + wide, ' '), columns);
        }
    }
    print(out, "\ndocs/registers/{}.md lists all registers of this unit; docs/spec/{}.md describes its behaviour.\n",
          named.unit.document, named.unit.specification);
}

ordered_json register_json(const doctor::NamedRegister& named) {
    const RegisterReference& r = named.unit.registers.front();
    ordered_json fields = ordered_json::array();
    for (const FieldReference& f : named.fields)
        fields.push_back({{"name", f.name}, {"high", f.hi}, {"low", f.lo}, {"meaning", f.meaning}});
    std::vector<std::string> places = r.places;
    if (named.index) places = {r.places[*named.index]};
    return {{"unit", named.unit.title}, {"name", name_text(named)}, {"title", r.title},           {"places", places},
            {"bits", r.bits},           {"purpose", r.purpose},     {"fields", std::move(fields)}};
}

}  // namespace

Tracing tracing_of(const std::vector<doctor::ExplainedSource>& units) {
    std::map<std::string, Tracing> best;
    for (const doctor::ExplainedSource& unit : units) {
        if (passes_triggers(unit)) continue;
        const std::string kind = !unit.role                           ? "source"
                                 : *unit.role == sink::SinkRole::sink ? "sink"
                                                                      : unit.explanation.unit;
        Tracing& of_kind = best.try_emplace(kind, Tracing::no).first->second;
        of_kind = std::max(of_kind, tracing_of(unit));
    }
    Tracing out = Tracing::yes;
    for (const auto& [kind, tracing] : best) out = std::min(out, tracing);
    return out;
}

void print_explanation(TextSink& out, const std::vector<doctor::ExplainedSource>& units, LineFormat format,
                       std::size_t columns) {
    if (format == LineFormat::json) {
        ordered_json json = ordered_json::array();
        for (const doctor::ExplainedSource& unit : units) json.push_back(unit_json(unit));
        out.write(json_text({{"units", std::move(json)}}) + "\n");
        return;
    }
    for (const doctor::ExplainedSource& unit : units) {
        if (&unit != &units.front()) out.write("\n");
        print_unit(out, unit, columns);
    }
}

void print_registers(TextSink& out, const std::vector<doctor::NamedRegister>& registers, LineFormat format,
                     std::size_t columns) {
    if (format == LineFormat::json) {
        ordered_json json = ordered_json::array();
        for (const doctor::NamedRegister& one : registers) json.push_back(register_json(one));
        out.write(json_text({{"registers", std::move(json)}}) + "\n");
        return;
    }
    for (const doctor::NamedRegister& one : registers) {
        if (&one != &registers.front()) out.write("\n");
        print_register(out, one, columns);
    }
}

}  // namespace waymark::listing
