#include "waymark/pipeline/message_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include "message_timeline.h"
#include "waymark/analysis/time_samples.h"
#include "waymark/answers/parts.h"
#include "waymark/core/numbers.h"
#include "waymark/pipeline/account.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/diagnosis.h"
#include "waymark/pipeline/gathered.h"
#include "waymark/protocol/message.h"

namespace waymark::pipeline {

namespace {

using answers::Answers;
using answers::Finding;
using protocol::Message;
using protocol::MessageKind;

/// Exceptions of one core: from "entered" to "left", if both are in the trace and nothing was lost in between.
class Handlers {
public:
    void see(const Message& m) {
        answers::ExceptionRow& row = rows_[*m.number];
        row.name = m.name;
        row.number = *m.number;
        if (m.change == Message::Change::entered) {
            ++row.times;
            row.nested += open_.empty() ? 0 : 1;
            // No more handlers can be active; the ends of the others were lost.
            if (open_.size() == most_open) open_.clear();
            open_.push_back({*m.number, m.cycles});
        } else if (m.change == Message::Change::left) {
            leave(row, m.cycles);
        } else if (*m.number == 0) {
            open_.clear();
        }
    }
    /// It is no longer known which handlers are active.
    void lose() { open_.clear(); }

    /// Rows with times only for handlers whose beginning and end both have a time.
    [[nodiscard]] std::vector<answers::ExceptionRow> rows() const {
        std::vector<answers::ExceptionRow> out;
        const bool timed = std::any_of(rows_.begin(), rows_.end(), [](const auto& r) { return r.second.sum != 0; });
        for (const auto& [number, row] : rows_) {
            // The thread is only returned to, never entered.
            if (row.times == 0) continue;
            out.push_back(row);
            out.back().unit = "cycles";
            const auto untimed = untimed_.find(number);
            if (!timed && untimed != untimed_.end()) out.back().returned += untimed->second;
        }
        return out;
    }

private:
    static constexpr std::size_t most_open = 512;
    struct Open {
        std::uint32_t number{};
        std::optional<std::uint64_t> cycles{};
    };
    void leave(answers::ExceptionRow& row, const std::optional<std::uint64_t>& cycles) {
        if (open_.empty()) return;
        const Open top = open_.back();
        // A message is missing.
        if (top.number != row.number) return open_.clear();
        open_.pop_back();
        if (!top.cycles || !cycles) {
            ++untimed_[row.number];
            return;
        }
        const std::uint64_t time = *cycles - *top.cycles;
        row.least = row.returned == 0 ? time : std::min(row.least, time);
        row.most = std::max(row.most, time);
        row.sum += time;
        ++row.returned;
    }

    std::map<std::uint32_t, answers::ExceptionRow> rows_;
    std::map<std::uint32_t, std::uint64_t> untimed_;
    std::vector<Open> open_;
};

struct Port {
    std::uint64_t writes{}, bytes{};
};
struct Channel {
    std::uint64_t writes{}, bytes{}, ends{};
};
struct Watched {
    std::uint64_t reads{}, writes{}, others{};
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max(), most{}, last{};
    std::set<std::uint64_t> addresses;  // the first few
    unsigned address_bits{};
    [[nodiscard]] bool has_values() const { return reads + writes != 0; }
};

/// Summarises the messages of one source in one buffer. Memory is proportional to the places of code, not to the
/// messages.
class Gathered final : public ReaderConsumer, private protocol::MessageListener {
public:
    Gathered(const StreamInfo& stream, const protocol::MessageSource& from, const FlowAnswersOptions& options)
        : source(stream.source), buffer(stream.buffer.name), clock(from.clock()), offsets_(stream.offsets) {
        reader_ = from.messages(*this);
        if (options.timeline) timeline.emplace(stream.source, options.most_slices);
    }
    void finish() override {
        ReaderConsumer::finish();
        if (timeline) timeline->finish();
    }

    const Source& source;
    const std::string buffer, clock;
    std::optional<MessageTimeline> timeline;
    analysis::PcSamples samples;
    std::uint64_t messages = 0, unconfirmed = 0, timed = 0, left_out = 0;
    std::optional<std::uint64_t> last_cycles{};
    Handlers handlers;
    std::map<std::uint32_t, Port> ports;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Channel> channels;  // by master and channel
    std::uint64_t left_out_writes = 0;
    std::map<std::uint32_t, Watched> watched;       // by comparator
    std::map<std::string, std::uint64_t> counters;  // how often each counter wrapped
    flow::Troubles troubles;

private:
    static constexpr std::size_t most_places = std::size_t{1} << 20, most_addresses = 8, most_channels = 65536;

