/// The text of --help, fitted to the width of the terminal.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/command_line/program.h"

namespace waymark::command_line {

/// The word after --help or -h if it is a topic (program.h), or `all`: everything. Otherwise empty.
[[nodiscard]] std::string_view topic_asked_for(const Topics& topics, int argc, char** argv);
/// `waymark help [COMMAND…] [TOPIC]` as the command line that shows this help; empty if it is another command line.
[[nodiscard]] std::vector<std::string> as_help_option(const Topics& topics, int argc, char** argv);

/// The error in a command line that asks for help: a command or a topic that does not exist, and where to look. Empty
/// if there is none.
[[nodiscard]] std::string mistake_in_help(const Topics& topics, const CLI::App& app, int argc, char** argv);

class HelpFormatter final : public CLI::Formatter {
public:
    /// `columns`: width of a line; less than 40 counts as 40. `topics` outlive this object.
    HelpFormatter(const Topics& topics, std::size_t columns);
    /// Selects the topic that is shown; empty: what belongs to no topic.
    void show(std::string_view topic) { topic_ = topic; }
    [[nodiscard]] std::string make_help(const CLI::App* command, std::string name,
                                        CLI::AppFormatMode mode) const override;

private:
    void add_row(std::string& out, const std::string& left, std::string_view right) const;
    void add_options(std::string& out, const CLI::App& command) const;
    /// Adds a line that tells where the rest of the help is.
    void add_topics(std::string& out, const CLI::App& command) const;
    void add_footer(std::string& out, const CLI::App& command) const;
    [[nodiscard]] bool shows(std::string_view topic) const;

    const Topics& topics_;
    std::size_t columns_, left_;
    std::string topic_{};
};

}  // namespace waymark::command_line
