#include "waymark/analysis/dpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "waymark/isa/decode_instr.h"

namespace waymark::analysis {

using dpu::Element;
using dpu::ElementKind;
using dpu::Reading;

namespace {

constexpr std::size_t most_data = std::size_t{1} << 20;
const DpuCode::Function nowhere{0, "<code not known>"};

DpuCounts widened(const dpu::Counters& counters) {
    DpuCounts out{};
    std::copy(counters.begin(), counters.end(), out.begin());
    return out;
}

}  // namespace

void add(DpuCounts& to, const DpuCounts& counts) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += counts[i];
}

void DpuSpread::take(const DpuCounts& counts) {
    for (std::size_t i = 0; i < counts.size(); ++i) {
        least[i] = times == 0 ? counts[i] : std::min(least[i], counts[i]);
        most[i] = std::max(most[i], counts[i]);
    }
    add(sum, counts);
    ++times;
}

std::string to_text(const dpu::Context& context) {
    return fmt::format("{} {}", context.supervisor ? "supervisor" : "user", context.id);
}

std::string to_text(const DpuOwner& owner) {
    switch (owner.kind) {
        case DpuOwner::Kind::context:
        case DpuOwner::Kind::sampled:
        case DpuOwner::Kind::tail_context: return to_text(owner.context);
        case DpuOwner::Kind::between:
            return fmt::format("<between {} and {}>", to_text(owner.context), to_text(owner.other));
        case DpuOwner::Kind::filtered: return "<filtered>";
        case DpuOwner::Kind::before: return "<before>";
        case DpuOwner::Kind::tail: return "<tail>";
        case DpuOwner::Kind::unattributed: return "<unattributed>";
    }
    return "?";
}

// ---- DpuCode

std::string DpuCode::add_image(const std::string& path, std::uint32_t load_bias, const std::string& name) {
    if (const auto added = memory_.add_elf(path, load_bias); !added) return added.error().message;
    auto info = image::DebugInfo::open(path, files_.debug_path());
    if (info)
        for (const image::DebugInfo::Segment& s : info->segments())
            if (s.executable)
                symbols_.add_area(name.empty() ? path : name, Address{s.address.value + load_bias}, s.bytes, s.offset);
    const auto named =
        info ? image::add_all_symbols(symbols_, path, *info, load_bias) : symbols_.add_elf(path, load_bias);
    if (!named) return named.error().message;
    if (*named == 0) return path + ": no function has a name in it: it is stripped, or the file is cut";
    return {};
}

void DpuCode::add_name(std::uint32_t address, std::string name) { names_.insert_or_assign(address, std::move(name)); }

DpuCode::Function DpuCode::function(std::uint32_t address) const {
    if (const auto named = names_.find(address); named != names_.end()) return {address, named->second, {}};
    if (const auto found = symbols_.find({address}); found && found->symbol.kind == image::SymbolKind::function)
        return {static_cast<std::uint32_t>(found->symbol.address.value), std::string(found->name),
                std::string(found->symbol.linkage_name)};
    return {address, symbols_.approximate({address}), {}};
}

std::optional<std::uint32_t> DpuCode::address_of(const std::string& name) const {
    for (const auto& [address, each] : names_)
        if (each == name) return address;
    const auto found = symbols_.address_of(name);
    return found ? std::optional(static_cast<std::uint32_t>(found->value)) : std::nullopt;
}

std::optional<isa::Instruction> DpuCode::instruction(std::uint32_t address) const {
    const auto contents = symbols_.contents({address});
    if (contents != image::Contents::a32 && contents != image::Contents::t32) return std::nullopt;
    const isa::Isa isa = contents == image::Contents::a32 ? isa::Isa::a32 : isa::Isa::t32;
    const isa::Fetched fetched = isa::fetch(memory_, {}, {address}, isa);
    if (fetched.bytes == 0) return std::nullopt;
    return isa::decode_instr({address}, isa, fetched.opcode, isa == isa::Isa::t32 && fetched.bytes == 4, {});
}