    void message(const Message& m) override {
        if (timeline) timeline->see(m);
        if (m.kind == MessageKind::damage) {
            handlers.lose();
            return damage(m);
        }
        if (m.kind == MessageKind::reserved) {
            lose(GapReason::reserved_header, m);
            return;
        }
        ++messages;
        unconfirmed += m.confirmed ? 0 : 1;
        timed += m.cycles || m.timestamp ? 1 : 0;
        if (m.cycles) last_cycles = m.cycles;
        switch (m.kind) {
            case MessageKind::text: {
                if (m.master && m.channel) {
                    channel(m);
                    break;
                }
                if (!m.port) break;
                Port& port = ports[*m.port];
                ++port.writes;
                port.bytes += m.value_bytes;
                break;
            }
            case MessageKind::sample: sample(m); break;
            case MessageKind::exception: handlers.see(m); break;
            case MessageKind::access: access(m); break;
            case MessageKind::counters: count(m.name); break;
            case MessageKind::overflow:
                handlers.lose();
                if (troubles.overflows.times++ == 0) troubles.overflows.offset = offsets_.capture(m.at.first).value;
                break;
            case MessageKind::flag:
                if (m.master && m.channel) channel(m);
                break;
            case MessageKind::time:
            case MessageKind::reserved:
            case MessageKind::damage:
            case MessageKind::trigger:
            case MessageKind::frequency:
            case MessageKind::record: break;
        }
    }
    void damage(const Message& m) {
        for (unsigned reason = 0; reason < gap_reasons; ++reason) {
            if (m.name != name(static_cast<GapReason>(reason)) || m.at.bytes == 0) continue;
            lose(static_cast<GapReason>(reason), m);
        }
    }
    void lose(GapReason reason, const Message& m) {
        flow::Trouble& gap = troubles.gaps[static_cast<unsigned>(reason)];
        if (gap.times++ == 0) gap.offset = offsets_.capture(m.at.first).value;
        gap.bytes += m.at.bytes;
    }
    void channel(const Message& m) {
        const std::pair key(*m.master, *m.channel);
        if (channels.size() == most_channels && !channels.contains(key)) {
            ++left_out_writes;
            return;
        }
        Channel& c = channels[key];
        c.ends += m.marked ? 1 : 0;
        if (m.kind != MessageKind::text) return;
        ++c.writes;
        c.bytes += m.value_bytes;
    }
    void sample(const Message& m) {
        if (!m.pc)
            ++(m.name == "asleep" ? samples.asleep : samples.not_permitted);
        else if (samples.at.size() < most_places || samples.at.contains(*m.pc))
            ++samples.at[*m.pc];
        else
            ++left_out;
    }
    void access(const Message& m) {
        Watched& w = watched[*m.comparator];
        if (m.address && w.addresses.size() <= most_addresses) w.addresses.insert(*m.address);
        w.address_bits = std::max<unsigned>(w.address_bits, m.address_bits);
        ++(m.direction == Message::Direction::read    ? w.reads
           : m.direction == Message::Direction::write ? w.writes
                                                      : w.others);
        if (!m.value) return;
        w.least = std::min(w.least, *m.value);
        w.most = std::max(w.most, *m.value);
        w.last = *m.value;
    }
    /// `CPI, SLEEP`
    void count(const std::string& names) {
        for (std::size_t at = 0; at < names.size();) {
            const std::size_t end = std::min(names.find(", ", at), names.size());
            ++counters[names.substr(at, end - at)];
            at = end + 2;
        }
    }

