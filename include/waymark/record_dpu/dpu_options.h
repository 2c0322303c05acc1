/// Options for the recording of a Debug and Profiling Unit: the modelled core, and the programming of the unit.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/dpu/model.h"
#include "waymark/dpu/register_program.h"

namespace waymark::record {

/// The modelled core: one instruction in each cycle, and the causes of stalls.
struct CoreModel {
    std::uint32_t icache_kib = 16, dcache_kib = 32, ways = 4, line_bytes = 64;
    std::uint32_t miss_cycles = 20, flow_cycles = 2, os_cycles = 200, thrash_window = 10000, short_loop_max = 2;

    /// Calls `f(name, value, explanation)` for every number.
    static void for_each(auto& m, auto&& f) {
        f("icache_kib", m.icache_kib, "instruction cache");
        f("dcache_kib", m.dcache_kib, "data cache: writes allocate");
        f("ways", m.ways, "of both caches");
        f("line_bytes", m.line_bytes, "of both caches");
        f("miss_cycles", m.miss_cycles, "stall of a miss: STALL_PROG, STALL_DATA");
        f("flow_cycles", m.flow_cycles, "stall of a taken change of flow: STALL_COF; a hardware loop has none");
        f("os_cycles", m.os_cycles, "each stay in the operating system");
        f("thrash_window", m.thrash_window,
          "a line fetched again within this number of cycles after its eviction thrashes");
        f("short_loop_max", m.short_loop_max, "instructions of a loop that counts as short");
    }
    bool operator==(const CoreModel&) const = default;
};
/// Errors: `usage`; the message names the number.
[[nodiscard]] Status set(CoreModel& model, std::string_view name, std::uint64_t value);
[[nodiscard]] Status check(const CoreModel& model);
[[nodiscard]] std::string to_text(const CoreModel& model);

/// An EDCA channel: each of the six watches one address or a range of addresses, executed or accessed.
struct Watchpoint {
    std::uint8_t channel{};
    Address address;
    std::uint32_t bytes = 1;  ///< size of the range; 1: one address
    /// Whether one of the bytes [from, from + size) is watched.
    [[nodiscard]] bool overlaps(std::uint32_t from, std::uint32_t size) const {
        return from < address.value + bytes && address.value < std::uint64_t{from} + size;
    }
};

/// The receiver of the unit's effects on the core (docs/spec/dpu.md, 5.9).
enum class Service : std::uint8_t { line_0, line_1, debug };
inline constexpr std::size_t services = 3;
inline constexpr std::array all_services{Service::line_0, Service::line_1, Service::debug};
/// A name: `line 0`, `line 1`, `debug exceptions`.
[[nodiscard]] std::string_view name(Service service);

struct DpuOptions {
    std::filesystem::path folder{};
    bool force = false;  ///< record into a folder with other contents
    std::vector<std::string> command{};
    dpu::TraceMode mode = dpu::TraceMode::flow;
    std::array<std::uint8_t, 2> events{2, 7};   ///< CEG of triad A and B
    std::uint32_t initial = dpu::counter_mask;  ///< value of all six counters at first
    std::uint64_t buffer_bytes = 0;             ///< size of the virtual trace buffer, a ring; 0: all is kept
    bool request = false;   ///< the ring requests its readout, half by half, and the system serves it
    bool user_data = true;  ///< DP_TD writes make entries in every mode
    dpu::NexusMode nexus = dpu::NexusMode::off;     ///< beside the buffer
    std::uint64_t sample_every = 0;                 ///< cycles; mode sw_sample
    bool loops = true;                              ///< backward branches are hardware loops; else changes of flow
    std::optional<dpu::RegisterProgram> program{};  ///< instead of mode, events, initial, buffer, user_data, nexus
    std::vector<Address> marks{};                   ///< executing them is a MARK
    std::vector<Watchpoint> watchpoints{};
    /// Writes to the unit by an interrupt line's service routine, once for each interrupt; for `debug`, writes by the
    /// debug exception's handler. Without a routine the system only acknowledges interrupts, and a debug request puts
    /// the core into debug state, which ends the recording.
    std::array<std::optional<dpu::RegisterProgram>, services> routines{};
    dpu::EonceSetup eonce{};              ///< set by resolve()
    std::vector<std::string> warnings{};  ///< set by resolve(): settings with probably unintended effects
    dpu::ModelChoices choices{};
    CoreModel core{};
    std::uint64_t limit_instructions = 0;

    /// Calls `f(write)` for every write of the register program and of the service routines. Precondition: `program`.
    void each_write(auto&& f) const {
        for (const dpu::RegisterWrite& w : *program) f(w);
        for (const auto& routine : routines)
            if (routine)
                for (const dpu::RegisterWrite& w : *routine) f(w);
    }
};
/// Completes and checks. Errors: `usage`.
[[nodiscard]] Status resolve(DpuOptions& options);
/// Trace modes by their names for users: `task`, `flow`, `raw`, `compressed`, `sample`, `edca5`, `user`, `user-raw`.
[[nodiscard]] const std::vector<std::pair<std::string, dpu::TraceMode>>& dpu_modes();
/// Event wires that a recorded program drives, including the unit's own.
[[nodiscard]] const std::vector<dpu::EventWire>& driven_wires();

}  // namespace waymark::record
