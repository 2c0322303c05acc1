#include "waymark/image/generated_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "elf_file.h"

namespace waymark::image {

namespace {

constexpr std::size_t most_problems = 20;

/// Problems of a file; only the first few are kept.
class Problems {
public:
    explicit Problems(std::vector<std::string>& out) : out_(out) {}
    void add(std::string problem) {
        if (count_++ < most_problems) out_.push_back(std::move(problem));
    }
    void finish(const std::string& file) {
        if (count_ > most_problems)
            out_.push_back(fmt::format("{}: {} more were left out.", file, count_ - most_problems));
    }

private:
    std::vector<std::string>& out_;
    std::size_t count_ = 0;
};

/// Reads a hexadecimal number, with or without 0x, and the blanks after it, from the front of a line.
bool take_hexadecimal(std::string_view& line, std::uint64_t& value) {
    while (line.starts_with(' ') || line.starts_with('\t')) line.remove_prefix(1);
    if (line.starts_with("0x") || line.starts_with("0X")) line.remove_prefix(2);
    const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), value, 16);
    if (failure != std::errc{}) return false;
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
    if (!line.starts_with(' ') && !line.starts_with('\t')) return false;
    while (line.starts_with(' ') || line.starts_with('\t')) line.remove_prefix(1);
    return true;
}

/// The reason why a piece is invalid; empty if it is valid.
std::string_view wrong(const GeneratedCode& piece) {
    if (piece.bytes == 0) return "its size is 0";
    if (piece.bytes - 1 > highest - piece.address.value) return "it exceeds the address space";
    if (piece.name.empty()) return "it has no name";
    return {};
}

/// Reads numbers of a jitdump file in the byte order of the machine that wrote it.
class Words {
public:
    Words(Bytes bytes, bool swapped) : bytes_(bytes), swapped_(swapped) {}
    [[nodiscard]] bool has(std::uint64_t count) const { return bytes_.size() - at_ >= count; }
    [[nodiscard]] std::size_t at() const { return at_; }
    void go_to(std::size_t at) { at_ = at; }
    [[nodiscard]] Bytes take(std::size_t count) {
        const Bytes out = bytes_.subspan(at_, count);
        at_ += count;
        return out;
    }
    template <class T>
    [[nodiscard]] T number() {
        const Bytes from = take(sizeof(T));
        T out = 0;
        for (std::size_t i = 0; i < sizeof(T); ++i)
            out = static_cast<T>(out | static_cast<T>(from[swapped_ ? sizeof(T) - 1 - i : i]) << 8 * i);
        return out;
    }

private:
    Bytes bytes_;
    bool swapped_;
    std::size_t at_ = 0;
};

constexpr std::uint32_t jitdump_magic = 0x4a695444;  // "JiTD"
constexpr std::uint32_t jitdump_version = 1;
constexpr std::size_t jitdump_header_bytes = 40, record_header_bytes = 16, load_bytes = 40, move_bytes = 48;
enum JitRecord : std::uint32_t { code_load, code_move, code_debug_info, code_close };

/// Reads records up to the first malformed one.
class JitDump {
public:
    JitDump(Words words, std::string name, GeneratedCodeFile& out, Problems& problems)
        : words_(words), name_(std::move(name)), out_(out), problems_(problems) {}

