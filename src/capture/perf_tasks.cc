/// Who ran, and what was mapped, at any time (docs/spec/spe.md, section 5.5).
#include <algorithm>
#include <unordered_map>

#include "waymark/capture/perf_data.h"

namespace waymark::capture::perf {

namespace {

constexpr unsigned max_ancestors = 16;  // names and maps are inherited from no further

/// What changes the address space of a process.
struct Change {
    std::uint64_t time{};
    const Mapping* mapping{};  // or:
    const TaskEvent* event{};  // a fork that made the process, or an exec
};

struct Piece {
    std::uint64_t last{};  // inclusive
    const Mapping* mapping{};
};
using Space = std::map<std::uint64_t, Piece>;  // by first address; never overlapping

void put(Space& space, const Mapping& m) {
    if (m.bytes == 0) return;
    const std::uint64_t first = m.address.value;
    const std::uint64_t last = first + std::min(m.bytes - 1, ~first);
    auto at = space.upper_bound(first);
    if (at != space.begin()) --at;
    while (at != space.end() && at->first <= last) {
        if (at->second.last < first) {
            ++at;
            continue;
        }
        const std::uint64_t old_first = at->first;
        const Piece old = at->second;
        at = space.erase(at);
        if (old_first < first) space[old_first] = {first - 1, old.mapping};
        if (old.last > last) {
            space[last + 1] = old;
            break;
        }
    }
    space[first] = {last, &m};
}

const Mapping* find(const Space& space, std::uint64_t address) {
    auto at = space.upper_bound(address);
    if (at == space.begin()) return nullptr;
    --at;
    return address <= at->second.last ? at->second.mapping : nullptr;
}

}  // namespace

struct Tasks::State {
    struct Process {
        std::vector<Change> changes;  // by time
        Space space;                  // with the first `applied` of them
        std::size_t applied = 0;
    };
    std::unordered_map<std::uint32_t, Process> processes;
    std::unordered_map<std::uint32_t, std::vector<const TaskEvent*>> threads;  // by tid, by time
    std::unordered_map<std::uint32_t, std::vector<const Switch*>> cpus;        // by time

    /// The changes up to `time`, from the last one on that makes the earlier ones irrelevant.
    void build(std::uint32_t pid, std::uint64_t time, Space& space, unsigned ancestors) {
        const auto found = processes.find(pid);
        if (found == processes.end()) return;
        const auto& changes = found->second.changes;
        const auto end = std::upper_bound(changes.begin(), changes.end(), time,
                                          [](std::uint64_t t, const Change& c) { return t < c.time; });
        auto from = end;
        while (from != changes.begin() && (from - 1)->event == nullptr) --from;
        if (from != changes.begin()) start(*(from - 1), space, ancestors);
        for (; from != end; ++from) put(space, *from->mapping);
    }
    /// The space as a fork or exec leaves it.
    void start(const Change& change, Space& space, unsigned ancestors) {
        space.clear();
        if (change.event->kind == TaskEvent::Kind::fork && ancestors < max_ancestors)
            build(change.event->parent_pid, change.time, space, ancestors + 1);
    }

    [[nodiscard]] std::string_view thread_name(std::uint32_t tid, std::uint64_t time, unsigned ancestors) const {
        const auto found = threads.find(tid);
        if (found == threads.end()) return {};
        const auto& events = found->second;
        auto at = std::upper_bound(events.begin(), events.end(), time,
                                   [](std::uint64_t t, const TaskEvent* e) { return t < e->time; });
        while (at != events.begin()) {
            const TaskEvent& e = **--at;
            if (e.kind == TaskEvent::Kind::comm || e.kind == TaskEvent::Kind::exec) return e.name;
            if (e.kind == TaskEvent::Kind::fork)
                return ancestors < max_ancestors ? thread_name(e.parent_tid, e.time, ancestors + 1)
                                                 : std::string_view{};
        }
        return {};
    }
};

Tasks::Tasks(const PerfData& data) : state_(std::make_unique<State>()) {
    for (const Mapping& m : data.mappings) state_->processes[m.pid].changes.push_back({m.time, &m, nullptr});
    for (const TaskEvent& e : data.tasks) {
        state_->threads[e.tid].push_back(&e);
        const bool new_process = e.kind == TaskEvent::Kind::fork && e.pid != e.parent_pid;
        // perf reports processes that ran before it as if they had been executed at time 0; what was mapped at that
        // time is reported after it, or before it, and is theirs.
        if (new_process || (e.kind == TaskEvent::Kind::exec && e.time != 0))
            state_->processes[e.pid].changes.push_back({e.time, nullptr, &e});
    }
    for (auto& [pid, process] : state_->processes)
        std::stable_sort(process.changes.begin(), process.changes.end(), [](const Change& a, const Change& b) {
            return a.time != b.time ? a.time < b.time : a.event != nullptr && b.event == nullptr;
        });
    for (auto& [tid, events] : state_->threads)
        std::stable_sort(events.begin(), events.end(),
                         [](const TaskEvent* a, const TaskEvent* b) { return a->time < b->time; });
    for (const Switch& s : data.switches) state_->cpus[s.cpu].push_back(&s);
    for (auto& [cpu, switches] : state_->cpus)
        std::stable_sort(switches.begin(), switches.end(),
                         [](const Switch* a, const Switch* b) { return a->time < b->time; });
}
Tasks::~Tasks() = default;
Tasks::Tasks(Tasks&&) noexcept = default;

Tasks::Thread Tasks::thread(std::uint32_t tid, std::uint64_t time) const {
    Thread out{nobody, tid, {}};
    if (tid == 0) return {0, 0, "swapper"};
    const auto found = state_->threads.find(tid);
    if (found == state_->threads.end()) return out;
    const auto& events = found->second;
    auto at = std::upper_bound(events.begin(), events.end(), time,
                               [](std::uint64_t t, const TaskEvent* e) { return t < e->time; });
    if (at != events.begin()) --at;  // else it is heard of later only
    out.pid = (*at)->pid;
    out.name = state_->thread_name(tid, time, 0);
    return out;
}

Tasks::Thread Tasks::running(std::uint32_t cpu, std::uint64_t time) const {
    const auto found = state_->cpus.find(cpu);
    if (found == state_->cpus.end()) return {};
    const auto& switches = found->second;
    const auto at = std::upper_bound(switches.begin(), switches.end(), time,
                                     [](std::uint64_t t, const Switch* s) { return t < s->time; });
    if (at == switches.begin()) return {};
    const Switch& s = **(at - 1);
    if (s.tid == nobody) return {};
    Thread out = thread(s.tid, time);
    if (out.pid == nobody) out.pid = s.pid;
    return out;
}

const Mapping* Tasks::mapping(std::uint32_t pid, Address address, std::uint64_t time) {
    const auto found = state_->processes.find(pid);
    if (found == state_->processes.end()) return nullptr;
    State::Process& process = found->second;
    if (process.applied != 0 && process.changes[process.applied - 1].time > time) {
        process.space.clear();
        process.applied = 0;
    }
    for (; process.applied < process.changes.size() && process.changes[process.applied].time <= time;
         ++process.applied) {
        const Change& change = process.changes[process.applied];
        if (change.event != nullptr)
            state_->start(change, process.space, 0);
        else
            put(process.space, *change.mapping);
    }
    return find(process.space, address.value);
}

}  // namespace waymark::capture::perf
