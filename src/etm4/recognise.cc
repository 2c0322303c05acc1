#include "recognise.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <type_traits>
#include <utility>

#include "elements.h"
#include "waymark/core/numbers.h"
#include "waymark/etm4/parser.h"

namespace waymark::etm4 {

namespace {

using protocol::Certainty;
using protocol::InferredField;
using protocol::Stretch;

/// The effect of packets on the number of waiting P0 elements, without MAXSPEC.
struct DepthStep {
    enum class Is : std::uint8_t { begins, lost, changes };
    Is is{};
    bool from_maximum{};  ///< `commit` is relative to MAXSPEC (section 5)
    std::uint64_t added{}, commit{}, cancel{};
    std::uint32_t waits{};  ///< with `begins`: the number in the Trace Info
    bool of_count{};        ///< `commit` comes from a cycle count
    bool mispredict{};      ///< it changes a waiting outcome
};

class DepthSteps {
public:
    explicit DepthSteps(const Config& config) : config_(config), assembler_(config_) {}

    template <class P>
    void operator()(const P& p, Extent at) {
        if (++packets_ > most_packets) return;
        if constexpr (std::is_same_v<P, TraceInfo>) {
            flush();
            steps.push_back({.is = DepthStep::Is::begins, .waits = p.speculation});
            assembler_.begin(p);
        } else if constexpr (std::is_same_v<P, Discard> || std::is_same_v<P, Overflow>) {
            lose();
        } else if constexpr (std::is_same_v<P, ASync>) {
        } else {
            const Request request = assembler_(p, at.first, queue_);
            if (request.impossible) return lose();
            DepthStep step{.is = DepthStep::Is::changes, .commit = request.commit, .cancel = request.cancel};
            step.mispredict = request.mispredict;
            if constexpr (std::is_same_v<P, CycleCountF1>) {
                step.commit = config_.commit_mode_1 ? 0 : p.commit;
                step.of_count = true;
            } else if constexpr (std::is_same_v<P, CycleCountF2>) {
                step.commit = config_.commit_mode_1 ? 0 : p.commit + 1U;
                if (p.from_maximum && !config_.commit_mode_1) step.from_maximum = true, --step.commit;
                step.of_count = true;
            } else if constexpr (std::is_same_v<P, CycleCountF3>) {
                step.commit = config_.commit_mode_1 ? 0 : p.commit + 1U;
                step.of_count = true;
            }
            if (step.commit == 0 && step.cancel == 0 && !step.from_maximum && !step.mispredict) return;
            step.added = std::exchange(queue_.p0, 0);
            steps.push_back(step);
        }
    }
    void operator()(const Gap&) { lose(); }
    void flush() {
        if (queue_.p0 != 0) steps.push_back({.is = DepthStep::Is::changes, .added = std::exchange(queue_.p0, 0)});
    }

    std::vector<DepthStep> steps;

private:
    static constexpr std::uint64_t most_packets = 1 << 20;
    struct Count {
        std::uint64_t p0 = 0;
        void add(Offset, const follow::Outcomes& outcomes) { p0 += outcomes.count; }
        void add(Offset, ElementKind kind, const auto&) { p0 += kind == ElementKind::p0 ? 1U : 0U; }
    };
    void lose() {
        queue_.p0 = 0;
        assembler_.forget();
        if (steps.empty() || steps.back().is != DepthStep::Is::lost) steps.push_back({.is = DepthStep::Is::lost});
    }

