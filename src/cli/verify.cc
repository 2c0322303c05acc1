/// `waymark verify`: a recording against its truth.
#include <algorithm>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "commands.h"
#include "dpu/verify.h"
#include "options.h"
#include "unit_answers.h"
#include "waymark/capture/dpu_folder.h"
#include "waymark/capture/snapshot.h"
#include "waymark/core/regular_file.h"
#include "waymark/pipeline/packet_counter.h"
#include "waymark/record/comparison.h"
#include "waymark/record/truth.h"

namespace waymark::cli {

namespace {

using record::SourceTruth;
using record::TruthRange;

/// Of one source, or of all: the worst.
enum class Outcome : std::uint8_t { equal, not_compared, different };
Outcome worse(Outcome a, Outcome b) { return std::max(a, b); }

std::string_view heading(Outcome outcome, std::string_view equal) {
    switch (outcome) {
        case Outcome::equal: return equal;
        case Outcome::not_compared: return "NOT COMPARED";
        default: return "DIFFERENT";
    }
}

/// Prints the packets around one place.
class PacketsAround final : public protocol::PacketListener {
public:
    PacketsAround(const pipeline::StreamInfo& stream, Offset place, Output& out)
        : stream_(stream), place_(place), out_(out) {}

    void packet(const protocol::PacketView& packet, protocol::Extent at) override {
        if (after_ == shown) return;
        const std::string& meaning = packet.meaning();
        const std::string fields = packet.fields_text();
        line(at.first, fmt::format("{:<16} {}{}{}", packet.name(), fields,
                                   meaning.empty() || fields.empty() ? "" : "  ; ", meaning));
    }
    void gap(const Gap& gap) override {
        if (after_ != shown)
            line(gap.first, fmt::format("(gap)            {} bytes: {}", gap.bytes(), name(gap.reason)));
    }
    void finish() {
        for (const std::string& line : before_) out_.write(line);
    }

private:
    static constexpr unsigned shown = 6;
    void line(Offset at, const std::string& text) {
        const bool here = !here_ && at >= place_;
        here_ |= here;
        before_.push_back(
            fmt::format("  {} {:>#10x}  {}\n", here ? '>' : ' ', stream_.offsets.capture(at).value, text));
        if (here_) ++after_;
        if (!here_ && before_.size() > shown) before_.pop_front();
    }

    const pipeline::StreamInfo stream_;
    const Offset place_;
    Output& out_;
    std::deque<std::string> before_;
    bool here_ = false;
    unsigned after_ = 0;
};

std::string text(const std::optional<TruthRange>& range, const image::Symbols& symbols) {
    if (!range) return "nothing further";
    const std::string symbol = symbols.text({range->start});
    return fmt::format("{:#010x}-{:#010x}, {} instruction{}{}", range->start, range->end, range->instructions,
                       range->instructions == 1 ? "" : "s", symbol.empty() ? "" : fmt::format("  ({})", symbol));
}

flow::MapOffset offsets_of(const pipeline::StreamInfo& stream) {
    return [&offsets = stream.offsets](Offset at) { return offsets.capture(at).value; };
}

class Verification {
public:
    explicit Verification(const InputOptions& options) : options_(options) {}

