/// The programming of an ETMv3, as far as its output depends on it (docs/spec/etmv3.md, 1).
#pragma once

#include <cstdint>

#include "waymark/etm3/registers.h"

namespace waymark::etm3 {

/// Everything on which the bytes of an ETMv3 depend. Under another configuration, the same bytes mean different
/// packets.
struct Config {
    bool cycle_accurate = false;        ///< ETMCR[12]: other P-headers
    bool data_value = false;            ///< ETMCR[2]
    bool data_address = false;          ///< ETMCR[3]
    bool data_only = false;             ///< ETMCR[20]: I-syncs without an address, no atoms
    bool branch_output = false;         ///< ETMCR[8]: taken direct branches come with an address
    bool vmid_trace = false;            ///< ETMCR[30]
    bool timestamps = false;            ///< ETMCR[28]; timestamp packets are decoded even if it is clear
    bool alternative_branches = false;  ///< ETMIDR[20], from version 3.4 on
    bool gray_timestamps = false;       ///< ETMCCER[28] = 0
    bool m_profile = false;             ///< the core has exception numbers of nine bits
    std::uint8_t context_id_bytes = 0;  ///< ETMCR[15:14]: 0, 1, 2 or 4
    std::uint8_t timestamp_bytes = 7;   ///< longest timestamp value: 7 (48 bits) or, with ETMCCER[29], 9 (64 bits)
    std::uint8_t minor_version = 5;     ///< ETMIDR[7:4]

    /// Has no effect, since each walk ends after one instruction. The shared walk needs the limit.
    std::uint32_t max_walk_bytes = 512 * 1024;

    [[nodiscard]] static Config from_registers(const Etm3cr& cr, const Etmccer& ccer, const Etm3idr& idr) {
        constexpr std::uint8_t sizes[] = {0, 1, 2, 4};
        Config c;
        c.cycle_accurate = cr.cycle_accurate;
        c.data_value = cr.data_value;
        c.data_address = cr.data_address;
        c.data_only = cr.data_only;
        c.branch_output = cr.branch_output;
        c.vmid_trace = cr.vmid_trace;
        c.timestamps = cr.timestamps;
        c.context_id_bytes = sizes[cr.context_id_size & 3U];
        c.minor_version = idr.minor;
        c.alternative_branches = idr.alternative_branches && idr.minor >= 4;
        c.gray_timestamps = !ccer.timestamp_binary;
        c.timestamp_bytes = ccer.timestamp_64 ? 9 : 7;
        return c;
    }
    friend bool operator==(const Config&, const Config&) = default;
};

}  // namespace waymark::etm3
