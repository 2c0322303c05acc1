/// Reads the buffers of a session piece by piece, for callers who decide themselves when to continue: `run` in
/// pipeline/run.h as an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "waymark/pipeline/run.h"

namespace waymark::pipeline {

/// Not for several threads at once. Consumers get the same whatever the size of pieces, except for the order of several
/// sources (see `run`).
class PieceReader {
public:
    static constexpr std::size_t usual_piece_bytes = std::size_t{1} << 22;

    /// `session` and the sources are borrowed. `only`: read only this buffer; else all, one after another. `live`:
    /// bytes come while they are traced, so the last bytes of a buffer of one source are not held back until it is
    /// known whether they are the end mark of a bypassed formatter.
    PieceReader(const Session& session, std::vector<const Source*> selected, MakeConsumer make, OpenBuffer open = {},
                const capture::Buffer* only = nullptr, bool live = false);
    ~PieceReader();
    PieceReader(const PieceReader&) = delete;
    PieceReader& operator=(const PieceReader&) = delete;

    /// Reads the next piece, of at most `most_bytes`, and gives it to the consumers. False: nothing was left, and all
    /// consumers are finished. Buffers whose bytes do not come from files (OpenBuffer) end where a read gives nothing.
    bool step(std::size_t most_bytes = usual_piece_bytes);
    /// Bytes read so far, of all buffers together.
    [[nodiscard]] std::uint64_t bytes() const;
    /// The sum of the sizes of all buffers, where they are known.
    [[nodiscard]] std::optional<std::uint64_t> size() const;
    /// Once, after `step` returned false.
    [[nodiscard]] Report report();

private:
    class State;
    std::unique_ptr<State> state_;
};

}  // namespace waymark::pipeline
