/// Addresses at which different files were mapped at different times: decides which file an address belongs to, and
/// when that is not known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

namespace waymark::analysis {

class CodeTurns {
public:
    struct Mapping {
        std::uint64_t first{}, last{};
        std::size_t file{};                 ///< equal numbers: the same file, at the same load bias
        std::uint64_t from{};               ///< in the trace's unit of time
        std::optional<std::uint64_t> to{};  ///< absent: never
    };
    /// Adjacent addresses that are connected by mappings of different files, and the files mapped there during some
    /// time. Layer 0 means all memory in which files did not take turns.
    struct Layer {
        std::uint32_t zone{};
        bool known = false;              ///< false: the layer of unknown times
        std::vector<std::size_t> files;  ///< ascending; if not known, all files that were ever mapped in the zone
        std::uint64_t first{};           ///< the beginning of the zone
    };

    /// Files never took turns in memory.
    CodeTurns() : CodeTurns({}, false) {}
    /// `timed`: times of mappings can be compared with times of lookups. Otherwise every layer of a zone is unknown.
    CodeTurns(const std::vector<Mapping>& mappings, bool timed);

    /// The layer of an address at a time: the file that was mapped there last before it.
    [[nodiscard]] std::uint32_t layer(std::uint64_t address, std::uint64_t time) const;
    /// The same for an unknown time.
    [[nodiscard]] std::uint32_t layer(std::uint64_t address) const;
    [[nodiscard]] const std::vector<Layer>& layers() const { return layers_; }
    /// The layer of a zone's unknown times. Precondition: `layer` is not 0.
    [[nodiscard]] std::uint32_t unknown(std::uint32_t layer) const { return zones_[layers_[layer].zone].unknown; }
    /// Whether some part of this file is at an address where no other file ever was.
    [[nodiscard]] bool lies_alone(std::size_t file) const;

private:
    struct Zone {
        std::uint64_t first{}, last{};
        std::uint32_t unknown{};
        std::map<std::uint64_t, std::uint32_t> from;  ///< time → layer
    };
    [[nodiscard]] const Zone* zone(std::uint64_t address) const;
    void divide(Zone& zone, std::vector<Mapping> inside);

    std::vector<Zone> zones_;  ///< by address
    std::vector<Layer> layers_;
    std::vector<std::size_t> alone_;  ///< ascending
};

}  // namespace waymark::analysis
