/// Compares waypoint decoding with GNU objdump: all 16-bit Thumb halfwords, systematic and random sweeps of the 32-bit
/// spaces, and the C library. objdump knows neither waypoints nor ThumbEE; the meaning of an instruction for tracing is
/// derived from its text, which shares nothing with the tables under test.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "support/shell.h"
#include "waymark/isa/decode_instr.h"

namespace waymark::isa {
namespace {

using std::string_view;

constexpr string_view objdump = "arm-linux-gnueabihf-objdump";
constexpr std::uint32_t base = 0x0800'0000;  // far enough from both ends that objdump need not wrap a target

/// One instruction as objdump shows it.
struct Line {
    std::uint32_t address{}, opcode{};
    unsigned bytes{};
    Isa isa{};
    string_view mnemonic, operands, remark;  // remark: text behind the comment character
    string_view text;                        // all of it
};

/// The meaning of the text.
struct Meaning {
    Waypoint waypoint = Waypoint::none;
    bool link = false, exception_return = false, function_return = false, undefined = false;
    std::uint32_t target = 0;
    Isa target_isa = Isa::a32;
};

string_view trim(string_view s) {
    while (!s.empty() && (s.front() == ' ' || s.front() == '\t')) s.remove_prefix(1);
    while (!s.empty() && (s.back() == ' ' || s.back() == '\t' || s.back() == '\n')) s.remove_suffix(1);
    return s;
}

std::optional<std::uint32_t> hex(string_view digits) {
    if (digits.starts_with("0x")) digits.remove_prefix(2);
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
    if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return value;
}

/// `  8000000:\te12fff1e \tbx\tlr`; Thumb shows halfwords, `f000 f800`. Headings, labels and data give nothing.
std::optional<Line> parse(string_view text) {
    Line line;
    line.text = trim(text);
    const auto colon = text.find(":\t");
    if (colon == string_view::npos) return std::nullopt;
    const auto address = hex(trim(text.substr(0, colon)));
    if (!address) return std::nullopt;
    string_view rest = text.substr(colon + 2);
    const auto tab = rest.find('\t');
    if (tab == string_view::npos) return std::nullopt;
    const string_view opcode = trim(rest.substr(0, tab));
    rest = rest.substr(tab + 1);

    line.address = *address;
    if (opcode.size() == 9 && opcode[4] == ' ') {
        const auto first = hex(opcode.substr(0, 4));
        const auto second = hex(opcode.substr(5));
        if (!first || !second) return std::nullopt;
        line.opcode = *first << 16 | *second;
        line.bytes = 4;
        line.isa = Isa::t32;
    } else {
        const auto word = hex(opcode);
        if (!word || (opcode.size() != 4 && opcode.size() != 8)) return std::nullopt;
        line.opcode = *word;
        line.bytes = opcode.size() == 4 ? 2 : 4;
        line.isa = opcode.size() == 4 ? Isa::t32 : Isa::a32;
    }
    if (const auto mark = rest.find_first_of("@;"); mark != string_view::npos) {
        line.remark = trim(rest.substr(mark + 1));
        rest = rest.substr(0, mark);
    }
    const auto end = rest.find('\t');
    line.mnemonic = trim(rest.substr(0, end));
    if (line.mnemonic.starts_with('.')) return std::nullopt;  // data
    if (end != string_view::npos) line.operands = trim(rest.substr(end + 1));
    return line;
}

bool is_condition(string_view suffix) {
    static constexpr auto conditions = std::to_array<string_view>(
        {"", "eq", "ne", "cs", "cc", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", "al"});
    return std::ranges::find(conditions, suffix) != conditions.end();
}

/// `mnemonic` is `name`, under any condition.
bool is(string_view mnemonic, string_view name) {
    return mnemonic.starts_with(name) && is_condition(mnemonic.substr(name.size()));
}

Meaning meaning(const Line& line) {
    string_view op = line.mnemonic;
    if (op.ends_with(".n") || op.ends_with(".w")) op.remove_suffix(2);
    const auto is_one_of = [&](auto... names) { return (is(op, names) || ...); };
    const string_view first = line.operands.substr(0, line.operands.find_first_of(", !"));
    // A branch's last operand, without the symbol that may follow it.
    string_view last = trim(line.operands.substr(line.operands.rfind(',') + 1));
    if (const auto symbol = last.find(" <"); symbol != string_view::npos) last = last.substr(0, symbol);

    // Armv8.1-M; wlstp has the size of elements in its name.
    const bool loops = op == "le" || op == "letp" || op == "wls" || op.starts_with("wlstp.");
    if (is_one_of("b", "bl", "blx", "cbz", "cbnz") || loops) {
        if (const auto target = hex(last); target)
            return {.waypoint = Waypoint::direct,
                    .link = is_one_of("bl", "blx"),
                    .target = *target,
                    .target_isa = !is(op, "blx")         ? line.isa
                                  : line.isa == Isa::a32 ? Isa::t32
                                                         : Isa::a32};
    }
    if (is(op, "bx")) return {.waypoint = Waypoint::indirect, .function_return = line.operands == "lr"};
    // Armv8.1-M: the second operand is the target.
    if (op == "bxaut")
        return {.waypoint = Waypoint::indirect, .function_return = line.operands.find(", lr,") != string_view::npos};
    if (is_one_of("bxj", "tbb", "tbh")) return {.waypoint = Waypoint::indirect};
    if (is(op, "blx")) return {.waypoint = Waypoint::indirect, .link = true};
    if (is_one_of("eret", "rfe", "rfeia", "rfeib", "rfeda", "rfedb"))
        return {.waypoint = Waypoint::indirect, .exception_return = true};
    if (is(op, "udf")) return {.undefined = true};

    const Meaning after{.waypoint = Waypoint::barrier, .target = line.address + line.bytes, .target_isa = line.isa};
    if (is_one_of("isb", "dsb", "dmb", "ssbb", "pssbb", "dfb", "wfi", "wfe")) return after;
    if (is(op, "mcr") && line.operands.starts_with("15, 0, "))
        for (const string_view barrier : {"cr7, cr5, {4}", "cr7, cr10, {4}", "cr7, cr10, {5}"})
            if (line.operands.ends_with(barrier)) return after;

    if (op.starts_with("ldm") || is(op, "pop")) {
        const bool pops = is(op, "pop") || (is_one_of("ldmfd", "ldmia") && line.operands.starts_with("sp!"));
        const bool restores_state = line.operands.ends_with('^');
        if (line.operands.find("pc}") != string_view::npos)
            return {.waypoint = Waypoint::indirect,
                    .exception_return = restores_state,
                    .function_return = pops && !restores_state};
    }
    // Among all instructions with a destination register, the architecture permits pc only for these; for others it is
    // UNPREDICTABLE.
    if (first != "pc") return {};
    if (is(op, "ldrt")) return {.waypoint = Waypoint::indirect};
    if (is(op, "ldr"))
        return {.waypoint = Waypoint::indirect,
                .function_return = line.operands.starts_with("pc, [sp], #") && line.operands[11] != '-'};
    for (const string_view name : {"and", "eor", "sub", "rsb", "add", "adc", "sbc", "rsc", "orr", "mov", "bic", "mvn",
                                   "lsl", "lsr", "asr", "ror", "rrx", "orn"}) {
        if (is(op, name))
            return {.waypoint = Waypoint::indirect, .function_return = name == "mov" && line.operands == "pc, lr"};
        if (op.starts_with(name) && op.substr(name.size()).starts_with('s') && is_condition(op.substr(name.size() + 1)))
            return {.waypoint = Waypoint::indirect, .exception_return = true};
    }
    return {};
}

/// A known difference in which Waymark is right: encoding, objdump's text, our answer, and the reason.
struct Allowed {
    string_view why;
    std::uint32_t mask, value;
    string_view objdump_says;  // part of the line
    Waypoint ours;
};

// src/isa/README.md lists the rows that accept opcodes with wrong should-be bits.
constexpr auto t16_allowed = std::to_array<Allowed>({
    {"BLX Rm with should-be-zero bits set", 0xff80, 0x4780, "<UNDEFINED>", Waypoint::indirect},
    {"BX Rm with should-be-zero bits set; v8-M gave them a meaning", 0xff87, 0x4704, "bxns", Waypoint::indirect},
    {"BLX Rm with should-be-zero bits set; v8-M gave them a meaning", 0xff87, 0x4784, "blxns", Waypoint::indirect},
});
constexpr auto t32_allowed = std::to_array<Allowed>({
    {"data-processing, modified immediate, Rd=pc is UNPREDICTABLE", 0xfa008f00, 0xf0000f00, "pc,", Waypoint::none},
    {"data-processing, shifted register, Rd=pc is UNPREDICTABLE", 0xfe000f00, 0xea000f00, "pc,", Waypoint::none},
    {"shift by register, Rd=pc is UNPREDICTABLE", 0xff80fff0, 0xfa00ff00, "pc,", Waypoint::none},
    {"RFE DB with wrong should-be bits", 0xffd00000, 0xe8100000, "<UNDEFINED>", Waypoint::indirect},
    {"RFE IA with wrong should-be bits", 0xffd00000, 0xe9900000, "<UNDEFINED>", Waypoint::indirect},
    {"BXJ with wrong should-be bits", 0xfff0d000, 0xf3c08000, "undefined (bcc, cond=0xF)", Waypoint::indirect},
    {"ENTERX, unknown to objdump", 0xffffffff, 0xf3bf8f1f, "undefined (bcc, cond=0xE)", Waypoint::direct},
    {"LEAVEX, unknown to objdump", 0xffffffff, 0xf3bf8f0f, "undefined (bcc, cond=0xE)", Waypoint::direct},
    {"LDR neither indexed nor written back is UNDEFINED", 0xfff0fd00, 0xf850f800, "<undefined>", Waypoint::none},
    {"LDR pc, [SP], #-0: objdump drops the sign that distinguishes it from a return", 0xffffffff, 0xf85df900,
     "[sp], #0", Waypoint::indirect},
    {"LDR register with a bit of 10:6 set is UNDEFINED", 0xfff0f800, 0xf850f000, "ldr.w\tpc, [", Waypoint::none},
});
constexpr auto a32_allowed = std::to_array<Allowed>({
    {"data-processing, register-shifted, Rd=pc is UNPREDICTABLE", 0x0e00f010, 0x0000f010, "<UNPREDICTABLE>",
     Waypoint::none},
    {"MOV, MVN register with should-be-zero Rn set", 0x0fa0f010, 0x01a0f000, "<UNDEFINED>", Waypoint::indirect},
    {"MOV, MVN immediate with should-be-zero Rn set", 0x0fa0f000, 0x03a0f000, "<UNDEFINED>", Waypoint::indirect},
});

/// Instructions, as the bytes of a file.
class Program {
public:
    void a32(std::uint32_t op) {
        halfword(op);
        halfword(op >> 16);
        ++instructions_;
    }
    void t16(std::uint32_t op) {
        halfword(op);
        ++instructions_;
    }
    void t32(std::uint32_t first, std::uint32_t second) {
        halfword(first);
        halfword(second);
        ++instructions_;
    }
    [[nodiscard]] std::size_t instructions() const { return instructions_; }
    [[nodiscard]] const std::string& bytes() const { return bytes_; }

private:
    void halfword(std::uint32_t value) {
        bytes_.push_back(static_cast<char>(value & 0xff));
        bytes_.push_back(static_cast<char>(value >> 8 & 0xff));
    }
    std::string bytes_;
    std::size_t instructions_ = 0;
};

/// The name of a temporary file, which is removed afterwards; tests may run at the same time.
struct TemporaryFile {
    explicit TemporaryFile(const char* what)
        : path(testing::TempDir() + "waymark_isa_objdump_" + what + '_' + std::to_string(getpid())) {}
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    ~TemporaryFile() {
        std::error_code ignored;
        std::filesystem::remove(path, ignored);
    }
    std::string path;
};

/// Runs objdump and compares every instruction it shows.
class Comparison {
public:
    explicit Comparison(std::span<const Allowed> list) : allowed_(list), uses_(list.size()) {}

    void run(const std::string& arguments) {
        const std::string command = std::string(objdump) + " -z -M reg-names-std" + arguments;
        FILE* pipe = popen(command.c_str(), "r");
        ASSERT_NE(pipe, nullptr) << command;
        std::array<char, 4096> buffer{};
        while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr)
            if (const auto line = parse(buffer.data())) compare(*line);
        ASSERT_EQ(pclose(pipe), 0) << command;
    }

    void run(const Program& program, const std::string& options) {
        const TemporaryFile file("program");
        std::ofstream(file.path, std::ios::binary) << program.bytes();
        run(options + " -D -b binary -m arm --adjust-vma=" + std::to_string(base) + ' ' + shell_word(file.path));
        EXPECT_EQ(instructions_, program.instructions()) << "objdump's output was not understood, or misaligned";
    }

    /// Every instruction is the same or permitted to differ, and each exception is needed.
    void report() const {
        std::printf("%zu instructions, %zu of them waypoint instructions\n", instructions_, waypoints_);
        for (std::size_t i = 0; i < uses_.size(); ++i) {
            std::printf("  %zu differ as allowed: %.*s\n", uses_[i], static_cast<int>(allowed_[i].why.size()),
                        allowed_[i].why.data());
            EXPECT_NE(uses_[i], 0U) << "not needed: " << allowed_[i].why;
        }
        for (const auto& [kind, found] : differences_)
            ADD_FAILURE() << found.count << " unexplained differences on " << kind << ", such as" << found.samples;
    }

    [[nodiscard]] std::size_t waypoints() const { return waypoints_; }

private:
    struct Difference {
        std::size_t count = 0;
        std::string samples;
    };

    void compare(const Line& line) {
        ++instructions_;
        const Instruction ours =
            decode_instr({line.address}, line.isa, line.opcode, line.isa == Isa::t32 && line.bytes == 4,
                         {.dmb_dsb_waypoints = true, .wait_waypoints = true});
        if (ours.waypoint != Waypoint::none) ++waypoints_;
        const Meaning theirs = meaning(line);
        if (ours.bytes == line.bytes && ours.waypoint == theirs.waypoint && ours.link == theirs.link &&
            ours.exception_return == theirs.exception_return && ours.function_return == theirs.function_return &&
            ours.undefined == theirs.undefined && ours.target.value == theirs.target &&
            ours.target_isa == theirs.target_isa)
            return;
        for (std::size_t i = 0; i < allowed_.size(); ++i) {
            const Allowed& a = allowed_[i];
            if ((line.opcode & a.mask) == a.value && ours.waypoint == a.ours &&
                line.text.find(a.objdump_says) != string_view::npos) {
                ++uses_[i];
                return;
            }
        }
        const string_view kind = line.mnemonic.empty() ? line.remark.substr(0, line.remark.find(':')) : line.mnemonic;
        Difference& difference = differences_[std::string(name(line.isa)) + " " + std::string(kind)];
        if (++difference.count > 4) return;
        difference.samples += "\n    " + std::string(line.text) + "  (ours: waypoint " +
                              std::to_string(static_cast<int>(ours.waypoint)) + ", target " +
                              std::to_string(ours.target.value) + ")";
    }

    std::span<const Allowed> allowed_;
    std::vector<std::size_t> uses_;
    std::size_t instructions_ = 0, waypoints_ = 0;
    std::map<std::string, Difference> differences_;
};

class Compare : public testing::Test {
protected:
    void SetUp() override {
        if (std::system((std::string(objdump) + " --version > /dev/null 2>&1").c_str()) != 0)
            GTEST_SKIP() << "NOT COMPARED: " << objdump << " is not installed (binutils-arm-linux-gnueabihf)";
    }
};
using Values = std::initializer_list<std::uint32_t>;
constexpr std::size_t random_instructions = 200'000;

/// Calls `add` with all opcodes that differ from `op` in at most two bits: a mask with a missing bit would accept them.
void neighbours(std::uint32_t op, auto add) {
    for (unsigned i = 0; i < 32; ++i)
        for (unsigned j = 0; j <= i; ++j) add(op ^ 1U << i ^ (i == j ? 0U : 1U << j));
    add(op);
}

TEST_F(Compare, EveryHalfwordOfT16) {
    Program program;
    for (std::uint32_t op = 0; !is_thumb_32(op); ++op) {
        program.t16(op);
        // objdump follows IT blocks and would print the next instructions under their conditions.
        if ((op & 0xff00) == 0xbf00 && (op & 0xf) != 0)
            for (int i = 0; i < 4; ++i) program.t16(0xbf00);
    }
    Comparison comparison(t16_allowed);
    comparison.run(program, ",force-thumb");
    comparison.report();
}

TEST_F(Compare, SweepOfT32) {
    Program program;
    for (std::uint32_t first = 0xe800; first < 0x10000; ++first)
        for (std::uint32_t top = 0; top < 16; ++top)
            for (const std::uint32_t middle : Values{0x0, 0x8, 0xb, 0xf})
                for (const std::uint32_t low : Values{0x00, 0x1f, 0x95})
                    program.t32(first, top << 12 | middle << 8 | low);
    // First halfwords whose second halfword decides: all values of the second halfword.
    for (const std::uint32_t first : Values{0xe810, 0xe8bd, 0xe8d0, 0xe910, 0xe990, 0xee07, 0xf000, 0xf3af, 0xf3bf,
                                            0xf3c0, 0xf3de, 0xf7f0, 0xf850, 0xf85d, 0xf85f, 0xf8d0, 0xf8df})
        for (std::uint32_t second = 0; second < 0x10000; ++second) program.t32(first, second);
    for (const std::uint32_t op :
         Values{0xf0008000, 0xf0009000, 0xf000d000, 0xf000c000, 0xf3c38f00, 0xf3de8f04, 0xe8d1f002,
                0xe811c000, 0xe991c000, 0xe8bd8010, 0xe8918002, 0xf8d1f004, 0xf85ff144, 0xf85dfb04,
                0xf851fc04, 0xf851f022, 0xf3bf8f6f, 0xf3bf8f4f, 0xf3bf8f5f, 0xee073f95, 0xee073f9a,
                0xee073fba, 0xf3bf8f1f, 0xf3bf8f0f, 0xf7f0a000, 0xfb5ecf1d, 0xe89f801f})
        neighbours(op, [&](std::uint32_t near) {
            if (is_thumb_32(near >> 16)) program.t32(near >> 16, near & 0xffff);
        });
    std::mt19937 random(1);
    for (std::size_t i = 0; i < random_instructions; ++i) {
        const std::uint32_t first = 0xe800 + static_cast<std::uint32_t>(random()) % 0x1800;
        program.t32(first, static_cast<std::uint32_t>(random()) & 0xffff);
    }
    Comparison comparison(t32_allowed);
    comparison.run(program, ",force-thumb");
    comparison.report();
}

TEST_F(Compare, SweepOfA32) {
    Program program;
    for (const std::uint32_t cond : Values{0xe, 0x0, 0xf})
        for (std::uint32_t bits_27_20 = 0; bits_27_20 < 256; ++bits_27_20)
            for (std::uint32_t bits_7_4 = 0; bits_7_4 < 16; ++bits_7_4)
                for (const std::uint32_t rn : Values{0, 7, 13, 15})
                    for (const std::uint32_t rd : Values{0, 14, 15})
                        for (const std::uint32_t rs : Values{0, 10, 15})
                            for (const std::uint32_t rm : Values{0, 5, 14})
                                program.a32(cond << 28 | bits_27_20 << 20 | rn << 16 | rd << 12 | rs << 8 |
                                            bits_7_4 << 4 | rm);
    for (const std::uint32_t op :
         Values{0xea000002, 0xeb000002, 0xe12fff1e, 0xe12fff13, 0xe12fff23, 0xe12fff33, 0xe160006e,
                0xe8d18002, 0xe8bd8010, 0xe8918002, 0xe49df004, 0xe591f004, 0xe791f102, 0xe251f004,
                0xe281f004, 0xe1a0f00e, 0xe091f002, 0xe081f002, 0xee073f95, 0xee073f9a, 0xee073fba,
                0xe7f000f0, 0xfa000002, 0xf8910a00, 0xf57ff04f, 0xf57ff05f, 0xf57ff06f})
        neighbours(op, [&](std::uint32_t near) { program.a32(near); });
    std::mt19937 random(1);
    for (std::size_t i = 0; i < random_instructions; ++i) program.a32(static_cast<std::uint32_t>(random()));
    Comparison comparison(a32_allowed);
    comparison.run(program, "");
    comparison.report();
}

// Linked here, because only a linked file has both mapping symbols (so that objdump does not take literal pools for
// code) and final branch targets. No instruction of compiled code may differ.
TEST_F(Compare, CLibrary) {
    const std::string library = "/usr/arm-linux-gnueabihf/lib/libc.a";
    if (!std::filesystem::exists(library))
        GTEST_SKIP() << "NOT COMPARED: " << library << " is not installed (libc6-dev-armhf-cross)";
    const TemporaryFile linked("libc");
    const std::string link =
        "arm-linux-gnueabihf-ld -w --unresolved-symbols=ignore-all -e 0 --defsym _init=0x10000"
        " --defsym _fini=0x10000 --whole-archive " +
        library + " -o " + shell_word(linked.path);
    ASSERT_EQ(std::system(link.c_str()), 0) << link;
    Comparison comparison({});
    comparison.run(" -d " + shell_word(linked.path));
    comparison.report();
    EXPECT_GT(comparison.waypoints(), 10'000U);
}

}  // namespace
}  // namespace waymark::isa
