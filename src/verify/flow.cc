#include "waymark/verify/flow.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "waymark/pipeline/packet_counter.h"
#include "waymark/protocol/message.h"

namespace waymark::verify {

namespace {

using record::SourceTruth;

flow::MapOffset offsets_of(const pipeline::StreamInfo& stream) {
    return [&offsets = stream.offsets](Offset at) { return offsets.capture(at).value; };
}

/// Keeps the packets around one offset.
class PacketsAround final : public protocol::PacketListener {
public:
    PacketsAround(const pipeline::StreamInfo& stream, Offset place) : stream_(stream), place_(place) {}

    void packet(const protocol::PacketView& packet, protocol::Extent at) override {
        if (after_ == shown) return;
        const std::string& meaning = packet.meaning();
        const std::string fields = packet.fields_text();
        keep(at.first, fmt::format("{:<16} {}{}{}", packet.name(), fields,
                                   meaning.empty() || fields.empty() ? "" : "  ; ", meaning));
    }
    void gap(const Gap& gap) override {
        if (after_ != shown)
            keep(gap.first, fmt::format("(gap)            {} bytes: {}", gap.bytes(), name(gap.reason)));
    }
    [[nodiscard]] const std::deque<PacketNear>& packets() const { return packets_; }

private:
    static constexpr unsigned shown = 6;
    void keep(Offset at, std::string text) {
        const bool here = !here_ && at >= place_;
        here_ |= here;
        packets_.push_back({stream_.offsets.capture(at), std::move(text), here});
        if (here_) ++after_;
        if (!here_ && packets_.size() > shown) packets_.pop_front();
    }

    const pipeline::StreamInfo stream_;
    const Offset place_;
    std::deque<PacketNear> packets_;
    bool here_ = false;
    unsigned after_ = 0;
};

/// Sums up the messages of one stream, like ranges.
class MessageSums final : public pipeline::ReaderConsumer, private protocol::MessageListener {
public:
    MessageSums(const protocol::MessageSource& source, SourceTruth& out) : out_(out) {
        reader_ = source.messages(*this);
    }

private:
    void message(const protocol::Message& message) override {
        ++out_.ranges;
        const auto contents = protocol::contents(message);
        for (std::size_t i = 0; i + 1 < contents.size(); i += 2)
            out_.hash = record::truth_hash(out_.hash, contents[i], contents[i + 1]);
    }

