#include "version.h"

#include <capstone/capstone.h>
#include <elfutils/version.h>
#include <fmt/format.h>
#include <oneapi/tbb/version.h>
#include <sqlite3.h>
#include <zlib.h>
#include <zstd.h>

#include "waymark/report/report.h"

namespace waymark::cli {

std::string version_text() {
    const std::string build = WAYMARK_BUILD;
    std::string out = "waymark " WAYMARK_VERSION "\n";
    out += fmt::format(
        "build: {}{}{}, {}, {}\n", build, build.empty() ? "" : ", ", WAYMARK_PROCESSOR, WAYMARK_COMPILER,
        report::built_in_page().empty() ? "without the page of waymark report" : "with the page of waymark report");
    out += fmt::format(
        "libraries: capstone {}.{}, elfutils {}.{}, fmt {}.{}.{}, oneTBB {}, SQLite {}, zlib {}, zstd {}", CS_API_MAJOR,
        CS_API_MINOR, _ELFUTILS_VERSION / 1000, _ELFUTILS_VERSION % 1000, FMT_VERSION / 10000, FMT_VERSION / 100 % 100,
        FMT_VERSION % 100, TBB_runtime_version(), sqlite3_libversion(), zlibVersion(), ZSTD_versionString());
    return out;
}

}  // namespace waymark::cli
