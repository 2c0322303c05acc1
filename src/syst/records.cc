#include "waymark/syst/records.h"

#include <algorithm>
#include <memory>

namespace waymark::syst {

using protocol::Message;
using protocol::MessageKind;

void Records::message(const Message& m) {
    switch (m.kind) {
        case MessageKind::text:
            if (m.master && m.channel)
                write(m);
            else
                next_.message(m);
            return;
        case MessageKind::flag:
            if (!m.master || !m.channel) return;
            if (const auto at = open_.find({*m.master, *m.channel}); at != open_.end()) {
                at->second.end = m.at.end();
                end(at, "");
            }
            return;
        case MessageKind::overflow: lose(m.master, "writes were lost before its end"); break;
        case MessageKind::damage: lose({}, "bytes of the trace are damaged or missing before its end"); break;
        default: break;
    }
    next_.message(m);
}

void Records::write(const Message& m) {
    const Channel channel{*m.master, *m.channel};
    auto at = open_.find(channel);
    // The header of p_ost is marked, and has no timestamp.
    const bool header = layout_ == Layout::ost && m.marked && !m.timestamp;
    const bool begins = m.timestamp.has_value() || header;
    if (begins && at != open_.end()) {
        end(at, "its end is missing");
        at = open_.end();
    }
    if (at == open_.end()) {
        if (open_.size() == most_open) end(open_.find(by_begin_.begin()->second), "its end came too late");
        Open fresh;
        fresh.first = m;
        fresh.no_begin = !begins;
        at = open_.emplace(channel, std::move(fresh)).first;
        by_begin_.emplace(m.at.first.value, channel);
    }
    Open& open = at->second;
    open.end = m.at.end();
    const unsigned bytes = std::max<unsigned>(m.value_bytes, 1);
    if (open.bytes.size() + bytes > most_bytes)
        open.too_long = true;
    else
        for (unsigned i = 0; i < bytes; ++i)
            open.bytes.push_back(static_cast<std::uint8_t>(m.value.value_or(0) >> 8 * i));
    if (m.marked && !header) end(at, "");
}

void Records::end(std::map<Channel, Open>::iterator at, const std::string& problem) {
    const Channel channel = at->first;
    const Open open = std::move(at->second);
    open_.erase(at);
    by_begin_.erase({open.first.at.first.value, channel});
    auto record = std::make_shared<protocol::Record>(describe_(open.bytes, channel.first, channel.second));
    std::string all = problem;
    const auto add = [&](bool is, const char* what) {
        if (is) all += (all.empty() ? "" : "; ") + std::string(what);
    };
    add(open.no_begin, "its begin is missing");
    add(open.too_long, "it is longer than a message can be");
    if (!all.empty()) record->problem = all + (record->problem.empty() ? "" : "; ") + record->problem;
    Message out = open.first;
    out.kind = MessageKind::record;
    out.value.reset();
    out.value_bytes = 0;
    out.marked = false;
    out.at.bytes = open.end - out.at.first;
    out.record = std::move(record);
    next_.message(out);
}

void Records::lose(const std::optional<std::uint32_t>& master, const std::string& problem) {
    for (auto at = open_.begin(); at != open_.end();) {
        const auto here = at++;
        if (!master || here->first.first == *master) end(here, problem);
    }
}

void Records::finish() { lose({}, "the trace ends before its end"); }

std::optional<Offset> Records::first_open() const {
    if (by_begin_.empty()) return std::nullopt;
    return Offset{by_begin_.begin()->first};
}

}  // namespace waymark::syst
