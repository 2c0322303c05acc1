#include "waymark/record_m/stores.h"

#include <bit>

namespace waymark::record {

namespace {

/// Decodes the stores of one instruction, with its registers.
class StoreDecoder {
public:
    explicit StoreDecoder(const CoreInstruction& i) : op_(i.opcode), r_(i.before.r) {}

    std::vector<Store> narrow() {
        switch (op_ >> 12) {
            case 0b0101:  // STR, STRH and STRB with an offset in a register
                if ((op_ >> 9 & 7U) == 0) one(4, r_[field(3)] + r_[field(6)]);
                if ((op_ >> 9 & 7U) == 1) one(2, r_[field(3)] + r_[field(6)]);
                if ((op_ >> 9 & 7U) == 2) one(1, r_[field(3)] + r_[field(6)]);
                break;
            case 0b0110:
                if (!loads()) one(4, r_[field(3)] + (op_ >> 6 & 31U) * 4);
                break;
            case 0b0111:
                if (!loads()) one(1, r_[field(3)] + (op_ >> 6 & 31U));
                break;
            case 0b1000:
                if (!loads()) one(2, r_[field(3)] + (op_ >> 6 & 31U) * 2);
                break;
            case 0b1001:
                if (!loads()) out_.push_back({r_[13] + (op_ & 0xffU) * 4, r_[op_ >> 8 & 7U], 4});
                break;
            case 0b1011:  // PUSH
                if ((op_ & 0xfe00U) == 0xb400U) {
                    const std::uint32_t list = (op_ & 0xffU) | (op_ >> 8 & 1U) << 14;
                    many(r_[13] - 4 * static_cast<std::uint32_t>(std::popcount(list)), list);
                }
                break;
            case 0b1100:  // STM
                if (!loads()) many(r_[op_ >> 8 & 7U], op_ & 0xffU);
                break;
            default: break;
        }
        return std::move(out_);
    }

    std::vector<Store> wide() {
        const std::uint32_t base = r_[op_ >> 16 & 0xfU], source = r_[op_ >> 12 & 0xfU];
        const std::uint32_t high = op_ >> 16;
        if ((high & 0xff10U) == 0xf800U && (high >> 5 & 3U) != 3) {  // STRB, STRH, STR
            const auto bytes = static_cast<std::uint8_t>(1U << (high >> 5 & 3U));
            if ((high & 0x80U) != 0)
                put(base + (op_ & 0xfffU), source, bytes);
            else if ((op_ & 0xfc0U) == 0)
                put(base + (r_[op_ & 0xfU] << (op_ >> 4 & 3U)), source, bytes);
            else if ((op_ & 0x800U) != 0)
                put(indexed(base, op_ & 0xffU, (op_ & 0x400U) != 0, (op_ & 0x200U) != 0), source, bytes);
        } else if ((high & 0xffd0U) == 0xe880U || (high & 0xffd0U) == 0xe900U) {  // STM, STMDB
            const std::uint32_t list = op_ & 0x5fffU;
            const std::uint32_t size = 4 * static_cast<std::uint32_t>(std::popcount(list));
            many((high & 0x100U) != 0 ? base - size : base, list);
        } else if ((high & 0xfe50U) == 0xe840U && (high & 0x120U) != 0) {  // STRD
            const std::uint32_t at = indexed(base, (op_ & 0xffU) * 4, (high & 0x100U) != 0, (high & 0x80U) != 0);
            put(at, source, 4);
            put(at + 4, r_[op_ >> 8 & 0xfU], 4);
        } else if ((high & 0xfff0U) == 0xe840U &&
                   (op_ >> 12 & 0xfU) != 15) {  // STREX; with register 15 the encoding is TT
            put(base + (op_ & 0xffU) * 4, source, 4);
        } else if ((high & 0xfff0U) == 0xe8c0U && (op_ & 0xc0U) != 0) {  // STREXB, STREXH, STL and the like
            const std::uint32_t kind = op_ >> 4 & 3U;
            if (kind != 3) put(base, source, static_cast<std::uint8_t>(1U << kind));
        }
        return std::move(out_);
    }

private:
    [[nodiscard]] std::uint32_t field(unsigned bit) const { return op_ >> bit & 7U; }
    [[nodiscard]] bool loads() const { return (op_ & 0x800U) != 0; }
    static std::uint32_t indexed(std::uint32_t base, std::uint32_t offset, bool before, bool add) {
        return !before ? base : add ? base + offset : base - offset;
    }
    void one(std::uint8_t bytes, std::uint32_t address) { put(address, r_[field(0)], bytes); }
    void put(std::uint32_t address, std::uint32_t value, std::uint8_t bytes) {
        const std::uint32_t mask = bytes == 4 ? ~std::uint32_t{0} : (std::uint32_t{1} << 8 * bytes) - 1;
        out_.push_back({address, value & mask, bytes});
    }
    void many(std::uint32_t address, std::uint32_t list) {
        for (unsigned n = 0; n < 16; ++n) {
            if ((list >> n & 1U) == 0) continue;
            put(address, r_[n], 4);
            address += 4;
        }
    }

    const std::uint32_t op_;
    const std::array<std::uint32_t, 16>& r_;
    std::vector<Store> out_;
};

}  // namespace

std::vector<Store> stores_of(const CoreInstruction& i) {
    if (const auto condition = it_condition(i.before.xpsr); condition && !holds(*condition, i.before.xpsr)) return {};
    StoreDecoder decoder(i);
    return i.bytes == 2 ? decoder.narrow() : decoder.wide();
}

}  // namespace waymark::record
