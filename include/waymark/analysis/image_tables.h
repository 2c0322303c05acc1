/// From what sinks kept of each stream to the exact tables of ranges and branches, by image and address in its file:
/// what compilers' tools take, and what answers of one build have in common wherever it was loaded.
#pragma once

#include <vector>

#include "waymark/analysis/flow_answers.h"
#include "waymark/answers/answers.h"
#include "waymark/flow/flow.h"

namespace waymark::analysis {

/// What the branch is that ends a block.
[[nodiscard]] answers::Branch::Kind branch_kind(const flow::Block& block);

/// Sets how far images were loaded from the addresses in their files. `answers`: of fill_flow_answers with these files.
void place_images(answers::Answers& answers, const std::vector<ProgramFile>& files);

/// Fills `ranges` and `jumps`. Code of no file, such as generated code, is in neither; where branches lead there, it is
/// not known to what. `answers`: of fill_flow_answers with these streams and files.
void fill_image_tables(answers::Answers& answers, const std::vector<FlowStream>& streams,
                       const std::vector<ProgramFile>& files);

}  // namespace waymark::analysis
