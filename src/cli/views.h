/// Prints views of answers (waymark/answers/views.h).
#pragma once

#include <cstdint>
#include <string>

#include "output.h"
#include "waymark/answers/views.h"

namespace waymark::cli {

/// How a view is printed.
struct ViewFormat {
    std::string format = "text";
    std::uint64_t limit = 20;  ///< rows of text; 0: all
    bool wide = false;         ///< text shows names whole
    /// The most characters of a name in text; 0: any number.
    [[nodiscard]] std::size_t widest() const { return wide ? 0 : 60; }
};

/// How much of the run a capture shows, a line for each state.
void print_account(Output& out, const answers::Account& account, std::size_t indent = 9);

/// The head of every view: the capture, and what to know before trusting the rest.
void print_head(Output& out, const answers::Answers& answers);

/// The same warnings on standard error, for output without such a head; `named`: with the capture's name. What was said
/// already, such as why the capture could not be read to its end, is not repeated.
void say_head(const answers::Answers& answers, bool named = false);

// The exit status: `nothing` if a gate fails or there is nothing to show; standard error says why.
[[nodiscard]] ExitStatus show(const answers::Answers& answers, const Result<answers::View>& view, const ViewFormat& how,
                              Output& out);
[[nodiscard]] ExitStatus show_diff(const answers::Answers& before, const answers::Answers& after,
                                   const answers::DiffOptions& options, const ViewFormat& how, Output& out);

/// Who called whom, as a tree.
void print_calls(Output& out, const answers::Answers& answers);

}  // namespace waymark::cli
