#include "waymark/itm/model.h"

#include <algorithm>
#include <utility>

#include "waymark/core/result.h"

namespace waymark::itm {

using protocol::Message;
using protocol::MessageKind;

namespace {

std::uint8_t size_code(std::uint8_t bytes) {
    WM_CHECK(bytes == 1 || bytes == 2 || bytes == 4);
    return bytes == 4 ? 3 : bytes;
}

/// A number in the fewest bytes.
Number shortest(std::uint64_t value) {
    Number out{.value = value, .bytes = 1};
    while (value >> 7 * out.bytes != 0) ++out.bytes;
    return out;
}

}  // namespace

void Model::add_packets(std::vector<std::uint8_t>& out, const Message& m) {
    const auto source = [&](std::uint32_t discriminator, std::uint8_t bytes, std::uint64_t data) {
        encode(out, HardwareSource{static_cast<std::uint8_t>(discriminator), size_code(bytes),
                                   static_cast<std::uint32_t>(data)});
    };
    switch (m.kind) {
        case MessageKind::text: {
            const std::uint32_t port = m.port.value_or(0);
            if (port / 32 != page_) encode(out, Extension{false, false, static_cast<std::uint8_t>(port / 32), {}});
            encode(out, Stimulus{static_cast<std::uint8_t>(port % 32), size_code(m.value_bytes),
                                 static_cast<std::uint32_t>(m.value.value_or(0))});
            break;
        }
        case MessageKind::sample:
            if (m.pc)
                source(2, 4, *m.pc);
            else
                source(2, 1, m.name == "asleep" ? 0 : 0xff);
            break;
        case MessageKind::exception:
            source(1, 2, m.number.value_or(0) | static_cast<std::uint32_t>(m.change) << 12);
            break;
        case MessageKind::access: {
            const std::uint32_t comparator = m.comparator.value_or(0) << 1;
            if (m.pc) source(8 | comparator, 4, *m.pc);
            if (m.address) source(9 | comparator, static_cast<std::uint8_t>(m.address_bits / 8), *m.address);
            if (m.value)
                source(16 | comparator | (m.direction == Message::Direction::write ? 1U : 0U), m.value_bytes, *m.value);
            break;
        }
        case MessageKind::counters: source(0, 1, m.value.value_or(0)); break;
        case MessageKind::time:
            // Bit 27: the upper bits follow.
            encode(out, GlobalTimestamp1{{(m.value.value_or(0) & 0x3ff'ffffU) | 1U << 27, 4}});
            encode(out, GlobalTimestamp2{{m.value.value_or(0) >> 26, 6}});
            break;
        case MessageKind::overflow:
        case MessageKind::reserved:
        case MessageKind::flag:
        case MessageKind::trigger:
        case MessageKind::frequency:
        case MessageKind::record:
        case MessageKind::damage: WM_CHECK(false);
    }
}

bool Model::fits(std::uint64_t cycle, std::size_t bytes) {
    if (config_.fifo_bytes == 0) return true;
    waiting_ -= std::min(waiting_, (cycle - drained_) / config_.cycles_per_byte);
    drained_ = cycle;
    if (waiting_ + bytes > config_.fifo_bytes) return false;
    waiting_ += bytes;
    return true;
}

void Model::sync() {
    encode(bytes_, Sync{});
    confirmed_ = true;
}

void Model::tell(std::uint64_t cycle, Message message) {
    // A counter that reaches its maximum is sent without a message.
    constexpr std::uint64_t most = (std::uint64_t{1} << 28) - 1;
    while (config_.timestamps && cycle / config_.config.prescaler - stamped_ > most) {
        encode(bytes_, LocalTimestamp{Relation::synchronous, shortest(most)});
        stamped_ += most;
        sum_ += most;
    }
    std::vector<std::uint8_t> packets;
    if (lost_) encode(packets, Overflow{});
    const std::size_t first = packets.size();
    add_packets(packets, message);
    const std::size_t end = packets.size();
    const std::uint64_t ticks = cycle / config_.config.prescaler, delta = ticks - stamped_;
    if (config_.timestamps) {
        WM_CHECK(delta < std::uint64_t{1} << 28);
        if (delta >= 1 && delta <= 6)
            encode(packets, ShortTimestamp{static_cast<std::uint8_t>(delta)});
        else
            encode(packets, LocalTimestamp{Relation::synchronous, shortest(delta)});
    }
    const bool sync = config_.sync_messages != 0 && (told_ + 1) % config_.sync_messages == 0;
    if (sync) encode(packets, Sync{});
    if (!fits(cycle, packets.size())) {
        lost_ = true;
        return;
    }

    const Offset at{bytes_.size()};
    if (lost_) {
        Message overflow;
        overflow.kind = MessageKind::overflow;
        overflow.at = {at, first};
        overflow.confirmed = confirmed_;
        if (config_.keep_truth) truth_.push_back(std::move(overflow));
        lost_ = false;
        at_least_ = true;
    }
    // A page packet, and the lower half of a global time, are not messages.
    std::size_t begin = first;
    if (message.kind == MessageKind::text && message.port.value_or(0) / 32 != page_) {
        page_ = *message.port / 32;
        begin += 1;
    } else if (message.kind == MessageKind::time) {
        begin += 5;
    }
    message.at = {at + begin, end - begin};
    message.confirmed = confirmed_;
    if (config_.timestamps) {
        sum_ += delta;
        stamped_ = ticks;
        message.cycles = sum_ * config_.config.prescaler;
        message.at_least = at_least_;
    }
    if (config_.keep_truth) truth_.push_back(std::move(message));
    bytes_.insert(bytes_.end(), packets.begin(), packets.end());
    confirmed_ |= sync;
    ++told_;
}

}  // namespace waymark::itm
