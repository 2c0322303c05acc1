/// Places in the streams of a capture at which decoding can begin, with the whole state there, so that any part of a
/// long trace is decoded without the trace before it. The index is made in one pass, stored in a file, and used while
/// it grows.
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
    std::uint32_t length{};      ///< number of bytes from there to the end of the cut
    std::uint64_t read_from{};   ///< in the buffer: where reading begins
    std::uint32_t skip{};        ///< bytes of the source between the two, at most 15
    bool amid_source{};          ///< only in frames: the first byte read belongs to the source
    follow::CutMemory memory{};  ///< of the decoder
    std::uint64_t ran{};         ///< instructions of ranges before the cut
    analysis::FlowTimeline::Before timeline{};
    analysis::KeptCalls calls{};
    /// Instructions and cycles before the cut, including instructions that are in no range.
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
    /// Minimum number of bytes of a stream between two places: a place takes a few hundred bytes, so the index stays
    /// below 1 % of the trace.
    std::uint64_t spacing = std::uint64_t{1} << 17;
    /// The places take at most this part (1 / n) of the bytes that were read.
    std::uint64_t one_part_of = 100;
};

/// Thread-safe: one thread adds places, others look them up.
class Index {
public:
    explicit Index(std::vector<StreamPoints> streams) : streams_(std::move(streams)) {}

    /// The last place of a stream before the instruction; null if there is none, so that decoding has to begin at the
    /// beginning of the stream.
    [[nodiscard]] std::shared_ptr<const Point> before(std::string_view buffer, std::string_view source,
                                                      std::uint64_t instruction) const;
    /// Number of instructions known so far, in the stream with the most. A window that ends before this number can be
    /// decoded.
    [[nodiscard]] std::uint64_t instructions() const;
    [[nodiscard]] bool complete() const;
    /// Instructions that contain [begin, end) of an axis of the timeline in this unit: `instructions`, `cycles`, or
    /// `ticks` of timestamps. With several sources, the instructions of all. The window is longer by up to one place of
    /// the index on each side. nullopt: the end of the window is not known yet, since reading continues.
    [[nodiscard]] std::optional<analysis::FlowWindow> window_of(std::string_view unit, std::uint64_t begin,
                                                                std::uint64_t end) const;
    /// Whether a timestamp came before any of the places.
    [[nodiscard]] bool has_timestamps() const;
    [[nodiscard]] std::vector<StreamPoints> streams() const;
    /// Approximate size of the places in a file.
    [[nodiscard]] std::uint64_t bytes() const;

    // Used by the pass.
    void add(std::size_t stream, std::shared_ptr<const Point> point);
    void reached(std::size_t stream, std::uint64_t instructions, std::uint64_t bytes);
    void finish();

private:
    mutable std::mutex mutex_;
    std::vector<StreamPoints> streams_;
    std::uint64_t bytes_ = 0;
    bool complete_ = false;
};

/// The reason why parts of this capture cannot be decoded separately; empty: they can. Otherwise each part takes as
/// long as everything before it.
[[nodiscard]] std::string why_not_indexed(const pipeline::Session& session,
                                          const std::vector<const pipeline::Source*>& selected);

/// An index without places, which the pass fills. Precondition: why_not_indexed() is empty.
[[nodiscard]] std::shared_ptr<Index> new_index(const pipeline::Session& session,
                                               const std::vector<const pipeline::Source*>& selected);
/// Performs the pass. `stop` is called regularly; if it returns true, the pass ends early, and the index is not
/// complete. Errors: a buffer cannot be read to its end.
[[nodiscard]] Status fill_index(Index& index, const pipeline::Session& session,
                                const std::vector<const pipeline::Source*>& selected, const IndexOptions& options,
                                const std::function<bool()>& stop);

/// The identity of the files of a capture, of the programs and of the names, as far as it can be determined without
/// reading them completely: sizes, times, and the beginning and end of each file. It differs for another capture, for
/// other options of decoding, and for another version of Waymark. Errors: a file no longer exists.
[[nodiscard]] Result<std::string> identity_of(const pipeline::Session& session,
                                              const std::vector<const pipeline::Source*>& selected,
                                              std::string_view version, const IndexOptions& options);

/// Reads an index with that identity. Errors: `not_found`; `bad_format`: damaged, or an index of another capture or
/// version.
[[nodiscard]] Result<std::shared_ptr<Index>> read_index(const std::filesystem::path& file, const std::string& identity);
/// Whether an index may be written there: there is no file, an empty file, or an index of any version. Errors: `usage`:
/// another file, which stays unchanged.
[[nodiscard]] Status check_index_file(const std::filesystem::path& file);
/// Writes a complete index, atomically. Errors: the errors of check_index_file(); `unsupported`: it is too large; the
/// file cannot be written.
[[nodiscard]] Status write_index(const std::filesystem::path& file, const std::string& identity, const Index& index);
/// The place of a capture's index: below XDG_CACHE_HOME, or .cache in HOME. Empty: neither is set.
[[nodiscard]] std::filesystem::path usual_index_file(const std::string& identity);

/// The bytes of a place in a file, and back.
void append(std::vector<std::uint8_t>& to, const Point& point);
[[nodiscard]] std::optional<Point> take_point(Bytes& from);

}  // namespace waymark::serve
