// Merging is commutative and associative, so nothing here may depend on the order in which answers come: rows are found
// by what they are about, numbers add up, everything else is chosen by its value, and the order of rows follows from
// what they are about alone.
#include <algorithm>
#include <array>
#include <charconv>
#include <compare>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "waymark/answers/costs.h"
#include "waymark/answers/only.h"
#include "waymark/answers/parts.h"
#include "waymark/answers/schema.h"

namespace waymark::answers {

namespace {

/// `none` before all others.
Index rank(Index index) { return index + 1; }

/// What stays the same of an image, and of a function wherever its program is loaded.
using ImageKey = std::pair<std::string, std::string>;  // build ID, or else its name
ImageKey key_of(const Image& image) { return {image.build_id, image.build_id.empty() ? image.name : ""}; }

struct FunctionKey {
    Index image = none;
    std::uint64_t address{};  ///< in the image's file
    std::string name;
    bool synthetic{};
    friend auto operator<=>(const FunctionKey&, const FunctionKey&) = default;
};

/// Code without symbols is called by its place in a file, whose name may be another one elsewhere.
std::string lasting_name(const Answers& a, const Function& f) {
    if (f.image >= a.images.size() || !is_named_by_image(a, f)) return f.linkage_name.empty() ? f.name : f.linkage_name;
    const std::string& image = a.images[f.image].name;
    constexpr std::string_view no_symbol = "(no symbol) ";
    return f.name.substr(f.name.starts_with(image) ? image.size() : 0,
                         f.name.starts_with(no_symbol) ? no_symbol.size() : f.name.npos);
}

template <class T>
void take_most(T& to, const T& other) {
    if (to < other) to = other;
}
/// The least text that says something.
void take_text(std::string& to, const std::string& other) {
    if (to.empty() || (!other.empty() && other < to)) to = other;
}
void take_sum(std::uint64_t& to, std::uint64_t other) { to = saturating(to, other); }
Seen seen_in_either(Seen x, Seen y) {
    if (x == Seen::executed || y == Seen::executed) return Seen::executed;
    return x == Seen::not_observed || y == Seen::not_observed ? Seen::not_observed : Seen::not_executed;
}

/// Places of one table, from each of the answers to all of them.
using Map = std::vector<Index>;
Index mapped(const Map& map, Index index) { return index < map.size() ? map[index] : none; }

/// Puts the indices of a row, and its costs, as they are in all answers.
class Mover {
public:
    struct Maps {
        std::array<Map, place_count> of;
        std::vector<std::size_t> metric;  ///< from each metric of the answers
        std::size_t metrics = 0;          ///< of all
    };
    explicit Mover(const Maps& maps) : maps_(maps) {}

