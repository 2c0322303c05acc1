/// Damaged ELF files: mapping and symbols must answer or give an error.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/symbols.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace waymark;
    if (size == 0) return 0;
    const std::vector<std::uint8_t> file(data, data + size);
    const std::uint64_t load_bias = data[size - 1] % 3 == 0 ? ~std::uint64_t{0xfff} : data[size - 1] % 3;

    image::MemoryMap map;
    if (const auto added = map.add_elf_bytes(file, load_bias, {}, "file")) {
        WM_CHECK(added->sections == map.sections().size());
        for (const image::Section& section : map.sections()) {
            const isa::Code first = map.at(section.address, {});
            WM_CHECK(!first.bytes.empty());
            unsigned sum = 0;
            for (const std::uint8_t byte : first.bytes) sum += byte;  // the sanitizer checks that the bytes are there
            WM_CHECK(sum <= first.bytes.size() * 255);
        }
        for (const image::Region& region : map.regions()) WM_CHECK(region.bytes != 0);
    } else {
        WM_CHECK(!added.error().message.empty() && map.empty());
    }

    image::Symbols symbols;
    if (const auto count = symbols.add_elf_bytes(file, load_bias, "file")) {
        WM_CHECK(*count == symbols.size());
        for (const image::Symbol& symbol : symbols.all()) {
            const auto found = symbols.find(symbol.address);
            WM_CHECK(!found || found->symbol.address + found->offset == symbol.address);
            WM_CHECK(symbols.address_of(symbol.linkage_name).has_value());
            static_cast<void>(symbols.contents(symbol.address));
        }
    }
    return 0;
}
