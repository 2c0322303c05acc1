#include "waymark/pipeline/process_code.h"

#include <algorithm>
#include <type_traits>

namespace waymark::pipeline {

namespace {

void add_thread(std::vector<std::uint32_t>& threads, std::uint32_t thread) {
    constexpr std::size_t most = 4;
    if (threads.size() < most && std::find(threads.begin(), threads.end(), thread) == threads.end())
        threads.push_back(thread);
}

std::uint64_t hash_of(const std::vector<capture::MappedExtent>& extents) {
    std::uint64_t h = 0x9e3779b97f4a7c15;
    const auto mix = [&](std::uint64_t value) {
        h = (h ^ value) * 0xff51afd7ed558ccd;
        h ^= h >> 32;
    };
    for (const capture::MappedExtent& e : extents) {
        mix(e.first);
        mix(e.last);
        mix(e.shift);
        mix(std::uint64_t{e.module} << 32 | e.name);
        mix(std::uint64_t{e.code} << 32 | e.other);
    }
    return h;
}

}  // namespace

// ---- ProcessCode

std::uint32_t ProcessCode::number(std::optional<std::uint32_t> thread, std::uint64_t from, std::uint64_t to) const {
    State state{spaces_->key(thread, from, to), {}, {}};
    if (changed_) {
        if (state.key) state.process = changed_->state(state.key->process, from, to);
        state.kernel = changed_->state(capture::CodeChange::kernel, from, to);
    }
    const std::scoped_lock lock(mutex_);
    if (const auto known = numbers_.find(state); known != numbers_.end()) return known->second;
    auto space = std::make_unique<Space>();
    if (state.key) space->extents = spaces_->extents(*state.key);
    if (changed_) {
        if (state.key && state.key->process != capture::CodeChange::kernel)
            changed_->apply(state.key->process, state.process, space->extents);
        changed_->apply(capture::CodeChange::kernel, state.kernel, space->extents);
    }
    const std::uint64_t hash = hash_of(space->extents);
    std::uint32_t number = 0;
    const auto [first, last] = by_contents_.equal_range(hash);
    for (auto at = first; at != last && number == 0; ++at)
        if (all_[at->second - 1]->extents == space->extents) number = at->second;
    if (number == 0) {
        all_.push_back(std::move(space));
        number = static_cast<std::uint32_t>(all_.size());
        by_contents_.emplace(hash, number);
    }
    numbers_.emplace(state, number);
    return number;
}

const ProcessCode::Space& ProcessCode::space(std::uint32_t number) const {
    const std::scoped_lock lock(mutex_);
    return *all_[number - 1];
}

const capture::MappedExtent* ProcessCode::extent(std::uint32_t number, std::uint64_t address) const {
    const auto& extents = space(number).extents;
    const auto after = std::upper_bound(extents.begin(), extents.end(), address,
                                        [](std::uint64_t a, const capture::MappedExtent& e) { return a < e.first; });
    if (after == extents.begin()) return nullptr;
    const capture::MappedExtent& found = *(after - 1);
    return address <= found.last ? &found : nullptr;
}

capture::MappedExtent ProcessCode::gap(std::uint32_t number, std::uint64_t address) const {
    const auto& extents = space(number).extents;
    const auto after = std::upper_bound(extents.begin(), extents.end(), address,
                                        [](std::uint64_t a, const capture::MappedExtent& e) { return a < e.first; });
    capture::MappedExtent out;
    out.first = after == extents.begin() ? 0 : (after - 1)->last + 1;
    out.last = after == extents.end() ? ~std::uint64_t{0} : after->first - 1;
    out.module = capture::no_module;
    return out;
}

isa::Code ProcessCode::at(std::uint32_t number, Address address) const {
    const capture::MappedExtent* const mapped = extent(number, address.value);
    if (mapped == nullptr && by_hand_.empty()) return {};
    const capture::MappedExtent found = mapped != nullptr ? *mapped : gap(number, address.value);
    if (mapped != nullptr && found.module == capture::no_module && found.code == 0) return {};
    isa::Code code = places_->at({address.value - found.shift}, {});
    if (mapped == nullptr && !std::binary_search(by_hand_.begin(), by_hand_.end(), code.section)) return {};
    if (found.code != 0) code.bytes = changed_->code(found).subspan(address.value - found.first);
    if (code.bytes.empty()) return {};
    if (code.bytes.size() - 1 > found.last - address.value)
        code.bytes = code.bytes.first(static_cast<std::size_t>(found.last - address.value + 1));
    const std::scoped_lock lock(mutex_);
    const auto [at, fresh] = sections_.try_emplace({code.section, found}, static_cast<std::uint32_t>(placed_.size()));
    if (fresh) {
        placed_.push_back({found.shift, code.section, number, found.name, found.other});
        if (found.other != capture::no_name) any_uncertain_ = true;
    }
    code.section = at->second;
    return code;
}

ProcessCode::Placed ProcessCode::placed(std::uint32_t section) const {
    const std::scoped_lock lock(mutex_);
    return section < placed_.size() ? placed_[section] : Placed{};
}

// ---- ProcessReader

void ProcessReader::begin(std::uint64_t from, std::uint64_t to, std::optional<std::uint32_t> thread) {
    const std::scoped_lock lock(mutex_);
    from_ = from;
    to_ = to;
    thread_ = thread;
    numbers_.clear();
}

std::optional<std::uint32_t> ProcessReader::thread(const isa::Space& space) const {
    const auto thread = code_->spaces().thread_of(space.context_id, space.vmid);
    return thread ? thread : thread_;
}

std::uint32_t ProcessReader::number(const isa::Space& space) const {
    if (space.number != 0) return space.number;
    const std::optional<std::uint32_t> thread = this->thread(space);
    const std::scoped_lock lock(mutex_);
    const auto known = numbers_.find(thread);
    if (known != numbers_.end()) return known->second;
    const std::uint32_t number = code_->number(thread, from_, to_);
    numbers_.emplace(thread, number);
    return number;
}

isa::Code ProcessReader::at(Address address, const isa::Space& space) const {
    return code_->at(number(space), address);
}

isa::Space ProcessReader::view(const isa::Space& space) const {
    // Files look the same from every security state and exception level.
    isa::Space out;
    out.number = number(space);
    return out;
}

// ---- PlacedBlocks

std::span<const flow::Block> PlacedBlocks::of(std::span<const flow::Block> blocks) {
    const std::scoped_lock lock(mutex_);
    if (blocks.size() > room_) {
        const std::size_t room = std::max<std::size_t>({1024, 2 * room_, blocks.size()});
        auto array = std::make_unique<flow::Block[]>(room);
        if (!arrays_.empty()) std::copy_n(arrays_.back().get(), size_, array.get());
        arrays_.push_back(std::move(array));  // readers of the previous array keep it
        room_ = room;
    }
    for (; size_ < blocks.size(); ++size_) {
        flow::Block block = blocks[size_];
        const ProcessCode::Placed placed = code_.placed(block.section);
        block.start -= placed.shift;
        if (block.end == flow::End::direct || block.end == flow::End::barrier) {
            // The address may belong to another file.
            const capture::MappedExtent* const there =
                placed.number == 0 ? nullptr : code_.extent(placed.number, block.target);
            block.target -= there == nullptr ? placed.shift : there->shift;
        }
        block.section = placed.section;
        arrays_.back()[size_] = block;
    }
    return arrays_.empty() ? std::span<const flow::Block>() : std::span(arrays_.back().get(), blocks.size());
}

// ---- ProcessSink

ProcessSink::ProcessSink(const ProcessReader& reader, flow::Sink& sink, bool moves)
    : reader_(reader), sink_(&sink), moves_(moves), blocks_(std::make_shared<PlacedBlocks>(reader.code())) {}

ProcessSink::ProcessSink(const ProcessReader& reader, std::unique_ptr<flow::Sink> sink, bool moves,
                         std::shared_ptr<PlacedBlocks> blocks)
    : reader_(reader), sink_(sink.get()), own_(std::move(sink)), moves_(moves), blocks_(std::move(blocks)) {}

std::uint32_t ProcessSink::number() {
    if (!number_) number_ = reader_.view(context_.space()).number;
    return *number_;
}

Address ProcessSink::place(Address address) {
    const capture::MappedExtent* found = reader_.code().extent(number(), address.value);
    return found == nullptr ? address : Address{address.value - found->shift};
}

flow::Context ProcessSink::of_thread(flow::Context context) const {
    context.context_id = reader_.thread(context.space());
    context.vmid.reset();
    return context;
}

void ProcessSink::see(const flow::Event& event) {
    if (const auto* context = std::get_if<flow::Context>(&event.what)) {
        context_ = *context;
        number_.reset();
    } else if (const auto* none = std::get_if<flow::NoMemory>(&event.what)) {
        const capture::MappedExtent* found = reader_.code().extent(number(), none->address.value);
        const std::optional<std::uint32_t> name = found == nullptr ? std::nullopt : std::optional(found->name);
        const auto [at, fresh] = missing_.try_emplace(name);
        now_ = &at->second;
        if (fresh) {
            now_->name = name;
            now_->first = none->address;
        }
        now_->first = std::min(now_->first, none->address);
        ++now_->times;
        if (!name)
            if (const auto thread = reader_.thread(context_.space())) add_thread(now_->threads, *thread);
    } else if (const auto* atoms = std::get_if<flow::Atoms>(&event.what)) {
        if (now_ != nullptr) now_->outcomes += atoms->taken + atoms->not_taken;
    } else if (std::holds_alternative<Gap>(event.what) || std::holds_alternative<flow::TraceOn>(event.what)) {
        now_ = nullptr;
        // A new AUX range may have begun, at another time.
        number_.reset();
    }
}

void ProcessSink::move(flow::What& what) {
    std::visit(
        [&](auto& e) {
            using T = std::decay_t<decltype(e)>;
            if constexpr (std::is_same_v<T, flow::Exception>) {
                if (e.preferred_return) e.preferred_return = place(*e.preferred_return);
                if (e.vector) e.vector = place(*e.vector);
            } else if constexpr (std::is_same_v<T, flow::NoMemory> || std::is_same_v<T, flow::Reached>) {
                e.address = place(e.address);
            } else if constexpr (std::is_same_v<T, flow::Inconsistency>) {
                e.found = place(e.found);
                e.expected = place(e.expected);
            } else if constexpr (std::is_same_v<T, flow::Untraced>) {
                e.from = place(e.from);
                e.to = place(e.to);
            } else if constexpr (std::is_same_v<T, flow::Context>) {
                e = of_thread(e);
            }
        },
        what);
}

void ProcessSink::see(const flow::Block& block, std::uint64_t times) {
    if (block.section >= placed_.size()) placed_.resize(std::size_t{block.section} + 1);
    std::optional<ProcessCode::Placed>& placed = placed_[block.section];
    if (!placed) placed = reader_.code().placed(block.section);
    if (placed->other == capture::no_name) return;
    const auto [at, fresh] = uncertain_.try_emplace({placed->name, placed->other});
    UncertainCode& code = at->second;
    if (fresh) code = {placed->name, placed->other, 0, 0, Address{block.start}};
    code.ranges += times;
    code.instructions += times * block.instructions;
    code.first = std::min(code.first, Address{block.start});
}

void ProcessSink::consume(const flow::Batch& batch) {
    if (reader_.code().any_uncertain())
        for (const flow::Range& range : batch.ranges) see(batch.blocks[range.block()], range.times);
    if (!moves_) {
        for (const flow::Event& event : batch.events) see(event);
        return sink_->consume(batch);
    }
    moved_.assign(batch.events.begin(), batch.events.end());
    for (flow::Event& event : moved_) {
        see(event);
        move(event.what);
    }
    sink_->consume({blocks_->of(batch.blocks), batch.base, batch.ranges, moved_, batch.repeats});
}

void ProcessSink::take_counts(const flow::EdgeCounts& counts) {
    if (reader_.code().any_uncertain())
        for (std::size_t edge = 0; edge < counts.times.size(); ++edge)
            if (counts.times[edge] != 0) see(counts.blocks[edge / 2], counts.times[edge]);
    flow::EdgeCounts moved = counts;
    if (moves_) moved.blocks = blocks_->of(counts.blocks);
    sink_->take_counts(moved);
}

std::unique_ptr<flow::Sink> ProcessSink::fork() const {
    return std::unique_ptr<flow::Sink>(new ProcessSink(reader_, sink_->fork(), moves_, blocks_));
}

void ProcessSink::begin_at(const flow::Context& context) {
    context_ = context;
    number_.reset();
    sink_->begin_at(moves_ ? of_thread(context) : context);
}

void ProcessSink::join(flow::Sink& fork) {
    auto& other = static_cast<ProcessSink&>(fork);
    for (const auto& [name, code] : other.missing_) {
        const auto [at, fresh] = missing_.try_emplace(name, code);
        if (fresh) continue;
        at->second.times += code.times;
        at->second.outcomes += code.outcomes;
        at->second.first = std::min(at->second.first, code.first);
        for (const std::uint32_t thread : code.threads) add_thread(at->second.threads, thread);
    }
    for (const auto& [names, code] : other.uncertain_) {
        const auto [at, fresh] = uncertain_.try_emplace(names, code);
        if (fresh) continue;
        at->second.ranges += code.ranges;
        at->second.instructions += code.instructions;
        at->second.first = std::min(at->second.first, code.first);
    }
    // In trace order, the fork decoded the most recent part.
    if (split() != flow::Split::per_worker) {
        context_ = other.context_;
        number_.reset();
        now_ = nullptr;
    }
    sink_->join(*other.sink_);
}

std::vector<UncertainCode> ProcessSink::uncertain() const {
    std::vector<UncertainCode> out;
    for (const auto& [names, code] : uncertain_) out.push_back(code);
    return out;
}

std::vector<MissingCode> ProcessSink::missing() const {
    std::vector<MissingCode> out;
    for (const auto& [name, code] : missing_) out.push_back(code);
    std::stable_sort(out.begin(), out.end(),
                     [](const MissingCode& a, const MissingCode& b) { return a.times > b.times; });
    return out;
}

}  // namespace waymark::pipeline
