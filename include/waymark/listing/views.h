/// Views of answers (waymark/answers/views.h) as text, TSV and JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "waymark/answers/views.h"
#include "waymark/listing/text.h"

namespace waymark::listing {

struct ViewLayout {
    LineFormat format{};
    std::uint64_t limit = 20;  ///< maximum rows of text; 0: all
    std::size_t widest = 60;   ///< maximum length of a name in text; 0: unlimited
};

/// Prints a view. In text and JSON, the capture, how much of the run it covers, and warnings about the figures precede
/// the rows.
void print_view(TextSink& out, const answers::Answers& answers, const answers::View& view, const ViewLayout& layout);
/// The same for the differences of two captures, which `options` asked for.
void print_diff(TextSink& out, const answers::Answers& before, const answers::Answers& after,
                const answers::DiffView& differences, const answers::DiffOptions& options, const ViewLayout& layout);

/// A finding as one sentence, with what to do.
[[nodiscard]] std::string finding_sentence(const answers::Finding& finding);

/// Prints the `most` most costly rows (0: all) of the tree of callers and callees. Names are shortened to fit the
/// terminal.
void print_calls_tree(TextSink& out, const answers::Answers& answers, std::uint64_t most);

}  // namespace waymark::listing
