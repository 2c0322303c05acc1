/// The contents of a capture, independent of its container: the cores and trace sources, how they were programmed, and
/// the files with trace and memory. Readers of containers (capture/snapshot.h) fill it in; the layers above know
/// nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/capture/address_spaces.h"
#include "waymark/capture/byte_file.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/capture/module_map.h"
#include "waymark/core/register_value.h"
#include "waymark/core/types.h"

namespace waymark::capture {

using Register = RegisterValue;
using waymark::find_register;

struct Core {
    std::string name;  ///< unique among cores and sources; carries no meaning
    std::string type;  ///< as written in the capture: `Cortex-A15`, `ARMv7-A`; empty if unknown
    std::vector<Register> registers{};
    std::string location{};  ///< as written in the capture: `address:0x8001c000`; empty if unknown
    std::string file{};      ///< name of the file that describes it, relative to the capture; may be empty
    friend bool operator==(const Core&, const Core&) = default;
};

/// A unit that generates trace: a macrocell, ITM, STM.
struct Source {
    std::string name;         ///< unique among cores and sources
    std::string type;         ///< protocol and version as written in the capture: `PTM1.1`, `PFT1.0`, `ETM4.0`, `ITM`
    std::string core{};       ///< name of the traced core; empty: none, or not given
    std::string core_type{};  ///< type of that core; empty if unknown
    std::vector<Register> registers{};
    std::optional<std::uint32_t> stream{};  ///< stream number inside its buffers, if the capture has one
    std::string location{};
    std::string file{};

