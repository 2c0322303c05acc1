#include "system_log.h"

#include <fcntl.h>

#include <algorithm>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "log_file.h"
#include "options.h"
#include "waymark/record/a64_log.h"
#include "waymark/record/qemu_log.h"

namespace waymark::record::plugin {
namespace {

LogFile log_file;
QemuLog* log_text = nullptr;
std::vector<LoggedEntry>* log_entries = nullptr;  // entries of all processors, not used yet

// An AArch64 system: QEMU runs one processor at a time.
A64Log* a64_log = nullptr;
std::vector<A64Event>* a64_events = nullptr;  // events of all processors, not used yet
unsigned last_vcpu = 0;                       // the processor that entered a block last
LogWindow a64_window;

/// Removes and returns the events of one processor, in order.
template <class E>
std::vector<E> take_events(std::vector<E>& all, unsigned vcpu) {
    const auto others =
        std::stable_partition(all.begin(), all.end(), [&](const E& event) { return event.cpu != vcpu; });
    std::vector<E> mine(others, all.end());
    all.erase(others, all.end());
    return mine;
}

/// Reads the log up to here; exception returns belong to the processor that ran last.
void read_a64_log() {
    const std::lock_guard held(lock);
    a64_window.read([](std::string_view text) {
        a64_log->feed(text, [](const A64Event& event) {
            a64_events->push_back(event);
            if (event.kind == A64Event::Kind::exception_return) a64_events->back().cpu = last_vcpu;
            if (a64_events->back().cpu < max_vcpus) ++vcpus[a64_events->back().cpu].events;
        });
    });
}

/// Writes the value that the instruction at the end of `v.wrote` wrote, if `event` shows the registers directly after
/// it.
void put_written(Vcpu& v, const A64Event* event) {
    const Block& block = *std::exchange(v.wrote, nullptr);
    put(v, words::written | static_cast<std::uint32_t>(block.written) | (event == nullptr ? words::unread : 0));
    put_wide(v, event == nullptr ? 0 : event->x[block.source]);
}

/// Whether QEMU took this exception since it lacks the register that the instruction at the end of `v.wrote` writes.
bool is_undefined_write(const Vcpu& v, const A64Event& event) {
    return event.kind == A64Event::Kind::exception && v.wrote != nullptr && is_unknown_to_qemu(v.wrote->written) &&
           event.elr + 4 == v.wrote->end;
}
/// Whether `next` has the registers at the vector of the exception, which leaves them as they were.
bool shows_entry(const A64Event& exception, const A64Event& next) {
    return next.kind == A64Event::Kind::registers && next.pc == exception.pc;
}

void put_a64_event(Vcpu& v, const A64Event& event) {
    std::uint32_t state = event.el << words::el_bit | (event.aarch32 ? words::aarch32 : 0);
    if (event.ns) state |= words::ns_known | (*event.ns ? words::ns : 0);
    if (event.kind != A64Event::Kind::exception) {
        put(v, words::state | state);
        if (event.kind == A64Event::Kind::registers && v.wrote != nullptr && v.wrote->end == event.pc)
            put_written(v, &event);
        return;
    }
    // The instruction was assumed to be executed, but was not.
    if (v.wrote != nullptr && event.elr + 4 == v.wrote->end) v.wrote = nullptr;
    put(v, words::exception | (event.number & words::value_mask));
    put_wide(v, event.elr);
    put_wide(v, event.pc);
    put(v, words::half | state);
    put(v, words::half | event.exception_class);
}

}  // namespace

bool open_system_log() {
    log_file.file = open(options.log, O_RDWR | O_CLOEXEC);
    if (log_file.file < 0) return false;
    if (options.a64) {
        a64_log = new A64Log;
        a64_events = new std::vector<A64Event>;
        return a64_window.open(log_file.file);
    }
    log_text = new QemuLog;
    log_entries = new std::vector<LoggedEntry>;
    return true;
}

bool is_a64_system() { return a64_log != nullptr; }
bool reads_log() { return log_text != nullptr; }

void read_log_locked() {
    log_file.read_on([](std::string_view text) {
        log_text->feed(text, [](const LoggedEntry& entry) { log_entries->push_back(entry); });
    });
}

void on_watched_block(unsigned vcpu, void* data) {
    Vcpu& v = vcpus[vcpu];
    const auto* block = static_cast<const Block*>(data);
    std::vector<LoggedEntry> mine;
    {
        const std::lock_guard held(lock);
        read_log_locked();
        mine = take_events(*log_entries, vcpu);
    }
    if (options.exact) settle(v, block->address);
    // Two entries may follow each other without an instruction in between.
    for (const LoggedEntry& entry : mine) {
        const std::uint32_t state =
            (entry.ns ? words::ns : 0) | (entry.hyp ? words::hyp : 0) | (entry.thumb ? words::thumb : 0);
        if (!entry.exception) {
            put(v, words::state | state);
            continue;
        }
        put(v, words::exception | (*entry.exception & words::value_mask));
        for (const std::uint32_t value : {entry.lr, entry.pc}) {
            put(v, words::half | (value & 0xffff));
            put(v, words::half | value >> 16);
        }
        put(v, words::half | state);
    }
    enter(v, block);
}

void on_a64_system_block(unsigned vcpu, void* data) {
    Vcpu& v = vcpus[vcpu];
    const auto* block = static_cast<const Block*>(data);
    if (a64_window.has_more()) [[unlikely]]
        read_a64_log();
    last_vcpu = vcpu;
    if (options.exact) settle(v, block->address);
    if (v.events != 0) [[unlikely]] {
        v.events = 0;
        const std::vector<A64Event> events = take_events(*a64_events, vcpu);
        for (std::size_t i = 0; i < events.size(); ++i) {
            if (is_undefined_write(v, events[i]))
                put_written(v,
                            i + 1 < events.size() && shows_entry(events[i], events[i + 1]) ? &events[i + 1] : nullptr);
            put_a64_event(v, events[i]);
        }
    }
    if (v.wrote != nullptr && v.wrote->end == block->address) [[unlikely]]
        put_written(v, nullptr);
    enter(v, block);
    if (block->written != A64Register::none) [[unlikely]]
        v.wrote = block;
}

}  // namespace waymark::record::plugin
