#include "waymark/doctor/images.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <variant>

#include "waymark/core/numbers.h"
#include "waymark/image/debug_info.h"
#include "waymark/isa/decode_instr.h"

namespace waymark::doctor {

namespace {

/// No program executes this many bytes without a branch.
constexpr std::uint32_t longest_walk = 64 * 1024;

class TrialSink final : public flow::Sink {
public:
    explicit TrialSink(Trial& out) : out_(out) {}
    TrialSink(const TrialSink&) = delete;
    TrialSink& operator=(const TrialSink&) = delete;
    ~TrialSink() override {
        out_.totals += summary_.totals();
        out_.contradicted += places_.size();
        out_.confirmed += paths_.size();
    }
    void begin(const OffsetMap& offsets) {
        offsets_ = &offsets;
        by_address_ = true;
    }
    void consume(const flow::Batch& batch) override {
        summary_.consume(batch);
        flow::in_order(
            batch, [&](const flow::Block& block, const flow::Range& range) { count(block, range); },
            [&](const flow::Event& event) { count(event); });
    }

private:
    void count(const flow::Block& block, const flow::Range& range) {
        if (by_address_) named_ = block.start;
        by_address_ = block.end == flow::End::indirect && range.taken();
        if (!by_address_) return;
        ++out_.indirect;
        constexpr std::size_t most_paths = 1 << 16;
        if (paths_.size() < most_paths) paths_.insert({named_, block.start + block.bytes});
    }
    void count(const flow::Event& event) {
        if (const auto* what = std::get_if<flow::Inconsistency>(&event.what)) {
            // A contradiction within the trace is no evidence about the image.
            if (!flow::concerns_flow(what->conflict)) return;
            ++out_.contradictions;
            places_.insert(what->found.value);
            if (!out_.first) out_.first = {offsets_->capture(event.offset), *what};
            by_address_ = true;
        } else if (const auto* no = std::get_if<flow::NoMemory>(&event.what)) {
            if (!out_.first_no_memory) {
                out_.first_no_memory = offsets_->capture(event.offset);
                out_.no_memory = no->address;
            }
            if (!by_address_) ++out_.strayed;
            by_address_ = true;
            constexpr std::size_t most_places = 1 << 16;
            if (out_.no_memory_at.size() < most_places || out_.no_memory_at.contains(no->address.value))
                ++out_.no_memory_at[no->address.value];
        } else if (!std::holds_alternative<flow::Context>(event.what) &&
                   !std::holds_alternative<flow::Timestamp>(event.what)) {
            by_address_ = true;
        }
    }

