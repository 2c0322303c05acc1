#include <array>

#include "objects.h"

namespace waymark::capi {

namespace {

/// The error used when there is no memory to describe the original one.
wm_error exhausted{WM_NO_MEMORY, "memory is exhausted", {}};

wm_status status_of(Errc code) {
    switch (code) {
        case Errc::usage: return WM_USAGE;
        case Errc::not_found: return WM_NOT_FOUND;
        case Errc::unreadable: return WM_UNREADABLE;
        case Errc::bad_format: return WM_BAD_FORMAT;
        case Errc::unsupported: return WM_UNSUPPORTED;
    }
    return WM_INTERNAL;
}

}  // namespace

wm_status fail(wm_error** error, wm_status status, std::string_view message,
               std::optional<std::uint64_t> offset) noexcept {
    if (error == nullptr) return status;
    try {
        *error = new wm_error{status, std::string(message), offset};
    } catch (...) {
        *error = &exhausted;
    }
    return status;
}

wm_status fail(wm_error** error, const Error& what) noexcept {
    const auto offset = what.offset ? std::optional(what.offset->value) : std::nullopt;
    return fail(error, status_of(what.code), what.message, offset);
}

wm_status missing(wm_error** error, std::string_view function, std::string_view argument) noexcept {
    std::array<char, 128> text{};
    std::size_t length = 0;
    for (const std::string_view part :
         {function, std::string_view(": the argument "), argument, std::string_view(" must not be NULL")})
        for (const char c : part)
            if (length < text.size()) text[length++] = c;
    return fail(error, WM_USAGE, {text.data(), length});
}

}  // namespace waymark::capi

extern "C" {

wm_status wm_error_status(const wm_error* error) { return error == nullptr ? WM_OK : error->status; }
const char* wm_error_message(const wm_error* error) { return error == nullptr ? "" : error->message.c_str(); }
int wm_error_offset(const wm_error* error, uint64_t* offset) {
    if (error == nullptr || !error->offset) return 0;
    if (offset != nullptr) *offset = *error->offset;
    return 1;
}
void wm_error_free(wm_error* error) {
    if (error != &waymark::capi::exhausted) delete error;
}

const char* wm_version(void) { return WAYMARK_VERSION; }

}  // extern "C"