    ExitStatus run() {
        std::filesystem::path folder = options_.capture;
        if (folder.filename() == "snapshot.ini") folder = folder.parent_path();
        if (std::error_code none; std::filesystem::exists(folder / capture::dpu_ini, none)) {
            if (!options_.sources.empty() || !options_.symbols.empty())
                return fail(
                    {Errc::usage, fmt::format("{} is a recording of a DPU, one unit; leave out {}", options_.capture,
                                              options_.sources.empty() ? "--symbols" : "--source")});
            return verify_dpu(options_.capture, options_.output);
        }
        if (std::error_code none; !std::filesystem::exists(options_.capture, none))
            return fail({Errc::not_found, fmt::format("{}: no such file or folder", options_.capture)});
        if (const auto no_file = no_regular_file(options_.capture)) return fail(*no_file);
        if (is_profile(options_.capture)) return not_for_samples();
        auto truth = record::read_truth(folder.empty() ? "." : folder);
        if (!truth) {
            // What is no capture at all is that first.
            if (const auto opened = open_session(options_); !opened) return fail(opened.error());
            const ExitStatus status = fail(truth.error());
            std::error_code none;
            const std::filesystem::path capture = options_.capture;
            const bool is_folder = std::filesystem::is_directory(capture, none) ||
                                   (capture.extension() == ".ini" && std::filesystem::exists(capture, none));
            return truth.error().code == Errc::not_found && is_folder ? static_cast<ExitStatus>(not_compared) : status;
        }
        auto opened = open_session(options_);
        if (!opened) return fail(opened.error());
        const pipeline::Session session = std::move(*opened);
        warn(session);
        const auto selected = session.select(options_.sources);
        if (!selected) return fail(selected.error());
        auto out = Output::open(options_.output, options_.files());
        if (!out) return fail(out.error());
        const ExitStatus status = compare(session, *selected, *truth, folder, *out);
        if (out->close() != decoded) return unreadable;
        return status;
    }

private:
    /// Samples cover a part of the run, so its sums cannot be compared with single samples.
    ExitStatus not_for_samples() const {
        const std::string sums = options_.capture + ".truth.txt";
        std::error_code none;
        say("error",
            fmt::format("{}: NOT COMPARED: a profile contains samples, not the whole run, so it is not "
                        "decoded and compared as trace is. {}",
                        options_.capture,
                        std::filesystem::exists(sums, none)
                            ? fmt::format("What really ran is summed in {}", sums)
                            : "Nothing beside it says what really ran: 'waymark record --unit spe' writes that "
                              "to PATH.truth.txt"));
        return static_cast<ExitStatus>(not_compared);
    }

    ExitStatus compare(const pipeline::Session& session, const std::vector<const pipeline::Source*>& selected,
                       const record::Truth& truth, const std::filesystem::path& folder, Output& out) {
        const std::map<std::string, std::uint64_t> gone = ranges_gone(session, selected, truth);
        std::map<const pipeline::Source*, std::unique_ptr<record::Comparison>> comparisons;
        const auto make = [&](const pipeline::StreamInfo& stream) -> std::unique_ptr<pipeline::Consumer> {
            if (!stream.source.has_flow()) return nullptr;
            std::optional<record::RangeReader> ranges;
            for (const SourceTruth& s : truth.sources) {
                if (s.source != stream.source.name || s.file.empty()) continue;
                auto reader = record::RangeReader::open(folder / s.file);
                if (reader)
                    ranges = std::move(*reader);
                else
                    say("warning", reader.error().message);
            }
            auto& comparison = comparisons[&stream.source];
            const auto before = gone.find(stream.source.name);
            comparison = std::make_unique<record::Comparison>(offsets_of(stream), std::move(ranges),
                                                              before == gone.end() ? 0 : before->second);
            return pipeline::flow_consumer(stream, *comparison, pipeline::DecoderKind::fast);
        };
        ProgressLine progress;
        const pipeline::Report report = pipeline::run(
            session, selected, make,
            progress.active() ? pipeline::Progress([&](std::uint64_t bytes, auto of) { progress.show(bytes, of); })
                              : nullptr);
        const bool read_errors = report_read_errors(report);
        if (!truth.complete)
            say("note", "the recording was cut off by force; trace and truth are compared as far as both go");
        Outcome all = Outcome::equal;
        std::uint64_t instructions = 0;
        for (const pipeline::Source* source : selected) {
            const auto known = std::find_if(truth.sources.begin(), truth.sources.end(),
                                            [&](const SourceTruth& s) { return s.source == source->name; });
            if (known == truth.sources.end()) {
                out.print("source {}: NOT COMPARED: the truth does not name it\n", source->label());
                all = worse(all, Outcome::not_compared);
                continue;
            }
            const auto found = comparisons.find(source);
            if (found != comparisons.end()) found->second->finish(!truth.complete);
            static const SourceTruth none;
            const SourceTruth& sums = found == comparisons.end() ? none : found->second->sums();
            instructions += sums.instructions;
            if (known->wrapped) {
                all = worse(all, report_wrapped(session, *source, *known, sums,
                                                found == comparisons.end() ? nullptr : found->second.get(),
                                                truth.complete, out));
                continue;
            }
            all = worse(all,
                        report_source(session, *source, *known, sums,
                                      found == comparisons.end() ? nullptr : found->second.get(), truth.complete, out));
        }
        if (selected.empty() || truth.sources.empty()) {
            say("error", "nothing to compare: nothing was recorded");
            return static_cast<ExitStatus>(not_compared);
        }
        if (read_errors) return unreadable;
        if (instructions == 0 && !gone.empty()) {
            say("error", "nothing to compare: what the buffer kept holds no synchronisation (--sync, --buffer)");
            return static_cast<ExitStatus>(not_compared);
        }
        out.print("{}: {} instructions of {} source{}\n", heading(all, "equal"), grouped(instructions), selected.size(),
                  selected.size() == 1 ? "" : "s");
        return all == Outcome::equal       ? decoded
               : all == Outcome::different ? nothing
                                           : static_cast<ExitStatus>(not_compared);
    }

