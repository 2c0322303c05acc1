/// Instructions as text, for readers. Decoding does not depend on it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "waymark/isa/isa.h"

namespace waymark::image {

class Disassembler {
public:
    Disassembler();
    ~Disassembler();
    Disassembler(const Disassembler&) = delete;
    Disassembler& operator=(const Disassembler&) = delete;

    /// A line for each instruction of a block: address, opcode, mnemonic. An instruction that the disassembler does not
    /// know is shown by its opcode alone.
    [[nodiscard]] std::vector<std::string> lines(const isa::CodeReader& code, const isa::Space& space,
                                                 std::uint64_t start, std::uint64_t bytes, isa::Isa isa);

    /// Mnemonic and operands of one instruction; its opcode if the disassembler does not know it. Empty if the memory
    /// is not known.
    [[nodiscard]] std::string text(const isa::CodeReader& code, const isa::Space& space, std::uint64_t address,
                                   isa::Isa isa);

private:
    struct One {
        std::string opcode, text;
        std::uint8_t bytes = 0;
    };
    One one(const isa::CodeReader& code, const isa::Space& space, std::uint64_t address, isa::Isa isa);
    One one_x86(const isa::CodeReader& code, const isa::Space& space, std::uint64_t address);

    struct Handles;
    std::unique_ptr<Handles> handles_;
};

}  // namespace waymark::image
