/// `waymark info` of a file of branch lists.
#include "info_others.h"
#include "trouble.h"
#include "waymark/listing/branch_lists.h"
#include "waymark/pgo/profile.h"

namespace waymark::cli {

ExitStatus run_branch_list_info(const InputOptions& input, const std::string& format) {
    answers::BranchLists lists;
    if (const auto read = pgo::add_branch_lists(lists, input.container()); !read) return fail(read.error());
    auto out = Output::open(input.output, input.files());
    if (!out) return fail(out.error());
    listing::print_branch_lists(*out, input.capture, lists, listing::format_of(format));
    if (out->close() != decoded) return unreadable;
    if (!lists.empty()) return decoded;
    say("error", input.capture + ": the file has no branch list");
    return nothing;
}

}  // namespace waymark::cli
