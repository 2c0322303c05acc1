/// `waymark diff`: what changed between two captures, function by function.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "columns.h"
#include "waymark/answers/costs.h"
#include "waymark/answers/interval.h"
#include "waymark/answers/only.h"
#include "waymark/core/numbers.h"

namespace waymark::answers {

namespace {

struct Side {
    std::uint64_t cost{}, calls{}, samples{};  ///< samples: of estimates from samples
    bool there{};
};
struct Change {
    Side before, after;
    std::string image{};   ///< as Images calls it
    std::string source{};  ///< path of the file it begins in
    std::string shown{};   ///< its name, with what distinguishes it from others of that name
    bool several{};        ///< functions of one name, which nothing distinguishes
    bool unnamed{};        ///< code without a symbol
    [[nodiscard]] std::int64_t change() const {
        return static_cast<std::int64_t>(after.cost) - static_cast<std::int64_t>(before.cost);
    }
};

/// What one side has of an image, or of several together.
struct ImageSide {
    std::string name{}, build_id{};
    bool there{};                     ///< a file of the side
    std::uint64_t cost{}, unnamed{};  ///< of all its code; of that without a symbol
    std::optional<bool> symbols{};    ///< its file has those of all functions
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

[[nodiscard]] bool is_unnamed(const Function& f) { return !f.synthetic && f.linkage_name.empty(); }

/// What linkers and start files of the C runtime add to every program and library.
[[nodiscard]] bool is_in_every_program(std::string_view name) {
    static const std::set<std::string_view> start_files = {"_start",          "_init",
                                                           "_fini",           "__do_global_dtors_aux",
                                                           "call_weak_fn",    "deregister_tm_clones",
                                                           "frame_dummy",     "__libc_csu_init",
                                                           "__libc_csu_fini", "register_tm_clones"};
    return name.ends_with("@plt") || start_files.contains(name);
}

/// The name of a file without its version: `app-1.0` and `app-1.1` are `app`, `libz-2.so` and `libz.so.1.2` `libz.so`.
std::string without_version(std::string_view file) {
    std::string out;
    for (std::size_t i = 0; i < file.size();) {
        std::size_t end = i;
        bool digits = false;
        for (; end < file.size() && std::string_view("0123456789.-_").find(file[end]) != file.npos; ++end)
            digits |= file[end] >= '0' && file[end] <= '9';
        if (end == i) end = i + 1;
        if (!digits)
            out += file.substr(i, end - i);
        else if (end != file.size() && file[end - 1] == '.')
            out += '.';
        i = end;
    }
    return out;
}

/// What is in an image of one side.
struct Contents {
    /// Named functions without those that are in every program.
    std::set<std::string_view> functions{};
    std::size_t unnamed{};  ///< functions
    [[nodiscard]] bool has_names() const { return functions.size() > unnamed; }
};
std::vector<Contents> contents(const Answers& side) {
    std::vector<Contents> out(side.images.size());
    for (const Function& f : side.functions) {
        if (f.synthetic || f.image >= out.size()) continue;
        if (is_unnamed(f))
            ++out[f.image].unnamed;
        else if (!is_in_every_program(f.name))
            out[f.image].functions.insert(without_suffix(f.name));
    }
    return out;
}

/// How alike two images are: the part of all their functions that both have. 0: not the larger part of those of the
/// smaller one, so they are not one image.
double likeness(const std::set<std::string_view>& a, const std::set<std::string_view>& b) {
    const auto common = static_cast<std::size_t>(
        std::count_if(a.begin(), a.end(), [&](std::string_view name) { return b.contains(name); }));
    if (common == 0 || 2 * common < std::min(a.size(), b.size())) return 0;
    return static_cast<double>(common) / static_cast<double>(a.size() + b.size() - common);
}
bool are_alike(const std::set<std::string_view>& a, const std::set<std::string_view>& b) { return likeness(a, b) != 0; }

/// Code of which no file is known, as in a dump of memory.
[[nodiscard]] bool is_named_by_address(const Function& f) { return is_unnamed(f) && f.name.starts_with("0x"); }

/// The images of both sides, and names for code that has none. Two images are one: of one build, whatever its files are
/// called; or else of one name; or else with most functions in common, and more than either has with any other; or
/// else, if at most one of them has names, the only ones whose names differ in a version alone, or the only ones left.
class Images {
public:
    Images(const Answers& before, const Answers& after) {
        std::map<std::string, std::string> builds;  // to names before
        for (const Image& i : before.images)
            if (!i.build_id.empty()) builds.emplace(i.build_id, i.name);
        for (const Answers* side : {&before, &after}) {
            if (!keys_.try_emplace(side).second) continue;  // answers compared with themselves
            for (const Image& i : side->images) {
                const auto found = builds.find(i.build_id);
                keys_[side].push_back(found == builds.end() || i.build_id.empty() ? i.name : found->second);
            }
        }
        pair_the_rest(before, after);
        const auto note = [&](const Answers& side, ImageSide ImagePair::*of) {
            for (std::size_t i = 0; i < side.images.size(); ++i) {
                ImageSide& one = pairs_[keys_[&side][i]].*of;
                one.name = side.images[i].name;
                one.build_id = side.images[i].build_id;
                one.symbols = side.images[i].has_symbols;
                one.there = true;
            }
        };
        note(before, &ImagePair::before);
        note(after, &ImagePair::after);
    }
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
                side.cost += cost;
                if (unnamed) side.unnamed += cost;
                if (!unnamed && !is_known(f)) side.lost += cost;
            };
            add(all_, is_unnamed(f) && (f.image == none || is_named_by_address(f)));
            if (f.image == none) continue;
            ImagePair& pair = pairs_[key(answers, f.image)];
            add(pair, is_unnamed(f));
            if (!pair.on_both_sides()) add(unpaired_, is_unnamed(f));
        }
    }
    [[nodiscard]] std::string key(const Answers& side, Index image) const {
        const std::vector<std::string>& keys = keys_.at(&side);
        return image < keys.size() ? keys[image] : std::string();
    }
    /// All code of an image that has no names.
    [[nodiscard]] static std::string unnamed(const std::string& key) { return "(no symbol) in " + key; }
    /// An image that both sides have; empty: the images that have none on the other side, and code of no image.
    [[nodiscard]] std::string shared_key(const Answers& side, Index image) const {
        std::string out = key(side, image);
        const auto found = pairs_.find(out);
        return found != pairs_.end() && found->second.on_both_sides() ? out : std::string();
    }
    /// Where names are known on one side only, so that a function of one side may be one without a name on the other:
    /// in the image; in those that the other side does not have; or in all code, as files are known of one side only.
    /// Null: of functions of that image a difference is one.
    [[nodiscard]] const ImagePair* unequal(const std::string& key) const {
        const auto found = pairs_.find(key);
        const bool paired = found != pairs_.end() && found->second.on_both_sides();
        if (paired && found->second.named_on_one_side()) return &found->second;
        if (all_.named_on_one_side() && (!paired || found->second.has_no_names())) return &all_;
        if (paired) return nullptr;
        return found != pairs_.end() && unpaired_.named_on_one_side() ? &unpaired_ : nullptr;
    }
    /// The image of a row, where both sides have it.
    [[nodiscard]] const ImagePair* pair(const std::string& key) const {
        const auto found = pairs_.find(key);
        return found != pairs_.end() && found->second.on_both_sides() ? &found->second : nullptr;
    }
    /// The images that the other side does not have, if both sides have such with code without names, and the image of
    /// a row is one of them: any may be any one of the other side. Null: it is not so.
    [[nodiscard]] const ImagePair* unpairable(const std::string& key) const {
        const auto found = pairs_.find(key);
        if (found == pairs_.end() || found->second.on_both_sides()) return nullptr;
        return unpaired_.before.unnamed != 0 && unpaired_.after.unnamed != 0 ? &unpaired_ : nullptr;
    }
    [[nodiscard]] bool is_all(const ImagePair* pair) const { return pair == &all_; }
    [[nodiscard]] bool is_unpaired(const ImagePair* pair) const { return pair == &unpaired_; }
    [[nodiscard]] const std::map<std::string, ImagePair>& pairs() const { return pairs_; }
    /// What code without a symbol is called: by its place where both sides have one build, so that it is found again;
    /// with all such code of its image, where places mean something else on the other side.
    [[nodiscard]] std::string name(const Answers& side, const Function& f) const {
        const std::string own(image_name(side, f.image)), shared = key(side, f.image);
        const auto found = pairs_.find(shared);
        const std::string all = unnamed(shared);
        if (found != pairs_.end() && !found->second.same_build() &&
            (found->second.other_build() || found->second.named_on_one_side()))
            return all;
        if (own == shared || own.empty()) return f.name;
        if (!is_named_by_image(side, f)) return f.name;
        return f.name.starts_with(own + "+") ? shared + f.name.substr(own.size()) : all;
    }

private:
    /// Of some images of the other side, the one that is more like this one than any other; among equals, the only one
    /// whose name differs in its version alone.
    static std::optional<std::size_t> most_alike(const Contents& one, const Image& image,
                                                 const std::vector<std::size_t>& others,
                                                 const std::vector<Contents>& of, const Answers& side) {
        std::optional<std::size_t> out;
        std::pair<double, bool> best;
        bool several = false;
        for (const std::size_t k : others) {
            const double alike = likeness(one.functions, of[k].functions);
            if (alike == 0) continue;
            const std::pair mark(alike, without_version(side.images[k].name) == without_version(image.name));
            several = out && mark == best;
            if (out && mark <= best) continue;
            out = k;
            best = mark;
        }
        return several ? std::nullopt : out;
    }
    /// Pairs what has neither build ID nor name in common.
    void pair_the_rest(const Answers& before, const Answers& after) {
        const std::vector<std::string>& old_keys = keys_.at(&before);
        std::vector<std::string>& new_keys = keys_.at(&after);
        const std::vector<Contents> old = contents(before), now = contents(after);
        const auto left = [](const std::vector<std::string>& keys, const std::vector<std::string>& others,
                             const std::vector<Contents>& of) {
            std::vector<std::size_t> out;
            for (std::size_t i = 0; i < keys.size(); ++i)
                if (of[i].functions.size() + of[i].unnamed != 0 &&
                    std::find(others.begin(), others.end(), keys[i]) == others.end())
                    out.push_back(i);
            return out;
        };
        // The most alike first: of what is left then, others may be.
        for (bool again = true; again;) {
            again = false;
            const auto old_left = left(old_keys, new_keys, old), new_left = left(new_keys, old_keys, now);
            for (const std::size_t k : new_left) {
                const auto i = most_alike(now[k], after.images[k], old_left, old, before);
                if (!i || most_alike(old[*i], before.images[*i], new_left, now, after) != k) continue;
                new_keys[k] = old_keys[*i];
                again = true;
            }
        }
        std::map<std::string, std::vector<std::size_t>> versions[2];
        for (const std::size_t i : left(old_keys, new_keys, old))
            versions[0][without_version(before.images[i].name)].push_back(i);
        for (const std::size_t k : left(new_keys, old_keys, now))
            versions[1][without_version(after.images[k].name)].push_back(k);
        for (const auto& [name, those] : versions[0]) {
            const auto found = versions[1].find(name);
            if (name.empty() || those.size() != 1 || found == versions[1].end() || found->second.size() != 1) continue;
            if (old[those[0]].has_names() && now[found->second[0]].has_names()) continue;
            new_keys[found->second[0]] = old_keys[those[0]];
        }
        const auto old_last = left(old_keys, new_keys, old), new_last = left(new_keys, old_keys, now);
        if (old_last.size() == 1 && new_last.size() == 1 &&
            !(old[old_last[0]].has_names() && now[new_last[0]].has_names()))
            new_keys[new_last[0]] = old_keys[old_last[0]];
    }

