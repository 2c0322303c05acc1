#include "waymark/capture/dpu_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "disk_access.h"
#include "dpu_counters.h"
#include "ini.h"
#include "text.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/core/regular_file.h"

namespace waymark::capture {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t line_bytes = 32;
// Far more items than any real capture has.
constexpr std::size_t most_items = 65536;

std::optional<DpuContext> context_of(std::string_view text) {
    const auto parts = text::split(text, ',');
    if (parts.size() != 3) return std::nullopt;
    const bool user = text::equal_ignoring_case(parts[0], "user");
    if (!user && !text::equal_ignoring_case(parts[0], "supervisor")) return std::nullopt;
    const auto pid = text::number(parts[1]), did = text::number(parts[2]);
    if (!pid || !did || *pid > 0xff || *did > 0xff) return std::nullopt;
    return DpuContext{!user, static_cast<std::uint8_t>(*pid), static_cast<std::uint8_t>(*did)};
}
class Reader {
public:
    Reader(fs::path ini, const FileAccess& files) : files_(files), folder_(ini.parent_path()) {
        capture_.path = std::move(ini);
    }

    Result<DpuCapture> read() {
        WM_ASSIGN_OR_RETURN(const std::string text, files_.text(capture_.path, max_ini_bytes));
        const Ini ini(capture_.path, text, problems_);
        WM_RETURN_IF_ERROR(read_head(ini));
        read_registers(ini);
        capture_.initial = read_values(ini, "initial");
        capture_.final = read_values(ini, "final");
        read_rest(ini);
        WM_RETURN_IF_ERROR(check_files());
        name_missing();
        capture_.problems = problems_.take();
        capture_.modules = read_module_map(folder_, files_, capture_.problems);
        return std::move(capture_);
    }

private:
    void problem(unsigned line, std::string message, const fs::path& lacks = {}) {
        problems_.add(capture_.path, line, std::move(message), lacks);
    }

    /// The number of a key that may occur once; nullopt if it is absent or malformed.
    std::optional<std::uint64_t> number(const Ini& ini, const IniSection& section, std::string_view key,
                                        std::uint64_t most) {
        const IniEntry* entry = ini.single(section, key, problems_);
        if (entry == nullptr) return std::nullopt;
        const auto value = text::number(entry->value);
        if (value && *value <= most) return value;
        problem(entry->line,
                fmt::format("'{}' of key '{}' is not a number from 0 to {:#x}; it was ignored. Correct it.",
                            entry->value, key, most));
        return std::nullopt;
    }

    Status read_head(const Ini& ini) {
        const std::string where = capture_.path.string();
        const IniSection* head = ini.section("dpu");
        if (head == nullptr)
            return Error{Errc::bad_format, fmt::format("{}: has no section [dpu], so it describes no DPU capture; name "
                                                       "the folder of one, such as `waymark record --unit dpu` writes",
                                                       where)};
        const auto version = number(ini, *head, "version", 0xffff);
        if (version && *version != 1)
            return Error{Errc::unsupported, fmt::format("{}: is of version {}, but this Waymark reads version 1; use a "
                                                        "newer one",
                                                        where, *version)};
        if (!version) problem(head->line, "Section [dpu] has no version; it is read as version 1. Add 'version=1'.");
        const IniEntry* layout = ini.single(*head, "layout", problems_);
        if (layout == nullptr || layout->value.empty())
            return Error{Errc::bad_format,
                         fmt::format("{}: does not name the layout of its words; add 'layout=WL-1' to "
                                     "[dpu] if Waymark made it",
                                     where)};
        capture_.layout = layout->value;
        if (const auto base = number(ini, *head, "dpu_base", 0xffffffff)) {
            if (*base % 4096 != 0)
                problem(head->line, fmt::format("dpu_base {:#x} is not aligned to 4096 bytes, as every base must be; "
                                                "{:#x} is used. Correct it.",
                                                *base, *base & ~std::uint64_t{4095}));
            capture_.dpu_base = static_cast<std::uint32_t>(*base & ~std::uint64_t{4095});
        }
        if (const IniEntry* order = ini.single(*head, "byte_order", problems_)) {
            capture_.little_endian = text::equal_ignoring_case(order->value, "little");
            if (!capture_.little_endian && !text::equal_ignoring_case(order->value, "big"))
                problem(order->line,
                        fmt::format("byte_order is '{}', but 'big' or 'little' was expected; big is used. Correct it.",
                                    order->value));
        }
        capture_.lines_written = number(ini, *head, "lines_written", ~std::uint64_t{0});
        capture_.buffer = file(ini, *head, "buffer");
        capture_.nexus = file(ini, *head, "nexus");
        if (capture_.buffer.empty() && capture_.nexus.empty())
            return Error{Errc::bad_format, fmt::format("{}: names no trace; add 'buffer=FILE' with the contents of the "
                                                       "virtual trace buffer, or 'nexus=FILE', to [dpu]",
                                                       where)};
        capture_.readout = number(ini, *head, "readout", 1).value_or(0) != 0;
        if (const IniEntry* overruns = ini.single(*head, "overruns", problems_)) read_overruns(*overruns);
        unknown_keys(*head, {"version", "layout", "dpu_base", "byte_order", "lines_written", "buffer", "nexus",
                             "readout", "overruns"});
        return Nothing{};
    }

