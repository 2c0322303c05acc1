/// Many blocks at once, and sequences of blocks that repeat. The result is the same as from
/// ModelSession::retire_block(), for blocks that can only give atoms, addresses and cycle counts.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>

#include "model_stream.h"
#include "recent_addresses.h"

namespace waymark::etm4 {

class ModelBlocks : protected ModelStream {
    using Waypoint = isa::Waypoint;

protected:
    ModelBlocks(const ModelConfig& config, ByteSink& trace, const ModelCore& core)
        : ModelStream(config, trace, core),
          ordinary_config_((!config_.cycle_counting || config_.commit_mode_1) &&
                           (!config_.branch_broadcast || bbctlr_.range == 0) && !q_ && config_.max_speculation == 0 &&
                           choices_.fifo_bytes == 0 && !choices_.source_address_after && resources_.trivial()) {}
    ~ModelBlocks() = default;

    [[nodiscard]] bool ordinary() const {
        return ordinary_config_ && enabled_ && tracing_ && !in_debug_ && !in_transaction_ && !prohibited(context_) &&
               position_ == start_ && !sync_due() && !timestamp_due_ && addresses_known() &&
               (!config_.cycle_counting || count_from_) && new_context_ == context_ &&
               context_known(fields_of(context_, start_.isa)) && start_.isa == isa::Isa::a64;
    }
    /// Stops before the first block that may need more. Precondition: ordinary(). Bytes and state afterwards are the
    /// same as with retire_block().
    std::size_t retire_ordinary(std::span<const RetiredBlock> blocks) {
        const bool broadcast = config_.branch_broadcast && !bbctlr_.mode;
        if (config_.cycle_counting)
            return broadcast ? retire_ordinary_as<true, true>(blocks) : retire_ordinary_as<true, false>(blocks);
        return broadcast ? retire_ordinary_as<false, true>(blocks) : retire_ordinary_as<false, false>(blocks);
    }
    /// The common part of many sequences with the same blocks. nullopt: the output depends on the return stack or a
    /// count, or not all blocks are ordinary.
    [[nodiscard]] std::unique_ptr<flow::PreparedSequence> ordinary_sequence(
        const isa::Place& from, std::span<const RetiredBlock> blocks) const {
        if (!ordinary_config_ || config_.cycle_counting || stack_entries_ != 0 || from.isa != isa::Isa::a64 ||
            blocks.empty() || blocks.size() > OrdinarySequence::most_blocks)
            return nullptr;
        const bool broadcast = config_.branch_broadcast && !bbctlr_.mode;
        auto made = std::make_unique<OrdinarySequence>();
        Address at = from.address;
        made->start = made->parts[0].at = at;
        made->blocks = static_cast<std::uint8_t>(blocks.size());
        unsigned parts = 0;
        for (const RetiredBlock& b : blocks) {
            const isa::Instruction& i = *b.instruction;
            if (!is_ordinary(b, at)) return nullptr;
            if (made->due != AddressDue::no) made->parts[++parts].at = at;
            made->due = AddressDue::no;
            OrdinarySequence::Part& part = made->parts[parts];
            part.atoms = static_cast<std::uint8_t>(part.atoms | (b.passed ? 1U : 0U) << part.atom_count++);
            if (b.passed && i.waypoint == Waypoint::indirect)
                made->due = AddressDue::branch_target;
            else if (b.passed && broadcast)
                made->due = AddressDue::always;
            at = b.passed ? b.next : b.address + i.bytes;
        }
        made->part_count = static_cast<std::uint8_t>(parts + 1);
        made->end = at;
        return made;
    }
    /// retire_ordinary() for the blocks of each sequence. Returns the number of sequences it took. Precondition:
    /// ordinary().
    std::size_t retire_ordinary_sequences(std::span<const flow::RetiredSequence> sequences) {
        // The maximum size of a sequence with the atoms before it, and of the bytes that a store writes beyond them.
        constexpr std::size_t most_of_one = most_atoms + OrdinarySequence::most_blocks * (1 + 9) + 9 + 8;
        constexpr std::size_t most_sequences = 32;
        std::array<std::uint8_t, most_sequences * most_of_one> bytes;
        const std::uint64_t room = sync_period_ == 0 ? bytes.size() : sync_period_ - sync_bytes_;
        const std::uint8_t* const stop = bytes.data() + std::min<std::uint64_t>(room, bytes.size());
        PacketBytes out(bytes.data(), atoms_, atom_count_);
        RecentAddresses recent(state_.addresses());
        AddressDue due = address_due_;
        Address at = start_.address;
        std::size_t taken = 0;
        for (const flow::RetiredSequence& s : sequences) {
            const auto& sequence = static_cast<const OrdinarySequence&>(*s.prepared);
            // No block of the sequence may be the first after which a synchronisation is due.
            if (sequence.start != at || stop - out.at < std::ptrdiff_t{most_of_one}) [[unlikely]]
                break;
            for (unsigned n = 0; n < sequence.part_count; ++n) {
                const OrdinarySequence::Part& part = sequence.parts[n];
                if (n != 0 || due != AddressDue::no) {
                    out.send_all();
                    out.at = put_address(out.at, part.at, recent);
                }
                out.atoms |= std::uint64_t{part.atoms} << out.atom_count;
                out.atom_count += part.atom_count;
                out.send_full();
            }
            due = sequence.due;
            at = sequence.end;
            counts_.p0 += sequence.blocks;
            ++taken;
        }
        if (taken == 0) return 0;
        atoms_ = static_cast<std::uint32_t>(out.atoms);
        atom_count_ = out.atom_count;
        address_due_ = due;
        popped_ = false;
        if (recent.moved()) recent.give(state_.addresses());
        if (out.at != bytes.data()) put_made({bytes.data(), static_cast<std::size_t>(out.at - bytes.data())});
        now_ = std::max(now_, sequences[taken - 1].cycle);
        unstamped_ = now_;
        start_ = position_ = {at, isa::Isa::a64};
        unsettled_ = true;
        return taken;
    }

private:
    [[nodiscard]] bool addresses_known() const {
        for (unsigned n = 0; n < 3; ++n)
            if (~state_.addresses().entry(n).known != 0) return false;
        return true;
    }
    /// A sequence of ordinary blocks: atoms, and addresses between them.
    struct OrdinarySequence final : flow::PreparedSequence {
        struct Part {
            Address at;  ///< the part before which the address is sent; part 0 if it is due at once
            std::uint8_t atoms = 0, atom_count = 0;
        };
        std::array<Part, most_blocks> parts{};
        std::uint8_t part_count = 0, blocks = 0;
        AddressDue due = AddressDue::no;  ///< after it
        Address start{}, end{};
    };
    /// Whether the block begins at or after `at`, and yields only an atom, an address and a count.
    [[nodiscard]] WM_INLINE static bool is_ordinary(const RetiredBlock& b, Address at) {
        return b.isa == isa::Isa::a64 && b.next_isa == isa::Isa::a64 && b.address >= at &&
               !b.instruction->exception_return && b.instruction->waypoint != Waypoint::barrier;
    }
    /// Packets that are being made, and waiting atoms.
    struct PacketBytes {
        std::uint8_t* at;
        std::uint64_t atoms;
        unsigned atom_count;
        PacketBytes(std::uint8_t* to, std::uint64_t waiting, unsigned count)
            : at(to), atoms(waiting), atom_count(count) {}

