/// The model's filters and resources: ViewInst, comparators, selectors, counters, sequencer, events
/// (docs/spec/etm4-registers.md, 2.4 to 2.12).
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "waymark/core/types.h"
#include "waymark/etm4/registers.h"
#include "waymark/flow/flow.h"

namespace waymark::etm4 {

/// An instruction block (2.3): instructions of `step` bytes from `first` to `last`, in one context. T32 code is treated
/// as an instruction every two bytes, so the second half of a long instruction can match too, which 2.6 permits.
struct ViewedBlock {
    Address first, last;
    unsigned step = 4;
    const flow::Context& context;
};

class ModelResources {
public:
    explicit ModelResources(const Registers& registers);

    /// Whether ViewInst is always active, and no event can occur.
    [[nodiscard]] bool trivial() const { return trivial_; }
    /// Processor clocks pass (2.9), in which no comparators match except those that view() set.
    void advance(std::uint64_t cycles);
    /// ViewInst for this block; updates the start/stop state and the single-shot comparators (2.12, 2.8).
    [[nodiscard]] bool view(const ViewedBlock& block);
    /// A transaction begins after the last viewed block. If it fails, the start/stop state returns to its value at that
    /// time, and no single-shot comparator has fired; until the transaction ends, none fires (2.8, 2.12).
    void begin_transaction();
    void end_transaction(bool committed);
    /// Sets external input `selector`, 0 to 3.
    void external_input(unsigned selector, bool level);
    [[nodiscard]] std::uint32_t inputs() const { return inputs_; }
    /// Inside a range: an instruction at `address` matches one of the address range comparators in `mask` (2.6).
    [[nodiscard]] bool in_range(Address address, const flow::Context& context, std::uint8_t mask) const;

    /// Events since the last call, as Event packets report them: the events that TRCEVENTCTL1R.INSTEN selects. Several
    /// occurrences of an event count once.
    [[nodiscard]] std::uint8_t take_events() { return std::exchange(events_, std::uint8_t{0}); }
    [[nodiscard]] bool take_timestamp() { return std::exchange(timestamp_, false); }
    /// Whether event 0 became active, and TRCEVENTCTL1R.ATB sends it as a trigger on the trace bus.
    [[nodiscard]] bool take_bus_trigger() { return std::exchange(bus_trigger_, false); }
    /// External outputs: a bit for each event that is active now (2.11).
    [[nodiscard]] std::uint8_t outputs() const { return outputs_; }

    /// Sets counters, sequencer, start/stop and single-shot states to their present values. Input that TRCRSR and
    /// TRCSSCSR.PENDING stored took effect when the resources were enabled (2.2).
    void read_back(Registers& registers) const;

private:
    /// The resources that are active in one clock.
    struct Active {
        std::uint32_t sac{}, arc{}, cid{}, vmid{}, single_shot{}, counters{}, sequencer{}, inputs{};
    };
    [[nodiscard]] bool excluded(std::uint8_t secure, std::uint8_t non_secure, std::uint8_t realm,
                                const flow::Context& context) const;
    /// Whether the comparator's exception level and identifiers match (2.6).
    [[nodiscard]] bool applies(unsigned comparator, const flow::Context& context) const;
    [[nodiscard]] std::uint32_t context_ids(const flow::Context& context) const;
    [[nodiscard]] std::uint32_t vmids(const flow::Context& context) const;
    [[nodiscard]] bool raw(unsigned selector, const Active& active) const;
    [[nodiscard]] bool selector(unsigned n, const Active& active) const;
    [[nodiscard]] bool event(bool pair, unsigned sel, const Active& active) const;
    [[nodiscard]] Active steady() const;
    /// One clock (2.9, 2.10). Returns true if anything changed.
    bool tick(Active active);
    void take(const Active& active);

    Registers r_;
    unsigned comparators_, selectors_, counters_;
    bool view_event_fixed_;  ///< there is no resource selector: the event of ViewInst is always true
    bool trivial_;
    bool start_stop_, start_stop_used_;
    bool in_transaction_ = false, start_stop_before_ = false;
    std::uint32_t undecided_ = 0;  ///< single-shot comparators that fire if the transaction commits
    std::array<std::uint16_t, 4> counter_{};
    unsigned state_ = 0;  ///< of the sequencer
    std::uint32_t zeros_ = 0;
    std::uint32_t single_shots_ = 0;  ///< STATUS
    std::uint32_t inputs_ = 0;
    std::uint32_t input_pulse_ = 0;  ///< TRCRSR.EXTIN, for the first clock
    Active matched_;                 ///< matches by blocks since the last clock
    bool has_matches_ = false;
    std::uint8_t events_ = 0, outputs_ = 0;
    bool timestamp_ = false, bus_trigger_ = false;
};

}  // namespace waymark::etm4
