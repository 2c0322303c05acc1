/// Decides which row of a line table applies if several have one address.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "waymark/core/types.h"

namespace waymark::image {

/// The rows of one line-number program (DWARF 5, section 6.2) by sequence. A row at the address where its own sequence
/// ends has no code: the code there belongs to the sequence that begins there. libdw sorts the rows of all sequences by
/// address and does not keep their sequences, so the program itself has to be read.
class LineRows {
public:
    LineRows() = default;
    /// Runs the program at `offset` of `section`, the bytes of .debug_line of a little-endian file. There are no rows
    /// for a damaged program, a program for several instructions at once (VLIW), or a version other than 2 to 5.
    LineRows(Bytes section, std::uint64_t offset);

    [[nodiscard]] bool empty() const { return shared_.empty(); }
    /// Whether the last of several rows at an address has no code.
    [[nodiscard]] bool shared(std::uint64_t address) const {
        const auto found = shared_.find(address);
        return found != shared_.end() && !found->second.back();
    }
    /// For the rows at an address, in the order of the program and without rows that end a sequence: whether the n-th
    /// row has code. `rows`: number of such rows that the caller has.
    [[nodiscard]] bool has_code(std::uint64_t address, std::size_t n, std::size_t rows) const {
        const auto found = shared_.find(address);
        return found == shared_.end() || found->second.size() != rows || found->second[n];
    }
    /// Among the rows at an address, in the order of the program and without rows that end a sequence: the index of the
    /// last row with code. nullopt: the last row. `rows`: number of such rows that the caller has; the result is also
    /// nullopt if this program has another number of them.
    [[nodiscard]] std::optional<std::size_t> last_with_code(std::uint64_t address, std::size_t rows) const;

private:
    std::map<std::uint64_t, std::vector<bool>> shared_;  // for addresses with both kinds of rows: which rows have code
};

}  // namespace waymark::image
