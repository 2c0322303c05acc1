/// Nexus messages: any bytes, any chunking. The reports cover the input from end to end, do not depend on how the input
/// is cut, and mean the same when written again. The first two bytes say how to cut and where to start.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/dpu/nexus.h"

namespace {

using namespace waymark;
using namespace waymark::dpu::nexus;

struct Collector {
    std::vector<Message> messages;
    std::vector<Gap> gaps;
    std::uint64_t at = 0, covered = 0;
    void operator()(const Message& message, Extent extent) {
        WM_CHECK(extent.first.value >= at && extent.bytes != 0);
        at = extent.end().value;
        covered += extent.bytes;
        messages.push_back(message);
    }
    void operator()(const Gap& gap) {
        WM_CHECK(gap.first.value >= at && gap.bytes() != 0);
        at = gap.end.value;
        covered += gap.bytes();
        gaps.push_back(gap);
    }
};

Collector parse(Bytes bytes, std::size_t piece, Parser<Collector>::Start start) {
    Collector out;
    Parser<Collector> parser(out, start);
    for (std::size_t at = 0; at < bytes.size(); at += piece)
        parser.feed(bytes.subspan(at, std::min(piece, bytes.size() - at)));
    parser.finish();
    WM_CHECK(out.covered + parser.idle_bytes() == bytes.size());
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    if (size < 2) return 0;
    const auto start = (data[1] & 1U) != 0 ? Parser<Collector>::Start::anywhere : Parser<Collector>::Start::message;
    const Bytes bytes(data + 2, size - 2);
    const Collector whole = parse(bytes, bytes.size() + 1, start);
    const Collector cut = parse(bytes, std::size_t{1} + data[0], start);
    WM_CHECK(cut.messages == whole.messages);
    WM_CHECK(cut.gaps == whole.gaps);

    Reader reader;
    std::vector<std::uint8_t> again;
    for (const Message& message : whole.messages) {
        (void)reader.read(message);
        const auto scanned = from_text(to_text(message));
        WM_CHECK(scanned.has_value() && *scanned == message);
        encode(again, message);
    }
    const Collector twice = parse(again, again.size() + 1, Parser<Collector>::Start::message);
    WM_CHECK(twice.messages == whole.messages);
    WM_CHECK(twice.gaps.empty());
    return 0;
}
