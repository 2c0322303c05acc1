/// Drives the model of the macrocell with an invented execution, and writes down the expected result of decoders. It
/// asks the model only for facts that hardware alone decides: the losses of a full FIFO.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "support/elements.h"
#include "support/random.h"
#include "support/trace_writer.h"
#include "waymark/core/byte_sink.h"
#include "waymark/pft/model.h"

namespace waymark::synthetic {

struct ModelDriverOptions {
    std::uint64_t seed = 1;
    /// Address ranges [first, second) of TraceEnable, which the registers contain too; empty: everything.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges{};
    bool exclude = true;
    /// Addresses of the start and stop comparators, which the registers contain too; both empty: TraceEnable needs
    /// none.
    std::vector<std::uint64_t> start_at{}, stop_at{};
    pft::Authentication authentication{};
    /// In 10 000 events. Stops: the Programming bit is set for a while. Inputs: external inputs 2 and 3.
    std::uint32_t sync_requests = 0, waits = 0, clock_changes = 0, flushes = 0, stops = 0, authentication_changes = 0;
    std::uint32_t input_changes = 0;
};

class ModelDriver final : public Execution {
public:
    ModelDriver(const pft::ModelConfig& config, const ModelDriverOptions& options, ByteSink& trace);

    void waypoint(const Executed& executed) override;
    void exception(const Interrupted& interrupted) override;
    void context_id(std::uint32_t value) override;
    void vmid(std::uint8_t value) override;
    /// External input 1; ETMTEEVR of the configuration looks at it.
    void enable(bool on) override;
    /// The FIFO of the model itself decides when it overflows.
    void overflow(unsigned) override {}
    void finish();

    /// The expected elements, in normalise()'s form.
    [[nodiscard]] std::vector<Element> truth() const;
    /// The first unexpected result, if there was one.
    [[nodiscard]] const std::string& wrong() const { return wrong_; }
    [[nodiscard]] const pft::Model& model() const { return model_; }
    /// Maximum number of triggers, if external input 3 causes them.
    [[nodiscard]] std::uint64_t most_triggers() const;
    /// An event occurred when the timestamp bus had this value.
    [[nodiscard]] bool knows_time(std::uint64_t ticks) const { return times_.contains(ticks); }

private:
    struct Entry {  // the effect of one waypoint or exception
        std::vector<Element> elements;
    };
    struct Before {
        pft::ModelCounts counts;
        std::uint64_t isyncs;
        bool tracing, overflow;
    };
    /// Watches I-syncs: the unit sends them on its own, and they show the state regardless of earlier packets.
    class Watch final : public ByteSink {
    public:
        explicit Watch(ByteSink& to) : to_(to) {}
        void write(Bytes bytes) override;
        std::uint64_t isyncs = 0;

    private:
        ByteSink& to_;
    };

    void begin(const flow::Block& block, std::uint64_t cycle);
    [[nodiscard]] Before before() const {
        return {model_.counts(), watch_.isyncs, model_.tracing(), model_.status().overflow};
    }
    enum class Wanted : std::uint8_t {
        no,
        silent,  ///< traced up to here, but without an element
        yes
    };
    void end(const Before& before, Wanted wanted, Entry entry);
    [[nodiscard]] bool wants(const flow::Block& block, std::uint64_t end);
    [[nodiscard]] bool prohibited() const;
    [[nodiscard]] bool silent_entry() const;
    void go_to(bool ns, bool hyp);
    void drop(std::uint64_t lost);
    void noise(std::uint64_t cycle);
    void happens(std::uint64_t cycle);
    [[nodiscard]] Element in_context(Element e) const;
    [[nodiscard]] std::uint32_t delivered(std::uint64_t cycle) const;

    const pft::ModelConfig config_;
    const pft::Config packets_;
    const ModelDriverOptions options_;
    Random random_;
    Watch watch_;
    pft::Model model_;
    std::vector<Entry> entries_;
    std::unordered_set<std::uint64_t> times_;
    std::string wrong_;

    pft::Authentication authentication_;
    bool started_ = false, enabled_ = true, in_debug_ = false, debug_exit_ = false, jazelle_ = false;
    bool programming_ = false, start_stop_ = false;
    bool inputs_[2] = {};
    std::uint64_t rises_[2] = {};
    bool ns_ = false, hyp_ = false;              // of the core
    bool shown_ns_ = false, shown_hyp_ = false;  // as the decoders know it
    std::uint32_t context_id_ = 0;
    std::uint8_t vmid_ = 0;
    std::uint64_t first_cycle_ = 0, arrival_ = 0, last_cycle_ = 0;
};

/// Decoded elements without offsets, each range with the context it ran in, counts summed up from the start;
/// timestamps, triggers and contexts by themselves are left out. `wrong` takes elements that no trace of the driver's
/// model may give; `offsets`, where not null, that of each one's packet.
[[nodiscard]] std::vector<Element> normalise(const std::vector<Element>& elements, const ModelDriver& driver,
                                             std::string& wrong, std::vector<std::uint64_t>* offsets = nullptr);

}  // namespace waymark::synthetic
