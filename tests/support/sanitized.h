/// How thorough a test is. With sanitizers a sweep over random inputs is ten times slower, and finds most mistakes in
/// the first few inputs: so it is shorter with sanitizers, and full in an optimised build of the same test.
#pragma once

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define WAYMARK_SANITIZED
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WAYMARK_SANITIZED
#endif

namespace waymark {

#ifdef WAYMARK_SANITIZED
inline constexpr bool sanitized = true;
#else
inline constexpr bool sanitized = false;
#endif

/// The first number, or the second with sanitizers.
template <class T>
constexpr T sized(T optimised, T with_sanitizers) {
    return sanitized ? with_sanitizers : optimised;
}

}  // namespace waymark