    void read_overruns(const IniEntry& entry) {
        for (const std::string& each : list(entry)) {
            const auto at = text::number(each);
            if (!at)
                return problem(
                    entry.line,
                    fmt::format(
                        "'{}' of key 'overruns' is not an offset; it and the following ones were ignored. Correct it.",
                        each));
            capture_.overruns.push_back(*at);
        }
        std::sort(capture_.overruns.begin(), capture_.overruns.end());
    }

    fs::path file(const Ini& ini, const IniSection& section, std::string_view key) {
        const IniEntry* entry = ini.single(section, key, problems_);
        return entry == nullptr || entry->value.empty() ? fs::path() : resolve(*entry);
    }
    fs::path resolve(const IniEntry& entry) {
        const fs::path relative(entry.value);
        const fs::path normal = relative.lexically_normal();
        if (relative.is_absolute() || (!normal.empty() && *normal.begin() == ".."))
            problem(entry.line, fmt::format("'{}' lies outside the capture folder. It is read, but is lost when the "
                                            "folder is copied; move it into the folder.",
                                            entry.value));
        return folder_ / relative;
    }

    void unknown_keys(const IniSection& section, const std::vector<std::string_view>& known) {
        for (const IniEntry& entry : section.entries)
            if (std::none_of(known.begin(), known.end(),
                             [&](std::string_view key) { return text::equal_ignoring_case(key, entry.key); }))
                problem(entry.line, fmt::format("Section [{}] has no key '{}'; it was ignored.{}", section.name,
                                                entry.key, problems_.suggestion(capture_.path, entry.key, known)));
    }

    void read_registers(const Ini& ini) {
        const IniSection* section = ini.section("registers");
        if (section == nullptr) return;
        for (const IniEntry& entry : section->entries) {
            const auto value = text::number(entry.value);
            if (!value || *value > 0xffffffff)
                problem(entry.line,
                        fmt::format("'{}' is not a value of 32 bits; register '{}' was omitted. Correct it.",
                                    entry.value, entry.key));
            else if (capture_.find_register(entry.key) != nullptr)
                problem(entry.line,
                        fmt::format("Register '{}' appears again; the first one is used. Remove one.", entry.key));
            else if (capture_.registers.size() < most_items)
                capture_.registers.push_back({entry.key, *value});
        }
    }

    std::optional<DpuCapture::Values> read_values(const Ini& ini, std::string_view name) {
        const IniSection* section = ini.section(name);
        if (section == nullptr) return std::nullopt;
        DpuCapture::Values values{};
        unsigned found = 0;
        for (std::size_t i = 0; i < dpu_counters.size(); ++i)
            if (const auto value = number(ini, *section, dpu_counters[i], 0x7fffffff)) {
                values[i] = static_cast<std::uint32_t>(*value);
                ++found;
            }
        if (name == "initial")
            if (const IniEntry* entry = ini.single(*section, "context", problems_)) {
                capture_.initial_context = context_of(entry->value);
                if (!capture_.initial_context) bad_context(*entry);
            }
        std::vector<std::string_view> known(dpu_counters.begin(), dpu_counters.end());
        if (name == "initial") known.emplace_back("context");
        unknown_keys(*section, known);
        if (found == dpu_counters.size()) return values;
        if (found != 0)
            problem(section->line,
                    fmt::format("Section [{}] gives {} of 6 counters; it was ignored. Give A0 to B2, with "
                                "31 bits each.",
                                name, found));
        return std::nullopt;
    }

