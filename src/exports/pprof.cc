#include "waymark/exports/pprof.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <protozero/pbf_writer.hpp>
#include <unordered_map>
#include <utility>

#include "gzip.h"
#include "look_up.h"
#include "waymark/core/saturating.h"
#include "waymark/exports/image_profile.h"
#include "writer.h"

namespace waymark::exports {

namespace {

using answers::Answers;
using answers::Costs;
using answers::Index;
using answers::Instruction;
using protozero::pbf_writer;

// Field numbers, by message.
namespace profile {
constexpr unsigned sample_type = 1, sample = 2, mapping = 3, location = 4, function = 5, strings = 6, comment = 13,
                   default_sample_type = 14;
}
namespace value_type {
constexpr unsigned type = 1, unit = 2;
}
namespace sample {
constexpr unsigned locations = 1, values = 2;
}
namespace mapping {
constexpr unsigned id = 1, start = 2, limit = 3, file = 5, build_id = 6, has_functions = 7, has_files = 8,
                   has_lines = 9;
}
namespace location {
constexpr unsigned id = 1, mapping_id = 2, address = 3, line = 4;
constexpr unsigned line_function = 1, line_line = 2;
}  // namespace location
namespace function {
constexpr unsigned id = 1, name = 2, system_name = 3, file = 4, start_line = 5;
}

class PprofWriter {
public:
    PprofWriter(const Answers& answers, std::size_t metric, ByteSink& sink)
        : answers_(answers), metric_(metric), sink_(sink) {}

    /// False if there was no cost to write.
    [[nodiscard]] const std::string& cut() const { return cut_; }
    bool write() {
        string("");
        for (const answers::Metric& m : answers_.metrics) {
            pbf_writer p(out_);
            pbf_writer type(p, profile::sample_type);
            type.add_int64(value_type::type, string(m.name));
            type.add_int64(value_type::unit, string(m.unit));
        }
        mappings();
        functions();
        answers_.calls.empty() ? flat() : tree();
        pbf_writer p(out_);
        p.add_int64(profile::default_sample_type, string(answers_.metrics[metric_].name));
        p.add_int64(profile::comment, string("waymark " + answers_.version + ", " + answers_.capture));
        if (const std::string run = answers::account_sentence(answers_.account); !run.empty())
            p.add_int64(profile::comment, string("run: " + run));
        for (const std::string& s : strings_) p.add_string(profile::strings, utf8(s));
        flush();
        return samples_ != 0;
    }

private:
    std::int64_t string(std::string_view text) {
        const auto [at, fresh] = string_ids_.try_emplace(std::string(text), strings_.size());
        if (fresh) strings_.emplace_back(text);
        return static_cast<std::int64_t>(at->second);
    }
    void flush() {
        if (!out_.empty()) sink_.write({reinterpret_cast<const std::uint8_t*>(out_.data()), out_.size()});
        out_.clear();
    }

