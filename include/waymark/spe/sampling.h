/// The steps between the functions of architecture.h: choosing the operations to sample, filling the buffer, and the
/// barrier after it (docs/spec/spe.md, sections 1.2, 1.6 and 1.7).
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "waymark/spe/registers.h"

namespace waymark::spe {

/// Counts one member of the sample population; returns true if it is chosen (1.2). `random` is a new random number for
/// each member: the implementation's source of jitter.
bool count_member(Registers& registers, std::uint8_t random);

/// After a record: whether the buffer has no room for another record of the largest size, PMSIDR_EL1.MaxSize (1.6).
[[nodiscard]] bool buffer_full(const Registers& registers);
/// Records the buffer management event of a full buffer in PMBSR_EL1, unless it has an earlier event.
void record_buffer_full(Registers& registers);

/// The records of a unit on their way to memory (1.7).
struct Outstanding {
    using Record = std::vector<std::uint8_t>;
    std::deque<Record> formatted;  ///< not yet on their way: lost when the buffer is turned off
    std::deque<Record> initiated;  ///< their addresses are translated; a DSB writes them at the latest
    std::vector<Record> complete;  ///< in memory
    std::uint64_t lost = 0;

    /// PMBLIMITR_EL1.E was cleared, or profiling has stopped.
    void discard();
    /// A DSB: initiated records are in memory.
    void data_synchronization_barrier();
};

/// PSB CSYNC: every record of earlier operations is initiated. It is complete only after a following DSB.
void ProfilingSynchronizationBarrier(Outstanding& records);

}  // namespace waymark::spe
