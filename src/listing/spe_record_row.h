/// A record of the Statistical Profiling Extension as a row: its cells, and its origin.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "line.h"
#include "row.h"
#include "waymark/analysis/attribution.h"
#include "waymark/analysis/spe_tables.h"
#include "waymark/spe/decoder.h"

namespace waymark::listing {

namespace perf = capture::perf;
using SpeColumn = spe::RecordColumn;
using spe::OperationClass;
using OperationKind = spe::Operation::Kind;

/// The origin of a stream's records, and known facts about its CPU.
struct StreamContext {
    const perf::Stream* stream = nullptr;
    bool first = false;  ///< of the capture
    std::uint32_t cpu = perf::nobody, tid = perf::nobody, midr{};
    spe::Totals totals{};  ///< totals when it has been decoded
    struct Part {
        std::uint64_t stream{}, file{}, bytes{};  // offsets of its first byte
    };
    std::vector<Part> parts{};

    /// `near`: the part that contains a nearby offset, or null; it is set to the part with this offset.
    [[nodiscard]] std::uint64_t file_offset(Offset at, const Part*& near) const {
        if (near == nullptr || at.value - near->stream >= near->bytes) {
            const auto next = std::upper_bound(parts.begin(), parts.end(), at.value,
                                               [](std::uint64_t offset, const Part& p) { return offset < p.stream; });
            if (next == parts.begin()) return at.value;
            near = &*(next - 1);
        }
        return near->file + (at.value - near->stream);
    }
};

/// A record, its index in its columns, and the capture's facts about it.
struct RecordRow {
    const spe::RecordColumns& c;
    std::size_t i;
    std::uint64_t offset{};
    std::optional<std::uint64_t> time_ns{};
    analysis::Attribution::Answer who{};
    const perf::Mapping* mapping = nullptr;

