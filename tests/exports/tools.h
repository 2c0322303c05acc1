/// Runs the programs that exports are for; and keeps exports in memory or in files.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "support/shell.h"
#include "support/temporary_folder.h"
#include "waymark/core/byte_sink.h"
#include "waymark/exports/export.h"

namespace waymark::support {

/// The output of a shell command, including standard error, and its status.
struct Ran {
    std::string output;
    int status = -1;
};
inline Ran run(const std::string& command) {
    Ran ran;
    std::FILE* const pipe = ::popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) return ran;
    char buffer[4096];
    for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) != 0;) ran.output.append(buffer, n);
    const int status = ::pclose(pipe);
    ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    return ran;
}
inline bool has_tool(const std::string& name) {
    return std::system(("command -v " + name + " > /dev/null 2>&1").c_str()) == 0;
}

/// An export as text, and its report. Fails the test if there is none.
struct Written {
    std::string text;
    exports::ExportReport report;
    [[nodiscard]] std::string notes() const {
        std::string out;
        for (const std::string& note : report.notes) out += note + "\n";
        return out;
    }
};
template <class Write>
Written written(Write&& write) {
    ByteCollector collector;
    Result<exports::ExportReport> report = write(static_cast<ByteSink&>(collector));
    EXPECT_TRUE(report) << (report ? "" : report.error().message);
    Written out;
    if (!report) return out;
    out.text.assign(collector.bytes().begin(), collector.bytes().end());
    out.report = std::move(*report);
    EXPECT_EQ(out.report.bytes, out.text.size());
    return out;
}

}  // namespace waymark::support

/// Comes first in a test that runs a program: without the program, skips the test with a message.
#define WM_NEEDS_TOOL(name) \
    if (!::waymark::support::has_tool(name)) GTEST_SKIP() << "no " << (name) << ": install it to run this test"
