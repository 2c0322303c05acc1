/// Commands of the program, each in a fork of the test, which takes a tenth of the time that starting the program does.
#pragma once

#include <string>
#include <vector>

namespace waymark::account_test {

struct CommandResult {
    int status = -1;  ///< as of the program; -1: it did not end by itself
    std::string out, errors;
};

/// `waymark` with these arguments. Precondition: the test has one thread.
[[nodiscard]] CommandResult run_command(const std::vector<std::string>& arguments);

}  // namespace waymark::account_test
