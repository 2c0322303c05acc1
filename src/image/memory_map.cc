#include "waymark/image/memory_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include "elf_file.h"

namespace waymark::image {
namespace {

/// A stretch [first, last] of one section. `last` is included, so the top byte of the address space needs no special
/// case.
struct Piece {
    std::uint64_t first, last;
    std::uint32_t section;
};

/// The memory as seen in one state: pieces that do not overlap, by address.
class Layer {
public:
    void put(const Piece& piece) { put(piece.first, piece.last, {&piece, 1}); }

    /// Replaces [first, last] by these pieces, sorted by address; the gaps between them are empty.
    void put(std::uint64_t first, std::uint64_t last, std::span<const Piece> seen) {
        // All pieces that overlap the new ones are removed; the parts of the outermost two that stick out are kept.
        const auto begin = std::lower_bound(pieces_.begin(), pieces_.end(), first,
                                            [](const Piece& p, std::uint64_t address) { return p.last < address; });
        const auto end = std::upper_bound(begin, pieces_.end(), last,
                                          [](std::uint64_t address, const Piece& p) { return address < p.first; });
        std::vector<Piece> replacement;
        if (begin != end && begin->first < first) replacement.push_back({begin->first, first - 1, begin->section});
        replacement.insert(replacement.end(), seen.begin(), seen.end());
        if (begin != end && (end - 1)->last > last)
            replacement.push_back({last + 1, (end - 1)->last, (end - 1)->section});
        const auto at = pieces_.erase(begin, end);
        pieces_.insert(at, replacement.begin(), replacement.end());
    }

    [[nodiscard]] const Piece* find(std::uint64_t address) const {
        const Piece* const found = find_from(address);
        return found == nullptr || found->first > address ? nullptr : found;
    }
    /// The first piece that ends at or after `address`.
    [[nodiscard]] const Piece* find_from(std::uint64_t address) const {
        const auto found = std::lower_bound(pieces_.begin(), pieces_.end(), address,
                                            [](const Piece& p, std::uint64_t a) { return p.last < a; });
        return found == pieces_.end() ? nullptr : &*found;
    }

    [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }

private:
    std::vector<Piece> pieces_;
};

}  // namespace

std::optional<SpaceFilter> SpaceFilter::parse(std::string_view letters) {
    std::string upper(letters);
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
    if (upper.empty()) return any();
    if (upper == "N") return non_secure();
    if (upper == "S") return secure();
    if (upper == "R") return realm();
    if (upper == "EL3") return el3();
    if (upper == "ROOT") return root();
    if (upper == "H" || upper == "EL2") return hyp();
    if (upper == "EL1N" || upper == "P" || upper == "NP") return non_secure_not_hyp();
    if (upper == "EL1S" || upper == "SP") return secure_not_hyp();
    if (upper == "EL1R") return realm_not_hyp();
    if (upper == "EL2R") return realm_hyp();
    return std::nullopt;
}

std::string SpaceFilter::name() const {
    if (*this == any()) return "any";
    if (*this == secure()) return "S";
    if (*this == non_secure()) return "N";
    if (*this == realm()) return "R";
    if (*this == hyp()) return "H";
    if (*this == el3()) return "EL3";
    constexpr std::array<std::string_view, states> names{"EL1S", "EL2S", "EL1N", "EL2N", "ROOT", "EL1R", "EL2R"};
    std::string joined;
    for (unsigned state = 0; state < states; ++state)
        if (has(state)) joined.append(joined.empty() ? "" : "+").append(names[state]);
    return joined;
}

SpaceFilter SpaceFilter::of(const std::vector<unsigned>& states_held) {
    unsigned mask = 0;
    for (const unsigned state : states_held) mask |= 1U << state;
    return SpaceFilter{static_cast<std::uint8_t>(mask)};
}

namespace {

/// Memory that a callback provides. Answers are kept.
class AskedMemory {
public:
    explicit AskedMemory(MemoryMap::Ask ask) : ask_(std::move(ask)) {}

    /// The bytes from `address` on, at most to the end of its page. `overlay` inserts the contents of sections into new
    /// bytes.
    template <class Overlay>
    Bytes at(Address address, unsigned state, Overlay&& overlay) {
        const std::lock_guard lock(mutex_);
        const auto after = known_.upper_bound({state, address.value});
        if (after != known_.begin()) {
            const auto& [place, bytes] = *std::prev(after);
            const std::uint64_t from = address.value - place.second;
            if (place.first == state && (from < bytes.size() || from == 0))
                return from < bytes.size() ? Bytes(bytes).subspan(from) : Bytes();
        }
        constexpr std::uint64_t page_bytes = 4096;
        std::vector<std::uint8_t> bytes(page_bytes - address.value % page_bytes);
        bytes.resize(std::min(ask_(address, SpaceFilter::space(state), bytes), bytes.size()));
        overlay(address.value, bytes);
        return known_.try_emplace({state, address.value}, std::move(bytes)).first->second;
    }

private:
    MemoryMap::Ask ask_;
    std::mutex mutex_;
    std::map<std::pair<unsigned, std::uint64_t>, std::vector<std::uint8_t>> known_;  // by state and address
};

}  // namespace

struct MemoryMap::State {
    Machines machines = Machines::arm;
    std::unique_ptr<AskedMemory> asked;
    std::vector<Section> sections;
    std::vector<SharedBytes> contents;  // parallel to sections
    std::array<Layer, SpaceFilter::states> layers;