    void bad_context(const IniEntry& entry) {
        problem(entry.line,
                fmt::format("'{}' is not a context; it was ignored. Write privilege, PID and DID: 'user,5,5'.",
                            entry.value));
    }

    std::vector<std::string> list(const IniEntry& entry) {
        std::vector<std::string> out;
        if (entry.value.empty()) return out;
        for (const std::string_view part : text::split(entry.value, ','))
            if (!part.empty() && out.size() < most_items) out.emplace_back(part);
        return out;
    }

    void read_rest(const Ini& ini) {
        if (const IniSection* eonce = ini.section("eonce")) {
            if (const IniEntry* classes = ini.single(*eonce, "classes", problems_))
                capture_.eonce_classes = list(*classes);
            if (const auto c = number(ini, *eonce, "counters", 2))
                capture_.eonce_counters = static_cast<std::uint8_t>(*c);
            unknown_keys(*eonce, {"classes", "counters"});
        }
        if (const IniSection* events = ini.section("events")) {
            if (const IniEntry* driven = ini.single(*events, "driven", problems_)) capture_.driven = list(*driven);
            unknown_keys(*events, {"driven"});
        }
        if (const IniSection* history = ini.section("counters")) {
            capture_.history.emplace();
            for (const auto& [key, mask] : {std::pair("partial", &capture_.history->partial),
                                            {"changed", &capture_.history->changed},
                                            {"rewritten", &capture_.history->rewritten}})
                if (const IniEntry* entry = ini.single(*history, key, problems_)) *mask = counter_mask(*entry);
            unknown_keys(*history, {"partial", "changed", "rewritten"});
        }
        if (const IniSection* images = ini.section("images"))
            for (const IniEntry& entry : images->entries) read_image(entry);
        if (const IniSection* map = ini.section("address_map"))
            for (const IniEntry& entry : map->entries) read_window(entry);
        if (const IniSection* symbols = ini.section("symbols"))
            for (const IniEntry& entry : symbols->entries) {
                const auto address = text::number(entry.key);
                if (address && *address <= 0xffffffff && capture_.symbols.size() < most_items)
                    capture_.symbols.push_back({static_cast<std::uint32_t>(*address), entry.value});
                else
                    problem(
                        entry.line,
                        fmt::format("'{}' is not an address of 32 bits; its name was ignored. Correct it.", entry.key));
            }
        if (const IniSection* parameters = ini.section("parameters"))
            for (const IniEntry& entry : parameters->entries)
                if (capture_.parameters.size() < most_items) capture_.parameters.emplace_back(entry.key, entry.value);
        for (const IniSection& section : ini.sections()) read_section(ini, section);
    }

    /// A mask of counters that are given by name.
    std::uint8_t counter_mask(const IniEntry& entry) {
        std::uint8_t mask = 0;
        for (const std::string& each : list(entry)) {
            const auto found = std::find_if(dpu_counters.begin(), dpu_counters.end(), [&](std::string_view name) {
                return text::equal_ignoring_case(name, each);
            });
            if (found == dpu_counters.end())
                problem(entry.line, fmt::format("'{}' is not a counter; it was ignored. Counters are A0 to B2.", each));
            else
                mask = static_cast<std::uint8_t>(mask | 1U << (found - dpu_counters.begin()));
        }
        return mask;
    }

    /// Reads `image0=FILE`, and below it `image0.load_bias=NUMBER` if it was not loaded at the addresses in the file.
    void read_image(const IniEntry& entry) {
        constexpr std::string_view bias = ".load_bias";
        if (!entry.key.ends_with(bias)) {
            if (capture_.images.size() < most_items) capture_.images.push_back({resolve(entry)});
            return;
        }
        const auto value = text::number(entry.value);
        if (value && *value <= 0xffffffff && !capture_.images.empty())
            capture_.images.back().load_bias = static_cast<std::uint32_t>(*value);
        else
            problem(entry.line, fmt::format("'{}={}' is not a load bias of an image above it; it was ignored. Correct "
                                            "it, or names of that image will be wrong.",
                                            entry.key, entry.value));
    }

