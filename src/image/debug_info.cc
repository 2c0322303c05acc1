#include "waymark/image/debug_info.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <gelf.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string_view>
#include <system_error>

#include "elf_file.h"
#include "inlined_calls.h"
#include "line_rows.h"
#include "waymark/image/package.h"

namespace waymark::image {

struct DebugInfo::State {
    ~State() { end(); }
    /// Opens the file with libdwfl.
    Status begin() {
        WM_ASSIGN_OR_RETURN(Openable place, openable(path));
        std::error_code error;
        if (!std::filesystem::is_regular_file(place.path, error))
            return Error{Errc::not_found, path.string() + ": no such file"};
        dwfl = dwfl_begin(&callbacks);
        if (dwfl == nullptr) return Error{Errc::unreadable, path.string() + ": " + dwfl_errmsg(-1)};
        dwfl_report_begin(dwfl);
        module = dwfl_report_elf(dwfl, path.filename().c_str(), place.path.c_str(), -1, 0, true);
        dwfl_report_end(dwfl, nullptr, nullptr);
        if (module == nullptr)
            return Error{Errc::bad_format, path.string() + ": no ELF file with segments: " + dwfl_errmsg(-1)};
        void** user = nullptr;
        if (dwfl_module_info(module, &user, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) != nullptr)
            *user = this;
        copy = std::move(place.copy);
        return Nothing{};
    }
    void end() {
        if (dwfl != nullptr) dwfl_end(dwfl);
        dwfl = nullptr;
        module = nullptr;
        copy.reset();
    }
    /// Frees a copy in memory, such as a compressed kernel module, unless its lines were used: in most modules, no code
    /// ran. Build ID and segments stay known.
    void release() {
        if (copy != nullptr && !reads_lines) end();
    }
    /// Opens the debug information. Returns false if there is none.
    bool read_lines() {
        reads_lines = true;
        look();
        if (!has_dwarf) {
            reads_lines = false;
            release();
            return false;
        }
        Dwarf_Addr bias = 0;
        if (module == nullptr && (!begin() || dwfl_module_getdwarf(module, &bias) == nullptr)) has_dwarf = false;
        return has_dwarf;
    }
    void look() {
        if (looked) return;
        looked = true;
        if (module == nullptr && !begin()) return;
        Dwarf_Addr bias = 0;
        has_dwarf = dwfl_module_getdwarf(module, &bias) != nullptr;
        const char *main = nullptr, *debug = nullptr;
        dwfl_module_info(module, nullptr, nullptr, nullptr, nullptr, nullptr, &main, &debug);
        if (debug != nullptr) debug_file = debug;
        release();
    }

    struct Unit {
        std::uint64_t first, end, bias;
        Dwarf_Die die;
    };
    /// The compilation unit that contains an address, from the units themselves: Clang writes no index
    /// (.debug_aranges).
    Unit* unit_without_index(std::uint64_t address) {
        if (!units_listed) {
            units_listed = true;
            Dwarf_Addr bias = 0;
            for (Dwarf_Die* die = nullptr; (die = dwfl_module_nextcu(module, die, &bias)) != nullptr;) {
                Dwarf_Addr base = 0, first = 0, end = 0;
                for (std::ptrdiff_t next = 0; (next = dwarf_ranges(die, next, &base, &first, &end)) > 0;)
                    if (first < end) units.push_back({first + bias, end + bias, bias, *die});
            }
            std::sort(units.begin(), units.end(), [](const Unit& a, const Unit& b) { return a.first < b.first; });
        }
        const auto unit = std::upper_bound(units.begin(), units.end(), address,
                                           [](std::uint64_t at, const Unit& u) { return at < u.first; });
        return unit == units.begin() || address >= (unit - 1)->end ? nullptr : &*(unit - 1);
    }