    /// `unknown`: ascending offsets in the bytes of words that differ from memory.
    std::uint32_t put(SharedBytes bytes, Address address, SpaceFilter space, std::string name,
                      const std::vector<std::uint64_t>& unknown = {}) {
        const auto id = static_cast<std::uint32_t>(sections.size());
        const std::uint64_t last = address.value + (bytes.bytes.size() - 1);
        std::vector<Piece> seen;
        std::uint64_t next = address.value;
        bool to_the_end = true;
        for (const std::uint64_t offset : unknown) {
            constexpr std::uint64_t word = 4;
            const std::uint64_t at = address.value + offset;
            if (at > next) seen.push_back({next, at - 1, id});
            to_the_end = last - at >= word;
            next = at + word;
        }
        if (to_the_end) seen.push_back({next, last, id});
        for (unsigned state = 0; state < SpaceFilter::states; ++state)
            if (space.has(state)) layers[state].put(address.value, last, seen);
        sections.push_back({id, address, bytes.bytes.size(), space, std::move(name)});
        contents.push_back(std::move(bytes));
        return id;
    }

    Result<Added> add(SharedBytes bytes, Address address, SpaceFilter space, std::string name) {
        if (bytes.bytes.empty())
            return Error{Errc::usage,
                         fmt::format("{}: there are no bytes to map at {:#x}; give at least one", name, address.value)};
        if (bytes.bytes.size() - 1 > highest - address.value)
            return Error{Errc::usage,
                         fmt::format("{}: {:#x} bytes at {:#x} leave the 64-bit address space; check the address", name,
                                     bytes.bytes.size(), address.value)};
        return Added{put(std::move(bytes), address, space, std::move(name)), 1, {}};
    }
    Result<Added> add_elf(SharedBytes file, std::uint64_t load_bias, SpaceFilter space, const std::string& name,
                          const AddressOf& outside = {});
};

MemoryMap::MemoryMap() : state_(std::make_unique<State>()) {}
MemoryMap::~MemoryMap() = default;
MemoryMap::MemoryMap(MemoryMap&&) noexcept = default;
MemoryMap& MemoryMap::operator=(MemoryMap&&) noexcept = default;

Result<Added> MemoryMap::add_file(const std::filesystem::path& path, Address address, std::uint64_t offset,
                                  std::optional<std::uint64_t> length, SpaceFilter space, std::string name) {
    WM_ASSIGN_OR_RETURN(SharedBytes file, map_file(path.string()));
    const std::uint64_t file_bytes = file.bytes.size();
    if (offset >= file_bytes)
        return Error{
            Errc::bad_format,
            fmt::format(
                "{}: has {:#x} bytes, so there is nothing at offset {:#x}; check the offset, or copy the whole file",
                path.string(), file_bytes, offset),
            Offset{file_bytes}};
    const std::uint64_t rest = file_bytes - offset;
    const std::uint64_t declared = length.value_or(rest), bytes = std::min(declared, rest);
    file.bytes = file.bytes.subspan(offset, bytes);
    WM_ASSIGN_OR_RETURN(Added added,
                        state_->add(std::move(file), address, space, name.empty() ? path.string() : std::move(name)));
    if (declared > rest)
        added.notes.push_back(
            fmt::format("{}: the dump is shorter than declared: {:#x} bytes were declared from offset {:#x} on, but "
                        "the file ends after {:#x}; those are mapped. Correct the length, or copy the whole file.",
                        path.string(), declared, offset, rest));
    return added;
}

Result<Added> MemoryMap::add_bytes(std::vector<std::uint8_t> bytes, Address address, SpaceFilter space,
                                   std::string name) {
    return state_->add(share(std::move(bytes)), address, space, name.empty() ? "bytes" : std::move(name));
}

Result<Added> MemoryMap::add_elf(const std::filesystem::path& path, std::uint64_t load_bias, SpaceFilter space,
                                 std::string name, const AddressOf& outside) {
    WM_ASSIGN_OR_RETURN(SharedBytes file, map_file(path.string()));
    return state_->add_elf(std::move(file), load_bias, space, name.empty() ? path.string() : name, outside);
}

Result<Added> MemoryMap::add_elf_bytes(std::vector<std::uint8_t> file, std::uint64_t load_bias, SpaceFilter space,
                                       std::string name) {
    return state_->add_elf(share(std::move(file)), load_bias, space, name);
}

namespace {

/// The bytes of a section of a relocatable file, from offset `offset` of the file on, with its branches as they are
/// after loading.
SharedBytes with_branches(Bytes section, std::uint64_t offset, const ElfFile::Branches& branches) {
    std::vector<std::uint8_t> out(section.begin(), section.end());
    const auto first =
        std::lower_bound(branches.patches.begin(), branches.patches.end(), offset,
                         [](const ElfFile::Branches::Patch& patch, std::uint64_t at) { return patch.offset < at; });
    for (auto patch = first; patch != branches.patches.end(); ++patch) {
        const std::uint64_t at = patch->offset - offset;
        if (at >= out.size() || out.size() - at < sizeof patch->value) break;
        std::memcpy(out.data() + at, &patch->value, sizeof patch->value);
    }
    return share(std::move(out));
}

}  // namespace

Result<Added> MemoryMap::State::add_elf(SharedBytes file, std::uint64_t load_bias, SpaceFilter space,
                                        const std::string& name, const AddressOf& outside) {
    WM_ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::open(file, name, machines));
    WM_ASSIGN_OR_RETURN(const std::vector<ElfFile::Piece> pieces, elf.pieces());
    const std::uint64_t mask = elf.is_32_bit() ? std::numeric_limits<std::uint32_t>::max() : highest;
    Added added{static_cast<std::uint32_t>(sections.size()), 0, {}};
    std::vector<std::string> placements;
    ElfFile::Branches branches;
    if (elf.is_relocatable()) branches = elf.relocated_branches(load_bias, outside);
    std::size_t unknown_branches = 0;
    for (const ElfFile::Piece& piece : pieces) {
        const std::uint64_t address = (piece.address + load_bias) & mask;
        std::uint64_t bytes = piece.bytes;
        if (bytes < piece.declared_bytes)
            added.notes.push_back(
                fmt::format("{}: {} declares {:#x} bytes, but the file ends after {:#x} of them; those are "
                            "mapped. Copy the whole file.",
                            name, piece.name, piece.declared_bytes, bytes));
        if (bytes - 1 > mask - address) {
            bytes = mask - address + 1;
            added.notes.push_back(
                fmt::format("{}: {} leaves the {}-bit address space; its first {:#x} bytes are mapped. Check "
                            "the load bias.",
                            name, piece.name, elf.is_32_bit() ? 32 : 64, bytes));
        }
        SharedBytes code{file.owner, file.bytes.subspan(piece.offset, bytes)};
        std::vector<std::uint64_t> unknown;
        if (elf.is_relocatable()) {
            code = with_branches(code.bytes, piece.offset, branches);
            for (const std::uint64_t offset : branches.unknown)
                if (offset >= piece.offset && offset - piece.offset < bytes) unknown.push_back(offset - piece.offset);
            unknown_branches += unknown.size();
            placements.push_back(fmt::format("{} at {:#x}", piece.name, address));
        }
        put(std::move(code), Address{address}, space, fmt::format("{}[{}]", name, piece.name), unknown);
        ++added.sections;
    }
    if (!placements.empty())
        added.notes.push_back(fmt::format(
            "{}: is a relocatable file; its sections were placed one after another: {}.{} Give the address it was "
            "loaded at, or better the linked program.",
            name, fmt::join(placements, ", "),
            unknown_branches == 0
                ? ""
                : fmt::format(" Where {} {} to other files lead{} is not known, so there is no code at their places.",
                              unknown_branches, unknown_branches == 1 ? "branch" : "branches",
                              unknown_branches == 1 ? "s" : "")));
    return added;
}