    ImagePair all_, unpaired_;  ///< together: of all_, unnamed is code of no file
    std::map<const Answers*, std::vector<std::string>> keys_;
    std::map<std::string, ImagePair> pairs_;
};

/// A row: functions of one name, and which of several of that name.
using RowKey = std::pair<std::string, unsigned>;

/// Functions go by their names: addresses change from build to build.
class Names {
public:
    /// Errors: `usage`: no `OLD=NEW`, a name that no function has, or that several have.
    static Result<Names> of(const DiffOptions& options, const Answers& before, const Answers& after) {
        Names out(options.only);
        for (const std::string& rename : options.renames) {
            const std::size_t equals = rename.find('=');
            if (equals == 0 || equals == rename.npos || equals + 1 == rename.size())
                return Error{Errc::usage, fmt::format("--rename {}: give OLD=NEW, two names of functions", rename)};
            if (rename.find('=', equals + 1) != rename.npos)
                return Error{Errc::usage, fmt::format("--rename {}: names that contain = are ambiguous here; "
                                                      "give OLD=NEW with one",
                                                      rename)};
            WM_RETURN_IF_ERROR(
                out.add_rename(rename, rename.substr(0, equals), rename.substr(equals + 1), before, after));
        }
        return out;
    }
    [[nodiscard]] std::string of(std::string_view name, bool before) const {
        const std::string_view base = without_suffix(name);
        if (before)
            if (const auto found = renames_.find(std::string(base)); found != renames_.end()) return found->second;
        return std::string(base);
    }
    /// Adds the names there are, so that it is known what --only asks for.
    void add(const Answers& answers, bool before, const Images& images) {
        for (const Function& f : answers.functions) {
            only_.add(answers, f);
            if (before && !is_unnamed(f)) only_.add(Only::Kind::function, of(f.name, before));
            // As its row is called.
            if (is_unnamed(f) && f.image != none) only_.add(Only::Kind::named_by_image, images.name(answers, f));
            only_.add(Only::Kind::source, path_text(answers, f.source));
        }
        for (const Image& i : answers.images) only_.add(i);
    }
    [[nodiscard]] const Only& only() const { return only_; }
    /// Which row each function of both sides belongs to. Functions of one name are one function where each side has one
    /// of that name, or in one image and source file; others of that name are other functions, as static ones are.
    void divide(const Answers& before, const Answers& after, const std::vector<FunctionCosts> (&costs)[2],
                const Images& images) {
        const Answers* const sides[2] = {&before, &after};
        std::map<std::string, Spots> all;
        std::vector<Spot> spots[2];
        for (const bool now : {false, true}) {
            const Answers& side = *sides[now];
            std::map<std::tuple<std::string, std::string, std::string>, unsigned> met;
            for (int round = 0; round < 2; ++round)
                for (std::size_t i = 0; i < side.functions.size(); ++i) {
                    const Function& f = side.functions[i];
                    if (round == 0) rows_[now].push_back({called(side, f, !now, images), 0});
                    const bool costless = !ran(costs[now][i]);
                    Spot spot{images.key(side, f.image), {}, {}};
                    if (is_unnamed(f) || f.synthetic) {
                        if (round == 1) spots[now].emplace_back();
                        continue;
                    }
                    const std::string_view path = path_text(side, f.source);
                    spot.source = path.substr(path.rfind('/') + 1);
                    unsigned& many = met[{f.name + '\n' + f.linkage_name, spot.image, spot.source}];
                    if (round == 0) {
                        many += !costless && f.image != none;
                        continue;
                    }
                    // Of one build a place is one whatever its address: it is moved by whole pages.
                    const ImagePair* const pair = images.pair(spot.image);
                    if (many > 1 && pair != nullptr && pair->same_build())
                        spot.place = fmt::format("{:#x}", f.address % 4096);
                    spots[now].push_back(spot);
                    if (costless) continue;
                    unsigned& here = all[rows_[now][i].first].of[now][spot];
                    here = std::max(here, many > 1 && spot.place.empty() ? many : 1);
                }
        }
        for (auto& [name, of] : all) of.match();
        for (const bool now : {false, true})
            for (std::size_t i = 0; i < rows_[now].size(); ++i) {
                const auto found = all.find(rows_[now][i].first);
                if (found == all.end()) continue;
                const auto group = found->second.group[now].find(spots[now][i]);
                if (group != found->second.group[now].end()) rows_[now][i].second = group->second;
            }
        for (const auto& [name, of] : all)
            for (const unsigned group : of.several) several_.insert({name, group});
        for (const bool now : {false, true})
            for (std::size_t i = 0; i < rows_[now].size(); ++i) {
                const std::string& name = sides[now]->functions[i].name;
                if (spots[now][i].source.empty() && ran(costs[now][i]) && !is_in_every_program(name) &&
                    several_.contains(rows_[now][i]))
                    lack_sources_.insert(rows_[now][i]);
            }
    }
    [[nodiscard]] const RowKey& row(bool before, Index function) const { return rows_[!before][function]; }
    /// It is of functions that nothing distinguishes.
    [[nodiscard]] bool is_several(const RowKey& row) const { return several_.contains(row); }
    /// Of some of them the source file is not known, though debug information would have it.
    [[nodiscard]] bool lacks_sources(const RowKey& row) const { return lack_sources_.contains(row); }
    /// Chooses what --only asks for. A function that is asked for by name is chosen on both sides, whatever its image;
    /// one of a source file or an image that is asked for, where both sides have it in that image. Of an image that the
    /// other side does not have, nothing of other images is chosen, whatever their functions are called.
    void choose(const Answers& before, const Answers& after, const Images& images) {
        for (const Answers* side : {&before, &after})
            for (Index i = 0; i < side->functions.size(); ++i) {
                const Function& f = side->functions[i];
                const RowKey& key = row(side == &before, i);
                if (only_.asks_for(*side, f) || only_.asks_for(Only::Kind::function, key.first) ||
                    (is_unnamed(f) && only_.asks_for(Only::Kind::named_by_image, key.first)))
                    chosen_.insert(key);
                const std::string image = images.shared_key(*side, f.image);
                if (only_.asks_for(Only::Kind::source, path_text(*side, f.source)) ||
                    (!image.empty() && is_in_wanted_image(*side, f)))
                    chosen_in_.emplace(image, key);
            }
    }
    [[nodiscard]] bool is_chosen(const Answers& side, const Function& f, const RowKey& row,
                                 const Images& images) const {
        return only_.empty() || chosen_.contains(row) || is_in_wanted_image(side, f) ||
               chosen_in_.contains({images.shared_key(side, f.image), row});
    }
    [[nodiscard]] std::string called(const Answers& side, const Function& f, bool before, const Images& images) const {
        return is_unnamed(f) ? images.name(side, f) : of(f.name, before);
    }

private:
    /// Where a function is.
    struct Spot {
        std::string image, source, place;
        auto operator<=>(const Spot&) const = default;
    };
    /// The functions of one name, on both sides.
    struct Spots {
        std::map<Spot, unsigned> of[2];  ///< how many there are of each
        std::map<Spot, unsigned> group[2];
        std::set<unsigned> several;  ///< groups