    const Config config_;
    Assembler assembler_;
    Count queue_;
    std::uint64_t packets_ = 0;
};

std::vector<DepthStep> depth_steps(const std::vector<Stretch>& stretches, const Config& config) {
    DepthSteps out(config);
    for (const Stretch& stretch : stretches) {
        Parser<DepthSteps> parser(config, out);
        protocol::feed(parser, stretch, [&] { return parser.progress().amid_packet(); });
        parser.finish();
        out.flush();
        out.steps.push_back({.is = DepthStep::Is::lost});
    }
    return std::move(out.steps);
}

struct DepthRun {
    std::uint64_t conflicts{};
    std::uint64_t most{};  ///< waited at once
};

DepthRun run_depth(const std::vector<DepthStep>& steps, std::uint64_t most, std::uint64_t enough_conflicts) {
    DepthRun out;
    bool known = false;
    std::uint64_t depth = 0;
    for (const DepthStep& step : steps) {
        if (step.is == DepthStep::Is::lost) {
            known = false;
            continue;
        }
        if (step.is == DepthStep::Is::begins) {
            out.conflicts += (known && depth != step.waits) || step.waits > most;
            depth = step.waits;
            known = true;
        } else if (known) {
            depth = std::min(depth + step.added, most);
            out.most = std::max(out.most, depth);
            std::uint64_t commit = step.commit;
            if (step.of_count && most == 0) commit = 0;
            if (step.from_maximum && most != 0) {
                out.conflicts += commit + most < 15;
                commit = commit + most < 15 ? 0 : commit + most - 15;
            }
            out.conflicts += commit > depth;
            depth -= std::min(commit, depth);
            out.conflicts += step.cancel > depth;
            depth -= std::min(step.cancel, depth);
            // A unit that does not speculate has no mispredictions.
            out.conflicts += step.mispredict && most == 0;
        }
        if (out.conflicts > enough_conflicts) break;
    }
    return out;
}

/// The maximum number of waiting P0 elements, inferred from commits and cancels.
struct Speculation {
    std::uint64_t conflicts{};       ///< with the chosen depth
    std::uint64_t none_conflicts{};  ///< without speculation
    std::uint64_t with_conflicts{};  ///< the minimum over all depths
    std::uint32_t least{}, depth{};  ///< the smallest depth without further conflicts, and the chosen depth
    bool exact{};                    ///< larger ones conflict
};

Speculation speculation_of(const std::vector<DepthStep>& steps) {
    constexpr std::uint64_t all = ~std::uint64_t{0}, unlimited = 1 << 20, most_depth = 1024;
    Speculation out;
    out.none_conflicts = run_depth(steps, 0, all).conflicts;
    const DepthRun without_limit = run_depth(steps, unlimited, all);
    out.with_conflicts = without_limit.conflicts;
    const std::uint64_t deepest = std::clamp<std::uint64_t>(without_limit.most, 1, most_depth);
    out.least = out.depth = static_cast<std::uint32_t>(deepest);
    bool found = false;
    std::uint64_t last_best = unlimited;
    // Section 15: a count relative to MAXSPEC can be smaller than the depth by at most this number.
    for (std::uint64_t most = 1; most <= deepest + 15; ++most) {
        const std::uint64_t conflicts = run_depth(steps, most, out.with_conflicts).conflicts;
        if (conflicts > out.with_conflicts || (conflicts == out.with_conflicts && found)) {
            if (conflicts == out.with_conflicts) last_best = most;
            continue;
        }
        out.with_conflicts = conflicts;
        out.least = static_cast<std::uint32_t>(most);
        last_best = most;
        found = true;
    }
    // If elements are committed early, the depth never reaches MAXSPEC. Then the greatest observed depth is a possible
    // MAXSPEC, and so is every larger number.
    const bool any_larger = run_depth(steps, deepest, all).conflicts == out.with_conflicts;
    out.depth = any_larger ? static_cast<std::uint32_t>(std::max<std::uint64_t>(deepest, out.least)) : out.least;
    out.exact = found && last_best == out.least && out.least > 1 &&
                run_depth(steps, out.least + 1, all).conflicts > out.with_conflicts;
    if (out.exact) out.depth = out.least;
    if (out.none_conflicts <= out.with_conflicts) out.depth = 0;
    out.conflicts = std::min(out.none_conflicts, out.with_conflicts);
    return out;
}

struct Alternative {
    Config config;
    Likeness parse;
    Speculation speculation{};
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> against() const {
        return {parse.lost_bytes, speculation.conflicts};
    }
};

/// A part of the bytes, from which the reading of the rest is inferred.
std::vector<Stretch> part_of(const std::vector<Stretch>& stretches) {
    constexpr std::size_t most_bytes = std::size_t{1} << 20;
    std::vector<Stretch> out;
    std::size_t left = most_bytes;
    for (const Stretch& stretch : stretches) {
        if (left == 0) break;
        out.push_back(stretch);
        if (out.back().bytes.size() > left) {
            out.back().bytes.resize(left);
            out.back().end_mark_bytes = 0;
        }
        left -= out.back().bytes.size();
    }
    return out;
}

std::vector<Alternative> alternatives(const std::vector<Stretch>& stretches) {
    std::vector<Alternative> out;
    Config first;
    first.version = 0x46;
    first.q_elements = true;
    first.commit_mode_1 = false;
    Likeness of_first = likeness(stretches, first);
    const bool synchronises = of_first.asyncs != 0;
    const std::optional<TraceInfo> info = of_first.info;
    for (const std::uint8_t version : {std::uint8_t{0x46}, std::uint8_t{0x53}})
        for (const CoreProfile profile : {CoreProfile::a, CoreProfile::m})
            for (const bool commit_mode_1 : {false, true})
                for (const std::uint8_t vmid_bytes : {std::uint8_t{1}, std::uint8_t{2}, std::uint8_t{4}}) {
                    if (profile == CoreProfile::m && version >= 0x50) continue;
                    Config c = first;
                    c.version = version;
                    c.profile = profile;
                    c.commit_mode_1 = commit_mode_1;
                    c.vmid_bytes = vmid_bytes;
                    c.timestamp_markers = version >= 0x51;
                    if (info && version < 0x50) {
                        c.conditional = static_cast<std::uint8_t>(info->conditional());
                        c.p0_loads = info->p0_loads();
                        c.p0_stores = info->p0_stores();
                        c.data_trace = c.p0_loads || c.p0_stores;
                    }
                    const bool same = out.empty() && c == first;
                    out.push_back({c, same ? of_first : likeness(stretches, c)});
                    if (!synchronises) return out;  // no configuration changes this
                }
    std::uint64_t least = ~std::uint64_t{0};
    for (const Alternative& a : out) least = std::min(least, a.parse.lost_bytes);
    // Contradictions between packets are only counted if the bytes leave a choice.
    for (Alternative& a : out)
        if (a.parse.lost_bytes == least && a.parse.enough())
            a.speculation = speculation_of(depth_steps(stretches, a.config));
    return out;
}

constexpr std::string_view commit_fact = "cycle counts commit";

/// Collects facts about settings: compares each setting with the best alternative that has another value.
class Facts {
public:
    Facts(const std::vector<Alternative>& all, const Alternative& best, Config& config)
        : all_(all), best_(best), config_(config) {}