DpuCode::Change DpuCode::change(std::uint32_t source) const {
    const auto found = instruction(source);
    if (!found) return Change::unknown;
    return found->link ? Change::call : found->function_return ? Change::ret : Change::unknown;
}

std::optional<std::uint64_t> DpuCode::instructions(std::uint32_t start, std::uint32_t last) const {
    constexpr std::uint32_t longest = 1 << 20;
    if (start > last || last - start > longest) return std::nullopt;
    std::uint64_t count = 0;
    for (std::uint32_t at = start; at <= last;) {
        const auto found = instruction(at);
        if (!found || found->bytes == 0) return std::nullopt;
        at += found->bytes;
        ++count;
    }
    return count;
}

std::optional<std::uint32_t> DpuCode::loop_start(std::uint32_t last) const {
    const auto found = instruction(last);
    if (!found || found->waypoint != isa::Waypoint::direct || found->target.value > last) return std::nullopt;
    return static_cast<std::uint32_t>(found->target.value);
}

// ---- DpuFilter

bool DpuFilter::matches(std::uint8_t pid, std::uint8_t did) const {
    if (!on) return true;
    switch (compare) {
        case dpu::IdCompare::neither: return true;
        case dpu::IdCompare::program: return pid == rpid;
        case dpu::IdCompare::data: return did == rdid;
        case dpu::IdCompare::both: return pid == rpid && did == rdid;
    }
    return true;
}

std::optional<bool> DpuFilter::matches(const dpu::Context& context) const {
    if (!on || compare == dpu::IdCompare::neither) return true;
    if (same_ids) return matches(context.id, context.id);
    const bool compares_shown = compare == dpu::IdCompare::both || (compare == dpu::IdCompare::data) == shows_did;
    if (!compares_shown) return std::nullopt;
    if (context.id != (shows_did ? rdid : rpid)) return false;
    return compare == dpu::IdCompare::both ? std::nullopt : std::optional(true);
}

// ---- DpuReadings

const Reading* DpuReadings::doubt() {
    doubted_ = next_ < doubtful_.size() ? doubtful_[next_++] : nothing;
    skipped_ = true;
    return nullptr;
}

const Reading* DpuReadings::join(const Reading& reading) {
    skipped_ = false;
    joined_ = reading;
    joined_.flags = static_cast<std::uint8_t>(reading.flags | (values_ ? Reading::lossy : Reading::first));
    joined_.wide = 0;
    for (unsigned i = 0; i < dpu::counter_count; ++i) {
        joined_.deltas[i] = values_ ? dpu::counted((*values_)[i], reading.values[i]) : 0;
        joined_.wide = static_cast<std::uint8_t>(joined_.wide | dpu::is_wide(joined_.deltas[i]) << i);
    }
    values_ = reading.values;
    return &joined_;
}

// ---- DpuCosts

DpuCosts::DpuCosts(DpuSetup setup, const DpuCode& code)
    : setup_(std::move(setup)),
      code_(code),
      changes_(setup_.mode == dpu::TraceMode::task || setup_.mode == dpu::TraceMode::flow),
      eonce_(setup_.mode == dpu::TraceMode::eonce_raw || setup_.mode == dpu::TraceMode::eonce_comp),
      context_(setup_.initial_context),
      readings_told_(setup_),
      first_values_(setup_.initial),
      paths_(1),
      ranges_(setup_.ranges.size()) {
    if (changes_ && context_ && shown(0) == true) stay(context_);
    if (context_) show(*context_);
}

DpuCosts::~DpuCosts() = default;

const DpuCode::Function& DpuCosts::function(std::uint32_t address) {
    const auto found = known_.find(address);
    if (found != known_.end()) return found->second;
    return known_.emplace(address, code_.function(address)).first->second;
}

