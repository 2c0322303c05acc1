#include "waymark/exports/perfetto.h"

#include <fmt/format.h>

#include <protozero/pbf_writer.hpp>
#include <unordered_map>

#include "look_up.h"
#include "timeline.h"
#include "writer.h"

namespace waymark::exports {

namespace {

using answers::Answers;
using answers::Index;
using answers::Series;
using answers::Slice;
using answers::Timeline;
using answers::TimelineMark;
using protozero::pbf_writer;

// Field numbers, by message.
namespace trace {
constexpr unsigned packet = 1;
}
namespace packet {
constexpr unsigned clock_snapshot = 6, timestamp = 8, sequence_id = 10, track_event = 11, interned_data = 12,
                   sequence_flags = 13, timestamp_clock_id = 58, defaults = 59, track_descriptor = 60,
                   first_on_sequence = 87;
constexpr std::uint32_t state_cleared = 1, needs_state = 2;
}  // namespace packet
namespace defaults {
constexpr unsigned track_event = 11, timestamp_clock_id = 58;
}
namespace snapshot {
constexpr unsigned clocks = 1;
namespace clock {
constexpr unsigned id = 1, timestamp = 2, is_incremental = 3;
}
}  // namespace snapshot
namespace interned {
constexpr unsigned event_names = 2, iid = 1, name = 2;
}
namespace event {
constexpr unsigned annotations = 4, type = 9, name_iid = 10, track_uuid = 11, counter = 30, double_counter = 44;
constexpr std::int32_t begin = 1, end = 2, instant = 3, count = 4;
}  // namespace event
namespace annotation {
constexpr unsigned uint_value = 3, string_value = 6, name = 10;
}
namespace descriptor {
constexpr unsigned uuid = 1, name = 2, process = 3, parent = 5, counter = 8;
constexpr unsigned process_pid = 1, process_name = 6;
constexpr unsigned counter_unit_name = 6;
}  // namespace descriptor

constexpr std::uint32_t trace_clock = 6;         // boot time, which viewers take as the trace's main clock
constexpr std::uint32_t incremental_clock = 64;  // the first clock ID that is local to a sequence
constexpr std::uint64_t process_uuid = 1;

class TraceWriter {
public:
    TraceWriter(const Answers& answers, const Timeline& timeline, ByteSink& sink)
        : answers_(answers), timeline_(timeline), ns_(timeline.axis), sink_(sink) {}

    std::uint64_t write() {
        describe();
        for (Index track = 0; track < timeline_.tracks.size(); ++track) slices(track);
        for (std::size_t i = 0; i < timeline_.marks.size();) i = marks(i);
        for (std::size_t i = 0; i < timeline_.series.size(); ++i) series(i);
        flush();
        return bytes_;
    }

private:
    template <class Fill>
    void packet(Fill&& fill) {
        scratch_.clear();
        pbf_writer writer(scratch_);
        fill(writer);
        pbf_writer(out_).add_message(trace::packet, scratch_);
        if (out_.size() >= 1 << 16) flush();
    }
    void flush() {
        bytes_ += out_.size();
        if (!out_.empty()) sink_.write({reinterpret_cast<const std::uint8_t*>(out_.data()), out_.size()});
        out_.clear();
    }

    [[nodiscard]] std::uint64_t track_uuid(Index track) const {
        return track < timeline_.tracks.size() ? process_uuid + 1 + track : process_uuid;
    }
    [[nodiscard]] std::uint64_t series_uuid(std::size_t i) const {
        return process_uuid + 1 + timeline_.tracks.size() + i;
    }

