// Merging is commutative and associative, so nothing here may depend on the order of the inputs: rows are matched and
// sorted by their keys, numbers are added, and everything else is chosen by value.
#include <algorithm>
#include <array>
#include <compare>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "merge_rows.h"
#include "waymark/answers/only.h"
#include "waymark/answers/parts.h"

namespace waymark::answers {

namespace {

/// Keys of images and functions that do not depend on the load address.
using ImageKey = std::pair<std::string, std::string>;  // build ID, or else its name
ImageKey key_of(const Image& image) { return {image.build_id, image.build_id.empty() ? image.name : ""}; }

struct FunctionKey {
    Index image = none;
    std::uint64_t address{};  ///< in the image's file
    std::string name;
    bool synthetic{};
    friend auto operator<=>(const FunctionKey&, const FunctionKey&) = default;
};

/// Code without symbols is named after its file, which may have another name in another capture.
std::string lasting_name(const Answers& a, const Function& f) {
    if (f.image >= a.images.size() || !is_named_by_image(a, f)) return f.linkage_name.empty() ? f.name : f.linkage_name;
    const std::string& image = a.images[f.image].name;
    constexpr std::string_view no_symbol = "(no symbol) ";
    return f.name.substr(f.name.starts_with(image) ? image.size() : 0,
                         f.name.starts_with(no_symbol) ? no_symbol.size() : f.name.npos);
}

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
        merge_code(all_, maps_, out_);
        merge_rest();
        return std::move(out_);
    }

private:
    [[nodiscard]] IndexMap& map_of(std::size_t n, IndexedTable place) {
        return maps_[n].of[static_cast<std::size_t>(place)];
    }

    // ---- tables that others refer to

    void merge_metrics() {
        // The metric that tables are sorted by comes first.
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

    void merge_functions() {
        std::map<FunctionKey, Function> known;
        std::vector<std::vector<FunctionKey>> keys(all_.size());
        for (std::size_t n = 0; n < all_.size(); ++n)
            for (const Function& given : all_[n]->functions) {
                Function f = given;
                const std::uint64_t by = shift_of_image(*all_[n], maps_[n], out_, f.image);
                schema::fields(mover(n), f);
                if (is_named_by_image(*all_[n], given))
                    rename(f.name, all_[n]->images[given.image].name, out_.images[f.image].name);
                if (!f.synthetic) f.address += by;
                const std::uint64_t bias = f.image == none ? 0 : out_.images[f.image].load_bias;
                // Code that is in no program is identified by the address in its name.
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
    [[nodiscard]] RowMover& mover(std::size_t n) {
        mover_.emplace(maps_[n]);
        return *mover_;
    }

    void merge_inlined() {
        // Key of an inlined call: call site and callee.
        using Key = std::tuple<Index, std::string, std::string, Index, std::uint32_t, std::uint32_t>;
        MergedTree<Key, InlinedCall> tree;
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
                // A linkage name equal to the name adds no information.
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
        // It is unknown for one input, so it is unknown for the result.
        for (const Answers* a : all_)
            if (a->calls.empty()) return;
        using Key = std::pair<CallNode::Kind, Index>;
        MergedTree<Key, CallNode> tree;
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

        MergedRows<std::tuple<std::uint32_t, std::string, std::string>, ExceptionRow> exceptions;
        for (const Answers* a : all_)
            for (ExceptionRow e : a->exceptions) {
                // Without a handler that returned there is no minimum.
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
        MergedRows<std::tuple<std::size_t, std::string, std::string, std::string>, LevelRow> levels;
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
        merge_words(all_, out_);
    }

    /// Secure states come first.
    static std::size_t security_rank(std::string_view security) {
        constexpr std::array<std::string_view, 4> order{"Secure", "Non-secure", "Root", "Realm"};
        return static_cast<std::size_t>(std::find(order.begin(), order.end(), security) - order.begin());
    }

    std::span<const Answers* const> all_;
    std::vector<RowMover::Maps> maps_;
    std::optional<RowMover> mover_;
    Answers out_;
};

}  // namespace

Answers merged(std::span<const Answers* const> all) { return Merger(all).run(); }

void merge(Answers& into, const Answers& other) {
    const std::array<const Answers*, 2> both{&into, &other};
    into = merged(both);
}

}  // namespace waymark::answers