void MemoryMap::accept(Machines machines) { state_->machines = machines; }
void MemoryMap::ask_beyond(Ask ask) { state_->asked = std::make_unique<AskedMemory>(std::move(ask)); }

isa::Code MemoryMap::at(Address address, const isa::Space& space) const {
    const unsigned state = SpaceFilter::state(space);
    const Layer& layer = state_->layers[state];
    const Piece* piece = layer.find(address.value);
    if (piece == nullptr) {
        if (!state_->asked) return {};
        constexpr std::uint32_t of_no_section = 0xffffffff;
        const auto overlay = [&](std::uint64_t first, std::span<std::uint8_t> page) {
            for (std::size_t i = 0; i < page.size(); ++i)
                if (const Piece* known = layer.find(first + i))
                    page[i] = state_->contents[known->section]
                                  .bytes[first + i - state_->sections[known->section].address.value];
        };
        return {state_->asked->at(address, state, overlay), of_no_section};
    }
    const Section& section = state_->sections[piece->section];
    const Bytes all = state_->contents[piece->section].bytes;
    const std::uint64_t from = address - section.address;
    return {all.subspan(from, piece->last - address.value + 1), piece->section};
}

bool MemoryMap::empty() const { return state_->sections.empty(); }
const std::vector<Section>& MemoryMap::sections() const { return state_->sections; }

