/// The commands of `waymark spe`.
#pragma once

#include "../commands.h"

namespace waymark::cli {

Run add_spe_report(CLI::App& spe);
Run add_spe_sharing(CLI::App& spe);
Run add_spe_branches(CLI::App& spe);
Run add_spe_quality(CLI::App& spe);
Run add_spe_records(CLI::App& spe);
Run add_spe_explain(CLI::App& spe);

}  // namespace waymark::cli
