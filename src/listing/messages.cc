#include "waymark/listing/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "line.h"
#include "waymark/core/utf8.h"
#include "waymark/flow/troubles.h"
#include "waymark/pipeline/message_text.h"

namespace waymark::listing {

namespace {

using pipeline::sender_of;
using pipeline::text_of;
using pipeline::variable_of;
using pipeline::words_of;
using protocol::Message;
using protocol::MessageKind;

std::string_view late_word(const Message& m) {
    return m.timestamp_late && m.message_late ? "both"
           : m.timestamp_late                 ? "timestamp"
           : m.message_late                   ? "message"
                                              : "";
}

template <class Row>
void write_message(Row out, const Message& m, std::string_view source, std::string_view variable,
                   std::string_view buffer, std::uint64_t offset, bool records) {
    const protocol::Record* const r = m.record.get();
    const std::string text = r != nullptr ? r->text : m.value ? text_of(m) : std::string();
    out.always("source", source);
    out.offset("offset", offset);
    out.number("length", true, m.at.bytes);
    out.number("cycles", m.cycles.has_value(), m.cycles.value_or(0));
    out.number("timestamp", m.timestamp.has_value(), m.timestamp.value_or(0));
    out.flag("at_least", m.cycles || m.timestamp, m.at_least);
    out.word("late", !late_word(m).empty(), late_word(m));
    out.flag("confirmed", true, m.confirmed);
    out.word("kind", true, name(m.kind));
    out.number("port", m.port.has_value(), m.port.value_or(0));
    out.number("master", m.master.has_value(), m.master.value_or(0));
    out.number("channel", m.channel.has_value(), m.channel.value_or(0));
    out.flag("marked", m.marked, m.marked);
    out.hex("value", m.value.has_value(), m.value.value_or(0));
    out.number("value_bytes", m.value.has_value() && m.value_bytes != 0, m.value_bytes);
    out.text("text", !text.empty(), text);
    out.address("pc", m.pc.has_value(), m.pc.value_or(0));
    out.hex("address", m.address.has_value(), m.address.value_or(0));
    out.number("address_bits", m.address.has_value(), m.address_bits);
    out.number("comparator", m.comparator.has_value(), m.comparator.value_or(0));
    out.text("variable", !variable.empty(), variable);
    out.word("access", m.direction != Message::Direction::unknown, name(m.direction));
    out.number("number", m.number.has_value(), m.number.value_or(0));
    out.word("change", m.change != Message::Change::none, name(m.change));
    out.text("name", !m.name.empty(), m.name);
    if (records) {
        const protocol::Record none;
        const protocol::Record& is = r != nullptr ? *r : none;
        out.text("layout", !is.layout.empty(), is.layout);
        out.text("type", !is.type.empty(), is.type);
        out.text("severity", !is.severity.empty(), is.severity);
        out.text("client", !is.client.empty(), is.client);
        out.text("guid", !is.guid.empty(), is.guid);
        out.text("origin", !is.origin.empty(), is.origin);
        out.number("unit", is.unit.has_value(), is.unit.value_or(0));
        out.text("location", !is.location.empty(), is.location);
        out.number("own_time", is.time.has_value(), is.time.value_or(0));
        out.number("record_bytes", r != nullptr, is.bytes);
        out.flag("checksum", is.checksum.has_value(), is.checksum.value_or(false));
        out.text("problem", !is.problem.empty(), is.problem);
    }
    out.text("buffer", true, buffer);
    out.end();
}

}  // namespace

bool MessageChoice::has(const Message& m) const {
    if (!kinds.empty() && !kinds.contains(m.kind)) return false;
    const auto among = [](const auto& wanted, const std::optional<std::uint32_t>& is) {
        return wanted.empty() || (is && wanted.contains(*is));
    };
    // Losses concern all channels.
    if (m.kind == MessageKind::damage || m.kind == MessageKind::overflow) return true;
    return (m.kind != MessageKind::text || among(ports, m.port)) && among(masters, m.master) &&
           among(channels, m.channel);
}

class MessageListing::Lines {
public:
    Lines(TextSink& out, LineFormat format, const MessageChoice& choice, const std::optional<RecordChoice>& how)
        : records(how), out_(out), format_(format), choice_(choice) {
        if (format == LineFormat::tsv)
            put_header(out, [&](HeaderRow row) { write_message(row, {}, {}, {}, {}, 0, how.has_value()); });
    }
    /// Counts the message; returns whether it is listed.
    bool met(const Message& m) {
        ++listed.of[static_cast<std::size_t>(m.kind)];
        if (m.kind != MessageKind::damage) {
            ++listed.messages;
            listed.unconfirmed += m.confirmed ? 0 : 1;
        }
        const bool wanted = choice_.has(m);
        listed.listed += wanted ? 1 : 0;
        if (wanted && m.record && !m.record->problem.empty() && listed.problems++ == 0)
            listed.problem = m.record->problem;
        return wanted;
    }
    void put(const Message& m, const pipeline::StreamInfo& stream, std::uint64_t offset) {
        NoSame none;
        row_.clear();
        const std::string source = stream.source.id_text(), variable = variable_of(m, stream.source);
        if (format_ == LineFormat::tsv)
            write_message(TsvRow(row_, nullptr, none), m, source, variable, stream.buffer.name, offset,
                          records.has_value());
        else
            write_message(JsonRow(row_, none), m, source, variable, stream.buffer.name, offset, records.has_value());
        out_.write(row_.view());
    }
    void put_text(const Message& m, const pipeline::StreamInfo& stream, std::string_view words) {
        if (last_ != &stream.source) {
            if (last_ != nullptr) out_.write("\n");
            last_ = &stream.source;
            put_line(out_, "# {}", source_title(stream));
            put_line(out_, "# {:>14}  {:<9} message",
                     protocol::message_source(stream.source.configuration.get())->clock(), "of");
        }
        const std::optional<std::uint64_t>& when = m.cycles ? m.cycles : m.timestamp;
        const std::string time = when ? fmt::format("{}{}", m.at_least ? ">=" : "", *when) : std::string("-");
        put_line(out_, "{}", trimmed(fmt::format("{:>16}  {:<9} {}", time, sender_of(m), words)));
    }
    [[nodiscard]] LineFormat format() const { return format_; }

