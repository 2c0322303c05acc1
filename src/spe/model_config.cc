/// The configuration of a modelled unit: memory, an implementation's choices, the state after reset, and valid
/// combinations.
#include <fmt/format.h>

#include <algorithm>

#include "interval.h"
#include "sample_format.h"
#include "waymark/spe/model.h"

namespace waymark::spe {
namespace {

/// The fullest record of a class, for the maximum length.
Record fullest(OperationClass kind, const State& s) {
    Record r;
    const auto add = [&](RecordColumn column) {
        r.present = static_cast<std::uint16_t>(r.present | 1U << static_cast<unsigned>(column));
    };
    for (const RecordColumn column :
         {RecordColumn::pc, RecordColumn::total_latency, RecordColumn::issue_latency, RecordColumn::events,
          RecordColumn::operation, RecordColumn::context_el1, RecordColumn::timestamp})
        add(column);
    if (s.arch.el2 || s.arch.as_printed) add(RecordColumn::context_el2);
    if (s.regs.pmsidr_el1.pbt) add(RecordColumn::previous_target);
    if (s.regs.pmsidr_el1.altclk != 0) add(RecordColumn::alternate_issue_latency);
    if (kind == OperationClass::branch) add(RecordColumn::branch_target);
    if (kind == OperationClass::load_store) {
        add(RecordColumn::data_virtual);
        add(RecordColumn::data_physical);
        add(RecordColumn::translation_latency);
        if (s.regs.pmsidr_el1.lds) add(RecordColumn::data_source);
    }
    return r;
}

Error unsupported(std::string message) { return {Errc::unsupported, std::move(message), {}}; }

}  // namespace

// ---- memory

std::uint64_t ProfilingBuffer::writable(Address at, std::uint64_t bytes, WriteFault& fault) {
    if (at < base_ || at >= end()) {
        fault = {};
        return 0;
    }
    std::uint64_t room = std::min(bytes, end() - at);
    if (room < bytes) fault = {};
    if (const auto it = faults_.lower_bound(at.value); it != faults_.end() && it->first - at.value < room) {
        room = it->first - at.value;
        fault = it->second;
    }
    return room;
}

void ProfilingBuffer::write(Address at, Bytes bytes) {
    if (at < base_ || at > end() || bytes.size() > end() - at) return;
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(at - base_));
}

Bytes ProfilingBuffer::written(Address pointer) const {
    if (pointer < base_ || pointer > end()) return {};
    return Bytes(bytes_).first(pointer - base_);
}

// ---- configuration

ModelChoices ModelChoices::neoverse() {
    ModelChoices c;
    c.order = {RecordColumn::pc,
               RecordColumn::context_el1,
               RecordColumn::context_el2,
               RecordColumn::operation,
               RecordColumn::events,
               RecordColumn::issue_latency,
               RecordColumn::total_latency,
               RecordColumn::branch_target,
               RecordColumn::data_virtual,
               RecordColumn::translation_latency,
               RecordColumn::data_physical,
               RecordColumn::data_source,
               RecordColumn::alternate_issue_latency,
               RecordColumn::previous_target};
    for (const RecordColumn column :
         {RecordColumn::context_el1, RecordColumn::context_el2, RecordColumn::branch_target, RecordColumn::data_virtual,
          RecordColumn::translation_latency, RecordColumn::data_physical, RecordColumn::data_source})
        c.slots = static_cast<std::uint16_t>(c.slots | 1U << static_cast<unsigned>(column));
    c.event_bytes = 2;
    c.padding_first = true;
    c.not_taken_target = true;
    return c;
}

ModelChoices ModelChoices::hiperf() {
    ModelChoices c;
    c.order = {RecordColumn::pc,
               RecordColumn::issue_latency,
               RecordColumn::total_latency,
               RecordColumn::events,
               RecordColumn::operation,
               RecordColumn::data_source,
               RecordColumn::branch_target,
               RecordColumn::data_virtual,
               RecordColumn::translation_latency,
               RecordColumn::context_el1,
               RecordColumn::context_el2,
               RecordColumn::data_physical,
               RecordColumn::alternate_issue_latency,
               RecordColumn::previous_target};
    for (const RecordColumn column : {RecordColumn::data_source, RecordColumn::branch_target,
                                      RecordColumn::data_virtual, RecordColumn::translation_latency})
        c.slots = static_cast<std::uint16_t>(c.slots | 1U << static_cast<unsigned>(column));
    c.event_bytes = 4;
    c.padding_first = true;
    c.not_taken_target = true;
    return c;
}

ModelConfig ModelConfig::linux_user(Version version, std::uint32_t interval, const ProfilingBuffer& buffer) {
    ModelConfig config;
    State& s = config.state;
    s.arch = Architecture::of(version);
    PmsidrEl1& id = s.regs.pmsidr_el1;
    id.fe = id.ft = id.fl = id.arch_inst = id.lds = id.e_rnd = true;
    id.fn_e = s.arch.fn_e;
    id.fds = s.arch.fds;
    id.max_size = 6;
    id.count_size = 2;
    s.regs.pmbidr_el1.align = 6;
    s.regs.scr_el3.ns = true;
    s.regs.mdcr_el3.nspb = 0b11;
    s.regs.hcr_el2.tge = s.regs.hcr_el2.e2h = true;
    s.regs.pstate.el = EL0;
    s.regs.pmscr_el2.e0hspe = s.regs.pmscr_el2.cx = s.regs.pmscr_el2.ts = true;
    s.regs.pmsirr_el1.interval = std::max(interval >> 8, 1U);
    s.regs.pmsirr_el1.rnd = true;
    s.regs.pmbptr_el1.ptr = buffer.base().value;
    s.regs.pmblimitr_el1.limit = buffer.end().value >> 12;
    s.regs.pmblimitr_el1.e = true;
    return config;
}

