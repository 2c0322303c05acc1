#include "waymark/stm/message_decoder.h"

#include <fmt/format.h>

#include <type_traits>

namespace waymark::stm {

using protocol::Message;
using protocol::MessageKind;

MessageDecoder::MessageDecoder(const Config& config, protocol::MessageListener& listener)
    : config_(config), state_(config), listener_(listener), parser_(config_, *this) {}

template <class P>
void MessageDecoder::operator()(const P& p, Extent at) {
    state_.see(p);
    Message m;
    m.at = at;
    m.confirmed = true;
    m.master = state_.master();
    m.channel = state_.channel();
    if constexpr (requires { p.time; }) {
        m.timestamp = state_.time();
        m.at_least = m.timestamp && !state_.exact();
    }
    if constexpr (requires { P::nibbles; }) {
        m.kind = MessageKind::text;
        m.value = p.value;
        m.value_bytes = P::nibbles / 2;
        m.marked = P::marked;
        if (config_.hardware_events && m.master && m.master == config_.hardware_master) m.name = "hardware event";
    } else if constexpr (std::is_same_v<P, FlagPacket> || std::is_same_v<P, FlagTimed>) {
        m.kind = MessageKind::flag;
        m.marked = true;
    } else if constexpr (std::is_same_v<P, Trigger> || std::is_same_v<P, TriggerTimed>) {
        m.kind = MessageKind::trigger;
        m.value = p.value;
        m.value_bytes = 1;
    } else if constexpr (std::is_same_v<P, Frequency> || std::is_same_v<P, FrequencyTimed> ||
                         std::is_same_v<P, Frequency40> || std::is_same_v<P, Frequency40Timed>) {
        m.kind = MessageKind::frequency;
        m.value = p.value;
        m.master.reset();
        m.channel.reset();
    } else if constexpr (std::is_same_v<P, MasterError> || std::is_same_v<P, GlobalError>) {
        m.kind = MessageKind::overflow;
        m.value = p.value;
        m.value_bytes = 1;
        if constexpr (std::is_same_v<P, MasterError>) m.channel.reset();
        m.name = !std::is_same_v<P, MasterError> ? "of any master"
                 : m.master                      ? fmt::format("of master {}", *m.master)
                                                 : "of a master";
    } else {
        return;
    }
    listener_.message(m);
}

void MessageDecoder::operator()(const Gap& gap) {
    state_.see(gap);
    // After the unit was stopped, and in filler, nothing is missing.
    if (!is_loss(gap.reason)) return;
    Message m;
    m.kind = MessageKind::damage;
    m.confirmed = true;
    m.at = {gap.first, gap.bytes()};
    m.name = name(gap.reason);
    listener_.message(m);
}

// Defined here, where the type of the parser's handler is complete.
void MessageDecoder::feed(Bytes bytes) { parser_.feed(bytes); }
void MessageDecoder::reset(GapReason why) { parser_.reset(why); }
void MessageDecoder::finish() { parser_.finish(); }

}  // namespace waymark::stm
