#include "waymark/image/disassembly.h"

#include <capstone/capstone.h>
#include <fmt/format.h>

#include <array>

#include "waymark/isa/decode_instr.h"

namespace waymark::image {

struct Disassembler::Handles {
    std::array<csh, 3> modes{};  // ARM, Thumb, A64
    bool open = false;

    Handles() {
        open = cs_open(CS_ARCH_ARM, CS_MODE_ARM, &modes[0]) == CS_ERR_OK &&
               cs_open(CS_ARCH_ARM, static_cast<cs_mode>(CS_MODE_THUMB | CS_MODE_V8), &modes[1]) == CS_ERR_OK &&
               cs_open(CS_ARCH_ARM64, CS_MODE_ARM, &modes[2]) == CS_ERR_OK;
    }
    ~Handles() {
        for (csh& mode : modes)
            if (mode != 0) cs_close(&mode);
    }
    Handles(const Handles&) = delete;
    Handles& operator=(const Handles&) = delete;
};

Disassembler::Disassembler() = default;
Disassembler::~Disassembler() = default;

Disassembler::One Disassembler::one(const isa::CodeReader& code, const isa::Space& space, std::uint64_t address,
                                    isa::Isa isa) {
    if (!handles_) handles_ = std::make_unique<Handles>();
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
    cs_insn* instruction = nullptr;
    const std::size_t count = handles_->open ? cs_disasm(handles_->modes[a64     ? 2
                                                                         : thumb ? 1
                                                                                 : 0],
                                                         bytes.data(), fetched.bytes, address, 1, &instruction)
                                             : 0;
    if (count != 0) {
        const std::string_view operands = instruction->op_str;
        out.text = fmt::format("{}{}{}", instruction->mnemonic, operands.empty() ? "" : " ", operands);
        cs_free(instruction, count);
    }
    return out;
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