    void index(std::string_view, Index& value, IndexedTable place, std::string_view) {
        value = mapped(maps_.of[static_cast<std::size_t>(place)], value);
    }
    void list(std::string_view, Costs& costs, std::string_view) {
        if (costs.empty()) return;
        Costs out(maps_.metrics);
        for (std::size_t i = 0; i < costs.size() && i < maps_.metric.size(); ++i)
            take_sum(out[maps_.metric[i]], costs[i]);
        costs = std::move(out);
    }
    template <class T>
    void list(std::string_view, std::vector<T>&, std::string_view) {}
    void number(auto&&...) {}
    void address(auto&&...) {}
    void text(auto&&...) {}
    void real(auto&&...) {}
    void choice(auto&&...) {}
    void maybe(auto&&...) {}

private:
    const Maps& maps_;
};

/// Rows by what they are about.
template <class Key, class Row>
class Rows {
public:
    template <class Sum>
    void add(Key key, Row row, Sum&& sum) {
        const auto at = rows_.lower_bound(key);
        if (at != rows_.end() && at->first == key)
            sum(at->second, row);
        else
            rows_.emplace_hint(at, std::move(key), std::move(row));
    }
    [[nodiscard]] std::vector<Row> take() {
        std::vector<Row> out;
        out.reserve(rows_.size());
        for (auto& [key, row] : rows_) out.push_back(std::move(row));
        rows_.clear();
        return out;
    }

private:
    std::map<Key, Row> rows_;
};

/// Rows of a tree: each by the way to it.
template <class Key, class Row>
class Tree {
public:
    struct Node {
        Key key{};
        Row row;
        std::map<Key, std::size_t> children{};
    };
    static constexpr std::size_t top = 0;
    Tree() { nodes.push_back({}); }
    /// The place of a child, and whether it is new.
    std::pair<std::size_t, bool> below(std::size_t parent, const Key& key) {
        const auto [at, fresh] = nodes[parent].children.try_emplace(key, nodes.size());
        const std::size_t place = at->second;
        if (fresh) nodes.push_back({key, {}, {}});
        return {place, fresh};
    }
    /// `put(node, place of its parent in what was put)` for all but the top, parents first, each with what is below it
    /// before its next sibling. Returns the places.
    template <class Put>
    std::vector<Index> in_order(Put&& put) const {
        std::vector<Index> place(nodes.size(), none);
        std::vector<std::pair<std::size_t, Index>> waiting;
        const auto wait = [&](std::size_t node, Index at) {
            for (auto child = nodes[node].children.rbegin(); child != nodes[node].children.rend(); ++child)
                waiting.emplace_back(child->second, at);
        };
        wait(top, none);
        Index next = 0;
        while (!waiting.empty()) {
            const auto [node, parent] = waiting.back();
            waiting.pop_back();
            place[node] = next;
            put(nodes[node], parent);
            wait(node, next++);
        }
        return place;
    }
    std::vector<Node> nodes;
};

constexpr std::string_view differs = "differs";

class Merger {
public:
    explicit Merger(std::span<const Answers* const> all) : all_(all), maps_(all.size()) {}

    Answers run() {
        for (const Answers* a : all_) take_text(out_.unit, a->unit);
        merge_metrics();
        merge_images();
        merge_sources();
        merge_functions();
        merge_inlined();
        merge_calls();
        merge_code();
        merge_rest();
        return std::move(out_);
    }

private:
    [[nodiscard]] Map& map_of(std::size_t n, IndexedTable place) {
        return maps_[n].of[static_cast<std::size_t>(place)];
    }

    // ---- what others refer to

    void merge_metrics() {
        // What tables are sorted by comes first.
        const auto key = [](const Metric& m) {
            constexpr std::array<std::string_view, 3> first{"instructions", "cycles", "samples"};
            return std::tuple(std::find(first.begin(), first.end(), m.name) - first.begin(), m.name, m.unit);
        };
        using Key = decltype(key(Metric{}));
        std::map<Key, Metric> known;
        for (const Answers* a : all_)
            for (const Metric& m : a->metrics) {
                const auto [at, fresh] = known.try_emplace(key(m), m);
                at->second.exact &= m.exact;
                take_text(at->second.note, m.note);
            }
        std::map<Key, std::size_t> place;
        for (auto& [k, m] : known) {
            place[k] = out_.metrics.size();
            out_.metrics.push_back(m);
        }
        for (std::size_t n = 0; n < all_.size(); ++n) {
            maps_[n].metrics = out_.metrics.size();
            for (const Metric& m : all_[n]->metrics) maps_[n].metric.push_back(place.at(key(m)));
        }
    }

    void merge_images() {
        std::map<ImageKey, Image> known;
        for (const Answers* a : all_)
            for (const Image& image : a->images) {
                const auto [at, fresh] = known.try_emplace(key_of(image), image);
                Image& to = at->second;
                take_text(to.name, image.name);
                take_text(to.path, image.path);
                take_most(to.has_symbols, image.has_symbols);
                to.whole |= image.whole;
                to.load_bias = std::min(to.load_bias, image.load_bias);
                take_most(to.segments, image.segments);
            }
        std::map<ImageKey, Index> place;
        for (auto& [key, image] : known) {
            place[key] = static_cast<Index>(out_.images.size());
            out_.images.push_back(image);
        }
        for (std::size_t n = 0; n < all_.size(); ++n)
            for (const Image& image : all_[n]->images)
                map_of(n, IndexedTable::images).push_back(place.at(key_of(image)));
    }

