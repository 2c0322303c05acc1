#include "waymark/exports/autofdo.h"
#include "waymark/core/saturating.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "look_up.h"
#include "writer.h"

namespace waymark::exports {

namespace {

using answers::Answers;
using answers::Edge;
using answers::Function;
using answers::Index;
using answers::InlinedCall;
using answers::Instruction;
using answers::Seen;

/// Execution count of an instruction, exact or estimated from samples.
std::uint64_t weight(const Instruction& i) { return i.times != 0 ? i.times : cost_of(i, 0); }

/// LLVM packs up to three numbers into a discriminator, the lowest first: the number of the piece in its line, the
/// factor by which the piece was duplicated (unrolled, vectorised), and the number of the copy. Each number takes one
/// bit if it is 0 (that bit is set), 7 bits up to 31 and 14 bits up to 4095 (bit 6 is set), as
/// llvm/IR/DebugInfoMetadata.h describes.
struct Discriminator {
    std::uint32_t base{}, copies = 1;

    static Discriminator unpack(std::uint32_t packed) {
        Discriminator out;
        out.base = take(packed);
        out.copies = std::max(take(packed), 1U);
        return out;
    }

private:
    static std::uint32_t take(std::uint32_t& packed) {
        if ((packed & 1U) != 0) {
            packed >>= 1;
            return 0;
        }
        const bool large = (packed & 0x40U) != 0;
        const std::uint32_t low = packed >> 1 & 0x1fU, high = large ? packed >> 7 & 0x7fU : 0;
        packed >>= large ? 14 : 7;
        return high << 5 | low;
    }
};

/// Whether the format and the compiler can represent a name: colons and spaces separate fields, and code without a
/// linkage name has a descriptive name (`[unknown]`, `(no symbol) in libc.so`, `qsort+0x1a4?`, `shapes::area(int)`).
bool is_linkage_name(std::string_view name) {
    return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
           std::all_of(name.begin(), name.end(), [](char c) {
               return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '$';
           });
}

/// The name by which a compiler knows a function; empty if it has none. Clones and parts of a function count for the
/// function.
std::string_view compiler_name(const Answers& a, Index function) {
    const Function* f = function_at(a, function);
    if (f == nullptr || f->synthetic) return {};
    if (!f->declared_name.empty()) return is_linkage_name(f->declared_name) ? f->declared_name : std::string_view();
    std::string_view name = answers::without_suffix(linkage_name(a, function));
    // Removes the suffix of names such as `puts@plt`, `memcpy@@GLIBC_2.17`.
    name = name.substr(0, name.find('@'));
    return is_linkage_name(name) ? name : std::string_view();
}

/// A part that compilers split off is entered from the function's other part, which is not a call.
bool is_part(std::string_view symbol) {
    return symbol.find(".part.") != symbol.npos || symbol.find(".cold") != symbol.npos;
}

/// A place in a function in the format's terms: the line relative to the function's first line, and the base
/// discriminator.
struct Place {
    std::uint32_t line{}, discriminator{};
    friend auto operator<=>(const Place&, const Place&) = default;
};
Place place(std::uint32_t line, std::uint32_t declared_line, std::uint32_t discriminator) {
    constexpr std::uint32_t most = 0xffff;  // mask of the bits of an offset that the format keeps
    return {(line - declared_line) & most, discriminator};
}

/// A function, or an inlined call of one.
struct Body {
    std::string name;
    struct At {
        std::uint64_t samples{};
        std::map<std::string, std::uint64_t, std::less<>> callees{};  // by name
    };
    std::map<Place, At> places{};
    std::map<std::pair<Place, std::string>, std::size_t> inlined{};  // calls, by callee
    std::uint64_t total{}, head{};
};

class AutofdoWriter {
public:
    AutofdoWriter(const Answers& answers, ByteSink& sink) : answers_(answers), out_(sink) {}

