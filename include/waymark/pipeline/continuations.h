/// Finds sources and buffers that continue others. Where code changes, `waymark record` begins a new buffer and new
/// sources, with the old names and a number (src/record/README.md). maps.txt states which source continues which; in a
/// recording without such lines, the names decide.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::pipeline {

/// Sources and buffers of a recording that continue others; empty for captures that are not recordings.
class Continuations {
public:
    Continuations(const Session& session, const std::vector<const Source*>& selected, const Report& report);
    [[nodiscard]] bool has_source(const std::string& name) const { return sources_.contains(name); }
    [[nodiscard]] bool has_buffer(const std::string& name) const { return buffers_.contains(name); }
    /// The continuations in one line; empty if there are none.
    [[nodiscard]] std::string text() const;

private:
    std::set<std::string> sources_, firsts_, buffers_;
    std::uint64_t bytes_ = 0;
};

}  // namespace waymark::pipeline
