// Decodes the program flow of a capture folder and prints counts.
#include <cinttypes>
#include <cstdio>
#include <utility>

#include "waymark/decode.h"

using namespace waymark;

int main(int argc, char** argv) {
    auto capture = capture::read_snapshot(argc > 1 ? argv[1] : ".");
    if (!capture) return std::fprintf(stderr, "%s\n", capture.error().message.c_str()), 1;
    auto session = pipeline::make_session(std::move(*capture), {});
    if (!session) return std::fprintf(stderr, "%s\n", session.error().message.c_str()), 1;

    flow::Summary summary;  // a sink that counts; derive from flow::Sink to see every range and event
    const auto report = pipeline::run(*session, *session->select({}), [&](const pipeline::StreamInfo& stream) {
        const bool known = stream.source.has_flow();
        return known ? pipeline::flow_consumer(stream, summary, pipeline::DecoderKind::fast) : nullptr;
    });
    for (const auto& buffer : report.buffers)
        if (buffer.error) std::fprintf(stderr, "%s\n", buffer.error->message.c_str());

    const flow::Totals& totals = summary.totals();
    std::printf("%" PRIu64 " instructions in %" PRIu64 " ranges, %" PRIu64 " exceptions, %" PRIu64 " bytes lost\n",
                totals.instructions, totals.ranges, totals.exceptions, totals.gap_bytes());
    return totals.ranges > 0 ? 0 : 1;
}