    /// Of buffers that wrapped, how many ranges of each source are not in the trace. What is there ends where the truth
    /// does, so they are known once those that are there are counted.
    static std::map<std::string, std::uint64_t> ranges_gone(const pipeline::Session& session,
                                                            const std::vector<const pipeline::Source*>& selected,
                                                            const record::Truth& truth) {
        std::map<std::string, std::uint64_t> gone;
        for (const pipeline::Source* source : selected)
            for (const SourceTruth& s : truth.sources)
                if (s.wrapped && s.source == source->name) gone[s.source] = s.ranges;
        if (gone.empty()) return gone;
        std::map<const pipeline::Source*, std::unique_ptr<record::Comparison>> counts;
        static_cast<void>(pipeline::run(session, selected, [&](const pipeline::StreamInfo& stream) {
            auto& count = counts[&stream.source];
            count = std::make_unique<record::Comparison>(offsets_of(stream), std::nullopt, 0);
            return pipeline::flow_consumer(stream, *count, pipeline::DecoderKind::fast);
        }));
        for (const auto& [source, count] : counts) {
            const auto at = gone.find(source->name);
            if (at == gone.end()) continue;
            count->finish(false);
            at->second -= std::min(at->second, count->sums().ranges);
        }
        return gone;
    }

    /// The end of the truth must be there, range by range; what came before the first synchronisation is gone.
    Outcome report_wrapped(const pipeline::Session& session, const pipeline::Source& source,
                           const SourceTruth& executed, const SourceTruth& sums, const record::Comparison* comparison,
                           bool complete, Output& out) {
        const bool comparable =
            complete && !executed.file.empty() && (comparison == nullptr || comparison->has_ranges());
        const Outcome outcome = !comparable                                          ? Outcome::not_compared
                                : comparison == nullptr || !comparison->difference() ? Outcome::equal
                                                                                     : Outcome::different;
        out.print("source {}: {}\n", source.label(), heading(outcome, "equal as far as it was kept"));
        out.print("  the buffer wrapped: of {} ranges the last {} ({} instructions) are in the trace\n",
                  grouped(executed.ranges), grouped(sums.ranges), grouped(sums.instructions));
        if (comparison != nullptr) {
            const flow::Count& before = comparison->totals().gaps[static_cast<unsigned>(GapReason::unsynchronised)];
            out.print("  {} bytes precede their first synchronisation\n", grouped(before.bytes));
        }
        if (!comparable)
            out.write(complete
                          ? "  only a recording made with --truth can be compared where the buffer wrapped\n"
                          : "  the recording was cut off by force: which part of it the buffer holds is not known\n");
        else if (outcome == Outcome::different)
            show(session, source, *comparison->difference(), out);
        return outcome;
    }

