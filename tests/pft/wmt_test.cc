// Runs every file of tests/data/wmt through both decoders. WM_UPDATE_APPROVED=1 rewrites the [flow] of files that
// differ; the difference is reviewed like code.
#include "support/wmt.h"
#include "support/paths.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "pft/support.h"
#include "waymark/flow/blocks.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/reference_decoder.h"

namespace waymark::test {
namespace {

const std::filesystem::path data = WAYMARK_TEST_DATA;

/// The flow of the file's stream, fed in chunks of this many bytes; 0: each part at once.
template <class AnyDecoder>
std::vector<std::string> decode(const Wmt& wmt, std::size_t chunk_bytes, bool offsets) {
    FlowText text(wmt, offsets);
    flow::BlockTable table;
    flow::BatchWriter out(table, text);
    synthetic::vary_paths();
    AnyDecoder decoder(wmt.config, wmt.code, out);
    for (std::size_t part = 0; part < wmt.stream.size(); ++part) {
        if (part != 0) decoder.reset(GapReason::framing);
        Bytes rest = wmt.stream[part];
        while (!rest.empty()) {
            // A separate copy, so that a sanitizer detects a decoder that keeps pointing into its input.
            const Bytes piece = rest.first(chunk_bytes == 0 ? rest.size() : std::min(chunk_bytes, rest.size()));
            decoder.feed(std::vector<std::uint8_t>(piece.begin(), piece.end()));
            rest = rest.subspan(piece.size());
        }
    }
    decoder.finish();
    return text.lines;
}

/// The lines of [packets] are the output of `waymark packets` for their bytes. Files with raw bytes or `reset` have
/// none.
void expect_packets_as_printed(const Wmt& wmt) {
    if (wmt.packets.empty()) return;
    const auto collected = pft::test::collect(wmt.stream.front(), wmt.config);
    std::vector<std::string> printed;
    for (const auto& item : collected.items) printed.push_back(item.text);
    const std::string differs = difference(wmt.packets, printed);
    EXPECT_TRUE(differs.empty()) << wmt.file << ": - as the file says, + as printed\n" << differs;
}

class WmtFile : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(WmtFile, decodes_as_described) {
    const auto read = read_wmt(GetParam());
    ASSERT_TRUE(read.has_value()) << read.error().message;
    const Wmt& wmt = *read;
    expect_packets_as_printed(wmt);

    const auto flow = decode<pft::ReferenceDecoder>(wmt, 0, wmt.offsets);
    if (flow != wmt.flow && std::getenv("WM_UPDATE_APPROVED") != nullptr) {
        std::ofstream(GetParam(), std::ios::binary) << with_flow(wmt, flow);
        GTEST_SKIP() << "[flow] is rewritten; review it:\n" << difference(wmt.flow, flow);
    }
    const std::string differs = difference(wmt.flow, flow);
    EXPECT_TRUE(differs.empty()) << wmt.file << ": - as the file says, + as decoded\n" << differs;

