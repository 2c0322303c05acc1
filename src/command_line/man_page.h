/// Man pages, made from the texts of --help.
#pragma once

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace waymark::command_line {

/// The man page of a command in the language of man(7), section 1. `from`: the program and its version, as in
/// "Waymark 0.9.0"; `date`: YYYY-MM-DD.
[[nodiscard]] std::string man_page(const CLI::App& command, const std::string& from, const std::string& date);

/// The name of the page without its section: `waymark-spe-report`.
[[nodiscard]] std::string page_name(const CLI::App& command);

/// The day in the environment variable SOURCE_DATE_EPOCH, which reproducible builds set; otherwise today.
[[nodiscard]] std::string page_date();

}  // namespace waymark::command_line
