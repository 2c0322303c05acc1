/// Blocks of A32 code for tests of recordings that need no program.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "waymark/record/ring.h"

namespace waymark::support {

/// A chunk of definitions in the plugin's format.
class Definitions {
public:
    void block(std::uint32_t id, std::uint32_t address, const std::vector<std::uint32_t>& code) {
        static const std::string text = "nop ";
        record::BlockPart part;
        part.id = id;
        part.address = address;
        part.instructions = static_cast<std::uint32_t>(code.size());
        part.code_bytes = part.instructions * 4;
        part.text_bytes = code.front() == 0xe320f000 ? static_cast<std::uint32_t>(text.size()) : 0;
        part.words = static_cast<std::uint32_t>(sizeof part / 4 + code.size() + (part.text_bytes + 3) / 4);
        const std::size_t at = words.size();
        words.resize(at + part.words);
        auto* to = reinterpret_cast<std::uint8_t*>(words.data() + at);
        std::memcpy(to, &part, sizeof part);
        std::memcpy(to + sizeof part, code.data(), part.code_bytes);
        std::memcpy(to + sizeof part + part.code_bytes, text.data(), part.text_bytes);
    }
    std::vector<std::uint32_t> words;
};

}  // namespace waymark::support
