/// One sampled operation: the packets up to an End or Timestamp packet, put into columns, and the meaning of their
/// values (docs/spec/spe.md, sections 4.1 to 4.7).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "waymark/core/gap.h"
#include "waymark/core/types.h"
#include "waymark/spe/packet.h"

namespace waymark::spe {

/// The possible contents of a record; a bit each in Record::present.
enum class RecordColumn : std::uint8_t {
    pc,
    branch_target,
    data_virtual,
    data_physical,
    previous_target,
    total_latency,
    issue_latency,
    translation_latency,
    alternate_issue_latency,
    events,
    operation,
    data_source,
    context_el1,
    context_el2,
    timestamp,
};
inline constexpr unsigned column_count = 15;

/// Defects of a record; a bit each in Record::defects.
enum class Defect : std::uint8_t {
    damaged,       ///< bytes among its packets that are no packet
    no_pc,         ///< holds no PC packet, so it is no sample
    unnamed,       ///< contains packets without a column: only the bytes have their values
    repeated,      ///< two packets for one column: the later one counts
    inconsistent,  ///< packets that its operation type cannot have, such as a data address of a branch
    aligned,       ///< contains an obsolete alignment packet, which may hide any other packet
    oversized,     ///< longer than the architecture allows
};
inline constexpr unsigned defect_count = 7;
[[nodiscard]] std::string_view name(RecordColumn column);
[[nodiscard]] std::string_view name(Defect defect);

/// No record is longer (PMSIDR_EL1.MaxSize).
inline constexpr std::uint32_t max_record_bytes = 2048;

/// One sample. Addresses are payloads as sent: see `program_address` and the functions next to it.
struct Record {
    Offset first{};         ///< place of its first packet; zeros before that belong to no record
    std::uint32_t bytes{};  ///< up to and including its End or Timestamp packet; at most 32 bits are kept
    std::uint16_t present{};
    std::uint8_t defects{};
    OperationClass operation_class{};
    std::uint8_t operation_type{};
    std::uint64_t pc{}, branch_target{}, data_virtual{}, data_physical{}, previous_target{};
    std::uint64_t events{}, timestamp{};
    std::uint32_t context_el1{}, context_el2{};
    std::uint16_t total_latency{}, issue_latency{}, translation_latency{}, alternate_issue_latency{};
    std::uint16_t data_source{};

    [[nodiscard]] constexpr bool has(RecordColumn column) const {
        return (present >> static_cast<unsigned>(column) & 1U) != 0;
    }
    [[nodiscard]] constexpr bool has(Defect defect) const {
        return (defects >> static_cast<unsigned>(defect) & 1U) != 0;
    }
    [[nodiscard]] constexpr Offset end() const { return first + bytes; }
    friend bool operator==(const Record&, const Record&) = default;
};

/// Many records, column by column: element i of every array belongs to record i. A value whose bit in `present` is 0 is
/// 0.
struct RecordColumns {
    /// Not a power of two: one row of all columns would share a cache set.
    static constexpr std::size_t capacity = 1000;
    std::size_t size = 0;
    std::array<std::uint64_t, capacity> first, pc, branch_target, data_virtual, data_physical, previous_target, events,
        timestamp;
    std::array<std::uint32_t, capacity> bytes, context_el1, context_el2;
    std::array<std::uint16_t, capacity> present, total_latency, issue_latency, translation_latency,
        alternate_issue_latency, data_source;
    std::array<std::uint8_t, capacity> defects, operation_class, operation_type;

    /// Precondition: `i` < `size`.
    [[nodiscard]] Record row(std::size_t i) const;
    /// Precondition: `size` < `capacity`.
    void push(const Record& record);
};

/// A stretch of the stream outside all records, or bytes inside a record that are not a packet.
struct RecordGap {
    std::uint32_t before{};  ///< index of the record behind or around it: it lies before records[before] of its batch,
                             ///< or inside it
    Gap gap;
    bool inside{};  ///< inside a record, which may also be incomplete
    friend bool operator==(const RecordGap&, const RecordGap&) = default;
};

/// Consecutive records of one stream. Borrowed: valid during RecordSink::consume().
struct RecordBatch {
    const RecordColumns& records;
    std::span<const RecordGap> gaps;  ///< in order; `before` never decreases and may be one past the last record
};

/// Takes records and gaps from a decoder.
class RecordSink {
public:
    virtual ~RecordSink() = default;
    /// Batches come in stream order.
    virtual void consume(const RecordBatch& batch) = 0;
};

/// Calls `on_record(record)` and `on_gap(record_gap)` in stream order.
template <class OnRecord, class OnGap>
void in_order(const RecordBatch& batch, OnRecord&& on_record, OnGap&& on_gap) {
    std::size_t next = 0;
    for (std::size_t i = 0; i < batch.records.size; ++i) {
        while (next < batch.gaps.size() && batch.gaps[next].before <= i) on_gap(batch.gaps[next++]);
        on_record(batch.records.row(i));
    }
    while (next < batch.gaps.size()) on_gap(batch.gaps[next++]);
}

/// Contents of a stream. Every byte is in exactly one of these: record, padding, alignment, lost bytes.
struct Totals {
    std::uint64_t bytes{};            ///< fed
    std::uint64_t record_bytes{};     ///< bytes of records, with everything inside them
    std::uint64_t padding_bytes{};    ///< zeros between records
    std::uint64_t alignment_bytes{};  ///< obsolete alignment packets between records
    std::uint64_t lost_bytes{};       ///< bytes of gaps outside records
    std::uint64_t damaged_bytes{};    ///< bytes of gaps inside whole records
    std::uint64_t records{};
    std::uint64_t empty{};                              ///< records that have nothing but a Timestamp or End packet
    std::array<std::uint64_t, defect_count> defects{};  ///< records with each Defect
    std::array<std::uint64_t, gap_reasons> gaps{};      ///< gaps outside records, by reason
    friend bool operator==(const Totals&, const Totals&) = default;

