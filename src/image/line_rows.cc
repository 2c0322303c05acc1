#include "line_rows.h"

#include <dwarf.h>

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>
#include <vector>

#include "waymark/core/cursor.h"

namespace waymark::image {

namespace {

/// DWARF 5, section 7.6. Bits beyond 64 are dropped: addresses and lengths have no more.
std::uint64_t uleb128(Cursor& c) {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        const std::uint8_t byte = c.u8();
        if (shift < 64) value |= static_cast<std::uint64_t>(byte & 0x7f) << shift;
        if ((byte & 0x80) == 0) return value;
    }
}

/// The rows of a program: their addresses, and the ends of sequences.
struct Row {
    std::uint64_t address;
    bool ends;
};

}  // namespace

LineRows::LineRows(Bytes section, std::uint64_t offset) {
    if (offset >= section.size()) return;
    Cursor header(section.subspan(offset));
    std::uint64_t length = header.le(4);
    const bool wide = length == 0xffffffff;  // 64-bit DWARF
    if (wide) length = header.le(8);
    const std::size_t begin = offset + header.consumed();
    if (header.step() != Step::ok || length > section.size() - begin) return;
    Cursor c(section.subspan(begin, length));
    const std::uint64_t version = c.le(2);
    if (version < 2 || version > 5) return;
    if (version == 5) c.le(2);  // size of an address, and of a segment selector
    const std::uint64_t header_length = c.le(wide ? 8 : 4);
    const std::uint64_t program = c.consumed() + header_length;
    const std::uint64_t least_bytes = c.u8();
    if (version >= 4 && c.u8() != 1) return;  // number of operations of an instruction
    c.le(2);                                  // default of is_stmt, minimum step of lines
    const unsigned line_range = c.u8(), first_special = c.u8();
    std::array<std::uint8_t, 256> operands{};
    for (unsigned i = 1; i < first_special; ++i) operands[i] = c.u8();
    if (c.step() != Step::ok || line_range == 0 || first_special == 0 || header_length > length || program > length)
        return;

    Cursor code(section.subspan(begin + program, length - program));
    std::vector<Row> rows;
    std::uint64_t address = 0;
    while (!code.at_end()) {
        const unsigned operation = code.u8();
        if (operation >= first_special) {
            address += (operation - first_special) / line_range * least_bytes;
            rows.push_back({address, false});
            continue;
        }
        switch (operation) {
            case 0: {
                const std::uint64_t bytes = uleb128(code);
                if (bytes == 0) break;
                const unsigned extended = code.u8();
                if (extended == DW_LNE_set_address && bytes <= 9) {
                    address = code.le(static_cast<unsigned>(bytes - 1));
                    break;
                }
                if (extended == DW_LNE_end_sequence) {
                    rows.push_back({address, true});
                    address = 0;
                }
                for (std::uint64_t i = 1; i < bytes && code.step() == Step::ok; ++i) code.u8();
                break;
            }
            case DW_LNS_copy: rows.push_back({address, false}); break;
            case DW_LNS_advance_pc: address += uleb128(code) * least_bytes; break;
            case DW_LNS_const_add_pc: address += (255 - first_special) / line_range * least_bytes; break;
            case DW_LNS_fixed_advance_pc: address += code.le(2); break;
            default:
                for (unsigned i = 0; i < operands[operation]; ++i) uleb128(code);
                break;
        }
        if (code.step() != Step::ok) return;
    }

    std::unordered_map<std::uint64_t, std::size_t> ends;
    for (const Row& row : rows)
        if (row.ends) ++ends[row.address];
    for (std::size_t i = 0, begin_of_sequence = 0; i < rows.size(); ++i) {
        if (!rows[i].ends) continue;
        for (std::size_t k = begin_of_sequence; k < i; ++k) {
            if (!ends.contains(rows[k].address)) continue;
            shared_[rows[k].address].push_back(rows[k].address != rows[i].address);
        }
        begin_of_sequence = i + 1;
    }
    std::erase_if(shared_, [](const auto& at) {
        const std::vector<bool>& here = at.second;
        return std::find(here.begin(), here.end(), !here.front()) == here.end();
    });
}

std::optional<std::size_t> LineRows::last_with_code(std::uint64_t address, std::size_t rows) const {
    const auto found = shared_.find(address);
    if (found == shared_.end() || found->second.size() != rows) return std::nullopt;
    const std::vector<bool>& code = found->second;
    return static_cast<std::size_t>(code.rend() - std::find(code.rbegin(), code.rend(), true)) - 1;
}

}  // namespace waymark::image
