/// Which row of a line table holds where several have one address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "waymark/core/types.h"

namespace waymark::image {

/// The rows of one line-number program (DWARF 5, section 6.2) by sequence. A row at the address where its own sequence
/// ends has no code: what lies there is code of the sequence that begins there. libdw sorts the rows of all sequences
/// by address and does not keep which sequence each is of, so that only the program itself can say it.
class LineRows {
public:
    LineRows() = default;
    /// Runs the program at `offset` of `section`, the bytes of .debug_line of a little-endian file. Of a damaged
    /// program, one for several instructions at once (VLIW), or one of another version than 2 to 5 there are none.
    LineRows(Bytes section, std::uint64_t offset);

    [[nodiscard]] bool empty() const { return shared_.empty(); }
    /// A row without code is the last at an address.
    [[nodiscard]] bool shared(std::uint64_t address) const { return shared_.contains(address); }
    /// Of the rows at an address, in the order of the program and without those that end a sequence, the last that has
    /// code. Nothing: the last of all. `rows` is how many the caller has; nothing if this program has another number.
    [[nodiscard]] std::optional<std::size_t> last_with_code(std::uint64_t address, std::size_t rows) const;

private:
    struct Here {
        std::size_t rows{};
        std::optional<std::size_t> last{};  // that has code
    };
    std::map<std::uint64_t, Here> shared_;  // of addresses whose last row has no code
};

}  // namespace waymark::image
