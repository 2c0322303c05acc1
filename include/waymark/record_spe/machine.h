/// A modelled machine: the effects of caches, TLBs and branch predictors on accesses and branches that really happened,
/// and their times. This is a model, not a measurement: every number is in MachineModel, and the same accesses always
/// give the same results.
///
/// The model omits prefetching, dependences between instructions (an operation issues after a time fixed by its kind),
/// store buffers, bandwidth, further page sizes, instruction caches, and all effects of the kernel. Caches work on
/// virtual addresses, which makes no difference for one process.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/isa/a64.h"
#include "waymark/record/set_associative.h"

namespace waymark::record {

/// The counter that timestamps count, as a fraction of the CPUs' clock.
struct CounterRatio {
    std::uint64_t numerator{}, denominator{};
};

/// All numbers of the model. Latencies of caches and memory are cycles from issue to data. The defaults are near a
/// Neoverse N1, whose data source codes (docs/spec/spe.md, section 4.7) the records contain.
struct MachineModel {
    struct Cache {
        std::uint32_t kib{}, ways{}, cycles{};
        bool operator==(const Cache&) const = default;
    };
    struct Tlb {
        std::uint32_t entries{}, ways{};
        bool operator==(const Tlb&) const = default;
    };

    std::uint64_t midr = 0x413fd0c1;  ///< Neoverse N1 r3p1
    std::uint32_t cpus = 16, cpus_per_cluster = 2;
    std::uint64_t hz = 2'600'000'000, counter_hz = 1'000'000'000;
    std::uint32_t dispatch_width = 4, window = 128, mispredict_cycles = 11, system_call_cycles = 600;
    std::uint32_t line_bytes = 64, page_bytes = 4096;
    Cache l1d{64, 4, 4}, l2{1024, 8, 11}, llc{8192, 16, 45};
    std::uint32_t peer_cycles = 60, peer_cluster_cycles = 95, memory_cycles = 240, split_cycles = 2;
    Tlb dtlb{48, 48}, l2_tlb{1280, 5};
    std::uint32_t l2_tlb_cycles = 5, walk_cycles = 35;
    std::uint32_t predictor_bits = 14, history_bits = 12, targets_bits = 11, return_stack = 16;
    std::array<std::uint32_t, isa::a64_works> issue{1, 1, 1, 2, 2, 2, 1, 1, 1};
    std::array<std::uint32_t, isa::a64_works> execute{1, 2, 12, 3, 13, 2, 1, 1, 4};

    [[nodiscard]] CounterRatio counter_ratio() const {
        const std::uint64_t divisor = std::gcd(counter_hz, hz);
        return {counter_hz / divisor, hz / divisor};
    }

    /// Calls `f(name, value, explanation)` for every number.
    static void for_each(auto& m, auto&& f) {
        f("midr", m.midr, "MIDR_EL1 of the core");
        f("cpus", m.cpus, "CPUs; threads beyond them share");
        f("cpus_per_cluster", m.cpus_per_cluster, "CPUs whose data is at hand as a peer core's");
        f("hz", m.hz, "clock of the cores");
        f("counter_hz", m.counter_hz, "clock of the generic timer: timestamps");
        f("dispatch_width", m.dispatch_width, "operations dispatched in a cycle");
        f("window", m.window, "operations in flight after one that waits for memory");
        f("mispredict_cycles", m.mispredict_cycles, "from a mispredicted branch to the next operation");
        f("system_call_cycles", m.system_call_cycles, "spent in the kernel, which is not sampled");
        f("line_bytes", m.line_bytes, "of all caches");
        f("page_bytes", m.page_bytes, "of all TLBs");
        cache("l1d", m.l1d, "first-level data cache, of each CPU", f);
        cache("l2", m.l2, "second level, of each CPU; holds what the first does", f);
        cache("llc", m.llc, "last level, of all", f);
        f("peer_cycles", m.peer_cycles, "data from another CPU of the cluster");
        f("peer_cluster_cycles", m.peer_cluster_cycles, "data from another cluster");
        f("memory_cycles", m.memory_cycles, "data from memory");
        f("split_cycles", m.split_cycles, "more for an access to two lines");
        f("dtlb.entries", m.dtlb.entries, "data TLB, of each CPU");
        f("dtlb.ways", m.dtlb.ways, "");
        f("l2_tlb.entries", m.l2_tlb.entries, "second-level TLB, of each CPU");
        f("l2_tlb.ways", m.l2_tlb.ways, "");
        f("l2_tlb_cycles", m.l2_tlb_cycles, "for a translation from the second level");
        f("walk_cycles", m.walk_cycles, "for a translation from tables");
        f("predictor_bits", m.predictor_bits, "2^n counters predict directions (gshare)");
        f("history_bits", m.history_bits, "branches they depend on");
        f("targets_bits", m.targets_bits, "2^n targets of indirect branches");
        f("return_stack", m.return_stack, "return addresses");
        for (std::size_t i = 0; i < isa::a64_works; ++i) {
            f(works[i].issue, m.issue[i], "cycles from dispatch to issue");
            f(works[i].execute, m.execute[i],
              i == static_cast<std::size_t>(isa::A64Work::memory) ? "of stores; loads take as long as their data"
                                                                  : "cycles from issue to completion");
        }
    }
    bool operator==(const MachineModel&) const = default;

private:
    struct Names {
        const char *issue, *execute;
    };
    static constexpr std::array<Names, isa::a64_works> works{{{"integer.issue", "integer.execute"},
                                                              {"multiply.issue", "multiply.execute"},
                                                              {"divide.issue", "divide.execute"},
                                                              {"floating_point.issue", "floating_point.execute"},
                                                              {"fp_divide.issue", "fp_divide.execute"},
                                                              {"vector.issue", "vector.execute"},
                                                              {"memory.issue", "memory.execute"},
                                                              {"branch.issue", "branch.execute"},
                                                              {"system.issue", "system.execute"}}};
    static void cache(const char* name, auto& c, const char* what, auto&& f) {
        const std::string_view n = name;
        f(n == "l1d" ? "l1d.kib" : n == "l2" ? "l2.kib" : "llc.kib", c.kib, what);
        f(n == "l1d" ? "l1d.ways" : n == "l2" ? "l2.ways" : "llc.ways", c.ways, "");
        f(n == "l1d" ? "l1d.cycles" : n == "l2" ? "l2.cycles" : "llc.cycles", c.cycles, "");
    }
};

/// Sets one number by its name. Errors: `usage`.
[[nodiscard]] Status set(MachineModel& model, std::string_view name, std::uint64_t value);
/// Sets the numbers in a JSON object; members of an object in it have names `object.member`. Errors: `usage`; the
/// message names the member.
[[nodiscard]] Status set_from_json(MachineModel& model, const std::string& json);
/// Every number with its explanation, one on each line.
[[nodiscard]] std::string to_text(const MachineModel& model);
/// Errors: `usage`: such a machine is impossible; the message names the number.
[[nodiscard]] Status check(const MachineModel& model);

/// The result of an access.
struct Accessed {
    std::uint32_t cycles{};       ///< from issue to data, translation included
    std::uint32_t translation{};  ///< cycles of these for the translation
    std::uint64_t events{};       ///< of spe::event
    std::uint16_t source{};       ///< place of the data: a data source code
    bool from_peers{};            ///< another CPU had to give up the line or its copy
};

class MachineSimulation {
public:
    /// Precondition: `check(model)`.
    explicit MachineSimulation(const MachineModel& model);

