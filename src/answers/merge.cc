#include <algorithm>
#include <charconv>
#include <functional>
#include <map>
#include <tuple>
#include <utility>

#include "waymark/answers/costs.h"
#include "waymark/answers/only.h"
#include "waymark/answers/parts.h"

namespace waymark::answers {

namespace {

using FunctionKey = std::tuple<std::string, std::string, std::size_t>;  // image, name, which of several

/// What stays the same of a function when its program is loaded elsewhere.
std::vector<FunctionKey> names_of(const Answers& a) {
    std::vector<std::size_t> order(a.functions.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t x, std::size_t y) { return a.functions[x].address < a.functions[y].address; });
    std::map<std::pair<std::string, std::string>, std::size_t> met;
    std::vector<FunctionKey> out(order.size());
    for (const std::size_t i : order) {
        const Function& f = a.functions[i];
        std::string image;
        if (f.image < a.images.size())
            image = a.images[f.image].build_id.empty() ? a.images[f.image].name : a.images[f.image].build_id;
        // Code without symbols is called by its place in a file, whose name may be another one elsewhere.
        std::string name = f.linkage_name.empty() ? f.name : f.linkage_name;
        if (!image.empty() && is_named_by_image(a, f))
            name = f.name.substr(
                f.name.starts_with(a.images[f.image].name) ? a.images[f.image].name.size() : 0,
                f.name.starts_with("(no symbol) ") ? std::string_view("(no symbol) ").size() : f.name.npos);
        out[i] = {image, name, met[{image, name}]++};
    }
    return out;
}

class Merger {
public:
    Merger(Answers& into, const Answers& other) : a_(into), b_(other) {}

    void run() {
        merge_metrics();
        merge_places();
        merge_calls();
        merge_inlined();
        merge_code();
        merge_rest();
    }

private:
    /// Costs of the other as they stand here.
    [[nodiscard]] Costs costs(const Costs& from) const {
        if (from.empty()) return {};
        Costs out(a_.metrics.size());
        for (std::size_t i = 0; i < from.size() && i < metric_.size(); ++i) out[metric_[i]] = from[i];
        return out;
    }
    static Seen seen(Seen x, Seen y) {
        if (x == Seen::executed || y == Seen::executed) return Seen::executed;
        return x == Seen::not_observed || y == Seen::not_observed ? Seen::not_observed : Seen::not_executed;
    }
    [[nodiscard]] static Index mapped(const std::vector<Index>& map, Index index) {
        return index < map.size() ? map[index] : none;
    }

    void merge_metrics() {
        for (const Metric& m : b_.metrics) {
            const auto found = std::find_if(a_.metrics.begin(), a_.metrics.end(),
                                            [&](const Metric& x) { return x.name == m.name && x.unit == m.unit; });
            metric_.push_back(static_cast<std::size_t>(found - a_.metrics.begin()));
            if (found == a_.metrics.end()) a_.metrics.push_back(m);
        }
    }

    void merge_places() {
        for (const Image& image : b_.images) {
            const auto found = std::find_if(a_.images.begin(), a_.images.end(), [&](const Image& x) {
                return image.build_id.empty() && x.build_id.empty() ? x.name == image.name
                                                                    : x.build_id == image.build_id;
            });
            images_.push_back(static_cast<Index>(found - a_.images.begin()));
            if (found == a_.images.end()) {
                a_.images.push_back(image);
                continue;
            }
            if (!found->has_symbols || image.has_symbols.value_or(false)) found->has_symbols = image.has_symbols;
            found->whole |= image.whole;
        }
        std::map<std::string, Index> paths;
        for (std::size_t i = 0; i < a_.sources.size(); ++i)
            paths.try_emplace(a_.sources[i].path, static_cast<Index>(i));
        for (const SourceFile& file : b_.sources) {
            const auto [at, fresh] = paths.try_emplace(file.path, static_cast<Index>(a_.sources.size()));
            if (fresh) a_.sources.push_back(file);
            sources_.push_back(at->second);
        }
        std::map<FunctionKey, Index> known;
        const std::vector<FunctionKey> mine = names_of(a_), others = names_of(b_);
        for (std::size_t i = 0; i < mine.size(); ++i) known.try_emplace(mine[i], static_cast<Index>(i));
        for (std::size_t i = 0; i < others.size(); ++i) {
            const auto [at, fresh] = known.try_emplace(others[i], static_cast<Index>(a_.functions.size()));
            if (fresh) {
                Function f = b_.functions[i];
                f.image = mapped(images_, f.image);
                f.source = mapped(sources_, f.source);
                f.declared_source = mapped(sources_, f.declared_source);
                a_.functions.push_back(std::move(f));
            }
            functions_.push_back(at->second);
        }
    }