    std::vector<InferredField> take() {
        const Likeness& p = best_.parse;
        version(p);
        profile(p);
        cycles(p);
        speculation(p);
        add("Context ID", p.context_ids == 0 ? "not traced" : "4 bytes",
            p.context_ids == 0 ? Certainty::likely : seen(p.context_ids),
            p.context_ids == 0 ? "no context has one" : counted(p.context_ids, "context has one", "contexts have one"));
        config_.context_id_trace = p.context_ids != 0;
        vmid(p);
        add("timestamps", p.timestamps == 0 ? "no" : "yes", p.timestamps == 0 ? Certainty::likely : seen(p.timestamps),
            p.timestamps == 0 ? "no timestamp packet" : counted(p.timestamps, "timestamp packet"));
        config_.timestamps = p.timestamps != 0;
        config_.timestamp_markers = p.markers != 0;
        while (config_.cycle_count_bits < 20 && p.most_timestamp_cycles >> config_.cycle_count_bits != 0)
            ++config_.cycle_count_bits;
        // A damaged byte may look like such a packet.
        config_.q_elements = p.qs > p.errors;
        add("Q elements", config_.q_elements ? "yes" : "no", config_.q_elements ? seen(p.qs) : Certainty::likely,
            p.qs == 0 ? "no Q packet" : counted(p.qs, "Q packet") + ", which no other unit sends");
        broadcast(p);
        other_trace(p);
        return std::move(facts_);
    }

private:
    void add(std::string what, std::string value, Certainty how_sure, std::string proof) {
        facts_.push_back({std::move(what), std::move(value), how_sure, std::move(proof)});
    }
    /// Certainty from packets that only this value can produce: damage produces a few of them.
    [[nodiscard]] Certainty seen(std::uint64_t packets) const {
        return packets >= 2 && packets >= 4 * best_.parse.errors ? Certainty::proven : Certainty::likely;
    }
    /// The best alternative that differs in `field`; null if there is none.
    template <class Field>
    const Alternative* other(Field&& field) const {
        const Alternative* out = nullptr;
        for (const Alternative& a : all_)
            if (field(a.config) != field(best_.config) && (out == nullptr || a.against() < out->against())) out = &a;
        return out;
    }
    /// A single contradiction may be damage, and so may a few if the best alternative has some too.
    static Certainty certainty_of(std::uint64_t others, std::uint64_t mine) {
        return others >= 2 && others >= 4 * mine + (mine != 0 ? 4U : 0U) ? Certainty::proven : Certainty::likely;
    }
    [[nodiscard]] Certainty certainty(const Alternative* a) const {
        if (!contradicted(a)) return Certainty::assumed;
        return a->parse.lost_bytes > best_.parse.lost_bytes
                   ? certainty_of(a->parse.errors, best_.parse.errors)
                   : certainty_of(a->speculation.conflicts, best_.speculation.conflicts);
    }
    [[nodiscard]] bool contradicted(const Alternative* a) const {
        return a != nullptr && best_.against() < a->against();
    }
    /// The evidence against an alternative.
    [[nodiscard]] std::string against(const Alternative& a) const {
        if (a.parse.lost_bytes > best_.parse.lost_bytes)
            return fmt::format("{} without packets, here {}", counted(a.parse.lost_bytes, "byte"),
                               best_.parse.lost_bytes);
        return fmt::format("{} about what is committed, here {}", counted(a.speculation.conflicts, "contradiction"),
                           best_.speculation.conflicts);
    }

