#include "a64_instr.h"

#include "waymark/isa/a64.h"

namespace waymark::isa {

Instruction decode_a64_instr(Address address, std::uint32_t word) {
    constexpr std::uint32_t isb_mask = 0xfffff0ff, isb = 0xd50330df;
    const A64Instruction a64 = decode_a64(word);
    Instruction instruction;
    instruction.bytes = 4;
    instruction.undefined = word >> 16 == 0;
    if ((word & isb_mask) == isb) {
        instruction.waypoint = Waypoint::barrier;
        instruction.target = address + 4;
        instruction.target_isa = Isa::a64;
    }
    if (a64.kind != A64Class::branch) return instruction;
    instruction.waypoint = a64.indirect ? Waypoint::indirect : Waypoint::direct;
    if (!a64.indirect) {
        instruction.target = {address.value + static_cast<std::uint64_t>(std::int64_t{a64.offset})};
        instruction.target_isa = Isa::a64;
    }
    instruction.link = a64.link;
    instruction.conditional = a64.conditional;
    instruction.exception_return = a64.exception_return;
    instruction.function_return = a64.function_return;
    return instruction;
}

}  // namespace waymark::isa
