#include "waymark/listing/branch_lists.h"

#include <fmt/format.h>

#include <set>

#include "print.h"
#include "waymark/core/numbers.h"
#include "waymark/core/saturating.h"

namespace waymark::listing {

using nlohmann::ordered_json;

void print_branch_lists(TextSink& out, const std::string& capture, const answers::BranchLists& lists,
                        LineFormat format) {
    ordered_json info{{"capture", capture}, {"kind", "branch lists of simpleperf"}};
    info["images"] = ordered_json::array();
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
        ordered_json row{{"path", image.path},          {"type", type},
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
    if (format == LineFormat::text)
        out.write(
            fmt::format("capture {}\n  branch lists of simpleperf, {}\n\n{}\nnext: waymark pgo {} --for clang -o "
                        "program.prof makes a profile of them\n",
                        capture, counted(lists.size(), "image"), text, capture));
    else
        print_document(out, info, format);
}

}  // namespace waymark::listing
