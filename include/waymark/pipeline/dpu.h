/// A DPU capture made ready to be decoded: what its words depend on, where in the buffer they begin, and what was known
/// when tracing was enabled (docs/spec/dpu.md, 5.7 and 7.5).
#pragma once

#include <cstdint>
#include <vector>

#include "waymark/capture/dpu_folder.h"
#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/dpu/decoder.h"
#include "waymark/dpu/registers.h"
#include "waymark/dpu/vtb.h"

namespace waymark::pipeline {

/// From one EN 0→1 to the next.
struct DpuPeriod {
    dpu::TraceFormat format;
    dpu::StartState start;
};

/// IDFLT and what it compares with, from a place in the trace on.
struct DpuFilterChange {
    std::uint64_t offset{};  ///< in bytes, as Offset of elements; 0 too where it is overwritten
    bool idflt = false, shows_did = false;
    dpu::IdCompare compare{};
    std::uint8_t rpid{}, rdid{};
};

struct DpuTrace {
    dpu::ByteOrder order{};
    dpu::VtbState vtb;
    bool ring_known = false;         ///< DP_TSA, DP_TEA and DP_TW are; else the dump is read from its first byte
    bool complete = false;           ///< DP_SR.TWBA = 0: the unit had written all it had
    std::vector<DpuPeriod> periods;  ///< at least one
    std::vector<dpu::PeriodStart> later_starts;  ///< of periods[1] and later ones
    std::vector<DpuFilterChange> filters;        ///< at least one: the first is in force where the trace begins
    std::vector<std::uint64_t> overruns;         ///< a readout lacks trace before these offsets, ascending
    /// The trace is what the Nexus interface sent, for nothing went to the buffer: NXMODE 11, or there is no buffer.
    bool nexus = false;
};

/// What a capture's registers and header say. `unsupported`: its words have another layout than Waymark knows.
[[nodiscard]] Result<DpuTrace> dpu_trace(const capture::DpuCapture& capture);

/// Since when and until when a module of the capture's map was mapped.
struct DpuModuleTime {
    std::uint64_t from{};               ///< the first element of that time has this offset, or a later one
    std::optional<std::uint64_t> to{};  ///< none: to the end
};
/// Of each module, in the order of the map. None where the map counts something else than bytes of trace, or the bytes
/// of the trace cannot be counted from its beginning. `trace_bytes`: the size of `trace_file`.
[[nodiscard]] std::optional<std::vector<DpuModuleTime>> module_times(const capture::DpuCapture& capture,
                                                                     const DpuTrace& trace, std::uint64_t trace_bytes);

/// The file that holds the trace: the buffer's, or that of the Nexus messages.
[[nodiscard]] const std::filesystem::path& trace_file(const capture::DpuCapture& capture, const DpuTrace& trace);

/// What decoding a buffer began with.
struct DpuDecoded {
    dpu::Totals totals;
    bool overwritten = false;          ///< older trace is gone: nothing is known of what came before the first element
    bool cut = false;                  ///< trace is missing from the dump
    std::uint64_t unplaced_periods{};  ///< later ones that began nobody knows where in the trace: read as the first
    std::uint64_t unwritten_bytes{};   ///< zero lines at the end of a dump without registers
};

/// The bytes of `trace_file` → elements; `out` is borrowed for the call. Offsets of elements count from the oldest
/// trace there was in the whole buffer, but for what is missing from a dump that is cut. `bad_format`: registers that
/// cannot be (dpu/vtb.h).
[[nodiscard]] Result<DpuDecoded> decode_dpu(const DpuTrace& trace, Bytes dump, dpu::ElementSink& out);

}  // namespace waymark::pipeline