        WM_INLINE void send_first() {
            const auto eight = static_cast<std::uint8_t>(atoms);
            const AtomPacket packet =
                eight == 0xff ? next_packet(static_cast<std::uint32_t>(atoms), std::min(atom_count, most_atoms))
                              : packets_of_eight[eight];
            *at++ = packet.header;
            atoms >>= packet.count;
            atom_count -= packet.count;
        }
        /// Sends atoms until no more than the unit holds back are waiting.
        WM_INLINE void send_full() {
            while (atom_count >= most_atoms) send_first();
        }
        WM_INLINE void send_all() {
            while (atom_count > 8) send_first();
            const std::uint64_t packets = packets_of_rest[1U << atom_count | static_cast<std::uint32_t>(atoms)];
            put_eight(at, packets);
            at += packets >> 56;
            atoms = 0;
            atom_count = 0;
        }
    };
    /// `counts`: with cycle counts; `broadcast`: taken direct branches are broadcast.
    template <bool counts, bool broadcast>
    std::size_t retire_ordinary_as(std::span<const RetiredBlock> blocks) {
        std::array<std::uint8_t, 4096> bytes;
        // More atoms may wait here than in the unit: the packets are the same, and several are made at once. Not used
        // if counts come between them.
        constexpr unsigned most_here = counts ? most_atoms : 56;
        // Maximum size for a block: atoms, an address and a count, and the bytes that a store writes beyond them.
        constexpr std::size_t most_of_a_block = most_here + 9 + 4 + 8;
        const std::uint64_t room = sync_period_ == 0 ? bytes.size() : sync_period_ - sync_bytes_;
        const std::uint8_t* const stop = bytes.data() + std::min<std::uint64_t>(room, bytes.size() - most_of_a_block);
        // Before a synchronisation is due, no more atoms may wait than in the unit, since their bytes count towards it.
        const std::uint8_t* check = counts ? stop : stop - std::min<std::ptrdiff_t>(stop - bytes.data(), most_here);
        Address at = start_.address;
        std::size_t taken = 0;
        // Local copies: the compiler must assume that a stored byte changes any member, and would reload members.
        PacketBytes out(bytes.data(), atoms_, atom_count_);
        unsigned most = most_here;
        AddressDue due = address_due_;
        bool popped = popped_;
        std::uint64_t now = now_, counted = count_from_.value_or(0);
        const std::uint64_t threshold = std::max<std::uint64_t>(threshold_, 1);
        const bool stacks = stack_entries_ != 0;
        RecentAddresses recent(state_.addresses());
        for (const RetiredBlock& b : blocks) {
            const isa::Instruction& i = *b.instruction;
            if (out.at >= check) [[unlikely]] {
                out.send_full();
                most = most_atoms;
                check = stop;
                if (out.at >= stop) break;
            }
            if (!is_ordinary(b, at)) [[unlikely]]
                break;
            const Address after = b.address + i.bytes;
            if (due != AddressDue::no) {
                out.send_all();
                out.at = put_address(out.at, at, recent);
                due = AddressDue::no;
            }
            popped = false;
            out.atoms |= std::uint64_t{b.passed} << out.atom_count;
            if (++out.atom_count >= most) out.send_full();
            if (stacks && b.passed && i.link) push({after, isa::Isa::a64});
            if (i.waypoint == Waypoint::indirect && b.passed) {
                popped = stacks && matches({b.next, isa::Isa::a64});
                if (!popped) due = AddressDue::branch_target;
            } else if (broadcast && b.passed) {
                due = AddressDue::always;
            }
            if constexpr (counts) {
                now = std::max(now, b.cycle);
                if (now - counted >= threshold) {
                    out.send_all();
                    out.at = put_count(out.at, now - counted);
                    counted = now;
                }
            }
            at = b.passed ? b.next : after;
            ++taken;
        }
        out.send_full();
        atoms_ = static_cast<std::uint32_t>(out.atoms);
        atom_count_ = out.atom_count;
        address_due_ = due;
        popped_ = popped;
        if (recent.moved()) recent.give(state_.addresses());
        if (taken == 0) return 0;
        counts_.p0 += taken;
        if (out.at != bytes.data()) put_made({bytes.data(), static_cast<std::size_t>(out.at - bytes.data())});
        now_ = std::max(now_, blocks[taken - 1].cycle);
        unstamped_ = now_;
        if constexpr (counts) count_from_ = counted;
        start_ = position_ = {at, isa::Isa::a64};
        unsettled_ = true;
        return taken;
    }
    /// `cycles`: cycles since the last count, at least the threshold.
    std::uint8_t* put_count(std::uint8_t* out, std::uint64_t cycles) const {
        if (cycles > most_cycles()) {  // unknown
            *out++ = 0x0f;
            return out;
        }
        auto count = static_cast<std::uint32_t>(cycles - threshold_);
        if (count <= 3) {
            *out++ = static_cast<std::uint8_t>(0x10 | count);
        } else if (count <= 15 && choices_.cycle_count_format_2) {
            *out++ = 0x0d;
            *out++ = static_cast<std::uint8_t>(0xf0 | count);
        } else {
            *out++ = 0x0e;
            for (; count > 0x7f; count >>= 7) *out++ = static_cast<std::uint8_t>(count | 0x80);
            *out++ = static_cast<std::uint8_t>(count);
        }
        return out;
    }
    /// Stores eight bytes, the first in the least significant byte.
    WM_INLINE static void put_eight(std::uint8_t* out, std::uint64_t bytes) {
        for (unsigned n = 0; n < 8; ++n) out[n] = static_cast<std::uint8_t>(bytes >> 8 * n);
    }
    /// Writes the address in the fewest bytes, as compress() does. The form cannot be predicted, so the code is
    /// branchless.
    WM_INLINE static std::uint8_t* put_address(std::uint8_t* out, Address at, RecentAddresses& recent) {
        const std::uint64_t a = at.value & address_mask(8, false);
        const auto [newest, middle, oldest] = recent.entries();
        recent.set({a, newest, middle});
        const auto changed = static_cast<unsigned>(std::bit_width(a ^ (newest & ~std::uint64_t{1})));
        const std::uint64_t low = (a >> 2 & 0x7f) << 8;
        const bool two = changed > address_bits(1, false);
        std::uint64_t packet = 0x95 | low | (two ? 0x8000 | (a >> 9 & 0xff) << 16 : 0);
        unsigned count = two ? 3 : 2;
        const bool long_form = changed > address_bits(2, false), wide = changed > address_bits(4, false);
        packet = long_form ? (wide ? 0x9d : 0x9a) | low | (a >> 9 & 0x7f) << 16 | a >> 16 << 24 : packet;
        count = long_form ? (wide ? 9 : 5) : count;
        const bool match = (a == newest) | (a == middle) | (a == oldest);
        packet = match ? (a == newest ? 0x90 : a == middle ? 0x91 : 0x92) : packet;
        count = match ? 1 : count;
        put_eight(out, packet);
        out[8] = static_cast<std::uint8_t>(a >> 56);
        return out + count;
    }

    const bool ordinary_config_;  // no speculation, no decisions by resources, no FIFO that can fill
};

}  // namespace waymark::etm4
