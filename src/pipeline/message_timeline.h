/// Collects the messages of one source in one buffer for the timeline.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/answers/parts.h"
#include "waymark/pipeline/message_text.h"
#include "waymark/protocol/message.h"

namespace waymark::pipeline {

/// The kept amount is bounded: longer streams keep their beginning.
class MessageTimeline {
public:
    static constexpr std::size_t most_marks = 100'000, most_text_bytes = std::size_t{1} << 24, most_points = 100'000;

    MessageTimeline(const Source& source, std::size_t most_slices) : source_(source), most_slices_(most_slices) {}
    MessageTimeline(const MessageTimeline&) = delete;
    MessageTimeline& operator=(const MessageTimeline&) = delete;

    /// Takes all messages of the stream, in order.
    void see(const protocol::Message& message);
    void finish();

    /// Whether any message has a timestamp of its own.
    [[nodiscard]] bool timed() const { return timed_; }
    [[nodiscard]] std::uint64_t messages() const { return now_.number; }
    [[nodiscard]] bool empty() const { return marks_.empty() && handlers_.empty() && series_.empty(); }
    /// Number of items that are not on the timeline because of its limit.
    [[nodiscard]] std::uint64_t left_out() const { return left_out_; }
    /// The rate of timestamps, if the stream states a constant one; otherwise 0.
    [[nodiscard]] std::uint64_t ticks_per_second() const { return rates_differ_ ? 0 : ticks_per_second_; }
    /// Adds tracks below a track named `title`. `by_order`: times are numbers of messages.
    void add_to(answers::Timeline& timeline, answers::SyntheticTable& functions, const std::string& title,
                bool by_order) const;

private:
    /// Kinds of rows of the timeline, in order.
    enum class Row : std::uint8_t { losses, port, channel, unknown_sender, exceptions, watched, counters, triggers };
    using Key = std::tuple<Row, std::uint32_t, std::uint32_t>;  // the rest: port, or master and channel
    struct Moment {
        std::uint64_t time{}, number{};
    };
    struct Mark {
        Key row;
        Moment at;
        answers::TimelineMark::Kind kind{};
        std::string text;
    };
    struct Handler {
        std::uint32_t number{};
        std::string name;
        Moment begin, end;
        std::uint32_t depth{};
    };
    struct Values {
        Row row{};
        std::string name, unit;
        std::vector<std::pair<Moment, double>> points;
        std::uint64_t wraps{};  // of a counter
    };

    void mark(Key row, Moment at, answers::TimelineMark::Kind kind, std::string text);
    void point(const std::string& name, Row row, std::string_view unit, double value);
    void exception(const protocol::Message& message);
    void leave(const Handler& handler);
    void count(const protocol::Message& message);
    void put(const MessageLines::Line& line);
    [[nodiscard]] static Key sender_row(const protocol::Message& message);
    [[nodiscard]] static std::string name_of(const Key& row);

    const Source& source_;
    const std::size_t most_slices_;
    Moment now_;
    bool timed_ = false, rates_differ_ = false;
    std::uint64_t ticks_per_second_ = 0, left_out_ = 0;
    std::size_t text_bytes_ = 0;
    std::vector<Mark> marks_;
    std::vector<Handler> handlers_, open_;
    std::map<std::string, Values> series_;
    MessageLines lines_{[this](const MessageLines::Line& line) { put(line); }};
};

}  // namespace waymark::pipeline
