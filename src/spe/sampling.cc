#include "waymark/spe/sampling.h"

#include <iterator>
#include <utility>

namespace waymark::spe {

bool count_member(Registers& registers, std::uint8_t random) {
    PmsicrEl1& counter = registers.pmsicr_el1;
    const bool jitter = registers.pmsirr_el1.rnd, after = jitter && registers.pmsidr_el1.e_rnd;
    bool chosen = false;
    const bool counting_on = after && counter.ecount != 0;
    if (counter.count_31_0 == 0) {
        counter.count_31_0 = registers.pmsirr_el1.interval << 8 | (jitter && !after ? random : 0U);
    } else if (--counter.count_31_0 == 0) {
        if (!after) return true;
        counter.ecount = random;
        return random == 0;
    }
    if (counting_on) chosen = --counter.ecount == 0;
    return chosen;
}

bool buffer_full(const Registers& registers) {
    const std::uint64_t limit = registers.pmblimitr_el1.limit << 12;
    const std::uint64_t record = std::uint64_t{1} << registers.pmsidr_el1.max_size;
    return limit < record || registers.pmbptr_el1.ptr > limit - record;
}

void record_buffer_full(Registers& registers) {
    PmbsrEl1& status = registers.pmbsr_el1;
    if (status.s) return;
    status.s = true;
    status.ec = 0;
    status.mss = 0x0001;
    status.mss2 = 0;
}

void Outstanding::discard() {
    lost += formatted.size();
    formatted.clear();
}

void Outstanding::data_synchronization_barrier() {
    std::move(initiated.begin(), initiated.end(), std::back_inserter(complete));
    initiated.clear();
}

void ProfilingSynchronizationBarrier(Outstanding& records) {
    std::move(records.formatted.begin(), records.formatted.end(), std::back_inserter(records.initiated));
    records.formatted.clear();
}

}  // namespace waymark::spe
