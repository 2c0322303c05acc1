/// Rows of a comparison: functions of both sides, the cost of each, and its growth.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "diff_images.h"
#include "diff_names.h"
#include "waymark/answers/table.h"
#include "waymark/answers/views.h"

namespace waymark::answers {

/// Difference of two costs, saturated at the largest number.
[[nodiscard]] inline std::int64_t difference(std::uint64_t after, std::uint64_t before) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (after >= before) return static_cast<std::int64_t>(std::min(after - before, most));
    return -static_cast<std::int64_t>(std::min(before - after, most));
}

struct DiffSide {
    std::uint64_t cost{}, calls{}, samples{};  ///< samples: number of samples, if costs are estimates
    bool there{};
};
/// The change of a function, or of several that share one row.
struct DiffChange {
    DiffSide before, after;
    std::string image{};   ///< key of the image in DiffImages
    std::string source{};  ///< path of the file it begins in
    std::string shown{};   ///< its name, with an addition if several functions have that name
    bool several{};        ///< several functions of one name that cannot be told apart
    bool unnamed{};        ///< code without a symbol
    [[nodiscard]] std::int64_t change() const { return difference(after.cost, before.cost); }
};
/// Total costs.
struct DiffSums {
    std::uint64_t all{};     ///< total cost, the base of shares
    std::uint64_t chosen{};  ///< total cost of what --only selects
};

/// A value ≥ 0 as text with one or two decimals: `1.50`, `12,345.00`. A value other than 0 is never written as 0.00,
/// but as `<0.01`.
[[nodiscard]] std::string percent_text(double value, unsigned decimals = 2);
/// `+1,234`.
[[nodiscard]] std::string signed_text(std::int64_t change);

class DiffRows {
public:
    using Row = std::pair<const RowKey, DiffChange>;

    /// Everything is borrowed.
    DiffRows(const Answers& before, const Answers& after, const DiffOptions& options, const DiffNames& names,
             const DiffImages& images, std::size_t metric_before, std::size_t metric_after);

    [[nodiscard]] bool empty() const { return rows_.empty(); }

    /// Sums of estimates grow with the length of the recording; shares do not.
    [[nodiscard]] bool by_share() const { return !metric_.exact; }

    /// Growth of a function, or of the total: as a part of the total before, or in points of share.
    [[nodiscard]] double growth(const DiffChange& row) const;
    [[nodiscard]] double growth_of_all() const;

    /// For samples: the confidence intervals of both shares do not overlap. Counts are always sure.
    [[nodiscard]] bool is_sure(const DiffChange& row) const;

    /// The images in which a row's code cannot be compared function by function; null if it can.
    [[nodiscard]] const ImagePair* uncompared(const DiffChange& row) const;
    /// Whether its growth cannot be judged, because the other side lacks symbols for this code.
    [[nodiscard]] bool is_unjudged(const Row& row) const;
    enum class Limit : std::uint8_t { of_all, of_itself, count };
    [[nodiscard]] bool exceeds(const DiffChange& row, Limit limit) const;
    [[nodiscard]] bool exceeds_any(const DiffChange& row) const;
    /// Growth in per cent of its own cost or share before; nullopt if that was 0.
    [[nodiscard]] std::optional<double> growth_of_itself(const DiffChange& row) const;

    /// The table, and sentences about sums.
    void show(View& view) const;
    [[nodiscard]] const DiffSums& before() const { return sum_before_; }
    [[nodiscard]] const DiffSums& after() const { return sum_after_; }
    [[nodiscard]] const std::map<RowKey, DiffChange>& rows() const { return rows_; }
    /// The rows in the order in which they are shown.
    [[nodiscard]] const std::vector<const Row*>& order() const { return order_; }
    [[nodiscard]] const Answers& before_answers() const { return before_; }
    [[nodiscard]] const Answers& after_answers() const { return after_; }
    [[nodiscard]] const DiffOptions& options() const { return options_; }
    [[nodiscard]] const DiffNames& names() const { return names_; }
    [[nodiscard]] const DiffImages& images() const { return images_; }
    [[nodiscard]] const Metric& metric() const { return metric_; }

private:
    [[nodiscard]] Table table() const;
    /// The image, or else the source file, distinguishes functions of one name.
    void call_rows();
    [[nodiscard]] std::string_view what(const DiffChange& r) const;
    [[nodiscard]] double weight(const DiffChange& row) const { return std::abs(growth(row)); }
    [[nodiscard]] bool calls() const;

    const Answers &before_, &after_;
    const DiffOptions& options_;
    const DiffNames& names_;
    const DiffImages& images_;
    Metric metric_, metric_after_;
    std::map<RowKey, DiffChange> rows_;
    std::vector<const Row*> order_;
    DiffSums sum_before_, sum_after_;
};

/// Reports functions that cannot be compared, and growth beyond the limits of the options.
void judge(View& view, const DiffRows& rows);

}  // namespace waymark::answers
