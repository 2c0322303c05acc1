/// Places in memory where different files lay at different times: which of them an address belongs to, and when that
/// is not known.
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
        std::size_t file{};                 ///< equal numbers: the same file, as far from the addresses in it
        std::uint64_t from{};               ///< in the time of the trace
        std::optional<std::uint64_t> to{};  ///< absent: never
    };
    /// Addresses that touch through mappings of different files, and what lay there for some time. Layer 0 means
    /// all memory where no two files took turns.
    struct Layer {
        std::uint32_t zone{};
        bool known = false;              ///< false: the layer of unknown times
        std::vector<std::size_t> files;  ///< ascending; where it is not known, all that ever lay in the zone
        std::uint64_t first{};           ///< where the zone begins
    };

    /// Nothing took turns.
    CodeTurns() : CodeTurns({}, false) {}
    /// `timed`: times of mappings are comparable with those that are asked for. Else every layer of a zone is one that
    /// is not known.
    CodeTurns(const std::vector<Mapping>& mappings, bool timed);

    /// The layer of an address at a time: there lies the file that was mapped last before it.
    [[nodiscard]] std::uint32_t layer(std::uint64_t address, std::uint64_t time) const;
    /// The same where the time is not known.
    [[nodiscard]] std::uint32_t layer(std::uint64_t address) const;
    [[nodiscard]] const std::vector<Layer>& layers() const { return layers_; }
    /// The layer of a zone's unknown times. Precondition: the layer is none but 0.
    [[nodiscard]] std::uint32_t unknown(std::uint32_t layer) const { return zones_[layers_[layer].zone].unknown; }
    /// Some of this file lies where no other ever did.
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
