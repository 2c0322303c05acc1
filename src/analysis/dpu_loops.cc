#include "waymark/analysis/dpu_loops.h"

#include <algorithm>

namespace waymark::analysis {

using dpu::Element;
using dpu::ElementKind;

namespace {

constexpr std::size_t most_open = 64;      // in one context
constexpr std::uint32_t longest_call = 8;  // bytes from a call to its return address
constexpr std::uint32_t longest_instruction = 8;

}  // namespace

void DpuLoops::take(const Element& e) {
    const bool known = e.has(Element::id_known) && e.has(Element::privilege_known) && !e.has(Element::doubtful);
    switch (e.kind) {
        case ElementKind::pair: pair(e); break;
        case ElementKind::short_loop:
        case ElementKind::long_loop: run(e, e.value); break;
        case ElementKind::lost:
        case ElementKind::held:
        case ElementKind::enabled: lose(); break;
        case ElementKind::gap:
            if (e.reason != GapReason::padding) lose();
            break;
        default: break;
    }
    if (known) context_ = e.context;
}

void DpuLoops::lose() {
    for (auto& [context, stack] : stacks_)
        for (Open& open : stack) {
            open.inside = true;
            open.sure = false;
        }
    context_.reset();
}

std::optional<std::uint32_t> DpuLoops::start_of(const Place& last) {
    if (const auto start = code_.loop_start(last)) return start;
    return starts_[last.layer].find(last.address);
}

/// The instruction at an address of this context was executed: loops around other code have ended.
void DpuLoops::passes(Stack& stack, std::uint32_t address) {
    std::erase_if(stack, [&](const Open& open) {
        if (!open.inside || !open.sure || open.has(address)) return false;
        close(open);
        return true;
    });
}

void DpuLoops::close(const Open& open) {
    DpuLoop& loop = seen_[open.last].loop;
    loop.least = std::min(loop.least, open.jumps + 1);
    loop.most = std::max(loop.most, open.jumps + 1);
}

void DpuLoops::close_all(Stack& stack) {
    for (const Open& open : stack) close(open);
    stack.clear();
}

/// The loop that ends at the element's source jumped back.
void DpuLoops::run(const Element& e, std::uint64_t jumps) {
    const Place last = code_.at(e.from, e.offset);
    Stack& stack = stacks_[{e.context.supervisor, e.context.id}];
    passes(stack, last.address);
    Seen& seen = seen_[last];
    seen.loop.jumps += jumps;
    if (e.kind != ElementKind::pair) {
        seen.compressed = true;
        seen.loop.is_short = e.kind == ElementKind::short_loop;
    }
    const auto same =
        std::find_if(stack.rbegin(), stack.rend(), [&](const Open& open) { return open.last == last && open.inside; });
    if (same != stack.rend()) {
        // Ends the inner loops.
        for (auto inner = same.base(); inner != stack.end(); ++inner) close(*inner);
        stack.erase(same.base(), stack.end());
        Open& open = stack.back();
        open.jumps += jumps;
        seen.loop.uncertain |= !open.sure;
        open.sure = true;
        return;
    }
    if (stack.size() == most_open) {
        Seen& forgotten = seen_[stack.front().last];
        forgotten.dropped |= !stack.front().inside;
        close(stack.front());
        stack.erase(stack.begin());
    }
    if (seen.dropped)
        seen.loop.uncertain = true;
    else
        ++seen.loop.runs;
    stack.push_back({last, start_of(last), jumps});
}

void DpuLoops::pair(const Element& e) {
    starts_[code_.at(e.from, e.offset).layer].saw(e);
    const bool known = e.has(Element::id_known) && e.has(Element::privilege_known);
    if (!known) return;
    if (!context_) {
        // The flow may be a jump back, or come from another context.
        Stack& stack = stacks_[{e.context.supervisor, e.context.id}];
        for (Open& open : stack) open.sure = false;
        return;
    }
    Stack& before = stacks_[{context_->supervisor, context_->id}];
    if (*context_ != e.context) {
        // Interrupts and returns from them. The interrupted code continues where they return to.
        passes(before, e.from);
        if (context_->supervisor && !e.context.supervisor) close_all(before);
        Stack& after = stacks_[{e.context.supervisor, e.context.id}];
        if (!context_->supervisor && e.context.supervisor) close_all(after);
        std::erase_if(after, [&](Open& open) {
            if (!open.inside || open.has(e.to)) return false;
            // Flow directly after the loop's last instruction means that the loop has ended. Flow to another place may
            // enter a handler of a signal, or a new task.
            if (e.to > open.last.address && e.to - open.last.address <= longest_instruction && open.sure) {
                close(open);
                return true;
            }
            open.sure = false;
            return false;
        });
        return;
    }
    passes(before, e.from);
    if (e.to <= e.from) {
        const Place last = code_.at(e.from, e.offset);
        const bool call = code_.change(last) != DpuCode::Change::unknown;
        if (!call) run(e, 1);
    }
    // Flow returns from a function that a loop called: loops of the callee have ended.
    for (std::size_t i = before.size(); i-- > 0;) {
        Open& open = before[i];
        if (open.inside || e.to <= open.left_at || e.to - open.left_at > longest_call) continue;
        open.inside = true;
        for (std::size_t inner = i + 1; inner < before.size(); ++inner) close(before[inner]);
        before.resize(i + 1);
        return;
    }
    std::erase_if(before, [&](Open& open) {
        if (!open.inside || open.has(e.to)) {
            if (open.inside && !open.start) open.sure = false;
            return false;
        }
        const Place from = code_.at(e.from, e.offset);
        // A jump leaves the loop for good if the program's code shows that it is not a call.
        if (code_.change(from) != DpuCode::Change::call && code_.instructions(from.address, from)) {
            close(open);
            return true;
        }
        open.inside = false;
        open.left_at = e.from;
        return false;
    });
}

void DpuLoops::finish() {
    for (auto& [context, stack] : stacks_) close_all(stack);
    for (auto& [last, seen] : seen_) {
        if (!seen.compressed) continue;
        // The program's image first, then what the trace showed (5.4).
        seen.loop.start = start_of(last);
        loops_.emplace(last, seen.loop);
    }
}

bool DpuLoops::uncertain() const {
    return std::any_of(loops_.begin(), loops_.end(), [](const auto& each) { return each.second.uncertain; });
}

}  // namespace waymark::analysis