    SourceTruth& out_;
};

std::vector<PacketNear> packets_around(const pipeline::Session& session, const pipeline::Source& source, Offset place) {
    const std::vector<const pipeline::Source*> one{&source};
    std::deque<PacketsAround> around;  // of each buffer
    static_cast<void>(pipeline::run(session, one, [&](const pipeline::StreamInfo& stream) {
        return pipeline::packet_consumer(stream, around.emplace_back(stream, place));
    }));
    std::vector<PacketNear> out;
    for (const PacketsAround& buffer : around) out.insert(out.end(), buffer.packets().begin(), buffer.packets().end());
    return out;
}

using Comparisons = std::map<const pipeline::Source*, std::unique_ptr<record::Comparison>>;

/// For buffers that wrapped or stopped early: the number of ranges of each source before the trace. The trace ends
/// where the truth ends, so this follows from the number of ranges in the trace; if the buffer stopped, its ranges are
/// searched in the truth.
std::map<std::string, std::uint64_t> ranges_gone(const pipeline::Session& session,
                                                 const std::vector<const pipeline::Source*>& selected,
                                                 const record::Truth& truth, const std::filesystem::path& folder) {
    std::map<std::string, std::uint64_t> gone;
    std::map<std::string, std::vector<record::TruthRange>> kept;  // of buffers that stopped early
    std::map<std::string, std::string> files;
    for (const pipeline::Source* source : selected)
        for (const SourceTruth& s : truth.sources) {
            if ((!s.wrapped && !s.stopped) || s.source != source->name) continue;
            gone[s.source] = s.ranges;
            if (!s.stopped || s.file.empty()) continue;
            kept[s.source];
            files[s.source] = s.file;
        }
    if (gone.empty()) return gone;
    Comparisons counts;
    const auto make = [&](const pipeline::StreamInfo& stream) -> std::unique_ptr<pipeline::Consumer> {
        if (!stream.source.has_flow()) return nullptr;
        auto& count = counts[&stream.source];
        count = std::make_unique<record::Comparison>(offsets_of(stream), std::nullopt, 0);
        if (const auto ranges = kept.find(stream.source.name); ranges != kept.end()) count->keep(ranges->second);
        return pipeline::flow_consumer(stream, *count, pipeline::DecoderKind::fast);
    };
    static_cast<void>(pipeline::run(session, selected, make));
    for (const auto& [source, count] : counts) {
        const auto at = gone.find(source->name);
        if (at == gone.end()) continue;
        count->finish(false);
        at->second -= std::min(at->second, count->sums().ranges);
        if (!files.contains(source->name)) continue;
        // If the kept ranges are found nowhere, the comparison from here on shows a difference.
        if (auto ranges = record::RangeReader::open(folder / files.at(source->name)))
            if (const auto place = record::last_place_of(kept.at(source->name), std::move(*ranges)))
                at->second = *place;
    }
    return gone;
}

/// The end of the truth must be in the trace, range by range; trace before the first synchronisation is lost. The
/// ranges of a buffer that stopped early must be a part of the truth.
Verdict verdict_of_wrapped(const VerifiedSource& s, bool complete) {
    const bool comparable = complete && !s.executed.file.empty() && (!s.decodes || s.has_ranges);
    if (!comparable) return Verdict::not_compared;
    return s.difference ? Verdict::different : Verdict::equal;
}

Verdict verdict_of(const VerifiedSource& s, bool complete) {
    if (!complete) {
        if (!s.has_ranges) return Verdict::not_compared;
        return !s.difference || !s.difference->executed ? Verdict::equal : Verdict::different;
    }
    const bool same = s.executed.ranges == s.decoded.ranges && s.executed.instructions == s.decoded.instructions &&
                      s.executed.hash == s.decoded.hash;
    const bool declared = s.executed.lost_ranges == 0 || s.overflows != 0;
    return same && declared ? Verdict::equal : Verdict::different;
}

/// Only sums are known, so the cut part cannot be compared.
Verdict verdict_of_messages(const VerifiedSource& s, bool complete) {
    if (!complete) return Verdict::not_compared;
    return s.executed.ranges == s.decoded.ranges && s.executed.hash == s.decoded.hash ? Verdict::equal
                                                                                      : Verdict::different;
}

VerifiedSource verified(const pipeline::Source& source, const record::Truth& truth, record::Comparison* comparison,
                        const SourceTruth* messages) {
    VerifiedSource out;
    out.source = &source;
    const auto known = std::find_if(truth.sources.begin(), truth.sources.end(),
                                    [&](const SourceTruth& s) { return s.source == source.name; });
    out.named = known != truth.sources.end();
    if (!out.named) return out;
    out.executed = *known;
    out.decodes = comparison != nullptr || messages != nullptr;
    if (messages != nullptr) {
        out.decoded = *messages;
        out.of_messages = true;
        out.verdict = verdict_of_messages(out, truth.complete);
        return out;
    }
    if (comparison != nullptr) {
        comparison->finish(!truth.complete || known->stopped);
        const flow::Totals& totals = comparison->totals();
        out.decoded = comparison->sums();
        out.has_ranges = comparison->has_ranges();
        out.difference = comparison->difference();
        out.overflows = totals.trace_on[static_cast<unsigned>(flow::TraceOnReason::overflow)];
        out.unsynchronised = totals.gaps[static_cast<unsigned>(GapReason::unsynchronised)].bytes;
    }
    out.verdict =
        known->wrapped || known->stopped ? verdict_of_wrapped(out, truth.complete) : verdict_of(out, truth.complete);
    return out;
}

}  // namespace

Verdict VerifiedFlow::verdict() const {
    Verdict out = Verdict::equal;
    for (const VerifiedSource& s : sources) out = std::max(out, s.verdict);
    return out;
}

VerifiedFlow verify_flow(const pipeline::Session& session, const std::vector<const pipeline::Source*>& selected,
                         const record::Truth& truth, const std::filesystem::path& folder,
                         const pipeline::Progress& progress) {
    VerifiedFlow out;
    const std::map<std::string, std::uint64_t> gone = ranges_gone(session, selected, truth, folder);
    out.wrapped = !gone.empty();
    Comparisons comparisons;
    std::map<const pipeline::Source*, SourceTruth> messages;
    const auto make = [&](const pipeline::StreamInfo& stream) -> std::unique_ptr<pipeline::Consumer> {
        if (const auto* const source = protocol::message_source(stream.source.configuration.get()); source != nullptr)
            return std::make_unique<MessageSums>(*source, messages[&stream.source]);
        if (!stream.source.has_flow()) return nullptr;
        std::optional<record::RangeReader> ranges;
        for (const SourceTruth& s : truth.sources) {
            if (s.source != stream.source.name || s.file.empty()) continue;
            auto reader = record::RangeReader::open(folder / s.file);
            if (reader)
                ranges = std::move(*reader);
            else
                out.warnings.push_back(reader.error().message);
        }
        const auto before = gone.find(stream.source.name);
        auto& comparison = comparisons[&stream.source];
        comparison = std::make_unique<record::Comparison>(offsets_of(stream), std::move(ranges),
                                                          before == gone.end() ? 0 : before->second);
        return pipeline::flow_consumer(stream, *comparison, pipeline::DecoderKind::fast);
    };
    out.report = pipeline::run(session, selected, make, progress);
    for (const pipeline::Source* source : selected) {
        const auto found = comparisons.find(source);
        VerifiedSource& s = out.sources.emplace_back(
            verified(*source, truth, found == comparisons.end() ? nullptr : found->second.get(),
                     messages.contains(source) ? &messages.at(source) : nullptr));
        out.instructions += s.decoded.instructions;
        if (s.of_messages) out.messages += s.decoded.ranges;
        if (s.verdict == Verdict::different && s.difference)
            s.around = packets_around(session, *source, s.difference->stream);
    }
    return out;
}

}  // namespace waymark::verify