void DpuCosts::consume(const dpu::Batch& batch) {
    for (const Element& e : batch.elements) {
        const bool known = e.has(Element::id_known) && e.has(Element::privilege_known);
        const std::optional<dpu::Context> context = known ? std::optional(e.context) : std::nullopt;
        if (context && !e.has(Element::doubtful)) show(*context);
        switch (e.kind) {
            case ElementKind::task_switch:
            case ElementKind::flow:
            case ElementKind::sample: reading(e, batch.readings[e.value]); break;
            case ElementKind::short_loop:
            case ElementKind::long_loop: {
                DpuLoop& loop = loops_[e.from];
                loop.is_short = e.kind == ElementKind::short_loop;
                ++loop.runs;
                loop.jumps += e.value;
                loop.least = std::min<std::uint64_t>(loop.least, e.value);
                loop.most = std::max<std::uint64_t>(loop.most, e.value);
                break;
            }
            case ElementKind::pair: starts_.saw(e); break;
            case ElementKind::user_data:
            case ElementKind::user_raw:
                if (data_.size() < most_data) data_.push_back({e.offset, context, e.value, time_});
                break;
            case ElementKind::lost:
            case ElementKind::held: lossy_ = true; break;
            case ElementKind::gap:
                // What came before a buffer wrapped is missing; what follows is whole.
                if (e.reason != GapReason::padding && e.reason != GapReason::unsynchronised) lossy_ = true;
                break;
            case ElementKind::context:
                if (context && !e.has(Element::doubtful) && context != context_) mixed_ = true;
                break;
            default: break;
        }
    }
}

/// In EONCE modes each change of context is in the trace, whether a reading comes with it or not.
void DpuCosts::show(const dpu::Context& context) {
    if (!eonce_ || shown_ == context) return;
    shown_ = context;
    ++tasks_[{DpuOwner::Kind::context, context, {}}].entered;
}

DpuOwner DpuCosts::owner(const Element& e, const Reading& r) const {
    using Kind = DpuOwner::Kind;
    if (r.has(Reading::lossy)) return {Kind::unattributed};
    if (r.has(Reading::first) || !context_) return {readings_ == 0 ? Kind::before : Kind::unattributed};
    const auto is_shown = shown(e.offset.value);
    if (!is_shown) return {Kind::unattributed};
    if (!*is_shown) return {Kind::filtered};
    if (changes_) return {Kind::context, *context_};
    if (*context_ == e.context && !r.has(Reading::mixed)) return {Kind::sampled, *context_};
    return {Kind::between, *context_, e.context};
}

/// Whether the filters since the reading before let by that its context was left; none: that is not known.
std::optional<bool> DpuCosts::shown(std::uint64_t end) const {
    bool known = true;
    for (std::size_t i = 0; i < setup_.filters.size(); ++i) {
        const DpuFilter& f = setup_.filters[i];
        const bool over = i + 1 < setup_.filters.size() && reading_at_ && setup_.filters[i + 1].from <= *reading_at_;
        if (over || (f.from > end && i != 0)) continue;
        const auto match = readings_ == 0 && setup_.initial_ids
                               ? std::optional(f.matches(setup_.initial_ids->first, setup_.initial_ids->second))
                               : f.matches(*context_);
        if (match == false) return false;
        known &= match.has_value();
    }
    return known ? std::optional(true) : std::nullopt;
}

/// Whether a context that begins here is one whose end will be shown.
bool DpuCosts::stays_shown(const dpu::Context& context, std::uint64_t at) const {
    for (std::size_t i = setup_.filters.size(); i-- > 0;)
        if (i == 0 || setup_.filters[i].from <= at) return setup_.filters[i].matches(context) == true;
    return true;
}

bool DpuCosts::filtered() const {
    return std::any_of(setup_.filters.begin(), setup_.filters.end(), [](const DpuFilter& f) { return f.on; });
}

/// No cycle is waited or stalled for that was not counted.
bool DpuCosts::beyond(const DpuCounts& counts) const {
    if (!setup_.cycles) return false;
    for (std::size_t i = 0; i < counts.size(); ++i)
        if ((setup_.within_cycles >> i & 1U) != 0 && counts[i] > counts[*setup_.cycles]) return true;
    return false;
}

