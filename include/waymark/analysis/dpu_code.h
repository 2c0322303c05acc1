/// The code that a trace of the DPU is about: names for its addresses, and the instructions there.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/analysis/code_turns.h"
#include "waymark/core/types.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/program_file.h"
#include "waymark/image/symbols.h"
#include "waymark/isa/decode_instr.h"

namespace waymark::analysis {

class FlowCode;

/// Names for the addresses of a trace, and the instructions there.
class DpuCode {
public:
    DpuCode();
    ~DpuCode();
    DpuCode(const DpuCode&) = delete;
    DpuCode& operator=(const DpuCode&) = delete;

    /// A program or library that `add_image` took.
    struct Image {
        std::string path;  ///< of the file that was read
        std::string name;  ///< of the file that was mapped: a capture has copies under other names
        std::uint32_t load_bias{};
    };
    /// Where separate debug files of programs that are added from now on may be.
    void look_in(image::FileSearch files) { files_ = std::move(files); }
    /// Where files took turns at one address, before anything is added. `names`: of the files, by their number in
    /// `turns`; empty: code of no file.
    void take_turns(CodeTurns turns, std::vector<std::string> names);
    /// A program or library, called `name` (empty: as the file) where only a place in it is known; what is wrong
    /// with it, or empty. `file`: its number in the turns that were taken; none: it is there all the time.
    [[nodiscard]] std::string add_image(const std::string& path, std::uint32_t load_bias, const std::string& name = {},
                                        std::optional<std::size_t> file = {});
    /// Code of a file of which nothing but its name is known: [first, first + bytes), from the byte at `offset` on.
    void add_unread(const std::string& name, std::uint32_t first, std::uint64_t bytes, std::uint64_t offset,
                    std::optional<std::size_t> file);
    /// A name that no program has.
    void add_name(std::uint32_t address, std::string name);

    static constexpr std::size_t no_image = ~std::size_t{0};
    struct Function {
        std::uint32_t address{};     ///< where the function begins; if unknown: the address that was looked up
        std::string name;            ///< empty: not known; with `?` at its end: the symbol before it (image/symbols.h)
        std::string linkage_name{};  ///< as in the symbol table; empty: not from one
        std::size_t image = no_image;  ///< it lies in: a place in `images`
        auto operator<=>(const Function&) const = default;
    };
    /// An address, and which of the files that took turns there is meant.
    struct Place {
        std::uint32_t address{}, layer{};
        auto operator<=>(const Place&) const = default;
    };
    /// The trace's contents at an offset.
    [[nodiscard]] Place at(std::uint32_t address, Offset offset) const {
        return {address, turns_.layer(address, offset.value)};
    }
    /// Where nothing is known of the time: what several files may be is named after all of them.
    [[nodiscard]] Place at(std::uint32_t address) const { return {address, turns_.layer(address)}; }
    /// Both lie where files took turns, at different times: what ran from one to the other may be of either.
    [[nodiscard]] bool takes_turns(const Place& a, const Place& b) const {
        return a.layer != b.layer && a.layer != 0 && b.layer != 0 && turns_.unknown(a.layer) == turns_.unknown(b.layer);
    }
    /// The same memory, at an unknown time. Precondition: files took turns there.
    [[nodiscard]] Place any_of(const Place& place) const { return {place.address, turns_.unknown(place.layer)}; }

    [[nodiscard]] Function function(const Place& place) const;
    [[nodiscard]] Function function(std::uint32_t address) const { return function(at(address)); }
    /// The same for an address that is not where the function was entered: code without a name begins where the
    /// function before it ends.
    [[nodiscard]] Function function_around(const Place& place) const;
    /// Equal for two addresses: they lie in one function, or both in the code without names of one file. 0: nothing
    /// is known of the address. A rarely executed part (`f.cold` of GCC) is part of its function.
    [[nodiscard]] std::uint64_t home(const Place& place) const;
    /// In the order in which they were added.
    [[nodiscard]] const std::vector<Image>& images() const { return images_; }
    /// The image an address lies in, as a place in `images`, or `no_image`.
    [[nodiscard]] std::size_t image(const Place& place) const;
    /// Where functions of this name begin, one for each image; the first that was added where one image has several.
    [[nodiscard]] std::vector<Place> places_of(const std::string& name) const;
    /// Files that took turns where it is not known when, each zone as it is named: `[a.so or b.so]`.
    [[nodiscard]] std::vector<std::string> unknown_turns() const;

    /// What the instruction that changed the flow at `source` does.
    enum class Change : std::uint8_t { unknown, call, ret };
    [[nodiscard]] Change change(const Place& source) const;
    /// What happens without a condition on the way from one address on.
    struct Way {
        std::vector<Place> entered;  ///< functions that direct jumps lead to, where they are entered
        bool jumps_on = false;       ///< then an indirect jump leaves: the way ends there
    };
    /// From `start` up to the change of flow at `last`, as far as the instructions decide it. The entry of a procedure
    /// linkage table (`puts@plt`) always jumps on, to the function of that name if there is one and the way from it
    /// ends in the function at `last`. Not for several threads at once.
    [[nodiscard]] Way way(Place start, const Place& last) const;
    /// Where the direct branch at `last` jumps back to: where a loop begins whose last address it is.
    [[nodiscard]] std::optional<std::uint32_t> loop_start(const Place& last) const;
    /// Instructions from `start` up to and with the one at `last`.
    [[nodiscard]] std::optional<std::uint64_t> instructions(std::uint32_t start, const Place& last) const;

private:
    struct Instruction {
        isa::Instruction decoded;
        bool begins_it_block = false;
    };
    /// All memory where no files took turns, or what lay in a part of the rest for some time.
    struct Layer;
    [[nodiscard]] Layer& layer(const Place& place) const { return *layers_[place.layer]; }
    [[nodiscard]] std::string name_of_zone(std::uint32_t layer) const;
    /// The numbers of the layers that have code at [first, first + bytes) of a file, or of one that is there always.
    [[nodiscard]] std::vector<std::uint32_t> layers_with(std::optional<std::size_t> file, std::uint32_t first,
                                                         std::uint64_t bytes) const;
    [[nodiscard]] std::optional<isa::Isa> isa_at(const Place& place) const;
    [[nodiscard]] std::optional<Instruction> instruction(const Place& place) const;
    [[nodiscard]] std::optional<Instruction> instruction(const Place& place, isa::Isa isa) const;
    [[nodiscard]] std::optional<image::Symbol> function_symbol(const Place& place) const;
    /// None where several files have a function of that name: which one the dynamic linker takes is not known.
    [[nodiscard]] std::optional<Place> only_function(std::string_view linkage_name,
                                                     const std::vector<std::uint32_t>& layers) const;
    image::FileSearch files_;
    std::map<std::uint32_t, std::string> names_;
    std::vector<Image> images_;
    CodeTurns turns_;
    std::vector<std::string> file_names_;  ///< of the turns
    std::map<std::uint32_t, std::size_t> image_of_zone_;
    std::vector<std::unique_ptr<Layer>> layers_;
};

}  // namespace waymark::analysis
