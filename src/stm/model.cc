#include "waymark/stm/model.h"

#include "waymark/core/result.h"

namespace waymark::stm {

using protocol::Message;
using protocol::MessageKind;

void Model::sync() {
    add_packet(Async{});
    add_packet(VersionPacket{version_});
    master_.reset();
    channel_.reset();
    time_.reset();
}

Stamp Model::stamp(std::uint64_t time) {
    const auto coded = [&](std::uint64_t value) { return version_ == 4 ? value ^ value >> 1 : value; };
    Stamp out{.low = coded(time), .nibbles = 16};
    if (time_)
        for (const unsigned nibbles : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 9U, 10U, 11U, 12U, 14U})
            if ((coded(time) ^ coded(*time_)) >> 4 * nibbles == 0) {
                const std::uint64_t mask = (std::uint64_t{1} << 4 * nibbles) - 1;
                out = {.low = coded(time) & mask, .nibbles = static_cast<std::uint8_t>(nibbles)};
                break;
            }
    time_ = time;
    return out;
}

void Model::select(const Message& m) {
    if (m.master && m.master != master_) {
        master_ = m.master;
        channel_ = 0;
        if (*master_ <= 0xff)
            add_packet(Master8{{static_cast<std::uint8_t>(*master_)}});
        else
            add_packet(Master16{{static_cast<std::uint16_t>(*master_)}});
    }
    if (!m.channel || m.channel == channel_) return;
    if (channel_ && *channel_ >> 8 == *m.channel >> 8)
        add_packet(Channel8{{static_cast<std::uint8_t>(*m.channel)}});
    else
        add_packet(Channel16{{static_cast<std::uint16_t>(*m.channel)}});
    channel_ = m.channel;
}

void Model::add(const Message& m) {
    const std::uint64_t value = m.value.value_or(0);
    const auto byte = static_cast<std::uint8_t>(value);
    if (m.kind == MessageKind::frequency) {
        add_packet(Frequency{{static_cast<std::uint32_t>(value)}});
        return;
    }
    if (m.kind == MessageKind::overflow) {
        if (!m.master) {
            add_packet(GlobalError{{byte}});
            master_.reset();
            channel_.reset();
            return;
        }
        select(m);
        add_packet(MasterError{{byte}});
        channel_ = 0;
        return;
    }
    select(m);
    if (m.kind == MessageKind::flag) {
        if (m.timestamp)
            add_packet(FlagTimed{{stamp(*m.timestamp)}});
        else
            add_packet(FlagPacket{});
    } else if (m.kind == MessageKind::trigger) {
        if (m.timestamp)
            add_packet(TriggerTimed{{byte, stamp(*m.timestamp)}});
        else
            add_packet(Trigger{{byte}});
    } else {
        WM_CHECK(m.kind == MessageKind::text);
        const unsigned nibbles = m.value_bytes == 0 ? 1 : 2U * m.value_bytes;
        bool written = false;
        Packets::for_each([&]<class P>() {
            if constexpr (requires { P::nibbles; }) {
                if (P::nibbles != nibbles || P::marked != m.marked || P::timed != m.timestamp.has_value()) return;
                P packet{};
                packet.value = value;
                if constexpr (P::timed) packet.time = stamp(*m.timestamp);
                add_packet(packet);
                written = true;
            }
        });
        WM_CHECK(written);
    }
}

}  // namespace waymark::stm
