/// How a Program Trace Macrocell was programmed, as far as its output depends on it (docs/spec/pft.md, section 3), and
/// the choices Waymark makes where the specification is unsure (section 9).
#pragma once

#include <cstdint>
#include <string_view>

#include "waymark/core/cursor.h"
#include "waymark/core/wire.h"

namespace waymark::pft {

/// ETMCR, the main control register. Register 0x00.
struct Etmcr {
    static constexpr std::string_view name = "ETMCR", title = "main control";
    static constexpr unsigned number = 0x00;

    std::uint8_t unused_31{}, unused_23_16{}, unused_13{}, unused_11{}, unused_7_1{};
    std::uint8_t processor_select{}, context_id_size{};
    bool vmid_trace{}, return_stack{}, timestamps{}, access_control{}, cycle_accurate{}, programming{};
    bool debug_request{}, branch_broadcast{}, power_down{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31>("reserved[31]", r.unused_31), bits<30>("VMID trace enable", r.vmid_trace),
               bits<29>("return stack enable", r.return_stack), bits<28>("timestamp enable", r.timestamps),
               bits<27, 25>("processor select", r.processor_select),
               bits<24>("instrumentation resource access control", r.access_control),
               bits<23, 16>("reserved[23:16]", r.unused_23_16), bits<15, 14>("ContextIDSize", r.context_id_size),
               bits<13>("reserved[13]", r.unused_13), bits<12>("cycle-accurate", r.cycle_accurate),
               bits<11>("reserved[11]", r.unused_11), bits<10>("Programming bit", r.programming),
               bits<9>("debug request control", r.debug_request), bits<8>("branch broadcast", r.branch_broadcast),
               bits<7, 1>("reserved[7:1]", r.unused_7_1), bits<0>("power down", r.power_down));
    }
    bool operator==(const Etmcr&) const = default;
};

/// ETMCCER, the configuration code extension register. Register 0x7A.
struct Etmccer {
    static constexpr std::string_view name = "ETMCCER", title = "configuration code extension";
    static constexpr unsigned number = 0x7a;

    std::uint8_t unused_31_30{}, embedded_ice{}, instrumentation_resources{}, one{}, readable{}, external_inputs{};
    std::uint8_t selectors{};
    bool timestamp_64{}, timestamp_binary{}, reduced_counter{}, virtualization{}, barrier_timestamps{};
    bool barrier_waypoints{}, return_stack{}, timestamps{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 30>("reserved[31:30]", r.unused_31_30), bits<29>("64-bit timestamps", r.timestamp_64),
               bits<28>("natural binary timestamps", r.timestamp_binary),
               bits<27>("counter 1 is a reduced-function counter", r.reduced_counter),
               bits<26>("Virtualization Extensions", r.virtualization),
               bits<25>("DMB and DSB generate timestamps", r.barrier_timestamps),
               bits<24>("DMB and DSB are waypoints", r.barrier_waypoints),
               bits<23>("return stack implemented", r.return_stack), bits<22>("timestamping implemented", r.timestamps),
               bits<21, 16>("EmbeddedICE", r.embedded_ice),
               bits<15, 13>("instrumentation resources", r.instrumentation_resources), bits<12>("read as one", r.one),
               bits<11>("registers readable", r.readable),
               bits<10, 3>("extended external input bus", r.external_inputs),
               bits<2, 0>("extended external input selectors", r.selectors));
    }
    bool operator==(const Etmccer&) const = default;
};

/// ETMIDR, the identification register. Register 0x79.
struct Etmidr {
    static constexpr std::string_view name = "ETMIDR", title = "identification";
    static constexpr unsigned number = 0x79;

    std::uint8_t implementer{}, unused_23_21{}, one_20{}, security{}, thumb_32_as_one{}, unused_17_16{};
    std::uint8_t family{}, major{}, minor{}, revision{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 24>("implementer", r.implementer), bits<23, 21>("reserved[23:21]", r.unused_23_21),
               bits<20>("branch packet encoding", r.one_20), bits<19>("Security Extensions", r.security),
               bits<18>("32-bit Thumb traced as one instruction", r.thumb_32_as_one),
               bits<17, 16>("reserved[17:16]", r.unused_17_16), bits<15, 12>("family", r.family),
               bits<11, 8>("major version", r.major), bits<7, 4>("minor version", r.minor),
               bits<3, 0>("revision", r.revision));
    }
    bool operator==(const Etmidr&) const = default;
};

/// ETMTRACEIDR, the CoreSight trace ID register. Register 0x80.
struct Etmtraceidr {
    static constexpr std::string_view name = "ETMTRACEIDR", title = "CoreSight trace ID";
    static constexpr unsigned number = 0x80;

    std::uint32_t unused_31_7{};
    std::uint8_t trace_id{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 7>("reserved[31:7]", r.unused_31_7), bits<6, 0>("trace ID", r.trace_id));
    }
    bool operator==(const Etmtraceidr&) const = default;
};

/// A register's fields from its value.
template <class Register>
[[nodiscard]] Register from_value(std::uint32_t value) {
    Register r;
    const std::uint8_t bytes[] = {static_cast<std::uint8_t>(value), static_cast<std::uint8_t>(value >> 8),
                                  static_cast<std::uint8_t>(value >> 16), static_cast<std::uint8_t>(value >> 24)};
    Cursor cursor(bytes);
    wire::Reader reader(cursor);
    Register::fields(reader, r);
    return r;
}

/// A register's value from its fields.
template <class Register>
[[nodiscard]] std::uint32_t to_value(const Register& r) {
    std::vector<std::uint8_t> bytes;
    wire::Writer writer(bytes);
    Register::fields(writer, r);
    return static_cast<std::uint32_t>(Cursor(bytes).le(4));
}

/// Everything the bytes of a PTM depend on. The same bytes mean different packets under another configuration.
struct Config {
    bool cycle_accurate = false;        ///< ETMCR[12]: cycle counts, and one atom per packet
    bool return_stack = false;          ///< ETMCR[29]: taken indirect branches may come as E atoms
    bool branch_broadcast = false;      ///< ETMCR[8]: taken direct branches come as branch packets
    bool vmid_trace = false;            ///< ETMCR[30]: VMID packets
    bool timestamps = false;            ///< ETMCR[28]; timestamp packets are decoded whatever it says
    bool barrier_waypoints = false;     ///< ETMCCER[24]: DMB and DSB are waypoint instructions
    bool gray_timestamps = true;        ///< timestamps are Gray coded: v1.0, or ETMCCER[28] = 0
    std::uint8_t context_id_bytes = 0;  ///< ETMCR[15:14]: 0, 1, 2 or 4
    std::uint8_t timestamp_bytes =
        7;                           ///< longest timestamp value: 7 (48 bits: v1.0, or ETMCCER[29] = 0) or 9 (64 bits)
    std::uint8_t minor_version = 1;  ///< ETMIDR[7:4]: 0 is PFTv1.0, 1 is PFTv1.1

    // Choices the specification leaves open.
    /// OQ1: a waypoint update becomes the base against which the next address is compressed.
    bool update_is_compression_base = true;
    /// OQ5: HYP keeps its value in a packet whose information byte 0 is not followed by byte 1; else it becomes 0.
    bool hyp_kept_without_info_1 = true;

    /// Longest walk in bytes before the image is taken to be wrong (section 4.4).
    std::uint32_t max_walk_bytes = 512 * 1024;

    /// From the three registers that decide it; section 3.
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
