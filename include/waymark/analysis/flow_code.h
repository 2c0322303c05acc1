/// What an analysis of program flow knows of each block that ran: which function it belongs to, and what its end does
/// to the call stack. One for each stream, shared by its sink and the forks of that.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "waymark/flow/flow.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/symbols.h"

namespace waymark::analysis {

/// Whose code something is. Numbers are given at first sight: never print them or sort by them.
using FunctionId = std::uint32_t;
inline constexpr FunctionId no_function = 0;

/// What a FunctionId names.
struct CodeFunction {
    enum class Kind : std::uint8_t {
        unknown,   ///< no_function alone
        symbol,    ///< `value`: where the symbol begins
        entry,     ///< code that no symbol names was entered at `value`
        section,   ///< code that no symbol names, in the file mapped at `value`, or in the section that begins there
        exception  ///< `exception` says which
    };
    Kind kind{};
    std::uint64_t value{};
    flow::ExceptionType exception{};
    friend auto operator<=>(const CodeFunction&, const CodeFunction&) = default;
};

/// What the last instruction of a block does, if it is taken or if it is not.
enum class Effect : std::uint8_t {
    stays,             ///< the next instruction is of the same function
    call,              ///< leaves a return address
    function_return,   ///< by convention a return
    exception_return,  ///< goes back to what was interrupted
    jump,              ///< indirect: perhaps to another function
    leaves             ///< to a known place in another function
};

/// Where flow arrives.
struct Arrival {
    std::uint64_t address{};
    FunctionId home = no_function;   ///< the function, or the section where there is no symbol
    FunctionId entry = no_function;  ///< what a call of this address would be a call of
    bool begins{};                   ///< it is the first instruction of `home`
    bool returns_twice{};            ///< `home` begins here and is setjmp or the like
    bool unwinds{};                  ///< `home` begins here and leaves its caller's frame, to unwind further
};

/// Safe for several threads.
class FlowCode {
public:
    /// Both are borrowed.
    FlowCode(const image::Symbols& symbols, const image::MemoryMap& memory);

    /// By edge and by block: what is needed for each range.
    struct Edge {
        std::uint32_t instructions{};
        Effect effect{};
    };
    struct Known {
        std::vector<flow::Block> blocks;
        std::vector<Arrival> places;  ///< where blocks begin
        std::vector<Edge> edges;
    };
    /// Adds to `known` the blocks it lacks: these, and all that were met before.
    void extend(Known& known, std::span<const flow::Block> blocks);

    [[nodiscard]] Arrival place(std::uint64_t address);
    [[nodiscard]] FunctionId exception(const flow::ExceptionType& type);
    /// A function that the code of another stream knows.
    [[nodiscard]] FunctionId known_elsewhere(const CodeFunction& function);
    /// By FunctionId.
    [[nodiscard]] std::vector<CodeFunction> functions() const;

    /// The function that a symbol is the rarely executed part of (`f.cold` of GCC), by where it begins; else where the
    /// symbol itself begins.
    [[nodiscard]] std::uint64_t whole_function(const image::Symbol& symbol) const;

    [[nodiscard]] const image::Symbols& symbols() const { return symbols_; }
    [[nodiscard]] const image::MemoryMap& memory() const { return memory_; }

private:
    [[nodiscard]] FunctionId number(CodeFunction function);
    [[nodiscard]] Arrival find(std::uint64_t address);
    [[nodiscard]] FunctionId home(std::uint64_t address);

    struct Area {
        std::uint64_t first{}, last{}, begin{};
    };
    const image::Symbols& symbols_;
    const image::MemoryMap& memory_;
    Known all_;
    std::vector<Area> areas_;  // by address; they do not overlap
    mutable std::mutex mutex_;
    mutable std::once_flag cold_parts_known_;
    mutable std::map<std::uint64_t, std::uint64_t> cold_parts_;  // to where their functions begin
    std::map<CodeFunction, FunctionId> numbers_;
    std::vector<CodeFunction> functions_;
};

}  // namespace waymark::analysis
