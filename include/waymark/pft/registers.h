/// Registers of a Program Trace Macrocell, field by field (docs/spec/pft.md, section 3). Each is described once: one
/// function names its fields, and reading, writing, printing and checking use it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <vector>

#include "waymark/core/registers.h"
#include "waymark/core/wire.h"

namespace waymark::pft {

/// ETMCR, the main control register. Register 0x00.
struct Etmcr {
    static constexpr std::string_view name = "ETMCR", title = "main control";
    static constexpr unsigned number = 0x00, count = 1;

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
    static constexpr unsigned number = 0x7a, count = 1;

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
    static constexpr unsigned number = 0x79, count = 1;

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

/// The unit that has this register: an ETMv3, not a macrocell of Program Flow Trace.
[[nodiscard]] inline bool is_etmv3(const Etmidr& id) { return id.major == 2; }

/// ETMTRACEIDR, the CoreSight trace ID register. Register 0x80.
struct Etmtraceidr {
    static constexpr std::string_view name = "ETMTRACEIDR", title = "CoreSight trace ID";
    static constexpr unsigned number = 0x80, count = 1;

    std::uint32_t unused_31_7{};
    std::uint8_t trace_id{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 7>("reserved[31:7]", r.unused_31_7), bits<6, 0>("trace ID", r.trace_id));
    }
    bool operator==(const Etmtraceidr&) const = default;
};

/// An event in the form of the event registers (5.6): a function of two resources.
struct EventFields {
    std::uint8_t function{}, b_type{}, b_index{}, a_type{}, a_index{};
    bool operator==(const EventFields&) const = default;
};

/// The registers that contain only an event.
template <class Tag>
struct EventRegister : EventFields {
    static constexpr std::string_view name = Tag::name, title = Tag::title;
    static constexpr unsigned number = Tag::number, count = Tag::count;

    std::uint32_t unused_31_17{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 17>("reserved[31:17]", r.unused_31_17), bits<16, 14>("function", r.function),
               bits<13, 11>("resource B type", r.b_type), bits<10, 7>("resource B index", r.b_index),
               bits<6, 4>("resource A type", r.a_type), bits<3, 0>("resource A index", r.a_index));
    }
    bool operator==(const EventRegister&) const = default;
};
/// A register that is one number of `Width` bits.
template <class Tag, unsigned Width>
struct NumberRegister {
    static constexpr std::string_view name = Tag::name, title = Tag::title;
    static constexpr unsigned number = Tag::number, count = Tag::count;

    std::uint32_t value{}, unused{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        if constexpr (Width == 32)
            w.word(bits<31, 0>("value", r.value));
        else
            w.word(bits<31, Width>("reserved", r.unused), bits<Width - 1, 0>("value", r.value));
    }
    bool operator==(const NumberRegister&) const = default;
};

namespace register_tags {
#define WM_PFT_REGISTER_TAG(Type, Name, Title, Number, Count)         \
    struct Type {                                                     \
        static constexpr std::string_view name = Name, title = Title; \
        static constexpr unsigned number = Number, count = Count;     \
    }
WM_PFT_REGISTER_TAG(Trigger, "ETMTRIGGER", "trigger event", 0x02, 1);
WM_PFT_REGISTER_TAG(Teevr, "ETMTEEVR", "TraceEnable event", 0x08, 1);
WM_PFT_REGISTER_TAG(Fflr, "ETMFFLR", "FIFO full level", 0x0b, 1);
WM_PFT_REGISTER_TAG(Acvr, "ETMACVR", "address comparator value", 0x10, 16);
WM_PFT_REGISTER_TAG(Cntrldvr, "ETMCNTRLDVR", "counter reload value", 0x50, 4);
WM_PFT_REGISTER_TAG(Cntrldevr, "ETMCNTRLDEVR", "counter reload event", 0x58, 4);
WM_PFT_REGISTER_TAG(Cntvr, "ETMCNTVR", "counter value", 0x5c, 4);
WM_PFT_REGISTER_TAG(Sqevr, "ETMSQEVR", "sequencer state transition event", 0x60, 6);
WM_PFT_REGISTER_TAG(Sqr, "ETMSQR", "current sequencer state", 0x67, 1);
WM_PFT_REGISTER_TAG(Extoutevr, "ETMEXTOUTEVR", "external output event", 0x68, 4);
WM_PFT_REGISTER_TAG(Cidcvr, "ETMCIDCVR", "Context ID comparator value", 0x6c, 3);
WM_PFT_REGISTER_TAG(Cidcmr, "ETMCIDCMR", "Context ID comparator mask", 0x6f, 1);
WM_PFT_REGISTER_TAG(Syncfr, "ETMSYNCFR", "synchronisation frequency", 0x78, 1);
WM_PFT_REGISTER_TAG(Tsevr, "ETMTSEVR", "timestamp event", 0x7e, 1);
WM_PFT_REGISTER_TAG(Vmidcvr, "ETMVMIDCVR", "VMID comparator value", 0x90, 1);
#undef WM_PFT_REGISTER_TAG
}  // namespace register_tags