    void mappings() {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> span(answers_.images.size(), {~std::uint64_t{0}, 0});
        for (const answers::Function& f : answers_.functions)
            if (f.image < span.size() && !f.synthetic) {
                span[f.image].first = std::min(span[f.image].first, f.address);
                span[f.image].second = std::max(span[f.image].second, f.address + std::max<std::uint64_t>(f.bytes, 1));
            }
        // Readers take the first mapping for the program.
        std::vector<std::size_t> order(span.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        if (const auto program = profile_image(answers_, ""))
            std::rotate(order.begin(), order.begin() + *program, order.begin() + *program + 1);
        for (const std::size_t i : order) {
            pbf_writer p(out_);
            pbf_writer m(p, profile::mapping);
            m.add_uint64(mapping::id, i + 1);
            if (span[i].first < span[i].second) {
                m.add_uint64(mapping::start, span[i].first);
                m.add_uint64(mapping::limit, span[i].second);
            }
            const answers::Image& image = answers_.images[i];
            m.add_int64(mapping::file, string(image.path.empty() ? image.name : image.path));
            if (!image.build_id.empty()) m.add_int64(mapping::build_id, string(image.build_id));
            m.add_bool(mapping::has_functions, true);
            m.add_bool(mapping::has_files, true);
            m.add_bool(mapping::has_lines, true);
        }
    }
    /// Adds the functions of the answers, and one for code outside of all functions.
    void functions() {
        for (Index i = 0; i <= answers_.functions.size(); ++i) {
            pbf_writer p(out_);
            pbf_writer f(p, profile::function);
            f.add_uint64(function::id, i + 1);
            f.add_int64(function::name, string(function_name(answers_, i)));
            if (i == answers_.functions.size()) continue;
            const answers::Function& of = answers_.functions[i];
            // pprof removes brackets from names such as `(no symbol) in libc.so`, because they look like C++
            // parameters.
            if (!of.linkage_name.empty()) f.add_int64(function::system_name, string(of.linkage_name));
            if (const std::string_view file = path_text(answers_, of.source); !file.empty())
                f.add_int64(function::file, string(file));
            if (of.line != 0) f.add_int64(function::start_line, of.line);
        }
        // Adds functions that were inlined, each name once. Their file is the file of their code, or of the next call
        // in them.
        std::vector<Index> sources(answers_.inlined.size(), answers::none);
        for (const answers::InlinedCall& call : answers_.inlined)
            if (call.parent < sources.size()) sources[call.parent] = call.source;
        for (const answers::Instruction& i : answers_.instructions)
            if (i.inlined < sources.size() && i.source != answers::none) sources[i.inlined] = i.source;
        std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> known;
        for (std::size_t i = 0; i < answers_.inlined.size(); ++i) {
            const answers::InlinedCall& call = answers_.inlined[i];
            const std::string_view linkage = call.linkage_name.empty() ? call.name : call.linkage_name;
            const auto [at, fresh] =
                known.try_emplace({call.name, linkage}, answers_.functions.size() + 2 + known.size());
            inlined_.push_back(at->second);
            if (!fresh) continue;
            pbf_writer p(out_);
            pbf_writer f(p, profile::function);
            f.add_uint64(function::id, at->second);
            f.add_int64(function::name, string(call.name));
            f.add_int64(function::system_name, string(linkage));
            if (const std::string_view file = path_text(answers_, sources[i]); !file.empty())
                f.add_int64(function::file, string(file));
        }
    }
    [[nodiscard]] std::uint64_t function_id(Index function) const {
        return std::min<std::uint64_t>(function, answers_.functions.size()) + 1;
    }
    /// A line in a function, by the function's number in the file.
    struct Place {
        std::uint64_t function{};
        std::uint32_t line{};
    };
    /// `lines`: the innermost first, followed by the lines into which it was inlined.
    void location(std::uint64_t id, Index function_index, std::uint64_t address, const std::vector<Place>& lines) {
        const answers::Function* f = function_at(answers_, function_index);
        pbf_writer p(out_);
        pbf_writer l(p, profile::location);
        l.add_uint64(location::id, id);
        if (f != nullptr && f->image < answers_.images.size()) l.add_uint64(location::mapping_id, f->image + 1);
        if (address != 0) l.add_uint64(location::address, address);
        for (const Place& place : lines) {
            pbf_writer at(l, location::line);
            at.add_uint64(location::line_function, place.function);
            if (place.line != 0) at.add_int64(location::line_line, place.line);
        }
    }
    void sample(const std::vector<std::uint64_t>& path, const std::vector<std::int64_t>& values) {
        pbf_writer p(out_);
        {
            pbf_writer s(p, profile::sample);
            s.add_packed_uint64(sample::locations, path.begin(), path.end());
            s.add_packed_int64(sample::values, values.begin(), values.end());
        }
        ++samples_;
        if (out_.size() >= 1 << 16) flush();
    }
    template <class Of>
    bool values(std::vector<std::int64_t>& to, Of&& of) const {
        bool any = false;
        for (std::size_t m = 0; m < to.size(); ++m) any |= (to[m] = static_cast<std::int64_t>(of(m))) != 0;
        return any;
    }

    /// The line in the function itself for an instruction; for inlined code, the line of the call.
    [[nodiscard]] std::uint32_t own_line(const Instruction& i) const {
        std::uint32_t line = i.line;
        for (Index at = i.inlined; at < answers_.inlined.size();) {
            const answers::InlinedCall& call = answers_.inlined[at];
            line = call.line;
            at = call.parent < at ? call.parent : answers::none;
        }
        return line;
    }
    /// A place in a function; address 0: the place is not known.
    std::uint64_t frame(Index function, std::uint64_t address) {
        const std::uint64_t known = std::min<std::uint64_t>(function, answers_.functions.size());
        const auto [at, fresh] = frames_.try_emplace({known, address}, frames_.size() + 1);
        if (!fresh) return at->second;
        const Instruction* i = address == 0 ? nullptr : instruction_at(answers_, address, function);
        location(at->second, function, address, {{function_id(function), i == nullptr ? 0 : own_line(*i)}});
        return at->second;
    }
    /// Address of the call from each function to each other function; 0 if several places contain such a call.
    [[nodiscard]] std::map<std::pair<Index, Index>, std::uint64_t> call_sites() const {
        std::map<std::pair<Index, Index>, std::uint64_t> sites;
        for (const answers::Edge& e : answers_.edges) {
            if (e.times == 0 || !enters(answers_, e)) continue;
            const auto [at, fresh] = sites.try_emplace({e.from_function, e.to_function}, e.from);
            if (!fresh && at->second != e.from) at->second = 0;
        }
        return sites;
    }
    /// Instructions by function, for functions with only one call path: the path's costs are the sum of theirs.
    [[nodiscard]] std::map<Index, std::vector<const Instruction*>> instructions_of_single_paths() const {
        std::vector<std::uint32_t> nodes(answers_.functions.size());
        for (const answers::CallNode& node : answers_.calls)
            if (node.function < nodes.size() && !node.self.empty()) ++nodes[node.function];
        std::map<Index, std::vector<const Instruction*>> out;
        for (const Instruction& i : answers_.instructions)
            if (i.function < nodes.size() && nodes[i.function] == 1) out[i.function].push_back(&i);
        return out;
    }

    /// A tree has costs of functions. Lines come from instructions with costs and from calls, if there is only one path
    /// and one place; other costs have no line.
    void tree() {
        const auto sites = call_sites();
        const auto single = instructions_of_single_paths();
        const std::size_t metrics = answers_.metrics.size();
        std::vector<std::uint64_t> path;
        CutPaths paths(answers_);
        std::vector<std::int64_t> value(metrics), rest(metrics);
        for (Index i = 0; i < answers_.calls.size(); ++i) {
            const answers::CallNode& node = answers_.calls[i];
            if (!values(rest, [&](std::size_t m) { return cost_of(node.self, m); })) continue;
            path.clear();
            Index callee = answers::none;
            paths.walk(
                i,
                [&](Index at) {
                    const answers::CallNode& caller = answers_.calls[at];
                    // The root node carries no information.
                    const bool named = function_at(answers_, caller.function) != nullptr;
                    if (!named && caller.kind == answers::CallNode::Kind::root && !path.empty()) return;
                    const auto site = sites.find({caller.function, callee});
                    path.push_back(frame(caller.function, site == sites.end() ? 0 : site->second));
                    callee = caller.function;
                },
                [&](std::size_t) {
                    path.push_back(frame(answers::none, 0));
                    callee = answers::none;
                });
            if (const auto of = single.find(node.function); of != single.end() && is_within(of->second, rest))
                for (const Instruction* instruction : of->second) {
                    if (!values(value, [&](std::size_t m) { return cost_of(*instruction, m); })) continue;
                    path[0] = frame(node.function, instruction->address);
                    sample(path, value);
                    for (std::size_t m = 0; m < metrics; ++m) rest[m] -= value[m];
                }
            path[0] = frame(node.function, 0);
            if (std::any_of(rest.begin(), rest.end(), [](std::int64_t n) { return n != 0; })) sample(path, rest);
        }
        cut_ = paths.note();
    }
    /// Whether the costs of the instructions do not exceed the given costs.
    [[nodiscard]] static bool is_within(const std::vector<const Instruction*>& instructions,
                                        const std::vector<std::int64_t>& all) {
        for (std::size_t m = 0; m < all.size(); ++m) {
            std::uint64_t sum = 0;
            for (const Instruction* i : instructions) add_saturating(sum, cost_of(*i, m));
            if (sum > static_cast<std::uint64_t>(all[m])) return false;
        }
        return true;
    }
    void flat() {
        std::vector<std::int64_t> value(answers_.metrics.size());
        std::uint64_t id = 0;
        for (const Instruction& i : answers_.instructions) {
            if (!values(value, [&](std::size_t m) { return cost_of(i, m); })) continue;
            std::vector<Place> lines;
            std::uint32_t line = i.line;
            for (Index at = i.inlined; at < answers_.inlined.size();) {
                const answers::InlinedCall& call = answers_.inlined[at];
                lines.push_back({inlined_[at], line});
                line = call.line;
                at = call.parent < at ? call.parent : answers::none;
            }
            lines.push_back({function_id(i.function), line});
            location(++id, i.function, i.address, lines);
            sample({id}, value);
        }
    }

    const Answers& answers_;
    std::size_t metric_;
    ByteSink& sink_;
    std::string out_;
    std::vector<std::string> strings_;
    std::unordered_map<std::string, std::size_t> string_ids_;
    std::vector<std::uint64_t> inlined_;  // by inlined call: its function's number in the file
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> frames_;  // by function and address
    std::uint64_t samples_ = 0;
    std::string cut_;
};

}  // namespace

Result<ExportReport> write_pprof(const Answers& answers, const PprofOptions& options, ByteSink& sink) {
    WM_RETURN_IF_ERROR(check_metric(answers, options.metric));
    ExportReport report;
    GzipSink gzip(sink);
    PprofWriter writer(answers, options.metric, gzip);
    if (!writer.write()) return Error{Errc::not_found, lacks(answers, "cost of any function or instruction")};
    report.bytes = gzip.finish();
    if (!writer.cut().empty()) report.notes.push_back(writer.cut());
    if (answers.calls.empty())
        report.notes.push_back(lacks(answers, "who called whom: each stack is one instruction and its line"));
    else
        report.notes.push_back(
            "costs are by call path. Lines are known for functions that ran on only one path, and for calls that only "
            "one instruction of the caller makes; callgrind has all costs by line");
    return report;
}

}  // namespace waymark::exports
