#include <nlohmann/json.hpp>

#include "script.h"

namespace waymark::program {

namespace {

using nlohmann::ordered_json;

ordered_json steps_of(std::span<const flow::RegisterStep> steps) {
    ordered_json out = ordered_json::array();
    for (const flow::RegisterStep& step : steps) {
        const bool write = step.kind == flow::RegisterStep::Kind::write;
        ordered_json one{{"access", write ? "write" : "wait"},
                         {"register", step.name},
                         {"offset", step.offset},
                         {"value", step.value}};
        if (!write) one["mask"] = step.mask;
        one["why"] = step.why;
        out.push_back(std::move(one));
    }
    return out;
}

}  // namespace

std::string json_script(const Plan& plan, const Proof& proof) {
    ordered_json out = ordered_json::object();
    if (plan.wanted.units != nullptr) out["trace_id"] = plan.wanted.trace_id;
    out["components"] = ordered_json::array();
    for (const Component& c : plan.components)
        out["components"].push_back({{"name", c.variable},
                                     {"title", c.title},
                                     {"base", c.base ? ordered_json(*c.base) : ordered_json(nullptr)},
                                     {"needs", c.program.needs},
                                     {"start", steps_of(c.program.enable)},
                                     {"stop", steps_of(c.program.disable)},
                                     {"release", steps_of(c.program.release)}});
    out["proof"] = {{std::string(proof.counted), proof.blocks},
                    {"traced", proof.traced},
                    {"trace_bytes", proof.given_bytes},
                    {"same_as_record", proof.same()},
                    {"stored_bytes", proof.stored_bytes}};
    return out.dump(2) + "\n";
}

}  // namespace waymark::program
