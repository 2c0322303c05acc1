/// Reads every range of a bare trace file of a PTM in C++: bench/python.sh compares the Python module with it.
/// `library_ranges FOLDER`: FOLDER/trace.bin and code-ADDRESS.bin, as `pft_rates --write` makes them.
#include <cinttypes>
#include <cstdio>
#include <filesystem>

#include "waymark/decode.h"

using namespace waymark;

namespace {

/// Resolves every block in order, as a real consumer does.
class Counting final : public flow::Sink {
public:
    void consume(const flow::Batch& batch) override {
        ranges += batch.ranges.size();
        for (const flow::Range& range : batch.ranges) instructions += batch.blocks[range.block()].instructions;
    }
    std::uint64_t ranges = 0, instructions = 0;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return std::fprintf(stderr, "usage: library_ranges FOLDER\n"), 2;
    const std::filesystem::path folder = argv[1];
    doctor::CaptureInput input;
    input.capture = folder / "trace.bin";
    input.protocol = "ptm";
    input.buffer_format = "source_data";
    // The registers of tests/support/measured_streams.h.
    input.registers = {{"--etmcr", "0"}, {"--etmccer", "0x34c01ac2"}, {"--etmidr", "0x411cf312"}};
    for (const auto& file : std::filesystem::directory_iterator(folder))
        if (const std::string name = file.path().stem(); name.starts_with("code-"))
            input.images.push_back(file.path().string() + "@" + name.substr(5));
    const auto session = doctor::open_capture(input, nullptr, {});
    if (!session) return std::fprintf(stderr, "%s\n", session.error().message.c_str()), 1;
    Counting sink;
    (void)pipeline::run(*session, *session->select({}), [&](const pipeline::StreamInfo& stream) {
        return pipeline::flow_consumer(stream, sink, pipeline::DecoderKind::fast);
    });
    std::printf("%" PRIu64 " ranges, %" PRIu64 " instructions\n", sink.ranges, sink.instructions);
    return sink.ranges != 0 ? 0 : 1;
}
