#include "waymark/itm/message_decoder.h"

#include <fmt/format.h>

#include <utility>

#include "waymark/itm/text.h"

namespace waymark::itm {

using protocol::Message;
using protocol::MessageKind;

std::string exception_name(std::uint32_t number) {
    constexpr std::array<std::string_view, 16> names{
        "thread", "Reset", "NMI", "HardFault", "MemManage",    "BusFault", "UsageFault", "SecureFault",
        "",       "",      "",    "SVCall",    "DebugMonitor", "",         "PendSV",     "SysTick"};
    if (number >= names.size()) return fmt::format("IRQ {}", number - 16);
    return names[number].empty() ? fmt::format("exception {}", number) : std::string(names[number]);
}

std::string counter_names(std::uint32_t bits) {
    constexpr std::array<std::string_view, 6> names{"CPI", "EXC", "SLEEP", "LSU", "FOLD", "CYC"};
    std::string out;
    for (std::size_t bit = 0; bit < names.size(); ++bit)
        if ((bits >> bit & 1U) != 0) (out += out.empty() ? "" : ", ") += names[bit];
    return out;
}

MessageDecoder::MessageDecoder(const Config& config, protocol::MessageListener& listener)
    : state_(config), listener_(listener), parser_(config, *this) {}

void MessageDecoder::reset(GapReason why) { parser_.reset(why); }

void MessageDecoder::finish() {
    parser_.finish();
    release();
}

std::array<Offset, 2> MessageDecoder::pending() const {
    const Offset parser = parser_.pending();
    const Offset first = delivered_ != held_.size() ? held_[delivered_].at.first : group_ ? group_->at.first : parser;
    return {first, parser};
}

Message MessageDecoder::of(MessageKind kind, Extent at) const {
    Message out;
    out.kind = kind;
    out.at = at;
    out.confirmed = state_.confirmed();
    return out;
}

void MessageDecoder::hold(Message message) {
    held_.push_back(std::move(message));
    if (held_.size() - delivered_ > most_held) deliver(1);
}

void MessageDecoder::deliver(std::size_t count) {
    for (; count != 0; --count) listener_.message(held_[delivered_++]);
    if (delivered_ != held_.size() && delivered_ < most_held) return;
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(delivered_));
    delivered_ = 0;
}

void MessageDecoder::release() {
    end_group();
    deliver(held_.size() - delivered_);
}

void MessageDecoder::stamp(Relation relation) {
    end_group();
    for (std::size_t i = delivered_; i < held_.size(); ++i) {
        Message& m = held_[i];
        m.cycles = state_.local();
        m.at_least = !state_.exact();
        m.timestamp_late = relation == Relation::timestamp_delayed || relation == Relation::both_delayed;
        m.message_late = relation == Relation::packets_delayed || relation == Relation::both_delayed;
    }
    deliver(held_.size() - delivered_);
}

void MessageDecoder::end_group() {
    if (!group_) return;
    hold(std::move(*group_));
    group_.reset();
}

void MessageDecoder::operator()(const Stimulus& p, Extent at) {
    end_group();
    Message m = of(MessageKind::text, at);
    m.port = state_.port(p);
    m.value = p.data;
    m.value_bytes = static_cast<std::uint8_t>(payload_bytes(p.size));
    if (!m.port) m.name = fmt::format("port {} of an unknown page", p.port);
    hold(std::move(m));
}

void MessageDecoder::operator()(const HardwareSource& p, Extent at) {
    if (!is_reserved(p) && p.discriminator >= 8) return access(p, at);
    end_group();
    Message m = of(MessageKind::reserved, at);
    m.value_bytes = static_cast<std::uint8_t>(payload_bytes(p.size));
    if (is_reserved(p)) {
        m.number = p.discriminator;
        m.value = p.data;
    } else if (p.discriminator == 0 || p.discriminator == 3) {
        m.kind = MessageKind::counters;
        m.value = p.data;
        m.name = p.discriminator == 0 ? counter_names(p.data) : fmt::format("PMU {:#04x}", p.data);
    } else if (p.discriminator == 1) {
        m.kind = MessageKind::exception;
        m.value_bytes = 0;
        m.number = p.data & 0x1ffU;
        m.change = static_cast<Message::Change>(p.data >> 12 & 3U);
        m.name = exception_name(*m.number);
    } else {
        m.kind = MessageKind::sample;
        if (m.value_bytes == 4)
            m.pc = p.data;
        else
            m.name = p.data == 0 ? "asleep" : "not permitted";
        m.value_bytes = 0;
    }
    hold(std::move(m));
}

void MessageDecoder::access(const HardwareSource& p, Extent at) {
    const std::uint32_t comparator = p.discriminator >> 1 & 3U;
    const bool is_value = p.discriminator >= 16, is_address = !is_value && (p.discriminator & 1U) != 0;
    const bool is_match = !is_value && !is_address && p.size == 1;
    // A second packet of the same kind belongs to another access.
    if (group_ && (group_->comparator != comparator || is_match || (is_address && group_->address) ||
                   (!is_value && !is_address && group_->pc)))
        end_group();
    if (!group_) {
        group_ = of(MessageKind::access, at);
        group_->comparator = comparator;
    }
    group_->at.bytes = at.end() - group_->at.first;
    if (is_value) {
        group_->value = p.data;
        group_->value_bytes = static_cast<std::uint8_t>(payload_bytes(p.size));
        group_->direction = (p.discriminator & 1U) != 0 ? Message::Direction::write : Message::Direction::read;
    } else if (is_address) {
        group_->address = p.data;
        group_->address_bits = static_cast<std::uint8_t>(8 * payload_bytes(p.size));
    } else if (is_match) {
        group_->name = "match";
    } else {
        group_->pc = p.data;
    }
    if (is_value || is_match) end_group();
}

void MessageDecoder::operator()(const ShortTimestamp& p, Extent) {
    state_.see(p);
    stamp(Relation::synchronous);
}
void MessageDecoder::operator()(const LocalTimestamp& p, Extent) {
    state_.see(p);
    stamp(p.relation);
}

void MessageDecoder::global_time(Extent at) {
    end_group();
    const auto time = state_.global();
    if (!time) return;
    Message m = of(MessageKind::time, at);
    m.value = *time;
    hold(std::move(m));
}
void MessageDecoder::operator()(const GlobalTimestamp1& p, Extent at) {
    state_.see(p);
    global_time(at);
}
void MessageDecoder::operator()(const GlobalTimestamp2& p, Extent at) {
    state_.see(p);
    global_time(at);
}

void MessageDecoder::operator()(const Extension& p, Extent at) {
    end_group();
    state_.see(p);
    if (!p.more && !p.hardware) return;
    Message m = of(MessageKind::reserved, at);
    m.name = "extension";
    hold(std::move(m));
}

void MessageDecoder::operator()(const Overflow& p, Extent at) {
    release();
    state_.see(p);
    hold(of(MessageKind::overflow, at));
    release();
}

void MessageDecoder::operator()(const Sync& p, Extent) {
    end_group();
    state_.see(p);
}

void MessageDecoder::operator()(const Gap& gap) {
    release();
    state_.see(gap);
    // After the unit was stopped, and in filler, nothing is missing.
    if (!is_loss(gap.reason)) return;
    Message m = of(MessageKind::damage, {gap.first, gap.bytes()});
    m.name = name(gap.reason);
    hold(std::move(m));
    release();
}

}  // namespace waymark::itm
