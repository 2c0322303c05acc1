/// Decides whether an image contains the program that ran. Decoding proves it: code and trace of one program agree
/// everywhere, code and trace of different programs contradict each other within a few packets.
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

/// Number of distinct paths required as proof, each from an address in the trace to the indirect branch before the next
/// address. Code of another program has a branch there only by chance. In 400 pairs of programs and captures, a wrong
/// one had at most 3 before its first contradiction, the right one 16 or more (tests/doctor/pairs_test.py).
inline constexpr std::uint64_t paths_to_prove = 10;
/// Without a proof, an image still agrees at its own addresses if it explains at least this percentage of the trace.
inline constexpr std::uint64_t percent_to_agree = 50;

/// The results of decoding with an image.
struct Trial {
    flow::Totals totals;
    std::uint64_t waypoints{};     ///< number of atoms and branch packets in the trace
    std::uint64_t confirmed{};     ///< distinct paths from an address in the trace to an indirect branch
    std::uint64_t indirect{};      ///< number of times that such branches were taken
    std::uint64_t strayed{};       ///< times that execution left the image, except by such a branch or an exception
    std::uint64_t contradicted{};  ///< distinct places of the image that contradict the trace
    std::uint64_t contradictions{};
    struct First {
        Offset offset;  ///< in the buffer
        flow::Inconsistency what;
    };
    std::optional<First> first;
    std::optional<Offset> first_no_memory;
    Address no_memory{};  ///< address to which execution went
    std::map<std::uint64_t, std::uint64_t>
        no_memory_at{};      ///< number of times that it went to unknown memory, by address
    std::uint64_t beside{};  ///< those directly beside an ELF file's code (count_beside())
    bool ended{};            ///< the trial ended early, after too many contradictions

    /// Whether the image contains the code that ran at these addresses: execution in it is explained until the trace
    /// leaves it, enough of it is confirmed, and no contradiction is left. If much code ran directly beside the image,
    /// another program ran that shares some code with it, such as the start of the C library.
    [[nodiscard]] bool proven() const {
        return contradictions == 0 && confirmed >= paths_to_prove && strayed * 10 <= indirect &&
               beside * 4 <= totals.ranges;
    }
    /// Whether contradictions are rare enough to be caused by damage or modified code.
    [[nodiscard]] bool agrees() const {
        return totals.ranges >= 8 && contradictions * 50 < totals.ranges && contradicted * 20 <= confirmed;
    }
    /// Percentage of the trace's branches that ran in the image, rounded down.
    [[nodiscard]] std::uint64_t percent_explained() const {
        return waypoints == 0 ? 0 : std::min<std::uint64_t>(100, totals.ranges * 100 / waypoints);
    }
};
/// Sets Trial::beside for an ELF file, which contains all code of a program, with its code at `extents` moved by
/// `shift`, modulo `mask` + 1.
void count_beside(Trial& trial, const std::vector<follow::CodeExtent>& extents, std::uint64_t shift,
                  std::uint64_t mask);
/// Returns a sink that adds the decoded flow of a stream to `out`, and completes it when destroyed. Both arguments are
/// borrowed.
[[nodiscard]] std::unique_ptr<flow::Sink> trial_sink(Trial& out, const OffsetMap& offsets);
/// `1,058 ranges, 37.0 % of the trace; 23 different paths confirmed, 0 contradictions`.
[[nodiscard]] std::string evidence(const Trial& trial);
/// The requirements of a proof, as a sentence.
[[nodiscard]] std::string proof_needs();
/// Number of contradictions after which a trial ends.
inline constexpr std::uint64_t most_contradictions = 200;
/// Decodes at most `most_bytes` with this code, and stops after `contradictions` contradictions.
[[nodiscard]] Trial try_image(const std::vector<Stretch>& stretches, const Configuration& configuration,
                              const isa::CodeReader& code, std::uint64_t most_bytes = ~std::uint64_t{0},
                              std::uint64_t contradictions = most_contradictions);

/// Loads an image `shift` bytes above its own addresses.
using LoadImage = std::function<Result<std::shared_ptr<image::MemoryMap>>(std::uint64_t shift)>;
/// For `FILE[@ADDRESS]`; a raw dump without an address begins at 0.
[[nodiscard]] LoadImage load_argument(std::string argument);
/// The same for several images in one memory; where they overlap, the last one given applies.
[[nodiscard]] LoadImage load_arguments(std::vector<std::string> arguments);
/// Facts about an image from a capture's list of mapped files.
struct MappedImage {
    std::optional<std::uint64_t> load_bias{};  ///< where the file was mapped; only for an argument without an address
    std::string build_id{};                    ///< hexadecimal, of the image; only set if no mapped file has it
    std::string build_id_there{};              ///< of the mapped file with the same name; empty if there was none
};
/// The result is empty without a list of mappings, for a raw dump, and for a file without a build ID whose name is not
/// in the list.
[[nodiscard]] MappedImage mapping_of(const std::string& argument, const capture::ModuleMap& modules);
/// Extents in which a map has bytes, in Non-secure or Secure state, including 64-bit addresses.
[[nodiscard]] std::vector<follow::CodeExtent> extents_of(const image::MemoryMap& map, bool ns);

/// Possible load addresses: they differ from the image's own by a multiple of this number.
inline constexpr std::uint64_t page_bytes = 4096, word_bytes = 4;
struct Grid {
    std::uint64_t granule = word_bytes;  ///< pages for an ELF file, whose segments are mapped; words for a raw dump
    std::uint64_t given{};               ///< load address that the argument gives; 0: none
};
[[nodiscard]] Grid grid_of(const std::string& argument);

struct Shift {
    std::uint64_t bytes{};             ///< distance to add to the image's addresses
    std::uint64_t mask = 0xffffffffU;  ///< mask for addresses, which wrap: all ones for A64
    [[nodiscard]] Address applied_to(Address address) const { return {(address.value + bytes) & mask}; }
    /// `bytes` as a signed number.
    [[nodiscard]] std::int64_t distance() const {
        const auto whole = static_cast<std::int64_t>(bytes);
        return mask > 0xffffffffU ? whole : static_cast<std::int32_t>(static_cast<std::uint32_t>(bytes));
    }
    std::uint64_t votes{}, candidates{};
    std::size_t configuration{};  ///< index of the configuration
    Trial trial;                  ///< of all bytes
};
/// The shift at which the image is proven to contain the code that ran, if there is exactly one. Candidates are
/// differences between addresses in the trace (I-syncs, branches) and targets of branches in the image; the most
/// frequent ones are tried. Trace is assumed to be of either A64 code, or A32 and T32 code: the kind with more
/// addresses. Time is bounded: 256 candidates, each dropped at its first contradiction.
[[nodiscard]] std::optional<Shift> find_shift(const std::vector<Stretch>& stretches,
                                              const std::vector<std::shared_ptr<const Configuration>>& configurations,
                                              const image::MemoryMap& map, Grid grid);

}  // namespace waymark::doctor