/// Notes an interval that can hardly be true.
void DpuCosts::doubt(const DpuCounts& counts, std::uint8_t wide, std::optional<Offset> at, bool lossy) {
    const bool is_beyond = beyond(counts);
    if (wide == 0 && !is_beyond) return;
    if (wide_.intervals == 0 && wide_.beyond == 0) wide_.first = at;
    ++(wide != 0 ? wide_.intervals : wide_.beyond);
    wide_.lossy += wide != 0 && lossy ? 1U : 0U;
    wide_.counters |= wide;
}

void DpuCosts::reading(const Element& e, const Reading& told) {
    const bool skipped = readings_told_.skipped();
    const Reading* const believed = readings_told_.next(told);
    if (believed == nullptr) {
        if (doubted_.readings++ == 0) doubted_.first = e.offset;
        doubted_.last = e.offset;
        // Who runs now is told all the same.
        context_ = e.context;
        reading_at_ = e.offset.value;
        return;
    }
    const Reading& r = *believed;
    const DpuOwner who = owner(e, r);
    const DpuCounts counts = widened(r.deltas);
    if (!first_values_ || r.has(Reading::first)) first_values_ = r.values;
    if (!r.has(Reading::first)) doubt(counts, r.wide, e.offset, told.has(Reading::lossy));
    if (skipped) [[unlikely]] {
        ++doubted_.intervals;
        add(doubted_.counts, counts);
    }
    add(intervals_, counts);
    if (who.kind == DpuOwner::Kind::unattributed) lose_stacks();
    book(who, counts, e.kind == ElementKind::sample ? std::nullopt : std::optional(e.from), !r.has(Reading::first));
    time_ += setup_.cycles ? counts[*setup_.cycles] : 1;
    ++readings_;
    lossy_ = mixed_ = false;

    const bool changed = e.kind != ElementKind::sample;
    if (changed) flow(e);
    if (changed) run_ = e.to;
    if (!stay_ || stay_->context != e.context)
        stay(stays_shown(e.context, e.offset.value) ? std::optional(e.context) : std::nullopt);
    context_ = e.context;
    reading_at_ = e.offset.value;
}

/// An interval's counts go to one bucket of each view.
void DpuCosts::book(const DpuOwner& who, const DpuCounts& counts, std::optional<std::uint32_t> last_pc, bool known) {
    add(total_, counts);
    DpuTask& task = tasks_[who];
    task.known &= known;
    add(task.sum, counts);
    if (who.kind == DpuOwner::Kind::sampled) add(task.sampled, counts);
    if (who.kind == DpuOwner::Kind::tail_context) add(task.tail, counts);
    if (who.is_context() && stay_ && stay_->context == who.context)
        add(stay_->counts, counts);
    else if (!who.is_context())
        stay(std::nullopt);
    for (OpenService& service : open_services_) add(service.counts, counts);

    // Code: an interval in modes TASK and FLOW runs from where the reading before led to where this one came from.
    const bool in_code = who.is_context() && changes_ && run_;
    bool in_range = false;
    for (std::size_t i = 0; i < setup_.ranges.size(); ++i) {
        if (!in_code) break;
        const auto inside = [&](std::uint32_t pc) {
            return pc >= setup_.ranges[i].first && pc < setup_.ranges[i].second;
        };
        const bool first = inside(*run_), last = last_pc ? inside(*last_pc) : first;
        if (!first && !last) continue;
        in_range = true;
        add(first && last ? ranges_[i].inside : ranges_[i].crossing, counts);
        ++(first && last ? ranges_[i].intervals : ranges_[i].crossings);
    }
    if (!in_range) add(outside_, counts);

    if (setup_.mode != dpu::TraceMode::flow) return;
    const DpuCode::Function where = !who.is_context() ? DpuCode::Function{0, to_text(who)}
                                    : in_code         ? function(*run_)
                                                      : nowhere;
    DpuFunctionCost& cost = functions_[where];
    cost.known &= known;
    add(cost.self, counts);
    if (in_code && last_pc && function(*last_pc) != where) add(cost.crossed, counts);
    std::size_t path = 0;
    if (who.is_context()) {
        Stack& s = stack(who.context.id);
        if (s.empty()) {
            path = child(0, where, who.context, false);
            s.push_back({path, 0, who.context.supervisor, true, where, {}});
        }
        for (Frame& frame : s) add(frame.inclusive, counts);
        // It jumped elsewhere without a call: the cost is of the function it is in.
        path = s.back().path;
        if (paths_[path].function != where)
            path = child(paths_[path].parent, where, paths_[path].root, paths_[path].service);
    } else {
        path = child(0, where, std::nullopt, false);
    }
    paths_[path].known &= known;
    add(paths_[path].self, counts);
}