        void match() {
            unsigned next = 0;
            const auto put = [&](bool now, const Spot& spot, unsigned number) {
                group[now][spot] = number;
                if (of[now][spot] > 1) several.insert(number);
            };
            // First what image and source file distinguish, then what one of them does, then the rest.
            const auto pair_by = [&](auto&& key) {
                std::map<std::string, std::vector<Spot>> left[2];
                for (const bool now : {false, true})
                    for (const auto& [spot, many] : of[now])
                        if (!group[now].contains(spot)) left[now][key(spot)].push_back(spot);
                for (const auto& [k, old] : left[0]) {
                    const auto found = left[1].find(k);
                    if (old.size() != 1 || found == left[1].end() || found->second.size() != 1) continue;
                    put(false, old.front(), next);
                    put(true, found->second.front(), next++);
                }
            };
            pair_by([](const Spot& s) { return s.image + '\n' + s.source + '\n' + s.place; });
            pair_by([](const Spot& s) { return s.image + '\n' + s.source; });
            pair_by([](const Spot& s) { return s.image; });
            pair_by([](const Spot& s) { return s.source.empty() ? s.image + '\n' : '\n' + s.source; });
            pair_by([](const Spot&) { return std::string(); });
            const bool ambiguous = group[0].size() != of[0].size() && group[1].size() != of[1].size();
            for (const bool now : {false, true})
                for (const auto& [spot, many] : of[now])
                    if (!group[now].contains(spot)) put(now, spot, ambiguous ? next : next++);
            if (ambiguous) several.insert(next);
        }
    };

