#include "waymark/itm/reference_decoder.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace waymark::itm {

namespace {

using protocol::Message;
using protocol::MessageKind;

// ---- section 1: bytes → packets

/// A packet, or bytes that do not form one (`length` applies to both).
struct Piece {
    enum class What : std::uint8_t { sync, overflow, local, global_1, global_2, extension, software, hardware, damage };
    What what{};
    std::size_t first{}, length{};
    std::uint64_t payload{};  // little-endian, or bytes of seven bits
    std::size_t payload_bytes{};
    std::string why{};  // of damage
};

class Split {
public:
    explicit Split(Bytes stream) : stream_(stream) {
        while (at_ < stream_.size()) step();
        end_damage(stream_.size());
    }
    std::vector<Piece> pieces;

private:
    [[nodiscard]] unsigned byte(std::size_t at) const { return stream_[at]; }

    void step() {
        const unsigned header = byte(at_);
        if (header == 0) return zeros();
        if ((header & 3U) != 0) {
            const std::size_t bytes = (header & 3U) == 3 ? 4 : header & 3U;
            return fixed((header & 4U) != 0 ? Piece::What::hardware : Piece::What::software, bytes);
        }
        if (header == 0x70) return fixed(Piece::What::overflow, 0);
        if ((header & 0x8fU) == 0) return fixed(Piece::What::local, 0);
        if ((header & 0xcfU) == 0xc0) return sevens(Piece::What::local, {1, 2, 3, 4});
        if (header == 0x94) return sevens(Piece::What::global_1, {1, 2, 3, 4});
        if (header == 0xb4) return sevens(Piece::What::global_2, {4, 6});
        if ((header & 0x8bU) == 0x08) return fixed(Piece::What::extension, 0);
        if ((header & 0x8bU) == 0x88) return sevens(Piece::What::extension, {1, 2, 3, 4});
        damage(1, "reserved header");
    }
    void zeros() {
        std::size_t end = at_;
        while (end < stream_.size() && byte(end) == 0) ++end;
        if (end == stream_.size()) {
            // Padding is no message.
            end_damage(at_);
            at_ = end;
        } else if (end - at_ >= 5 && byte(end) == 0x80) {
            packet({Piece::What::sync, at_, end - at_ + 1});
        } else {
            damage(end - at_, "malformed packet");
        }
    }
    void fixed(Piece::What what, std::size_t bytes) {
        if (at_ + 1 + bytes > stream_.size()) return cut();
        Piece piece{what, at_, 1 + bytes, 0, bytes};
        for (std::size_t i = bytes; i != 0; --i) piece.payload = piece.payload << 8 | byte(at_ + i);
        packet(piece);
    }
    void sevens(Piece::What what, const std::vector<std::size_t>& sizes) {
        Piece piece{what, at_, 1};
        for (std::size_t n = 1; n <= sizes.back(); ++n) {
            if (at_ + n >= stream_.size()) return cut();
            piece.payload |= std::uint64_t{byte(at_ + n) & 0x7fU} << (7 * (n - 1));
            if ((byte(at_ + n) & 0x80U) != 0) continue;
            piece.length = 1 + n;
            piece.payload_bytes = n;
            for (const std::size_t size : sizes)
                if (size == n) return packet(piece);
            break;
        }
        damage(1, "malformed packet");
    }
    void packet(Piece piece) {
        end_damage(at_);
        at_ += piece.length;
        pieces.push_back(std::move(piece));
    }
    /// One stretch of damage extends to the next packet, and has the reason of its first byte. The first packet may
    /// have begun before the stream: a stretch within its length is the head of the stream, unless a sync came.
    void damage(std::size_t bytes, const char* why) {
        if (!damaged_from_) {
            damaged_from_ = at_;
            constexpr std::size_t longest_packet = 7;
            const auto is_sync = [](const Piece& p) { return p.what == Piece::What::sync; };
            if (at_ < longest_packet && std::none_of(pieces.begin(), pieces.end(), is_sync)) why = "unsynchronised";
            why_ = why;
        }
        at_ += bytes;
    }
    void cut() {
        end_damage(at_);
        pieces.push_back({Piece::What::damage, at_, stream_.size() - at_, 0, 0, "incomplete packet"});
        at_ = stream_.size();
    }
    void end_damage(std::size_t end) {
        if (!damaged_from_) return;
        pieces.push_back({Piece::What::damage, *damaged_from_, end - *damaged_from_, 0, 0, why_});
        damaged_from_.reset();
    }

