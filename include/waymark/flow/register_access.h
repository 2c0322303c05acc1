/// Accesses to the registers of a trace unit's model, and the parts that all units share: locks, claim tags, power.
#pragma once

#include <cstdint>
#include <utility>

namespace waymark::flow {

/// The requester of a register access: software, memory-mapped or by instructions; or a debugger.
enum class Requester : std::uint8_t { software, external };

/// The result of an access to a register.
enum class AccessResult : std::uint8_t {
    done,
    not_idle,     ///< ignored: the register must not be written while the unit traces, or before it has stopped
    locked,       ///< ignored: the software lock
    read_only,    ///< ignored
    write_only,   ///< reads as 0
    not_present,  ///< no such register, or this unit does not have it
    error         ///< answered with an error: no power, or a debugger while the OS Lock is locked
};
struct ReadResult {
    AccessResult result = AccessResult::done;
    std::uint32_t value = 0;
    bool operator==(const ReadResult&) const = default;
};

/// CoreSight's lock and claim registers, and power, as a unit has them.
class UnitLocks {
public:
    static constexpr std::uint32_t unlock_key = 0xc5acce55, claim_tags = 0xf;

    [[nodiscard]] bool os_locked() const { return os_locked_; }
    void lock_os(bool locked) { os_locked_ = locked; }
    [[nodiscard]] bool software_locked() const { return software_locked_; }
    /// The Lock Access Register was written.
    void write_key(std::uint32_t key) { software_locked_ = key != unlock_key; }

    [[nodiscard]] std::uint32_t claimed() const { return claimed_; }
    void claim(std::uint32_t tags) { claimed_ |= tags & claim_tags; }
    void unclaim(std::uint32_t tags) { claimed_ &= ~tags; }

    [[nodiscard]] bool powered() const { return core_power_ || power_requested_; }
    /// Sets the power of the core domain, and whether software requests power regardless of the core. Returns true if
    /// power is lost by this.
    bool set_power(bool core) {
        return changed([&] { core_power_ = core; });
    }
    bool request_power(bool requested) {
        return changed([&] { power_requested_ = requested; });
    }
    [[nodiscard]] bool power_requested() const { return power_requested_; }
    /// Whether power was lost since the last call; false while there is no power.
    [[nodiscard]] bool take_power_loss() { return powered() && std::exchange(lost_power_, false); }
    [[nodiscard]] bool lost_power() const { return lost_power_; }

private:
    template <class F>
    bool changed(F&& change) {
        const bool before = powered();
        change();
        if (!before || powered()) return false;
        lost_power_ = true;
        os_locked_ = software_locked_ = false;
        claimed_ = 0;
        return true;
    }

    bool os_locked_ = false, software_locked_ = false;
    bool core_power_ = true, power_requested_ = false, lost_power_ = false;
    std::uint32_t claimed_ = 0;
};

}  // namespace waymark::flow