/// Whose stay begins; none: nobody knows.
void DpuCosts::stay(const std::optional<dpu::Context>& context) {
    if (stay_) {
        tasks_[{DpuOwner::Kind::context, stay_->context, {}}].stays.take(stay_->counts);
        stay_->end = time_;
        if (stays_.size() < setup_.most_stays)
            stays_.push_back(*stay_);
        else
            ++stays_left_out_;
    }
    stay_.reset();
    if (context) stay_ = DpuStay{*context, time_, time_, {}};
}

// ---- calls

DpuCosts::Stack& DpuCosts::stack(std::uint8_t id) { return stacks_[id]; }

std::size_t DpuCosts::child(std::size_t parent, const DpuCode::Function& function,
                            const std::optional<dpu::Context>& root, bool service) {
    const auto [found, is_new] = children_.try_emplace(
        {parent * 512 + (root && parent == 0 ? root->id + 1U : 0U), function, service}, paths_.size());
    if (is_new) {
        DpuPath path;
        path.parent = parent;
        path.function = function;
        if (parent == 0) path.root = root;
        path.service = service;
        paths_.push_back(std::move(path));
    }
    return found->second;
}

void DpuCosts::push(Stack& s, std::uint32_t address, std::uint32_t call, bool service, const dpu::Context& context) {
    const DpuCode::Function& what = function(address);
    const std::size_t path = child(s.empty() ? 0 : s.back().path, what, context, service);
    ++paths_[path].calls;
    ++functions_[what].calls;
    const bool outermost = std::none_of(s.begin(), s.end(), [&](const Frame& f) { return f.function == what; });
    s.push_back({path, call, service, outermost, what, {}});
}

void DpuCosts::pop(Stack& s) {
    const Frame& frame = s.back();
    if (frame.outermost) functions_[frame.function].activations.take(frame.inclusive);
    s.pop_back();
}

/// Something is missing: which calls are open is not known.
void DpuCosts::lose_stacks() {
    stacks_.clear();
    open_services_.clear();
    run_.reset();
}

void DpuCosts::flow(const Element& e) {
    const bool before = context_ && context_->supervisor, after = e.context.supervisor;
    // Services are known by their entry in both modes.
    if (!before && after) open_services_.push_back({e.to, {}});
    if (!after) {
        while (!open_services_.empty()) {
            services_[open_services_.back().entry].stays.take(open_services_.back().counts);
            open_services_.pop_back();
        }
    }
    if (e.kind != ElementKind::flow) return;
    const std::uint8_t old_id = context_ ? context_->id : e.context.id;
    Stack& s = stack(old_id);
    if (!before && after) {
        push(s, e.to, e.from, true, e.context);
        return;
    }
    if (before && !after) {
        // Back from service, to whoever runs next.
        while (!s.empty() && s.back().service == false &&
               std::any_of(s.begin(), s.end(), [](const Frame& f) { return f.service; }))
            pop(s);
        while (!s.empty() && s.back().service) pop(s);
        Stack& next = stack(e.context.id);
        if (next.empty()) push(next, e.to, e.from, false, e.context);
        return;
    }
    const DpuCode::Change change = code_.change(e.from);
    if (change != DpuCode::Change::call) {
        // A return comes back to just behind a call; the nearest counts.
        constexpr std::uint32_t longest_call = 8;
        const auto found = std::find_if(s.rbegin(), s.rend(), [&](const Frame& f) {
            return !f.service && f.call != 0 && e.to >= f.call && e.to - f.call <= longest_call;
        });
        if (found != s.rend()) {
            const auto keep = static_cast<std::size_t>(s.rend() - found) - 1;
            while (s.size() > keep) pop(s);
            if (s.empty()) push(s, e.to, 0, false, e.context);
            return;
        }
        if (change == DpuCode::Change::ret) {
            ++returns_without_call_;
            while (!s.empty()) pop(s);
            push(s, e.to, 0, false, e.context);
            return;
        }
    }
    push(s, e.to, e.from, false, e.context);
}

