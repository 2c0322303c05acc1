#include "elf_file.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gelf.h>
#include <libelf.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <mutex>
#include <system_error>
#include <tuple>
#include <utility>

#include "compressed.h"
#include "waymark/image/package.h"

namespace waymark::image {
namespace {

constexpr std::string_view elf_magic =
    "\x7f"
    "ELF";

constexpr std::size_t max_segments = 65536;

// Names may share their tails in a string table, and tables may share their bytes, so a file of some kilobytes can
// claim gigabytes of names. Files from compilers and linkers stay far below these bounds.
constexpr std::uint64_t most_name_bytes_per_file_byte = 4;
constexpr std::size_t longest_cut_name = 128, longest_section_name = 255;
constexpr std::string_view cut_mark = "…";

/// Limits the names of one file: while their sum is in proportion to the file, they are not shortened; after that, they
/// are cut.
class NameBudget {
public:
    explicit NameBudget(std::uint64_t file_bytes) : left_(file_bytes * most_name_bytes_per_file_byte) {}
    [[nodiscard]] std::string take(const char* name) {
        const std::size_t bytes = ::strnlen(name, static_cast<std::size_t>(left_) + 1);
        if (bytes <= left_) {
            left_ -= bytes;
            return {name, bytes};
        }
        const std::size_t kept = ::strnlen(name, longest_cut_name + 1);
        if (kept <= longest_cut_name) return {name, kept};
        std::string out(name, longest_cut_name);
        // Do not cut inside a UTF-8 character.
        while (!out.empty() && (static_cast<unsigned char>(name[out.size()]) & 0xc0U) == 0x80U) out.pop_back();
        return out.append(cut_mark);
    }

private:
    std::uint64_t left_;
};

struct Mapping {
    void* address;
    std::size_t bytes;
    std::shared_ptr<const void> copy;  // owner of a file that exists only in memory
    ~Mapping() { ::munmap(address, bytes); }
};

struct Descriptor {
    int value;
    ~Descriptor() {
        if (value >= 0) ::close(value);
    }
};

/// Identifies a file. A changed file has another identity.
using FileIdentity = std::tuple<dev_t, ino_t, off_t, time_t, long, time_t, long>;

FileIdentity identity_of(const struct stat& status) {
    return {status.st_dev,          status.st_ino,         status.st_size,        status.st_mtim.tv_sec,
            status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec};
}

/// The mappings in use. The program of a thousand threads, and the files of each of its sources, are mapped once.
class Mappings : public std::enable_shared_from_this<Mappings> {
public:
    /// Null if the file cannot be mapped (see errno).
    std::shared_ptr<const Mapping> of(int file, const struct stat& status, std::shared_ptr<const void> copy) {
        const FileIdentity identity = identity_of(status);
        const std::scoped_lock lock(mutex_);
        if (const auto known = known_.find(identity); known != known_.end())
            if (auto mapping = known->second.lock()) return mapping;
        const auto bytes = static_cast<std::size_t>(status.st_size);
        void* const address = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
        if (address == MAP_FAILED) return nullptr;
        const std::shared_ptr<const Mapping> mapping(new Mapping{address, bytes, std::move(copy)},
                                                     [identity, all = weak_from_this()](const Mapping* each) {
                                                         delete each;
                                                         if (const auto mappings = all.lock())
                                                             mappings->forget(identity);
                                                     });
        known_[identity] = mapping;
        return mapping;
    }

private:
    /// Called when the last user of the mapping is gone; meanwhile the file may have been mapped again.
    void forget(const FileIdentity& identity) {
        const std::scoped_lock lock(mutex_);
        if (const auto known = known_.find(identity); known != known_.end() && known->second.expired())
            known_.erase(known);
    }

    std::mutex mutex_;
    std::map<FileIdentity, std::weak_ptr<const Mapping>> known_;
};

std::string machine_name(unsigned machine) {
    switch (machine) {
        case EM_386: return "x86 (3)";
        case EM_X86_64: return "x86-64 (62)";
        case EM_RISCV: return "RISC-V (243)";
        default: return fmt::format("machine {}", machine);
    }
}

/// The part of [offset, offset + bytes) that is inside a file of `file_bytes` bytes.
std::uint64_t clip(std::uint64_t offset, std::uint64_t bytes, std::uint64_t file_bytes) {
    return offset >= file_bytes ? 0 : std::min(bytes, file_bytes - offset);
}

}  // namespace

Result<SharedBytes> map_file(const std::string& path) {
    WM_ASSIGN_OR_RETURN(const Openable place, openable(path));
    const Descriptor file{::open(place.path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)};
    if (file.value < 0) {
        const int error_number = errno;
        if (error_number == ENOENT || error_number == ENOTDIR)
            return Error{Errc::not_found, fmt::format("{}: there is no such file; check the name", path)};
        return Error{Errc::unreadable,
                     fmt::format("{}: cannot be opened: {}; check the owner and mode of the file and of the "
                                 "folders above it",
                                 path, std::generic_category().message(error_number))};
    }
    struct stat status {};
    if (::fstat(file.value, &status) != 0 || !S_ISREG(status.st_mode))
        return Error{Errc::unreadable,
                     fmt::format("{}: is no regular file, but program bytes were expected; name a file", path)};
    if (status.st_size == 0)
        return Error{Errc::bad_format,
                     fmt::format("{}: is empty, but program bytes were expected; check how it was made", path)};
    static const auto mappings = std::make_shared<Mappings>();
    const auto mapping = mappings->of(file.value, status, place.copy);
    if (mapping == nullptr)
        return Error{Errc::unreadable,
                     fmt::format("{}: cannot be mapped: {}", path, std::generic_category().message(errno))};
    return SharedBytes{mapping, Bytes(static_cast<const std::uint8_t*>(mapping->address), mapping->bytes)};
}

SharedBytes share(std::vector<std::uint8_t> bytes) {
    const auto owner = std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes));
    return {owner, Bytes(*owner)};
}

