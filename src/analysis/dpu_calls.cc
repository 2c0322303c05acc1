#include "waymark/analysis/dpu_calls.h"

#include <algorithm>

namespace waymark::analysis {

namespace {

const DpuCode::Function nowhere{0, "<code not known>"};

}  // namespace

const DpuCalls::Known& DpuCalls::known(const Place& place) {
    const auto found = known_.find(place);
    if (found != known_.end()) return found->second;
    return known_.emplace(place, Known{code_.function(place), code_.home(place)}).first->second;
}

void DpuCalls::pass(const DpuCounts& counts) {
    for (OpenService& service : open_services_) add(service.counts, counts);
}

void DpuCalls::book(const DpuOwner& who, const DpuCounts& counts, const std::optional<Place>& run,
                    const std::optional<Place>& last_pc, bool known) {
    DpuCode::Function where = {0, to_text(who)};
    std::size_t path = 0;
    bool crosses = false;
    if (who.is_context()) {
        Stack& s = stack(who.context.id);
        if (s.empty()) begin(s, run, who.context);
        if (run && last_pc) crosses = jump(s, *run, *last_pc);
        for (Frame& frame : s) add(frame.inclusive, counts);
        where = s.back().function;
        path = s.back().path;
        if (run && last_pc && code_.takes_turns(*run, *last_pc)) {
            // The code at this place was changed while tracing, and the trace does not show when.
            where = code_.function(code_.any_of(*run));
            path = child(path, where, std::nullopt, false);
        }
        if (crosses) replace(s, code_.function_around(*last_pc), this->known(*last_pc).home, true);
    } else {
        path = child(0, where, std::nullopt, false);
    }
    DpuFunctionCost& cost = functions_[where];
    cost.known &= known;
    add(cost.self, counts);
    if (crosses) {
        ++crossings_;
        add(cost.crossed, counts);
    }
    paths_[path].known &= known;
    add(paths_[path].self, counts);
}

DpuCalls::Stack& DpuCalls::stack(std::uint8_t id) { return stacks_[id]; }

std::size_t DpuCalls::child(std::size_t parent, const DpuCode::Function& function,
                            const std::optional<dpu::TaskContext>& root, bool service) {
    const auto [found, is_new] = children_.try_emplace(
        {parent * 512 + (root && parent == 0 ? root->id + 1U : 0U), function, service}, paths_.size());
    if (is_new) {
        DpuPath path;
        path.parent = parent;
        path.function = function;
        if (parent == 0) path.root = root;
        path.service = service;
        paths_.push_back(std::move(path));
    }
    return found->second;
}

void DpuCalls::push(Stack& s, const Place& to, std::uint32_t call, bool service, const dpu::TaskContext& context) {
    const auto& at = known(to);
    const DpuCode::Function what = at.function;
    const std::size_t path = child(s.empty() ? 0 : s.back().path, what, context, service);
    ++paths_[path].calls;
    ++functions_[what].calls;
    const bool outermost = std::none_of(s.begin(), s.end(), [&](const Frame& f) { return f.function == what; });
    s.push_back({path, call, service, outermost, at.home, what, {}});
}

/// Begins a stack with the function at a place; its caller is not known. nullopt: the code is not known either.
void DpuCalls::begin(Stack& s, const std::optional<Place>& at, const dpu::TaskContext& context) {
    const DpuCode::Function what = at ? code_.function_around(*at) : nowhere;
    const std::size_t path = child(0, what, context, false);
    const bool from_its_begin = at && begins_at(*at);
    s.push_back({path, 0, context.supervisor, from_its_begin, at ? known(*at).home : 0, what, {}});
}

/// A function replaces the topmost one, and will return to that one's caller.
void DpuCalls::replace(Stack& s, const DpuCode::Function& what, std::uint64_t home, bool called) {
    Frame& frame = s.back();
    if (frame.timed && frame.function != nowhere) functions_[frame.function].activations.take(frame.inclusive);
    const DpuPath& before = paths_[frame.path];
    frame.path = child(before.parent, what, before.root, before.service);
    frame.function = what;
    frame.home = home;
    frame.inclusive = {};
    frame.timed = called && std::none_of(s.begin(), s.end() - 1, [&](const Frame& f) { return f.function == what; });
    if (!called) return;
    ++paths_[frame.path].calls;
    ++functions_[what].calls;
    ++jumps_;
}

/// Code ran from `start` to a change of flow at `last`. `last` may lie in another function than the topmost one,
/// because a jump led there. Where the instructions up to the jump are the same each time, as in the procedure linkage
/// table, the run belongs to the target function of the jump. Returns true if part of the run belongs to the topmost
/// function.
bool DpuCalls::jump(Stack& s, const Place& start, const Place& last) {
    // The stack may be one that was left at another place.
    if (const std::uint64_t home = known(start).home; home != 0 && home != s.back().home)
        replace(s, code_.function_around(start), home, false);
    const std::uint64_t home = known(last).home;
    if (home == 0 || home == s.back().home) return false;
    auto found = ways_.find({start, last});
    if (found == ways_.end()) found = ways_.emplace(std::pair(start, last), code_.way(start, last)).first;
    const DpuCode::Way& way = found->second;
    for (const Place& entered : way.entered) {
        const Known& at = known(entered);
        replace(s, at.function, at.home, true);
    }
    if (home == s.back().home) return false;
    if (way.jumps_on) replace(s, code_.function_around(last), home, true);
    return !way.jumps_on;
}

/// Whether a function that has a symbol begins at an address.
bool DpuCalls::begins_at(const Place& place) {
    const DpuCode::Function& function = known(place).function;
    return function.address == place.address && code_.function_around(place) == function;
}

/// A return to a place where no frame waits: longjmp or a handler of a C++ exception continues a function that has a
/// frame in its middle, or a function is entered by a return, as the dynamic linker does after it has found the
/// function.
bool DpuCalls::unwind(Stack& s, const Place& to) {
    const Known& at = known(to);
    if (at.home == 0 || s.empty()) return false;
    if (begins_at(to)) {
        if (s.back().home == at.home) return false;
        replace(s, at.function, at.home, true);
        return true;
    }
    auto found = std::find_if(s.rbegin(), s.rend(), [&](const Frame& f) { return f.service || f.home == at.home; });
    if (found == s.rend() || found->service) return false;
    for (auto above = found - s.rbegin(); above != 0; --above) pop(s);
    return true;
}

void DpuCalls::pop(Stack& s) {
    const Frame& frame = s.back();
    if (frame.timed) functions_[frame.function].activations.take(frame.inclusive);
    s.pop_back();
}

void DpuCalls::lose() {
    stacks_.clear();
    open_services_.clear();
}

/// A context continues after others ran.
void DpuCalls::resume(Stack& s, const Place& to, const dpu::TaskContext& context) {
    const Known& at = known(to);
    if (s.empty()) {
        begin(s, to, context);
    } else if (at.home != 0 && at.home != s.back().home) {
        // Flow enters the handler of a signal, or returns from one.
        if (begins_at(to))
            push(s, to, 0, false, context);
        else
            static_cast<void>(unwind(s, to));
    }
}

/// A change of flow away from an unknown context: only a call can be recognised by itself.
void DpuCalls::arrive(const dpu::Element& e) {
    const Place from = code_.at(e.from, e.offset), to = code_.at(e.to, e.offset);
    Stack& s = stack(e.context.id);
    // While a task runs in user state, none of its services is open.
    while (!e.context.supervisor && std::any_of(s.begin(), s.end(), [](const Frame& f) { return f.service; })) pop(s);
    if (code_.change(from) != DpuCode::Change::call) return resume(s, to, e.context);
    if (s.empty()) begin(s, from, e.context);
    push(s, to, e.from, false, e.context);
}

void DpuCalls::change(const dpu::Element& e, const std::optional<dpu::TaskContext>& left) {
    const bool before = left && left->supervisor, after = e.context.supervisor;
    // The entry of a service shows it in both modes.
    if (left && !before && after) open_services_.push_back({e.to, {}});
    if (!after) {
        while (!open_services_.empty()) {
            services_[open_services_.back().entry].stays.take(open_services_.back().counts);
            open_services_.pop_back();
        }
    }
    if (e.kind != dpu::ElementKind::flow) return;
    if (!left) return arrive(e);
    const Place from = code_.at(e.from, e.offset), to = code_.at(e.to, e.offset);
    Stack& s = stack(left->id);
    if (!s.empty() && s.back().function == nowhere) replace(s, code_.function_around(from), known(from).home, false);
    if (!before && after) {
        push(s, to, e.from, true, e.context);
        return;
    }
    if (before && !after) {
        // Returns from a service to the context that runs next.
        while (!s.empty() && s.back().service == false &&
               std::any_of(s.begin(), s.end(), [](const Frame& f) { return f.service; }))
            pop(s);
        while (!s.empty() && s.back().service) pop(s);
        resume(stack(e.context.id), to, e.context);
        return;
    }
    const DpuCode::Change change = code_.change(from);
    if (change != DpuCode::Change::call) {
        // A return comes back to just after a call; the nearest counts.
        constexpr std::uint32_t longest_call = 8;
        const auto found = std::find_if(s.rbegin(), s.rend(), [&](const Frame& f) {
            return !f.service && f.call != 0 && e.to >= f.call && e.to - f.call <= longest_call;
        });
        if (found != s.rend()) {
            const auto keep = static_cast<std::size_t>(s.rend() - found) - 1;
            while (s.size() > keep) pop(s);
            if (s.empty()) begin(s, to, e.context);
            return;
        }
        // No call leads into the middle of a function.
        const bool inside = known(to).function.address != e.to;
        if ((change == DpuCode::Change::ret || inside) && unwind(s, to)) return;
        if (change == DpuCode::Change::ret) {
            ++returns_without_call_;
            while (!s.empty()) pop(s);
            begin(s, to, e.context);
            return;
        }
    }
    push(s, to, e.from, false, e.context);
}

void DpuCalls::finish() {
    for (auto& [id, s] : stacks_)
        while (!s.empty()) pop(s);
    for (const OpenService& service : open_services_) services_[service.entry].stays.take(service.counts);
    open_services_.clear();

    // Inclusive costs: at each function's outermost occurrence.
    std::vector<DpuCounts> below(paths_.size());
    for (std::size_t i = paths_.size(); i-- > 1;) {
        add(below[i], paths_[i].self);
        add(below[paths_[i].parent], below[i]);
    }
    for (std::size_t i = 1; i < paths_.size(); ++i) {
        bool outermost = true;
        for (std::size_t up = paths_[i].parent; up != 0 && outermost; up = paths_[up].parent)
            outermost = paths_[up].function != paths_[i].function;
        if (outermost) add(functions_[paths_[i].function].inclusive, below[i]);
    }
}

}  // namespace waymark::analysis
