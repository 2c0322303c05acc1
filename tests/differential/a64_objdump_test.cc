/// Compares the classes of A64 instructions with GNU objdump: systematic and random sweeps, and the C library. The
/// class of an instruction is derived from objdump's text, which shares nothing with the table under test.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "support/shell.h"
#include "waymark/isa/a64.h"
#include "waymark/isa/decode_instr.h"

namespace waymark::isa {
namespace {

using std::string_view;

constexpr string_view objdump = "aarch64-linux-gnu-objdump";

string_view trim(string_view s) {
    while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
    while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\n')) s.remove_suffix(1);
    return s;
}

std::optional<std::uint64_t> hex(string_view digits) {
    if (digits.starts_with("0x")) digits.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return value;
}

/// One instruction as objdump shows it.
struct Line {
    std::uint64_t address{};
    std::uint32_t word{};
    string_view mnemonic, operands, text;
};

std::optional<Line> parse(string_view text) {
    Line line;
    line.text = trim(text);
    const auto colon = text.find(":\t");
    if (colon == string_view::npos) return std::nullopt;
    const auto address = hex(trim(text.substr(0, colon)));
    string_view rest = text.substr(colon + 2);
    const auto tab = rest.find('\t');
    if (!address || tab == string_view::npos) return std::nullopt;
    const auto word = hex(trim(rest.substr(0, tab)));
    if (!word || trim(rest.substr(0, tab)).size() != 8) return std::nullopt;
    rest = rest.substr(tab + 1);
    if (const auto remark = rest.find("//"); remark != string_view::npos) rest = rest.substr(0, remark);
    const auto end = rest.find('\t');
    line.address = *address;
    line.word = static_cast<std::uint32_t>(*word);
    line.mnemonic = trim(rest.substr(0, end));
    if (end != string_view::npos) line.operands = trim(rest.substr(end + 1));
    return line;
}

bool any_of(string_view s, std::initializer_list<string_view> names) {
    return std::ranges::find(names, s) != names.end();
}
bool begins(string_view s, std::initializer_list<string_view> names) {
    return std::ranges::any_of(names, [&](string_view name) { return s.starts_with(name); });
}

/// `x3` -> 'x'; `{v1.16b}` -> 'v'; `z0.d` -> 'z'.
char register_file(string_view operand) {
    const auto first = operand.find_first_not_of("{ ");
    return first == string_view::npos ? ' ' : operand[first];
}

/// The first data register: behind the status register of a store exclusive.
string_view data_operand(const Line& line, bool store_exclusive) {
    string_view operands = line.operands;
    if (store_exclusive) operands = operands.substr(operands.find(',') + 1);
    return trim(operands.substr(0, operands.find(',')));
}

/// The meaning of the text, in the terms of the table.
struct Meaning {
    A64Class kind = A64Class::other;
    A64Data data = A64Data::general;
    bool acquire_release = false, exclusive = false, atomic = false;
    bool conditional = false, indirect = false, link = false, function_return = false, exception_return = false;
    bool gather_scatter = false, predicated = false;
    bool floating_point = false, simd = false, sve = false;
    std::optional<std::int64_t> offset{};
    std::optional<unsigned> bytes{};  ///< the number of bytes, where the text shows it plainly
};

unsigned register_bytes(char file) {
    switch (file) {
        case 'b': return 1;
        case 'h': return 2;
        case 'w':
        case 's': return 4;
        case 'x':
        case 'd': return 8;
        case 'q': return 16;
        default: return 0;
    }
}

Meaning meaning(const Line& line) {
    const string_view op = line.mnemonic;
    Meaning m;
    string_view last = trim(line.operands.substr(line.operands.rfind(',') + 1));
    if (const auto symbol = last.find(" <"); symbol != string_view::npos) last = last.substr(0, symbol);
    const auto offset = [&] {
        const auto target = hex(last);
        return target ? std::optional(static_cast<std::int64_t>(*target - line.address)) : std::nullopt;
    };
    if (op.starts_with("b.") || any_of(op, {"b", "bl", "cbz", "cbnz", "tbz", "tbnz"}) || op.starts_with("bc.")) {
        m.kind = A64Class::branch;
        m.conditional = op != "b" && op != "bl";
        m.link = op == "bl";
        m.offset = offset();
        return m;
    }
    if (begins(op, {"br", "blr"}) && !any_of(op, {"brk", "brkas"}) && !op.starts_with("brk")) {
        m.kind = A64Class::branch;
        m.indirect = true;
        m.link = op.starts_with("blr");
        return m;
    }
    if (any_of(op, {"ret", "retaa", "retab", "eret", "eretaa", "eretab"})) {
        m.kind = A64Class::branch;
        m.indirect = true;
        m.function_return = op[0] == 'r';
        m.exception_return = op[0] == 'e';
        return m;
    }

    // Registers of SVE and SME are z, p and za; mnemonics alone do not decide.
    const auto has_file = [&](char file) {
        for (std::size_t at = 0; at < line.operands.size(); ++at) {
            if (line.operands[at] != file) continue;
            const bool begin = at == 0 || string_view(" ,{[").find(line.operands[at - 1]) != string_view::npos;
            const bool digit = at + 1 < line.operands.size() && std::isdigit(line.operands[at + 1]) != 0;
            if (begin && (digit)) return true;
        }
        return false;
    };
    const bool memory = line.operands.find('[') != string_view::npos || any_of(op, {"ldr", "ldrsw"});
    const bool is_prefetch = op.starts_with("prf");
    static const auto atomics =
        std::to_array<string_view>({"add", "clr", "eor", "set", "smax", "smin", "umax", "umin"});
    const auto is_atomic = [&](string_view prefix) {
        return std::ranges::any_of(atomics, [&](string_view what) {
            if (!op.starts_with(prefix) || !op.substr(prefix.size()).starts_with(what)) return false;
            return any_of(op.substr(prefix.size() + what.size()),
                          {"", "a", "l", "al", "b", "ab", "lb", "alb", "h", "ah", "lh", "alh"});
        });
    };
    const auto suffix_orders = [](string_view suffix) { return suffix.starts_with('a') || suffix.starts_with('l'); };

    if (memory && !is_prefetch && op != "adr") {
        if (begins(op, {"cpy"})) {
            m.kind = A64Class::load;
            m.data = A64Data::copy;
            return m;
        }
        if (begins(op, {"setp", "setm", "sete", "setgp", "setgm", "setge"})) {
            m.kind = A64Class::store;
            m.data = A64Data::set;
            return m;
        }
        if (begins(op, {"ld", "st", "cas", "swp"})) {
            const bool sve = has_file('z') || has_file('p');
            const bool sme = line.operands.find("za") != string_view::npos;
            m.sve = sve || sme;
            m.kind = op.starts_with("st") ? A64Class::store : A64Class::load;
            const bool store_exclusive =
                any_of(op, {"stxr", "stlxr", "stxrb", "stlxrb", "stxrh", "stlxrh", "stxp", "stlxp"});
            m.exclusive =
                store_exclusive || any_of(op, {"ldxr", "ldaxr", "ldxrb", "ldaxrb", "ldxrh", "ldaxrh", "ldxp", "ldaxp"});
            m.acquire_release =
                begins(op, {"ldax", "stlx", "ldar", "stlr", "ldlar", "stllr", "ldapr", "ldapur", "stlur"});
            if (begins(op, {"cas", "swp"})) {
                m.kind = A64Class::load_atomic;
                m.atomic = true;
                string_view suffix = op.substr(3);
                if (op.starts_with("casp")) suffix = op.substr(4);
                m.acquire_release = suffix_orders(suffix);
            } else if (is_atomic("ld") || is_atomic("st")) {
                m.atomic = true;
                m.kind = op.starts_with("st") ? A64Class::store : A64Class::load_atomic;
                const string_view rest = op.substr(2);
                for (const string_view what : atomics)
                    if (rest.starts_with(what)) m.acquire_release = suffix_orders(rest.substr(what.size()));
            }
            const string_view operand = data_operand(line, store_exclusive);
            const char file = register_file(operand);
            if (any_of(op, {"stg", "stzg", "st2g", "stz2g", "ldg", "stgm", "stzgm", "ldgm", "stgp"}))
                m.data = A64Data::tag;
            else if (sme)
                m.data = A64Data::sme;
            else if (sve)
                m.data = A64Data::sve;
            else if (string_view("bhsdqv").find(file) != string_view::npos && operand != "sp")
                m.data = A64Data::simd_fp;
            if (sve || sme) {
                m.predicated = op != "ldr" && op != "str";
                // A vector within the brackets is a vector of addresses.
                const string_view address = line.operands.substr(line.operands.rfind('['));
                m.gather_scatter = address.find("[z") != string_view::npos || address.find(", z") != string_view::npos;
            }
            if (m.data == A64Data::general || m.data == A64Data::simd_fp) {
                const bool byte =
                    op.ends_with('b') && !op.starts_with("ld64") && !op.starts_with("st64") && !op.starts_with("ldra");
                if (begins(op, {"ld64b", "st64b"}))
                    m.bytes = 64;
                else if (file == 'v')
                    m.bytes = std::nullopt;
                else if (any_of(op, {"ldpsw"}))
                    m.bytes = 8;
                else if (begins(op, {"ldp", "stp", "ldnp", "stnp", "ldxp", "ldaxp", "stxp", "stlxp", "casp"}))
                    m.bytes = 2 * register_bytes(file);
                else if (op.ends_with("sw"))
                    m.bytes = 4;
                else if (byte)
                    m.bytes = 1;
                else if (op.ends_with('h'))
                    m.bytes = 2;
                else
                    m.bytes = register_bytes(file);
            }
            return m;
        }
    }
    m.conditional = any_of(op, {"csel", "csinc", "csinv", "csneg", "cset", "csetm", "cinc", "cinv", "cneg", "ccmp",
                                "ccmn", "fcsel", "fccmp", "fccmpe"});
    // Decided by the top-level encoding where the text has no register: SVE's counters, for one.
    const std::uint32_t group = line.word >> 25 & 0xf;
    if (group == 2 || (group == 0 && line.word >> 31 != 0)) {
        m.sve = !is_prefetch;
        return m;
    }
    if (group == 7 || group == 15) {
        const bool scalar = (line.word & 0x50000000) == 0x10000000;
        m.simd = !scalar;
        m.floating_point = scalar || op.starts_with('f') || begins(op, {"scvtf", "ucvtf", "bf"});
    }
    return m;
}

struct TemporaryFile {
    explicit TemporaryFile(const char* what)
        : path(testing::TempDir() + "waymark_a64_objdump_" + what + '_' + std::to_string(getpid())) {}
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    ~TemporaryFile() {
        std::error_code ignored;
        std::filesystem::remove(path, ignored);
    }
    std::string path;
};

class Comparison {
public:
    void run(const std::string& arguments) {
        const std::string command = std::string(objdump) + " -z -M notes" + arguments;
        FILE* pipe = popen(command.c_str(), "r");
        ASSERT_NE(pipe, nullptr) << command;
        std::array<char, 4096> buffer{};
        while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr)
            if (const auto line = parse(buffer.data())) compare(*line);
        ASSERT_EQ(pclose(pipe), 0) << command;
    }
    void run(const std::vector<std::uint32_t>& program) {
        const TemporaryFile file("program");
        std::ofstream(file.path, std::ios::binary)
            .write(reinterpret_cast<const char*>(program.data()), static_cast<std::streamsize>(program.size() * 4));
        run(" -D -b binary -m aarch64 --adjust-vma=0x10000000 " + shell_word(file.path));
        EXPECT_EQ(instructions_ + undefined_, program.size()) << "objdump's output was not understood";
    }
    void report(bool every_row) {
        std::printf("%zu instructions, %zu words that are none\n", instructions_, undefined_);
        for (const auto& [kind, found] : differences_)
            ADD_FAILURE() << found.count << " unexplained differences on " << kind << ", such as" << found.samples;
        if (!every_row) return;
        for (const string_view name : a64_names()) EXPECT_TRUE(rows_.contains(name)) << name << " was never met";
    }

private:
    struct Difference {
        std::size_t count = 0;
        std::string samples;
    };
    void compare(const Line& line) {
        const A64Instruction ours = decode_a64(line.word);
        if (line.mnemonic == "udf") rows_.insert(ours.name);
        if (line.mnemonic.starts_with('.') || line.mnemonic == "udf" ||
            line.text.find("undefined") != string_view::npos) {
            ++undefined_;
            return;
        }
        ++instructions_;
        rows_.insert(ours.name);
        const Meaning theirs = meaning(line);
        std::string what;
        const auto check = [&](const char* name, auto a, auto b) {
            if (a != b) what += std::string(" ") + name + "=" + std::to_string(static_cast<int>(a));
        };
        check("kind", ours.kind, theirs.kind);
        check("data", ours.data, theirs.data);
        check("acquire_release", ours.acquire_release, theirs.acquire_release);
        check("exclusive", ours.exclusive, theirs.exclusive);
        check("atomic", ours.atomic, theirs.atomic);
        check("conditional", ours.conditional, theirs.conditional);
        check("indirect", ours.indirect, theirs.indirect);
        check("link", ours.link, theirs.link);
        check("function_return", ours.function_return, theirs.function_return);
        check("exception_return", ours.exception_return, theirs.exception_return);
        check("predicated", ours.predicated, theirs.predicated);
        check("gather_scatter", ours.gather_scatter, theirs.gather_scatter);
        check("floating_point", ours.floating_point, theirs.floating_point);
        check("simd", ours.simd, theirs.simd);
        check("sve", ours.sve, theirs.sve);
        check("system_call", ours.system_call, line.mnemonic == "svc");
        check("undefined", ours.undefined, false);
        if (theirs.offset) check("offset", std::int64_t{ours.offset}, *theirs.offset);
        const Instruction traced = decode_instr({line.address}, Isa::a64, line.word, false,
                                                {.wait_waypoints = true, .transaction_start_waypoints = true});
        const bool barrier = line.mnemonic == "isb" || line.mnemonic == "wfi" || line.mnemonic == "wfe" ||
                             line.mnemonic == "wfit" || line.mnemonic == "wfet" || line.mnemonic == "tstart";
        check("waypoint", traced.waypoint,
              theirs.kind == A64Class::branch ? (theirs.indirect ? Waypoint::indirect : Waypoint::direct)
              : barrier                       ? Waypoint::barrier
                                              : Waypoint::none);
        check("traced link", traced.link, theirs.link);
        check("traced conditional", traced.waypoint == Waypoint::direct && traced.conditional,
              theirs.kind == A64Class::branch && theirs.conditional);
        check("traced exception return", traced.exception_return, theirs.exception_return);
        if (theirs.offset && theirs.kind == A64Class::branch && !theirs.indirect)
            check("target", static_cast<std::int64_t>(traced.target.value - line.address), *theirs.offset);
        if (theirs.bytes) check("bytes", unsigned{ours.access_bytes}, *theirs.bytes);
        if (what.empty()) return;
        Difference& difference = differences_[std::string(line.mnemonic)];
        if (++difference.count > 4) return;
        difference.samples += "\n    " + std::string(line.text) + "  (ours: " + std::string(ours.name) + what + ")";
    }

