/// The truth beside a recorded DPU capture (truth.txt): counted from the log of the program, not from the unit's
/// output, to check the decoded trace.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/record_dpu/dpu.h"

namespace waymark::record {

/// The name of its file in the capture's folder.
inline constexpr const char* dpu_truth_file = "truth.txt";

struct DpuTruth {
    struct Context {
        bool supervisor{};
        std::uint8_t id{};
        auto operator<=>(const Context&) const = default;
    };
    struct Counted {
        std::uint64_t times{};
        Happened happened{};
        bool operator==(const Counted&) const = default;
    };
    struct Change {
        std::uint64_t times{}, destinations{};  ///< the sum of the destinations' addresses
        bool operator==(const Change&) const = default;
    };
    /// The beginning of an interval: the target of a call, return, interrupt or return from an interrupt.
    using Start = std::pair<Context, std::uint32_t>;

    bool complete = false;  ///< the program came to its own end
    std::string ended{};    ///< else the reason why the recording ended
    bool traced = false;    ///< from the first instruction to the last
    bool counted = true;    ///< the capture's first and last values of the counters cover the whole run
    /// The event of each counter from the first instruction to the last: an index in `truth_wires`.
    std::array<std::optional<std::size_t>, dpu::counter_count> counters{};
    Happened total{};
    std::map<Context, Counted> contexts{};  ///< times: stays
    std::optional<Start> first{};
    std::map<Start, Counted> intervals{};
    /// Keyed by kind (`call`, `short-loop`, …) and source. Only changes that the EOnCE was programmed to trace.
    std::map<std::pair<std::string, std::uint32_t>, Change> changes{};
    std::vector<std::pair<std::uint8_t, std::uint32_t>> user_data{};  ///< ID and datum, in order
};

/// Errors: `not_found`: the folder has none, because the recorder did not finish or hardware made the capture;
/// `bad_format`: a line is impossible in the truth of a DPU; the message names it.
[[nodiscard]] Result<DpuTruth> read_dpu_truth(const std::filesystem::path& folder);
/// The same from text; `name` is for messages.
[[nodiscard]] Result<DpuTruth> dpu_truth_from_text(const std::string& text, const std::string& name);

}  // namespace waymark::record