    void merge_calls() {
        if (a_.calls.empty() || b_.calls.empty()) {
            // Of one of them it is not known, so it is not of both.
            a_.calls.clear();
            return;
        }
        std::map<std::tuple<Index, CallNode::Kind, Index>, Index> known;
        for (std::size_t i = 0; i < a_.calls.size(); ++i)
            known.try_emplace({a_.calls[i].parent, a_.calls[i].kind, a_.calls[i].function}, static_cast<Index>(i));
        std::vector<Index> nodes;
        for (const CallNode& node : b_.calls) {
            CallNode copy = node;
            copy.parent = mapped(nodes, node.parent);
            copy.function = mapped(functions_, node.function);
            copy.self = costs(node.self);
            const auto [at, fresh] =
                known.try_emplace({copy.parent, copy.kind, copy.function}, static_cast<Index>(a_.calls.size()));
            nodes.push_back(at->second);
            if (fresh) {
                a_.calls.push_back(std::move(copy));
                continue;
            }
            CallNode& mine = a_.calls[at->second];
            mine.calls += copy.calls;
            add(mine.self, copy.self);
        }
    }

    /// An address of the other, as it is here: by its distance from the function's beginning.
    [[nodiscard]] std::uint64_t moved(std::uint64_t address, Index function) const {
        if (function >= b_.functions.size()) return address;
        return address - b_.functions[function].address + a_.functions[functions_[function]].address;
    }
    /// Adds rows of the other to those here, found by `key`; `sum` adds one to its equal. Addresses of several images
    /// may be the same, so the function belongs to the key.
    template <class Row, class Key, class Move, class Sum>
    void rows(std::vector<Row>& mine, const std::vector<Row>& others, Key&& key, Move&& move, Sum&& sum) {
        std::map<decltype(key(mine.front())), std::size_t> known;
        for (std::size_t i = 0; i < mine.size(); ++i) known.try_emplace(key(mine[i]), i);
        for (const Row& other : others) {
            Row row = other;
            move(row);
            const auto [at, fresh] = known.try_emplace(key(row), mine.size());
            if (fresh)
                mine.push_back(std::move(row));
            else
                sum(mine[at->second], row);
        }
        std::stable_sort(mine.begin(), mine.end(), [&](const Row& x, const Row& y) { return key(x) < key(y); });
    }
    template <class Row>
    void move_place(Row& row) const {
        row.function = mapped(functions_, row.function);
        row.source = mapped(sources_, row.source);
    }

    void merge_inlined() {
        InlinedTable table(a_);
        for (InlinedCall call : b_.inlined) {
            call.parent = mapped(inlined_, call.parent);
            move_place(call);
            inlined_.push_back(table.of(std::move(call)));
        }
    }

