/// Profiles of one image, from exact ranges and branches: the contents of each format, by hand, and simpleperf's own
/// text.
#include "waymark/exports/image_profile.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <protozero/pbf_reader.hpp>
#include <sstream>

#include "exports/tools.h"
#include "waymark/exports/bolt.h"
#include "waymark/exports/branch_list.h"
#include "waymark/exports/write.h"

namespace waymark::exports {
namespace {

using answers::Answers;
using answers::Branch;
using support::written;

/// A program, whose code is at 0x11000 and at 0x1000 in its file, and a library.
Answers exact_answers() {
    Answers a;
    a.capture = "loop";
    a.unit = "ETMv4";
    a.metrics = {{"instructions", "instructions"}};
    a.images = {{"libc.so", "/lib/libc.so", "ee11"}, {"loop", "/bin/loop", "ab12cd34"}};
    a.images[0].segments = {{0, 0, 0x1000, true}};
    a.images[1].segments = {{0x10000, 0, 0x800, false}, {0x11000, 0x1000, 0x1000, true}};
    a.functions = {{"main", "main", 1, 0x11000, 0x40}};
    using isa::Isa;
    // main: twice to the branch at 0x11008, which is taken 3 of 4 times; a call of the library; an interrupt.
    a.ranges = {{0, 0x100, 0x104, Isa::a64, 2, 1, 1, 0},
                {1, 0x11000, 0x11008, Isa::a64, 3, 1, 1, 0},
                {1, 0x11004, 0x11008, Isa::a64, 2, 3, 2, 1},
                {1, 0x1100c, 0x11010, Isa::a64, 2, 1, 1, 0},
                {1, 0x11014, 0x11018, Isa::a64, 2, 1, 0, 0}};
    a.jumps = {{0, 0x104, 1, 0x11014, Branch::Kind::function_return, 1},
               {1, 0x11008, 1, 0x11004, Branch::Kind::conditional, 3},
               {1, 0x11010, 0, 0x100, Branch::Kind::call, 1}};
    return a;
}

TEST(ImageProfile, AutofdoText) {
    const auto out = written([](ByteSink& sink) { return write_autofdo_text(exact_answers(), {}, sink); });
    EXPECT_EQ(out.text,
              "4\n1000-1008:1\n1004-1008:3\n100c-1010:1\n1014-1018:1\n0\n2\n1008->1004:3\n1010->0:1\n"
              "// build_id: 0xab12cd3400000000000000000000000000000000\n// /bin/loop\n\n");
    const auto library = written([](ByteSink& sink) { return write_autofdo_text(exact_answers(), {"ee11"}, sink); });
    EXPECT_NE(library.text.find("100-104:1\n0\n1\n104->0:1\n"), std::string::npos) << library.text;
}

TEST(ImageProfile, AutofdoTextOfLostBranches) {
    Answers a = exact_answers();
    a.jumps.pop_back();  // the target of the call is unknown
    const auto out = written([&](ByteSink& sink) { return write_autofdo_text(a, {}, sink); });
    EXPECT_NE(out.text.find("1010->0:1\n"), std::string::npos) << out.text;
}

TEST(ImageProfile, Profgen) {
    const auto out = written([](ByteSink& sink) { return write_profgen(exact_answers(), {}, sink); });
    EXPECT_EQ(out.text, "4\n0-8:1\n4-8:3\nc-10:1\n14-18:1\n1\n8->4:3\n");
}

TEST(ImageProfile, ProfgenScriptHasEveryRangeAndBranchOnce) {
    const auto out = written([](ByteSink& sink) { return write_profgen_script(exact_answers(), {}, sink); });
    std::istringstream in(out.text);
    std::string line;
    ASSERT_TRUE(std::getline(in, line));
    EXPECT_EQ(line, "PERF_RECORD_MMAP2 1/1: [0x11000(0x1000) @ 0x1000 00:00 0 0]: r-xp /bin/loop");
    // As llvm-profgen splits branch stacks.
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> ranges, branches;
    std::uint64_t count = 0;
    while (in >> count) {
        std::getline(in, line);
        std::getline(in, line);
        std::istringstream words(line);
        std::string entry;
        words >> entry;  // the address that was sampled
        std::uint64_t end = 0;
        while (words >> entry) {
            char* rest = nullptr;
            const std::uint64_t from = std::strtoull(entry.c_str(), &rest, 16),
                                to = std::strtoull(rest + 1, nullptr, 16);
            branches[{from, to}] += count;
            if (end != 0 && to != 0) ranges[{to, end}] += count;
            end = from;
        }
    }
    EXPECT_EQ(ranges,
              (decltype(ranges){
                  {{0x11000, 0x11008}, 1}, {{0x11004, 0x11008}, 3}, {{0x1100c, 0x11010}, 1}, {{0x11014, 0x11018}, 1}}));
    EXPECT_EQ((branches[{0x11008, 0x11004}]), 3U);
    EXPECT_EQ((branches[{0, 0x11014}]), 1U);
}

TEST(ImageProfile, Bolt) {
    const auto out = written([](ByteSink& sink) { return write_bolt(exact_answers(), {}, sink); });
    EXPECT_EQ(out.text,
              "B 0 11014 1 0\nB 11008 11004 3 0\nB 11010 0 1 0\nF 11000 11008 1\nF 11004 11008 3\nF 11008 1100c 1\n"
              "F 1100c 11010 1\nF 11014 11018 1\n");
}

TEST(ImageProfile, BoltTraces) {
    Answers a = exact_answers();
    const auto text = [&] { return written([&](ByteSink& sink) { return write_bolt(a, {"", true}, sink); }).text; };
    EXPECT_EQ(text(),
              "B 0 11014 1 0\nT 11008 11004 11008 3\nB 11010 0 1 0\nF 11000 11008 1\nF 11008 1100c 1\n"
              "F 1100c 11010 1\nF 11014 11018 1\n");
    // Two branches, one of them a return, to a place where two ranges begin; and one branch to a place where no code
    // ran.
    a.ranges = {{1, 0x11000, 0x11008, isa::Isa::a64, 3, 5, 0, 0}, {1, 0x11000, 0x11010, isa::Isa::a64, 5, 4, 0, 0}};
    a.jumps = {{1, 0x11100, 1, 0x11000, Branch::Kind::unconditional, 6},
               {1, 0x11200, 1, 0x11000, Branch::Kind::function_return, 2},
               {1, 0x11300, 1, 0x11400, Branch::Kind::indirect, 7}};
    EXPECT_EQ(text(),
              "T 11100 11000 11008 5\nT 11100 11000 11010 1\nR 11200 11000 11010 2\nB 11300 11400 7 0\n"
              "F 11000 11010 1\n");
}

TEST(ImageProfile, BranchList) {
    for (const BranchListVersion version : {BranchListVersion::old, BranchListVersion::one}) {
        const auto out = written([&](ByteSink& sink) { return write_branch_list(exact_answers(), version, sink); });
        std::string list = out.text;
        if (version == BranchListVersion::one) {
            ASSERT_TRUE(list.starts_with("simpleperf:EtmBranchList\x01"));
            list = list.substr(24 + 4 + 1 + 4);
        } else {
            ASSERT_EQ(list.front(), 0x0a);
        }
        std::map<std::string, std::uint64_t> got;
        protozero::pbf_reader message(list);
        while (message.next(2)) {
            protozero::pbf_reader binary = message.get_message();
            std::string path, id;
            while (binary.next()) {
                if (binary.tag() == 1)
                    path = binary.get_string();
                else if (binary.tag() == 2)
                    id = binary.get_string();
                else if (binary.tag() == 3) {
                    protozero::pbf_reader place = binary.get_message();
                    std::uint64_t address = 0;
                    while (place.next()) {
                        if (place.tag() == 1) {
                            address = place.get_uint64();
                            continue;
                        }
                        protozero::pbf_reader branch = place.get_message();
                        std::string bits;
                        std::uint64_t size = 0, times = 0;
                        while (branch.next()) {
                            if (branch.tag() == 1)
                                bits = branch.get_string();
                            else if (branch.tag() == 2)
                                size = branch.get_uint32();
                            else
                                times = branch.get_uint64();
                        }
                        EXPECT_EQ(size, 1U);
                        std::ostringstream key;
                        key << path << ' ' << id << ' ' << std::hex << address << ' ' << int{bits.at(0)};
                        got[key.str()] = times;
                    }
                } else
                    binary.skip();
            }
        }
        EXPECT_EQ(got, (decltype(got){{"/lib/libc.so ee11 100 1", 1},
                                      {"/bin/loop ab12cd34 11000 1", 1},
                                      {"/bin/loop ab12cd34 11004 0", 1},
                                      {"/bin/loop ab12cd34 11004 1", 2},
                                      {"/bin/loop ab12cd34 1100c 1", 1}}));
    }
}

TEST(BranchListNotes, ARangeWithoutABranchIsCounted) {
    const auto out =
        written([&](ByteSink& sink) { return write_branch_list(exact_answers(), BranchListVersion::old, sink); });
    EXPECT_EQ(out.notes(),
              "5 lists of branches of 2 files\n"
              "left out: 1 range that does not end with a branch, since a branch list contains only branches\n");
}

TEST(ImageProfile, ABranchListSaysWhichImageIsTheKernel) {
    Answers a = exact_answers();
    a.images[0].name = "[kernel.kallsyms]_text";
    const auto out = written([&](ByteSink& sink) { return write_branch_list(a, BranchListVersion::old, sink); });
    std::map<std::string, std::uint64_t> types;
    protozero::pbf_reader message(out.text);
    while (message.next(2)) {
        protozero::pbf_reader binary = message.get_message();
        std::string path;
        std::uint64_t type = 0;  // ELF_FILE; 1 is KERNEL
        while (binary.next()) {
            if (binary.tag() == 1)
                path = binary.get_string();
            else if (binary.tag() == 4)
                type = static_cast<std::uint64_t>(binary.get_enum());
            else
                binary.skip();
        }
        types[path] = type;
    }
    EXPECT_EQ(types, (decltype(types){{"/bin/loop", 0}, {"/lib/libc.so", 1}}));
}

TEST(ImageProfile, AutofdoTextHasAddressesAsLoadedIfTheseAreWanted) {
    const Format* const format = find_format("autofdo-text");
    ASSERT_NE(format, nullptr);
    Answers a = exact_answers();
    a.images[1].segments[1].offset = 0x800;
    const auto text = [&](const WriteOptions& options) {
        return written([&](ByteSink& sink) { return write(*format, a, options, sink); }).text;
    };
    EXPECT_NE(text({}).find("\n800-808:1\n"), std::string::npos);
    EXPECT_NE(text({.bolt_traces = true}).find("\n800-808:1\n"), std::string::npos);
    EXPECT_NE(text({.autofdo_as_loaded = true}).find("\n1000-1008:1\n"), std::string::npos);
}

Bytes bytes_of(const std::string& text) { return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}; }

TEST(BranchLists, AddUpInAnyOrderAndSaturate) {
    Answers most = exact_answers();
    most.ranges[2].taken = ~std::uint64_t{0};
    std::vector<std::string> files;
    for (const auto version : {BranchListVersion::old, BranchListVersion::one})
        for (const Answers& a : {exact_answers(), most})
            files.push_back(written([&](ByteSink& sink) { return write_branch_list(a, version, sink); }).text);
    std::vector<std::string> sums;
    for (int turn = 0; turn < 4; ++turn) {
        answers::BranchLists lists;
        for (const std::string& file : files) {
            ASSERT_TRUE(is_branch_list(bytes_of(file).first(8)));
            const auto added = add_branch_lists(lists, bytes_of(file), "file");
            ASSERT_TRUE(added) << added.error().message;
        }
        sums.push_back(
            written([&](ByteSink& sink) { return write_branch_lists(lists, BranchListVersion::old, sink); }).text);
        const auto& loop = lists.at({"ab12cd34", "", 0, {}}).lists;
        EXPECT_EQ((loop.at({0x11004, {{1}, 1}})), ~std::uint64_t{0});
        EXPECT_EQ((loop.at({0x11004, {{0}, 1}})), 4U);
        std::rotate(files.begin(), files.begin() + 1, files.end());
    }
    for (const std::string& sum : sums) EXPECT_EQ(sum, sums.front());
}

TEST(BranchLists, ABuildIsOneUnderAnyPath) {
    Answers copy = exact_answers();
    copy.images[1].path = "/copy/of/loop";
    copy.images[1].build_id = "AB12CD3400000000";
    Answers other = exact_answers();
    other.images[1].build_id = "ff";
    for (const auto& paths : {std::pair(exact_answers(), copy), std::pair(copy, exact_answers())}) {
        answers::BranchLists lists;
        for (const Answers& a : {paths.first, paths.second, other}) {
            const std::string file = written([&](ByteSink& sink) {
                                         return write_branch_list(a, BranchListVersion::old, sink, "loop");
                                     }).text;
            ASSERT_TRUE(add_branch_lists(lists, bytes_of(file), "file"));
        }
        ASSERT_EQ(lists.size(), 2U) << "and the library is not asked for";
        const answers::BranchListImage& loop = lists.at({"ab12cd34", "", 0, {}});
        EXPECT_EQ(loop.path, "/bin/loop");
        EXPECT_EQ((loop.lists.at({0x11004, {{1}, 1}})), 4U);
    }
    ByteCollector sink;
    const auto refused = write_branch_list(exact_answers(), BranchListVersion::old, sink, "nonsense");
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::not_found);
    // The name is the recorded one, wherever the file was found.
    Answers recorded = exact_answers();
    recorded.images[1].recorded = "/data/local/tmp/loop";
    answers::BranchLists lists;
    ASSERT_TRUE(add_branch_lists(lists, bytes_of(written([&](ByteSink& s) {
                                                     return write_branch_list(recorded, BranchListVersion::one, s);
                                                 }).text),
                                 "file"));
    EXPECT_EQ(lists.at({"ab12cd34", "", 0, {}}).path, "/data/local/tmp/loop");
}

