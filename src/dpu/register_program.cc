#include "waymark/dpu/register_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <initializer_list>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "names.h"
#include "waymark/dpu/events.h"
#include "waymark/dpu/model.h"
#include "waymark/dpu/vtb.h"

namespace waymark::dpu {

namespace {

using nlohmann::json;

constexpr std::size_t most_bytes = 1 << 20, shown_bytes = 60;
/// Longer pauses between writes make no difference to diagnose().
constexpr std::uint64_t longest_pause = 1000;

Error bad(std::string message) { return {Errc::bad_format, std::move(message), {}}; }

/// Text from a file, escaped and shortened for a message.
std::string shown(std::string_view text) {
    std::string out = "'";
    for (const char c : text.substr(0, shown_bytes)) out += c >= ' ' && c < 0x7f ? c : '?';
    return out + (text.size() > shown_bytes ? "…'" : "'");
}

std::optional<std::uint64_t> number(std::string_view text) {
    int base = 10;
    if (text.starts_with("0x") || text.starts_with("0X")) base = 16;
    if (text.starts_with("0b") || text.starts_with("0B")) base = 2;
    if (base != 10) text.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
    return value;
}

/// Names of a field's codes, beginning with code 0.
std::vector<std::string_view> code_names(std::string_view field) {
    if (field == "TDM" || field == "TENM" || field == "DM" || field == "ENM")
        return {"none", "EDCA0",   "EDCA1", "EDCA2", "EDCA3", "EDCA4", "EDCA5", "EDCD",
                "MARK", "DEBUGEV", {},      {},      {},      {},      {},      "immediate"};
    if (field == "TDMP" || field == "TENMP" || field == "CEGP" || field == "DMP" || field == "ENMP")
        return {"any", "user", "supervisor", "match"};
    if (field == "CMODE") return {"one-shot", "trace"};
    if (field == "TIDCM") return {"neither", "program", "data", "both"};
    if (field == "VTBWM") return {"overwrite", "single-address", "trace-event-request"};
    if (field == "NXMODE") return {"off", "mirror", "raw", "only"};
    if (field == "DETB" || field.starts_with("DEC")) return {"none", "line-0", "line-1", "debug-request"};
    if (field == "TMODE") {
        std::vector<std::string_view> names;
        for (unsigned mode = 0; mode < trace_modes; ++mode) names.push_back(name(static_cast<TraceMode>(mode)));
        return names;
    }
    return {};
}

Result<std::uint32_t> field_value(std::string_view where, const Field& field, std::string_view text) {
    const auto names = code_names(field.name);
    for (std::size_t code = 0; code < names.size(); ++code)
        if (!names[code].empty() && same_name(names[code], text)) return static_cast<std::uint32_t>(code);
    std::string list;
    for (const std::string_view n : names)
        if (!n.empty()) list += (list.empty() ? ", or one of " : ", ") + std::string(n);
    const auto value = number(text);
    if (!value) return bad(fmt::format("{}.{} wants a number{}, not {}", where, field.name, list, shown(text)));
    if (*value >> field.width() != 0)
        return bad(fmt::format("{}.{} has {} bit{}, which cannot contain {}", where, field.name, field.width(),
                               field.width() == 1 ? "" : "s", shown(text)));
    return static_cast<std::uint32_t>(*value);
}

/// Collects writes and checks that each is possible.
class Collector {
public:
    void line(unsigned number) { line_ = number; }