using Etmtrigger = EventRegister<register_tags::Trigger>;
using Etmteevr = EventRegister<register_tags::Teevr>;
using Etmfflr = NumberRegister<register_tags::Fflr, 8>;
using Etmacvr = NumberRegister<register_tags::Acvr, 32>;
using Etmcntrldvr = NumberRegister<register_tags::Cntrldvr, 16>;
using Etmcntrldevr = EventRegister<register_tags::Cntrldevr>;
using Etmcntvr = NumberRegister<register_tags::Cntvr, 16>;
/// The order is ETMSQ12EVR, ETMSQ21EVR, ETMSQ23EVR, ETMSQ31EVR, ETMSQ32EVR, ETMSQ13EVR.
using Etmsqevr = EventRegister<register_tags::Sqevr>;
using Etmsqr = NumberRegister<register_tags::Sqr, 2>;
using Etmextoutevr = EventRegister<register_tags::Extoutevr>;
using Etmcidcvr = NumberRegister<register_tags::Cidcvr, 32>;
using Etmcidcmr = NumberRegister<register_tags::Cidcmr, 32>;
using Etmsyncfr = NumberRegister<register_tags::Syncfr, 12>;
using Etmtsevr = EventRegister<register_tags::Tsevr>;
using Etmvmidcvr = NumberRegister<register_tags::Vmidcvr, 8>;

/// ETMCCR, the configuration code register: implemented features. Register 0x01.
struct Etmccr {
    static constexpr std::string_view name = "ETMCCR", title = "configuration code";
    static constexpr unsigned number = 0x01, count = 1;

    std::uint8_t unused_30_27{}, context_id_comparators{}, external_outputs{}, external_inputs{}, counters{};
    std::uint8_t memory_maps{}, data_comparators{}, address_comparator_pairs{};
    bool id_register{}, start_stop{}, fifo_full{}, sequencer{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31>("ETMIDR implemented", r.id_register), bits<30, 27>("reserved[30:27]", r.unused_30_27),
               bits<26>("start/stop block", r.start_stop),
               bits<25, 24>("Context ID comparators", r.context_id_comparators),
               bits<23>("FIFOFULL logic", r.fifo_full), bits<22, 20>("external outputs", r.external_outputs),
               bits<19, 17>("external inputs", r.external_inputs), bits<16>("sequencer", r.sequencer),
               bits<15, 13>("counters", r.counters), bits<12, 8>("memory map decoders", r.memory_maps),
               bits<7, 4>("data value comparators", r.data_comparators),
               bits<3, 0>("address comparator pairs", r.address_comparator_pairs));
    }
    bool operator==(const Etmccr&) const = default;
};

/// ETMSR, the status register. Register 0x04.
struct Etmsr {
    static constexpr std::string_view name = "ETMSR", title = "status";
    static constexpr unsigned number = 0x04, count = 1;

