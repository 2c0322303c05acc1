/// Threads and the memory of each process over time (docs/spec/perf-cs-etm.md, sections 1.6 and 1.7).
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "perf_changes.h"
#include "perf_code.h"
#include "waymark/capture/perf_cs_etm.h"

namespace waymark::capture::perf {

namespace {

/// Whether no file contains the code of a mapping.
bool has_no_file(const std::string& file) {
    return file.empty() || file.starts_with("//anon") || file.starts_with("[anon") || file.starts_with("/memfd:") ||
           file.starts_with("/dev/zero") || file.starts_with("/SYSV") || file == "[heap]" || file.starts_with("[stack");
}
/// `jit-1234.dump`
bool is_jitdump(std::string_view file) {
    const std::string_view name = file.substr(file.rfind('/') + 1);
    constexpr std::string_view front = "jit-", back = ".dump";
    return name.size() > front.size() + back.size() && name.starts_with(front) && name.ends_with(back) &&
           std::all_of(name.begin() + front.size(), name.end() - back.size(),
                       [](char c) { return c >= '0' && c <= '9'; });
}
bool is_kernel_text(const Mapping& m) { return m.pid == nobody && m.file.starts_with("[kernel.kallsyms]"); }

/// Assigns an address to each file.
class Places {
public:
    explicit Places(ModuleMap& modules) : modules_(modules) {}

    struct Place {
        std::uint64_t shift{};
        std::uint32_t module = no_module;
    };
    Place place(const Mapping& m, std::uint32_t name, const AddressSpaces::Name& file) {
        if (has_no_file(m.file)) return {};
        File& f = files_[name];
        for (const std::uint32_t module : f.modules) {
            Module& there = modules_.modules[module];
            if (m.file_offset < there.offset || m.file_offset - there.offset >= there.bytes) continue;
            const std::uint64_t skip = m.file_offset - there.offset, more = skip + m.bytes;
            if (more < skip || (more > there.bytes && !extend(there, more))) continue;
            return settle(f, m, m.address.value - (there.address.value + skip), module);
        }
        // Keeps the distance to other segments of the file in this process, if possible.
        const auto shift = f.shift_of.find(m.pid);
        std::uint64_t first = m.address.value - (shift == f.shift_of.end() ? 0 : shift->second);
        if (!take(first, m.bytes)) {
            // A window for each file, so that its segments keep their distances.
            first = next_ + (m.file_offset & (window - 1) & ~std::uint64_t{0xfff}) + (m.address.value & 0xfff);
            next_ += std::max(window, (m.bytes + 2 * window - 1) & ~(window - 1));
            if (next_ >= end_of_windows || !take(first, m.bytes)) return {};
        }
        Module module;
        module.address = {first};
        module.bytes = m.bytes;
        module.offset = m.file_offset;
        module.file = m.file;
        module.build_id = file.build_id;
        f.modules.push_back(static_cast<std::uint32_t>(modules_.modules.size()));
        modules_.modules.push_back(std::move(module));
        return settle(f, m, m.address.value - first, f.modules.back());
    }

private:
    static constexpr std::uint64_t window = std::uint64_t{1} << 33;
    static constexpr std::uint64_t end_of_windows = std::uint64_t{1} << 60;
    struct File {
        std::vector<std::uint32_t> modules;
        std::unordered_map<std::uint32_t, std::uint64_t> shift_of;  // by process
    };

    static Place settle(File& f, const Mapping& m, std::uint64_t shift, std::uint32_t module) {
        f.shift_of[m.pid] = shift;
        return {shift, module};
    }
    [[nodiscard]] bool is_free(std::uint64_t first, std::uint64_t last) const {
        const auto after = taken_.upper_bound(last);
        return after == taken_.begin() || std::prev(after)->second < first;
    }
    bool take(std::uint64_t first, std::uint64_t bytes) {
        if (bytes == 0 || bytes - 1 > ~first) return false;
        if (!is_free(first, first + (bytes - 1))) return false;
        taken_[first] = first + (bytes - 1);
        return true;
    }
    bool extend(Module& module, std::uint64_t bytes) {
        const std::uint64_t first = module.address.value;
        if (bytes - 1 > ~first || !is_free(first + module.bytes, first + (bytes - 1))) return false;
        taken_[first] = first + (bytes - 1);
        module.bytes = bytes;
        return true;
    }

