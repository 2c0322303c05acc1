#include "calls.h"

#include <vector>

#include "table.h"

namespace waymark::cli {

void print_calls(Output& out, const analysis::Answers& answers) {
    const std::vector<analysis::CallNode>& calls = answers.calls;
    out.print("{:>14} {:>14} {:>10}  {}\n", "instructions", "of these self", "calls", "share of all");
    std::vector<std::uint64_t> inclusive(calls.size());
    for (std::size_t i = calls.size(); i-- > 0;) {
        inclusive[i] += calls[i].self[0];
        if (calls[i].parent != analysis::none) inclusive[calls[i].parent] += inclusive[i];
    }
    std::vector<unsigned> depth(calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i) {
        const analysis::CallNode& node = calls[i];
        const std::uint64_t self = node.self[0];
        if (i == 0) {
            if (self != 0)
                out.print("{:>14} {:>14} {:>10}  {}  (where no function is known)\n", grouped(self), grouped(self), "",
                          bar(self, inclusive[0]));
            continue;
        }
        depth[i] = node.parent == 0 ? 0 : depth[node.parent] + 1;
        out.print("{:>14} {:>14} {:>10}  {}  {:{}}{}\n", grouped(inclusive[i]), grouped(self), grouped(node.calls),
                  bar(inclusive[i], inclusive[0]), "", 2 * depth[i], answers.functions[node.function].name);
    }
}

}  // namespace waymark::cli
