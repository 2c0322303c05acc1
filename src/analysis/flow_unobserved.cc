#include "flow_fill.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace waymark::analysis {

using namespace answers;

namespace {

/// Finds code that may have run unseen where flow was lost (flow_answers.h).
class Unobserved {
public:
    Unobserved(FlowFunctions& functions, FlowInstructions& code)
        : functions_(functions),
          code_(code),
          a_(functions.answers()),
          streams_(functions.streams()),
          options_(functions.options()) {}

    void run() {
        if (options_.ran_before != nullptr) mark_before(*options_.ran_before);
        std::set<Loss> losses;
        bool everything = options_.partial;
        for (const FlowStream& s : streams_)
            for (const FlowCounts* counts : s.sink->counts()) {
                losses.insert(counts->losses().begin(), counts->losses().end());
                everything |= counts->losses_left_out != 0;
            }
        const auto mark = [&](const auto& numbers) {
            for (const std::uint32_t n : numbers) code_.list()[n]->unobserved = true;
        };
        // Trace that was never written is not damage: flow returns where the unit was programmed to trace.
        const bool damaged = std::any_of(streams_.begin(), streams_.end(),
                                         [](const FlowStream& s) { return is_damaged(s.sink->troubles()); });
        // A function that was called and left again during a loss leaves no sign. Whole functions are suspected only if
        // flow returned at another place.
        const bool suspected =
            everything || std::any_of(losses.begin(), losses.end(), [&](const Loss& loss) {
                return loss.how != Loss::From::unknown && loss.regained && !loss.inside && !is_elsewhere(loss);
            });
        // Such a handler may be any unseen code, except code of programs.
        if (std::any_of(losses.begin(), losses.end(), [&](const Loss& loss) { return is_elsewhere(loss); }))
            for (std::size_t n = 0; n < code_.list().size(); ++n)
                if (!options_.of_user_level || !options_.of_user_level(code_.keys()[n].first))
                    code_.list()[n]->unobserved = true;
        if (suspected)
            for (const CodeFunction& function : code_.never_entered()) mark(code_.of(function));
        std::map<Index, CodeFunction> by_index;
        for (const auto& [function, index] : functions_.indices()) by_index[index] = function;
        for (const Loss& loss : losses) {
            if (everything || work_ > most_work) break;
            if (loss.how == Loss::From::place && loss.regained && loss.from == loss.to && !damaged) continue;
            if (is_elsewhere(loss)) continue;
            const auto from = loss.how == Loss::From::unknown ? std::nullopt : code_.number(loss.from);
            const auto to = loss.regained && (damaged || !loss.inside) ? code_.number(loss.to) : std::nullopt;
            std::set<std::uint32_t> forward, back;
            if (from && loss.how == Loss::From::function) {
                const std::vector<std::uint32_t>& all = code_.of(code_.list()[*from]->function);
                forward.insert(all.begin(), all.end());
            } else if (from) {
                forward = reach(*from, to, false);
            }
            if (to) {
                back = reach(*to, {}, true);
                // The instruction itself was seen, unless a successor leads back to it.
                const auto next = code_.next(*to);
                const bool itself =
                    std::any_of(next.begin(), next.end(), [&](std::uint32_t n) { return back.contains(n); });
                if (!itself) back.erase(*to);
            }
            // If flow returns at another place, it may have passed through the callers of either function. If trace was
            // lost, it may also have passed through everything that those callers call.
            if (loss.how != Loss::From::unknown && loss.regained && (damaged || !loss.inside))
                for (const auto& end : {from, to}) {
                    if (!end) continue;
                    std::vector<CodeFunction> functions{code_.list()[*end]->function};
                    for (const Index caller : callers_of(functions_.index_of(functions.front())))
                        if (const auto found = by_index.find(caller); found != by_index.end())
                            functions.push_back(found->second);
                    if (damaged)
                        everything |= suspect(std::move(functions));
                    else
                        for (std::size_t i = 1; i < functions.size(); ++i) mark(code_.of(functions[i]));
                }
            const bool one = from && to && code_.list()[*from]->function == code_.list()[*to]->function;
            const bool leads =
                one && std::any_of(forward.begin(), forward.end(), [&](std::uint32_t n) { return back.contains(n); });
            if (leads) {
                std::vector<std::uint32_t> between;
                std::set_intersection(forward.begin(), forward.end(), back.begin(), back.end(),
                                      std::back_inserter(between));
                mark(between);
            } else {
                mark(forward);
                mark(back);
            }
        }
        if (everything || work_ > most_work)
            for (FlowInstructions::Code* code : code_.list()) code->unobserved = true;
    }

private:
    /// A handler was lost, and the trace does not show its address; or the files of programs are known, and the lost
    /// code is in none of them.
    [[nodiscard]] bool is_elsewhere(const Loss& loss) const {
        return loss.handler &&
               (loss.how == Loss::From::unknown || (options_.of_user_level && !code_.number(loss.from)));
    }
    void mark_before(const capture::RanBefore& ran) {
        for (std::size_t n = 0; n < code_.list().size(); ++n) {
            const Address at{code_.keys()[n].first};
            if (!ran.holds(at)) continue;
            FlowInstructions::Code& code = *code_.list()[n];
            const capture::RanBefore::Passed* const passed = ran.passed(at);
            code.before = true;
            code.passed_before = passed != nullptr;
            code.taken_before = passed == nullptr || passed->taken;
        }
    }