    static std::uint32_t discriminator(Dwarf_Line* line) {
        unsigned out = 0;
        return line != nullptr && dwarf_linediscriminator(line, &out) == 0 ? out : 0;
    }
    std::optional<SourceLine> line_without_index(std::uint64_t address) {
        Unit* const unit = unit_without_index(address);
        if (unit == nullptr) return std::nullopt;
        return line_of(dwarf_getsrc_die(&unit->die, address - unit->bias), &unit->die);
    }
    /// The source line of a row in the unit's table.
    std::optional<SourceLine> line_of(Dwarf_Line* found, Dwarf_Die* unit) {
        if (found != nullptr && unit != nullptr) found = row_with_code(found, *unit);
        int line = 0;
        const char* const file = found == nullptr ? nullptr : dwarf_linesrc(found, nullptr, nullptr);
        if (file == nullptr || dwarf_lineno(found, &line) != 0 || line <= 0) return std::nullopt;
        return SourceLine{file, static_cast<std::uint32_t>(line), discriminator(found)};
    }

    /// libdw finds the last row at an address, which may be an empty one at the end of the code before.
    Dwarf_Line* row_with_code(Dwarf_Line* found, Dwarf_Die& unit) {
        Dwarf_Attribute value;
        Dwarf_Word offset = 0;
        Dwarf_Addr address = 0;
        if (dwarf_formudata(dwarf_attr(&unit, DW_AT_stmt_list, &value), &offset) != 0) return found;
        const LineRows& rows = rows_at(offset);
        if (rows.empty() || dwarf_lineaddr(found, &address) != 0 || !rows.shared(address)) return found;
        const std::vector<Dwarf_Line*> here = rows_of_address(unit, address);
        const auto last = rows.last_with_code(address, here.size());
        return last ? here[*last] : found;
    }
    const LineRows& rows_at(Dwarf_Word offset) {
        const auto [rows, fresh] = rows_of.try_emplace(offset);
        if (fresh) rows->second = LineRows(line_section(), offset);
        return rows->second;
    }
    /// All rows of a unit's table at an address, except those that end a sequence.
    static std::vector<Dwarf_Line*> rows_of_address(Dwarf_Die& unit, Dwarf_Addr address) {
        std::vector<Dwarf_Line*> here;
        Dwarf_Lines* lines = nullptr;
        std::size_t count = 0;
        if (dwarf_getsrclines(&unit, &lines, &count) != 0) return here;
        const auto address_of = [&](std::size_t i) {
            Dwarf_Addr at = 0;
            return dwarf_lineaddr(dwarf_onesrcline(lines, i), &at) == 0 ? at : 0;
        };
        std::size_t first = 0;
        for (std::size_t end = count; first < end;) {
            const std::size_t middle = first + (end - first) / 2;
            if (address_of(middle) < address)
                first = middle + 1;
            else
                end = middle;
        }
        for (std::size_t i = first; i < count && address_of(i) == address; ++i) {
            Dwarf_Line* const line = dwarf_onesrcline(lines, i);
            bool ends = false;
            if (dwarf_lineendsequence(line, &ends) == 0 && !ends) here.push_back(line);
        }
        return here;
    }
    std::vector<SourceLine> statements(Dwarf_Die& unit, Dwarf_Addr address) {
        std::vector<SourceLine> out;
        Dwarf_Attribute value;
        Dwarf_Word offset = 0;
        if (dwarf_formudata(dwarf_attr(&unit, DW_AT_stmt_list, &value), &offset) != 0) return out;
        const std::vector<Dwarf_Line*> here = rows_of_address(unit, address);
        for (std::size_t i = 0; i < here.size(); ++i) {
            bool begins = false;
            int line = 0;
            const char* const file = dwarf_linesrc(here[i], nullptr, nullptr);
            if (dwarf_linebeginstatement(here[i], &begins) != 0 || !begins || file == nullptr ||
                dwarf_lineno(here[i], &line) != 0 || line <= 0 || !rows_at(offset).has_code(address, i, here.size()))
                continue;
            SourceLine found{file, static_cast<std::uint32_t>(line), discriminator(here[i])};
            if (std::none_of(out.begin(), out.end(), [&](const SourceLine& known) {
                    return known.line == found.line && known.file == found.file;
                }))
                out.push_back(std::move(found));
        }
        return out;
    }
    /// .debug_line, decompressed by libdw; empty in a big-endian file.
    Bytes line_section() {
        Dwarf_Addr bias = 0;
        Dwarf* const dwarf = dwfl_module_getdwarf(module, &bias);
        Elf* const elf = dwarf == nullptr ? nullptr : dwarf_getelf(dwarf);
        const char* const ident = elf == nullptr ? nullptr : elf_getident(elf, nullptr);
        std::size_t names = 0;
        if (ident == nullptr || ident[EI_DATA] != ELFDATA2LSB || elf_getshdrstrndx(elf, &names) != 0) return {};
        for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section)) != nullptr;) {
            GElf_Shdr header;
            if (gelf_getshdr(section, &header) == nullptr) continue;
            const char* const name = elf_strptr(elf, names, header.sh_name);
            if (name == nullptr || std::string_view(name) != ".debug_line") continue;
            const Elf_Data* const data = elf_getdata(section, nullptr);
            if (data == nullptr || data->d_buf == nullptr) return {};
            return {static_cast<const std::uint8_t*>(data->d_buf), data->d_size};
        }
        return {};
    }

    /// The inlined calls of the unit that contains an address; null if no unit does.
    const InlinedCalls* inlined_calls(std::uint64_t address) {
        Dwarf_Addr bias = 0;
        Dwarf_Die* die = dwfl_module_addrdie(module, address, &bias);
        if (die == nullptr) {
            Unit* const unit = unit_without_index(address);
            if (unit == nullptr) return nullptr;
            die = &unit->die;
            bias = unit->bias;
        }
        const auto [at, fresh] = inlined_of.try_emplace(dwarf_dieoffset(die));
        if (fresh) at->second = InlinedCalls(*die, bias);
        return &at->second;
    }

    std::vector<Unit> units;  // compilation units, by address
    bool units_listed = false;
    std::map<Dwarf_Off, InlinedCalls> inlined_of;  // by offset of the unit
    std::map<Dwarf_Word, LineRows> rows_of;        // by offset of the table
    std::string debug_path;                        // referenced by the callbacks
    char* debug_path_pointer{};                    // must outlive the session
    std::vector<std::filesystem::path> debug_folders;

    /// Whether a debug file with this name exists where libdwfl searches: next to the program, in .debug there, and in
    /// the debug folders (directly, in the program's own folder below them, or at the end of its path).
    [[nodiscard]] bool may_have_debug_file(const std::filesystem::path& program, const std::string& name) const {
        std::error_code error;
        const auto is_in = [&](const std::filesystem::path& folder) {
            return std::filesystem::exists(folder / name, error);
        };
        for (const auto& place :
             {std::filesystem::absolute(program, error), std::filesystem::canonical(program, error)}) {
            const std::filesystem::path beside = place.parent_path();
            if (is_in(beside) || is_in(beside / ".debug")) return true;
            for (const std::filesystem::path& folder : debug_folders) {
                if (is_in(folder)) return true;
                for (std::string below = beside.string(); below.size() > 1;) {
                    if (is_in(folder.string() + below)) return true;
                    const std::size_t next = below.find('/', 1);
                    below = next == std::string::npos ? "" : below.substr(next);
                }
            }
        }
        return false;
    }
    /// Like dwfl_standard_find_debuginfo, unless neither a file nor a server is known: that function would then load
    /// the client of debuginfod, with libraries for networks and cryptography, which takes longer than decoding a small
    /// capture.
    static int find_debuginfo(Dwfl_Module* module, void** user, const char* name, Dwarf_Addr base, const char* program,
                              const char* link, GElf_Word crc, char** found) {
        const char* const servers = std::getenv("DEBUGINFOD_URLS");
        const bool asks = servers != nullptr && *servers != 0;
        const auto* const state = static_cast<const State*>(*user);
        if (!asks && state != nullptr && program != nullptr &&
            (link == nullptr || std::string_view(link).find('/') == std::string_view::npos)) {
            const int by_id = dwfl_build_id_find_debuginfo(module, user, name, base, program, link, crc, found);
            if (by_id >= 0 || *found != nullptr) return by_id;
            const std::filesystem::path file = program;
            if (!state->may_have_debug_file(file, link != nullptr ? link : file.filename().string() + ".debug")) {
                errno = 0;  // otherwise an old value would be reported as the reason
                return -1;
            }
        }
        return dwfl_standard_find_debuginfo(module, user, name, base, program, link, crc, found);
    }
    Dwfl_Callbacks callbacks{};
    std::filesystem::path path;
    std::shared_ptr<const void> copy;  // owner of a file that is inside another one
    Dwfl* dwfl = nullptr;
    Dwfl_Module* module = nullptr;
    std::vector<Segment> segments;
    /// For a relocatable file: elfutils and MemoryMap place its sections in different orders.
    struct Placed {
        std::uint64_t first, bytes, in_elfutils;
    };
    std::vector<Placed> placed;
    bool relocatable = false;
    bool starcore = false;
    /// Converts an address to elfutils' address; nullopt if there is none.
    [[nodiscard]] std::optional<std::uint64_t> to_elfutils(std::uint64_t address) const {
        if (!relocatable) return address;
        for (const Placed& p : placed)
            if (address - p.first < p.bytes) return p.in_elfutils + (address - p.first);
        return std::nullopt;
    }
    /// Converts back an address in the section that contains `near`; for another address, the nearer end of that
    /// section.
    [[nodiscard]] Address from_elfutils(Address address, std::uint64_t near) const {
        for (const Placed& p : placed)
            if (near - p.in_elfutils < p.bytes)
                return {p.first + std::clamp(address.value, p.in_elfutils, p.in_elfutils + p.bytes) - p.in_elfutils};
        return address;
    }
    /// Errors: the errors of `ElfFile::open` and `ElfFile::pieces`.
    Status place_sections(Elf* elf, std::uint64_t bias, const std::string& name) {
        WM_ASSIGN_OR_RETURN(SharedBytes file, map_file(name));
        WM_ASSIGN_OR_RETURN(const ElfFile own, ElfFile::open(std::move(file), name));
        WM_ASSIGN_OR_RETURN(const std::vector<ElfFile::Piece> pieces, own.pieces());
        for (const ElfFile::Piece& piece : pieces) {
            segments.push_back({piece.offset, piece.bytes, {piece.address}, true});
            GElf_Shdr header;
            Elf_Scn* const section = elf_getscn(elf, piece.section);
            if (section != nullptr && gelf_getshdr(section, &header) != nullptr)
                placed.push_back({piece.address, piece.bytes, header.sh_addr + bias});
        }
        return Nothing{};
    }
    std::vector<std::uint8_t> build_id;
    bool looked = false, has_dwarf = false, reads_lines = false;
    std::filesystem::path debug_file;
};

