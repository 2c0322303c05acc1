/// Code that some inputs of a sum list and others do not: an input that did not observe all that ran there makes it
/// `not_observed`, as the rows that it lists itself.
#pragma once

#include <cstdint>
#include <vector>

#include "merge_names.h"

namespace waymark::answers {

/// For each image of a sum, the number of inputs whose code may have run unlisted.
class UnlistedCode {
public:
    explicit UnlistedCode(const MergedNames& names) : names_(names) {}

    /// The next input, whose names are already in the sum.
    void add(const Answers& a, const IndexMap& images);
    /// The number of this input, from 1 on.
    [[nodiscard]] std::uint32_t input() const { return input_; }
    /// Whether unlisted code of a function's image may have run in this input. Functions have indices of the sum.
    [[nodiscard]] bool hides(Index function) const;
    /// The number of inputs for which that holds.
    [[nodiscard]] std::uint64_t hiding(Index function) const { return hiding_in(names_.image_of(function)); }
    /// Marks the images of the result. `images`: their indices in it.
    void finish(Answers& out, const IndexMap& images) const;

private:
    /// Numbers of inputs. An input that does not list an image hides its code if it hides others, or `system` code if
    /// the image is the system's: that is not among the files that a process has mapped.
    struct Counts {
        std::uint64_t hiding{}, others{}, system{};
        std::uint32_t input{};  ///< the last one that lists the image
        bool hides{};           ///< whether that input hides code of the image
    };
    [[nodiscard]] std::uint64_t hiding_in(Index image) const;

    const MergedNames& names_;
    std::vector<Counts> images_;
    std::uint64_t others_ = 0, system_ = 0;
    std::uint32_t input_ = 0;
    bool hides_others_ = false;
};

/// For each row of a table, the number of inputs that list it, of those that hide code of its image.
class RowsListed {
public:
    void note(Index row, std::uint32_t input);
    [[nodiscard]] std::uint64_t inputs(Index row) const { return row < rows_.size() ? rows_[row].inputs : 0; }

private:
    struct Count {
        std::uint32_t inputs{}, input{};
    };
    std::vector<Count> rows_;
};

}  // namespace waymark::answers
