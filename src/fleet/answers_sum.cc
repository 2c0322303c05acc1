#include "waymark/fleet/answers_sum.h"

#include <algorithm>
#include <utility>

namespace waymark::fleet {

namespace {

template <class Row>
std::uint64_t memory_of_rows(const std::vector<Row>& rows) {
    return rows.capacity() * sizeof(Row);
}
template <class Row>
std::uint64_t memory_with_costs(const std::vector<Row>& rows, std::size_t metrics) {
    constexpr std::uint64_t allocation = 16;
    return memory_of_rows(rows) + rows.size() * (allocation + metrics * sizeof(std::uint64_t));
}

}  // namespace

std::uint64_t memory_of(const answers::Answers& a) {
    const std::size_t metrics = a.metrics.size();
    std::uint64_t sum = sizeof a;
    sum += memory_of_rows(a.images) + memory_of_rows(a.sources) + memory_of_rows(a.inlined) +
           memory_of_rows(a.branches) + memory_of_rows(a.blocks) + memory_of_rows(a.ranges) + memory_of_rows(a.jumps) +
           memory_of_rows(a.parts) + memory_of_rows(a.health) + memory_of_rows(a.summary) +
           memory_of_rows(a.timeline.slices) + memory_of_rows(a.timeline.marks);
    sum += memory_with_costs(a.instructions, metrics) + memory_with_costs(a.lines, metrics) +
           memory_with_costs(a.loops, metrics) + memory_with_costs(a.calls, metrics);
    sum += memory_of_rows(a.edges) + memory_of_rows(a.functions);
    for (const answers::Function& f : a.functions)
        sum += f.name.capacity() + f.linkage_name.capacity() + f.declared_name.capacity();
    for (const answers::Instruction& i : a.instructions) sum += i.text.capacity();
    return sum;
}

void AnswersSum::add(answers::Answers next) {
    waiting_bytes_ += memory_of(next);
    waiting_.push_back(std::move(next));
    constexpr std::size_t most_waiting = 64;
    if (waiting_.size() > 1 && (waiting_bytes_ >= most_ || waiting_.size() > most_waiting)) add_up();
}

answers::Answers AnswersSum::take() {
    add_up();
    answers::Answers out = std::move(waiting_.front());
    waiting_.clear();
    waiting_bytes_ = 0;
    return out;
}

void AnswersSum::add_up() {
    std::vector<const answers::Answers*> all;
    for (const answers::Answers& a : waiting_) all.push_back(&a);
    answers::Answers sum = answers::merged(all);
    waiting_.clear();
    waiting_.push_back(std::move(sum));
    waiting_bytes_ = 0;
}

}  // namespace waymark::fleet