    void merge_code() {
        rows(
            a_.instructions, b_.instructions,
            [](const Instruction& i) { return std::tuple(i.address, i.isa, i.function); },
            [&](Instruction& i) {
                i.address = moved(i.address, i.function);
                i.costs = costs(i.costs);
                i.inlined = mapped(inlined_, i.inlined);
                move_place(i);
            },
            [&](Instruction& to, const Instruction& i) {
                if (to.inlined == none) to.inlined = i.inlined;
                to.times += i.times;
                to.seen = seen(to.seen, i.seen);
                add(to.costs, i.costs);
            });
        rows(
            a_.lines, b_.lines, [](const Line& l) { return std::pair(l.source, l.line); },
            [&](Line& l) {
                l.costs = costs(l.costs);
                move_place(l);
            },
            [&](Line& to, const Line& l) {
                to.times += l.times;
                to.seen = seen(to.seen, l.seen);
                add(to.costs, l.costs);
            });
        rows(
            a_.branches, b_.branches, [](const Branch& b) { return std::tuple(b.address, b.target, b.function); },
            [&](Branch& b) {
                const std::uint64_t before = b.address;
                b.address = moved(b.address, b.function);
                if (b.target != 0) b.target += b.address - before;
                move_place(b);
            },
            [&](Branch& to, const Branch& b) {
                to.taken += b.taken;
                to.not_taken += b.not_taken;
                to.seen_taken = seen(to.seen_taken, b.seen_taken);
                to.seen_not_taken = seen(to.seen_not_taken, b.seen_not_taken);
                if (b.mispredicted) to.mispredicted = to.mispredicted.value_or(0) + *b.mispredicted;
            });
        rows(
            a_.edges, b_.edges,
            [](const Edge& e) { return std::tuple(e.from, e.to, e.kind, e.from_function, e.to_function); },
            [&](Edge& e) {
                e.from = moved(e.from, e.from_function);
                e.to = moved(e.to, e.to_function);
                e.from_function = mapped(functions_, e.from_function);
                e.to_function = mapped(functions_, e.to_function);
                e.inclusive = costs(e.inclusive);
            },
            [&](Edge& to, const Edge& e) {
                to.times += e.times;
                add(to.inclusive, e.inclusive);
            });
        rows(
            a_.blocks, b_.blocks, [](const Block& b) { return std::tuple(b.address, b.bytes, b.function); },
            [&](Block& b) {
                b.address = moved(b.address, b.function);
                b.function = mapped(functions_, b.function);
            },
            [](Block& to, const Block& b) { to.times += b.times; });
        rows(
            a_.loops, b_.loops, [](const Loop& l) { return std::tuple(l.head, !l.irreducible, l.function); },
            [&](Loop& l) {
                l.head = moved(l.head, l.function);
                l.tail = moved(l.tail, l.function);
                if (l.outer) l.outer = moved(*l.outer, l.function);
                l.costs = costs(l.costs);
                move_place(l);
            },
            [&](Loop& to, const Loop& l) {
                to.tail = std::max(to.tail, l.tail);
                if (l.depth > to.depth) {
                    to.depth = l.depth;
                    to.outer = l.outer;
                }
                to.entries += l.entries;
                to.iterations += l.iterations;
                add(to.costs, l.costs);
            });
    }

