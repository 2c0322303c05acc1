#include "merge_names.h"

#include <array>
#include <numeric>
#include <string_view>
#include <tuple>

#include "merge_words.h"
#include "waymark/answers/metric_sets.h"
#include "waymark/answers/only.h"
#include "waymark/answers/parts.h"

namespace waymark::answers {

namespace {

/// The metric by which tables are sorted comes first.
auto metric_key(const Metric& m) {
    constexpr std::array<std::string_view, 3> first{"instructions", "cycles", "samples"};
    return std::tuple(std::find(first.begin(), first.end(), m.name) - first.begin(), std::string_view(m.name),
                      std::string_view(m.unit), std::string_view(m.set));
}

/// Code without symbols is named after its file, which may have another name in another capture.
std::string lasting_name(const Answers& a, const Function& f, bool by_image) {
    if (!by_image) return f.linkage_name.empty() ? f.name : f.linkage_name;
    const std::string& image = a.images[f.image].name;
    constexpr std::string_view no_symbol = "(no symbol) ";
    return f.name.substr(f.name.starts_with(image) ? image.size() : 0,
                         f.name.starts_with(no_symbol) ? no_symbol.size() : f.name.npos);
}

void rename(std::string& name, const std::string& from, const std::string& to) {
    if (const std::size_t at = name.find(from); at != name.npos) name.replace(at, from.size(), to);
}

/// Sorts rows into `out`. Returns the new index of each.
template <class Row, class Before, class Put>
IndexMap sorted_into(const std::vector<Row>& rows, Before&& before, Put&& put) {
    std::vector<Index> order(rows.size());
    std::iota(order.begin(), order.end(), Index{0});
    std::sort(order.begin(), order.end(), before);
    for (const Index at : order) put(at);
    return places_in(order);
}

const std::string& callee_of(const InlinedCall& call) {
    return call.linkage_name.empty() ? call.name : call.linkage_name;
}

}  // namespace

RowMover::Maps MergedNames::add(Answers& a) {
    RowMover::Maps maps;
    add_metrics(a, maps);
    add_images(a, maps);
    add_sources(a, maps);
    add_functions(a, maps);
    add_inlined(a, maps);
    return maps;
}

void MergedNames::add_metrics(const Answers& a, RowMover::Maps& maps) {
    std::vector<Metric> metrics = a.metrics;
    // Captures that count the same have one column for each metric.
    if (std::all_of(metrics.begin(), metrics.end(), [](const Metric& m) { return m.set.empty(); })) {
        const std::string set = metric_set(metrics);
        const std::uint64_t captures = captures_in(a);
        for (Metric& m : metrics) {
            m.set = set;
            m.captures = captures;
        }
    }
    for (const Metric& m : metrics) {
        auto at = std::find_if(metrics_.begin(), metrics_.end(),
                               [&](const Metric& known) { return metric_key(known) == metric_key(m); });
        if (at == metrics_.end()) {
            at = metrics_.insert(at, m);
        } else {
            at->exact &= m.exact;
            take_sum(at->stretches, m.stretches);
            // A note that differs between captures is true for some: all notes are kept.
            if (at->note != m.note) {
                std::set<std::string> notes = clauses_of(at->note);
                notes.merge(clauses_of(m.note));
                at->note = joined_clauses(notes);
            }
            take_sum(at->captures, m.captures);
        }
        const auto place = static_cast<std::size_t>(at - metrics_.begin());
        maps.metric.push_back(place);
        if (metric_key(metrics_[place]) < metric_key(metrics_[first_metric_])) first_metric_ = place;
    }
    maps.metrics = metrics_.size();
}

void MergedNames::add_images(Answers& a, RowMover::Maps& maps) {
    for (const Image& image : a.images) {
        ImageKey key{build_key(image.build_id), image.build_id.empty() ? image.name : ""};
        const auto [at, fresh] = image_places_.try_emplace(key, static_cast<Index>(images_.size()));
        maps.table(IndexedTable::images).push_back(at->second);
        if (fresh) {
            images_.push_back({image, std::move(key), image.name, image.load_bias});
            continue;
        }
        Image& to = images_[at->second].row;
        take_text(to.name, image.name);
        take_text(to.path, image.path);
        take_text(to.recorded, image.recorded);
        take_text(to.build_id, image.build_id);
        take_most(to.has_symbols, image.has_symbols);
        to.whole |= image.whole;
        to.load_bias = std::min(to.load_bias, image.load_bias);
        take_most(to.segments, image.segments);
    }
}

void MergedNames::add_sources(Answers& a, RowMover::Maps& maps) {
    for (SourceFile& file : a.sources) {
        const auto [at, fresh] = source_places_.of(hash_of(std::string_view(file.path)), sources_.size(),
                                                   [&](Index place) { return sources_[place].path == file.path; });
        maps.table(IndexedTable::sources).push_back(at);
        if (fresh)
            sources_.push_back(std::move(file));
        else
            take_most(sources_[at].lines, file.lines);
    }
}

void MergedNames::add_functions(Answers& a, RowMover::Maps& maps) {
    RowMover mover(maps);
    maps.table(IndexedTable::functions).reserve(a.functions.size());
    for (const Function& given : a.functions) {
        MergedFunction made{given, 0, {}, {}, {}, given.synthetic};
        Function& f = made.row;
        const bool by_image = is_named_by_image(a, given);
        made.key_name = lasting_name(a, given, by_image);
        schema::fields(mover, f);
        if (by_image) {
            made.name_by_image = std::move(f.name);
            rename(made.name_by_image, a.images[given.image].name, images_[f.image].first_name);
        } else {
            made.name = std::move(f.name);
        }
        f.name.clear();
        // Code outside all programs is identified by the address in its name.
        const bool is_loaded = given.image < a.images.size();
        if (!f.synthetic) {
            made.address = f.address - (is_loaded ? a.images[given.image].load_bias : 0);
            f.address = made.address + (is_loaded ? images_[f.image].first_bias : 0);
        }
        const auto hash = hash_of(std::uint64_t{f.image}, made.address, std::string_view(made.key_name));
        const auto [at, fresh] = function_places_.of(hash, functions_.size(), [&](Index place) {
            const MergedFunction& known = functions_[place];
            return known.row.image == f.image && known.address == made.address && known.synthetic == made.synthetic &&
                   known.key_name == made.key_name;
        });
        maps.table(IndexedTable::functions).push_back(at);
        if (fresh) {
            functions_.push_back(std::move(made));
            continue;
        }
        MergedFunction& to = functions_[at];
        take_text(to.name, made.name);
        take_text(to.name_by_image, made.name_by_image);
        take_text(to.row.linkage_name, f.linkage_name);
        take_most(to.row.address, f.address);
        take_most(to.row.bytes, f.bytes);
        take_place(to.row.source, to.row.line, f.source, f.line);
        take_text(to.row.declared_name, f.declared_name);
        take_place(to.row.declared_source, to.row.declared_line, f.declared_source, f.declared_line);
        to.row.by_llvm |= f.by_llvm;
    }
}

void MergedNames::add_inlined(Answers& a, RowMover::Maps& maps) {
    IndexMap& places = maps.table(IndexedTable::inlined);
    for (std::size_t i = 0; i < a.inlined.size(); ++i) {
        InlinedCall& call = a.inlined[i];
        const Index parent = call.parent < i ? places[call.parent] : none;
        RowMover mover(maps);
        schema::fields(mover, call);
        call.parent = parent;
        // Its key: call site and callee. A linkage name equal to the name adds no information.
        const std::string callee = callee_of(call);
        if (call.linkage_name == call.name) call.linkage_name.clear();
        const auto key = [](const InlinedCall& c) {
            return std::tuple(c.parent, c.function, c.source, c.line, c.discriminator);
        };
        const auto [at, fresh] =
            inlined_places_.of(mixed(hash_of(key(call)), callee), inlined_.size(), [&](Index place) {
                const InlinedCall& known = inlined_[place];
                return key(known) == key(call) && callee_of(known) == callee && known.name == call.name;
            });
        places.push_back(at);
        if (fresh)
            inlined_.push_back(std::move(call));
        else
            take_most(inlined_[at].declared_line, call.declared_line);
    }
}

bool MergedNames::source_before(Index a, Index b) const {
    if (a == b || b == none) return false;
    return a == none || sources_[a].path < sources_[b].path;
}

void MergedNames::take_place(Index& source, std::uint32_t& line, Index other_source, std::uint32_t other_line) const {
    if (line < other_line || (line == other_line && source_before(source, other_source)))
        std::tie(source, line) = std::tie(other_source, other_line);
}

std::strong_ordering MergedNames::order_of_functions(Index a, Index b) const {
    if (a == b) return std::strong_ordering::equal;
    if (a == none || b == none) return a <=> b;
    const MergedFunction &one = functions_[a], &other = functions_[b];
    const Index image = one.row.image, other_image = other.row.image;
    if (image != other_image) {
        if (image == none || other_image == none) return image <=> other_image;
        return images_[image].key <=> images_[other_image].key;
    }
    return std::tie(one.address, one.key_name, one.synthetic) <=>
           std::tie(other.address, other.key_name, other.synthetic);
}

bool MergedNames::function_before(Index a, Index b) const { return order_of_functions(a, b) < 0; }

bool MergedNames::sibling_before(Index a, Index b) const {
    const InlinedCall &one = inlined_[a], &other = inlined_[b];
    if (const auto order = order_of_functions(one.function, other.function); order != 0) return order < 0;
    if (const int order = callee_of(one).compare(callee_of(other)); order != 0) return order < 0;
    if (one.name != other.name) return one.name < other.name;
    if (one.source != other.source) return source_before(one.source, other.source);
    return std::tie(one.line, one.discriminator) < std::tie(other.line, other.discriminator);
}

bool MergedNames::inlined_before(Index a, Index b) const {
    if (a == b || b == none) return false;
    if (a == none) return true;
    const auto path = [&](Index at) {
        std::vector<Index> out;
        for (; at != none; at = inlined_[at].parent) out.push_back(at);
        return out;
    };
    const std::vector<Index> one = path(a), other = path(b);
    auto at = one.rbegin(), other_at = other.rbegin();
    while (at != one.rend() && other_at != other.rend() && *at == *other_at) {
        ++at;
        ++other_at;
    }
    if (at == one.rend() || other_at == other.rend()) return at == one.rend() && other_at != other.rend();
    return sibling_before(*at, *other_at);
}

std::uint64_t MergedNames::shift_of_image(const Answers& a, const RowMover::Maps& maps, Index image) const {
    if (image >= a.images.size()) return 0;
    return images_[maps.table(IndexedTable::images)[image]].first_bias - a.images[image].load_bias;
}

std::uint64_t MergedNames::shift_of_function(const Answers& a, const RowMover::Maps& maps, Index function) const {
    return function < a.functions.size() ? shift_of_image(a, maps, a.functions[function].image) : 0;
}

RowMover::Maps MergedNames::finish(Answers& out) {
    RowMover::Maps maps;
    // Their order needs the sources, which are moved below.
    std::vector<Index> parents;
    for (const InlinedCall& call : inlined_) parents.push_back(call.parent);
    const std::vector<Index> order = tree_order(parents, [&](Index a, Index b) { return sibling_before(a, b); });
    maps.table(IndexedTable::inlined) = places_in(order);
    maps.metric.resize(metrics_.size());
    maps.metrics = metrics_.size();
    const IndexMap metric_places = sorted_into(
        metrics_, [&](Index a, Index b) { return metric_key(metrics_[a]) < metric_key(metrics_[b]); },
        [&](Index at) { out.metrics.push_back(metrics_[at]); });
    if (!out.metrics.empty() && !have_sets(out.metrics) && out.metrics.front().set == metric_set(out.metrics))
        for (Metric& m : out.metrics) {
            m.set.clear();
            m.captures = 0;
        }
    for (std::size_t m = 0; m < metrics_.size(); ++m) maps.metric[m] = metric_places[m];
    maps.table(IndexedTable::images) = sorted_into(
        images_, [&](Index a, Index b) { return images_[a].key < images_[b].key; },
        [&](Index at) { out.images.push_back(images_[at].row); });
    maps.table(IndexedTable::sources) = sorted_into(
        sources_, [&](Index a, Index b) { return sources_[a].path < sources_[b].path; },
        [&](Index at) { out.sources.push_back(std::move(sources_[at])); });
    const auto bias_change = [&](Index image) {
        return image == none ? 0 : images_[image].row.load_bias - images_[image].first_bias;
    };
    for (const MergedFunction& f : functions_) shifts_.push_back(bias_change(f.row.image));
    out.functions.reserve(functions_.size());
    maps.table(IndexedTable::functions) = sorted_into(
        functions_, [&](Index a, Index b) { return function_before(a, b); },
        [&](Index at) {
            MergedFunction& f = functions_[at];
            if (!f.name_by_image.empty()) {
                const MergedImage& image = images_[f.row.image];
                rename(f.name_by_image, image.first_name, image.row.name);
                take_text(f.name, f.name_by_image);
            }
            f.row.name = f.name;
            if (!f.synthetic) f.row.address += shifts_[at];
            RowMover mover(maps);
            schema::fields(mover, f.row);
            out.functions.push_back(f.row);
        });
    for (const Index at : order) {
        const Index parent = parents[at];
        RowMover mover(maps);
        schema::fields(mover, inlined_[at]);
        inlined_[at].parent = parent == none ? none : maps.table(IndexedTable::inlined)[parent];
        out.inlined.push_back(std::move(inlined_[at]));
    }
    return maps;
}

}  // namespace waymark::answers
