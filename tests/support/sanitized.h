/// How thorough a test is. Sanitizers make a sweep over random inputs ten times slower, and find most mistakes in the
/// first few inputs: the sweep is shorter with them, and full where the same test is built optimised.
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