    void merge_sources() {
        std::map<std::string, SourceFile> known;
        for (const Answers* a : all_)
            for (const SourceFile& file : a->sources)
                take_most(known.try_emplace(file.path, file).first->second.lines, file.lines);
        std::map<std::string_view, Index> place;
        for (auto& [path, file] : known) {
            place[path] = static_cast<Index>(out_.sources.size());
            out_.sources.push_back(file);
        }
        for (std::size_t n = 0; n < all_.size(); ++n)
            for (const SourceFile& file : all_[n]->sources)
                map_of(n, IndexedTable::sources).push_back(place.at(file.path));
    }

    /// How far an image of one of the answers was loaded from where addresses are in all of them.
    [[nodiscard]] std::uint64_t shift(std::size_t n, Index image) const {
        const std::vector<Image>& images = all_[n]->images;
        if (image >= images.size()) return 0;
        return out_.images[maps_[n].of[static_cast<std::size_t>(IndexedTable::images)][image]].load_bias -
               images[image].load_bias;
    }
    [[nodiscard]] std::uint64_t shift_of_function(std::size_t n, Index function) const {
        const std::vector<Function>& functions = all_[n]->functions;
        return function < functions.size() ? shift(n, functions[function].image) : 0;
    }

    void merge_functions() {
        std::map<FunctionKey, Function> known;
        std::vector<std::vector<FunctionKey>> keys(all_.size());
        for (std::size_t n = 0; n < all_.size(); ++n)
            for (const Function& given : all_[n]->functions) {
                Function f = given;
                const std::uint64_t by = shift(n, f.image);
                schema::fields(mover(n), f);
                if (is_named_by_image(*all_[n], given))
                    rename(f.name, all_[n]->images[given.image].name, out_.images[f.image].name);
                if (!f.synthetic) f.address += by;
                const std::uint64_t bias = f.image == none ? 0 : out_.images[f.image].load_bias;
                // Code of no program has its address as its name has it.
                FunctionKey key{f.image, f.synthetic ? 0 : f.address - bias, lasting_name(*all_[n], given),
                                f.synthetic};
                keys[n].push_back(key);
                const auto [at, fresh] = known.try_emplace(std::move(key), f);
                if (fresh) continue;
                Function& to = at->second;
                take_text(to.name, f.name);
                take_text(to.linkage_name, f.linkage_name);
                take_most(to.address, f.address);
                take_most(to.bytes, f.bytes);
                take_place(to.source, to.line, f.source, f.line);
                take_text(to.declared_name, f.declared_name);
                take_place(to.declared_source, to.declared_line, f.declared_source, f.declared_line);
                to.by_llvm |= f.by_llvm;
            }
        std::map<FunctionKey, Index> place;
        for (auto& [key, f] : known) {
            place[key] = static_cast<Index>(out_.functions.size());
            out_.functions.push_back(f);
        }
        for (std::size_t n = 0; n < all_.size(); ++n)
            for (const FunctionKey& key : keys[n]) map_of(n, IndexedTable::functions).push_back(place.at(key));
    }
    static void rename(std::string& name, const std::string& from, const std::string& to) {
        if (const std::size_t at = name.find(from); at != name.npos) name.replace(at, from.size(), to);
    }
    static void take_place(Index& source, std::uint32_t& line, Index other_source, std::uint32_t other_line) {
        if (std::tuple(line, rank(source)) < std::tuple(other_line, rank(other_source)))
            std::tie(source, line) = std::tie(other_source, other_line);
    }
    [[nodiscard]] Mover& mover(std::size_t n) {
        mover_.emplace(maps_[n]);
        return *mover_;
    }

