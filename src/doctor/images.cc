#include "waymark/doctor/images.h"

#include <algorithm>
#include <map>
#include <utility>

#include "waymark/isa/decode_instr.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/parser.h"

namespace waymark::doctor {

namespace {

/// No program goes on for this long without a branch.
constexpr std::uint32_t longest_walk = 64 * 1024;

class TrialSink final : public flow::Sink {
public:
    TrialSink(Trial& out, const Stretch& stretch, flow::Summary& summary)
        : out_(out), stretch_(stretch), summary_(summary) {}
    void consume(const flow::Batch& batch) override {
        summary_.consume(batch);
        for (const flow::Event& event : batch.events) {
            if (const auto* what = std::get_if<flow::Inconsistency>(&event.what)) {
                ++out_.contradictions;
                if (!out_.first) out_.first = {stretch_.offsets.capture(event.offset), *what};
            } else if (const auto* no = std::get_if<flow::NoMemory>(&event.what)) {
                if (!out_.first_no_memory) {
                    out_.first_no_memory = stretch_.offsets.capture(event.offset);
                    out_.no_memory = no->address;
                }
                constexpr std::size_t most_places = 1 << 16;
                if (out_.no_memory_at.size() < most_places || out_.no_memory_at.contains(no->address.value))
                    ++out_.no_memory_at[no->address.value];
            }
        }
    }

private:
    Trial& out_;
    const Stretch& stretch_;
    flow::Summary& summary_;
};

/// Addresses that the trace names.
class Targets {
public:
    explicit Targets(const pft::Config& config) : config_(config) {}
    void operator()(const pft::ISync& p, pft::Extent) {
        last_ = {p.address(), p.isa()};
        known_ = true;
        add();
    }
    void operator()(const pft::BranchAddress& p, pft::Extent) {
        if (!known_ && p.target.bytes != 5) return;
        last_ = pft::complete(p.target, last_);
        known_ = true;
        if (p.exception() == 0) add();
    }
    void operator()(const pft::WaypointUpdate& p, pft::Extent) {
        if (known_ && config_.update_is_compression_base) last_ = pft::complete(p.target, last_);
    }
    void operator()(const Gap&) { known_ = false; }
    void operator()(const auto&, pft::Extent) {}

