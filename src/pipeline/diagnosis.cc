#include "waymark/pipeline/diagnosis.h"

#include <fmt/format.h>

#include <algorithm>

#include "waymark/core/numbers.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/message_answers.h"

namespace waymark::pipeline {

namespace {

/// Sources as text, `0x10 CSETM_0 (ETM4.1), 0x20 ITM_0 (ITM)`; only the first few.
std::string sources_text(const std::vector<const Source*>& sources) {
    constexpr std::size_t most = 4;
    std::string out;
    for (std::size_t i = 0; i < std::min(sources.size(), most); ++i)
        out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", sources[i]->label(),
                           sources[i]->type.empty() ? "of unknown type" : sources[i]->type);
    if (sources.size() > most) out += fmt::format(" and {} more", sources.size() - most);
    return out;
}

/// The words of the sources' protocol, if sentences about packets need one.
const protocol::Words& words_of(const std::vector<const Source*>& sources) {
    const auto known = std::find_if(sources.begin(), sources.end(), [](const auto* s) { return s->has_packets(); });
    return (known == sources.end() ? protocols().front() : (*known)->protocol)->words();
}

std::string why_no_bytes(const Session& session, const std::vector<const Source*>& selected, const Report& report) {
    if (session.sources.empty()) return "the capture describes no trace source";
    if (report.streams.empty() &&
        std::all_of(selected.begin(), selected.end(), [](const Source* s) { return has_messages(*s); }))
        return fmt::format("no program flow is in the trace of {}; waymark messages lists it", sources_text(selected));
    if (std::none_of(selected.begin(), selected.end(), [](const Source* s) { return s->has_flow(); }))
        return fmt::format(
            "Waymark does not decode the protocol of {}: {}. Of the sources of a snapshot it decodes {}; use another "
            "tool for others",
            selected.size() == 1 ? "the source" : "any selected source", sources_text(selected), decoded_types());
    if (report.streams.empty())
        return session.capture.buffers.empty() ? "the capture has no trace buffer"
                                               : "no trace buffer is assigned to the selected sources";
    if (std::any_of(report.buffers.begin(), report.buffers.end(), [](const auto& b) { return b.error.has_value(); }))
        return "no byte of the selected sources could be read";
    return "the buffers contain no bytes of the selected sources; waymark info shows which sources they contain";
}

}  // namespace

std::string no_sync(const capture::Capture& capture, const std::vector<const Source*>& sources, std::uint64_t bytes) {
    const protocol::Words& words = words_of(sources);
    const bool given = std::any_of(capture.buffers.begin(), capture.buffers.end(),
                                   [](const capture::Buffer& b) { return b.container == nullptr; });
    return fmt::format(
        "no {} ({}) in {}: it is not {} trace, is framed otherwise than {}, or was cut before its first "
        "synchronisation",
        words.sync, words.sync_bytes, counted(bytes, "byte"), words.unit,
        given ? "given (--buffer-format, or the snapshot's format=)" : "the file says");
}

std::string why_nothing(const Session& session, const std::vector<const Source*>& selected, const Report& report,
                        const Gave& gave) {
    if (auto note = filter_note(session, report); note && note->nothing_passed) return std::move(note->text);
    std::uint64_t bytes = 0;
    for (const StreamReport& stream : report.streams)
        if (stream.consumer) bytes += stream.bytes;
    const auto lost = [&](GapReason reason) { return gave.gaps[static_cast<unsigned>(reason)] != 0; };
    if (bytes == 0) return why_no_bytes(session, selected, report);
    if (gave.packets == 0) return no_sync(session.capture, selected, bytes);
    if (const auto damages = missing_code(session, report, 3); gave.no_memory != 0 && !damages.empty()) {
        std::string out = "all code that ran is without an image";
        for (const Damage& damage : damages)
            out += (&damage == damages.data() ? ": " : ". Besides, ") + damage.sentence;
        return out;
    }
    if (gave.no_memory != 0)
        return "all code that ran is without an image; give the program with --image FILE[@ADDRESS]";
    if (lost(GapReason::reserved_header) || lost(GapReason::malformed_packet) || lost(GapReason::framing) ||
        lost(GapReason::missing))
        return "the trace is damaged, and nothing could be decoded";
    if (lost(GapReason::unsynchronised))
        return fmt::format("no {} follows an A-sync, so no address is known", words_of(selected).one_sync);
    if (gave.uncommitted != 0)
        return fmt::format("none of {} was committed when the trace ended, so no instruction is known to have run",
                           counted(gave.uncommitted, "P0 element"));
    if (gave.unplaced != 0) return "branches ran, and the trace has no address for them";
    if (gave.untraced != 0) return "code ran, and the trace does not show which";
    return std::string(nothing_ran);
}

}  // namespace waymark::pipeline