    void merge_inlined() {
        // A call as it is made: where, and of what.
        using Key = std::tuple<Index, std::string, std::string, Index, std::uint32_t, std::uint32_t>;
        Tree<Key, InlinedCall> tree;
        std::vector<std::vector<std::size_t>> nodes(all_.size());
        for (std::size_t n = 0; n < all_.size(); ++n)
            for (std::size_t i = 0; i < all_[n]->inlined.size(); ++i) {
                InlinedCall call = all_[n]->inlined[i];
                const Index parent = call.parent;
                call.parent = none;
                schema::fields(mover(n), call);
                const auto [node, fresh] =
                    tree.below(parent < i ? nodes[n][parent] : tree.top,
                               {call.function, call.linkage_name.empty() ? call.name : call.linkage_name, call.name,
                                rank(call.source), call.line, call.discriminator});
                nodes[n].push_back(node);
                InlinedCall& to = tree.nodes[node].row;
                if (fresh)
                    to = std::move(call);
                else
                    take_most(to.declared_line, call.declared_line);
                // Whether a name is its linkage name as well is the same thing said twice.
                if (to.linkage_name == to.name) to.linkage_name.clear();
            }
        const std::vector<Index> place = tree.in_order([&](const auto& node, Index parent) {
            out_.inlined.push_back(node.row);
            out_.inlined.back().parent = parent;
        });
        for (std::size_t n = 0; n < all_.size(); ++n)
            for (const std::size_t node : nodes[n]) map_of(n, IndexedTable::inlined).push_back(place[node]);
    }

    void merge_calls() {
        // Of one of them it is not known, so it is not of all.
        for (const Answers* a : all_)
            if (a->calls.empty()) return;
        using Key = std::pair<CallNode::Kind, Index>;
        Tree<Key, CallNode> tree;
        for (std::size_t n = 0; n < all_.size(); ++n) {
            std::vector<std::size_t> nodes;
            for (std::size_t i = 0; i < all_[n]->calls.size(); ++i) {
                CallNode node = all_[n]->calls[i];
                const Index parent = node.parent;
                if (i == 0) node.function = none;
                if (i == 0) node.kind = CallNode::Kind::root;
                node.parent = none;
                schema::fields(mover(n), node);
                const std::size_t above = i == 0 ? tree.top : nodes[parent < i ? parent : 0];
                const Key key = i == 0 ? Key{} : Key{node.kind, node.function};
                const auto [at, fresh] = tree.below(above, key);
                nodes.push_back(at);
                CallNode& to = tree.nodes[at].row;
                if (fresh) {
                    to = std::move(node);
                    continue;
                }
                take_sum(to.calls, node.calls);
                add(to.self, node.self);
            }
        }
        tree.in_order([&](const auto& node, Index parent) {
            out_.calls.push_back(node.row);
            out_.calls.back().parent = parent;
        });
    }

    // ---- code

