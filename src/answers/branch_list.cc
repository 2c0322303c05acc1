#include "waymark/answers/branch_list.h"

#include <algorithm>
#include <utility>

#include "waymark/answers/costs.h"
#include "waymark/answers/parts.h"

namespace waymark::answers {

void add_image(BranchLists& lists, BranchListImage image) {
    std::string build = build_key(image.build_id);
    std::string path = build.empty() ? image.path : std::string();
    const auto [at, fresh] =
        lists.try_emplace({std::move(build), std::move(path), image.kernel_start, image.module}, image);
    if (fresh) return;
    BranchListImage& to = at->second;
    to.path = std::min(to.path, image.path);
    to.build_id = std::min(to.build_id, image.build_id);
    to.type = std::max(to.type, image.type);
    for (auto& [list, times] : image.lists) {
        std::uint64_t& sum = to.lists[list];
        sum = saturating(sum, times);
    }
}

}  // namespace waymark::answers
