/// Makes answers files as captures of one large program give them, for bench/fleet.sh.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/random.h"
#include "waymark/answers/file.h"

namespace {

using namespace waymark;
using answers::Index;

constexpr std::uint64_t program_address = 0x40'0000;
constexpr unsigned instructions_of_function = 20, functions_of_source = 20;

/// The common part of a function in all captures: nothing random.
struct MadeFunction {
    Index number;
    [[nodiscard]] std::uint64_t address() const {
        return program_address + std::uint64_t{4} * instructions_of_function * number;
    }
    [[nodiscard]] std::string linkage_name() const {
        return fmt::format("_ZN7project{}module{:03}{}function{:05}ERKNS_7contextE", 9, number / 100, 13, number);
    }
    [[nodiscard]] std::string name() const {
        return fmt::format("project::module{:03}::function{:05}(project::context const&)", number / 100, number);
    }
};

answers::Answers one_capture(std::uint32_t capture, std::uint32_t functions, std::uint32_t ran) {
    synthetic::Random random(capture);
    answers::Answers a;
    a.capture = fmt::format("captures/{:05}/perf.data", capture);
    a.unit = "ETM";
    a.version = "bench";
    a.trace_bytes = 10'000'000 + capture;
    a.metrics.push_back({"instructions", "instructions"});
    a.images.push_back({"server", "/usr/bin/server", std::string(40, 'a'), true, true});
    a.images.back().load_bias = std::uint64_t{0x1000} * random.below(1000);
    // Half of the code that runs is the same in all captures, the rest differs.
    std::vector<Index> chosen;
    for (std::uint32_t n = 0; n < ran / 2; ++n) chosen.push_back(n);
    for (std::uint32_t n = 0; n < ran - ran / 2; ++n) chosen.push_back(random.below(functions));
    std::sort(chosen.begin(), chosen.end());
    chosen.erase(std::unique(chosen.begin(), chosen.end()), chosen.end());
    const std::uint64_t bias = a.images[0].load_bias;
    a.calls.push_back({answers::none, answers::none, answers::CallNode::Kind::root, 1, {0}});
    Index source = answers::none, source_number = answers::none;
    for (const Index number : chosen) {
        const MadeFunction made{number};
        if (number / functions_of_source != source_number) {
            source_number = number / functions_of_source;
            source = static_cast<Index>(a.sources.size());
            a.sources.push_back(
                {fmt::format("/src/project/module{:03}/file{:05}.cc", number / 100, source_number), {}});
        }
        answers::Function f;
        f.name = made.name();
        f.linkage_name = made.linkage_name();
        f.image = 0;
        f.address = made.address() + bias;
        f.bytes = 4 * instructions_of_function;
        f.source = source;
        f.line = 10 + number % functions_of_source * 40;
        const auto index = static_cast<Index>(a.functions.size());
        a.functions.push_back(f);
        const std::uint64_t times = 1 + random.below(100'000);
        // Blocks of five instructions; each ends with a branch.
        for (unsigned i = 0; i < instructions_of_function; ++i) {
            const std::uint64_t address = f.address + 4 * i;
            answers::Instruction instruction;
            instruction.address = address;
            instruction.bytes = 4;
            instruction.isa = isa::Isa::a64;
            instruction.function = index;
            instruction.source = source;
            instruction.line = f.line + i / 2;
            instruction.times = times;
            a.instructions.push_back(instruction);
            if (i % 2 == 0) a.lines.push_back({source, f.line + i / 2, answers::Seen::executed, index, times, {times}});
            if (i % 5 == 0) {
                a.blocks.push_back({address, 20, 5, index, times});
                a.ranges.push_back({0, address - bias, address - bias + 16, isa::Isa::a64, 5, times, times / 2, 0});
            }
            if (i % 5 != 4) continue;
            const bool last = i + 1 == instructions_of_function;
            answers::Branch b;
            b.address = address;
            b.target = last ? 0 : f.address;
            b.kind = last ? answers::Branch::Kind::function_return : answers::Branch::Kind::conditional;
            b.function = index;
            b.source = source;
            b.line = instruction.line;
            b.taken = times / 2;
            b.not_taken = times - b.taken;
            a.branches.push_back(b);
            const std::uint64_t to = last ? program_address + bias : f.address;
            a.edges.push_back({address, to, index, last ? 0 : index, b.kind, b.taken, {}});
            a.jumps.push_back({0, address - bias, 0, to - bias, b.kind, b.taken});
        }
        if (random.below(4) == 0)
            a.loops.push_back({f.address, f.address + 16, index, source, f.line, times, 4 * times, {20 * times}, 1});
        // Two paths lead to each function.
        for (unsigned path = 0; path < 2; ++path)
            a.calls.push_back({random.below(static_cast<std::uint32_t>(a.calls.size())),
                               index,
                               answers::CallNode::Kind::call,
                               times / 2,
                               {10 * times}});
    }
    a.summary.push_back({"instructions", std::to_string(100 * ran)});
    return a;
}

bool number(std::string_view text, std::uint32_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    return error == std::errc{} && end == text.data() + text.size() && value != 0;
}

}  // namespace

int main(int argc, char** argv) {
    std::uint32_t files = 0, functions = 0, ran = 0;
    if (argc != 5 || !number(argv[2], files) || !number(argv[3], functions) || !number(argv[4], ran)) {
        std::fprintf(stderr,
                     "usage: made_answers FOLDER FILES FUNCTIONS RAN\n\n"
                     "Writes answers files of so many captures of a program with so many functions, of which each "
                     "capture ran RAN.\n");
        return 2;
    }
    for (std::uint32_t n = 0; n < files; ++n) {
        ByteCollector bytes;
        answers::write_answers(one_capture(n, functions, ran), bytes);
        const auto contents = bytes.take();
        std::ofstream out(fmt::format("{}/{:05}.answers", argv[1], n), std::ios::binary);
        out.write(reinterpret_cast<const char*>(contents.data()), static_cast<std::streamsize>(contents.size()));
        if (!out.flush()) {
            std::fprintf(stderr, "made_answers: cannot write into %s\n", argv[1]);
            return 1;
        }
    }
}