std::vector<Region> MemoryMap::regions() const {
    // For each section and state, walk the section through the layer. Equal rows of different states are merged.
    std::vector<Region> rows;
    std::vector<std::vector<unsigned>> states;
    for (const Section& section : state_->sections) {
        const std::size_t own = rows.size();
        for (unsigned state = 0; state < SpaceFilter::states; ++state) {
            if (!section.space.has(state)) continue;
            const Layer& layer = state_->layers[state];
            const std::uint64_t last = section.address.value + (section.bytes - 1);
            for (std::uint64_t at = section.address.value;;) {
                // The section itself, or a later one that covers it; null if its code is unknown.
                const Piece* const seen = layer.find_from(at);
                if (seen == nullptr || seen->first > last) break;
                at = std::max(at, seen->first);
                const std::uint64_t end = std::min(seen->last, last);
                Region row{Address{at}, end - at + 1, section.id, {}, std::nullopt};
                if (seen->section != section.id) row.shadowed_by = seen->section;
                const auto same =
                    std::find_if(rows.begin() + static_cast<std::ptrdiff_t>(own), rows.end(), [&](const Region& r) {
                        return r.address == row.address && r.bytes == row.bytes && r.shadowed_by == row.shadowed_by;
                    });
                const auto index = static_cast<std::size_t>(same - rows.begin());
                if (same == rows.end()) {
                    rows.push_back(row);
                    states.emplace_back();
                }
                states[index].push_back(state);
                if (end == last) break;
                at = end + 1;
            }
        }
    }
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].space = SpaceFilter::of(states[i]);
    std::stable_sort(rows.begin(), rows.end(), [](const Region& a, const Region& b) {
        return a.address != b.address ? a.address < b.address : a.section < b.section;
    });
    return rows;
}

Result<ImageKind> recognise(const std::filesystem::path& path) {
    WM_ASSIGN_OR_RETURN(const SharedBytes file, map_file(path.string()));
    return is_elf(file.bytes) ? ImageKind::elf : ImageKind::raw;
}

Result<ImageArgument> parse_image_argument(std::string_view text) {
    ImageArgument argument;
    const std::size_t at = text.rfind('@');
    if (at != text.npos && at + 1 < text.size()) {
        std::string_view digits = text.substr(at + 1);
        const bool hexadecimal = digits.size() > 2 && digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
        if (hexadecimal) digits.remove_prefix(2);
        std::uint64_t value = 0;
        const auto [end, failure] =
            std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
        const bool is_number = failure == std::errc{} && end == digits.data() + digits.size();
        // A name may contain an @, as in trace@2.bin. A suffix of 0x… or only digits is taken as an address. So is any
        // text after the name of an existing file, if the whole argument is not a file.
        std::error_code error;
        const bool meant =
            hexadecimal || digits.find_first_not_of("0123456789") == digits.npos ||
            (!std::filesystem::exists(text, error) && std::filesystem::exists(text.substr(0, at), error));
        if (!is_number && meant)
            return Error{Errc::usage,
                         fmt::format("'{}': '{}' after '@' is not an address of up to 64 bits; write it as {}@0x8000",
                                     text, text.substr(at + 1), text.substr(0, at))};
        if (is_number) {
            argument.address = Address{value};
            text = text.substr(0, at);
        }
    } else if (at != text.npos) {
        return Error{Errc::usage, fmt::format("'{}': there is no address after '@'; write it as {}0x8000", text, text)};
    }
    if (text.empty())
        return Error{Errc::usage, "an image has no file name; write FILE, or FILE@ADDRESS for a raw memory dump"};
    argument.path = std::string(text);
    return argument;
}

Result<Added> add_image(MemoryMap& map, std::string_view text, SpaceFilter space, const AddressOf& outside) {
    WM_ASSIGN_OR_RETURN(const ImageArgument argument, parse_image_argument(text));
    WM_ASSIGN_OR_RETURN(const ImageKind kind, recognise(argument.path));
    if (kind == ImageKind::elf)
        return map.add_elf(argument.path, argument.address.value_or(Address{}).value, space, {}, outside);
    if (!argument.address)
        return Error{
            Errc::usage,
            fmt::format(
                "{}: is a raw memory dump (not an ELF file), and its address in memory is not known; write {}@ADDRESS",
                argument.path.string(), argument.path.string())};
    return map.add_file(argument.path, *argument.address, 0, std::nullopt, space);
}

}  // namespace waymark::image
