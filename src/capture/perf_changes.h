/// Changes to the memory of a process in perf.data, and the memory that results (docs/spec/spe.md, section 5.5;
/// docs/spec/perf-cs-etm.md, section 1.7). `M` identifies a mapping.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "waymark/capture/perf_data.h"

namespace waymark::capture::perf {

/// Maximum number of ancestors from which names and maps are inherited.
inline constexpr unsigned max_ancestors = 16;

template <class M>
struct AddressSpaceChange {
    std::uint64_t time{};
    M mapping{};               ///< or:
    const TaskEvent* event{};  ///< the fork that made the process, or the exec
};

/// A new process begins with the memory of its parent, an executed program with empty memory. perf reports processes
/// that already ran as if they had been executed at time 0; mappings of time 0 belong to them.
inline bool changes_address_space(const TaskEvent& e) {
    return e.kind == TaskEvent::Kind::fork ? e.pid != e.parent_pid : e.kind == TaskEvent::Kind::exec && e.time != 0;
}

/// Sorted by time; forks and execs come before mappings of the same time.
template <class M>
void sort_changes(std::vector<AddressSpaceChange<M>>& changes) {
    std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
        return a.time != b.time ? a.time < b.time : a.event != nullptr && b.event == nullptr;
    });
}

/// Mappings that never overlap: a later one replaces the parts of earlier ones that it covers.
template <class M>
class MappedPieces {
public:
    struct Piece {
        std::uint64_t last{};  ///< inclusive
        M mapping{};
    };

    void put(const Mapping& m, M mapping) {
        if (m.bytes == 0) return;
        const std::uint64_t first = m.address.value;
        put(first, first + std::min(m.bytes - 1, ~first), mapping);
    }
    void put(std::uint64_t first, std::uint64_t last, M mapping) {
        auto at = pieces_.upper_bound(first);
        if (at != pieces_.begin()) --at;
        while (at != pieces_.end() && at->first <= last) {
            if (at->second.last < first) {
                ++at;
                continue;
            }
            const std::uint64_t old_first = at->first;
            const Piece old = at->second;
            at = pieces_.erase(at);
            if (old_first < first) pieces_[old_first] = {first - 1, old.mapping};
            if (old.last > last) {
                pieces_[last + 1] = old;
                break;
            }
        }
        pieces_[first] = {last, mapping};
    }
    /// The mapping that contains an address, or null.
    [[nodiscard]] const M* find(std::uint64_t address) const {
        auto at = pieces_.upper_bound(address);
        if (at == pieces_.begin()) return nullptr;
        --at;
        return address <= at->second.last ? &at->second.mapping : nullptr;
    }
    void clear() { pieces_.clear(); }

    /// By first address.
    [[nodiscard]] const std::map<std::uint64_t, Piece>& pieces() const { return pieces_; }

private:
    std::map<std::uint64_t, Piece> pieces_;
};

}  // namespace waymark::capture::perf