    Status at(std::uint64_t cycle) {
        if (cycle < cycle_)
            return bad(
                fmt::format("cycle {} lies before cycle {} of an earlier write; put writes in order of their cycles",
                            cycle, cycle_));
        cycle_ = cycle;
        return Nothing{};
    }
    Status open(std::string_view name) {
        const auto offset = number(name);
        about_ =
            offset && *offset <= 0xffff ? Registers::find(static_cast<std::uint32_t>(*offset)) : Registers::find(name);
        if (!about_)
            return bad(fmt::format("{} is not a register of the unit; it has {}", shown(name), Registers::names()));
        if (about_->access == Permission::read_only) return bad(fmt::format("{} can only be read", about_->name));
        value_ = 0;
        fields_ = Registers().fields(about_->offset);
        set_.clear();
        return Nothing{};
    }
    Status whole(std::string_view text) {
        const auto value = number(text);
        if (!value || *value > 0xffffffffU)
            return bad(fmt::format("{} needs a number of 32 bits, such as 0x00200085, or fields such as {}, not {}",
                                   about_->name, example(), shown(text)));
        value_ = static_cast<std::uint32_t>(*value);
        return Nothing{};
    }
    Status field(std::string_view name, std::string_view text) {
        const auto at = std::find_if(fields_.begin(), fields_.end(),
                                     [&](const Field& f) { return !f.reserved() && same_name(f.name, name); });
        if (at == fields_.end())
            return bad(fmt::format("{} has no field {}; it has {}", about_->name, shown(name), names()));
        if (std::find(set_.begin(), set_.end(), at->name) != set_.end())
            return bad(fmt::format("{}.{} is given twice", about_->name, at->name));
        set_.push_back(at->name);
        WM_ASSIGN_OR_RETURN(const std::uint32_t value, field_value(about_->name, *at, text));
        value_ |= value << at->lo;
        return Nothing{};
    }
    void close() { program_.push_back({cycle_, about_->offset, value_, line_}); }
    RegisterProgram take() { return std::move(program_); }

private:
    [[nodiscard]] std::string names() const {
        std::string out;
        for (const Field& f : fields_)
            if (!f.reserved()) out += (out.empty() ? "" : ", ") + std::string(f.name);
        return out;
    }
    [[nodiscard]] std::string example() const {
        const auto at = std::find_if(fields_.begin(), fields_.end(), [](const Field& f) { return !f.reserved(); });
        return fmt::format("{}=1", at->name);
    }

