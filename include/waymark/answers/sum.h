/// Adds any number of answers, one after another.
#pragma once

#include <memory>

#include "waymark/answers/answers.h"

namespace waymark::answers {

/// Sets `Image::hides` and `Answers::hides_others` of one capture from its account, for sums with captures that list
/// more code. `all_images`: code that ran can only be in the images that are listed, or be the system's.
void mark_unlisted_code(Answers& answers, bool all_images);

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