DebugInfo::DebugInfo(std::unique_ptr<State> state) : state_(std::move(state)) {}
DebugInfo::~DebugInfo() = default;
DebugInfo::DebugInfo(DebugInfo&&) noexcept = default;
DebugInfo& DebugInfo::operator=(DebugInfo&&) noexcept = default;

Result<DebugInfo> DebugInfo::open(const std::filesystem::path& path,
                                  const std::vector<std::filesystem::path>& debug_folders) {
    auto state = std::make_unique<State>();
    state->path = path;
    // The search order: next to the file, in .debug there, then in the folders; + requires the checksum of a debug link
    // to match.
    state->debug_path = "+:.debug";
    // libdwfl searches a relative folder next to each file, but users mean the working directory.
    for (const auto& folder : debug_folders) state->debug_folders.push_back(std::filesystem::absolute(folder));
    state->debug_folders.emplace_back("/usr/lib/debug");
    for (const auto& folder : state->debug_folders) state->debug_path += ":" + folder.string();
    state->debug_path_pointer = state->debug_path.data();
    state->callbacks.find_elf = dwfl_build_id_find_elf;
    state->callbacks.find_debuginfo = State::find_debuginfo;
    state->callbacks.section_address = dwfl_offline_section_address;
    state->callbacks.debuginfo_path = &state->debug_path_pointer;
    WM_RETURN_IF_ERROR(state->begin());
    GElf_Addr bias = 0;
    if (Elf* const elf = dwfl_module_getelf(state->module, &bias); elf != nullptr) {
        std::size_t count = 0;
        GElf_Ehdr file;
        const bool has_header = gelf_getehdr(elf, &file) != nullptr;
        state->relocatable = has_header && file.e_type == ET_REL;
        state->starcore = has_header && file.e_machine == EM_STARCORE;
        // A file without code has no segments either.
        if (state->relocatable) (void)state->place_sections(elf, bias, path.string());
        if (elf_getphdrnum(elf, &count) == 0) {
            for (std::size_t i = 0; i < count; ++i) {
                GElf_Phdr header;
                if (gelf_getphdr(elf, static_cast<int>(i), &header) != nullptr && header.p_type == PT_LOAD)
                    state->segments.push_back(
                        {header.p_offset, header.p_memsz, {header.p_vaddr}, (header.p_flags & PF_X) != 0});
            }
        }
    }
    const unsigned char* id = nullptr;
    GElf_Addr where = 0;
    if (const int bytes = dwfl_module_build_id(state->module, &id, &where); bytes > 0)
        state->build_id.assign(id, id + bytes);
    state->release();
    return DebugInfo(std::move(state));
}

