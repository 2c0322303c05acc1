/// The AUX rings of a perf.data file with CoreSight trace during recording: ranges of trace that units sent and that
/// are not in the file yet, and the bytes that the rings lose.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "waymark/capture/perf_writer.h"

namespace waymark::record {

struct PerfRecorderOptions;

class AuxRings {
public:
    /// `options` is borrowed: the sink, the losses, the size of a ring, and whether each ring belongs to a thread.
    explicit AuxRings(const PerfRecorderOptions& options) : options_(options) {}

    struct Closed {
        std::uint64_t bytes{};  ///< in the ring
        std::uint64_t lost{};   ///< bytes lost of this range and older ones
    };
    /// A range of trace of the ring of a CPU or a thread. `at`: the time of its end.
    Closed close_range(std::uint32_t key, std::vector<std::uint8_t> trace, const capture::perf::PerfWriter::At& at);

    /// Whether so much is waiting that writing it is worthwhile.
    [[nodiscard]] bool is_due() const;
    /// Writes the contents of the rings to the file.
    void drain(capture::perf::PerfWriter& writer);

private:
    struct Ring {
        std::uint64_t position{};             ///< position of the next byte that the units write
        std::vector<std::uint8_t> pending{};  ///< not in the file yet
        std::vector<std::pair<capture::perf::AuxRange, capture::perf::PerfWriter::At>> ranges{};  ///< nor these
    };
    /// The part of a range that a sink of `aux_bytes` keeps. Returns the flags for the loss; `lost` counts the lost
    /// bytes.
    [[nodiscard]] std::uint64_t lose(std::vector<std::uint8_t>& trace, std::uint64_t& lost) const;

    const PerfRecorderOptions& options_;
    std::map<std::uint32_t, Ring> rings_;
    std::uint64_t pending_bytes_ = 0;
};

}  // namespace waymark::record
