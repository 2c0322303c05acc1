#include "waymark/exports/callgrind.h"
#include "waymark/core/saturating.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <numeric>
#include <utility>

#include "look_up.h"
#include "waymark/answers/account_effects.h"
#include "waymark/core/numbers.h"
#include "writer.h"

namespace waymark::exports {

namespace {

using answers::Answers;
using answers::Branch;
using answers::Costs;
using answers::Edge;
using answers::Index;
using answers::Instruction;

/// A metric's name as a single word, which the format requires. Instructions get the name that KCachegrind knows.
std::string event_name(const answers::Metric& metric) {
    if (metric.name == "instructions") return "Ir";
    std::string out;
    bool upper = true;
    for (const char c : metric.name) {
        const auto u = static_cast<unsigned char>(c);
        if (std::isalnum(u) == 0) {
            upper = true;
            continue;
        }
        out += static_cast<char>(upper ? std::toupper(u) : u);
        upper = false;
    }
    return out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0 ? "E" + out : out;
}

/// Costs of the calls from one function to another.
struct Passed {
    std::uint64_t calls{};
    Costs inclusive;
    std::size_t around = 0;  ///< number of calls of this pair on the path of the walk
};
using Pair = std::pair<Index, Index>;

/// Calls between functions, from the call tree. A call that is nested in another call of the same pair adds to its
/// count but not to its cost, which already contains it.
std::map<Pair, Passed> calls_of_tree(const Answers& a) {
    const std::size_t metrics = a.metrics.size();
    std::vector<Costs> sums(a.calls.size(), Costs(metrics));
    for (Index i = static_cast<Index>(a.calls.size()); i-- > 0;) {
        for (std::size_t m = 0; m < metrics; ++m) add_saturating(sums[i][m], cost_of(a.calls[i].self, m));
        if (const Index up = parent_of(a, i); up != answers::none)
            for (std::size_t m = 0; m < metrics; ++m) add_saturating(sums[up][m], sums[i][m]);
    }
    std::map<Pair, Passed> out;
    std::vector<Index> child(a.calls.size(), answers::none), sibling(a.calls.size(), answers::none);
    for (Index i = static_cast<Index>(a.calls.size()); i-- > 0;)
        if (const Index up = parent_of(a, i); up != answers::none) sibling[i] = std::exchange(child[up], i);
    // The tree is walked with its path, so that it is known which pairs enclose a call.
    std::vector<std::pair<Index, Passed*>> path;
    const auto enter = [&](Index i) {
        const Index up = parent_of(a, i);
        const Pair pair{up == answers::none ? answers::none : a.calls[up].function, a.calls[i].function};
        Passed* passed = nullptr;
        if (pair.first < a.functions.size() && pair.second < a.functions.size()) {
            passed = &out[pair];
            add_saturating(passed->calls, a.calls[i].calls);
            passed->inclusive.resize(metrics);
            for (std::size_t m = 0; passed->around == 0 && m < metrics; ++m)
                add_saturating(passed->inclusive[m], sums[i][m]);
            ++passed->around;
        }
        path.emplace_back(i, passed);
    };
    for (Index root = 0; root < a.calls.size(); ++root) {
        if (parent_of(a, root) != answers::none) continue;
        for (enter(root); !path.empty();) {
            Index& next = child[path.back().first];
            if (next != answers::none) {
                enter(std::exchange(next, sibling[next]));
            } else {
                if (path.back().second != nullptr) --path.back().second->around;
                path.pop_back();
            }
        }
    }
    return out;
}

bool is_call(const Edge& e) {
    // Among jumps, only tail calls have a cost.
    return e.kind == Branch::Kind::call || e.kind == Branch::Kind::indirect_call || !e.inclusive.empty();
}

class CallgrindWriter {
public:
    CallgrindWriter(const Answers& answers, std::size_t metric, ByteSink& sink)
        : answers_(answers), out_(sink), order_(answers.metrics.size()) {
        std::iota(order_.begin(), order_.end(), std::size_t{0});
        if (metric < order_.size())
            std::rotate(order_.begin(), order_.begin() + static_cast<long>(metric),
                        order_.begin() + static_cast<long>(metric) + 1);
        // Uses calls from instructions if their costs are known, since they show the address of each call; calls of the
        // tree do not.
        bool any = false, all = true;
        for (const Edge& e : answers_.edges)
            if (is_call(e) && e.times != 0) {
                any = true;
                all &= !e.inclusive.empty();
            }
        by_edge_ = !answers_.instructions.empty() && any && (all || answers_.calls.empty());
        without_cost_ = by_edge_ && !all;
        tree_ = calls_of_tree(answers_);
        // Code that no branch leads to: exceptions and their handlers, and code that was entered while nothing was
        // traced.
        if (by_edge_)
            for (const Edge& e : answers_.edges)
                if (is_call(e) && e.times != 0) tree_.erase({e.from_function, e.to_function});
        // Code that ran without a visible call, such as a task that a switch began. Readers take the line after
        // `calls=0` for the caller's own cost, so such a call cannot be written.
        without_call_ = std::erase_if(tree_, [](const auto& call) { return call.second.calls == 0; });
    }

