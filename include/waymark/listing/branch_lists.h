/// Files of branch lists, described as text, TSV and JSON.
#pragma once

#include <string>

#include "waymark/answers/branch_list.h"
#include "waymark/listing/text.h"

namespace waymark::listing {

void print_branch_lists(TextSink& out, const std::string& capture, const answers::BranchLists& lists,
                        LineFormat format);

}  // namespace waymark::listing