    // ---- time of a CPU

    [[nodiscard]] std::uint64_t cycle(std::uint32_t cpu) const { return cpus_[cpu].slots / model_.dispatch_width; }
    /// The CPU waited until that cycle, unless it is already later.
    void wait(std::uint32_t cpu, std::uint64_t cycle);
    /// The CPU dispatches `operations` operations.
    void dispatch(std::uint32_t cpu, std::uint32_t operations) {
        Cpu& c = cpus_[cpu];
        c.slots += operations;
        c.operations += operations;
        if (!c.waiting.empty() && c.operations >= c.waiting.front().operation) [[unlikely]]
            full_window(c);
    }

    // ---- accesses and branches of operations

    enum class Kind : std::uint8_t { load, store, atomic };
    /// A fast answer for the common access without any event: the page is the same as before, and the first-level cache
    /// has it. Returns false, without effect, for other accesses: then call `access`. Precondition: `bytes` is not 0.
    [[nodiscard]] bool is_quick(std::uint32_t cpu, Address address, std::uint32_t bytes, Kind kind) {
        Cpu& c = cpus_[cpu];
        const std::uint64_t line = address.value >> line_bits_;
        if (address.value >> page_bits_ != c.last_page || line != (address.value + bytes - 1) >> line_bits_ ||
            !stores_are_short_)
            return false;
        const std::uint8_t* const state = c.l1d.find(line);
        return state != nullptr && (kind == Kind::load || *state == modified);
    }
    Accessed access(std::uint32_t cpu, Address address, std::uint32_t bytes, Kind kind);
    /// A branch. Returns true if it was mispredicted, which delays later operations. `next`: the place where execution
    /// continued.
    bool branch(std::uint32_t cpu, Address pc, const isa::A64Instruction& instruction, bool taken, Address next);
    /// Pages get frames in the order of their first access.
    [[nodiscard]] Address physical(Address address);

    [[nodiscard]] const MachineModel& model() const { return model_; }

private:
    enum State : std::uint8_t { invalid, shared, exclusive, modified };
    struct Waiting {
        std::uint64_t operation, slots;  ///< the operation that dispatches no earlier than that
    };
    struct Cpu {
        explicit Cpu(const MachineModel& model);
        SetAssociative l1d, l2, dtlb, l2_tlb;
        std::vector<std::uint8_t> counters;
        std::vector<std::uint64_t> targets, returns;
        std::uint64_t history = 0, calls = 0;
        std::uint64_t slots = 0, operations = 0;
        std::deque<Waiting> waiting;
        std::uint64_t last_page = ~std::uint64_t{0};
        bool used = false;
    };
    void full_window(Cpu& c);
    void line(std::uint32_t cpu, std::uint64_t line, Kind kind, Accessed& to);
    void take_from_peers(std::uint32_t cpu, std::uint64_t line, bool all, Accessed& to, bool& found, bool& sharers);
    std::uint32_t translate(Cpu& c, std::uint64_t page, std::uint64_t& events);

    MachineModel model_;
    std::vector<Cpu> cpus_;
    SetAssociative llc_;
    unsigned line_bits_, page_bits_;
    bool stores_are_short_;  ///< a store that hits delays nothing
    std::unordered_map<std::uint64_t, std::uint64_t> frames_;
};

}  // namespace waymark::record