    Bytes stream_;
    std::size_t at_ = 0;
    std::optional<std::size_t> damaged_from_;
    std::string why_;
};

// ---- section 2: packets → messages

/// The table of hardware sources: whether a discriminator, a size and a value are defined.
bool is_known(unsigned id, std::size_t bytes, std::uint64_t value) {
    const bool one = bytes == 1, two = bytes == 2, four = bytes == 4;
    if (id == 0) return one && value >= 1 && value < 0x40;
    if (id == 1) return two && (value & ~0x31ffULL) == 0 && value >> 12 != 0;
    if (id == 2) return four || (one && (value == 0 || value == 0xff));
    if (id == 3) return one;
    if (id >= 8 && id <= 15) return id % 2 == 0 ? four || (one && value == 1) : two || four;
    return id >= 16 && id <= 23;
}

std::string exception(std::uint64_t number) {
    static const std::map<std::uint64_t, std::string> names{
        {0, "thread"},     {1, "Reset"},       {2, "NMI"},     {3, "HardFault"},     {4, "MemManage"}, {5, "BusFault"},
        {6, "UsageFault"}, {7, "SecureFault"}, {11, "SVCall"}, {12, "DebugMonitor"}, {14, "PendSV"},   {15, "SysTick"}};
    if (number >= 16) return "IRQ " + std::to_string(number - 16);
    const auto found = names.find(number);
    return found == names.end() ? "exception " + std::to_string(number) : found->second;
}

std::string counters(std::uint64_t bits) {
    std::string out;
    unsigned bit = 0;
    for (const char* name : {"CPI", "EXC", "SLEEP", "LSU", "FOLD", "CYC"})
        if ((bits >> bit++ & 1U) != 0) out += (out.empty() ? "" : ", ") + std::string(name);
    return out;
}

class Read {
public:
    Read(Bytes stream, const Config& config) : stream_(stream), prescaler_(config.prescaler) {
        for (const Piece& piece : Split(stream).pieces) {
            if (piece.what != Piece::What::hardware) joins_ = false;
            one(piece);
        }
    }
    std::vector<Message> messages;

private:
    [[nodiscard]] unsigned header(const Piece& piece) const { return stream_[piece.first]; }
    Message& add(MessageKind kind, const Piece& piece) {
        Message m;
        m.kind = kind;
        m.at = {Offset{piece.first}, piece.length};
        m.confirmed = confirmed_;
        messages.push_back(m);
        return messages.back();
    }