bool is_elf(Bytes bytes) {
    return bytes.size() >= elf_magic.size() && std::memcmp(bytes.data(), elf_magic.data(), elf_magic.size()) == 0;
}

namespace {

/// Bits [low, low + bits) of a word.
constexpr std::uint32_t field(std::uint64_t value, unsigned bits, unsigned low) {
    return static_cast<std::uint32_t>(value & ((std::uint64_t{1} << bits) - 1)) << low;
}
/// Whether a distance fits a signed number of `bits` bits.
constexpr bool fits(std::uint64_t distance, unsigned bits) {
    const std::uint64_t half = std::uint64_t{1} << (bits - 1);
    return distance + half < 2 * half;
}
constexpr std::uint64_t sign_extended(std::uint64_t value, unsigned bits) {
    const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
    return ((value & (2 * sign - 1)) ^ sign) - sign;
}

/// An entry of a relocation table, of type SHT_RELA with addends; nullopt after the end of the table.
std::optional<GElf_Rela> relocation_at(Elf_Data* table, int number, bool addends) {
    GElf_Rela out{};
    if (addends) return gelf_getrela(table, number, &out) == nullptr ? std::nullopt : std::optional(out);
    GElf_Rel plain{};
    if (gelf_getrel(table, number, &plain) == nullptr) return std::nullopt;
    return GElf_Rela{plain.r_offset, plain.r_info, 0};
}

/// A relocation of a branch's target.
bool is_branch(bool arm, std::uint32_t type) {
    if (!arm)
        return type == R_AARCH64_TSTBR14 || type == R_AARCH64_CONDBR19 || type == R_AARCH64_JUMP26 ||
               type == R_AARCH64_CALL26;
    return type == R_ARM_PC24 || type == R_ARM_CALL || type == R_ARM_JUMP24 || type == R_ARM_THM_PC22 ||
           type == R_ARM_THM_JUMP24;
}

/// The instruction with a target at that distance; nullopt if it is too far away.
std::optional<std::uint32_t> a64_branch(std::uint32_t type, std::uint32_t instruction, std::uint64_t distance) {
    unsigned bits = 26, low = 0;
    if (type == R_AARCH64_TSTBR14) bits = 14, low = 5;
    if (type == R_AARCH64_CONDBR19) bits = 19, low = 5;
    if (distance % 4 != 0 || !fits(distance, bits + 2)) return std::nullopt;
    return (instruction & ~field(~std::uint64_t{0}, bits, low)) | field(distance >> 2, bits, low);
}

/// The target of a branch, before the addend. `thumb`: the target's instruction set; nullopt: the same as the branch's.
struct Target {
    std::uint64_t address{};
    std::optional<bool> thumb;
};

/// The same for A32 and T32. Without an addend, the instruction contains it.
std::optional<std::uint32_t> arm_branch(std::uint32_t type, std::uint32_t instruction, std::uint64_t from,
                                        const Target& to, std::optional<std::uint64_t> addend) {
    const auto distance_to = [&](std::uint64_t held, std::uint64_t origin) {
        return sign_extended(to.address + addend.value_or(held) - origin, 32);
    };
    if (type == R_ARM_THM_PC22 || type == R_ARM_THM_JUMP24) {
        // T32: BL, BLX and B.W; the first half of the instruction is in the low half of the word.
        const std::uint32_t first = instruction & 0xffff, second = instruction >> 16;
        const std::uint32_t sign = first >> 10 & 1, j1 = second >> 13 & 1, j2 = second >> 11 & 1;
        const std::uint32_t held =
            sign << 24 | (1 ^ j1 ^ sign) << 23 | (1 ^ j2 ^ sign) << 22 | field(first, 10, 12) | field(second, 11, 1);
        const bool link = type == R_ARM_THM_PC22, to_thumb = to.thumb.value_or(true);
        if (!to_thumb && !link) return std::nullopt;
        // A call from T32 to A32 counts from the word that contains the instruction.
        const std::uint64_t distance = distance_to(sign_extended(held, 25), to_thumb ? from : from & ~std::uint64_t{3});
        if (!fits(distance, 25)) return std::nullopt;
        const std::uint32_t s = field(distance >> 24, 1, 0);
        const std::uint32_t new_first = (first & 0xf800) | s << 10 | field(distance >> 12, 10, 0);
        const std::uint32_t new_j1 = 1 ^ field(distance >> 23, 1, 0) ^ s, new_j2 = 1 ^ field(distance >> 22, 1, 0) ^ s;
        std::uint32_t new_second = (second & 0xd000) | new_j1 << 13 | new_j2 << 11 | field(distance >> 1, 11, 0);
        if (link) new_second = to_thumb ? new_second | 0x1000 : new_second & ~std::uint32_t{0x1001};
        return new_second << 16 | new_first;
    }
    constexpr std::uint32_t bl_always = 0xeb000000, blx = 0xfa000000, opcode = 0xff000000;
    const bool is_blx = (instruction & 0xfe000000) == blx;
    const std::uint64_t half = is_blx ? instruction >> 23 & 2 : 0;
    const std::uint64_t distance = distance_to(sign_extended(instruction & 0xffffff, 24) * 4 + half, from);
    if (!fits(distance, 26)) return std::nullopt;
    const std::uint32_t field_24 = field(distance >> 2, 24, 0);
    if (to.thumb.value_or(is_blx)) {
        // Only a call that is always taken can change the instruction set.
        if (!is_blx && (instruction & opcode) != bl_always) return std::nullopt;
        return blx | field(distance >> 1, 1, 24) | field_24;
    }
    return (is_blx ? bl_always : instruction & opcode) | field_24;
}

}  // namespace

