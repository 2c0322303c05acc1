/// The caches of the modelled core.
#pragma once

#include <cstdint>
#include <vector>

#include "waymark/record/set_associative.h"
#include "waymark/record_dpu/dpu_options.h"

namespace waymark::record {

/// A cache of the modelled core.
class DpuCache {
public:
    DpuCache(std::uint32_t kib, const CoreModel& core)
        : sets_((kib << 10) / core.line_bytes, core.ways), window_(core.thrash_window), evicted_(1 << 12) {}
    struct Found {
        bool hit, thrash, wrote_back;
    };
    Found access(std::uint32_t line, bool store, std::uint64_t cycle) {
        constexpr std::uint8_t clean = 1, dirty = 2;
        if (std::uint8_t* const state = sets_.find(line)) {
            if (store) *state = dirty;
            return {true, false, false};
        }
        const EvictedLine& before = evicted_[line % evicted_.size()];
        const bool thrash = before.known && before.line == line && cycle - before.cycle <= window_;
        const SetAssociative::Evicted out = sets_.insert(line, store ? dirty : clean);
        if (out.state != 0) {
            const auto left = static_cast<std::uint32_t>(out.tag);
            evicted_[left % evicted_.size()] = {cycle, left, true};
        }
        return {false, thrash, out.state == dirty};
    }

private:
    struct EvictedLine {
        std::uint64_t cycle = 0;
        std::uint32_t line = 0;
        bool known = false;
    };
    SetAssociative sets_;
    std::uint64_t window_;
    std::vector<EvictedLine> evicted_;  // recently evicted lines, by the low bits of the line
};

}  // namespace waymark::record
