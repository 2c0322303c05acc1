/// The parts of an examination (examine.h): each examines one side of the capture, and adds to one report.
#pragma once

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/core/numbers.h"
#include "waymark/coresight/orbflow.h"
#include "waymark/doctor/examine.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/run.h"

namespace waymark::doctor {

/// State that the parts share: the capture, and the report so far.
struct Examination {
    const pipeline::Session& session;
    const ExamineOptions& options;
    ExaminationReport report;
    std::vector<BufferSample> samples;            ///< of report.buffers
    std::vector<std::vector<Stretch>> stretches;  ///< of report.sources
    std::vector<const pipeline::Source*> known;   ///< by index in report.sources; null: not described
    std::vector<Trial> own_memory;  ///< by index in report.sources: the trial with the capture's own memory
    std::map<std::string, Trial>
        processes{};  ///< by source, for captures of several processes: the trial with each source's own code
};

/// Kinds of findings that are reported once, however many sources have them.
inline constexpr std::string_view idle_source = "idle-source", no_bytes = "no-bytes", empty_buffer = "empty",
                                  sink_register = "sink-register";

/// Whether the bytes contain an A-sync of a trace unit: at least five zeros, and 0x80.
[[nodiscard]] bool has_async(const std::vector<Stretch>& stretches);

inline std::string bytes_text(std::uint64_t n) { return counted(n, "byte"); }

/// A buffer, split into streams according to one framing.
struct Taken {
    std::array<std::vector<Stretch>, coresight::trace_ids> by_id;
    std::vector<Stretch> bare;
    std::vector<Stretch> nobodys;  ///< data before the first ID of the buffer
    std::optional<coresight::TraceId> first_named{};
    bool head_named = false;  ///< a finding is about `nobodys`
    coresight::Totals frames;
    std::vector<Gap> gaps;
    std::vector<Offset> triggers;  ///< where they are marked
};

/// Base of a part: gives names to the shared state.
class Part {
public:
    explicit Part(Examination& e)
        : examination_(e),
          session_(e.session),
          options_(e.options),
          report_(e.report),
          samples_(e.samples),
          stretches_(e.stretches),
          known_(e.known),
          own_memory_(e.own_memory) {}

protected:
    /// Reports the next step.
    void progress(const std::string& what) const {
        if (options_.progress) options_.progress(what);
    }
    void add_finding(CaptureFinding finding) const { report_.findings.push_back(std::move(finding)); }
    void add_finding(const ExaminedSource& source, Severity severity, std::string kind, std::optional<Offset> at,
                     std::string found, std::string expected, std::string cause, std::string advice) const {
        add_finding({severity, std::move(kind), source.buffer, source.name, at, std::move(found), std::move(expected),
                     std::move(cause), std::move(advice)});
    }
    void add_findings(const ExaminedSource& source, std::vector<CaptureFinding> findings) const {
        for (CaptureFinding& finding : findings) {
            finding.buffer = source.buffer;
            finding.source = source.name;
            add_finding(std::move(finding));
        }
    }
    [[nodiscard]] std::size_t index_of(const ExaminedSource& source) const {
        return static_cast<std::size_t>(&source - report_.sources.data());
    }
    [[nodiscard]] std::optional<Offset> first_offset(const ExaminedSource& source) const {
        const std::vector<Stretch>& stretches = stretches_[index_of(source)];
        return stretches.empty() ? std::optional<Offset>() : stretches.front().offsets.capture({0});
    }

