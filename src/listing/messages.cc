#include "waymark/listing/messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "line.h"
#include "waymark/core/utf8.h"
#include "waymark/flow/troubles.h"

namespace waymark::listing {

namespace {

using protocol::Message;
using protocol::MessageKind;

constexpr std::size_t longest_line = 4096;
constexpr std::size_t most_lines = 4096;  // that are not complete yet

/// Of those that an STM sends as a write, only these have a name.
bool is_hardware_event(const Message& m) { return m.master && !m.name.empty(); }

/// The bytes of a write, the lowest first; empty: some are no text.
std::string text_of(const Message& m) {
    std::string out;
    // A hardware event is a number.
    if (m.kind != MessageKind::text || is_hardware_event(m)) return out;
    for (unsigned i = 0; i < m.value_bytes; ++i) {
        const auto byte = static_cast<unsigned char>(*m.value >> 8 * i);
        // A part of a character in UTF-8 comes alone.
        const bool is_text = (byte >= 0x20 && byte < 0x7f) || byte == '\t' || byte == '\n' || byte == '\r' ||
                             (byte >= 0x80 && m.value_bytes == 1);
        if (!is_text) return {};
        out += static_cast<char>(byte);
    }
    return out;
}

std::string_view late_word(const Message& m) {
    return m.timestamp_late && m.message_late ? "both"
           : m.timestamp_late                 ? "timestamp"
           : m.message_late                   ? "message"
                                              : "";
}

std::string value_text(const Message& m) {
    return m.value ? fmt::format("{:#0{}x}", *m.value, 2 + 2 * m.value_bytes) : std::string();
}

/// `port 0`; of a unit with masters `64:3`, master and channel, or `?:?` if neither is known (a port that is not known
/// has a name). Of other kinds, the kind.
std::string sender(const Message& m) {
    const auto number = [](const std::optional<std::uint32_t>& n) { return n ? std::to_string(*n) : std::string("?"); };
    if (m.kind != MessageKind::text && m.kind != MessageKind::record) return std::string(name(m.kind));
    return m.master || m.channel || (!m.port && m.name.empty()) ? number(m.master) + ":" + number(m.channel)
                                                                : "port " + number(m.port);
}

/// `INFO user/1: text at main.c:7`, on one line.
std::string record_words(const protocol::Record& r) {
    std::string out = r.severity;
    const std::string& of = !r.client.empty() ? r.client : r.guid;
    if (!of.empty()) out += (out.empty() ? "" : " ") + of + (r.unit ? fmt::format("/{}", *r.unit) : std::string());
    std::string text = r.text;
    while (text.ends_with('\n') || text.ends_with('\r') || text.ends_with('\0')) text.pop_back();
    out += (out.empty() ? "" : ": ") + text;
    if (!r.location.empty()) out += " at " + r.location;
    if (!r.problem.empty()) out += " (" + r.problem + ")";
    return one_line(out);
}

/// What a message says, in words.
std::string words_of(const Message& m) {
    switch (m.kind) {
        case MessageKind::text: return (is_hardware_event(m) ? m.name + " " : "") + value_text(m);
        case MessageKind::sample: return m.pc ? fmt::format("PC {:#010x}", *m.pc) : m.name;
        case MessageKind::exception: return fmt::format("{} {}", m.name, name(m.change));
        case MessageKind::access: {
            std::string out = fmt::format("comparator {}:", *m.comparator);
            if (m.address)
                out +=
                    fmt::format(" address {}{:0{}x}", m.address_bits < 32 ? "…" : "0x", *m.address, m.address_bits / 4);
            if (m.value) out += fmt::format(" {} {}", name(m.direction), value_text(m));
            if (m.pc) out += fmt::format(" at PC {:#010x}", *m.pc);
            if (!m.name.empty()) out += " " + m.name;
            return out;
        }
        case MessageKind::counters: return m.name + " wrapped";
        case MessageKind::time: return fmt::format("global time {}", *m.value);
        case MessageKind::overflow:
            return "messages " + m.name + (m.name.empty() ? "were" : " were") + " lost before this one";
        case MessageKind::flag: return "end of a message";
        case MessageKind::trigger: return value_text(m);
        case MessageKind::record: return record_words(*m.record);
        case MessageKind::frequency: return fmt::format("timestamps count at {} Hz", grouped(*m.value));
        case MessageKind::reserved:
            return m.number ? fmt::format("discriminator {}: {}", *m.number, value_text(m)) : m.name;
        case MessageKind::damage: return fmt::format("{}: {}", counted(m.at.bytes, "byte"), m.name);
    }
    return {};
}

template <class Row>
void write_message(Row out, const Message& m, std::string_view source, std::string_view buffer, std::uint64_t offset,
                   bool records) {
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
    // What is lost concerns all.
    if (m.kind == MessageKind::damage || m.kind == MessageKind::overflow) return true;
    return (m.kind != MessageKind::text || among(ports, m.port)) && among(masters, m.master) &&
           among(channels, m.channel);
}

class MessageListing::Lines {
public:
    Lines(TextSink& out, LineFormat format, const MessageChoice& choice, const std::optional<RecordChoice>& how)
        : records(how), out_(out), format_(format), choice_(choice) {
        if (format == LineFormat::tsv)
            put_header(out, [&](HeaderRow row) { write_message(row, {}, {}, {}, 0, how.has_value()); });
    }
    /// Counts it; true: it is listed.
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
        const std::string source = stream.source.id_text();
        if (format_ == LineFormat::tsv)
            write_message(TsvRow(row_, nullptr, none), m, source, stream.buffer.name, offset, records.has_value());
        else
            write_message(JsonRow(row_, none), m, source, stream.buffer.name, offset, records.has_value());
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
        put_line(out_, "{}", trimmed(fmt::format("{:>16}  {:<9} {}", time, sender(m), words)));
    }
    [[nodiscard]] LineFormat format() const { return format_; }

