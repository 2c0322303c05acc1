/// The programming of a Program Trace Macrocell, as far as its output depends on it (docs/spec/pft.md, section 3), and
/// Waymark's choices where the specification is unclear (section 9).
#pragma once

#include <cstdint>

#include "waymark/pft/registers.h"

namespace waymark::pft {

/// Everything on which the bytes of a PTM depend. Under another configuration, the same bytes mean different packets.
struct Config {
    bool cycle_accurate = false;        ///< ETMCR[12]: cycle counts, and one atom per packet
    bool return_stack = false;          ///< ETMCR[29]: taken indirect branches may come as E atoms
    bool branch_broadcast = false;      ///< ETMCR[8]: taken direct branches come as branch packets
    bool vmid_trace = false;            ///< ETMCR[30]: VMID packets
    bool timestamps = false;            ///< ETMCR[28]; timestamp packets are decoded regardless of it
    bool barrier_waypoints = false;     ///< ETMCCER[24]: DMB and DSB are waypoint instructions
    bool gray_timestamps = true;        ///< timestamps are Gray coded: v1.0, or ETMCCER[28] = 0
    std::uint8_t context_id_bytes = 0;  ///< ETMCR[15:14]: 0, 1, 2 or 4
    std::uint8_t timestamp_bytes =
        7;                           ///< longest timestamp value: 7 (48 bits: v1.0, or ETMCCER[29] = 0) or 9 (64 bits)
    std::uint8_t minor_version = 1;  ///< ETMIDR[7:4]: 0 is PFTv1.0, 1 is PFTv1.1

    // Choices that the specification leaves open.
    /// OQ1: a waypoint update becomes the base for compressing the next address.
    bool update_is_compression_base = true;
    /// OQ5: HYP keeps its value in a packet whose information byte 0 is not followed by byte 1; otherwise it becomes 0.
    bool hyp_kept_without_info_1 = true;

    /// Longest walk in bytes before the image is considered wrong (section 4.4).
    std::uint32_t max_walk_bytes = 512 * 1024;

    /// Makes the configuration from the three registers that determine it (section 3).
    [[nodiscard]] static Config from_registers(const Etmcr& cr, const Etmccer& ccer, const Etmidr& idr) {
        constexpr std::uint8_t sizes[] = {0, 1, 2, 4};
        Config c;
        c.cycle_accurate = cr.cycle_accurate;
        c.return_stack = cr.return_stack;
        c.branch_broadcast = cr.branch_broadcast;
        c.vmid_trace = cr.vmid_trace;
        c.timestamps = cr.timestamps;
        c.context_id_bytes = sizes[cr.context_id_size];
        c.minor_version = idr.minor;
        c.barrier_waypoints = ccer.barrier_waypoints;
        c.gray_timestamps = idr.minor == 0 || !ccer.timestamp_binary;
        c.timestamp_bytes = idr.minor != 0 && ccer.timestamp_64 ? 9 : 7;
        return c;
    }
    friend bool operator==(const Config&, const Config&) = default;
};

}  // namespace waymark::pft
