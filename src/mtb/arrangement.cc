#include "waymark/mtb/arrangement.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>

#include "waymark/core/numbers.h"
#include "waymark/mtb/parser.h"
#include "waymark/mtb/registers.h"

namespace waymark::mtb {

namespace {

using protocol::Arrangement;

struct Taken {
    std::vector<JumpPacket> packets;  ///< packets before the first words of zeros
    std::uint64_t all = 0;            ///< everywhere
    bool unwritten = false;           ///< there are words of zeros
    void operator()(const JumpPacket& packet, Extent) {
        ++all;
        if (!unwritten) packets.push_back(packet);
    }
    void operator()(const Gap& gap) { unwritten |= gap.reason == GapReason::padding; }
};
Taken packets_of(Bytes bytes) {
    Taken taken;
    Parser<Taken> parser({}, taken);
    parser.feed(bytes);
    parser.finish();
    return taken;
}

/// Number of packets that continue where the previous one led, without repeating it.
std::size_t fits_in(Bytes bytes) {
    const std::vector<JumpPacket> packets = packets_of(bytes).packets;
    std::size_t fits = 0;
    for (std::size_t i = 1; i < packets.size(); ++i)
        fits += !packets[i].starts() && packets[i] != packets[i - 1] && can_follow(packets[i - 1], packets[i]) ? 1 : 0;
    return fits;
}

/// One dump, and the place of the buffer in it.
class Dump {
public:
    Dump(Bytes dump, const Config& config, Arrangement& out)
        : dump_(dump.first(dump.size() / packet_bytes * packet_bytes)), config_(config), out_(out) {
        if (config.position) position_ = from_value<MtbPosition>(*config.position);
        if (config.master) master_ = from_value<MtbMaster>(*config.master);
        if (const std::size_t rest = dump.size() % packet_bytes; rest != 0)
            out_.problems.push_back(fmt::format(
                "the dump ends inside a packet: its size is {}, not a multiple of {}; the last {} are left out.",
                counted(dump.size(), "byte"), packet_bytes, counted(rest, "byte")));
    }
    void arrange() {
        if (dump_.empty()) return;
        find_buffer();
        if (position_ && pointer() <= buffer().size())
            order_by_pointer();
        else
            order_by_packets();
        if (master_ && master_->enable)
            out_.problems.emplace_back(
                "tracing was on while the memory was copied (EN of MTB_MASTER is 1), so the newest packets may be of "
                "the "
                "program that copied it. Stop tracing before the copy.");
        if (stopped_at_watermark()) out_.ends = "at the watermark (MTB_FLOW)";
    }

private:
    [[nodiscard]] bool stopped_at_watermark() const {
        if (!config_.flow || !position_) return false;
        const auto flow = from_value<MtbFlow>(*config_.flow);
        return flow.auto_stop && flow.watermark == position_->pointer && !(master_ && master_->enable);
    }
    [[nodiscard]] Bytes buffer() const {
        return dump_.subspan(start_, std::min<std::uint64_t>(size_, dump_.size() - start_));
    }
    /// Offset in the buffer at which the next packet is written.
    [[nodiscard]] std::uint64_t pointer() const {
        return std::uint64_t{position_->pointer} * packet_bytes & (std::bit_ceil(size_) - 1);
    }

    void find_buffer() {
        size_ = dump_.size();
        if (!master_) {
            out_.problems.push_back(fmt::format("MTB_MASTER is not given; the dump ({}) is taken for the whole buffer.",
                                                counted(dump_.size(), "byte")));
            return;
        }
        const std::uint64_t said = std::uint64_t{1} << (master_->mask + 4U);
        if (said <= dump_.size()) {
            size_ = said;
            if (said < dump_.size()) find_block();
            return;
        }
        // A mask that is too large acts like the largest possible one.
        if (std::has_single_bit(dump_.size())) return;
        size_ = said;
        out_.problems.push_back(fmt::format("the dump has {}, but by MTB_MASTER the buffer has {}: the dump is cut.",
                                            counted(dump_.size(), "byte"), said));
    }
    /// The dump contains the whole memory: find the block with the buffer.
    void find_block() {
        std::vector<std::uint64_t> blocks;
        const auto add = [&](std::uint64_t at) {
            if (at + size_ <= dump_.size()) blocks.push_back(at);
        };
        if (position_) {
            const std::uint64_t block = std::uint64_t{position_->pointer} * packet_bytes & ~(size_ - 1);
            const std::uint64_t memory = std::bit_ceil(dump_.size());
            add(block & (memory - 1));
            if (config_.base) add((block - *config_.base) & (memory - 1));
        } else {
            for (std::uint64_t at = 0; at < dump_.size(); at += size_) add(at);
        }
        if (blocks.empty()) {
            out_.problems.push_back(
                fmt::format("MTB_POSITION {:#010x} points behind the dump, which has {}; its first {} are read as the "
                            "buffer. Dump the memory from MTB_BASE on, or the buffer alone.",
                            *config_.position, counted(dump_.size(), "byte"), counted(size_, "byte")));
            return;
        }
        start_ = *std::max_element(blocks.begin(), blocks.end(), [&](std::uint64_t a, std::uint64_t b) {
            return fits_in(dump_.subspan(a, size_)) < fits_in(dump_.subspan(b, size_));
        });
        if (!position_)
            out_.problems.push_back(
                fmt::format("MTB_POSITION is not given; the buffer is taken to be the block at offset {:#x}, "
                            "whose packets fit each other best.",
                            start_));
    }

