#include "merge_unlisted.h"

#include <algorithm>
#include <string_view>

#include "waymark/answers/sum.h"

namespace waymark::answers {

namespace {

/// Code of the kernel, and code that it maps into each process.
bool is_system(const Image& image) {
    const auto is = [](std::string_view path) {
        const std::string_view name = path.substr(path.rfind('/') + 1);
        return name.starts_with('[') || name.starts_with("vmlinux") || name.ends_with(".ko") ||
               name.find(".ko.") != name.npos;
    };
    return is(image.name) || is(image.recorded);
}

bool hides_code(const AccountRow& row) {
    return row.reason != AccountReason::handlers && account_rule(row.reason).hides != Hides::nothing;
}

}  // namespace

void mark_unlisted_code(Answers& answers, bool all_images) {
    const bool hides = std::any_of(answers.account.begin(), answers.account.end(), hides_code);
    // A handler is in no file of a process; without these files, it may be anywhere.
    const bool handlers = has_reason(answers.account, AccountReason::handlers) && !all_images;
    for (Image& image : answers.images) image.hides = hides || handlers;
    answers.hides_others = (hides && !all_images) || handlers;
}

void UnlistedCode::add(const Answers& a, const IndexMap& images) {
    ++input_;
    hides_others_ = a.hides_others;
    const bool system = a.hides_others || has_reason(a.account, AccountReason::handlers) ||
                        std::any_of(a.images.begin(), a.images.end(), [](const Image& image) { return image.hides; });
    others_ += hides_others_ ? 1 : 0;
    system_ += system ? 1 : 0;
    for (std::size_t i = 0; i < a.images.size(); ++i) {
        if (images[i] >= images_.size()) images_.resize(images[i] + 1);
        Counts& to = images_[images[i]];
        if (to.input != input_) {
            to.input = input_;
            to.hides = false;
            to.others += hides_others_ ? 1 : 0;
            to.system += system ? 1 : 0;
        }
        if (a.images[i].hides && !to.hides) {
            to.hides = true;
            ++to.hiding;
        }
    }
}

bool UnlistedCode::hides(Index function) const {
    const Index image = names_.image_of(function);
    return image == none ? hides_others_ : images_[image].hides;
}

std::uint64_t UnlistedCode::hiding_in(Index image) const {
    if (image == none) return others_;
    const Counts& counts = images_[image];
    return counts.hiding + (is_system(names_.image(image)) ? system_ - counts.system : others_ - counts.others);
}

void UnlistedCode::finish(Answers& out, const IndexMap& images) const {
    out.hides_others = others_ != 0;
    for (Index image = 0; image < images_.size(); ++image) out.images[images[image]].hides = hiding_in(image) != 0;
}

void RowsListed::note(Index row, std::uint32_t input) {
    if (row >= rows_.size()) rows_.resize(row + 1);
    if (rows_[row].input == input) return;
    rows_[row].input = input;
    ++rows_[row].inputs;
}

}  // namespace waymark::answers
