/// The way of the model's packets to the FIFO: whole packets, or groups that are sent or lost as a whole; the atoms
/// that are collected to be sent together; and the number of P0 elements that wait for their commit (docs/spec/etm4.md,
/// 7 and 8; docs/spec/etm4-registers.md, 2.16 and 2.18).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/etm4/encoder.h"
#include "waymark/etm4/model.h"
#include "waymark/etm4/state.h"

namespace waymark::etm4 {

/// The packet for the oldest of `count` atoms, with as many atoms as any format can hold. Precondition: count is not 0.
[[nodiscard]] constexpr Atoms first_packet(std::uint32_t e, unsigned count) {
    const auto es = std::min(static_cast<unsigned>(std::countr_one(e)), count);
    constexpr unsigned most = 24;
    // Format 6 is a run of at least three E and one more atom of any kind.
    const unsigned longest = es >= 3 && count >= 4 ? std::min({es + 1, count, most}) : std::min(count, 5U);
    for (unsigned n = longest; n > 1; --n) {
        const Atoms atoms{static_cast<std::uint8_t>(n), e & ((1U << n) - 1)};
        if (atom_header(atoms) != 0) return atoms;
    }
    return {1, e & 1U};
}

/// A packet of atoms: number of atoms, and its only byte.
struct AtomPacket {
    std::uint8_t count{}, header{};
};

/// first_packet() for up to five atoms that Format 6 cannot hold: [number of waiting atoms, at most 5][the atoms].
inline constexpr std::array<std::array<AtomPacket, 32>, 6> short_packets = [] {
    std::array<std::array<AtomPacket, 32>, 6> table{};
    for (unsigned count = 1; count <= 5; ++count)
        for (std::uint32_t e = 0; e < 1U << count; ++e) {
            const Atoms atoms = first_packet(e, count);
            table[count][e] = {atoms.count, atom_header(atoms)};
        }
    return table;
}();

/// first_packet() without a search: a run of E by its length, the others by a table. Precondition: count is 1 to 24.
/// Higher bits of `e` may have any value.
[[nodiscard]] constexpr AtomPacket next_packet(std::uint32_t e, unsigned count) {
    const auto es = static_cast<unsigned>(std::countr_one(e));
    if (es < 3 || count < 4) {
        const unsigned n = std::min(count, 5U);
        return short_packets[n][e & ((1U << n) - 1)];
    }
    const unsigned n = std::min(es + 1, count);
    // Format 6 (docs/spec/etm4.md, 7): number of E before the last atom, and whether the last atom is N.
    return {static_cast<std::uint8_t>(n), static_cast<std::uint8_t>(0xc0 + (n - 4) + (es < n ? 0x20U : 0U))};
}

/// next_packet() for at least eight waiting atoms, by the first eight; after eight E the run may be longer.
inline constexpr std::array<AtomPacket, 255> packets_of_eight = [] {
    std::array<AtomPacket, 255> table{};
    for (std::uint32_t e = 0; e < table.size(); ++e) table[e] = next_packet(e, 8);
    return table;
}();

/// All packets for at most eight waiting atoms. Index: a bit above the newest atom, then the atoms. The headers begin
/// in the least significant byte; the most significant byte has their number.
inline constexpr std::array<std::uint64_t, 512> packets_of_rest = [] {
    std::array<std::uint64_t, 512> table{};
    for (std::uint32_t marked = 1; marked < table.size(); ++marked) {
        auto left = static_cast<unsigned>(std::bit_width(marked)) - 1;
        std::uint32_t e = marked & ~(1U << left);
        std::uint64_t headers = 0, count = 0;
        for (; left != 0; ++count) {
            const AtomPacket packet = next_packet(e, left);
            headers |= std::uint64_t{packet.header} << 8 * count;
            e >>= packet.count;
            left -= packet.count;
        }
        table[marked] = headers | count << 56;
    }
    return table;
}();

class ModelOutput {
protected:
    /// `trace` is borrowed.
    ModelOutput(const ModelConfig& config, ByteSink& trace)
        : config_(packets_of(config.registers, config.profile)),
          choices_(config.choices),
          state_(config_),
          trace_(trace) {
        if (choices_.fifo_bytes != 0) choices_.fifo_bytes = std::max(choices_.fifo_bytes, least_fifo_bytes);
        choices_.drain_cycles = std::max(choices_.drain_cycles, 1U);
    }
    ~ModelOutput() = default;

    // ---- packets

