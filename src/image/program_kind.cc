#include "waymark/image/program_kind.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "elf_file.h"

namespace waymark::image {

namespace {

/// The cores for which a 32-bit file was built, from its attributes (the ELF attributes of the Arm ABI): tag 6 is the
/// architecture, tag 7 its profile.
class Attributes {
public:
    explicit Attributes(Bytes bytes) : bytes_(bytes) {}

    /// The architecture, such as `ARMv7E-M`; empty if the file does not name one.
    [[nodiscard]] std::string architecture() {
        if (byte() != 'A') return {};
        // The vendor has one subsection, which contains the attributes of the whole file (tag 1).
        const std::size_t first = at_;
        const std::uint32_t bytes = word();
        if (text() != "aeabi") return {};
        const std::size_t end = std::min<std::size_t>(first + bytes, bytes_.size());
        if (byte() != 1) return {};
        word();
        std::uint64_t arch = 0, profile = 0;
        while (at_ < end) {
            const std::uint64_t tag = number();
            // Among the tags below 32, two are texts; from 32 on, odd tags are texts (32 itself: a number and a text).
            if (tag == 4 || tag == 5 || (tag > 32 && tag % 2 != 0)) {
                text();
            } else if (tag == 32) {
                number();
                text();
            } else {
                const std::uint64_t value = number();
                if (tag == 6) arch = value;
                if (tag == 7) profile = value;
            }
        }
        return named(arch, profile);
    }

private:
    static std::string named(std::uint64_t arch, std::uint64_t profile) {
        switch (arch) {
            case 10:
                return profile == 'M' ? "ARMv7-M" : profile == 'R' ? "ARMv7-R" : profile == 'A' ? "ARMv7-A" : "ARMv7";
            case 11: return "ARMv6-M";
            case 12: return "ARMv6S-M";
            case 13: return "ARMv7E-M";
            case 14: return "ARMv8-A";
            case 15: return "ARMv8-R";
            case 16: return "ARMv8-M.base";
            case 17: return "ARMv8-M.main";
            case 21: return "ARMv8.1-M.main";
            case 22: return "ARMv9-A";
            default: return {};
        }
    }
    std::uint8_t byte() { return at_ < bytes_.size() ? bytes_[at_++] : std::uint8_t{0}; }
    std::uint32_t word() {
        std::uint32_t value = 0;
        for (unsigned i = 0; i < 4; ++i) value |= std::uint32_t{byte()} << (8 * i);
        return value;
    }
    std::uint64_t number() {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            const std::uint8_t b = byte();
            value |= std::uint64_t{b & 0x7fU} << shift;
            if ((b & 0x80U) == 0) break;
        }
        return value;
    }
    std::string text() {
        std::string out;
        while (const std::uint8_t c = byte()) out += static_cast<char>(c);
        return out;
    }

    const Bytes bytes_;
    std::size_t at_ = 0;
};

}  // namespace

Result<ProgramKind> program_kind(const std::filesystem::path& path) {
    WM_ASSIGN_OR_RETURN(SharedBytes bytes, map_file(path.string()));
    WM_ASSIGN_OR_RETURN(const ElfFile file, ElfFile::open(std::move(bytes), path.string()));
    WM_ASSIGN_OR_RETURN(const bool dynamic, file.is_dynamic());
    constexpr std::uint64_t thumb = 1;
    return ProgramKind{!file.is_arm(), file.is_position_independent(), dynamic, Address{file.entry() & ~thumb},
                       file.is_arm() ? Attributes(file.attributes()).architecture() : std::string("ARMv8-A")};
}

}  // namespace waymark::image
