/// Which row of a line table holds where several have one address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

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
    /// A row without code is the last at an address, and not the only one.
    [[nodiscard]] bool shared(std::uint64_t address) const {
        const auto found = shared_.find(address);
        return found != shared_.end() && !found->second.back();
    }
    /// Of the rows at an address, in the order of the program and without those that end a sequence: whether the n-th
    /// has code. `rows` is how many the caller has.
    [[nodiscard]] bool has_code(std::uint64_t address, std::size_t n, std::size_t rows) const {
        const auto found = shared_.find(address);
        return found == shared_.end() || found->second.size() != rows || found->second[n];
    }
    /// Of the rows at an address, in the order of the program and without those that end a sequence, the last that has
    /// code. Nothing: the last of all. `rows` is how many the caller has; nothing if this program has another number.
    [[nodiscard]] std::optional<std::size_t> last_with_code(std::uint64_t address, std::size_t rows) const;

private:
    std::map<std::uint64_t, std::vector<bool>> shared_;  // by address with rows of both kinds: which rows have code
};

}  // namespace waymark::image
