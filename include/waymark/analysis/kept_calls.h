/// The stacks of calls at a place of a stream, so that call counting can begin there (FlowCalls::keep). Used by an
/// index of places, and to count a part of a stream.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "waymark/analysis/call_tree.h"
#include "waymark/analysis/flow_code.h"
#include "waymark/analysis/flow_counts.h"
#include "waymark/flow/flow.h"

namespace waymark::analysis {

/// The owner of a stack: Context ID and VMID.
struct StackKey {
    std::optional<std::uint32_t> context_id, vmid;
    friend auto operator<=>(const StackKey&, const StackKey&) = default;
};

/// A frame of a stack (CallFrame), without its counts.
struct KeptFrame {
    CodeFunction function{};  ///< where flow is in it
    CodeFunction entry{};     ///< the function that was called
    Entered how{};
    std::uint64_t waits_for{}, entered{}, to{}, again{};
    bool named{}, returns_twice{}, unwinds{}, tail{}, falls{}, nameless{};
    std::optional<flow::ExceptionType> exception{};  ///< of an interrupt
    friend bool operator==(const KeptFrame&, const KeptFrame&) = default;
};

struct KeptStack {
    StackKey key{};
    std::vector<KeptFrame> frames{};              ///< the lowest first
    std::vector<std::vector<KeptFrame>> aside{};  ///< frames that were left together and may be gone on with
    std::uint64_t above{};                        ///< frames below these that are forgotten
    bool cut{}, aside_given_up{};
    friend bool operator==(const KeptStack&, const KeptStack&) = default;
};

struct KeptStacks {
    StackKey key{};  ///< of the one in use
    Work now{};      ///< done so far
    std::vector<KeptStack> stacks{};
    friend bool operator==(const KeptStacks&, const KeptStacks&) = default;
};

/// The calls at a place inside a function: no frame waits for the next instruction.
struct KeptCalls {
    KeptStacks stacks{};
    std::optional<flow::Block> last{};  ///< what ran last, if nothing came between
    bool taken{};                       ///< its branch was
    friend bool operator==(const KeptCalls&, const KeptCalls&) = default;
};

}  // namespace waymark::analysis
