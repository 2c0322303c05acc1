#include "flow_instructions.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace waymark::analysis {

FlowInstructions::FlowInstructions(FlowFunctions& functions) : functions_(functions) {
    find_ran();
    number_code();
}

FlowInstructions::Code* FlowInstructions::code_at(const FlowStream& s, const isa::Space& space, std::uint64_t address,
                                                  isa::Isa isa) {
    const CodeKey key{address, isa};
    if (const std::uint32_t known = number_found_.find(key); known != Numbers::none) return &code_[known];
    const auto found = isa::decode_at(s.sink->code().memory(), space, {address}, isa, s.decode);
    if (!found) return nullptr;
    number_found_.add(key, static_cast<std::uint32_t>(code_.size()));
    found_.push_back(key);
    Code& code = code_.emplace_back();
    code.what = *found;
    code.function = functions_.at(address);
    return &code;
}

void FlowInstructions::find_ran() {
    struct Begin {
        const FlowStream* stream;
        isa::Space space;
        std::vector<CodeKey> from;
    };
    std::map<CodeFunction, Begin> functions;
    for (const auto& [key, sum] : functions_.blocks()) {
        const flow::Block& b = sum.block;
        const isa::Space space = space_of(sum.stream->sink->code().memory(), b);
        const std::uint64_t times = sum.times[0] + sum.times[1];
        const std::uint64_t each = b.instructions == 0 ? 0 : sum.cycles / b.instructions;
        std::uint64_t cycles = sum.cycles;
        for (std::uint64_t at = b.start; at < b.start + b.bytes;) {
            Code* code = code_at(*sum.stream, space, at, b.isa);
            if (code == nullptr) break;
            code->times += times;
            const bool last = at + code->what.bytes >= b.start + b.bytes;
            // Cycles come with a block; its instructions share them.
            code->cycles += last ? cycles : each;
            cycles -= each;
            if (last && b.end != flow::End::not_a_waypoint) {
                code->not_taken += sum.times[0];
                code->taken += sum.times[1];
            }
            Begin& begin = functions.try_emplace(code->function, Begin{sum.stream, space, {}}).first->second;
            begin.from.emplace_back(at, b.isa);
            at += code->what.bytes;
        }
    }
    for (auto& [function, begin] : functions) find_rest(function, *begin.stream, begin.space, std::move(begin.from));
    if (functions_.options().all_functions && !functions.empty()) {
        const Begin& any = functions.begin()->second;
        for (const image::Symbol& symbol : functions_.symbols().all()) {
            if (symbol.kind != image::SymbolKind::function || symbol.bytes == 0) continue;
            const CodeFunction function = functions_.at(symbol.address.value);
            if (function != CodeFunction{Kind::symbol, symbol.address.value} || functions.contains(function) ||
                !never_entered_.insert(function).second)
                continue;
            find_rest(function, *any.stream, any.space, {{symbol.address.value, symbol.isa}});
        }
    }
}

/// Lists the instructions of a function that did not run. If the file says which bytes are code, all of them; otherwise
/// the instructions that executed code can lead to.
void FlowInstructions::find_rest(const CodeFunction& function, const FlowStream& s, const isa::Space& space,
                                 std::vector<CodeKey> waiting) {
    if (function.kind == Kind::symbol) {
        const auto symbol = functions_.symbols().find({function.value});
        const std::uint64_t end = function.value + (symbol ? symbol->symbol.bytes : 0);
        // A damaged file may claim a function as large as memory. Listing then stops after this many unknown bytes.
        constexpr std::uint64_t most_unknown = 65536;
        std::uint64_t known_end = function.value, at = function.value;
        while (at < end && at - known_end < most_unknown) {
            const auto contents = functions_.symbols().contents({at});
            if (!contents) break;
            const auto isa = image::instruction_set(*contents);
            // Symbols may be nested: a stretch that was listed for one is not walked again for each symbol around it.
            if (const auto listed = isa ? listed_at({at, *isa}) : listed_.end(); listed != listed_.end()) {
                known_end = std::max(known_end, listed->second.known_end);
                at = listed->second.end;
                continue;
            }
            const Code* code = isa ? code_at(s, space, at, *isa) : nullptr;
            at += code != nullptr ? code->what.bytes : isa && isa != isa::Isa::t32 ? 4U : 2U;
            if (code != nullptr) known_end = at;
        }
        add_listed(function.value, {at, known_end});
    }
    while (!waiting.empty()) {
        const CodeKey key = waiting.back();
        waiting.pop_back();
        Code* const code = code_at(s, space, key.first, key.second);
        if (code == nullptr || std::exchange(code->walked, true)) continue;
        for (const CodeKey& to : successors(key, *code))
            if (may_walk_to(to, function)) waiting.push_back(to);
    }
}

bool FlowInstructions::may_walk_to(const CodeKey& to, const CodeFunction& function) {
    const std::uint32_t known = number_found_.find(to);
    const Code* const code = known == Numbers::none ? nullptr : &code_[known];
    if (code != nullptr ? code->walked || code->function != function : functions_.at(to.first) != function)
        return false;
    return functions_.symbols().contents({to.first}) != image::Contents::data;
}

