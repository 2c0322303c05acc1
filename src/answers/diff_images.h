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

/// One side's data of an image, or of several together.
struct ImageSide {
    std::string name{}, build_id{};
    bool there{};                     ///< the side has a file for it
    std::uint64_t cost{}, unnamed{};  ///< cost of all its code; cost of its code without a symbol
    std::optional<bool> symbols{};    ///< its file has the symbols of all functions
    std::uint64_t lost{};             ///< cost of functions whose names the other side lacks
    [[nodiscard]] double share_unnamed() const {
        return cost == 0 ? 0 : static_cast<double>(unnamed) / static_cast<double>(cost);
    }
};
/// An image that both sides have.
struct ImagePair {
    ImageSide before, after;
    [[nodiscard]] bool on_both_sides() const { return before.there && after.there; }
    [[nodiscard]] bool same_build() const { return !before.build_id.empty() && before.build_id == after.build_id; }
    [[nodiscard]] bool other_build() const {
        return !before.build_id.empty() && !after.build_id.empty() && before.build_id != after.build_id;
    }
    /// One side lacks names that the other one has, so a function that exists on both sides would look new or gone. If
    /// it is not known which files have symbols, the shares of unnamed code decide. Shares alone are not enough, since
    /// they also change when named code becomes cheaper; then no name counts as missing.
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
/// Functions that linkers and start files of the C runtime add to every program and library.
[[nodiscard]] bool is_in_every_program(std::string_view name);
/// Code that belongs to no known file, as in a dump of memory.
[[nodiscard]] inline bool is_named_by_address(const Function& f) { return is_unnamed(f) && f.name.starts_with("0x"); }

/// Pairs the images of both sides, and names code without symbols. Two images are the same image if they have one build
/// ID, whatever the names of their files. Otherwise they are paired by name, then by the majority of functions in
/// common, if no other image shares more. If at most one of two images has names, they are paired if they are the only
/// ones whose names differ just in a version, or the only ones left.
class DiffImages {
public:
    DiffImages(const Answers& before, const Answers& after);
    /// Measures how much of each image has names. `is_known`: whether the other side has a function of that name.
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
    /// Name of the row for all unnamed code of an image.
    [[nodiscard]] static std::string unnamed(const std::string& key) { return "(no symbol) in " + key; }
    /// The image if both sides have it. Empty stands for all images that the other side lacks, and for code of no
    /// image.
    [[nodiscard]] std::string shared_key(const Answers& side, Index image) const;
    /// The image pair in which names are known on one side only, so that a function of one side may lie in unnamed code
    /// of the other. It is the function's image, or the images that the other side lacks, or all code if only one side
    /// has files. Null if functions of this image can be compared.
    [[nodiscard]] const ImagePair* unequal(const std::string& key) const;
    /// The image of a row, where both sides have it.
    [[nodiscard]] const ImagePair* pair(const std::string& key) const;
    /// The unpaired images, if both sides have unpaired images with unnamed code, and the row's image is one of them:
    /// any of them may correspond to any of the other side. Null otherwise.
    [[nodiscard]] const ImagePair* unpairable(const std::string& key) const;
    [[nodiscard]] bool is_all(const ImagePair* pair) const { return pair == &all_; }
    [[nodiscard]] bool is_unpaired(const ImagePair* pair) const { return pair == &unpaired_; }
    [[nodiscard]] const std::map<std::string, ImagePair>& pairs() const { return pairs_; }
    /// The name for code without a symbol. If both sides have one build, it is its place, so that it is found again.
    /// Otherwise all unnamed code of the image has one name, since places differ.
    [[nodiscard]] std::string name(const Answers& side, const Function& f) const;

private:
    /// Pairs images that share neither build ID nor name.
    void pair_the_rest(const Answers& before, const Answers& after);

    ImagePair all_, unpaired_;  ///< sums; the unnamed part of all_ is code of no file
    std::map<const Answers*, std::vector<std::string>> keys_;
    std::map<std::string, ImagePair> pairs_;
};

/// The reason why an image that --only selects cannot be compared: it has another name on the other side. Empty if all
/// can be compared.
[[nodiscard]] std::string missing_images(const Only& only, const Answers& before, const Answers& after,
                                         const DiffImages& images);

}  // namespace waymark::answers
