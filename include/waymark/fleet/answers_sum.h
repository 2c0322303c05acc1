/// Any number of answers added up in bounded memory.
#pragma once

#include <cstdint>
#include <vector>

#include "waymark/answers/answers.h"

namespace waymark::fleet {

/// About how much memory answers take.
[[nodiscard]] std::uint64_t memory_of(const answers::Answers& answers);

/// Adds answers up as they come. However they are put together, the result is the same (answers::merged), so several
/// wait until they are worth a pass over the sum.
class AnswersSum {
public:
    /// `waiting_bytes`: memory that waiting answers may take.
    explicit AnswersSum(std::uint64_t waiting_bytes = std::uint64_t{64} << 20) : most_(waiting_bytes) {}
    void add(answers::Answers next);
    [[nodiscard]] bool empty() const { return waiting_.empty(); }
    /// The sum. Precondition: not empty(). Afterwards nothing is left.
    [[nodiscard]] answers::Answers take();

private:
    void add_up();
    std::uint64_t most_, waiting_bytes_ = 0;
    std::vector<answers::Answers> waiting_;  // the first may be a sum
};

}  // namespace waymark::fleet