TEST(BranchLists, ModulesOfTwoBootsStayApart) {
    answers::BranchLists lists;
    for (const std::uint64_t boot : {0xffffffc001000000U, 0xffffffc002000000U}) {
        answers::BranchListImage module;
        module.path = "rq_stats.ko";
        module.build_id = "a535";
        module.type = 2;
        module.module = {boot, boot + 0x1000, "wakeup_user", boot + 0x40, 88};
        module.lists[{boot + 0x40, {{1}, 1}}] = 5;
        add_image(lists, module);
        add_image(lists, module);
    }
    ASSERT_EQ(lists.size(), 2U);
    const std::string text =
        written([&](ByteSink& sink) { return write_branch_lists(lists, BranchListVersion::old, sink); }).text;
    answers::BranchLists again;
    ASSERT_TRUE(add_branch_lists(again, bytes_of(text), "file"));
    ASSERT_EQ(again.size(), 2U);
    for (const auto& [key, image] : again) {
        EXPECT_EQ(image.module.symbol, "wakeup_user");
        EXPECT_EQ(image.lists.begin()->second, 10U);
    }
    EXPECT_EQ(written([&](ByteSink& sink) { return write_branch_lists(again, BranchListVersion::old, sink); }).text,
              text);
}

TEST(ImageProfile, ImagesOfOneNameAreTakenByTheirPlace) {
    Answers a = exact_answers();
    a.images[0].name = "loop";
    a.images[0].build_id = a.images[1].build_id = "";
    const auto first = written([&](ByteSink& sink) { return write_autofdo_text(a, {.index = 0}, sink); });
    const auto second = written([&](ByteSink& sink) { return write_autofdo_text(a, {.index = 1}, sink); });
    EXPECT_NE(first.text.find("100-104:1"), std::string::npos) << first.text;
    EXPECT_NE(second.text.find("1000-1008:1"), std::string::npos) << second.text;
}

