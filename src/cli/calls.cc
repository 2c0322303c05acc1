#include "calls.h"

#include <vector>

namespace waymark::cli {

namespace {

/// `████████░░░░░░░░░░░░  40.0 %`: a bar of twenty cells and the number.
std::string share(std::uint64_t part, std::uint64_t all) {
    constexpr std::uint64_t cells = 20;
    const std::uint64_t full = all == 0 ? 0 : (part * cells + all / 2) / all;
    std::string out;
    for (std::uint64_t i = 0; i < cells; ++i) out += i < full ? "█" : "·";
    return out +
           fmt::format(" {:>5.1f}%", all == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(all));
}

}  // namespace

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
                          share(self, inclusive[0]));
            continue;
        }
        depth[i] = node.parent == 0 ? 0 : depth[node.parent] + 1;
        out.print("{:>14} {:>14} {:>10}  {}  {:{}}{}\n", grouped(inclusive[i]), grouped(self), grouped(node.calls),
                  share(inclusive[i], inclusive[0]), "", 2 * depth[i], answers.functions[node.function].name);
    }
}

}  // namespace waymark::cli
