/// Signals between a trace unit and its surroundings: its trigger, debug authentication, power, the OS Lock.
#pragma once

#include <cstdint>
#include <functional>

#include "waymark/flow/unit.h"

namespace waymark::flow {

/// The permission to trace by the authentication signals of the debug interface.
struct TracePermission {
    bool non_secure = true;  ///< NIDEN or DBGEN
    bool secure = true;      ///< and SPNIDEN or SPIDEN
    friend bool operator==(const TracePermission&, const TracePermission&) = default;
};

/// A Unit with these signals also derives from this class. Signals change while execution is at its last place, and
/// after `start`. Waypoints that had not left the unit at that time count as untraced().
class UnitSignals {
public:
    /// `called` is called whenever the unit's trigger reaches the trace bus: the trigger event of a PTM, event 0 of an
    /// ETMv4 or ETE with TRCEVENTCTL1R.ATB. The trace written at that time is the trace before the trigger. It must not
    /// call the unit.
    virtual void on_trigger(std::function<void()> called) = 0;
    virtual void permit(const TracePermission& permission, std::uint64_t cycle) = 0;
    virtual void set_power(bool on, std::uint64_t cycle) = 0;
    /// No effect on a unit without an OS Lock.
    virtual void set_os_lock(bool locked, std::uint64_t cycle) = 0;

protected:
    ~UnitSignals() = default;
    UnitSignals() = default;
};

/// A UnitFactory that makes units with these signals also derives from this class.
class MakesUnitSignals {
public:
    struct Signals {
        bool non_secure = false;  ///< trace of Non-secure state may be forbidden, and not only that of Secure state
        bool os_lock = false;
    };
    [[nodiscard]] virtual Signals signals(const UnitOptions& options) const = 0;

protected:
    ~MakesUnitSignals() = default;
    MakesUnitSignals() = default;
};

/// Null if units of this kind have none of these signals.
[[nodiscard]] inline const MakesUnitSignals* with_signals(const UnitFactory& units) {
    return dynamic_cast<const MakesUnitSignals*>(&units);
}
[[nodiscard]] inline UnitSignals* signals_of(Unit& unit) { return dynamic_cast<UnitSignals*>(&unit); }

}  // namespace waymark::flow
