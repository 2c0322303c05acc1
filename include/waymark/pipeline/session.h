/// A capture prepared for decoding: its sources, the programming of each, and the memory that its core saw.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/core/result.h"
#include "waymark/coresight/trace_id.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/program_file.h"
#include "waymark/image/symbols.h"
#include "waymark/pipeline/flow_filter.h"
#include "waymark/pipeline/process_code.h"
#include "waymark/pipeline/protocols.h"

namespace waymark::pipeline {

/// Names for the addresses of sources: from the files that were mapped while they traced, and from the options.
struct Names {
    image::Symbols symbols;
    std::vector<image::LoadedFile> files;
};

struct Source {
    std::string name, type, core, core_type;
    std::optional<coresight::TraceId> trace_id;
    const Protocol* protocol = nullptr;  ///< null: recognised as something else, or not at all
    std::vector<capture::Register> registers;
    /// The programming of its unit; null if and only if `protocol` is null.
    std::shared_ptr<const protocol::Configuration> configuration;
    /// The memory that its core saw; never null, may be empty. If `code` is set: files at their places.
    std::shared_ptr<const image::MemoryMap> memory;
    /// Never null. Sources share one object, unless an address belonged to different files, or to different generated
    /// code, at different times.
    std::shared_ptr<const Names> names;
    /// The source whose thread this one continues (capture::ModuleMap::before); all its buffers come before this
    /// source's buffers. Empty if there is none.
    std::string continues{};
    /// If several processes ran: the code of each. Null: all see `memory`.
    std::shared_ptr<const ProcessCode> code{};
    /// The selected part of its flow (select_flow). Null: all.
    std::shared_ptr<const FlowFilter> filter{};
    bool left_out = false;  ///< Session::select passes over it

    /// Whether its packets can be listed.
    [[nodiscard]] bool has_packets() const { return protocol != nullptr; }
    /// Whether its program flow can be decoded.
    [[nodiscard]] bool has_flow() const { return protocol != nullptr && protocol->decodes_flow(); }
    /// The name in reports: `0x13 source_13`.
    [[nodiscard]] std::string label() const;
    /// The trace ID as in reports, or the name if there is none.
    [[nodiscard]] std::string id_text() const;
};

struct SessionOptions {
    std::vector<std::string>
        images;  ///< `FILE[@ADDRESS]`, added after the capture's own memory: the last one added wins
    std::vector<std::string> symbols;  ///< further ELF files, for names only
    /// Names of generated code, in addition to the capture's own.
    std::vector<std::string> perf_maps{}, jitdumps{};
    /// Names of the kernel, if no vmlinux has them (analysis/kallsyms.h); empty: the names that perf copied, if it did.
    std::filesystem::path kallsyms{};
    /// Where to search for the files that were mapped. A file of `images` or `symbols` that was mapped is placed at its
    /// mapping.
    image::FileSearch files{};
    /// Whether the memory has all code of mapped files that are found with the right build ID, and lists it. It lies
    /// below the capture's memory, which may contain only the pages that ran. Otherwise it has what execution needs.
    bool code_of_files = false;
    /// Code in memory, at its addresses; added after the images.
    std::vector<std::pair<Address, std::vector<std::uint8_t>>> code{};
    /// Called for memory that is in neither the capture nor an image (image::MemoryMap::ask_beyond).
    image::MemoryMap::Ask ask{};
};

struct Session {
    capture::Capture capture;
    std::vector<Source> sources;             ///< in the order of the capture
    std::vector<capture::Problem> problems;  ///< the capture's own problems, and problems of preparing it

    /// Sources by ID (`0x13`, `19`) or name; all if `selectors` is empty. `usage`: a selector matches no source; the
    /// message lists the sources.
    [[nodiscard]] Result<std::vector<const Source*>> select(const std::vector<std::string>& selectors) const;
};

/// Prepares a capture. A problem of one source does not hide the others. Errors: an image of the options cannot be read
/// (image::add_image); `unsupported`: an image or a file of names is for another machine.
[[nodiscard]] Result<Session> make_session(capture::Capture capture, const SessionOptions& options);

}  // namespace waymark::pipeline