    /// Names of functions that a word asks for, as --only has them.
    static std::set<std::string> functions_called(const Answers& side, std::string_view word) {
        std::set<std::string> out;
        for (const Function& f : side.functions)
            if (!is_unnamed(f) && (names_function(word, f.name) || word == f.linkage_name))
                out.emplace(without_suffix(f.name));
        return out;
    }
    Status add_rename(const std::string& rename, const std::string& old, const std::string& now, const Answers& before,
                      const Answers& after) {
        const std::set<std::string> from = functions_called(before, old), to = functions_called(after, now);
        for (const auto& [side, word, found] : {std::tuple(&before, &old, &from), std::tuple(&after, &now, &to)}) {
            if (!found->empty()) continue;
            Only only({*word});
            for (const Function& f : side->functions)
                if (!is_unnamed(f)) only.add(Only::Kind::function, without_suffix(f.name));
            return Error{Errc::usage, fmt::format("--rename {}: {}: {}", rename, side->capture,
                                                  only.unknown("function that ran", false))};
        }
        for (const std::string& one : from) {
            // Overloads keep their parameters.
            const std::string same = now + (one.starts_with(old) ? one.substr(old.size()) : std::string());
            if (to.contains(same))
                renames_[one] = same;
            else if (from.size() == 1 && to.size() == 1)
                renames_[one] = *to.begin();
            else
                return Error{
                    Errc::usage,
                    fmt::format("--rename {}: {} has {}, and {} has {}: give both with their parameters", rename,
                                before.capture, fmt::join(from, ", "), after.capture, fmt::join(to, ", "))};
        }
        return Nothing{};
    }
    [[nodiscard]] bool is_in_wanted_image(const Answers& answers, const Function& f) const {
        return f.image < answers.images.size() && only_.asks_for(answers.images[f.image]);
    }

    explicit Names(const std::vector<std::string>& only) : only_(only) {}
    Only only_;
    std::vector<RowKey> rows_[2];  // by function, of what was before and after
    std::set<RowKey> several_, lack_sources_;
    std::set<RowKey> chosen_;
    std::set<std::pair<std::string, RowKey>> chosen_in_;  ///< image of both sides, and row
    std::map<std::string, std::string> renames_;
};

/// What was spent.
struct Sums {
    std::uint64_t all{};     ///< by everything, of which shares are
    std::uint64_t chosen{};  ///< by what --only asks for
};

/// Costs of all captures of a side, or of one of them on average.
void gather(const Answers& answers, std::size_t metric, bool inclusive, std::size_t captures, const Names& names,
            const Images& images, bool before, std::map<RowKey, Change>& rows, Sums& sums) {
    // Functions of one name are one, so that what is inclusive counts them once.
    Answers named;
    named.metrics = answers.metrics;
    named.calls = answers.calls;
    if (answers.calls.empty()) named.instructions = answers.instructions;
    std::map<std::pair<RowKey, bool>, Index> known;
    std::vector<Index> number;
    std::vector<const RowKey*> keys;
    std::vector<bool> chosen;
    for (Index i = 0; i < answers.functions.size(); ++i) {
        const Function& f = answers.functions[i];
        const RowKey& row = names.row(before, i);
        const bool wanted = names.is_chosen(answers, f, row, images);
        const auto [at, fresh] = known.try_emplace({row, wanted}, static_cast<Index>(known.size()));
        if (fresh) {
            named.functions.push_back(f);
            keys.push_back(&row);
            chosen.push_back(wanted);
        }
        number.push_back(at->second);
    }
    const auto renumber = [&](Index& function) {
        if (function < number.size()) function = number[function];
    };
    for (CallNode& node : named.calls) renumber(node.function);
    for (Instruction& instruction : named.instructions) renumber(instruction.function);

    const auto costs = function_costs(named);
    const bool sampled = answers.metrics.front().unit == "samples";
    Sums sum;
    for (std::size_t i = 0; i < costs.size(); ++i) {
        const std::string image = images.key(answers, named.functions[i].image);
        const std::uint64_t own = metric < costs[i].self.size() ? costs[i].self[metric] : 0;
        sum.all += own;
        if (!chosen[i]) continue;
        sum.chosen += own;
        const auto& of = inclusive ? costs[i].inclusive : costs[i].self;
        const std::uint64_t cost = metric < of.size() ? of[metric] : 0;
        if (cost == 0 && costs[i].calls == 0) continue;
        Change& row = rows[*keys[i]];
        if (row.image.empty()) row.image = image;
        if (row.source.empty()) row.source = path_text(answers, named.functions[i].source);
        row.several = names.is_several(*keys[i]);
        row.unnamed |= is_unnamed(named.functions[i]);
        Side& s = before ? row.before : row.after;
        s.cost += cost;
        s.calls += costs[i].calls;
        if (sampled && !costs[i].self.empty()) s.samples += costs[i].self.front();
        s.there = true;
    }
    const auto each = [&](std::uint64_t n) { return (n + captures / 2) / captures; };
    for (auto& [name, row] : rows) {
        Side& s = before ? row.before : row.after;
        s.cost = each(s.cost);
        s.calls = each(s.calls);
    }
    sums = {each(sum.all), each(sum.chosen)};
}