    RegisterProgram program_;
    std::uint64_t cycle_ = 0;
    unsigned line_ = 0;
    std::optional<Registers::About> about_;
    std::vector<Field> fields_;
    std::vector<std::string_view> set_;
    std::uint32_t value_ = 0;
};

std::string_view next_word(std::string_view& rest, std::string_view blanks) {
    rest.remove_prefix(std::min(rest.find_first_not_of(blanks), rest.size()));
    const std::string_view word = rest.substr(0, rest.find_first_of(blanks));
    rest.remove_prefix(word.size());
    return word;
}

Status read_plain(std::string_view text, Collector& out) {
    constexpr std::string_view blanks = " \t\r";
    text = text.substr(0, text.find('#'));
    std::string_view word = next_word(text, blanks);
    if (word.starts_with('@')) {
        const auto cycle = number(word.substr(1));
        if (!cycle) return bad(fmt::format("a cycle is written as in @5000, not {}", shown(word)));
        WM_RETURN_IF_ERROR(out.at(*cycle));
        word = next_word(text, blanks);
    }
    // `DP_TC=0x85`, `DP_TC = 0x85` and `DP_TC: 0x85` mean `DP_TC 0x85`.
    const std::size_t end = std::min(word.find_first_of("=:"), word.size());
    std::string_view glued = word.substr(end);
    word = word.substr(0, end);
    if (word.empty())
        return bad("a register and a value are needed, such as 'DP_TC 0x00200085' or 'DP_TC TMODE=TASK EN=1'");
    WM_RETURN_IF_ERROR(out.open(word));
    glued.remove_prefix(std::min(glued.find_first_not_of("=:"), glued.size()));
    std::string_view value = glued.empty() ? next_word(text, blanks) : glued;
    if (value == "=" || value == ":") value = next_word(text, blanks);
    if (value.empty()) return bad(fmt::format("{} has no value", shown(word)));
    if (value.find('=') == value.npos) {
        WM_RETURN_IF_ERROR(out.whole(value));
        if (const std::string_view more = next_word(text, blanks); !more.empty())
            return bad(fmt::format("{} follows the value; write one register on a line", shown(more)));
    } else {
        for (; !value.empty(); value = next_word(text, blanks)) {
            const std::size_t equals = value.find('=');
            if (equals == value.npos) return bad(fmt::format("a field is written as in EN=1, not {}", shown(value)));
            WM_RETURN_IF_ERROR(out.field(value.substr(0, equals), value.substr(equals + 1)));
        }
    }
    out.close();
    return Nothing{};
}

Result<std::string> json_text(std::string_view name, const json& value) {
    if (value.is_number_unsigned()) return std::to_string(value.get<std::uint64_t>());
    if (value.is_boolean()) return std::string(value.get<bool>() ? "1" : "0");
    if (value.is_string()) return value.get<std::string>();
    return bad(fmt::format("{} is neither a number from 0 up nor text", shown(name)));
}

Status read_json(std::string_view text, Collector& out) {
    std::vector<std::vector<std::string>> names;
    std::string twice;
    const auto watch = [&](int, json::parse_event_t event, json& parsed) {
        if (event == json::parse_event_t::object_start) names.emplace_back();
        if (event == json::parse_event_t::object_end) names.pop_back();
        if (event == json::parse_event_t::key) {
            const auto key = parsed.get<std::string>();
            if (std::find(names.back().begin(), names.back().end(), key) != names.back().end()) twice = key;
            names.back().push_back(key);
        }
        return true;
    };
    const json object = json::parse(text, watch, false);
    if (object.is_discarded() || !object.is_object()) return bad("the line begins with a brace but is no JSON object");
    if (!twice.empty()) return bad(fmt::format("{} is given twice", shown(twice)));
    for (const auto& [key, value] : object.items())
        if (key != "at" && key != "register" && key != "value" && key != "fields")
            return bad(fmt::format("{} is not a key of a write; the keys are at, register, value, fields", shown(key)));
    if (object.contains("at")) {
        if (!object["at"].is_number_unsigned()) return bad("'at' is not the number of a cycle");
        WM_RETURN_IF_ERROR(out.at(object["at"].get<std::uint64_t>()));
    }
    if (!object.contains("register") || !object["register"].is_string())
        return bad(R"(a write names its register, such as {"register": "DP_TC", "value": "0x00200085"})");
    WM_RETURN_IF_ERROR(out.open(object["register"].get<std::string>()));
    if (object.contains("value") == object.contains("fields")) return bad("a write has either 'value' or 'fields'");
    if (object.contains("value")) {
        WM_ASSIGN_OR_RETURN(const std::string value, json_text("value", object["value"]));
        WM_RETURN_IF_ERROR(out.whole(value));
    } else {
        if (!object["fields"].is_object()) return bad(R"('fields' is not an object such as {"EN": 1})");
        for (const auto& [name, field] : object["fields"].items()) {
            WM_ASSIGN_OR_RETURN(const std::string value, json_text(name, field));
            WM_RETURN_IF_ERROR(out.field(name, value));
        }
    }
    out.close();
    return Nothing{};
}

/// Whether any counter has an event and a condition that enables it.
bool any_counts(const Registers& r) {
    const auto does = [](const DpTac& c, unsigned place) {
        return c.tenm != 0 && c.ceg < event_sets && event_set(c.ceg)[place] != EventWire::none;
    };
    const auto triad = [&](std::uint32_t all, std::initializer_list<std::uint32_t> own) {
        const auto control = from_value<DpTac>(all);
        unsigned place = 0;
        bool any = false;
        for (const std::uint32_t each : own) any |= does(control.tcen ? control : from_value<DpTac>(each), place++);
        return any;
    };
    return triad(to_value(r.tac), {to_value(r.ca0c), to_value(r.ca1c), to_value(r.ca2c)}) ||
           triad(to_value(r.tbc), {to_value(r.cb0c), to_value(r.cb1c), to_value(r.cb2c)});
}

}  // namespace

Result<RegisterProgram> read_program(std::string_view text) {
    if (text.size() > most_bytes) return Error{Errc::unsupported, "over 1 MiB, which is no register program", {}};
    Collector out;
    for (unsigned number = 1; !text.empty(); ++number) {
        std::string_view line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(line.size() + 1, text.size()));
        line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
        if (line.empty() || line.front() == '#') continue;
        out.line(number);
        if (const Status read = line.front() == '{' ? read_json(line, out) : read_plain(line, out); !read)
            return bad(fmt::format("line {}: {}", number, read.error().message));
    }
    return out.take();
}

