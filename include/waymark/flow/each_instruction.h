/// Trace units that send an outcome for every instruction.
#pragma once

#include "waymark/flow/unit.h"

namespace waymark::flow {

/// A UnitFactory that also derives from this class makes such units. They receive every instruction as a
/// RetiredWaypoint, an ordinary one with Waypoint::none, and no straight instructions before it.
class EachInstruction {
protected:
    ~EachInstruction() = default;
    EachInstruction() = default;

private:
    virtual void anchor() const {}
};

[[nodiscard]] inline bool traces_each_instruction(const UnitFactory& units) {
    return dynamic_cast<const EachInstruction*>(&units) != nullptr;
}

}  // namespace waymark::flow
