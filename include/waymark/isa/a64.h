/// What a statistical profiler asks of an A64 instruction: is it a load, a store or a branch, of which kind, and how
/// much memory does it access? docs/spec/spe.md, sections 1.4 and 4.6. This is not a disassembler.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "waymark/core/types.h"

namespace waymark::isa {

/// The classes by which samples are filtered. A load and store in one is an atomic that gives its old value back.
enum class A64Class : std::uint8_t { other, load, store, load_atomic, branch };

/// What an access moves.
enum class A64Data : std::uint8_t {
    general,  ///< general-purpose registers
    simd_fp,
    sve,
    sme,
    tag,   ///< allocation tags
    copy,  ///< memory copy; the class is load, and it stores too
    set,   ///< memory set
};

/// Which part of a core computes it; what latencies are given for.
enum class A64Work : std::uint8_t {
    integer,
    multiply,
    divide,
    floating_point,
    floating_point_divide,  ///< and square roots
    vector,                 ///< Advanced SIMD, SVE and SME that is none of those
    memory,
    branch,
    system,
};
inline constexpr unsigned a64_works = 9;

struct A64Instruction {
    std::string_view name{};  ///< of its row in the table; empty: not allocated, as far as is known
    A64Class kind = A64Class::other;
    A64Work work = A64Work::integer;
    A64Data data = A64Data::general;  ///< of loads and stores
    std::uint16_t access_bytes = 0;   ///< of memory in all; 0: none, or not fixed by the instruction
    std::int32_t offset = 0;          ///< direct branches: where they go if taken, from their own address
    bool acquire_release = false, exclusive = false, atomic = false;
    bool predicated = false;  ///< SVE and SME accesses: a predicate says which elements there are
    bool gather_scatter = false;
    bool conditional = false;      ///< branch, select or compare
    bool indirect = false;         ///< branches through a register, returns among them
    bool link = false;             ///< leaves a return address
    bool function_return = false;  ///< RET and its authenticated forms
    bool exception_return = false;
    bool floating_point = false;  ///< works on floating point numbers; of SVE and SME only known for accesses
    bool simd = false;            ///< Advanced SIMD
    bool sve = false;             ///< SVE and SME
    bool system_call = false;     ///< SVC
    bool undefined = false;       ///< UDF, or not allocated
    /// Completes only with at least one access to memory. Not set where there may be none: store exclusive, and what a
    /// predicate governs.
    bool must_access = false;
    /// May begin and not complete, for an access or because no core passes it.
    bool may_fault = false;
    friend bool operator==(const A64Instruction&, const A64Instruction&) = default;
};

/// Classifies one instruction. Prefetches, cache maintenance and barriers are `other`. Never fails: what no row knows
/// is `undefined`.
[[nodiscard]] A64Instruction decode_a64(std::uint32_t word);

/// False: decode_a64 says that it is no branch. Quicker than that, and true of few others.
[[nodiscard]] bool may_be_a64_branch(std::uint32_t word);

/// The names of the rows, in order; for a test that all of them are met.
[[nodiscard]] std::span<const std::string_view> a64_names();

}  // namespace waymark::isa
