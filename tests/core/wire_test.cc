#include "waymark/core/wire.h"

#include <gtest/gtest.h>

namespace waymark::wire {
namespace {

/// A format with one of everything that the walkers know.
struct Sample {
    std::uint8_t low{}, high{};
    std::uint32_t word{}, tail{};
    bool flag{}, longer{};

    static void fields(auto& w, auto& s) {
        w.byte(bits<7, 4>("high", s.high), fixed<3>(0), should_be<2>(1), bits<1>("longer", s.longer),
               bits<0>("flag", s.flag));
        w.word(bits<31, 8>("word", s.word), bits<7, 0>("low", s.low));
        if (s.longer) w.le("tail", s.tail, 3);
    }
    bool operator==(const Sample&) const = default;
};

std::vector<std::uint8_t> write(const Sample& s) {
    std::vector<std::uint8_t> out;
    Writer writer(out);
    Sample::fields(writer, s);
    return out;
}

Step read(std::vector<std::uint8_t> bytes, Sample& s) {
    Cursor cursor(bytes);
    Reader reader(cursor);
    s = {};
    Sample::fields(reader, s);
    return cursor.step();
}

const Sample sample{.low = 0x11, .high = 0xa, .word = 0x445566, .tail = 0x030201, .flag = true, .longer = true};
const std::vector<std::uint8_t> bytes{0xa7, 0x11, 0x66, 0x55, 0x44, 1, 2, 3};

TEST(Walkers, WriteAndRead) {
    EXPECT_EQ(write(sample), bytes);
    Sample got;
    EXPECT_EQ(read(bytes, got), Step::ok);
    EXPECT_EQ(got, sample);
}

TEST(Walkers, ReservedIsRefusedAndTheRestTolerated) {
    Sample got;
    auto wrong = bytes;
    wrong[0] |= 8;  // fixed
    EXPECT_EQ(read(wrong, got), Step::bad);
    wrong = bytes;
    wrong[0] &= static_cast<std::uint8_t>(~4U);  // should be 1
    EXPECT_EQ(read(wrong, got), Step::ok);
    EXPECT_EQ(got, sample);
    for (std::size_t n = 0; n < bytes.size(); ++n)
        EXPECT_EQ(read({bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(n)}, got), Step::need_more) << n;
}

TEST(Walkers, PrintAndScan) {
    std::string text;
    Printer printer(text);
    Sample::fields(printer, sample);
    EXPECT_EQ(text, "high=0xa longer=1 flag=1 word=0x445566 low=0x11 tail=0x30201");
    Sample got;
    Scanner scanner(text);
    Sample::fields(scanner, got);
    EXPECT_EQ(scanner.wrong(), "");
    EXPECT_EQ(got, sample);
}

TEST(Walkers, ScanNamesWhatIsWrong) {
    const auto wrong = [](std::string_view text) {
        Sample got;
        Scanner scanner(text);
        Sample::fields(scanner, got);
        return std::string(scanner.wrong());
    };
    EXPECT_EQ(wrong("high=0x10 longer=0 flag=0 word=0 low=0"), "high");
    EXPECT_EQ(wrong("high=1 flag=0 word=0 low=0"), "longer");
    EXPECT_EQ(wrong("high=1 longer=0 flag=x word=0 low=0"), "flag");
    EXPECT_EQ(wrong("high=1 longer=1 flag=0 word=0 low=0"), "tail");
    EXPECT_EQ(wrong("high=1 longer=0 flag=0 word=0 low=0 more=1"), "more=1");
}

TEST(Walkers, GenerateLegalValues) {
    Random random(1);
    for (unsigned i = 0; i < 1000; ++i) {
        Sample s, got;
        Generator generator(random);
        Sample::fields(generator, s);
        ASSERT_EQ(read(write(s), got), Step::ok);
        ASSERT_EQ(got, s);
    }
}

TEST(Numbers, PrintAndScan) {
    std::string text;
    append_number(text, 9);
    text += ' ';
    append_number(text, 10);
    EXPECT_EQ(text, "9 0xa");
    std::uint64_t value = 0;
    EXPECT_TRUE(scan_number("0xFFffFFffFFffFFff", value));
    EXPECT_EQ(value, ~std::uint64_t{0});
    EXPECT_TRUE(scan_number("12", value));
    EXPECT_EQ(value, 12U);
    for (const char* bad : {"", "0x", "12x", "-1", " 1", "0x1ffffffffffffffff", "18446744073709551616"})
        EXPECT_FALSE(scan_number(bad, value)) << bad;
}

}  // namespace
}  // namespace waymark::wire