    static constexpr std::uint64_t most_work = 300'000'000;

    [[nodiscard]] static bool may_lead_anywhere(const FlowInstructions::Code& code) {
        const isa::Instruction& i = code.what;
        return i.waypoint == isa::Waypoint::indirect && !i.link && !i.function_return && !i.exception_return;
    }

    /// All instructions that can be reached from `from`, including itself, without passing `end`. Backwards: all
    /// instructions that lead to `from`.
    std::set<std::uint32_t> reach(std::uint32_t from, std::optional<std::uint32_t> end, bool backwards) {
        std::set<std::uint32_t> seen{from};
        std::vector<std::uint32_t> waiting{from};
        const std::vector<std::uint32_t>& all = code_.of(code_.list()[from]->function);
        std::vector<std::uint32_t> anywhere;
        if (backwards)
            for (const std::uint32_t n : all)
                if (may_lead_anywhere(*code_.list()[n])) anywhere.push_back(n);
        bool jumps = false;
        const auto add = [&](std::span<const std::uint32_t> numbers) {
            for (const std::uint32_t n : numbers)
                if (n != end && seen.insert(n).second) waiting.push_back(n);
        };
        if (backwards) add(anywhere);
        while (!waiting.empty()) {
            const std::uint32_t n = waiting.back();
            waiting.pop_back();
            const std::span<const std::uint32_t> ways = backwards ? code_.prev(n) : code_.next(n);
            add(ways);
            if (!backwards && !jumps && may_lead_anywhere(*code_.list()[n])) {
                jumps = true;
                add(all);
            }
            work_ += 1 + ways.size();
        }
        return seen;
    }

    /// Functions that were seen to call a function, directly or through others.
    const std::set<Index>& callers_of(Index function) {
        const auto [at, fresh] = callers_.try_emplace(function);
        if (fresh)
            for (const CallNode& node : a_.calls) {
                if (node.function != function) continue;
                for (Index up = node.parent; up != none; up = a_.calls[up].parent) {
                    at->second.insert(a_.calls[up].function);
                    ++work_;
                }
            }
        return at->second;
    }

    /// Marks these functions, and the functions they may branch to, as not observed. Returns true if they may branch to
    /// any address.
    bool suspect(std::vector<CodeFunction> waiting) {
        while (!waiting.empty()) {
            const CodeFunction function = waiting.back();
            waiting.pop_back();
            if (!suspected_.insert(function).second) continue;
            for (const std::uint32_t n : code_.of(function)) {
                FlowInstructions::Code& code = *code_.list()[n];
                code.unobserved = true;
                ++work_;
                const isa::Instruction& i = code.what;
                if (i.waypoint == isa::Waypoint::direct)
                    waiting.push_back(functions_.at(i.target.value));
                else if (i.waypoint == isa::Waypoint::indirect && !i.function_return && !i.exception_return)
                    return true;
            }
        }
        return false;
    }

    FlowFunctions& functions_;
    FlowInstructions& code_;
    Answers& a_;
    const std::vector<FlowStream>& streams_;
    const FlowAnswersOptions& options_;
    std::map<Index, std::set<Index>> callers_;
    std::set<CodeFunction> suspected_;
    std::uint64_t work_ = 0;
};

}  // namespace

void find_unobserved(FlowFunctions& functions, FlowInstructions& code) { Unobserved(functions, code).run(); }

}  // namespace waymark::analysis
