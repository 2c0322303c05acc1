/// The recorded part of the execution: the completed part of a block, and the run between two places.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "waymark/record/code.h"
#include "waymark/record/code_place.h"
#include "waymark/record/ring.h"

namespace waymark::record {

/// Instructions [first, end) of a block. `stopped`: the next instruction began and did not complete.
struct CompletedPart {
    std::uint32_t first{}, end{};
    bool stopped{};
};

/// The part of a block that ran after it was entered at its beginning. `end`: the first instruction that did not
/// complete, if known, and whether it began; otherwise `cut`, from the plugin; otherwise the block ran to its end.
[[nodiscard]] CompletedPart completed_part(const Code& code, std::optional<std::uint32_t> end, bool stopped,
                                           std::optional<std::uint32_t> cut);

/// Records from the time when execution first reaches one place until it reaches another; without places, from the
/// beginning and to the end.
class RecordedExtent {
public:
    RecordedExtent(std::optional<CodePlace> start, std::optional<CodePlace> stop)
        : start_(std::move(start)), stop_(std::move(stop)), began_(!start_) {}

    /// A file is mapped, which may hold the places.
    void mapped(const MapPart& part, std::string_view name);

    /// The recorded part of a block.
    struct Piece {
        CompletedPart part;
        bool stops{};     ///< recording ends after it
        bool has_stop{};  ///< the block has the place where it ends, whether execution reached that or not
    };
    /// nullopt: recording has not begun yet. `anyway`: record this thread, but do not begin to record the others.
    [[nodiscard]] std::optional<Piece> piece(const Code& code, CompletedPart part, bool anyway = false);

    [[nodiscard]] bool began() const { return began_; }
    [[nodiscard]] const std::optional<CodePlace>& start() const { return start_; }
    [[nodiscard]] const std::optional<CodePlace>& stop() const { return stop_; }
    /// Whether the address of the place is known.
    [[nodiscard]] bool start_known() const { return start_ && start_->address(); }
    [[nodiscard]] bool stop_known() const { return stop_ && stop_->address(); }

private:
    std::optional<CodePlace> start_, stop_;
    bool began_;
};

}  // namespace waymark::record
