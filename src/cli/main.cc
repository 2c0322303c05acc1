#include <capstone/capstone.h>
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "commands.h"

namespace {

/// A function of libcapstone, which is loaded when an instruction is first shown as text: the relocations of its tables
/// take a quarter of the time in which the program starts. The functions below replace the library's for all
/// layers of the program.
template <class Function>
Function* of_capstone(const char* name) {
    static const std::string file = "libcapstone.so." + std::to_string(CS_API_MAJOR);
    static void* const library = dlopen(file.c_str(), RTLD_NOW);
    void* const found = library == nullptr ? nullptr : dlsym(library, name);
    if (found == nullptr) {
        std::fprintf(stderr, "waymark: error: instructions cannot be shown: %s\n", dlerror());
        std::_Exit(waymark::cli::unreadable);
    }
    return reinterpret_cast<Function*>(found);
}

}  // namespace

extern "C" {

cs_err CAPSTONE_API cs_open(cs_arch arch, cs_mode mode, csh* handle) {
    static auto* const function = of_capstone<decltype(cs_open)>("cs_open");
    return function(arch, mode, handle);
}
cs_err CAPSTONE_API cs_close(csh* handle) {
    static auto* const function = of_capstone<decltype(cs_close)>("cs_close");
    return function(handle);
}
std::size_t CAPSTONE_API cs_disasm(csh handle, const std::uint8_t* code, std::size_t size, std::uint64_t address,
                                   std::size_t count, cs_insn** instructions) {
    static auto* const function = of_capstone<decltype(cs_disasm)>("cs_disasm");
    return function(handle, code, size, address, count, instructions);
}
void CAPSTONE_API cs_free(cs_insn* instructions, std::size_t count) {
    static auto* const function = of_capstone<decltype(cs_free)>("cs_free");
    function(instructions, count);
}

}  // extern "C"

int main(int argc, char** argv) { return waymark::cli::run(argc, argv); }