    void merge_code() {
        Rows<std::tuple<std::uint64_t, isa::Isa, Index>, Instruction> instructions;
        Rows<std::pair<Index, std::uint32_t>, Line> lines;
        Rows<std::tuple<std::uint64_t, std::uint64_t, Index>, Branch> branches;
        Rows<std::tuple<std::uint64_t, std::uint64_t, Branch::Kind, Index, Index>, Edge> edges;
        Rows<std::tuple<std::uint64_t, std::uint32_t, Index>, Block> blocks;
        Rows<std::tuple<std::uint64_t, bool, Index>, Loop> loops;
        Rows<std::tuple<Index, std::uint64_t, std::uint64_t, isa::Isa>, ImageRange> ranges;
        Rows<std::tuple<Index, std::uint64_t, Index, std::uint64_t, Branch::Kind>, ImageBranch> jumps;
        for (std::size_t n = 0; n < all_.size(); ++n) {
            // `by`: how far the function at hand was loaded from where all answers have it.
            const auto each = [&](const auto& rows, auto function, auto&& use) {
                for (const auto& row : rows) {
                    auto moved = row;
                    const std::uint64_t by = shift_of_function(n, row.*function);
                    schema::fields(mover(n), moved);
                    use(std::move(moved), by);
                }
            };
            each(all_[n]->instructions, &Instruction::function, [&](Instruction i, std::uint64_t by) {
                i.address += by;
                // Without costs its executions are what it cost in the first metric, which may now be another one.
                if (i.costs.empty() && !maps_[n].metric.empty() && maps_[n].metric.front() != 0) {
                    i.costs.resize(out_.metrics.size());
                    i.costs[maps_[n].metric.front()] = i.times;
                }
                instructions.add({i.address, i.isa, i.function}, i, [](Instruction& to, const Instruction& x) {
                    take_most(to.bytes, x.bytes);
                    to.seen = seen_in_either(to.seen, x.seen);
                    const auto line = [](const Instruction& y) {
                        return std::tuple(y.line, rank(y.source), rank(y.inlined), y.discriminator);
                    };
                    if (line(to) < line(x))
                        std::tie(to.line, to.source, to.inlined, to.discriminator) =
                            std::tie(x.line, x.source, x.inlined, x.discriminator);
                    add_costs(to, x);
                    take_sum(to.times, x.times);
                    take_text(to.text, x.text);
                });
            });
            each(all_[n]->lines, &Line::function, [&](Line l, std::uint64_t) {
                lines.add({l.source, l.line}, l, [](Line& to, const Line& x) {
                    to.function = std::min(to.function, x.function);
                    to.seen = seen_in_either(to.seen, x.seen);
                    take_sum(to.times, x.times);
                    add(to.costs, x.costs);
                });
            });
            each(all_[n]->branches, &Branch::function, [&](Branch b, std::uint64_t by) {
                b.address += by;
                if (b.target != 0) b.target += by;
                branches.add({b.address, b.target, b.function}, b, [](Branch& to, const Branch& x) {
                    take_most(to.kind, x.kind);
                    take_place(to.source, to.line, x.source, x.line);
                    take_sum(to.taken, x.taken);
                    take_sum(to.not_taken, x.not_taken);
                    to.seen_taken = seen_in_either(to.seen_taken, x.seen_taken);
                    to.seen_not_taken = seen_in_either(to.seen_not_taken, x.seen_not_taken);
                    if (x.mispredicted) to.mispredicted = saturating(to.mispredicted.value_or(0), *x.mispredicted);
                });
            });
            for (const Edge& edge : all_[n]->edges) {
                Edge e = edge;
                e.from += shift_of_function(n, edge.from_function);
                e.to += shift_of_function(n, edge.to_function);
                schema::fields(mover(n), e);
                edges.add({e.from, e.to, e.kind, e.from_function, e.to_function}, e, [](Edge& to, const Edge& x) {
                    take_sum(to.times, x.times);
                    add(to.inclusive, x.inclusive);
                });
            }
            each(all_[n]->blocks, &Block::function, [&](Block b, std::uint64_t by) {
                b.address += by;
                blocks.add({b.address, b.bytes, b.function}, b, [](Block& to, const Block& x) {
                    take_most(to.instructions, x.instructions);
                    take_sum(to.times, x.times);
                });
            });
            each(all_[n]->loops, &Loop::function, [&](Loop l, std::uint64_t by) {
                l.head += by;
                l.tail += by;
                if (l.outer) *l.outer += by;
                loops.add({l.head, !l.irreducible, l.function}, l, [](Loop& to, const Loop& x) {
                    take_most(to.tail, x.tail);
                    take_place(to.source, to.line, x.source, x.line);
                    if (std::tie(to.depth, to.outer) < std::tie(x.depth, x.outer))
                        std::tie(to.depth, to.outer) = std::tie(x.depth, x.outer);
                    take_sum(to.entries, x.entries);
                    take_sum(to.iterations, x.iterations);
                    add(to.costs, x.costs);
                });
            });
            for (ImageRange r : all_[n]->ranges) {
                schema::fields(mover(n), r);
                ranges.add({r.image, r.first, r.last, r.isa}, r, [](ImageRange& to, const ImageRange& x) {
                    take_most(to.instructions, x.instructions);
                    take_sum(to.times, x.times);
                    take_sum(to.taken, x.taken);
                    take_sum(to.not_taken, x.not_taken);
                });
            }
            for (ImageBranch b : all_[n]->jumps) {
                schema::fields(mover(n), b);
                jumps.add({b.image, b.from, b.to_image, b.to, b.kind}, b,
                          [](ImageBranch& to, const ImageBranch& x) { take_sum(to.times, x.times); });
            }
        }
        out_.instructions = instructions.take();
        out_.lines = lines.take();
        out_.branches = branches.take();
        out_.edges = edges.take();
        out_.blocks = blocks.take();
        out_.loops = loops.take();
        out_.ranges = ranges.take();
        out_.jumps = jumps.take();
    }
    /// An instruction without costs of its own cost the first metric its executions.
    static void add_costs(Instruction& to, const Instruction& x) {
        if (to.costs.empty() && x.costs.empty()) return;
        if (to.costs.empty()) to.costs = {to.times};
        add(to.costs, x.costs.empty() ? Costs{x.times} : x.costs);
    }

