#include "waymark/listing/packets.h"

#include <optional>
#include <utility>

#include "packet_lines.h"
#include "waymark/core/utf8.h"
#include "waymark/protocol/packet_rows.h"

namespace waymark::listing {

namespace {

/// Writes the packets of one source as they arrive: as rows, where the protocol can write them and no other form or
/// choice of packets was requested.
class SourcePackets final : public pipeline::ReaderConsumer,
                            private protocol::PacketListener,
                            private protocol::PacketRows {
public:
    SourcePackets(PacketLines& lines, const pipeline::StreamInfo& stream)
        : PacketRows(stream.offsets, one_line(stream.source.id_text()), one_line(stream.buffer.name)),
          lines_(lines),
          stream_(stream) {
        const auto* const rows = dynamic_cast<const protocol::RowSource*>(stream.source.configuration.get());
        if (rows != nullptr && lines.takes_rows())
            reader_ = rows->write_rows(*this);
        else
            reader_ = stream.source.configuration->list(*this);
    }

    void feed(Bytes bytes) override {
        recent_.add(bytes);
        set_bytes(recent_.bytes(), recent_.first());
        reader_->feed(bytes);
        deliver();
        recent_.forget(reader_->pending()[0]);
    }
    void reset(GapReason why) override {
        set_bytes(recent_.bytes(), recent_.first());
        reader_->reset(why);
        deliver();
    }
    void finish() override {
        set_bytes(recent_.bytes(), recent_.first());
        reader_->finish();
        deliver();
        show_break();
    }
    void flush() override { show_break(); }
    /// Its gaps.
    [[nodiscard]] const flow::Troubles& troubles() const { return troubles_; }

private:
    void packet(const protocol::PacketView& packet, protocol::Extent at) override {
        if (!lines_.is_wanted(packet.name())) return;
        show_break();
        show_head();
        std::string fields, json;
        if (lines_.format() == LineFormat::json) {
            JsonFields visitor;
            packet.visit(visitor);
            json = visitor.json();
        } else {
            fields = packet.fields_text();
        }
        lines_.put({stream_.offsets.capture(at.first).value,
                    at.bytes,
                    {},
                    packet.name(),
                    fields,
                    json,
                    packet.meaning(),
                    recent_.text(at)});
    }
    void gap(const Gap& gap) override {
        const std::uint64_t offset = stream_.offsets.capture(gap.first).value;
        lines_.met(gap, offset);
        PacketLines::add(troubles_.gaps, gap, offset);
        if (!lines_.has_gaps()) return;
        show_break();
        // If the unit was stopped, nothing is missing.
        if (gap.bytes() != 0)
            show(gap);
        else if (gap.reason != GapReason::stopped)
            break_ = gap;
        await(break_.has_value());
    }
    void take(std::string_view rows, std::uint64_t count) override { lines_.put_rows(rows, count); }
    void settle() override { show_break(); }
    void show(const Gap& gap) {
        deliver();
        show_head();
        lines_.put_gap(gap, stream_.offsets.capture(gap.first).value,
                       lines_.format() == LineFormat::text ? recent_.text({gap.first, gap.bytes()}) : std::string());
    }
    void show_break() {
        if (!break_) return;
        await(false);
        show(*std::exchange(break_, std::nullopt));
    }
    /// The packets that follow come from this source.
    void show_head() {
        if (lines_.last_source == &stream_.source && lines_.buffer == stream_.buffer.name) return;
        lines_.source = stream_.source.id_text();
        lines_.buffer = stream_.buffer.name;
        if (lines_.last_source != &stream_.source) lines_.put_heads(source_title(stream_), "bytes", "packet");
        lines_.last_source = &stream_.source;
    }

    PacketLines& lines_;
    const pipeline::StreamInfo stream_;
    RecentBytes recent_;
    flow::Troubles troubles_;
    std::optional<Gap> break_;  // the last gap without bytes, not yet shown
};

constexpr PacketColumns columns_of_sources{
    .packet = "packet", .wire = "bytes", .gap = "GAP", .sources = true, .buffers = true, .gap_bytes = true};

}  // namespace

PacketListing::PacketListing(TextSink& out, LineFormat format, const PacketTypes& types)
    : lines_(std::make_unique<PacketLines>(out, format, columns_of_sources, types)) {}
PacketListing::~PacketListing() = default;

std::unique_ptr<pipeline::Consumer> PacketListing::of(const pipeline::StreamInfo& stream) {
    return std::make_unique<SourcePackets>(*lines_, stream);
}
PacketsListed PacketListing::listed() const { return lines_->listed; }

std::vector<pipeline::Damage> PacketListing::damage_in(const pipeline::Report& report) {
    std::vector<pipeline::Damage> out;
    for (const pipeline::StreamReport& stream : report.streams)
        if (const auto* packets = dynamic_cast<const SourcePackets*>(stream.consumer.get()); packets != nullptr)
            for (pipeline::Damage& damage : pipeline::damage_in(stream, packets->troubles(), 0))
                out.push_back(std::move(damage));
    return out;
}

}  // namespace waymark::listing