    [[nodiscard]] std::uint64_t with(Defect defect) const { return defects[static_cast<std::size_t>(defect)]; }
};

/// {NSE, NS}.
enum class Security : std::uint8_t { secure, non_secure, reserved, realm };
[[nodiscard]] std::string_view name(Security security);

/// The payload of a PC or branch target packet (section 4.2).
struct ProgramAddress {
    Address address{};  ///< 64 bits, continued from bit 55
    std::uint8_t exception_level{};
    Security security{};
};
[[nodiscard]] constexpr std::uint64_t sign_extend_55(std::uint64_t payload) {
    const std::uint64_t low = payload & 0x00ff'ffff'ffff'ffffU;
    return (low >> 55 & 1U) != 0 ? low | 0xff00'0000'0000'0000U : low;
}
[[nodiscard]] constexpr ProgramAddress program_address(std::uint64_t payload) {
    const auto nse_ns = static_cast<unsigned>((payload >> 60 & 1U) << 1 | payload >> 63);
    return {{sign_extend_55(payload)}, static_cast<std::uint8_t>(payload >> 61 & 3U), static_cast<Security>(nse_ns)};
}
[[nodiscard]] constexpr std::uint64_t from_program_address(const ProgramAddress& a) {
    const auto s = static_cast<std::uint64_t>(a.security);
    return (a.address.value & 0x00ff'ffff'ffff'ffffU) | (s >> 1 & 1U) << 60 | std::uint64_t{a.exception_level} << 61 |
           (s & 1U) << 63;
}

/// The payload of a data virtual address packet.
struct DataAddress {
    Address address{};   ///< 64 bits, continued from bit 55
    std::uint8_t tag{};  ///< the top byte as sent
};
[[nodiscard]] constexpr DataAddress data_address(std::uint64_t payload) {
    return {{sign_extend_55(payload)}, static_cast<std::uint8_t>(payload >> 56)};
}

/// The payload of a data physical address packet.
struct PhysicalAddress {
    Address address{};
    Security security{};
    bool tag_checked{};  ///< CH
    std::uint8_t tag{};  ///< PAT
};
[[nodiscard]] constexpr PhysicalAddress physical_address(std::uint64_t payload) {
    const auto nse_ns = static_cast<unsigned>((payload >> 60 & 1U) << 1 | payload >> 63);
    return {{payload & 0x00ff'ffff'ffff'ffffU},
            static_cast<Security>(nse_ns),
            (payload >> 62 & 1U) != 0,
            static_cast<std::uint8_t>(payload >> 56 & 0xfU)};
}

/// Name of an event bit; empty for bits that the architecture leaves to implementations or reserves (section 4.5).
[[nodiscard]] std::string_view event_name(unsigned bit);
/// All set bits, colon-joined; unnamed bits as `event12`. Empty if none is set.
[[nodiscard]] std::string events_text(std::uint64_t events);

/// An operation type packet taken apart (section 4.6).
struct Operation {
    enum class Kind : std::uint8_t {
        other,
        sve,
        sme,
        general,  ///< general-purpose registers
        simd_fp,
        unspecified,  ///< unspecified registers
        allocation_tag,
        system_register,  ///< redirected to memory
        memory_copy,
        memory_set,
        control_stack,  ///< guarded control stack
        extended,       ///< acquire/release, exclusive, atomic
        sve_memory,
        branch,
        reserved,  ///< no pattern with a name in the architecture
    };
    enum class Call : std::uint8_t { not_recorded, call, procedure_return, neither };
    Kind kind{};
    bool load{}, store{};  ///< kind of a load_store operation
    bool conditional{}, indirect{};
    bool floating_point{}, simd{}, predicated{}, gather_scatter{};
    bool acquire_release{}, exclusive{}, atomic{};
    bool control_stack{};  ///< branch: touched the guarded control stack
    bool common{};         ///< control_stack: not a call or return
    Call call{};
    std::uint8_t length_code{};  ///< EVL of SVE, ETS of SME
    /// Effective vector length or tile size in bits; 0: none, or more than can be expressed.
    [[nodiscard]] std::uint32_t length_bits() const;
};
[[nodiscard]] Operation operation(OperationClass kind, std::uint8_t type);
/// `load`, `store acquire-release exclusive`, `branch conditional`, …
[[nodiscard]] std::string operation_text(const Operation& operation);

/// The meaning of a data source code on the core with this MIDR_EL1; empty if not known (section 4.7).
[[nodiscard]] std::string_view data_source_name(std::uint32_t midr, std::uint32_t code);

}  // namespace waymark::spe
