#include "support/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

namespace waymark::synthetic {
namespace {

std::uint64_t number(const std::optional<std::uint32_t>& value) { return value ? *value : Element::absent; }
std::uint64_t number(const std::optional<Address>& value) { return value ? value->value : Element::absent; }
std::uint64_t number(bool value) { return value ? 1 : 0; }

void fill(Element& e, const Gap& gap) {
    e.kind = Kind::gap;
    e.a = gap.first.value;
    e.b = gap.end.value;
    e.c = static_cast<std::uint64_t>(gap.reason);
}
void fill(Element& e, const flow::TraceOn& on) {
    e.kind = Kind::trace_on;
    e.cycles = on.cycles;
    e.a = static_cast<std::uint64_t>(on.reason);
}
void fill(Element& e, const flow::Context& context) {
    e.kind = Kind::context;
    e.a = number(context.ns) | number(context.nse) << 1 | number(context.aarch64) << 2;
    e.b = number(context.hyp) | (context.el ? std::uint64_t{*context.el} + 1 : 0) << 8;
    e.c = number(context.context_id);
    e.d = number(context.vmid);
}
void fill(Element& e, const flow::Timestamp& timestamp) {
    e.kind = Kind::timestamp;
    e.cycles = timestamp.cycles;
    e.a = timestamp.value;
    e.b = number(timestamp.known);
    e.c = number(timestamp.frequency_changed);
}
void fill(Element& e, const flow::Exception& exception) {
    e.kind = Kind::exception;
    e.cycles = exception.cycles;
    e.a = exception.type->number;
    e.b = number(exception.preferred_return);
    e.c = number(exception.vector);
}
void fill(Element& e, const flow::ExceptionReturn&) { e.kind = Kind::exception_return; }
void fill(Element& e, const flow::NoMemory& no_memory) {
    e.kind = Kind::no_memory;
    e.a = no_memory.address.value;
}
void fill(Element& e, const flow::Trigger&) { e.kind = Kind::trigger; }
void fill(Element& e, const flow::Cycles& cycles) {
    e.kind = Kind::cycles;
    e.a = cycles.cycles ? *cycles.cycles : Element::absent;
    if (cycles.cycles) e.cycles = *cycles.cycles;
    e.b = static_cast<std::uint64_t>(cycles.of);
}
void fill(Element& e, const flow::Inconsistency& inconsistency) {
    e.kind = Kind::inconsistency;
    e.a = static_cast<std::uint64_t>(inconsistency.conflict);
    e.b = inconsistency.found.value;
    e.c = inconsistency.expected.value;
}
void fill(Element& e, const flow::Atoms& atoms) {
    e.kind = Kind::atoms;
    e.a = atoms.taken;
    e.b = atoms.not_taken;
}
void fill(Element& e, const flow::Reached& reached) {
    e.kind = Kind::reached;
    e.a = reached.address.value;
}
void fill(Element& e, const flow::Untraced& untraced) {
    e.kind = Kind::untraced;
    e.a = untraced.from.value;
    e.b = untraced.to.value;
    e.c = untraced.instructions;
    e.d = number(untraced.from_known);
}
void fill(Element& e, const flow::Mark& mark) {
    e.kind = Kind::mark;
    e.a = static_cast<std::uint64_t>(mark.kind);
    e.b = mark.value;
    e.c = mark.level;
}

}  // namespace

Element range_element(std::uint64_t offset, const flow::Block& block, bool taken, std::uint32_t cycles) {
    Element e;
    e.kind = Kind::range;
    e.offset = offset;
    e.block = block;
    e.taken = taken;
    e.cycles = cycles;
    return e;
}

Element event_element(std::uint64_t offset, const flow::What& what) {
    Element e;
    e.offset = offset;
    std::visit([&](const auto& w) { fill(e, w); }, what);
    return e;
}

std::string_view name(Kind kind) {
    constexpr std::string_view names[] = {
        "range",     "gap",     "trace_on", "context",       "timestamp", "exception", "exception_return",
        "no_memory", "trigger", "cycles",   "inconsistency", "atoms",     "reached",   "untraced",
        "mark"};
    return names[static_cast<unsigned>(kind)];
}

std::string to_text(const Element& e) {
    std::string out = fmt::format("{:>8} {}", e.offset, name(e.kind));
    if (e.kind == Kind::range)
        out += fmt::format(" {:#x}..{:#x} n={} {} end={} target={:#x} last={} flags={} section={} {}", e.block.start,
                           e.block.start + e.block.bytes, e.block.instructions, isa::name(e.block.isa),
                           static_cast<unsigned>(e.block.end), e.block.target, e.block.last_bytes, e.block.flags,
                           e.block.section, e.taken ? 'E' : 'N');
    else
        for (const std::uint64_t field : {e.a, e.b, e.c, e.d})
            out += field == Element::absent ? " -" : fmt::format(" {:#x}", field);
    if (e.cycles != flow::no_cycles) out += fmt::format(" cycles={}", e.cycles);
    return out;
}

std::vector<Element> events_of(std::vector<Element> elements) {
    std::erase_if(elements, [](const Element& e) { return e.kind == Kind::range; });
    return elements;
}

std::string difference(const std::vector<Element>& found, const std::vector<Element>& expected,
                       std::string_view found_name, std::string_view expected_name) {
    const auto [f, x] = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
    if (f == found.end() && x == expected.end()) return {};
    const auto at = static_cast<std::size_t>(f - found.begin());
    std::string out = fmt::format("element {} of {} ({}) and {} ({}):\n", at, found.size(), found_name, expected.size(),
                                  expected_name);
    for (std::size_t i = at - std::min<std::size_t>(at, 4); i < at; ++i)
        out += "      both: " + to_text(found[i]) + "\n";
    for (std::size_t i = at; i < std::min(at + 4, found.size()); ++i)
        out += fmt::format("{:>10}: {}\n", found_name, to_text(found[i]));
    for (std::size_t i = at; i < std::min(at + 4, expected.size()); ++i)
        out += fmt::format("{:>10}: {}\n", expected_name, to_text(expected[i]));
    return out;
}

void ElementSink::consume(const flow::Batch& batch) {
    flow::in_order(
        batch,
        [&](const flow::Block& block, const flow::Range& range) {
            elements_.push_back(range_element((batch.base + range.offset).value, block, range.taken(), range.cycles));
        },
        [&](const flow::Event& event) { elements_.push_back(event_element(event.offset.value, event.what)); });
}

}  // namespace waymark::synthetic