    // ---- the rest

    void merge_rest() {
        std::map<std::pair<std::string, std::uint64_t>, MergedPart> parts;
        std::uint64_t captures = 0;
        for (const Answers* a : all_) {
            for (const MergedPart& part :
                 a->parts.empty() ? std::vector<MergedPart>{{a->capture, 1, a->trace_bytes}} : a->parts) {
                const auto [at, fresh] = parts.try_emplace({part.capture, part.trace_bytes}, part);
                if (!fresh) take_sum(at->second.times, part.times);
                take_sum(captures, part.times);
            }
            take_sum(out_.trace_bytes, a->trace_bytes);
            out_.cut |= a->cut;
            take_most(out_.version, a->version);
        }
        for (auto& [key, part] : parts) out_.parts.push_back(part);
        out_.capture = out_.parts.size() == 1 ? out_.parts.front().capture : std::to_string(captures) + " captures";

        Rows<std::tuple<std::uint32_t, std::string, std::string>, ExceptionRow> exceptions;
        for (const Answers* a : all_)
            for (ExceptionRow e : a->exceptions) {
                // Of none that returned nothing is the least.
                if (e.returned == 0) e.least = e.most = 0;
                exceptions.add({e.number, e.name, e.unit}, e, [](ExceptionRow& to, const ExceptionRow& x) {
                    if (x.returned != 0) {
                        to.least = to.returned == 0 ? x.least : std::min(to.least, x.least);
                        to.most = std::max(to.most, x.most);
                    }
                    take_sum(to.times, x.times);
                    take_sum(to.nested, x.nested);
                    take_sum(to.sum, x.sum);
                    take_sum(to.returned, x.returned);
                });
            }
        out_.exceptions = exceptions.take();
        Rows<std::tuple<std::size_t, std::string, std::string, std::string>, LevelRow> levels;
        for (std::size_t n = 0; n < all_.size(); ++n)
            for (LevelRow l : all_[n]->levels) {
                schema::fields(mover(n), l);
                levels.add({security_rank(l.security), l.security, l.level, l.state}, l,
                           [](LevelRow& to, const LevelRow& x) {
                               take_sum(to.entered, x.entered);
                               add(to.costs, x.costs);
                           });
            }
        out_.levels = levels.take();
        merge_health();
        merge_trust();
        merge_figures();
    }

    /// Secure states come first.
    static std::size_t security_rank(std::string_view security) {
        constexpr std::array<std::string_view, 4> order{"Secure", "Non-secure", "Root", "Realm"};
        return static_cast<std::size_t>(std::find(order.begin(), order.end(), security) - order.begin());
    }

