#include "message_timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "waymark/core/utf8.h"

namespace waymark::pipeline {

using answers::TimelineMark;
using protocol::Message;
using protocol::MessageKind;

void MessageTimeline::mark(Key row, Moment at, TimelineMark::Kind kind, std::string text) {
    if (marks_.size() >= most_marks || text_bytes_ + text.size() > most_text_bytes) {
        ++left_out_;
        return;
    }
    text_bytes_ += text.size();
    marks_.push_back({row, at, kind, std::move(text)});
}

void MessageTimeline::point(const std::string& name, Row row, std::string_view unit, double value) {
    Values& to = series_[name];
    if (to.points.empty()) {
        to.row = row;
        to.name = name;
        to.unit = unit;
    }
    if (to.points.size() < most_points)
        to.points.emplace_back(now_, value);
    else
        ++left_out_;
}

void MessageTimeline::put(const MessageLines::Line& line) {
    const Message& m = line.first;
    const std::uint64_t time = m.cycles ? *m.cycles : m.timestamp ? *m.timestamp : now_.time;
    if (!line.text.empty())
        mark(sender_row(m), {time, line.number}, TimelineMark::Kind::user_data, one_line(line.text));
}

void MessageTimeline::leave(const Handler& handler) {
    if (handlers_.size() < most_slices_)
        handlers_.push_back(handler);
    else
        ++left_out_;
}

/// Pairs entries and exits, as long as nothing was lost between them.
void MessageTimeline::exception(const Message& m) {
    constexpr std::size_t most_open = 512;
    if (m.change == Message::Change::entered) {
        mark({Row::exceptions, 0, 0}, now_, TimelineMark::Kind::exception, m.name);
        if (open_.size() == most_open) open_.clear();
        open_.push_back({m.number.value_or(0), m.name, now_, {}, static_cast<std::uint32_t>(open_.size())});
    } else if (m.change == Message::Change::left) {
        if (open_.empty()) return;
        Handler top = open_.back();
        if (top.number != m.number) return open_.clear();
        open_.pop_back();
        top.end = now_;
        leave(top);
    } else if (m.number == 0U) {
        open_.clear();
    }
}

void MessageTimeline::count(const Message& m) {
    constexpr double events_of_a_wrap = 256;
    for (std::size_t at = 0; at < m.name.size();) {
        const std::size_t end = std::min(m.name.find(", ", at), m.name.size());
        const std::string name = m.name.substr(at, end - at);
        // The trace does not show how many events one wrap of these counters stands for.
        const bool unknown_events = name == "CYC" || name.starts_with("PMU");
        const auto wraps = static_cast<double>(++series_[name].wraps);
        point(name, Row::counters, unknown_events ? "wraps" : "events",
              unknown_events ? wraps : events_of_a_wrap * wraps);
        at = end + 2;
    }
}

void MessageTimeline::see(const Message& m) {
    ++now_.number;
    if (const auto& time = m.cycles ? m.cycles : m.timestamp) {
        timed_ = true;
        now_.time = std::max(now_.time, *time);
    }
    const bool in_line = lines_.take(m);
    switch (m.kind) {
        case MessageKind::text:
            if (in_line) break;
            mark(sender_row(m), now_, TimelineMark::Kind::user_data, words_of(m));
            break;
        case MessageKind::exception: exception(m); break;
        case MessageKind::access: {
            const std::string variable = variable_of(m, source_);
            if (m.value) {
                point(variable.empty() ? fmt::format("comparator {}", m.comparator.value_or(0)) : variable,
                      Row::watched, {}, static_cast<double>(*m.value));
            } else {
                mark({Row::watched, m.comparator.value_or(0), 0}, now_, TimelineMark::Kind::user_data,
                     words_of(m, variable));
            }
            break;
        }
        case MessageKind::counters: count(m); break;
        case MessageKind::overflow:
            open_.clear();
            mark({Row::losses, 0, 0}, now_, TimelineMark::Kind::overflow, words_of(m));
            break;
        case MessageKind::damage:
            open_.clear();
            mark({Row::losses, 0, 0}, now_, TimelineMark::Kind::gap, words_of(m));
            break;
        case MessageKind::trigger: mark({Row::triggers, 0, 0}, now_, TimelineMark::Kind::trigger, words_of(m)); break;
        case MessageKind::frequency:
            rates_differ_ |= ticks_per_second_ != 0 && ticks_per_second_ != m.value;
            ticks_per_second_ = m.value.value_or(0);
            break;
        case MessageKind::sample:
        case MessageKind::time:
        case MessageKind::reserved:
        case MessageKind::flag:
        case MessageKind::record: break;
    }
}

void MessageTimeline::finish() { lines_.finish(); }

MessageTimeline::Key MessageTimeline::sender_row(const Message& m) {
    if (m.port) return {Row::port, *m.port, 0};
    if (m.master && m.channel) return {Row::channel, *m.master, *m.channel};
    return {Row::unknown_sender, 0, 0};
}

std::string MessageTimeline::name_of(const Key& row) {
    const auto [kind, first, second] = row;
    switch (kind) {
        case Row::losses: return "losses";
        case Row::port: return fmt::format("port {}", first);
        case Row::channel: return fmt::format("{}:{}", first, second);
        case Row::unknown_sender: return "sender not known";
        case Row::exceptions: return "exceptions";
        case Row::watched: return "watched data";
        case Row::counters: return "event counters";
        case Row::triggers: break;
    }
    return "triggers";
}

void MessageTimeline::add_to(answers::Timeline& timeline, answers::SyntheticTable& functions, const std::string& title,
                             bool by_order) const {
    const auto time = [by_order](Moment at) { return by_order ? at.number : at.time; };
    const auto parent = static_cast<answers::Index>(timeline.tracks.size());
    timeline.tracks.push_back({title, answers::none});
    std::map<Key, answers::Index> tracks;
    for (const Mark& m : marks_) tracks[m.row];
    if (!handlers_.empty()) tracks[{Row::exceptions, 0, 0}];
    for (const auto& [name, values] : series_)
        if (!values.points.empty()) tracks[{values.row, 0, 0}];
    for (auto& [row, index] : tracks) {
        index = static_cast<answers::Index>(timeline.tracks.size());
        timeline.tracks.push_back({name_of(row), parent});
    }
    // Lines are added when they end, but listed by their begin. A handler comes after the handlers that interrupted it.
    std::vector<TimelineMark> marks;
    for (const Mark& m : marks_) marks.push_back({time(m.at), time(m.at), tracks.at(m.row), m.kind, m.text});
    std::stable_sort(marks.begin(), marks.end(), [](const TimelineMark& a, const TimelineMark& b) {
        return std::tie(a.track, a.begin) < std::tie(b.track, b.begin);
    });
    timeline.marks.insert(timeline.marks.end(), std::make_move_iterator(marks.begin()),
                          std::make_move_iterator(marks.end()));
    std::vector<answers::Slice> slices;
    for (const Handler& h : handlers_)
        slices.push_back({time(h.begin), time(h.end), tracks.at({Row::exceptions, 0, 0}),
                          functions.of(fmt::format("[{}]", h.name)), h.depth});
    std::stable_sort(slices.begin(), slices.end(), [](const answers::Slice& a, const answers::Slice& b) {
        return std::tie(a.begin, a.depth) < std::tie(b.begin, b.depth);
    });
    timeline.slices.insert(timeline.slices.end(), slices.begin(), slices.end());
    for (const auto& [name, values] : series_) {
        if (values.points.empty()) continue;
        answers::Series& out = timeline.series.emplace_back();
        out.name = values.name;
        out.unit = values.unit;
        out.track = tracks.at({values.row, 0, 0});
        for (const auto& [at, value] : values.points) out.points.push_back({time(at), value});
        if (!out.points.empty()) timeline.axis.end = std::max(timeline.axis.end, out.points.back().time);
    }
    timeline.axis.end = std::max(timeline.axis.end, time(now_));
}

}  // namespace waymark::pipeline
