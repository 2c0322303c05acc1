/// Lists elements of program flow, line by line.
#pragma once

#include <memory>

#include "waymark/flow/flow.h"
#include "waymark/listing/text.h"
#include "waymark/pipeline/run.h"

namespace waymark::listing {

/// The listing of all sources of a session.
class FlowListing {
public:
    /// `out` is borrowed; the names of the columns, if any, are written at once. `disassemble`: listings as text
    /// contain the instructions of each range.
    FlowListing(TextSink& out, LineFormat format, bool disassemble = false);
    FlowListing(const FlowListing&) = delete;
    FlowListing& operator=(const FlowListing&) = delete;

    /// A sink that writes a line for each element of one source in one buffer. It must be destroyed before this object,
    /// and before the objects in `stream`.
    [[nodiscard]] std::unique_ptr<flow::Sink> of(const pipeline::StreamInfo& stream);

private:
    TextSink& out_;
    LineFormat format_;
    bool disassemble_;
    const pipeline::Source* last_source_ = nullptr;
};

}  // namespace waymark::listing
