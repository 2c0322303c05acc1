/// Computes exact tables of ranges and branches, by image and address in its file, from the sinks' results for each
/// stream: compilers' tools take these, and they are equal for all answers of one build, wherever it was loaded.
#pragma once

#include <vector>

#include "waymark/analysis/flow_answers.h"
#include "waymark/answers/answers.h"
#include "waymark/flow/flow.h"

namespace waymark::analysis {

/// The kind of the branch that ends a block.
[[nodiscard]] answers::Branch::Kind branch_kind(const flow::Block& block);

/// Sets the load biases of images. `answers`: from fill_flow_answers with these files.
void place_images(answers::Answers& answers, const std::vector<ProgramFile>& files);

/// Fills `ranges` and `jumps`. Code without a file, such as generated code, is in neither; branches to such code have
/// no target. `answers`: from fill_flow_answers with these streams and files.
void fill_image_tables(answers::Answers& answers, const std::vector<FlowStream>& streams,
                       const std::vector<ProgramFile>& files);

}  // namespace waymark::analysis
