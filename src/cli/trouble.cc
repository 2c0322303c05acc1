#include "trouble.h"

#include <algorithm>
#include <map>

#include "output.h"
#include "waymark/doctor/finding.h"
#include "waymark/pipeline/damage.h"

namespace waymark::cli {

namespace {

std::string no_whole_frame(const pipeline::BufferReport& buffer) {
    constexpr auto reason = GapReason::incomplete_packet;
    const std::uint64_t bytes = buffer.frames.lost[static_cast<unsigned>(reason)];
    if (!buffer.framed || bytes == 0) return {};
    const auto found =
        std::find_if(buffer.gaps.begin(), buffer.gaps.end(), [](const Gap& gap) { return gap.reason == reason; });
    return fmt::format("buffer {}: its end{} ({}) is no whole frame; the file was cut, or is not of format {}",
                       buffer.name,
                       found == buffer.gaps.end() ? "" : fmt::format(" from offset {:#x} on", found->first.value),
                       counted(bytes, "byte"), capture::name(buffer.buffer->format));
}

}  // namespace

std::vector<std::string> gathered(const std::vector<std::string>& sentences) {
    constexpr std::size_t shown = 3;
    std::map<std::string, std::vector<std::size_t>> kinds;
    std::vector<std::string> kind_of;
    for (std::size_t i = 0; i < sentences.size(); ++i) {
        kind_of.push_back(doctor::without_particulars(sentences[i]));
        kinds[kind_of.back()].push_back(i);
    }
    std::vector<std::string> out;
    for (std::size_t i = 0; i < sentences.size(); ++i) {
        const std::vector<std::size_t>& alike = kinds[kind_of[i]];
        if (alike.size() <= shown) {
            out.push_back(sentences[i]);
            continue;
        }
        if (alike.front() != i) continue;
        std::string places;
        for (std::size_t k = 1; k < shown; ++k)
            places += (k == 1 ? "" : ", ") + sentences[alike[k]].substr(0, sentences[alike[k]].find(": "));
        out.push_back(fmt::format("{} (the same {} more, as in {})", sentences[i], times(alike.size() - 1), places));
    }
    return out;
}

std::vector<std::string> gathered(const std::vector<capture::Problem>& problems) {
    std::vector<std::string> sentences;
    for (const capture::Problem& problem : problems) sentences.push_back(capture::to_string(problem));
    return gathered(sentences);
}

void say_gathered(std::string_view kind, const std::vector<std::string>& sentences) {
    for (const std::string& sentence : gathered(sentences)) say(kind, sentence);
}

std::string file_was_cut(const pipeline::BufferReport& buffer) {
    const auto& written = buffer.buffer->length;
    if (written && !buffer.error && buffer.bytes != *written)
        return buffer.bytes < *written
                   ? fmt::format(
                         "buffer {}: {} of the {} that were written are missing at its end (length in "
                         "trace.ini); the file was cut",
                         buffer.name, counted(*written - buffer.bytes, "byte"), counted(*written, "byte"))
                   : fmt::format(
                         "buffer {}: {} were written to it (length in trace.ini), but it holds {}; the file is "
                         "another one, or the capture is a mixture of two",
                         buffer.name, counted(*written, "byte"), grouped(buffer.bytes));
    return buffer.framed && buffer.buffer->format == capture::Buffer::Format::coresight ? no_whole_frame(buffer)
                                                                                        : std::string();
}

std::vector<std::string> frame_trouble(const pipeline::BufferReport& buffer) {
    std::vector<std::string> out;
    if (!buffer.framed) return out;
    const coresight::Totals& t = buffer.frames;
    const auto lost = [&](GapReason reason) { return t.lost[static_cast<unsigned>(reason)]; };
    const auto first = [&](GapReason reason) {
        const auto found =
            std::find_if(buffer.gaps.begin(), buffer.gaps.end(), [&](const Gap& gap) { return gap.reason == reason; });
        return found == buffer.gaps.end() ? std::string() : fmt::format(" from offset {:#x} on", found->first.value);
    };
    if (lost(GapReason::framing) != 0)
        out.push_back(fmt::format("buffer {}: {} lost{}: {}; the file is damaged, or not of format {}", buffer.name,
                                  counted(lost(GapReason::framing), "byte"), first(GapReason::framing),
                                  t.damaged_frames != 0 ? counted(t.damaged_frames, "frame has the forbidden ID 0x7f",
                                                                  "frames have the forbidden ID 0x7f")
                                                        : "the place of the frames was lost " + times(t.sync_losses),
                                  capture::name(buffer.buffer->format)));
    if (lost(GapReason::unsynchronised) != 0)
        out.push_back(
            fmt::format("buffer {}: no frame sync in {}{}, so their frames are not known; {}", buffer.name,
                        counted(lost(GapReason::unsynchronised), "byte"), first(GapReason::unsynchronised),
                        t.fsyncs == 0 ? "the framing may be another" : "normal where recording began inside a frame"));
    for (pipeline::Damage& damage : pipeline::damage_in(buffer)) out.push_back(std::move(damage.sentence));
    if (file_was_cut(buffer).empty())
        if (std::string sentence = no_whole_frame(buffer); !sentence.empty()) out.push_back(std::move(sentence));
    return out;
}

std::string sudden_silence(const pipeline::StreamReport& stream) {
    const auto damage = pipeline::damage_in(stream);
    return damage ? damage->sentence : std::string();
}

bool is_part_of_run(const pipeline::Session& session) {
    return std::any_of(session.problems.begin(), session.problems.end(),
                       [](const capture::Problem& p) { return p.kind == capture::Problem::Kind::part; });
}

bool lost_in_frames(const pipeline::BufferReport& buffer) {
    return buffer.framed && (buffer.frames.lost_bytes() != 0 || !buffer.strays.empty());
}

namespace {

/// `0x10 CSETM_0 (ETM4.1), 0x20 ITM_0 (ITM)`; the first few.
std::string sources_text(const std::vector<const pipeline::Source*>& sources) {
    constexpr std::size_t most = 4;
    std::string out;
    for (std::size_t i = 0; i < std::min(sources.size(), most); ++i)
        out += fmt::format("{}{} ({})", out.empty() ? "" : ", ", sources[i]->label(),
                           sources[i]->type.empty() ? "of unknown type" : sources[i]->type);
    if (sources.size() > most) out += fmt::format(" and {} more", sources.size() - most);
    return out;
}

}  // namespace

std::string why_no_bytes(const pipeline::Session& session, const std::vector<const pipeline::Source*>& selected,
                         const pipeline::Report& report) {
    if (session.sources.empty()) return "the capture describes no trace source";
    if (std::none_of(selected.begin(), selected.end(),
                     [](const pipeline::Source* s) { return s->protocol == pipeline::Protocol::pft; }))
        return fmt::format(
            "Waymark does not decode the protocol of {}: {}. Of the sources of a snapshot it decodes PTM1.x "
            "and PFT1.x; use another tool for others",
            selected.size() == 1 ? "the source" : "any selected source", sources_text(selected));
    if (report.streams.empty())
        return session.capture.buffers.empty() ? "the capture has no trace buffer"
                                               : "none of the selected sources is tied to a trace buffer";
    if (std::any_of(report.buffers.begin(), report.buffers.end(), [](const auto& b) { return b.error.has_value(); }))
        return "no byte of the selected sources could be read";
    return "the buffers hold no byte of the selected sources; waymark info shows whose bytes they hold";
}

std::string no_async(std::uint64_t bytes) {
    return fmt::format(
        "no A-sync (00 00 00 00 00 80) in {}: not PTM trace, framed otherwise than said (--buffer-format, or the "
        "snapshot's format=), or cut before its first synchronisation",
        counted(bytes, "byte"));
}

std::string to_sentence(const flow::Inconsistency& what) {
    using flow::Conflict;
    const std::string found = hex(what.found), expected = hex(what.expected);
    switch (what.conflict) {
        case Conflict::sync_disagrees:
            return what.found == what.expected
                       ? fmt::format("the I-sync confirms {}, but not the instruction set or context reached", found)
                       : fmt::format("the I-sync says {}, the walk has reached {}", expected, found);
        case Conflict::branch_disagrees:
            return fmt::format("the branch packet goes to {}, the image's direct branch to {}", expected, found);
        case Conflict::update_behind:
            return fmt::format("the waypoint update names {}, which the walk has passed ({} is next)", expected, found);
        case Conflict::no_return_address:
            return fmt::format("no address for the indirect branch at {}, nor a return stack entry", found);
        case Conflict::undefined_reached:
            return fmt::format("an atom leads over the undefined instruction at {}", found);
        case Conflict::runaway_walk:
            return fmt::format("an atom, but no branch up to {}, farther than any block goes", found);
        case Conflict::update_disagrees:
            return fmt::format("the waypoint update names {}, but the walk ends at {}", expected, found);
        case Conflict::vmid_missing:
            return "VMIDs are traced (ETMCR bit 30), but none came between an I-sync and the packet here";
    }
    return {};
}

}  // namespace waymark::cli
