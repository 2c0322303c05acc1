#include "waymark/analysis/dpu.h"

#include <fmt/format.h>

#include <algorithm>

#include "waymark/analysis/flow_code.h"
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

DpuCode::DpuCode() : functions_(std::make_unique<FlowCode>(symbols_, memory_)) {}
DpuCode::~DpuCode() = default;

std::string DpuCode::add_image(const std::string& path, std::uint32_t load_bias, const std::string& name) {
    if (const auto added = memory_.add_elf(path, load_bias); !added) return added.error().message;
    images_.push_back({path, name.empty() ? path : name, load_bias});
    functions_ = std::make_unique<FlowCode>(symbols_, memory_);
    by_name_.reset();
    auto info = image::DebugInfo::open(path, files_.debug_path());
    if (info)
        for (const image::DebugInfo::Segment& s : info->segments())
            if (s.executable)
                symbols_.add_area(images_.back().name, Address{s.address.value + load_bias}, s.bytes, s.offset);
    const auto named =
        info ? image::add_all_symbols(symbols_, path, *info, load_bias) : symbols_.add_elf(path, load_bias);
    if (!named) return named.error().message;
    if (*named == 0) return path + ": no function has a name in it: it is stripped, or the file is cut";
    return {};
}

void DpuCode::add_name(std::uint32_t address, std::string name) { names_.insert_or_assign(address, std::move(name)); }

DpuCode::Function DpuCode::function(std::uint32_t address) const {
    if (const auto named = names_.find(address); named != names_.end()) return {address, named->second, named->second};
    const auto found = function_symbol(address);
    if (!found) return {address, symbols_.approximate({address}), {}};
    const std::uint64_t whole = functions_->whole_function(*found);
    const image::Symbol symbol = whole == found->address.value ? *found : function_symbol(whole).value_or(*found);
    return {static_cast<std::uint32_t>(symbol.address.value), std::string(symbol.name),
            std::string(symbol.linkage_name)};
}

DpuCode::Function DpuCode::function_around(std::uint32_t address) const {
    if (names_.contains(address) || function_symbol(address)) return function(address);
    if (const auto before = symbols_.before({address}))
        return {static_cast<std::uint32_t>(before->address.value), before->name, {}};
    const auto area = symbols_.area({address});
    return function(area && area->first.value != 0 ? static_cast<std::uint32_t>(area->first.value) : address);
}

std::optional<image::Symbol> DpuCode::function_symbol(std::uint64_t address) const {
    const auto found = symbols_.find({address});
    if (!found || found->symbol.kind != image::SymbolKind::function) return std::nullopt;
    return found->symbol;
}

std::optional<std::uint32_t> DpuCode::only_function(std::string_view linkage_name) const {
    if (!by_name_) {
        by_name_.emplace();
        for (const image::Symbol& symbol : symbols_.all()) {
            if (symbol.kind != image::SymbolKind::function) continue;
            const auto address = static_cast<std::uint32_t>(symbol.address.value);
            const auto [at, is_new] = by_name_->try_emplace(std::string(symbol.linkage_name), address);
            if (!is_new && at->second != address) at->second.reset();
        }
    }
    const auto found = by_name_->find(linkage_name);
    return found == by_name_->end() ? std::nullopt : found->second;
}

std::uint64_t DpuCode::home(std::uint32_t address) const {
    constexpr std::uint64_t of_function = std::uint64_t{1} << 32, of_file = std::uint64_t{2} << 32;
    if (const auto found = function_symbol(address)) return of_function | functions_->whole_function(*found);
    const auto area = symbols_.area({address});
    return area ? of_file | area->first.value : 0;
}

std::optional<std::size_t> DpuCode::image(std::uint32_t address) const {
    const auto area = symbols_.area({address});
    if (!area) return std::nullopt;
    const auto found =
        std::find_if(images_.begin(), images_.end(), [&](const Image& image) { return image.name == area->file; });
    return found == images_.end() ? std::nullopt : std::optional<std::size_t>(found - images_.begin());
}

