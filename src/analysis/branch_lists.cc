#include "waymark/analysis/branch_lists.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "waymark/answers/costs.h"
#include "waymark/image/debug_info.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/program_kind.h"
#include "waymark/isa/decode_instr.h"

namespace waymark::analysis {

namespace {

using answers::Branch;
using answers::ImageBranch;
using answers::ImageRange;
using answers::Index;

using Place = std::pair<std::uint64_t, isa::Isa>;

/// Code from an address to the first branch.
struct Stretch {
    std::uint64_t last{};
    std::uint32_t instructions{};
    isa::Instruction branch;
};

class Expander {
public:
    Expander(Index image, const image::MemoryMap& map, isa::Isa arm) : image_(image), map_(map), arm_(arm) {}

    void add(std::uint64_t address, const answers::Outcomes& outcomes, std::uint64_t times) {
        done_.outcomes = saturating(done_.outcomes, product(outcomes.count, times));
        Place at{address & ~std::uint64_t{1}, (address & 1) != 0 ? isa::Isa::t32 : arm_};
        for (std::uint32_t n = 0; n < outcomes.count; ++n) {
            const Stretch* code = stretch(at);
            if (code == nullptr) {
                done_.lost = saturating(done_.lost, product(outcomes.count - n, times));
                return;
            }
            ImageRange& range = ranges_[{at.first, code->last, at.second}];
            range.instructions = code->instructions;
            const bool taken = outcomes.taken(n), direct = code->branch.waypoint == isa::Waypoint::direct;
            range.times = saturating(range.times, times);
            std::uint64_t& outcome = taken ? range.taken : range.not_taken;
            // A barrier is traced as a branch, and control runs on.
            if (code->branch.waypoint != isa::Waypoint::barrier) outcome = saturating(outcome, times);
            if (!taken || code->branch.waypoint == isa::Waypoint::barrier) {
                at.first = code->last + code->branch.bytes;
                continue;
            }
            if (!direct) {
                done_.lost = saturating(done_.lost, product(outcomes.count - n - 1, times));
                return;
            }
            const Branch::Kind kind = code->branch.link          ? Branch::Kind::call
                                      : code->branch.conditional ? Branch::Kind::conditional
                                                                 : Branch::Kind::unconditional;
            std::uint64_t& sum = jumps_[{code->last, code->branch.target.value, kind}];
            sum = saturating(sum, times);
            at = {code->branch.target.value, code->branch.target_isa};
        }
    }
    ExpandedLists finish(answers::Answers& a) {
        for (const auto& [key, r] : ranges_)
            a.ranges.push_back({image_, std::get<0>(key), std::get<1>(key), std::get<2>(key), r.instructions, r.times,
                                r.taken, r.not_taken});
        for (const auto& [key, times] : jumps_)
            a.jumps.push_back({image_, std::get<0>(key), image_, std::get<1>(key), std::get<2>(key), times});
        return done_;
    }

private:
    static std::uint64_t product(std::uint64_t a, std::uint64_t b) {
        return a != 0 && b > ~std::uint64_t{0} / a ? ~std::uint64_t{0} : a * b;
    }
    /// Null if no branch follows within `most` bytes.
    const Stretch* stretch(const Place& from) {
        const auto [at, fresh] = stretches_.try_emplace(from);
        if (fresh) {
            Stretch out;
            // Real code has a branch long before this many bytes.
            constexpr std::uint32_t most = 1 << 16;
            for (std::uint64_t here = from.first; out.instructions < most;) {
                const auto what = isa::decode_at(map_, {}, {here}, from.second, {});
                if (!what || what->bytes == 0) break;
                ++out.instructions;
                if (what->waypoint != isa::Waypoint::none) {
                    out.last = here;
                    out.branch = *what;
                    at->second = out;
                    break;
                }
                here += what->bytes;
            }
        }
        return at->second ? &*at->second : nullptr;
    }

    Index image_;
    const image::MemoryMap& map_;
    isa::Isa arm_;
    std::map<Place, std::optional<Stretch>> stretches_;
    std::map<std::tuple<std::uint64_t, std::uint64_t, isa::Isa>, ImageRange> ranges_;
    std::map<std::tuple<std::uint64_t, std::uint64_t, Branch::Kind>, std::uint64_t> jumps_;
    ExpandedLists done_;
};

}  // namespace

Result<ExpandedLists> add_branch_lists(answers::Answers& answers, const answers::BranchListImage& lists,
                                       const std::filesystem::path& file) {
    image::MemoryMap map;
    WM_ASSIGN_OR_RETURN([[maybe_unused]] const image::Added added, map.add_elf(file));
    WM_ASSIGN_OR_RETURN(const image::DebugInfo info, image::DebugInfo::open(file));
    WM_ASSIGN_OR_RETURN(const image::ProgramKind kind, image::program_kind(file));
    const auto image = static_cast<Index>(answers.images.size());
    answers::Image& of = answers.images.emplace_back();
    of.name = file.filename().string();
    of.path = file.string();
    of.build_id = lists.build_id;
    of.recorded = lists.path;
    for (const image::DebugInfo::Segment& s : info.segments())
        of.segments.push_back({s.address.value, s.offset, s.bytes, s.executable});
    Expander expander(image, map, kind.aarch64 ? isa::Isa::a64 : isa::Isa::a32);
    for (const auto& [list, times] : lists.lists) expander.add(list.first, list.second, times);
    return expander.finish(answers);
}

}  // namespace waymark::analysis
