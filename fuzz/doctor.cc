/// Recognises the bytes of a source, and recovers the flow before their first A-sync: any bytes, code and
/// configuration.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pft_input.h"
#include "waymark/core/result.h"
#include "waymark/doctor/identify.h"
#include "waymark/doctor/images.h"
#include "waymark/flow/blocks.h"
#include "waymark/flow/summary.h"
#include "waymark/image/memory_map.h"
#include "waymark/pft/likeness.h"
#include "waymark/pft/protocol.h"
#include "waymark/pft/recover.h"

using namespace waymark;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    fuzz::Input input({data, size});
    const pft::Config config = fuzz::config(input);
    const Bytes code = input.take(input.byte());
    const Bytes bytes = input.rest();

    std::vector<doctor::Stretch> stretches(1);
    stretches.front().bytes.assign(bytes.begin(), bytes.end());
    stretches.front().offsets.add({0}, {0});
    stretches.front().head = true;
    const doctor::Identity identity = doctor::identify(stretches);
    WM_CHECK(!identity.tried.empty());
    const pft::Likeness p = pft::likeness(stretches, config);
    WM_CHECK(p.lost_bytes + p.unsynchronised_bytes + p.padding_bytes <= bytes.size());

    image::MemoryMap map;
    if (!code.empty()) WM_CHECK(map.add_bytes({code.begin(), code.end()}, {0x8000}).has_value());
    (void)doctor::try_image(stretches, *pft::configuration(config), map);
    const std::vector<pft::CodeExtent> extents = doctor::extents_of(map, true);
    constexpr pft::RecoverLimits limits{.head_bytes = 1024, .places = 4096, .steps = 1 << 18};
    const pft::HeadRecovery head = pft::recover_head(config, map, extents, bytes, limits);
    WM_CHECK(head.first <= head.sync && head.sync.value <= bytes.size());
    WM_CHECK(head.outcome != pft::HeadOutcome::recovered || head.confidence >= pft::least_confidence);
    flow::Summary summary;
    flow::BlockTable table;
    flow::BatchWriter out(table, summary);
    pft::decode_head(head, config, map, bytes, out);
    // Nothing is damaged in a chain of packets: gaps lie between recovered stretches.
    WM_CHECK(head.outcome != pft::HeadOutcome::recovered ||
             summary.totals().gap_bytes() == head.sync - head.first - head.bytes());
    return 0;
}
