/// Converts `answers::Answers` to one HTML file that a browser opens from disk: no network, no other file. The page
/// itself is made from web/ when Waymark is built; this layer inserts the data.
#pragma once

#include <cstdint>
#include <string_view>

#include "waymark/answers/answers.h"
#include "waymark/answers/own_code.h"
#include "waymark/answers/steps.h"
#include "waymark/answers/views.h"
#include "waymark/core/byte_sink.h"
#include "waymark/core/result.h"

namespace waymark::report {

/// The page without data, as built from web/ into this library. Empty: the build has no page, for the reason in
/// `why_no_page`. Lives as long as the program.
[[nodiscard]] std::string_view built_in_page();
/// The reason why there is no page, and how to get one, in two sentences; empty if there is a page.
[[nodiscard]] std::string_view why_no_page();

/// Another capture, and the changes from the report's capture to it.
struct Against {
    const answers::Answers& after;
    const answers::DiffView& diff;
};

/// The requests that a page from a server can make (waymark serve).
struct Served {
    std::uint64_t instructions{};  ///< windows up to here can be requested
    std::uint64_t most{};          ///< instructions of a window
    bool complete = false;         ///< `instructions` is the whole run
    bool part = false;             ///< the page is of the beginning of the trace
    std::uint64_t begin{}, end{};  ///< of the page's window; 0 and 0: it is of the run
};

struct ReportOptions {
    std::uint64_t most_bytes = 10'000'000;  ///< of the file
    /// Maximum numbers of each kind for a browser; the cheapest items are omitted first. A compressed slice of the
    /// timeline takes from a tenth of a byte to ten bytes.
    std::uint32_t most_slices = 8'000'000, most_calls = 200'000, most_instructions = 300'000, most_rows = 20'000;
    std::string_view page = built_in_page();
    const Against* against = nullptr;
    const answers::Steps* steps = nullptr;            ///< steps to walk through; null: none
    bool is_window = false;                           ///< timeline and steps show a part of the run
    const Served* served = nullptr;                   ///< null: the page is a file
    std::uint32_t most_steps = 100'000;               ///< maximum number of ranges
    answers::CodeKind code = answers::CodeKind::own;  ///< up to this kind the page counts code as the program's own
};

struct ReportSize {
    std::uint64_t bytes{};  ///< of the file
    /// Parts that the file omits to stay within its bounds: the report's health names them.
    std::uint32_t reductions{};
};

/// Writes the file. Its health names the parts that were omitted to stay within the bounds of `options`. `unsupported`:
/// there is no page; `usage`: the page lacks the places for data, or is itself larger than `most_bytes`. Nothing is
/// written then.
[[nodiscard]] Result<ReportSize> write_report(const answers::Answers& answers, const ReportOptions& options,
                                              ByteSink& sink);

}  // namespace waymark::report
