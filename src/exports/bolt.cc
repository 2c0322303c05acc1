#include "waymark/exports/bolt.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "look_up.h"
#include "waymark/exports/image_profile.h"
#include "writer.h"

namespace waymark::exports {

namespace {

using answers::Answers;
using answers::Block;
using answers::Branch;
using answers::Edge;
using answers::Index;
using answers::Instruction;

Index image_of(const Answers& a, Index function) {
    const answers::Function* f = function_at(a, function);
    return f == nullptr ? answers::none : f->image;
}

/// The last instruction of a block.
const Instruction* last_of(const Answers& a, const Block& block) {
    const auto end = std::lower_bound(a.instructions.begin(), a.instructions.end(), block.address + block.bytes,
                                      [](const Instruction& i, std::uint64_t sought) { return i.address < sought; });
    if (end == a.instructions.begin()) return nullptr;
    const Instruction& last = *std::prev(end);
    return last.address >= block.address ? &last : nullptr;
}

/// Matches branches with the ranges that ran after them.
class Followers {
public:
    Followers(const Answers& answers, Index image) {
        left_.reserve(answers.ranges.size());
        for (const answers::ImageRange& r : answers.ranges) {
            if (r.image == image) by_first_[r.first].push_back(left_.size());
            left_.push_back(r.times);
        }
    }
    /// Calls `take` for each range that begins at the target, with the number of times it followed; returns how often
    /// no range followed.
    template <class Take>
    std::uint64_t follow(const answers::ImageBranch& branch, Take&& take) {
        std::uint64_t times = branch.times;
        if (const auto found = by_first_.find(branch.to); found != by_first_.end())
            for (const std::size_t range : found->second) {
                const std::uint64_t both = std::min(times, left_[range]);
                if (both != 0) take(range, both);
                times -= both;
                left_[range] -= both;
            }
        return times;
    }
    /// How often a range ran without a preceding branch.
    [[nodiscard]] std::uint64_t left(std::size_t range) const { return left_[range]; }

private:
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> by_first_;
    std::vector<std::uint64_t> left_;
};

/// Writes the profile from the exact tables: addresses are relative to the file, wherever it was loaded.
Result<ExportReport> write_exact(const Answers& answers, Index image, bool traces, ByteSink& sink) {
    Writer out(sink);
    std::uint64_t lines = 0, elsewhere = 0;
    std::optional<Followers> followers;
    if (traces) followers.emplace(answers, image);
    for (const answers::ImageBranch& b : answers.jumps) {
        const bool from = b.image == image, to = b.to_image == image;
        if (!from && !to) {
            ++elsewhere;
            continue;
        }
        std::uint64_t times = b.times;
        if (followers && from && to)
            times = followers->follow(b, [&](std::size_t range, std::uint64_t both) {
                out.print("{} {:x} {:x} {:x} {}\n", b.kind == Branch::Kind::function_return ? 'R' : 'T', b.from, b.to,
                          answers.ranges[range].last, both);
            });
        // Address 0 means code outside the image.
        if (times != 0) out.print("B {:x} {:x} {} 0\n", from ? b.from : 0, to ? b.to : 0, times);
        ++lines;
    }
    bool arm32 = false;
    for (std::size_t i = 0; i < answers.ranges.size(); ++i) {
        const answers::ImageRange& r = answers.ranges[i];
        if (r.image != image || r.times == 0) continue;
        if (const std::uint64_t times = followers ? followers->left(i) : r.times; times != 0)
            out.print("F {:x} {:x} {}\n", r.first, r.last, times);
        ++lines;
        arm32 |= r.isa != isa::Isa::a64 && r.isa != isa::Isa::x86_64;
        // After a branch that was not taken, the next range begins without a branch.
        constexpr std::uint64_t a64 = 4;
        if (r.not_taken != 0 && r.isa == isa::Isa::a64)
            out.print("F {:x} {:x} {}\n", r.last, r.last + a64, r.not_taken);
    }
    if (lines == 0) return Error{Errc::not_found, lacks(answers, "branches of the program")};
    ExportReport report;
    report.bytes = out.finish();
    const answers::Image& of = answers.images[image];
    report.notes.push_back(fmt::format(
        "the profile is of {}{}{}", of.name, of.build_id.empty() ? "" : ", build ID " + of.build_id,
        elsewhere == 0 ? "" : "; " + counted(elsewhere, "branch", "branches") + " of other images left out"));
    if (arm32) report.notes.push_back("BOLT itself works on AArch64 programs; this capture is of 32-bit code");
    report.notes.push_back("addresses are the program file's");
    return report;
}

}  // namespace

Result<ExportReport> write_bolt(const Answers& answers, const BoltOptions& options, ByteSink& sink) {
    WM_ASSIGN_OR_RETURN(const Index image, profile_image(answers, options.image, options.index));
    if (!answers.ranges.empty()) return write_exact(answers, image, options.traces, sink);
    Writer out(sink);
    std::uint64_t lines = 0, elsewhere = 0;
    bool arm32 = false;
    for (const Edge& e : answers.edges) {
        if (!is_taken(answers, e)) continue;
        const bool from = image_of(answers, e.from_function) == image, to = image_of(answers, e.to_function) == image;
        if (!from && !to) {
            ++elsewhere;
            continue;
        }
        const Branch* branch = row_at(answers, answers.branches, e.from, e.from_function);
        // For a branch with several targets, the trace does not show which one was mispredicted: each target gets its
        // share.
        const std::uint64_t all = branch != nullptr ? branch->taken + branch->not_taken : 0;
        const std::uint64_t mispredicted =
            all == 0 ? 0
                     : std::min(e.times,
                                static_cast<std::uint64_t>(static_cast<double>(branch->mispredicted.value_or(0)) *
                                                           static_cast<double>(e.times) / static_cast<double>(all)));
        // Address 0 means code outside the image.
        out.print("B {:x} {:x} {} {}\n", from ? e.from : 0, to ? e.to : 0, e.times, mispredicted);
        ++lines;
    }
    for (const Block& block : answers.blocks) {
        if (block.times == 0 || image_of(answers, block.function) != image) continue;
        if (const Instruction* last = last_of(answers, block)) {
            out.print("F {:x} {:x} {}\n", block.address, last->address, block.times);
            ++lines;
        }
    }
    for (const Branch& b : answers.branches) {
        if (b.not_taken == 0 || image_of(answers, b.function) != image) continue;
        if (const Instruction* i = instruction_at(answers, b.address, b.function)) {
            out.print("F {:x} {:x} {}\n", b.address, b.address + i->bytes, b.not_taken);
            ++lines;
        }
    }
    for (const Instruction& i : answers.instructions) arm32 |= i.isa != isa::Isa::a64 && i.isa != isa::Isa::x86_64;
    if (lines == 0) return Error{Errc::not_found, lacks(answers, "branches of the program")};
    ExportReport report;
    report.bytes = out.finish();
    if (image < answers.images.size())
        report.notes.push_back(
            fmt::format("the profile is of {}{}", answers.images[image].name,
                        elsewhere == 0 ? "" : "; " + counted(elsewhere, "edge") + " of other images left out"));
    if (arm32) report.notes.push_back("BOLT itself works on AArch64 programs; this capture is of 32-bit code");
    if (answers.blocks.empty()) report.notes.push_back(lacks(answers, "counts of straight-line code"));
    report.notes.push_back(answers.unit == "SPE"
                               ? "addresses are the program file's"
                               : "addresses are as traced: of a position-independent program, as it was loaded");
    return report;
}

}  // namespace waymark::exports
