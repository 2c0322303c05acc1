/// What a capture consists of, whatever it came in: which cores and trace sources there were, how they were programmed,
/// which files hold the trace and which hold memory. Readers of containers (capture/snapshot.h) fill it in; everything
/// above it knows only this.
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
    std::string type;  ///< as written: `Cortex-A15`, `ARMv7-A`; empty where unknown
    std::vector<Register> registers{};
    std::string location{};  ///< as written: `address:0x8001c000`; empty where unknown
    std::string file{};      ///< name of the file that described it, relative to the capture; may be empty
    friend bool operator==(const Core&, const Core&) = default;
};

/// A unit that generates trace: a macrocell, ITM, STM.
struct Source {
    std::string name;         ///< unique among cores and sources
    std::string type;         ///< protocol and version as written: `PTM1.1`, `PFT1.0`, `ETM4.0`, `ITM`
    std::string core{};       ///< name of the core it traces; empty: none, or not given
    std::string core_type{};  ///< type of that core; empty where unknown
    std::vector<Register> registers{};
    std::optional<std::uint32_t> stream{};  ///< stream number inside its buffers, where the capture gives one
    std::string location{};
    std::string file{};

    [[nodiscard]] const Register* find_register(std::string_view register_name) const {
        return capture::find_register(registers, register_name);
    }
    friend bool operator==(const Source&, const Source&) = default;
};

/// A stretch of a buffer in a file that holds other things too.
struct BufferPart {
    std::uint64_t offset{};  ///< of the first byte in the file
    std::uint64_t bytes{};
    /// It goes on where the part before it ended. Otherwise the units were stopped between the two: decoders begin
    /// anew, and frames begin with it.
    bool follows{};
    /// The file has `packed` bytes at `offset`, compressed with zstd. The part is `bytes` of the unpacked bytes, from
    /// `skip` on.
    std::uint64_t packed{}, skip{};
    // When it was traced, by the clock of Capture::spaces, and which thread ran, where the trace does not say so.
    std::uint64_t from{}, to{};
    std::optional<std::uint32_t> thread{};
    bool lost{};  ///< trace is missing between the part before and this one; where that follows directly, none is
    friend bool operator==(const BufferPart&, const BufferPart&) = default;
};

/// How many bytes they have in all.
[[nodiscard]] std::uint64_t bytes_in(const std::vector<BufferPart>& parts);

/// One captured stream of bytes.
struct Buffer {
    /// docs/spec/pft.md, 6.5.
    enum class Format : std::uint8_t {
        coresight,          ///< 16-byte formatter frames, aligned, without synchronisation packets
        source_data,        ///< the bytes of exactly one source
        dstream_coresight,  ///< formatter frames with synchronisation packets between them, in blocks or not
        unknown,            ///< `format_name` says what the capture calls it
    };
    std::string name;  ///< unique among buffers
    Format format = Format::coresight;
    std::string format_name{};                   ///< as written
    std::vector<std::filesystem::path> files{};  ///< parts to be read one after another; usable as they stand
    std::vector<std::string> sources{};          ///< names of the sources whose trace is in it, in capture order
    std::optional<std::uint64_t> length{};       ///< bytes that were written to it, where the capture says so
    // What of the run is not in it, where the capture says so. Of several buffers, the first begins and the last ends.
    std::uint64_t overwritten{};   ///< bytes of older trace that later trace replaced
    std::string begins{}, ends{};  ///< where in the run, `after 1000 instructions (--limit)`; empty: with the program
    bool other_sources = false;    ///< sources that are not described may have bytes in it too
    /// A buffer that consists of parts of one file, `container`, instead of whole files. The capture does not say which
    /// of the buffer's sources have bytes in it; a source without a byte is none of the buffer's.
    std::vector<BufferPart> parts{};
    std::shared_ptr<const ByteFile> container{};
    friend bool operator==(const Buffer&, const Buffer&) = default;
};

/// The name a snapshot uses for a format; empty for `unknown`.
[[nodiscard]] std::string_view name(Buffer::Format format);
/// The format of that name, in any case; `unknown` for every other.
[[nodiscard]] Buffer::Format buffer_format(std::string_view name);

/// The bytes of a buffer: of its files one after another, or of its parts. Errors: the errors of `concatenate`.
[[nodiscard]] Result<std::unique_ptr<ByteStream>> open_buffer(const Buffer& buffer);
/// The bytes of one part. `container` is borrowed.
[[nodiscard]] std::unique_ptr<ByteStream> open_part(const ByteFile& container, const BufferPart& part);

/// A file with memory contents as a core saw them.
struct MemoryDump {
    std::string core{};                     ///< empty: as every core sees it
    std::filesystem::path file;             ///< usable as it is
    Address address{};                      ///< of the first byte
    std::uint64_t offset{};                 ///< of the first byte in the file
    std::optional<std::uint64_t> length{};  ///< absent: the rest of the file. May exceed the file: see `problems`
    std::string space{};                    ///< as written, docs/spec/pft.md, 7.2; empty: any
    friend bool operator==(const MemoryDump&, const MemoryDump&) = default;
};

