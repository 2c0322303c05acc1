/// Checks statements of tables, documents, exports, the page and gates about a run against the truth: each figure by
/// the output's own word for it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "support/run_counts.h"
#include "waymark/answers/account.h"
#include "waymark/answers/answers.h"

namespace waymark::account_test {

/// The seeds that a property test runs.
struct Seeds {
    std::uint64_t first = 1, last = 0;
};
/// 1 to `last`, or to the number in WAYMARK_PROPERTY_PROGRAMS; WAYMARK_PROPERTY_SEED names one that runs alone, as a
/// failure prints it.
[[nodiscard]] Seeds seeds_to(std::uint64_t last);

/// What a test knows of a run of a program without any decoder.
struct KnownRun {
    const RunCounts& counts;
    /// The source line of an instruction, each of which has its own; empty: there are no lines.
    std::function<std::uint32_t(std::uint64_t address)> line_of{};
};

/// The first word or sentence about the run in the page, tables, databases and answers files that differs from the
/// account; empty: there is none. `folder`: for files.
[[nodiscard]] std::string wrong_words_in(const answers::Answers& answers, const std::filesystem::path& folder);

/// The first figure in the page, tables, databases and exports that claims more than was observed; empty: there is
/// none. `turn` selects costly outputs, and some values of each.
[[nodiscard]] std::string wrong_figure_in(const answers::Answers& answers, const KnownRun& run,
                                          const std::filesystem::path& folder, std::uint64_t turn);

/// The same for commands on an answers file, and their status: `turn` selects a command.
[[nodiscard]] std::string wrong_in_commands(const answers::Answers& answers, const KnownRun& run,
                                            const std::filesystem::path& folder, std::uint64_t turn);

/// The same for a capture folder with this account, whose program is `image`: `turn` selects a command.
[[nodiscard]] std::string wrong_in_capture(const answers::Account& account, const KnownRun& run,
                                           const std::filesystem::path& capture, const std::filesystem::path& image,
                                           std::uint64_t turn);

/// The account without the rows of these reasons.
[[nodiscard]] answers::Account without(answers::Account account, const std::vector<answers::AccountReason>& reasons);

/// During its lifetime, no account has rows of these reasons, from any producer.
class WithoutReasons {
public:
    explicit WithoutReasons(std::vector<answers::AccountReason> reasons);
    WithoutReasons(const WithoutReasons&) = delete;
    WithoutReasons& operator=(const WithoutReasons&) = delete;
    ~WithoutReasons();
};

}  // namespace waymark::account_test
