#include "operation.h"

namespace waymark::record {

spe::Operation operation_of(const isa::A64Instruction& i) {
    using Kind = spe::Operation::Kind;
    spe::Operation o;
    o.conditional = i.conditional;
    o.indirect = i.indirect;
    o.floating_point = i.floating_point;
    o.simd = i.simd;
    if (i.kind == isa::A64Class::branch) {
        o.kind = Kind::branch;
        using Call = spe::Operation::Call;
        o.call = i.link ? Call::call : i.function_return ? Call::procedure_return : Call::neither;
        return o;
    }
    if (i.kind == isa::A64Class::other) {
        o.kind = i.sve ? Kind::sve : Kind::other;
        return o;
    }
    o.store = i.kind == isa::A64Class::store;
    o.load = !o.store;
    o.acquire_release = i.acquire_release;
    o.exclusive = i.exclusive;
    o.atomic = i.atomic;
    o.predicated = i.predicated;
    o.gather_scatter = i.gather_scatter;
    switch (i.data) {
        case isa::A64Data::general:
            o.kind = i.acquire_release || i.exclusive || i.atomic ? Kind::extended : Kind::general;
            break;
        case isa::A64Data::simd_fp: o.kind = Kind::simd_fp; break;
        case isa::A64Data::sve:
        case isa::A64Data::sme: o.kind = Kind::sve_memory; break;
        case isa::A64Data::tag: o.kind = Kind::allocation_tag; break;
        case isa::A64Data::copy: o.kind = Kind::memory_copy; break;
        case isa::A64Data::set: o.kind = Kind::memory_set; break;
    }
    return o;
}

}  // namespace waymark::record
