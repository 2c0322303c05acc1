/// The state against which packets are compressed (docs/spec/etm4.md, sections 4 to 6). For each part: does a
/// synchronisation point restore it?
///
///     address history      yes, the Trace Info: three entries of address 0, IS0
///     timestamp            yes, the Trace Info: 0
///     threshold            yes, the Trace Info
///     context              no, but the next Context or Address with Context packet
///     return stack         it is empty there; kept by decoders, not here
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "waymark/core/gap.h"
#include "waymark/core/types.h"
#include "waymark/etm4/config.h"
#include "waymark/etm4/packet.h"

namespace waymark::etm4 {

/// An address, and the alignment (of an instruction set) with which it was sent.
struct KnownAddress {
    Address address{};
    bool is1{};
    std::uint64_t known = ~std::uint64_t{0};  ///< the known bits of the address: all of them after a Trace Info
    friend bool operator==(const KnownAddress&, const KnownAddress&) = default;
};

/// The three most recent addresses, the newest first. In a default-constructed history no bits are known, as before the
/// first Trace Info.
class AddressHistory {
public:
    /// Resets as a Trace Info packet does.
    void reset() { entries_.fill(KnownAddress{}); }
    void forget() { *this = {}; }

    [[nodiscard]] const KnownAddress& entry(unsigned i) const { return entries_[i % 3]; }

    /// The complete address: bits that are not sent come from the most recent address. For a 32-bit form these are bits
    /// 63:32.
    [[nodiscard]] WM_INLINE KnownAddress complete(const SentAddress& sent) const {
        // Bits below the alignment are never sent and always 0.
        const unsigned width = address_bits(sent.bytes, sent.is1);
        const std::uint64_t covered = width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
        const KnownAddress& last = entries_[0];
        return {{(last.address.value & ~covered) | sent.value}, sent.is1, last.known | covered};
    }
    /// Completes an address and makes it the most recent one.
    WM_INLINE KnownAddress take(const SentAddress& sent) { return push(complete(sent)); }
    /// An exact match: the entry also becomes the most recent one.
    WM_INLINE KnownAddress match(unsigned i) { return push(entry(i)); }
    /// The "unknown address" of an exception without an address.
    void push_unknown() { push(KnownAddress{}); }

    friend bool operator==(const AddressHistory&, const AddressHistory&) = default;

    WM_INLINE KnownAddress push(KnownAddress place) {
        entries_[2] = entries_[1];
        entries_[1] = entries_[0];
        entries_[0] = place;
        return place;
    }

private:
    static constexpr KnownAddress nothing{.address = {}, .is1 = false, .known = 0};
    std::array<KnownAddress, 3> entries_{nothing, nothing, nothing};
};

/// An address in its shortest form: an entry of the history, or bits to send.
struct CompressedAddress {
    std::optional<std::uint8_t> entry{};
    SentAddress sent{};
    friend bool operator==(const CompressedAddress&, const CompressedAddress&) = default;
};
/// The shortest form of `to`, whose bits below the alignment must be 0 (section 6).
[[nodiscard]] CompressedAddress compress(const KnownAddress& to, const AddressHistory& history);

/// The last timestamp.
class TimestampState {
public:
    /// Resets as a Trace Info packet does: bits that are not sent are 0.
    void reset() { value_ = 0, known_ = true; }
    void forget() { *this = {}; }
    /// Takes the value of a timestamp and returns the completed one; `known()` shows whether its high bits are valid.
    std::uint64_t take(const TimestampValue& sent) {
        const unsigned width = timestamp_bits(sent.bytes);
        if (width >= 64) {
            value_ = sent.value;
            known_ = true;
        } else {
            const std::uint64_t low = (std::uint64_t{1} << width) - 1;
            value_ = (value_ & ~low) | (sent.value & low);
        }
        return value_;
    }
    [[nodiscard]] std::uint64_t value() const { return value_; }
    [[nodiscard]] bool known() const { return known_; }
    friend bool operator==(const TimestampState&, const TimestampState&) = default;

private:
    std::uint64_t value_ = 0;
    bool known_ = false;
};
/// The timestamp with the fewest bytes that changes `last` to `to`.
[[nodiscard]] TimestampValue compress_timestamp(std::uint64_t to, std::uint64_t last);

/// The contents of a cycle count packet, with threshold and MAXSPEC applied.
struct CycleCount {
    std::optional<std::uint32_t> commit{};  ///< P0 elements to commit; nullopt in commit mode 1
    std::optional<std::uint32_t> cycles{};  ///< none: unknown
    friend bool operator==(const CycleCount&, const CycleCount&) = default;
};

/// The meaning of a packet in its context. Members that a packet lacks are absent.
struct Meaning {
    std::optional<KnownAddress> address{};
    std::optional<std::uint64_t> timestamp{};  ///< the complete timestamp; absent while its high bits are not known
    std::optional<CycleCount> count{};
    friend bool operator==(const Meaning&, const Meaning&) = default;
};

/// The complete state at packet level. Receives every packet and gap of a stream in order.
class PacketState {
public:
    PacketState() = default;
    explicit PacketState(const Config& config) : config_(config) {}