std::string little_endian(std::uint64_t value, unsigned bytes) {
    std::string out;
    for (unsigned i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
    return out;
}
/// A zstd frame of one block that is not compressed (RFC 8878, 3.1.1).
std::string zstd_frame(const std::string& text) {
    return "\x28\xb5\x2f\xfd\xa0" + little_endian(text.size(), 4) + little_endian(text.size() << 3 | 1, 3) + text;
}

TEST(BranchLists, CompressedMessagesAreRead) {
    const std::string plain =
        written([&](ByteSink& sink) { return write_branch_list(exact_answers(), BranchListVersion::one, sink); }).text;
    constexpr std::size_t compressed = 28, messages = compressed + 1;
    const std::string message = plain.substr(messages + 4), packed = zstd_frame(message);
    ASSERT_EQ(plain.substr(messages, 4), little_endian(message.size(), 4));
    std::string file = plain.substr(0, messages);
    file[compressed] = 1;
    const auto with = [&](const std::string& all) { return file + little_endian(all.size(), 4) + all; };
    answers::BranchLists of_plain, of_packed;
    ASSERT_TRUE(add_branch_lists(of_plain, bytes_of(plain), "file"));
    const auto added = add_branch_lists(of_packed, bytes_of(with(packed)), "file");
    ASSERT_TRUE(added) << added.error().message;
    const auto text = [](const answers::BranchLists& lists) {
        return written([&](ByteSink& sink) { return write_branch_lists(lists, BranchListVersion::old, sink); }).text;
    };
    EXPECT_EQ(text(of_packed), text(of_plain));
    for (std::size_t size = 0; size < packed.size(); ++size) {
        answers::BranchLists none;
        const auto cut = add_branch_lists(none, bytes_of(with(packed.substr(0, size))), "file");
        ASSERT_FALSE(cut) << size;
        EXPECT_EQ(cut.error().code, Errc::bad_format);
    }
    file[compressed] = 2;
    EXPECT_FALSE(add_branch_lists(of_packed, bytes_of(with(packed)), "file"));
}

TEST(BranchLists, BitsAfterTheLastOutcomeHaveNoMeaning) {
    for (std::uint32_t count = 0; count <= 24; ++count) {
        answers::BranchLists lists;
        answers::BranchListImage image{.path = "p", .build_id = "aa"};
        image.lists[{0x100, {{0xff, 0xff, 0xff}, count}}] = 1;
        answers::add_image(lists, image);
        const std::string file =
            written([&](ByteSink& sink) { return write_branch_lists(lists, BranchListVersion::old, sink); }).text;
        answers::BranchLists again;
        ASSERT_TRUE(add_branch_lists(again, bytes_of(file), "file"));
        ASSERT_EQ(again.size(), 1U);
        const answers::Outcomes& outcomes = again.begin()->second.lists.begin()->first.second;
        std::vector<std::uint8_t> wanted(count / 8, 0xff);
        if (count % 8 != 0) wanted.push_back(static_cast<std::uint8_t>((1U << count % 8) - 1));
        EXPECT_EQ(outcomes.bytes, wanted) << count;
        EXPECT_EQ(outcomes.count, count);
    }
    // More outcomes than bits.
    answers::BranchLists lists;
    answers::BranchListImage image{.path = "p", .build_id = "aa"};
    image.lists[{0x100, {{0xff, 0xff, 0xff}, 25}}] = 1;
    answers::add_image(lists, image);
    const std::string file =
        written([&](ByteSink& sink) { return write_branch_lists(lists, BranchListVersion::old, sink); }).text;
    EXPECT_EQ(add_branch_lists(lists, bytes_of(file), "file").error().message,
              "file: the branch list is damaged or cut");
}

TEST(BranchLists, EachFieldIsReadAndEachRefusalHasItsMessage) {
    answers::BranchLists lists;
    answers::BranchListImage module{.path = "/m.ko", .build_id = "0b"};
    module.type = 2;
    module.kernel_start = 0x1234;
    module.module = {0x10, 0x20, "symbol", 0x18, 4};
    module.lists[{0x100, {{1}, 1}}] = 3;
    module.lists[{0x100, {{0}, 2}}] = 4;
    module.lists[{0x200, {{1}, 1}}] = ~std::uint64_t{0};
    answers::add_image(lists, module);
    for (const auto version : {BranchListVersion::old, BranchListVersion::one, BranchListVersion::compressed}) {
        const auto out = written([&](ByteSink& sink) { return write_branch_lists(lists, version, sink); });
        EXPECT_EQ(out.notes(), "3 lists of branches of 1 file\n");
        answers::BranchLists again;
        ASSERT_TRUE(add_branch_lists(again, bytes_of(out.text), "file"));
        ASSERT_EQ(again.size(), 1U);
        const answers::BranchListImage& image = again.begin()->second;
        EXPECT_EQ(image.path, module.path);
        EXPECT_EQ(image.build_id, module.build_id);
        EXPECT_EQ(image.type, module.type);
        EXPECT_EQ(image.kernel_start, module.kernel_start);
        EXPECT_EQ(image.module, module.module);
        EXPECT_EQ(image.lists, module.lists);
        for (std::size_t size = 0; size <= 30; ++size) {
            const std::string head = out.text.substr(0, size);
            EXPECT_EQ(is_branch_list(bytes_of(head)), size >= 8) << size;
        }
    }
    const std::string magic = "simpleperf:EtmBranchList";
    const auto refusal = [](const std::string& file) {
        answers::BranchLists none;
        const Status added = add_branch_lists(none, bytes_of(file), "f");
        return added ? std::string("read") : added.error().message;
    };
    EXPECT_EQ(refusal("other text"), "f: it is not a branch list");
    EXPECT_EQ(refusal(magic), "f: it is cut short");
    EXPECT_EQ(refusal(magic + std::string("\1\0\0\0", 4)), "f: it is cut short");
    EXPECT_EQ(refusal(magic + std::string("\1\0\0\0\0", 5)), "read");
    EXPECT_EQ(refusal(magic + std::string("\0\0\0\0\0", 5)),
              "f: a branch list of version 0; this Waymark reads versions up to 1");
    EXPECT_EQ(refusal(magic + std::string("\2\1\0\0\0", 5)),
              "f: a branch list of version 258; this Waymark reads versions up to 1");
    EXPECT_EQ(refusal(magic + std::string("\1\0\0\0\2", 5)),
              "f: its messages are compressed in a way (2) that is not known");
    EXPECT_EQ(refusal(magic + std::string("\1\0\0\0\0\2\0\0", 8)), "f: it is cut short");
    EXPECT_EQ(refusal(magic + std::string("\1\0\0\0\0\2\0\0\0x", 10)), "f: it is cut short");
    EXPECT_EQ(refusal(magic + std::string("\1\0\0\0\0\2\0\0\0\x12\5", 11)), "f: the branch list is damaged");
    EXPECT_EQ(refusal(magic + std::string("\1\0\0\0\1\2\0\0\0xx", 11)),
              "f: a compressed message of the branch list is damaged, or unpacks without end");
    // A build ID that is none, and a path with a NUL.
    EXPECT_EQ(refusal(magic + std::string("\1\0\0\0\0\6\0\0\0\x12\4\x12\2xy", 15)), "f: the branch list is damaged");
    EXPECT_EQ(refusal(magic + std::string("\1\0\0\0\0\6\0\0\0\x12\4\x0a\2x\0", 15)), "f: the branch list is damaged");
    ByteCollector sink;
    EXPECT_EQ(write_branch_lists({}, BranchListVersion::old, sink).error().message, "there is no branch");
}

TEST(BranchLists, DamageIsSaid) {
    for (const auto version : {BranchListVersion::old, BranchListVersion::one}) {
        const std::string file =
            written([&](ByteSink& sink) { return write_branch_list(exact_answers(), version, sink); }).text;
        for (std::size_t size = 0; size < file.size(); ++size) {
            answers::BranchLists lists;
            const std::string cut = file.substr(0, size);
            // The older form has no length: if it is cut between two files, it seems to be complete.
            if (!add_branch_lists(lists, bytes_of(cut), "file")) continue;
            EXPECT_TRUE(version == BranchListVersion::old || size == 29) << size;
            EXPECT_LT(lists.size(), 2U);
        }
        for (std::size_t at = 0; at < file.size(); ++at)
            for (unsigned bit = 0; bit < 8; ++bit) {
                std::string damaged = file;
                damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ 1U << bit);
                answers::BranchLists lists;
                static_cast<void>(add_branch_lists(lists, bytes_of(damaged), "file"));
            }
    }
    answers::BranchLists lists;
    const std::string later = "simpleperf:EtmBranchList" + std::string("\2\0\0\0\0", 5);
    EXPECT_EQ(add_branch_lists(lists, bytes_of(later), "file").error().code, Errc::unsupported);
}

