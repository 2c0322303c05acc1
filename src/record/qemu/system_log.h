/// For a whole system: inserts exceptions from QEMU's log at the place in the execution where they occurred.
#pragma once

#include "vcpu.h"

namespace waymark::record::plugin {

/// Opens QEMU's log, named in `options`; false if that is impossible.
bool open_system_log();
/// Whether the log belongs to an AArch64 system; it is then read before each block.
bool is_a64_system();
/// Reads the log between watched blocks, where its contents are used, so that it does not grow.
bool reads_log();
/// Call with `lock` held.
void read_log_locked();

/// A block that may begin an exception handler: reports the exception that led there, if there was one.
void on_watched_block(unsigned vcpu, void* block);
/// Called for each block of an AArch64 system.
void on_a64_system_block(unsigned vcpu, void* block);

}  // namespace waymark::record::plugin
