/// The functions and inlined calls of one unit of compilation, by address.
#pragma once

#include <elfutils/libdw.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "waymark/image/debug_info.h"

namespace waymark::image {

class InlinedCalls {
public:
    InlinedCalls() = default;
    /// Reads the whole unit `die`; callers use its addresses plus `bias`. A unit that is stored in a separate file
    /// (.dwo) has no calls if that file is not found.
    InlinedCalls(Dwarf_Die die, std::uint64_t bias);

    /// As `DebugInfo::inlined`.
    [[nodiscard]] InlinedPlace at(std::uint64_t address) const;
    /// As `DebugInfo::function`.
    [[nodiscard]] std::optional<DeclaredFunction> function(std::uint64_t address) const;

private:
    static constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    /// Valid files are not nested more deeply.
    static constexpr std::uint32_t most_depth = 512;
    static constexpr std::size_t most_spans = std::size_t{1} << 22;

    /// Data shared by all calls of a function.
    struct Callee {
        SharedText function, linkage_name;
        std::uint32_t declared_line = 0;
    };
    struct Call {
        std::uint32_t callee, parent;
        const char* file;  ///< file of the call; null if not known
        std::uint32_t line, discriminator;
    };
    /// A stretch [first, end) in which a call is the innermost; `none`: no call. Pieces do not overlap.
    struct Piece {
        std::uint64_t first, end;
        std::uint32_t call;
    };
    struct Span {
        std::uint64_t first, end;
        std::uint32_t call, depth;
    };

    /// The code of a function, or a part of the code. Its name is read on demand.
    struct Body {
        std::uint64_t first, end;
        Dwarf_Die die;
    };

    void read(Dwarf_Die unit, std::uint64_t bias, std::vector<Span>& spans);
    void cut(std::vector<Span>& spans);

    std::uint32_t callee_of(Dwarf_Die& die);
    Call describe(Dwarf_Die& die, Dwarf_Files* files, std::size_t file_count, std::uint32_t parent);

    [[nodiscard]] InlinedCall with_names(const Call& call) const;

    std::vector<Callee> callees_;
    std::map<const void*, std::uint32_t> callee_at_;  // by the DWARF entry that describes them
    std::vector<Call> calls_;
    std::vector<Piece> pieces_;  // by address
    std::vector<Body> bodies_;   // by address
    bool by_llvm_ = false;
};

}  // namespace waymark::image
