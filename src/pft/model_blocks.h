/// Many blocks at once, and sequences of blocks that repeat. The result is the same as from ModelSession::waypoint(),
/// for blocks that can only give atoms and plain branch packets, with cycle counts if there are any.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>

#include "model_stream.h"

namespace waymark::pft {

class ModelBlocks : protected ModelStream {
protected:
    using ModelStream::ModelStream;
    ~ModelBlocks() = default;

    /// Whether both possible bases of addresses are equal, and AltISA is 0.
    [[nodiscard]] bool plain_bases() const { return base_ == other_base_ && plain(base_.isa); }
    /// Whether AltISA is 0, and no I-sync is needed.
    static constexpr bool plain(Isa isa) { return isa == Isa::a32 || isa == Isa::t32; }

    /// Sends the atoms and branch packets of blocks that begin at `start`, in the state that was sent last, and sets
    /// `start` to the beginning of the block after them. Stops before the first block that may need more, and after the
    /// one with which `sync_bytes` (0: never) request synchronisation. Returns the number of blocks it took.
    /// Precondition: plain_bases().
    std::size_t plain_blocks(std::span<const RetiredBlock> blocks, Place& start, std::uint64_t sync_bytes) {
        if (config_.cycle_accurate)
            return config_.branch_broadcast ? plain_blocks_as<true, true>(blocks, start, sync_bytes)
                                            : plain_blocks_as<true, false>(blocks, start, sync_bytes);
        return config_.branch_broadcast ? plain_blocks_as<false, true>(blocks, start, sync_bytes)
                                        : plain_blocks_as<false, false>(blocks, start, sync_bytes);
    }