struct ElfFile::State {
    SharedBytes file;
    std::string name;
    std::unique_ptr<Elf, int (*)(Elf*)> elf{nullptr, elf_end};
    GElf_Ehdr header{};
    std::map<std::size_t, std::uint64_t> placed;  // relocatable file: section index → address

    struct SectionView {
        std::size_t index;
        Elf_Scn* handle;
        GElf_Shdr header;
        std::string_view name;  // valid as long as the ELF file
    };
    [[nodiscard]] std::vector<SectionView> sections() const {
        std::vector<SectionView> result;
        std::size_t names = 0;
        const bool have_names = elf_getshdrstrndx(elf.get(), &names) == 0;
        for (Elf_Scn* scn = nullptr; (scn = elf_nextscn(elf.get(), scn)) != nullptr;) {
            SectionView view{elf_ndxscn(scn), scn, {}, {}};
            if (gelf_getshdr(scn, &view.header) == nullptr) continue;
            const char* section_name = have_names ? elf_strptr(elf.get(), names, view.header.sh_name) : nullptr;
            if (section_name != nullptr) view.name = {section_name, ::strnlen(section_name, longest_section_name)};
            result.push_back(view);
        }
        return result;
    }
    /// The bytes of a section as far as the file has them.
    [[nodiscard]] Bytes contents(const GElf_Shdr& h) const {
        const Bytes rest =
            file.bytes.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(h.sh_offset, file.bytes.size())));
        return rest.first(static_cast<std::size_t>(std::min<std::uint64_t>(h.sh_size, rest.size())));
    }
    void place_sections();
    /// Whether a section that should contain code is empty: `objcopy --only-keep-debug` writes such files.
    [[nodiscard]] bool is_debug_only() const {
        const auto all = sections();
        return header.e_type != ET_REL && std::any_of(all.begin(), all.end(), [](const SectionView& s) {
                   return s.header.sh_type == SHT_NOBITS && (s.header.sh_flags & SHF_EXECINSTR) != 0 &&
                          s.header.sh_size != 0;
               });
    }
};

/// Assigns addresses to the executable sections of a relocatable file, one after the other, as Linux does for a kernel
/// module. Sections that are needed only to start it (.init…) have separate memory, here after the rest. A section that
/// has an address keeps it. Sections that the kernel fills with jumps come before the code. Their final length is not
/// known; but if they fit one page, code that is aligned to pages begins at the next page.
void ElfFile::State::place_sections() {
    constexpr std::uint64_t page = 4096;
    std::uint64_t next = 0;
    bool filled = false;  // there are sections that the kernel fills
    const auto place = [&](bool of_start) {
        for (const SectionView& section : sections()) {
            const auto& h = section.header;
            if (section.name == ".plt" || section.name == ".text.ftrace_trampoline") {
                filled |= (h.sh_flags & SHF_ALLOC) != 0;
                continue;
            }
            if (h.sh_type != SHT_PROGBITS || (h.sh_flags & SHF_ALLOC) == 0 || (h.sh_flags & SHF_EXECINSTR) == 0)
                continue;
            if (section.name.starts_with(".init") != of_start) continue;
            // A damaged file may claim any alignment; an alignment that is not a power of two, or is absurd, is
            // ignored.
            constexpr std::uint64_t largest_alignment = std::uint64_t{1} << 20;
            const bool sane = h.sh_addralign != 0 && (h.sh_addralign & (h.sh_addralign - 1)) == 0 &&
                              h.sh_addralign <= largest_alignment;
            const std::uint64_t alignment = sane ? h.sh_addralign : 1;
            if (filled && next == 0 && alignment >= page) next = 1;
            const std::uint64_t address = h.sh_addr != 0 ? h.sh_addr : (next + alignment - 1) & ~(alignment - 1);
            placed.emplace(section.index, address);
            next = address + clip(h.sh_offset, h.sh_size, file.bytes.size());
        }
    };
    place(false);
    place(true);
}

