/// Errors at the boundary of the library: a file that cannot be read, an invalid configuration. Damaged trace is not an
/// error but a `Gap` (core/gap.h); a violated invariant of Waymark's own code is `WM_CHECK`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "waymark/core/types.h"

namespace waymark {

enum class Errc : std::uint8_t {
    usage,        ///< the call or command line is invalid
    not_found,    ///< a file, section, source or symbol does not exist
    unreadable,   ///< the operating system refused, or a compressed stream is damaged
    bad_format,   ///< the file exists, but its contents are invalid
    unsupported,  ///< well-formed, but of a kind Waymark does not know
};

/// An error as a sentence that states the file, what was found, what was expected and what to do.
struct Error {
    Errc code{};
    std::string message;
    std::optional<Offset> offset{};  ///< offset in the file that the message names, if there is one
};

/// The absent half of a result was accessed: an error in Waymark, which ends the process at once.
[[noreturn, gnu::cold, gnu::noinline]] inline void end_without(const char* what) {
    std::fprintf(stderr, "broken invariant: a result without %s was asked for it\n", what);
    std::abort();
}

/// A value, or the reason why there is none. It has the members of `std::expected`, which C++20 lacks.
template <class T>
class [[nodiscard]] Result {
public:
    // Implicit on purpose: `return value;` and `return Error{…};` read as they should.
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

    [[nodiscard]] bool has_value() const { return state_.index() == 0; }
    explicit operator bool() const { return has_value(); }

    /// Precondition: `has_value()`, which is checked, in release builds too.
    T& value() { return *get<0>(state_, "a value"); }
    const T& value() const { return *get<0>(state_, "a value"); }
    T& operator*() { return value(); }
    const T& operator*() const { return value(); }
    T* operator->() { return &value(); }
    const T* operator->() const { return &value(); }

    /// Precondition: `!has_value()`, which is checked.
    Error& error() { return *get<1>(state_, "an error"); }
    [[nodiscard]] const Error& error() const { return *get<1>(state_, "an error"); }

private:
    template <std::size_t half, class State>
    static auto* get(State& state, const char* what) {
        auto* const found = std::get_if<half>(&state);
        if (found == nullptr) [[unlikely]]
            end_without(what);
        return found;
    }

    std::variant<T, Error> state_;
};

struct Nothing {};
/// The result of functions that only succeed or fail: `return Nothing{};`.
using Status = Result<Nothing>;

}  // namespace waymark

#define WM_CONCAT_(a, b) a##b
#define WM_CONCAT(a, b) WM_CONCAT_(a, b)
#define WM_ASSIGN_OR_RETURN_(result, target, expression)       \
    auto result = (expression);                                \
    if (!result.has_value()) return std::move(result.error()); \
    target = std::move(result.value())

/// `WM_ASSIGN_OR_RETURN(auto elf, open(path));` — the value, or leave with the error.
#define WM_ASSIGN_OR_RETURN(target, expression) \
    WM_ASSIGN_OR_RETURN_(WM_CONCAT(wm_result_, __LINE__), target, expression)

/// Leaves the function with the error, if there is one.
#define WM_RETURN_IF_ERROR(expression)                                                                  \
    do {                                                                                                \
        if (auto wm_status = (expression); !wm_status.has_value()) return std::move(wm_status.error()); \
    } while (false)

/// An invariant of Waymark's own code, checked in release builds too. Never a check of input.
#define WM_CHECK(condition)                                                                        \
    do {                                                                                           \
        if (!(condition)) [[unlikely]] {                                                           \
            std::fprintf(stderr, "%s:%d: broken invariant: %s\n", __FILE__, __LINE__, #condition); \
            std::abort();                                                                          \
        }                                                                                          \
    } while (false)
