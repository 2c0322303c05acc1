/// How an ETMv4 or ETE trace unit was built and programmed, as far as its output depends on it (docs/spec/etm4.md,
/// section 1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "waymark/etm4/registers.h"
#include "waymark/isa/cores.h"

namespace waymark::etm4 {

using isa::CoreProfile;

/// Everything on which the bytes of a trace unit depend. Under another configuration, the same bytes mean different
/// packets.
struct Config {
    std::uint8_t version = 0x40;           ///< major << 4 | minor: 0x40 to 0x46 are ETMv4, 0x50 to 0x53 ETE 1.0 to 1.3
    CoreProfile profile = CoreProfile::a;  ///< profile of the traced core
    std::uint8_t trace_id = 0;             ///< TRCTRACEIDR.TRACEID: ID of the instruction trace stream
    bool context_id_trace = false;         ///< TRCCONFIGR.CID
    bool vmid_trace = false;               ///< TRCCONFIGR.VMID
    bool vmid_is_contextidr = false;       ///< VMID fields contain CONTEXTIDR_EL2, not VTTBR_EL2.VMID
    bool cycle_counting = false;           ///< TRCCONFIGR.CCI
    bool timestamps = false;               ///< TRCCONFIGR.TS
    bool return_stack = false;             ///< TRCCONFIGR.RS
    bool branch_broadcast = false;         ///< TRCCONFIGR.BB
    bool p0_loads = false;                 ///< TRCCONFIGR.INSTP0[0]: loads are P0 instructions
    bool p0_stores = false;                ///< TRCCONFIGR.INSTP0[1]
    std::uint8_t conditional = 0;   ///< TRCCONFIGR.COND where TRCIDR0.TRCCOND: 0 off, 1 loads, 2 stores, 3 both, 7 all
    bool conditional_apsr = false;  ///< TRCIDR0.CONDTYPE: results are APSR values, not pass or fail
    bool data_trace = false;        ///< there is a data trace stream, so its markers are in the instruction stream
    bool q_elements = false;        ///< TRCCONFIGR.QE: the unit may send Q elements
    bool commit_mode_1 = false;     ///< TRCIDR0.COMMOPT with TRCCCI: cycle count packets do not commit
    bool transaction_start_p0 = true;    ///< TRCIDR0.COMMTRANS = 0: Transaction Start is a P0 element
    bool timestamp_markers = false;      ///< TRCIDR0.TSMARK: a marker comes before each timestamp
    bool wfx_p0 = false;                 ///< TRCIDR2.WFXMODE from version 4.3 on: WFI and WFE are P0 instructions
    std::uint8_t context_id_bytes = 4;   ///< TRCIDR2.CIDSIZE: 0 or 4; size in packets that have one
    std::uint8_t vmid_bytes = 1;         ///< TRCIDR2.VMIDSIZE: 0, 1, 2 or 4; size in packets that have one
    std::uint8_t address_bytes = 8;      ///< TRCIDR2.IASIZE: 4 or 8
    std::uint8_t timestamp_bits = 64;    ///< TRCIDR0.TSSIZE: 0, 48 or 64
    std::uint8_t cycle_count_bits = 12;  ///< TRCIDR2.CCSIZE + 12: width of the cycle counts in timestamps
    std::uint32_t max_speculation = 0;   ///< TRCIDR8.MAXSPEC: maximum number of P0 elements that wait for Commit
    std::uint32_t p0_keys = 0;           ///< TRCIDR9.NUMP0KEY of data trace, at least 1 there; else 0
    std::uint32_t p1_keys = 0;           ///< TRCIDR10.NUMP1KEY of data trace
    std::uint32_t p1_special_keys = 0;   ///< TRCIDR11.NUMP1SPC of data trace
    std::uint32_t conditional_keys = 0;  ///< TRCIDR12.NUMCONDKEY of conditional trace
    std::uint32_t conditional_special_keys = 0;  ///< TRCIDR13.NUMCONDSPC of conditional trace

    /// Longest walk in bytes before the image is considered wrong. Less than 2^32.
    std::uint32_t max_walk_bytes = 512 * 1024;

    /// ETE is major version 5 of the same protocol. A label in the capture is irrelevant.
    [[nodiscard]] constexpr bool ete() const { return version >= 0x50; }

    friend bool operator==(const Config&, const Config&) = default;
};

/// Register values in a capture; absent if the capture does not have them.
struct RegisterValues {
    std::optional<std::uint32_t> configr, traceidr, idr0, idr1, idr2, idr8, devarch;
    std::optional<std::uint32_t> idr9, idr10, idr11, idr12, idr13;  ///< used with data and conditional trace only
};

/// A configuration, with sentences on assumptions and impossible values: each names the register, what was found and
/// what was assumed instead.
struct ReadConfig {
    Config config;
    std::vector<std::string> notes;
};

/// Never fails: a register that is missing or has a reserved value is replaced by an assumption, with a note.
[[nodiscard]] ReadConfig read_config(const RegisterValues& registers, CoreProfile profile);

/// Registers from which `read_config` gives `config` without notes, for writers of captures.
[[nodiscard]] RegisterValues to_registers(const Config& config);

/// The CoreSight trace ID of the data trace stream that accompanies an instruction trace stream; nullopt if no data is
/// traced.
[[nodiscard]] std::optional<std::uint8_t> data_trace_id(const Config& config);

}  // namespace waymark::etm4