    const OffsetMap& offsets_;
};

using Streams = std::deque<const Gathered*>;

answers::Table ports_table(const Streams& streams) {
    answers::Table out;
    out.title = "stimulus ports";
    out.note = "waymark messages lists what was written";
    out.columns = {answers::Column::text("source"), answers::Column::count("port"), answers::Column::count("writes"),
                   answers::Column::count("bytes")};
    for (const Gathered* s : streams)
        for (const auto& [number, port] : s->ports)
            out.add({s->source.label(), std::uint64_t{number}, port.writes, port.bytes});
    return out;
}

answers::Table channels_table(const Streams& streams) {
    using answers::Column;
    answers::Table out;
    out.title = "channels";
    out.note = "waymark messages lists what was written";
    out.columns = {Column::text("source"),  Column::count("master"), Column::count("channel"),
                   Column::count("writes"), Column::count("bytes"),  Column::count("messages ended")};
    for (const Gathered* s : streams)
        for (const auto& [key, channel] : s->channels)
            out.add({s->source.label(), std::uint64_t{key.first}, std::uint64_t{key.second}, channel.writes,
                     channel.bytes, channel.ends});
    return out;
}

answers::Table watched_table(const Streams& streams) {
    using answers::Cell;
    using answers::Column;
    answers::Table out;
    out.title = "watched data";
    out.note = "waymark messages --kind access lists each access, with its time";
    out.columns = {Column::text("source"), Column::count("comparator"), Column::text("address"),
                   Column::count("reads"), Column::count("writes"),     Column::count("without value"),
                   Column::text("least"),  Column::text("most"),        Column::text("last")};
    for (const Gathered* s : streams)
        for (const auto& each : s->watched) {
            const std::uint32_t comparator = each.first;
            const Watched& w = each.second;
            std::string addresses;
            for (const std::uint64_t address : w.addresses)
                addresses += fmt::format("{}{}{:0{}x}", addresses.empty() ? "" : ", ", w.address_bits < 32 ? "…" : "0x",
                                         address, w.address_bits / 4);
            const auto value = [&](std::uint64_t v) { return w.has_values() ? Cell::hex(v) : Cell::none(); };
            out.add({s->source.label(), std::uint64_t{comparator}, addresses, w.reads, w.writes, w.others,
                     value(w.least), value(w.most), value(w.last)});
        }
    return out;
}

answers::Table counters_table(const Streams& streams) {
    answers::Table out;
    out.title = "event counters";
    out.note = "a counter wraps every 256 events; its count since it last wrapped is not in the trace";
    out.columns = {answers::Column::text("source"), answers::Column::text("counter"), answers::Column::count("wrapped"),
                   answers::Column::count("events")};
    for (const Gathered* s : streams)
        for (const auto& [name, times] : s->counters)
            out.add({s->source.label(), name, times,
                     // A performance monitor's counters have other sizes, and CYC counts POSTCNT.
                     name == "CYC" || name.starts_with("PMU") ? answers::Cell::none() : answers::Cell(256 * times)});
    return out;
}

/// Puts messages on the timeline if they have a time of the same clock; the health names the others.
void add_timeline(Answers& out, const Streams& streams) {
    const auto note = [&](std::string what, std::string todo = {}) {
        out.health.push_back({Finding::Severity::note, std::move(what), std::move(todo), {}});
    };
    const Gathered* most = nullptr;
    bool timed = false;
    for (const Gathered* s : streams) {
        if (!s->timeline || s->timeline->empty()) continue;
        const auto key = [](const Gathered& g) { return std::pair(g.timeline->timed(), g.timeline->messages()); };
        if (most == nullptr || key(*s) > key(*most)) most = s;
        timed |= s->timeline->timed();
    }
    if (most == nullptr) return;
    answers::TimeAxis& axis = out.timeline.axis;
    axis.unit = !timed ? "messages" : most->clock == "cycles" ? "cycles" : "ticks";
    axis.note = timed ? "by timestamps of the unit; a message without one has the time of the previous message"
                      : "in the order of messages, which have no timestamps";
    if (axis.unit == "ticks") axis.ticks_per_second = most->timeline->ticks_per_second();
    answers::SyntheticTable functions(out);
    std::size_t shown = 0;
    std::uint64_t left_out = 0;
    for (const Gathered* s : streams) {
        if (!s->timeline || s->timeline->empty()) continue;
        const bool same = !timed || (s->timeline->timed() && s->clock == most->clock &&
                                     s->timeline->ticks_per_second() == most->timeline->ticks_per_second());
        if (!same) {
            note(fmt::format("source {}: it is not on the timeline: its messages have {}", s->source.label(),
                             s->timeline->timed() ? "another clock" : "no timestamps"),
                 "--source ID shows one.");
            continue;
        }
        ++shown;
        left_out += s->timeline->left_out();
        const bool several_buffers = std::any_of(streams.begin(), streams.end(), [s](const Gathered* other) {
            return other != s && &other->source == &s->source;
        });
        s->timeline->add_to(out.timeline, functions,
                            several_buffers ? fmt::format("{}, {}", s->source.name, s->buffer) : s->source.name,
                            !timed);
    }
    if (shown > 1)
        axis.note +=
            "; nothing relates the clocks of different sources or buffers, each of which begins at its own zero";
    if (left_out != 0)
        note(fmt::format("The timeline is full: {} not on it. It shows the beginning of what was sent.",
                         counted(left_out, "message, value or handler is", "messages, values and handlers are")),
             "waymark messages lists all.");
}

void add_health(Answers& out, const Session& session, const Report& report, const Streams& streams) {
    using enum Finding::Severity;
    const auto add = [&](Finding::Severity severity, std::string what, std::string todo = {}) {
        out.health.push_back({severity, std::move(what), std::move(todo), {}});
    };
    for (std::string& sentence : file_damage(session)) add(bad, std::move(sentence), "Copy the whole file again.");
    std::vector<capture::Problem> problems;
    for (const capture::Problem& problem : session.problems)
        if (problem.kind != capture::Problem::Kind::damage) problems.push_back(problem);
    for (std::string& sentence : gathered(problems)) {
        add(warning, std::move(sentence));
        out.health.back().of_names = true;
    }
    for (const BufferReport& buffer : report.buffers) {
        for (Damage& damage : damage_in(buffer)) add(warning, std::move(damage.sentence));
        if (auto unread = error_of(buffer)) add(bad, std::move(*unread), "Copy the capture again.");
    }
    for (const StreamReport& stream : report.streams)
        for (const Gathered* s : streams)
            if (stream.consumer.get() == s)
                for (const Damage& damage : damage_in(stream, s->troubles, 0)) {
                    out.health.push_back({damage.severity == Severity::error     ? bad
                                          : damage.severity == Severity::warning ? warning
                                                                                 : note,
                                          fmt::format("source {}: {}", s->source.label(), damage.found),
                                          {},
                                          damage.first.value});
                }
    for (const Gathered* s : streams) {
        if (s->unconfirmed != 0)
            add(note, fmt::format("source {}: {} of {}: no synchronisation packet confirms where they begin",
                                  s->source.label(), grouped(s->unconfirmed), counted(s->messages, "message")));
        if (s->messages != 0 && s->timed == 0)
            add(note,
                fmt::format("source {}: it has no timestamps: the order is known, but no time", s->source.label()));
        if (s->left_out_writes != 0)
            add(warning, fmt::format("source {}: the table of channels is full: {} counted nowhere", s->source.label(),
                                     counted(s->left_out_writes, "message is", "messages are")));
        if (s->left_out != 0)
            add(warning, fmt::format("source {}: the table of places is full: {} counted nowhere", s->source.label(),
                                     counted(s->left_out, "sample is", "samples are")));
    }
}

std::vector<DecodedStream> decoded_streams(const Report& report, const Streams& streams) {
    std::vector<DecodedStream> out;
    for (const StreamReport& stream : report.streams)
        for (const Gathered* s : streams)
            if (stream.consumer.get() == s) out.push_back({&stream, &s->troubles, 0, 0});
    return out;
}

answers::Account account_of(const Session& session, const std::vector<const Source*>& selected, const Report& report,
                            const Streams& streams) {
    const std::vector<DecodedStream> decoded = decoded_streams(report, streams);
    answers::Account out = flow_account(session, selected, report, decoded);
    for (const DecodedStream& stream : decoded) {
        const auto& s = static_cast<const Gathered&>(*stream.stream->consumer);
        if (s.messages != 0)
            answers::add(
                out, {.reason = answers::AccountReason::decoded, .bytes = stream.stream->bytes, .records = s.messages});
        if (s.samples.all() != 0) answers::add(out, {.reason = answers::AccountReason::sampled});
        if (s.left_out + s.left_out_writes != 0) answers::add(out, {.reason = answers::AccountReason::not_kept});
    }
    return out;
}

/// The rows about single sources, which they name.
answers::Account lost_by_source(const Session& session, const Report& report, const Streams& streams) {
    using enum answers::AccountState;
    answers::Account out;
    for (const DecodedStream& stream : decoded_streams(report, streams)) {
        const auto& s = static_cast<const Gathered&>(*stream.stream->consumer);
        answers::Account rows = part_account(session, {}, std::span(&stream, 1));
        if (s.left_out + s.left_out_writes != 0) answers::add(rows, {.reason = answers::AccountReason::not_kept});
        for (answers::AccountRow& row : rows) {
            const answers::AccountState state = answers::account_rule(row.reason).state;
            if (state != lost && state != not_decoded) continue;
            row.of = row.of.empty() ? s.source.label() : fmt::format("{}, {}", s.source.label(), row.of);
            answers::add(out, std::move(row));
        }
    }
    return out;
}

struct Gathering {
    Report report;
    Streams streams{};
};
Gathering gather(const Session& session, const std::vector<const Source*>& sources, const FlowAnswersOptions& options,
                 const Progress& progress) {
    Gathering out{run(
        session, sources,
        [&options](const StreamInfo& stream) -> std::unique_ptr<Consumer> {
            const auto* const source = protocol::message_source(stream.source.configuration.get());
            if (source == nullptr) return nullptr;
            return std::make_unique<Gathered>(stream, *source, options);
        },
        progress, options.open)};
    for (const StreamReport& stream : out.report.streams)
        if (const auto* gathered = dynamic_cast<const Gathered*>(stream.consumer.get()); gathered != nullptr)
            out.streams.push_back(gathered);
    return out;
}

std::vector<const Source*> with_messages(const std::vector<const Source*>& selected) {
    std::vector<const Source*> out;
    std::copy_if(selected.begin(), selected.end(), std::back_inserter(out),
                 [](const Source* source) { return has_messages(*source); });
    return out;
}

}  // namespace

bool has_messages(const Source& source) { return protocol::message_source(source.configuration.get()) != nullptr; }

bool has_messages_alone(const std::vector<const Source*>& selected) {
    return std::none_of(selected.begin(), selected.end(), [](const Source* s) { return s->has_flow(); }) &&
           std::any_of(selected.begin(), selected.end(), [](const Source* s) { return has_messages(*s); });
}

std::string why_no_messages(const Session& session, const std::vector<const Source*>& selected, const Report& report) {
    const bool any_bytes = std::any_of(report.streams.begin(), report.streams.end(),
                                       [](const StreamReport& stream) { return stream.bytes != 0; });
    return any_bytes ? "the trace has no message; waymark packets lists what it has"
                     : why_nothing(session, selected, report, {});
}

answers::Account messages_lost(const Session& session, const std::vector<const Source*>& selected,
                               const Progress& progress, const OpenBuffer& open) {
    const std::vector<const Source*> sources = with_messages(selected);
    if (sources.empty()) return {};
    const Gathering gathering = gather(session, sources, {.open = open}, progress);
    return lost_by_source(session, gathering.report, gathering.streams);
}

namespace {

/// As message_answers. `lost`, where not null, receives what single sources lost (messages_lost).
Result<Answers> gathered_answers(const Session& session, const std::vector<const Source*>& selected,
                                 const FlowAnswersOptions& options, const Progress& progress,
                                 const std::function<void(const Report&)>& read, answers::Account* lost) {
    const std::vector<const Source*> sources = with_messages(selected);
    const Gathering gathering = gather(session, sources, options, progress);
    const Report& report = gathering.report;
    const Streams& streams = gathering.streams;
    if (read) read(report);
    if (lost != nullptr) *lost = lost_by_source(session, report, streams);
    Answers out;
    out.capture = session.capture.path.string();
    out.cut = !read_errors(session, report).empty();
    std::uint64_t messages = 0;
    for (const Gathered* s : streams) messages += s->messages;
    if (messages == 0) {
        Error why{Errc::not_found, "nothing decoded: " + why_no_messages(session, sources, report)};
        if (out.cut) why.code = Errc::unreadable;
        return why;
    }
    const Source& first = streams.front()->source;
    out.unit = first.protocol->unit_of(first.type);
    for (const BufferReport& buffer : report.buffers) out.trace_bytes += buffer.bytes;
    out.account = account_of(session, selected, report, streams);

    analysis::PcSamples samples;
    for (const Gathered* s : streams) {
        for (const auto& [address, times] : s->samples.at) samples.at[address] += times;
        samples.asleep += s->samples.asleep;
        samples.not_permitted += s->samples.not_permitted;
    }
    analysis::FlowAnswersOptions how;
    how.files = first.names->files;
    how.instructions = true;
    how.inlined = options.inlined;
    analysis::fill_pc_samples(out, samples, first.names->symbols, *first.memory, how, isa::Isa::t32);

    std::map<std::pair<std::uint32_t, std::string>, answers::ExceptionRow> exceptions;
    for (const Gathered* s : streams)
        for (const answers::ExceptionRow& row : s->handlers.rows()) {
            const auto [at, fresh] = exceptions.try_emplace({row.number, row.name}, row);
            if (fresh) continue;
            answers::ExceptionRow& sum = at->second;
            sum.least = sum.returned == 0 ? row.least : row.returned == 0 ? sum.least : std::min(sum.least, row.least);
            sum.most = std::max(sum.most, row.most);
            sum.times += row.times;
            sum.nested += row.nested;
            sum.sum += row.sum;
            sum.returned += row.returned;
        }
    for (auto& [key, row] : exceptions) out.exceptions.push_back(std::move(row));
    for (answers::Table& table :
         std::array{ports_table(streams), channels_table(streams), watched_table(streams), counters_table(streams)})
        if (!table.empty()) out.tables.push_back(std::move(table));

    add_timeline(out, streams);

    out.summary = {{"sources", std::to_string(streams.size())},
                   {"messages", std::to_string(messages)},
                   {"samples", std::to_string(samples.all())}};
    out.trust.push_back({"functions",
                         {},
                         samples.all() == 0 ? "" : "shares, from samples of the program counter at intervals of cycles",
                         samples.all() == 0 ? "where time went: no sample of the program counter is in the trace"
                                            : "who called whom, and how often code ran"});
    add_health(out, session, report, streams);
    if (std::count_if(streams.begin(), streams.end(), [](const Gathered* s) { return s->samples.all() != 0; }) > 1)
        out.health.push_back({Finding::Severity::note,
                              "Samples of several sources are added up, by address.",
                              "--source ID shows one.",
                              {}});
    answers::sort_findings(out);
    return out;
}

}  // namespace

Result<Answers> message_answers(const Session& session, const std::vector<const Source*>& selected,
                                const FlowAnswersOptions& options, const Progress& progress,
                                const std::function<void(const Report&)>& read) {
    return gathered_answers(session, selected, options, progress, read, nullptr);
}

Result<Answers> trace_answers(const Session& session, const std::vector<const Source*>& selected,
                              const FlowAnswersOptions& options, const Progress& progress,
                              const std::function<void(const Report&)>& read) {
    if (has_messages_alone(selected)) return message_answers(session, selected, options, progress, read);
    WM_ASSIGN_OR_RETURN(Answers out, flow_answers(session, selected, options, progress, read));
    if (std::none_of(selected.begin(), selected.end(), [](const Source* s) { return has_messages(*s); })) return out;
    FlowAnswersOptions how = options;
    how.timeline = false;
    answers::Account lost;
    Result<Answers> messages = gathered_answers(session, selected, how, progress, {}, &lost);
    answers::add(out.account, lost);
    // Answers with ranges alone are for compilers, and a source without messages adds no tables.
    const bool only_ranges = !options.calls && !options.timeline && !options.instructions;
    if (!messages || only_ranges) return out;
    for (Finding& f : messages->health)
        if (f.severity >= Finding::Severity::warning &&
            std::none_of(out.health.begin(), out.health.end(), [&](const Finding& x) { return x.what == f.what; }))
            out.health.push_back(std::move(f));
    std::move(messages->tables.begin(), messages->tables.end(), std::back_inserter(out.tables));
    if (options.timeline)
        out.health.push_back(
            {Finding::Severity::note,
             "Messages are in tables, and not on the timeline, which is of program flow: nothing relates "
             "the clocks of the two.",
             "--source ID of the source with messages shows their timeline.",
             {}});
    answers::sort_findings(out);
    return out;
}

}  // namespace waymark::pipeline
