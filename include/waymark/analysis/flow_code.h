/// Properties of executed blocks for analyses of program flow: the function that a block belongs to, and the effect of
/// its end on the call stack. One object for each stream, shared by its sink and that sink's forks.
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

/// Identifies a function. Numbers are assigned in order of first use: never print them or sort by them.
using FunctionId = std::uint32_t;
inline constexpr FunctionId no_function = 0;

/// The code that a FunctionId stands for.
struct CodeFunction {
    enum class Kind : std::uint8_t {
        unknown,   ///< no_function alone
        symbol,    ///< `value`: the symbol's address
        entry,     ///< code without a symbol, entered at `value`
        section,   ///< code without a symbol, in the file mapped at `value`, or in the section that begins there
        exception  ///< the type is in `exception`
    };
    Kind kind{};
    std::uint64_t value{};
    flow::ExceptionType exception{};
    friend auto operator<=>(const CodeFunction&, const CodeFunction&) = default;
};

/// The effect of a block's last instruction, if it is taken or not.
enum class Effect : std::uint8_t {
    stays,             ///< the next instruction belongs to the same function
    call,              ///< leaves a return address
    function_return,   ///< a return by convention
    exception_return,  ///< returns to interrupted code
    jump,              ///< indirect: possibly to another function
    leaves             ///< to a known place in another function
};

/// A place at which flow arrives.
struct Arrival {
    std::uint64_t address{};
    FunctionId home = no_function;   ///< the function, or the section if there is no symbol
    FunctionId entry = no_function;  ///< the function that a call to this address would enter
    bool begins{};                   ///< it is the first instruction of `home`
    bool returns_twice{};            ///< `home` begins here and is setjmp or the like
    bool unwinds{};                  ///< `home` begins here and unwinds from its caller's frame
};

/// Safe for several threads.
class FlowCode {
public:
    /// Both are borrowed.
    FlowCode(const image::Symbols& symbols, const image::MemoryMap& memory);

    /// By edge and by block: the data needed for each range.
    struct Edge {
        std::uint32_t instructions{};
        Effect effect{};
        bool crosses{};  ///< the block has Crossings; `effect` is not `stays`
    };
    /// A place within a block where execution enters another function without a branch.
    struct Crossing {
        std::uint32_t block{};
        std::uint32_t instructions{};  ///< of the block that come before it
        Arrival place;
    };
    struct Known {
        std::vector<flow::Block> blocks;
        std::vector<Arrival> places;  ///< where blocks begin
        std::vector<Edge> edges;
        std::vector<Crossing> crossings;  ///< by block, in the order of execution
        [[nodiscard]] std::span<const Crossing> crossings_of(std::uint32_t block) const;
    };
    /// Adds missing blocks to `known`: these, and all earlier ones.
    void extend(Known& known, std::span<const flow::Block> blocks);

    [[nodiscard]] Arrival place(std::uint64_t address);
    [[nodiscard]] FunctionId exception(const flow::ExceptionType& type);
    /// The type of an exception by what the code shows: `system call openat` for a supervisor call of a program for
    /// Linux (image/system_calls.h), else the exception's own type. Lives as long as the process.
    [[nodiscard]] const flow::ExceptionType& type_of(const flow::Exception& exception);
    /// A function that is already known in another stream.
    [[nodiscard]] FunctionId known_elsewhere(const CodeFunction& function);
    /// By FunctionId.
    [[nodiscard]] std::vector<CodeFunction> functions() const;

    /// The beginning of the function whose rarely executed part (`f.cold` of GCC) the symbol is; otherwise the symbol's
    /// own address.
    [[nodiscard]] std::uint64_t whole_function(const image::Symbol& symbol) const;

    [[nodiscard]] const image::Symbols& symbols() const { return symbols_; }
    [[nodiscard]] const image::MemoryMap& memory() const { return memory_; }

private:
    [[nodiscard]] FunctionId number(CodeFunction function);
    [[nodiscard]] Arrival find(std::uint64_t address);
    [[nodiscard]] FunctionId home(std::uint64_t address);
    /// Adds the crossings of a block that begins in the function `first`, and returns the function it ends in.
    FunctionId cross(const flow::Block& block, std::uint32_t number, FunctionId first);

    struct Area {
        std::uint64_t first{}, last{}, begin{};
    };
    const image::Symbols& symbols_;
    const image::MemoryMap& memory_;
    Known all_;
    std::vector<Area> areas_;  // by address, without overlaps
    mutable std::mutex mutex_;
    mutable std::once_flag cold_parts_known_;
    mutable std::map<std::uint64_t, std::uint64_t> cold_parts_;  // address of the function for each part
    std::map<CodeFunction, FunctionId> numbers_;
    std::vector<CodeFunction> functions_;
    std::map<std::pair<const flow::ExceptionType*, std::uint64_t>, const flow::ExceptionType*>
        system_calls_;  // by type and preferred return address
};

}  // namespace waymark::analysis
