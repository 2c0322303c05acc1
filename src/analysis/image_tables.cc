#include "waymark/analysis/image_tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "waymark/answers/parts.h"

namespace waymark::analysis {

namespace {

using answers::Answers;
using answers::Branch;
using answers::ImageBranch;
using answers::ImageRange;
using answers::Index;
using answers::none;

/// Translates addresses as traced to image and address in its file.
class FilePlaces {
public:
    FilePlaces(Answers& answers, const std::vector<ProgramFile>& files) {
        for (const ProgramFile& f : files) {
            const auto info = image::DebugInfo::open(f.path, f.debug_folders);
            if (!info) continue;
            const std::string id = fmt::format("{:02x}", fmt::join(info->build_id(), ""));
            const auto image = std::find_if(answers.images.begin(), answers.images.end(), [&](const answers::Image& i) {
                return i.path == f.path || (!id.empty() && i.build_id == id);
            });
            if (image == answers.images.end()) continue;
            image->segments.clear();
            for (const image::DebugInfo::Segment& s : info->segments()) {
                ranges_.add(s.address.value + f.load_bias, s.bytes, files_.size());
                image->segments.push_back({s.address.value, s.offset, s.bytes, s.executable});
            }
            files_.push_back({static_cast<Index>(image - answers.images.begin()), f.load_bias});
        }
    }
    struct Place {
        Index image = none;
        std::uint64_t address{};
    };
    [[nodiscard]] Place find(std::uint64_t address) const {
        const auto found = ranges_.find(address);
        if (!found) return {};
        return {files_[*found].image, address - files_[*found].bias};
    }

private:
    struct File {
        Index image;
        std::uint64_t bias;
    };
    answers::AddressRanges ranges_;
    std::vector<File> files_;
};

class TableFiller {
public:
    TableFiller(Answers& answers, const std::vector<ProgramFile>& files) : a_(answers), places_(answers, files) {}

    void add(const FlowStream& stream) {
        for (const FlowCounts* counts : stream.sink->counts()) {
            for (std::size_t edge = 0; edge < counts->times.size(); ++edge) {
                const std::uint64_t times = counts->times[edge];
                if (times == 0) continue;
                const flow::Block& b = counts->known.blocks[edge / 2];
                add_range(b, times, (edge & 1U) != 0);
                if ((edge & 1U) != 0 && b.end == flow::End::direct) add_branch(b, b.target, times);
            }
            for (std::size_t i = 0; i < counts->ways().size(); ++i) {
                const Way& way = counts->ways()[i];
                if (const std::uint64_t times = counts->way_sums()[i].times; times != 0)
                    add_branch(counts->known.blocks[way.edge / 2], way.to, times);
            }
        }
    }
    void finish() {
        for (const auto& [key, row] : sums_) a_.ranges.push_back(row);
        for (const auto& [key, row] : branches_) a_.jumps.push_back(row);
    }

private:
    static std::uint64_t last_of(const flow::Block& b) { return b.start + b.bytes - b.last_bytes; }

    void add_range(const flow::Block& b, std::uint64_t times, bool taken) {
        const FilePlaces::Place first = places_.find(b.start);
        if (first.image == none || b.instructions == 0) return;
        const std::uint64_t last = first.address + (last_of(b) - b.start);
        const auto [at, fresh] = sums_.try_emplace({first.image, first.address, last, b.isa});
        ImageRange& row = at->second;
        if (fresh) row = {first.image, first.address, last, b.isa, b.instructions};
        row.times += times;
        const bool branch = b.end == flow::End::direct || b.end == flow::End::indirect;
        if (branch) (taken ? row.taken : row.not_taken) += times;
    }
    void add_branch(const flow::Block& b, std::uint64_t target, std::uint64_t times) {
        const FilePlaces::Place from = places_.find(last_of(b)), to = places_.find(target);
        if (from.image == none) return;
        const ImageBranch row{from.image, from.address, to.image, to.address, branch_kind(b), times};
        const auto [at, fresh] = branches_.try_emplace({row.image, row.from, row.to_image, row.to, row.kind}, row);
        if (!fresh) at->second.times += times;
    }

    Answers& a_;
    FilePlaces places_;
    std::map<std::tuple<Index, std::uint64_t, std::uint64_t, isa::Isa>, ImageRange> sums_;
    std::map<std::tuple<Index, std::uint64_t, Index, std::uint64_t, Branch::Kind>, ImageBranch> branches_;
};

}  // namespace

Branch::Kind branch_kind(const flow::Block& block) {
    using K = Branch::Kind;
    const bool link = (block.flags & flow::Block::link) != 0;
    if (block.end == flow::End::indirect) {
        if (link) return K::indirect_call;
        const bool returns = (block.flags & (flow::Block::function_return | flow::Block::exception_return)) != 0;
        return returns ? K::function_return : K::indirect;
    }
    if (link) return K::call;
    return (block.flags & flow::Block::conditional) != 0 ? K::conditional : K::unconditional;
}

void place_images(Answers& answers, const std::vector<ProgramFile>& files) {
    for (answers::Image& image : answers.images) {
        std::optional<std::uint64_t> lowest;
        for (const ProgramFile& f : files)
            if (!image.path.empty() && f.path == image.path)
                lowest = std::min(lowest.value_or(f.load_bias), f.load_bias);
        if (lowest) image.load_bias = *lowest;
    }
}

void fill_image_tables(Answers& answers, const std::vector<FlowStream>& streams,
                       const std::vector<ProgramFile>& files) {
    TableFiller filler(answers, files);
    for (const FlowStream& s : streams) filler.add(s);
    filler.finish();
}

}  // namespace waymark::analysis
