/// Any number of answers added up, one after another.
#pragma once

#include <memory>

#include "waymark/answers/answers.h"

namespace waymark::answers {

/// Adds answers up as they come, in time that depends on what is added and memory that depends on the sum alone. The
/// result is that of `merged`, whatever the order, and however sums were made of sums.
class AnswersSum {
public:
    AnswersSum();
    AnswersSum(AnswersSum&&) noexcept;
    AnswersSum& operator=(AnswersSum&&) noexcept;
    ~AnswersSum();

    void add(Answers next);
    [[nodiscard]] bool empty() const;
    /// The sum. Afterwards it is empty.
    [[nodiscard]] Answers take();

private:
    class State;
    std::unique_ptr<State> state_;
};

}  // namespace waymark::answers