    std::uint32_t unused_31_4{};
    bool triggered{}, start_stop{}, programming{}, overflow{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 4>("reserved[31:4]", r.unused_31_4), bits<3>("trigger seen", r.triggered),
               bits<2>("start/stop block on", r.start_stop), bits<1>("Programming bit in effect", r.programming),
               bits<0>("untraced overflow", r.overflow));
    }
    bool operator==(const Etmsr&) const = default;
};

/// ETMSCR, the system configuration register: features of the system around the macrocell. Register 0x05.
struct Etmscr {
    static constexpr std::string_view name = "ETMSCR", title = "system configuration";
    static constexpr unsigned number = 0x05, count = 1;

    std::uint32_t unused_31_18{}, unused_11_0{};
    std::uint8_t processors{};
    bool no_fetch_comparisons{}, unused_16{}, unused_15{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 18>("reserved[31:18]", r.unused_31_18),
               bits<17>("no fetch comparisons", r.no_fetch_comparisons), bits<16>("reserved[16]", r.unused_16),
               bits<15>("reserved[15]", r.unused_15), bits<14, 12>("processors less one", r.processors),
               bits<11, 0>("reserved[11:0]", r.unused_11_0));
    }
    bool operator==(const Etmscr&) const = default;
};

/// ETMTSSCR, the TraceEnable start/stop control register: single address comparators that turn the start/stop block on
/// and off, bit n for comparator n + 1. Register 0x06.
struct Etmtsscr {
    static constexpr std::string_view name = "ETMTSSCR", title = "TraceEnable start/stop control";
    static constexpr unsigned number = 0x06, count = 1;

    std::uint16_t stop{}, start{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 16>("stop comparators", r.stop), bits<15, 0>("start comparators", r.start));
    }
    bool operator==(const Etmtsscr&) const = default;
};

/// ETMTECR2, the second TraceEnable control register, of ETMv3 only: single address comparators, bit n for comparator
/// n + 1. Register 0x07.
struct Etmtecr2 {
    static constexpr std::string_view name = "ETMTECR2", title = "TraceEnable control 2";
    static constexpr unsigned number = 0x07, count = 1;

    std::uint16_t unused_31_16{}, single{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 16>("reserved[31:16]", r.unused_31_16), bits<15, 0>("address comparators", r.single));
    }
    bool operator==(const Etmtecr2&) const = default;
};

/// ETMTECR1, the TraceEnable control register. Register 0x09.
struct Etmtecr1 {
    static constexpr std::string_view name = "ETMTECR1", title = "TraceEnable control";
    static constexpr unsigned number = 0x09, count = 1;

    std::uint8_t unused_31_26{}, ranges{};
    std::uint16_t unused_23_8{};
    bool start_stop{}, exclude{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 26>("reserved[31:26]", r.unused_31_26), bits<25>("start/stop block used", r.start_stop),
               bits<24>("exclude", r.exclude), bits<23, 8>("reserved[23:8]", r.unused_23_8),
               bits<7, 0>("address range comparators", r.ranges));
    }
    bool operator==(const Etmtecr1&) const = default;
};

/// ETMACTR1 to 16, the address comparator access type registers. Registers 0x20 to 0x2F. The two bits of a security
/// state control are not adjacent: 0 match, 1 no match, 2 match when privileged, 3 match in User mode.
struct Etmactr {
    static constexpr std::string_view name = "ETMACTR", title = "address comparator access type";
    static constexpr unsigned number = 0x20, count = 16;

    std::uint16_t unused_31_16{};
    std::uint8_t context_id{}, unused_7_3{}, access{};
    bool vmid{}, hyp{}, ns_high{}, secure_high{}, ns_low{}, secure_low{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 16>("reserved[31:16]", r.unused_31_16), bits<15>("VMID comparator", r.vmid),
               bits<14>("Hyp mode control", r.hyp), bits<13>("Non-secure control[1]", r.ns_high),
               bits<12>("Secure control[1]", r.secure_high), bits<11>("Non-secure control[0]", r.ns_low),
               bits<10>("Secure control[0]", r.secure_low), bits<9, 8>("Context ID comparator", r.context_id),
               bits<7, 3>("reserved[7:3]", r.unused_7_3), bits<2, 0>("access type", r.access));
    }
    bool operator==(const Etmactr&) const = default;
};

