/// Which code ran before the recording began: where each block that was not recorded ended, and which way its branch
/// went, which shows in the block after it.
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
    /// A part of a block ran, and was not recorded. An empty part says where the thread goes on.
    void ran(std::uint32_t thread, const Code& code, CompletedPart part);
    /// The thread goes on elsewhere than where its last branch led, as in the handler of a signal.
    void interrupted(std::uint32_t thread);
    /// What is known so far. A branch whose way is not known yet went both.
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
    std::unordered_map<std::uint64_t, std::uint64_t> ends_;  ///< by the address of a block, the furthest it ran
    std::unordered_map<std::uint64_t, Ways> ways_;           ///< by the address of the branch
    std::unordered_map<std::uint32_t, Branch> open_;         ///< by thread: the branch that ran last
};

}  // namespace waymark::record
