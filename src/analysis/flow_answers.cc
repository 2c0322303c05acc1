#include "waymark/analysis/flow_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "flow_fill.h"
#include "waymark/core/numbers.h"

namespace waymark::analysis {

using namespace answers;

namespace {

Branch::Kind kind_of(const flow::Block& b) {
    using K = Branch::Kind;
    const bool link = (b.flags & flow::Block::link) != 0;
    if (b.end == flow::End::indirect) {
        if (link) return K::indirect_call;
        const bool returns = (b.flags & (flow::Block::function_return | flow::Block::exception_return)) != 0;
        return returns ? K::function_return : K::indirect;
    }
    if (link) return K::call;
    return (b.flags & flow::Block::conditional) != 0 ? K::conditional : K::unconditional;
}

/// Adds the edges of taken branches and other jumps.
void fill_edges(FlowFunctions& functions) {
    std::map<std::tuple<std::uint64_t, std::uint64_t, Branch::Kind>, std::pair<std::uint64_t, Work>> sums;
    for (const auto& [key, sum] : functions.blocks())
        if (sum.times[1] != 0 && sum.block.end == flow::End::direct)
            sums[{last_address(sum.block), sum.block.target, kind_of(sum.block)}].first += sum.times[1];
    for (const FlowStream& s : functions.streams())
        for (const FlowCounts* counts : s.sink->counts())
            for (std::size_t i = 0; i < counts->ways().size(); ++i) {
                const Way& way = counts->ways()[i];
                const flow::Block& b = counts->known.blocks[way.edge / 2];
                auto& sum = sums[{last_address(b), way.to, kind_of(b)}];
                sum.first += counts->way_sums()[i].times;
                sum.second += counts->way_sums()[i].inclusive;
            }
    for (const FlowStream& s : functions.streams())
        for (const FlowCounts* counts : s.sink->counts())
            for (std::size_t i = 0; i < counts->carried.size(); ++i) {
                const CarriedCall& call = s.sink->calls().carried()[i];
                sums[{last_address(call.block), call.to, kind_of(call.block)}].second += counts->carried[i].inclusive;
            }
    for (const auto& [key, sum] : sums) {
        const auto& [from, to, kind] = key;
        if (sum.first == 0 && sum.second == Work{}) continue;
        // A jump during which time passed is a tail call.
        const bool call = kind == Branch::Kind::call || kind == Branch::Kind::indirect_call || sum.second != Work{};
        const bool known = call && functions.streams().front().sink->options().calls;
        functions.answers().edges.push_back({from, to, functions.index_at(from), functions.index_at(to), kind,
                                             sum.first, known ? functions.costs(sum.second) : Costs{}});
    }
}

void fill_exceptions(FlowFunctions& functions) {
    std::map<flow::ExceptionType, ExceptionSum> sums;
    for (const FlowStream& s : functions.streams())
        for (const FlowCounts* counts : s.sink->counts())
            for (const auto& [type, e] : counts->exceptions) {
                ExceptionSum& sum = sums[type];
                sum.times += e.times;
                sum.nested += e.nested;
                sum.returned += e.returned;
                sum.sum += e.sum;
                sum.least = {std::min(sum.least.instructions, e.least.instructions),
                             std::min(sum.least.cycles, e.least.cycles)};
                sum.most = {std::max(sum.most.instructions, e.most.instructions),
                            std::max(sum.most.cycles, e.most.cycles)};
            }
    const auto of = [&](const Work& w) { return functions.options().cycles ? w.cycles : w.instructions; };
    for (const auto& [type, e] : sums) {
        ExceptionRow row{.name = exception_text(type), .number = type.number, .times = e.times, .nested = e.nested};
        row.unit = functions.options().cycles ? "cycles" : "instructions";
        row.returned = e.returned;
        if (e.returned != 0) {
            row.least = of(e.least);
            row.most = of(e.most);
            row.sum = of(e.sum);
        }
        functions.answers().exceptions.push_back(std::move(row));
    }
}

void fill_levels(FlowFunctions& functions) {
    std::map<ExecutionLevel, LevelSum> sums;
    for (const FlowStream& s : functions.streams())
        for (const auto& [traced, sum] : s.sink->calls().levels().sums()) {
            ExecutionLevel level = traced;
            level.m_profile = s.m_profile;
            sums[level].work += sum.work;
            sums[level].entered += sum.entered;
        }
    functions.answers().levels = level_rows(sums, functions.options().cycles);
}

flow::CycleCounts cycle_counts(const std::vector<FlowStream>& streams) {
    flow::CycleCounts sum;
    for (const FlowStream& s : streams) sum += s.sink->troubles().cycles;
    return sum;
}

/// How counts of cycles were divided among blocks and functions; empty if each count belonged to one block.
std::string how_spread(const flow::CycleCounts& counts) {
    if (counts.spread == 0) return {};
    std::string out = "each count is spread over the code that ran since the preceding count, by instructions";
    if (counts.threshold > 1)
        out += fmt::format(", and is at least {} (TRCCCCTLR)", counted(counts.threshold, "cycle"));
    return out;
}

/// Whether some of what was decoded may belong to other code than it is counted for.
bool is_uncertain(const answers::Account& account) {
    return std::any_of(account.begin(), account.end(), [](const answers::AccountRow& row) {
        return account_rule(row.reason).state == answers::AccountState::uncertain;
    });
}

/// States how far the figures can be trusted.
void fill_trust(const FlowFunctions& from) {
    Answers& answers = from.answers();
    Trust functions{.view = "functions"};
    const auto estimate = [&](std::string what) {
        functions.estimated += (functions.estimated.empty() ? "" : "; ") + std::move(what);
    };
    if (from.options().sampled)
        estimate("instructions and calls: samples of branches show which code ran how often");
    else if (from.options().account != nullptr && is_uncertain(*from.options().account))
        estimate("instructions and calls: it is uncertain to which code, file or process some of them belong");
    else
        functions.exact = "instructions and calls of all that was decoded";
    const flow::CycleCounts counts = cycle_counts(from.streams());
    if (const std::string spread = how_spread(counts); !spread.empty() && from.options().cycles)
        estimate(fmt::format("cycles of functions, levels, exceptions and lines, but not their sum: {}", spread));
    else if (from.options().cycles)
        estimate("cycles of single instructions, lines and inlined calls: the trace counts cycles of blocks");
    if (counts.off != 0)
        estimate(fmt::format("{} of cycles {} stretches in which tracing was off", counted(counts.off, "count"),
                             counts.off == 1 ? "includes" : "include"));
    if (from.options().stretches != 0)
        estimate(fmt::format("shares of the run: the trace has {} of the run",
                             counted(from.options().stretches, "stretch", "stretches")));
    const bool lost = std::any_of(from.streams().begin(), from.streams().end(), [](const FlowStream& s) {
        return is_damaged(s.sink->troubles()) || s.sink->troubles().no_memory.times != 0;
    });
    if (lost) functions.not_known = "code that ran where flow was lost";
    const std::string part = "code that ran outside the captured part of the run";
    if (from.options().partial) functions.not_known += (lost ? ", and " : "") + part;
    const auto add_unknown = [&](const std::string& what) {
        functions.not_known += (functions.not_known.empty() ? "" : "; ") + what;
    };
    if (counts.unknown != 0)
        add_unknown(fmt::format("the cycles before {} without a number, such as the first one",
                                counted(counts.unknown, "count of cycles", "counts of cycles")));
    if (counts.apart != 0)
        add_unknown(fmt::format("the code that ran in {} of the sum", counted(counts.apart, "cycle")));
    answers.trust.push_back(functions);
    if (from.options().instructions)
        answers.trust.push_back({"coverage", "what was executed, and which way branches went", "",
                                 from.options().partial
                                     ? "whether the rest ran: " + part + " could have run everything"
                                     : "code that could have run where flow was lost, and what interrupts "
                                       "or signals ran where flow was lost"});
    if (answers.timeline.tracks.empty()) return;
    Trust time{.view = "timeline"};
    if (answers.timeline.axis.unit == "ns" || answers.timeline.axis.unit == "ticks") {
        time.exact = "times of timestamps";
        time.estimated =
            fmt::format("times between two timestamps, which are at most {} {} apart for 95 % of the code that ran",
                        grouped(answers.timeline.axis.uncertainty), answers.timeline.axis.unit);
    } else {
        time.exact = "the order of the code that ran in one source";
        const auto sources =
            std::ranges::count_if(answers.timeline.tracks, [](const Track& t) { return t.parent == none; });
        if (sources > 1) time.not_known = "how sources align in time: there are no timestamps";
    }
    answers.trust.push_back(time);
}

}  // namespace

StretchesOff stretches_off(const std::vector<FlowStream>& streams) {
    AddressRanges ran;
    for (const FlowStream& s : streams)
        for (const FlowCounts* counts : s.sink->counts())
            for (std::size_t block = 0; block < counts->known.blocks.size(); ++block)
                if ((counts->times[2 * block] | counts->times[2 * block + 1]) != 0)
                    ran.add(counts->known.places[block].address, counts->known.blocks[block].bytes, 0);
    StretchesOff out;
    for (const FlowStream& s : streams)
        for (const FlowCounts* counts : s.sink->counts())
            for (std::size_t i = 0; i < counts->losses().size(); ++i) {
                const Loss& loss = counts->losses()[i];
                if (!loss.is_stretch_off()) continue;
                out.all += counts->loss_times()[i];
                if (loss.how == Loss::From::place && ran.find(loss.from)) out.not_by_address += counts->loss_times()[i];
            }
    return out;
}

void fill_flow_answers(Answers& answers, const std::vector<FlowStream>& streams, const FlowAnswersOptions& options) {
    answers.metrics.push_back({"instructions", "instructions"});
    if (options.cycles) {
        answers.metrics.push_back({"cycles", "cycles"});
        answers.metrics.back().note = how_spread(cycle_counts(streams));
    }
    for (Metric& metric : answers.metrics) {
        metric.exact = options.stretches == 0;
        metric.stretches = options.stretches;
    }
    // Cycles of code that was not traced are counted for the code after it, so the sum is no lower bound.
    if (options.cycles && cycle_counts(streams).off != 0) {
        Metric& cycles = answers.metrics.back();
        cycles.exact = false;
        cycles.note += fmt::format("{}counts include cycles in which tracing was off", cycles.note.empty() ? "" : "; ");
    }
    if (streams.empty()) return;
    FlowFunctions functions(answers, streams, options);
    fill_calls(functions);
    fill_edges(functions);
    fill_exceptions(functions);
    fill_levels(functions);
    fill_timeline(functions);
    if (options.instructions) {
        FlowInstructions code(functions);
        find_unobserved(functions, code);
        fill_instructions(functions, code);
        fill_loops(functions, code);
    }
    fill_trust(functions);
}

}  // namespace waymark::analysis