    void describe() {
        const std::string title =
            ns_.note().empty() ? answers_.capture : fmt::format("{} ({})", answers_.capture, ns_.note());
        packet([&](pbf_writer& p) {
            p.add_uint32(packet::sequence_id, 1);
            pbf_writer track(p, packet::track_descriptor);
            track.add_uint64(descriptor::uuid, process_uuid);
            pbf_writer process(track, descriptor::process);
            process.add_int32(descriptor::process_pid, 1);
            process.add_string(descriptor::process_name, utf8(title));
        });
        for (Index i = 0; i < timeline_.tracks.size(); ++i)
            packet([&](pbf_writer& p) {
                p.add_uint32(packet::sequence_id, 1);
                pbf_writer track(p, packet::track_descriptor);
                track.add_uint64(descriptor::uuid, track_uuid(i));
                track.add_uint64(descriptor::parent, track_uuid(timeline_.tracks[i].parent));
                track.add_string(descriptor::name, utf8(timeline_.tracks[i].name));
            });
        for (std::size_t i = 0; i < timeline_.series.size(); ++i)
            packet([&](pbf_writer& p) {
                const Series& s = timeline_.series[i];
                p.add_uint32(packet::sequence_id, 1);
                pbf_writer track(p, packet::track_descriptor);
                track.add_uint64(descriptor::uuid, series_uuid(i));
                track.add_uint64(descriptor::parent, track_uuid(s.track));
                track.add_string(descriptor::name, utf8(s.name));
                pbf_writer counter(track, descriptor::counter);
                counter.add_string(descriptor::counter_unit_name, utf8(s.unit));
            });
        sequence_ = 1;
    }

    /// Begins a sequence of events on one track, with a clock of its own. Times in the sequence are differences, and
    /// events omit their track, which makes them half as large.
    void begin_sequence(std::uint64_t uuid, std::uint64_t time) {
        ++sequence_;
        names_.clear();
        now_ = ns_(time);
        packet([&](pbf_writer& p) {
            p.add_uint32(packet::sequence_id, sequence_);
            p.add_uint32(packet::sequence_flags, packet::state_cleared);
            p.add_bool(packet::first_on_sequence, true);
            p.add_uint64(packet::timestamp, now_);
            p.add_uint32(packet::timestamp_clock_id, trace_clock);
            {
                pbf_writer preset(p, packet::defaults);
                preset.add_uint32(defaults::timestamp_clock_id, incremental_clock);
                pbf_writer track(preset, defaults::track_event);
                track.add_uint64(event::track_uuid, uuid);
            }
            pbf_writer clocks(p, packet::clock_snapshot);
            for (const bool incremental : {false, true}) {
                pbf_writer clock(clocks, snapshot::clocks);
                clock.add_uint32(snapshot::clock::id, incremental ? incremental_clock : trace_clock);
                clock.add_uint64(snapshot::clock::timestamp, now_);
                if (incremental) clock.add_bool(snapshot::clock::is_incremental, true);
            }
        });
    }

    /// Writes an event, and its name so that later events of the sequence can refer to it; an empty name is not
    /// written.
    template <class Fill>
    void emit(std::uint64_t time, std::int32_t type, std::string_view called, Fill&& fill) {
        const std::uint64_t at = std::max(now_, ns_(time));
        packet([&](pbf_writer& p) {
            p.add_uint64(packet::timestamp, at - now_);
            p.add_uint32(packet::sequence_id, sequence_);
            p.add_uint32(packet::sequence_flags, packet::needs_state);
            std::uint64_t iid = 0;
            if (!called.empty()) {
                const auto [known, fresh] = names_.try_emplace(std::string(called), names_.size() + 1);
                iid = known->second;
                if (fresh) {
                    pbf_writer data(p, packet::interned_data);
                    pbf_writer entry(data, interned::event_names);
                    entry.add_uint64(interned::iid, iid);
                    entry.add_string(interned::name, utf8(called));
                }
            }
            pbf_writer e(p, packet::track_event);
            e.add_int32(event::type, type);
            if (iid != 0) e.add_uint64(event::name_iid, iid);
            fill(e);
        });
        now_ = at;
    }

    void slices(Index track) {
        const std::span<const Slice> all = slices_of(timeline_, track);
        if (all.empty()) return;
        begin_sequence(track_uuid(track), all.front().begin);
        walk(
            all,
            [&](const Slice& s) {
                emit(s.begin, event::begin, function_name(answers_, s.function), [&](pbf_writer& e) {
                    if (s.merged <= 1) return;
                    pbf_writer note(e, event::annotations);
                    note.add_string(annotation::name, "represents slices");
                    note.add_uint64(annotation::uint_value, s.merged);
                });
            },
            [&](const Slice&, std::uint64_t time) { emit(time, event::end, {}, [](pbf_writer&) {}); });
    }

