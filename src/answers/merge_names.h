/// Merges the tables that other tables refer to: metrics, images, sources, functions, inlined calls.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "merge_rows.h"

namespace waymark::answers {

/// Rows keep their order of arrival until finish() sorts them. Where an earlier decision depends on the order of the
/// result, keys are compared.
class MergedNames {
public:
    /// Adds these tables of `a`. Returns the indices of its rows in the sum.
    [[nodiscard]] RowMover::Maps add(Answers& a);

    /// Compare by the order of the result. No source and no inlined call precede all others; no function comes last.
    [[nodiscard]] bool source_before(Index a, Index b) const;
    [[nodiscard]] bool inlined_before(Index a, Index b) const;
    [[nodiscard]] bool function_before(Index a, Index b) const;
    /// Keeps the later of two places in a source.
    void take_place(Index& source, std::uint32_t& line, Index other_source, std::uint32_t other_line) const;

    /// Index of the image that contains a function, or none.
    [[nodiscard]] Index image_of(Index function) const {
        return function < functions_.size() ? functions_[function].row.image : none;
    }
    [[nodiscard]] const Image& image(Index image) const { return images_[image].row; }

    /// Index of the metric that comes first in the result, by which tables are sorted.
    [[nodiscard]] std::size_t first_metric() const { return first_metric_; }
    /// Distance from the sum's addresses of an image to its load address in `a`. The image is given, or found from a
    /// function.
    [[nodiscard]] std::uint64_t shift_of_image(const Answers& a, const RowMover::Maps& maps, Index image) const;
    [[nodiscard]] std::uint64_t shift_of_function(const Answers& a, const RowMover::Maps& maps, Index function) const;

    /// Moves the tables into the result. Returns the indices of the sum's rows in it.
    [[nodiscard]] RowMover::Maps finish(Answers& out);
    /// After finish(): distance by which addresses of a function's code in the sum have to be moved.
    [[nodiscard]] std::uint64_t shift_to_result(Index function) const {
        return function < shifts_.size() ? shifts_[function] : 0;
    }

private:
    /// Keys do not depend on the load address.
    using ImageKey = std::pair<std::string, std::string>;  // build ID, or else its name
    struct MergedImage {
        Image row;
        ImageKey key;
        std::string first_name;  ///< names of functions without symbols contain it until the image has its final name
        std::uint64_t first_bias{};  ///< load bias that addresses refer to
    };
    struct MergedFunction {
        Function row;  ///< without a name
        std::uint64_t address{};
        std::string key_name, name, name_by_image;
        bool synthetic{};
    };

    void add_metrics(const Answers& a, RowMover::Maps& maps);
    void add_images(Answers& a, RowMover::Maps& maps);
    void add_sources(Answers& a, RowMover::Maps& maps);
    void add_functions(Answers& a, RowMover::Maps& maps);
    void add_inlined(Answers& a, RowMover::Maps& maps);
    [[nodiscard]] std::strong_ordering order_of_functions(Index a, Index b) const;
    [[nodiscard]] bool sibling_before(Index a, Index b) const;

    std::vector<Metric> metrics_;
    std::size_t first_metric_ = 0;
    std::vector<MergedImage> images_;
    std::map<ImageKey, Index> image_places_;
    std::vector<SourceFile> sources_;
    PlaceTable source_places_;
    std::vector<MergedFunction> functions_;
    PlaceTable function_places_;
    std::vector<InlinedCall> inlined_;
    PlaceTable inlined_places_;
    std::vector<std::uint64_t> shifts_;
};

}  // namespace waymark::answers