/// ETMCNTENR1 to 4, the counter enable event registers. Registers 0x54 to 0x57.
struct Etmcntenr : EventFields {
    static constexpr std::string_view name = "ETMCNTENR", title = "counter enable event";
    static constexpr unsigned number = 0x54, count = 4;

    std::uint16_t unused_31_18{};
    bool by_event{};  ///< else the counter runs always

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 18>("reserved[31:18]", r.unused_31_18), bits<17>("enabled by the event", r.by_event),
               bits<16, 14>("function", r.function), bits<13, 11>("resource B type", r.b_type),
               bits<10, 7>("resource B index", r.b_index), bits<6, 4>("resource A type", r.a_type),
               bits<3, 0>("resource A index", r.a_index));
    }
    bool operator==(const Etmcntenr&) const = default;
};

/// ETMEXTINSELR: the input of the extended external input bus that each selector passes on. Register 0x7B.
struct Etmextinselr {
    static constexpr std::string_view name = "ETMEXTINSELR", title = "extended external input selection";
    static constexpr unsigned number = 0x7b, count = 1;

    std::uint8_t fourth{}, third{}, second{}, first{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 24>("selector 4", r.fourth), bits<23, 16>("selector 3", r.third),
               bits<15, 8>("selector 2", r.second), bits<7, 0>("selector 1", r.first));
    }
    bool operator==(const Etmextinselr&) const = default;
};

/// ETMTESSEICR: EmbeddedICE watchpoints that turn the start/stop block on and off. Register 0x7C.
struct Etmtesseicr {
    static constexpr std::string_view name = "ETMTESSEICR", title = "TraceEnable start/stop EmbeddedICE control";
    static constexpr unsigned number = 0x7c, count = 1;

    std::uint8_t unused_31_24{}, stop{}, unused_15_8{}, start{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 24>("reserved[31:24]", r.unused_31_24), bits<23, 16>("stop watchpoints", r.stop),
               bits<15, 8>("reserved[15:8]", r.unused_15_8), bits<7, 0>("start watchpoints", r.start));
    }
    bool operator==(const Etmtesseicr&) const = default;
};

/// ETMEIBCR: how EmbeddedICE watchpoints are sampled. Register 0x7D.
struct Etmeibcr {
    static constexpr std::string_view name = "ETMEIBCR", title = "EmbeddedICE behaviour control";
    static constexpr unsigned number = 0x7d, count = 1;

    std::uint32_t unused_31_8{};
    std::uint8_t latched{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 8>("reserved[31:8]", r.unused_31_8), bits<7, 0>("latched watchpoints", r.latched));
    }
    bool operator==(const Etmeibcr&) const = default;
};

/// ETMAUXCR, the auxiliary control register, as the Cortex-A15 has it. Register 0x7F.
struct Etmauxcr {
    static constexpr std::string_view name = "ETMAUXCR", title = "auxiliary control";
    static constexpr unsigned number = 0x7f, count = 1;

    std::uint32_t unused_31_3{};
    bool no_exception_timestamps{}, no_barrier_timestamps{}, no_forced_overflow{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 3>("reserved[31:3]", r.unused_31_3),
               bits<2>("no timestamps on exception entry and return", r.no_exception_timestamps),
               bits<1>("no timestamps on barriers", r.no_barrier_timestamps),
               bits<0>("no forced overflow", r.no_forced_overflow));
    }
    bool operator==(const Etmauxcr&) const = default;
};