    Examination& examination_;
    const pipeline::Session& session_;
    const ExamineOptions& options_;
    ExaminationReport& report_;
    std::vector<BufferSample>& samples_;
    std::vector<std::vector<Stretch>>& stretches_;
    std::vector<const pipeline::Source*>& known_;
    std::vector<Trial>& own_memory_;
};

/// Facts that the bytes do not prove get the values that registers of the description give.
void take_given_facts(ExaminedSource& source, const pipeline::Source& described);

/// Finds out how a buffer is framed, by examining its bytes in each framing, and splits it.
class FramingChoice : Part {
public:
    using Part::Part;
    /// If `buffer` has a description, its framing is checked; a different framing is reported.
    [[nodiscard]] Taken choose(const capture::Buffer& buffer, const BufferSample& sample, ExaminedBuffer& out) const;
    /// Whether the buffer certainly contains trace of a known protocol, in more than a few of its bytes. Reports
    /// nothing.
    [[nodiscard]] bool recognises(const capture::Buffer& buffer, const BufferSample& sample, ExaminedBuffer& out) const;
    /// Number of bytes of sources whose protocol is recognised.
    [[nodiscard]] static std::uint64_t recognised_bytes(const Taken& taken);
    /// The sample as the bytes of one source, and as frames of memory.
    [[nodiscard]] static Taken bare(const BufferSample& sample);
    [[nodiscard]] static Taken frames(const BufferSample& sample);

private:
    [[nodiscard]] Taken hold_against(const capture::Buffer& buffer, const BufferSample& sample,
                                     ExaminedBuffer& out) const;
};

/// Reads a buffer and finds the sources in it.
class Buffers : Part {
public:
    using Part::Part;
    void look_at(const capture::Buffer& buffer);

private:
    [[nodiscard]] static bool is_empty(const capture::Buffer& buffer);
    void report_empty(const capture::Buffer& buffer, const std::string& found);
    void report_wiring(const capture::Buffer& buffer);
    bool take_listing(const capture::Buffer& buffer, BufferSample& sample, ExaminedBuffer& out);
    bool look_beyond(const capture::Buffer& buffer, BufferSample& sample, ExaminedBuffer& out);
    void take_orbflow(const capture::Buffer& buffer, coresight::Orbflow found, BufferSample& sample,
                      ExaminedBuffer& out);
    /// Whether other bytes can take the place of those that were read.
    [[nodiscard]] bool may_replace(const BufferSample& sample, const ExaminedBuffer& out) const {
        return !report_.labelled && out.listed == nullptr && sample.whole() && sample.pieces.size() == 1;
    }
    void take_fill_off(const capture::Buffer& buffer, BufferSample& sample, ExaminedBuffer& out);
    void take_half_syncs_out(const capture::Buffer& buffer, BufferSample& sample, ExaminedBuffer& out);
    [[nodiscard]] std::optional<Taken> take_frames_without_ids(const capture::Buffer& buffer, BufferSample& sample,
                                                               ExaminedBuffer& out);
    [[nodiscard]] bool leave_rest_out(const capture::Buffer& buffer, BufferSample& sample, ExaminedBuffer& out,
                                      const Taken& taken);
    void name_head(const capture::Buffer& buffer, BufferSample& sample, ExaminedBuffer& out, Taken& taken);
    [[nodiscard]] Taken choose_reading(const capture::Buffer& buffer, BufferSample& sample, ExaminedBuffer& out);
    void report_frames(const capture::Buffer& buffer, ExaminedBuffer& out, const Taken& taken);
    void report_frame_damage(pipeline::Damage damage, const ExaminedBuffer& buffer);
    void find_sources(const capture::Buffer& buffer, const ExaminedBuffer& out, const Taken& taken);
    void report_no_id(const capture::Buffer& buffer, const pipeline::Source& source);
    void report_absent(const capture::Buffer& buffer, const pipeline::Source& source);
};

/// Reports damaged or missing parts of a buffer, which the pipeline finds for all commands.
class DamageOfBuffer : Part {
public:
    using Part::Part;
    void look_for(const ExaminedBuffer& buffer, const BufferSample& sample);
    /// The account of a buffer without a description, decoded as inferred and with the images that explain its sources
    /// best. The sample must be whole.
    [[nodiscard]] answers::Account account(const ExaminedBuffer& buffer, const BufferSample& sample) const;

private:
    /// Packets of a source that were cut in two, in all examined pieces of a buffer.
    struct Cut {
        Offset first{};
        std::uint64_t bytes{};
    };
    [[nodiscard]] pipeline::Session session_of(const ExaminedBuffer& buffer) const;
    /// Adds the code of a source, and what else its decoding needs.
    void add_code(pipeline::Source& to, const ExaminedSource& source) const;
    void report_damage(const pipeline::Damage& damage);
    void report_stream(const ExaminedBuffer& buffer, const pipeline::StreamReport& stream, Offset base, bool whole,
                       std::vector<Cut>& cuts);
    void report_unknown_ids(const ExaminedBuffer& buffer, const std::vector<pipeline::Stray>& strays);
};

/// Reports on a capture of several processes: problems and peculiarities of its file, and missing code.
class ProcessFindings : Part {
public:
    using Part::Part;
    void report() const;

private:
    void report(const capture::Problem& problem) const;
};

/// The finding that describes a peculiarity.
[[nodiscard]] CaptureFinding finding_of(const capture::Peculiarity& peculiarity);

/// Compares the trace of a source with images of the program.
class ImageTrials : Part {
public:
    using Part::Part;
    /// Fills in the verdicts about `source` and its best image.
    void judge(ExaminedSource& source, const std::vector<Stretch>& stretches, const pipeline::Source* known);
    /// Reports the verdicts on all sources.
    void report() const;

private:
    void judge_processes(const ExaminedSource& source, ImageVerdict& verdict) const;
    void judge_memory(ExaminedSource& source, const std::vector<Stretch>& stretches, const pipeline::Source& known,
                      ImageVerdict& verdict);
    void find_unseen_code(ExaminedSource& source, const ImageVerdict& verdict);
    [[nodiscard]] bool try_without_thumb_bits(const ExaminedSource& source, const std::vector<Stretch>& stretches,
                                              const pipeline::Source& known, ImageVerdict& verdict) const;
    void find_program_facts(ExaminedSource& source, const std::vector<Stretch>& stretches) const;
    void judge_image(ExaminedSource& source, const std::vector<Stretch>& stretches, const std::string& argument,
                     ImageVerdict& verdict);
    void judge_together(ExaminedSource& source, const std::vector<Stretch>& stretches);
    void report_image(const ExaminedSource& source, const ImageVerdict& v, const std::string& right) const;
};

/// Reports memory that the description names but that is missing, and the consequences.
class MissingMemory : Part {
public:
    using Part::Part;
    void report() const;

private:
    struct Lack {
        std::uint64_t pieces = 0, bytes = 0;  ///< of memory
        bool there = false, open = false;  ///< `there`: the file exists; `open`: one of the dumps has no known length
        Address first{~std::uint64_t{0}};
        std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges{};  ///< [first, second]
        std::vector<std::string> cores{};
    };
    void report(const std::filesystem::path& file, const Lack& lack) const;
};

}  // namespace waymark::doctor