/// The listed stretch that contains an instruction, or else the next one after it; end() if there is none.
std::map<std::uint64_t, FlowInstructions::Listed>::const_iterator FlowInstructions::listed_at(
    const CodeKey& key) const {
    const auto behind = listed_.upper_bound(key.first);
    if (behind == listed_.begin()) return listed_.end();
    const auto found = std::prev(behind);
    if (key.first >= found->second.end) return listed_.end();
    return key.first >= found->second.known_end || number_found_.find(key) != Numbers::none ? found : listed_.end();
}

void FlowInstructions::add_listed(std::uint64_t first, Listed stretch) {
    if (stretch.end <= first) return;
    auto at = listed_.lower_bound(first);
    if (at != listed_.begin() && std::prev(at)->second.end >= first) first = (--at)->first;
    while (at != listed_.end() && at->first <= stretch.end) {
        stretch.end = std::max(stretch.end, at->second.end);
        stretch.known_end = std::max(stretch.known_end, at->second.known_end);
        at = listed_.erase(at);
    }
    listed_[first] = stretch;
}

/// Where control may go next, as far as the instruction shows.
FlowInstructions::Successors FlowInstructions::successors(const CodeKey& key, const Code& code) {
    Successors out;
    const isa::Instruction& i = code.what;
    if (i.undefined) return out;
    const bool branch = i.waypoint == isa::Waypoint::direct || i.waypoint == isa::Waypoint::indirect;
    // The trace shows a branch of an IT block only if it was not taken.
    if (!branch || i.link || i.conditional || code.not_taken != 0)
        out.keys[out.count++] = {key.first + i.bytes, key.second};
    if (i.waypoint == isa::Waypoint::direct && !i.link) out.keys[out.count++] = {i.target.value, i.target_isa};
    return out;
}

void FlowInstructions::number_code() {
    std::vector<std::pair<CodeKey, std::uint32_t>> order;
    order.reserve(found_.size());
    for (const CodeKey& key : found_) order.emplace_back(key, static_cast<std::uint32_t>(order.size()));
    std::sort(order.begin(), order.end());
    list_.reserve(order.size());
    keys_.reserve(order.size());
    std::vector<std::uint32_t>* of = nullptr;
    // Where code ran, its bytes are no other instructions: of another instruction set, or T32 ones that begin amid
    // them.
    const auto is_other_code = [&](std::size_t i) {
        const CodeKey& key = order[i].first;
        const Code& code = code_[order[i].second];
        if (code.times != 0) return false;
        const auto overlaps = [&](std::size_t j) {
            const CodeKey& other = order[j].first;
            const Code& ran = code_[order[j].second];
            return ran.times != 0 && other.first < key.first + code.what.bytes &&
                   key.first < other.first + ran.what.bytes;
        };
        constexpr std::uint64_t longest = 4;
        for (std::size_t j = i; j-- != 0 && order[j].first.first + longest > key.first;)
            if (overlaps(j)) return true;
        for (std::size_t j = i + 1; j < order.size() && order[j].first.first < key.first + longest; ++j)
            if (overlaps(j)) return true;
        return false;
    };
    for (std::size_t i = 0; i < order.size(); ++i) {
        if (is_other_code(i)) continue;
        const auto& [key, index] = order[i];
        Code& code = code_[index];
        const auto n = static_cast<std::uint32_t>(list_.size());
        if (of == nullptr || code.function != list_.back()->function) of = &by_function_[code.function];
        of->push_back(n);
        list_.push_back(&code);
        keys_.push_back(key);
    }
    found_ = {};
    number_found_ = {};
}

/// Only lost flow asks for the ways between instructions.
void FlowInstructions::link() {
    if (!next_.begins.empty()) return;
    next_.begins.push_back(0);
    prev_.begins.assign(list_.size() + 1, 0);
    for (std::uint32_t n = 0; n < list_.size(); ++n) {
        for (const CodeKey& to : successors(keys_[n], *list_[n])) {
            const auto found = std::lower_bound(keys_.begin(), keys_.end(), to);
            const auto number = static_cast<std::uint32_t>(found - keys_.begin());
            if (found == keys_.end() || *found != to || list_[number]->function != list_[n]->function) continue;
            next_.to.push_back(number);
            ++prev_.begins[number];
        }
        next_.begins.push_back(next_.to.size());
    }
    // First `begins` has the end of each instruction's predecessors. As predecessors are filled in, from the last one
    // to the first, it becomes their beginning.
    std::partial_sum(prev_.begins.begin(), prev_.begins.end(), prev_.begins.begin());
    prev_.to.resize(next_.to.size());
    for (auto n = static_cast<std::uint32_t>(list_.size()); n-- != 0;)
        for (std::size_t i = next_.begins[n + 1]; i-- != next_.begins[n];) prev_.to[--prev_.begins[next_.to[i]]] = n;
}

std::optional<std::uint32_t> FlowInstructions::number(std::uint64_t address) const {
    const auto at = std::lower_bound(keys_.begin(), keys_.end(), CodeKey{address, isa::Isa{}});
    if (at == keys_.end() || at->first != address) return std::nullopt;
    return static_cast<std::uint32_t>(at - keys_.begin());
}

}  // namespace waymark::analysis
