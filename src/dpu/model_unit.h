/// The unit that `Model` runs. A cycle consists of register writes (model_programming.cc), occurrences and counting
/// (model.cc), entries (model_entries.cc), the bus, interrupts and debug requests (model.cc).
#pragma once

#include <algorithm>
#include <bit>
#include <optional>
#include <tuple>
#include <utility>

#include "compressor.h"
#include "counter_logic.h"
#include "nexus_port.h"
#include "trace_buffer.h"
#include "waymark/dpu/encoder.h"
#include "waymark/dpu/model.h"
#include "waymark/dpu/packet.h"
#include "waymark/dpu/vtb.h"

namespace waymark::dpu {

inline constexpr std::uint8_t all_counters = (1U << counter_count) - 1;

class Model::Unit {
public:
    explicit Unit(const ModelConfig& config) : config_(config) { WM_CHECK(config.check().has_value()); }

    void write(std::uint32_t offset, std::uint32_t value) { writes_.push_back({offset, value}); }
    [[nodiscard]] std::uint32_t read(std::uint32_t offset) const;

    const CycleOutput& step(const CycleInput& in) {
        if (plain_ && !dirty_output_ && in.items.empty() && writes_.empty() && in.ctx == last_context_ && in.dpue &&
            !in.eonce_irq && !in.debug_ext && !in.debug_nexus) [[likely]]
            count_plain(in);
        else
            whole_cycle(in);
        return output_;
    }
    const CycleOutput* run(const CycleInput& in, std::uint64_t cycles);

    Status set_eonce(const EonceSetup& eonce);
    void set_arbiter(ModelChoices::Grant high, ModelChoices::Grant low) {
        config_.choices.high = high;
        config_.choices.low = low;
        plain_ = false;
    }
    void capture(std::uint8_t mask) {
        for (unsigned i = 0; i < counter_count; ++i)
            if ((mask >> i & 1U) != 0) shadow_[i] = counters_.value(i);
    }

    [[nodiscard]] std::uint64_t cycle() const { return cycle_; }
    [[nodiscard]] const Counters& shadow() const { return shadow_; }
    [[nodiscard]] Counters values() const { return counters_.values(); }
    [[nodiscard]] Registers registers() const;
    [[nodiscard]] bool idle() const {
        return (phase_ == Phase::off || phase_ == Phase::held) && !holds_data() && nexus_.drained();
    }
    [[nodiscard]] const ModelCounts& counts() const { return counts_; }
    [[nodiscard]] const std::vector<TracePeriod>& periods() const { return periods_; }
    [[nodiscard]] const std::vector<FilterChange>& filters() const { return filters_; }
    [[nodiscard]] CounterHistory counter_history() const {
        CounterHistory out = history_;
        if (registers_.tc.en) out.partial |= not_counting();
        return out;
    }
    [[nodiscard]] const ModelConfig& config() const { return config_; }

private:
    /// 5.10.
    enum class Phase : std::uint8_t { off, run, flush, held, close };

    struct Write {
        std::uint32_t offset, value;
    };

    // A cycle (4.2).
    void whole_cycle(const CycleInput& in);
    bool power(const CycleInput& in) { return in.dpue && was_powered_ ? true : power_changed(in); }
    bool power_changed(const CycleInput& in);
    void begin_output();
    void apply_writes(const CycleInput& in);
    void apply(const Write& write, const CycleInput& in);
    void write_trace_control(std::uint32_t value, const CycleInput& in);
    bool can_trace();
    void note_filter();
    [[nodiscard]] std::uint8_t not_counting() const {
        return static_cast<std::uint8_t>(~counters_.enabled() & all_counters);
    }
    /// Tracing is on, and was on before this cycle.
    [[nodiscard]] bool traced_before() const { return registers_.tc.en && periods_.back().cycle != cycle_; }
    void occurrences(const CycleInput& in);
    void count(const CycleInput& in);
    void counter_event(unsigned i);
    void entries(const CycleInput& in);
    void bus(bool others);
    void advance_phase();
    void resume() {
        phase_ = Phase::run;
        nexus_.resume();
    }
    void outputs(const CycleInput& in);
    void find_plain(const CycleInput& in);
    void plan();
    void count_plain(const CycleInput& in);

    // Context.
    [[nodiscard]] bool id_match(const CoreContext& context) const {
        const bool pid = context.pid == registers_.rpid.value, did = context.did == registers_.rdid.value;
        switch (static_cast<IdCompare>(registers_.cr.tidcm)) {
            case IdCompare::neither: return true;
            case IdCompare::program: return pid;
            case IdCompare::data: return did;
            case IdCompare::both: return pid && did;
        }
        return true;
    }
    [[nodiscard]] TaskContext shown_as(const CoreContext& context) const {
        return {context.supervisor, registers_.tc.tids ? context.did : context.pid};
    }

