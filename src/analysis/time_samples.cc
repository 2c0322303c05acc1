#include "waymark/analysis/time_samples.h"

#include <algorithm>
#include <utility>

#include "flow_functions.h"
#include "waymark/analysis/image_tables.h"
#include "waymark/isa/decode_instr.h"

namespace waymark::analysis {

using namespace answers;

std::uint64_t PcSamples::all() const {
    std::uint64_t out = asleep + not_permitted;
    for (const auto& [address, times] : at) out += times;
    return out;
}

void fill_pc_samples(Answers& answers, const PcSamples& samples, const image::Symbols& symbols,
                     const image::MemoryMap& memory, const FlowAnswersOptions& options, isa::Isa isa) {
    answers.metrics = {{.name = "samples", .unit = "samples", .exact = false}};
    // A stream without flow: functions are found by addresses alone.
    FlowCode code(symbols, memory);
    FlowSink sink(
        code, [](Offset at) { return at.value; }, FlowSink::Options{});
    sink.finish();
    const std::vector<FlowStream> streams{{.sink = &sink, .source = {}}};
    FlowFunctions functions(answers, streams, options);
    std::map<std::pair<Index, std::uint32_t>, Line> lines;
    for (const auto& [address, times] : samples.at) {
        Instruction out;
        out.address = address;
        out.seen = Seen::executed;
        out.function = functions.index_at(address);
        const auto symbol = symbols.find({address});
        out.isa = symbol && symbol->symbol.kind == image::SymbolKind::function ? symbol->symbol.isa : isa;
        out.bytes = isa::fetch(memory, {}, {address}, out.isa).bytes;
        out.costs = {times};
        if (FlowFunctions::File* file = functions.file_at(address))
            if (const auto line = file->info.line({address - file->bias})) {
                out.source = functions.source(line->file);
                out.line = line->line;
                out.discriminator = line->discriminator;
                Line& sum = lines[{out.source, out.line}];
                if (sum.function == none) sum.function = out.function;
                sum.source = out.source;
                sum.line = out.line;
                sum.seen = Seen::executed;
                if (sum.costs.empty()) sum.costs = {0};
                sum.costs[0] += times;
            }
        answers.instructions.push_back(std::move(out));
    }
    for (auto& [place, line] : lines) answers.lines.push_back(std::move(line));
    SyntheticTable synthetic(answers);
    for (const auto& [name, times] :
         {std::pair("[asleep]", samples.asleep), {"[not permitted]", samples.not_permitted}}) {
        if (times == 0) continue;
        Instruction out;
        out.isa = isa;
        out.seen = Seen::executed;
        out.function = synthetic.of(name);
        // Addresses above all code, one for each kind of such samples.
        out.address = ~std::uint64_t{0} - (samples.not_permitted != 0 && name == std::string_view("[asleep]") ? 1 : 0);
        out.costs = {times};
        answers.instructions.push_back(std::move(out));
    }
    place_images(answers, options.files);
}

}  // namespace waymark::analysis