    void version(const Likeness& p) {
        const auto is_ete = [](const Config& c) { return c.ete(); };
        const Alternative* const o = other(is_ete);
        const bool proven = contradicted(o);
        std::uint8_t& v = config_.version;
        std::string why;
        if (best_.config.ete()) {
            v = p.ete_1_3_only != 0 ? 0x53 : p.realms != 0 ? 0x52 : p.markers != 0 ? 0x51 : 0x53;
            why = p.ete_1_3_only != 0 ? counted(p.ete_1_3_only, "Instrumentation packet") + ", which ETE 1.3 added"
                                      : "these bytes are the same in all versions";
        } else if (p.markers != 0) {
            v = 0x46;
            why = counted(p.markers, "timestamp marker") + ", which ETMv4.6 added";
        } else {
            v = 0x46;
            why = p.ignored != 0 ? counted(p.ignored, "Ignore packet") + ", so it is ETMv4.3 or later" : "";
        }
        const std::string unit = best_.config.ete() ? "ETE" : "ETMv4";
        std::string proof = proven ? fmt::format("as {}: {}", best_.config.ete() ? "ETMv4" : "ETE", against(*o))
                                   : fmt::format("{} would parse as well", best_.config.ete() ? "ETMv4" : "ETE");
        add("unit", unit, certainty(o), std::move(proof));
        const bool certain = best_.config.ete() ? p.ete_1_3_only != 0 : p.markers != 0;
        add("version", version_text(config_), certain && proven ? Certainty::likely : Certainty::assumed,
            why.empty() ? "these bytes are the same in all versions" : why);
    }
    void profile(const Likeness& p) {
        const auto of = [](const Config& c) { return c.profile; };
        const Alternative* const o = other(of);
        const bool t32_only =
            p.a64 == 0 && p.a32 != 0 && p.other_addresses == 0 && p.wide_addresses == 0 && p.t32_addresses != 0;
        if (contradicted(o)) {
            const bool m = best_.config.profile == CoreProfile::m;
            add("profile", m ? "M" : "A or R", certainty(o), fmt::format("as {}: {}", m ? "A or R" : "M", against(*o)));
        } else if (p.a64 != 0 || p.wide_addresses != 0) {
            config_.profile = CoreProfile::a;
            add("profile", "A", p.a64 + p.wide_addresses >= 2 ? Certainty::proven : Certainty::likely,
                p.a64 != 0
                    ? counted(p.a64, "context is AArch64", "contexts are AArch64") + ", which no other profile has"
                    : "addresses of 64 bits");
        } else if (t32_only && !best_.config.ete()) {
            config_.profile = CoreProfile::m;
            const bool returns = p.no_returns != 0;
            add("profile", "M", returns || p.exceptions != 0 ? Certainty::likely : Certainty::assumed,
                returns ? counted(p.no_returns, "return address is", "return addresses are") +
                              " 0xfffffffe, which a tail-chained exception has"
                : p.exceptions != 0 ? "all addresses are of T32 code, also at exceptions"
                                    : "all addresses are of T32 code");
        } else {
            config_.profile = CoreProfile::a;
            add("profile", "A", p.other_addresses != 0 ? Certainty::likely : Certainty::assumed,
                p.other_addresses != 0 ? "addresses of A32 code, which the M profile does not have"
                                       : "nothing in the bytes suggests another");
        }
        config_.address_bytes = config_.profile == CoreProfile::m ? 4 : 8;
    }
    void cycles(const Likeness& p) {
        const bool has_info = p.info.has_value(), on = has_info && p.info->cycle_counting();
        // One damaged byte looks like one packet.
        constexpr std::uint64_t more_than_damage = 2;
        config_.cycle_counting = on || p.cycle_counts >= (has_info ? more_than_damage : 1);
        const std::string packets = counted(p.cycle_counts, "cycle count packet");
        if (has_info && (on || p.cycle_counts == 0))
            add("cycle counts", on ? "yes" : "no", Certainty::proven, "the Trace Info packets show it");
        else if (has_info)
            add("cycle counts", config_.cycle_counting ? "yes" : "no", Certainty::likely,
                fmt::format("{}, but the Trace Info packets show the opposite: one of them is damaged", packets));
        else
            add("cycle counts", config_.cycle_counting ? "yes" : "no", Certainty::likely,
                p.cycle_counts == 0 ? "no cycle count packet" : packets);
        if (!config_.cycle_counting || p.cycle_counts == 0) return;
        const Alternative* const o = other([](const Config& c) { return c.commit_mode_1; });
        const bool proven = contradicted(o);
        add(std::string(commit_fact), best_.config.commit_mode_1 ? "no" : "yes", certainty(o),
            proven ? fmt::format("commit mode {}: {}", best_.config.commit_mode_1 ? 0 : 1, against(*o))
                   : "the other commit mode would fit as well");
    }
    void speculation(const Likeness& p) {
        const Speculation& s = best_.speculation;
        config_.max_speculation = s.depth;
        if (s.depth == 0) {
            const bool proven = s.with_conflicts > s.none_conflicts;
            add("speculation", "no",
                proven              ? Certainty::proven
                : p.speculates == 0 ? Certainty::likely
                                    : Certainty::assumed,
                proven ? fmt::format("with it: {} on what is committed, here {}",
                                     counted(s.with_conflicts, "contradiction"), s.none_conflicts)
                       : "no Commit, Cancel or Mispredict packet");
            return;
        }
        add("speculation", "yes", certainty_of(s.none_conflicts, s.with_conflicts),
            fmt::format("without it: {} on what is committed, here {}", counted(s.none_conflicts, "contradiction"),
                        s.with_conflicts));
        add("speculation depth", fmt::format("{}{}", s.exact ? "" : "at least ", s.depth),
            s.exact ? Certainty::proven : Certainty::likely,
            s.exact ? fmt::format("with one less or more, Trace Infos contradict what is committed")
                    : fmt::format("this number of elements waited at once; TRCIDR8 may be larger"));
    }
    void vmid(const Likeness& p) {
        config_.vmid_trace = p.vmids != 0;
        if (p.vmids == 0) return add("VMID", "not traced", Certainty::likely, "no context has one");
        const Alternative* const o = other([](const Config& c) { return c.vmid_bytes; });
        const bool proven = contradicted(o);
        add("VMID", counted(best_.config.vmid_bytes, "byte"), certainty(o),
            proven ? fmt::format("{}: {}", counted(o->config.vmid_bytes, "byte"), against(*o))
                   : fmt::format("{} would parse as well", counted(o->config.vmid_bytes, "byte")));
    }
    void broadcast(const Likeness& p) {
        // An address follows nearly every taken branch, and two taken branches without an address between them are
        // rare.
        const bool on =
            p.alone_taken >= 8 && p.alone_named * 10 >= p.alone_taken * 9 && p.many_taken * 10 <= p.alone_taken;
        config_.branch_broadcast = on && config_.max_speculation == 0;
        add("branch broadcast", config_.branch_broadcast ? "yes" : "no", Certainty::likely,
            fmt::format("an address follows {} of {}; decoding does not depend on it", p.alone_named,
                        counted(p.alone_taken, "taken branch", "taken branches")));
    }
    void other_trace(const Likeness& p) {
        config_.data_trace = p.data_markers != 0;
        if (config_.conditional != 0)
            add("conditional instructions", "traced", Certainty::proven, "the Trace Info packets show it");
        if (config_.p0_loads || config_.p0_stores)
            add("loads and stores", "waypoints", Certainty::proven, "the Trace Info packets show it");
        if (config_.data_trace)
            add("data trace", "yes", Certainty::proven, counted(p.data_markers, "data synchronisation marker"));
        config_.p0_keys = config_.data_trace ? std::max(config_.p0_keys, 1U) : 0;
        config_.conditional_keys = config_.conditional != 0 ? std::max(config_.conditional_keys, 1U) : 0;
    }

