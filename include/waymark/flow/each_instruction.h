/// Trace units that send an outcome for every instruction.
#pragma once

#include "waymark/flow/unit.h"

namespace waymark::flow {

/// A UnitFactory that derives from it too makes such units. They are given every instruction as a RetiredWaypoint, an
/// ordinary one with Waypoint::none, and nothing that ran straight before it.
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
