#include "waymark/spe/record.h"

#include <fmt/format.h>

namespace waymark::spe {

std::string_view name(RecordColumn column) {
    constexpr std::array<std::string_view, column_count> names{"pc",
                                                               "branch_target",
                                                               "data_virtual",
                                                               "data_physical",
                                                               "previous_target",
                                                               "total_latency",
                                                               "issue_latency",
                                                               "translation_latency",
                                                               "alternate_issue_latency",
                                                               "events",
                                                               "operation",
                                                               "data_source",
                                                               "context_el1",
                                                               "context_el2",
                                                               "timestamp"};
    return names[static_cast<std::size_t>(column)];
}

std::string_view name(Defect defect) {
    constexpr std::array<std::string_view, defect_count> names{"damaged",      "no_pc",   "unnamed",  "repeated",
                                                               "inconsistent", "aligned", "oversized"};
    return names[static_cast<std::size_t>(defect)];
}

std::string_view name(Security security) {
    constexpr std::array<std::string_view, 4> names{"secure", "non-secure", "reserved", "realm"};
    return names[static_cast<std::size_t>(security) & 3U];
}

Record RecordColumns::row(std::size_t i) const {
    Record r;
    r.first = {first[i]};
    r.bytes = bytes[i];
    r.present = present[i];
    r.defects = defects[i];
    r.operation_class = static_cast<OperationClass>(operation_class[i]);
    r.operation_type = operation_type[i];
    r.pc = pc[i];
    r.branch_target = branch_target[i];
    r.data_virtual = data_virtual[i];
    r.data_physical = data_physical[i];
    r.previous_target = previous_target[i];
    r.events = events[i];
    r.timestamp = timestamp[i];
    r.context_el1 = context_el1[i];
    r.context_el2 = context_el2[i];
    r.total_latency = total_latency[i];
    r.issue_latency = issue_latency[i];
    r.translation_latency = translation_latency[i];
    r.alternate_issue_latency = alternate_issue_latency[i];
    r.data_source = data_source[i];
    return r;
}

void RecordColumns::push(const Record& r) {
    const std::size_t i = size++;
    first[i] = r.first.value;
    bytes[i] = r.bytes;
    present[i] = r.present;
    defects[i] = r.defects;
    operation_class[i] = static_cast<std::uint8_t>(r.operation_class);
    operation_type[i] = r.operation_type;
    pc[i] = r.pc;
    branch_target[i] = r.branch_target;
    data_virtual[i] = r.data_virtual;
    data_physical[i] = r.data_physical;
    previous_target[i] = r.previous_target;
    events[i] = r.events;
    timestamp[i] = r.timestamp;
    context_el1[i] = r.context_el1;
    context_el2[i] = r.context_el2;
    total_latency[i] = r.total_latency;
    issue_latency[i] = r.issue_latency;
    translation_latency[i] = r.translation_latency;
    alternate_issue_latency[i] = r.alternate_issue_latency;
    data_source[i] = r.data_source;
}

std::string_view event_name(unsigned bit) {
    switch (bit) {
        case 0: return "exception";
        case 1: return "retired";
        case 2: return "l1d_access";
        case 3: return "l1d_miss";
        case 4: return "tlb_access";
        case 5: return "tlb_walk";
        case 6: return "not_taken";
        case 7: return "mispredict";
        case 8: return "llc_access";
        case 9: return "llc_miss";
        case 10: return "remote";
        case 11: return "misaligned";
        case 16: return "transactional";
        case 17: return "partial_pred";
        case 18: return "empty_pred";
        case 19: return "l2d_access";
        case 20: return "l2d_miss";
        case 21: return "data_modified";
        case 22: return "recently_fetched";
        case 23: return "snooped";
        case 24: return "streaming";
        case 25: return "smcu";
        default: return {};
    }
}

std::string events_text(std::uint64_t events) {
    std::string out;
    for (unsigned bit = 0; bit < 64; ++bit) {
        if ((events >> bit & 1U) == 0) continue;
        if (!out.empty()) out += ':';
        if (const std::string_view known = event_name(bit); !known.empty())
            out += known;
        else
            out += fmt::format("event{}", bit);
    }
    return out;
}

namespace {

/// 0 EEE 1 P F 0, or with bit 7 the SME form 1 TTT 1 T F 0.
Operation other_operation(unsigned type) {
    Operation o;
    const auto bit = [&](unsigned n) { return (type >> n & 1U) != 0; };
    if ((type & 0xf8U) == 0) {
        o.conditional = bit(0);
        o.floating_point = bit(1);
        o.simd = bit(2);
    } else if ((type & 0x89U) == 0x08) {
        o.kind = Operation::Kind::sve;
        o.length_code = static_cast<std::uint8_t>(type >> 4 & 7U);
        o.predicated = bit(2);
        o.floating_point = bit(1);
    } else if ((type & 0x89U) == 0x88) {
        o.kind = Operation::Kind::sme;
        o.length_code = static_cast<std::uint8_t>((type >> 4 & 7U) << 1 | (type >> 2 & 1U));
        o.floating_point = bit(1);
    } else {
        o.kind = Operation::Kind::reserved;
    }
    return o;
}

Operation load_store_operation(unsigned type) {
    using Kind = Operation::Kind;
    Operation o;
    const auto bit = [&](unsigned n) { return (type >> n & 1U) != 0; };
    o.store = bit(0);
    o.load = !o.store;
    if (const unsigned pattern = type & 0xfeU; pattern == 0x00)
        o.kind = Kind::general;
    else if (pattern == 0x04)
        o.kind = Kind::simd_fp;
    else if (pattern == 0x10)
        o.kind = Kind::unspecified;
    else if (pattern == 0x14)
        o.kind = Kind::allocation_tag;
    else if (pattern == 0x30)
        o.kind = Kind::system_register;
    else if (pattern == 0x20)
        o.kind = Kind::memory_copy;
    else if (type == 0x25)
        o.kind = Kind::memory_set;
    else if ((type & 0xfaU) == 0x40) {
        o.kind = Kind::control_stack;
        o.common = bit(2);
    } else if ((type & 0xe2U) == 0x02) {
        o.kind = Kind::extended;
        o.acquire_release = bit(4);
        o.exclusive = bit(3);
        o.atomic = bit(2);
    } else if ((type & 0x0aU) == 0x08) {
        o.kind = Kind::sve_memory;
        o.gather_scatter = bit(7);
        o.length_code = static_cast<std::uint8_t>(type >> 4 & 7U);
        o.predicated = bit(2);
    } else {
        o.kind = Kind::reserved;
    }
    return o;
}

Operation branch_operation(unsigned type) {
    Operation o;
    o.kind = (type & 0xe0U) == 0 ? Operation::Kind::branch : Operation::Kind::reserved;
    o.conditional = (type & 1U) != 0;
    o.indirect = (type & 2U) != 0;
    o.control_stack = (type & 4U) != 0;
    o.call = static_cast<Operation::Call>(type >> 3 & 3U);
    return o;
}

}  // namespace

Operation operation(OperationClass kind, std::uint8_t type) {
    switch (kind) {
        case OperationClass::other: return other_operation(type);
        case OperationClass::load_store: return load_store_operation(type);
        case OperationClass::branch: return branch_operation(type);
        case OperationClass::reserved: break;
    }
    Operation o;
    o.kind = Operation::Kind::reserved;
    return o;
}

std::uint32_t Operation::length_bits() const {
    if (kind == Kind::sme) return length_code <= 11 ? 128U << length_code : 0;
    if (kind == Kind::sve || kind == Kind::sve_memory) return length_code <= 6 ? 32U << length_code : 0;
    return 0;
}

std::string operation_text(const Operation& o) {
    using Kind = Operation::Kind;
    std::string out;
    const auto word = [&](bool yes, std::string_view text) {
        if (!yes) return;
        if (!out.empty()) out += ' ';
        out += text;
    };
    word(o.load, "load");
    word(o.store, "store");
    switch (o.kind) {
        case Kind::other: word(true, "other"); break;
        case Kind::sve: word(true, "sve"); break;
        case Kind::sme: word(true, "sme"); break;
        case Kind::general: word(true, "general"); break;
        case Kind::simd_fp: word(true, "simd-fp"); break;
        case Kind::unspecified: word(true, "unspecified"); break;
        case Kind::allocation_tag: word(true, "allocation-tag"); break;
        case Kind::system_register: word(true, "system-register"); break;
        case Kind::memory_copy: word(true, "copy"); break;
        case Kind::memory_set: word(true, "set"); break;
        case Kind::control_stack: word(true, o.common ? "gcs common" : "gcs"); break;
        case Kind::extended: word(!o.acquire_release && !o.exclusive && !o.atomic, "extended"); break;
        case Kind::sve_memory: word(true, "sve"); break;
        case Kind::branch: word(true, "branch"); break;
        case Kind::reserved: word(true, "reserved"); break;
    }
    word(o.atomic, "atomic");
    word(o.exclusive, "exclusive");
    word(o.acquire_release, "acquire-release");
    word(o.gather_scatter, "gather-scatter");
    word(o.conditional, "conditional");
    word(o.indirect, "indirect");
    word(o.call == Operation::Call::call, "call");
    word(o.call == Operation::Call::procedure_return, "return");
    word(o.call == Operation::Call::neither, "no-call-or-return");
    word(o.control_stack, "gcs");
    word(o.floating_point, "fp");
    word(o.simd, "simd");
    word(o.predicated, "predicated");
    if (const std::uint32_t bits = o.length_bits(); bits != 0) word(true, fmt::format("{}-bit", bits));
    return out;
}

namespace {

struct Core {
    std::uint8_t implementer;
    std::uint16_t part;
};
struct Meaning {
    std::uint8_t code;
    std::string_view name;
};

constexpr Core arm_cores[] = {{0x41, 0xd0c}, {0x41, 0xd49}, {0x41, 0xd40}, {0x41, 0xd4f}, {0x41, 0xd84}, {0x41, 0xd4b},
                              {0x41, 0xd4d}, {0x41, 0xd81}, {0x41, 0xd89}, {0x41, 0xd87}, {0x41, 0xd44}, {0x41, 0xd4c},
                              {0x41, 0xd4e}, {0x41, 0xd82}, {0x41, 0xd85}, {0x4e, 0x010}};
constexpr Meaning arm_codes[] = {{0x0, "L1D"},           {0x8, "L2D"},          {0x9, "peer_core"},
                                 {0xa, "local_cluster"}, {0xb, "system_cache"}, {0xc, "peer_cluster"},
                                 {0xd, "remote"},        {0xe, "DRAM"}};
constexpr Meaning ampere_one_a_codes[] = {{0x0, "local_chip_cache_or_device"},
                                          {0x3, "system_cache"},
                                          {0x5, "remote"},
                                          {0x7, "DRAM"},
                                          {0x8, "L1D"},
                                          {0x9, "L2D"}};
constexpr Meaning hip12_codes[] = {{0, "peer_cpu"},
                                   {1, "peer_cpu_modified"},
                                   {2, "L3"},
                                   {3, "L3_modified"},
                                   {4, "peer_cluster"},
                                   {5, "peer_cluster_modified"},
                                   {6, "remote_socket"},
                                   {7, "remote_socket_modified"},
                                   {8, "local_memory"},
                                   {9, "remote_memory"},
                                   {13, "non_cacheable"},
                                   {16, "L2D"},
                                   {17, "L2D_modified"},
                                   {18, "L1D"}};

std::string_view find(std::span<const Meaning> codes, std::uint32_t code) {
    for (const Meaning& m : codes)
        if (m.code == code) return m.name;
    return {};
}

}  // namespace

std::string_view data_source_name(std::uint32_t midr, std::uint32_t code) {
    const std::uint32_t implementer = midr >> 24, part = midr >> 4 & 0xfffU;
    for (const Core& core : arm_cores)
        if (core.implementer == implementer && core.part == part) return find(arm_codes, code);
    if (implementer == 0xc0 && part == 0xac4) return find(ampere_one_a_codes, code);
    if (implementer == 0x48 && part == 0xd06) return find(hip12_codes, code);
    return {};
}

}  // namespace waymark::spe
