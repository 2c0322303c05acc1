/// The text of --help, as wide as the terminal.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace waymark::cli {

class HelpFormatter final : public CLI::Formatter {
public:
    /// `columns`: how many a line has; less than 40 counts as 40.
    explicit HelpFormatter(std::size_t columns);
    [[nodiscard]] std::string make_help(const CLI::App* command, std::string name,
                                        CLI::AppFormatMode mode) const override;

private:
    void add_row(std::string& out, const std::string& left, std::string_view right) const;
    void add_footer(std::string& out, const CLI::App& command) const;

    std::size_t columns_, left_;
};

}  // namespace waymark::cli
