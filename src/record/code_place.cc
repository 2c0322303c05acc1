#include "waymark/record/code_place.h"

#include <fmt/format.h>

#include "waymark/image/debug_info.h"
#include "waymark/image/program_kind.h"
#include "waymark/image/symbols.h"

namespace waymark::record {

std::string CodePlace::text() const {
    if (!name_.empty()) return name_;
    return symbol_.empty() && address_ ? fmt::format("{:#x}", address_->value) : symbol_;
}

void CodePlace::mapped(const std::string& file, Address at, std::uint64_t offset, std::uint64_t bytes) {
    if (symbol_.empty() || file.empty() || (!file_.empty() && file != file_)) return;
    const auto [known, fresh] = found_.try_emplace(file);
    if (fresh) {
        image::Symbols symbols;
        if (symbols.add_elf(file))
            if (const auto address = symbols.function_called(symbol_)) {
                const auto symbol = symbols.find(*address);
                known->second = {*address, symbol ? symbol->symbol.bytes : 0};
            }
    }
    if (!known->second) return;
    const auto info = image::DebugInfo::open(file);
    if (!info) return;
    const auto bias = info->load_bias(at, offset, bytes);
    if (!bias) return;
    const auto kind = image::program_kind(file);
    const std::uint64_t address_space = kind && kind->aarch64 ? ~std::uint64_t{0} : 0xffffffff;
    address_ = Address{(known->second->first.value + *bias) & address_space};
    bytes_ = known->second->second;
    file_ = file;
}

}  // namespace waymark::record
