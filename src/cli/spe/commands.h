/// The commands of `waymark spe`.
#pragma once

#include "../commands.h"

namespace waymark::cli {

Run add_spe_report(const Command& spe);
Run add_spe_sharing(const Command& spe);
Run add_spe_branches(const Command& spe);
Run add_spe_quality(const Command& spe);
Run add_spe_records(const Command& spe);
Run add_spe_explain(const Command& spe);

}  // namespace waymark::cli
