/// Reading the buffers of a session piece by piece, for those who decide themselves when to go on: `run` in
/// pipeline/run.h as an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "waymark/pipeline/run.h"

namespace waymark::pipeline {

/// Not for several threads at once. What consumers get does not depend on how large pieces are, but for what `run` says
/// of the order of several sources.
class PieceReader {
public:
    static constexpr std::size_t usual_piece_bytes = std::size_t{1} << 22;

    /// `session` and the sources are borrowed. `only`: this one of its buffers; else all, one after another. `live`:
    /// bytes come while they are traced, so the last ones of a buffer of one source are not held back until it is known
    /// whether they are the end mark of a bypassed formatter.
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