    ModuleMap& modules_;
    std::unordered_map<std::uint32_t, File> files_;  // by name
    std::map<std::uint64_t, std::uint64_t> taken_;   // first → last
    std::uint64_t next_ = std::uint64_t{1} << 56;    // an address that no process has
};

class PerfSpaces final : public AddressSpaces {
    using Change = AddressSpaceChange<std::uint32_t>;  // `mapping`: an index
    using Space = MappedPieces<std::uint32_t>;

public:
    PerfSpaces(std::shared_ptr<const PerfData> data, std::optional<bool> context_in_vmid, bool kernel_timestamps,
               ModuleMap& modules)
        : data_(std::move(data)),
          context_in_vmid_(context_in_vmid),
          kernel_timestamps_(kernel_timestamps),
          tasks_(*data_),
          code_changes_(kernel_code_changes(*data_)) {
        place_all(modules);
        for (const TaskEvent& e : data_->tasks)
            if (changes_address_space(e)) changes_[e.pid].push_back({e.time, 0, &e});
        for (auto& [pid, changes] : changes_) sort_changes(changes);
    }

    std::optional<std::uint32_t> thread_of(std::optional<std::uint32_t> context_id,
                                           std::optional<std::uint32_t> vmid) const override {
        if (!context_in_vmid_) return std::nullopt;
        return *context_in_vmid_ ? vmid : context_id;
    }

    std::optional<Key> key(std::optional<std::uint32_t> thread, std::uint64_t from, std::uint64_t to) const override {
        Key out;
        out.kernel = count(nobody, to);
        std::uint32_t pid = nobody;
        if (thread) {
            pid = tasks_.thread(*thread, to).pid;
            // The thread's process was never reported, as with an event that traces only one process.
            if (pid == nobody && changes_.contains(*thread)) pid = *thread;
        }
        out.process = pid;
        if (pid != nobody) {
            out.first = count(pid, from);
            out.last = std::max(out.first, count(pid, to));
        }
        if (pid == nobody && out.kernel == 0) return std::nullopt;
        return out;
    }

    std::vector<MappedExtent> extents(const Key& key) const override {
        Space space, others;
        if (const auto found = changes_.find(key.process); found != changes_.end() && key.process != nobody) {
            build(found->second, key.first, space, 0);
            // Earlier mappings stay if nothing replaced them: their code may have run during that time.
            for (std::size_t i = key.first; i < std::min(key.last, found->second.size()); ++i) {
                const Change& change = found->second[i];
                if (change.event == nullptr) {
                    note_others(space, change.mapping, others);
                    put(space, change.mapping);
                } else if (change.event->kind == TaskEvent::Kind::fork) {
                    Space parent;
                    inherit(*change.event, parent, 0);
                    for (const auto& [first, piece] : parent.pieces()) space.put(first, piece.last, piece.mapping);
                }
            }
        }
        if (const auto found = changes_.find(nobody); found != changes_.end())
            for (std::size_t i = 0; i < std::min(key.kernel, found->second.size()); ++i)
                put(space, found->second[i].mapping);
        std::vector<MappedExtent> out;
        out.reserve(space.pieces().size());
        for (const auto& [first, piece] : space.pieces()) {
            const MappedExtent& of = placed_[piece.mapping];
            const auto add = [&](std::uint64_t from, std::uint64_t last, std::uint32_t other) {
                if (!out.empty() && out.back().last + 1 == from && out.back().shift == of.shift &&
                    out.back().module == of.module && out.back().name == of.name && out.back().other == other)
                    out.back().last = last;
                else
                    out.push_back({from, last, of.shift, of.module, of.name, 0, other});
            };
            std::uint64_t from = first;
            auto at = others.pieces().upper_bound(first);
            if (at != others.pieces().begin() && std::prev(at)->second.last >= first) --at;
            for (; at != others.pieces().end() && at->first <= piece.last; ++at) {
                if (at->first > from) add(from, at->first - 1, no_name);
                const std::uint64_t last = std::min(at->second.last, piece.last);
                add(std::max(from, at->first), last, placed_[at->second.mapping].name);
                if (last == piece.last) break;
                from = last + 1;
            }
            if (at == others.pieces().end() || at->first > piece.last) add(from, piece.last, no_name);
        }
        return out;
    }