    void read_window(const IniEntry& entry) {
        const auto guest = text::number(entry.key);
        const auto parts = text::split(entry.value, ',');
        const auto bytes = parts.size() == 2 ? text::number(parts[0]) : std::nullopt;
        const auto window = parts.size() == 2 ? text::number(parts[1]) : std::nullopt;
        if (guest && bytes && window && *window <= 0xffffffff && capture_.windows.size() < most_items)
            capture_.windows.push_back({*guest, *bytes, static_cast<std::uint32_t>(*window)});
        else
            problem(entry.line,
                    fmt::format(
                        "'{}={}' is not a window; it was ignored. Write guest address = bytes, address in the trace.",
                        entry.key, entry.value));
    }

    void read_section(const Ini& ini, const IniSection& section) {
        const std::vector<std::string_view> known{"dpu",         "registers", "initial",   "final",
                                                  "eonce",       "events",    "counters",  "images",
                                                  "address_map", "symbols",   "parameters"};
        if (text::lower(section.name).starts_with("filter")) {
            const auto words = number(ini, section, "words", ~std::uint64_t{0} / 4);
            const auto tc = number(ini, section, "DP_TC", 0xffffffff), cr = number(ini, section, "DP_CR", 0xffffffff);
            const auto rpid = number(ini, section, "DP_RPID", 0xff), rdid = number(ini, section, "DP_RDID", 0xff);
            const auto message_bytes = number(ini, section, "message_bytes", ~std::uint64_t{0});
            unknown_keys(section, {"words", "message_bytes", "DP_TC", "DP_CR", "DP_RPID", "DP_RDID"});
            if (!words || !tc || !cr || !rpid || !rdid)
                return problem(section.line,
                               fmt::format("Section [{}] needs words, DP_TC, DP_CR, DP_RPID and DP_RDID; it was "
                                           "ignored, so counts of other tasks may be assigned to this one. Add them.",
                                           section.name));
            if (capture_.filters.size() < most_items)
                capture_.filters.push_back({*words, (*tc >> 11 & 1U) != 0, (*tc >> 5 & 1U) != 0,
                                            static_cast<std::uint8_t>(*cr >> 28 & 3U), static_cast<std::uint8_t>(*rpid),
                                            static_cast<std::uint8_t>(*rdid), message_bytes});
            return;
        }
        if (text::lower(section.name).starts_with("period")) {
            DpuPeriod period;
            const auto tw = number(ini, section, "DP_TW", 0xffffffff), tc = number(ini, section, "DP_TC", 0xffffffff);
            period.lines_written = number(ini, section, "lines_written", ~std::uint64_t{0});
            if (const IniEntry* entry = ini.single(section, "context", problems_)) {
                period.context = context_of(entry->value);
                if (!period.context) bad_context(*entry);
            }
            unknown_keys(section, {"DP_TW", "DP_TC", "context", "lines_written"});
            if (!tw || !tc)
                return problem(section.line, fmt::format("Section [{}] needs DP_TW and DP_TC; it was ignored, so trace "
                                                         "from then on may be misread. Add them.",
                                                         section.name));
            period.dp_tw = static_cast<std::uint32_t>(*tw);
            period.dp_tc = static_cast<std::uint32_t>(*tc);
            if (capture_.periods.size() < most_items) capture_.periods.push_back(period);
            return;
        }
        if (std::none_of(known.begin(), known.end(),
                         [&](std::string_view name) { return text::equal_ignoring_case(name, section.name); }))
            problem(section.line, fmt::format("A DPU capture has no section [{}]; it was ignored.{}", section.name,
                                              problems_.suggestion(capture_.path, section.name, known)));
    }

    /// A missing file is an error if nothing else can be read; a short file is read as far as it goes.
    Status check_files() {
        std::optional<Error> missing;
        unsigned left = 0;
        for (const fs::path* file : {&capture_.buffer, &capture_.nexus}) {
            if (file->empty()) continue;
            const auto size = files_.size(*file);
            if (size) {
                ++left;
                if (file == &capture_.buffer) check_buffer(*size);
                continue;
            }
            if (const auto special = no_regular_file(*file)) {
                problem(0, special->message + ".", *file);
                if (!missing) missing = *special;
                continue;
            }
            const std::string why = fmt::format("{}: {}, but {} names it as {}; copy the whole capture folder",
                                                file->string(), size.error().message, capture_.path.string(),
                                                file == &capture_.buffer ? "buffer" : "nexus");
            if (!missing) missing = Error{size.error().code, why};
            problem(0, why + ".", *file);
        }
        if (left == 0) return std::move(*missing);
        return Nothing{};
    }

