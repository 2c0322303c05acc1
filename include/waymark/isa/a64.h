/// Classifies A64 instructions for a statistical profiler: load, store or branch, the kind, and the size of the memory
/// access. docs/spec/spe.md, sections 1.4 and 4.6. This is not a disassembler.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "waymark/core/types.h"

namespace waymark::isa {

/// The classes by which samples are filtered. An instruction that is both load and store is an atomic that returns the
/// old value.
enum class A64Class : std::uint8_t { other, load, store, load_atomic, branch };

/// The data of an access.
enum class A64Data : std::uint8_t {
    general,  ///< general-purpose registers
    simd_fp,
    sve,
    sme,
    tag,   ///< allocation tags
    copy,  ///< memory copy; the class is load, but it also stores
    set,   ///< memory set
};

/// The part of a core that executes the instruction; latencies are given for each.
enum class A64Work : std::uint8_t {
    integer,
    multiply,
    divide,
    floating_point,
    floating_point_divide,  ///< and square roots
    vector,                 ///< Advanced SIMD, SVE and SME other than those
    memory,
    branch,
    system,
};
inline constexpr unsigned a64_works = 9;

struct A64Instruction {
    std::string_view name{};  ///< name of its row in the table; empty: not allocated, as far as known
    A64Class kind = A64Class::other;
    A64Work work = A64Work::integer;
    A64Data data = A64Data::general;  ///< for loads and stores
    std::uint16_t access_bytes = 0;   ///< total bytes of memory; 0: none, or not fixed by the instruction
    std::int32_t offset = 0;          ///< direct branches: target if taken, relative to their own address
    bool acquire_release = false, exclusive = false, atomic = false;
    bool predicated = false;  ///< SVE and SME accesses: a predicate selects the elements
    bool gather_scatter = false;
    bool conditional = false;      ///< branch, select or compare
    bool indirect = false;         ///< branches through a register, including returns
    bool link = false;             ///< leaves a return address
    bool function_return = false;  ///< RET and its authenticated forms
    bool exception_return = false;
    bool floating_point = false;  ///< works on floating point numbers; for SVE and SME only known for accesses
    bool simd = false;            ///< Advanced SIMD
    bool sve = false;             ///< SVE and SME
    bool system_call = false;     ///< SVC
    bool undefined = false;       ///< UDF, or not allocated
    /// Whether it completes only with at least one access to memory. Not set if there may be no access: store
    /// exclusive, and predicated accesses.
    bool must_access = false;
    /// Whether it may begin and not complete, because of an access or because no core passes it.
    bool may_fault = false;
    friend bool operator==(const A64Instruction&, const A64Instruction&) = default;
};

/// Classifies one instruction. Prefetches, cache maintenance and barriers are `other`. Never fails: an instruction
/// without a row is `undefined`.
[[nodiscard]] A64Instruction decode_a64(std::uint32_t word);

/// False: decode_a64 classifies the word as no branch. Faster than decode_a64, and true for few other instructions.
[[nodiscard]] bool may_be_a64_branch(std::uint32_t word);

/// The names of the rows, in order; for a test that all of them occur.
[[nodiscard]] std::span<const std::string_view> a64_names();

}  // namespace waymark::isa
