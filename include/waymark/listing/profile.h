/// Profiles of the Statistical Profiling Extension as text, TSV and JSON: how far they can be trusted, where operations
/// spend their cycles, which cache lines are shared, and where branches lead.
#pragma once

#include <cstddef>
#include <string>

#include "waymark/analysis/branches.h"
#include "waymark/analysis/profile.h"
#include "waymark/analysis/sharing.h"
#include "waymark/doctor/profile_view.h"
#include "waymark/listing/text.h"

namespace waymark::listing {

/// Prints what the last run of `view` found about the quality of the samples.
void print_quality(TextSink& out, const doctor::ProfileView& view, LineFormat format);
/// The same as the description of a capture.
void print_profile_info(TextSink& out, const doctor::ProfileView& view, const std::string& capture, LineFormat format);

struct ProfileLayout {
    LineFormat format{};
    std::string by = "function", sort = "cycles";
    std::size_t limit = 20;  ///< maximum rows; 0: all
};
/// `profile`: the sink of the last run.
void print_profile(TextSink& out, const doctor::ProfileView& view, const analysis::Profile& profile,
                   const ProfileLayout& layout);

struct SharingLayout {
    LineFormat format{};
    std::string sort = "kind";
    std::size_t limit = 10;  ///< maximum lines; 0: all
    bool all = false;        ///< lines with true sharing too
};
/// Prints the shared cache lines. Returns a sentence if there are none.
std::string print_sharing(TextSink& out, const doctor::ProfileView& view, const analysis::LineCandidates& candidates,
                          const analysis::Sharing& sharing, const SharingLayout& layout);

struct SampledBranchLayout {
    LineFormat format{};
    std::string by = "branch", sort = "mispredicts";
    std::size_t limit = 20;  ///< maximum rows; 0: all
};
void print_sampled_branches(TextSink& out, const doctor::ProfileView& view, const analysis::Branches& branches,
                            const SampledBranchLayout& layout);

}  // namespace waymark::listing