    const std::vector<Alternative>& all_;
    const Alternative& best_;
    Config& config_;
    std::vector<InferredField> facts_;
};

}  // namespace

Likeness likeness(const std::vector<Stretch>& stretches, const Config& config) {
    return protocol::likeness<Likeness, Parser>(stretches, config);
}

std::uint64_t depth_conflicts(const std::vector<Stretch>& stretches, const Config& config) {
    return run_depth(depth_steps(stretches, config), config.max_speculation, ~std::uint64_t{0}).conflicts;
}

std::string version_text(const Config& c) {
    if (c.ete()) return fmt::format("ETE 1.{}", c.version & 0xfU);
    return fmt::format("ETMv{}.{}", c.version >> 4, c.version & 0xfU);
}

std::shared_ptr<const Recognised> recognise(const std::vector<Stretch>& stretches, std::string_view sync_bytes,
                                            protocol::Identity& out) {
    const std::vector<Stretch> part = part_of(stretches);
    std::vector<Alternative> all = alternatives(part);
    const auto least = [&] {
        return std::min_element(all.begin(), all.end(),
                                [](const Alternative& a, const Alternative& b) { return a.against() < b.against(); });
    };
    auto best = least();
    std::uint64_t bytes = 0, of_part = 0;
    for (const Stretch& s : stretches) bytes += s.bytes.size();
    for (const Stretch& s : part) of_part += s.bytes.size();
    if (bytes != of_part && best->parse.asyncs != 0) {
        // The rest may have features that do not occur in the examined part.
        const Likeness whole = likeness(stretches, best->config);
        if (whole.lost_bytes > best->parse.lost_bytes) {
            all = alternatives(stretches);
            best = least();
        } else {
            best->parse = whole;
        }
    }
    if (best->parse.only_events()) {
        const auto ete = std::find_if(all.begin(), all.end(), [](const Alternative& a) { return a.config.ete(); });
        if (ete != all.end()) best = ete;
    }
    const Likeness& p = best->parse;
    out.tried.push_back(
        {p.asyncs == 0 ? "ETMv4 and ETE" : fmt::format("ETMv4 and ETE, {}", counted(all.size(), "configuration")),
         p.asyncs == 0 ? fmt::format("no A-sync ({})", sync_bytes)
                       : fmt::format("{}, {}, {}, {}", counted(p.packets, "packet"), counted(p.asyncs, "A-sync"),
                                     counted(p.trace_infos, "Trace Info", "Trace Infos"), p.errors_text())});
    const bool only_events = p.only_events();
    if (!p.enough() && !only_events) return nullptr;
    const auto found = std::make_shared<Recognised>();
    found->config = best->config;
    found->likeness = p;
    found->conflicts = best->speculation.conflicts;
    out.facts = Facts(all, *best, found->config).take();
    if (only_events)
        for (InferredField& fact : out.facts) {
            // Nothing shows how instructions would be traced.
            fact.certainty = fact.what == "unit" ? Certainty::likely : Certainty::assumed;
            if (fact.what == "unit")
                fact.proof = fmt::format("{} of 11 zeros, then {} without a Trace Info, which only an ETE sends",
                                         counted(p.asyncs, "A-sync"), counted(p.events, "Event packet"));
        }
    found->facts = out.facts;
    found->commit_mode_open = std::any_of(out.facts.begin(), out.facts.end(), [](const InferredField& f) {
        return f.what == commit_fact && f.certainty == Certainty::assumed;
    });
    out.first_sync = p.first_async;
    // After a single step, only the exception that ended the step shows that something ran.
    out.waypoints = p.waypoints() != 0 ? p.waypoints() : p.exceptions;
    out.remarks.emplace_back("syncs", counted(p.asyncs, "A-sync"));
    return found;
}

}  // namespace waymark::etm4
