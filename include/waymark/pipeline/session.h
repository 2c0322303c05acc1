/// A capture made ready to be decoded: which sources there are, how each was programmed, and what memory its core saw.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/core/result.h"
#include "waymark/coresight/trace_id.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/program_file.h"
#include "waymark/image/symbols.h"
#include "waymark/pft/config.h"

namespace waymark::pipeline {

/// Which decoder reads a source.
enum class Protocol : std::uint8_t {
    pft,          ///< Program Flow Trace: PTM1.0, PTM1.1, PFT1.0, PFT1.1
    unsupported,  ///< recognised as something else, or not at all
};

/// The protocol a source type (`PTM1.1`) names: what stands before the first dot, in any case.
[[nodiscard]] Protocol protocol_of(std::string_view source_type);

/// Names for the addresses of sources: of the files that were mapped while they traced, and those of the options.
struct Names {
    image::Symbols symbols;
    std::vector<image::LoadedFile> files;
};

struct Source {
    std::string name, type, core, core_type;
    std::optional<coresight::TraceId> trace_id;
    Protocol protocol = Protocol::unsupported;
    std::vector<capture::Register> registers;
    pft::Config config;                              ///< pft only
    std::shared_ptr<const image::MemoryMap> memory;  ///< what its core saw; never null, may be empty
    /// Never null. Sources share it but where an address belonged to different files, or to different generated code,
    /// at different times.
    std::shared_ptr<const Names> names;
    /// The source whose thread this one goes on with (capture::ModuleMap::before), all of whose buffers come before
    /// those of this one; empty: none.
    std::string continues{};

    /// `0x13 PTM_0`: how reports call it.
    [[nodiscard]] std::string label() const;
    /// The trace ID as reports print it, or the name where there is none.
    [[nodiscard]] std::string id_text() const;
};

struct SessionOptions {
    std::vector<std::string>
        images;  ///< `FILE[@ADDRESS]`, added after the capture's own memory: the last one added wins
    std::vector<std::string> symbols;  ///< further ELF files, for names only
    /// Names of code that was generated, besides those of the capture.
    std::vector<std::string> perf_maps{}, jitdumps{};
    /// Where to look for the files that were mapped. A file of `images` or `symbols` that was mapped is placed there.
    image::FileSearch files{};
};

struct Session {
    capture::Capture capture;
    std::vector<Source> sources;             ///< in the order of the capture
    std::vector<capture::Problem> problems;  ///< the capture's own, and what was found while making it ready

    /// Sources by ID (`0x13`, `19`) or name; all when `selectors` is empty. `usage`: one names no source; the message
    /// lists those there are.
    [[nodiscard]] Result<std::vector<const Source*>> select(const std::vector<std::string>& selectors) const;
};

/// Makes a capture ready. What is wrong with one source is a problem and does not hide the others. Errors: an image of
/// the options that cannot be read (image::add_image); `unsupported`: that or a file of names is for another machine.
[[nodiscard]] Result<Session> make_session(capture::Capture capture, const SessionOptions& options);

}  // namespace waymark::pipeline