    ExportReport write() {
        head();
        answers_.instructions.empty() ? by_function() : by_instruction();
        out_.print("\ntotals:");
        numbers([&](std::size_t m) { return totals_[m]; });
        ExportReport report;
        report.bytes = out_.finish();
        if (answers_.instructions.empty())
            report.notes.push_back(lacks(answers_, "cost of single instructions: costs are by function"));
        if (without_cost_)
            report.notes.push_back("the cost within calls is not known: they have counts, but no inclusive cost");
        else if (!by_edge_ && tree_.empty())
            report.notes.push_back(lacks(answers_, "who called whom: there are no inclusive costs"));
        else if (!by_edge_ && !answers_.instructions.empty())
            report.notes.push_back("calls are shown at the first line of the calling function");
        if (without_call_ != 0)
            report.notes.push_back(
                fmt::format("no call was seen for {} of caller and callee, such as where a task was switched to: the "
                            "inclusive cost of the caller lacks the cost of the callee",
                            counted(without_call_, "pair")));
        return report;
    }
    [[nodiscard]] bool empty() const {
        return std::all_of(totals_.begin(), totals_.end(), [](std::uint64_t n) { return n == 0; });
    }

private:
    [[nodiscard]] std::string word(const answers::Metric& metric) const {
        const std::string_view figures = answers::word_of(answers_.account, metric.exact);
        return figures == "exact" ? "" : fmt::format(" ({} {})", figures == "estimate" ? "an" : "a", figures);
    }
    void head() {
        totals_.assign(answers_.metrics.size(), 0);
        out_.print("# callgrind format\nversion: 1\ncreator: waymark {}\ncmd: {}\npositions: instr line\n",
                   one_line(answers_.version), one_line(answers_.capture));
        if (const std::string run = answers::account_sentence(answers_.account); !run.empty())
            out_.print("desc: Run: {}\n", one_line(run));
        std::string names;
        for (const std::size_t m : order_) {
            const answers::Metric& metric = answers_.metrics[m];
            out_.print("event: {} : {}\n", event_name(metric),
                       one_line(metric.name + word(metric) + (metric.note.empty() ? "" : " (" + metric.note + ")")));
            names += " " + event_name(metric);
        }
        out_.print("events:{}\n", names);
    }
    template <class Of>
    void numbers(Of&& of) {
        for (const std::size_t m : order_) out_.print(" {}", static_cast<std::uint64_t>(of(m)));
        out_.write("\n");
    }

    /// A name with its number: `(3) name` at first use, `(3)` later. Some readers ignore lines of jumps. So in such
    /// lines, a name that was not written yet is given in full, unless it looks like a number itself.
    std::string compressed(std::vector<bool>& named, std::size_t id, std::string_view name) {
        if (named.size() <= id) named.resize(id + 1);
        if (named[id]) return fmt::format("({})", id + 1);
        if (in_jump_ && !name.starts_with('(')) return one_line(name);
        named[id] = true;
        return fmt::format("({}) {}", id + 1, one_line(name));
    }
    // The last number of each kind means "not known".
    [[nodiscard]] std::size_t source_number(Index source) const {
        return std::min<std::size_t>(source, answers_.sources.size());
    }
    [[nodiscard]] std::size_t object_number(Index function) const {
        const answers::Function* f = function_at(answers_, function);
        return std::min<std::size_t>(f == nullptr ? answers::none : f->image, answers_.images.size());
    }
    std::string file(Index source) {
        const std::size_t id = source_number(source);
        return compressed(files_, id, id == answers_.sources.size() ? "???" : path_text(answers_, source));
    }
    std::string object(Index function) {
        const std::size_t id = object_number(function);
        if (id == answers_.images.size()) return compressed(objects_, id, "???");
        const answers::Image& image = answers_.images[id];
        return compressed(objects_, id, image.path.empty() ? image.name : image.path);
    }
    /// To readers of the format, functions of one name in one object are the same function: the second and later ones
    /// get their address appended.
    std::string name(Index function) {
        const std::size_t functions = answers_.functions.size();
        const std::size_t id = std::min<std::size_t>(function, functions);
        if (id == functions) return compressed(names_, id, "[unknown]");
        const answers::Function& f = answers_.functions[id];
        const auto [at, fresh] = taken_.try_emplace({f.image, f.name}, function);
        return compressed(names_, id,
                          fresh || at->second == function ? f.name : fmt::format("{} at {:#x}", f.name, f.address));
    }
    void begin_function(Index function) {
        const answers::Function* f = function_at(answers_, function);
        out_.print("\nob={}\nfl={}\n", object(function), file(f == nullptr ? answers::none : f->source));
        out_.print("fn={}\n", name(function));
        file_ = f == nullptr ? answers::none : f->source;
        function_ = function;
    }
    /// The lines that follow belong to another file than the function's: inlined code.
    void in_file(Index source) {
        if (source_number(source) == source_number(file_)) return;
        out_.print("fi={}\n", file(source));
        file_ = source;
    }
    void callee(Index function) {
        // Writes only the fields that differ from the place of the call. callgrind_annotate shortens the names of files
        // in its folder in only some of these lines, so it would treat a file that is named again as another file.
        const answers::Function* f = function_at(answers_, function);
        const Index source = f == nullptr ? answers::none : f->source;
        if (object_number(function) != object_number(function_)) out_.print("cob={}\n", object(function));
        if (source_number(source) != source_number(file_)) out_.print("cfi={}\n", file(source));
        out_.print("cfn={}\n", name(function));
    }