struct Cluster {
    std::string name;
    std::vector<std::string> cores;
    friend bool operator==(const Cluster&, const Cluster&) = default;
};

/// Something wrong with a capture that did not keep it from being read.
struct Problem {
    enum class Kind : std::uint8_t {
        description,  ///< of the capture: what is decoded may be wrong
        names,        ///< code has no names; the trace is as good as with them
        part,         ///< the capture holds a part of the run
        unused,       ///< a file that was given, `file`, is of nothing that ran
        damage,       ///< the file is cut, or its structure damaged, so a part could not be read
        not_traced,   ///< the units were programmed to trace a part of the run alone
    };
    std::filesystem::path file;     ///< in which it was found; empty: in none, such as something not given
    unsigned line{};                ///< counted from 1; 0: the file as a whole
    std::string message;            ///< sentences: what was found, what was expected, what to do
    std::filesystem::path lacks{};  ///< the file of the capture that is missing or too short, if that is the problem
    Kind kind{};
    /// The capture does not have all of the run.
    [[nodiscard]] bool is_loss() const {
        return kind == Kind::part || kind == Kind::damage || kind == Kind::not_traced;
    }
    friend bool operator==(const Problem&, const Problem&) = default;
};

/// `file:line: message`, without what there is none of.
[[nodiscard]] std::string to_string(const Problem& problem);

/// A property of a capture's container that readers stumble over, whether or not something is wrong with it. All but
/// `kind` are parts of sentences without a full stop.
struct Peculiarity {
    enum class Weight : std::uint8_t {
        normal,     ///< other programs read it wrongly, Waymark does not
        ambiguous,  ///< it does not determine a part of the request
        fatal,      ///< there is nothing to decode
    };
    std::string kind;    ///< the same word for the same property: `shared-sink`
    std::string found;   ///< `3 of 8 AUX ranges are empty`
    std::string usual;   ///< what a reader expects instead
    std::string means;   ///< what follows from it
    std::string advice;  ///< what to do
    Weight weight{};
    friend bool operator==(const Peculiarity&, const Peculiarity&) = default;
};

/// `found: means. Advice.`
[[nodiscard]] std::string to_string(const Peculiarity& peculiarity);

/// A sentence for each end at which a buffer lacks a part of the run; none: the buffer has the whole run, or the
/// capture does not say.
[[nodiscard]] std::vector<std::string> missing_parts(const Buffer& buffer);

struct Capture {
    std::filesystem::path path;  ///< the file the capture was described by: `…/snapshot.ini`
    std::string description{};
    std::vector<Core> cores{};  ///< in capture order, like everything below
    std::vector<Source> sources{};
    std::vector<Buffer> buffers{};
    std::vector<MemoryDump> dumps{};
    std::vector<Cluster> clusters{};
    std::optional<std::uint64_t> timestamp_frequency_hz{};
    bool strobed{};  ///< the units were programmed to trace stretches of the run; `problems` has the share
    /// Branch stacks (docs/branch-stacks.md): stretches of the run at moments when it was sampled.
    bool sampled{};
    std::string recorder{};  ///< name of the process that recorded, where there was one
    bool x86_64{};           ///< the cores are x86-64, which only branch stacks are of
    ModuleMap modules{};     ///< which files were mapped where; empty: not known
    /// Where several processes ran: which memory each had. `modules` then says where each file has its place among all
    /// (AddressSpaces). Null: all sources see one memory.
    std::shared_ptr<const AddressSpaces> spaces{};
    std::vector<Problem> problems{};
    std::vector<Peculiarity> peculiarities{};

    /// By name; null when there is none. Valid as long as the vector is not changed.
    [[nodiscard]] const Core* find_core(std::string_view core_name) const;
    [[nodiscard]] const Source* find_source(std::string_view source_name) const;
    [[nodiscard]] const Buffer* find_buffer(std::string_view buffer_name) const;
    friend bool operator==(const Capture&, const Capture&) = default;
};

/// What a bare trace file does not say about itself.
struct RawOptions {
    Buffer::Format format = Buffer::Format::source_data;
    std::string source_name = "source0";
    std::string source_type{};  ///< `PTM1.1`; the type decides which decoder reads it
    std::vector<Register> registers{};
    std::string core_name = "core0";
    std::string core_type{};
    std::vector<MemoryDump> dumps{};                  ///< raw memory; their `core` is left as given
    std::vector<std::filesystem::path> more_files{};  ///< further parts of the same stream, after the first
};

/// Describes a bare trace file (`-`: standard input) as a capture of one buffer, one source and one core. Touches no
/// file. For several sources in one buffer add to `sources` and to the buffer's list.
[[nodiscard]] Capture raw_capture(const std::filesystem::path& file, RawOptions options);

}  // namespace waymark::capture
