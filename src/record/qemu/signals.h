/// The signals of a Linux program: which led a thread to a handler, and where handlers are.
#pragma once

#include <cstdint>
#include <deque>

#include "vcpu.h"

namespace waymark::record::plugin {

/// Opens what reads the program's memory; false if that is impossible.
bool open_signals();

/// A block was translated whose code the host has at `code`, or null.
void see_code(std::uint64_t address, const void* code);
/// A handler is installed, by a sigaction structure at the address.
void see_handler(std::uint64_t action, std::deque<Block>& translated);
/// A signal may lead to the address. With `lock` held.
bool is_handler_locked(std::uint64_t address);

/// The first block of a possible signal handler: gives the signal that led there, if one did.
void enter_handler(Vcpu& v, const Block* block);

/// A forked child goes on: its signals would otherwise be logged among its parent's. `recorded`: it has a log
/// of its own.
void leave_parents_signals(bool recorded);

}  // namespace waymark::record::plugin