    void by_function() {
        const auto costs = answers::function_costs(answers_);
        for (Index i = 0; i < costs.size(); ++i) {
            const auto calls = tree_.lower_bound({i, 0});
            const bool any = std::any_of(costs[i].self.begin(), costs[i].self.end(), [](auto n) { return n != 0; });
            if (!any && (calls == tree_.end() || calls->first.first != i)) continue;
            begin_function(i);
            const answers::Function& f = answers_.functions[i];
            if (any) {
                out_.print("{:#x} {}", f.address, f.line);
                numbers([&](std::size_t m) {
                    add_saturating(totals_[m], cost_of(costs[i].self, m));
                    return cost_of(costs[i].self, m);
                });
            }
            calls_of(i);
        }
    }
    void calls_of(Index caller) {
        const answers::Function& f = answers_.functions[caller];
        for (auto call = tree_.lower_bound({caller, 0}); call != tree_.end() && call->first.first == caller; ++call) {
            const answers::Function& to = answers_.functions[call->first.second];
            in_file(f.source);
            callee(call->first.second);
            out_.print("calls={} {:#x} {}\n{:#x} {}", call->second.calls, to.address, to.line, f.address, f.line);
            numbers([&](std::size_t m) { return cost_of(call->second.inclusive, m); });
        }
    }

    void by_instruction() {
        // Sorted by function, then address: a function may consist of several pieces.
        std::vector<std::uint32_t> order(answers_.instructions.size());
        std::iota(order.begin(), order.end(), 0U);
        std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
            return answers_.instructions[a].function < answers_.instructions[b].function;
        });
        std::vector<bool> begun(answers_.functions.size());
        bool first = true;
        for (const std::uint32_t at : order) {
            const Instruction& i = answers_.instructions[at];
            bool any = i.times != 0;
            for (std::size_t m = 0; m < order_.size(); ++m) any |= cost_of(i, m) != 0;
            if (!any) continue;
            if (first ||
                std::min<std::size_t>(i.function, begun.size()) != std::min<std::size_t>(function_, begun.size())) {
                begin_function(i.function);
                first = false;
                if (i.function < begun.size()) {
                    begun[i.function] = true;
                    calls_of(i.function);
                }
            }
            in_file(i.source);
            out_.print("{:#x} {}", i.address, i.line);
            numbers([&](std::size_t m) {
                add_saturating(totals_[m], cost_of(i, m));
                return cost_of(i, m);
            });
            leaves(i);
        }
        // Tasks, interrupts and the like have costs but no instructions.
        if (answers_.calls.empty()) return;
        const auto costs = answers::function_costs(answers_);
        put_costs_without_place(costs, begun);
        for (Index f = 0; f < costs.size(); ++f) {
            const bool self = std::any_of(costs[f].self.begin(), costs[f].self.end(), [](auto n) { return n != 0; });
            const auto calls = tree_.lower_bound({f, 0});
            if (begun[f] || (!self && (calls == tree_.end() || calls->first.first != f))) continue;
            begin_function(f);
            out_.print("{:#x} {}", answers_.functions[f].address, answers_.functions[f].line);
            numbers([&](std::size_t m) {
                add_saturating(totals_[m], cost_of(costs[f].self, m));
                return cost_of(costs[f].self, m);
            });
            calls_of(f);
        }
    }