    Meaning operator()(const TraceInfo& p) {
        addresses_.reset();
        timestamps_.reset();
        threshold_ = p.threshold;
        return {};
    }
    template <OneOf<ShortAddress, LongAddress, AddressWithContext, ShortSourceAddress, LongSourceAddress> P>
    Meaning operator()(const P& p) {
        return at(addresses_.take(p.address));
    }
    Meaning operator()(const OneOf<ExactMatchAddress, ExactMatchSourceAddress> auto& p) {
        return at(addresses_.match(p.entry));
    }
    Meaning operator()(const Q& p) {
        if (p.has_entry()) return at(addresses_.match(p.type));
        if (p.has_short_address() || p.has_long_address()) return at(addresses_.take(p.address));
        return {};
    }
    Meaning operator()(const Exception& p) {
        if (p.address_unknown(config_)) addresses_.push_unknown();
        return {};
    }
    Meaning operator()(const Timestamp& p);
    Meaning operator()(const CycleCountPacket auto& p) const { return counted(count(p)); }
    Meaning operator()(const auto&) const { return {}; }
    /// The state is unknown until the next Trace Info.
    void operator()(const Gap&) {
        addresses_.forget();
        timestamps_.forget();
        threshold_ = 0;
    }

    /// The contents of a cycle count packet.
    [[nodiscard]] WM_INLINE CycleCount count(const CycleCountF1& p) const {
        return count(p.commit, p.unknown ? std::nullopt : std::optional(p.count));
    }
    [[nodiscard]] WM_INLINE CycleCount count(const CycleCountF2& p) const {
        // With F the count is relative to MAXSPEC; if MAXSPEC is too small for it, the packet is invalid and commits
        // nothing.
        const std::uint64_t from_maximum = std::uint64_t{p.commit} + config_.max_speculation;
        return count(!p.from_maximum ? p.commit + 1U : from_maximum < 15 ? 0 : from_maximum - 15, p.count);
    }
    [[nodiscard]] WM_INLINE CycleCount count(const CycleCountF3& p) const { return count(p.commit + 1U, p.count); }
    /// The cycles in a timestamp, from which no threshold is subtracted (section 5).
    [[nodiscard]] WM_INLINE std::uint32_t cycles(const Timestamp& p) const {
        return p.cycles & ((1U << config_.cycle_count_bits) - 1);
    }

    /// For a beginning inside a stream: the last timestamp is not known.
    void begin_inside(const AddressHistory& addresses, std::uint32_t threshold) {
        addresses_ = addresses;
        timestamps_.forget();
        threshold_ = threshold;
    }

    [[nodiscard]] const AddressHistory& addresses() const { return addresses_; }
    /// The address history, for inner loops that read addresses themselves.
    [[nodiscard]] AddressHistory& addresses() { return addresses_; }
    [[nodiscard]] const TimestampState& timestamps() const { return timestamps_; }
    [[nodiscard]] TimestampState& timestamps() { return timestamps_; }
    /// The threshold of cycle counts, from the last Trace Info.
    [[nodiscard]] std::uint32_t threshold() const { return threshold_; }
    friend bool operator==(const PacketState&, const PacketState&) = default;

private:
    static Meaning at(const KnownAddress& place) { return {.address = place, .timestamp = {}, .count = {}}; }
    static Meaning counted(const CycleCount& count) { return {.address = {}, .timestamp = {}, .count = count}; }
    [[nodiscard]] WM_INLINE CycleCount count(std::uint64_t commit, std::optional<std::uint32_t> field) const {
        CycleCount count;
        if (!config_.commit_mode_1) count.commit = static_cast<std::uint32_t>(commit);
        if (field) count.cycles = *field + threshold_;
        return count;
    }

    Config config_;
    AddressHistory addresses_;
    TimestampState timestamps_;
    std::uint32_t threshold_ = 0;
};

}  // namespace waymark::etm4