    void merge_health() {
        const auto key = [](const Finding& f) {
            return std::tuple(-static_cast<int>(f.severity), f.what, f.todo, f.offset, f.of_names, f.unused_file);
        };
        Rows<decltype(key(Finding{})), Finding> health;
        const auto note = [&](std::string what) {
            Finding f{Finding::Severity::note, std::move(what)};
            health.add(key(f), f, [](auto&&...) {});
        };
        for (const Answers* a : all_) {
            for (const Finding& f : a->health) health.add(key(f), f, [](auto&&...) {});
            if (has_timeline(*a)) note("There is no timeline: captures have no time in common.");
            if (!a->charts.empty() || !a->tables.empty())
                note("Charts and tables that only one unit has are left out: they do not add up.");
            if (a->calls.empty() != all_.front()->calls.empty())
                note("Who called whom is left out: not all captures have it.");
        }
        out_.health = health.take();
        // All is well with some is no answer to what is wrong with others.
        if (std::any_of(out_.health.begin(), out_.health.end(),
                        [](const Finding& f) { return f.severity >= Finding::Severity::warning; }))
            std::erase_if(out_.health, [](const Finding& f) { return f.severity == Finding::Severity::good; });
    }
    static bool has_timeline(const Answers& a) {
        return !a.timeline.slices.empty() || !a.timeline.marks.empty() || !a.timeline.series.empty();
    }

    /// Exact is what is so in all that say something of it; what is not in one of them is said.
    void merge_trust() {
        using Clauses = std::set<std::string>;
        const auto clauses = [](const std::string& text) {
            Clauses out;
            for (std::size_t at = 0; at < text.size();) {
                const std::size_t end = std::min(text.find("; ", at), text.size());
                out.insert(text.substr(at, end - at));
                at = end + 2;
            }
            return out;
        };
        const auto joined = [](const Clauses& all) {
            std::string out;
            for (const std::string& c : all) out += (out.empty() ? "" : "; ") + c;
            return out;
        };
        struct Sum {
            Clauses exact, estimated, not_known;
        };
        std::map<std::string, Sum> views;
        for (const Answers* a : all_)
            for (const Trust& t : a->trust) {
                // Captures have no time in common.
                if (t.view == "timeline") continue;
                Clauses exact = clauses(t.exact);
                const auto [at, fresh] = views.try_emplace(t.view, Sum{exact, {}, {}});
                if (!fresh) std::erase_if(at->second.exact, [&](const std::string& c) { return !exact.contains(c); });
                at->second.estimated.merge(clauses(t.estimated));
                at->second.not_known.merge(clauses(t.not_known));
            }
        for (const auto& [view, sum] : views)
            out_.trust.push_back({view, joined(sum.exact), joined(sum.estimated), joined(sum.not_known)});
    }

    /// Whole numbers of the same name add up, but for those that count what is in the tables here.
    void merge_figures() {
        const auto number = [](const std::string& text, std::uint64_t& value) {
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            return error == std::errc{} && end == text.data() + text.size();
        };
        const auto key = [](const Figure& f) {
            constexpr std::array<std::string_view, 7> first{"sources", "instructions", "ranges",   "cycles",
                                                            "calls",   "exceptions",   "functions"};
            return std::pair(std::find(first.begin(), first.end(), f.name) - first.begin(), f.name);
        };
        Rows<decltype(key(Figure{})), Figure> figures;
        for (const Answers* a : all_)
            for (const Figure& f : a->summary)
                figures.add(key(f), f, [&](Figure& to, const Figure& x) {
                    std::uint64_t one = 0, other = 0;
                    if (number(to.value, one) && number(x.value, other))
                        to.value = std::to_string(saturating(one, other));
                    else if (to.value != x.value)
                        to.value = differs;
                    take_text(to.note, x.note);
                });
        out_.summary = figures.take();
        for (Figure& figure : out_.summary)
            if (figure.name == "functions")
                figure.value = std::to_string(std::count_if(out_.functions.begin(), out_.functions.end(),
                                                            [](const Function& f) { return !f.synthetic; }));
    }

    std::span<const Answers* const> all_;
    std::vector<Mover::Maps> maps_;
    std::optional<Mover> mover_;
    Answers out_;
};

}  // namespace

Answers merged(std::span<const Answers* const> all) { return Merger(all).run(); }

void merge(Answers& into, const Answers& other) {
    const std::array<const Answers*, 2> both{&into, &other};
    into = merged(both);
}

}  // namespace waymark::answers