    std::string thread_name(std::uint32_t thread, std::uint64_t time) const override {
        const Tasks::Thread found = tasks_.thread(thread, time);
        return found.name.empty() ? fmt::format("{}", thread) : fmt::format("{}[{}]", found.name, thread);
    }
    Task task(std::uint32_t thread, std::uint64_t time) const override {
        const Tasks::Thread found = tasks_.thread(thread, time);
        Task out{.thread = thread, .name = std::string(found.name)};
        if (found.pid == nobody) return out;
        out.process = found.pid;
        out.process_name = found.pid == thread ? out.name : std::string(tasks_.thread(found.pid, time).name);
        // If an event traces only one process, its first thread may never have been reported.
        if (out.process_name.empty()) out.process_name = out.name;
        return out;
    }
    std::vector<Task> tasks() const override {
        std::map<std::uint32_t, std::set<std::uint64_t>> times;
        for (const TaskEvent& e : data_->tasks) times[e.tid].insert(e.time);
        // The process of a thread may have been renamed meanwhile.
        for (const TaskEvent& e : data_->tasks)
            if (e.tid != e.pid && times.contains(e.pid)) times[e.tid].insert(times[e.pid].begin(), times[e.pid].end());
        std::vector<Task> out;
        for (const auto& [thread, when] : times) {
            const std::size_t first = out.size();
            for (const std::uint64_t time : when)
                if (Task now = task(thread, time);
                    std::find(out.begin() + static_cast<std::ptrdiff_t>(first), out.end(), now) == out.end())
                    out.push_back(std::move(now));
        }
        return out;
    }
    std::optional<std::uint64_t> time_of(std::uint64_t timestamp) const override {
        if (!kernel_timestamps_ || !data_->time_conversion || !data_->time_conversion->valid()) return std::nullopt;
        return data_->time_conversion->to_ns(timestamp);
    }
    const std::vector<Name>& names() const override { return names_; }
    const std::vector<CodeChange>& code_changes() const override { return code_changes_; }
    const std::vector<WrittenCode>& written_code() const override { return written_; }
    bool has_clock_of_written_code() const override {
        return !data_->attrs.empty() && std::all_of(data_->attrs.begin(), data_->attrs.end(), [](const Attr& a) {
            return a.clock_given() && a.clock == Attr::monotonic;
        });
    }

private:
    void place_all(ModuleMap& modules) {
        std::unordered_map<std::string, std::vector<std::uint8_t>> build_ids;
        for (const BuildId& id : data_->build_ids) build_ids.try_emplace(id.file, id.id);
        std::map<std::pair<std::string, std::vector<std::uint8_t>>, std::uint32_t> known;
        Places places(modules);
        placed_.resize(data_->mappings.size());
        for (std::size_t i = 0; i < data_->mappings.size(); ++i) {
            const Mapping& m = data_->mappings[i];
            // A jitdump file is mapped as executable to make perf record the mapping.
            if (is_jitdump(m.file) && m.pid != nobody) {
                if (std::none_of(written_.begin(), written_.end(),
                                 [&](const WrittenCode& w) { return w.process == m.pid && w.file == m.file; }))
                    written_.push_back({m.pid, m.file});
                continue;
            }
            if (m.data || m.bytes == 0) continue;
            Name name{is_kernel_text(m) ? "[kernel.kallsyms]" : m.file, m.build_id};
            if (name.build_id.empty())
                if (const auto found = build_ids.find(name.file); found != build_ids.end())
                    name.build_id = found->second;
            const auto [at, fresh] =
                known.try_emplace({name.file, name.build_id}, static_cast<std::uint32_t>(names_.size()));
            const Places::Place place = places.place(m, at->second, name);
            if (const auto offset = data_->code_offsets.find(m.file);
                offset != data_->code_offsets.end() && m.pid == nobody && place.module != no_module)
                modules.modules[place.module].code_offset = offset->second;
            if (fresh) names_.push_back(std::move(name));
            placed_[i] = {0, 0, place.shift, place.module, at->second, 0};
            changes_[m.pid].push_back({m.time, static_cast<std::uint32_t>(i), nullptr});
        }
    }

