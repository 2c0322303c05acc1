#include "waymark/analysis/flow_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "flow_functions.h"
#include "waymark/image/system_calls.h"
#include "waymark/isa/decode_instr.h"

namespace waymark::analysis {

namespace {

constexpr std::string_view cold_suffix = ".cold";

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
}
/// Functions that can return several times to the same address.
bool returns_twice(std::string_view name) {
    constexpr std::array<std::string_view, 6> names{"setjmp",    "_setjmp",     "__setjmp",
                                                    "sigsetjmp", "__sigsetjmp", "getcontext"};
    return is_one_of(name, names);
}
/// Functions that end a C++ cleanup: the frame of the cleanup is finished.
bool unwinds(std::string_view name) {
    constexpr std::array<std::string_view, 2> names{"_Unwind_Resume", "__cxa_end_cleanup"};
    return is_one_of(name, names);
}

/// The type for one system call, in static storage.
const flow::ExceptionType& as_system_call(const flow::ExceptionType& type, const image::SystemCall& call) {
    struct Types {
        std::mutex mutex;
        std::map<std::tuple<flow::ExceptionType, std::uint32_t, bool>, std::pair<std::string, flow::ExceptionType>> all;
    };
    static Types types;
    const std::scoped_lock lock(types.mutex);
    const auto [at, fresh] = types.all.try_emplace({type, call.number, call.aarch64});
    auto& [name, made] = at->second;
    if (fresh) {
        name = call.name().empty() ? fmt::format("system call {}", call.number)
                                   : fmt::format("system call {}", call.name());
        made = {type.number, flow::ExceptionClass::supervisor_call, name};
    }
    return made;
}

}  // namespace

FlowCode::FlowCode(const image::Symbols& symbols, const image::MemoryMap& memory) : symbols_(symbols), memory_(memory) {
    functions_.push_back({});
    for (const image::Region& r : memory.regions()) {
        if (r.shadowed_by || r.bytes == 0) continue;
        areas_.push_back(
            {r.address.value, r.address.value + (r.bytes - 1), memory.sections()[r.section].address.value});
    }
    // If address spaces differ, the name comes from the first area.
    std::stable_sort(areas_.begin(), areas_.end(), [](const Area& a, const Area& b) { return a.first < b.first; });
}

FunctionId FlowCode::number(CodeFunction function) {
    const auto [at, fresh] = numbers_.try_emplace(function, static_cast<FunctionId>(functions_.size()));
    if (fresh) functions_.push_back(function);
    return at->second;
}

std::uint64_t FlowCode::whole_function(const image::Symbol& symbol) const {
    if (!symbol.linkage_name.ends_with(cold_suffix)) return symbol.address.value;
    std::call_once(cold_parts_known_, [&] {
        // Several functions of one name cannot be distinguished.
        std::unordered_map<std::string_view, std::pair<std::uint64_t, std::size_t>> by_name;
        const std::vector<image::Symbol> all = symbols_.all();
        for (const image::Symbol& s : all)
            if (s.kind == image::SymbolKind::function) {
                auto& [address, times] = by_name[s.linkage_name];
                if (times == 0 || address != s.address.value) ++times;
                address = s.address.value;
            }
        for (const image::Symbol& s : all) {
            if (!s.linkage_name.ends_with(cold_suffix)) continue;
            const auto found = by_name.find(s.linkage_name.substr(0, s.linkage_name.size() - cold_suffix.size()));
            const auto cold = by_name.find(s.linkage_name);
            if (found != by_name.end() && found->second.second == 1 &&
                (cold == by_name.end() || cold->second.second <= 1))
                cold_parts_[s.address.value] = found->second.first;
        }
    });
    const auto found = cold_parts_.find(symbol.address.value);
    return found == cold_parts_.end() ? symbol.address.value : found->second;
}

FunctionId FlowCode::home(std::uint64_t address) {
    if (const auto found = symbols_.find({address}))
        return number({CodeFunction::Kind::symbol, whole_function(found->symbol)});
    if (const auto area = symbols_.area({address})) return number({CodeFunction::Kind::section, area->first.value});
    const auto after = std::upper_bound(areas_.begin(), areas_.end(), address,
                                        [](std::uint64_t a, const Area& area) { return a < area.first; });
    const bool known = after != areas_.begin() && address <= (after - 1)->last;
    return number({CodeFunction::Kind::section, known ? (after - 1)->begin : 0});
}

Arrival FlowCode::find(std::uint64_t address) {
    Arrival place{.address = address, .home = home(address)};
    const CodeFunction& function = functions_[place.home];
    if (function.kind == CodeFunction::Kind::symbol) {
        place.entry = place.home;
        place.begins = function.value == address;
        if (place.begins) {
            const auto found = symbols_.find({address});
            place.returns_twice = found && returns_twice(found->symbol.linkage_name);
            place.unwinds = found && unwinds(found->symbol.linkage_name);
        }
    } else {
        place.entry = number({CodeFunction::Kind::entry, address});
    }
    return place;
}

