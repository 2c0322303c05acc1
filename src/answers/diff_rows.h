/// Rows of a comparison: functions of both sides, what each cost, and how much it grew.
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

/// How much more it is, at most the largest number there is.
[[nodiscard]] inline std::int64_t difference(std::uint64_t after, std::uint64_t before) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (after >= before) return static_cast<std::int64_t>(std::min(after - before, most));
    return -static_cast<std::int64_t>(std::min(before - after, most));
}

struct DiffSide {
    std::uint64_t cost{}, calls{}, samples{};  ///< samples: of estimates from samples
    bool there{};
};
/// Of a function, or of several that are one row.
struct DiffChange {
    DiffSide before, after;
    std::string image{};   ///< as DiffImages calls it
    std::string source{};  ///< path of the file it begins in
    std::string shown{};   ///< its name, with what distinguishes it from others of that name
    bool several{};        ///< functions of one name, which nothing distinguishes
    bool unnamed{};        ///< code without a symbol
    [[nodiscard]] std::int64_t change() const { return difference(after.cost, before.cost); }
};
/// What was spent.
struct DiffSums {
    std::uint64_t all{};     ///< by everything, of which shares are
    std::uint64_t chosen{};  ///< by what --only asks for
};

/// `1.50`, `12,345.00`; what is not 0 is never written as 0.00: `<0.01`. Of a value from 0 on; one decimal or two.
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

    /// Sums of estimates grow with how long was recorded; their shares do not.
    [[nodiscard]] bool by_share() const { return !metric_.exact; }

    /// How much a function, or the whole, grew: as a part of the whole before, or in points of share.
    [[nodiscard]] double growth(const DiffChange& row) const;
    [[nodiscard]] double growth_of_all() const;

    /// Samples: the intervals of both shares do not touch. Counts are as they are.
    [[nodiscard]] bool is_sure(const DiffChange& row) const;

    /// The images in which code of a row cannot be compared function by function; null: it can.
    [[nodiscard]] const ImagePair* uncompared(const DiffChange& row) const;
    /// Nothing can be said of how much it grew: the other side may know the same code by no name.
    [[nodiscard]] bool is_unjudged(const Row& row) const;
    enum class Limit : std::uint8_t { of_all, of_itself, count };
    [[nodiscard]] bool exceeds(const DiffChange& row, Limit limit) const;
    [[nodiscard]] bool exceeds_any(const DiffChange& row) const;
    /// In per cent of what it cost before, or of its share; nothing: it cost nothing.
    [[nodiscard]] std::optional<double> growth_of_itself(const DiffChange& row) const;

    /// The table, and sentences about sums.
    void show(View& view) const;
    [[nodiscard]] const DiffSums& before() const { return sum_before_; }
    [[nodiscard]] const DiffSums& after() const { return sum_after_; }
    [[nodiscard]] const std::map<RowKey, DiffChange>& rows() const { return rows_; }
    /// As they are shown.
    [[nodiscard]] const std::vector<const Row*>& order() const { return order_; }
    [[nodiscard]] const Answers& before_answers() const { return before_; }
    [[nodiscard]] const Answers& after_answers() const { return after_; }
    [[nodiscard]] const DiffOptions& options() const { return options_; }
    [[nodiscard]] const DiffNames& names() const { return names_; }
    [[nodiscard]] const DiffImages& images() const { return images_; }
    [[nodiscard]] const Metric& metric() const { return metric_; }

private:
    [[nodiscard]] Table table() const;
    /// Image, or else source file, distinguishes functions of one name.
    void call_rows();
    [[nodiscard]] std::string_view what(const DiffChange& r) const;
    [[nodiscard]] double weight(const DiffChange& row) const { return std::abs(growth(row)); }
    [[nodiscard]] bool calls() const;

    const Answers &before_, &after_;
    const DiffOptions& options_;
    const DiffNames& names_;
    const DiffImages& images_;
    Metric metric_;
    std::uint64_t stretches_after_;
    std::map<RowKey, DiffChange> rows_;
    std::vector<const Row*> order_;
    DiffSums sum_before_, sum_after_;
};

/// Says which functions cannot be compared, and what grew by more than the options allow.
void judge(View& view, const DiffRows& rows);

}  // namespace waymark::answers