// ---- the end

void DpuCosts::finish() {
    if (const auto& values = readings_told_.values(); setup_.final && values) {
        DpuCounts counts{};
        for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = dpu::counted((*values)[i], (*setup_.final)[i]);
        const bool skipped = readings_told_.skipped();
        if (skipped) {
            ++doubted_.intervals;
            add(doubted_.counts, counts);
        }
        add(intervals_, counts);
        using Kind = DpuOwner::Kind;
        DpuOwner who{Kind::tail};
        if (lossy_ || skipped)
            who = {Kind::unattributed};
        else if (const auto is_shown = context_ ? shown(~std::uint64_t{0}) : std::optional(true); is_shown != true)
            who = {is_shown ? Kind::filtered : Kind::unattributed};
        else if (changes_ && setup_.complete && context_)
            who = {Kind::tail_context, *context_};
        if (who.kind == Kind::unattributed) lose_stacks();
        const bool any = std::any_of(counts.begin(), counts.end(), [](std::uint64_t n) { return n != 0; });
        if (any) book(who, counts, std::nullopt, true);
        std::uint8_t wide = 0;
        for (std::size_t i = 0; i < counts.size(); ++i)
            wide = static_cast<std::uint8_t>(wide | (dpu::is_wide(counts[i]) ? 1U : 0U) << i);
        doubt(counts, wide, {}, lossy_);
        time_ += setup_.cycles ? counts[*setup_.cycles] : 1;
    }
    stay(std::nullopt);
    for (auto& [id, s] : stacks_) {
        open_at_end_ += s.size();
        while (!s.empty()) pop(s);
    }
    for (const OpenService& service : open_services_) services_[service.entry].stays.take(service.counts);
    open_services_.clear();

    // Inclusive: of each function, where it is outermost.
    std::vector<DpuCounts> below(paths_.size());
    for (std::size_t i = paths_.size(); i-- > 1;) {
        add(below[i], paths_[i].self);
        add(below[paths_[i].parent], below[i]);
    }
    for (std::size_t i = 1; i < paths_.size(); ++i) {
        bool outermost = true;
        for (std::size_t up = paths_[i].parent; up != 0 && outermost; up = paths_[up].parent)
            outermost = paths_[up].function != paths_[i].function;
        if (outermost) add(functions_[paths_[i].function].inclusive, below[i]);
    }
    // The program's image first, then what the trace showed (5.4).
    for (auto& [last, loop] : loops_) {
        if (const auto start = code_.loop_start(last)) starts_.set(last, *start);
        loop.start = starts_.find(last);
    }
}

std::array<DpuReconciled, dpu::counter_count> DpuCosts::reconciled(const DpuCounts& rows) const {
    std::array<DpuReconciled, dpu::counter_count> out;
    for (std::size_t i = 0; i < out.size(); ++i) {
        out[i].sum = rows[i];
        out[i].intervals = intervals_[i];
        if (first_values_) out[i].from = (*first_values_)[i];
        if (setup_.final)
            out[i].to = (*setup_.final)[i];
        else if (const auto& values = readings_told_.values())
            out[i].to = (*values)[i];
    }
    return out;
}

}  // namespace waymark::analysis
