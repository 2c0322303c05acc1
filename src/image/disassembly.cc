#include "waymark/image/disassembly.h"

#include <capstone/capstone.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "waymark/isa/decode_instr.h"
#include "waymark/isa/x86.h"

namespace waymark::image {

struct Disassembler::Handles {
    std::array<csh, 4> modes{};  // handles for ARM, Thumb, A64, x86-64
    bool open = false;

    Handles() {
        open = cs_open(CS_ARCH_ARM, CS_MODE_ARM, &modes[0]) == CS_ERR_OK &&
               cs_open(CS_ARCH_ARM, static_cast<cs_mode>(CS_MODE_THUMB | CS_MODE_V8), &modes[1]) == CS_ERR_OK &&
               cs_open(CS_ARCH_ARM64, CS_MODE_ARM, &modes[2]) == CS_ERR_OK &&
               cs_open(CS_ARCH_X86, CS_MODE_64, &modes[3]) == CS_ERR_OK;
    }
    ~Handles() {
        for (csh& mode : modes)
            if (mode != 0) cs_close(&mode);
    }
    [[nodiscard]] std::string text(std::size_t mode, Bytes bytes, std::uint64_t address) const {
        cs_insn* instruction = nullptr;
        const std::size_t count =
            open ? cs_disasm(modes[mode], bytes.data(), bytes.size(), address, 1, &instruction) : 0;
        if (count == 0) return {};
        const std::string_view operands = instruction->op_str;
        std::string out = fmt::format("{}{}{}", instruction->mnemonic, operands.empty() ? "" : " ", operands);
        cs_free(instruction, count);
        return out;
    }
    Handles(const Handles&) = delete;
    Handles& operator=(const Handles&) = delete;
};

Disassembler::Disassembler() = default;
Disassembler::~Disassembler() = default;

Disassembler::One Disassembler::one(const isa::CodeReader& code, const isa::Space& space, std::uint64_t address,
                                    isa::Isa isa) {
    if (!handles_) handles_ = std::make_unique<Handles>();
    if (isa == isa::Isa::x86_64) return one_x86(code, space, address);
    const bool a64 = isa == isa::Isa::a64, thumb = !a64 && isa != isa::Isa::a32;
    const isa::Fetched fetched = isa::fetch(code, space, {address}, isa);
    if (fetched.bytes == 0) return {};
    std::array<std::uint8_t, 4> bytes{};
    const auto put = [&](std::size_t index, std::uint32_t halfword) {
        bytes[index] = static_cast<std::uint8_t>(halfword);
        bytes[index + 1] = static_cast<std::uint8_t>(halfword >> 8);
    };
    if (!thumb || fetched.bytes == 2) {
        put(0, fetched.opcode & 0xffff);
        put(2, fetched.opcode >> 16);
    } else {
        put(0, fetched.opcode >> 16);
        put(2, fetched.opcode & 0xffff);
    }
    One out{fetched.bytes == 2 ? fmt::format("{:04x}", fetched.opcode)
            : thumb            ? fmt::format("{:04x} {:04x}", fetched.opcode >> 16, fetched.opcode & 0xffff)
                               : fmt::format("{:08x}", fetched.opcode),
            {},
            fetched.bytes};
    out.text = handles_->text(a64 ? 2 : thumb ? 1 : 0, Bytes(bytes).first(fetched.bytes), address);
    return out;
}

Disassembler::One Disassembler::one_x86(const isa::CodeReader& code, const isa::Space& space, std::uint64_t address) {
    std::array<std::uint8_t, isa::longest_x86_instr> bytes{};
    const Bytes known = Bytes(bytes).first(isa::read(code, space, {address}, bytes));
    const auto what = isa::decode_x86_instr({address}, known);
    if (!what) return {};
    const Bytes own = known.first(what->bytes);
    return {fmt::format("{:02x}", fmt::join(own, " ")), handles_->text(3, own, address), what->bytes};
}

std::string Disassembler::text(const isa::CodeReader& code, const isa::Space& space, std::uint64_t address,
                               isa::Isa isa) {
    const One found = one(code, space, address, isa);
    return found.text.empty() ? found.opcode : found.text;
}

std::vector<std::string> Disassembler::lines(const isa::CodeReader& code, const isa::Space& space, std::uint64_t start,
                                             std::uint64_t bytes, isa::Isa isa) {
    std::vector<std::string> out;
    for (std::uint64_t at = start; at < start + bytes;) {
        const One found = one(code, space, at, isa);
        if (found.bytes == 0) break;
        out.push_back(found.text.empty() ? fmt::format("{:08x}  {}", at, found.opcode)
                                         : fmt::format("{:08x}  {:<9}  {}", at, found.opcode, found.text));
        at += found.bytes;
    }
    return out;
}

}  // namespace waymark::image
