#include "waymark/dpu/protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/dpu/decoder.h"
#include "waymark/dpu/nexus.h"
#include "waymark/dpu/packet.h"
#include "waymark/dpu/parser.h"
#include "waymark/protocol/adapters.h"

namespace waymark::dpu {

namespace {

using protocol::CaptureFinding;
using protocol::Severity;
using protocol::Stretch;

/// The contents of a trace buffer without the lines before and after the trace that were never written.
Bytes written_lines(Bytes dump) {
    constexpr std::size_t line = 32;
    const auto is_written = [&](std::size_t at) {
        const Bytes here = dump.subspan(at, std::min(line, dump.size() - at));
        return std::any_of(here.begin(), here.end(), [](std::uint8_t b) { return b != 0; });
    };
    std::size_t first = 0, end = dump.size();
    while (first < end && !is_written(first)) first += std::min(line, end - first);
    while (end > first && !is_written((end - 1) / line * line)) end = (end - 1) / line * line;
    return dump.subspan(first, end - first);
}

class NoElements final : public ElementSink {
public:
    void consume(const Batch&) override {}
};

class ProtocolRow final : public protocol::Protocol {
public:
    [[nodiscard]] const protocol::Words& words() const override {
        static constexpr protocol::Words words{.unit = "DPU",
                                               .unit_title = "Debug and Profiling Unit",
                                               .trace = "Debug and Profiling Unit words",
                                               .title = "Debug and Profiling Unit (DPU)",
                                               .types = {}};
        return words;
    }
    [[nodiscard]] std::vector<std::string> packet_names() const override {
        std::vector<std::string> out = protocol::names_of<Entries>();
        for (std::string& name : protocol::names_of<nexus::Messages>())
            if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(std::move(name));
        return out;
    }

    [[nodiscard]] bool identify(const std::vector<Stretch>& stretches, protocol::Identity& out) const override {
        std::vector<Bytes> written;
        std::uint64_t never_written = 0;
        for (const Stretch& stretch : stretches) {
            written.push_back(written_lines(stretch.bytes));
            never_written += stretch.bytes.size() - written.back().size();
        }
        std::uint64_t best_entries = 0, best_bytes = 0, best_lost = 0, best_flags = 0, other_flags = 0, words_there = 0;
        std::string order;
        for (const ByteOrder o : {ByteOrder::big, ByteOrder::little}) {
            std::uint64_t entries = 0, in_entries = 0, lost = 0, flags = 0;
            words_there = 0;
            for (const Bytes bytes : written) {
                NoElements sink;
                TraceFormat format;
                format.mode.reset();
                Decoder decoder(format, o, sink);
                decoder.feed(bytes);
                decoder.finish(false);
                const Totals& t = decoder.totals();
                for (const std::uint64_t n : t.entries) entries += n;
                in_entries += t.entry_bytes;
                lost += t.lost_bytes();
                for (std::size_t at = 0; at + 4 <= bytes.size(); at += 4, ++words_there)
                    flags += (load_word(bytes.data() + at, o) & ~(flag_page_bytes - 1)) == format.dpu_base;
            }
            other_flags = flags > best_flags ? best_flags : flags;
            if (order.empty() || flags > best_flags) {
                best_flags = flags;
                best_entries = entries;
                best_bytes = in_entries;
                best_lost = lost;
                order = o == ByteOrder::big ? "big-endian" : "little-endian";
            }
        }
        out.tried.push_back({"Debug and Profiling Unit words (layout WL-1, base 0xfff0a000)",
                             fmt::format("{} in {} {}, {} in none, {}", counted(best_entries, "entry", "entries"),
                                         counted(best_bytes, "byte"), order, counted(best_lost, "byte"),
                                         counted(best_flags, "trace flag"))});
        // Nearly any words are valid entries. But no other word can be a trace flag, and nearly every entry has one.
        constexpr std::uint64_t least_flags = 4, most_words_a_flag = 16;
        if (best_flags < least_flags || best_flags * most_words_a_flag < words_there) return false;
        if (best_entries < 4 || best_lost * 4 > best_bytes) return false;
        out.protocol = this;
        out.entries = best_entries;
        out.lost_bytes = best_lost;
        if (never_written != 0)
            out.facts.push_back({"never written", counted(never_written, "byte"), protocol::Certainty::likely,
                                 "lines of zeros before or behind the trace: software clears the buffer, and trace "
                                 "contains no line of zeros"});
        out.facts.push_back({"byte order", order,
                             other_flags * 16 < best_flags ? protocol::Certainty::proven : protocol::Certainty::assumed,
                             fmt::format("{}, in the other order {}", counted(best_flags, "trace flag"), other_flags)});
        return true;
    }
    [[nodiscard]] std::vector<CaptureFinding> health(const protocol::Identity& identity, const protocol::Configuration*,
                                                     const std::vector<Stretch>& stretches,
                                                     std::string_view buffer) const override {
        std::vector<CaptureFinding> out = protocol::lost_bytes_findings(
            identity, stretches, "entry", "entries", "entries of layout WL-1", "read the buffer again, if it matters");
        out.push_back(
            {Severity::error,
             "no-description",
             {},
             {},
             {},
             "words of a trace buffer without the unit's registers",
             "a folder with a dpu.ini",
             "the words show neither how the unit was programmed nor where in the buffer the oldest word is",
             fmt::format("put {} into a folder with a dpu.ini that names it and gives the registers (docs/spec/dpu.md, "
                         "7.5): waymark profile, report and dpu read that folder. waymark doctor REGISTERS {} "
                         "--write-snapshot DIR makes such a folder from a text of the registers",
                         buffer, buffer)});
        return out;
    }
    [[nodiscard]] std::string how_to_read(std::string_view file) const override {
        return fmt::format(
            "{} contains words of a Debug and Profiling Unit (DPU), which cannot be read without its registers. Put it "
            "into a folder with a dpu.ini that names it and gives them (docs/spec/dpu.md, 7.5), and name that folder; "
            "waymark doctor REGISTERS {} --write-snapshot DIR makes such a folder from a text of the registers",
            file, file);
    }
    [[nodiscard]] std::string next_step(std::string_view) const override {
        return "put it into a folder with a dpu.ini that names it and gives the unit's registers (docs/spec/dpu.md, "
               "7.5)";
    }
};

}  // namespace

const protocol::Protocol& row() {
    static const ProtocolRow row;
    return row;
}

}  // namespace waymark::dpu