    MessagesListed listed;
    const std::optional<RecordChoice> records;
    std::vector<protocol::HeldMessages*> held;  // readers of the streams that are being listed

private:
    TextSink& out_;
    LineFormat format_;
    MessageChoice choice_;
    RowText row_;
    const pipeline::Source* last_ = nullptr;
};

/// Lists the messages of one source as they arrive.
class MessageListing::Source final : public pipeline::ReaderConsumer, private protocol::MessageListener {
public:
    Source(Lines& lines, const pipeline::StreamInfo& stream, const protocol::MessageSource& source)
        : lines_(lines), stream_(stream) {
        protocol::MessageListener* to = this;
        if (lines.records) {
            const RecordChoice& r = *lines.records;
            records_ = std::make_unique<syst::Records>(r.layout, r.collateral, r.client, *to);
            to = records_.get();
        }
        reader_ = source.messages(*to);
        if (auto* const held = dynamic_cast<protocol::HeldMessages*>(reader_.get()); held != nullptr)
            lines_.held.push_back(held);
    }
    void finish() override {
        std::erase(lines_.held, dynamic_cast<protocol::HeldMessages*>(reader_.get()));
        reader_->finish();
        if (records_) records_->finish();
        open_.finish();
    }
    [[nodiscard]] std::array<Offset, 2> pending() const override {
        std::array<Offset, 2> out = ReaderConsumer::pending();
        if (records_) out[0] = std::min(out[0], records_->first_open().value_or(out[0]));
        return out;
    }
    /// The place of a message is requested later, as long as the message is incomplete.
    [[nodiscard]] std::optional<Offset> held_from() const override { return pending()[0]; }
    [[nodiscard]] const flow::Troubles& troubles() const { return troubles_; }

private:
    void message(const Message& m) override {
        const std::uint64_t offset = stream_.offsets.capture(m.at.first).value;
        if (m.kind == MessageKind::damage)
            count(m, offset);
        else if (m.kind == MessageKind::overflow && troubles_.overflows.times++ == 0)
            troubles_.overflows.offset = offset;
        const bool wanted = lines_.met(m);
        if (lines_.format() != LineFormat::text) {
            if (wanted) lines_.put(m, stream_, offset);
            return;
        }
        const bool in_line = open_.take(m, wanted);
        if (wanted && !in_line) lines_.put_text(m, stream_, words_of(m, variable_of(m, stream_.source)));
    }
    void count(const Message& m, std::uint64_t offset) {
        for (unsigned reason = 0; reason < gap_reasons; ++reason)
            if (m.name == name(static_cast<GapReason>(reason))) {
                flow::Trouble& gap = troubles_.gaps[reason];
                if (gap.times++ == 0) gap.offset = offset;
                gap.bytes += m.at.bytes;
            }
    }
    Lines& lines_;
    const pipeline::StreamInfo stream_;
    std::unique_ptr<syst::Records> records_;
    pipeline::MessageLines open_{
        [this](const pipeline::MessageLines::Line& line) { lines_.put_text(line.first, stream_, line.text); }};
    flow::Troubles troubles_;
};

MessageListing::MessageListing(TextSink& out, LineFormat format, const MessageChoice& choice,
                               std::optional<RecordChoice> records)
    : lines_(std::make_unique<Lines>(out, format, choice, records)) {}
MessageListing::~MessageListing() = default;

std::unique_ptr<pipeline::Consumer> MessageListing::of(const pipeline::StreamInfo& stream) {
    const auto* const source = protocol::message_source(stream.source.configuration.get());
    if (source == nullptr) return nullptr;
    return std::make_unique<Source>(*lines_, stream, *source);
}

void MessageListing::deliver_held() {
    for (protocol::HeldMessages* const each : lines_->held) each->deliver_held();
}

MessagesListed MessageListing::listed() const { return lines_->listed; }

std::vector<pipeline::Damage> MessageListing::damage_in(const pipeline::Report& report) {
    std::vector<pipeline::Damage> out;
    for (const pipeline::StreamReport& stream : report.streams)
        if (const auto* source = dynamic_cast<const Source*>(stream.consumer.get()); source != nullptr)
            for (pipeline::Damage& damage : pipeline::damage_in(stream, source->troubles(), 0))
                out.push_back(std::move(damage));
    return out;
}

}  // namespace waymark::listing