    void run() {
        for (;;) {
            const std::size_t begin = words_.at();
            if (!words_.has(1)) return;
            if (!words_.has(record_header_bytes))
                return problem(begin, "the file ends inside the header of a record; the part before it was read");
            const auto id = words_.number<std::uint32_t>();
            const auto bytes = words_.number<std::uint32_t>();
            time_ = words_.number<std::uint64_t>();
            if (bytes < record_header_bytes)
                return problem(
                    begin, fmt::format("a record is {} bytes long, expected at least {}; the part before it was read",
                                       bytes, record_header_bytes));
            if (!words_.has(bytes - record_header_bytes))
                return problem(begin, fmt::format("the file ends inside a record of {} bytes, as when the program was "
                                                  "killed; the part before it was read",
                                                  bytes));
            const std::size_t end = begin + bytes;
            if (id == code_load) load(begin, end);
            if (id == code_move) move(begin, end);
            if (id == code_close) return;
            words_.go_to(end);
        }
    }

private:
    void problem(std::size_t at, std::string_view what) {
        problems_.add(fmt::format("{}: offset {:#x}: {}.", name_, at, what));
    }
    void add(std::size_t begin, std::uint64_t index, GeneratedCode piece) {
        last_of_.erase(index);
        if (const std::string_view what = wrong(piece); !what.empty())
            return problem(begin, fmt::format("a record of code was left out: {}", what));
        piece.time = time_;
        last_of_[index] = out_.pieces.size();
        out_.pieces.push_back(std::move(piece));
    }
    void load(std::size_t begin, std::size_t end) {
        if (end - words_.at() < load_bytes) return problem(begin, "a record of code was left out: it is too short");
        words_.go_to(words_.at() + 16);  // process, thread, and the address at generation
        const auto address = words_.number<std::uint64_t>(), bytes = words_.number<std::uint64_t>();
        const auto index = words_.number<std::uint64_t>();
        const Bytes rest = words_.take(end - words_.at());
        const auto zero = std::find(rest.begin(), rest.end(), std::uint8_t{0});
        const auto name_bytes = static_cast<std::size_t>(zero - rest.begin());
        if (zero == rest.end() || rest.size() - name_bytes - 1 < bytes)
            return problem(begin, "a record of code was left out: name and code are longer than the record");
        add(begin, index,
            {{reinterpret_cast<const char*>(rest.data()), name_bytes},
             Address{address & ~std::uint64_t{1}},
             bytes,
             rest.subspan(name_bytes + 1, static_cast<std::size_t>(bytes))});
    }
    void move(std::size_t begin, std::size_t end) {
        if (end - words_.at() < move_bytes) return problem(begin, "a record of moved code was left out: too short");
        words_.go_to(words_.at() + 16 + 8);  // and the earlier address
        const auto address = words_.number<std::uint64_t>(), bytes = words_.number<std::uint64_t>();
        const auto index = words_.number<std::uint64_t>();
        const auto moved = last_of_.find(index);
        if (moved == last_of_.end())
            return problem(begin, fmt::format("code number {} was moved, but no record describes it", index));
        GeneratedCode piece = out_.pieces[moved->second];
        piece.address = Address{address & ~std::uint64_t{1}};
        piece.bytes = bytes;
        if (piece.code.size() != bytes) piece.code = {};
        add(begin, index, std::move(piece));
    }

    Words words_;
    std::string name_;
    GeneratedCodeFile& out_;
    Problems& problems_;
    std::uint64_t time_ = 0;                        // of the record
    std::map<std::uint64_t, std::size_t> last_of_;  // by code number: index of the piece
};

/// The value if all bytes agree. The scale is fine enough that one byte of a large piece still counts.
constexpr std::uint64_t full_agreement = 1'000'000'000;

/// The share of a piece's bytes that are equal in memory, in parts of `full_agreement`; nullopt if no byte can be
/// compared.
std::optional<std::uint64_t> agreement_of(const GeneratedCode& piece, const MemoryMap& memory) {
    std::uint64_t compared = 0, equal = 0;
    for (std::size_t at = 0; at < piece.code.size();) {
        isa::Code there = memory.at(piece.address + at, {});
        if (there.bytes.empty()) there = memory.at(piece.address + at, {true, false, {}, {}});
        const std::size_t count = std::min(there.bytes.size(), piece.code.size() - at);
        if (count == 0) {  // a hole: comparison continues on the next page
            constexpr std::size_t page_bytes = 4096;
            at += page_bytes - static_cast<std::size_t>((piece.address.value + at) % page_bytes);
            continue;
        }
        compared += count;
        if (std::memcmp(there.bytes.data(), piece.code.data() + at, count) == 0)
            equal += count;
        else
            for (std::size_t i = 0; i < count; ++i) equal += there.bytes[i] == piece.code[at + i] ? 1U : 0U;
        at += count;
    }
    if (compared == 0) return std::nullopt;
    return equal * full_agreement / compared;
}

/// The piece that is in effect at each address: later pieces cover earlier ones.
class Painted {
public:
    void paint(std::uint64_t first, std::uint64_t last, std::size_t from) {
        // Existing pieces are cut to the parts before and after.
        auto at = by_first_.upper_bound(first);
        if (at != by_first_.begin() && std::prev(at)->second.last >= first) --at;
        while (at != by_first_.end() && at->first <= last) {
            const std::uint64_t begin = at->first;
            const Stretch old = at->second;
            at = by_first_.erase(at);
            if (begin < first) by_first_[begin] = {first - 1, old.from};
            if (old.last > last) at = by_first_.insert_or_assign(last + 1, old).first;
            if (old.last > last) break;
        }
        by_first_[first] = {last, from};
    }
    [[nodiscard]] std::vector<NamedPiece> pieces() const {
        std::vector<NamedPiece> out;
        for (const auto& [first, s] : by_first_) out.push_back({Address{first}, s.last - first + 1, s.from});
        return out;
    }

private:
    struct Stretch {
        std::uint64_t last{};
        std::size_t from{};
    };
    std::map<std::uint64_t, Stretch> by_first_;
};

}  // namespace

