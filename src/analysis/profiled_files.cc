#include "waymark/analysis/profiled_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "waymark/analysis/branch_lists.h"
#include "waymark/answers/account.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/costs.h"
#include "waymark/answers/parts.h"
#include "waymark/core/numbers.h"

namespace waymark::analysis {

namespace {

/// The bytes of a build ID; empty if the text is not a build ID.
std::vector<std::uint8_t> bytes_of(std::string_view hex) {
    std::vector<std::uint8_t> out;
    for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
        std::uint8_t byte = 0;
        const auto [end, error] = std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
        if (error != std::errc{} || end != hex.data() + i + 2) return {};
        out.push_back(byte);
    }
    return out;
}

}  // namespace

ProfiledFiles::ProfiledFiles(image::FileSearch search, std::vector<std::string> given)
    : search_(std::move(search)), given_(std::move(given)) {}

Result<image::FoundFile> ProfiledFiles::file_of(const answers::Image& image) const {
    const std::vector<std::uint8_t> id = bytes_of(image.build_id);
    if (!image.path.empty())
        if (auto found = image::open_first({image.path}, id, search_)) return found;
    for (const std::string& given : given_)
        if (auto found = image::open_first({given}, id, search_); found && !id.empty()) return found;
    return image::find_file(image.path.empty() ? image.name : image.path, id, search_);
}

Result<answers::Answers> expanded(const answers::BranchLists& lists, const ProfiledFiles& files) {
    answers::Answers out;
    out.unit = "branch lists";
    out.metrics.push_back({"instructions", "instructions"});
    std::uint64_t lost = 0;
    std::string missing;
    for (const auto& [key, of_file] : lists) {
        answers::Image image;
        image.name = image.path = image.recorded = of_file.path;
        image.build_id = of_file.build_id;
        const auto file = files.file_of(image);
        if (!file) {
            missing += (missing.empty() ? "" : ", ") + of_file.path;
            continue;
        }
        WM_ASSIGN_OR_RETURN(const ExpandedLists done, add_branch_lists(out, of_file, file->path));
        lost = done.lost > ~lost ? ~std::uint64_t{0} : lost + done.lost;
    }
    using Health = answers::Finding::Severity;
    if (!missing.empty())
        out.health.push_back({Health::warning, fmt::format("these files were not found, so their branch lists are "
                                                           "omitted: {}; give them with --symbols or --symfs",
                                                           missing)});
    if (lost != 0)
        out.health.push_back({Health::warning, fmt::format("{} of the branch lists match no branch in their file",
                                                           counted(lost, "outcome"))});
    return out;
}

std::uint64_t executed_in(const answers::Answers& a, answers::Index image) {
    std::uint64_t out = 0;
    for (const answers::ImageRange& r : a.ranges)
        if (r.image == image) out = saturating(out, saturating_product(r.times, r.instructions));
    return out;
}

std::string ProfileCover::text() const {
    const std::string of_decoded = share_text(profiled, everything);
    // A bound of 100 % states nothing.
    const bool unbounded = open_ended && profiled >= saturating(everything, not_decoded);
    if (!has_account || estimated || unbounded)
        return of_decoded + " of everything that was decoded; it is not known how much of the run that is";
    if (not_decoded == 0 && !open_ended) return of_decoded + " of the run";
    return fmt::format("{}{} of the run as far as it is known, and {} of what was decoded",
                       open_ended ? "at most " : "", share_text(profiled, saturating(everything, not_decoded)),
                       of_decoded);
}

namespace {

/// Adds the evidence of one account row about code that certainly ran.
void add_account_row(ProfileCover& out, const answers::AccountRow& row) {
    out.estimated |= answers::account_rule(row.reason).estimates;
    if (!answers::adds_to_decoded(row.reason)) return;
    // The length of ranges that were not decoded is unknown; each has at least one instruction.
    out.not_decoded = saturating(out.not_decoded, row.instructions.value_or(row.ranges.value_or(0)));
    out.open_ended |= !row.instructions;
}

}  // namespace

ProfileCover profile_cover(const answers::Answers& answers, const std::function<bool(answers::Index)>& in_profile,
                           const std::map<answers::Index, ImageQuality>& quality) {
    ProfileCover out;
    std::uint64_t in_files = 0;
    for (answers::Index i = 0; i < answers.images.size(); ++i) in_files = saturating(in_files, executed_in(answers, i));
    for (const answers::Figure& f : answers.summary)
        if (f.name == "instructions") out.everything = std::strtoull(f.value.c_str(), nullptr, 10);
    out.has_account = !answers.account.empty();
    for (const answers::AccountRow& row : answers.account) add_account_row(out, row);
    out.everything = std::max(out.everything, in_files);
    const bool is_whole = out.has_account && !answers::is_part_of_run(answers.account);
    const std::string_view decoded = is_whole ? "" : " that was decoded";
    for (answers::Index i = 0; i < answers.images.size(); ++i) {
        const std::uint64_t executed = executed_in(answers, i);
        if (executed == 0) continue;
        const bool chosen = in_profile(i);
        std::string text = fmt::format("{}: {} executed, {} of all{}; {}", answers.images[i].name,
                                       counted(executed, "instruction"), share_text(executed, out.everything), decoded,
                                       chosen ? "in the profile" : "not in the profile (add --of-image or --all)");
        std::uint64_t usable = executed;
        if (const auto q = quality.find(i); q != quality.end()) {
            usable = q->second.with_lines;
            text += fmt::format("; {} of these instructions have source lines", share_text(usable, executed));
            if (q->second.unknown != 0)
                text += fmt::format("; {} is code that is not in its file", share_text(q->second.unknown, executed));
        }
        if (chosen) out.profiled = saturating(out.profiled, usable);
        out.sentences.push_back(std::move(text));
    }
    if (out.everything > in_files)
        out.sentences.push_back(fmt::format("code outside the files that were found: {}, {} of all{}",
                                            counted(out.everything - in_files, "instruction"),
                                            share_text(out.everything - in_files, out.everything), decoded));
    return out;
}

}  // namespace waymark::analysis
