/// The resources of a macrocell and TraceEnable, docs/spec/pft.md, section 5.6, and docs/spec/etmv3.md, section 9:
/// comparators, counters, sequencer, inputs, and the events made of them.
#pragma once

#include <array>
#include <cstdint>

#include "waymark/pft/model.h"

namespace waymark::pft {

/// What comparators see at once: of a PTM the instructions from the target of one waypoint to the next waypoint; of an
/// ETMv3 one instruction.
struct ComparedBlock {
    std::uint64_t start{}, end{};  ///< addresses of the first and the last instruction
    bool ns{}, hyp{}, user{};
    bool jazelle{};  ///< no comparator matches
    std::uint32_t context_id{};
    std::uint8_t vmid{};
    bool passed = true;  ///< of an ETMv3's instruction: its condition
};

class Resources {
public:
    Resources(const Registers& registers, ModelChoices::StartAndStop start_and_stop);

    /// Whether only "everything, always" is programmed: compare() would always return true and no event would ever
    /// occur.
    [[nodiscard]] bool trivial() const { return trivial_; }

    /// A block ran where resources may see it: comparators keep these results until the next block. Returns
    /// TraceEnable.
    [[nodiscard]] bool compare(const ComparedBlock& block);
    /// Time passes: counters run, unless the resources are frozen.
    void advance(std::uint64_t cycles);

    /// Whether these events became true since the last call.
    [[nodiscard]] bool take_trigger() { return take(trigger_rose_); }
    [[nodiscard]] bool take_timestamp() { return take(timestamp_rose_); }

    void external(unsigned number, bool level);
    void extended(unsigned number, bool level);
    void watchpoint(unsigned number, bool level);
    void instrumentation(unsigned number, bool level);
    /// Trace is prohibited: resources must not reveal the code that runs (5.3). `frozen`: non-invasive debug is
    /// completely off.
    void prohibited(bool on, bool frozen);

    /// Copies inputs and prohibition.
    void take_signals(const Resources& before);
    /// Sets counters, and the states of the sequencer and the start/stop block.
    void read_back(Registers& registers) const;

    [[nodiscard]] bool start_stop() const { return start_stop_; }
    [[nodiscard]] bool external_output(unsigned number) const { return outputs_.at(number - 1); }

private:
    static bool take(bool& flag) {
        const bool was = flag;
        flag = false;
        return was;
    }
    [[nodiscard]] bool resource(unsigned type, unsigned index) const;
    [[nodiscard]] bool event(const EventFields& e) const;
    [[nodiscard]] bool permitted(const Etmactr& access, const ComparedBlock& block) const;
    void run_start_stop();
    void run_sequencer();
    void reload_counters();
    void sample();

    void note_use();

    const Registers r_;
    const ModelChoices::StartAndStop start_and_stop_choice_;
    bool trivial_ = false;
    // Most programs use few resources: results that no event or control uses are not computed.
    std::uint32_t used_single_ = 0, used_ranges_ = 0;
    bool counters_used_ = false, sequencer_used_ = false, events_used_ = false;

    std::uint32_t single_ = 0, included_ = 0, excluded_ = 0;  // comparators that match: bit n for comparator n + 1
    std::uint32_t context_ids_ = 0;
    bool vmid_ = false, ns_ = false, prohibited_ = false, frozen_ = false;
    bool start_stop_ = false;      // after the last block
    bool start_stop_now_ = false;  // during it
    std::array<std::uint32_t, 4> counters_{};
    std::array<bool, 4> at_zero_{}, outputs_{};
    unsigned sequencer_ = 1;
    std::uint32_t inputs_ = 0, watchpoints_ = 0, instrumentation_ = 0;
    std::array<bool, 256> extended_{};
    bool trigger_ = false, timestamp_ = false, trigger_rose_ = false, timestamp_rose_ = false;
};

}  // namespace waymark::pft
