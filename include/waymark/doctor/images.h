/// Does an image hold the program that ran? Decoding proves it: code and trace of one program agree everywhere, those
/// of two contradict each other within a few packets.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waymark/capture/module_map.h"
#include "waymark/core/offset_map.h"
#include "waymark/core/result.h"
#include "waymark/doctor/identify.h"
#include "waymark/flow/flow.h"
#include "waymark/flow/summary.h"
#include "waymark/follow/recover.h"
#include "waymark/image/memory_map.h"

namespace waymark::doctor {

/// Number of different paths through the image that a proof needs, each from an address that the trace names to the
/// indirect branch from which it names the next. Code of another program has a branch there by chance only. In 400
/// pairs of programs and captures a wrong one came to 3 before its first contradiction, the right one to 16 or more
/// (tests/doctor/pairs_test.py).
inline constexpr std::uint64_t paths_to_prove = 10;
/// Without a proof an image still agrees at its own addresses if it explains at least this percentage of the trace.
inline constexpr std::uint64_t percent_to_agree = 50;

/// What decoding with an image gave.
struct Trial {
    flow::Totals totals;
    std::uint64_t waypoints{};     ///< atoms and branch packets in all of the trace
    std::uint64_t confirmed{};     ///< different paths from an address of the trace to an indirect branch
    std::uint64_t indirect{};      ///< how often such branches were taken
    std::uint64_t strayed{};       ///< times execution left the image other than by such a branch or an exception
    std::uint64_t contradicted{};  ///< different places of the image that the trace contradicts
    std::uint64_t contradictions{};
    struct First {
        Offset offset;  ///< in the buffer
        flow::Inconsistency what;
    };
    std::optional<First> first;
    std::optional<Offset> first_no_memory;
    Address no_memory{};                                    ///< where execution went there
    std::map<std::uint64_t, std::uint64_t> no_memory_at{};  ///< how often it went where there is none, by address
    std::uint64_t beside{};  ///< of those, how often right beside an ELF file's code (count_beside())
    bool ended{};            ///< the trial ended early, after too many contradictions

    /// The image holds the code that ran at these addresses: what runs in it is explained to where the trace leaves it,
    /// enough of the image is confirmed, and no contradiction is left. Where much ran right beside the image, the
    /// program that ran is another one, which has some code in common with it, such as the start of the C library.
    [[nodiscard]] bool proven() const {
        return contradictions == 0 && confirmed >= paths_to_prove && strayed * 10 <= indirect &&
               beside * 4 <= totals.ranges;
    }
    /// Contradictions are so rare that damage or code that was modified explains them.
    [[nodiscard]] bool agrees() const {
        return totals.ranges >= 8 && contradictions * 50 < totals.ranges && contradicted * 20 <= confirmed;
    }
    /// Hundredths of the trace's branches that ran in the image, rounded down.
    [[nodiscard]] std::uint64_t percent_explained() const {
        return waypoints == 0 ? 0 : std::min<std::uint64_t>(100, totals.ranges * 100 / waypoints);
    }
};
/// Fills in Trial::beside: for an ELF file, which holds all code of a program, with its code at `extents` moved by
/// `shift`, modulo `mask` + 1.
void count_beside(Trial& trial, const std::vector<follow::CodeExtent>& extents, std::uint64_t shift,
                  std::uint64_t mask);
/// Adds what is decoded of a stream, in order, to `out`, and completes that when it is destroyed. Both are borrowed.
[[nodiscard]] std::unique_ptr<flow::Sink> trial_sink(Trial& out, const OffsetMap& offsets);
/// `1,058 ranges, 37.0 % of the trace; 23 different paths confirmed, 0 contradictions`.
[[nodiscard]] std::string evidence(const Trial& trial);
/// What a proof needs, as a sentence.
[[nodiscard]] std::string proof_needs();
/// Number of contradictions after which a trial ends.
inline constexpr std::uint64_t most_contradictions = 200;
/// Decodes at most `most_bytes` with this code, and ends after `contradictions` contradictions.
[[nodiscard]] Trial try_image(const std::vector<Stretch>& stretches, const Configuration& configuration,
                              const isa::CodeReader& code, std::uint64_t most_bytes = ~std::uint64_t{0},
                              std::uint64_t contradictions = most_contradictions);

/// Loads an image `shift` bytes above its own addresses.
using LoadImage = std::function<Result<std::shared_ptr<image::MemoryMap>>(std::uint64_t shift)>;
/// `FILE[@ADDRESS]`; a raw dump without an address begins at 0.
[[nodiscard]] LoadImage load_argument(std::string argument);
/// The same of several images in one memory, of which the last one given counts where they overlap.
[[nodiscard]] LoadImage load_arguments(std::vector<std::string> arguments);
/// What the list of mapped files of a capture says of an image.
struct MappedImage {
    std::optional<std::uint64_t> load_bias{};  ///< where the file was mapped; only for an argument without an address
    std::string build_id{};        ///< hexadecimal, of the image; set only where no file that was mapped has it
    std::string build_id_there{};  ///< of the file of the same name that was mapped; empty: there was none
};
/// Nothing is known without a list, of a raw dump, and of a file without a build ID whose name is not in the list.
[[nodiscard]] MappedImage mapping_of(const std::string& argument, const capture::ModuleMap& modules);
/// Where a map has bytes, in Non-secure or Secure state; addresses of 64 bits included.
[[nodiscard]] std::vector<follow::CodeExtent> extents_of(const image::MemoryMap& map, bool ns);

/// Where an image can lie: at addresses that differ from its own by a multiple of this.
inline constexpr std::uint64_t page_bytes = 4096, word_bytes = 4;
struct Grid {
    std::uint64_t granule = word_bytes;  ///< pages for an ELF file, whose segments are mapped; words for a raw dump
    std::uint64_t given{};               ///< shift at which the image already is
};
[[nodiscard]] Grid grid_of(const std::string& argument);

struct Shift {
    std::uint64_t bytes{};             ///< to be added to the image's addresses
    std::uint64_t mask = 0xffffffffU;  ///< of addresses, which wrap: all ones for A64
    [[nodiscard]] Address applied_to(Address address) const { return {(address.value + bytes) & mask}; }
    /// `bytes` with a sign.
    [[nodiscard]] std::int64_t distance() const {
        const auto whole = static_cast<std::int64_t>(bytes);
        return mask > 0xffffffffU ? whole : static_cast<std::int32_t>(static_cast<std::uint32_t>(bytes));
    }
    std::uint64_t votes{}, candidates{};
    std::size_t configuration{};  ///< which of those given
    Trial trial;                  ///< of all bytes
};
/// The shift with which the image is proven to hold the code that ran, if there is exactly one. Candidates are
/// differences between addresses the trace names (I-syncs, branches) and places branches of the image lead to; the most
/// frequent are decoded with. A trace is of A64 code or of A32 and T32 code here: the one that names more addresses.
/// Time is bounded whatever the size of image and trace: 256 candidates, each dropped at its first contradiction.
[[nodiscard]] std::optional<Shift> find_shift(const std::vector<Stretch>& stretches,
                                              const std::vector<std::shared_ptr<const Configuration>>& configurations,
                                              const image::MemoryMap& map, Grid grid);

}  // namespace waymark::doctor
