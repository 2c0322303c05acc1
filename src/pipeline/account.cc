#include "waymark/pipeline/account.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "waymark/answers/account_effects.h"
#include "waymark/capture/begins.h"
#include "waymark/capture/not_permitted.h"
#include "waymark/capture/ran_before.h"
#include "waymark/flow/tee.h"
#include "waymark/pipeline/flow_filter.h"
#include "waymark/pipeline/message_answers.h"
#include "waymark/pipeline/packet_counter.h"

namespace waymark::pipeline {

namespace {

using answers::Account;
using answers::AccountReason;

std::optional<AccountReason> reason_of(Damage::Kind kind) {
    using Kind = Damage::Kind;
    switch (kind) {
        case Kind::reserved_ids:
        case Kind::trigger_ids:
        case Kind::padding:
        case Kind::damaged_ids: return AccountReason::strays;
        case Kind::lost_frames:
        case Kind::partial_frame: return AccountReason::frames;
        case Kind::undescribed_ids:
        case Kind::not_decoded: return AccountReason::protocol;
        case Kind::silence: return AccountReason::silence;
        case Kind::cut: return AccountReason::cut;
        case Kind::no_frame_sync:
        case Kind::unsynchronised: return AccountReason::unsynchronised;
        case Kind::contradiction: return AccountReason::contradiction;
        case Kind::no_branch: return AccountReason::no_code;
        case Kind::no_image:
        case Kind::missing_code: return AccountReason::no_image;
        case Kind::uncertain_code: return AccountReason::shared_address;
        case Kind::unplaced: return AccountReason::no_address;
        case Kind::untraced: return AccountReason::untraced_way;
        case Kind::uncommitted: return AccountReason::uncommitted;
        case Kind::overflow: return AccountReason::overflow;
        case Kind::lost_packets: return AccountReason::packets;
        case Kind::cut_packets:  // the gaps of streams are counted whether they cut a packet or not
        case Kind::last_packet: return std::nullopt;
    }
    return std::nullopt;
}

void add(Account& to, const Damage& damage) {
    const auto reason = reason_of(damage.kind);
    // A note never concerns code that ran on a traced core.
    if (!reason || damage.severity == Severity::note) return;
    answers::add(to, {*reason, damage.of, damage.times, damage.bytes, damage.instructions, damage.ranges});
}

void add_stream(Account& to, const Session& session, const DecodedStream& s) {
    const flow::Troubles& troubles = *s.troubles;
    if (s.ranges != 0) answers::add(to, {AccountReason::decoded, {}, 1, s.stream->bytes, s.instructions, s.ranges});
    // Where the user's selection left out a part, the unit did not pause.
    const auto* const consumer = dynamic_cast<const FlowConsumer*>(s.stream->consumer.get());
    const Filtered* const filtered = consumer != nullptr ? consumer->filtered() : nullptr;
    const auto of_the_unit = [&](std::uint64_t all, std::uint64_t Filtered::*left_out) {
        return filtered == nullptr ? all : all - std::min(all, filtered->*left_out);
    };
    const std::uint64_t handlers = of_the_unit(troubles.handlers_left_out, &Filtered::handlers),
                        pauses = of_the_unit(troubles.resumptions, &Filtered::pauses);
    if (handlers != 0) answers::add(to, {.reason = AccountReason::handlers, .times = handlers});
    if (session.capture.sampled) {
        if (s.ranges != 0) answers::add(to, {.reason = AccountReason::sampled});
    } else if (pauses != 0) {
        answers::add(
            to, {.reason = session.capture.strobed ? AccountReason::strobing : AccountReason::off, .times = pauses});
    }
    if (const flow::Trouble& gap = troubles.gaps[static_cast<unsigned>(GapReason::missing)]; gap.times != 0)
        answers::add(to, {.reason = AccountReason::recorder, .times = gap.times});
    for (const Damage& damage : damage_in(*s.stream, troubles, s.ranges)) add(to, damage);
}

/// Adds what the user's selection leaves out: other sources of the capture, and other processes, code or times.
void add_selection(Account& to, const Session& session, const std::vector<const Source*>& selected,
                   const std::optional<FilterNote>& filtered) {
    if (filtered && filtered->uncertain) answers::add(to, {.reason = AccountReason::no_context});
    if (filtered && filtered->leaves_out)
        answers::add(to, {.reason = AccountReason::filtered, .of = filtered->of, .ranges = filtered->ranges});
    std::vector<std::string> names;
    for (const Source* source : selected)
        if (source->has_flow()) names.push_back(source->id_text());
    const auto is_left_out = [&](const Source& source) {
        return source.has_flow() && !source.left_out &&
               std::none_of(selected.begin(), selected.end(), [&](const Source* s) { return s == &source; });
    };
    if (!names.empty() && std::any_of(session.sources.begin(), session.sources.end(), is_left_out))
        answers::add(to, {.reason = AccountReason::filtered, .of = fmt::format("source {}", fmt::join(names, " or "))});
}

/// Adds what the capture's description states about the recorded part of the run.
void add_parts(Account& to, const Session& session, const std::vector<const Source*>& selected) {
    std::uint64_t described = 0;
    const std::optional<capture::RanBefore> ran_before = capture::ran_before(session.capture);
    for (const capture::Buffer& buffer : session.capture.buffers) {
        if (buffer.wrapped)
            answers::add(to, {.reason = AccountReason::overwritten,
                              .bytes = buffer.overwritten != 0 ? std::optional(buffer.overwritten) : std::nullopt});
        if (!buffer.begins.empty())
            answers::add(to, {.reason = AccountReason::before_start,
                              .of = capture::begins_at_main(buffer.begins) ? std::string(answers::at_main) : "",
                              .instructions = ran_before ? std::optional(ran_before->instructions) : std::nullopt});
        if (!buffer.ends.empty()) answers::add(to, {.reason = AccountReason::after_end});
        described += missing_parts(buffer).size();
    }
    // Several sources of one core are its trace in several sessions.
    std::map<std::string, std::uint64_t> sessions;
    for (const Source* source : selected)
        if (source->has_flow() && !source->core.empty() && source->continues.empty() && !session.capture.spaces)
            ++sessions[source->core];
    for (const auto& [core, times] : sessions)
        if (times > 1) answers::add(to, {.reason = AccountReason::off, .times = times - 1});
    for (const capture::NotPermitted& one : capture::not_permitted(session.capture))
        answers::add(to, {.reason = AccountReason::filtered,
                          .of = one.reason,
                          .instructions = one.instructions,
                          .ranges = one.ranges});
    std::uint64_t parts = 0, damaged = 0;
    bool not_traced = false;
    for (const capture::Problem& problem : session.problems) {
        parts += problem.kind == capture::Problem::Kind::part ? 1 : 0;
        damaged += problem.kind == capture::Problem::Kind::damage ? 1 : 0;
        not_traced |= problem.kind == capture::Problem::Kind::not_traced;
    }
    // Each missing part of a snapshot is described by a buffer; the recorder did not keep the other missing parts.
    if (parts > described) answers::add(to, {.reason = AccountReason::recorder, .times = parts - described});
    if (damaged != 0) answers::add(to, {.reason = AccountReason::cut, .times = damaged});
    const bool strobing = std::any_of(
        to.begin(), to.end(), [](const answers::AccountRow& row) { return row.reason == AccountReason::strobing; });
    if (not_traced && !strobing) answers::add(to, {.reason = AccountReason::strobing});
}

}  // namespace

answers::Account part_account(const Session& session, const std::vector<const Source*>& selected,
                              std::span<const DecodedStream> streams) {
    Account out;
    for (const DecodedStream& s : streams) add_stream(out, session, s);
    for (const Source* source : selected)
        if (source->has_flow())
            if (const auto filters = source->protocol->filters(source->registers); !filters.empty())
                answers::add(out,
                             {.reason = AccountReason::filtered, .of = fmt::format("{}", fmt::join(filters, ", "))});
    return out;
}

answers::Account flow_account(const Session& session, const std::vector<const Source*>& selected, const Report& report,
                              std::span<const DecodedStream> streams) {
    Account out = part_account(session, selected, streams);
    for (const BufferReport& buffer : report.buffers) {
        for (const Damage& damage : damage_in(buffer)) add(out, damage);
        if (buffer.error) answers::add(out, {.reason = AccountReason::cut});
        if (buffer.nobodys != 0)
            answers::add(
                out,
                {.reason = AccountReason::unsynchronised, .of = "before the first trace ID", .bytes = buffer.nobodys});
    }
    // Buffers count damaged frames. The gaps of a buffer's streams are counted only if the buffer counts none.
    if (std::none_of(out.begin(), out.end(), [](const answers::AccountRow& row) {
            return row.reason == AccountReason::frames || row.reason == AccountReason::strays;
        }))
        for (const DecodedStream& s : streams)
            if (const flow::Trouble& gap = s.troubles->gaps[static_cast<unsigned>(GapReason::framing)]; gap.times != 0)
                answers::add(out, {.reason = AccountReason::frames, .times = gap.times});
    for (const Damage& damage : not_decoded(session, selected, report)) add(out, damage);
    for (const Damage& damage : code_damage(session, report)) add(out, damage);
    add_selection(out, session, selected, filter_note(session, report));
    add_parts(out, session, selected);
    return out;
}

std::unique_ptr<Consumer> count_packets(const StreamInfo& stream) {
    if (!stream.source.has_packets()) return nullptr;
    return std::make_unique<PacketCounter>(stream);
}

answers::Account counted_account(const Session& session, const std::vector<const Source*>& selected,
                                 const Report& report) {
    std::deque<protocol::MessageCounts> counts;
    std::vector<DecodedStream> streams;
    Account decoded;
    std::uint64_t messages = 0;
    for (const StreamReport& stream : report.streams) {
        const auto* const counter = dynamic_cast<const PacketCounter*>(stream.consumer.get());
        if (counter == nullptr || !counter->messages()) continue;
        const protocol::MessageCounts& count = counts.emplace_back(*counter->messages());
        streams.push_back({&stream, &count.troubles, 0, 0});
        messages += count.messages;
        if (count.messages != 0)
            answers::add(decoded, {.reason = AccountReason::decoded, .bytes = stream.bytes, .records = count.messages});
        if (count.samples) answers::add(decoded, {.reason = AccountReason::sampled});
    }
    if (messages == 0) return {};
    Account out = flow_account(session, selected, report, streams);
    for (const answers::AccountRow& row : decoded) answers::add(out, row);
    return out;
}

answers::Account account_of(const Session& session, const std::vector<const Source*>& selected,
                            const Progress& progress, std::vector<Error>* unreadable, const OpenBuffer& open) {
    const auto take_errors = [&](const Report& report) {
        if (unreadable == nullptr) return;
        for (const BufferReport& buffer : report.buffers)
            if (buffer.error) unreadable->push_back(*buffer.error);
    };
    if (has_messages_alone(selected)) {
        const Report report = run(session, selected, count_packets, progress, open);
        take_errors(report);
        return counted_account(session, selected, report);
    }
    std::vector<const Source*> sources;
    std::copy_if(selected.begin(), selected.end(), std::back_inserter(sources),
                 [](const Source* source) { return source->has_flow(); });
    std::map<std::pair<const Source*, std::string>, std::unique_ptr<flow::Tee>> tees;
    const auto make = [&](const StreamInfo& stream) {
        auto& tee = tees[{&stream.source, stream.buffer.name}];
        tee = std::make_unique<flow::Tee>([&offsets = stream.offsets](Offset at) { return offsets.capture(at).value; },
                                          nullptr);
        return flow_consumer(stream, *tee, DecoderKind::fast);
    };
    const Report report = run(session, sources, make, progress, open);
    take_errors(report);
    std::vector<DecodedStream> streams;
    for (const StreamReport& stream : report.streams) {
        const flow::Tee& tee = *tees.at({stream.source, stream.buffer});
        streams.push_back({&stream, &tee.troubles(), tee.totals().ranges, tee.totals().instructions});
    }
    Account out = flow_account(session, selected, report, streams);
    answers::add(out, messages_lost(session, selected, progress, open));
    return out;
}

}  // namespace waymark::pipeline
