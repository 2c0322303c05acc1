/// The programs and libraries that a recorded program mapped, and the times of mapping.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "driven_unit.h"
#include "waymark/record/modules.h"
#include "waymark/record/ring.h"

namespace waymark::record {

/// A program or library in its state when it was mapped: it may be rebuilt later, under the same name.
struct MappedProgram {
    std::string file;
    std::uint64_t inode{}, bytes{};
    std::filesystem::file_time_type changed{};
    std::uint32_t load_bias{};
    std::filesystem::path copy;  ///< copy in the folder; if copying failed, the file itself
    std::vector<std::uint8_t> build_id;
};

class RecordedImages {
public:
    /// `folder`: the capture's folder. `by_message`: there are Nexus messages.
    RecordedImages(std::filesystem::path folder, bool by_message);

    /// A file was mapped or unmapped; `unit` gives the place in the trace.
    void mapped(const MapPart& part, std::string_view name, const DrivenUnit& unit);
    void unmapped(const UnmapPart& part, const DrivenUnit& unit);
    void still_mapped(const StillMappedPart& part, const DrivenUnit& unit);
    void ran(std::uint32_t module, const DrivenUnit& unit);

    [[nodiscard]] bool by_message() const { return modules_by_message_.has_value(); }
    [[nodiscard]] std::uint32_t module_at(Address address) const { return modules_.at(address); }
    /// Null if the module is not an ELF file.
    [[nodiscard]] const MappedProgram* image_of(std::uint32_t module) const;
    /// Describes which programs and libraries were mapped, with addresses and times.
    void describe(capture::DpuCapture& c, bool by_message, const DrivenUnit& unit) const;

private:
    void each_map(const DrivenUnit& unit, auto&& f);
    [[nodiscard]] std::size_t image(const MapPart& part, const std::string& name, std::uint32_t load_bias);

    std::filesystem::path folder_;
    std::vector<MappedProgram> images_;
    std::size_t copies_ = 0;
    std::map<std::uint32_t, std::size_t> image_of_;  ///< by module
    Modules modules_;                                ///< by offset in the buffer's trace
    std::optional<Modules> modules_by_message_;      ///< by offset in Nexus messages, if these are recorded
};

}  // namespace waymark::record
