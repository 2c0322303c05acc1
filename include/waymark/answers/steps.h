/// What ran, in its order, from the beginning of each stream on, or from that of a window: for stepping through it.
/// Answers hold sums.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waymark/answers/answers.h"

namespace waymark::answers {

struct Steps {
    /// What the last instruction of a piece of code did.
    enum class Outcome : std::uint8_t {
        nothing,    ///< it is no branch; or nothing says what it did
        not_taken,  ///< of a branch; or the instruction failed its condition
        taken,
        passed  ///< it is no branch, and passed its condition
    };
    /// A piece of code that runs from its beginning to its end, and what its last instruction did.
    struct Edge {
        std::uint64_t address{};
        std::uint32_t bytes{}, instructions{};
        isa::Isa isa{};
        Outcome outcome{};
        friend bool operator==(const Edge&, const Edge&) = default;
    };
    /// A change of the stack of calls, after the first `at` instructions of what is kept.
    struct Frame {
        enum class What : std::uint8_t {
            enter,     ///< a function, at this depth
            leave,     ///< everything from this depth on
            change_to  ///< the stack of another context, `function` is its number; all its frames follow
        };
        std::uint64_t at{}, time{};  ///< `time`: on the axis of the timeline
        What what{};
        std::uint32_t depth{};
        Index function{};
    };
    /// What happened after the first `at` instructions of what is kept, other than that code ran.
    struct Event {
        enum class Kind : std::uint8_t { exception, exception_return, gap, context, mark };
        std::uint64_t at{};
        Kind kind{};
        std::string text{};
    };
    struct Stream {
        std::string source;  ///< its name
        std::vector<Edge> edges{};
        std::vector<std::uint32_t> order{};  ///< of `edges`; the first that ran, up to a bound
        std::vector<Frame> frames{};
        std::vector<Event> events{};
        /// Of the stream in all, or of the window, beyond what is kept too.
        std::uint64_t instructions{};
        std::uint64_t first{};  ///< how many instructions of the stream ran before what is kept
    };
    std::vector<Stream> streams{};
};

}  // namespace waymark::answers
