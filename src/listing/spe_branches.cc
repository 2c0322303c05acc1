#include <fmt/format.h>

#include "print.h"
#include "spe_quality.h"
#include "table_json.h"
#include "waymark/analysis/spe_tables.h"
#include "waymark/core/numbers.h"
#include "waymark/listing/profile.h"

namespace waymark::listing {

void print_sampled_branches(TextSink& out, const doctor::ProfileView& view, const analysis::Branches& branches,
                            const SampledBranchLayout& layout) {
    const auto [table, left_out] =
        analysis::branch_table(branches, view.program(), layout.by == "pair", layout.sort == "samples", layout.limit);
    const analysis::BranchSum& all = branches.all();
    if (layout.format == LineFormat::tsv) return print_tsv(out, table);
    if (layout.format == LineFormat::json)
        return out.write(json_text({{"quality", quality_json(view)},
                                    {"branches", all.samples},
                                    {"mispredicts", all.mispredicts},
                                    {"not_taken", all.not_taken},
                                    {"not_retired", all.not_retired},
                                    {"branches_in_no_row", branches.rest().samples},
                                    {"by", layout.by},
                                    {"rows", to_json(table)},
                                    {"rows_left_out", left_out}}) +
                         "\n");
    print_quality_head(out, view);
    print(out, "branches  {}: {} mispredicted, {} not taken\n\n", grouped(all.samples),
          analysis::share_with_interval(all.mispredicts, all.samples).shown,
          analysis::share_with_interval(all.not_taken, all.samples).shown);
    if (all.samples == 0) return out.write("No sample is of a branch.\n");
    print_text(out, table);
    if (left_out != 0) print(out, "… and {} more; --limit 0 shows all\n", counted(left_out, "row"));
    out.write(few_samples_note);
    if (branches.rest().samples != 0)
        print(out, "{} more had no room and are in no row.\n", counted(branches.rest().samples, "branch", "branches"));
}

}  // namespace waymark::listing