std::uint32_t ModelConfig::longest_record_bytes() const {
    const RecordFormat format = RecordFormat::of(choices, state.arch, state.regs.pmbidr_el1.align);
    std::size_t longest = 0;
    for (const OperationClass kind : {OperationClass::other, OperationClass::load_store, OperationClass::branch})
        longest = std::max(longest, format_record(fullest(kind, state), format).bytes.size());
    return static_cast<std::uint32_t>(longest);
}

Status ModelConfig::check() const {
    const PmsidrEl1& id = state.regs.pmsidr_el1;
    const Architecture& arch = state.arch;
    if (arch.version == Version::none) return unsupported("there is no unit: the version is none");
    if (id.max_size < 6 || id.max_size > 11)
        return unsupported(
            fmt::format("PMSIDR_EL1.MaxSize is {}; records of 2^6 to 2^11 bytes are permitted", id.max_size));
    if (id.count_size != 2 && id.count_size != 3)
        return unsupported(
            fmt::format("PMSIDR_EL1.CountSize is {}; valid are 2 (12 bits) and 3 (16 bits)", id.count_size));
    if (id.format != 0) return unsupported(fmt::format("PMSIDR_EL1.Format is {}; there is only format 0", id.format));
    if (state.regs.pmbidr_el1.align > id.max_size)
        return unsupported(fmt::format("PMBIDR_EL1.Align is {}, more than PMSIDR_EL1.MaxSize, which is {}",
                                       state.regs.pmbidr_el1.align, id.max_size));
    struct Feature {
        std::string_view field;
        bool has, arch;
    };
    for (const Feature& f : {Feature{"FnE", id.fn_e, arch.fn_e}, Feature{"FDS", id.fds, arch.fds},
                             Feature{"EFT", id.eft, arch.eft}, Feature{"SME", id.sme, arch.sme}})
        if (f.has != f.arch)
            return unsupported(
                fmt::format("PMSIDR_EL1.{} is {:d}, but in this version it must be {:d}", f.field, f.has, f.arch));
    if (arch.version < Version::v1_2 && (id.pbt || id.fn_e)) return unsupported("PMSIDR_EL1.PBT and FnE need v1.2");
    if (arch.version < Version::v1_4 && id.fds) return unsupported("PMSIDR_EL1.FDS needs v1.4");

    const auto one_of = [](std::uint8_t value, std::initializer_list<std::uint8_t> list) {
        return std::find(list.begin(), list.end(), value) != list.end();
    };
    if (!one_of(choices.event_bytes, {0, 1, 2, 4, 8}))
        return unsupported(fmt::format("event_bytes is {}; it may be 0, 1, 2, 4 or 8", choices.event_bytes));
    if (!one_of(choices.data_source_bytes, {1, 2}))
        return unsupported(fmt::format("data_source_bytes is {}; it may be 1 or 2", choices.data_source_bytes));
    if (choices.in_flight == 0) return unsupported("in_flight is 0; a unit tracks at least one sample");
    if (choices.counter_denominator == 0) return unsupported("counter_denominator is 0");
    unsigned columns = 0;
    for (const RecordColumn column : choices.order) columns |= 1U << static_cast<unsigned>(column);
    if (columns != (1U << choices.order.size()) - 1)
        return unsupported("order must contain every packet except the terminator, each once");
    if (const std::uint32_t longest = longest_record_bytes(); longest > 1U << id.max_size)
        return unsupported(
            fmt::format("a record can have {} bytes, but PMSIDR_EL1.MaxSize allows {}", longest, 1U << id.max_size));
    return Nothing{};
}

void reset(State& state, ResetValues values, std::uint64_t seed) {
    RandomSource random(seed);
    Registers& regs = state.regs;
    Registers::for_each(regs, [&]<class Register>(Register& r) {
        const std::string_view name = Register::name;
        if (!name.starts_with("PMS") && !name.starts_with("PMB")) return;
        if (name == PmsidrEl1::name || name == PmbidrEl1::name) return;
        std::uint64_t value = values == ResetValues::zero   ? 0
                              : values == ResetValues::ones ? ~std::uint64_t{0}
                                                            : random();
        for (const Field& field : fields_of(r))
            if (field.reserved()) value &= ~((~std::uint64_t{0} >> (64 - field.width())) << field.lo);
        r = from_value<Register>(value);
    });
    regs.pmblimitr_el1.e = false;
    if (!state.arch.el3) (state.arch.el2 ? regs.pmscr_el2.ee : regs.pmscr_el1.ee) = 0b00;
}

}  // namespace waymark::spe