DpuCode::Way DpuCode::way(std::uint32_t start, std::uint32_t last) const {
    constexpr unsigned most_steps = 64;
    constexpr std::string_view linkage_entry = "@plt";
    Way out;
    std::uint64_t here = home(start);
    auto isa = isa_at(start);
    std::optional<std::size_t> by_name;  // the last that was entered so
    for (unsigned steps = 0; steps < most_steps && start != last; ++steps) {
        if (const auto symbol = function_symbol(start); symbol && symbol->linkage_name.ends_with(linkage_entry)) {
            const std::string_view name = symbol->linkage_name;
            const auto target = only_function(name.substr(0, name.size() - linkage_entry.size()));
            if (!target) {
                out.jumps_on = true;
                break;
            }
            by_name = out.entered.size();
            start = *target;
            out.entered.push_back(start);
            here = home(start);
            isa = isa_at(start);
            continue;
        }
        const auto found = isa ? instruction(start, *isa) : std::nullopt;
        // Instructions of an IT block have a condition that is not their own.
        if (!found || found->begins_it_block || found->decoded.conditional || found->decoded.link) break;
        if (found->decoded.waypoint == isa::Waypoint::indirect) out.jumps_on = !found->decoded.function_return;
        const bool direct = found->decoded.waypoint == isa::Waypoint::direct;
        if (!direct && found->decoded.waypoint != isa::Waypoint::none) break;
        start = direct ? static_cast<std::uint32_t>(found->decoded.target.value) : start + found->decoded.bytes;
        if (direct) isa = found->decoded.target_isa;
        if (const std::uint64_t next = home(start); next != here) {
            out.entered.push_back(start);
            here = next;
        }
    }
    // The name may be of a static function, or the function jumped on under a condition.
    if (by_name && here != home(last)) {
        out.entered.resize(*by_name);
        out.jumps_on = true;
    }
    return out;
}

std::optional<std::uint32_t> DpuCode::address_of(const std::string& name) const {
    for (const auto& [address, each] : names_)
        if (each == name) return address;
    const auto found = symbols_.address_of(name);
    return found ? std::optional(static_cast<std::uint32_t>(found->value)) : std::nullopt;
}

std::optional<DpuCode::Instruction> DpuCode::instruction(std::uint32_t address) const {
    const auto isa = isa_at(address);
    return isa ? instruction(address, *isa) : std::nullopt;
}

std::optional<isa::Isa> DpuCode::isa_at(std::uint32_t address) const {
    const auto contents = symbols_.contents({address});
    if (contents == image::Contents::a32) return isa::Isa::a32;
    if (contents == image::Contents::t32) return isa::Isa::t32;
    // A stripped file has no mapping symbols, but its dynamic symbols say how a function is entered.
    const auto function = contents ? std::nullopt : function_symbol(address);
    if (!function) return std::nullopt;
    return function->thumb ? isa::Isa::t32 : isa::Isa::a32;
}

std::optional<DpuCode::Instruction> DpuCode::instruction(std::uint32_t address, isa::Isa isa) const {
    const isa::Fetched fetched = isa::fetch(memory_, {}, {address}, isa);
    if (fetched.bytes == 0) return std::nullopt;
    const bool thumb = isa == isa::Isa::t32;
    const bool it = thumb && fetched.bytes == 2 && fetched.opcode >> 8 == 0xbf && (fetched.opcode & 0xfU) != 0;
    return Instruction{isa::decode_instr({address}, isa, fetched.opcode, thumb && fetched.bytes == 4, {}), it};
}

DpuCode::Change DpuCode::change(std::uint32_t source) const {
    const auto found = instruction(source);
    if (!found) return Change::unknown;
    return found->decoded.link ? Change::call : found->decoded.function_return ? Change::ret : Change::unknown;
}

std::optional<std::uint64_t> DpuCode::instructions(std::uint32_t start, std::uint32_t last) const {
    constexpr std::uint32_t longest = 1 << 20;
    if (start > last || last - start > longest) return std::nullopt;
    std::uint64_t count = 0;
    for (std::uint32_t at = start; at <= last;) {
        const auto found = instruction(at);
        if (!found || found->decoded.bytes == 0) return std::nullopt;
        at += found->decoded.bytes;
        ++count;
    }
    return count;
}

