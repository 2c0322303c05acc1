#include "waymark/analysis/flow_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "flow_functions.h"
#include "waymark/analysis/flow_levels.h"
#include "waymark/core/gap.h"
#include "waymark/flow/summary.h"

namespace waymark::analysis {

using namespace answers;

namespace {

/// Calls and events take room too, so a stream that has nothing else is limited as well.
constexpr std::size_t most_frames_a_range = 4;

Steps::Outcome outcome_of(const flow::Block& block, bool went) {
    using Outcome = Steps::Outcome;
    if (block.end == flow::End::direct || block.end == flow::End::indirect)
        return went ? Outcome::taken : Outcome::not_taken;
    if ((block.flags & flow::Block::own_outcome) != 0) return went ? Outcome::passed : Outcome::not_taken;
    return Outcome::nothing;
}

}  // namespace

void FlowSteps::consume(const flow::Batch& batch) {
    const bool was_full = full_;
    for (const flow::Range& range : batch.ranges) {
        const std::uint64_t instructions = batch.blocks[range.block()].instructions;
        std::uint64_t at = all_;
        all_ += instructions * range.times;
        if (all_ <= window_.begin) continue;
        for (std::uint32_t i = 0; i < range.times && !full_; ++i, at += instructions) {
            if (at + instructions <= window_.begin) continue;
            full_ = order_.size() >= most_ || at >= window_.end;
            if (full_) break;
            if (order_.empty()) first_ = at;
            order_.push_back(range.edge);
            kept_ += instructions;
        }
    }
    if (!was_full && blocks_.size() < batch.blocks.size())
        blocks_.insert(blocks_.end(), batch.blocks.begin() + static_cast<std::ptrdiff_t>(blocks_.size()),
                       batch.blocks.end());
    next_->consume(batch);
}

void FlowSteps::add(const Work& now, Steps::Frame::What what, std::uint32_t depth, std::uint32_t function) {
    if (is_before(now)) {
        // The frames that follow are all frames of another stack.
        if (what == Steps::Frame::What::change_to) open_.clear();
        std::erase_if(open_, [&](const Frame& f) { return f.what == Steps::Frame::What::enter && f.depth >= depth; });
        if (what != Steps::Frame::What::leave) open_.push_back({now, what, depth, function});
        return;
    }
    if (!keeps(now) || frames_.size() >= most_frames_a_range * most_) return;
    frames_.push_back({now, what, depth, function});
}

std::vector<FlowSteps::Frame> FlowSteps::frames() const {
    std::vector<Frame> out = open_;
    // These frames were entered earlier; the kept part begins with them.
    for (Frame& frame : out) frame.now.instructions = first_;
    out.insert(out.end(), frames_.begin(), frames_.end());
    return out;
}

void FlowSteps::enter(const Work& now, std::uint32_t depth, FunctionId function) {
    add(now, Steps::Frame::What::enter, depth, function);
    if (next_observer_ != nullptr) next_observer_->enter(now, depth, function);
}

void FlowSteps::leave(const Work& now, std::uint32_t depth) {
    add(now, Steps::Frame::What::leave, depth, 0);
    if (next_observer_ != nullptr) next_observer_->leave(now, depth);
}

void FlowSteps::switch_to(const Work& now, std::optional<std::uint32_t> context_id) {
    const auto [context, fresh] = contexts_.try_emplace(context_id ? std::uint64_t{*context_id} + 1 : 0,
                                                        static_cast<std::uint32_t>(contexts_.size()));
    add(now, Steps::Frame::What::change_to, 0, context->second);
    if (next_observer_ != nullptr) next_observer_->switch_to(now, context_id);
}

void FlowSteps::add_event(const Work& now, Steps::Event::Kind kind, std::string text) {
    if (window_.begin != 0 && kept_ == 0) return;
    if (keeps(now) && events_.size() < most_) events_.push_back({now.instructions - first_, kind, std::move(text)});
}

void FlowSteps::happened(const Work& now, const flow::Event& event) {
    using Kind = Steps::Event::Kind;
    std::visit(
        [&](const auto& e) {
            using T = std::decay_t<decltype(e)>;
            if constexpr (std::is_same_v<T, flow::Exception>) {
                add_event(now, Kind::exception, exception_text(*e.type));
            } else if constexpr (std::is_same_v<T, flow::ExceptionReturn>) {
                add_event(now, Kind::exception_return, "exception return");
            } else if constexpr (std::is_same_v<T, Gap>) {
                if (is_loss(e.reason)) add_event(now, Kind::gap, fmt::format("gap: {}", name(e.reason)));
            } else if constexpr (std::is_same_v<T, flow::NoMemory>) {
                add_event(now, Kind::gap, fmt::format("gap: no image at {:#x}", e.address.value));
            } else if constexpr (std::is_same_v<T, flow::TraceOn>) {
                add_event(now, Kind::gap, fmt::format("trace on: {}", name(e.reason)));
            } else if constexpr (std::is_same_v<T, flow::Context>) {
                std::string text;
                if (e.el) text = level_text(*e.el, m_profile_);
                if (e.context_id) text += fmt::format("{}context {:#x}", text.empty() ? "" : ", ", *e.context_id);
                add_event(now, Kind::context, text.empty() ? "context" : std::move(text));
            } else if constexpr (std::is_same_v<T, flow::Inconsistency>) {
                if (flow::concerns_flow(e.conflict)) add_event(now, Kind::gap, "trace and image disagree");
            } else if constexpr (std::is_same_v<T, flow::Untraced>) {
                add_event(now, Kind::gap, fmt::format("the trace omits the way to {:#x}", e.to.value));
            } else if constexpr (std::is_same_v<T, flow::Atoms>) {
                add_event(now, Kind::gap, "branches of code that is not known");
            } else if constexpr (std::is_same_v<T, flow::Mark>) {
                if (e.kind == flow::Mark::Kind::unit_events && (e.value & 1U) != 0)
                    add_event(now, Kind::mark, "trigger (event 0)");
            } else if constexpr (std::is_same_v<T, flow::Trigger>) {
                add_event(now, Kind::mark, "trigger");
            }
        },
        event.what);
    if (next_observer_ != nullptr) next_observer_->happened(now, event);
}

void FlowSteps::regained(const Work& now) {
    if (next_observer_ != nullptr) next_observer_->regained(now);
}

Steps::Stream FlowSteps::stream() const {
    Steps::Stream out;
    out.instructions = std::min(all_, std::max(window_.end, first_ + kept_)) - first_;
    out.first = first_;
    out.events = events_;
    std::unordered_map<std::uint32_t, std::uint32_t> numbers;
    for (const std::uint32_t edge : order_) {
        const auto [at, fresh] = numbers.try_emplace(edge, static_cast<std::uint32_t>(out.edges.size()));
        out.order.push_back(at->second);
        if (!fresh) continue;
        const flow::Block& block = blocks_[edge / 2];
        out.edges.push_back(
            {block.start, block.bytes, block.instructions, block.isa, outcome_of(block, (edge & 1U) != 0)});
    }
    return out;
}

}  // namespace waymark::analysis
