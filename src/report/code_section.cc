#include <algorithm>
#include <map>
#include <utility>

#include "section_parts.h"
#include "sections.h"
#include "waymark/core/numbers.h"
#include "waymark/core/saturating.h"

namespace waymark::report {

using namespace answers;

namespace {

/// Selects the functions whose instructions are kept: the most costly, up to `most` instructions.
std::vector<bool> costly_functions(const Answers& answers, const std::vector<const Instruction*>& instructions,
                                   Limit most) {
    struct Sum {
        std::uint64_t cost{}, instructions{};
        std::size_t function{};
    };
    std::vector<Sum> sums(answers.functions.size());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i].function = i;
    for (const Instruction* i : instructions) {
        if (i->function >= sums.size()) continue;
        add_saturating(sums[i->function].cost, i->costs.empty() ? i->times : i->costs[0]);
        ++sums[i->function].instructions;
    }
    std::stable_sort(sums.begin(), sums.end(), [](const Sum& a, const Sum& b) { return a.cost > b.cost; });
    std::vector<bool> kept(answers.functions.size());
    std::uint64_t used = 0;
    for (const Sum& sum : sums) {
        if (used + sum.instructions > most) break;
        used += sum.instructions;
        kept[sum.function] = true;
    }
    return kept;
}

/// The inlined calls that contain instructions, renumbered without the calls of omitted instructions.
class InlinedCalls {
public:
    InlinedCalls(const Answers& answers, const std::vector<const Instruction*>& instructions)
        : number_(answers.inlined.size(), -1) {
        for (const Instruction* i : instructions)
            for (Index at = i->inlined; at < number_.size() && number_[at] < 0; at = answers.inlined[at].parent)
                number_[at] = 0;
        // Parents come before their children in both orders.
        for (std::size_t at = 0; at < number_.size(); ++at) {
            if (number_[at] < 0) continue;
            number_[at] = static_cast<std::int64_t>(calls_.size());
            calls_.push_back(&answers.inlined[at]);
        }
    }
    [[nodiscard]] bool empty() const { return calls_.empty(); }
    [[nodiscard]] std::int64_t of(Index at) const { return at < number_.size() ? number_[at] : -1; }
    void write(Json& json, SharedTexts& texts) const {
        json.key("inlined").begin_object();
        json.column("parent", calls_, [&](const InlinedCall* c) { return of(c->parent); });
        json.column("name", calls_, [&](const InlinedCall* c) { return texts.add(c->name); });
        json.column("source", calls_, [](const InlinedCall* c) { return index(c->source); });
        json.column("line", calls_, [](const InlinedCall* c) { return c->line; });
        json.end_object();
    }

private:
    std::vector<std::int64_t> number_;  // new number by index in the answers; -1: without instructions
    std::vector<const InlinedCall*> calls_;
};

/// Writes the lines of a text within `near` lines of a line with code, as [first line, text] of each stretch.
void write_text(Json& json, const SourceFile& source, const std::vector<std::uint32_t>& with_code, std::uint32_t near) {
    const auto lines = static_cast<std::uint32_t>(source.lines.size());
    std::uint32_t written = 0;
    json.begin_array();
    for (std::size_t i = 0; i < with_code.size() && written < lines;) {
        const std::uint32_t first = std::max(written + 1, with_code[i] > near ? with_code[i] - near : 1);
        std::uint32_t last = std::min(lines, with_code[i] + near);
        for (++i; i < with_code.size() && with_code[i] <= last + near + 1; ++i)
            last = std::min(lines, with_code[i] + near);
        std::string text;
        for (std::uint32_t line = first; line <= last; ++line) {
            if (line != first) text += '\n';
            text += source.lines[line - 1];
        }
        if (first <= last) {
            json.number(first);
            json.string(text);
        }
        written = std::max(written, last);
    }
    json.end_array();
}

}  // namespace

