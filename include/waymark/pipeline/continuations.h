/// What a recording continues where code changed: `waymark record` then begins a buffer and sources of their own, with
/// the names of those before and a number (src/record/README.md). Which source goes on with which, maps.txt says; for a
/// recording without that, the names do.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::pipeline {

/// Sources and buffers of a recording that go on with others; none, where no recording made the capture.
class Continuations {
public:
    Continuations(const Session& session, const std::vector<const Source*>& selected, const Report& report);
    [[nodiscard]] bool has_source(const std::string& name) const { return sources_.contains(name); }
    [[nodiscard]] bool has_buffer(const std::string& name) const { return buffers_.contains(name); }
    /// Everything in one line; empty if there is nothing.
    [[nodiscard]] std::string text() const;

private:
    std::set<std::string> sources_, firsts_, buffers_;
    std::uint64_t bytes_ = 0;
};

}  // namespace waymark::pipeline
