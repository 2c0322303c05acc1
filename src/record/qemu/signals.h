/// The signals of a Linux program: which signal led a thread to a handler, and where the handlers are.
#pragma once

#include <cstdint>
#include <deque>

#include "vcpu.h"

namespace waymark::record::plugin {

/// Opens the access to the program's memory; false if that is impossible.
bool open_signals();

/// A block was translated; `code`: address of its code in the host, or null.
void see_code(std::uint64_t address, const void* code);
/// A handler is installed; its sigaction structure is at the address.
void see_handler(std::uint64_t action, std::deque<Block>& translated);
/// A signal may lead to the address. With `lock` held.
bool is_handler_locked(std::uint64_t address);

/// The first block of a possible signal handler: reports the signal that led there, if there was one.
void enter_handler(Vcpu& v, const Block* block);

/// A forked child continues: its signals would otherwise be logged with its parent's. `recorded`: it gets a log of its
/// own.
void leave_parents_signals(bool recorded);

}  // namespace waymark::record::plugin
