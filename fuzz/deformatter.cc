// The deformatter on arbitrary bytes: equal to the reference, equal in pieces of any length, and every byte accounted
// for. Its output is then formatted and taken apart again.
//
// Input: byte 0 chooses the framing and options, byte 1 seeds the lengths of the pieces; the rest is the capture.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "coresight/reference_deformatter.h"
#include "waymark/core/result.h"
#include "waymark/coresight/bypass.h"
#include "waymark/coresight/formatter.h"
#include "waymark/coresight/guess.h"

namespace {

using namespace waymark;
using namespace waymark::coresight;
using coresight::testing::Heard;
using coresight::testing::Reference;

void check_deformatter(Bytes capture, DeformatterOptions options, unsigned seed, const Reference& whole) {
    const auto next_length = [&] {
        seed = seed * 1103515245U + 12345U;
        return seed >> 16 & 31U;
    };
    const auto pieces = coresight::testing::deformat(capture, options, next_length);
    WM_CHECK(pieces.heard == whole.heard);
    WM_CHECK(pieces.totals == whole.totals);
    const auto reference = coresight::testing::ReferenceDeformatter::run(capture, options);
    WM_CHECK(reference.heard == whole.heard);
    WM_CHECK(reference.totals == whole.totals);
    WM_CHECK(whole.totals.bytes_read == capture.size());
    WM_CHECK(whole.totals.accounted() == capture.size());
}

std::vector<unsigned> data_of(const std::vector<Heard>& heard) {
    std::vector<unsigned> data;
    for (const auto& each : heard) {
        if (each.kind == Heard::Kind::data || each.kind == Heard::Kind::trigger) data.push_back(each.what);
    }
    return data;
}

void check_round_trip(const std::vector<unsigned>& data, DeformatterOptions options, unsigned configuration) {
    std::vector<std::uint8_t> capture;
    const bool tpiu = options.framing == Framing::tpiu;
    Formatter formatter(
        capture, {.repeat_frames = configuration >> 2 & 15U, .full_sync_frames = tpiu ? 1 + (configuration >> 6) : 0});
    for (const auto each : data) {
        const auto byte = static_cast<std::uint8_t>(each);
        if (byte == 0x5A) formatter.repeat_id();
        if (byte == 0xA5 && tpiu) formatter.idle();
        if (byte == 0xC3) formatter.flush();
        formatter.add({static_cast<std::uint8_t>(each >> 8)}, {&byte, 1});
    }
    formatter.flush();
    const auto again = coresight::testing::deformat(capture, options);
    WM_CHECK(data_of(again.heard) == data);
    WM_CHECK(again.totals.lost_bytes() == 0);
    WM_CHECK(again.totals.accounted() == capture.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
    if (size < 2) return 0;
    const unsigned configuration = input[0];
    const DeformatterOptions options{.framing = (configuration & 1U) != 0 ? Framing::tpiu : Framing::aligned,
                                     .reset_on_4_fsync = (configuration & 2U) == 0};
    const Bytes capture(input + 2, size - 2);
    const auto whole = coresight::testing::deformat(capture, options);
    check_deformatter(capture, options, input[1], whole);
    check_round_trip(data_of(whole.heard), options, configuration);
    (void)guess_framing(capture);
    WM_CHECK(strip_bypass_padding(capture).size() <= capture.size());
    return 0;
}
