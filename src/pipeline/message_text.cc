#include "waymark/pipeline/message_text.h"

#include <fmt/format.h>

#include "waymark/core/numbers.h"
#include "waymark/core/utf8.h"

namespace waymark::pipeline {

using protocol::Message;
using protocol::MessageKind;

namespace {

constexpr std::size_t longest_line = 4096;
constexpr std::size_t most_lines = 4096;  // maximum number of incomplete lines

std::string value_text(const Message& m) {
    return m.value ? fmt::format("{:#0{}x}", *m.value, 2 + 2 * m.value_bytes) : std::string();
}

/// A record as a line, such as `INFO user/1: text at main.c:7`.
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

}  // namespace

/// Only hardware events, which an STM sends as writes, have a name.
bool is_hardware_event(const Message& m) { return m.master && !m.name.empty(); }

std::string text_of(const Message& m) {
    std::string out;
    // A hardware event is a number.
    if (m.kind != MessageKind::text || is_hardware_event(m)) return out;
    for (unsigned i = 0; i < m.value_bytes; ++i) {
        const auto byte = static_cast<unsigned char>(*m.value >> 8 * i);
        // A multi-byte UTF-8 character arrives byte by byte.
        const bool is_text = (byte >= 0x20 && byte < 0x7f) || byte == '\t' || byte == '\n' || byte == '\r' ||
                             (byte >= 0x80 && m.value_bytes == 1);
        if (!is_text) return {};
        out += static_cast<char>(byte);
    }
    return out;
}

std::string sender_of(const Message& m) {
    const auto number = [](const std::optional<std::uint32_t>& n) { return n ? std::to_string(*n) : std::string("?"); };
    if (m.kind != MessageKind::text && m.kind != MessageKind::record) return std::string(name(m.kind));
    return m.master || m.channel || (!m.port && m.name.empty()) ? number(m.master) + ":" + number(m.channel)
                                                                : "port " + number(m.port);
}

std::string variable_of(const Message& m, const Source& source) {
    if (m.kind != MessageKind::access || !m.comparator) return {};
    const auto* const from = protocol::message_source(source.configuration.get());
    if (from == nullptr) return {};
    std::optional<std::uint64_t> at = from->watched(*m.comparator);
    if (!at) return {};
    if (m.address) {
        // The message has only the low bits of the address; the watched range begins at the comparator's address.
        const std::uint64_t unit = std::uint64_t{1} << m.address_bits, base = *at;
        at = (base & ~(unit - 1)) | *m.address;
        if (*at < base) *at += unit;
    }
    const auto symbol = source.names->symbols.find({*at});
    if (!symbol || symbol->symbol.kind != image::SymbolKind::object) return {};
    return symbol->offset == 0 ? std::string(symbol->name) : fmt::format("{}+{:#x}", symbol->name, symbol->offset);
}

std::string words_of(const Message& m, std::string_view variable) {
    switch (m.kind) {
        case MessageKind::text: return (is_hardware_event(m) ? m.name + " " : "") + value_text(m);
        case MessageKind::sample: return m.pc ? fmt::format("PC {:#010x}", *m.pc) : m.name;
        case MessageKind::exception: return fmt::format("{} {}", m.name, name(m.change));
        case MessageKind::access: {
            std::string out = variable.empty() ? fmt::format("comparator {}:", *m.comparator)
                                               : fmt::format("comparator {} ({}):", *m.comparator, variable);
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

bool MessageLines::take(const Message& m, bool wanted) {
    ++taken_;
    // A line does not continue after a loss.
    if (m.kind == MessageKind::damage || m.kind == MessageKind::overflow) finish();
    const std::optional<Place> place = place_of(m);
    if (!place) return false;
    const std::string text = text_of(m);
    if (text.empty()) {
        end_line(*place);
        return false;
    }
    if (!wanted) return true;
    add(m, *place, text);
    if (m.marked) end_line(*place);
    return true;
}

void MessageLines::finish() {
    while (!open_.empty()) end_line(open_.begin()->first);
}

/// The place of the code that wrote a line; nullopt if it is not known.
std::optional<MessageLines::Place> MessageLines::place_of(const Message& m) {
    if (m.kind != MessageKind::text && m.kind != MessageKind::flag) return {};
    if (m.port) return Place{0, *m.port};
    if (m.master && m.channel) return Place{*m.master, *m.channel};
    return {};
}

void MessageLines::add(const Message& m, const Place& place, const std::string& text) {
    for (const char c : text) {
        if (const auto at = open_.find(place); at != open_.end() && at->second.text.size() >= longest_line)
            end_line(place);
        if (!open_.contains(place) && open_.size() == most_lines) end_line(open_.begin()->first);
        Line& line = open_.try_emplace(place, Line{m, taken_, {}}).first->second;
        if (c == '\n')
            end_line(place);
        else
            line.text += c;
    }
}

void MessageLines::end_line(const Place& place) {
    const auto at = open_.find(place);
    if (at == open_.end()) return;
    Line line = std::move(at->second);
    open_.erase(at);
    while (line.text.ends_with('\r')) line.text.pop_back();
    put_(line);
}

}  // namespace waymark::pipeline