    [[nodiscard]] bool has(SpeColumn column) const { return (c.present[i] >> static_cast<unsigned>(column) & 1U) != 0; }
    [[nodiscard]] OperationClass operation_class() const { return static_cast<OperationClass>(c.operation_class[i]); }
    [[nodiscard]] spe::Operation operation() const { return spe::operation(operation_class(), c.operation_type[i]); }
    [[nodiscard]] spe::ProgramAddress pc() const { return spe::program_address(c.pc[i]); }
};

inline std::string_view operation_word(const RecordRow& row) {
    if (!row.has(SpeColumn::operation)) return "";
    switch (row.operation_class()) {
        case OperationClass::load_store: return row.operation().store ? "ST" : "LD";
        case OperationClass::branch: return "B";
        default: return "OTHER";
    }
}
inline std::string_view subclass(OperationKind kind) {
    switch (kind) {
        case OperationKind::sve:
        case OperationKind::sve_memory: return "SVE";
        case OperationKind::sme: return "SME";
        case OperationKind::general: return "GP-REG";
        case OperationKind::simd_fp: return "SIMD-FP";
        case OperationKind::unspecified: return "UNSPEC-REG";
        case OperationKind::allocation_tag: return "MTE-TAG";
        case OperationKind::system_register: return "NV-SYSREG";
        case OperationKind::memory_copy: return "MEMCPY";
        case OperationKind::memory_set: return "MEMSET";
        case OperationKind::control_stack: return "GCS";
        case OperationKind::extended: return "EXTENDED";
        case OperationKind::reserved: return "RESERVED";
        case OperationKind::other:
        case OperationKind::branch: return "";
    }
    return "";
}
inline std::string defects_text(unsigned defects) {
    std::string out;
    for (unsigned d = 0; d < spe::defect_count; ++d)
        if ((defects >> d & 1U) != 0) out += (out.empty() ? "" : ":") + std::string(name(static_cast<spe::Defect>(d)));
    return out;
}
inline std::string plain_hex(std::uint64_t value) { return fmt::format("{:#x}", value); }

/// All values that affect the cells written with same(), besides the stream.
inline SameKey same_key(const RecordRow& r) {
    const auto pair = [](std::uint64_t high, std::uint32_t low) { return high << 32 | low; };
    const spe::RecordColumns& c = r.c;
    const std::size_t i = r.i;
    return {c.pc[i],
            c.events[i],
            c.branch_target[i],
            c.previous_target[i],
            pair(c.context_el1[i], c.context_el2[i]),
            pair(r.who.pid, r.who.tid),
            pair(r.who.mapping, static_cast<std::uint32_t>(c.present[i]) << 16 | c.data_source[i]),
            (c.data_virtual[i] >> 56) << 32 | (c.data_physical[i] >> 56) << 24 |
                static_cast<std::uint32_t>(c.operation_class[i] << 16 | c.operation_type[i] << 8 | c.defects[i]),
            reinterpret_cast<std::uintptr_t>(r.who.name.data())};
}

/// Writes the columns of Arm's spe_parser (docs/spec/spe.md, 6.2), all in one table, then further columns. Cells inside
/// same() are equal for rows with the same same_key().
template <class Writer>
WM_INLINE void write_row(Writer out, const RecordRow& r, const StreamContext& s) {
    const spe::RecordColumns& c = r.c;
    const std::size_t i = r.i;
    const bool has_pc = r.has(SpeColumn::pc), has_operation = r.has(SpeColumn::operation),
               has_events = r.has(SpeColumn::events);
    const bool has_virtual = r.has(SpeColumn::data_virtual), has_physical = r.has(SpeColumn::data_physical);
    const bool is_branch = has_operation && r.operation_class() == OperationClass::branch;
    out.same(0, [&](auto& w) {
        const spe::Operation o = r.operation();
        const bool is_memory = has_operation && r.operation_class() == OperationClass::load_store;
        const bool is_vector = o.kind == OperationKind::sve || o.kind == OperationKind::sve_memory;
        w.number("cpu", s.cpu != perf::nobody, s.cpu);
        w.word("op", true, operation_word(r));
        w.hex("pc", has_pc, r.pc().address.value);
        w.number("el", has_pc, r.pc().exception_level);
        w.flag("atomic", is_memory, o.atomic);
        w.flag("excl", is_memory, o.exclusive);
        w.flag("ar", is_memory, o.acquire_release);
        w.word("subclass", has_operation, subclass(o.kind));
        w.number("sve_evl", is_vector && o.length_bits() != 0, o.length_bits());
        w.flag("sve_pred", is_vector, o.predicated);
        w.flag("sve_sg", o.kind == OperationKind::sve_memory, o.gather_scatter);
        w.flag("sve_fp", o.kind == OperationKind::sve, o.floating_point);
        w.flag("condition", is_branch || o.kind == OperationKind::other, o.conditional);
        w.flag("indirect", is_branch, o.indirect);
        w.word("event", has_events, spe::events_text(c.events[i]));
    });
    out.number("issue_lat", r.has(SpeColumn::issue_latency), c.issue_latency[i]);
    out.number("total_lat", r.has(SpeColumn::total_latency), c.total_latency[i]);
    out.hex("vaddr", has_virtual, spe::data_address(c.data_virtual[i]).address.value);
    out.number("xlat_lat", r.has(SpeColumn::translation_latency), c.translation_latency[i]);
    out.hex("paddr", has_physical, spe::physical_address(c.data_physical[i]).address.value);
    out.same(1, [&](auto& w) {
        const spe::ProgramAddress target = spe::program_address(c.branch_target[i]);
        const spe::ProgramAddress previous = spe::program_address(c.previous_target[i]);
        const bool el2 = r.has(SpeColumn::context_el2);
        w.word("data_source", r.has(SpeColumn::data_source), analysis::source_text(s.midr, c.data_source[i]));
        w.hex("br_tgt", r.has(SpeColumn::branch_target), target.address.value);
        w.number("br_tgt_lvl", r.has(SpeColumn::branch_target), target.exception_level);
        w.hex("pbt", r.has(SpeColumn::previous_target), previous.address.value);
        w.number("pbt_lvl", r.has(SpeColumn::previous_target), previous.exception_level);
        w.hex("context", el2 || r.has(SpeColumn::context_el1), el2 ? c.context_el2[i] : c.context_el1[i]);
    });
    out.rising("ts", r.has(SpeColumn::timestamp), c.timestamp[i]);

    out.hex("offset", true, r.offset);
    out.number("bytes", true, c.bytes[i]);
    out.rising("time_ns", r.time_ns.has_value(), r.time_ns.value_or(0));
    out.same(2, [&](auto& w) {
        const perf::Mapping* const m = r.mapping;
        w.number("pid", r.who.pid != perf::nobody, r.who.pid);
        w.number("tid", r.who.tid != perf::nobody, r.who.tid);
        w.text("comm", true, r.who.name);
        w.text("dso", m != nullptr, m == nullptr ? std::string_view() : m->file);
        w.hex("dso_offset", m != nullptr, m == nullptr ? 0 : r.pc().address.value - m->address.value + m->file_offset);
        w.word("security", has_pc, name(r.pc().security));
    });
    const bool both =
        r.has(SpeColumn::total_latency) && r.has(SpeColumn::issue_latency) && c.total_latency[i] >= c.issue_latency[i];
    out.number("exec_lat", both, static_cast<std::uint64_t>(c.total_latency[i] - c.issue_latency[i]));
    out.number("alt_issue_lat", r.has(SpeColumn::alternate_issue_latency), c.alternate_issue_latency[i]);
    out.same(3, [&](auto& w) {
        constexpr std::array<std::string_view, 4> calls{"", "call", "return", "neither"};
        const spe::Operation o = r.operation();
        const spe::PhysicalAddress physical = spe::physical_address(c.data_physical[i]);
        w.hex("event_bits", has_events, c.events[i]);
        w.hex("op_type", has_operation, c.operation_type[i]);
        w.word("operation", has_operation, spe::operation_text(o));
        w.word("call", is_branch, calls[static_cast<std::size_t>(o.call)]);
        w.hex("tag", has_virtual, c.data_virtual[i] >> 56);
        w.word("paddr_security", has_physical, name(physical.security));
        w.number("paddr_tag", has_physical, physical.tag);
        w.flag("tag_checked", has_physical, physical.tag_checked);
        w.number("data_source_code", r.has(SpeColumn::data_source), c.data_source[i]);
        w.number("context_el1", r.has(SpeColumn::context_el1), c.context_el1[i]);
        w.number("context_el2", r.has(SpeColumn::context_el2), c.context_el2[i]);
        w.word("defects", c.defects[i] != 0, defects_text(c.defects[i]));
    });
    out.end();
}

}  // namespace waymark::listing
