/// The text of --help, as wide as the terminal.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace waymark::cli {

/// The options with which many commands name a capture and select parts; explained once.
inline constexpr std::string_view capture_topic = "capture";

/// The word behind --help or -h, if it is a topic, a part of the help that is shown only if asked for, as in `waymark
/// record --help spe`; `all`: everything; else empty.
[[nodiscard]] std::string_view topic_asked_for(int argc, char** argv);
/// `waymark help [COMMAND…] [TOPIC]` as the command line that shows this help; empty if it is another command line.
[[nodiscard]] std::vector<std::string> as_help_option(int argc, char** argv);

/// What is wrong with a command line that asks for help: a command or a part of the help that does not exist, and where
/// to look. Empty: nothing.
[[nodiscard]] std::string mistake_in_help(const CLI::App& app, int argc, char** argv);

class HelpFormatter final : public CLI::Formatter {
public:
    /// `columns`: how many a line has; less than 40 counts as 40.
    explicit HelpFormatter(std::size_t columns);
    /// Which part of the help is shown; empty: what is in no topic.
    void show(std::string_view topic) { topic_ = topic; }
    [[nodiscard]] std::string make_help(const CLI::App* command, std::string name,
                                        CLI::AppFormatMode mode) const override;

private:
    void add_row(std::string& out, const std::string& left, std::string_view right) const;
    void add_options(std::string& out, const CLI::App& command) const;
    /// Where the rest of the help is.
    void add_topics(std::string& out, const CLI::App& command) const;
    void add_footer(std::string& out, const CLI::App& command) const;
    [[nodiscard]] bool shows(std::string_view topic) const;

    std::size_t columns_, left_;
    std::string topic_{};
};

}  // namespace waymark::cli
