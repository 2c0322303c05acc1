#include "waymark/pipeline/answers_file.h"

#include <algorithm>
#include <iterator>
#include <memory>

#include "waymark/analysis/dpu_ratios.h"
#include "waymark/answers/file.h"
#include "waymark/answers/metric_sets.h"
#include "waymark/answers/parts.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/capture/placed_file.h"

namespace waymark::pipeline {

Result<answers::Answers> read_answers_file(const std::string& path) {
    WM_ASSIGN_OR_RETURN(answers::Answers out, read_summand(path));
    finish_sum(out);
    return out;
}

void finish_sum(answers::Answers& sum) {
    const bool of_several = answers::have_sets(sum.metrics);
    answers::scale_metrics(sum);
    if (of_several && sum.unit == "DPU") analysis::add_dpu_ratios(sum);
    std::ranges::move(answers::captures_added_again(sum), std::back_inserter(sum.health));
}

Result<answers::Answers> read_summand(const std::string& path) {
    WM_ASSIGN_OR_RETURN(const std::unique_ptr<capture::ByteStream> stream, capture::open_bytes(path));
    constexpr std::uint64_t most = std::uint64_t{1} << 36;
    WM_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> bytes, capture::read_all(*stream, most));
    return answers::read_answers(bytes, path);
}

Result<std::uint64_t> write_answers_file(const answers::Answers& answers, const std::string& path,
                                         const std::vector<std::string>& inputs) {
    WM_ASSIGN_OR_RETURN(const std::unique_ptr<capture::FileSink> file, capture::FileSink::open(path, inputs));
    class Counting final : public ByteSink {
    public:
        explicit Counting(ByteSink& sink) : sink_(sink) {}
        void write(Bytes bytes) override {
            count += bytes.size();
            sink_.write(bytes);
        }
        std::uint64_t count = 0;

    private:
        ByteSink& sink_;
    } sink(*file);
    answers::write_answers(answers, sink);
    WM_RETURN_IF_ERROR(file->commit());
    return sink.count;
}

void keep_what_is_asked(answers::Answers& a, const FlowAnswersOptions& options) {
    // Without calls, a function costs what its instructions cost (answers::function_costs).
    const bool has_calls = !a.calls.empty();
    if (!options.calls) a.calls.clear();
    if (!options.timeline) a.timeline = {};
    if (!options.ranges) {
        a.ranges.clear();
        a.jumps.clear();
    }
    if (!options.instructions) {
        if (has_calls) a.instructions.clear();
        a.statements.clear();
        a.lines.clear();
        a.branches.clear();
        a.blocks.clear();
        a.loops.clear();
    }
    if (!options.all_functions) {
        std::vector<bool> entered(a.functions.size());
        for (const answers::Instruction& i : a.instructions)
            if (i.seen == answers::Seen::executed && i.function < entered.size()) entered[i.function] = true;
        const auto never = [&](const auto& row) { return row.function < entered.size() && !entered[row.function]; };
        std::erase_if(a.instructions, never);
        std::erase_if(a.statements, never);
        std::erase_if(a.branches, never);
        // A line belongs to the first function with code for it, which need not be the function that ran.
        std::erase_if(a.lines, [&](const answers::Line& l) { return l.seen != answers::Seen::executed && never(l); });
    }
    if (!options.inlined) {
        a.inlined.clear();
        for (answers::Instruction& i : a.instructions) i.inlined = answers::none;
    }
    if (!options.disassembly)
        for (answers::Instruction& i : a.instructions) i.text.clear();
}

}  // namespace waymark::pipeline