    Outcome report_source(const pipeline::Session& session, const pipeline::Source& source, const SourceTruth& executed,
                          const SourceTruth& sums, const record::Comparison* comparison, bool complete, Output& out) {
        const bool same_sums =
            executed.ranges == sums.ranges && executed.instructions == sums.instructions && executed.hash == sums.hash;
        const std::uint64_t overflows =
            comparison == nullptr ? 0
                                  : comparison->totals().trace_on[static_cast<unsigned>(flow::TraceOnReason::overflow)];
        const bool declared = executed.lost_ranges == 0 || overflows != 0;
        Outcome outcome = same_sums && declared ? Outcome::equal : Outcome::different;
        if (!complete) {
            const bool has_ranges = comparison != nullptr && comparison->has_ranges();
            outcome = !has_ranges                                                        ? Outcome::not_compared
                      : !comparison->difference() || !comparison->difference()->executed ? Outcome::equal
                                                                                         : Outcome::different;
            if (!has_ranges)
                say("note",
                    fmt::format("source {}: only its sums were kept, and where they end is not known; record with "
                                "--truth to compare what was cut off",
                                source.label()));
        }
        out.print("source {}: {}\n", source.label(), heading(outcome, "equal"));
        const auto row = [&](std::string_view name, auto a, auto b) {
            out.print("  {:<14} {:>20} {:>20}{}\n", name, a, b, a == b ? "" : "  *");
        };
        out.print("  {:<14} {:>20} {:>20}\n", "", "executed", "decoded");
        row("ranges", grouped(executed.ranges), grouped(sums.ranges));
        row("instructions", grouped(executed.instructions), grouped(sums.instructions));
        row("hash", fmt::format("{:#018x}", executed.hash), fmt::format("{:#018x}", sums.hash));
        if (executed.lost_ranges != 0)
            out.print("  {} ranges ({} instructions) were lost to a full FIFO; the trace declares {} overflow{}\n",
                      grouped(executed.lost_ranges), grouped(executed.lost_instructions), grouped(overflows),
                      overflows == 1 ? "" : "s");
        if (executed.filtered_ranges != 0)
            out.print("  {} more ranges ({} instructions) executed that the unit was programmed not to trace\n",
                      grouped(executed.filtered_ranges), grouped(executed.filtered_instructions));
        if (executed.unfinished_instructions != 0)
            out.print("  {} instructions executed after the last waypoint, which no unit traces\n",
                      grouped(executed.unfinished_instructions));
        if (outcome != Outcome::different) return outcome;
        if (comparison != nullptr && comparison->difference())
            show(session, source, *comparison->difference(), out);
        else if (comparison != nullptr && !comparison->has_ranges())
            out.write("  only a recording made with --truth shows where the first difference is\n");
        return outcome;
    }

    void show(const pipeline::Session& session, const pipeline::Source& source, const record::Difference& d,
              Output& out) {
        out.print("  first difference: range {}, from the packet at offset {:#x} of the buffer\n", grouped(d.number),
                  d.capture.value);
        out.print("    before it  {}\n    executed   {}\n    decoded    {}\n",
                  d.before ? text(d.before, source.names->symbols) : "nothing", text(d.executed, source.names->symbols),
                  text(d.decoded, source.names->symbols));
        const std::vector<const pipeline::Source*> one{&source};
        std::deque<PacketsAround> around;  // of each buffer
        static_cast<void>(pipeline::run(session, one, [&](const pipeline::StreamInfo& stream) {
            return pipeline::packet_consumer(stream, around.emplace_back(stream, d.stream, out));
        }));
        for (PacketsAround& packets : around) packets.finish();
    }

    const InputOptions& options_;
};

}  // namespace

Run add_verify(CLI::App& app) {
    auto options = std::make_shared<InputOptions>();
    CLI::App& command = *app.add_subcommand("verify", "Decode a recording and compare it with what really executed");
    command
        .add_option("DIR", options->capture,
                    "A folder made by 'waymark record' with --unit ptm or dpu; samples (--unit spe) are not compared")
        ->required();
    command.add_option("--source", options->sources, "Only this source: trace ID (0x13) or name. May be repeated")
        ->type_name("ID|NAME")
        ->take_all();
    command.add_option("--symbols", options->symbols, "ELF file to take names from. May be repeated")
        ->type_name("FILE")
        ->take_all();
    options->add_folders_to(command);
    command.add_option("-o,--output", options->output, "Output file instead of standard output")->type_name("FILE");
    command.footer(
        "Compares ranges, instructions and the ordered hash of each source. Of a DPU: counts of each task, and from "
        "each\n"
        "place that a call led to, changes of flow, user data. Where they differ, and the recording was\n"
        "made with --truth, it shows the first difference with the packets around it.\n"
        "\n"
        "Exit status: 0 equal, or different only where it is declared that something was lost (overflow, a buffer "
        "that\n"
        "wrapped: then --truth is needed, and all after the first synchronisation must be equal);\n"
        "1 different; 2 usage; 3 the capture or its truth cannot be read; 4 they cannot be compared: there is no "
        "truth,\n"
        "or it does not cover the trace (NOT COMPARED).\n");
    return [options] { return Verification(*options).run(); };
}

}  // namespace waymark::cli
