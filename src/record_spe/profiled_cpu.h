/// A CPU of a profile: its unit, the memory that the unit writes to, and its ring in the file.
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "waymark/capture/perf_writer.h"
#include "waymark/record_spe/profile.h"
#include "waymark/spe/model.h"

namespace waymark::record {

/// All memory of a system, whose program may put the buffer anywhere: keeps what the unit writes, in order.
class WrittenBytes final : public spe::ProfilingMemory {
public:
    std::uint64_t writable(Address, std::uint64_t bytes, spe::WriteFault&) override { return bytes; }
    void write(Address, Bytes bytes) override { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
    [[nodiscard]] std::vector<std::uint8_t> take() { return std::exchange(bytes_, {}); }

private:
    std::vector<std::uint8_t> bytes_;
};

class ProfiledCpu {
public:
    /// The unit is programmed as the options say, and profiling is on.
    ProfiledCpu(std::uint32_t number, const ProfilerOptions& options, CounterRatio counter);

    ProfiledCpu(const ProfiledCpu&) = delete;
    ProfiledCpu& operator=(const ProfiledCpu&) = delete;

    [[nodiscard]] std::uint32_t number() const { return number_; }
    [[nodiscard]] spe::Model& model() { return model_; }
    [[nodiscard]] const spe::Model& model() const { return model_; }

    /// A system: the program's buffer begins there.
    void restarts_at(Address pointer) { start_ = pointer; }

    /// Before registers change: operations that were chosen belong to the present programming.
    void notice_programming();
    /// Chosen operations by programming, after notice_programming().
    [[nodiscard]] const std::map<ProgrammedEvent, std::uint64_t>& programmed() const { return programmed_; }

    /// Writes the contents of the unit's buffer to the file, like the driver at an interrupt. Profiling continues,
    /// unless this is the `last` call. `at`: the running thread, and the time. Returns the number of bytes of trace.
    std::uint64_t write_out(capture::perf::PerfWriter& writer, const capture::perf::PerfWriter::At& at,
                            std::uint64_t cycle, bool last);

private:
    std::uint32_t number_;
    spe::ProfilingBuffer buffer_;
    WrittenBytes written_;
    Address start_;  ///< where PMBPTR_EL1 points when the buffer is empty
    bool system_;
    spe::Model model_;
    std::uint64_t ring_ = 0;    ///< position in the AUX ring
    std::uint64_t chosen_ = 0;  ///< operations that are in `programmed_`
    std::map<ProgrammedEvent, std::uint64_t> programmed_;
};

}  // namespace waymark::record
