#include <algorithm>
#include <map>
#include <utility>

#include "section_parts.h"
#include "sections.h"
#include "waymark/core/numbers.h"
#include "waymark/core/saturating.h"

namespace waymark::report {

using namespace answers;

PageSection branches_section(const Answers& answers, Limit most_branches) {
    const std::vector<bool> looked = looked_into(answers);
    std::vector<const Branch*> known, branches;
    for (const Branch& b : answers.branches)
        if (b.function >= looked.size() || looked[b.function]) known.push_back(&b);
    const auto kept = greatest(known.size(), most_branches, [&](std::size_t a, std::size_t b) {
        return known[a]->taken + known[a]->not_taken > known[b]->taken + known[b]->not_taken;
    });
    for (const std::size_t i : kept) branches.push_back(known[i]);

    const auto hot = greatest(answers.blocks.size(), most_branches, [&](std::size_t a, std::size_t b) {
        const Block &one = answers.blocks[a], &other = answers.blocks[b];
        return one.times * one.instructions > other.times * other.instructions;
    });
    std::vector<const Block*> blocks;
    for (const std::size_t i : hot) blocks.push_back(&answers.blocks[i]);
    const auto instruction_at = [&](std::uint64_t address) -> const Instruction* {
        const auto found = std::lower_bound(answers.instructions.begin(), answers.instructions.end(), address,
                                            [](const Instruction& i, std::uint64_t at) { return i.address < at; });
        return found != answers.instructions.end() && found->address == address ? &*found : nullptr;
    };

    // The page shows the callers and callees of a function, so edges between the same two functions are merged. A jump
    // to another function's beginning is a tail call, or a call if the unit does not distinguish calls from jumps.
    const auto is_call = [&](const Edge& e) {
        if (e.from_function >= answers.functions.size() || e.to_function >= answers.functions.size()) return false;
        switch (e.kind) {
            case Branch::Kind::call:
            case Branch::Kind::indirect_call: return true;
            case Branch::Kind::function_return: return false;
            default: return e.from_function != e.to_function && e.to == answers.functions[e.to_function].address;
        }
    };
    struct Pair {
        std::uint64_t times{};
    };
    std::map<std::pair<Index, Index>, Pair> pairs;
    for (const Edge& edge : answers.edges)
        if (is_call(edge)) add_saturating(pairs[{edge.from_function, edge.to_function}].times, edge.times);

    Json json;
    json.begin_object();
    json.key("branches").begin_object();
    json.addresses("address", branches, [](const Branch* b) { return b->address; });
    json.addresses("target", branches, [](const Branch* b) { return b->target; });
    json.column("kind", branches, [](const Branch* b) { return static_cast<int>(b->kind); });
    json.column("function", branches, [](const Branch* b) { return index(b->function); });
    json.column("source", branches, [](const Branch* b) { return index(b->source); });
    json.column("line", branches, [](const Branch* b) { return b->line; });
    json.column("taken", branches, [](const Branch* b) { return b->taken; });
    json.column("notTaken", branches, [](const Branch* b) { return b->not_taken; });
    json.column("seenTaken", branches, [](const Branch* b) { return static_cast<int>(b->seen_taken); });
    json.column("seenNotTaken", branches, [](const Branch* b) { return static_cast<int>(b->seen_not_taken); });
    json.column("mispredicted", branches, [](const Branch* b) {
        return b->mispredicted ? static_cast<std::int64_t>(*b->mispredicted) : std::int64_t{-1};
    });
    json.end_object();
    json.key("edges").begin_object();
    json.column("from", pairs, [](const auto& p) { return p.first.first; });
    json.column("to", pairs, [](const auto& p) { return p.first.second; });
    json.column("times", pairs, [](const auto& p) { return p.second.times; });
    json.end_object();
    json.key("blocks").begin_object();
    json.addresses("address", blocks, [](const Block* b) { return b->address; });
    json.column("bytes", blocks, [](const Block* b) { return b->bytes; });
    json.column("instructions", blocks, [](const Block* b) { return b->instructions; });
    json.column("function", blocks, [](const Block* b) { return index(b->function); });
    json.column("times", blocks, [](const Block* b) { return b->times; });
    json.column("source", blocks, [&](const Block* b) {
        const Instruction* first = instruction_at(b->address);
        return first == nullptr ? std::int64_t{-1} : index(first->source);
    });
    json.column("line", blocks, [&](const Block* b) {
        const Instruction* first = instruction_at(b->address);
        return first == nullptr ? 0U : first->line;
    });
    json.end_object();
    json.end_object();
    std::string left_out;
    if (kept.size() < known.size())
        left_out =
            fmt::format("Branches are the {} that ran most often, of {}.", grouped(kept.size()), grouped(known.size()));
    if (hot.size() < answers.blocks.size())
        left_out += fmt::format("{}Blocks are the {} in which most instructions ran, of {}.",
                                left_out.empty() ? "" : " ", grouped(hot.size()), grouped(answers.blocks.size()));
    return {json.str(), left_out};
}

}  // namespace waymark::report
