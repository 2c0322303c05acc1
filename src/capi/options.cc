#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "objects.h"
#include "waymark/core/wire.h"

namespace waymark::capi {

namespace {

using doctor::CaptureInput;

/// An option that is a text, or a list of texts, in CaptureInput.
struct TextOption {
    std::string_view name;
    std::string CaptureInput::*text = nullptr;
    std::vector<std::string> CaptureInput::*list = nullptr;
};
constexpr std::array text_options{
    TextOption{"image", nullptr, &CaptureInput::images},
    TextOption{"symbols", nullptr, &CaptureInput::symbols},
    TextOption{"symfs", &CaptureInput::symfs},
    TextOption{"debug-dir", nullptr, &CaptureInput::debug_folders},
    TextOption{"symdir", nullptr, &CaptureInput::symbol_folders},
    TextOption{"perf-map", nullptr, &CaptureInput::perf_maps},
    TextOption{"jitdump", nullptr, &CaptureInput::jitdumps},
    TextOption{"protocol", &CaptureInput::protocol},
    TextOption{"buffer-format", &CaptureInput::buffer_format},
    TextOption{"trace-id", nullptr, &CaptureInput::trace_ids},
};

std::vector<std::string_view> known_options() {
    std::vector<std::string_view> out;
    for (const TextOption& option : text_options) out.push_back(option.name);
    for (const char* name : {"kallsyms", "midr", "core", "register"}) out.emplace_back(name);
    for (const protocol::RegisterOption& option : doctor::register_options()) out.push_back(option.option.substr(2));
    return out;
}

bool same_word(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
        return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
    });
}

}  // namespace

Status set_option(wm_options& options, std::string_view name, std::string value) {
    for (const TextOption& option : text_options) {
        if (option.name != name) continue;
        if (option.list != nullptr)
            (options.input.*option.list).push_back(std::move(value));
        else
            options.input.*option.text = std::move(value);
        return Nothing{};
    }
    if (name == "kallsyms" || name == "midr" || name == "core") {
        if (name == "midr") WM_LEAVE_IF_ERROR(doctor::read_number(value, "midr", 0xffffffff));
        (name == "kallsyms" ? options.kallsyms : name == "midr" ? options.midr : options.core) = std::move(value);
        return Nothing{};
    }
    if (name == "register") {
        const std::size_t sign = value.find('=');
        std::uint64_t number = 0;
        if (sign == std::string::npos || sign == 0 ||
            !wire::scan_number(std::string_view(value).substr(sign + 1), number))
            return Error{Errc::usage, fmt::format("the option register takes NAME=VALUE with a number (0x for "
                                                  "hexadecimal), not '{}'",
                                                  value)};
        options.registers.push_back({value.substr(0, sign), number});
        return Nothing{};
    }
    for (const protocol::RegisterOption& option : doctor::register_options()) {
        if (!same_word(option.option.substr(2), name)) continue;
        WM_LEAVE_IF_ERROR(doctor::read_number(value, name, 0xffffffff));
        options.input.registers[std::string(option.option)] = std::move(value);
        return Nothing{};
    }
    return Error{Errc::usage,
                 fmt::format("there is no option '{}'; known are {}", name, fmt::join(known_options(), ", "))};
}

std::string for_callers(std::string message) {
    for (std::size_t at = 0; (at = message.find("--", at)) != std::string::npos;) {
        const std::size_t first = at + 2;
        const std::size_t end =
            std::min(message.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-", first), message.size());
        const std::vector<std::string_view> known = known_options();
        if (std::find(known.begin(), known.end(), std::string_view(message).substr(first, end - first)) ==
            known.end()) {
            at = end;
            continue;
        }
        constexpr std::string_view option = "the option ";
        message.replace(at, 2, option);
        at = end + option.size() - 2;
    }
    return message;
}

}  // namespace waymark::capi

extern "C" {

wm_options* wm_options_new(void) { return new (std::nothrow) wm_options; }
void wm_options_free(wm_options* options) { delete options; }

wm_status wm_options_set(wm_options* options, const char* name, const char* value, wm_error** error) {
    if (options == nullptr) return waymark::capi::missing(error, "wm_options_set", "options");
    if (name == nullptr) return waymark::capi::missing(error, "wm_options_set", "name");
    if (value == nullptr) return waymark::capi::missing(error, "wm_options_set", "value");
    return waymark::capi::guarded(error, [&] {
        const waymark::Status set = waymark::capi::set_option(*options, name, value);
        return set ? WM_OK : waymark::capi::fail(error, set.error());
    });
}

wm_status wm_options_add_code(wm_options* options, uint64_t address, const void* bytes, size_t count,
                              wm_error** error) {
    if (options == nullptr) return waymark::capi::missing(error, "wm_options_add_code", "options");
    if (bytes == nullptr) return waymark::capi::missing(error, "wm_options_add_code", "bytes");
    return waymark::capi::guarded(error, [&] {
        if (count == 0 || count - 1 > ~address)
            return waymark::capi::fail(error, WM_USAGE,
                                       fmt::format("{} bytes of code at {:#x}: expected at least one, and none beyond "
                                                   "the end of the address space",
                                                   count, address));
        const auto* const first = static_cast<const std::uint8_t*>(bytes);
        options->input.code.emplace_back(waymark::Address{address}, std::vector(first, first + count));
        return WM_OK;
    });
}

void wm_options_set_code_callback(wm_options* options, wm_code_callback callback, void* user) {
    if (options == nullptr) return;
    options->callback = callback;
    options->user = user;
}

}  // extern "C"
