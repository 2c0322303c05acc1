// Frames of ORBFLOW (docs/spec/orbflow.md).
#include "waymark/coresight/orbflow.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "waymark/coresight/deformatter.h"

namespace waymark::coresight {
namespace {

using Payload = std::vector<std::uint8_t>;

/// Tag, payload and sum, packed byte by byte as the description says.
Payload frame(std::uint8_t tag, const Payload& payload) {
    Payload plain{tag};
    plain.insert(plain.end(), payload.begin(), payload.end());
    plain.push_back(static_cast<std::uint8_t>(-std::accumulate(plain.begin(), plain.end(), 0)));
    Payload out, block;
    for (std::size_t i = 0; i <= plain.size(); ++i) {
        const bool end = i == plain.size();
        if (!end && plain[i] != 0) block.push_back(plain[i]);
        if (!end && plain[i] != 0 && block.size() < 254) continue;
        const bool full = !end && plain[i] != 0;
        out.push_back(static_cast<std::uint8_t>(block.size() + 1));
        out.insert(out.end(), block.begin(), block.end());
        block.clear();
        if (full && i + 1 == plain.size()) break;
    }
    out.push_back(0);
    return out;
}
Payload joined(const std::vector<Payload>& parts) {
    Payload out;
    for (const Payload& part : parts) out.insert(out.end(), part.begin(), part.end());
    return out;
}

TEST(Orbflow, AFrameIsAsDescribed) { EXPECT_EQ(frame(1, {0x01, 0x41}), (Payload{5, 1, 1, 0x41, 0xbd, 0})); }

TEST(Orbflow, OneTagGivesItsBytes) {
    std::mt19937_64 random(1);
    for (unsigned round = 0; round < 50; ++round) {
        Payload all, file;
        for (unsigned i = 0; i < 5; ++i) {
            Payload part(1 + random() % 700);
            for (auto& byte : part) byte = static_cast<std::uint8_t>(random() % 4 == 0 ? 0 : random());
            all.insert(all.end(), part.begin(), part.end());
            const Payload packed = frame(1, part);
            file.insert(file.end(), packed.begin(), packed.end());
        }
        const auto found = read_orbflow(file);
        ASSERT_TRUE(found.has_value());
        EXPECT_EQ(found->frames, 5U);
        EXPECT_EQ(found->payload, all);
        EXPECT_FALSE(found->framed);
        EXPECT_EQ(found->only, TraceId{1});
        EXPECT_EQ(found->damaged_frames + found->cut_bytes + found->other_bytes, 0U);
    }
}

struct ById {
    std::map<unsigned, Payload> bytes;
    void data(TraceId id, Bytes more, Offset) {
        bytes[id.value].insert(bytes[id.value].end(), more.begin(), more.end());
    }
    void trigger(TraceId, Offset, std::uint8_t) {}
    void gap(const Gap&) {}
    void reset(Offset) {}
};

TEST(Orbflow, SeveralTagsBecomeCoreSightFrames) {
    const auto found = read_orbflow(joined({frame(1, {1, 2, 3}), frame(2, {4, 5}), frame(0, {9}), frame(1, {0, 6})}));
    ASSERT_TRUE(found.has_value());
    EXPECT_TRUE(found->framed);
    EXPECT_EQ(found->other_bytes, 1U);
    ById split;
    Deformatter deformatter({.framing = Framing::aligned});
    deformatter.feed(found->payload, split);
    deformatter.finish(split);
    EXPECT_EQ(split.bytes[1], (Payload{1, 2, 3, 0, 6}));
    EXPECT_EQ(split.bytes[2], (Payload{4, 5}));
}

TEST(Orbflow, DamageIsCounted) {
    std::vector<Payload> frames;
    for (std::uint8_t i = 0; i < 20; ++i) frames.push_back(frame(1, {i, 7, i}));
    frames[9][2] ^= 0x10;
    Payload file = joined(frames);
    const std::size_t place = 9 * frames[0].size();
    // The file begins inside a frame, and ends inside one.
    file.erase(file.begin(), file.begin() + 2);
    file.pop_back();
    const auto found = read_orbflow(file);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(found->frames, 17U);
    EXPECT_EQ(found->damaged_frames, 1U);
    EXPECT_EQ(found->damaged_bytes, frames[9].size());
    EXPECT_EQ(found->first_damage, Offset{place - 2});
    EXPECT_EQ(found->cut_bytes, frames[0].size() - 2 + frames[19].size() - 1);
    EXPECT_EQ(found->payload.size(), 17U * 3);
}

TEST(Orbflow, OtherBytesAreNone) {
    std::mt19937_64 random(3);
    for (const std::size_t size : {0U, 1U, 6U, 100U, 5000U})
        for (unsigned i = 0; i < 50; ++i) {
            Payload bytes(size);
            for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random() % 3 == 0 ? 0 : random());
            EXPECT_FALSE(read_orbflow(bytes).has_value());
        }
    EXPECT_FALSE(read_orbflow(frame(1, {1, 0x41})).has_value());  // one sum in 256 is right by chance
    EXPECT_FALSE(read_orbflow(Payload(100, 0)).has_value());
}

}  // namespace
}  // namespace waymark::coresight