double share(std::uint64_t part, std::uint64_t all) {
    return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

/// `1.50`, `12,345.00`; what is not 0 is never written as 0.00: `<0.01`. Of a value from 0 on; one decimal or two.
std::string percent_text(double value, unsigned decimals = 2) {
    const unsigned scale = decimals == 1 ? 10 : 100;
    if (value != 0 && value * scale < 0.5) return decimals == 1 ? "<0.1" : "<0.01";
    if (value >= 1e15) return fmt::format("{:.3e}", value);
    const auto parts = static_cast<std::uint64_t>(std::floor(value * scale + 0.5));
    return fmt::format("{}.{:0{}}", grouped(parts / scale), parts % scale, decimals);
}
/// The same with its sign: `+1.50`, `-<0.01`.
std::string signed_percent_text(double value, unsigned decimals = 2) {
    return (value < 0 ? "-" : value > 0 ? "+" : "") + percent_text(std::abs(value), decimals);
}

/// `+1,234`.
std::string signed_text(std::int64_t change) {
    return fmt::format("{}{}",
                       change < 0   ? "-"
                       : change > 0 ? "+"
                                    : "",
                       grouped(static_cast<std::uint64_t>(std::abs(change))));
}

/// The named functions of the images that a word names on one side.
std::set<std::string_view> functions_of(std::string_view word, const Answers& side) {
    const std::vector<Contents> images = contents(side);
    std::set<std::string_view> out;
    for (std::size_t i = 0; i < images.size(); ++i)
        if (names_file(word, side.images[i].name) || names_file(word, side.images[i].path))
            out.insert(images[i].functions.begin(), images[i].functions.end());
    return out;
}

/// The images of a side that a word names, as Images calls them.
std::set<std::string> keys_of(std::string_view word, const Answers& side, const Images& images) {
    std::set<std::string> out;
    for (Index i = 0; i < side.images.size(); ++i)
        if (names_file(word, side.images[i].name) || names_file(word, side.images[i].path))
            out.insert(images.key(side, i));
    return out;
}

/// Why images that --only asks for under two names, one on each side, cannot be paired. Empty: each of one side has
/// most functions in common with one of the other side, and with that alone; or both have no names, and are the only
/// ones that can be one image.
std::string not_paired(const std::vector<std::string> (&words)[2], const Answers& before, const Answers& after,
                       const Images& images) {
    std::set<std::size_t> taken;
    for (const std::string& old : words[0]) {
        const std::set<std::string_view> functions = functions_of(old, before);
        const std::set<std::string> keys = keys_of(old, before, images);
        std::vector<std::size_t> alike;
        for (std::size_t k = 0; k < words[1].size(); ++k) {
            const std::set<std::string> others = keys_of(words[1][k], after, images);
            const bool is_pair = std::any_of(keys.begin(), keys.end(), [&](const std::string& key) {
                const ImagePair* const pair = images.pair(key);
                return pair != nullptr && others.contains(key) && !pair->named_on_one_side();
            });
            if (is_pair || are_alike(functions, functions_of(words[1][k], after))) alike.push_back(k);
        }
        if (alike.size() == 1 && taken.insert(alike.front()).second) continue;
        return fmt::format(
            "{} has '{}' and {} has '{}'. They have neither build ID nor name in common, and {}, so they cannot be "
            "compared as one image. Give the files with their names (--symbols), or compare functions (--only "
            "FUNCTION)",
            before.capture, old, after.capture, fmt::join(words[1], "', '"),
            alike.empty() ? "fewer than half of their functions" : "several have most of its functions");
    }
    return {};
}

/// Why an image that --only asks for cannot be compared: it has another name on the other side. Empty: all can.
std::string missing_images(const Only& only, const Answers& before, const Answers& after, const Images& images) {
    std::vector<std::string> words[2];  // that name an image of one side only
    for (const std::string& word : only.words(Only::Kind::image)) {
        std::set<std::string> keys[2] = {keys_of(word, before, images), keys_of(word, after, images)};
        // One build is one image, whatever it is called.
        std::set<std::string> same;
        for (const std::set<std::string>& of : keys)
            for (const std::string& key : of)
                if (const auto pair = images.pairs().find(key);
                    pair != images.pairs().end() && pair->second.same_build())
                    same.insert(key);
        for (std::set<std::string>& of : keys) of.insert(same.begin(), same.end());
        if (keys[0].empty() != keys[1].empty()) words[keys[0].empty()].push_back(word);
    }
    // A name for each side: what was renamed.
    if (words[0].size() == words[1].size()) return not_paired(words, before, after, images);
    const bool after_lacks = words[0].size() > words[1].size();
    const Answers& lacks = after_lacks ? after : before;
    std::string others;
    for (const Image& i : lacks.images) others += (others.empty() ? "" : ", ") + i.name;
    return fmt::format(
        "{} has no image called '{}', so nothing of it can be compared. It has: {}. Where it is called "
        "otherwise, give --only once for each name",
        lacks.capture, words[after_lacks ? 0 : 1].front(), others);
}

class Diff {
public:
    Diff(const Answers& before, const Answers& after, const DiffOptions& options, const Names& names,
         const Images& images, std::size_t metric_before, std::size_t metric_after)
        : before_(before),
          after_(after),
          options_(options),
          names_(names),
          images_(images),
          metric_(before.metrics[metric_before]) {
        const bool inclusive = options.by == "inclusive";
        gather(before, metric_before, inclusive, options.mean ? options.captures_before : 1, names, images, true, rows_,
               sum_before_);
        gather(after, metric_after, inclusive, options.mean ? options.captures_after : 1, names, images, false, rows_,
               sum_after_);
        call_rows();
        for (const auto& row : rows_) order_.push_back(&row);
        std::stable_sort(order_.begin(), order_.end(), [&](const auto* a, const auto* b) {
            return options_.sort == "name" ? false : weight(a->second) > weight(b->second);
        });
    }

    [[nodiscard]] bool empty() const { return rows_.empty(); }

    /// Sums of estimates grow with how long was recorded; their shares do not.
    [[nodiscard]] bool by_share() const { return !metric_.exact; }

    /// Of the whole before, or in points of share: how much a function, or all of it, grew.
    [[nodiscard]] double growth(const Change& row) const {
        if (by_share()) return 100 * (share(row.after.cost, sum_after_.all) - share(row.before.cost, sum_before_.all));
        if (sum_before_.all == 0) return row.after.cost == 0 ? 0 : 100;
        return 100 * static_cast<double>(row.change()) / static_cast<double>(sum_before_.all);
    }
    [[nodiscard]] double growth_of_all() const {
        return growth({{sum_before_.chosen, 0, 0, true}, {sum_after_.chosen, 0, 0, true}, {}});
    }

    /// Samples: the intervals of both shares do not touch. Counts are as they are.
    [[nodiscard]] bool is_sure(const Change& row) const {
        if (metric_.exact) return true;
        // Intervals are of numbers of samples. Sums of latencies have none, but of few samples they say little.
        if (metric_.unit != "samples")
            return before_.metrics.front().unit != "samples" ||
                   std::max(row.before.samples, row.after.samples) >= few_samples;
        // A mean is of as many samples as its captures have together.
        const std::uint64_t of_before = options_.mean ? options_.captures_before : 1;
        const std::uint64_t of_after = options_.mean ? options_.captures_after : 1;
        const Interval a = wilson_95(of_before * row.before.cost, of_before * sum_before_.all);
        const Interval b = wilson_95(of_after * row.after.cost, of_after * sum_after_.all);
        return a.high < b.low || b.high < a.low;
    }

    [[nodiscard]] Table table() const {
        const bool shares = by_share(), with_calls = calls();
        std::vector<const Row*> rows;
        for (const Row* at : order_) {
            const Change& r = at->second;
            const bool same = r.change() == 0 && r.before.there == r.after.there && r.before.calls == r.after.calls;
            if (!options_.changed_only || !same || shares) rows.push_back(at);
        }
        const auto colour = [this](const Change& r) {
            return !is_sure(r) || growth(r) == 0 ? Colour::dim : growth(r) > 0 ? Colour::red : Colour::green;
        };
        const std::string unit = metric_.unit;
        Columns<Row> columns;
        const auto add = [&](Column column, auto show) {
            columns.add(std::move(column), [show](const Row& row) { return Cell(show(row.second)); });
        };
        add(Column::real("change_points", shares ? "points" : "of all before",
                         "change in per cent of all before; of estimates: of the share, in points", "%"),
            [=, this](const Change& r) {
                return Cell(signed_percent_text(growth(r)) + (shares ? "" : "%"), growth(r), colour(r));
            });
        add(Column::count("before", "before", "cost", unit), [](const Change& r) { return r.before.cost; });
        add(Column::count("after", "after", "cost", unit), [](const Change& r) { return r.after.cost; });
        add(Column::count("change", "change", "cost after less cost before", unit), [=](const Change& r) {
            return Cell(signed_text(r.change()), r.change(), shares ? Colour::plain : colour(r));
        });
        add(Column::real("change_share", shares ? "" : "change", "part of its own cost before"), [](const Change& r) {
            if (r.before.cost == 0) return Cell();
            const double ratio = static_cast<double>(r.change()) / static_cast<double>(r.before.cost);
            return Cell(signed_percent_text(100 * ratio, 1) + "%", ratio);
        });
        add(Column::real("share_before", "share before", "part of all"),
            [this](const Change& r) { return Cell::share(r.before.cost, sum_before_.all); });
        add(Column::real("share_after", "after", "part of all"),
            [this](const Change& r) { return Cell::share(r.after.cost, sum_after_.all); });
        add(Column::count("calls_before", with_calls ? "calls before" : "", "of it"),
            [](const Change& r) { return r.before.calls; });
        add(Column::count("calls_after", with_calls ? "after" : "", "of it"),
            [](const Change& r) { return r.after.calls; });
        add(Column::text("what", "what", "new, gone, same, other calls, more, less; within noise: of estimates"),
            [=, this](const Change& r) { return Cell(what(r)).in(colour(r)); });
        add(Column::flag("sure", "", "exact, or the 95 % intervals of both shares do not touch"),
            [this](const Change& r) { return Cell("", is_sure(r)); });
        columns.add(Column::flag("exceeds", "", "a threshold that was given"),
                    [this](const Row& row) { return Cell("", exceeds_any(row.second) && !is_unjudged(row)); });
        columns.add(Column::text("function", "function", "its name, without what compilers add to it"),
                    [](const Row& row) { return Cell(row.second.shown, row.first.first, Colour::bold); });
        add(Column::text("image", "", "it is in"), [](const Change& r) { return r.image; });
        add(Column::text("file", "", "path of the source file"), [](const Change& r) { return r.source; });
        return columns.table(rows);
    }

    /// Sentences, and the table.
    void show(View& view) const {
        view.table = table();
        view.table.title =
            view.table.empty()
                ? "no function changed"
                : fmt::format("per function: {}", options_.by == "inclusive" ? "with what it called" : "its own");
        const auto sums = [&](std::string_view whose, std::uint64_t before, std::uint64_t after) {
            const std::int64_t change = static_cast<std::int64_t>(after) - static_cast<std::int64_t>(before);
            view.above.push_back(
                fmt::format("{}{}  {} before, {} after: {}{}", costs_name(metric_), whose, grouped(before),
                            grouped(after), signed_text(change),
                            before == 0 ? ""
                                        : fmt::format(" ({}%)", signed_percent_text(100 * static_cast<double>(change) /
                                                                                    static_cast<double>(before)))));
        };
        sums("", sum_before_.all, sum_after_.all);
        if (!options_.only.empty()) sums(" of --only", sum_before_.chosen, sum_after_.chosen);
        if (by_share())
            view.below = {
                "Sums of estimates grow with how long was recorded, so shares are compared, in points. Within noise:",
                "the 95 % intervals of both shares touch."};
        remark_names(view);
        judge(view);
    }
    [[nodiscard]] const Sums& before() const { return sum_before_; }
    [[nodiscard]] const Sums& after() const { return sum_after_; }

private:
    using Row = std::pair<const RowKey, Change>;

    /// Image, or else source file, distinguishes functions of one name.
    void call_rows() {
        std::map<std::string_view, std::vector<Row*>> by_name;
        for (Row& row : rows_) by_name[row.first.first].push_back(&row);
        for (const auto& [name, rows] : by_name) {
            std::map<std::string_view, unsigned> images;
            for (const Row* row : rows) ++images[row->second.image];
            for (Row* row : rows) {
                Change& r = row->second;
                r.shown = std::string(name);
                if (rows.size() == 1) continue;
                const std::string_view file = std::string_view(r.source).substr(r.source.rfind('/') + 1);
                const std::string_view where = images[r.image] == 1 || file.empty() ? std::string_view(r.image) : file;
                if (!where.empty()) r.shown += fmt::format(" in {}", where);
            }
        }
    }
    [[nodiscard]] std::string_view what(const Change& r) const {
        if (!r.before.there) return "new";
        if (!r.after.there) return "gone";
        if (growth(r) == 0) return r.before.calls == r.after.calls ? "same" : "other calls";
        if (!is_sure(r)) return "within noise";
        return growth(r) > 0 ? "more" : "less";
    }

    /// Says what grew more than is allowed.
    void judge(View& view) const {
        using enum Finding::Severity;
        bool any = false;
        const auto total = [&](bool too_much, const std::string& by, const std::string& allowed) {
            if (!too_much) return;
            any = true;
            view.remark(Finding::Severity::bad,
                        fmt::format("{} grew by {} in all, more than the {} allowed", metric_.name, by, allowed));
        };
        const auto functions = [&](Limit limit, const std::string& allowed, auto&& by) {
            std::size_t many = 0;
            std::string worst;
            for (const auto* at : order_) {
                if (!exceeds(at->second, limit) || is_unjudged(*at)) continue;
                if (many++ == 0) worst = fmt::format("{} by {}", at->second.shown, by(at->second));
            }
            if (many == 0) return;
            any = true;
            view.remark(Finding::Severity::bad,
                        fmt::format("{} grew by more than the {} allowed: {}{}", counted(many, "function"), allowed,
                                    worst, many == 1 ? "" : fmt::format(", and {} more", many - 1)));
        };
        std::string all_allowed;
        const auto allow = [&](std::string text) {
            all_allowed += (all_allowed.empty() ? "" : " or ") + text;
            return text;
        };
        if (options_.threshold) {
            const std::string allowed = allow(fmt::format("{:g}{}", *options_.threshold, unit()));
            total(!by_share() && growth_of_all() > *options_.threshold, percent_text(growth_of_all()) + "%",
                  fmt::format("{:g}%", *options_.threshold));
            functions(Limit::of_all, allowed, [&](const Change& r) { return percent_text(growth(r)) + unit(); });
        }
        if (options_.threshold_each) {
            const std::string allowed = allow(fmt::format("{:g}% of their own cost before", *options_.threshold_each));
            functions(Limit::of_itself, allowed, [&](const Change& r) {
                const auto own = growth_of_itself(r);
                return own ? percent_text(*own) + "%" : fmt::format("{}, from nothing", grouped(r.after.cost));
            });
        }
        if (options_.threshold_count) {
            const std::string allowed = allow(fmt::format("{} {}", grouped(*options_.threshold_count), metric_.name));
            const std::uint64_t before = sum_before_.chosen, after = sum_after_.chosen;
            total(after > before && after - before > *options_.threshold_count,
                  grouped(after - std::min(after, before)), allowed);
            functions(Limit::count, allowed, [](const Change& r) { return signed_text(r.change()); });
        }
        if (all_allowed.empty()) return;
        const bool doubted = doubt_wholes(view), missing = doubt_missing(view);
        if (cannot_judge(view) || any || (options_.strict && (doubted || missing))) return;
        view.remark(note,
                    fmt::format("no function {}grew by more than the {} allowed",
                                doubted ? "that can be compared alone, and no code as a whole, " : "", all_allowed));
    }

    /// What is one row and several functions: one of them may have grown while others became cheaper. None grew by more
    /// than it costs now, so where that is within the limits, nothing is hidden.
    [[nodiscard]] bool doubt_wholes(View& view) const {
        std::map<const ImagePair*, std::set<std::string>> unnamed;
        std::vector<std::string> several, lack_sources;
        for (const Row& row : rows_) {
            const Change& r = row.second;
            const bool is_unnamed_code = row.first.first == Images::unnamed(r.image);
            if ((!is_unnamed_code && !r.several) || is_unjudged(row)) continue;
            Change most;
            most.after = r.after;
            if (r.after.cost == 0 || !exceeds_any(most)) continue;
            if (!is_unnamed_code) {
                several.push_back(r.shown);
                if (names_.lacks_sources(row.first)) lack_sources.push_back(r.shown);
            } else if (const ImagePair* const pair = images_.pair(r.image); pair != nullptr && pair->other_build()) {
                unnamed[pair].insert(r.image);
            }
        }
        for (const auto& [pair, keys] : unnamed)
            view.doubt(options_.strict,
                       fmt::format("code without names of {} cannot be compared function by function, for its builds "
                                   "differ: it is held to the limit as a whole, which may hide that one function grew. "
                                   "{}",
                                   both_names(*keys.begin(), *pair), remedy));
        const std::string advice = lack_sources.empty()
                                       ? std::string()
                                       : fmt::format(". Debug information (-g) has the source files{}",
                                                     lack_sources.size() == several.size()
                                                         ? std::string()
                                                         : fmt::format(" of {}", fmt::join(lack_sources, ", ")));
        if (!several.empty())
            view.doubt(options_.strict,
                       fmt::format("{}: several functions have this name, and neither image nor source file "
                                   "distinguishes them, so they are held to the limit together{}",
                                   fmt::join(several, ", "), advice));
        return !unnamed.empty() || !several.empty();
    }

    /// Functions that --only asks for and that one side alone has: what was inlined, renamed or never called cannot
    /// have grown, but nor was it compared.
    [[nodiscard]] bool doubt_missing(View& view) const {
        bool any = false;
        for (const std::string& word : names_.only().words(Only::Kind::function)) {
            const bool pattern = word.find_first_of("*?[") != word.npos;
            std::vector<const Row*> alone;
            bool on_both = false;
            for (const Row& row : rows_) {
                if (is_unjudged(row) || !names_function(word, row.first.first)) continue;
                if (row.second.before.there && row.second.after.there)
                    on_both = true;
                else
                    alone.push_back(&row);
            }
            // Of several that a pattern asks for, some may come and go.
            if (alone.empty() || (on_both && pattern)) continue;
            any = true;
            const bool was = alone.front()->second.before.there;
            const std::string& name = alone.front()->second.shown;
            view.doubt(
                options_.strict,
                fmt::format("--only {}: {} ran {} alone, and nothing of that name {}: it was inlined, renamed or "
                            "not called, so it is compared with nothing. If it was renamed, give --rename {}",
                            word, name, was ? "before" : "after", was ? "after" : "before",
                            was ? fmt::format("'{}=NEW'", name) : fmt::format("'OLD={}'", name)));
        }
        return any;
    }

    /// Where names are known on one side only, in the order of rows, and the images of the rows that this concerns.
    using Unequal = std::vector<std::pair<const ImagePair*, std::set<std::string>>>;
    static void add(Unequal& unequal, const ImagePair* pair, const std::string& image) {
        auto found = std::find_if(unequal.begin(), unequal.end(), [&](const auto& u) { return u.first == pair; });
        if (found == unequal.end()) found = unequal.insert(found, {pair, {}});
        found->second.insert(image);
    }
    /// Says of which images functions cannot be compared one by one.
    void remark_names(View& view) const {
        Unequal unequal;
        for (const Row& row : rows_)
            if (const ImagePair* pair = uncompared(row.second)) add(unequal, pair, row.second.image);
        for (const auto& [pair, of] : unequal)
            view.remark(Finding::Severity::warning,
                        fmt::format("functions {}cannot be compared: {}. {}", in_images(*pair, of), lacking(*pair),
                                    images_.is_all(pair) ? remedy_for_files : remedy));
        if (options_.threshold || options_.threshold_each || options_.threshold_count) return;  // judge() says it
        for (const auto& [key, pair] : images_.pairs())
            if (is_shown(key) && !pair.named_on_one_side() && pair.other_build() &&
                pair.before.unnamed + pair.after.unnamed != 0)
                view.remark(
                    Finding::Severity::note,
                    fmt::format("{} has code without names on both sides, of two builds: it is compared as a whole",
                                both_names(key, pair)));
    }

    static constexpr std::string_view remedy =
        "Give the file of that build with --symbols, or its debug file with --debug-dir";
    static constexpr std::string_view remedy_for_files =
        "Is its maps.txt missing, which says where files were mapped? Copy it again, or give files with --image "
        "FILE@ADDRESS";
    /// `app`, or where the other side calls it otherwise, `app (app-1.1 in CAPTURE)`.
    [[nodiscard]] std::string both_names(const std::string& key, const ImagePair& pair) const {
        for (const bool before : {true, false}) {
            const std::string& name = (before ? pair.before : pair.after).name;
            if (!name.empty() && name != key)
                return fmt::format("{} ({} in {})", key, name, (before ? before_ : after_).capture);
        }
        return key;
    }
    /// Of which images, for a sentence; empty: of all.
    [[nodiscard]] std::string in_images(const ImagePair& pair, const std::set<std::string>& keys) const {
        if (images_.is_all(&pair)) return {};
        if (images_.is_unpaired(&pair)) return fmt::format("of {} ", fmt::join(keys, ", "));
        return fmt::format("of {} ", both_names(*keys.begin(), pair));
    }
    [[nodiscard]] std::string lacking(const ImagePair& pair) const {
        if (images_.is_unpaired(&pair) && !pair.named_on_one_side())
            return fmt::format("neither build IDs, names nor functions say which image of {} is which one of {}",
                               before_.capture, after_.capture);
        const bool before = pair.lacks_names_before();
        const std::string_view what = images_.is_all(&pair)        ? "file for {:.1f}% of its code"
                                      : images_.is_unpaired(&pair) ? "names for {:.1f}% of files that it has alone"
                                                                   : "names for {:.1f}% of it";
        const auto part = [&](const ImageSide& side) {
            return fmt::format(fmt::runtime(what), 100 * side.share_unnamed());
        };
        return fmt::format("{} knows no {}, {} for {:.1f}%", (before ? before_ : after_).capture,
                           part(before ? pair.before : pair.after), (before ? after_ : before_).capture,
                           100 * (before ? pair.after : pair.before).share_unnamed());
    }
    [[nodiscard]] bool is_shown(const std::string& key) const {
        return std::any_of(rows_.begin(), rows_.end(), [&](const auto& row) { return row.second.image == key; });
    }
    /// The images in which code of a row cannot be compared function by function; null: it can.
    [[nodiscard]] const ImagePair* uncompared(const Change& row) const {
        if (const ImagePair* const pair = images_.unequal(row.image)) return pair;
        return row.unnamed ? images_.unpairable(row.image) : nullptr;
    }
    /// Nothing can be said of how much it grew: the other side may know the same code by no name.
    [[nodiscard]] bool is_unjudged(const Row& row) const {
        return uncompared(row.second) != nullptr && (row.second.before.there != row.second.after.there ||
                                                     row.first.first == Images::unnamed(row.second.image));
    }
    /// Whether a gate must not pass, for what it asks about cannot be compared; says why. A function grew by no more
    /// than it costs now: where all code that cannot be compared keeps to the limits together, nothing is left to
    /// judge. Of a function that --only asks for, the code without its name may not be among the rows.
    [[nodiscard]] bool cannot_judge(View& view) const {
        std::map<const ImagePair*, Change> most;
        Unequal unequal;
        for (const Row& row : rows_) {
            if (!is_unjudged(row)) continue;
            const ImagePair* const pair = uncompared(row.second);
            Change& all = most[pair];
            all.after.cost += row.second.after.cost;
            all.after.samples += row.second.after.samples;
            const bool is_lost = !options_.only.empty() && !row.second.after.there &&
                                 row.first.first != Images::unnamed(row.second.image);
            if (is_lost || exceeds_any(all)) add(unequal, pair, row.second.image);
        }
        for (const auto& [pair, of] : unequal)
            view.remark(Finding::Severity::bad,
                        fmt::format("functions {}cannot be compared, so no threshold is judged for them: {}",
                                    in_images(*pair, of), lacking(*pair)));
        return !unequal.empty();
    }
    enum class Limit : std::uint8_t { of_all, of_itself, count };
    [[nodiscard]] bool exceeds(const Change& row, Limit limit) const {
        if (std::max(row.before.cost, row.after.cost) < options_.least || !is_sure(row)) return false;
        switch (limit) {
            case Limit::of_all: return options_.threshold && growth(row) > *options_.threshold;
            case Limit::of_itself:
                if (!options_.threshold_each) return false;
                if (const auto own = growth_of_itself(row)) return *own > *options_.threshold_each;
                return row.after.cost != 0;
            case Limit::count:
                return options_.threshold_count && row.change() > 0 &&
                       static_cast<std::uint64_t>(row.change()) > *options_.threshold_count;
        }
        return false;
    }
    [[nodiscard]] bool exceeds_any(const Change& row) const {
        return exceeds(row, Limit::of_all) || exceeds(row, Limit::of_itself) || exceeds(row, Limit::count);
    }
    /// In per cent of what it cost before, or of its share; nothing: it cost nothing.
    [[nodiscard]] std::optional<double> growth_of_itself(const Change& row) const {
        if (row.before.cost == 0) return std::nullopt;
        if (!by_share()) return 100 * static_cast<double>(row.change()) / static_cast<double>(row.before.cost);
        const double was = share(row.before.cost, sum_before_.all);
        return 100 * (share(row.after.cost, sum_after_.all) - was) / was;
    }
    [[nodiscard]] const char* unit() const { return by_share() ? " points of share" : "% of all before"; }
    [[nodiscard]] double weight(const Change& row) const { return std::abs(growth(row)); }
    [[nodiscard]] bool calls() const {
        return std::any_of(rows_.begin(), rows_.end(),
                           [](const auto& r) { return r.second.before.calls + r.second.after.calls != 0; });
    }

    const Answers &before_, &after_;
    const DiffOptions& options_;
    const Names& names_;
    const Images& images_;
    Metric metric_;
    std::map<RowKey, Change> rows_;
    std::vector<const Row*> order_;
    Sums sum_before_, sum_after_;
};

}  // namespace

