#include <gtest/gtest.h>

#include <ostream>
#include <vector>

#include "waymark/isa/decode_instr.h"

namespace waymark::isa {

std::ostream& operator<<(std::ostream& out, const Fetched& f) {
    return out << std::hex << "0x" << f.opcode << std::dec << ", " << unsigned{f.bytes} << " bytes, section "
               << f.section;
}

namespace {

struct Piece {
    std::uint64_t address;
    std::vector<std::uint8_t> bytes;
};

/// Pieces of memory, each a section under its index.
class Pieces : public CodeReader {
public:
    explicit Pieces(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}

    [[nodiscard]] Code at(Address address, const Space&) const override {
        for (std::size_t i = 0; i < pieces_.size(); ++i) {
            const Piece& piece = pieces_[i];
            if (address.value < piece.address || address.value - piece.address >= piece.bytes.size()) continue;
            return {Bytes(piece.bytes).subspan(address.value - piece.address), static_cast<std::uint32_t>(i)};
        }
        return {};
    }

private:
    std::vector<Piece> pieces_;
};

Fetched fetch_from(std::vector<Piece> pieces, std::uint64_t address, Isa isa) {
    return fetch(Pieces(std::move(pieces)), Space{}, {address}, isa);
}

const Fetched unknown{};

TEST(Fetch, IsLittleEndian) {
    const std::vector<Piece> code{{0x1000, {0x11, 0x22, 0x33, 0x44, 0x00, 0xf0, 0x01, 0xf8}}};
    EXPECT_EQ(fetch_from(code, 0x1000, Isa::a32), (Fetched{0x44332211, 4, 0}));
    EXPECT_EQ(fetch_from(code, 0x1000, Isa::t32), (Fetched{0x2211, 2, 0}));
    EXPECT_EQ(fetch_from(code, 0x1004, Isa::t32), (Fetched{0xf000f801, 4, 0}));
    EXPECT_EQ(fetch_from(code, 0x1004, Isa::tee), (Fetched{0xf000f801, 4, 0}));
}

/// Counts requests for memory.
class Asked final : public Pieces {
public:
    using Pieces::Pieces;
    [[nodiscard]] Code at(Address address, const Space& space) const override {
        ++times;
        return Pieces::at(address, space);
    }
    mutable unsigned times = 0;
};

TEST(Fetch, AsksOnceForInstructionsSideBySide) {
    const Asked code({{0x1000, {0x11, 0x22, 0x33, 0x44, 0x55, 0x66}}, {0x1006, {0x77, 0x88, 0x00, 0xf0}}});
    const Space space;
    Fetcher fetcher(code, space);
    EXPECT_EQ(fetcher({0x1000}, Isa::a32), (Fetched{0x44332211, 4, 0}));
    EXPECT_EQ(fetcher({0x1002}, Isa::t32), (Fetched{0x4433, 2, 0}));
    EXPECT_EQ(code.times, 1U);
    EXPECT_EQ(fetcher({0x1004}, Isa::a64), (Fetched{0x88776655, 4, 0}));
    EXPECT_EQ(code.times, 2U) << "the second half is in another piece";
    EXPECT_EQ(fetcher({0x1006}, Isa::t32), (Fetched{0x8877, 2, 1}));
    EXPECT_EQ(fetcher({0x1000}, Isa::t32), (Fetched{0x2211, 2, 0}));
    EXPECT_EQ(fetcher({0xfff}, Isa::t32), unknown);
    EXPECT_EQ(fetcher({0x100a}, Isa::t32), unknown);
    EXPECT_EQ(fetcher({0x1000}, Isa::jazelle), unknown);
}

TEST(Fetch, ReadsA16BitInstructionInTheLastHalfword) {
    const std::vector<Piece> code{{0x1000, {0x00, 0xbf, 0x70, 0x47}}};
    EXPECT_EQ(fetch_from(code, 0x1002, Isa::t32), (Fetched{0x4770, 2, 0}));
    EXPECT_EQ(fetch_from(code, 0x1002, Isa::a32), unknown);
}

TEST(Fetch, NeedsBothHalvesOfA32BitInstruction) {
    EXPECT_EQ(fetch_from({{0x1000, {0x00, 0xf0}}}, 0x1000, Isa::t32), unknown);
    EXPECT_EQ(fetch_from({{0x1000, {0x00, 0xf0}}, {0x1004, {0x00, 0xf8}}}, 0x1000, Isa::t32), unknown);
}

TEST(Fetch, JoinsHalvesFromAdjacentSections) {
    const std::vector<Piece> code{{0x2002, {0x00, 0xf8}}, {0x1ffe, {0x00, 0xbf, 0x00, 0xf0}}};
    EXPECT_EQ(fetch_from(code, 0x2000, Isa::t32), (Fetched{0xf000f800, 4, 1}));
    EXPECT_EQ(fetch_from(code, 0x2000, Isa::a32), (Fetched{0xf800f000, 4, 1}));
    EXPECT_EQ(fetch_from(code, 0x1ffe, Isa::t32), (Fetched{0xbf00, 2, 1}));
}

TEST(Fetch, JoinsPiecesOfAnySize) {
    const std::vector<Piece> code{{0x1000, {0x11}}, {0x1001, {0x22}}, {0x1002, {0x33}}, {0x1003, {0x44}}};
    EXPECT_EQ(fetch_from(code, 0x1000, Isa::a32), (Fetched{0x44332211, 4, 0}));
    EXPECT_EQ(fetch_from(code, 0x1001, Isa::t32), (Fetched{0x3322, 2, 1}));
    EXPECT_EQ(fetch_from(code, 0x1003, Isa::t32), unknown);
    const std::vector<Piece> uneven{{0x1000, {0x00, 0xf0, 0x01}}, {0x1003, {0xf8}}};
    EXPECT_EQ(fetch_from(uneven, 0x1000, Isa::t32), (Fetched{0xf000f801, 4, 0}));
}

TEST(Fetch, WrapsAtTheTopOfMemory) {
    const std::vector<Piece> code{{0xfffffffe, {0x00, 0xf0}}, {0, {0x00, 0xf8}}};
    EXPECT_EQ(fetch_from(code, 0xfffffffe, Isa::t32), (Fetched{0xf000f800, 4, 0}));
}

TEST(Fetch, SaysWhereNothingIsKnown) {
    EXPECT_EQ(fetch_from({}, 0x1000, Isa::a32), unknown);
    EXPECT_EQ(fetch_from({}, 0x1000, Isa::t32), unknown);
    const std::vector<Piece> code{{0x1000, {1, 2, 3, 4}}};
    EXPECT_EQ(fetch_from(code, 0x1000, Isa::jazelle), unknown);
    EXPECT_EQ(fetch_from(code, 0x1000, Isa::a64), (Fetched{0x04030201, 4, 0}));
}

TEST(Fetch, AsksForTheSpaceItWasGiven) {
    struct Secure : CodeReader {
        std::vector<std::uint8_t> code{0x70, 0x47};
        [[nodiscard]] Code at(Address, const Space& space) const override { return space.ns ? Code{} : Code{code, 7}; }
    };
    EXPECT_EQ(fetch(Secure{}, {.ns = false}, {0}, Isa::t32), (Fetched{0x4770, 2, 7}));
    EXPECT_EQ(fetch(Secure{}, {.ns = true}, {0}, Isa::t32), unknown);
}

}  // namespace
}  // namespace waymark::isa
