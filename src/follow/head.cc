#include "waymark/follow/head.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "head_search.h"

namespace waymark::follow {

void search_head(const HeadRules& rules, const isa::CodeReader& code, std::span<const CodeExtent> extents,
                 std::span<const Observation> observations, double unseen, const RecoverLimits& limits,
                 HeadRecovery& out) {
    const auto without = [&](HeadOutcome why) { out.outcome = why; };
    out.unseen = unseen;
    head::Program program(rules, code, extents, limits);
    head::Search search(rules, program, unseen / (1 - unseen));
    search.run(observations);
    out.obstacles.untraced += search.obstacles().untraced;
    out.obstacles.repeated += search.obstacles().repeated;
    if (search.exhausted()) return without(HeadOutcome::too_much);
    out.paths = search.left();
    const auto& path = search.chosen();
    if (!path) return without(HeadOutcome::no_path);
    auto known = search.known(*path, static_cast<std::uint32_t>(observations.size() - 1));
    if (known.empty()) return without(search.left() > 1 ? HeadOutcome::ambiguous : HeadOutcome::no_path);
    if (search.confidence() < least_confidence) return without(HeadOutcome::unconfirmed);
    out.outcome = HeadOutcome::recovered;
    for (head::Search::Known& k : known) {
        out.stretches.push_back({observations[k.first].at, observations[k.end].at, std::move(k.standing)});
        out.stretches.back().standing.ns = rules.space.ns;
        out.stretches.back().standing.hyp = rules.space.hyp;
        out.stretches.back().standing.nse = rules.space.nse;
        out.packets += k.end - k.first;
    }
    out.first = out.stretches.front().first;
    out.checks = search.checks();
    out.places = search.places();
    out.chance = search.chance();
    out.confirmed = search.confirmed();
    out.confidence = search.confidence();
}

std::vector<CodeExtent> below_4gb(std::span<const CodeExtent> extents) {
    constexpr std::uint64_t end = std::uint64_t{1} << 32;
    std::vector<CodeExtent> out;
    for (const CodeExtent& extent : extents)
        if (extent.first.value < end) out.push_back({extent.first, std::min(extent.bytes, end - extent.first.value)});
    return out;
}

bool holds_sync(Bytes held, std::size_t zeros) {
    std::size_t run = 0;
    for (std::size_t at = 0; at + judged_bytes < held.size(); ++at) {
        if (held[at] == 0x80 && run >= zeros) return true;
        run = held[at] == 0 ? run + 1 : 0;
    }
    return false;
}

HeadChains::HeadChains(std::size_t head_bytes, std::size_t first_end, std::size_t longest,
                       const std::function<std::size_t(std::size_t)>& packet_at)
    : first_end_(std::min(first_end, head_bytes)), longest_(longest), leads_(head_bytes + 1), length_(head_bytes + 1) {
    for (std::size_t end = first_end_; end <= head_bytes; ++end) leads_[end] = 1;
    for (std::size_t at = first_end_; at-- > 0;) {
        const std::size_t length = packet_at(at);
        length_[at] = static_cast<std::uint8_t>(length);
        leads_[at] = length != 0 && at + length <= head_bytes && leads_[at + length] != 0;
    }
}

std::optional<std::size_t> HeadChains::joined() const {
    std::size_t from = 0;
    while (from < first_end_ && leads_[from] == 0) ++from;
    std::vector<std::size_t> chains;
    for (std::size_t at = from; at < std::min(first_end_, from + longest_); ++at)
        if (leads_[at] != 0) chains.push_back(at);
    if (chains.empty()) return {};
    for (;;) {
        const auto [least, most] = std::minmax_element(chains.begin(), chains.end());
        if (*least >= first_end_) return {};  // the paths end in different places, or in the synchronisation packet
        if (*least == *most) return *least;
        *least += length_[*least];
    }
}

namespace {

/// Counts the bytes of trace that report execution in unknown code, or in code that differs from the image's code.
class UnseenBytes final : public flow::Sink {
public:
    void consume(const flow::Batch& batch) override {
        flow::in_order(
            batch, [&](const flow::Block&, const flow::Range& range) { see(batch.base + range.offset); },
            [&](const flow::Event& event) {
                if (std::holds_alternative<flow::NoMemory>(event.what) ||
                    std::holds_alternative<flow::Inconsistency>(event.what))
                    from_ = from_.value_or(event.offset);
            });
    }
    std::uint64_t finish(Offset end) {
        see(end);
        return bytes_;
    }

private:
    void see(Offset at) {
        if (from_ && at > *from_) bytes_ += at - *from_;
        from_.reset();
    }
    std::optional<Offset> from_;
    std::uint64_t bytes_ = 0;
};

}  // namespace

double unseen_share(Bytes behind, const std::function<void(Bytes, flow::BatchWriter&)>& decode) {
    behind = behind.first(std::min(behind.size(), judged_bytes));
    UnseenBytes sink;
    flow::BlockTable table;
    flow::BatchWriter out(table, sink);
    decode(behind, out);
    constexpr double least = 8;  // bytes; used if there is no such execution, since the next may be
    return (static_cast<double>(sink.finish({behind.size()})) + least) /
           (static_cast<double>(behind.size()) + 2 * least);
}

void decode_head(const HeadRecovery& head, flow::BatchWriter& out,
                 const std::function<void(const HeadStretch&, flow::BatchWriter&)>& stretch) {
    Offset end = head.first;
    const auto gap = [&](Offset until) {
        if (until > end) out.event(end, Gap{end, until, GapReason::unsynchronised});
    };
    for (const HeadStretch& s : head.stretches) {
        gap(s.first);
        stretch(s, out);
        end = s.end;
    }
    if (!head.stretches.empty()) gap(head.sync);
    out.flush();
}

}  // namespace waymark::follow