    // Trace information logic and switches (5.2, 5.3).
    void trace_item(const EonceItem& item);
    void nexus_item(const EonceItem& item);
    void trace_raw(const EonceItem& item);
    void compress(const EonceItem& item);
    void flush_compressor();
    void context_entry_if_due();
    [[nodiscard]] bool in_eonce_mode() const {
        return registers_.tc.mode() == TraceMode::eonce_raw || registers_.tc.mode() == TraceMode::eonce_comp;
    }
    /// Context entries are written where tracing begins and after a gap.
    [[nodiscard]] bool shows_context() const {
        const DpTc& tc = registers_.tc;
        return in_eonce_mode() || (tc.ctxen && tc.tmode < trace_modes && tc.mode() != TraceMode::user_raw);
    }
    [[nodiscard]] bool honours_sample(const DpTc& tc) const {
        return phase_ == Phase::run && !tc.tmpdis && tc.tmode < trace_modes && tc.mode() != TraceMode::user_raw;
    }
    bool refused(std::uint32_t pc, std::string_view what);
    template <class Make>
    void sample(const CoreContext& context, std::optional<ItemKind> kind, Make&& make);

    // Trace write management (5.5, 5.6).
    /// `context`: in force after the entry. `kind`: for pairs, the kind of the item it describes.
    template <class E>
    bool emit(const E& entry, const CoreContext& context, std::optional<ItemKind> kind = {});
    void mirror(const Entry& entry, const CoreContext& context, std::optional<ItemKind> kind = {});
    void lose();
    void closing();
    bool make_room(std::size_t words);
    void grant(unsigned lines);
    [[nodiscard]] unsigned lines_in_a_burst() const;
    [[nodiscard]] TraceWriteBuffer::Request request() const {
        return buffer_.request(registers_.tc.burst_lines(), flushing());
    }
    [[nodiscard]] bool granted(TraceWriteBuffer::Request request, bool others) const {
        const auto rule = request == TraceWriteBuffer::Request::high ? config_.choices.high : config_.choices.low;
        return rule == ModelChoices::Grant::always || (rule == ModelChoices::Grant::when_idle && !others);
    }
    [[nodiscard]] bool gap_waits() const { return lost_ != 0 && format_.mode != TraceMode::user_raw; }
    [[nodiscard]] bool flushing() const { return phase_ == Phase::flush || phase_ == Phase::close; }
    [[nodiscard]] bool holds_data() const { return buffer_.held() != 0 || cycle_ < bus_free_at_; }
    void line_written(std::uint32_t address);

    void report(std::uint32_t offset, std::string message) {
        output_.errors.push_back({cycle_, offset, std::move(message)});
    }
    [[nodiscard]] std::uint64_t& own(EventWire wire) { return own_[static_cast<std::size_t>(wire)]; }

    ModelConfig config_;
    std::uint64_t cycle_ = 0;
    Registers registers_;
    CounterLogic counters_;
    Counters shadow_{};
    TraceWriteBuffer buffer_;
    Compressor compressor_;
    NexusPort nexus_;
    TraceFormat format_;
    std::vector<Write> writes_;
    CycleOutput output_;
    ModelCounts counts_;
    std::vector<TracePeriod> periods_;
    std::vector<FilterChange> filters_;
    CounterHistory history_;
    std::vector<std::uint32_t> words_;  ///< words of the entry being emitted

    bool causes_ = false;  ///< DP_MR has a cause that may assert an interrupt line

    // Power: DPUE can fall once.
    bool powered_ = true, was_powered_ = false, dead_ = false;

    // Occurrences in this cycle.
    std::uint32_t selectors_ = 0;  ///< a bit for each Selector
    std::uint8_t lines_pulsed_ = 0;
    std::array<std::uint64_t, event_wires> own_{};
    std::vector<std::uint32_t> user_data_;
    bool sample_queued_ = false;

    // Context.
    CoreContext last_context_, now_;
    bool seen_a_cycle_ = false, last_match_ = false, match_ = false;

    // Trace.
    Phase phase_ = Phase::off;
    TaskContext shown_, last_switch_;
    bool context_due_ = false;
    bool shown_matches_ = false;  ///< id_match of the context last shown
    bool flushed_ = false;        ///< flushed the compressor, and the gap entry
    bool hold_due_ = false;       ///< tracing is held, and no pad marks the place yet
    std::uint32_t lost_ = 0;      ///< entries since the last gap entry
    std::uint64_t shadow_busy_until_ = 0, bus_free_at_ = 0;
    /// Requests and losses of this cycle, which are counted in the next cycle.
    std::uint64_t low_ = 0, high_ = 0, lost_now_ = 0;

    // The fast path: counters that count something while nothing changes.
    struct Planned {
        std::uint8_t counter;
        bool clock;  ///< one event each cycle, except in debug state
        EventWire wire;
    };
    std::array<Planned, counter_count> plan_{};
    unsigned plan_size_ = 0;
    bool plain_ = false, planned_ = false, dirty_output_ = false;
};

}  // namespace waymark::dpu
