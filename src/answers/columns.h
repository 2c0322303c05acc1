/// Columns that several views share.
#pragma once

#include <string>

#include "waymark/answers/meanings.h"
#include "waymark/answers/unknown_costs.h"
#include "waymark/answers/views.h"

namespace waymark::answers {

/// Makes a cell for a text; an empty text means "not known".
[[nodiscard]] inline Cell known(std::string_view text) { return text.empty() ? Cell() : Cell(text); }

/// Adds source file and line of a row: for readers file and number, for programs also the path. `Row` has members
/// `source` and `line`.
template <class Row>
void add_line(Columns<Row>& columns, const Answers& answers) {
    columns.add(Column::text("line", "line", meaning::line_of_file),
                [&answers](const Row& r) { return known(line_text(answers, r.source, r.line)).in(Colour::dim); });
    columns.add(Column::text("file", "", meaning::file_path),
                [&answers](const Row& r) { return known(path_text(answers, r.source)); });
}

/// Adds a column for each metric of `costs(row)`. Cells are empty for rows without costs and for unknown costs.
/// `parts`: rows are parts of blocks, whose share of the cycles of their block may be 0.
template <class Row, class CostsOf>
void add_costs(Columns<Row>& columns, const Answers& answers, const std::string& suffix, const std::string& what,
               CostsOf costs, const auto& head, bool parts = false) {
    for (std::size_t m = 0; m < answers.metrics.size(); ++m)
        columns.add(Column::count(answers.metrics[m].name + suffix, head(m), what, answers.metrics[m].unit),
                    [costs, m, parts, &answers](const Row& r) {
                        const Costs& all = costs(r);
                        if constexpr (requires { r.unseen; })
                            if (r.unseen && is_unknown_unseen(answers, all, m)) return Cell();
                        return m < all.size() && (parts || !is_unknown(answers, all, m)) ? Cell(all[m]) : Cell();
                    });
}

}  // namespace waymark::answers
