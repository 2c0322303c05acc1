#include "waymark/analysis/dpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

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

std::string to_text(const dpu::TaskContext& context) {
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

struct DpuCode::Layer {
    Layer() : functions(std::make_unique<FlowCode>(symbols, memory)) {}

    image::MemoryMap memory;
    image::Symbols symbols;
    std::map<std::uint32_t, std::pair<std::uint32_t, std::size_t>> areas;  ///< first → last address, image
    std::unique_ptr<FlowCode> functions;  ///< knows which function a `.cold` part belongs to
    /// Made when it is first asked for; without an address: several functions have that name.
    std::optional<std::map<std::string, std::optional<std::uint32_t>, std::less<>>> by_name;
};

DpuCode::DpuCode() { layers_.push_back(std::make_unique<Layer>()); }
DpuCode::~DpuCode() = default;

void DpuCode::take_turns(CodeTurns turns, std::vector<std::string> names) {
    turns_ = std::move(turns);
    file_names_ = std::move(names);
    std::set<std::uint32_t> known;
    for (std::uint32_t i = 1; i < turns_.layers().size(); ++i) {
        layers_.push_back(std::make_unique<Layer>());
        if (turns_.layers()[i].known) known.insert(turns_.unknown(i));
    }
    for (std::uint32_t i = 1; i < turns_.layers().size(); ++i) {
        if (turns_.layers()[i].known || known.contains(i)) continue;
        image_of_zone_[i] = images_.size();
        images_.push_back({{}, name_of_zone(i), 0});
    }
}

std::string DpuCode::name_of_zone(std::uint32_t layer) const {
    constexpr std::size_t most_names = 4;
    std::vector<std::string> names;
    const auto& files = turns_.layers()[turns_.unknown(layer)].files;
    for (const std::size_t file : files) {
        const std::string& path = file_names_[file];
        std::string name = path.empty() ? "generated code" : path.substr(path.rfind('/') + 1);
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
    }
    if (names.size() == 1) return fmt::format("[one of {} builds or places of {}]", files.size(), names.front());
    if (names.size() > most_names) {
        const std::size_t others = names.size() - (most_names - 1);
        names.resize(most_names - 1);
        names.push_back(fmt::format("{} others", others));
    }
    std::string out;
    for (std::size_t i = 0; i < names.size(); ++i)
        out += (i == 0 ? "[" : i + 1 == names.size() ? " or " : ", ") + names[i];
    return out + "]";
}

std::vector<std::string> DpuCode::unknown_turns() const {
    std::vector<std::string> out;
    for (const auto& [layer, image] : image_of_zone_) out.push_back(images_[image].name);
    return out;
}

std::vector<std::uint32_t> DpuCode::layers_with(std::optional<std::size_t> file, std::uint32_t first,
                                                std::uint64_t bytes) const {
    std::vector<std::uint32_t> out;
    if (!file || turns_.lies_alone(*file)) out.push_back(0);
    const std::uint32_t here = turns_.layer(first);
    for (std::uint32_t i = 1; i < turns_.layers().size(); ++i) {
        const CodeTurns::Layer& layer = turns_.layers()[i];
        const bool inside =
            (here != 0 && turns_.unknown(i) == here) || (layer.first >= first && layer.first - first < bytes);
        if (!layer.known || !inside) continue;
        if (!file || std::binary_search(layer.files.begin(), layer.files.end(), *file)) out.push_back(i);
    }
    return out;
}

std::string DpuCode::add_image(const std::string& path, std::uint32_t load_bias, const std::string& name,
                               std::optional<std::size_t> file) {
    const std::size_t number = images_.size();
    const std::string called = name.empty() ? path : name;
    auto info = image::DebugInfo::open(path, files_.debug_path());
    std::set<std::uint32_t> layers;
    if (!file || turns_.lies_alone(*file)) layers.insert(0);
    if (info)
        for (const image::DebugInfo::Segment& s : info->segments())
            if (s.executable)
                for (const std::uint32_t i :
                     layers_with(file, static_cast<std::uint32_t>(s.address.value + load_bias), s.bytes))
                    layers.insert(i);
    std::string problem;
    for (const std::uint32_t i : layers) {
        Layer& layer = *layers_[i];
        if (const auto added = layer.memory.add_elf(path, load_bias); !added) return added.error().message;
        if (images_.size() == number) images_.push_back({path, called, load_bias});
        layer.functions = std::make_unique<FlowCode>(layer.symbols, layer.memory);
        layer.by_name.reset();
        if (info)
            for (const image::DebugInfo::Segment& s : info->segments()) {
                if (!s.executable || s.bytes == 0) continue;
                const auto first = static_cast<std::uint32_t>(s.address.value + load_bias);
                layer.symbols.add_area(called, Address{s.address.value + load_bias}, s.bytes, s.offset);
                layer.areas.insert_or_assign(first, std::pair(first + static_cast<std::uint32_t>(s.bytes - 1), number));
            }
        const auto named = info ? image::add_all_symbols(layer.symbols, path, *info, load_bias)
                                : layer.symbols.add_elf(path, load_bias);
        if (!named)
            problem = named.error().message;
        else if (*named == 0)
            problem = path + ": no function has a name in it: it is stripped, or the file is cut";
    }
    return problem;
}

void DpuCode::add_unread(const std::string& name, std::uint32_t first, std::uint64_t bytes, std::uint64_t offset,
                         std::optional<std::size_t> file) {
    const std::size_t number = images_.size();
    for (const std::uint32_t i : layers_with(file, first, bytes)) {
        if (images_.size() == number) images_.push_back({{}, name, 0});
        layers_[i]->symbols.add_area(name, Address{first}, bytes, offset);
        layers_[i]->areas.insert_or_assign(first, std::pair(first + static_cast<std::uint32_t>(bytes - 1), number));
    }
}

void DpuCode::add_name(std::uint32_t address, std::string name) { names_.insert_or_assign(address, std::move(name)); }

DpuCode::Function DpuCode::function(const Place& place) const {
    if (const auto named = names_.find(place.address); named != names_.end())
        return {place.address, named->second, named->second, image(place)};
    if (place.layer != 0 && !turns_.layers()[place.layer].known)
        return {static_cast<std::uint32_t>(turns_.layers()[place.layer].first),
                name_of_zone(place.layer),
                {},
                image(place)};
    const auto found = function_symbol(place);
    if (!found) return {place.address, layer(place).symbols.approximate({place.address}), {}, image(place)};
    const std::uint64_t whole = layer(place).functions->whole_function(*found);
    const image::Symbol symbol =
        whole == found->address.value
            ? *found
            : function_symbol({static_cast<std::uint32_t>(whole), place.layer}).value_or(*found);
    return {static_cast<std::uint32_t>(symbol.address.value), std::string(symbol.name),
            std::string(symbol.linkage_name), image(place)};
}

DpuCode::Function DpuCode::function_around(const Place& place) const {
    if (names_.contains(place.address) || function_symbol(place)) return function(place);
    const image::Symbols& symbols = layer(place).symbols;
    if (const auto before = symbols.before({place.address}))
        return {static_cast<std::uint32_t>(before->address.value), before->name, {}, image(place)};
    const auto area = symbols.area({place.address});
    return function(area && area->first.value != 0 ? Place{static_cast<std::uint32_t>(area->first.value), place.layer}
                                                   : place);
}

std::optional<image::Symbol> DpuCode::function_symbol(const Place& place) const {
    const auto found = layer(place).symbols.find({place.address});
    if (!found || found->symbol.kind != image::SymbolKind::function) return std::nullopt;
    return found->symbol;
}

std::optional<DpuCode::Place> DpuCode::only_function(std::string_view linkage_name,
                                                     const std::vector<std::uint32_t>& layers) const {
    std::optional<Place> out;
    for (const std::uint32_t number : layers) {
        Layer& each = *layers_[number];
        if (!each.by_name) {
            each.by_name.emplace();
            for (const image::Symbol& symbol : each.symbols.all()) {
                const auto address = static_cast<std::uint32_t>(symbol.address.value);
                if (symbol.kind != image::SymbolKind::function || (number == 0 && turns_.layer(address) != 0)) continue;
                const auto [at, is_new] = each.by_name->try_emplace(std::string(symbol.linkage_name), address);
                if (!is_new && at->second != address) at->second.reset();
            }
        }
        const auto found = each.by_name->find(linkage_name);
        if (found == each.by_name->end()) continue;
        if (!found->second || out) return std::nullopt;
        out = Place{*found->second, number};
    }
    return out;
}

std::uint64_t DpuCode::home(const Place& place) const {
    constexpr std::uint64_t of_function = std::uint64_t{1} << 32, of_file = std::uint64_t{2} << 32;
    constexpr unsigned layer_bit = 34;
    const std::uint64_t where = std::uint64_t{place.layer} << layer_bit;
    if (place.layer != 0 && !turns_.layers()[place.layer].known)
        return where | of_file | turns_.layers()[place.layer].first;
    if (const auto found = function_symbol(place))
        return where | of_function | layer(place).functions->whole_function(*found);
    const auto area = layer(place).symbols.area({place.address});
    return area ? where | of_file | area->first.value : 0;
}

std::size_t DpuCode::image(const Place& place) const {
    if (const auto zone = image_of_zone_.find(place.layer); zone != image_of_zone_.end()) return zone->second;
    const auto& areas = layer(place).areas;
    const auto after = areas.upper_bound(place.address);
    if (after == areas.begin() || place.address > std::prev(after)->second.first) return no_image;
    return std::prev(after)->second.second;
}

DpuCode::Way DpuCode::way(Place start, const Place& last) const {
    constexpr unsigned most_steps = 64;
    constexpr std::string_view linkage_entry = "@plt";
    // Where files took turns, what is met on the way lies there with one of its ends.
    std::vector<std::uint32_t> layers{0};
    for (const Place& end : {last, start})
        if (std::find(layers.begin(), layers.end(), end.layer) == layers.end()) layers.push_back(end.layer);
    const auto here_at = [&](std::uint32_t address) {
        Place out = at(address);
        for (const std::uint32_t each : layers)
            if (out.layer != 0 && each != 0 && turns_.unknown(each) == out.layer) return Place{address, each};
        return out;
    };
    Way out;
    std::uint64_t here = home(start);
    auto isa = isa_at(start);
    std::optional<std::size_t> by_name;  // the last that was entered so
    for (unsigned steps = 0; steps < most_steps && start.address != last.address; ++steps) {
        if (const auto symbol = function_symbol(start); symbol && symbol->linkage_name.ends_with(linkage_entry)) {
            const std::string_view name = symbol->linkage_name;
            const auto target = only_function(name.substr(0, name.size() - linkage_entry.size()), layers);
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
        start = here_at(direct ? static_cast<std::uint32_t>(found->decoded.target.value)
                               : start.address + found->decoded.bytes);
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

std::vector<DpuCode::Place> DpuCode::places_of(const std::string& name) const {
    std::vector<Place> out;
    for (const auto& [address, each] : names_)
        if (each == name) return {{address, 0}};
    std::set<std::size_t> images;
    for (std::uint32_t i = 0; i < layers_.size(); ++i) {
        const auto found = layers_[i]->symbols.address_of(name);
        if (!found) continue;
        const Place place{static_cast<std::uint32_t>(found->value), i};
        if (i == 0 && turns_.layer(place.address) != 0) continue;
        if (images.insert(image(place)).second) out.push_back(place);
    }
    return out;
}

std::optional<DpuCode::Instruction> DpuCode::instruction(const Place& place) const {
    const auto isa = isa_at(place);
    return isa ? instruction(place, *isa) : std::nullopt;
}

std::optional<isa::Isa> DpuCode::isa_at(const Place& place) const {
    const auto contents = layer(place).symbols.contents({place.address});
    if (contents) return image::instruction_set(*contents);
    // A stripped file has no mapping symbols, but its dynamic symbols say how a function is entered.
    const auto function = function_symbol(place);
    return function ? std::optional(function->isa) : std::nullopt;
}

std::optional<DpuCode::Instruction> DpuCode::instruction(const Place& place, isa::Isa isa) const {
    const isa::Fetched fetched = isa::fetch(layer(place).memory, {}, {place.address}, isa);
    if (fetched.bytes == 0) return std::nullopt;
    const bool thumb = isa == isa::Isa::t32;
    const bool it = thumb && fetched.bytes == 2 && fetched.opcode >> 8 == 0xbf && (fetched.opcode & 0xfU) != 0;
    return Instruction{isa::decode_instr({place.address}, isa, fetched.opcode, thumb && fetched.bytes == 4, {}), it};
}

DpuCode::Change DpuCode::change(const Place& source) const {
    const auto found = instruction(source);
    if (!found) return Change::unknown;
    return found->decoded.link ? Change::call : found->decoded.function_return ? Change::ret : Change::unknown;
}

std::optional<std::uint64_t> DpuCode::instructions(std::uint32_t start, const Place& last) const {
    constexpr std::uint32_t longest = 1 << 20;
    if (start > last.address || last.address - start > longest) return std::nullopt;
    std::uint64_t count = 0;
    for (std::uint32_t at = start; at <= last.address;) {
        const auto found = instruction(Place{at, last.layer});
        if (!found || found->decoded.bytes == 0) return std::nullopt;
        at += found->decoded.bytes;
        ++count;
    }
    return count;
}

std::optional<std::uint32_t> DpuCode::loop_start(const Place& last) const {
    const auto found = instruction(last);
    if (!found || found->decoded.waypoint != isa::Waypoint::direct || found->decoded.target.value > last.address)
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

std::optional<bool> DpuFilter::matches(const dpu::TaskContext& context) const {
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
      readings_checked_(setup_),
      first_values_(setup_.initial),
      paths_(1),
      ranges_(setup_.ranges.size()) {
    if (changes_ && context_ && shown(0) == true) stay(context_);
    if (context_) show(*context_);
}

DpuCosts::~DpuCosts() = default;

const DpuCosts::Known& DpuCosts::known(const Place& place) {
    const auto found = known_.find(place);
    if (found != known_.end()) return found->second;
    return known_.emplace(place, Known{code_.function(place), code_.home(place)}).first->second;
}

void DpuCosts::consume(const dpu::Batch& batch) {
    for (const Element& e : batch.elements) {
        const bool known = e.has(Element::id_known) && e.has(Element::privilege_known);
        const std::optional<dpu::TaskContext> context = known ? std::optional(e.context) : std::nullopt;
        if (context && !e.has(Element::doubtful)) show(*context);
        switch (e.kind) {
            case ElementKind::task_switch:
            case ElementKind::flow:
            case ElementKind::sample: reading(e, batch.readings[e.value]); break;
            case ElementKind::short_loop:
            case ElementKind::long_loop: {
                DpuLoop& loop = loops_[code_.at(e.from, e.offset)];
                loop.is_short = e.kind == ElementKind::short_loop;
                ++loop.runs;
                loop.jumps += e.value;
                loop.least = std::min<std::uint64_t>(loop.least, e.value);
                loop.most = std::max<std::uint64_t>(loop.most, e.value);
                break;
            }
            case ElementKind::pair: starts_[code_.at(e.from, e.offset).layer].saw(e); break;
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
void DpuCosts::show(const dpu::TaskContext& context) {
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
bool DpuCosts::stays_shown(const dpu::TaskContext& context, std::uint64_t at) const {
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

void DpuCosts::reading(const Element& e, const Reading& sent) {
    const bool skipped = readings_checked_.skipped();
    const Reading* const believed = readings_checked_.next(sent);
    if (believed == nullptr) {
        if (doubted_.readings++ == 0) doubted_.first = e.offset;
        doubted_.last = e.offset;
        // Who runs now is known all the same.
        context_ = e.context;
        reading_at_ = e.offset.value;
        return;
    }
    const Reading& r = *believed;
    const DpuOwner who = owner(e, r);
    const DpuCounts counts = widened(r.deltas);
    if (!first_values_ || r.has(Reading::first)) first_values_ = r.values;
    if (!r.has(Reading::first)) doubt(counts, r.wide, e.offset, sent.has(Reading::lossy));
    if (skipped) [[unlikely]] {
        ++doubted_.intervals;
        add(doubted_.counts, counts);
    }
    add(intervals_, counts);
    if (who.kind == DpuOwner::Kind::unattributed) lose_stacks();
    book(who, counts, e.kind == ElementKind::sample ? std::nullopt : std::optional(code_.at(e.from, e.offset)),
         !r.has(Reading::first));
    time_ += setup_.cycles ? counts[*setup_.cycles] : 1;
    ++readings_;
    lossy_ = mixed_ = false;

    const bool changed = e.kind != ElementKind::sample;
    if (changed) flow(e);
    if (changed) run_ = code_.at(e.to, e.offset);
    if (!stay_ || stay_->context != e.context)
        stay(stays_shown(e.context, e.offset.value) ? std::optional(e.context) : std::nullopt);
    context_ = e.context;
    reading_at_ = e.offset.value;
}

/// An interval's counts go to one bucket of each view.
void DpuCosts::book(const DpuOwner& who, const DpuCounts& counts, std::optional<Place> last_pc, bool known) {
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
        const auto inside = [&](const Place& pc) {
            const DpuCodeRange& range = setup_.ranges[i];
            return pc.address >= range.first && pc.address < range.second &&
                   (range.image == DpuCode::no_image || range.image == code_.image(pc));
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
        if (in_code && last_pc && code_.takes_turns(*run_, *last_pc)) {
            // What lay there changed on the way, and nobody knows how far it had come by then.
            where = code_.function(code_.any_of(*run_));
            path = child(path, where, std::nullopt, false);
        }
        if (crosses) replace(s, code_.function_around(*last_pc), this->known(*last_pc).home, true);
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
void DpuCosts::stay(const std::optional<dpu::TaskContext>& context) {
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
                            const std::optional<dpu::TaskContext>& root, bool service) {
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

void DpuCosts::push(Stack& s, const Place& to, std::uint32_t call, bool service, const dpu::TaskContext& context) {
    const auto& at = known(to);
    const DpuCode::Function what = at.function;
    const std::size_t path = child(s.empty() ? 0 : s.back().path, what, context, service);
    ++paths_[path].calls;
    ++functions_[what].calls;
    const bool outermost = std::none_of(s.begin(), s.end(), [&](const Frame& f) { return f.function == what; });
    s.push_back({path, call, service, outermost, at.home, what, {}});
}

/// Begins a stack with the function at a place, whose caller is not known; no place: nor is its code.
void DpuCosts::begin(Stack& s, const std::optional<Place>& at, const dpu::TaskContext& context) {
    const DpuCode::Function what = at ? code_.function_around(*at) : nowhere;
    const std::size_t path = child(0, what, context, false);
    s.push_back({path, 0, context.supervisor, true, at ? known(*at).home : 0, what, {}});
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
bool DpuCosts::jump(Stack& s, const Place& start, const Place& last) {
    // The stack may be one that was left elsewhere.
    if (const std::uint64_t home = known(start).home; home != 0 && home != s.back().home)
        replace(s, code_.function_around(start), home, false);
    const std::uint64_t home = known(last).home;
    if (home == 0 || home == s.back().home) return false;
    auto found = ways_.find({start, last});
    if (found == ways_.end()) found = ways_.emplace(std::pair(start, last), code_.way(start, last)).first;
    const DpuCode::Way& way = found->second;
    for (const Place& entered : way.entered) {
        const Known& at = known(entered);
        replace(s, at.function, at.home, true);
    }
    if (home == s.back().home) return false;
    if (way.jumps_on) replace(s, code_.function_around(last), home, true);
    return !way.jumps_on;
}

/// Whether a function that has a symbol begins at an address.
bool DpuCosts::begins_at(const Place& place) {
    const DpuCode::Function& function = known(place).function;
    return function.address == place.address && code_.function_around(place) == function;
}

/// A return to where nobody waits: longjmp or a handler of a C++ exception, where a function that has a frame goes on
/// in its middle; or a function is entered that way, as the dynamic linker does once it has found it.
bool DpuCosts::unwind(Stack& s, const Place& to) {
    const Known& at = known(to);
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
    const Place from = code_.at(e.from, e.offset), to = code_.at(e.to, e.offset);
    Stack& s = stack(old_id);
    if (!s.empty() && s.back().function == nowhere) replace(s, code_.function_around(from), known(from).home, false);
    if (!before && after) {
        push(s, to, e.from, true, e.context);
        return;
    }
    if (before && !after) {
        // Back from service, to whoever runs next.
        while (!s.empty() && s.back().service == false &&
               std::any_of(s.begin(), s.end(), [](const Frame& f) { return f.service; }))
            pop(s);
        while (!s.empty() && s.back().service) pop(s);
        Stack& next = stack(e.context.id);
        const Known& at = known(to);
        if (next.empty()) {
            begin(next, to, e.context);
        } else if (at.home != 0 && at.home != next.back().home) {
            // The handler of a signal, or back from one.
            if (begins_at(to))
                push(next, to, 0, false, e.context);
            else
                static_cast<void>(unwind(next, to));
        }
        return;
    }
    const DpuCode::Change change = code_.change(from);
    if (change != DpuCode::Change::call) {
        // A return comes back to just after a call; the nearest counts.
        constexpr std::uint32_t longest_call = 8;
        const auto found = std::find_if(s.rbegin(), s.rend(), [&](const Frame& f) {
            return !f.service && f.call != 0 && e.to >= f.call && e.to - f.call <= longest_call;
        });
        if (found != s.rend()) {
            const auto keep = static_cast<std::size_t>(s.rend() - found) - 1;
            while (s.size() > keep) pop(s);
            if (s.empty()) begin(s, to, e.context);
            return;
        }
        // No call leads into the middle of a function.
        const bool inside = known(to).function.address != e.to;
        if ((change == DpuCode::Change::ret || inside) && unwind(s, to)) return;
        if (change == DpuCode::Change::ret) {
            ++returns_without_call_;
            while (!s.empty()) pop(s);
            begin(s, to, e.context);
            return;
        }
    }
    push(s, to, e.from, false, e.context);
}

// ---- the end

void DpuCosts::finish() {
    if (const auto& values = readings_checked_.values(); setup_.final && values) {
        DpuCounts counts{};
        for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = dpu::counted((*values)[i], (*setup_.final)[i]);
        const bool skipped = readings_checked_.skipped();
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
    for (auto& [id, s] : stacks_)
        while (!s.empty()) pop(s);
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
        dpu::LoopStarts& starts = starts_[last.layer];
        if (const auto start = code_.loop_start(last)) starts.set(last.address, *start);
        loop.start = starts.find(last.address);
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
        else if (const auto& values = readings_checked_.values())
            out[i].to = (*values)[i];
    }
    return out;
}

}  // namespace waymark::analysis
