#include "waymark/pipeline/changed_code.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

namespace waymark::pipeline {

namespace {

/// An address at which neither processes nor files are placed (capture/perf_spaces.cc).
constexpr std::uint64_t first_place = std::uint64_t{1} << 60;

}  // namespace

void ChangedCode::finish(image::MemoryMap& map) {
    std::stable_sort(changes_.begin(), changes_.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
    std::uint64_t next = first_place;
    // Code that returns to an earlier place is the same function.
    std::map<std::tuple<std::uint32_t, std::uint64_t, std::string, std::vector<std::uint8_t>>, std::uint64_t> known;
    for (std::size_t i = 0; i < changes_.size(); ++i) {
        const capture::CodeChange& change = changes_[i];
        of_process_[change.process].push_back(i);
        places_.push_back(0);
        if (change.name.empty() || change.code.empty()) continue;
        const auto [at, fresh] =
            known.try_emplace({change.process, change.address.value, change.name, change.code}, next);
        places_.back() = at->second;
        if (!fresh) continue;
        const bool added = map.add_bytes(change.code, {next}, {},
                                         change.process == capture::CodeChange::kernel ? "[kernel code]" : "[jit]")
                               .has_value();
        if (!added) places_.back() = 0;
        constexpr std::uint64_t apart = 64;
        next += (change.code.size() + apart) / apart * apart + (change.address.value & (apart - 1));
    }
}

void ChangedCode::add_symbols(image::Symbols& symbols) const {
    for (std::size_t i = 0; i < changes_.size(); ++i)
        if (places_[i] != 0)
            symbols.add(changes_[i].name, Address{places_[i]}, changes_[i].code.size(), image::SymbolKind::function);
}

ChangedCode::State ChangedCode::state(std::uint32_t process, std::uint64_t from, std::uint64_t to) const {
    const auto found = of_process_.find(process);
    if (found == of_process_.end()) return {};
    const auto count = [&](std::uint64_t time) {
        const auto after = std::upper_bound(found->second.begin(), found->second.end(), time,
                                            [&](std::uint64_t t, std::size_t i) { return t < changes_[i].time; });
        return static_cast<std::size_t>(after - found->second.begin());
    };
    const State out{count(from), count(to)};
    return {std::min(out.before, out.in), out.in};
}

void ChangedCode::apply(std::uint32_t process, const State& state, std::vector<capture::MappedExtent>& extents) const {
    const auto found = of_process_.find(process);
    if (found == of_process_.end() || state.in == 0) return;
    std::map<std::uint64_t, capture::MappedExtent> pieces;
    for (const capture::MappedExtent& e : extents) pieces.emplace(e.first, e);
    for (std::size_t n = 0; n < state.in; ++n) {
        const std::size_t i = found->second[n];
        const capture::CodeChange& change = changes_[i];
        if (change.bytes == 0 || (change.code.empty() && n >= state.before)) continue;
        const std::uint64_t first = change.address.value, last = first + std::min(change.bytes - 1, ~first);
        // Existing code is cut to the parts before and after. A part of a mapping keeps its place relative to the rest.
        std::optional<capture::MappedExtent> around;
        auto at = pieces.upper_bound(first);
        if (at != pieces.begin() && std::prev(at)->second.last >= first) --at;
        while (at != pieces.end() && at->first <= last) {
            const capture::MappedExtent old = at->second;
            at = pieces.erase(at);
            if (old.first <= first && old.last >= last) around = old;
            if (old.first < first) {
                capture::MappedExtent before = old;
                before.last = first - 1;
                pieces[before.first] = before;
            }
            if (old.last > last) {
                capture::MappedExtent after = old;
                after.first = last + 1;
                at = pieces.insert_or_assign(after.first, after).first;
                break;
            }
        }
        if (change.code.empty()) continue;
        capture::MappedExtent piece{first, first + (change.code.size() - 1), 0, capture::no_module,
                                    0,     static_cast<std::uint32_t>(i + 1)};
        if (places_[i] != 0) {
            piece.shift = first - places_[i];
        } else if (around) {
            piece.shift = around->shift;
            piece.module = around->module;
            piece.name = around->name;
        }
        pieces[first] = piece;
    }
    extents.clear();
    for (const auto& [first, piece] : pieces) extents.push_back(piece);
}

Bytes ChangedCode::code(const capture::MappedExtent& extent) const {
    const capture::CodeChange& change = changes_[extent.code - 1];
    return Bytes(change.code).subspan(static_cast<std::size_t>(extent.first - change.address.value));
}

}  // namespace waymark::pipeline
