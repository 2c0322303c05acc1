#include "stm_unit.h"

#include <fmt/format.h>

#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/record_m/stores.h"
#include "waymark/stm/registers.h"

namespace waymark::record {

namespace {

using protocol::Message;
using protocol::MessageKind;

/// The master of Non-secure writes of the first core, as Arm's platforms number them.
constexpr std::uint32_t core_master = 64;
constexpr std::size_t bytes_between_syncs = 1024;

// The meaning of an address within the 256 bytes of a channel (docs/spec/stm.md, 5).
constexpr std::uint32_t channel_bytes = 256, stm_ports_bytes = 65536 * channel_bytes;
constexpr std::uint32_t no_mark = 0x10, no_time = 0x08;  // bits of the address
constexpr std::uint32_t kind_of_packet = 0x60, data = 0x00, flag_or_trigger = 0x60;

}  // namespace

void StmUnit::instruction(const CoreInstruction& i, std::uint32_t, std::uint64_t cycle) {
    if (!enabled_) return;
    for (const Store& s : stores_of(i))
        if (s.address - ports_ < stm_ports_bytes) write(s.address - ports_, s.value, s.bytes, cycle);
}

void StmUnit::write(std::uint32_t offset, std::uint32_t value, std::uint8_t bytes, std::uint64_t cycle) {
    Message m;
    m.master = core_master;
    m.channel = offset / channel_bytes;
    if ((offset & no_time) == 0) m.timestamp = cycle;
    if ((offset & kind_of_packet) == data) {
        m.kind = MessageKind::text;
        m.value = value;
        m.value_bytes = bytes;
        m.marked = (offset & no_mark) == 0;
    } else if ((offset & kind_of_packet) != flag_or_trigger) {
        return;  // reserved
    } else if ((offset & no_mark) == 0) {
        m.kind = MessageKind::flag;
        m.marked = true;  // it ends a message
    } else {
        m.kind = MessageKind::trigger;
        constexpr std::uint32_t one_byte = 0xff;
        m.value = value & one_byte;
        m.value_bytes = 1;
    }
    if (so_far() - synchronised_ >= bytes_between_syncs) {
        model_.sync();
        synchronised_ = so_far();
    }
    ++messages_;
    const auto contents = protocol::contents(m);
    for (std::size_t i = 0; i + 1 < contents.size(); i += 2)
        truth_.hash = truth_hash(truth_.hash, contents[i], contents[i + 1]);
    model_.add(m);
    const std::vector<std::uint8_t> taken = model_.take();
    put_ += taken.size();
    to_.trace.write(taken);
}

Status StmUnit::finish(const std::string& core, const std::string& core_type, std::uint32_t, capture::Capture& capture,
                       Truth& truth) {
    to_.trace.write(model_.bytes());  // all whole bytes were put, the last one may hold one nibble
    stm::Stmtcsr control;
    control.trace_id = to_.id.value;
    control.enable = control.timestamps = control.syncs = true;
    capture.sources.push_back({.name = std::string(stm_name),
                               .type = "STM",
                               .core = core,
                               .core_type = core_type,
                               .registers = {register_value(control)}});
    truth_.source = stm_name;
    truth_.ranges = messages_;
    truth.sources.push_back(truth_);
    return Nothing{};
}

std::string StmUnit::summary() const {
    return fmt::format("{} of the STM ({})", counted(messages_, "message"), counted(so_far(), "byte"));
}

}  // namespace waymark::record