    /// Sends a packet, after the waiting atoms. `p0`: number of P0 elements that it completes. False: the packet is
    /// lost.
    template <class P>
    bool send(const P& packet, std::uint32_t p0 = 0) {
        if (!grouping_) flush_atoms();
        if (overflowing_) return false;
        encode(group_, packet, config_);
        state_(packet);
        group_p0_ += p0;
        return grouping_ || commit_group();
    }
    /// Packets up to end_group() go into the FIFO as a whole or not at all.
    void begin_group() {
        flush_atoms();
        grouping_ = true;
    }
    /// Ends the group. Returns false if it is lost.
    bool end_group() {
        grouping_ = false;
        return !overflowing_ && commit_group();
    }

    // ---- atoms

    void add_atom(bool e) {
        atoms_ |= (e ? 1U : 0U) << atom_count_;
        if (++atom_count_ == most_atoms) send_first_atoms();
    }
    void flush_atoms() {
        while (atom_count_ != 0) send_first_atoms();
    }
    [[nodiscard]] bool only_n_atoms() const { return atoms_ == 0; }
    /// The waiting atoms become part of a Source Address or a Q element.
    void drop_atoms() { atoms_ = 0, atom_count_ = 0; }

    // ---- P0 elements that wait for their commit

    /// Explicitly commits all elements that were sent.
    void commit_all() {
        flush_atoms();
        if (depth_ == 0) return;
        if (send(Commit{depth_})) depth_ = 0;
    }
    void committed(std::uint32_t count) { depth_ -= std::min(depth_, count); }
    void cancelled(std::uint32_t count) { depth_ -= count; }
    [[nodiscard]] std::uint32_t depth() const { return depth_; }

    // ---- FIFO

    /// Cycles pass, in which bytes leave the FIFO.
    void drain(std::uint64_t cycles) {
        if (level_ == 0) return;
        const std::uint64_t parts = drained_ + cycles * choices_.drain_bytes;
        level_ -= std::min(level_, parts / choices_.drain_cycles);
        drained_ = level_ == 0 ? 0 : parts % choices_.drain_cycles;
    }
    [[nodiscard]] bool empty() const { return level_ == 0; }
    /// Empties the FIFO.
    void drain_all() { level_ = drained_ = 0; }

    /// After an overflow: the FIFO is empty, and everything that was sent is committed. A Trace Info comes next.
    void recover() {
        overflowing_ = false;
        commit_all();
        send(Overflow{});
        depth_ = 0;
    }
    [[nodiscard]] bool overflowing() const { return overflowing_; }

    /// Adds bytes of packets that were made elsewhere. Precondition: the FIFO never fills, and no element waits for a
    /// commit.
    void put_made(Bytes bytes) {
        trace_.write(bytes);
        sent(bytes.size());
    }

    const Config config_;
    ModelChoices choices_;
    PacketState state_;
    ModelCounts counts_;
    std::uint64_t sync_bytes_ = 0;  ///< since the last A-sync

    static constexpr unsigned most_atoms = 24;
    std::uint32_t atoms_ = 0;  ///< waiting atoms; bit n: the n-th oldest is E
    unsigned atom_count_ = 0;

private:
    /// Room for Overflow, a commit, A-sync, Trace Info, Trace On and the longest address; with less, tracing would
    /// never begin again.
    static constexpr std::uint32_t least_fifo_bytes = 64;

    void send_first_atoms() {
        const Atoms atoms = first_packet(atoms_, atom_count_);
        WM_CHECK(group_.empty());
        encode(group_, Atom{atoms}, config_);
        group_p0_ += atoms.count;
        if (!commit_group()) return;
        atoms_ >>= atoms.count;
        atom_count_ -= atoms.count;
    }
    bool commit_group() {
        if (group_.empty()) return true;
        if (choices_.fifo_bytes != 0) {
            if (level_ + group_.size() > choices_.fifo_bytes) {
                overflow();
                return false;
            }
            level_ += group_.size();
        }
        trace_.write(group_);
        sent(group_.size());
        depth_ = std::min(depth_ + std::exchange(group_p0_, 0U), config_.max_speculation);
        group_.clear();
        return true;
    }
    /// Waiting packets are lost, and so are all packets until the FIFO is empty.
    void overflow() {
        ++counts_.overflows;
        counts_.p0 -= atom_count_;
        counts_.overflowed += atom_count_;
        drop_atoms();
        group_.clear();
        group_p0_ = 0;
        overflowing_ = true;
    }
    void sent(std::size_t bytes) {
        sync_bytes_ += bytes;
        counts_.bytes += bytes;
    }

    ByteSink& trace_;
    std::vector<std::uint8_t> group_;
    std::uint32_t group_p0_ = 0, depth_ = 0;
    std::uint64_t level_ = 0, drained_ = 0;
    bool grouping_ = false, overflowing_ = false;
};

}  // namespace waymark::etm4
