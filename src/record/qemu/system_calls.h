/// Reports the system calls of a Linux program that change recorded state.
#pragma once

#include <cstdint>

#include "api.h"

namespace waymark::record::plugin {

void on_system_call(qemu_plugin_id_t, unsigned vcpu, std::int64_t number, std::uint64_t first, std::uint64_t second,
                    std::uint64_t, std::uint64_t fourth, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t);
/// Called when a system call that may have changed mappings or a name returns.
void on_system_call_return(qemu_plugin_id_t, unsigned vcpu, std::int64_t number, std::int64_t result);

}  // namespace waymark::record::plugin