PageSection code_section(const Answers& answers, Limit most_instructions) {
    const std::vector<bool> looked = looked_into(answers);
    std::vector<const Instruction*> instructions;
    for (const Instruction& i : answers.instructions)
        if (i.function >= looked.size() || looked[i.function]) instructions.push_back(&i);
    const std::size_t of_all = instructions.size();
    const bool all = of_all <= most_instructions && answers.lines.size() <= most_instructions;
    const std::vector<bool> of = costly_functions(answers, instructions, all ? of_all : most_instructions);
    if (!all)
        std::erase_if(instructions, [&](const Instruction* i) { return i->function >= of.size() || !of[i->function]; });
    std::vector<const Line*> lines;
    for (const Line& l : answers.lines)
        if (all || answers.instructions.empty() || (l.function < of.size() && of[l.function])) lines.push_back(&l);
    if (lines.size() > most_instructions) lines.resize(most_instructions);

    Json json;
    json.begin_object();
    json.key("instructions").begin_object();
    json.addresses("address", instructions, [](const Instruction* i) { return i->address; });
    json.column("bytes", instructions, [](const Instruction* i) { return unsigned{i->bytes}; });
    json.column("isa", instructions, [](const Instruction* i) { return static_cast<int>(i->isa); });
    json.column("seen", instructions, [](const Instruction* i) { return static_cast<int>(i->seen); });
    json.column("function", instructions, [](const Instruction* i) { return index(i->function); });
    json.column("source", instructions, [](const Instruction* i) { return index(i->source); });
    json.column("line", instructions, [](const Instruction* i) { return i->line; });
    json.column("times", instructions, [](const Instruction* i) { return i->times; });
    const bool costs =
        std::any_of(instructions.begin(), instructions.end(), [](const Instruction* i) { return !i->costs.empty(); });
    if (costs)
        write_costs(json, "costs", answers, instructions,
                    [](const Instruction* i) -> const Costs& { return i->costs; });
    SharedTexts texts;
    json.column("text", instructions, [&](const Instruction* i) { return texts.add(i->text); });
    const InlinedCalls inlined(answers, instructions);
    if (!inlined.empty())
        json.column("inlined", instructions, [&](const Instruction* i) { return inlined.of(i->inlined); });
    json.end_object();
    if (!inlined.empty()) inlined.write(json, texts);
    texts.write(json, "texts");

    json.key("lines").begin_object();
    json.column("source", lines, [](const Line* l) { return index(l->source); });
    json.differences("line", lines, [](const Line* l) { return l->line; });
    json.column("seen", lines, [](const Line* l) { return static_cast<int>(l->seen); });
    json.column("function", lines, [](const Line* l) { return index(l->function); });
    json.column("times", lines, [](const Line* l) { return l->times; });
    write_costs(json, "costs", answers, lines, [](const Line* l) -> const Costs& { return l->costs; });
    json.end_object();

    std::uint64_t characters = 0;
    for (const SourceFile& source : answers.sources)
        for (const std::string& line : source.lines) characters += line.size() + 1;
    constexpr std::uint64_t characters_whole = 4'000'000;
    const bool whole = all && characters <= characters_whole;
    std::vector<std::vector<std::uint32_t>> with_code(answers.sources.size());
    for (const Line* l : lines)
        if (l->source < with_code.size() && l->line != 0) with_code[l->source].push_back(l->line);
    json.key("sources").begin_array();
    for (std::size_t i = 0; i < answers.sources.size(); ++i) {
        std::vector<std::uint32_t>& code = with_code[i];
        std::sort(code.begin(), code.end());
        const auto length = static_cast<std::uint32_t>(answers.sources[i].lines.size());
        write_text(json, answers.sources[i], code, whole ? length : 30);
    }
    json.end_array();
    json.end_object();

    std::string left_out;
    if (!all)
        left_out = fmt::format("Instructions and lines belong to the most costly functions: {} of {} instructions.",
                               grouped(instructions.size()), grouped(of_all));
    if (!whole) left_out += fmt::format("{}Sources are shown near code that could run.", left_out.empty() ? "" : " ");
    return {json.str(), left_out};
}

}  // namespace waymark::report
