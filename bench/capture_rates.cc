/// Million ranges a second of CPU time that the fast decoders of captures give, on one thread: `elements` to a sink
/// that looks up each block, and `counts` of edges. `capture_rates [--no-paths] [--once] CAPTURE…`: without remembered
/// paths (follow/paths.h); decode each capture once only, for profilers. Fails if both do not agree with truth.txt.
#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <vector>

#include "waymark/decode.h"
#include "waymark/follow/paths.h"

using namespace waymark;

namespace {

unsigned repetitions = 5;

[[nodiscard]] double seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

class Counting final : public flow::Sink {
public:
    explicit Counting(bool counts) : counts_(counts) {}
    void consume(const flow::Batch& batch) override {
        if (counts_) return;  // the ranges only list the counted edges
        ranges += batch.ranges.size();
        for (const flow::Range& range : batch.ranges) instructions += batch.blocks[range.block()].instructions;
    }
    [[nodiscard]] bool counts_suffice() const override { return counts_; }
    void take_counts(const flow::EdgeCounts& counts) override {
        for (std::size_t edge = 0; edge < counts.times.size(); ++edge) {
            ranges += counts.times[edge];
            instructions += counts.times[edge] * counts.blocks[edge / 2].instructions;
        }
    }
    std::uint64_t ranges = 0, instructions = 0;

private:
    const bool counts_;
};

/// The bytes of one source, which are decoded when they are complete.
class Measured final : public pipeline::Consumer {
public:
    explicit Measured(const pipeline::StreamInfo& stream) : stream_(stream) {}
    void feed(Bytes bytes) override { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
    void reset(GapReason) override {}
    void flush() override {}
    [[nodiscard]] std::array<Offset, 2> pending() const override { return {}; }
    void finish() override {
        std::uint64_t ranges = 0, instructions = 0;
        for (const bool counts : {false, true}) {
            double best = 1e9;
            for (unsigned i = 0; i < repetitions; ++i) {
                Counting sink(counts);
                const auto decoder = pipeline::flow_consumer(stream_, sink, pipeline::DecoderKind::fast, 1);
                const double began = seconds();
                for (std::size_t at = 0; at < bytes_.size(); at += piece)
                    decoder->feed(Bytes(bytes_).subspan(at, std::min(piece, bytes_.size() - at)));
                decoder->finish();
                best = std::min(best, seconds() - began);
                ranges = sink.ranges;
                instructions = sink.instructions;
            }
            std::printf(" %s %.1f", counts ? "counts" : "elements", static_cast<double>(ranges) / best / 1e6);
        }
        std::printf(" instructions %" PRIu64 "\n", instructions);
    }

private:
    static constexpr std::size_t piece = std::size_t{1} << 22;
    const pipeline::StreamInfo stream_;
    std::vector<std::uint8_t> bytes_;
};

}  // namespace

int main(int argc, char** argv) {
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--no-paths") == 0) {
            follow::usual_paths.none = true;
        } else if (std::strcmp(argv[i], "--once") == 0) {
            repetitions = 1;
        } else {
            doctor::CaptureInput input;
            input.capture = argv[i];
            const auto session = doctor::open_capture(input, nullptr, {});
            if (!session) return std::fprintf(stderr, "%s\n", session.error().message.c_str()), 1;
            std::printf("%s", std::filesystem::path(argv[i]).filename().c_str());
            (void)pipeline::run(*session, *session->select({}),
                                [&](const pipeline::StreamInfo& stream) { return std::make_unique<Measured>(stream); });
        }
    }
    return 0;
}