    Result<ExportReport> write() {
        for (const Instruction& i : answers_.instructions) add(i);
        if (own_ == 0) return Error{Errc::not_found, lacks_lines(answers_)};
        for (const Edge& e : answers_.edges) add(e);
        const bool samples =
            answers_.calls.empty() && std::all_of(answers_.instructions.begin(), answers_.instructions.end(),
                                                  [](const Instruction& i) { return i.times == 0; });
        const auto entries = samples ? sampled_entries(answers_) : function_entries(answers_);
        for (Index f = 0; f < answers_.functions.size(); ++f)
            if (const auto found = functions_.find(compiler_name(answers_, f));
                found != functions_.end() && !is_part(linkage_name(answers_, f)))
                add_saturating(bodies_[found->second].head, entries[f]);
        // Calls come after the bodies that contain them.
        std::vector<std::size_t> order;
        for (std::size_t n = bodies_.size(); n-- > 0;) {
            Body& b = bodies_[n];
            for (const auto& [at, here] : b.places) add_saturating(b.total, here.samples);
            for (const auto& [at, call] : b.inlined) add_saturating(b.total, bodies_[call].total);
        }
        for (const auto& [name, n] : functions_)
            if (bodies_[n].total != 0) order.push_back(n);
        // The hottest first, as the compiler's own tools write them.
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t x, std::size_t y) { return bodies_[x].total > bodies_[y].total; });
        for (const std::size_t n : order) {
            const Body& b = bodies_[n];
            out_.print("{}:{}:{}\n", b.name, b.total, b.head);
            print(b, 1);
        }
        ExportReport report;
        report.bytes = out_.finish();
        notes(order.size(), report);
        return report;
    }

private:
    // ---- bodies that instructions count for

    /// The body of a function; nullopt if it has no name or line by which a compiler could find it.
    std::optional<std::size_t> body_of(Index function) {
        const std::string_view name = compiler_name(answers_, function);
        const Function* f = function_at(answers_, function);
        if (name.empty() || (f->declared_line == 0 && f->line == 0)) return std::nullopt;
        const auto [at, fresh] = functions_.try_emplace(std::string(name), bodies_.size());
        if (fresh) bodies_.push_back({at->first});
        return at->second;
    }
    std::size_t call_in(std::size_t body, const Place& at, std::string_view callee) {
        const auto [found, fresh] = bodies_[body].inlined.try_emplace({at, std::string(callee)}, bodies_.size());
        const std::size_t call = found->second;
        if (fresh) bodies_.push_back({std::string(callee)});
        return call;
    }

    struct Found {
        std::size_t body{};
        Place at;
        std::uint32_t copies = 1;
    };
    std::optional<Found> find(const Instruction& i) {
        const Function* f = function_at(answers_, i.function);
        if (f == nullptr || i.line == 0) return std::nullopt;
        std::vector<const InlinedCall*> chain;  // the outermost first
        for (Index at = i.inlined; at < answers_.inlined.size();) {
            const InlinedCall& call = answers_.inlined[at];
            chain.push_back(&call);
            at = call.parent < at ? call.parent : answers::none;
        }
        std::reverse(chain.begin(), chain.end());
        const auto unpacked = [&](std::uint32_t packed) {
            return f->by_llvm ? Discriminator::unpack(packed) : Discriminator{};
        };
        std::uint32_t declared = f->declared_line != 0 ? f->declared_line : f->line;
        const Index source = f->declared_line != 0 ? f->declared_source : f->source;
        // Without debug information about functions, a line before the first one belongs to something else.
        if (chain.empty() && (i.source != source || (f->declared_line == 0 && i.line < declared))) return std::nullopt;
        for (const InlinedCall* call : chain) {
            const std::string_view name = call->linkage_name.empty() ? call->name : call->linkage_name;
            if (call->line == 0 || call->declared_line == 0 || !is_linkage_name(name)) return std::nullopt;
        }
        const auto outermost = body_of(i.function);
        if (!outermost) return std::nullopt;
        std::size_t body = *outermost;
        for (const InlinedCall* call : chain) {
            body = call_in(body, place(call->line, declared, unpacked(call->discriminator).base),
                           call->linkage_name.empty() ? call->name : call->linkage_name);
            declared = call->declared_line;
        }
        const Discriminator d = unpacked(i.discriminator);
        return Found{body, place(i.line, declared, d.base), d.copies};
    }

