#include "itm_unit.h"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/itm/registers.h"
#include "waymark/record_m/stores.h"

namespace waymark::record {

using protocol::Message;
using protocol::MessageKind;

namespace {
constexpr std::uint32_t ports_bytes = 4 * 256;
}  // namespace

ItmUnit::ItmUnit(TraceOutput::Input to, const itm::ModelConfig& config, ItmOptions options)
    : to_(to), config_(config), options_(std::move(options)), model_(config) {
    model_.sync();
}

void ItmUnit::write() {
    const std::vector<std::uint8_t> bytes = model_.take();
    bytes_ += bytes.size();
    to_.trace.write(bytes);
}

void ItmUnit::tell(Message message, std::uint64_t cycle) {
    ++messages_;
    // The time has the precision with which the unit sends it: whole ticks of the prescaler.
    if (config_.timestamps) message.cycles = cycle - cycle % config_.config.prescaler;
    const auto contents = protocol::contents(message);
    for (std::size_t i = 0; i + 1 < contents.size(); i += 2)
        truth_.hash = truth_hash(truth_.hash, contents[i], contents[i + 1]);
    message.cycles.reset();
    model_.tell(cycle, std::move(message));
    write();
}

void ItmUnit::store(std::uint32_t pc, std::uint32_t address, std::uint32_t value, std::uint8_t bytes,
                    std::uint64_t cycle) {
    if (address - options_.ports < ports_bytes) {
        Message m;
        m.kind = MessageKind::text;
        m.port = (address - options_.ports) / 4;
        m.value = value;
        m.value_bytes = bytes;
        tell(std::move(m), cycle);
    }
    for (std::uint32_t n = 0; n < options_.watched.size(); ++n) {
        const WatchedBytes& watched = options_.watched[n];
        if (address + bytes <= watched.address || address >= watched.address + watched.bytes) continue;
        Message m;
        m.kind = MessageKind::access;
        m.comparator = n;
        m.direction = Message::Direction::write;
        m.value = value;
        m.value_bytes = bytes;
        // For a watched range of at most one word, the message names the instruction that wrote; for a larger range,
        // the address.
        if (watched.bytes <= 4) {
            m.pc = pc;
        } else {
            m.address = address & 0xffffU;
            m.address_bits = 16;
        }
        tell(std::move(m), cycle);
    }
}

void ItmUnit::instruction(const CoreInstruction& i, std::uint32_t, std::uint64_t cycle) {
    if (!enabled_) return;
    for (const Store& s : stores_of(i)) store(i.address, s.address, s.value, s.bytes, cycle);
    if (options_.sample_cycles == 0 || cycle % options_.sample_cycles != 0) return;
    Message m;
    m.kind = MessageKind::sample;
    m.pc = i.address;
    tell(std::move(m), cycle);
}

void ItmUnit::tell_exception(std::uint32_t number, Message::Change change, std::uint64_t cycle) {
    if (!enabled_ || !options_.exceptions) return;
    Message m;
    m.kind = MessageKind::exception;
    m.number = number;
    m.change = change;
    tell(std::move(m), cycle);
}

void ItmUnit::exception(std::uint32_t number, std::optional<std::uint32_t>, std::uint32_t, std::uint64_t cycle) {
    tell_exception(number, Message::Change::entered, cycle);
}

void ItmUnit::handler_ended(std::uint32_t number, std::uint64_t cycle) {
    tell_exception(number, Message::Change::left, cycle);
}

void ItmUnit::returned(std::uint32_t, std::uint32_t, std::uint32_t resumed, std::uint64_t cycle) {
    tell_exception(resumed, Message::Change::returned, cycle);
}

Status ItmUnit::finish(const std::string& core, const std::string& core_type, std::uint32_t, capture::Capture& capture,
                       Truth& truth) {
    write();
    itm::Itmtcr control;
    control.trace_id = to_.id.value;
    control.enable = true;
    control.syncs = true;
    control.hardware_packets = true;
    control.local_timestamps = config_.timestamps;
    control.asynchronous_clock = config_.config.prescaler != 1;
    control.prescaler = static_cast<std::uint8_t>(std::countr_zero(unsigned{config_.config.prescaler}) / 2);
    capture.sources.push_back({.name = std::string(itm_name),
                               .type = "ITM",
                               .core = core,
                               .core_type = core_type,
                               .registers = {register_value(control)}});
    for (std::size_t n = 0; n < options_.watched.size(); ++n)
        capture.sources.back().registers.push_back({fmt::format("DWT_COMP{}", n), options_.watched[n].address});
    truth_.source = itm_name;
    truth_.ranges = messages_;
    truth.sources.push_back(truth_);
    return Nothing{};
}

std::string ItmUnit::summary() const {
    return fmt::format("{} of the ITM ({})", counted(messages_, "message"), counted(bytes_, "byte"));
}

}  // namespace waymark::record
