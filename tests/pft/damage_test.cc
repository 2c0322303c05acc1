// Damaged streams: the .wmt files with bytes flipped, dropped, doubled and mixed. Both decoders must end, agree, and
// not depend on the division of the stream.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>
#include <string>

#include "support/paths.h"
#include "support/sanitized.h"
#include "support/wmt.h"
#include "waymark/flow/blocks.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/reference_decoder.h"

namespace waymark::test {
namespace {

using Random = std::mt19937_64;

template <class AnyDecoder>
std::vector<std::string> decode(const Wmt& wmt, Bytes stream, std::size_t chunk_bytes) {
    FlowText text(wmt, true);
    flow::BlockTable table;
    flow::BatchWriter out(table, text);
    synthetic::vary_paths();
    AnyDecoder decoder(wmt.config, wmt.code, out);
    while (!stream.empty()) {
        const std::size_t now = std::min(stream.size(), chunk_bytes);
        decoder.feed(stream.first(now));
        stream = stream.subspan(now);
    }
    decoder.finish();
    return text.lines;
}

std::vector<std::uint8_t> damaged(const Wmt& wmt, Random& random) {
    std::vector<std::uint8_t> out;
    for (const auto& part : wmt.stream) out.insert(out.end(), part.begin(), part.end());
    // Twice, so that most damage is followed by bytes to synchronise to.
    const std::vector<std::uint8_t> once = out;
    out.insert(out.end(), once.begin(), once.end());
    for (auto times = 1 + random() % 4; times != 0 && !out.empty(); --times) {
        const auto at = out.begin() + static_cast<std::ptrdiff_t>(random() % out.size());
        switch (random() % 5) {
            case 0: *at = static_cast<std::uint8_t>(*at ^ 1U << random() % 8); break;
            case 1: *at = static_cast<std::uint8_t>(random()); break;
            case 2: out.erase(at); break;
            case 3: out.insert(at, static_cast<std::uint8_t>(random())); break;
            default: {
                constexpr std::uint8_t headers[] = {0x08, 0x72, 0x76, 0x0c, 0x3c, 0x42, 0x84, 0xe2, 0x81, 0x6e};
                out.insert(at, headers[random() % std::size(headers)]);
                break;
            }
        }
    }
    return out;
}

TEST(Damage, decoders_agree) {
    const char* const asked = std::getenv("WAYMARK_SEED");
    const std::uint64_t seed = asked != nullptr ? std::strtoull(asked, nullptr, 0) : 1;
    SCOPED_TRACE("WAYMARK_SEED=" + std::to_string(seed));
    Random random(seed);
    for (const auto& path : wmt_files(std::filesystem::path(WAYMARK_TEST_DATA) / "wmt")) {
        const auto read = read_wmt(path);
        ASSERT_TRUE(read.has_value()) << read.error().message;
        for (unsigned i = 0; i < sized(40U, 10U); ++i) {
            Wmt wmt = *read;
            wmt.config.max_walk_bytes = 256;
            wmt.config.return_stack = random() % 2 == 0;
            wmt.config.cycle_accurate = random() % 4 == 0;
            const std::vector<std::uint8_t> stream = damaged(wmt, random);
            const auto reference = decode<pft::ReferenceDecoder>(wmt, stream, stream.size());
            const std::size_t chunk_bytes = 1 + random() % 9;
            std::string differs = difference(reference, decode<pft::Decoder>(wmt, stream, chunk_bytes));
            if (differs.empty())
                differs = difference(reference, decode<pft::ReferenceDecoder>(wmt, stream, chunk_bytes));
            if (differs.empty()) continue;
            std::string bytes;
            for (const std::uint8_t byte : stream) bytes.append(" ").append(std::to_string(byte));
            FAIL() << path << ", chunks of " << chunk_bytes << ", bytes" << bytes << "\n" << differs;
        }
    }
}

}  // namespace
}  // namespace waymark::test