    // Always with offsets: the place of an element must not depend on the decoder or on the division of the stream.
    const auto reference = decode<pft::ReferenceDecoder>(wmt, 0, true);
    for (const std::size_t chunk_bytes : {0U, 1U, 2U, 3U, 7U}) {
        const std::string cut = difference(reference, decode<pft::ReferenceDecoder>(wmt, chunk_bytes, true));
        EXPECT_TRUE(cut.empty()) << "reference decoder, + in chunks of " << chunk_bytes << "\n" << cut;
        const std::string fast = difference(reference, decode<pft::Decoder>(wmt, chunk_bytes, true));
        EXPECT_TRUE(fast.empty()) << "- reference decoder, + decoder in chunks of " << chunk_bytes << "\n" << fast;
    }
}

std::string test_name(const testing::TestParamInfo<std::filesystem::path>& file) {
    std::string name = file.param.stem().string();
    for (char& ch : name)
        if (std::isalnum(static_cast<unsigned char>(ch)) == 0) ch = '_';
    return name;
}
INSTANTIATE_TEST_SUITE_P(files, WmtFile, testing::ValuesIn(wmt_files(data / "wmt")), test_name);

// A second stream through the same decoder must not continue where the first stream ended.
template <class AnyDecoder>
std::vector<std::string> decode_twice() {
    const auto wmt = parse_wmt(
        "[config]\ntimestamp_bytes=7 gray_timestamps=0\n[code A32 0x8000]\n8000: eafffffe  b 0x8000\n[packets]\n"
        "raw 00 00 00 00 00 80 08 00 80 00 00 21 42 d6 e8 c8 80 80 80 00 84\nreset\n"
        "raw 00 00 00 00 00 80 84 08 00 80 00 00 01 42 57 84\n[flow]\n",
        "f.wmt");
    FlowText text(*wmt, false);
    flow::BlockTable table;
    flow::BatchWriter out(table, text);
    synthetic::vary_paths();
    AnyDecoder decoder(wmt->config, wmt->code, out);
    for (const auto& stream : wmt->stream) {
        decoder.feed(stream);
        decoder.finish();
    }
    return text.lines;
}

TEST(Finish, begins_again_with_nothing_known) {
    const std::vector<std::string> flow = {
        "trace_on enabled",
        "context S",
        "timestamp 0x123456",
        "range 0x8000..0x8004 1 A32 E direct -> 0x8000",
        "gap 27..28 unsynchronised",
        "trace_on begin",
        "context S",
        "timestamp 0x57 partial",
        "range 0x8000..0x8004 1 A32 E direct -> 0x8000",
    };
    EXPECT_EQ(difference(flow, decode_twice<pft::ReferenceDecoder>()), "");
    EXPECT_EQ(difference(flow, decode_twice<pft::Decoder>()), "");
}

TEST(WmtReader, names_file_and_line_of_a_mistake) {
    const std::pair<const char*, const char*> mistakes[] = {
        {"[config]\nno_such=1\n", "f.wmt:2: no configuration is called 'no_such'"},
        {"[config]\nreturn_stack=yes\n", "f.wmt:2: 'return_stack=yes' gives no number"},
        {"[config]\nreturn_stack=2\n", "f.wmt:2: no configuration is called 'return_stack'"},
        {"\n[code A64 0]\n", "f.wmt:2: no instruction set for [code] is called 'A64'"},
        {"[code A32]\n", "f.wmt:1: [code] needs an instruction set and an address"},
        {"[code A32 0 space=X]\n", "f.wmt:1: [code] cannot have 'space=X'"},
        {"[code A32 0x8000]\n8004: e1a00000  nop\n", "f.wmt:2: the next instruction is at 0x8000, not 0x8004"},
        {"[code A32 0x8000]\n8000: e1a0  nop\n", "f.wmt:2: 'e1a0' is no opcode of A32"},
        {"[code T32 0x8000]\nnop\n",
         "f.wmt:2: a line of [code] is 'address: opcode  text', with two blanks before the text"},
        {"[packets]\nATOMS atoms=E\n", "f.wmt:2: no packet is called 'ATOMS'"},
        {"[packets]\nATOM atoms=EX\n", "f.wmt:2: ATOM: cannot read 'atoms' in 'ATOM atoms=EX'"},
        {"[packets]\nraw 123\n", "f.wmt:2: '123' is no byte"},
        {"[flow]\n", "f.wmt:1: [packets] must come before [flow]"},
        {"[packets]\n[flow]\nranges\n", "f.wmt:3: no flow element is called 'ranges'"},
        {"[packets]\n[flow]\n[config]\n", "f.wmt:3: [flow] must be the last part"},
        {"[packets]\n", "f.wmt:2: the file has no [flow]"},
        {"[pakets]\n", "f.wmt:1: unknown part [pakets]"},
        {"[packets\n", "f.wmt:1: '[packets' has no ]"},
        {"ATOM\n", "f.wmt:1: 'ATOM' stands before the first [part]"},
    };
    for (const auto& [text, message] : mistakes) {
        const auto wmt = parse_wmt(text, "f.wmt");
        ASSERT_FALSE(wmt.has_value()) << text;
        EXPECT_EQ(wmt.error().message, message);
    }
}

TEST(WmtReader, reads_every_part) {
    const auto wmt = parse_wmt(
        "# section 4.5: empty stack\n[config]\nETMCR=0x20001000\nmax_walk_bytes=64 # few\n"
        "[code T32 0x100 section=a space=H]\n100: f000 f802  bl 0x108\n104: bf00*2  nop\n"
        "[packets]\nTRIGGER\nraw 66\nreset\nraw 0c\n[flow]\ntrigger   # one\n",
        "f.wmt");
    ASSERT_TRUE(wmt.has_value()) << wmt.error().message;
    EXPECT_EQ(wmt->rules, std::vector<std::string>{"4.5: empty stack"});
    EXPECT_TRUE(wmt->config.return_stack && wmt->config.cycle_accurate);
    EXPECT_EQ(wmt->config.max_walk_bytes, 64U);
    EXPECT_EQ(wmt->stream, (WmtStream{{0x0c, 0x66}, {0x0c}}));
    EXPECT_EQ(wmt->flow, std::vector<std::string>{"trigger"});
    EXPECT_TRUE(wmt->code.at({0x100}, {}).bytes.empty()) << "only seen in Hyp mode";
    isa::Space hyp;
    hyp.ns = hyp.hyp = true;
    const auto seen = wmt->code.at({0x102}, hyp).bytes;
    EXPECT_EQ(std::vector<std::uint8_t>(seen.begin(), seen.end()),
              (std::vector<std::uint8_t>{0x02, 0xf8, 0x00, 0xbf, 0x00, 0xbf}));
}

TEST(WmtReader, rewrites_the_flow_and_keeps_its_comments) {
    const auto wmt = parse_wmt("[packets]\nTRIGGER\n[flow]\n# why\ntrigger   # one\ncycles 3\n# end\n", "f.wmt");
    ASSERT_TRUE(wmt.has_value()) << wmt.error().message;
    EXPECT_EQ(with_flow(*wmt, {"trigger", "cycles 4"}),
              "[packets]\nTRIGGER\n[flow]\n# why\ntrigger   # one\ncycles 4\n# end\n");
    EXPECT_EQ(difference(wmt->flow, {"trigger", "cycles 4"}), "  trigger\n- cycles 3\n+ cycles 4\n");
    EXPECT_EQ(difference(wmt->flow, wmt->flow), "");
}

}  // namespace
}  // namespace waymark::test