std::optional<Address> DebugInfo::address_of(std::uint64_t file_offset) const {
    for (const Segment& s : state_->segments)
        if (file_offset >= s.offset && file_offset - s.offset < s.bytes)
            return Address{s.address.value + (file_offset - s.offset)};
    return std::nullopt;
}

bool DebugInfo::is_starcore() const { return state_->starcore; }
const std::vector<DebugInfo::Segment>& DebugInfo::segments() const { return state_->segments; }

std::optional<std::uint64_t> DebugInfo::load_bias(Address at, std::uint64_t offset, std::uint64_t bytes) const {
    // In memory, the layout of a relocatable file differs from the file.
    if (state_->relocatable) return at.value - offset;
    for (const Segment& s : state_->segments) {
        if (!s.executable) continue;
        const std::uint64_t first = std::max(s.offset, offset), end = std::min(s.offset + s.bytes, offset + bytes);
        if (first < end) return at.value + (first - offset) - (s.address.value + (first - s.offset));
    }
    return std::nullopt;
}

std::vector<SourceLine> DebugInfo::statements(Address address) {
    const auto at = state_->to_elfutils(address.value);
    if (!at || !state_->read_lines()) return {};
    Dwarf_Addr bias = 0;
    if (Dwarf_Die* const unit = dwfl_module_addrdie(state_->module, *at, &bias))
        return state_->statements(*unit, *at - bias);
    State::Unit* const unit = state_->unit_without_index(*at);
    if (unit == nullptr) return {};
    return state_->statements(unit->die, *at - unit->bias);
}