ElfFile::ElfFile(std::unique_ptr<State> state) : state_(std::move(state)) {}
ElfFile::~ElfFile() = default;
ElfFile::ElfFile(ElfFile&&) noexcept = default;

Error ElfFile::damaged(std::string_view what) const {
    return Error{Errc::bad_format,
                 fmt::format("{}: is a damaged ELF file: {}; build or copy it again", state_->name, what)};
}

Result<ElfFile> ElfFile::open(SharedBytes file, std::string name, Machines machines) {
    if (!is_elf(file.bytes))
        return Error{
            Errc::bad_format,
            fmt::format("{}: is not an ELF file: it begins with {:02x}, not with 7f 45 4c 46; name the program "
                        "or library itself, as the linker wrote it",
                        name, fmt::join(file.bytes.first(std::min<std::size_t>(4, file.bytes.size())), " "))};
    // Required before any other call of libelf, and harmless if repeated.
    if (elf_version(EV_CURRENT) == EV_NONE)
        return Error{Errc::unsupported, "the installed libelf is older than the ELF format; update it"};
    auto state = std::make_unique<State>();
    state->file = std::move(file);
    state->name = std::move(name);
    // libelf takes char*, but does not change bytes that it only reads.
    auto* bytes = const_cast<char*>(reinterpret_cast<const char*>(state->file.bytes.data()));
    state->elf.reset(elf_memory(bytes, state->file.bytes.size()));
    ElfFile result(std::move(state));
    State& s = *result.state_;
    if (s.elf == nullptr || elf_kind(s.elf.get()) != ELF_K_ELF || gelf_getehdr(s.elf.get(), &s.header) == nullptr)
        return result.damaged(fmt::format("its header cannot be read ({})", elf_errmsg(-1)));
    const bool x86_64 = s.header.e_machine == EM_X86_64 && machines == Machines::arm_and_x86_64;
    const bool starcore = s.header.e_machine == EM_STARCORE && machines == Machines::arm_and_starcore;
    if (s.header.e_machine != EM_ARM && s.header.e_machine != EM_AARCH64 && !x86_64 && !starcore)
        return Error{Errc::unsupported,
                     fmt::format("{}: is an ELF file for {}, but Arm ({}) or AArch64 ({}) was expected; name a program "
                                 "for one of these",
                                 s.name, machine_name(s.header.e_machine), EM_ARM, EM_AARCH64)};
    if (s.header.e_ident[EI_DATA] != ELFDATA2LSB && !starcore)
        return Error{Errc::unsupported,
                     fmt::format("{}: is a big-endian ELF file; only little-endian programs can be read", s.name)};
    if (s.header.e_type == ET_REL) s.place_sections();
    return result;
}

bool ElfFile::is_relocatable() const { return state_->header.e_type == ET_REL; }
bool ElfFile::is_32_bit() const { return gelf_getclass(state_->elf.get()) == ELFCLASS32; }
bool ElfFile::is_position_independent() const { return state_->header.e_type == ET_DYN; }
std::uint64_t ElfFile::entry() const { return state_->header.e_entry; }
Result<bool> ElfFile::is_dynamic() const {
    std::size_t count = 0;
    if (elf_getphdrnum(state_->elf.get(), &count) != 0) return damaged("its program header table cannot be read");
    for (std::size_t i = 0; i < std::min<std::size_t>(count, max_segments); ++i) {
        GElf_Phdr segment{};
        if (gelf_getphdr(state_->elf.get(), static_cast<int>(i), &segment) == nullptr)
            return damaged(fmt::format("program header {} of {} cannot be read", i, count));
        if (segment.p_type == PT_DYNAMIC) return true;
    }
    return false;
}
bool ElfFile::is_arm() const { return state_->header.e_machine == EM_ARM; }
bool ElfFile::is_x86_64() const { return state_->header.e_machine == EM_X86_64; }
const SharedBytes& ElfFile::file() const { return state_->file; }

Result<std::vector<ElfFile::Piece>> ElfFile::pieces() const {
    std::vector<Piece> pieces;
    const std::uint64_t file_bytes = state_->file.bytes.size();
    if (is_relocatable()) {
        for (const auto& section : state_->sections()) {
            const auto at = state_->placed.find(section.index);
            if (at == state_->placed.end() || section.header.sh_size == 0) continue;
            const auto& h = section.header;
            pieces.push_back({std::string(section.name), at->second, h.sh_offset,
                              clip(h.sh_offset, h.sh_size, file_bytes), h.sh_size, section.index});
        }
    } else {
        if (state_->is_debug_only())
            return Error{Errc::bad_format, fmt::format("{}: contains only debug information, its code sections are "
                                                       "empty; name the program file it was separated from",
                                                       state_->name)};
        std::size_t count = 0;
        if (elf_getphdrnum(state_->elf.get(), &count) != 0) return damaged("its program header table cannot be read");
        // More than any program or core file has; building the map would take minutes.
        if (count > max_segments) return damaged(fmt::format("it claims {} program headers", count));
        for (std::size_t i = 0; i < count; ++i) {
            GElf_Phdr segment{};
            if (gelf_getphdr(state_->elf.get(), static_cast<int>(i), &segment) == nullptr)
                return damaged(fmt::format("program header {} of {} cannot be read", i, count));
            if (segment.p_type != PT_LOAD || segment.p_filesz == 0) continue;
            pieces.push_back({fmt::format("LOAD {}", i), segment.p_vaddr, segment.p_offset,
                              clip(segment.p_offset, segment.p_filesz, file_bytes), segment.p_filesz, 0});
        }
    }
    const std::size_t declared = pieces.size();
    std::erase_if(pieces, [](const Piece& piece) { return piece.bytes == 0; });
    if (!pieces.empty()) return pieces;
    if (declared != 0) return damaged("all contents lie after the end of the file; it was cut short");
    return Error{Errc::bad_format,
                 fmt::format("{}: has no {} with contents, so there is no code in it; name the program that was traced",
                             state_->name, is_relocatable() ? "executable section" : "loadable segment")};
}

