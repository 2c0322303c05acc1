/// Code that ran before the recording began: the end of each unrecorded block, and the direction of its branch, which
/// the next block shows.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "waymark/capture/ran_before.h"
#include "waymark/core/types.h"
#include "waymark/record/code.h"
#include "waymark/record/recorded_extent.h"

namespace waymark::record {

class EarlierCode {
public:
    /// A part of a block ran, and was not recorded. An empty part shows where the thread continues.
    void ran(std::uint32_t thread, const Code& code, CompletedPart part);
    /// The thread continues at another place than the target of its last branch, as in the handler of a signal.
    void interrupted(std::uint32_t thread);
    /// The code found so far. A branch whose way is not known yet counts as having gone both ways.
    [[nodiscard]] capture::RanBefore found() const;

private:
    struct Branch {
        Address address{}, target{}, next{};
        bool direct{};
    };
    struct Ways {
        bool taken{}, passed{};
    };
    std::uint64_t instructions_ = 0;
    std::unordered_map<std::uint64_t, std::uint64_t>
        ends_;                                        ///< by the address of a block: the furthest end that it reached
    std::unordered_map<std::uint64_t, Ways> ways_;    ///< by the address of the branch
    std::unordered_map<std::uint32_t, Branch> open_;  ///< by thread: its last branch
};

}  // namespace waymark::record