    void piece(std::uint64_t first, std::uint64_t end, bool lost = false) {
        end = std::min<std::uint64_t>(end, buffer().size());
        if (first < end) out_.pieces.push_back({start_ + first, end - first, lost});
    }
    void order_by_pointer() {
        const std::uint64_t next = pointer();
        // If the watermark equals the size, the pointer wraps and tracing stops before anything is overwritten.
        if (position_->wrap && next == 0 && stopped_at_watermark()) return piece(0, size_);
        if (position_->wrap) {
            piece(next, size_);
            piece(0, next, buffer().size() < size_);
            out_.wrapped = true;
            return;
        }
        piece(0, next);
        const Bytes behind = buffer().subspan(next);
        const std::uint64_t stale = packets_of(behind).all;
        if (stale != 0)
            out_.problems.push_back(fmt::format(
                "WRAP of MTB_POSITION is 0, so {} behind the pointer (offset {:#x}) {} no trace of this run, and "
                "{} left out. If a reader cleared WRAP before it read MTB_POSITION, set bit 2.",
                counted(stale, "packet"), start_ + next, are(stale), are(stale)));
    }
    void order_by_packets() {
        const Taken taken = packets_of(buffer());
        const std::string assumed =
            position_ ? fmt::format("MTB_POSITION {:#010x} points outside the dump", *config_.position)
                      : "MTB_POSITION is not given";
        if (taken.packets.empty() || taken.unwritten) {
            piece(0, size_);
            if (!taken.packets.empty())
                out_.problems.push_back(fmt::format("{}; behind {} there are zeros, so the buffer did not wrap.",
                                                    assumed, counted(taken.packets.size(), "packet")));
            return;
        }
        const Seam seam = find_seam(taken.packets);
        const std::uint64_t oldest = seam.oldest * packet_bytes;
        piece(oldest, size_);
        piece(0, oldest);
        // A buffer without an unwritten word is full. Whether it also wrapped cannot be excluded.
        out_.wrapped = true;
        if (seam.breaks == 1) {
            out_.problems.push_back(
                fmt::format("{}; the oldest packet is taken to be at offset {:#x}, the only place where a "
                            "packet cannot follow the one before.",
                            assumed, start_ + oldest));
        } else {
            out_.problems.push_back(fmt::format(
                "{}, and {} packet cannot follow the one before, so which is the oldest is not known; they are "
                "read as they lie.",
                assumed, seam.breaks == 0 ? "at no place a" : fmt::format("at {} places a", seam.breaks)));
        }
    }

    const Bytes dump_;
    const Config& config_;
    Arrangement& out_;
    std::optional<MtbPosition> position_;
    std::optional<MtbMaster> master_;
    std::uint64_t start_ = 0, size_ = 0;
};

}  // namespace

Seam find_seam(const std::vector<JumpPacket>& ring) {
    Seam out;
    for (std::size_t i = 0; i < ring.size(); ++i)
        if (!can_follow(ring[i == 0 ? ring.size() - 1 : i - 1], ring[i])) {
            ++out.breaks;
            out.oldest = i;
        }
    if (out.breaks != 1) out.oldest = 0;
    return out;
}

std::optional<std::size_t> written_packets(Bytes dump, bool gaps) {
    const auto end = std::find_if(dump.rbegin(), dump.rend(), [](std::uint8_t byte) { return byte != 0; });
    const auto bytes = static_cast<std::size_t>(dump.rend() - end);
    const std::size_t packets = (bytes + packet_bytes - 1) / packet_bytes;
    if (packets == 0 || (packets + 1) * packet_bytes > dump.size()) return std::nullopt;
    if (!gaps && packets_of(dump.first(packets * packet_bytes)).unwritten) return std::nullopt;
    return packets;
}

protocol::Arrangement arrange(Bytes dump, const Config& config) {
    protocol::Arrangement out;
    Dump(dump, config, out).arrange();
    return out;
}

}  // namespace waymark::mtb