ElfFile::Branches ElfFile::relocated_branches(std::uint64_t load_bias, const AddressOf& outside) const {
    Branches out;
    if (is_x86_64()) return out;
    const Bytes file = state_->file.bytes;
    const auto sections = state_->sections();
    std::map<std::size_t, const State::SectionView*> by_index;
    for (const auto& section : sections) by_index.emplace(section.index, &section);
    // The target of a relocation, before its addend.
    const std::uint64_t thumb_bit = is_arm() ? 1 : 0;
    const auto target = [&](const GElf_Sym& symbol, std::size_t names) -> std::optional<Target> {
        if (symbol.st_shndx != SHN_UNDEF) {
            const auto at = state_->placed.find(symbol.st_shndx);
            if (at == state_->placed.end() && symbol.st_shndx != SHN_ABS) return std::nullopt;
            const std::uint64_t base = symbol.st_shndx == SHN_ABS ? 0 : at->second + load_bias;
            // Only the value of a function shows its instruction set.
            if (GELF_ST_TYPE(symbol.st_info) != STT_FUNC) return Target{base + symbol.st_value, std::nullopt};
            return Target{base + (symbol.st_value & ~thumb_bit), (symbol.st_value & thumb_bit) != 0};
        }
        const char* const name = elf_strptr(state_->elf.get(), names, symbol.st_name);
        if (name == nullptr || *name == '\0' || !outside) return std::nullopt;
        const auto address = outside(name);
        return address ? std::optional(Target{*address & ~thumb_bit, std::nullopt}) : std::nullopt;
    };
    // Two tables do not share bytes, unless damaged section headers describe one table twice.
    std::uint64_t left = file.size() / sizeof(Elf32_Rel);
    for (const auto& table : sections) {
        const bool addends = table.header.sh_type == SHT_RELA;
        if ((!addends && table.header.sh_type != SHT_REL) || table.header.sh_entsize == 0) continue;
        const auto place = state_->placed.find(table.header.sh_info);
        if (place == state_->placed.end()) continue;
        const GElf_Shdr& code = by_index.at(table.header.sh_info)->header;
        const std::uint64_t code_bytes = clip(code.sh_offset, code.sh_size, file.size());
        Elf_Data* const data = elf_getdata(table.handle, nullptr);
        Elf_Scn* const symbol_table = elf_getscn(state_->elf.get(), table.header.sh_link);
        GElf_Shdr symbol_header{};
        Elf_Data* const symbols = symbol_table == nullptr ? nullptr : elf_getdata(symbol_table, nullptr);
        if (data == nullptr || symbols == nullptr || gelf_getshdr(symbol_table, &symbol_header) == nullptr) continue;
        const std::uint64_t count = data->d_size / table.header.sh_entsize;
        for (std::uint64_t i = 0; i < count && i <= INT32_MAX && left != 0; ++i, --left) {
            const auto entry = relocation_at(data, static_cast<int>(i), addends);
            if (!entry) break;
            const GElf_Rela& relocation = *entry;
            constexpr std::uint64_t instruction_bytes = 4;
            const auto type = static_cast<std::uint32_t>(GELF_R_TYPE(relocation.r_info));
            if (!is_branch(is_arm(), type) || code_bytes < instruction_bytes ||
                relocation.r_offset > code_bytes - instruction_bytes)
                continue;
            const std::uint64_t number = GELF_R_SYM(relocation.r_info);
            GElf_Sym symbol{};
            const std::uint64_t offset = code.sh_offset + relocation.r_offset;
            std::optional<Target> to;
            if (number <= INT32_MAX && gelf_getsym(symbols, static_cast<int>(number), &symbol) != nullptr)
                to = target(symbol, symbol_header.sh_link);
            std::optional<std::uint32_t> value;
            if (to) {
                std::uint32_t there = 0;
                std::memcpy(&there, file.data() + offset, sizeof there);
                const std::uint64_t from = place->second + load_bias + relocation.r_offset;
                const auto addend =
                    addends ? std::optional(static_cast<std::uint64_t>(relocation.r_addend)) : std::nullopt;
                value = is_arm() ? arm_branch(type, there, from, *to, addend)
                                 : a64_branch(type, there, to->address + addend.value_or(0) - from);
            }
            if (value)
                out.patches.push_back({offset, *value});
            else
                out.unknown.push_back(offset);
        }
    }
    std::sort(out.patches.begin(), out.patches.end(),
              [](const Branches::Patch& a, const Branches::Patch& b) { return a.offset < b.offset; });
    std::sort(out.unknown.begin(), out.unknown.end());
    return out;
}

