#include "flow_fill.h"

#include <algorithm>
#include <tuple>

#include "loops.h"

namespace waymark::analysis {

using namespace answers;

namespace {

/// Finds loops from the flow of control within functions.
class LoopFiller {
public:
    LoopFiller(FlowFunctions& functions, FlowInstructions& code)
        : functions_(functions), code_(code), a_(functions.answers()), streams_(functions.streams()) {}

    void run() {
        join_functions();
        gather_breaks();
        gather_flows();
        std::map<CodeFunction, std::vector<std::uint32_t>> groups;
        std::vector<std::uint32_t>* of = nullptr;
        for (std::uint32_t n = 0; n < code_.list().size(); ++n) {
            if (n == 0 || group_[n] != group_[n - 1]) of = &groups[group_[n]];
            of->push_back(n);
        }
        for (const auto& [group, all] : groups) put_loops(all);
        std::sort(a_.loops.begin(), a_.loops.end(), [](const Loop& x, const Loop& y) {
            return std::tuple(x.head, !x.irreducible, x.function) < std::tuple(y.head, !y.irreducible, y.function);
        });
    }

private:
    /// Treats functions as parts of one if a direct branch leads from one into the middle of another. Maps each to the
    /// first of them.
    void join_functions() {
        std::map<CodeFunction, CodeFunction> joined;
        const auto first = [&](CodeFunction f) {
            for (auto at = joined.find(f); at != joined.end(); at = joined.find(f)) f = at->second;
            return f;
        };
        for (std::uint32_t n = 0; n < code_.list().size(); ++n) {
            const FlowInstructions::Code& code = *code_.list()[n];
            if (code.what.waypoint != isa::Waypoint::direct || code.what.link || code.taken == 0) continue;
            const auto to = code_.number(code.what.target.value);
            if (!to) continue;
            const CodeFunction &from = code.function, &other = code_.list()[*to]->function;
            if (from == other || from.kind != CodeFunction::Kind::symbol || other.kind != CodeFunction::Kind::symbol ||
                other.value == code.what.target.value)
                continue;
            const CodeFunction x = first(from), y = first(other);
            if (x != y) joined.emplace(std::max(x, y), std::min(x, y));
        }
        group_.reserve(code_.list().size());
        for (const FlowInstructions::Code* code : code_.list())
            group_.push_back(joined.empty() ? code->function : first(code->function));
    }

    /// Number of the instruction before a place.
    [[nodiscard]] std::optional<std::uint32_t> number_before(std::uint64_t address) const {
        auto at =
            std::lower_bound(code_.keys().begin(), code_.keys().end(), FlowInstructions::CodeKey{address, isa::Isa{}});
        while (at != code_.keys().begin() && address - std::prev(at)->first <= 4) {
            --at;
            const auto n = static_cast<std::uint32_t>(at - code_.keys().begin());
            if (at->first + code_.list()[n]->what.bytes == address) return n;
        }
        return std::nullopt;
    }

    /// Collects the flows of control within functions, by `from`. A call leads to the instruction after it.
    void gather_flows() {
        std::vector<std::uint64_t> explained(code_.list().size());
        const auto add = [&](std::uint32_t from, std::optional<std::uint32_t> to, std::uint64_t times) {
            if (!to || times == 0 || group_[*to] != group_[from]) return;
            flows_.push_back({from, *to, times});
            explained[*to] += times;
        };
        std::vector<std::uint32_t> calls;
        for (std::uint32_t n = 0; n < code_.list().size(); ++n) {
            const FlowInstructions::Code& code = *code_.list()[n];
            const isa::Instruction& i = code.what;
            const bool branch = i.waypoint == isa::Waypoint::direct || i.waypoint == isa::Waypoint::indirect;
            if (branch && i.link)
                calls.push_back(n);
            else if (const std::uint64_t times = branch ? code.not_taken : code.times; times != 0 && !i.undefined)
                add(n, code_.number(code_.keys()[n].first + i.bytes), times);
            if (i.waypoint == isa::Waypoint::direct && !i.link && code.taken != 0)
                add(n, code_.number(i.target.value), code.taken);
        }
        for (const Edge& e : a_.edges) {
            const bool call = e.kind == Branch::Kind::call || e.kind == Branch::Kind::indirect_call;
            if (call)
                if (const auto to = code_.number(e.to)) called_.insert(*to);
            if (e.kind == Branch::Kind::indirect)
                if (const auto from = code_.number(e.from)) add(*from, code_.number(e.to), e.times);
        }
        // A longjmp, or an exception of C++, leads from a call to where its function goes on.
        for (const FlowStream& s : streams_)
            for (const FlowCounts* counts : s.sink->counts())
                for (std::size_t i = 0; i < counts->resumptions().size(); ++i) {
                    const Resumption& how = counts->resumptions()[i];
                    const auto from = how.interrupted ? code_.number(how.from) : number_before(how.from);
                    if (from) add(*from, code_.number(how.to), counts->resumption_times()[i]);
                }
        // Calls that did not return have no successor.
        for (const std::uint32_t n : calls) {
            if (code_.list()[n]->not_taken != 0)
                add(n, code_.number(code_.keys()[n].first + code_.list()[n]->what.bytes), code_.list()[n]->not_taken);
        }
        for (const std::uint32_t n : calls) {
            const auto next = code_.number(code_.keys()[n].first + code_.list()[n]->what.bytes);
            if (!next) continue;
            const auto lost = lost_at_.find(code_.keys()[*next].first);
            const std::uint64_t times = code_.list()[*next]->times + (lost == lost_at_.end() ? 0 : lost->second);
            const std::uint64_t taken =
                code_.list()[n]->times - std::min(code_.list()[n]->times, code_.list()[n]->not_taken);
            add(n, next, std::min(taken, times - std::min(times, explained[*next])));
        }
        std::sort(flows_.begin(), flows_.end(), [](const CodeFlow& x, const CodeFlow& y) {
            return std::pair(x.from, x.to) < std::pair(y.from, y.to);
        });
        unexplained_.resize(code_.list().size());
        for (std::uint32_t n = 0; n < code_.list().size(); ++n)
            unexplained_[n] = code_.list()[n]->times - std::min(code_.list()[n]->times, explained[n]);
    }
    /// Collects where flow was lost, and where it was regained. Ends of streams count as losses.
    void gather_breaks() {
        for (const FlowStream& s : streams_)
            for (const FlowCounts* counts : s.sink->counts()) {
                for (const std::uint64_t end : counts->ends) ++lost_at_[end];
                for (std::size_t i = 0; i < counts->losses().size(); ++i) {
                    const Loss& loss = counts->losses()[i];
                    if (loss.how == Loss::From::place) lost_at_[loss.from] += counts->loss_times()[i];
                    // After a call, flow is assumed to return, even if part of the callee was lost.
                    if (loss.regained && !loss.inside && loss.how != Loss::From::unknown)
                        back_[{loss.to, loss.from}] += counts->loss_times()[i];
                }
            }
    }

