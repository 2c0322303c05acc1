/// Translation by QEMU: each block is defined once, and requests the callbacks that show how it executes.
#pragma once

#include <deque>

#include "api.h"
#include "vcpu.h"

namespace waymark::record::plugin {

#pragma GCC visibility push(hidden)
extern std::deque<Block>* blocks;  ///< all translated blocks; guarded by `lock`
#pragma GCC visibility pop

void on_translate(qemu_plugin_id_t, qemu_plugin_tb* tb);

}  // namespace waymark::record::plugin
