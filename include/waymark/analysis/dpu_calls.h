/// The call tree from changes of flow of the DPU (mode FLOW), and its costs: functions, call paths, services.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "waymark/analysis/dpu_code.h"
#include "waymark/analysis/dpu_counts.h"
#include "waymark/dpu/element.h"

namespace waymark::analysis {

struct DpuFunctionCost {
    std::uint64_t calls = 0;
    DpuCounts self{}, inclusive{},
        crossed{};          ///< crossed: part of self, in intervals during which a jump leads to another function
    DpuSpread activations;  ///< outermost activations whose call is in the trace, up to the return
    bool known = true;      ///< as DpuTask::known
};

/// A node of the call tree; the first is the root.
struct DpuPath {
    std::size_t parent = 0;
    DpuCode::Function function;
    std::optional<dpu::TaskContext> root;  ///< for the root node of a task: its context
    bool service = false;                  ///< an interrupt or a system call
    std::uint64_t calls = 0;
    DpuCounts self{};
    bool known = true;  ///< as DpuTask::known
};

struct DpuService {
    DpuSpread stays;  ///< from entry to return, including interruptions
};

/// A stack of calls for each task.
class DpuCalls {
public:
    using Place = DpuCode::Place;

    /// `code` is borrowed.
    explicit DpuCalls(const DpuCode& code) : code_(code), paths_(1) {}

    /// Adds the counts of an interval to open services.
    void pass(const DpuCounts& counts);
    /// A filter excluded an interval: the ends of open services are not known.
    void pass_unseen() { open_services_.clear(); }
    /// The interval belongs to a known context. `run`: the beginning of the code in the interval, if known; `last_pc`:
    /// its end. `known`: every count of the stay was observed.
    void book(const DpuOwner& who, const DpuCounts& counts, const std::optional<Place>& run,
              const std::optional<Place>& last_pc, bool known);
    /// A change of flow, or only of the task, away from `before`; nullopt: from an unknown context.
    void change(const dpu::Element& element, const std::optional<dpu::TaskContext>& before);
    /// Trace is missing: it is not known which calls are open.
    void lose();
    /// The trace ends: all calls return.
    void finish();

    /// Costs without a function are listed under a name in angle brackets.
    [[nodiscard]] const std::map<DpuCode::Function, DpuFunctionCost>& functions() const { return functions_; }
    [[nodiscard]] const std::vector<DpuPath>& paths() const { return paths_; }
    [[nodiscard]] const std::map<std::uint32_t, DpuService>& services() const { return services_; }
    [[nodiscard]] std::uint64_t returns_without_call() const { return returns_without_call_; }
    /// As DpuCosts'.
    [[nodiscard]] std::uint64_t jumps() const { return jumps_; }
    [[nodiscard]] std::uint64_t crossings() const { return crossings_; }

private:
    struct Frame {
        std::size_t path = 0;
        std::uint32_t call = 0;  ///< address of the call
        bool service = false;
        bool timed = true;       ///< outermost, and its begin is in the trace
        std::uint64_t home = 0;  ///< DpuCode::home
        DpuCode::Function function;
        DpuCounts inclusive{};
    };
    using Stack = std::vector<Frame>;
    struct Known {
        DpuCode::Function function;  ///< entered here
        std::uint64_t home{};
    };

    Stack& stack(std::uint8_t id);
    void push(Stack& stack, const Place& to, std::uint32_t call, bool service, const dpu::TaskContext& context);
    void arrive(const dpu::Element& element);
    void resume(Stack& stack, const Place& to, const dpu::TaskContext& context);
    void begin(Stack& stack, const std::optional<Place>& at, const dpu::TaskContext& context);
    void pop(Stack& stack);
    void replace(Stack& stack, const DpuCode::Function& function, std::uint64_t home, bool called);
    bool jump(Stack& stack, const Place& start, const Place& last);
    [[nodiscard]] bool begins_at(const Place& place);
    [[nodiscard]] bool unwind(Stack& stack, const Place& to);
    std::size_t child(std::size_t parent, const DpuCode::Function& function,
                      const std::optional<dpu::TaskContext>& root, bool service);
    const Known& known(const Place& place);

    const DpuCode& code_;
    std::map<std::uint8_t, Stack> stacks_;
    std::map<DpuCode::Function, DpuFunctionCost> functions_;
    std::map<Place, Known> known_;
    std::map<std::pair<Place, Place>, DpuCode::Way> ways_;
    std::vector<DpuPath> paths_;
    std::map<std::tuple<std::size_t, DpuCode::Function, bool>, std::size_t> children_;
    std::uint64_t returns_without_call_ = 0, jumps_ = 0, crossings_ = 0;
    struct OpenService {
        std::uint32_t entry = 0;
        DpuCounts counts{};
    };
    std::vector<OpenService> open_services_;
    std::map<std::uint32_t, DpuService> services_;
};

}  // namespace waymark::analysis
