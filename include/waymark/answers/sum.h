/// Adds any number of answers, one after another.
#pragma once

#include <memory>

#include "waymark/answers/answers.h"

namespace waymark::answers {

/// Adds answers as they arrive. Time depends on the added answers, memory only on the sum. The result equals that of
/// `merged`, in any order, and also if sums are added to sums.
class AnswersSum {
public:
    AnswersSum();
    AnswersSum(AnswersSum&&) noexcept;
    AnswersSum& operator=(AnswersSum&&) noexcept;
    ~AnswersSum();

    void add(Answers next);
    [[nodiscard]] bool empty() const;
    /// Returns the sum and resets this object.
    [[nodiscard]] Answers take();

private:
    class State;
    std::unique_ptr<State> state_;
};

}  // namespace waymark::answers