    std::size_t instructions_ = 0, undefined_ = 0;
    std::map<std::string, Difference> differences_;
    std::set<string_view> rows_;
};

class CompareA64 : public testing::Test {
protected:
    void SetUp() override {
        if (std::system((std::string(objdump) + " --version > /dev/null 2>&1").c_str()) != 0)
            GTEST_SKIP() << "NOT COMPARED: " << objdump << " is not installed (binutils-aarch64-linux-gnu)";
    }
};

TEST_F(CompareA64, Sweep) {
    std::vector<std::uint32_t> program;
    std::mt19937 random(1);
    // Each leading 11 bits, with the bits that follow drawn: all groups, however small their share of all words.
    for (std::uint32_t top = 0; top < 1U << 11; ++top)
        for (int i = 0; i < 160; ++i) program.push_back(top << 21 | (static_cast<std::uint32_t>(random()) >> 11));
    // Fields that random words seldom set: registers 31, and zeros.
    for (std::uint32_t top = 0; top < 1U << 11; ++top)
        for (std::uint32_t middle = 0; middle < 1U << 6; ++middle)
            for (const std::uint32_t high : {0U, 31U})
                for (const std::uint32_t low : {0U, 31U, 1023U})
                    program.push_back(top << 21 | high << 16 | middle << 10 | low);
    constexpr auto rare = std::to_array<std::uint32_t>({0x0000dead, 0xd69f03e0, 0xd69f0bff, 0xd69f0fff, 0xd65f0bff,
                                                        0xd65f0fff, 0xd503201f, 0x1e21c020, 0x1e61c020, 0x2ef9f820});
    program.insert(program.end(), rare.begin(), rare.end());
    Comparison comparison;
    comparison.run(program);
    comparison.report(true);
}

TEST_F(CompareA64, CLibrary) {
    const std::string library = "/usr/aarch64-linux-gnu/lib/libc.so.6";
    if (!std::filesystem::exists(library))
        GTEST_SKIP() << "NOT COMPARED: " << library << " is not installed (libc6-arm64-cross)";
    Comparison comparison;
    comparison.run(" -d " + library);
    comparison.report(false);
}

}  // namespace
}  // namespace waymark::isa