    MessagesListed listed;
    const std::optional<RecordChoice> records;

private:
    TextSink& out_;
    LineFormat format_;
    MessageChoice choice_;
    RowText row_;
    const pipeline::Source* last_ = nullptr;
};

/// Lists the messages of one source as they come.
class MessageListing::Source final : public pipeline::Consumer, private protocol::MessageListener {
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
    }
    void feed(Bytes bytes) override { reader_->feed(bytes); }
    void reset(GapReason why) override { reader_->reset(why); }
    void finish() override {
        reader_->finish();
        if (records_) records_->finish();
        end_lines();
    }
    void flush() override {}
    [[nodiscard]] std::array<Offset, 2> pending() const override {
        std::array<Offset, 2> out = reader_->pending();
        if (records_) out[0] = std::min(out[0], records_->first_open().value_or(out[0]));
        return out;
    }
    /// Places of all messages that are still open are asked for later.
    [[nodiscard]] std::optional<Offset> held_from() const override {
        return records_ ? records_->first_open() : std::nullopt;
    }
    [[nodiscard]] bool amid_packet() override { return reader_->amid_packet(); }
    [[nodiscard]] const flow::Troubles& troubles() const { return troubles_; }

private:
    using Place = std::pair<std::uint32_t, std::uint32_t>;  // master and channel, or 0 and the port
    struct Line {
        Message first;
        std::string text;
    };

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
        // A line does not go on across what was lost.
        if (m.kind == MessageKind::damage || m.kind == MessageKind::overflow) end_lines();
        const std::string text = text_of(m);
        const std::optional<Place> place = place_of(m);
        if (place && text.empty()) end_line(*place);
        if (!wanted) return;
        if (place && !text.empty()) {
            add(m, *place, text);
            if (m.marked) end_line(*place);
        } else {
            lines_.put_text(m, stream_, words_of(m));
        }
    }
    /// Where a line is written; nothing if that is not known.
    static std::optional<Place> place_of(const Message& m) {
        if (m.kind != MessageKind::text && m.kind != MessageKind::flag) return {};
        if (m.port) return Place{0, *m.port};
        if (m.master && m.channel) return Place{*m.master, *m.channel};
        return {};
    }
    void count(const Message& m, std::uint64_t offset) {
        for (unsigned reason = 0; reason < gap_reasons; ++reason)
            if (m.name == name(static_cast<GapReason>(reason))) {
                flow::Trouble& gap = troubles_.gaps[reason];
                if (gap.times++ == 0) gap.offset = offset;
                gap.bytes += m.at.bytes;
            }
    }
    void add(const Message& m, const Place& place, const std::string& text) {
        for (const char c : text) {
            if (const auto at = open_.find(place); at != open_.end() && at->second.text.size() >= longest_line)
                end_line(place);
            if (!open_.contains(place) && open_.size() == most_lines) end_line(open_.begin()->first);
            Line& line = open_.try_emplace(place, Line{m, {}}).first->second;
            if (c == '\n')
                end_line(place);
            else
                line.text += c;
        }
    }
    void end_line(const Place& place) {
        const auto at = open_.find(place);
        if (at == open_.end()) return;
        Line line = std::move(at->second);
        open_.erase(at);
        while (line.text.ends_with('\r')) line.text.pop_back();
        lines_.put_text(line.first, stream_, line.text);
    }
    void end_lines() {
        while (!open_.empty()) end_line(open_.begin()->first);
    }

    Lines& lines_;
    const pipeline::StreamInfo stream_;
    std::unique_ptr<syst::Records> records_;
    std::unique_ptr<protocol::Reader> reader_;
    std::map<Place, Line> open_;
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