    std::map<std::pair<std::uint32_t, bool>, std::uint64_t> times;  // address, Thumb

private:
    void add() {
        constexpr std::size_t most = 1 << 16;
        const std::pair key{static_cast<std::uint32_t>(last_.address.value), last_.isa != isa::Isa::a32};
        if (times.size() < most || times.contains(key)) ++times[key];
    }
    const pft::Config& config_;
    pft::Place last_;
    bool known_ = false;
};

/// Places branches of the code lead to, and those behind calls.
std::vector<std::uint32_t> entries_of(const image::MemoryMap& map, bool thumb) {
    constexpr std::size_t most = 1 << 18;
    const isa::Isa isa = thumb ? isa::Isa::t32 : isa::Isa::a32;
    const std::uint64_t size = thumb ? 2 : 4;
    const isa::Space space{.ns = true};
    std::vector<std::uint32_t> out;
    for (const pft::CodeExtent& extent : extents_of(map, true))
        for (std::uint64_t at = (extent.first.value + size - 1) & ~(size - 1);
             at + size <= extent.first.value + extent.bytes && out.size() < 4 * most; at += size) {
            const isa::Fetched fetched = isa::fetch(map, space, {at}, isa);
            if (fetched.bytes == 0) continue;
            const isa::Instruction i = isa::decode_instr({at}, isa, fetched.opcode, fetched.bytes == 4, {});
            if (i.waypoint == isa::Waypoint::direct && i.target_isa == isa && i.target >= extent.first &&
                i.target - extent.first < extent.bytes)
                out.push_back(static_cast<std::uint32_t>(i.target.value));
            if (i.link) out.push_back(static_cast<std::uint32_t>(at + i.bytes));
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
    std::uint32_t shift;
    std::uint64_t votes;
};

/// Differences between what the trace names and where the code can be entered, the most frequent first.
std::vector<Vote> vote(const Targets& targets, const image::MemoryMap& map) {
    constexpr std::size_t most_pairs = std::size_t{1} << 24, most_candidates = 256;
    std::vector<std::uint32_t> shifts;
    for (const bool thumb : {false, true}) {
        std::vector<std::pair<std::uint64_t, std::uint32_t>> named;
        for (const auto& [key, times] : targets.times)
            if (key.second == thumb) named.emplace_back(times, key.first);
        if (named.empty()) continue;
        const std::vector<std::uint32_t> entries = entries_of(map, thumb);
        if (entries.empty()) continue;
        std::sort(named.rbegin(), named.rend());
        named.resize(std::min({named.size(), std::size_t{256}, most_pairs / entries.size() + 1}));
        for (const auto& [times, address] : named)
            for (const std::uint32_t entry : entries) shifts.push_back(address - entry);
    }
    std::sort(shifts.begin(), shifts.end());
    std::vector<Vote> votes;
    for (std::size_t i = 0; i < shifts.size();) {
        std::size_t end = i;
        while (end < shifts.size() && shifts[end] == shifts[i]) ++end;
        votes.push_back({shifts[i], end - i});
        i = end;
    }
    const std::size_t keep = std::min(votes.size(), most_candidates);
    std::partial_sort(votes.begin(), votes.begin() + static_cast<std::ptrdiff_t>(keep), votes.end(),
                      [](const Vote& a, const Vote& b) { return a.votes > b.votes; });
    votes.resize(keep);
    return votes;
}

}  // namespace

Trial try_image(const std::vector<Stretch>& stretches, const pft::Config& config, const isa::CodeReader& code,
                std::uint64_t most_bytes) {
    Trial out;
    flow::Summary summary;
    pft::Config bounded = config;
    bounded.max_walk_bytes = longest_walk;
    constexpr std::size_t slice = 4096;
    std::uint64_t fed = 0;
    flow::BlockTable table;
    for (const Stretch& stretch : stretches) {
        if (out.ended) break;
        TrialSink sink(out, stretch, summary);
        flow::BatchWriter writer(table, sink);
        pft::Decoder decoder(bounded, code, writer);
        for (std::size_t at = 0; at < stretch.bytes.size() && !out.ended; at += slice) {
            decoder.feed(Bytes(stretch.bytes).subspan(at, std::min(slice, stretch.bytes.size() - at)));
            writer.flush();
            fed += slice;
            out.ended = out.contradictions > most_contradictions || fed >= most_bytes;
        }
        decoder.finish();
    }
    out.totals = summary.totals();
    return out;
}

LoadImage load_argument(std::string argument) {
    return [argument = std::move(argument)](std::uint64_t shift) -> Result<std::shared_ptr<image::MemoryMap>> {
        WM_ASSIGN_OR_RETURN(const image::ImageArgument image, image::parse_image_argument(argument));
        WM_ASSIGN_OR_RETURN(const image::ImageKind kind, image::recognise(image.path));
        auto map = std::make_shared<image::MemoryMap>();
        const std::uint64_t at = (image.address.value_or(Address{}).value + shift) & 0xffffffffU;
        auto added = kind == image::ImageKind::elf ? map->add_elf(image.path, at) : map->add_file(image.path, {at});
        if (!added) return std::move(added.error());
        return map;
    };
}

std::vector<pft::CodeExtent> extents_of(const image::MemoryMap& map, bool ns) {
    std::vector<pft::CodeExtent> out;
    const unsigned state = image::SpaceFilter::state({.ns = ns});
    for (const image::Region& region : map.regions())
        if (!region.shadowed_by && region.space.has(state) && region.address.value <= 0xffffffffU)
            out.push_back({region.address, std::min(region.bytes, 0x100000000U - region.address.value)});
    return out;
}

std::optional<Shift> find_shift(const std::vector<Stretch>& stretches, const pft::Config& config,
                                const LoadImage& load) {
    const auto here = load(0);
    if (!here) return {};
    Targets targets(config);
    for (const Stretch& stretch : stretches) {
        pft::Parser<Targets> parser(config, targets);
        parser.feed(stretch.bytes);
        parser.finish();
    }
    const std::vector<Vote> votes = vote(targets, **here);
    constexpr std::uint64_t enough_bytes = 64 * 1024;
    std::optional<Shift> best;
    for (const Vote& candidate : votes) {
        const auto moved = load(candidate.shift);
        if (!moved) continue;
        Trial trial = try_image(stretches, config, **moved, enough_bytes);
        if (!trial.agrees() || (best && trial.totals.ranges <= best->trial.totals.ranges)) continue;
        best = Shift{candidate.shift, candidate.votes, votes.size(), std::move(trial)};
        // Not one contradiction, and execution left the image nowhere: no other can be better.
        if (best->trial.contradictions == 0 && best->trial.totals.no_memory == 0) break;
    }
    return best;
}

}  // namespace waymark::doctor
