#include "waymark/spe/register_file.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "waymark/spe/registers.h"

namespace waymark::spe {

namespace {

using nlohmann::json;

constexpr std::size_t most_bytes = 1 << 20, shown_bytes = 60;

/// Text from a file, escaped and shortened for a message.
std::string shown(std::string_view text) {
    std::string out = "'";
    for (const char c : text.substr(0, shown_bytes)) out += c >= ' ' && c < 0x7f ? c : '?';
    return out + (text.size() > shown_bytes ? "…'" : "'");
}

Error bad(std::string message) { return {Errc::bad_format, std::move(message)}; }

std::string_view register_of(std::string_view name) { return name.substr(0, name.find('.')); }

/// The usual spelling, `PMSCR_EL1.CX` for `pmscr_el12.cx`; empty if there is no such register or field.
std::string canonical(std::string_view name) {
    const std::string_view register_name = Registers::canonical(register_of(name));
    if (register_name.empty()) return {};
    if (name.find('.') == name.npos) return std::string(register_name);
    const auto field = Registers().field(name);
    return field ? std::string(register_name) + "." + std::string(field->name) : std::string();
}

/// The names of a register's fields, for a message.
std::string named_fields(std::string_view register_name) {
    std::string out;
    for (const Field& field : Registers().fields(register_name)) {
        if (field.reserved() || field.name.starts_with("other[")) continue;
        if (!out.empty()) out += ", ";
        out += field.name;
    }
    return out;
}

/// Digits without their `_`, and whether they have a prefix.
struct Digits {
    explicit Digits(std::string_view written) {
        std::remove_copy(written.begin(), written.end(), std::back_inserter(text), '_');
        const std::string_view prefix = std::string_view(text).substr(0, 2);
        if (prefix == "0x" || prefix == "0X") base = 16;
        if (prefix == "0b" || prefix == "0B") base = 2;
    }
    /// Whether a number without prefix can only be hexadecimal.
    [[nodiscard]] bool clearly_hexadecimal() const {
        return base == 0 && !text.empty() && text.find_first_not_of("0123456789abcdefABCDEF") == text.npos &&
               (text.size() == 16 || text.find_first_of("abcdefABCDEF") != text.npos);
    }

    std::string text;
    int base = 0;  ///< base by the prefix; 0 without one
};

/// Collects settings, checks that none occurs twice, and reads their values when their base is known.
class Collector {
public:
    void add(std::string_view name, std::string_view value, std::string where = {}) {
        if (Registers::canonical(register_of(name)).empty()) {
            // Values may be arbitrary text here, so letters prove nothing, but sixteen digits do.
            if (Digits(value).text.size() == 16) look(value);
            if (std::find(all_.unknown.begin(), all_.unknown.end(), name) == all_.unknown.end())
                all_.unknown.emplace_back(name);
            return;
        }
        look(value);
        pending_.push_back({std::string(name), std::string(value), std::move(where)});
    }
    Result<Settings> take() {
        const bool hexadecimal = !sign_.empty();
        std::string unclear;
        for (const Pending& p : pending_) {
            auto setting = read_setting(p.name, p.value, hexadecimal);
            if (!setting) return bad(p.where + setting.error().message);
            if (!seen_.insert(setting->name).second) return bad(p.where + setting->name + " is given twice");
            if (base_unclear(p.value) && p.name.find('.') == p.name.npos)
                unclear += (unclear.empty() ? "" : ", ") + setting->name + " " + p.value;
            all_.settings.push_back(std::move(*setting));
        }
        if (!unclear.empty())
            all_.notes.push_back(hexadecimal ? "numbers without 0x are read as hexadecimal, because " + shown(sign_) +
                                                   " can be nothing else: " + unclear
                                             : "numbers without 0x are decimal: " + unclear);
        // A whole register must not undo a setting of one of its fields.
        std::stable_partition(all_.settings.begin(), all_.settings.end(),
                              [](const NamedValue& s) { return s.name.find('.') == s.name.npos; });
        return std::move(all_);
    }

private:
    struct Pending {
        std::string name, value, where;
    };

