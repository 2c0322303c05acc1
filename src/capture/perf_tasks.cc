/// Threads and mappings at any time (docs/spec/spe.md, section 5.5).
#include <algorithm>
#include <unordered_map>

#include "perf_changes.h"
#include "waymark/capture/perf_data.h"

namespace waymark::capture::perf {

struct Tasks::State {
    using Change = AddressSpaceChange<const Mapping*>;
    using Space = MappedPieces<const Mapping*>;
    struct Process {
        std::vector<Change> changes;  // by time
        Space space;                  // the memory after the first `applied` changes
        std::size_t applied = 0;
    };
    std::unordered_map<std::uint32_t, Process> processes;
    std::unordered_map<std::uint32_t, std::vector<const TaskEvent*>> threads;  // by thread ID, sorted by time
    std::unordered_map<std::uint32_t, std::vector<const Switch*>> cpus;        // by time

    /// Applies the changes up to `time`, beginning with the last one that makes all earlier ones irrelevant.
    void build(std::uint32_t pid, std::uint64_t time, Space& space, unsigned ancestors) {
        const auto found = processes.find(pid);
        if (found == processes.end()) return;
        const auto& changes = found->second.changes;
        const auto end = std::upper_bound(changes.begin(), changes.end(), time,
                                          [](std::uint64_t t, const Change& c) { return t < c.time; });
        auto from = end;
        while (from != changes.begin() && (from - 1)->event == nullptr) --from;
        if (from != changes.begin()) start(*(from - 1), space, ancestors);
        for (; from != end; ++from) space.put(*from->mapping, from->mapping);
    }
    /// Sets the space to its state after a fork or exec.
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
        if (changes_address_space(e)) state_->processes[e.pid].changes.push_back({e.time, nullptr, &e});
    }
    for (auto& [pid, process] : state_->processes) sort_changes(process.changes);
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
    if (at != events.begin()) --at;  // otherwise all its events are later
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
        const State::Change& change = process.changes[process.applied];
        if (change.event != nullptr)
            state_->start(change, process.space, 0);
        else
            process.space.put(*change.mapping, change.mapping);
    }
    const Mapping* const* found_mapping = process.space.find(address.value);
    return found_mapping == nullptr ? nullptr : *found_mapping;
}

}  // namespace waymark::capture::perf
