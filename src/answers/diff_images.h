/// Which images of two captures are one image.
#pragma once

#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/answers/costs.h"
#include "waymark/answers/only.h"

namespace waymark::answers {

/// What one side has of an image, or of several together.
struct ImageSide {
    std::string name{}, build_id{};
    bool there{};                     ///< a file of the side
    std::uint64_t cost{}, unnamed{};  ///< of all its code; of that without a symbol
    std::optional<bool> symbols{};    ///< its file has the symbols of all functions
    std::uint64_t lost{};             ///< of functions whose names the other side does not have
    [[nodiscard]] double share_unnamed() const {
        return cost == 0 ? 0 : static_cast<double>(unnamed) / static_cast<double>(cost);
    }
};
/// An image of both sides.
struct ImagePair {
    ImageSide before, after;
    [[nodiscard]] bool on_both_sides() const { return before.there && after.there; }
    [[nodiscard]] bool same_build() const { return !before.build_id.empty() && before.build_id == after.build_id; }
    [[nodiscard]] bool other_build() const {
        return !before.build_id.empty() && !after.build_id.empty() && before.build_id != after.build_id;
    }
    /// One side lacks names that the other one has: a function that is there on both sides looks new or gone. Where it
    /// is not known which files have symbols, shares say it: but not alone, since they differ, too, where named code
    /// became cheaper. Then no name is missing.
    [[nodiscard]] bool named_on_one_side() const {
        if (before.cost == 0 || after.cost == 0) return false;
        const auto lacks = [](const ImageSide& one, const ImageSide& other) {
            return one.unnamed != 0 && other.unnamed != other.cost && other.lost != 0;
        };
        if (before.symbols && after.symbols)
            return before.symbols != after.symbols && (*after.symbols ? lacks(before, after) : lacks(after, before));
        constexpr double alike = 0.01;
        return !same_build() && std::abs(before.share_unnamed() - after.share_unnamed()) > alike &&
               (lacks_names_before() ? lacks(before, after) : lacks(after, before));
    }
    [[nodiscard]] bool has_no_names() const { return before.unnamed == before.cost && after.unnamed == after.cost; }
    [[nodiscard]] bool lacks_names_before() const {
        if (before.symbols && after.symbols && before.symbols != after.symbols) return *after.symbols;
        return before.share_unnamed() > after.share_unnamed();
    }
};

[[nodiscard]] inline bool is_unnamed(const Function& f) { return !f.synthetic && f.linkage_name.empty(); }
/// What linkers and start files of the C runtime add to every program and library.
[[nodiscard]] bool is_in_every_program(std::string_view name);
/// Code of which no file is known, as in a dump of memory.
[[nodiscard]] inline bool is_named_by_address(const Function& f) { return is_unnamed(f) && f.name.starts_with("0x"); }

/// The images of both sides, and names for code that has none. Two images are one: of one build, whatever its files are
/// called; or else of one name; or else with most functions in common, and more than either has with any other; or
/// else, if at most one of them has names, the only ones whose names differ in a version alone, or the only ones left.
class DiffImages {
public:
    DiffImages(const Answers& before, const Answers& after);
    /// How much of each image has names. `is_known`: whether the other side has a function of a name.
    template <class IsKnown>
    void gather(const Answers& answers, const std::vector<FunctionCosts>& costs, std::size_t metric, bool before,
                const IsKnown& is_known) {
        for (std::size_t i = 0; i < costs.size(); ++i) {
            const Function& f = answers.functions[i];
            if (f.synthetic || metric >= costs[i].self.size()) continue;
            const std::uint64_t cost = costs[i].self[metric];
            const auto add = [&](ImagePair& pair, bool unnamed) {
                ImageSide& side = before ? pair.before : pair.after;
                side.cost = saturating(side.cost, cost);
                if (unnamed) side.unnamed = saturating(side.unnamed, cost);
                if (!unnamed && !is_known(f)) side.lost = saturating(side.lost, cost);
            };
            add(all_, is_unnamed(f) && (f.image == none || is_named_by_address(f)));
            if (f.image == none) continue;
            ImagePair& pair = pairs_[key(answers, f.image)];
            add(pair, is_unnamed(f));
            if (!pair.on_both_sides()) add(unpaired_, is_unnamed(f));
        }
    }
    [[nodiscard]] std::string key(const Answers& side, Index image) const;
    /// All code of an image that has no names.
    [[nodiscard]] static std::string unnamed(const std::string& key) { return "(no symbol) in " + key; }
    /// An image that both sides have; empty: the images that have none on the other side, and code of no image.
    [[nodiscard]] std::string shared_key(const Answers& side, Index image) const;
    /// Where names are known on one side only, so that a function of one side may be one without a name on the other:
    /// in the image; in those that the other side does not have; or in all code, as files are known of one side only.
    /// Null: of functions of that image a difference is one.
    [[nodiscard]] const ImagePair* unequal(const std::string& key) const;
    /// The image of a row, where both sides have it.
    [[nodiscard]] const ImagePair* pair(const std::string& key) const;
    /// The images that the other side does not have, if both sides have such with code without names, and the image of
    /// a row is one of them: any may be any one of the other side. Null: it is not so.
    [[nodiscard]] const ImagePair* unpairable(const std::string& key) const;
    [[nodiscard]] bool is_all(const ImagePair* pair) const { return pair == &all_; }
    [[nodiscard]] bool is_unpaired(const ImagePair* pair) const { return pair == &unpaired_; }
    [[nodiscard]] const std::map<std::string, ImagePair>& pairs() const { return pairs_; }
    /// What code without a symbol is called: by its place where both sides have one build, so that it is found again;
    /// with all such code of its image, where places mean something else on the other side.
    [[nodiscard]] std::string name(const Answers& side, const Function& f) const;

private:
    /// Pairs what has neither build ID nor name in common.
    void pair_the_rest(const Answers& before, const Answers& after);

    ImagePair all_, unpaired_;  ///< together: of all_, unnamed is code of no file
    std::map<const Answers*, std::vector<std::string>> keys_;
    std::map<std::string, ImagePair> pairs_;
};

/// Why an image that --only asks for cannot be compared: it has another name on the other side. Empty: all can.
[[nodiscard]] std::string missing_images(const Only& only, const Answers& before, const Answers& after,
                                         const DiffImages& images);

}  // namespace waymark::answers
