/// The arguments that the recorder passes to the plugin (plugin.cc).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace waymark::record::plugin {

/// Addresses for which QEMU's log shows how execution came there: an instruction of a processor's vector table, or the
/// reset address.
struct Watched {
    std::uint64_t first, end;
};

/// The options are never freed: QEMU's threads still run while the program ends.
struct Options {
    bool exact = true;            ///< reports where blocks were left early
    bool memory_mode = false;     ///< memory accesses as well
    bool sized = false;           ///< memory mode: accesses with their size, and blocks left early
    bool report_threads = false;  ///< reports kernel thread IDs, and changes of their names
    bool a64 = false;             ///< an AArch64 program or system
    bool children = false;        ///< forked children are recorded
    bool system_mode = false;     ///< a whole system
    const char* ring = "";        ///< path of the shared memory; like `log`, an argument of the installation
    const char* log = "";         ///< path of QEMU's log
    const std::string* signal_folder = nullptr;  ///< with QEMU's log of each thread's signals
    std::vector<Watched>* watched = nullptr;
};

#pragma GCC visibility push(hidden)
extern Options options;
#pragma GCC visibility pop

/// Reads the arguments into `options`; false if one cannot be read.
bool read_options(int argc, char** argv);

}  // namespace waymark::record::plugin