    /// The common part of many sequences with the same blocks (flow::Unit::prepare). nullopt: the output depends on the
    /// return stack, or the blocks are not plain.
    [[nodiscard]] std::unique_ptr<flow::PreparedSequence> plain_sequence(const Place& from, std::uint64_t cycle,
                                                                         std::span<const RetiredBlock> blocks) const {
        if (config_.return_stack || !plain(from.isa) || blocks.empty() || blocks.size() > PlainSequence::most_blocks)
            return nullptr;
        auto made = std::make_unique<PlainSequence>();
        std::uint8_t* out = made->head.data();
        Isa isa = from.isa;
        auto at = static_cast<std::uint32_t>(from.address.value);
        made->start = at;
        made->isa = isa;
        made->cycles = blocks.back().cycle - cycle;
        made->blocks = static_cast<std::uint8_t>(blocks.size());
        std::uint32_t atoms = 1;
        for (const RetiredBlock& b : blocks) {
            const isa::Instruction& i = *b.instruction;
            if (!is_plain(b, at, isa) || b.cycle < cycle || b.cycle - cycle > 0xffffffffU) return nullptr;
            const auto next = static_cast<std::uint32_t>(b.next.value);
            const bool addressed = b.passed && (config_.branch_broadcast || i.waypoint != isa::Waypoint::direct);
            if (!config_.cycle_accurate && !addressed) {
                atoms = atoms << 1 | (b.passed ? 0U : 1U);
                if (made->has_target && atoms >= 32) {
                    *out++ = static_cast<std::uint8_t>(0x80U | atoms << 1);
                    atoms = 1;
                }
            }
            if (addressed && !made->has_target) {
                made->has_target = true;
                made->head_bytes = static_cast<std::uint8_t>(out - made->head.data());
                made->head_atoms = atoms;
                made->target = next;
                made->target_isa = b.next_isa;
                out = made->tail.data();
                atoms = 1;
            } else if (addressed) {
                if (atoms != 1) *out++ = static_cast<std::uint8_t>(0x80U | atoms << 1);
                atoms = 1;
                out = put_target(out, next, b.next_isa, made->base, made->base_isa);
            }
            if (addressed) {
                made->base = next;
                made->base_isa = b.next_isa;
            }
            if (config_.cycle_accurate) {
                const MadeBytes count = count_bytes(static_cast<std::uint32_t>(b.cycle - cycle));
                put_made(out, {count.bytes | (addressed ? 0U : 0x80U | (b.passed ? 0U : 2U)), count.count});
                out += count.count;
                cycle = b.cycle;
            }
            at = b.passed ? next : static_cast<std::uint32_t>(b.address.value) + i.bytes;
            isa = b.passed ? b.next_isa : isa;
        }
        made->end = at;
        made->end_isa = isa;
        if (made->has_target) {
            made->tail_bytes = static_cast<std::uint8_t>(out - made->tail.data());
            made->tail_atoms = atoms;
        } else {
            made->head_bytes = static_cast<std::uint8_t>(out - made->head.data());
            made->head_atoms = atoms;
        }
        return made;
    }
    struct TakenSequences {
        std::size_t sequences, blocks;
    };
    /// plain_blocks() for the blocks of each sequence. Precondition: plain_bases(), and plain_sequence() made the
    /// sequences.
    TakenSequences plain_sequences(std::span<const flow::RetiredSequence> sequences, Place& start,
                                   std::uint64_t sync_bytes) {
        constexpr std::size_t most_sequences = 32;
        std::array<std::uint8_t, most_sequences * PlainSequence::most_bytes + PlainSequence::part_bytes> bytes;
        std::uint8_t* out = bytes.data();
        sequences = sequences.first(std::min(sequences.size(), most_sequences));
        const std::uint64_t room = sync_bytes > sync_bytes_ ? sync_bytes - sync_bytes_ : 0;
        const std::uint8_t* const sync =
            sync_bytes == 0 || room > bytes.size() ? bytes.data() + bytes.size() : bytes.data() + room;
        Isa isa = start.isa, base_isa = base_.isa;
        auto at = static_cast<std::uint32_t>(start.address.value);
        auto base = static_cast<std::uint32_t>(base_.address.value);
        std::uint32_t atoms = 1U << atoms_.count | atoms_.n;
        std::uint64_t counted = clock_.counted();
        TakenSequences taken{};
        for (const flow::RetiredSequence& s : sequences) {
            const auto& p = static_cast<const PlainSequence&>(*s.prepared);
            // No block of the sequence may be the first to request synchronisation.
            if (p.start != at || p.isa != isa || sync - out <= std::ptrdiff_t{PlainSequence::most_bytes} ||
                (config_.cycle_accurate && counted + p.cycles != s.cycle)) [[unlikely]]
                break;
            if (config_.cycle_accurate) {
                copy_part(out, p.head, p.head_bytes);
                out += p.head_bytes;
                counted = s.cycle;
            } else {
                // Both have the marker bit above them.
                const auto more = static_cast<unsigned>(std::bit_width(p.head_atoms)) - 1;
                atoms = atoms << more | (p.head_atoms & ~(1U << more));
                while (atoms >= 32) {
                    const auto later = static_cast<unsigned>(std::bit_width(atoms)) - 6;
                    *out++ = static_cast<std::uint8_t>(0x80U | atoms >> later << 1);
                    atoms = 1U << later | (atoms & ~(~0U << later));
                }
            }
            if (p.has_target) {
                if (atoms != 1) *out++ = static_cast<std::uint8_t>(0x80U | atoms << 1);
                out = put_target(out, p.target, p.target_isa, base, base_isa);
                copy_part(out, p.tail, p.tail_bytes);
                out += p.tail_bytes;
                atoms = p.tail_atoms;
                base = p.base;
                base_isa = p.base_isa;
            }
            at = p.end;
            isa = p.end_isa;
            ++taken.sequences;
            taken.blocks += p.blocks;
        }
        if (taken.sequences == 0) return taken;
        start = {{at}, isa};
        base_ = other_base_ = {{base}, base_isa};
        atoms_.count = static_cast<std::uint8_t>(std::bit_width(atoms) - 1);
        atoms_.n = static_cast<std::uint8_t>(atoms & ~(1U << atoms_.count));
        if (config_.cycle_accurate) clock_.count_to(counted);
        if (out != bytes.data()) put({bytes.data(), static_cast<std::size_t>(out - bytes.data())});
        return taken;
    }

private:
    /// A sequence of plain blocks. All its bytes are known, except the first address, which is compressed against an
    /// earlier one, and the atoms before that address, which are sent together with earlier atoms.
    struct PlainSequence final : flow::PreparedSequence {
        static constexpr std::size_t most_of_a_block = 10;
        static constexpr std::size_t part_bytes = 80;  ///< with room for what a store writes beyond the packets
        static constexpr std::size_t most_bytes = most_blocks * most_of_a_block + 8;
        static_assert(part_bytes >= most_bytes);
        std::uint32_t start{}, end{};
        std::uint32_t target{}, base{};  ///< the first address that is sent; the last
        std::uint32_t head_atoms = 1, tail_atoms = 1;
        Isa isa{}, end_isa{}, target_isa{}, base_isa{};
        bool has_target = false;
        std::uint8_t head_bytes = 0, tail_bytes = 0, blocks = 0;
        std::uint64_t cycles{};  ///< cycles from entering the sequence to the last waypoint
        std::array<std::uint8_t, part_bytes> head{}, tail{};  ///< before the first address; after it
    };
    WM_INLINE static void copy_part(std::uint8_t* out, const std::array<std::uint8_t, PlainSequence::part_bytes>& part,
                                    std::size_t bytes) {
        constexpr std::size_t mostly = 16;
        std::copy_n(part.begin(), mostly, out);
        if (bytes > mostly) [[unlikely]]
            std::copy(part.begin() + mostly, part.end(), out + mostly);
    }
    /// Whether the block begins at `at`, and yields only an atom or a plain branch packet.
    [[nodiscard]] static bool is_plain(const RetiredBlock& b, std::uint32_t at, Isa isa) {
        const isa::Instruction& i = *b.instruction;
        const auto address = static_cast<std::uint32_t>(b.address.value);
        return b.isa == isa && plain(b.next_isa) && address >= at && address + i.bytes - at <= 4096 &&
               !i.exception_return && i.waypoint != isa::Waypoint::barrier && address + i.bytes >= address;
    }
    /// `counts`: cycle-accurate; `broadcast`: branch broadcast.
    template <bool counts, bool broadcast>
    std::size_t plain_blocks_as(std::span<const RetiredBlock> blocks, Place& start, std::uint64_t sync_bytes) {
        constexpr std::size_t most_bytes =
            counts ? 10 : 6;  // maximum size for a block: atoms and an address, or also a count
        constexpr std::size_t most_blocks = 400;
        std::array<std::uint8_t, most_blocks * most_bytes + sizeof(std::uint64_t)> bytes;
        std::uint8_t* out = bytes.data();
        blocks = blocks.first(std::min(blocks.size(), most_blocks));
        // A block that would send more bytes than this requests synchronisation.
        const std::uint64_t room = sync_bytes > sync_bytes_ ? sync_bytes - sync_bytes_ : 0;
        const std::uint8_t* const sync =
            sync_bytes == 0 || room > bytes.size() ? bytes.data() + bytes.size() : bytes.data() + room;
        const bool stacks = config_.return_stack;
        Isa isa = start.isa, base_isa = base_.isa;
        auto at = static_cast<std::uint32_t>(start.address.value);
        auto base = static_cast<std::uint32_t>(base_.address.value);
        // Atoms with the marker bit above them, in their encoding.
        std::uint32_t atoms = 1U << atoms_.count | atoms_.n;
        std::uint64_t counted = clock_.counted();
        std::size_t taken = 0;
        for (const RetiredBlock& b : blocks) {
            const isa::Instruction& i = *b.instruction;
            const auto address = static_cast<std::uint32_t>(b.address.value),
                       next = static_cast<std::uint32_t>(b.next.value);
            if (out >= sync || b.isa != isa || !plain(b.next_isa) || address < at || address + i.bytes - at > 4096 ||
                i.exception_return) [[unlikely]]
                break;
            const std::uint32_t behind = address + i.bytes;
            const std::uint64_t cycles = b.cycle > counted ? b.cycle - counted : 0;
            if (i.waypoint == isa::Waypoint::barrier || behind < address || (counts && cycles > 0xffffffffU))
                [[unlikely]]
                break;
            bool addressed = b.passed & (broadcast | (i.waypoint != isa::Waypoint::direct));
            if (stacks && addressed) addressed = !returned_by_stack(b);
            if (addressed) {
                if constexpr (!counts) {
                    if (atoms != 1) *out++ = static_cast<std::uint8_t>(0x80U | atoms << 1);
                    atoms = 1;
                }
                out = put_target(out, next, b.next_isa, base, base_isa);
                base = next;
                base_isa = b.next_isa;
            } else if constexpr (!counts) {
                atoms = atoms << 1 | (b.passed ? 0U : 1U);
                *out = static_cast<std::uint8_t>(0x80U | atoms << 1);
                out += atoms >> 5;
                atoms = atoms >= 32 ? 1 : atoms;
            }
            if constexpr (counts) {
                const MadeBytes count = count_bytes(static_cast<std::uint32_t>(cycles));
                put_made(out, {count.bytes | (addressed ? 0U : 0x80U | (b.passed ? 0U : 2U)), count.count});
                out += count.count;
                counted += cycles;
            }
            if (stacks && i.link && b.passed) stack_.push({{{behind}, isa}, sent_.ns, true});
            at = b.passed ? next : behind;
            isa = b.passed ? b.next_isa : isa;
            ++taken;
        }
        if (taken == 0) return 0;
        start = {{at}, isa};
        base_ = other_base_ = {{base}, base_isa};
        atoms_.count = static_cast<std::uint8_t>(std::bit_width(atoms) - 1);
        atoms_.n = static_cast<std::uint8_t>(atoms & ~(1U << atoms_.count));
        if constexpr (counts) clock_.count_to(counted);
        if (out != bytes.data()) put({bytes.data(), static_cast<std::size_t>(out - bytes.data())});
        return taken;
    }
    /// 2.5: the address bytes of a branch packet without information, with AltISA 0. The size usually equals the size
    /// of the previous packet for this branch, so jumps are predictable.
    WM_INLINE static std::uint8_t* put_target(std::uint8_t* out, std::uint32_t to, Isa isa, std::uint32_t base,
                                              Isa base_isa) {
        const unsigned shift = isa == Isa::a32 ? 2 : 1;
        const std::uint32_t bits = to >> shift, differs = (to ^ base) >> shift;
        const auto put = [&](std::uint32_t byte) { *out++ = static_cast<std::uint8_t>(byte); };
        if (isa != base_isa || differs >> target_bits(4) != 0) {  // all five bytes
            put(0x80 | (bits & 0x3f) << 1 | 1);
            for (unsigned n = 6; n < 27; n += 7) put(0x80 | bits >> n);
            put(bits >> 27 | (isa == Isa::a32 ? 0x08U : 0x10U));
        } else if (differs >> target_bits(1) == 0) {
            put((bits & 0x3f) << 1 | 1);
        } else {
            put(0x80 | (bits & 0x3f) << 1 | 1);
            unsigned n = 6;
            // In a last byte, bit 6 announces information.
            for (; differs >> (n + 6) != 0; n += 7) put(0x80 | bits >> n);
            put(bits >> n & 0x3f);
        }
        return out;
    }
    /// Up to eight bytes, the first in the least significant byte.
    struct MadeBytes {
        std::uint64_t bytes;
        unsigned count;
    };
    /// Stores all eight bytes, of which `count` are kept.
    WM_INLINE static void put_made(std::uint8_t* out, const MadeBytes& made) {
        for (unsigned n = 0; n < 8; ++n) out[n] = static_cast<std::uint8_t>(made.bytes >> 8 * n);
    }
    /// 2.3: a cycle count, with bit 7 of its first byte 0.
    WM_INLINE static MadeBytes count_bytes(std::uint32_t cycles) {
        static constexpr std::array<std::uint8_t, 33> counts = [] {
            std::array<std::uint8_t, 33> table{};
            for (unsigned width = 0; width < table.size(); ++width)
                table[width] = static_cast<std::uint8_t>(width <= 4 ? 1 : 1 + (width - 4 + 6) / 7);
            return table;
        }();
        static constexpr std::array<std::uint64_t, 6> more{0, 0, 0x40, 0x8040, 0x808040, 0x80808040};
        const unsigned count = counts[static_cast<unsigned>(std::bit_width(cycles))];
        const std::uint64_t all = (cycles & 0xfU) << 2 | (cycles & 0x7f0U) << 4 | (cycles & 0x3f800U) << 5 |
                                  std::uint64_t{cycles & 0x1fc0000U} << 6 | std::uint64_t{cycles & 0xfe000000U} << 7;
        return {all | more[count], count};
    }
    /// The part of needs_packet() for an unchanged state. Returns false if a packet is needed.
    bool returned_by_stack(const RetiredBlock& b) {
        if (stack_.empty()) return false;
        const ModelReturnStack::Entry& top = stack_.top();
        if (!top.certain || top.place != Place{b.next, b.next_isa} || top.ns != sent_.ns) return false;
        stack_.pop();
        return true;
    }
};

}  // namespace waymark::pft
