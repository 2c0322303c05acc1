/// The code that a trace of the DPU refers to: names for its addresses, and its instructions.
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

/// Names and instructions for the addresses of a trace.
class DpuCode {
public:
    DpuCode();
    ~DpuCode();
    DpuCode(const DpuCode&) = delete;
    DpuCode& operator=(const DpuCode&) = delete;

    /// A program or library that `add_image` took.
    struct Image {
        std::string path;  ///< the file that was read
        std::string name;  ///< the file that was mapped: a capture has copies under other names
        std::uint32_t load_bias{};
    };
    /// Where to search for debug files of programs that are added from now on.
    void look_in(image::FileSearch files) { files_ = std::move(files); }
    /// Sets which files took turns at one address; call it before adding anything. `names`: names of the files, by
    /// their number in `turns`; empty: code without a file.
    void take_turns(CodeTurns turns, std::vector<std::string> names);
    /// Adds a program or library. `name` names places for which only the file is known; if it is empty, the file's name
    /// is used. Returns the problem with the file, or an empty text. `file`: its number in the turns; nullopt: it is
    /// always present.
    [[nodiscard]] std::string add_image(const std::string& path, std::uint32_t load_bias, const std::string& name = {},
                                        std::optional<std::size_t> file = {});
    /// Adds code of a file for which only the name is known: [first, first + bytes), from the byte at `offset` on.
    void add_unread(const std::string& name, std::uint32_t first, std::uint64_t bytes, std::uint64_t offset,
                    std::optional<std::size_t> file);
    /// Adds a name that is in no program.
    void add_name(std::uint32_t address, std::string name);

    static constexpr std::size_t no_image = ~std::size_t{0};
    struct Function {
        std::uint32_t address{};     ///< beginning of the function; if unknown: the address that was looked up
        std::string name;            ///< empty: not known; with `?` at its end: the preceding symbol (image/symbols.h)
        std::string linkage_name{};  ///< as in the symbol table; empty if there is no symbol
        std::size_t image = no_image;  ///< its image: an index in `images`
        auto operator<=>(const Function&) const = default;
    };
    /// An address, and the file among those that took turns there.
    struct Place {
        std::uint32_t address{}, layer{};
        auto operator<=>(const Place&) const = default;
    };
    /// The code at an address, at the time of an offset in the trace.
    [[nodiscard]] Place at(std::uint32_t address, Offset offset) const {
        return {address, turns_.layer(address, offset.value)};
    }
    /// If the time is not known: an address that may belong to several files is named after all of them.
    [[nodiscard]] Place at(std::uint32_t address) const { return {address, turns_.layer(address)}; }
    /// Whether both are in memory where files took turns, at different times. The code between them may then belong to
    /// either file.
    [[nodiscard]] bool takes_turns(const Place& a, const Place& b) const {
        return a.layer != b.layer && a.layer != 0 && b.layer != 0 && turns_.unknown(a.layer) == turns_.unknown(b.layer);
    }
    /// The same memory at an unknown time. Precondition: files took turns there.
    [[nodiscard]] Place any_of(const Place& place) const { return {place.address, turns_.unknown(place.layer)}; }

    [[nodiscard]] Function function(const Place& place) const;
    [[nodiscard]] Function function(std::uint32_t address) const { return function(at(address)); }
    /// The same for an address inside a function: code without a name begins where the previous function ends.
    [[nodiscard]] Function function_around(const Place& place) const;
    /// Equal for two addresses in one function, and for two addresses in the code without names of one file. 0: the
    /// address is unknown. A rarely executed part (`f.cold` of GCC) belongs to its function.
    [[nodiscard]] std::uint64_t home(const Place& place) const;
    /// In the order in which they were added.
    [[nodiscard]] const std::vector<Image>& images() const { return images_; }
    /// The image of an address, as an index in `images`, or `no_image`.
    [[nodiscard]] std::size_t image(const Place& place) const;
    /// Beginnings of functions with this name, one for each image; if an image has several, the first that was added.
    [[nodiscard]] std::vector<Place> places_of(const std::string& name) const;
    /// Zones in which files took turns at unknown times, by name: `[a.so or b.so]`.
    [[nodiscard]] std::vector<std::string> unknown_turns() const;

    /// The kind of the instruction that changed the flow at `source`.
    enum class Change : std::uint8_t { unknown, call, ret };
    [[nodiscard]] Change change(const Place& source) const;
    /// The unconditional path from one address on.
    struct Way {
        std::vector<Place> entered;  ///< functions that direct jumps enter
        bool jumps_on = false;       ///< the path ends with an indirect jump
    };
    /// The path from `start` to the change of flow at `last`, as far as instructions determine it. An entry of a
    /// procedure linkage table (`puts@plt`) is assumed to jump to the function with that name, if there is one and the
    /// path from it ends in the function at `last`. Not thread-safe.
    [[nodiscard]] Way way(Place start, const Place& last) const;
    /// The target of the backward direct branch at `last`: the beginning of the loop that ends there.
    [[nodiscard]] std::optional<std::uint32_t> loop_start(const Place& last) const;
    /// Number of instructions from `start` up to and including the one at `last`.
    [[nodiscard]] std::optional<std::uint64_t> instructions(std::uint32_t start, const Place& last) const;

private:
    struct Instruction {
        isa::Instruction decoded;
        bool begins_it_block = false;
    };
    /// All memory where files did not take turns, or the contents of other memory during some time.
    struct Layer;
    [[nodiscard]] Layer& layer(const Place& place) const { return *layers_[place.layer]; }
    [[nodiscard]] std::string name_of_zone(std::uint32_t layer) const;
    /// Numbers of the layers that contain code at [first, first + bytes) of a file, or of a file that is always
    /// present.
    [[nodiscard]] std::vector<std::uint32_t> layers_with(std::optional<std::size_t> file, std::uint32_t first,
                                                         std::uint64_t bytes) const;
    [[nodiscard]] std::optional<isa::Isa> isa_at(const Place& place) const;
    [[nodiscard]] std::optional<Instruction> instruction(const Place& place) const;
    [[nodiscard]] std::optional<Instruction> instruction(const Place& place, isa::Isa isa) const;
    [[nodiscard]] std::optional<image::Symbol> function_symbol(const Place& place) const;
    /// nullopt if several files have a function with that name: the dynamic linker's choice is not known.
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
