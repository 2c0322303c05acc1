#include "waymark/stacks/decoder.h"

#include <algorithm>
#include <span>

#include "waymark/flow/blocks.h"

namespace waymark::stacks {

namespace {

using flow::ExceptionClass;
using flow::ExceptionType;

/// Indexed by BranchEntryType; further elements, for BranchEntryType::extended, by StackEntry::new_type.
constexpr std::array exception_types{
    ExceptionType{7, ExceptionClass::supervisor_call, "system call"},
    ExceptionType{12, ExceptionClass::irq, "interrupt"},
    ExceptionType{13, ExceptionClass::system_error, "SError"},
    ExceptionType{16, ExceptionClass::alignment, "alignment fault"},
    ExceptionType{17, ExceptionClass::data_abort, "data fault"},
    ExceptionType{18, ExceptionClass::prefetch_abort, "instruction fault"},
    ExceptionType{19, ExceptionClass::fiq, "FIQ"},
    ExceptionType{20, ExceptionClass::debug_halt, "debug halt"},
    ExceptionType{22, ExceptionClass::breakpoint, "debug exception of an instruction"},
    ExceptionType{23, ExceptionClass::watchpoint, "debug exception of data"},
    ExceptionType{32, ExceptionClass::transaction_failure, "transaction aborted"},
};
constexpr ExceptionType into_kernel{33, ExceptionClass::other, "entry to the kernel"};

const ExceptionType& exception_of(const StackEntry& entry) {
    const std::uint32_t number = entry.aborted                             ? 32
                                 : entry.type == BranchEntryType::extended ? 16U + entry.new_type
                                                                           : static_cast<std::uint32_t>(entry.type);
    const auto found = std::find_if(exception_types.begin(), exception_types.end(),
                                    [&](const ExceptionType& t) { return t.number == number; });
    return found == exception_types.end() ? into_kernel : *found;
}

bool is_branch(const isa::Instruction& what) {
    return what.waypoint == isa::Waypoint::direct || what.waypoint == isa::Waypoint::indirect;
}

}  // namespace

template <class Out>
void StackDecoder<Out>::feed(Bytes bytes) {
    held_.insert(held_.end(), bytes.begin(), bytes.end());
}

template <class Out>
void StackDecoder<Out>::reset(GapReason why) {
    end_stack();
    if (why != GapReason::stopped) out_.event(begin_, Gap{begin_, begin_, why});
}

template <class Out>
void StackDecoder<Out>::break_flow(Offset at) {
    if (!flows_) return;
    flows_ = false;
    out_.event(at, flow::TraceOn{flow::TraceOnReason::enabled});
}

template <class Out>
void StackDecoder<Out>::end_stack() {
    const std::size_t count = held_.size() / entry_bytes;
    const Offset end = begin_ + held_.size();
    if (count != 0) {
        const auto entry = [&](std::size_t i) {
            return capture::perf::parse_branch_entry(
                std::span<const std::uint8_t, entry_bytes>(held_.data() + i * entry_bytes, entry_bytes));
        };
        const auto offset = [&](std::size_t i) { return begin_ + i * entry_bytes; };
        space_ = code_.view({});
        flows_ = true;
        break_flow(begin_);
        flow::Context context;
        context.ns = true;
        context.aarch64 = config_.isa == isa::Isa::a64;
        out_.event(begin_, context);
        // Loops from the oldest to the newest entry. The code after one branch ran before the next branch was taken.
        std::optional<std::uint64_t> goes_on;
        for (std::size_t i = count; i-- != 0;) {
            const StackEntry e = entry(i);
            ++entries_;
            if (e.speculation == Speculation::wrong_path) {
                // The program never reached that place.
                goes_on.reset();
                break_flow(offset(i));
                continue;
            }
            if (e.from != 0 && goes_on)
                stretch(*goes_on, e, offset(i));
            else if (e.from != 0)
                branch_alone(e, offset(i));
            goes_on = e.to == 0 ? std::nullopt : std::optional(e.to);
            if (!goes_on || e.from == 0) break_flow(offset(i));
        }
        if (const StackEntry newest = entry(0); goes_on && newest.from != 0) arrive(newest, offset(0));
        flows_ = false;
    }
    if (const std::size_t rest = held_.size() % entry_bytes; rest != 0) {
        const Offset first{end.value - rest};
        out_.event(first, Gap{first, end, GapReason::incomplete_packet});
    }
    begin_ = end;
    held_.clear();
}

template <class Out>
bool StackDecoder<Out>::agrees(const isa::Instruction& branch, const StackEntry& entry) {
    return branch.waypoint == isa::Waypoint::indirect || entry.to == 0 || branch.target.value == entry.to;
}

template <class Out>
void StackDecoder<Out>::branch_alone(const StackEntry& entry, Offset at) {
    const auto what = isa::decode_at(code_, space_, {entry.from}, config_.isa, {});
    if (!what || !is_branch(*what) || !agrees(*what, entry)) return;
    out_.range(out_.table().intern(block(entry.from, entry.from + what->bytes, 1)) * 2 + 1, at);
    flows_ = true;
}

template <class Out>
void StackDecoder<Out>::interrupt(const StackEntry& entry, Offset at) {
    flow::Exception exception;
    exception.type = &exception_of(entry);
    exception.preferred_return = Address{entry.from};
    if (entry.to != 0) exception.vector = Address{entry.to};
    out_.event(at, exception);
    flows_ = true;
}

template <class Out>
void StackDecoder<Out>::stretch(std::uint64_t start, const StackEntry& end, Offset at) {
    const Walk& found = walk(start, end.from);
    const auto contradict = [&](flow::Conflict conflict, std::uint64_t where, std::uint64_t expected) {
        out_.event(at, flow::Inconsistency{conflict, {where}, {expected}});
        flows_ = false;
    };
    if (found.found == Walk::Found::nonsense) return contradict(found.conflict, found.where.value, end.from);
    const bool by_branch = found.found == Walk::Found::branch && !end.aborted && agrees(found.branch, end);
    const bool leaves =
        end.is_exception() || (capture::perf::is_kernel_address(end.to) && !capture::perf::is_kernel_address(end.from));
    if (found.found != Walk::Found::no_code && !by_branch && !leaves)
        return contradict(flow::Conflict::branch_disagrees,
                          found.found == Walk::Found::branch ? found.branch.target.value : end.from, end.to);
    for (const std::uint32_t edge : found.edges) out_.range(edge, at);
    if (found.found == Walk::Found::no_code) {
        out_.event(at, flow::NoMemory{found.where});
        out_.event(at, flow::Atoms{1, 0});
        flows_ = false;
        return;
    }
    flows_ = true;
    if (by_branch) return out_.range(*found.last * 2 + 1, at);
    // The interrupted code ran up to that instruction; whether the instruction itself completed is not known.
    if (found.before) out_.range(*found.before * 2, at);
    interrupt(end, at);
}

/// An indirect branch led there, so no block contains the target.
template <class Out>
void StackDecoder<Out>::arrive(const StackEntry& newest, Offset at) {
    const auto branch = isa::decode_at(code_, space_, {newest.from}, config_.isa, {});
    if (!flows_ || !branch || branch->waypoint != isa::Waypoint::indirect) return;
    if (code_.at({newest.to}, space_).bytes.empty()) return;
    out_.range(out_.table().intern(block(newest.to, newest.to, 0)) * 2, at);
}

template <class Out>
flow::Block StackDecoder<Out>::block(std::uint64_t start, std::uint64_t end, std::uint32_t instructions) const {
    flow::Block out;
    out.start = start;
    out.bytes = static_cast<std::uint32_t>(end - start);
    out.instructions = instructions;
    out.section = code_.at({start}, space_).section;
    out.isa = config_.isa;
    if (instructions != 1) return out;
    // A block with the branch as its only instruction.
    const auto what = isa::decode_at(code_, space_, {start}, config_.isa, {});
    if (!what || !is_branch(*what)) return out;
    using flow::Block;
    out.end = what->waypoint == isa::Waypoint::direct ? flow::End::direct : flow::End::indirect;
    out.target = what->target.value;
    out.last_bytes = what->bytes;
    out.flags = static_cast<std::uint8_t>(
        (what->link ? Block::link : 0) | (what->conditional ? Block::conditional : 0) |
        (what->function_return ? Block::function_return : 0) | (what->exception_return ? Block::exception_return : 0));
    return out;
}

template <class Out>
const typename StackDecoder<Out>::Walk& StackDecoder<Out>::walk(std::uint64_t from, std::uint64_t to) {
    constexpr std::size_t most_edges = 16 * most_remembered;
    if (const auto known = walks_.find({space_.number, from, to}); known != walks_.end()) return known->second;
    if (walks_.size() == most_remembered || walk_edges_ > most_edges) {
        walks_.clear();
        walk_edges_ = 0;
    }
    Walk& made = walks_[{space_.number, from, to}] = make_walk(from, to);
    walk_edges_ += made.edges.size();
    return made;
}

template <class Out>
typename StackDecoder<Out>::Walk StackDecoder<Out>::make_walk(std::uint64_t from, std::uint64_t to) const {
    Walk out;
    const auto contradiction = [&](flow::Conflict conflict, std::uint64_t where) {
        out.found = Walk::Found::nonsense;
        out.conflict = conflict;
        out.where = {where};
    };
    if (to < from) {
        contradiction(flow::Conflict::address_disagrees, from);
        return out;
    }
    if (to - from > config_.max_walk_bytes) {
        contradiction(flow::Conflict::runaway_walk, from);
        return out;
    }
    std::uint64_t start = from;
    std::uint32_t instructions = 0;
    const auto put = [&](std::uint64_t end, std::uint32_t count, const isa::Instruction* branch) {
        flow::Block b = block(start, end, 0);
        b.instructions = count;
        if (branch != nullptr) {
            const flow::Block last = block(end - branch->bytes, end, 1);
            b.end = last.end;
            b.target = last.target;
            b.last_bytes = last.last_bytes;
            b.flags = last.flags;
        }
        return out_.table().intern(b);
    };
    for (std::uint64_t at = from;;) {
        const auto what = at > to ? std::nullopt : isa::decode_at(code_, space_, {at}, config_.isa, {});
        if (at > to) {
            // The source of the branch is inside an instruction.
            contradiction(flow::Conflict::address_disagrees, at);
            return out;
        }
        if (!what || what->bytes == 0) {
            const bool nothing = code_.at({at}, space_).bytes.empty();
            if (!nothing) {
                contradiction(flow::Conflict::undefined_reached, at);
                return out;
            }
            if (instructions != 0) out.edges.push_back(put(at, instructions, nullptr) * 2);
            out.found = Walk::Found::no_code;
            out.where = {at};
            return out;
        }
        const std::uint64_t next = at + what->bytes;
        if (at == to) {
            if (instructions != 0) out.before = put(at, instructions, nullptr);
            out.found = is_branch(*what) ? Walk::Found::branch : Walk::Found::no_branch;
            out.branch = *what;
            if (is_branch(*what)) out.last = put(next, instructions + 1, &*what);
            return out;
        }
        ++instructions;
        if (is_branch(*what)) {
            if (!what->conditional || what->waypoint == isa::Waypoint::indirect) {
                contradiction(flow::Conflict::always_taken, at);
                return out;
            }
            out.edges.push_back(put(next, instructions, &*what) * 2);
            start = next;
            instructions = 0;
        }
        at = next;
    }
}

template class StackDecoder<flow::BatchWriter>;
template class StackDecoder<flow::CountWriter>;

}  // namespace waymark::stacks
