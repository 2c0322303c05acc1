/// `waymark spe`: samples of the Statistical Profiling Extension.
#include <memory>
#include <utility>

#include "commands.h"

namespace waymark::cli {

Run add_spe(const Command& app) {
    const Command spe = app.add("spe");
    return add_below(
        spe, {add_spe_report, add_spe_sharing, add_spe_branches, add_spe_quality, add_spe_records, add_spe_explain});
}

}  // namespace waymark::cli
