#include "diff_images.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "columns.h"

namespace waymark::answers {

bool is_in_every_program(std::string_view name) {
    static const std::set<std::string_view> start_files = {"_start",          "_init",
                                                           "_fini",           "__do_global_dtors_aux",
                                                           "call_weak_fn",    "deregister_tm_clones",
                                                           "frame_dummy",     "__libc_csu_init",
                                                           "__libc_csu_fini", "register_tm_clones"};
    return name.ends_with("@plt") || start_files.contains(name);
}

namespace {

/// The name of a file without its version: `app-1.0` and `app-1.1` become `app`; `libz-2.so` and `libz.so.1.2` become
/// `libz.so`.
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

/// Names in an image of one side.
struct Contents {
    /// named functions, without those that every program contains
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

/// How similar two images are: the share of all their functions that both have. 0 if the images share less than half of
/// the smaller one's functions, so that they are not the same image.
double likeness(const std::set<std::string_view>& a, const std::set<std::string_view>& b) {
    const auto common = static_cast<std::size_t>(
        std::count_if(a.begin(), a.end(), [&](std::string_view name) { return b.contains(name); }));
    if (common == 0 || 2 * common < std::min(a.size(), b.size())) return 0;
    return static_cast<double>(common) / static_cast<double>(a.size() + b.size() - common);
}
bool are_alike(const std::set<std::string_view>& a, const std::set<std::string_view>& b) { return likeness(a, b) != 0; }

/// The named functions of the images that a word names on one side.
std::set<std::string_view> functions_of(std::string_view word, const Answers& side) {
    const std::vector<Contents> images = contents(side);
    std::set<std::string_view> out;
    for (std::size_t i = 0; i < images.size(); ++i)
        if (names_file(word, side.images[i].name) || names_file(word, side.images[i].path))
            out.insert(images[i].functions.begin(), images[i].functions.end());
    return out;
}

/// The images of a side that a word names, by their keys in DiffImages.
std::set<std::string> keys_of(std::string_view word, const Answers& side, const DiffImages& images) {
    std::set<std::string> out;
    for (Index i = 0; i < side.images.size(); ++i)
        if (names_file(word, side.images[i].name) || names_file(word, side.images[i].path))
            out.insert(images.key(side, i));
    return out;
}

/// The reason why images that --only selects under two names, one for each side, cannot be paired. Empty if each image
/// of one side has most functions in common with exactly one of the other side, or if both have no names and are the
/// only possible pair.
std::string not_paired(const std::vector<std::string> (&words)[2], const Answers& before, const Answers& after,
                       const DiffImages& images) {
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

/// From some images of the other side, the one that is more similar to this one than any other; if several are equally
/// similar, the only one whose name differs just in its version.
std::optional<std::size_t> most_alike(const Contents& one, const Image& image, const std::vector<std::size_t>& others,
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

}  // namespace

DiffImages::DiffImages(const Answers& before, const Answers& after) {
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

std::string DiffImages::key(const Answers& side, Index image) const {
    const std::vector<std::string>& keys = keys_.at(&side);
    return image < keys.size() ? keys[image] : std::string();
}

std::string DiffImages::shared_key(const Answers& side, Index image) const {
    std::string out = key(side, image);
    const auto found = pairs_.find(out);
    return found != pairs_.end() && found->second.on_both_sides() ? out : std::string();
}

const ImagePair* DiffImages::unequal(const std::string& key) const {
    const auto found = pairs_.find(key);
    const bool paired = found != pairs_.end() && found->second.on_both_sides();
    if (paired && found->second.named_on_one_side()) return &found->second;
    if (all_.named_on_one_side() && (!paired || found->second.has_no_names())) return &all_;
    if (paired) return nullptr;
    return found != pairs_.end() && unpaired_.named_on_one_side() ? &unpaired_ : nullptr;
}

const ImagePair* DiffImages::pair(const std::string& key) const {
    const auto found = pairs_.find(key);
    return found != pairs_.end() && found->second.on_both_sides() ? &found->second : nullptr;
}

const ImagePair* DiffImages::unpairable(const std::string& key) const {
    const auto found = pairs_.find(key);
    if (found == pairs_.end() || found->second.on_both_sides()) return nullptr;
    return unpaired_.before.unnamed != 0 && unpaired_.after.unnamed != 0 ? &unpaired_ : nullptr;
}

std::string DiffImages::name(const Answers& side, const Function& f) const {
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

void DiffImages::pair_the_rest(const Answers& before, const Answers& after) {
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
    // Pair the most similar images first: their removal may make other pairs unique.
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
    if (old_last.size() == 1 && new_last.size() == 1 && !(old[old_last[0]].has_names() && now[new_last[0]].has_names()))
        new_keys[new_last[0]] = old_keys[old_last[0]];
}

std::string missing_images(const Only& only, const Answers& before, const Answers& after, const DiffImages& images) {
    std::vector<std::string> words[2];  // words that name an image on one side only
    for (const std::string& word : only.words(Only::Kind::image)) {
        std::set<std::string> keys[2] = {keys_of(word, before, images), keys_of(word, after, images)};
        // Images of one build are the same image, under any name.
        std::set<std::string> same;
        for (const std::set<std::string>& of : keys)
            for (const std::string& key : of)
                if (const auto pair = images.pairs().find(key);
                    pair != images.pairs().end() && pair->second.same_build())
                    same.insert(key);
        for (std::set<std::string>& of : keys) of.insert(same.begin(), same.end());
        if (keys[0].empty() != keys[1].empty()) words[keys[0].empty()].push_back(word);
    }
    // One name for each side: the image was renamed.
    if (words[0].size() == words[1].size()) return not_paired(words, before, after, images);
    const bool after_lacks = words[0].size() > words[1].size();
    const Answers& lacks = after_lacks ? after : before;
    std::string others;
    for (const Image& i : lacks.images) others += (others.empty() ? "" : ", ") + i.name;
    return fmt::format(
        "{} has no image called '{}', so it cannot be compared. It has: {}. If it has another name there, give --only "
        "once for each name",
        lacks.capture, words[after_lacks ? 0 : 1].front(), others);
}

}  // namespace waymark::answers
