#include "waymark/listing/dpu_elements.h"

#include <fmt/ranges.h>

#include "line.h"
#include "row.h"
#include "waymark/dpu/registers.h"

namespace waymark::listing {

namespace {

using Names = std::array<std::string, dpu::counter_count>;

std::string place(const analysis::DpuCode& code, std::uint32_t address, Offset offset) {
    const auto f = code.function(code.at(address, offset));
    if (f.name.empty()) return fmt::format("{:#010x}", address);
    return f.address == address ? fmt::format("{:#010x} <{}>", address, f.name)
                                : fmt::format("{:#010x} <{}+{:#x}>", address, f.name, address - f.address);
}
std::string context_of(const dpu::Element& e) {
    const bool privilege = e.has(dpu::Element::privilege_known), id = e.has(dpu::Element::id_known);
    if (!privilege && !id) return {};
    return fmt::format("{}{}", privilege ? e.context.supervisor ? "supervisor " : "user " : "task ",
                       id ? std::to_string(e.context.id) : "?");
}
std::string what(const analysis::DpuCode& code, const dpu::Element& e) {
    using Kind = dpu::ElementKind;
    switch (e.kind) {
        case Kind::task_switch:
        case Kind::flow:
        case Kind::pair: return fmt::format("{} → {}", place(code, e.from, e.offset), place(code, e.to, e.offset));
        case Kind::sample:
        case Kind::context:
        case Kind::held:
        case Kind::enabled:
        case Kind::closed: return {};
        case Kind::pc: return place(code, e.from, e.offset);
        case Kind::short_loop:
        case Kind::long_loop:
            return fmt::format("ends at {}, jumped back {}", place(code, e.from, e.offset), times(e.value));
        case Kind::user_data:
        case Kind::user_raw: return fmt::format("{:#010x}", e.value);
        case Kind::lost: return fmt::format("{} lost", counted(e.value, "entry", "entries"));
        case Kind::gap: return fmt::format("{}: {}", counted(e.value, "byte"), name(e.reason));
    }
    return {};
}
/// The columns; `r` is null if an element has no reading. JSON has more members of a reading.
template <class Row>
void write_row(Row out, const dpu::Element& e, const dpu::Reading* r, const Names& names) {
    using Kind = dpu::ElementKind;
    const bool from = e.kind != Kind::sample && e.kind <= Kind::long_loop, to = from && e.kind <= Kind::pair;
    const bool value = !e.has_reading() && e.kind != Kind::pair && e.kind != Kind::pc && e.kind != Kind::context &&
                       e.kind != Kind::closed && e.kind != Kind::held && e.kind != Kind::enabled;
    out.offset("offset", e.offset.value);
    out.word("element", true, name(e.kind));
    out.word("context", true, context_of(e));
    if constexpr (Row::json) {
        out.number("from", from, e.from);
        out.number("to", to, e.to);
    } else {
        out.address("from", from, e.from);
        out.address("to", to, e.to);
    }
    out.number("value", value, e.value);
    out.word("reason", e.kind == Kind::gap, name(e.reason));
    if constexpr (!Row::json) {
        for (unsigned c = 0; c < dpu::counter_count; ++c)
            out.number(names[c], r != nullptr, r == nullptr ? 0 : r->deltas[c]);
    } else if (r != nullptr) {
        out.object("values", fmt::format("[{}]", fmt::join(r->values, ",")));
        if (!r->has(dpu::Reading::first)) out.object("deltas", fmt::format("[{}]", fmt::join(r->deltas, ",")));
        out.flag("lossy", true, r->has(dpu::Reading::lossy));
    }
    out.end();
}

void put_text(TextSink& out, const analysis::DpuCode& code, const dpu::Element& e, const dpu::Reading* r,
              const Names& names) {
    std::string line =
        fmt::format("{:>#10x}  {:<12} {:<14} {}", e.offset.value, name(e.kind), context_of(e), what(code, e));
    if (r != nullptr) {
        for (unsigned c = 0; c < dpu::counter_count; ++c)
            if (names[c] != "–") line += fmt::format("  {} {}", names[c], grouped(r->deltas[c]));
        if (r->has(dpu::Reading::first)) line += "  (first: nothing to compare with)";
        if (r->has(dpu::Reading::lossy)) line += "  (trace was lost in between)";
    }
    put_line(out, "{}", trimmed(std::move(line)));
}

}  // namespace

DpuListing::DpuListing(TextSink& out, LineFormat format, const doctor::DpuInput& input, const analysis::DpuCode& code)
    : out_(out), format_(format), code_(code) {
    for (unsigned c = 0; c < dpu::counter_count; ++c) names_[c] = input.event_name(c);
    if (format == LineFormat::tsv) put_header(out, [&](HeaderRow row) { write_row(row, {}, nullptr, names_); });
    if (format != LineFormat::text) return;
    put_line(out, "# {}", pipeline::trace_file(input.capture(), input.trace()).string());
    put_line(out, "# {}", dpu::layout_note);
    put_line(out, "# {:>8}  {:<12} {:<14} what", "offset", "element", "context");
}

void DpuListing::consume(const dpu::Batch& batch) {
    RowText text;
    NoSame none;
    for (const dpu::Element& e : batch.elements) {
        const dpu::Reading* const reading = e.has_reading() ? &batch.readings[e.value] : nullptr;
        if (format_ == LineFormat::text)
            put_text(out_, code_, e, reading, names_);
        else if (format_ == LineFormat::tsv)
            write_row(TsvRow(text, nullptr, none), e, reading, names_);
        else
            write_row(JsonRow(text, none), e, reading, names_);
    }
    out_.write(text.view());
}

}  // namespace waymark::listing