    void add(const Instruction& i) {
        const std::uint64_t times = weight(i);
        // That code did not run is as useful to a compiler as an execution count; samples do not show it.
        if (times == 0 && (i.seen != Seen::not_executed || answers_.metrics.empty() || !answers_.metrics[0].exact))
            return;
        add_saturating(all_, times);
        if (i.line == 0) add_saturating(without_line_, times);
        const auto found = find(i);
        if (!found) return;
        add_saturating(own_, times);
        if (i.inlined < answers_.inlined.size()) add_saturating(inlined_, times);
        std::uint64_t& samples = bodies_[found->body].places[found->at].samples;
        samples = std::max(samples, saturating_product(times, found->copies));
    }

    void add(const Edge& e) {
        using Kind = answers::Branch::Kind;
        const bool call = e.kind == Kind::call || e.kind == Kind::indirect_call;
        if (e.times == 0 || (!call && !enters(answers_, e))) return;
        const std::string_view callee = compiler_name(answers_, e.to_function);
        const Function* to = function_at(answers_, e.to_function);
        const Instruction* from = instruction_at(answers_, e.from, e.from_function);
        if (callee.empty() || is_part(to->linkage_name) || from == nullptr || weight(*from) == 0) return;
        if (const auto found = find(*from))
            add_saturating(bodies_[found->body].places[found->at].callees[std::string(callee)], e.times);
    }

    // ---- text

    void print(const Body& b, std::size_t depth) {
        const std::string indent(depth, ' ');
        const auto offset = [&](const Place& at) {
            return at.discriminator == 0 ? fmt::format("{}{}", indent, at.line)
                                         : fmt::format("{}{}.{}", indent, at.line, at.discriminator);
        };
        for (const auto& [at, here] : b.places) {
            out_.print("{}: {}", offset(at), here.samples);
            for (const auto& [name, times] : here.callees) out_.print(" {}:{}", name, times);
            out_.write("\n");
        }
        for (const auto& [where, n] : b.inlined) {
            if (bodies_[n].total == 0) continue;
            ++calls_;
            out_.print("{}: {}:{}\n", offset(where.first), bodies_[n].name, bodies_[n].total);
            print(bodies_[n], depth + 1);
        }
    }

    void notes(std::size_t functions, ExportReport& report) const {
        const auto share = [](std::uint64_t part, std::uint64_t of) {
            return 100.0 * static_cast<double>(part) / static_cast<double>(of);
        };
        const std::string_view all =
            !answers_.metrics.empty() && answers_.metrics[0].unit == "samples" ? "samples" : "executions in the trace";
        report.notes.push_back(
            fmt::format("{} and {} have samples; {:.1f}% of all {} are in them, {:.1f}% in the inlined calls",
                        counted(functions, "function"), counted(calls_, "inlined call"), share(own_, all_), all,
                        share(inlined_, all_)));
        constexpr double shown = 0.05;  // percent
        if (share(without_line_, all_) >= shown)
            report.notes.push_back(fmt::format("left out: {:.1f}% of all {}, of code without source lines",
                                               share(without_line_, all_), all));
        if (const std::uint64_t rest = all_ - own_ - without_line_; share(rest, all_) >= shown)
            report.notes.push_back(
                fmt::format("left out: {:.1f}% of all {}, of lines whose function has no linkage name or whose inlined "
                            "calls are not "
                            "known; debug information for profiles has both (clang -g -fdebug-info-for-profiling)",
                            share(rest, all_), all));
    }

    const Answers& answers_;
    Writer out_;
    std::vector<Body> bodies_;  // inlined calls come after the bodies that contain them
    std::map<std::string, std::size_t, std::less<>> functions_;
    std::uint64_t all_ = 0, own_ = 0, inlined_ = 0, without_line_ = 0;
    std::size_t calls_ = 0;
};

}  // namespace

Result<ExportReport> write_autofdo(const Answers& answers, ByteSink& sink) {
    return AutofdoWriter(answers, sink).write();
}

}  // namespace waymark::exports
