/// A64 instructions as a profiler sees them, each with its word; docs/spec/spe.md, section 4.6.
/// tests/differential/a64_objdump_test.cc tests all others.
#include "waymark/isa/a64.h"

#include <gtest/gtest.h>

#include "support/random.h"

namespace waymark::isa {
namespace {

TEST(A64, LoadsAndStores) {
    const A64Instruction ldr = decode_a64(0xf9400420);  // ldr x0, [x1, #8]
    EXPECT_EQ(ldr.kind, A64Class::load);
    EXPECT_EQ(ldr.work, A64Work::memory);
    EXPECT_EQ(ldr.access_bytes, 8);
    EXPECT_TRUE(ldr.must_access && ldr.may_fault);
    const A64Instruction stlxr = decode_a64(0xc802fc20);  // stlxr w2, x0, [x1]
    EXPECT_EQ(stlxr.kind, A64Class::store);
    EXPECT_TRUE(stlxr.exclusive && stlxr.acquire_release);
    EXPECT_FALSE(stlxr.must_access);
    EXPECT_TRUE(stlxr.may_fault);
    const A64Instruction ldaddal = decode_a64(0xf8e20020);  // ldaddal x2, x0, [x1]
    EXPECT_EQ(ldaddal.kind, A64Class::load_atomic);
    EXPECT_TRUE(ldaddal.atomic && ldaddal.acquire_release);
    EXPECT_EQ(decode_a64(0xf822003f).kind, A64Class::store);  // stadd x2, [x1]
    EXPECT_EQ(decode_a64(0xf9800020).kind, A64Class::other);  // prfm pldl1keep, [x1]
    EXPECT_EQ(decode_a64(0xd50b7420).kind, A64Class::other);  // dc zva, x0
}

TEST(A64, SizesOfStructures) {
    EXPECT_EQ(decode_a64(0x4c402020).access_bytes, 64);  // ld1 {v0.16b-v3.16b}, [x1]
    EXPECT_EQ(decode_a64(0x0c407020).access_bytes, 8);   // ld1 {v0.8b}, [x1]
    EXPECT_EQ(decode_a64(0x0c004020).access_bytes, 24);  // st3 {v0.8b-v2.8b}, [x1]
    EXPECT_EQ(decode_a64(0x0d401c20).access_bytes, 1);   // ld1 {v0.b}[7], [x1]
    EXPECT_EQ(decode_a64(0x0d408420).access_bytes, 8);   // ld1 {v0.d}[0], [x1]
    EXPECT_EQ(decode_a64(0x0d608020).access_bytes, 8);   // ld2 {v0.s, v1.s}[0], [x1]
    EXPECT_EQ(decode_a64(0x4d40c820).access_bytes, 4);   // ld1r {v0.4s}, [x1]
    EXPECT_EQ(decode_a64(0x4d60ec20).access_bytes, 32);  // ld4r {v0.2d-v3.2d}, [x1]
    EXPECT_EQ(decode_a64(0xad400420).access_bytes, 32);  // ldp q0, q1, [x1]
}

TEST(A64, Branches) {
    const A64Instruction b = decode_a64(0x17ffffff);  // b .-4
    EXPECT_EQ(b.kind, A64Class::branch);
    EXPECT_EQ(b.offset, -4);
    EXPECT_FALSE(b.conditional || b.indirect || b.link);
    EXPECT_TRUE(decode_a64(0x94000001).link);      // bl .+4
    EXPECT_EQ(decode_a64(0x54ffffe1).offset, -4);  // b.ne .-4
    EXPECT_TRUE(decode_a64(0x54ffffe1).conditional);
    EXPECT_EQ(decode_a64(0x36080040).offset, 8);                                  // tbz w0, #1, .+8
    EXPECT_TRUE(decode_a64(0xd63f0020).link && decode_a64(0xd63f0020).indirect);  // blr x1
    EXPECT_TRUE(decode_a64(0xd65f03c0).function_return);                          // ret
}

TEST(A64, WhatIsNotAllocatedIsUndefined) {
    EXPECT_TRUE(decode_a64(0x00000000).undefined);  // udf #0
    EXPECT_TRUE(decode_a64(0xd6000000).undefined);
    EXPECT_TRUE(decode_a64(0xd4000001).system_call);  // svc #0
}

// For the sanitizers: the sweep that compares with objdump runs without.
TEST(A64, AnyWordIsAllocatedOrUndefined) {
    synthetic::Random random(1);
    for (unsigned i = 0; i < 200'000; ++i) {
        const auto word = static_cast<std::uint32_t>(random());
        const A64Instruction found = decode_a64(word);
        ASSERT_TRUE(found.undefined || !found.name.empty()) << word;
    }
}

TEST(A64, BranchesAreAmongThoseThatMayBe) {
    synthetic::Random random(2);
    unsigned branches = 0, passed_over = 0;
    for (unsigned i = 0; i < 200'000; ++i) {
        const auto word = static_cast<std::uint32_t>(random());
        const bool branch = decode_a64(word).kind == A64Class::branch;
        ASSERT_TRUE(!branch || may_be_a64_branch(word)) << word;
        branches += branch ? 1 : 0;
        passed_over += may_be_a64_branch(word) ? 0 : 1;
    }
    EXPECT_GT(branches, 10'000U);
    EXPECT_GT(passed_over, 150'000U);
}

}  // namespace
}  // namespace waymark::isa
