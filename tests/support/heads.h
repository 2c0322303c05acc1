/// Heads of streams that were cut: recovered flow, compared with the flow of the uncut stream.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "support/elements.h"
#include "support/random.h"
#include "waymark/core/types.h"
#include "waymark/flow/blocks.h"
#include "waymark/follow/recover.h"

namespace waymark::synthetic {

/// The ranges in a list, by the packet that reports them.
using Ranges = std::vector<std::pair<std::uint64_t, flow::Block>>;
inline Ranges ranges_of(const std::vector<Element>& elements, std::uint64_t shift, std::uint64_t from,
                        std::uint64_t to) {
    Ranges out;
    for (const Element& e : elements)
        if (e.kind == Kind::range && e.offset + shift >= from && e.offset + shift < to)
            out.emplace_back(e.offset + shift, e.block);
    return out;
}

/// Results of recovering many heads.
struct HeadScore {
    std::uint64_t heads = 0, recovered_heads = 0, truth = 0, right = 0, wrong = 0, bytes = 0, recovered_bytes = 0;
    std::map<follow::HeadOutcome, unsigned> outcomes;
    follow::Obstacles obstacles;
    double expected_wrong = 0;        ///< by the confidence stated
    std::uint64_t wrong_if_sure = 0;  ///< at a confidence that is printed as 1
    void print(const char* what) const {
        const auto number = [](std::uint64_t n) { return static_cast<unsigned long long>(n); };
        const auto share = [](std::uint64_t part, std::uint64_t of) {
            return 100.0 * static_cast<double>(part) / static_cast<double>(std::max<std::uint64_t>(of, 1));
        };
        std::printf(
            "%-24s %llu of %llu heads, %.1f %% of %llu ranges, %llu wrong (%.1f by the confidence stated), %.1f %% of "
            "%llu bytes",
            what, number(recovered_heads), number(heads), share(right, truth), number(truth), number(wrong),
            expected_wrong, share(recovered_bytes, bytes), number(bytes));
        for (const auto& [outcome, count] : outcomes)
            if (outcome != follow::HeadOutcome::recovered)
                std::printf("; %u: %s", count, std::string(name(outcome)).c_str());
        if (obstacles != follow::Obstacles{})
            std::printf("; %llu untraced, %llu repeated, %llu lost", number(obstacles.untraced),
                        number(obstacles.repeated), number(obstacles.lost));
        std::printf("\n");
    }
};

/// WAYMARK_PROPERTY_ROUNDS=20 in the environment multiplies the number of rounds by 20.
inline std::uint64_t property_rounds() {
    const char* text = std::getenv("WAYMARK_PROPERTY_ROUNDS");
    return text != nullptr ? std::max(1UL, std::strtoul(text, nullptr, 10)) : 1;
}

/// Cuts `bytes` at `cuts` places chosen by `seed`, and recovers each head: `recover(stream)` and `decode(head, stream,
/// out)`. `truth`: the elements of the whole.
template <class Recover, class Decode>
void cut_and_recover(Bytes bytes, const std::vector<Element>& truth, unsigned cuts, std::uint64_t seed,
                     HeadScore& score, Recover&& recover, Decode&& decode) {
    Random random(seed);
    for (unsigned i = 0; i < cuts; ++i) {
        const std::size_t cut = random.below(static_cast<std::uint32_t>(bytes.size() * 9 / 10));
        SCOPED_TRACE("cut at " + std::to_string(cut));
        const Bytes stream = bytes.subspan(cut);
        const follow::HeadRecovery head = recover(stream);
        if (head.outcome == follow::HeadOutcome::no_head || head.outcome == follow::HeadOutcome::no_sync) continue;
        ++score.heads;
        ++score.outcomes[head.outcome];
        score.obstacles.untraced += head.obstacles.untraced;
        score.obstacles.repeated += head.obstacles.repeated;
        score.obstacles.lost += head.obstacles.lost;
        score.bytes += head.sync.value;
        const Ranges expected = ranges_of(truth, 0, cut, cut + head.sync.value);
        score.truth += expected.size();
        if (head.outcome != follow::HeadOutcome::recovered) {
            EXPECT_EQ(head.bytes(), 0U);
            continue;
        }
        ++score.recovered_heads;
        score.recovered_bytes += head.bytes();
        EXPECT_GE(head.confidence, follow::least_confidence);
        flow::BlockTable table;
        ElementSink sink;
        flow::BatchWriter out(table, sink);
        decode(head, stream, out);
        const std::vector<Element> elements = sink.take();
        ASSERT_FALSE(elements.empty());
        EXPECT_EQ(elements.front().kind, Kind::trace_on);
        EXPECT_EQ(elements.front().a, static_cast<std::uint64_t>(flow::TraceOnReason::recovered));
        const Ranges found = ranges_of(elements, cut, cut, cut + head.sync.value);
        std::uint64_t right = 0;
        auto next = expected.begin();
        for (const auto& range : found) {
            const auto same = std::find(next, expected.end(), range);
            if (same == expected.end()) continue;
            ++right;
            next = same + 1;
        }
        score.right += right;
        score.wrong += found.size() - right;
        score.expected_wrong += (1 - head.confidence) * static_cast<double>(found.size());
        if (head.confidence > 0.99995) score.wrong_if_sure += found.size() - right;
    }
}

}  // namespace waymark::synthetic