/// All registers of a macrocell. An ETMv3 has the same, and ETMTECR2; its ETMCR, ETMIDR and ETMACTR have further fields
/// in bits that are reserved here (etm3/registers.h). ETMIDR says which unit it is.
struct Registers {
    Etmcr cr;
    Etmccr ccr;
    Etmtrigger trigger = from_value<Etmtrigger>(0x406f);  ///< never
    Etmsr sr;
    Etmscr scr;
    Etmtsscr tsscr;
    Etmtecr2 tecr2;
    Etmteevr teevr = from_value<Etmteevr>(0x006f);      ///< always
    Etmtecr1 tecr1 = from_value<Etmtecr1>(0x01000000);  ///< exclude nothing
    Etmfflr fflr;
    std::array<Etmacvr, 16> acvr{};
    std::array<Etmactr, 16> actr = filled<Etmactr, 16>(1);  ///< instruction execute
    std::array<Etmcntrldvr, 4> cntrldvr{};
    std::array<Etmcntenr, 4> cntenr = filled<Etmcntenr, 4>(0x2406f);  ///< never
    std::array<Etmcntrldevr, 4> cntrldevr = filled<Etmcntrldevr, 4>(0x406f);
    std::array<Etmcntvr, 4> cntvr{};
    std::array<Etmsqevr, 6> sqevr = filled<Etmsqevr, 6>(0x406f);
    Etmsqr sqr;
    std::array<Etmextoutevr, 4> extoutevr = filled<Etmextoutevr, 4>(0x406f);
    std::array<Etmcidcvr, 3> cidcvr{};
    Etmcidcmr cidcmr;
    Etmsyncfr syncfr{1024, 0};
    Etmidr idr = from_value<Etmidr>(0x411cf312);
    Etmccer ccer = from_value<Etmccer>(0x34c01ac2);
    Etmextinselr extinselr;
    Etmtesseicr tesseicr;
    Etmeibcr eibcr;
    Etmtsevr tsevr = from_value<Etmtsevr>(0x406f);  ///< never
    Etmauxcr auxcr;
    Etmtraceidr traceidr = from_value<Etmtraceidr>(0x10);
    Etmvmidcvr vmidcvr;

    /// Calls `f(register)` with every register, and with every register of a group.
    static void for_each(auto& self, auto&& f) {
        const auto group = [&](auto& registers) {
            for (auto& r : registers) f(r);
        };
        f(self.cr), f(self.ccr), f(self.trigger), f(self.sr), f(self.scr), f(self.tsscr), f(self.tecr2);
        f(self.teevr), f(self.tecr1), f(self.fflr), group(self.acvr), group(self.actr), group(self.cntrldvr);
        group(self.cntenr), group(self.cntrldevr), group(self.cntvr), group(self.sqevr), f(self.sqr);
        group(self.extoutevr), group(self.cidcvr), f(self.cidcmr), f(self.syncfr), f(self.idr), f(self.ccer);
        f(self.extinselr), f(self.tesseicr), f(self.eibcr), f(self.tsevr), f(self.auxcr), f(self.traceidr);
        f(self.vmidcvr);
    }
    /// Sets the register with this number (section 3). Returns false if there is none.
    bool set(unsigned number, std::uint32_t value) {
        bool found = false;
        visit(*this, number, [&](auto& r) {
            r = from_value<std::remove_cvref_t<decltype(r)>>(value);
            found = true;
        });
        return found;
    }
    /// The value of the register with this number; nullopt if there is none.
    [[nodiscard]] std::optional<std::uint32_t> get(unsigned number) const {
        std::optional<std::uint32_t> value;
        visit(*this, number, [&](const auto& r) { value = to_value(r); });
        return value;
    }
    [[nodiscard]] bool is_etmv3() const { return pft::is_etmv3(idr); }
    bool operator==(const Registers&) const = default;

private:
    template <class Register, std::size_t N>
    [[nodiscard]] static std::array<Register, N> filled(std::uint32_t value) {
        std::array<Register, N> out;
        out.fill(from_value<Register>(value));
        return out;
    }
    static void visit(auto& self, unsigned number, auto&& f) {
        unsigned index = 0;
        std::string_view group;
        for_each(self, [&](auto& r) {
            using Register = std::remove_cvref_t<decltype(r)>;
            index = group == Register::name ? index + 1 : 0;
            group = Register::name;
            if (Register::number + index == number) f(r);
        });
    }
};

}  // namespace waymark::pft