std::optional<std::uint32_t> DpuCode::loop_start(std::uint32_t last) const {
    const auto found = instruction(last);
    if (!found || found->decoded.waypoint != isa::Waypoint::direct || found->decoded.target.value > last)
        return std::nullopt;
    return static_cast<std::uint32_t>(found->decoded.target.value);
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

const DpuCosts::Place& DpuCosts::place(std::uint32_t address) {
    const auto found = known_.find(address);
    if (found != known_.end()) return found->second;
    return known_.emplace(address, Place{code_.function(address), code_.home(address)}).first->second;
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
    DpuCode::Function where = {0, to_text(who)};
    std::size_t path = 0;
    bool crosses = false;
    if (who.is_context()) {
        Stack& s = stack(who.context.id);
        if (s.empty()) begin(s, in_code ? run_ : std::nullopt, who.context);
        if (in_code && last_pc) crosses = jump(s, *run_, *last_pc);
        for (Frame& frame : s) add(frame.inclusive, counts);
        where = s.back().function;
        path = s.back().path;
        if (crosses) replace(s, code_.function_around(*last_pc), place(*last_pc).home, true);
    } else {
        path = child(0, where, std::nullopt, false);
    }
    DpuFunctionCost& cost = functions_[where];
    cost.known &= known;
    add(cost.self, counts);
    if (crosses) {
        ++crossings_;
        add(cost.crossed, counts);
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
    const auto& at = place(address);
    const DpuCode::Function what = at.function;
    const std::size_t path = child(s.empty() ? 0 : s.back().path, what, context, service);
    ++paths_[path].calls;
    ++functions_[what].calls;
    const bool outermost = std::none_of(s.begin(), s.end(), [&](const Frame& f) { return f.function == what; });
    s.push_back({path, call, service, outermost, at.home, what, {}});
}

/// Begins a stack with the function at `address`, whose caller is not known; no address: nor is its code.
void DpuCosts::begin(Stack& s, const std::optional<std::uint32_t>& address, const dpu::Context& context) {
    const DpuCode::Function what = address ? code_.function_around(*address) : nowhere;
    const std::size_t path = child(0, what, context, false);
    s.push_back({path, 0, context.supervisor, true, address ? place(*address).home : 0, what, {}});
}

/// Another function takes the place of the topmost one, and returns to where that would have returned to.
void DpuCosts::replace(Stack& s, const DpuCode::Function& what, std::uint64_t home, bool called) {
    Frame& frame = s.back();
    if (frame.outermost && frame.function != nowhere) functions_[frame.function].activations.take(frame.inclusive);
    const DpuPath& before = paths_[frame.path];
    frame.path = child(before.parent, what, before.root, before.service);
    frame.function = what;
    frame.home = home;
    frame.inclusive = {};
    frame.outermost = std::none_of(s.begin(), s.end() - 1, [&](const Frame& f) { return f.function == what; });
    if (!called) return;
    ++paths_[frame.path].calls;
    ++functions_[what].calls;
    ++jumps_;
}

/// Code ran from `start` to a change of flow at `last`, which may lie in another function than the topmost one: a jump
/// led there. Where the instructions up to the jump are the same each time, as in the procedure linkage table, the run
/// belongs to where they lead. Otherwise true: part of it belongs to the function that is still the topmost one.
bool DpuCosts::jump(Stack& s, std::uint32_t start, std::uint32_t last) {
    // The stack may be one that was left elsewhere.
    if (const std::uint64_t home = place(start).home; home != 0 && home != s.back().home)
        replace(s, code_.function_around(start), home, false);
    const std::uint64_t home = place(last).home;
    if (home == 0 || home == s.back().home) return false;
    auto found = ways_.find({start, last});
    if (found == ways_.end()) found = ways_.emplace(std::pair(start, last), code_.way(start, last)).first;
    const DpuCode::Way& way = found->second;
    for (const std::uint32_t entered : way.entered) {
        const Place& at = place(entered);
        replace(s, at.function, at.home, true);
    }
    if (home == s.back().home) return false;
    if (way.jumps_on) replace(s, code_.function_around(last), home, true);
    return !way.jumps_on;
}

/// Whether a function that has a symbol begins at an address.
bool DpuCosts::begins_at(std::uint32_t address) {
    const DpuCode::Function& function = place(address).function;
    return function.address == address && code_.function_around(address) == function;
}

/// A return to where nobody waits: longjmp or a handler of a C++ exception, where a function that has a frame goes on
/// in its middle; or a function is entered that way, as the dynamic linker does once it has found it.
bool DpuCosts::unwind(Stack& s, std::uint32_t to) {
    const Place& at = place(to);
    if (at.home == 0 || s.empty()) return false;
    if (begins_at(to)) {
        if (s.back().home == at.home) return false;
        replace(s, at.function, at.home, true);
        return true;
    }
    auto found = std::find_if(s.rbegin(), s.rend(), [&](const Frame& f) { return f.service || f.home == at.home; });
    if (found == s.rend() || found->service) return false;
    for (auto above = found - s.rbegin(); above != 0; --above) pop(s);
    return true;
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
    if (!s.empty() && s.back().function == nowhere)
        replace(s, code_.function_around(e.from), place(e.from).home, false);
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
        const Place& at = place(e.to);
        if (next.empty()) {
            begin(next, e.to, e.context);
        } else if (at.home != 0 && at.home != next.back().home) {
            // The handler of a signal, or back from one.
            if (begins_at(e.to))
                push(next, e.to, 0, false, e.context);
            else
                static_cast<void>(unwind(next, e.to));
        }
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
            if (s.empty()) begin(s, e.to, e.context);
            return;
        }
        // No call leads into the middle of a function.
        const bool inside = place(e.to).function.address != e.to;
        if ((change == DpuCode::Change::ret || inside) && unwind(s, e.to)) return;
        if (change == DpuCode::Change::ret) {
            ++returns_without_call_;
            while (!s.empty()) pop(s);
            begin(s, e.to, e.context);
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
