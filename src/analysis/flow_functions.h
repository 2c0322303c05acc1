/// Assigns addresses to functions: the functions, images and source files of `Answers`, as the streams of a run need
/// them.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "waymark/analysis/flow_answers.h"
#include "waymark/answers/parts.h"

namespace waymark::analysis {

/// A block that ran, in any of the streams.
struct BlockKey {
    std::uint64_t start{};
    std::uint32_t bytes{}, section{};
    isa::Isa isa{};
    friend auto operator<=>(const BlockKey&, const BlockKey&) = default;
};
struct BlockSum {
    flow::Block block;
    std::array<std::uint64_t, 2> times{};  // not taken, taken
    std::uint64_t cycles{};
    const FlowStream* stream{};
};
[[nodiscard]] inline std::uint64_t last_address(const flow::Block& b) { return b.start + b.bytes - b.last_bytes; }
/// The memory in the state in which a block ran.
[[nodiscard]] isa::Space space_of(const image::MemoryMap& memory, const flow::Block& block);

[[nodiscard]] std::string exception_text(const flow::ExceptionType& type);
/// True if trace was lost: flow returned at another place than the unit's programming explains.
[[nodiscard]] bool is_damaged(const Troubles& troubles);

class FlowFunctions {
public:
    /// Borrows everything; there is at least one stream. Adds all functions for which anything was found, sorted by
    /// identity, then by address.
    FlowFunctions(answers::Answers& answers, const std::vector<FlowStream>& streams, const FlowAnswersOptions& options);

    [[nodiscard]] answers::Answers& answers() const { return a_; }
    [[nodiscard]] const std::vector<FlowStream>& streams() const { return streams_; }
    [[nodiscard]] const FlowAnswersOptions& options() const { return options_; }
    [[nodiscard]] const image::Symbols& symbols() const { return streams_.front().sink->code().symbols(); }
    [[nodiscard]] const std::map<BlockKey, BlockSum>& blocks() const { return blocks_; }
    /// The costs in the order of `Answers::metrics`.
    [[nodiscard]] answers::Costs costs(const Work& w) const {
        return options_.cycles ? answers::Costs{w.instructions, w.cycles} : answers::Costs{w.instructions};
    }

    /// The function that an address belongs to.
    [[nodiscard]] CodeFunction at(std::uint64_t address);
    [[nodiscard]] answers::Index index_of(const CodeFunction& f);
    [[nodiscard]] answers::Index index_at(std::uint64_t address) { return index_of(at(address)); }
    [[nodiscard]] const std::map<CodeFunction, answers::Index>& indices() const { return functions_; }
    [[nodiscard]] answers::Index source(const std::string& path);

    struct File {
        image::DebugInfo info;
        std::uint64_t bias;
        answers::Index image;
        // The last place that was looked up, and its innermost inlined call.
        image::InlinedPlace place{};
        answers::Index function = answers::none, inlined = answers::none;
    };
    /// Null if no file of the options was mapped there.
    [[nodiscard]] File* file_at(std::uint64_t address);

private:
    using Kind = CodeFunction::Kind;
    struct Region {
        std::uint64_t address{};
        std::uint32_t section{};
        const image::MemoryMap* memory{};
    };
    void open_files();
    [[nodiscard]] bool has_all_code(const image::DebugInfo& info, std::uint64_t bias);
    [[nodiscard]] answers::Index image_of_file(const std::string& name, const std::string& build_id,
                                               const std::string& path);
    [[nodiscard]] answers::Index image_of(const std::string& name);
    [[nodiscard]] answers::Index section_image(const image::MemoryMap& memory, std::uint32_t section);
    [[nodiscard]] answers::Index image_at(std::uint64_t address);
    void sum_blocks();
    void find_entries();
    [[nodiscard]] const Region* region_at(std::uint64_t address);
    [[nodiscard]] bool symbols_between(std::uint64_t first, std::uint64_t address);
    [[nodiscard]] answers::Function describe(const CodeFunction& f);
    void gather_functions();

    answers::Answers& a_;
    const std::vector<FlowStream>& streams_;
    const FlowAnswersOptions& options_;
    std::vector<File> files_;
    std::map<std::string, answers::Index> images_, sources_;
    std::map<BlockKey, BlockSum> blocks_;
    std::set<std::uint64_t> entries_;    // addresses in code without symbols that were called
    std::vector<std::uint64_t> starts_;  // of symbols
    std::vector<Region> regions_;
    answers::AddressRanges file_ranges_, region_ranges_;
    std::map<CodeFunction, answers::Index> functions_;
};

}  // namespace waymark::analysis