    void look(std::string_view value) {
        if (sign_.empty() && Digits(value).clearly_hexadecimal()) sign_ = value;
    }
    Settings all_;
    std::vector<Pending> pending_;
    std::set<std::string> seen_;
    std::string sign_;  ///< the value that proves that all are hexadecimal
};

Result<std::string> value_text(std::string_view name, const json& value) {
    if (value.is_number_unsigned()) {
        std::string out;
        wire::append_number(out, value.get<std::uint64_t>());
        return out;
    }
    if (value.is_boolean()) return std::string(value.get<bool>() ? "1" : "0");
    if (value.is_string()) return value.get<std::string>();
    return bad("the value of " + shown(name) +
               " is neither a number from 0 up, nor such a number in quotes, nor an object of fields");
}

Status read_object(const json& object, Collector& collector, bool top) {
    for (const auto& [name, value] : object.items()) {
        if (top && name == "registers" && value.is_object()) {
            WM_RETURN_IF_ERROR(read_object(value, collector, false));
        } else if (value.is_object()) {
            for (const auto& [field, field_value] : value.items()) {
                WM_ASSIGN_OR_RETURN(const std::string text, value_text(field, field_value));
                collector.add(name + "." + field, text);
            }
        } else if (Registers::canonical(register_of(name)).empty()) {
            collector.add(name, {});
        } else {
            WM_ASSIGN_OR_RETURN(const std::string text, value_text(name, value));
            collector.add(name, text);
        }
    }
    return Nothing{};
}

Result<Settings> read_json(std::string_view text) {
    std::vector<std::set<std::string>> names;
    std::string twice;
    const auto watch = [&](int, json::parse_event_t event, json& parsed) {
        if (event == json::parse_event_t::object_start) names.emplace_back();
        if (event == json::parse_event_t::object_end) names.pop_back();
        if (event == json::parse_event_t::key && !names.back().insert(parsed.get<std::string>()).second)
            twice = parsed.get<std::string>();
        return true;
    };
    const json document = json::parse(text, watch, false);
    if (document.is_discarded()) return bad("it begins with a brace but is not JSON");
    if (!twice.empty()) return bad(shown(twice) + " is given twice");
    Collector collector;
    WM_RETURN_IF_ERROR(read_object(document, collector, true));
    return collector.take();
}

Result<Settings> read_dump(std::string_view text) {
    constexpr std::string_view blanks = " \t\r";
    Collector collector;
    for (unsigned number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
        if (line.empty() || line.front() == '#') continue;
        const std::string where = "line " + std::to_string(number) + ": ";
        const std::size_t name_end = std::min(line.find_first_of(" \t\r=:"), line.size());
        const std::string_view name = line.substr(0, name_end);
        line.remove_prefix(name_end);
        line.remove_prefix(std::min(line.find_first_not_of(" \t\r=:"), line.size()));
        const std::string_view value = line.substr(0, line.find_first_of(" \t\r,;#"));
        if (name.empty() || value.empty())
            return bad(where + "a name and a value are needed, such as 'PMSCR_EL1 0x6b', not " +
                       shown(name.empty() ? line : name));
        collector.add(name, value, where);
    }
    return collector.take();
}

}  // namespace

Result<std::uint64_t> read_value(std::string_view text, bool hexadecimal) {
    const Digits digits(text);
    // A register value that begins with 0b and has all its digits is hexadecimal, not binary, among others like it.
    const bool whole = hexadecimal && digits.base == 2 && digits.text.size() == 16;
    const int base = digits.base != 0 && !whole                             ? digits.base
                     : hexadecimal || whole || digits.clearly_hexadecimal() ? 16
                                                                            : 10;
    std::string_view rest = digits.text;
    if (digits.base != 0 && !whole) rest.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value, base);
    if (error != std::errc{} || end != rest.data() + rest.size())
        return Error{Errc::usage, shown(text) + " is not a number of 64 bits (0x for hexadecimal, 0b for binary)"};
    return value;
}

bool base_unclear(std::string_view text) {
    const Digits digits(text);
    return digits.base == 0 && !digits.clearly_hexadecimal() &&
           digits.text.find_first_not_of('0') < digits.text.size() - std::min<std::size_t>(digits.text.size(), 1);
}

Result<NamedValue> read_setting(std::string_view name, std::string_view value_text, bool hexadecimal) {
    const std::string_view register_name = Registers::canonical(register_of(name));
    if (register_name.empty()) return Error{Errc::usage, shown(name) + " is not a register that profiling depends on"};
    const std::string full = canonical(name);
    if (full.empty())
        return Error{Errc::usage, std::string(register_name) + " has no field " +
                                      shown(name.substr(register_of(name).size() + 1)) + "; it has " +
                                      named_fields(register_name)};
    auto value = read_value(value_text, hexadecimal);
    if (!value) return Error{Errc::usage, full + ": " + value.error().message};
    if (const auto field = Registers().field(full); field && field->width() < 64 && *value >> field->width() != 0) {
        const bool binary = field->width() > 1 && value_text.find_first_not_of("01") == value_text.npos;
        return Error{Errc::usage, full + " has " + std::to_string(field->width()) +
                                      (field->width() == 1 ? " bit" : " bits") + " and does not hold " +
                                      shown(value_text) +
                                      (binary ? "; binary is written 0b" + std::string(value_text) : "")};
    }
    return NamedValue{full, *value};
}

Result<Settings> read_settings(std::string_view text) {
    if (text.size() > most_bytes) return Error{Errc::unsupported, "over 1 MiB, so it is not a set of registers"};
    struct Magic {
        std::string_view begin, name;
    };
    constexpr Magic compressed[] = {{"\x1f\x8b", "gzip"},
                                    {"\x28\xb5\x2f\xfd", "zstd"},
                                    {"\xfd"
                                     "7zXZ",
                                     "xz"},
                                    {"BZh", "bzip2"}};
    for (const Magic& magic : compressed)
        if (text.starts_with(magic.begin))
            return Error{Errc::unsupported, "it is compressed (" + std::string(magic.name) + "): unpack it first"};
    if (text.find('\0') != text.npos) return bad("it is not text");
    const std::size_t first = text.find_first_not_of(" \t\r\n");
    return first != text.npos && text[first] == '{' ? read_json(text) : read_dump(text);
}

}  // namespace waymark::spe