Arrival FlowCode::place(std::uint64_t address) {
    const std::scoped_lock lock(mutex_);
    return find(address);
}

FunctionId FlowCode::exception(const flow::ExceptionType& type) {
    const std::scoped_lock lock(mutex_);
    return number({CodeFunction::Kind::exception, 0, type});
}

const flow::ExceptionType& FlowCode::type_of(const flow::Exception& exception) {
    const flow::ExceptionType& type = *exception.type;
    const bool call = type.kind == flow::ExceptionClass::supervisor_call || type.kind == flow::ExceptionClass::call;
    if (!call || !exception.preferred_return || !symbols_.are_for_linux()) return type;
    const std::scoped_lock lock(mutex_);
    const auto [at, fresh] = system_calls_.try_emplace({&type, exception.preferred_return->value}, &type);
    for (unsigned state = 0; fresh && state < image::SpaceFilter::states; ++state)
        if (const auto found = image::system_call_before(memory_, image::SpaceFilter::space(state), symbols_,
                                                         *exception.preferred_return)) {
            at->second = &as_system_call(type, *found);
            break;
        }
    return *at->second;
}

FunctionId FlowCode::known_elsewhere(const CodeFunction& function) {
    const std::scoped_lock lock(mutex_);
    return function.kind == CodeFunction::Kind::unknown ? no_function : number(function);
}

std::vector<CodeFunction> FlowCode::functions() const {
    const std::scoped_lock lock(mutex_);
    return functions_;
}

std::span<const FlowCode::Crossing> FlowCode::Known::crossings_of(std::uint32_t block) const {
    const auto less = [](const Crossing& c, std::uint32_t number) { return c.block < number; };
    const auto first = std::lower_bound(crossings.begin(), crossings.end(), block, less);
    return {first, std::lower_bound(first, crossings.end(), block + 1, less)};
}

FunctionId FlowCode::cross(const flow::Block& block, std::uint32_t number, FunctionId first) {
    if (block.instructions < 2 || home(last_address(block)) == first) return first;
    // In Thumb and x86-64, the length of an instruction depends on its code.
    const bool four_bytes = block.isa == isa::Isa::a32 || block.isa == isa::Isa::a64;
    const isa::Space space = four_bytes ? isa::Space{} : space_of(memory_, block);
    FunctionId here = first;
    std::uint64_t at = block.start;
    for (std::uint32_t done = 0; done < block.instructions; ++done) {
        if (const FunctionId next = home(at); next != here) {
            all_.crossings.push_back({number, done, find(at)});
            here = next;
        }
        std::uint64_t bytes = 4;
        if (!four_bytes) {
            const auto instruction = isa::decode_at(memory_, space, {at}, block.isa, {});
            if (!instruction) break;
            bytes = instruction->bytes;
        }
        at += bytes;
    }
    return here;
}

void FlowCode::extend(Known& known, std::span<const flow::Block> blocks) {
    using flow::Block;
    const std::scoped_lock lock(mutex_);
    for (std::size_t i = all_.blocks.size(); i < blocks.size(); ++i) {
        const Block& b = blocks[i];
        all_.blocks.push_back(b);
        const Arrival place = find(b.start);
        all_.places.push_back(place);
        const FunctionId last = cross(b, static_cast<std::uint32_t>(i), place.home);
        const bool crosses = last != place.home || !all_.crossings_of(static_cast<std::uint32_t>(i)).empty();
        // After a crossing, `leaves` has the same effect as `stays`. It marks the crossing.
        const Effect stays = crosses ? Effect::leaves : Effect::stays;
        const auto leads = [&](std::uint64_t to) { return home(to) == last ? stays : Effect::leaves; };
        const Effect on = leads(b.start + b.bytes);
        Effect taken = stays;
        if (b.end == flow::End::barrier || b.end == flow::End::not_a_waypoint)
            taken = on;
        else if ((b.flags & Block::exception_return) != 0)
            taken = Effect::exception_return;
        else if ((b.flags & Block::link) != 0)
            taken = Effect::call;
        else if ((b.flags & Block::function_return) != 0)
            taken = Effect::function_return;
        else if (b.end == flow::End::indirect)
            taken = Effect::jump;
        else if (b.end == flow::End::direct)
            taken = leads(b.target);
        all_.edges.push_back({b.instructions, on, crosses});
        all_.edges.push_back({b.instructions, taken, crosses});
    }
    const auto add = [](auto& to, const auto& from) {
        to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(to.size()), from.end());
    };
    add(known.blocks, all_.blocks);
    add(known.places, all_.places);
    add(known.edges, all_.edges);
    add(known.crossings, all_.crossings);
}

}  // namespace waymark::analysis
