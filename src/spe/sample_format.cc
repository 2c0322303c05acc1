#include "sample_format.h"

#include <bit>

#include "waymark/core/result.h"
#include "waymark/spe/encoder.h"
#include "waymark/spe/packet.h"

namespace waymark::spe {

namespace {

using Kind = Operation::Kind;

constexpr std::uint16_t flag(RecordColumn column) {
    return static_cast<std::uint16_t>(1U << static_cast<unsigned>(column));
}

/// A payload from single bits, the highest first.
constexpr std::uint8_t pattern(std::initializer_list<bool> bits) {
    unsigned value = 0;
    for (const bool b : bits) value = value << 1 | unsigned{b};
    return static_cast<std::uint8_t>(value);
}

std::uint8_t other_type(const Operation& o, bool fpf) {
    return pattern({fpf && o.simd, fpf && o.floating_point, o.conditional});
}

std::uint8_t sve_type(const Operation& o) {
    return static_cast<std::uint8_t>((o.length_code & 7U) << 4 | 0x08U | unsigned{o.predicated} << 2 |
                                     unsigned{o.floating_point} << 1);
}

std::uint8_t sme_type(const Operation& o) {
    return static_cast<std::uint8_t>(0x88U | (o.length_code >> 1 & 7U) << 4 | (o.length_code & 1U) << 2 |
                                     unsigned{o.floating_point} << 1);
}

std::uint8_t branch_type(const Operation& o, Version version, bool crr) {
    const unsigned call = crr ? static_cast<unsigned>(o.call) : 0;
    return static_cast<std::uint8_t>(call << 3 | unsigned{version >= Version::v1_4 && o.control_stack} << 2 |
                                     unsigned{o.indirect} << 1 | unsigned{o.conditional});
}

std::uint8_t memory_type(const Operation& o, const Architecture& arch) {
    const unsigned store = o.store ? 1 : 0;
    const auto since = [&](Version version, unsigned type) {
        return static_cast<std::uint8_t>((arch.version >= version ? type : 0U) | store);
    };
    switch (o.kind) {
        case Kind::simd_fp: return since(Version::v1_0, 0x04);
        case Kind::unspecified: return since(Version::v1_1, 0x10);
        case Kind::allocation_tag: return since(Version::v1_3, 0x14);
        case Kind::system_register: return since(Version::v1_0, 0x30);
        case Kind::memory_copy: return since(Version::v1_3, 0x20);
        case Kind::memory_set: return since(Version::v1_3, 0x24);
        case Kind::control_stack: return since(Version::v1_4, 0x40U | unsigned{o.common} << 2);
        case Kind::extended:
            return since(Version::v1_0, unsigned{o.acquire_release} << 4 | unsigned{o.exclusive} << 3 |
                                            unsigned{o.atomic} << 2 | 0x02U);
        case Kind::sve_memory:
            // Before v1.1 an SVE access counts as an access of SIMD&FP registers.
            if (arch.version < Version::v1_1 || !(arch.sve || arch.sme)) return since(Version::v1_0, 0x04);
            return since(Version::v1_0, unsigned{o.gather_scatter} << 7 | (o.length_code & 7U) << 4 | 0x08U |
                                            unsigned{o.predicated} << 2);
        default: return static_cast<std::uint8_t>(store);
    }
}

bool is_address(RecordColumn column) {
    return column == RecordColumn::pc || column == RecordColumn::branch_target ||
           column == RecordColumn::data_virtual || column == RecordColumn::data_physical ||
           column == RecordColumn::previous_target;
}

unsigned slot_bytes(RecordColumn column, const RecordFormat& format) {
    if (is_address(column)) return 9;
    switch (column) {
        case RecordColumn::events: return 1U + format.event_bytes;
        case RecordColumn::operation: return 2;
        case RecordColumn::data_source: return 1U + format.data_source_bytes;
        case RecordColumn::context_el1:
        case RecordColumn::context_el2: return 5;
        default: return 3;
    }
}

void put(std::vector<std::uint8_t>& out, const Record& r, RecordColumn column, const RecordFormat& format) {
    const auto address = [&](AddressIndex index, std::uint64_t payload) {
        encode(out, AddressPacket{{static_cast<std::uint8_t>(index), false}, payload});
    };
    const auto counter = [&](CounterIndex index, std::uint16_t cycles) {
        encode(out, Counter{{static_cast<std::uint8_t>(index), false}, cycles});
    };
    switch (column) {
        case RecordColumn::pc: return address(AddressIndex::pc, r.pc);
        case RecordColumn::branch_target: return address(AddressIndex::branch_target, r.branch_target);
        case RecordColumn::data_virtual: return address(AddressIndex::data_virtual, r.data_virtual);
        case RecordColumn::data_physical: return address(AddressIndex::data_physical, r.data_physical);
        case RecordColumn::previous_target: return address(AddressIndex::previous_target, r.previous_target);
        case RecordColumn::total_latency: return counter(CounterIndex::total, r.total_latency);
        case RecordColumn::issue_latency: return counter(CounterIndex::issue, r.issue_latency);
        case RecordColumn::translation_latency: return counter(CounterIndex::translation, r.translation_latency);
        case RecordColumn::alternate_issue_latency:
            return counter(CounterIndex::alternate_issue, r.alternate_issue_latency);
        case RecordColumn::events: return encode(out, Events{{r.events, format.event_bytes}});
        case RecordColumn::operation: return encode(out, OperationType{r.operation_class, r.operation_type});
        case RecordColumn::data_source: return encode(out, DataSource{{r.data_source, format.data_source_bytes}});
        case RecordColumn::context_el1: return encode(out, Context{0, r.context_el1});
        case RecordColumn::context_el2: return encode(out, Context{1, r.context_el2});
        case RecordColumn::timestamp: return encode(out, Timestamp{r.timestamp});
    }
}

bool shares_place(RecordColumn a, RecordColumn b) {
    return (a == RecordColumn::branch_target && b == RecordColumn::data_virtual) ||
           (a == RecordColumn::data_virtual && b == RecordColumn::branch_target);
}

/// Number of zeros in place of the absent packet at `i`: none if the packet that shares its place is present, or if the
/// zeros are already there.
unsigned empty_bytes(const Record& r, std::size_t i, const RecordFormat& format) {
    const RecordColumn column = format.order[i];
    if ((format.slots & flag(column)) == 0) return 0;
    if (i != 0 && shares_place(format.order[i - 1], column) &&
        (r.has(format.order[i - 1]) || (format.slots & flag(format.order[i - 1])) != 0))
        return 0;
    if (i + 1 < format.order.size() && shares_place(column, format.order[i + 1]) && r.has(format.order[i + 1]))
        return 0;
    return slot_bytes(column, format);
}

}  // namespace

std::uint8_t vector_length_code(std::uint32_t bits) {
    if (bits > 2048) return 7;
    return static_cast<std::uint8_t>(bits <= 32 ? 0 : std::bit_width((bits - 1) / 32));
}

std::uint8_t tile_size_code(std::uint32_t bits) {
    if (bits > 262144) return 15;
    return static_cast<std::uint8_t>(bits <= 128 ? 0 : std::bit_width((bits - 1) / 128));
}

OperationType operation_type(const Operation& o, const Architecture& arch, bool crr, bool fpf) {
    switch (o.kind) {
        case Kind::other:
        case Kind::reserved: return {OperationClass::other, other_type(o, fpf)};
        case Kind::sve:
            if (arch.version < Version::v1_1 || !(arch.sve || arch.sme))
                return {OperationClass::other, other_type(o, fpf)};
            return {OperationClass::other, sve_type(o)};
        case Kind::sme:
            if (!arch.sme) return {OperationClass::other, other_type(o, fpf)};
            return {OperationClass::other, sme_type(o)};
        case Kind::branch: return {OperationClass::branch, branch_type(o, arch.version, crr)};
        default: return {OperationClass::load_store, memory_type(o, arch)};
    }
}

OpType filter_type(const Operation& o) {
    switch (o.kind) {
        case Kind::branch: return OpType::Branch;
        case Kind::other:
        case Kind::reserved: return OpType::Other;
        case Kind::sve: return OpType::OtherSVE;
        case Kind::sme: return OpType::OtherSME;
        default: break;
    }
    if (o.store) return OpType::Store;
    return o.kind == Kind::extended && o.atomic ? OpType::LoadAtomic : OpType::Load;
}

std::uint64_t known_events(const Architecture& arch) {
    constexpr std::uint64_t own_31_24 = 0xff00'0000, own = 0xffff'0000'0000'f000;
    std::uint64_t mask = 0x07ff | own;
    if (arch.version >= Version::v1_1) {
        mask |= event::misaligned;
        if (arch.sve || arch.sme) mask |= event::partial_predicate | event::empty_predicate;
    }
    if (arch.version >= Version::v1_4)
        mask |= event::l2d_access | event::l2d_miss | event::data_modified | event::recently_fetched | event::snooped;
    else
        mask |= own_31_24;
    if (arch.sme) mask |= event::streaming | event::shared_unit;
    return mask;
}

std::uint64_t RecordFormat::events(const ModelChoices& choices, const Architecture& arch) {
    const std::uint64_t of_sme = arch.sme ? event::streaming | event::shared_unit : 0;
    const std::uint64_t mask = known_events(arch) & (choices.events | of_sme);
    if (choices.event_bytes == 0 || choices.event_bytes >= 8) return mask;
    return mask & ((std::uint64_t{1} << 8 * choices.event_bytes) - 1);
}

RecordFormat RecordFormat::of(const ModelChoices& choices, const Architecture& arch, std::uint8_t align) {
    const auto bytes_of_highest = [](std::uint64_t mask) {
        return static_cast<std::uint8_t>(std::bit_ceil(static_cast<unsigned>(std::bit_width(mask) + 7) / 8));
    };
    const std::uint64_t mask = events(choices, arch);
    RecordFormat format;
    format.order = choices.order;
    format.slots = choices.slots;
    format.event_bytes = choices.event_bytes != 0 ? choices.event_bytes : bytes_of_highest(mask);
    format.data_source_bytes = choices.data_source_bytes;
    format.padding_first = choices.padding_first;
    format.align = align;
    return format;
}

FormattedRecord format_record(const Record& record, const RecordFormat& format) {
    FormattedRecord out;
    std::vector<std::uint8_t>& bytes = out.bytes;
    bool begun = false;
    for (std::size_t i = 0; i < format.order.size(); ++i) {
        if (!record.has(format.order[i])) {
            bytes.insert(bytes.end(), empty_bytes(record, i, format), 0);
            continue;
        }
        if (!begun) out.lead_bytes = static_cast<std::uint32_t>(bytes.size());
        begun = true;
        put(bytes, record, format.order[i], format);
    }
    const std::size_t terminator = record.has(RecordColumn::timestamp) ? 9 : 1;
    const std::size_t padding = (0 - (bytes.size() + terminator)) & ((std::size_t{1} << format.align) - 1);
    if (format.padding_first) bytes.insert(bytes.end(), padding, 0);
    if (record.has(RecordColumn::timestamp))
        encode(bytes, Timestamp{record.timestamp});
    else
        encode(bytes, End{});
    out.record_bytes = static_cast<std::uint32_t>(bytes.size()) - out.lead_bytes;
    if (!format.padding_first) bytes.insert(bytes.end(), padding, 0);
    return out;
}

}  // namespace waymark::spe