Result<GeneratedCodeFile> read_perf_map(const std::filesystem::path& path) {
    GeneratedCodeFile out;
    auto file = map_file(path.string());
    if (!file) {
        // A program that generated no code writes an empty file.
        if (file.error().code == Errc::bad_format) return out;
        return std::move(file.error());
    }
    if (file->bytes.size() > max_perf_map_bytes)
        return Error{Errc::bad_format, fmt::format("{}: it is {} bytes long, but a perf map has at most {}: this is "
                                                   "another file",
                                                   path.string(), file->bytes.size(), max_perf_map_bytes)};
    std::string_view text(reinterpret_cast<const char*>(file->bytes.data()), file->bytes.size());
    Problems problems(out.problems);
    for (std::size_t number = 1; !text.empty(); ++number) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty()) continue;
        GeneratedCode piece;
        const bool numbers = take_hexadecimal(line, piece.address.value) && take_hexadecimal(line, piece.bytes);
        piece.address.value &= ~std::uint64_t{1};
        piece.name = line;
        const std::string_view what = numbers ? wrong(piece) : "expected START SIZE NAME, numbers in hexadecimal";
        if (what.empty())
            out.pieces.push_back(std::move(piece));
        else
            problems.add(fmt::format("{}:{}: this line was left out: {}.", path.string(), number, what));
    }
    problems.finish(path.string());
    return out;
}

Result<GeneratedCodeFile> read_jitdump(const std::filesystem::path& path) {
    WM_ASSIGN_OR_RETURN(const SharedBytes file, map_file(path.string()));
    GeneratedCodeFile out;
    out.owner = file.owner;
    const auto bad = [&](std::string_view what) {
        return Error{Errc::bad_format,
                     fmt::format("{}: {}; give a jitdump file, or a perf map with --perf-map", path.string(), what)};
    };
    constexpr std::array<std::uint8_t, 4> little{0x44, 0x54, 0x69, 0x4a}, big{0x4a, 0x69, 0x54, 0x44};
    const auto begins = [&](const std::array<std::uint8_t, 4>& magic) {
        return file.bytes.size() >= magic.size() && std::equal(magic.begin(), magic.end(), file.bytes.begin());
    };
    if (!begins(little) && !begins(big))
        return bad(fmt::format("it does not begin with {:#010x}, so it is not a jitdump file", jitdump_magic));
    Words words(file.bytes, begins(big));
    if (!words.has(jitdump_header_bytes)) return bad("it ends inside its header");
    static_cast<void>(words.number<std::uint32_t>());
    if (const auto version = words.number<std::uint32_t>(); version != jitdump_version)
        return bad(fmt::format("it is of version {}; the known version is {}", version, jitdump_version));
    const auto header_bytes = words.number<std::uint32_t>();
    if (header_bytes < jitdump_header_bytes || header_bytes > file.bytes.size())
        return bad(fmt::format("its header claims to be {} bytes long", header_bytes));
    static_cast<void>(words.number<std::uint32_t>());  // the machine
    static_cast<void>(words.number<std::uint32_t>());  // nothing
    out.process = words.number<std::uint32_t>();
    static_cast<void>(words.number<std::uint64_t>());  // the time
    constexpr std::uint64_t arch_timestamp = 1;
    out.other_clock = (words.number<std::uint64_t>() & arch_timestamp) != 0;
    words.go_to(header_bytes);
    Problems problems(out.problems);
    JitDump(words, path.string(), out, problems).run();
    problems.finish(path.string());
    return out;
}

NamedPieces named_pieces(const std::vector<GeneratedCode>& code, const MemoryMap& memory) {
    // The piece with the best agreement is painted last; among equal pieces, the latest.
    std::vector<std::tuple<std::uint64_t, std::size_t>> order;
    std::vector<bool> differs(code.size());
    for (std::size_t i = 0; i < code.size(); ++i) {
        const std::optional<std::uint64_t> agreement = agreement_of(code[i], memory);
        differs[i] = agreement && *agreement < full_agreement;
        order.emplace_back(agreement.value_or(0), i);
    }
    std::sort(order.begin(), order.end());
    Painted painted;
    for (const auto& [agreement, i] : order)
        painted.paint(code[i].address.value, code[i].address.value + (code[i].bytes - 1), i);
    NamedPieces out{painted.pieces()};
    std::vector<bool> counted(code.size());
    for (const NamedPiece& piece : out.pieces) {
        if (differs[piece.from] && !counted[piece.from]) ++out.doubtful;
        counted[piece.from] = true;
    }
    for (std::size_t i = 0; i < code.size(); ++i) {
        if (!code[i].code.empty()) continue;
        const auto after = std::upper_bound(out.pieces.begin(), out.pieces.end(), code[i].address,
                                            [](Address a, const NamedPiece& p) { return a < p.address; });
        // The address is covered by this piece itself, or by one that was painted over it.
        if (after != out.pieces.begin() && code[std::prev(after)->from].name != code[i].name) ++out.replaced;
    }
    return out;
}

}  // namespace waymark::image
