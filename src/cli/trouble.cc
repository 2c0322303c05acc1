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

std::string about(const std::string& capture, const std::string& sentence) {
    return sentence.starts_with(capture) ? sentence : fmt::format("{}: {}", capture, sentence);
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

}  // namespace waymark::cli
