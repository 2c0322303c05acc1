#include "waymark/analysis/dpu_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "waymark/analysis/flow_code.h"

namespace waymark::analysis {

struct DpuCode::Layer {
    Layer() : functions(std::make_unique<FlowCode>(symbols, memory)) {
        symbols.accept(image::Machines::arm_and_starcore);
    }

    image::MemoryMap memory;
    image::Symbols symbols;
    std::map<std::uint32_t, std::pair<std::uint32_t, std::size_t>> areas;  ///< first → last address, image
    std::unique_ptr<FlowCode> functions;  ///< knows which function a `.cold` part belongs to
    /// Made on first use. nullopt as address: several functions have that name.
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
        // Instructions of StarCore are not decoded: StarCore programs only give names and lines.
        if (!info || !info->is_starcore())
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
    // Where files took turns in memory, code along the way belongs to the file in effect at either end.
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
    std::optional<std::size_t> by_name;  // the last function that was entered by its name
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
    // The name may belong to a static function, or to the target of a conditional jump.
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

}  // namespace waymark::analysis
