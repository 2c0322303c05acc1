/// Definitions of the opaque types of waymark.h, and conversion of errors and exceptions to values of C.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "waymark.h"
#include "waymark/answers/answers.h"
#include "waymark/core/register_value.h"
#include "waymark/core/result.h"
#include "waymark/doctor/capture_input.h"
#include "waymark/pipeline/session.h"

struct wm_error {
    wm_status status{};
    std::string message{};
    std::optional<std::uint64_t> offset{};
};

struct wm_options {
    waymark::doctor::CaptureInput input;  ///< without `capture`
    std::string kallsyms, midr, core;
    std::vector<waymark::RegisterValue> registers;  ///< by name
    wm_code_callback callback = nullptr;
    void* user = nullptr;
};

struct wm_source {
    const wm_capture* capture{};
    const waymark::pipeline::Source* source{};  ///< owned by the capture's session
    std::string unit{};
};

struct wm_capture {
    wm_capture() = default;
    ~wm_capture();
    wm_capture(const wm_capture&) = delete;
    wm_capture& operator=(const wm_capture&) = delete;

    wm_capture_kind kind{};
    bool live = false;
    std::string name;                     ///< for messages
    int file = -1;                        ///< file of a capture in memory; `input.capture` is its path
    waymark::doctor::CaptureInput input;  ///< the options of opening
    std::string kallsyms;
    std::uint32_t midr = 0;
    waymark::pipeline::Session session;  ///< of program flow
    std::vector<wm_source> sources;      ///< as session.sources
    std::vector<std::string> problems;
    std::optional<waymark::answers::Answers> stored;  ///< set for an answers file

    /// A copy of the text that lives as long as the capture. May be called from any thread.
    [[nodiscard]] const char* keep(std::string_view text) const;
    /// Replaces the path of the capture's bytes by its name in a message, and the spelling of options by that of
    /// wm_options_set.
    [[nodiscard]] waymark::Error named(waymark::Error error) const;

private:
    mutable std::mutex mutex_;
    mutable std::unordered_set<std::string> texts_;
};

namespace waymark::capi {

wm_status fail(wm_error** error, wm_status status, std::string_view message,
               std::optional<std::uint64_t> offset = {}) noexcept;
wm_status fail(wm_error** error, const Error& what) noexcept;
/// For arguments that must not be NULL.
wm_status missing(wm_error** error, std::string_view function, std::string_view argument) noexcept;
/// Adds an option. Errors: `usage`.
[[nodiscard]] Status set_option(wm_options& options, std::string_view name, std::string value);
/// Replaces options in messages of lower layers: they write `--image` as on the command line, and wm_options_set calls
/// it `the option image`.
[[nodiscard]] std::string for_callers(std::string message);

/// The number of threads for `jobs` in waymark.h.
[[nodiscard]] inline unsigned threads_for(unsigned jobs) {
    constexpr unsigned most = 256;
    return std::clamp(jobs == 0 ? std::thread::hardware_concurrency() : jobs, 1U, most);
}

/// Fills a structure of the caller, up to the structure's size in the caller's version of the header (`struct_bytes`).
template <class T>
void fill(T* into, T value) {
    const std::size_t known = into->struct_bytes;
    value.struct_bytes = known;
    std::memcpy(into, &value, std::min(known, sizeof value));
}

/// Calls `f`, which returns a wm_status, and turns every exception into one.
template <class F>
wm_status guarded(wm_error** error, F&& f) noexcept {
    try {
        return std::forward<F>(f)();
    } catch (const std::bad_alloc&) {
        return fail(error, WM_NO_MEMORY, "memory is exhausted");
    } catch (const std::exception& e) {
        return fail(error, WM_INTERNAL, e.what());
    } catch (...) {
        return fail(error, WM_INTERNAL, "an unknown exception");
    }
}

}  // namespace waymark::capi

/// `WM_TRY(value, expression)`: the value of a Result, or leave with its error. `error` is the parameter.
#define WM_TRY_(result, target, expression)                                     \
    auto result = (expression);                                                 \
    if (!result.has_value()) return waymark::capi::fail(error, result.error()); \
    target = std::move(result.value())
#define WM_TRY(target, expression) WM_TRY_(WM_CONCAT(wm_try_, __LINE__), target, expression)
/// WM_RETURN_IF_ERROR without a variable that has the name of a type of waymark.h.
#define WM_LEAVE_IF_ERROR(expression)                                                    \
    do {                                                                                 \
        if (auto left = (expression); !left.has_value()) return std::move(left.error()); \
    } while (false)
