/// Merges texts: findings, clauses of trust, the summary.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "merge_rows.h"

namespace waymark::answers {

/// The clauses of a text that separates them by semicolons.
[[nodiscard]] std::set<std::string> clauses_of(const std::string& text);
[[nodiscard]] std::string joined_clauses(const std::set<std::string>& clauses);

class MergedWords {
public:
    void add(const Answers& a);
    /// Call it when the functions of the result are complete. `changed_images`: MergedCode::changed_images.
    void finish(Answers& out, const std::set<std::string>& changed_images);

private:
    using Clauses = std::set<std::string>;
    struct Believed {
        Clauses exact, estimated, not_known;
    };
    using FindingKey = std::tuple<int, std::string, std::string, bool, std::string>;

    void add_finding(const Finding& f);
    void add_note(std::string what) { add_finding({Finding::Severity::note, std::move(what)}); }
    void add_health(const Answers& a);
    void add_trust(const Answers& a);
    void add_figures(const Answers& a);

    bool some_with_calls_ = false, some_without_calls_ = false;
    RowsByKey<FindingKey, Finding> health_;
    std::map<std::string, Believed> views_;
    RowsByKey<std::pair<std::ptrdiff_t, std::string>, Figure> figures_;
};

}  // namespace waymark::answers