TEST(ImageProfile, ALibraryIsNotTakenForTheProgram) {
    Answers a = exact_answers();
    // The program's file was not found: its code is not part of the known code.
    a.functions.clear();
    a.ranges.resize(1);
    a.jumps.resize(1);
    a.images.resize(1);
    ByteCollector sink;
    const auto refused = write_profgen(a, {}, sink);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Errc::not_found);
    EXPECT_NE(refused.error().message.find("the program itself is not among the files that were found and ran"),
              std::string::npos);
    EXPECT_NE(refused.error().message.find("which are libc.so."), std::string::npos) << refused.error().message;
    EXPECT_TRUE(write_profgen(a, {"libc.so"}, sink)) << "it was asked for";
}

/// Which image a profile is of, if none is named.
TEST(ImageProfile, TheProgramIsChosen) {
    struct Ran {
        const char* name;
        bool main;
        std::uint64_t times;
    };
    const auto chosen = [](const std::vector<Ran>& all, bool by_edges = false) {
        Answers a;
        for (const Ran& r : all) {
            const auto image = static_cast<answers::Index>(a.images.size());
            a.images.push_back({.name = r.name});
            a.functions.push_back({r.main ? "main" : "f", "", image, 0x100, 4});
            if (by_edges)
                a.edges.push_back({0x100, 0x104, image, image, Branch::Kind::unconditional, r.times, {}});
            else
                a.ranges.push_back({image, 0x100, 0x104, isa::Isa::a64, 2, r.times, 0, 0});
        }
        const auto image = profile_image(a, "");
        return image ? a.images[*image].name : image.error().message;
    };
    for (const bool by_edges : {false, true}) {
        EXPECT_EQ(chosen({{"a", false, 9}, {"b", true, 5}}, by_edges), "b") << "it has main";
        EXPECT_EQ(chosen({{"a", false, 5}, {"b", false, 9}}, by_edges), "b") << "it ran more";
        EXPECT_EQ(chosen({{"a", true, 0}, {"b", false, 9}}, by_edges), "b") << "it ran at all";
        EXPECT_EQ(chosen({{"a.so", false, 9}, {"b", false, 5}}, by_edges), "b") << "no library";
        EXPECT_EQ(chosen({{"a.so", true, 5}, {"b.so", false, 9}}, by_edges), "a.so") << "a library with main";
    }
    for (const char* library : {"libc.so", "libc.so.6", "ld-linux.so", "ld-2.31", "[vdso]"})
        EXPECT_EQ(chosen({{library, false, 9}, {"b", false, 1}}), "b") << library;
    for (const char* program : {"so", "x.sox", "build", "a.sob.c"})
        EXPECT_EQ(chosen({{program, false, 9}, {"b", false, 1}}), program);
}

TEST(ImageProfile, SaysWhatIsMissing) {
    Answers a = exact_answers();
    ByteCollector sink;
    EXPECT_NE(write_profgen(a, {"nobody"}, sink).error().message.find("there are: libc.so, loop"), std::string::npos);
    a.ranges.clear();
    for (const auto& result : {write_autofdo_text(a, {}, sink), write_profgen(a, {}, sink),
                               write_profgen_script(a, {}, sink), write_branch_list(a, BranchListVersion::old, sink)}) {
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().code, Errc::not_found);
    }
    EXPECT_TRUE(sink.bytes().empty());
}

}  // namespace
}  // namespace waymark::exports