    void check_buffer(std::uint64_t bytes) {
        const Register *start = capture_.find_register("DP_TSA"), *end = capture_.find_register("DP_TEA");
        const Register* control = capture_.find_register("DP_TC");
        const bool single = control != nullptr && (control->value >> 8 & 3U) == 1;
        if (single || capture_.readout || start == nullptr || end == nullptr || end->value < start->value) return;
        const std::uint64_t expected = end->value - start->value + line_bytes;
        if (bytes < expected)
            problem(0,
                    fmt::format("{} has {} bytes, but the buffer from DP_TSA to DP_TEA has {}: it is cut. The part "
                                "that is there is read; copy the whole file.",
                                capture_.buffer.filename().string(), bytes, expected),
                    capture_.buffer);
        if (bytes > expected)
            problem(0, fmt::format("{} has {} bytes, but the buffer from DP_TSA to DP_TEA has {}. The rest was "
                                   "ignored; correct DP_TSA and DP_TEA if it belongs to the trace.",
                                   capture_.buffer.filename().string(), bytes, expected));
    }

    /// Reports what the capture lacks, and what cannot be known without it.
    void name_missing() {
        const auto lacks = [&](bool missing, std::string_view what, std::string_view consequence) {
            if (missing) problem(0, fmt::format("The capture does not give {}: {}.", what, consequence));
        };
        const auto no = [&](std::string_view name) { return capture_.find_register(name) == nullptr; };
        lacks(no("DP_TC"), "DP_TC", "entries are distinguished without the trace mode, and damage is seen less often");
        const Register* control = capture_.find_register("DP_TC");
        const bool messages_alone = capture_.buffer.empty() || (control != nullptr && (control->value >> 24 & 3U) == 3);
        lacks(!capture_.nexus.empty() && messages_alone && capture_.filters.size() > 1 &&
                  std::any_of(capture_.filters.begin(), capture_.filters.end(),
                              [](const DpuFilter& f) { return !f.message_bytes; }),
              "message_bytes of each [filter]",
              "the places in the Nexus messages at which the filters change are not known, so counts of other tasks "
              "may be assigned to this one");
        lacks(no("DP_SR"), "DP_SR", "the last entry may have been cut and is not trusted");
        lacks(no("DP_TSA") || no("DP_TEA") || no("DP_TW") || no("DP_MR"), "DP_TSA, DP_TEA, DP_TW and DP_MR",
              "the buffer is read from its beginning, as if it had not wrapped");
        lacks(no("DP_TAC") || no("DP_TBC"), "DP_TAC and DP_TBC",
              "counters are called A0 to B2, not after their events");
        lacks(!capture_.initial, "the initial values of the counters", "counts up to the first reading are not known");
        lacks(!capture_.final, "the final values of the counters", "counts after the last reading are not known");
        lacks(!capture_.initial_context, "the initial context",
              "the owner of the code that ran up to the first entry is not known");
        lacks(!capture_.driven, "the events that were driven", "a count of 0 may mean that no event was connected");
    }

    const FileAccess& files_;
    fs::path folder_;
    DpuCapture capture_;
    ProblemList problems_;
};

}  // namespace

bool is_dpu_folder(const fs::path& path) {
    std::error_code ignored;
    return fs::is_regular_file(path / dpu_ini, ignored) ||
           (path.filename() == dpu_ini && fs::is_regular_file(path, ignored));
}

Result<DpuCapture> read_dpu_folder(const fs::path& ini, const FileAccess& files) { return Reader(ini, files).read(); }

Result<DpuCapture> read_dpu_folder(const fs::path& path) {
    std::error_code failure;
    const fs::file_status status = fs::status(path, failure);
    if (status.type() == fs::file_type::not_found)
        return Error{Errc::not_found, fmt::format("{}: there is no such folder; check the name", path.string())};
    if (status.type() != fs::file_type::directory)
        return read_dpu_folder(path, DiskAccess("no dpu.ini; name the folder of a DPU capture"));
    if (!is_dpu_folder(path))
        return Error{Errc::not_found,
                     fmt::format("{}: this folder has no dpu.ini; name the folder of a DPU capture", path.string())};
    return read_dpu_folder(path / dpu_ini, DiskAccess("no dpu.ini; name the folder of a DPU capture"));
}

}  // namespace waymark::capture