    [[nodiscard]] const Register* find_register(std::string_view register_name) const {
        return capture::find_register(registers, register_name);
    }
    friend bool operator==(const Source&, const Source&) = default;
};

/// A stretch of a buffer, stored in a file that also contains other data.
struct BufferPart {
    std::uint64_t offset{};  ///< offset of the first byte in the file
    std::uint64_t bytes{};
    /// Whether this part continues directly after the previous one. Otherwise the units were stopped between the two:
    /// decoders begin again, and a frame begins with this part.
    bool follows{};
    /// The file has `packed` bytes at `offset`, compressed with zstd. The part consists of `bytes` unpacked bytes, from
    /// `skip` on.
    std::uint64_t packed{}, skip{};
    // Times of the trace, by the clock of Capture::spaces; and the thread that ran, if the trace does not contain it.
    std::uint64_t from{}, to{};
    std::optional<std::uint32_t> thread{};
    bool lost{};  ///< trace is missing between the previous part and this one; never set if this part follows directly
    friend bool operator==(const BufferPart&, const BufferPart&) = default;
};

/// The sum of the sizes of these parts.
[[nodiscard]] std::uint64_t bytes_in(const std::vector<BufferPart>& parts);

/// One captured stream of bytes.
struct Buffer {
    /// docs/spec/pft.md, 6.5.
    enum class Format : std::uint8_t {
        coresight,          ///< 16-byte formatter frames, aligned, without synchronisation packets
        source_data,        ///< the bytes of exactly one source
        dstream_coresight,  ///< formatter frames with synchronisation packets between them, in blocks or not
        unknown,            ///< a format that the capture calls `format_name`
    };
    std::string name;  ///< unique among buffers
    Format format = Format::coresight;
    std::string format_name{};                   ///< as written
    std::vector<std::filesystem::path> files{};  ///< consecutive parts; usable paths
    std::vector<std::string> sources{};          ///< names of the sources whose trace it contains, in capture order
    std::optional<std::uint64_t> length{};       ///< number of bytes written to it, if the capture states it
    // The missing part of the run, if the capture states it. With several buffers, the first has the beginning and the
    // last the end.
    bool wrapped{};               ///< later trace replaced older trace
    std::uint64_t overwritten{};  ///< the number of bytes replaced; 0: not known, or not `wrapped`
    std::string begins{},
        ends{};  ///< place in the run, `after 1000 instructions (--limit)`; empty: begin and end of the program
    bool other_sources = false;  ///< undescribed sources may also have bytes in it
    /// A buffer may consist of parts of one file, `container`, instead of whole files. The capture then does not tell
    /// which of the buffer's sources have bytes in it; a source without bytes does not belong to the buffer.
    std::vector<BufferPart> parts{};
    std::shared_ptr<const ByteFile> container{};
    friend bool operator==(const Buffer&, const Buffer&) = default;
};

/// The name of a format in snapshots; empty for `unknown`.
[[nodiscard]] std::string_view name(Buffer::Format format);
/// The format with that name, in any case; otherwise `unknown`.
[[nodiscard]] Buffer::Format buffer_format(std::string_view name);

/// The bytes of a buffer: of its consecutive files, or of its parts. Errors: the errors of `concatenate`.
[[nodiscard]] Result<std::unique_ptr<ByteStream>> open_buffer(const Buffer& buffer);
/// The bytes of one part. `container` is borrowed.
[[nodiscard]] std::unique_ptr<ByteStream> open_part(const ByteFile& container, const BufferPart& part);

/// A file with memory contents from the view of a core.
struct MemoryDump {
    std::string core{};          ///< empty: all cores see it
    std::filesystem::path file;  ///< a usable path
    Address address{};           ///< address of the first byte
    std::uint64_t offset{};      ///< offset of the first byte in the file
    std::optional<std::uint64_t>
        length{};         ///< absent: the rest of the file. May extend beyond the file: see `problems`
    std::string space{};  ///< as written in the capture, docs/spec/pft.md, 7.2; empty: any
    friend bool operator==(const MemoryDump&, const MemoryDump&) = default;
};

struct Cluster {
    std::string name;
    std::vector<std::string> cores;
    friend bool operator==(const Cluster&, const Cluster&) = default;
};

/// An error in a capture that did not prevent reading it.
struct Problem {
    enum class Kind : std::uint8_t {
        description,  ///< in the description of the capture: the decoded flow may be wrong
        names,        ///< code has no names; the trace itself is unaffected
        part,         ///< the capture contains only a part of the run
        unused,       ///< a given file, `file`, does not belong to any code that ran
        damage,       ///< the file is truncated, or its structure damaged, so a part could not be read
        not_traced,   ///< the units were programmed to trace only a part of the run
    };
    std::filesystem::path file;     ///< the file with the error; empty: none, such as for something not given
    unsigned line{};                ///< counted from 1; 0: the whole file
    std::string message;            ///< sentences: what was found, what was expected, what to do
    std::filesystem::path lacks{};  ///< the missing or truncated file of the capture, if that is the error
    Kind kind{};
    /// Whether the capture lacks a part of the run.
    [[nodiscard]] bool is_loss() const {
        return kind == Kind::part || kind == Kind::damage || kind == Kind::not_traced;
    }
    friend bool operator==(const Problem&, const Problem&) = default;
};

/// `file:line: message`, without absent parts.
[[nodiscard]] std::string to_string(const Problem& problem);

/// A property of a capture's container that often misleads readers, whether it is an error or not. All members except
/// `kind` are parts of sentences without a full stop.
struct Peculiarity {
    enum class Weight : std::uint8_t {
        normal,     ///< other programs read it wrongly, Waymark does not
        ambiguous,  ///< it leaves a part of the request undetermined
        fatal,      ///< there is nothing to decode
    };
    std::string kind;    ///< a fixed word for the property: `shared-sink`
    std::string found;   ///< `3 of 8 AUX ranges are empty`
    std::string usual;   ///< what a reader expects instead
    std::string means;   ///< the consequences
    std::string advice;  ///< what to do
    Weight weight{};
    friend bool operator==(const Peculiarity&, const Peculiarity&) = default;
};

/// `found: means. Advice.`
[[nodiscard]] std::string to_string(const Peculiarity& peculiarity);

/// A sentence for each end at which a buffer lacks a part of the run; empty if the buffer has the whole run, or the
/// capture does not tell.
[[nodiscard]] std::vector<std::string> missing_parts(const Buffer& buffer);

struct Capture {
    std::filesystem::path path;  ///< the file that describes the capture: `…/snapshot.ini`
    std::string description{};
    std::vector<Core> cores{};  ///< in capture order, like all members below
    std::vector<Source> sources{};
    std::vector<Buffer> buffers{};
    std::vector<MemoryDump> dumps{};
    std::vector<Cluster> clusters{};
    std::optional<std::uint64_t> timestamp_frequency_hz{};
    bool strobed{};  ///< the units were programmed to trace stretches of the run; `problems` states the share
    /// Branch stacks (docs/branch-stacks.md): stretches of the run that were sampled.
    bool sampled{};
    std::string recorder{};  ///< name of the recording process, if there was one
    bool x86_64{};           ///< the cores are x86-64, which is possible only for branch stacks
    ModuleMap modules{};     ///< mappings of files; empty: not known
    /// If several processes ran: the memory of each. `modules` then contains the place of each file among all
    /// (AddressSpaces). Null: all sources see one memory.
    std::shared_ptr<const AddressSpaces> spaces{};
    std::vector<Problem> problems{};
    std::vector<Peculiarity> peculiarities{};

    /// By name; null if there is none. Valid as long as the vector is not changed.
    [[nodiscard]] const Core* find_core(std::string_view core_name) const;
    [[nodiscard]] const Source* find_source(std::string_view source_name) const;
    [[nodiscard]] const Buffer* find_buffer(std::string_view buffer_name) const;
    friend bool operator==(const Capture&, const Capture&) = default;
};

/// The description that a bare trace file lacks.
struct RawOptions {
    Buffer::Format format = Buffer::Format::source_data;
    std::string source_name = "source0";
    std::string source_type{};  ///< such as `PTM1.1`; the type selects the decoder
    std::vector<Register> registers{};
    std::string core_name = "core0";
    std::string core_type{};
    std::vector<MemoryDump> dumps{};                  ///< raw memory; their `core` is kept
    std::vector<std::filesystem::path> more_files{};  ///< further parts of the same stream, after the first
};

/// Describes a bare trace file (`-`: standard input) as a capture of one buffer, one source and one core. Accesses no
/// file. For several sources in one buffer, add to `sources` and to the buffer's list.
[[nodiscard]] Capture raw_capture(const std::filesystem::path& file, RawOptions options);

}  // namespace waymark::capture