    /// Writes the marks of one track, from index `first`; returns the index after them.
    std::size_t marks(std::size_t first) {
        const Index track = timeline_.marks[first].track;
        begin_sequence(track_uuid(track), timeline_.marks[first].begin);
        std::size_t i = first;
        for (; i < timeline_.marks.size() && timeline_.marks[i].track == track; ++i) {
            const TimelineMark& m = timeline_.marks[i];
            // Viewers search events by name, so text that software wrote becomes the name.
            const bool written = m.kind == TimelineMark::Kind::user_data && !m.text.empty();
            emit(m.begin, event::instant, written ? m.text : name(m.kind), [&](pbf_writer& e) {
                if (!m.text.empty() && !written) {
                    pbf_writer note(e, event::annotations);
                    note.add_string(annotation::name, "what");
                    note.add_string(annotation::string_value, utf8(m.text));
                }
                if (m.end > m.begin) {
                    pbf_writer note(e, event::annotations);
                    note.add_string(annotation::name, "length");
                    note.add_uint64(annotation::uint_value, m.end - m.begin);
                }
            });
        }
        return i;
    }

    void series(std::size_t i) {
        const Series& s = timeline_.series[i];
        if (s.points.empty()) return;
        begin_sequence(series_uuid(i), s.points.front().time);
        for (const Series::Point& point : s.points)
            emit(point.time, event::count, {}, [&](pbf_writer& e) {
                // Whole numbers take fewer bytes as integers.
                constexpr double exact = 9007199254740992.0;  // 2^53
                if (point.value >= -exact && point.value <= exact &&
                    point.value == static_cast<double>(static_cast<std::int64_t>(point.value)))
                    e.add_int64(event::counter, static_cast<std::int64_t>(point.value));
                else
                    e.add_double(event::double_counter, point.value);
            });
    }

    const Answers& answers_;
    const Timeline& timeline_;
    Nanoseconds ns_;
    ByteSink& sink_;
    std::string out_, scratch_;
    std::uint64_t bytes_ = 0, now_ = 0;
    std::uint32_t sequence_ = 0;
    std::unordered_map<std::string, std::uint64_t> names_;
};

}  // namespace

Result<ExportReport> write_perfetto(const Answers& answers, const PerfettoOptions& options, ByteSink& sink) {
    const Timeline& whole = answers.timeline;
    if (whole.slices.empty() && whole.marks.empty() && whole.series.empty())
        return Error{Errc::not_found, lacks(answers, "timeline; folded, pprof and callgrind show costs")};
    const std::uint64_t limit = options.max_bytes.value_or(3 * answers.trace_bytes);
    const auto size = [&](const Timeline& timeline) {
        NullSink nowhere;
        return TraceWriter(answers, timeline, nowhere).write();
    };
    const Fitted fitted = fit(whole, limit, size);
    if (!fitted.fits && options.max_bytes)
        return Error{Errc::usage, fmt::format("--max-size {} is too small: the tracks alone take {} bytes",
                                              grouped(limit), grouped(size(fitted.timeline)))};
    ExportReport report;
    report.bytes = TraceWriter(answers, fitted.timeline, sink).write();
    if (!fitted.fits)
        report.notes.push_back(
            fmt::format("the trace is so short that the tracks alone take more than three times "
                        "its {} bytes; --max-size BYTES allows more",
                        grouped(answers.trace_bytes)));
    if (const std::string text = fitted.what.text(whole.axis); !text.empty())
        report.notes.push_back(text + (options.max_bytes ? "" : "; --max-size BYTES allows more"));
    if (whole.resolution != 0)
        report.notes.push_back(fmt::format("the timeline itself shows nothing shorter than {} {} separately",
                                           grouped(whole.resolution), whole.axis.unit));
    if (const Nanoseconds ns(whole.axis); !ns.note().empty())
        report.notes.push_back(fmt::format("times are counts of {}: {}", whole.axis.unit, ns.note()));
    return report;
}

}  // namespace waymark::exports
