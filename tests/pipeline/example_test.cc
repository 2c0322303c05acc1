// The example captures against the addresses QEMU executed (examples/sort/capture/truth.txt,
// examples/sort/capture-aarch64/executed.txt).

#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <string>

#include "support/executed_hash.h"
#include "waymark/capture/snapshot.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark {
namespace {

const std::filesystem::path folder = std::filesystem::path(WAYMARK_SOURCE_DIR) / "examples/sort";

std::map<std::string, std::uint64_t> read_truth(const std::string& file) {
    std::map<std::string, std::uint64_t> truth;
    std::ifstream in(folder / file);
    for (std::string line; std::getline(in, line);) {
        const std::size_t space = line.find(' ');
        if (!line.starts_with('#') && space != std::string::npos)
            truth[line.substr(0, space)] = std::stoull(line.substr(space + 1));
    }
    return truth;
}

/// Follows every instruction of every range.
class Executed final : public flow::Sink {
public:
    explicit Executed(const isa::CodeReader& code) : code_(code) {}

    void consume(const flow::Batch& batch) override {
        flow::in_order(
            batch,
            [&](const flow::Block& block, const flow::Range&) {
                ++ranges;
                range_instructions += block.instructions;
                range_hash.add(block.start);
                range_hash.add(block.start + block.bytes);
                for (std::uint64_t at = block.start; at < block.start + block.bytes; ++executed) {
                    address_hash.add(at);
                    const std::uint8_t bytes = isa::fetch(code_, {}, {at}, block.isa).bytes;
                    ASSERT_NE(bytes, 0);
                    at += bytes;
                }
            },
            [&](const flow::Event& event) {
                if (const auto* e = std::get_if<flow::Exception>(&event.what)) {
                    ++exceptions;
                    svcs += e->type->kind == flow::ExceptionClass::supervisor_call;
                }
                bad += std::holds_alternative<Gap>(event.what) || std::holds_alternative<flow::NoMemory>(event.what) ||
                       std::holds_alternative<flow::Inconsistency>(event.what);
                timestamps += std::holds_alternative<flow::Timestamp>(event.what);
            });
    }

    std::uint64_t ranges = 0, range_instructions = 0, executed = 0, exceptions = 0, svcs = 0, bad = 0, timestamps = 0;
    synthetic::ExecutedHash address_hash, range_hash;

private:
    const isa::CodeReader& code_;
};

void decode(const std::string& name, pipeline::DecoderKind kind, const pipeline::SessionOptions& options,
            const std::function<void(const Executed&)>& check) {
    auto capture = capture::read_snapshot(folder / name);
    ASSERT_TRUE(capture.has_value()) << capture.error().message;
    EXPECT_TRUE(capture->problems.empty());
    auto session = pipeline::make_session(std::move(*capture), options);
    ASSERT_TRUE(session.has_value()) << session.error().message;
    EXPECT_TRUE(session->problems.empty());
    const auto sources = session->select({});
    ASSERT_TRUE(sources.has_value());
    ASSERT_EQ(sources->size(), 1U);
    Executed sink(*sources->front()->memory);
    const pipeline::Report report = pipeline::run(*session, *sources, [&](const pipeline::StreamInfo& stream) {
        return pipeline::flow_consumer(stream, sink, kind);
    });
    ASSERT_EQ(report.buffers.size(), 1U);
    EXPECT_FALSE(report.buffers[0].error.has_value());
    EXPECT_EQ(sink.exceptions, 3U) << "two lines are written, and the program ends";
    EXPECT_EQ(sink.bad, 0U);
    EXPECT_GT(sink.timestamps, 3U);
    check(sink);
}

void check(pipeline::DecoderKind kind, const pipeline::SessionOptions& options) {
    decode("capture", kind, options, [](const Executed& sink) {
        std::map<std::string, std::uint64_t> truth = read_truth("capture/truth.txt");
        ASSERT_EQ(truth.size(), 5U);
        EXPECT_EQ(sink.svcs, 3U);
        EXPECT_EQ(sink.executed, truth["executed"]);
        EXPECT_EQ(sink.address_hash.value(), truth["address_hash"]);
        EXPECT_EQ(sink.ranges, truth["ranges"]);
        EXPECT_EQ(sink.range_instructions, truth["range_instructions"]);
        EXPECT_EQ(sink.range_hash.value(), truth["range_hash"]);
    });
}

TEST(ExampleCapture, DecodesToWhatQemuExecuted) {
    check(pipeline::DecoderKind::fast, {});
    check(pipeline::DecoderKind::reference, {});
}

TEST(ExampleCapture, DecodesTheSameFromTheProgram) {
    check(pipeline::DecoderKind::fast, {.images = {(folder / "sort.elf").string()}, .symbols = {}});
}

TEST(ExampleCapture, OfAArch64DecodesToWhatQemuExecuted) {
    for (const auto kind : {pipeline::DecoderKind::fast, pipeline::DecoderKind::reference})
        for (const bool program : {false, true}) {
            pipeline::SessionOptions options;
            if (program) options.images = {(folder / "sort-aarch64.elf").string()};
            decode("capture-aarch64", kind, options, [](const Executed& sink) {
                std::map<std::string, std::uint64_t> executed = read_truth("capture-aarch64/executed.txt");
                ASSERT_EQ(executed.size(), 2U);
                EXPECT_EQ(sink.executed, executed["executed"]);
                EXPECT_EQ(sink.range_instructions, executed["executed"]);
                EXPECT_EQ(sink.address_hash.value(), executed["address_hash"]);
            });
        }
}

}  // namespace
}  // namespace waymark
