/// Executed code in order, from the beginning of each stream or window on: for stepping through it. Answers contain
/// sums.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waymark/answers/answers.h"

namespace waymark::answers {

struct Steps {
    /// The outcome of the last instruction in a piece of code.
    enum class Outcome : std::uint8_t {
        nothing,    ///< it is not a branch, or its outcome is not known
        not_taken,  ///< a branch was not taken, or another instruction failed its condition
        taken,
        passed  ///< it is not a branch, and passed its condition
    };
    /// A piece of code that ran from its beginning to its end, with the outcome of its last instruction.
    struct Edge {
        std::uint64_t address{};
        std::uint32_t bytes{}, instructions{};
        isa::Isa isa{};
        Outcome outcome{};
        friend bool operator==(const Edge&, const Edge&) = default;
    };
    /// A change of the call stack, after the first `at` instructions of the kept part.
    struct Frame {
        enum class What : std::uint8_t {
            enter,     ///< a function, at this depth
            leave,     ///< all frames from this depth on return
            change_to  ///< switches to the stack of another context, with number `function`; all its frames follow
        };
        std::uint64_t at{}, time{};  ///< `time`: on the axis of the timeline
        What what{};
        std::uint32_t depth{};
        Index function{};
    };
    /// An event other than execution, after the first `at` instructions of the kept part.
    struct Event {
        enum class Kind : std::uint8_t { exception, exception_return, gap, context, mark };
        std::uint64_t at{};
        Kind kind{};
        std::string text{};
    };
    struct Stream {
        std::string source;  ///< its name
        std::vector<Edge> edges{};
        std::vector<std::uint32_t> order{};  ///< indices of `edges`: the first executions, up to a limit
        std::vector<Frame> frames{};
        std::vector<Event> events{};
        /// In the whole stream or window, including the part that is not kept.
        std::uint64_t instructions{};
        std::uint64_t first{};  ///< number of instructions in the stream before the kept part
    };
    std::vector<Stream> streams{};
};

}  // namespace waymark::answers
