/// Reads the buffers of a session piece by piece, for callers that decide when to continue: an object with the function
/// of `run` in pipeline/run.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "waymark/pipeline/run.h"

namespace waymark::pipeline {

/// Not thread-safe. The size of pieces does not change what consumers receive, except for the order of several sources
/// (see `run`).
class PieceReader {
public:
    static constexpr std::size_t usual_piece_bytes = std::size_t{1} << 22;

    /// `session` and the sources are borrowed. `only`: read only this buffer; otherwise all buffers, one after another.
    /// `live`: bytes arrive while they are traced. Without it, the last bytes of a buffer of one source wait until it
    /// is known whether they are the end mark of a bypassed formatter.
    PieceReader(const Session& session, std::vector<const Source*> selected, MakeConsumer make, OpenBuffer open = {},
                const capture::Buffer* only = nullptr, bool live = false);
    ~PieceReader();
    PieceReader(const PieceReader&) = delete;
    PieceReader& operator=(const PieceReader&) = delete;

    /// Reads the next piece, of at most `most_bytes`, and passes it to the consumers. Returns false if nothing was
    /// left, and all consumers are finished. Buffers whose bytes do not come from files (OpenBuffer) end where a read
    /// returns nothing.
    bool step(std::size_t most_bytes = usual_piece_bytes);
    /// Number of bytes read so far, in all buffers together.
    [[nodiscard]] std::uint64_t bytes() const;
    /// The sum of the sizes of all buffers, if they are known.
    [[nodiscard]] std::optional<std::uint64_t> size() const;
    /// The report. Call it once, after `step` returned false.
    [[nodiscard]] Report report();

private:
    class State;
    std::unique_ptr<State> state_;
};

}  // namespace waymark::pipeline
