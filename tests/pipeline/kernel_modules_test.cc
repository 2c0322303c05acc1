/// Kernel modules: recognition, load address, and called functions.
#include "../../src/pipeline/kernel_modules.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "support/temporary_folder.h"
#include "support/tiny_elf.h"

namespace waymark::pipeline {
namespace {

TEST(KernelModules, AreKnownByTheirNames) {
    for (const char* file :
         {"/lib/modules/6.1/kernel/x.ko", "/lib/modules/6.1/x-y.ko.xz", "x.ko.zst", "[x]", "[nf_nat]"})
        EXPECT_TRUE(is_kernel_module(file)) << file;
    for (const char* file :
         {"/usr/bin/x", "/lib/x.kou", "/tmp/.ko", "[kernel.kallsyms]_text", "[vdso]", "[vdso32]", "[vvar]", "[vectors]",
          "[sigpage]", "[uprobes]", "[vsyscall]", "[bpf]", "[guest.kernel]", "[]", "[x", "x]", "/a.ko.d/x"})
        EXPECT_FALSE(is_kernel_module(file)) << file;
    for (const char* file :
         {"[kernel.kallsyms]", "[kernel.kallsyms]_text", "[guest.kernel.kallsyms]", "[x]", "/lib/x.ko"})
        EXPECT_TRUE(is_kernel(file)) << file;
    for (const char* file : {"/usr/bin/x", "[vdso]", "[vectors]", "//anon", ""}) EXPECT_FALSE(is_kernel(file)) << file;
    EXPECT_TRUE(is_module_without_path("[x]"));
    EXPECT_FALSE(is_module_without_path("/x.ko"));
    EXPECT_FALSE(is_module_without_path("[]"));
}

TEST(KernelModules, AreCalledAsTheKernelCallsThem) {
    EXPECT_EQ(kernel_module_name("/lib/modules/6.1/x-y_z.ko.xz"), "x_y_z");
    EXPECT_EQ(kernel_module_name("a.ko"), "a");
    EXPECT_EQ(kernel_module_name("b.ko.ko.gz"), "b.ko");
    EXPECT_EQ(kernel_module_name("[x-y]"), "x-y");
    EXPECT_EQ(kernel_module_name("[a]"), "a");
    EXPECT_EQ(kernel_module_name("[]"), "[]");
}

constexpr std::string_view kallsyms_text =
    "ffff800000001000 t f\n"
    "ffff800000002000 T f\t[one]\n"
    "ffff800000003000 T f\n"
    "ffff800000004000 T f\t[two]\n"
    "ffff800000005000 t g\t[one]\n"
    "ffff800000006000 t g\n"
    "ffff800000007000 t h\n"
    "ffff800000008000 T h\t[one]\n"
    "ffff800000009000 D data\n";

TEST(KernelFunctions, TheKernelsOwnAreCalledFirst) {
    const TemporaryFolder folder;
    KernelFunctions functions;
    ASSERT_TRUE(functions.add_kallsyms(folder.write("kallsyms", kallsyms_text)).has_value());
    EXPECT_EQ(functions.address_of("f"), 0xffff800000003000);  // exported by the kernel
    EXPECT_EQ(functions.address_of("g"), 0xffff800000006000);  // two functions that can be called only from their own
                                                               // files
    EXPECT_EQ(functions.address_of("h"), 0xffff800000008000);  // exported
    EXPECT_EQ(functions.address_of("data"), std::nullopt);
    EXPECT_EQ(functions.address_of("i"), std::nullopt);
    EXPECT_FALSE(functions.add_kallsyms(folder.path() / "nothing").has_value());
}

TEST(KernelFunctions, AreThoseOfVmlinuxToo) {
    const TemporaryFolder folder;
    TinyElf elf;
    elf.is_64 = true;
    elf.machine = EM_AARCH64;
    elf.segments = {{PT_LOAD, 0x10000, std::vector<std::uint8_t>(64, 1)}};
    elf.symbols = {{"f", 0x10000, 8}, {"only_there", 0x10010, 8}};
    const auto vmlinux = folder.write("vmlinux", elf.build());
    KernelFunctions functions;
    ASSERT_TRUE(functions.add_kernel(vmlinux, 0x500000).has_value());
    EXPECT_EQ(functions.address_of("f"), 0x510000U);
    ASSERT_TRUE(functions.add_kallsyms(folder.write("kallsyms", kallsyms_text)).has_value());
    EXPECT_EQ(functions.address_of("f"), 0xffff800000003000);  // as it ran
    EXPECT_EQ(functions.address_of("only_there"), 0x510010U);
    EXPECT_FALSE(functions.add_kernel(folder.path() / "nothing", 0).has_value());
}

TEST(KernelFunctions, PlaceAModuleWhereMostOfItsFunctionsAre) {
    const TemporaryFolder folder;
    TinyElf elf;
    elf.is_64 = true;
    elf.machine = EM_AARCH64;
    elf.type = ET_REL;
    elf.sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, std::vector<std::uint8_t>(0x100, 1), 4, 0}};
    const auto function = [](const char* name, std::uint64_t at) {
        return TinyElf::Symbol{name, at, 8, STT_FUNC, STB_LOCAL, 1};
    };
    elf.symbols = {function("a", 0x00),
                   function("b", 0x10),
                   function("c", 0x20),
                   function("d", 0x30),
                   // Two functions with one name; the address is the one that other functions indicate.
                   function("twice", 0x40),
                   function("twice", 0x50),
                   {"object", 0x60, 8, STT_OBJECT, STB_LOCAL, 1}};
    const auto file = folder.write("mod.ko", elf.build());
    KernelFunctions functions;
    ASSERT_TRUE(functions
                    .add_kallsyms(folder.write("kallsyms", std::string_view("7000 t a\t[mod]\n"
                                                                            "7010 t b\t[mod]\n"
                                                                            "9020 t c\t[mod]\n"
                                                                            "7050 t twice\t[mod]\n"
                                                                            "7060 t object\t[mod]\n"
                                                                            "7070 t not_in_the_file\t[mod]\n"
                                                                            "5000 t a\t[other]\n"
                                                                            "5000 t a\t[torn]\n"
                                                                            "6010 t b\t[torn]\n"
                                                                            "5000 t z\t[strange]\n")))
                    .has_value());
    const auto place = functions.place("mod", file);
    ASSERT_TRUE(place.has_value());
    EXPECT_EQ(place->load_bias, 0x7000U);
    EXPECT_EQ(place->agreeing, 3U);
    EXPECT_EQ(place->others, 1U);
    EXPECT_EQ(functions.place("other", file)->load_bias, 0x5000U);
    EXPECT_EQ(functions.place("torn", file)->load_bias,
              0x5000U);  // the lower of two addresses that equally many functions indicate
    EXPECT_FALSE(functions.place("strange", file).has_value());
    EXPECT_FALSE(functions.place("unknown", file).has_value());
    EXPECT_FALSE(functions.place("mod", folder.path() / "nothing.ko").has_value());
}

}  // namespace
}  // namespace waymark::pipeline
