/// `waymark info` of a file of branch lists.
#include <fmt/format.h>

#include <set>

#include "info_others.h"
#include "table.h"
#include "trouble.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/core/numbers.h"
#include "waymark/core/saturating.h"
#include "waymark/exports/branch_list.h"

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
    nlohmann::ordered_json info{{"capture", input.capture}, {"kind", "branch lists of simpleperf"}};
    info["images"] = nlohmann::ordered_json::array();
    std::string text;
    for (const auto& [key, image] : lists) {
        std::set<std::uint64_t> addresses;
        std::uint64_t outcomes = 0, times = 0;
        for (const auto& [list, count] : image.lists) {
            addresses.insert(list.first);
            times = saturating(times, count);
            outcomes = saturating(outcomes, saturating_product(count, list.second.count));
        }
        const std::string type = image.type == 0 ? "file" : image.type == 1 ? "kernel" : "kernel module";
        nlohmann::ordered_json row{{"path", image.path},          {"type", type},
                                   {"build_id", image.build_id},  {"addresses", addresses.size()},
                                   {"lists", image.lists.size()}, {"times", times},
                                   {"outcomes", outcomes}};
        if (image.kernel_start != 0) row["kernel_start"] = fmt::format("{:#x}", image.kernel_start);
        if (image.module.first != 0) {
            row["module_start"] = fmt::format("{:#x}", image.module.first);
            row["module_symbol"] = fmt::format("{} at {:#x}", image.module.symbol, image.module.address);
        }
        text += fmt::format("{}  {}, build ID {}\n    {} from {}, met {}: {} of branches{}\n", image.path, type,
                            image.build_id.empty() ? "not known" : image.build_id, counted(image.lists.size(), "list"),
                            counted(addresses.size(), "address", "addresses"), counted(times, "time"),
                            counted(outcomes, "outcome"),
                            image.module.first != 0 ? fmt::format("; in memory at {:#x}", image.module.first) : "");
        info["images"].push_back(std::move(row));
    }
    if (format == "text")
        out->write(
            fmt::format("capture {}\n  branch lists of simpleperf, {}\n\n{}\nnext: waymark pgo {} --for clang -o "
                        "program.prof makes a profile of them\n",
                        input.capture, counted(lists.size(), "image"), text, input.capture));
    else
        listing::print_document(*out, json_text(info), listing::format_of(format));
    if (out->close() != decoded) return unreadable;
    if (!lists.empty()) return decoded;
    say("error", input.capture + ": the file has no branch list");
    return nothing;
}

}  // namespace waymark::cli
