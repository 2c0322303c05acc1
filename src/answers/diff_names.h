/// Which functions of two captures are one function.
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

/// A row: functions of one name, and which of several of that name.
using RowKey = std::pair<std::string, unsigned>;

/// Functions go by their names: addresses change from build to build.
class DiffNames {
public:
    /// Errors: `usage`: no `OLD=NEW`, a name that no function has, or that several have.
    static Result<DiffNames> of(const DiffOptions& options, const Answers& before, const Answers& after);
    [[nodiscard]] std::string of(std::string_view name, bool before) const;
    /// Adds the names there are, so that it is known what --only asks for.
    void add(const Answers& answers, bool before, const DiffImages& images);
    [[nodiscard]] const Only& only() const { return only_; }
    /// Which row each function of both sides belongs to. Functions of one name are one function where each side has one
    /// of that name, or in one image and source file; others of that name are other functions, as static ones are.
    void divide(const Answers& before, const Answers& after, const std::vector<FunctionCosts> (&costs)[2],
                const DiffImages& images);
    [[nodiscard]] const RowKey& row(bool before, Index function) const { return rows_[!before][function]; }
    /// It is of functions that nothing distinguishes.
    [[nodiscard]] bool is_several(const RowKey& row) const { return several_.contains(row); }
    /// Of some of them the source file is not known, though debug information would have it.
    [[nodiscard]] bool lacks_sources(const RowKey& row) const { return lack_sources_.contains(row); }
    /// Chooses what --only asks for. A function that is asked for by name is chosen on both sides, whatever its image;
    /// one of a source file or an image that is asked for, where both sides have it in that image. Of an image that the
    /// other side does not have, nothing of other images is chosen, whatever their functions are called.
    void choose(const Answers& before, const Answers& after, const DiffImages& images);
    [[nodiscard]] bool is_chosen(const Answers& side, const Function& f, const RowKey& row,
                                 const DiffImages& images) const;
    [[nodiscard]] std::string called(const Answers& side, const Function& f, bool before,
                                     const DiffImages& images) const;

private:
    /// Names of functions that a word asks for, as --only has them.
    static std::set<std::string> functions_called(const Answers& side, std::string_view word);
    Status add_rename(const std::string& rename, const std::string& old, const std::string& now, const Answers& before,
                      const Answers& after);
    [[nodiscard]] bool is_in_wanted_image(const Answers& answers, const Function& f) const;

    explicit DiffNames(const std::vector<std::string>& only) : only_(only) {}
    Only only_;
    std::vector<RowKey> rows_[2];  // by function, of what was before and after
    std::set<RowKey> several_, lack_sources_;
    std::set<RowKey> chosen_;
    std::set<std::pair<std::string, RowKey>> chosen_in_;  ///< image of both sides, and row
    std::map<std::string, std::string> renames_;
};

}  // namespace waymark::answers
