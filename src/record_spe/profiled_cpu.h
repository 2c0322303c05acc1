/// A CPU of a profile: its unit, the memory that the unit writes to, and its ring in the file.
#pragma once

#include <cstdint>

#include "waymark/capture/perf_writer.h"
#include "waymark/record_spe/profile.h"
#include "waymark/spe/model.h"

namespace waymark::record {

class ProfiledCpu {
public:
    /// The unit is programmed as the options say, and profiling is on.
    ProfiledCpu(std::uint32_t number, const ProfilerOptions& options, CounterRatio counter);

    ProfiledCpu(const ProfiledCpu&) = delete;
    ProfiledCpu& operator=(const ProfiledCpu&) = delete;

    [[nodiscard]] std::uint32_t number() const { return number_; }
    [[nodiscard]] spe::Model& model() { return model_; }
    [[nodiscard]] const spe::Model& model() const { return model_; }

    /// Writes the contents of the unit's buffer to the file, like the driver at an interrupt. Profiling continues,
    /// unless this is the `last` call. `at`: the running thread, and the time. Returns the number of bytes of trace.
    std::uint64_t write_out(capture::perf::PerfWriter& writer, const capture::perf::PerfWriter::At& at,
                            std::uint64_t cycle, bool last);

private:
    std::uint32_t number_;
    spe::ProfilingBuffer buffer_;
    spe::Model model_;
    std::uint64_t ring_ = 0;  ///< position in the AUX ring
};

}  // namespace waymark::record