    /// Adds the loops of a group of functions, whose instructions are `all`.
    void put_loops(const std::vector<std::uint32_t>& all) {
        const auto own = [&](std::uint32_t n) {
            return static_cast<std::uint32_t>(std::lower_bound(all.begin(), all.end(), n) - all.begin());
        };
        LoopCode code{.instructions = static_cast<std::uint32_t>(all.size())};
        auto flow = std::lower_bound(flows_.begin(), flows_.end(), all.front(),
                                     [](const CodeFlow& f, std::uint32_t n) { return f.from < n; });
        bool back = false;
        for (std::uint32_t i = 0; i < all.size(); ++i) {
            const std::uint32_t n = all[i];
            if (unexplained_[n] != 0) {
                const bool begins = code_.list()[n]->function.kind != CodeFunction::Kind::section &&
                                    code_.list()[n]->function.value == code_.keys()[n].first;
                (begins || called_.contains(n) ? code.begins : code.resumes).push_back(i);
            }
            while (flow != flows_.end() && flow->from < n) ++flow;
            for (; flow != flows_.end() && flow->from == n; ++flow) {
                code.flows.push_back({i, own(flow->to), flow->times});
                back |= flow->to <= n;
            }
        }
        if (!back) return;
        const CodeLoops found = find_loops(code);
        std::vector<Work> work(found.loops.size());
        for (std::uint32_t i = 0; i < all.size(); ++i)
            if (const std::uint32_t loop = found.innermost[i]; loop != no_loop)
                work[loop] += {code_.list()[all[i]]->times, code_.list()[all[i]]->cycles};
        for (std::size_t i = 0; i < found.loops.size(); ++i) {
            const CodeLoop& loop = found.loops[i];
            if (loop.outer != no_loop) work[loop.outer] += work[i];
            const std::uint32_t head = all[loop.head];
            Loop out{code_.keys()[head].first, code_.keys()[all[loop.tail]].first};
            const Instruction& at = a_.instructions[head];
            out.function = at.function;
            out.source = at.source;
            out.line = at.line;
            out.iterations = at.times;
            out.entries = entries(found, static_cast<std::uint32_t>(i), all);
            // A loop that ran was entered, possibly before the trace began.
            if (out.iterations != 0) out.entries = std::max<std::uint64_t>(out.entries, 1);
            out.costs = functions_.costs(work[i]);
            out.depth = loop.depth;
            out.irreducible = loop.irreducible;
            if (loop.outer != no_loop) out.outer = code_.keys()[all[found.loops[loop.outer].head]].first;
            a_.loops.push_back(std::move(out));
        }
    }
    /// Counts arrivals of control at a loop's entry from outside of the loop. A loss of flow also counts as an arrival,
    /// although the entry did not run then; a regain counts as coming from where flow was lost.
    [[nodiscard]] std::uint64_t entries(const CodeLoops& found, std::uint32_t loop,
                                        const std::vector<std::uint32_t>& all) const {
        std::uint64_t came = 0, from_inside = found.loops[loop].inside;
        for (const std::uint32_t entry : found.loops[loop].entries) {
            const std::uint64_t address = code_.keys()[all[entry]].first;
            came += code_.list()[all[entry]]->times;
            if (const auto lost = lost_at_.find(address); lost != lost_at_.end()) came += lost->second;
            for (auto at = back_.lower_bound({address, 0}); at != back_.end() && at->first.first == address; ++at) {
                const auto from = code_.number(at->first.second);
                if (!from) continue;
                const auto place = std::lower_bound(all.begin(), all.end(), *from);
                if (place != all.end() && *place == *from &&
                    found.contains(loop, static_cast<std::uint32_t>(place - all.begin())))
                    from_inside += at->second;
            }
        }
        return came - std::min(came, from_inside);
    }

    FlowFunctions& functions_;
    FlowInstructions& code_;
    Answers& a_;
    const std::vector<FlowStream>& streams_;
    std::vector<CodeFlow> flows_;
    std::vector<CodeFunction> group_;                 // by instruction: the first function of its group
    std::set<std::uint32_t> called_;                  // instructions that a call led to
    std::vector<std::uint64_t> unexplained_;          // by instruction: how often it ran without a known predecessor
    std::map<std::uint64_t, std::uint64_t> lost_at_;  // by address: times
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t>
        back_;  // count of losses by address of the regain and address of the loss
};

}  // namespace

void fill_loops(FlowFunctions& functions, FlowInstructions& code) { LoopFiller(functions, code).run(); }

}  // namespace waymark::analysis
