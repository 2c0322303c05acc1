/// The beginning of a stream or of a window, in order (answers/steps.h) and with bounded memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "waymark/analysis/flow_calls.h"
#include "waymark/analysis/flow_window.h"
#include "waymark/answers/steps.h"
#include "waymark/flow/flow.h"

namespace waymark::analysis {

/// Comes before the sink that counts calls, and observes that sink's calls.
class FlowSteps final : public flow::Sink, public CallObserver {
public:
    /// `most`: maximum number of ranges. `next` also observes calls; null: no other observer.
    FlowSteps(std::size_t most, CallObserver* next, FlowWindow window = {})
        : most_(most), next_observer_(next), window_(window) {}
    /// Sets the sink that receives the ranges; call it first.
    void lead_to(flow::Sink& next) { next_ = &next; }
    /// The traced core is of the M profile: it has modes in place of exception levels.
    void name_modes(bool m_profile) { m_profile_ = m_profile; }

    /// The stream begins in the middle of a longer one, after this number of instructions in ranges.
    void begin_behind(std::uint64_t instructions) { all_ = instructions; }

    void consume(const flow::Batch& batch) override;
    [[nodiscard]] bool wants_cycles_in_ranges() const override { return next_->wants_cycles_in_ranges(); }

    void enter(const Work& now, std::uint32_t depth, FunctionId function) override;
    void leave(const Work& now, std::uint32_t depth) override;
    void switch_to(const Work& now, std::optional<std::uint32_t> context_id) override;
    void happened(const Work& now, const flow::Event& event) override;
    void regained(const Work& now) override;

    struct Frame {
        Work now;  ///< since the beginning of the stream
        answers::Steps::Frame::What what{};
        std::uint32_t depth{}, function{};  ///< a FunctionId, or the number of a context
    };
    /// The kept part, without source and frames.
    [[nodiscard]] answers::Steps::Stream stream() const;
    /// If a window begins inside the stream, the open frames come first.
    [[nodiscard]] std::vector<Frame> frames() const;
    /// Number of instructions in the stream before the kept part.
    [[nodiscard]] std::uint64_t first() const { return first_; }

private:
    /// Whether ranges are kept, and `now` is not before their end. Everything after the last kept range is dropped.
    [[nodiscard]] bool keeps(const Work& now) const {
        return now.instructions >= first_ && (!full_ || now.instructions <= first_ + kept_);
    }
    /// Whether frames change at the place where the first kept range begins.
    [[nodiscard]] bool is_before(const Work& now) const {
        return window_.begin != 0 && (kept_ == 0 || now.instructions <= first_);
    }
    void add(const Work& now, answers::Steps::Frame::What what, std::uint32_t depth, std::uint32_t function);
    void add_event(const Work& now, answers::Steps::Event::Kind kind, std::string text);

    std::size_t most_;
    CallObserver* next_observer_;
    FlowWindow window_;
    flow::Sink* next_ = nullptr;
    std::vector<flow::Block> blocks_;
    std::vector<std::uint32_t> order_;  // by Range::edge
    std::vector<Frame> frames_;
    std::vector<Frame> open_;  // the beginning of the window
    std::vector<answers::Steps::Event> events_;
    std::unordered_map<std::uint64_t, std::uint32_t> contexts_;  // by Context ID plus 1; 0: none
    std::uint64_t first_ = 0, kept_ = 0, all_ = 0;               // instructions
    bool m_profile_ = false;
    bool full_ = false;
};

}  // namespace waymark::analysis
