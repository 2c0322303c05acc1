/// The AUX rings of a perf.data file with CoreSight trace, while it is recorded: ranges of trace that units sent, until
/// they go to the file, and what is lost of them.
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
    /// Of the options, which are borrowed: the sink, what is lost, the size of a ring, and whether each is a thread's.
    explicit AuxRings(const PerfRecorderOptions& options) : options_(options) {}

    struct Closed {
        std::uint64_t bytes{};  ///< in the ring
        std::uint64_t lost{};   ///< of the range, and of older ones
    };
    /// A range of trace, which ends `at` a time, of the ring of a CPU or a thread.
    Closed close_range(std::uint32_t key, std::vector<std::uint8_t> trace, const capture::perf::PerfWriter::At& at);

    /// So much waits that it should be written.
    [[nodiscard]] bool is_due() const;
    /// What the rings hold goes to the file.
    void drain(capture::perf::PerfWriter& writer);

private:
    struct Ring {
        std::uint64_t position{};             ///< of the next byte that the units write
        std::vector<std::uint8_t> pending{};  ///< not in the file yet
        std::vector<std::pair<capture::perf::AuxRange, capture::perf::PerfWriter::At>> ranges{};  ///< nor these
    };
    /// What a sink of `aux_bytes` keeps of a range. Returns the flags that say so; `lost` counts the bytes.
    [[nodiscard]] std::uint64_t lose(std::vector<std::uint8_t>& trace, std::uint64_t& lost) const;

    const PerfRecorderOptions& options_;
    std::map<std::uint32_t, Ring> rings_;
    std::uint64_t pending_bytes_ = 0;
};

}  // namespace waymark::record
