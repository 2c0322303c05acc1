// The captures that a user may name, and the messages for anything else.
#include "waymark/doctor/capture_input.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "support/perf_file.h"
#include "support/temporary_folder.h"
#include "waymark/coresight/formatter.h"

namespace waymark::doctor {
namespace {

namespace fs = std::filesystem;

const fs::path sort_capture = fs::path(WAYMARK_SOURCE_DIR) / "examples" / "sort" / "capture";

class CaptureInputs : public testing::Test {
protected:
    std::string write(const char* name, const std::vector<std::uint8_t>& bytes) const {
        return folder_.write(name, bytes).string();
    }
    Result<pipeline::Session> open(const CaptureInput& input) {
        return open_capture(input, nullptr, [&](const std::string& note) { notes_.push_back(note); });
    }
    static CaptureInput named(const fs::path& capture) {
        CaptureInput out;
        out.capture = capture.string();
        return out;
    }
    const TemporaryFolder folder_;
    std::vector<std::string> notes_;
};

TEST_F(CaptureInputs, ASnapshotDescribesItself) {
    const auto session = open(named(sort_capture));
    ASSERT_TRUE(session.has_value()) << session.error().message;
    EXPECT_FALSE(session->sources.empty());
    EXPECT_FALSE(is_bare(named(sort_capture)));
    CaptureInput input = named(sort_capture);
    input.trace_ids = {"0x10"};
    EXPECT_EQ(input.bare_option(), "--trace-id");
    EXPECT_NE(open(input).error().message.find("leave out --trace-id"), std::string::npos);
}

TEST_F(CaptureInputs, AFolderAroundCapturesNamesOne) {
    fs::create_directory_symlink(sort_capture, folder_.path() / "inside");
    const auto opened = open(named(folder_.path()));
    ASSERT_FALSE(opened.has_value());
    EXPECT_NE(opened.error().message.find("it contains " + (folder_.path() / "inside").string()), std::string::npos);
    EXPECT_EQ(open(named(folder_.path() / "none")).error().code, Errc::not_found);
}

TEST_F(CaptureInputs, FilesOfAnotherKind) {
    const auto other = [&](const char* name, const std::vector<std::uint8_t>& bytes) {
        return open::no_trace(open::identify(write(name, bytes))).has_value();
    };
    EXPECT_TRUE(other("elf", {0x7f, 'E', 'L', 'F', 2, 1, 1, 0}));
    EXPECT_TRUE(other("text", std::vector<std::uint8_t>(64, 'a')));
    EXPECT_FALSE(other("bytes", {1, 2, 3, 4, 5, 6, 7, 8}));
    EXPECT_EQ(open(named(write("text", std::vector<std::uint8_t>(64, 'a')))).error().code, Errc::usage);
}

/// A first record with one wrong bit hides neither the unit nor the trace.
TEST_F(CaptureInputs, ADamagedBeginningKeepsTheUnit) {
    using capture::perf::PerfWriter;
    const support::PerfBytes whole = support::small_perf_file(PerfWriter::Form::file);
    unsigned kept = 0;
    // The first record, and AUXTRACE_INFO behind it.
    const std::uint64_t first = whole.bytes[40] | std::uint64_t{whole.bytes[41]} << 8, info = whole.records.front();
    ASSERT_LT(first, info);
    ASSERT_EQ(whole.bytes[info], 70);
    for (const std::uint8_t type : {std::uint8_t{3}, std::uint8_t{4}}) {  // CoreSight, SPE
        for (unsigned bit = 0; bit < 16; ++bit) {
            SCOPED_TRACE(testing::Message() << "unit " << int{type} << ", bit " << bit);
            auto bytes = whole.bytes;
            bytes[info + 8] = type;
            std::uint8_t& size = bytes[first + 6 + bit / 8];
            size = static_cast<std::uint8_t>(size ^ 1U << bit % 8);
            const std::string file = write("damaged.data", bytes);
            const auto read = capture::perf::read_perf_data(*capture::byte_file_from_memory(bytes));
            ASSERT_TRUE(read.has_value());
            const open::Container container = open::identify(file);
            EXPECT_EQ(container.kind, read->auxtrace_info && read->auxtrace_info->type == 3 ? open::Kind::coresight_perf
                                                                                            : open::Kind::samples_perf);
            EXPECT_EQ(trace_taken_out(container).has_value(), !read->auxtrace_info);
            kept += read->auxtrace_info ? 1U : 0U;
        }
    }
    EXPECT_GT(kept, 0U);
}

TEST_F(CaptureInputs, ABareFileNeedsItsProtocol) {
    CaptureInput input = named(write("frames", std::vector<std::uint8_t>(64, 1)));
    EXPECT_TRUE(is_bare(input));
    EXPECT_NE(open(input).error().message.find("--write-snapshot"), std::string::npos);
    input = named(write("bytes", std::vector<std::uint8_t>(64, 2)));
    EXPECT_NE(open(input).error().message.find("--protocol"), std::string::npos);
    input.protocol = "nonsense";
    EXPECT_FALSE(is_bare(input));
    EXPECT_NE(open(input).error().message.find(protocol_option_names()), std::string::npos);
}

TEST_F(CaptureInputs, SourcesOfFramesAreFound) {
    std::vector<std::uint8_t> frames;
    coresight::Formatter formatter(frames);
    const std::vector<std::uint8_t> async{0, 0, 0, 0, 0, 0x80}, filling(300, 0x55);
    for (int i = 0; i < 20; ++i)
        for (const std::uint8_t id : {std::uint8_t{0x10}, std::uint8_t{0x2a}}) {
            formatter.add({id}, async);
            formatter.add({id}, filling);
        }
    formatter.flush();
    CaptureInput input = named(write("frames", frames));
    const std::string names = protocol_option_names();
    input.protocol = names.substr(0, names.find_first_of(" ,"));
    const auto session = open(input);
    ASSERT_TRUE(session.has_value()) << session.error().message;
    ASSERT_EQ(session->sources.size(), 2U);
    EXPECT_EQ(session->sources[0].name, "source_10");
    EXPECT_EQ(session->sources[1].name, "source_2a");
    ASSERT_EQ(notes_.size(), 1U);
    EXPECT_NE(notes_.front().find("16-byte CoreSight frames"), std::string::npos);
    input.trace_ids = {"0x2a", "0x2a"};
    EXPECT_EQ(open(input)->sources.size(), 1U);
    input.trace_ids = {"0x70"};
    EXPECT_EQ(open(input).error().code, Errc::usage);
}

}  // namespace
}  // namespace waymark::doctor