    /// Number of changes up to that time.
    [[nodiscard]] std::size_t count(std::uint32_t pid, std::uint64_t time) const {
        const auto found = changes_.find(pid);
        if (found == changes_.end()) return 0;
        const auto& changes = found->second;
        return static_cast<std::size_t>(std::upper_bound(changes.begin(), changes.end(), time,
                                                         [](std::uint64_t t, const Change& c) { return t < c.time; }) -
                                        changes.begin());
    }
    /// Adds the mappings that a mapping replaces to `others`, unless they are the same code.
    void note_others(const Space& space, std::uint32_t mapping, Space& others) const {
        const Mapping& m = data_->mappings[mapping];
        if (m.bytes == 0) return;
        const std::uint64_t first = m.address.value, last = first + std::min(m.bytes - 1, ~first);
        const MappedExtent& now = placed_[mapping];
        auto at = space.pieces().upper_bound(first);
        if (at != space.pieces().begin()) --at;
        for (; at != space.pieces().end() && at->first <= last; ++at) {
            const MappedExtent& before = placed_[at->second.mapping];
            const bool same = before.module == now.module && before.shift == now.shift && before.name == now.name;
            if (at->second.last >= first && !same)
                others.put(std::max(first, at->first), std::min(last, at->second.last), at->second.mapping);
        }
    }
    void put(Space& space, std::uint32_t mapping) const { space.put(data_->mappings[mapping], mapping); }
    /// Applies the changes before `end`, beginning with the last one that makes all earlier ones irrelevant.
    void build(const std::vector<Change>& changes, std::size_t end, Space& space, unsigned ancestors) const {
        std::size_t from = std::min(end, changes.size());
        const std::size_t stop = from;
        while (from != 0 && changes[from - 1].event == nullptr) --from;
        if (from != 0 && changes[from - 1].event->kind == TaskEvent::Kind::fork)
            inherit(*changes[from - 1].event, space, ancestors);
        for (; from != stop; ++from) put(space, changes[from].mapping);
    }
    void inherit(const TaskEvent& fork, Space& space, unsigned ancestors) const {
        if (ancestors >= max_ancestors) return;
        if (const auto found = changes_.find(fork.parent_pid); found != changes_.end())
            build(found->second, count(fork.parent_pid, fork.time), space, ancestors + 1);
    }

    const std::shared_ptr<const PerfData> data_;
    const std::optional<bool> context_in_vmid_;
    const bool kernel_timestamps_;
    const Tasks tasks_;
    const std::vector<CodeChange> code_changes_;
    std::vector<WrittenCode> written_;
    std::vector<Name> names_;
    std::vector<MappedExtent> placed_;  // by mapping
    std::unordered_map<std::uint32_t, std::vector<Change>> changes_;
};

}  // namespace

std::shared_ptr<const AddressSpaces> address_spaces(std::shared_ptr<const PerfData> data,
                                                    std::optional<bool> context_in_vmid, bool kernel_timestamps,
                                                    ModuleMap& modules) {
    return std::make_shared<PerfSpaces>(std::move(data), context_in_vmid, kernel_timestamps, modules);
}

}  // namespace waymark::capture::perf
