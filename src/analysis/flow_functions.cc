#include "flow_functions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "waymark/analysis/program.h"
#include "waymark/image/program_file.h"

namespace waymark::analysis {

using namespace answers;

std::string exception_text(const flow::ExceptionType& type) {
    return type.known() ? std::string(type.name) : fmt::format("exception {}", type.number);
}

isa::Space space_of(const image::MemoryMap& memory, const flow::Block& block) {
    for (const bool ns : {false, true})
        for (const bool hyp : {false, true}) {
            const isa::Space space{ns, hyp, {}, {}};
            if (isa::fetch(memory, space, {block.start}, block.isa).section == block.section) return space;
        }
    return {};
}

bool is_damaged(const Troubles& t) {
    const auto any = [](const auto& troubles) {
        return std::any_of(troubles.begin(), troubles.end(), [](const Trouble& one) { return one.times != 0; });
    };
    auto gaps = t.gaps;
    for (const GapReason harmless :
         {GapReason::unsynchronised, GapReason::padding, GapReason::incomplete_packet, GapReason::stopped})
        gaps[static_cast<std::size_t>(harmless)] = {};
    return t.overflows.times != 0 || t.hides_code() || any(gaps) || any(t.contradictions);
}

FlowFunctions::FlowFunctions(Answers& answers, const std::vector<FlowStream>& streams,
                             const FlowAnswersOptions& options)
    : a_(answers), streams_(streams), options_(options) {
    open_files();
    sum_blocks();
    find_entries();
    gather_functions();
}

// ---- files and images

void FlowFunctions::open_files() {
    // Only the whole path distinguishes files of one name without build IDs.
    std::map<std::string, std::set<std::string>> paths;
    const auto recorded = [](const ProgramFile& f) { return f.name.empty() ? f.path : f.name; };
    for (const ProgramFile& f : options_.files)
        if (const auto info = image::DebugInfo::open(f.path, f.debug_folders); info && info->build_id().empty())
            paths[std::string(Program::short_name(recorded(f)))].insert(recorded(f));
    for (const ProgramFile& f : options_.files) {
        auto info = image::DebugInfo::open(f.path, f.debug_folders);
        if (!info) continue;
        const std::string id = fmt::format("{:02x}", fmt::join(info->build_id(), ""));
        std::string name(Program::short_name(recorded(f)));
        if (const auto same = paths.find(name); id.empty() && same != paths.end() && same->second.size() > 1)
            name = recorded(f);
        const Index image = image_of_file(name, id, f.path);
        Image& known = a_.images[image];
        known.path = f.path;
        if (known.recorded.empty() || f.name < known.recorded) known.recorded = f.name;
        known.build_id = id;
        // If two files have the same build, such as a stripped one and its original, use the data of either.
        const bool symbols = known.has_symbols.value_or(false) || image::has_symbol_table(f.path, *info);
        known.has_symbols = symbols;
        if (options_.instructions) known.whole |= symbols && has_all_code(*info, f.load_bias);
        for (const image::DebugInfo::Segment& s : info->segments())
            file_ranges_.add(s.address.value + f.load_bias, s.bytes, files_.size());
        files_.push_back({std::move(*info), f.load_bias, image, {}});
    }
}

/// True if every page of its executable segments is known, whether it ran or not.
bool FlowFunctions::has_all_code(const image::DebugInfo& info, std::uint64_t bias) {
    constexpr std::uint64_t page = 4096;
    for (const image::DebugInfo::Segment& s : info.segments()) {
        if (!s.executable) continue;
        for (std::uint64_t at = 0; at < s.bytes; at += page - (s.address.value + bias + at) % page)
            if (region_at(s.address.value + bias + at) == nullptr) return false;
    }
    return true;
}

/// One build is one image, also under several file names; without a build ID each file is an image.
Index FlowFunctions::image_of_file(const std::string& name, const std::string& build_id, const std::string& path) {
    for (std::size_t i = 0; i < a_.images.size(); ++i) {
        const Image& known = a_.images[i];
        const bool same = known.path.empty() ? known.name == name
                          : build_id.empty() ? known.build_id.empty() && known.path == path
                                             : known.build_id == build_id;
        if (same) return static_cast<Index>(i);
    }
    if (!images_.contains(name)) return image_of(name);
    a_.images.push_back({name});
    return static_cast<Index>(a_.images.size() - 1);
}

Index FlowFunctions::image_of(const std::string& name) {
    const auto [at, fresh] = images_.try_emplace(name, static_cast<Index>(a_.images.size()));
    if (fresh) a_.images.push_back({name});
    return at->second;
}

FlowFunctions::File* FlowFunctions::file_at(std::uint64_t address) {
    const auto found = file_ranges_.find(address);
    return found ? &files_[*found] : nullptr;
}

/// The image name in a section name: `kernel.elf` in `kernel.elf[LOAD 0]`.
Index FlowFunctions::section_image(const image::MemoryMap& memory, std::uint32_t section) {
    std::string name = memory.sections()[section].name;
    if (const std::size_t bracket = name.rfind('['); bracket != std::string::npos && bracket != 0) name.resize(bracket);
    while (!name.empty() && name.back() == ' ') name.pop_back();
    return image_of(std::string(Program::short_name(name)));
}

Index FlowFunctions::image_at(std::uint64_t address) {
    if (const File* f = file_at(address)) return f->image;
    if (const auto area = symbols().area({address}))
        return area->file.empty() ? none : image_of(std::string(area->name));
    const Region* region = region_at(address);
    return region == nullptr ? none : section_image(*region->memory, region->section);
}

// ---- functions

void FlowFunctions::sum_blocks() {
    for (const FlowStream& s : streams_)
        for (const FlowCounts* counts : s.sink->counts())
            for (std::size_t edge = 0; edge < counts->times.size(); ++edge) {
                if (counts->times[edge] == 0) continue;
                const flow::Block& b = counts->known.blocks[edge / 2];
                BlockSum& sum = blocks_[{b.start, b.bytes, b.section, b.isa}];
                sum.block = b;
                sum.times[edge & 1U] += counts->times[edge];
                sum.stream = &s;
                if (const std::uint64_t cycles = counts->block_cycles[edge / 2];
                    (edge & 1U) != 0 || counts->times[edge | 1U] == 0)
                    sum.cycles += cycles;
            }
}

/// Places in code without symbols that are called.
void FlowFunctions::find_entries() {
    const auto add = [&](std::uint64_t to) {
        if (!symbols().find({to})) entries_.insert(to);
    };
    for (const auto& [key, sum] : blocks_)
        if (sum.times[1] != 0 && sum.block.end == flow::End::direct && (sum.block.flags & flow::Block::link) != 0)
            add(sum.block.target);
    for (const FlowStream& s : streams_) {
        if (!s.sink->options().calls)
            for (const FlowCounts* counts : s.sink->counts())
                for (const Way& way : counts->ways())
                    if ((counts->known.blocks[way.edge / 2].flags & flow::Block::link) != 0 && region_at(way.to))
                        add(way.to);
        const std::vector<CodeFunction> known = s.sink->code().functions();
        for (const FlowCalls::Tree& tree : s.sink->calls().trees())
            for (const CallTree::Node& node : tree.tree.nodes())
                if (known[node.function].kind == Kind::entry) entries_.insert(known[node.function].value);
    }
}

const FlowFunctions::Region* FlowFunctions::region_at(std::uint64_t address) {
    if (regions_.empty())
        for (const FlowStream& s : streams_)
            for (const image::Region& r : s.sink->code().memory().regions()) {
                if (r.shadowed_by) continue;
                region_ranges_.add(r.address.value, r.bytes, regions_.size());
                regions_.push_back({r.address.value, r.section, &s.sink->code().memory()});
            }
    const auto found = region_ranges_.find(address);
    return found ? &regions_[*found] : nullptr;
}

/// The function that an address belongs to.
CodeFunction FlowFunctions::at(std::uint64_t address) {
    if (const auto found = symbols().find({address}))
        return {Kind::symbol, streams_.front().sink->code().whole_function(found->symbol)};
    const auto area = symbols().area({address});
    const Region* region = area ? nullptr : region_at(address);
    const std::uint64_t begin = area ? area->first.value : region == nullptr ? 0 : region->address;
    if (const auto after = entries_.upper_bound(address); after != entries_.begin()) {
        const std::uint64_t entry = *std::prev(after);
        if (entry >= begin && (!symbols_between(entry, address))) return {Kind::entry, entry};
    }
    return {Kind::section, begin};
}

bool FlowFunctions::symbols_between(std::uint64_t first, std::uint64_t address) {
    if (starts_.empty() && symbols().size() != 0)
        for (const image::Symbol& s : symbols().all()) starts_.push_back(s.address.value);
    const auto at = std::lower_bound(starts_.begin(), starts_.end(), first);
    return at != starts_.end() && *at <= address;
}

Function FlowFunctions::describe(const CodeFunction& f) {
    Function out;
    out.address = f.value;
    switch (f.kind) {
        case Kind::symbol:
            if (const auto found = symbols().find({f.value})) {
                out.name = found->name;
                out.linkage_name = found->symbol.linkage_name;
                out.bytes = found->symbol.bytes;
            }
            break;
        case Kind::entry:
            out.name = symbols().approximate({f.value});
            if (out.name.empty()) out.name = fmt::format("{:#010x}", f.value);
            break;
        case Kind::section: {
            out.image = image_at(f.value);
            out.name = out.image != none                       ? "(no symbol) in " + a_.images[out.image].name
                       : symbols().area({f.value}).has_value() ? "(no symbol) in code of no file"
                                                               : "[unknown]";
            return out;
        }
        case Kind::exception:
            out.name = fmt::format("[exception: {}]", exception_text(f.exception));
            out.address = 0;
            out.synthetic = true;
            return out;
        case Kind::unknown:
            out.name = "[unknown]";
            out.synthetic = true;
            return out;
    }
    out.image = image_at(f.value);
    if (File* file = file_at(f.value)) {
        const Address in_file{f.value - file->bias};
        auto declared = file->info.function(in_file);
        // The first instruction may belong to a function that was inlined there, so that its line is in other code.
        if (const auto line = declared ? std::optional(declared->at) : file->info.line(in_file)) {
            out.source = source(line->file);
            out.line = line->line;
        }
        if (options_.inlined)
            if (declared) {
                out.declared_name = std::move(declared->linkage_name);
                out.declared_source = source(declared->at.file);
                out.declared_line = declared->at.line;
                out.by_llvm = declared->by_llvm;
            }
    }
    return out;
}

Index FlowFunctions::source(const std::string& path) {
    const auto [at, fresh] = sources_.try_emplace(path, static_cast<Index>(a_.sources.size()));
    if (fresh) a_.sources.push_back({path});
    return at->second;
}

/// Collects all functions for which any result exists, sorted by image, source and address.
void FlowFunctions::gather_functions() {
    std::set<CodeFunction> used;
    for (const auto& [key, sum] : blocks_) used.insert(at(key.start));
    for (const FlowStream& s : streams_) {
        const std::vector<CodeFunction> known = s.sink->code().functions();
        for (const FlowCalls::Tree& tree : s.sink->calls().trees())
            for (const CallTree::Node& node : tree.tree.nodes())
                if (node.function != no_function) used.insert(known[node.function]);
    }
    for (const CodeFunction& f : used) {
        functions_[f] = static_cast<Index>(a_.functions.size());
        a_.functions.push_back(describe(f));
    }
}

Index FlowFunctions::index_of(const CodeFunction& f) {
    const auto [at, fresh] = functions_.try_emplace(f, static_cast<Index>(a_.functions.size()));
    if (fresh) a_.functions.push_back(describe(f));
    return at->second;
}

}  // namespace waymark::analysis
