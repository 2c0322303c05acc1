/// Pairs the functions of two captures.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diff_images.h"
#include "waymark/answers/only.h"
#include "waymark/answers/views.h"
#include "waymark/core/result.h"

namespace waymark::answers {

/// Key of a row: the name of functions, and a number to distinguish several with that name.
using RowKey = std::pair<std::string, unsigned>;

/// Functions are identified by name, since addresses change from build to build.
class DiffNames {
public:
    /// Errors: `usage` for a word without `OLD=NEW` form, a name that no function has, or a name that several have.
    static Result<DiffNames> of(const DiffOptions& options, const Answers& before, const Answers& after);
    [[nodiscard]] std::string of(std::string_view name, bool before) const;
    /// Adds the names of one side, so that --only can be checked against them.
    void add(const Answers& answers, bool before, const DiffImages& images);
    [[nodiscard]] const Only& only() const { return only_; }
    /// Row of each function of both sides. Functions of one name are the same function if each side has one of that
    /// name, or has one in the same image and source file. Other functions of that name, such as static ones, are
    /// different functions.
    void divide(const Answers& before, const Answers& after, const std::vector<FunctionCosts> (&costs)[2],
                const DiffImages& images);
    [[nodiscard]] const RowKey& row(bool before, Index function) const { return rows_[!before][function]; }
    /// Whether the row combines functions that cannot be told apart.
    [[nodiscard]] bool is_several(const RowKey& row) const { return several_.contains(row); }
    /// Whether the source file of some of these functions is not known, although debug information would contain it.
    [[nodiscard]] bool lacks_sources(const RowKey& row) const { return lack_sources_.contains(row); }
    /// Selects what --only names. A function selected by name is selected on both sides, in any image. A function of a
    /// selected source file or image is selected on both sides if both have it in that image. For an image that the
    /// other side lacks, functions of other images are not selected, whatever their names.
    void choose(const Answers& before, const Answers& after, const DiffImages& images);
    [[nodiscard]] bool is_chosen(const Answers& side, const Function& f, const RowKey& row,
                                 const DiffImages& images) const;
    [[nodiscard]] std::string called(const Answers& side, const Function& f, bool before,
                                     const DiffImages& images) const;

private:
    /// Names of functions that match a word of --only.
    static std::set<std::string> functions_called(const Answers& side, std::string_view word);
    Status add_rename(const std::string& rename, const std::string& old, const std::string& now, const Answers& before,
                      const Answers& after);
    [[nodiscard]] bool is_in_wanted_image(const Answers& answers, const Function& f) const;

    explicit DiffNames(const std::vector<std::string>& only) : only_(only) {}
    Only only_;
    std::vector<RowKey> rows_[2];  // rows by function, for both sides
    std::set<RowKey> several_, lack_sources_;
    std::set<RowKey> chosen_;
    std::set<std::pair<std::string, RowKey>> chosen_in_;  ///< image key and row
    std::map<std::string, std::string> renames_;
};

}  // namespace waymark::answers