std::optional<SourceLine> DebugInfo::line(Address address) {
    const auto at = state_->to_elfutils(address.value);
    if (!at || !state_->read_lines()) return std::nullopt;
    Dwfl_Line* const found = dwfl_module_getsrc(state_->module, *at);
    if (found == nullptr) return state_->line_without_index(*at);
    Dwarf_Addr bias = 0;
    return state_->line_of(dwfl_dwarf_line(found, &bias), dwfl_module_addrdie(state_->module, *at, &bias));
}

InlinedPlace DebugInfo::inlined(Address address) {
    const auto at = state_->to_elfutils(address.value);
    const InlinedCalls* const calls = at && state_->read_lines() ? state_->inlined_calls(*at) : nullptr;
    if (calls == nullptr) return InlinedPlace{address, Address{address.value + 1}, {}};
    InlinedPlace out = calls->at(*at);
    if (state_->relocatable) {
        out.first = state_->from_elfutils(out.first, *at);
        out.end = state_->from_elfutils(out.end, *at);
    }
    return out;
}

std::optional<DeclaredFunction> DebugInfo::function(Address address) {
    const auto at = state_->to_elfutils(address.value);
    const InlinedCalls* const calls = at && state_->read_lines() ? state_->inlined_calls(*at) : nullptr;
    return calls != nullptr ? calls->function(*at) : std::nullopt;
}

bool DebugInfo::has_lines() {
    state_->look();
    return state_->has_dwarf;
}
std::filesystem::path DebugInfo::debug_file() {
    state_->look();
    return state_->debug_file;
}
const std::vector<std::uint8_t>& DebugInfo::build_id() const { return state_->build_id; }

}  // namespace waymark::image
