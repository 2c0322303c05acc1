/// Looks at a capture from frames to program flow, and says what it is, what is wrong with it and what to do. Labelled
/// captures are held against their own description; of unlabelled ones everything is inferred.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waymark/answers/account.h"
#include "waymark/core/result.h"
#include "waymark/coresight/deformatter.h"
#include "waymark/coresight/guess.h"
#include "waymark/doctor/finding.h"
#include "waymark/doctor/identify.h"
#include "waymark/doctor/images.h"
#include "waymark/doctor/sample.h"
#include "waymark/follow/recover.h"
#include "waymark/open/container.h"
#include "waymark/pipeline/session.h"
#include "waymark/protocol/message.h"

namespace waymark::doctor {

struct ExamineOptions {
    std::vector<std::string> images;          ///< `FILE[@ADDRESS]`, each judged alone; a raw dump may lack its address
    std::uint64_t most_bytes = sample_bytes;  ///< of each buffer
};

struct ExaminedBuffer {
    std::string name;
    std::vector<std::filesystem::path> files;
    std::vector<capture::BufferPart> parts;              ///< if it consists of parts of one file, `container`
    std::shared_ptr<const capture::ByteFile> container;  ///< else null
    capture::Buffer::Format format{};                    ///< as inferred
    coresight::FramingGuess guess{};
    std::string not_frames{};  ///< what speaks against frames, where `format` is unknown
    std::string no_trace{};    ///< what it holds instead of trace: `4,096 bytes, all of them 0xff`
    /// The bytes that were meant, of a file that holds them as digits or with its words turned round; else null.
    std::shared_ptr<const std::vector<std::uint8_t>> decoded{};
    const Protocol* listed{};  ///< the file is a text that lists packets of this protocol; `decoded` has their bytes
    std::uint64_t skipped{};   ///< bytes before the first frame, of a dump that begins inside one
    std::uint64_t looked_at{};
    std::optional<std::uint64_t> bytes{};
    unsigned pieces{};
    coresight::Totals frames;  ///< of what was looked at
};

/// An image held against a source.
struct ImageVerdict {
    enum class Kind : std::uint8_t {
        matches,      ///< it agrees where it says it lies: proven, or without contradiction and most of the trace
        in_part,      ///< it does but for rare contradictions; no proof
        contradicts,  ///< it does not fit
        not_reached,  ///< it does not fit: too little of the trace runs in it
        shifted,      ///< proven at another address
        other_build,  ///< no file that was mapped while the trace was taken has its build ID; not decoded with
        unreadable
    };
    std::string image;  ///< as given; `the capture's memory` for what its description names
    std::string source;
    Kind kind{};
    Trial trial;                 ///< where it says it lies
    std::optional<Shift> shift;  ///< where it would match
    std::string argument{};      ///< matches, shifted: what to give as --image
    std::string why{};           ///< unreadable, other_build
    /// Several images that were taken as one program: each as --image takes it. `argument` then holds them all.
    std::vector<std::string> together{};

    /// What to give as --image, each; none where the memory of the capture is meant.
    [[nodiscard]] std::vector<std::string> arguments() const {
        if (!together.empty() || argument.empty()) return together;
        return {argument};
    }
};
[[nodiscard]] std::string_view name(ImageVerdict::Kind kind);

struct ExaminedSource {
    std::string name, buffer;
    std::optional<coresight::TraceId> trace_id;
    bool described = false;   ///< the capture's description has it
    bool configured = false;  ///< as of the protocol that its bytes are of, with registers
    Identity identity;
    /// Inferred, or as described where the bytes do not contradict that, with what only an image proves; null where the
    /// bytes are of no protocol with configurations.
    std::shared_ptr<const Configuration> configuration;
    std::optional<std::size_t> image;  ///< that of `ExaminationReport::images` which explains it best
    /// Settings that only a program shows; where the description gives them, none.
    std::vector<InferredField> program_facts{};
    std::optional<follow::HeadRecovery> head;
    /// Program flow can be decoded: images can be judged by it.
    [[nodiscard]] bool has_flow() const { return configuration != nullptr && configuration->protocol().decodes_flow(); }
    /// It sends messages (protocol/message.h).
    [[nodiscard]] bool has_messages() const { return protocol::message_source(configuration.get()) != nullptr; }
    std::uint64_t bytes{};
};

struct ExaminationReport {
    std::vector<ExaminedBuffer> buffers;
    std::vector<ExaminedSource> sources;
    std::vector<ImageVerdict> images;
    std::vector<CaptureFinding> findings;  ///< most severe first, then by place
    std::string verdict;                   ///< one sentence
    /// How much of the run the capture is, decoded as described. Empty: what decodes it is not described, or not all of
    /// it was examined.
    answers::Account account;
    bool labelled = false;
    bool recognised = false;  ///< there is trace of a protocol that Waymark knows
    bool cut = false;         ///< something could not be read, or not to its end: a finding says what
    [[nodiscard]] std::size_t count(Severity severity) const;
};

/// `labelled`: the session came from a description; else it has buffers only, whose formats are not looked at. Time and
/// memory are bounded by `most_bytes`, whatever the size of the capture. What cannot be read is a finding.
[[nodiscard]] ExaminationReport examine(const pipeline::Session& session, bool labelled,
                                        const ExamineOptions& options = {});

/// Examines a folder of a Debug and Profiling Unit, or a perf.data file with samples. Errors: it cannot be opened.
[[nodiscard]] Result<ExaminationReport> examine_dpu(const std::filesystem::path& folder);
[[nodiscard]] Result<ExaminationReport> examine_perf(const open::Container& container);

/// Writes what was inferred as a snapshot folder, which `waymark flow` then reads: ini files, the trace, the memory of
/// the images that match, and ELF files themselves for the names of their code. Trace of more than 64 MiB is linked,
/// not copied. `folder` must not exist, or be empty. Errors: `usage`: there is no source whose flow can be decoded, or
/// the folder holds something; `unreadable`: something cannot be written.
[[nodiscard]] Status write_inferred(const ExaminationReport& report, const std::filesystem::path& folder);

/// What decoding a snapshot folder gives.
struct Decoded {
    flow::Totals totals;
    std::uint64_t contradictions{};
    std::uint64_t messages{}, damages{};  ///< of sources with messages; stretches of bytes that are none
};
/// Decodes a whole folder that write_inferred wrote. Errors: the folder cannot be read.
[[nodiscard]] Result<Decoded> decode_written(const std::filesystem::path& folder);

}  // namespace waymark::doctor