    void one(const Piece& p) {
        switch (p.what) {
            case Piece::What::sync: confirmed_ = true; break;
            case Piece::What::overflow:
                begin_segment();
                lower_bound_ = true;
                add(MessageKind::overflow, p);
                begin_segment();
                break;
            case Piece::What::damage:
                begin_segment();
                confirmed_ = false;
                lower_bound_ = true;
                page_.reset();
                global_known_ = false;
                add(MessageKind::damage, p).name = p.why;
                begin_segment();
                break;
            case Piece::What::local: local(p); break;
            case Piece::What::global_1: {
                const std::size_t bits = p.payload_bytes == 4 ? 26 : 7 * p.payload_bytes;
                const std::uint64_t low = (1ULL << bits) - 1;
                global_ = (global_ & ~low) | (p.payload & low);
                if (p.payload_bytes == 4 && (p.payload >> 27 & 1U) != 0) global_known_ = false;
                global(p);
                break;
            }
            case Piece::What::global_2:
                global_ = p.payload << 26 | (global_ & ((1U << 26) - 1));
                global_known_ = true;
                global(p);
                break;
            case Piece::What::extension:
                if (p.length == 1 && (header(p) & 4U) == 0)
                    page_ = header(p) >> 4 & 7U;
                else
                    add(MessageKind::reserved, p).name = "extension";
                break;
            case Piece::What::software: {
                Message& m = add(MessageKind::text, p);
                const unsigned port = header(p) >> 3;
                if (page_)
                    m.port = 32 * *page_ + port;
                else
                    m.name = "port " + std::to_string(port) + " of an unknown page";
                m.value = p.payload;
                m.value_bytes = static_cast<std::uint8_t>(p.payload_bytes);
                break;
            }
            case Piece::What::hardware: hardware(p); break;
        }
    }
    void global(const Piece& p) {
        if (global_known_) add(MessageKind::time, p).value = global_;
    }
    void hardware(const Piece& p) {
        const unsigned id = header(p) >> 3;
        if (!is_known(id, p.payload_bytes, p.payload)) {
            Message& m = add(MessageKind::reserved, p);
            m.number = id;
            m.value = p.payload;
            m.value_bytes = static_cast<std::uint8_t>(p.payload_bytes);
        } else if (id == 0 || id == 3) {
            Message& m = add(MessageKind::counters, p);
            constexpr const char* digits = "0123456789abcdef";
            m.name = id == 0 ? counters(p.payload)
                             : std::string("PMU 0x") + digits[p.payload >> 4] + digits[p.payload & 15U];
            m.value = p.payload;
            m.value_bytes = 1;
        } else if (id == 1) {
            Message& m = add(MessageKind::exception, p);
            m.number = static_cast<std::uint32_t>(p.payload & 0x1ff);
            m.name = exception(*m.number);
            m.change = p.payload >> 12 == 1   ? Message::Change::entered
                       : p.payload >> 12 == 2 ? Message::Change::left
                                              : Message::Change::returned;
        } else if (id == 2) {
            Message& m = add(MessageKind::sample, p);
            if (p.payload_bytes == 4)
                m.pc = p.payload;
            else
                m.name = p.payload == 0 ? "asleep" : "not permitted";
        } else {
            access(p, id);
            return;
        }
        joins_ = false;
    }
    /// An access is a group: PC and address, each at most once, then the value, which completes it.
    void access(const Piece& p, unsigned id) {
        const std::uint32_t comparator = (id & 7U) >> 1;
        const bool value = id >= 16, address = !value && id % 2 == 1,
                   match = !value && !address && p.payload_bytes == 1;
        const bool same = joins_ && messages.back().comparator == comparator && !match &&
                          !(address && messages.back().address) && !(!value && !address && messages.back().pc);
        if (!same) add(MessageKind::access, p).comparator = comparator;
        Message& m = messages.back();
        m.at.bytes = p.first + p.length - m.at.first.value;
        if (value) {
            m.value = p.payload;
            m.value_bytes = static_cast<std::uint8_t>(p.payload_bytes);
            m.direction = id % 2 == 1 ? Message::Direction::write : Message::Direction::read;
        } else if (address) {
            m.address = p.payload;
            m.address_bits = static_cast<std::uint8_t>(8 * p.payload_bytes);
        } else if (match) {
            m.name = "match";
        } else {
            m.pc = p.payload;
        }
        joins_ = !value && !match;
    }

    // ---- times: a timestamp applies to all messages since the previous timestamp, overflow or damage

    void begin_segment() { segment_ = messages.size(); }
    void local(const Piece& p) {
        const bool is_long = p.length != 1;
        cycles_ += (is_long ? p.payload : header(p) >> 4) * prescaler_;
        const unsigned relation = is_long ? header(p) >> 4 & 3U : 0;
        constexpr std::size_t most = 4096;
        if (messages.size() - segment_ > most) segment_ = messages.size() - most;
        for (std::size_t i = segment_; i < messages.size(); ++i) {
            messages[i].cycles = cycles_;
            messages[i].at_least = lower_bound_;
            messages[i].timestamp_late = relation % 2 == 1;
            messages[i].message_late = relation >= 2;
        }
        begin_segment();
    }

    Bytes stream_;
    std::uint64_t prescaler_;
    std::optional<unsigned> page_ = 0U;
    std::uint64_t cycles_ = 0, global_ = 0;
    bool confirmed_ = false, lower_bound_ = false, global_known_ = false;
    bool joins_ = false;  // the last message is an access to which more packets may belong
    std::size_t segment_ = 0;
};

}  // namespace

std::vector<Message> reference_messages(Bytes stream, const Config& config) { return Read(stream, config).messages; }

}  // namespace waymark::itm
