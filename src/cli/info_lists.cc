/// `waymark info` of a file of branch lists.
#include "info_others.h"
#include "trouble.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/exports/branch_list.h"
#include "waymark/listing/branch_lists.h"

namespace waymark::cli {

ExitStatus run_branch_list_info(const InputOptions& input, const std::string& format) {
    const auto stream = capture::open_bytes(input.capture);
    if (!stream) return fail(stream.error());
    constexpr std::uint64_t most = std::uint64_t{1} << 32;
    const auto bytes = capture::read_all(**stream, most);
    if (!bytes) return fail(bytes.error());
    answers::BranchLists lists;
    if (const Status read = exports::add_branch_lists(lists, *bytes, input.capture); !read) return fail(read.error());
    auto out = Output::open(input.output, input.files());
    if (!out) return fail(out.error());
    listing::print_branch_lists(*out, input.capture, lists, listing::format_of(format));
    if (out->close() != decoded) return unreadable;
    if (!lists.empty()) return decoded;
    say("error", input.capture + ": the file has no branch list");
    return nothing;
}

}  // namespace waymark::cli
