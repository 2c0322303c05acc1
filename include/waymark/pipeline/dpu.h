/// Prepares a DPU capture for decoding: the settings on which its words depend, where in the buffer they begin, and the
/// state known when tracing was enabled (docs/spec/dpu.md, 5.7 and 7.5).
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

/// A period from one EN 0→1 to the next.
struct DpuPeriod {
    dpu::TraceFormat format;
    dpu::StartState start;
};

/// IDFLT and its comparison value, from a place in the trace on.
struct DpuFilterChange {
    std::uint64_t offset{};  ///< in bytes, as Offset of elements; 0 too where it is overwritten
    bool idflt = false, shows_did = false;
    dpu::IdCompare compare{};
    std::uint8_t rpid{}, rdid{};
};

struct DpuTrace {
    dpu::ByteOrder order{};
    dpu::VtbState vtb;
    bool ring_known = false;         ///< DP_TSA, DP_TEA and DP_TW are known; else the dump is read from its first byte
    bool complete = false;           ///< DP_SR.TWBA = 0: the unit had written all its trace
    std::vector<DpuPeriod> periods;  ///< at least one
    std::vector<dpu::PeriodStart> later_starts;  ///< of periods[1] and later ones
    std::vector<DpuFilterChange> filters;        ///< at least one: the first is in force where the trace begins
    std::vector<std::uint64_t> overruns;         ///< a readout lacks trace before these offsets, ascending
    /// Whether the Nexus interface sent the trace, since nothing went to the buffer: NXMODE 11, or there is no buffer.
    bool nexus = false;
};

/// The settings in a capture's registers and header. `unsupported`: its words have a layout unknown to Waymark.
[[nodiscard]] Result<DpuTrace> dpu_trace(const capture::DpuCapture& capture);

/// The time during which a module of the capture's map was mapped.
struct DpuModuleTime {
    std::uint64_t from{};               ///< the first element of that time has this offset, or a later one
    std::optional<std::uint64_t> to{};  ///< none: to the end
};
/// The time of each module, in the order of the map. Empty if the map does not count bytes of trace, or the bytes of
/// the trace cannot be counted from its beginning. `trace_bytes`: the size of `trace_file`.
[[nodiscard]] std::optional<std::vector<DpuModuleTime>> module_times(const capture::DpuCapture& capture,
                                                                     const DpuTrace& trace, std::uint64_t trace_bytes);

/// The file that contains the trace: the buffer's file, or the file of the Nexus messages.
[[nodiscard]] const std::filesystem::path& trace_file(const capture::DpuCapture& capture, const DpuTrace& trace);

/// The state in which decoding of a buffer began.
struct DpuDecoded {
    dpu::Totals totals;
    bool overwritten = false;  ///< older trace was overwritten: nothing is known from before the first element
    bool cut = false;          ///< trace is missing from the dump
    /// Later periods whose beginning in the trace is unknown: read as the first period.
    std::uint64_t unplaced_periods{};
    std::uint64_t unwritten_bytes{};  ///< zero lines at the end of a dump without registers
};

/// Decodes the bytes of `trace_file` to elements; `out` is borrowed for the call. Offsets of elements count from the
/// oldest trace in the whole buffer, except for the trace that a cut dump lacks. `bad_format`: registers have
/// impossible values (dpu/vtb.h).
[[nodiscard]] Result<DpuDecoded> decode_dpu(const DpuTrace& trace, Bytes dump, dpu::ElementSink& out);

}  // namespace waymark::pipeline