std::vector<ElfFile::SymbolEntry> ElfFile::symbols() const {
    const auto sections = state_->sections();
    std::map<std::size_t, const State::SectionView*> by_index;
    for (const auto& section : sections) by_index.emplace(section.index, &section);

    std::vector<SymbolEntry> result;
    NameBudget names(state_->file.bytes.size());
    // Two symbols do not share bytes, unless damaged section headers describe one table twice.
    std::uint64_t left = state_->file.bytes.size() / sizeof(Elf32_Sym);
    for (const auto& table : sections) {
        if (table.header.sh_type != SHT_SYMTAB && table.header.sh_type != SHT_DYNSYM) continue;
        if (table.header.sh_entsize == 0) continue;
        Elf_Data* data = elf_getdata(table.handle, nullptr);
        if (data == nullptr) continue;
        const std::uint64_t count = data->d_size / table.header.sh_entsize;
        result.reserve(result.size() + static_cast<std::size_t>(std::min(count, left)));
        for (std::uint64_t i = 1; i < count && i <= INT32_MAX && left != 0; ++i, --left) {
            GElf_Sym symbol{};
            if (gelf_getsym(data, static_cast<int>(i), &symbol) == nullptr) break;
            if (symbol.st_shndx == SHN_UNDEF || symbol.st_shndx == SHN_COMMON) continue;
            const char* symbol_name = elf_strptr(state_->elf.get(), table.header.sh_link, symbol.st_name);
            if (symbol_name == nullptr || *symbol_name == '\0') continue;
            SymbolEntry entry{names.take(symbol_name),
                              symbol.st_value,
                              symbol.st_size,
                              static_cast<unsigned char>(GELF_ST_TYPE(symbol.st_info)),
                              static_cast<unsigned char>(GELF_ST_BIND(symbol.st_info)),
                              0,
                              0,
                              symbol.st_shndx == SHN_ABS};
            if (const auto section = by_index.find(symbol.st_shndx); section != by_index.end()) {
                const GElf_Shdr& h = section->second->header;
                std::uint64_t base = h.sh_addr;
                if (is_relocatable()) {
                    const auto at = state_->placed.find(symbol.st_shndx);
                    if (at == state_->placed.end()) continue;  // data sections of a relocatable file get no address
                    base = at->second;
                    entry.value += base;
                }
                entry.section_start = base;
                entry.section_end = base + h.sh_size;
            }
            result.push_back(std::move(entry));
        }
    }
    return result;
}

namespace {

std::uint32_t word_at(Bytes bytes, std::size_t at) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    return word;
}

/// An entry of a procedure linkage table.
struct LinkageEntry {
    std::uint64_t address{}, bytes{}, slot{};  // slot: the address of the pointer through which it jumps
    bool thumb{};
};

/// Entries are recognised by their code; other bytes may come before and between them.
std::vector<LinkageEntry> arm_entries(Bytes code, std::uint64_t address) {
    std::vector<LinkageEntry> out;
    for (std::size_t at = 0; at + 12 <= code.size(); at += 4) {
        // add ip, pc, #a << 20; add ip, ip, #b << 12; ldr pc, [ip, #c]!
        const std::uint32_t first = word_at(code, at), second = word_at(code, at + 4), third = word_at(code, at + 8);
        if ((first & 0xffffff00) != 0xe28fc600 || (second & 0xffffff00) != 0xe28cca00 ||
            (third & 0xfffff000) != 0xe5bcf000)
            continue;
        // bx pc; nop: for callers in Thumb state.
        const bool thumb = at >= 4 && (word_at(code, at - 4) & 0xffff) == 0x4778;
        const std::uint64_t slot =
            (address + at + 8 + ((first & 0xff) << 20) + ((second & 0xff) << 12) + (third & 0xfff)) & 0xffffffff;
        out.push_back({address + at - (thumb ? 4U : 0U), thumb ? 16U : 12U, slot, thumb});
        at += 8;
    }
    return out;
}

std::vector<LinkageEntry> a64_entries(Bytes code, std::uint64_t address) {
    std::vector<LinkageEntry> out;
    for (std::size_t at = 0; at + 16 <= code.size(); at += 4) {
        // adrp x16, page; ldr x17, [x16, #low]; add x16, x16, #low; br x17
        const std::uint32_t first = word_at(code, at), second = word_at(code, at + 4);
        if ((first & 0x9f00001f) != 0x90000010 || (second & 0xffc003ff) != 0xf9400211) continue;
        const auto pages = static_cast<std::int64_t>(
            static_cast<std::uint64_t>((first >> 5 & 0x7ffff) << 2 | (first >> 29 & 3)) << 43);
        const std::uint64_t page = ((address + at) & ~std::uint64_t{0xfff}) + static_cast<std::uint64_t>(pages >> 31);
        constexpr std::uint32_t bti_c = 0xd503245f, stp_x16_x30 = 0xa9bf7bf0;
        const std::uint32_t before = at >= 4 ? word_at(code, at - 4) : 0;
        const bool guarded = before == bti_c;
        // The beginning of the table also jumps through a pointer, after it has stored two registers.
        if (before != stp_x16_x30)
            out.push_back({address + at - (guarded ? 4U : 0U), guarded ? 20U : 16U,
                           page + std::uint64_t{second >> 10 & 0xfff} * 8, false});
        at += 12;
    }
    return out;
}

