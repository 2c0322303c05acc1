/// Places in the streams of a capture at which decoding can begin, with all that is known there: so that any part of a
/// long trace is decoded without what comes before it. Made in one pass, kept in a file, used while it grows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/analysis/flow_timeline.h"
#include "waymark/analysis/flow_window.h"
#include "waymark/analysis/kept_calls.h"
#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/follow/cutting.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::serve {

/// A place of one source's stream.
struct Point {
    std::uint64_t from{};        ///< in the stream: from here on the cut is looked for
    std::uint32_t length{};      ///< of the bytes from there to behind the cut
    std::uint64_t read_from{};   ///< in the buffer: where reading begins
    std::uint32_t skip{};        ///< bytes of the source between the two, at most 15
    bool amid_source{};          ///< framed only: what is read first is the source's own byte
    follow::CutMemory memory{};  ///< of the decoder
    std::uint64_t ran{};         ///< instructions of ranges before the cut
    analysis::FlowTimeline::Before timeline{};
    analysis::KeptCalls calls{};
    /// Instructions and cycles before the cut, with instructions that no range has.
    [[nodiscard]] const analysis::Work& now() const { return calls.stacks.now; }
    friend bool operator==(const Point&, const Point&) = default;
};

/// The places of one source in one buffer.
struct StreamPoints {
    std::string buffer, source;
    std::vector<std::shared_ptr<const Point>> points{};
    std::uint64_t instructions{};  ///< of the stream so far
    std::uint64_t bytes{};         ///< of the stream so far
};

struct IndexOptions {
    /// Bytes of a stream between two places, at least: a place takes a few hundred bytes, so the index stays below 1 %
    /// of the trace.
    std::uint64_t spacing = std::uint64_t{1} << 17;
    /// The places take at most that part of the bytes that were read.
    std::uint64_t one_part_of = 100;
};

/// Safe for several threads: one adds, others ask.
class Index {
public:
    explicit Index(std::vector<StreamPoints> streams) : streams_(std::move(streams)) {}

    /// The last place of a stream that lies before the instruction; null: none, it has to be decoded from its
    /// beginning.
    [[nodiscard]] std::shared_ptr<const Point> before(std::string_view buffer, std::string_view source,
                                                      std::uint64_t instruction) const;
    /// How many instructions of each stream are known: of the stream that has most. A window that ends before can be
    /// decoded.
    [[nodiscard]] std::uint64_t instructions() const;
    [[nodiscard]] bool complete() const;
    /// Instructions that hold [begin, end) of an axis of the timeline in this unit: `instructions`, `cycles`, or
    /// `ticks` of timestamps. Of several sources, the instructions of all. The window is up to one place of the index
    /// longer on each side. Nothing: it is not known yet up to where the window is, since reading goes on.
    [[nodiscard]] std::optional<analysis::FlowWindow> window_of(std::string_view unit, std::uint64_t begin,
                                                                std::uint64_t end) const;
    /// Whether a timestamp came before any of the places.
    [[nodiscard]] bool has_timestamps() const;
    [[nodiscard]] std::vector<StreamPoints> streams() const;
    /// Approximate size of the places in a file.
    [[nodiscard]] std::uint64_t bytes() const;

    // For the pass.
    void add(std::size_t stream, std::shared_ptr<const Point> point);
    void reached(std::size_t stream, std::uint64_t instructions, std::uint64_t bytes);
    void finish();

private:
    mutable std::mutex mutex_;
    std::vector<StreamPoints> streams_;
    std::uint64_t bytes_ = 0;
    bool complete_ = false;
};

/// Why parts of this capture cannot be decoded alone; empty: they can. Then each part takes as long as all before it.
[[nodiscard]] std::string why_not_indexed(const pipeline::Session& session,
                                          const std::vector<const pipeline::Source*>& selected);

/// An index without places, for the pass to fill. Precondition: why_not_indexed() is empty.
[[nodiscard]] std::shared_ptr<Index> new_index(const pipeline::Session& session,
                                               const std::vector<const pipeline::Source*>& selected);
/// The pass. `stop` is asked now and then; true ends it early, and the index is not complete. Errors: a buffer that
/// cannot be read to its end.
[[nodiscard]] Status fill_index(Index& index, const pipeline::Session& session,
                                const std::vector<const pipeline::Source*>& selected, const IndexOptions& options,
                                const std::function<bool()>& stop);

/// What the files of a capture, the programs and the names are, as far as that can be known without reading all of
/// them: sizes, times, and what begins and ends them. Another capture, or the same one decoded otherwise or by another
/// version of Waymark, has another. Errors: a file is not there any more.
[[nodiscard]] Result<std::string> identity_of(const pipeline::Session& session,
                                              const std::vector<const pipeline::Source*>& selected,
                                              std::string_view version, const IndexOptions& options);

/// Reads an index of that identity, or gives why there is none: `not_found`; `bad_format`: damaged, or of another
/// capture or another version.
[[nodiscard]] Result<std::shared_ptr<Index>> read_index(const std::filesystem::path& file, const std::string& identity);
/// Whether an index may be written there: nothing is there, or an empty file, or an index of any version. Errors:
/// `usage`: another file, which is left alone.
[[nodiscard]] Status check_index_file(const std::filesystem::path& file);
/// Writes a complete index, atomically. Errors: as check_index_file() has; `unsupported`: it is too large; the file
/// cannot be written.
[[nodiscard]] Status write_index(const std::filesystem::path& file, const std::string& identity, const Index& index);
/// Where the index of a capture is kept: below XDG_CACHE_HOME, or .cache in HOME. Empty: neither is set.
[[nodiscard]] std::filesystem::path usual_index_file(const std::string& identity);

/// The bytes of a place in a file, and back.
void append(std::vector<std::uint8_t>& to, const Point& point);
[[nodiscard]] std::optional<Point> take_point(Bytes& from);

}  // namespace waymark::serve