Result<DiffView> compare(const Answers& before, const Answers& after, const DiffOptions& options) {
    WM_ASSIGN_OR_RETURN(const std::size_t metric, find_metric(before, options.metric));
    const Metric& what = before.metrics[metric];
    const auto other = find_metric(after, what.name);
    if (!other || after.metrics[*other].unit != what.unit || after.metrics[*other].exact != what.exact)
        return Error{
            Errc::usage,
            fmt::format("{} contains {}, but {} does not, or not in the same way: captures of the same kind of "
                        "unit, programmed alike, can be compared",
                        before.capture, costs_name(what), after.capture)};
    WM_ASSIGN_OR_RETURN(Names names, Names::of(options, before, after));
    const std::vector<FunctionCosts> costs[2] = {function_costs(before), function_costs(after)};
    Images images(before, after);
    for (const bool now : {false, true}) {
        std::set<std::string> others;
        for (const Function& f : (now ? before : after).functions)
            if (!is_unnamed(f)) others.insert(names.of(f.name, now));
        images.gather(now ? after : before, costs[now], now ? *other : metric, !now,
                      [&](const Function& f) { return others.contains(names.of(f.name, !now)); });
    }
    names.add(before, true, images);
    names.add(after, false, images);
    if (const std::string unknown = names.only().unknown(); !unknown.empty())
        return Error{Errc::not_found, "--only: " + unknown};
    DiffView out;
    out.metric = what;
    if (options.threshold_count && !what.exact)
        return Error{Errc::usage,
                     fmt::format("--threshold-count: how many {} there are depends on how long was recorded; "
                                 "--threshold and --threshold-each compare shares",
                                 what.name)};
    if (!options.only.empty())
        if (const std::string missing = missing_images(names.only(), before, after, images); !missing.empty())
            return Error{Errc::not_found, "--only: " + missing};
    names.divide(before, after, costs, images);
    names.choose(before, after, images);
    const Diff diff(before, after, options, names, images, metric, *other);
    if (diff.empty())
        return Error{Errc::not_found, options.only.empty() ? "neither capture has a function with a cost"
                                                           : "nothing that --only asks for cost anything"};
    if (options.captures_before != options.captures_after && what.exact && !options.mean)
        out.view.remark(Finding::Severity::note,
                        fmt::format("{} before and {} after: their sums are compared; --mean compares what one cost",
                                    counted(options.captures_before, "capture"), grouped(options.captures_after)));
    diff.show(out.view);
    out.before = diff.before().all;
    out.after = diff.after().all;
    out.chosen_before = diff.before().chosen;
    out.chosen_after = diff.after().chosen;
    return out;
}

}  // namespace waymark::answers