    Trial& out_;
    const OffsetMap* offsets_ = nullptr;
    flow::Summary summary_;
    std::set<std::pair<std::uint64_t, std::uint64_t>> paths_;  // from an address in the trace to the end of a branch
    std::set<std::uint64_t> places_;                           // contradicted
    std::uint64_t named_ = 0;                                  // the last address in the trace
    bool by_address_ = true;  // the trace, not the image, gives the place where execution continues
};

/// Reads code as if it were loaded at another address.
class Moved final : public isa::CodeReader {
public:
    Moved(const isa::CodeReader& code, std::uint64_t shift, std::uint64_t mask)
        : code_(code), shift_(shift), mask_(mask) {}
    [[nodiscard]] isa::Code at(Address address, const isa::Space& space) const override {
        return code_.at({(address.value - shift_) & mask_}, space);
    }
    [[nodiscard]] isa::Space view(const isa::Space& space) const override { return code_.view(space); }

private:
    const isa::CodeReader& code_;
    const std::uint64_t shift_, mask_;
};

/// Addresses that the trace contains, and how often.
struct Targets {
    void add(const follow::Place& place) {
        constexpr std::size_t most = 1 << 16;
        const std::pair key{place.isa == isa::Isa::tee ? isa::Isa::t32 : place.isa, place.address.value};
        if (times.size() < most || times.contains(key)) ++times[key];
    }
    /// Keeps only addresses of A64 code, or only addresses of other code, whichever the trace names more often. Returns
    /// the mask of such addresses.
    std::uint64_t settle() {
        std::size_t wide = 0;
        for (const auto& [key, n] : times) wide += key.first == isa::Isa::a64 ? 1U : 0U;
        const bool a64 = wide * 2 > times.size();
        std::erase_if(times, [&](const auto& one) { return (one.first.first == isa::Isa::a64) != a64; });
        return a64 ? ~std::uint64_t{0} : 0xffffffffU;
    }
    std::map<std::pair<isa::Isa, std::uint64_t>, std::uint64_t> times{};
};

/// Addresses that branches of the code lead to, and those after calls and returns.
std::vector<std::uint64_t> entries_of(const image::MemoryMap& map, isa::Isa isa) {
    constexpr std::size_t most = 1 << 17;
    std::uint64_t bytes_left = std::uint64_t{1} << 25;
    const std::uint64_t size = isa == isa::Isa::t32 ? 2 : 4;
    const isa::Space space{.ns = true};
    std::vector<std::uint64_t> out;
    for (const follow::CodeExtent& extent : extents_of(map, true)) {
        const std::uint64_t bytes = std::min(extent.bytes, bytes_left);
        bytes_left -= bytes;
        for (std::uint64_t at = (extent.first.value + size - 1) & ~(size - 1);
             at + size <= extent.first.value + bytes && out.size() < 4 * most; at += size) {
            const auto i = isa::decode_at(map, space, {at}, isa, {});
            if (!i) continue;
            if (i->waypoint == isa::Waypoint::direct && i->target_isa == isa && i->target >= extent.first &&
                i->target - extent.first < extent.bytes)
                out.push_back(i->target.value);
            // A call returns to the next instruction; after a return, the next function begins.
            if (i->link || (i->function_return && !i->conditional)) out.push_back(at + i->bytes);
        }
    }
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    if (out.size() > most) {  // evenly thinned
        const std::size_t step = out.size() / most + 1;
        std::size_t n = 0;
        for (std::size_t i = 0; i < out.size(); i += step) out[n++] = out[i];
        out.resize(n);
    }
    return out;
}

struct Vote {
    std::uint64_t shift;
    std::uint64_t votes;
};
constexpr std::size_t most_candidates = 256, most_pairs = std::size_t{1} << 24;

using Named = std::vector<std::pair<std::uint64_t, std::uint64_t>>;  // count and address; the most frequent first

/// Counts shifts by whole granules. An entry matches only at the same offset in a granule, so there are few pairs.
void count_on_pages(const Named& named, const std::vector<std::uint64_t>& entries, Grid grid, std::uint64_t mask,
                    std::vector<std::uint64_t>& shifts) {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> by_place;  // offset in the granule, entry
    by_place.reserve(entries.size());
    const std::uint64_t in_granule = grid.granule - 1;
    for (const std::uint64_t entry : entries) by_place.emplace_back(entry & in_granule, entry);
    std::sort(by_place.begin(), by_place.end());
    constexpr std::size_t most_shifts = most_pairs / 4;
    for (const auto& [times, address] : named) {
        const std::pair first{(address + grid.given) & in_granule, std::uint64_t{0}};
        for (auto at = std::lower_bound(by_place.begin(), by_place.end(), first);
             at != by_place.end() && at->first == first.first && shifts.size() < most_shifts; ++at)
            shifts.push_back((address - at->second) & mask);
    }
}

/// Counts any shift on the grid: for each bucket of neighbouring shifts, a table with the count of each.
void count_on_words(Named named, const std::vector<std::uint64_t>& entries, std::uint64_t mask,
                    std::vector<std::uint64_t>& shifts) {
    constexpr std::size_t most_named = 256;
    named.resize(std::min({named.size(), most_named, most_pairs / entries.size() + 1}));
    std::sort(named.begin(), named.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    constexpr std::uint64_t most_span = std::uint64_t{1} << 26;
    const std::uint64_t width = entries.back() - entries.front();
    for (std::size_t begin = 0, end = 0; begin < named.size(); begin = end) {
        while (end < named.size() && named[end].second - named[begin].second <= most_span) ++end;
        const std::uint64_t least = (named[begin].second - entries.back()) & ~std::uint64_t{word_bytes - 1};
        const std::uint64_t span = named[end - 1].second - named[begin].second + width;
        std::vector<std::uint16_t> times(static_cast<std::size_t>(span / word_bytes + 2));
        for (std::size_t i = begin; i < end; ++i)
            for (const std::uint64_t entry : entries)
                if (const std::uint64_t shift = named[i].second - entry; shift % word_bytes == 0)
                    ++times[(shift - least) / word_bytes];
        // Only shifts that are more frequent than nearly all others are examined.
        std::vector<std::size_t> so_often(most_named + 1);
        for (const std::uint16_t n : times) ++so_often[std::min<std::size_t>(n, most_named)];
        std::size_t enough = most_named, above = 0;
        while (enough > 0 && above + so_often[enough] <= most_candidates) above += so_often[enough--];
        for (std::size_t i = 0; i < times.size() && shifts.size() < most_pairs; ++i)
            if (times[i] > enough) shifts.insert(shifts.end(), times[i], (least + i * word_bytes) & mask);
    }
}

/// Differences between addresses in the trace and entries of the code, the most frequent first.
std::vector<Vote> vote(const Targets& targets, const image::MemoryMap& map, Grid grid, std::uint64_t mask) {
    std::vector<std::uint64_t> shifts;
    for (const isa::Isa isa : {isa::Isa::a32, isa::Isa::t32, isa::Isa::a64}) {
        Named named;
        for (const auto& [key, times] : targets.times)
            if (key.first == isa) named.emplace_back(times, key.second);
        if (named.empty()) continue;
        const std::vector<std::uint64_t> entries = entries_of(map, isa);
        if (entries.empty()) continue;
        std::sort(named.rbegin(), named.rend());
        if (grid.granule > word_bytes)
            count_on_pages(named, entries, grid, mask, shifts);
        else
            count_on_words(std::move(named), entries, mask, shifts);
    }
    // A small image has few entries to vote by, and few possible positions of a named address: all positions are tried.
    constexpr std::uint64_t small_bytes = 8192;
    const auto extents = extents_of(map, true);
    const auto often = std::max_element(targets.times.begin(), targets.times.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
    std::size_t most = most_candidates;
    if (grid.granule == word_bytes && extents.size() == 1 && extents.front().bytes <= small_bytes &&
        often != targets.times.end()) {
        most = most_candidates + small_bytes / word_bytes;
        const std::uint64_t address = often->first.second & ~std::uint64_t{word_bytes - 1};
        for (std::uint64_t at = 0; at < extents.front().bytes; at += word_bytes)
            shifts.push_back((address - extents.front().first.value - at) & mask);
    }
    std::sort(shifts.begin(), shifts.end());
    std::vector<Vote> votes;
    for (std::size_t i = 0; i < shifts.size();) {
        std::size_t end = i;
        while (end < shifts.size() && shifts[end] == shifts[i]) ++end;
        votes.push_back({shifts[i], end - i});
        i = end;
    }
    const std::size_t keep = std::min(votes.size(), most);
    std::partial_sort(votes.begin(), votes.begin() + static_cast<std::ptrdiff_t>(keep), votes.end(),
                      [](const Vote& a, const Vote& b) { return a.votes > b.votes; });
    votes.resize(keep);
    return votes;
}

}  // namespace

Trial try_image(const std::vector<Stretch>& stretches, const Configuration& configuration, const isa::CodeReader& code,
                std::uint64_t most_bytes, std::uint64_t contradictions) {
    Trial out;
    const std::size_t slice = contradictions == 0 ? 512 : 4096;
    std::uint64_t fed = 0;
    flow::BlockTable table;
    auto sink = std::make_unique<TrialSink>(out);
    for (const Stretch& stretch : stretches) {
        if (out.ended || fed >= most_bytes) break;
        sink->begin(stretch.offsets);
        flow::BatchWriter writer(table, *sink);
        const auto decoder = configuration.decoder(code, writer, {.max_walk_bytes = longest_walk});
        for (std::size_t at = 0; at < stretch.bytes.size() && !out.ended && fed < most_bytes; at += slice) {
            decoder->feed(Bytes(stretch.bytes).subspan(at, std::min(slice, stretch.bytes.size() - at)));
            writer.flush();
            fed += slice;
            out.ended = out.contradictions > contradictions;
        }
        decoder->finish();
        writer.flush();
    }
    sink.reset();
    return out;
}

std::unique_ptr<flow::Sink> trial_sink(Trial& out, const OffsetMap& offsets) {
    auto sink = std::make_unique<TrialSink>(out);
    sink->begin(offsets);
    return sink;
}

void count_beside(Trial& trial, const std::vector<follow::CodeExtent>& extents, std::uint64_t shift,
                  std::uint64_t mask) {
    constexpr std::uint64_t near_bytes = 65536;
    trial.beside = 0;
    for (const auto& [address, times] : trial.no_memory_at) {
        const std::uint64_t place = (address - shift) & mask;
        const bool near = std::any_of(extents.begin(), extents.end(), [&](const follow::CodeExtent& e) {
            return place + near_bytes >= e.first.value && place < e.first.value + e.bytes + near_bytes;
        });
        if (near) trial.beside += times;
    }
}

std::string evidence(const Trial& trial) {
    const double share =
        trial.waypoints == 0
            ? 0
            : std::min(1.0, static_cast<double>(trial.totals.ranges) / static_cast<double>(trial.waypoints));
    return fmt::format(
        "{}, {:.1f}% of the branches in the trace; {} confirmed, {}{}{}", counted(trial.totals.ranges, "range"),
        share * 100, counted(trial.confirmed, "different path"), trial.ended ? "over " : "",
        counted(trial.contradictions, "contradiction"),
        trial.strayed == 0 ? "" : fmt::format(", left {} over another path", counted(trial.strayed, "time")));
}

std::string proof_needs() {
    return fmt::format(
        "a proof needs {} different paths through the image, each from one address of the trace to the branch that "
        "leaves for the next, no contradiction, and hardly any other way out of the image",
        paths_to_prove);
}

LoadImage load_argument(std::string argument) { return load_arguments({std::move(argument)}); }

LoadImage load_arguments(std::vector<std::string> arguments) {
    return [arguments = std::move(arguments)](std::uint64_t shift) -> Result<std::shared_ptr<image::MemoryMap>> {
        auto map = std::make_shared<image::MemoryMap>();
        for (const std::string& argument : arguments) {
            WM_ASSIGN_OR_RETURN(const image::ImageArgument image, image::parse_image_argument(argument));
            WM_ASSIGN_OR_RETURN(const image::ImageKind kind, image::recognise(image.path));
            const std::uint64_t at = image.address.value_or(Address{}).value + shift;
            auto added = kind == image::ImageKind::elf ? map->add_elf(image.path, at) : map->add_file(image.path, {at});
            if (!added) return std::move(added.error());
        }
        return map;
    };
}

MappedImage mapping_of(const std::string& argument, const capture::ModuleMap& modules) {
    const auto image = image::parse_image_argument(argument);
    if (!image) return {};
    const auto info = image::DebugInfo::open(image->path, {});
    if (!info) return {};
    const std::string name = image->path.filename();
    MappedImage out;
    bool all_have_one = true;
    for (const capture::Module& m : modules.modules) {
        if (m.file.empty()) continue;
        const bool same_name = std::filesystem::path(m.file).filename() == name;
        const bool same = m.build_id.empty() || info->build_id().empty() ? same_name : m.build_id == info->build_id();
        if (same) {
            if (image->address) return {};
            if (const auto bias = info->load_bias(m.address, m.offset, m.bytes)) return {bias, {}, {}};
        }
        all_have_one = all_have_one && !m.build_id.empty();
        if (same_name) out.build_id_there = capture::hex_text(m.build_id);
        if (same) return {};
    }
    if (modules.modules.empty() || info->build_id().empty() || (!all_have_one && out.build_id_there.empty())) return {};
    out.build_id = capture::hex_text(info->build_id());
    return out;
}

std::vector<follow::CodeExtent> extents_of(const image::MemoryMap& map, bool ns) {
    std::vector<follow::CodeExtent> out;
    const unsigned state = image::SpaceFilter::state({.ns = ns});
    for (const image::Region& region : map.regions())
        if (!region.shadowed_by && region.space.has(state)) out.push_back({region.address, region.bytes});
    return out;
}

Grid grid_of(const std::string& argument) {
    const auto image = image::parse_image_argument(argument);
    if (!image) return {};
    const auto kind = image::recognise(image->path);
    const std::uint64_t given = image->address.value_or(Address{}).value;
    return {kind && *kind == image::ImageKind::elf ? page_bytes : word_bytes, given};
}

namespace {

/// A number that is equal for configurations that parse the same packets: it is derived from the addresses in the first
/// bytes.
std::uint64_t reading_of(const std::vector<Stretch>& stretches, const Configuration& configuration) {
    constexpr std::size_t enough_bytes = std::size_t{1} << 14;
    std::uint64_t out = 0;
    if (stretches.empty()) return out;
    const Bytes bytes = stretches.front().bytes;
    configuration.named_addresses(bytes.first(std::min(bytes.size(), enough_bytes)), [&](const follow::Place& place) {
        constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
        out = (out ^ place.address.value) * odd + 1;
    });
    return out;
}

}  // namespace

std::optional<Shift> find_shift(const std::vector<Stretch>& stretches,
                                const std::vector<std::shared_ptr<const Configuration>>& configurations,
                                const image::MemoryMap& map, Grid grid) {
    Targets targets;
    const bool whole_program = grid.granule == page_bytes;
    const std::vector<follow::CodeExtent> extents = extents_of(map, true);
    std::uint64_t bytes = 0;
    for (const Stretch& stretch : stretches) {
        configurations.front()->named_addresses(stretch.bytes, [&](const follow::Place& place) { targets.add(place); });
        bytes += stretch.bytes.size();
    }
    const std::uint64_t mask = targets.settle();
    const std::vector<Vote> votes = vote(targets, map, grid, mask);
    constexpr std::uint64_t enough_bytes = 64 * 1024;
    // A difference in parsing, for example in the size of an identifier, can explain any contradiction.
    std::vector<std::uint64_t> readings;
    for (const auto& configuration : configurations) readings.push_back(reading_of(stretches, *configuration));
    std::vector<Shift> proven;
    for (const Vote& candidate : votes) {
        const Moved moved(map, candidate.shift, mask);
        std::vector<std::uint64_t> tried, hopeless;
        for (std::size_t i = 0; i < configurations.size(); ++i) {
            if (std::find(hopeless.begin(), hopeless.end(), readings[i]) != hopeless.end()) continue;
            const bool first = std::find(tried.begin(), tried.end(), readings[i]) == tried.end();
            tried.push_back(readings[i]);
            Trial trial = try_image(stretches, *configurations[i], moved, enough_bytes, 0);
            if (trial.contradictions != 0) {
                // Try again only after a contradiction that another configuration may explain.
                constexpr std::uint64_t few = 2;
                if (first && trial.confirmed < few && trial.first->what.conflict != flow::Conflict::no_return_address)
                    hopeless.push_back(readings[i]);
                continue;
            }
            proven.push_back({candidate.shift, mask, candidate.votes, votes.size(), i, std::move(trial)});
            break;
        }
    }
    std::stable_sort(proven.begin(), proven.end(),
                     [](const Shift& a, const Shift& b) { return a.trial.totals.ranges > b.trial.totals.ranges; });
    // Shifts that passed the first bytes are decoded to the end.
    constexpr std::size_t most_decoded = 8;
    proven.resize(std::min(proven.size(), most_decoded));
    std::erase_if(proven, [&](Shift& shift) {
        if (bytes > enough_bytes)
            shift.trial = try_image(stretches, *configurations[shift.configuration], Moved(map, shift.bytes, mask),
                                    ~std::uint64_t{0}, 0);
        if (whole_program) count_beside(shift.trial, extents, shift.bytes, mask);
        return !shift.trial.proven();
    });
    if (proven.empty()) return {};
    // A short trace may match at two neighbouring addresses; at the right one, the addresses in the trace are entries.
    std::stable_sort(proven.begin(), proven.end(), [](const Shift& a, const Shift& b) { return a.votes > b.votes; });
    const Shift& best = proven.front();
    for (const Shift& other : proven)
        if (&other != &best && other.trial.totals.ranges * 2 > best.trial.totals.ranges && other.votes * 2 > best.votes)
            return {};
    return std::move(proven.front());
}

}  // namespace waymark::doctor
