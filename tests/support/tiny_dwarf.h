/// Debug information for handmade files: every instruction is a separate line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/tiny_elf.h"

namespace waymark {

/// Writes a unit of compilation (DWARF 4) for each stretch of code. Instructions are `step` bytes, or a multiple.
class TinyDwarf {
public:
    static constexpr std::string_view source = "/src/code.c";
    TinyDwarf(bool is_64, std::uint8_t step) : address_bytes_(is_64 ? 8 : 4), step_(step) {}

    void add(std::uint64_t address, std::uint64_t bytes) {
        stretches_.push_back({address, bytes, next_line_});
        next_line_ += static_cast<std::uint32_t>(bytes / step_);
    }
    /// The line of the instruction at an address; 0: there is none.
    [[nodiscard]] std::uint32_t line_of(std::uint64_t address) const {
        for (const Stretch& s : stretches_)
            if (address - s.address < s.bytes)
                return s.first_line + static_cast<std::uint32_t>((address - s.address) / step_);
        return 0;
    }
    void write(TinyElf& elf) const {
        std::vector<std::uint8_t> info, lines;
        for (const Stretch& s : stretches_) {
            unit(info, s, lines.size());
            program(lines, s);
        }
        constexpr std::uint64_t none = 0;
        elf.sections.push_back(
            {.name = ".debug_abbrev",
             .flags = none,
             // 1: DW_TAG_compile_unit without children: name, stmt_list, low_pc, high_pc as a length, language.
             .bytes = {1, 0x11, 0, 0x03, 0x08, 0x10, 0x17, 0x11, 0x01, 0x12, 0x06, 0x13, 0x05, 0, 0, 0},
             .alignment = 1});
        elf.sections.push_back({.name = ".debug_info", .flags = none, .bytes = info, .alignment = 1});
        elf.sections.push_back({.name = ".debug_line", .flags = none, .bytes = lines, .alignment = 1});
    }

private:
    struct Stretch {
        std::uint64_t address{}, bytes{};
        std::uint32_t first_line{};
    };
    using Out = std::vector<std::uint8_t>;
    static void number(Out& out, std::uint64_t value, unsigned bytes) {
        for (unsigned i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
    }
    static void uleb(Out& out, std::uint64_t value) {
        do {
            out.push_back(static_cast<std::uint8_t>((value & 0x7f) | (value > 0x7f ? 0x80 : 0)));
            value >>= 7;
        } while (value != 0);
    }
    static void text(Out& out, std::string_view value) {
        out.insert(out.end(), value.begin(), value.end());
        out.push_back(0);
    }
    /// Appends contents after a length field.
    static void append(Out& out, const Out& contents) {
        number(out, contents.size(), 4);
        out.insert(out.end(), contents.begin(), contents.end());
    }
    void unit(Out& info, const Stretch& s, std::size_t lines_at) const {
        Out out;
        number(out, 4, 2);  // version
        number(out, 0, 4);  // where the abbreviations are
        out.push_back(address_bytes_);
        out.push_back(1);
        text(out, source);
        number(out, lines_at, 4);
        number(out, s.address, address_bytes_);
        number(out, s.bytes, 4);
        number(out, 0x0c, 2);  // C99
        append(info, out);
    }
    void program(Out& lines, const Stretch& s) const {
        Out head{step_, 1, 1, 1, 1, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1};
        head.push_back(0);  // no folders
        text(head, source);
        head.insert(head.end(), {0, 0, 0, 0});  // its folder, time and length; the end of the list
        Out out;
        number(out, 4, 2);
        append(out, head);
        out.insert(out.end(), {0, static_cast<std::uint8_t>(1 + address_bytes_), 2});  // set_address
        number(out, s.address, address_bytes_);
        out.push_back(3);  // advance_line, which takes a signed number: one byte more keeps the sign
        number_sleb(out, s.first_line - 1);
        out.push_back(1);  // copy
        // Special opcodes: each advances the address by one step and the line by one.
        for (std::uint64_t at = step_; at < s.bytes; at += step_) out.push_back(14);
        out.push_back(2);  // advance_pc
        uleb(out, 1);
        out.insert(out.end(), {0, 1, 1});  // end_sequence
        append(lines, out);
    }
    static void number_sleb(Out& out, std::uint64_t value) {
        while (value > 0x3f) {
            out.push_back(static_cast<std::uint8_t>((value & 0x7f) | 0x80));
            value >>= 7;
        }
        out.push_back(static_cast<std::uint8_t>(value));
    }

    std::uint8_t address_bytes_, step_;
    std::vector<Stretch> stretches_;
    std::uint32_t next_line_ = 1;
};

}  // namespace waymark