    /// Some costs of a function do not belong to any of its instructions: cycles spent waiting, and code that cannot be
    /// disassembled. They are assigned to the function, up to the total.
    void put_costs_without_place(const std::vector<answers::FunctionCosts>& costs, const std::vector<bool>& begun) {
        const std::size_t metrics = order_.size();
        std::vector<Costs> placed(costs.size(), Costs(metrics));
        for (const Instruction& i : answers_.instructions)
            for (std::size_t m = 0; i.function < placed.size() && m < metrics; ++m)
                add_saturating(placed[i.function][m], cost_of(i, m));
        Costs lacking(metrics);
        for (std::size_t m = 0; m < metrics; ++m) {
            std::uint64_t all = 0;
            for (std::size_t f = 0; f < costs.size(); ++f)
                if (begun[f]) add_saturating(all, cost_of(costs[f].self, m));
            lacking[m] = all - std::min(all, totals_[m]);
        }
        for (Index f = 0; f < costs.size(); ++f) {
            if (!begun[f]) continue;
            Costs more(metrics);
            bool any = false;
            for (std::size_t m = 0; m < metrics; ++m) {
                const std::uint64_t self = cost_of(costs[f].self, m);
                more[m] = std::min(self - std::min(self, placed[f][m]), lacking[m]);
                lacking[m] -= more[m];
                add_saturating(totals_[m], more[m]);
                any |= more[m] != 0;
            }
            if (!any) continue;
            begin_function(f);
            out_.print("{:#x} {}", answers_.functions[f].address, answers_.functions[f].line);
            numbers([&](std::size_t m) { return more[m]; });
        }
    }

    [[nodiscard]] std::uint32_t line_at(std::uint64_t address, Index function) const {
        const Instruction* i = instruction_at(answers_, address, function);
        return i == nullptr ? 0 : i->line;
    }
    /// Writes the calls and jumps of an instruction.
    void leaves(const Instruction& i) {
        const auto here = [&] { out_.print("{:#x} {}\n", i.address, i.line); };
        const Branch* branch = row_at(answers_, answers_.branches, i.address, i.function);
        if (branch != nullptr && branch->kind == Branch::Kind::conditional && branch->target != 0 &&
            branch->taken + branch->not_taken != 0) {
            elsewhere(branch->target, i.function);
            out_.print("jcnd={}/{} {:#x} {}\n", branch->taken, branch->taken + branch->not_taken, branch->target,
                       line_at(branch->target, i.function));
            here();
        }
        for (auto e = std::lower_bound(answers_.edges.begin(), answers_.edges.end(), i.address,
                                       [](const Edge&edge, std::uint64_t sought) { return edge.from < sought; });
             e != answers_.edges.end() && e->from == i.address; ++e) {
            if (e->times == 0 || e->from_function != i.function) continue;
            if (is_call(*e)) {
                if (!by_edge_) continue;
                callee(e->to_function);
                out_.print("calls={} {:#x} {}\n{:#x} {}", e->times, e->to, line_at(e->to, e->to_function), i.address,
                           i.line);
                numbers([&](std::size_t m) { return cost_of(e->inclusive, m); });
            } else if (e->kind == Branch::Kind::unconditional || e->kind == Branch::Kind::indirect) {
                elsewhere(e->to, e->to_function);
                out_.print("jump={} {:#x} {}\n", e->times, e->to, line_at(e->to, e->to_function));
                here();
            }
        }
    }
    /// If a jump leads into another function, writes that function's name.
    void elsewhere(std::uint64_t target, Index function) {
        const Instruction* to = instruction_at(answers_, target, function);
        if (to == nullptr || to->function == function_) return;
        in_jump_ = true;
        out_.print("jfi={}\n", file(to->source));
        out_.print("jfn={}\n", name(to->function));
        in_jump_ = false;
    }

    const Answers& answers_;
    Writer out_;
    std::vector<std::size_t> order_;  // column of each metric
    Costs totals_;
    bool by_edge_ = false, without_cost_ = false, in_jump_ = false;
    std::map<Pair, Passed> tree_;
    std::size_t without_call_ = 0;  // number of caller and callee pairs that tree_ omits
    std::vector<bool> files_, objects_, names_;
    std::map<std::pair<Index, std::string>, Index> taken_;
    Index file_ = answers::none, function_ = answers::none;
};

}  // namespace

Result<ExportReport> write_callgrind(const Answers& answers, const CallgrindOptions& options, ByteSink& sink) {
    WM_RETURN_IF_ERROR(check_metric(answers, options.metric));
    CallgrindWriter writer(answers, options.metric, sink);
    ExportReport report = writer.write();
    if (writer.empty()) return Error{Errc::not_found, lacks(answers, "cost of any function or instruction")};
    return report;
}

}  // namespace waymark::exports
