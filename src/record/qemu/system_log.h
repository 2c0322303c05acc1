/// A whole system: what QEMU's log shows of exceptions, in the place where execution came to them.
#pragma once

#include "vcpu.h"

namespace waymark::record::plugin {

/// Opens QEMU's log, which `options` name; false if that is impossible.
bool open_system_log();
/// The log is that of an AArch64 system, which is read before each block.
bool is_a64_system();
/// The log is read at the watched blocks alone: in between it must be read for it not to grow.
bool reads_log();
/// With `lock` held.
void read_log_locked();

/// A block that may begin an exception handler: says which exception led there, if one did.
void on_watched_block(unsigned vcpu, void* block);
/// A block of an AArch64 system.
void on_a64_system_block(unsigned vcpu, void* block);

}  // namespace waymark::record::plugin