/// Entries of 16 bytes, each with jmp *displacement(%rip).
std::vector<LinkageEntry> x86_entries(Bytes code, std::uint64_t address) {
    std::vector<LinkageEntry> out;
    constexpr std::size_t entry_bytes = 16, jump_bytes = 6;
    for (std::size_t at = 0; at + entry_bytes <= code.size(); at += entry_bytes)
        for (std::size_t i = at; i + jump_bytes <= at + entry_bytes; ++i) {
            if (code[i] != 0xff || code[i + 1] != 0x25) continue;
            const std::uint64_t displacement = sign_extended(word_at(code, i + 2), 32);
            // The first entry also jumps through a pointer, after it has pushed another one.
            const bool pushes = at == 0 && code[at] == 0xff && code[at + 1] == 0x35;
            if (!pushes) out.push_back({address + at, entry_bytes, address + i + jump_bytes + displacement, false});
            break;
        }
    return out;
}

}  // namespace

std::vector<ElfFile::SymbolEntry> ElfFile::compressed_symbols() const {
    const Bytes file = state_->file.bytes;
    for (const auto& section : state_->sections()) {
        if (section.name != ".gnu_debugdata" || section.header.sh_type != SHT_PROGBITS) continue;
        const std::uint64_t bytes = clip(section.header.sh_offset, section.header.sh_size, file.size());
        if (bytes == 0) continue;
        std::vector<std::uint8_t> contents = decompressed(
            file.subspan(static_cast<std::size_t>(section.header.sh_offset), static_cast<std::size_t>(bytes)));
        // A file has one such section; trying thousands would take hours.
        if (contents.empty()) return {};
        const auto inner =
            ElfFile::open(share(std::move(contents)), state_->name + "[.gnu_debugdata]", Machines::arm_and_x86_64);
        return inner ? inner->symbols() : std::vector<SymbolEntry>{};
    }
    return {};
}

bool ElfFile::has_symbol_table() const {
    const auto sections = state_->sections();
    return std::any_of(sections.begin(), sections.end(),
                       [](const State::SectionView& s) {
                           return s.header.sh_type == SHT_SYMTAB && s.header.sh_size > s.header.sh_entsize;
                       }) ||
           !compressed_symbols().empty();
}

std::vector<ElfFile::SymbolEntry> ElfFile::linkage_symbols() const {
    const auto sections = state_->sections();
    std::map<std::uint64_t, std::string> names;  // by the address of the pointer
    NameBudget budget(state_->file.bytes.size());
    for (const auto& table : sections) {
        const bool addends = table.header.sh_type == SHT_RELA;
        if ((!addends && table.header.sh_type != SHT_REL) || table.header.sh_entsize == 0) continue;
        if (table.name != ".rel.plt" && table.name != ".rela.plt") continue;
        Elf_Data* data = elf_getdata(table.handle, nullptr);
        Elf_Scn* const dynamic = elf_getscn(state_->elf.get(), table.header.sh_link);
        GElf_Shdr dynamic_header{};
        Elf_Data* symbols = dynamic == nullptr ? nullptr : elf_getdata(dynamic, nullptr);
        if (data == nullptr || symbols == nullptr || gelf_getshdr(dynamic, &dynamic_header) == nullptr) continue;
        const std::uint64_t count = data->d_size / table.header.sh_entsize;
        for (std::uint64_t i = 0; i < count && i <= INT32_MAX; ++i) {
            const auto entry = relocation_at(data, static_cast<int>(i), addends);
            if (!entry) break;
            const GElf_Rela& relocation = *entry;
            const std::uint64_t number = GELF_R_SYM(relocation.r_info);
            GElf_Sym symbol{};
            if (number == 0 || number > INT32_MAX || gelf_getsym(symbols, static_cast<int>(number), &symbol) == nullptr)
                continue;
            const char* name = elf_strptr(state_->elf.get(), dynamic_header.sh_link, symbol.st_name);
            if (name != nullptr && *name != '\0' && !names.contains(relocation.r_offset))
                names.emplace(relocation.r_offset, budget.take(name));
        }
    }
    std::vector<SymbolEntry> out;
    if (names.empty()) return out;
    for (const auto& section : sections) {
        const auto& h = section.header;
        const bool second = is_x86_64() && section.name == ".plt.sec";
        if ((section.name != ".plt" && !second) || h.sh_type != SHT_PROGBITS) continue;
        const std::uint64_t bytes = clip(h.sh_offset, h.sh_size, state_->file.bytes.size());
        if (bytes == 0) continue;
        const Bytes code =
            state_->file.bytes.subspan(static_cast<std::size_t>(h.sh_offset), static_cast<std::size_t>(bytes));
        std::uint64_t first = highest;
        const auto add = [&](std::string name, std::uint64_t address, std::uint64_t size) {
            out.push_back({std::move(name) + "@plt", address, size, STT_FUNC, STB_LOCAL, h.sh_addr + h.sh_size,
                           h.sh_addr, false});
        };
        for (const LinkageEntry& entry : is_arm()      ? arm_entries(code, h.sh_addr)
                                         : is_x86_64() ? x86_entries(code, h.sh_addr)
                                                       : a64_entries(code, h.sh_addr)) {
            first = std::min(first, entry.address);
            if (const auto found = names.find(entry.slot); found != names.end())
                add(found->second, entry.address | (entry.thumb ? 1U : 0U), entry.bytes);
        }
        if (first != highest && first > h.sh_addr) add("PLT0", h.sh_addr, first - h.sh_addr);
    }
    return out;
}

