/// Instructions as text, for people. Decoding never depends on it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "waymark/flow/flow.h"
#include "waymark/isa/isa.h"

namespace waymark::cli {

class Disassembler {
public:
    Disassembler();
    ~Disassembler();
    Disassembler(const Disassembler&) = delete;
    Disassembler& operator=(const Disassembler&) = delete;

    /// One line per instruction of the block: address, opcode, mnemonic. An instruction the disassembler does not know
    /// is shown by its opcode alone.
    [[nodiscard]] std::vector<std::string> lines(const isa::CodeReader& code, const isa::Space& space,
                                                 const flow::Block& block);

private:
    struct Handles;
    std::unique_ptr<Handles> handles_;
};

}  // namespace waymark::cli