    void merge_rest() {
        for (const ExceptionRow& e : b_.exceptions) {
            const auto found = std::find_if(a_.exceptions.begin(), a_.exceptions.end(), [&](const ExceptionRow& x) {
                return x.number == e.number && x.name == e.name && x.unit == e.unit;
            });
            if (found == a_.exceptions.end()) {
                a_.exceptions.push_back(e);
                continue;
            }
            if (e.returned != 0) {
                found->least = found->returned == 0 ? e.least : std::min(found->least, e.least);
                found->most = std::max(found->most, e.most);
            }
            found->times += e.times;
            found->nested += e.nested;
            found->sum += e.sum;
            found->returned += e.returned;
        }
        for (const LevelRow& l : b_.levels) {
            const auto found = std::find_if(a_.levels.begin(), a_.levels.end(), [&](const LevelRow& x) {
                return x.security == l.security && x.level == l.level && x.state == l.state;
            });
            if (found == a_.levels.end()) {
                a_.levels.push_back(l);
                a_.levels.back().costs = {};
                add(a_.levels.back().costs, l.costs);
                continue;
            }
            found->entered += l.entered;
            add(found->costs, l.costs);
        }
        a_.trace_bytes += b_.trace_bytes;
        a_.cut |= b_.cut;
        for (const Finding& f : b_.health) {
            const bool there = std::any_of(a_.health.begin(), a_.health.end(), [&](const Finding& x) {
                return x.severity == f.severity && x.what == f.what && x.offset == f.offset;
            });
            if (!there) a_.health.push_back(f);
        }
        std::stable_sort(a_.health.begin(), a_.health.end(),
                         [](const Finding& x, const Finding& y) { return x.severity > y.severity; });
        if (a_.health.size() > 1)
            std::erase_if(a_.health, [&](const Finding& f) {
                return f.severity == Finding::Severity::good && a_.health.front().severity != f.severity;
            });
        merge_trust();
        merge_figures();
        // Two captures have no time in common.
        if (!b_.timeline.slices.empty() || !b_.timeline.marks.empty() || !b_.timeline.series.empty()) {
            a_.timeline = {};
            std::erase_if(a_.trust, [](const Trust& t) { return t.view == "timeline"; });
        }
        a_.charts.insert(a_.charts.end(), b_.charts.begin(), b_.charts.end());
        a_.tables.insert(a_.tables.end(), b_.tables.begin(), b_.tables.end());
    }

    /// Exact is what is so in both; what is not in either is said.
    void merge_trust() {
        const auto clauses = [](const std::string& text) {
            std::vector<std::string> out;
            for (std::size_t at = 0; at < text.size();) {
                const std::size_t end = std::min(text.find("; ", at), text.size());
                out.push_back(text.substr(at, end - at));
                at = end + 2;
            }
            return out;
        };
        const auto join = [&](std::string& to, const std::string& other, bool both) {
            std::vector<std::string> mine = clauses(to), more = clauses(other);
            const auto in = [](const std::vector<std::string>& all) {
                return [&all](const std::string& c) { return std::find(all.begin(), all.end(), c) != all.end(); };
            };
            if (both) {
                std::erase_if(mine, std::not_fn(in(more)));
            } else {
                std::erase_if(more, in(mine));
                mine.insert(mine.end(), more.begin(), more.end());
            }
            to.clear();
            for (const std::string& c : mine) to += (to.empty() ? "" : "; ") + c;
        };
        for (const Trust& t : b_.trust) {
            const auto found =
                std::find_if(a_.trust.begin(), a_.trust.end(), [&](const Trust& x) { return x.view == t.view; });
            if (found == a_.trust.end()) {
                a_.trust.push_back(t);
                continue;
            }
            join(found->exact, t.exact, true);
            join(found->estimated, t.estimated, false);
            join(found->not_known, t.not_known, false);
        }
    }

    /// Whole numbers of the same name add up, but for those that count what is in the tables here.
    void merge_figures() {
        const auto number = [](const std::string& text, std::uint64_t& value) {
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            return error == std::errc{} && end == text.data() + text.size();
        };
        for (const Figure& figure : b_.summary) {
            const auto found = std::find_if(a_.summary.begin(), a_.summary.end(),
                                            [&](const Figure& x) { return x.name == figure.name; });
            std::uint64_t x = 0, y = 0;
            if (found == a_.summary.end())
                a_.summary.push_back(figure);
            else if (number(found->value, x) && number(figure.value, y))
                found->value = std::to_string(x + y);
        }
        for (Figure& figure : a_.summary)
            if (figure.name == "functions")
                figure.value = std::to_string(std::count_if(a_.functions.begin(), a_.functions.end(),
                                                            [](const Function& f) { return !f.synthetic; }));
    }

    Answers& a_;
    const Answers& b_;
    std::vector<std::size_t> metric_;
    std::vector<Index> images_, sources_, functions_, inlined_;
};

}  // namespace

void merge(Answers& into, const Answers& other) { Merger(into, other).run(); }

}  // namespace waymark::answers
