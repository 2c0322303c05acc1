/// All fuzz targets in one program: the name under which it runs, fuzz_<target>, chooses one. libFuzzer has `main`.
#include <sys/personality.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#define WM_FUZZ_TARGET(name) extern "C" int fuzz_##name(const std::uint8_t* data, std::size_t size);
#include "targets.inc"
#undef WM_FUZZ_TARGET

namespace {

struct Target {
    std::string_view program;
    int (*run)(const std::uint8_t*, std::size_t);
};

constexpr Target targets[] = {
#define WM_FUZZ_TARGET(name) {"fuzz_" #name, fuzz_##name},
#include "targets.inc"
#undef WM_FUZZ_TARGET
};

int (*chosen)(const std::uint8_t*, std::size_t) = nullptr;

/// Starts the program again with its stack and heap at the same addresses each time. libFuzzer's next inputs depend on
/// compared values, and some are addresses. Where the system forbids it, the program continues unchanged.
void place_as_always(char** arguments) {
    const int now = personality(0xffff'ffff);
    if (now == -1 || (now & ADDR_NO_RANDOMIZE) != 0) return;
    if (personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) == -1) return;
    execv("/proc/self/exe", arguments);
}

}  // namespace

/// Called once by libFuzzer, before the first input.
extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** argv) {
    place_as_always(*argv);
    std::string_view name = **argv;
    if (const auto slash = name.rfind('/'); slash != std::string_view::npos) name.remove_prefix(slash + 1);
    for (const Target& target : targets) {
        if (target.program == name) chosen = target.run;
    }
    if (!chosen) {
        std::fprintf(stderr, "fuzz: run it under the name of a target:\n");
        for (const Target& target : targets) std::fprintf(stderr, "    %s\n", target.program.data());
        std::exit(2);
    }
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) { return chosen(data, size); }