std::vector<ElfFile::CodePiece> ElfFile::code() const {
    std::vector<CodePiece> out;
    const Bytes file = state_->file.bytes;
    for (const auto& section : state_->sections()) {
        const auto& h = section.header;
        const bool holds = h.sh_type == SHT_PROGBITS;
        if ((!holds && h.sh_type != SHT_NOBITS) || (h.sh_flags & SHF_ALLOC) == 0 || (h.sh_flags & SHF_EXECINSTR) == 0)
            continue;
        const auto placed = state_->placed.find(section.index);
        // A damaged file may claim more memory than exists.
        constexpr std::uint64_t most_bytes = std::uint64_t{1} << 32;
        const std::uint64_t address = placed != state_->placed.end() ? placed->second : h.sh_addr;
        if (h.sh_size == 0 || h.sh_size > most_bytes || address > highest - h.sh_size) continue;
        const std::uint64_t bytes = holds ? clip(h.sh_offset, h.sh_size, file.size()) : 0;
        out.push_back({address, h.sh_size,
                       bytes == 0
                           ? Bytes()
                           : file.subspan(static_cast<std::size_t>(h.sh_offset), static_cast<std::size_t>(bytes))});
    }
    return out;
}

namespace {

struct Note {
    std::string_view name;  // without the NUL at its end
    std::uint32_t type{};
    Bytes contents;
    Bytes up_to_end;  // the note itself, without padding
};

/// Calls `each` with a note of a note section and its offset there, until it returns true.
template <class Each>
bool any_note(Bytes notes, const Each& each) {
    constexpr std::size_t lengths_bytes = 12;  // lengths of name and contents, and the type
    const auto padded = [](std::uint64_t bytes) { return (bytes + 3) & ~std::uint64_t{3}; };
    for (std::uint64_t at = 0; notes.size() >= lengths_bytes;) {
        std::array<std::uint32_t, 3> lengths{};
        std::memcpy(lengths.data(), notes.data(), sizeof lengths);
        const auto [name_bytes, contents_bytes, type] = lengths;
        const std::uint64_t begin = lengths_bytes + padded(name_bytes), whole = begin + padded(contents_bytes);
        if (whole > notes.size()) break;
        std::string_view name(reinterpret_cast<const char*>(notes.data()) + lengths_bytes, name_bytes);
        if (name.ends_with('\0')) name.remove_suffix(1);
        const auto first = static_cast<std::size_t>(begin);
        if (each(Note{name, type, notes.subspan(first, contents_bytes), notes.first(first + contents_bytes)}, at))
            return true;
        notes = notes.subspan(static_cast<std::size_t>(whole));
        at += whole;
    }
    return false;
}

}  // namespace

std::optional<ElfFile::BuildId> ElfFile::build_id() const {
    std::optional<BuildId> out;
    for (const auto& section : state_->sections()) {
        const auto& h = section.header;
        if (h.sh_type != SHT_NOTE || (h.sh_flags & SHF_ALLOC) == 0) continue;
        const auto is_build_id = [&](const Note& note, std::uint64_t at) {
            if (note.type != NT_GNU_BUILD_ID || note.name != "GNU" || note.contents.empty()) return false;
            out = BuildId{h.sh_addr + at, note.up_to_end, note.contents};
            return true;
        };
        if (any_note(state_->contents(h), is_build_id)) break;
    }
    return out;
}

bool ElfFile::is_for_linux() const {
    if (state_->header.e_ident[EI_OSABI] == ELFOSABI_LINUX) return true;
    for (const auto& section : state_->sections()) {
        const auto& h = section.header;
        if (h.sh_type == SHT_PROGBITS && section.name == ".interp") return true;
        const auto says_so = [](const Note& note, std::uint64_t) {
            constexpr std::array<std::uint8_t, 4> linux_tag{ELF_NOTE_OS_LINUX};
            if (note.name == "GNU" && note.type == NT_GNU_ABI_TAG)
                return std::equal(linux_tag.begin(), linux_tag.end(), note.contents.begin(),
                                  note.contents.begin() + std::min<std::ptrdiff_t>(4, std::ssize(note.contents)));
            return note.name == "Android" || note.name == "Go";
        };
        if (h.sh_type == SHT_NOTE && any_note(state_->contents(h), says_so)) return true;
    }
    return false;
}

Bytes ElfFile::attributes() const {
    for (const auto& section : state_->sections())
        if (section.header.sh_type == SHT_ARM_ATTRIBUTES) return state_->contents(section.header);
    return {};
}

}  // namespace waymark::image