std::string to_text(const RegisterProgram& program) {
    std::string out;
    for (const RegisterWrite& w : program) {
        const auto about = Registers::find(w.offset);
        out += fmt::format("@{} {} {:#010x}\n", w.cycle,
                           about ? std::string(about->name) : fmt::format("{:#x}", w.offset), w.value);
    }
    return out;
}

std::vector<Diagnosis> diagnose(const RegisterProgram& program, const ModelConfig& config) {
    std::vector<Diagnosis> out;
    if (const Status possible = config.check(); !possible) return {{0, 0, possible.error().message}};
    Model model(config);
    CycleInput in;
    bool counts = false, enabled = false, reads = false;
    bool has_end = false, has_place = false;  // DP_TEA and DP_TW were written
    for (std::size_t i = 0; i != program.size();) {
        const std::uint64_t cycle = program[i].cycle, before = i == 0 ? 0 : program[i - 1].cycle;
        if (cycle > before) {
            const std::uint64_t pause = std::min(cycle - before, longest_pause) - 1;
            if (model.run(in, pause) == nullptr)
                for (std::uint64_t k = 0; k < pause; ++k) model.step(in);
        }
        std::map<std::uint32_t, unsigned> lines;  // the last write to each register
        std::vector<Diagnosis> early;             // EN is written before a register it needs
        for (; i != program.size() && program[i].cycle == cycle; ++i) {
            const RegisterWrite& w = program[i];
            model.write(w.offset, w.value);
            lines[w.offset] = w.line;
            has_end |= w.offset == DpTea::offset;
            has_place |= w.offset == DpTw::offset;
            const auto tc = from_value<DpTc>(w.value);
            if (w.offset != DpTc::offset || !tc.en) continue;
            enabled = true;
            reads |= tc.tmode < trace_modes && has_readings(tc.mode());
            const bool single = tc.vtb_mode() == VtbMode::single_address;
            if (tc.nexus_mode() != NexusMode::only && !(single ? has_place : has_end && has_place))
                early.push_back(
                    {cycle, w.line,
                     single ? "EN is written 1 before DP_TW, so every line goes to address 0; write DP_TW above"
                            : "EN is written 1 before DP_TEA and DP_TW, so the trace buffer is not set yet; "
                              "write DP_TSA, DP_TEA and DP_TW above"});
        }
        const std::size_t periods = model.periods().size();
        const std::vector<ProgrammingError> errors = model.step(in).errors;
        // If the unit refuses to trace, it states the reason itself.
        if (model.periods().size() != periods) out.insert(out.end(), early.begin(), early.end());
        for (const ProgrammingError& error : errors)
            out.push_back({cycle, lines.contains(error.offset) ? lines[error.offset] : 0, error.message});
        counts = counts || any_counts(model.registers());
        const Registers now = model.registers();
        if (now.tc.en && now.tc.vtb_mode() == VtbMode::trace_event_request && lines.contains(DpTc::offset) &&
            (to_value(now.ter) < to_value(now.tsa) || to_value(now.ter) > to_value(now.tea) + (line_bytes - 1)))
            out.push_back({cycle, lines[DpTc::offset],
                           fmt::format("DP_TER {:#x} lies outside the trace buffer of {:#x} to {:#x}, so its readout "
                                       "is never requested; write an address in it",
                                       to_value(now.ter), to_value(now.tsa), to_value(now.tea)),
                           true});
    }
    if (!counts && enabled && reads)
        out.push_back({program.back().cycle, 0,
                       "no counter is enabled, so every reading in the trace shows the same values; give DP_TAC or "
                       "DP_TBC an event set and TENM, such as 'DP_TAC CEG=2 CMODE=trace TENM=immediate TCEN=1'",
                       true});
    if (!counts && model.periods().empty())
        out.push_back(
            {program.empty() ? 0 : program.back().cycle, 0,
             "the program turns on neither counters nor tracing; give counters an event set and TENM, such as "
             "'DP_TAC CEG=1 CMODE=trace TENM=immediate TCEN=1', and end with EN=1 in DP_TC"});
    return out;
}

}  // namespace waymark::dpu
