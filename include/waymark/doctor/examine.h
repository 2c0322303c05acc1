/// Examines a capture from frames to program flow: its contents, its problems, and their remedies. Labelled captures
/// are compared with their own description; for unlabelled ones everything is inferred.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
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
    std::vector<std::string> images;  ///< `FILE[@ADDRESS]`, each judged separately; a raw dump may lack its address
    std::uint64_t most_bytes = sample_bytes;  ///< of each buffer
    /// Called with the next step, before each step that may take long; may be empty.
    std::function<void(const std::string&)> progress{};
};

struct ExaminedBuffer {
    std::string name;
    std::vector<std::filesystem::path> files;
    std::vector<capture::BufferPart> parts;              ///< if it consists of parts of one file, `container`
    std::shared_ptr<const capture::ByteFile> container;  ///< else null
    capture::Buffer::Format format{};                    ///< as inferred
    coresight::FramingGuess guess{};
    std::string not_frames{};  ///< reason to doubt frames, if `format` is unknown
    std::string no_trace{};    ///< its contents instead of trace: `4,096 bytes, all of them 0xff`
    /// The decoded bytes of a file that contains them as digits or with reversed words; otherwise null.
    std::shared_ptr<const std::vector<std::uint8_t>> decoded{};
    const Protocol* listed{};  ///< the file is a text that lists packets of this protocol; `decoded` has their bytes
    std::uint64_t skipped{};   ///< bytes before the first frame, of a dump that begins inside one
    std::uint64_t looked_at{};
    std::optional<std::uint64_t> bytes{};
    unsigned pieces{};
    coresight::Totals frames;  ///< for the examined part
};

/// The comparison of an image with a source.
struct ImageVerdict {
    enum class Kind : std::uint8_t {
        matches,      ///< it agrees at its own address: proven, or without contradiction and with most of the trace
        in_part,      ///< it agrees except for rare contradictions; no proof
        contradicts,  ///< it contradicts the trace
        not_reached,  ///< undecided: too little of the trace runs in this image
        shifted,      ///< proven at another address
        other_build,  ///< its build ID differs from that of every file mapped during the trace; it is not used for
                      ///< decoding
        unreadable
    };
    std::string image;  ///< as given; `the capture's memory` for files that its description names
    std::string source;
    Kind kind{};
    Trial trial;                 ///< result at its own address
    std::optional<Shift> shift;  ///< where it would match
    std::string argument{};      ///< for matches and shifted: the argument for --image
    std::string why{};           ///< unreadable, other_build
    /// Several images that were tried together as one program: each as argument for --image. `argument` then contains
    /// all of them.
    std::vector<std::string> together{};

    /// The arguments for --image, one for each; empty if the capture's own memory is meant.
    [[nodiscard]] std::vector<std::string> arguments() const {
        if (!together.empty() || argument.empty()) return together;
        return {argument};
    }
};
[[nodiscard]] std::string_view name(ImageVerdict::Kind kind);

struct ExaminedSource {
    std::string name, buffer;
    std::optional<coresight::TraceId> trace_id;
    bool described = false;   ///< the capture's description contains it
    bool configured = false;  ///< as a source of the protocol that its bytes have, with registers
    std::shared_ptr<const Configuration> as_described{};  ///< of a configured source: as its registers say
    Identity identity;
    /// Inferred, or as described where the bytes do not contradict it, with settings that only an image proves; null if
    /// the bytes have no protocol with configurations.
    std::shared_ptr<const Configuration> configuration;
    std::optional<std::size_t> image;  ///< index in `ExaminationReport::images` of the one that explains it best
    /// Settings that only a program shows; empty if the description has them.
    std::vector<InferredField> program_facts{};
    std::optional<follow::HeadRecovery> head;
    /// Whether its program flow can be decoded, so that images can be judged by it.
    [[nodiscard]] bool has_flow() const { return configuration != nullptr && configuration->protocol().decodes_flow(); }
    /// Whether it sends messages (protocol/message.h).
    [[nodiscard]] bool has_messages() const { return protocol::message_source(configuration.get()) != nullptr; }
    std::uint64_t bytes{};
};

struct ExaminationReport {
    std::vector<ExaminedBuffer> buffers;
    std::vector<ExaminedSource> sources;
    std::vector<ImageVerdict> images;
    std::vector<CaptureFinding> findings;  ///< most severe first, then by place
    std::string verdict;                   ///< one sentence
    /// How much of the run the capture covers, decoded as described, or else as inferred. Empty if that does not
    /// suffice for decoding, or not everything was examined.
    answers::Account account;
    bool labelled = false;
    std::filesystem::path description{};  ///< `snapshot.ini` of a snapshot folder; empty: no such folder
    bool recognised = false;              ///< there is trace of a known protocol
    bool cut = false;                     ///< something could not be read completely: a finding names it
    [[nodiscard]] std::size_t count(Severity severity) const;
};

/// `labelled`: the session came from a description; otherwise it has only buffers, whose formats are ignored. Time and
/// memory are bounded by `most_bytes`, whatever the size of the capture. An unreadable part is a finding.
[[nodiscard]] ExaminationReport examine(const pipeline::Session& session, bool labelled,
                                        const ExamineOptions& options = {});

/// Examines a folder of a Debug and Profiling Unit, or a perf.data file with samples. Errors: it cannot be opened.
[[nodiscard]] Result<ExaminationReport> examine_dpu(const std::filesystem::path& folder);
[[nodiscard]] Result<ExaminationReport> examine_perf(const open::Container& container);

/// Writes the inferences as a snapshot folder, which `waymark flow` can read: ini files, the trace, the memory of
/// matching images, and ELF files themselves for names of code. Of a snapshot folder, its description and its memory
/// are written too, with what the bytes prove otherwise. Files of more than 64 MiB are linked, not copied. `folder`
/// must not exist, or be empty. Errors: `usage`: there is no source with decodable flow, or the folder is not empty;
/// `unreadable`: something cannot be written.
[[nodiscard]] Status write_inferred(const ExaminationReport& report, const std::filesystem::path& folder);

/// The results of decoding a snapshot folder.
struct Decoded {
    flow::Totals totals;
    std::uint64_t contradictions{};
    std::uint64_t messages{}, damages{};  ///< messages, and stretches of bytes that are no messages
};
/// Decodes a whole folder from write_inferred. Errors: the folder cannot be read.
[[nodiscard]] Result<Decoded> decode_written(const std::filesystem::path& folder);

}  // namespace waymark::doctor
