#include "diff_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "columns.h"

namespace waymark::answers {

namespace {

/// Image and source file of a function.
struct Spot {
    std::string image, source, place;
    auto operator<=>(const Spot&) const = default;
};
/// The functions of one name, on both sides.
struct Spots {
    std::map<Spot, unsigned> of[2];  ///< number of functions at each spot
    std::map<Spot, unsigned> group[2];
    std::set<unsigned> several;  ///< groups

    void match() {
        unsigned next = 0;
        const auto put = [&](bool now, const Spot& spot, unsigned number) {
            group[now][spot] = number;
            if (of[now][spot] > 1) several.insert(number);
        };
        // Pair by image and source file first, then by either one, then the rest.
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

}  // namespace

Result<DiffNames> DiffNames::of(const DiffOptions& options, const Answers& before, const Answers& after) {
    DiffNames out(options.only);
    for (const std::string& rename : options.renames) {
        const std::size_t equals = rename.find('=');
        if (equals == 0 || equals == rename.npos || equals + 1 == rename.size())
            return Error{Errc::usage, fmt::format("--rename {}: give OLD=NEW, two names of functions", rename)};
        if (rename.find('=', equals + 1) != rename.npos)
            return Error{Errc::usage, fmt::format("--rename {}: names that contain = are ambiguous here; "
                                                  "give OLD=NEW with one",
                                                  rename)};
        WM_RETURN_IF_ERROR(out.add_rename(rename, rename.substr(0, equals), rename.substr(equals + 1), before, after));
    }
    return out;
}

std::string DiffNames::of(std::string_view name, bool before) const {
    const std::string_view base = without_suffix(name);
    if (before)
        if (const auto found = renames_.find(std::string(base)); found != renames_.end()) return found->second;
    return std::string(base);
}

void DiffNames::add(const Answers& answers, bool before, const DiffImages& images) {
    for (const Function& f : answers.functions) {
        only_.add(answers, f);
        if (before && !is_unnamed(f)) only_.add(Only::Kind::function, of(f.name, before));
        // The name of its row.
        if (is_unnamed(f) && f.image != none) only_.add(Only::Kind::named_by_image, images.name(answers, f));
        only_.add(Only::Kind::source, path_text(answers, f.source));
    }
    for (const Image& i : answers.images) only_.add(i);
}

void DiffNames::divide(const Answers& before, const Answers& after, const std::vector<FunctionCosts> (&costs)[2],
                       const DiffImages& images) {
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
                // A place in one build is the same place at another address: builds are moved by whole pages.
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

void DiffNames::choose(const Answers& before, const Answers& after, const DiffImages& images) {
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

bool DiffNames::is_chosen(const Answers& side, const Function& f, const RowKey& row, const DiffImages& images) const {
    return only_.empty() || chosen_.contains(row) || is_in_wanted_image(side, f) ||
           chosen_in_.contains({images.shared_key(side, f.image), row});
}

std::string DiffNames::called(const Answers& side, const Function& f, bool before, const DiffImages& images) const {
    return is_unnamed(f) ? images.name(side, f) : of(f.name, before);
}

std::set<std::string> DiffNames::functions_called(const Answers& side, std::string_view word) {
    std::set<std::string> out;
    for (const Function& f : side.functions)
        if (!is_unnamed(f) && (names_function(word, f.name) || word == f.linkage_name))
            out.emplace(without_suffix(f.name));
    return out;
}

Status DiffNames::add_rename(const std::string& rename, const std::string& old, const std::string& now,
                             const Answers& before, const Answers& after) {
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
        // Overloads are distinguished by their parameters.
        const std::string same = now + (one.starts_with(old) ? one.substr(old.size()) : std::string());
        if (to.contains(same))
            renames_[one] = same;
        else if (from.size() == 1 && to.size() == 1)
            renames_[one] = *to.begin();
        else
            return Error{Errc::usage,
                         fmt::format("--rename {}: {} has {}, and {} has {}: give both with their parameters", rename,
                                     before.capture, fmt::join(from, ", "), after.capture, fmt::join(to, ", "))};
    }
    return Nothing{};
}

bool DiffNames::is_in_wanted_image(const Answers& answers, const Function& f) const {
    return f.image < answers.images.size() && only_.asks_for(answers.images[f.image]);
}

}  // namespace waymark::answers
