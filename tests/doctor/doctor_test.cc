// What doctor infers about captures without descriptions, which mistakes of wrong descriptions it finds, and that
// nothing breaks on damage.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "support/corpus.h"
#include "support/sanitized.h"
#include "support/spe_capture.h"
#include "support/temporary_folder.h"
#include "waymark/capture/capture.h"
#include "waymark/capture/not_permitted.h"
#include "waymark/capture/snapshot.h"
#include "waymark/capture/snapshot_sinks.h"
#include "waymark/coresight/formatter.h"
#include "waymark/doctor/examine.h"
#include "waymark/doctor/identify.h"
#include "waymark/etm3/encoder.h"
#include "waymark/etm3/protocol.h"
#include "waymark/flow/summary.h"
#include "waymark/pft/encoder.h"
#include "waymark/pft/protocol.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/packet_counter.h"
#include "waymark/pipeline/run.h"

namespace waymark::doctor {
namespace {

namespace fs = std::filesystem;

const fs::path sort_folder = fs::path(WAYMARK_SOURCE_DIR) / "examples" / "sort";

ExaminationReport examine_bare(const fs::path& file, std::vector<std::string> images = {},
                               std::uint64_t most = sample_bytes) {
    capture::Capture capture;
    capture.path = file;
    capture.buffers.push_back({.name = file.filename().string(), .format = capture::Buffer::Format::unknown});
    capture.buffers.front().files = {file};
    auto session = pipeline::make_session(std::move(capture), {});
    EXPECT_TRUE(session.has_value());
    return examine(*session, false, {std::move(images), most});
}

ExaminationReport examine_folder(const fs::path& folder, std::vector<std::string> images = {}) {
    auto capture = capture::read_snapshot(folder);
    EXPECT_TRUE(capture.has_value()) << capture.error().message;
    auto session = pipeline::make_session(std::move(*capture), {});
    EXPECT_TRUE(session.has_value());
    return examine(*session, true, {std::move(images)});
}

const CaptureFinding* find(const ExaminationReport& report, std::string_view kind) {
    const auto found = std::find_if(report.findings.begin(), report.findings.end(),
                                    [&](const CaptureFinding& f) { return f.kind == kind; });
    return found == report.findings.end() ? nullptr : &*found;
}

const ExaminedSource* source(const ExaminationReport& report, std::uint8_t id) {
    const auto found = std::find_if(report.sources.begin(), report.sources.end(),
                                    [&](const ExaminedSource& s) { return s.trace_id == coresight::TraceId{id}; });
    return found == report.sources.end() ? nullptr : &*found;
}

/// Everything a folder's macrocells deliver, by source.
std::map<std::string, flow::Totals> decode(const fs::path& folder) {
    auto capture = capture::read_snapshot(folder);
    EXPECT_TRUE(capture.has_value());
    const auto session = pipeline::make_session(std::move(*capture), {});
    EXPECT_TRUE(session.has_value());
    std::vector<const pipeline::Source*> selected;
    for (const pipeline::Source& s : session->sources)
        if (s.has_flow()) selected.push_back(&s);
    std::map<std::string, flow::Summary> sums;
    const pipeline::Report report = pipeline::run(*session, selected, [&](const pipeline::StreamInfo& stream) {
        return pipeline::flow_consumer(stream, sums[stream.source.id_text()], pipeline::DecoderKind::fast);
    });
    std::map<std::string, flow::Totals> out;
    for (const auto& [name, sum] : sums) out[name] = sum.totals();
    return out;
}

void expect_sound(const ExaminationReport& report) {
    EXPECT_FALSE(report.verdict.empty());
    for (const CaptureFinding& f : report.findings) {
        EXPECT_FALSE(f.kind.empty());
        EXPECT_FALSE(f.found.empty()) << f.kind;
        EXPECT_FALSE(f.expected.empty()) << f.kind;
        EXPECT_FALSE(f.cause.empty()) << f.kind;
        EXPECT_FALSE(f.advice.empty()) << f.kind;
    }
}

TEST(Doctor, InfersAStrippedCaptureAndWritesASnapshotThatDecodesTheSame) {
    const TemporaryFolder folder;
    const ExaminationReport report =
        examine_bare(sort_folder / "capture" / "trace.bin", {(sort_folder / "sort.elf").string()});
    expect_sound(report);
    ASSERT_EQ(report.sources.size(), 1U);
    EXPECT_EQ(report.sources.front().identity.protocol, &pft::row());
    ASSERT_TRUE(report.sources.front().image.has_value());
    EXPECT_EQ(report.images.front().kind, ImageVerdict::Kind::matches);
    const fs::path out = folder.path() / "snapshot";
    const Status written = write_inferred(report, out);
    ASSERT_TRUE(written.has_value()) << written.error().message;
    const auto was = decode(sort_folder / "capture"), is = decode(out);
    ASSERT_EQ(was.size(), 1U);
    ASSERT_EQ(is.size(), 1U);
    EXPECT_GT(was.begin()->second.ranges, 0U);
    EXPECT_EQ(is.begin()->second.ranges, was.begin()->second.ranges);
    EXPECT_EQ(is.begin()->second.hash, was.begin()->second.hash);
    EXPECT_FALSE(write_inferred(report, out).has_value());  // a folder that contains something is not overwritten
}

// Its registers contain the trace ID already, which is written into the snapshot once.
TEST(Doctor, WritesASnapshotOfAnEte) {
    const TemporaryFolder folder;
    const fs::path from = sort_folder / "capture-aarch64";
    const ExaminationReport report = examine_folder(from);
    const fs::path out = folder.path() / "snapshot";
    const Status written = write_inferred(report, out);
    ASSERT_TRUE(written.has_value()) << written.error().message;
    const auto is = capture::read_snapshot(out);
    ASSERT_TRUE(is.has_value());
    ASSERT_EQ(is->sources.size(), 1U);
    const auto& registers = is->sources.front().registers;
    EXPECT_EQ(std::count_if(registers.begin(), registers.end(), [](const auto& r) { return r.name == "TRCTRACEIDR"; }),
              1);
}

// Without these files, the copy would call code whose tracing was not permitted not executed, and explain would know no
// buffer.
TEST(Doctor, WritesWhatWasNotPermittedAndTheTraceBufferToTheSnapshot) {
    const TemporaryFolder folder;
    const fs::path from = folder.path() / "from", out = folder.path() / "snapshot";
    fs::copy(sort_folder / "capture", from, fs::copy_options::recursive);
    auto capture = capture::read_snapshot(from);
    ASSERT_TRUE(capture.has_value());
    const std::vector<capture::SinkDevice> sinks{
        {"etr", "TMC-ETR", {{"RSZ", 0x400, {}}, {"STS", 0xf, {}}, {"FFCR", 0x3113, {}}}}};
    ASSERT_TRUE(capture::write_snapshot(*capture, sinks, from).has_value());
    const std::string reasons = "waymark-not-permitted 2\nNIDEN=0 (instructions=12, ranges=3)\n";
    std::ofstream(from / capture::not_permitted_file) << reasons;
    const ExaminationReport report = examine_folder(from);
    const Status written = write_inferred(report, out);
    ASSERT_TRUE(written.has_value()) << written.error().message;
    const auto kept = capture::read_snapshot_sinks(out);
    ASSERT_TRUE(kept.has_value());
    EXPECT_EQ(*kept, sinks);
    std::stringstream text;
    text << std::ifstream(out / capture::not_permitted_file).rdbuf();
    EXPECT_EQ(text.str(), reasons);
}

// A complete folder keeps its memory, its names and its registers: the written folder decodes as the original one.
TEST(Doctor, WritesASnapshotOfASnapshotThatDecodesTheSame) {
    for (const char* const name : {"capture", "capture-aarch64"}) {
        const TemporaryFolder folder;
        const fs::path from = sort_folder / name, out = folder.path() / "snapshot";
        const ExaminationReport report = examine_folder(from);
        const Status written = write_inferred(report, out);
        ASSERT_TRUE(written.has_value()) << written.error().message;
        const auto was = decode(from), is = decode(out);
        ASSERT_EQ(is.size(), was.size()) << name;
        for (const auto& [id, totals] : was) {
            ASSERT_TRUE(is.contains(id)) << name << " " << id;
            EXPECT_GT(totals.ranges, 0U) << name;
            EXPECT_EQ(is.at(id).ranges, totals.ranges) << name;
            EXPECT_EQ(is.at(id).hash, totals.hash) << name;
        }
        const auto before = capture::read_snapshot(from), after = capture::read_snapshot(out);
        ASSERT_TRUE(before.has_value() && after.has_value()) << name;
        EXPECT_EQ(after->sources.front().registers, before->sources.front().registers) << name;
        EXPECT_EQ(after->sources.front().core_type, before->sources.front().core_type) << name;
        EXPECT_EQ(after->modules, before->modules) << name;
    }
}

// The bytes of an ETE without what only an ETE sends leave the unit open, but its TRCDEVARCH does not.
TEST(Doctor, TakesFactsFromTheRegistersThatAreGiven) {
    const ExaminationReport report = examine_folder(sort_folder / "capture-aarch64");
    ASSERT_EQ(report.sources.size(), 1U);
    const auto fact = [&](std::string_view what) {
        for (const InferredField& f : report.sources.front().identity.facts)
            if (f.what == what) return f;
        return InferredField{};
    };
    EXPECT_EQ(fact("unit").value, "ETE");
    EXPECT_EQ(fact("unit").certainty, protocol::Certainty::proven);
    EXPECT_EQ(fact("version").value, "ETE 1.0");
    EXPECT_EQ(fact("version").certainty, protocol::Certainty::proven);
    EXPECT_NE(fact("version").proof.find("TRCDEVARCH=0x47705a13"), std::string::npos) << fact("version").proof;
    EXPECT_EQ(fact("timestamps").certainty, protocol::Certainty::proven);
}

// A register that contradicts the bytes proves nothing: the bytes win.
TEST(Doctor, TakesNoFactFromARegisterThatTheBytesContradict) {
    const TemporaryFolder folder;
    const fs::path to = folder.path() / "changed";
    fs::copy(sort_folder / "capture-aarch64", to);
    fs::permissions(to / "source_0.ini", fs::perms::owner_write, fs::perm_options::add);
    const std::vector<std::uint8_t> bytes = support::read_file(to / "source_0.ini");
    const std::string was(bytes.begin(), bytes.end());
    // Without CCI; the trace has cycle counts.
    const std::string text = std::regex_replace(was, std::regex("TRCCONFIGR=0x00009811"), "TRCCONFIGR=0x00009801");
    ASSERT_NE(text, was);
    std::ofstream(to / "source_0.ini") << text;
    const ExaminationReport report = examine_folder(to);
    ASSERT_EQ(report.sources.size(), 1U);
    unsigned found = 0;
    for (const InferredField& f : report.sources.front().identity.facts) {
        if (f.what != "cycle counts") continue;
        ++found;
        EXPECT_EQ(f.value, "yes");
        EXPECT_EQ(f.proof.find("TRCCONFIGR"), std::string::npos) << f.proof;
    }
    EXPECT_EQ(found, 1U);
}

// A description may have the file of a program, as memory and as the copy that names its code, and the map of where it
// was. Both copies are written, and the map stays as it is where the same program is given.
TEST(Doctor, WritesASnapshotThatKeepsMapAndCopies) {
    const TemporaryFolder folder;
    const fs::path from = folder.path() / "from", out = folder.path() / "snapshot";
    fs::copy(sort_folder / "capture", from);
    const fs::path elf = from / "sort.elf";
    fs::copy_file(sort_folder / "sort.elf", elf);
    auto described = capture::read_snapshot(from);
    ASSERT_TRUE(described.has_value());
    described->dumps.push_back({described->dumps.front().core, elf, Address{0x4000'0000}, 0, std::nullopt, {}});
    capture::ModuleMap& map = described->modules;
    map.clock = capture::trace_bytes_clock;
    map.modules.push_back({1, Address{0x8000}, 4096, 0, elf.string(), {}, 7, {}});
    map.copies.push_back({"sort.elf", {}, elf.string()});
    for (const fs::path& each : {from / "trace.bin", from / "memory0.bin"})
        fs::permissions(each, fs::perms::owner_write, fs::perm_options::add);
    const Status changed = capture::write_snapshot(*described, from);
    ASSERT_TRUE(changed.has_value()) << changed.error().message;
    const ExaminationReport report = examine_folder(from, {elf.string()});
    ASSERT_EQ(report.sources.size(), 1U);
    ASSERT_TRUE(report.sources.front().image.has_value());
    const Status written = write_inferred(report, out);
    ASSERT_TRUE(written.has_value()) << written.error().message;
    EXPECT_TRUE(fs::exists(out / "sort.elf"));
    const auto after = capture::read_snapshot(out);
    ASSERT_TRUE(after.has_value());
    EXPECT_EQ(after->modules, map);
}

TEST(Doctor, FindsAShiftedImageAndTheRightOneAmongSeveral) {
    const std::string elf = (sort_folder / "sort.elf").string();
    const std::string other = (sort_folder / "capture" / "trace.bin").string() + "@0x8000";
    const ExaminationReport report = examine_bare(sort_folder / "capture" / "trace.bin", {other, elf + "@0x1000", elf});
    expect_sound(report);
    ASSERT_EQ(report.images.size(), 3U);
    EXPECT_NE(report.images[0].kind, ImageVerdict::Kind::matches);
    ASSERT_EQ(report.images[1].kind, ImageVerdict::Kind::shifted);
    EXPECT_EQ(report.images[1].shift->bytes, 0xfffff000U);
    EXPECT_EQ(report.images[1].argument, elf + "@0x0");
    EXPECT_EQ(report.images[2].kind, ImageVerdict::Kind::matches);
    const CaptureFinding* shift = find(report, "image-shift");
    ASSERT_NE(shift, nullptr);
    EXPECT_NE(shift->advice.find(elf), std::string::npos);
}

TEST(Doctor, FindsARawImageWithoutAnAddress) {
    // Without its first bytes, which identify an ELF file.
    constexpr std::uint64_t head_bytes = 0x54;
    const TemporaryFolder folder;
    const std::vector<std::uint8_t> memory = support::read_file(sort_folder / "capture" / "memory0.bin");
    const std::string raw = folder.write("raw.bin", std::string(memory.begin() + head_bytes, memory.end())).string();
    const ExaminationReport report = examine_bare(sort_folder / "capture" / "trace.bin", {raw});
    ASSERT_EQ(report.images.size(), 1U);
    ASSERT_EQ(report.images[0].kind, ImageVerdict::Kind::shifted);
    const auto capture = capture::read_snapshot(sort_folder / "capture");
    ASSERT_TRUE(capture.has_value());
    EXPECT_EQ(report.images[0].shift->bytes, capture->dumps.front().address.value + head_bytes);
}

/// The sort capture with one place of a description changed.
ExaminationReport with_ini(const TemporaryFolder& folder, const std::string& file, const std::string& old,
                           const std::string& now) {
    const fs::path to = folder.path() / "changed";
    fs::copy(sort_folder / "capture", to);
    fs::permissions(to / file, fs::perms::owner_write, fs::perm_options::add);
    std::ifstream in(to / file);
    std::string text{std::istreambuf_iterator<char>(in), {}};
    in.close();
    const std::size_t at = text.find(old);
    EXPECT_NE(at, std::string::npos) << text;
    if (at != std::string::npos) text.replace(at, old.size(), now);
    std::ofstream(to / file) << text;
    return examine_folder(to);
}

TEST(Doctor, FindsNothingWrongWithARightDescription) {
    const ExaminationReport report = examine_folder(sort_folder / "capture");
    expect_sound(report);
    EXPECT_EQ(report.count(Severity::error), 0U) << report.findings.front().found;
}

/// The sort capture with this number of bits of its trace inverted, and this ETMCR.
ExaminationReport damaged(unsigned seed, unsigned bits, const std::string& etmcr = {}) {
    const TemporaryFolder folder;
    const fs::path to = folder.path() / "damaged";
    fs::copy(sort_folder / "capture", to);
    for (const char* file : {"trace.bin", "source_0.ini"})
        fs::permissions(to / file, fs::perms::owner_write, fs::perm_options::add);
    std::vector<std::uint8_t> trace = support::read_file(to / "trace.bin");
    std::mt19937 random(seed);
    for (unsigned i = 0; i < bits; ++i) trace[random() % trace.size()] ^= static_cast<std::uint8_t>(1U << random() % 8);
    std::ofstream(to / "trace.bin", std::ios::binary)
        .write(reinterpret_cast<const char*>(trace.data()), static_cast<std::streamsize>(trace.size()));
    if (!etmcr.empty()) {
        const std::vector<std::uint8_t> ini = support::read_file(to / "source_0.ini");
        const std::string text(ini.begin(), ini.end());
        std::ofstream(to / "source_0.ini")
            << std::regex_replace(text, std::regex("(ETMCR\\([^)]*\\)=).*"), "$1" + etmcr);
    }
    return examine_folder(to);
}

TEST(Doctor, FindsAWrongReturnStackBesideDamage) {
    unsigned found = 0;
    for (unsigned seed = 1; seed <= 20; ++seed) {
        const ExaminationReport report = damaged(seed, 1, "0x10001000");
        if (const CaptureFinding* stack = find(report, "return-stack")) {
            EXPECT_EQ(stack->expected, "return stack on");
            ++found;
        }
    }
    EXPECT_GE(found, 14U);  // a bit of a length or an ID costs more than the setting
}

TEST(Doctor, FindsWrongFraming) {
    const TemporaryFolder folder;
    const ExaminationReport report = with_ini(folder, "trace.ini", "format=coresight", "format=source_data");
    expect_sound(report);
    ASSERT_NE(find(report, "framing"), nullptr);
    EXPECT_EQ(find(report, "framing")->expected, "format=coresight");
}

TEST(Doctor, FindsAWrongTraceId) {
    const TemporaryFolder folder;
    const ExaminationReport report =
        with_ini(folder, "source_0.ini", "ETMTRACEIDR(id:0x80)=0x00000010", "ETMTRACEIDR(id:0x80)=0x00000022");
    expect_sound(report);
    ASSERT_NE(find(report, "trace-id"), nullptr);
    EXPECT_EQ(find(report, "trace-id")->expected, "ETMTRACEIDR=0x10");
}

TEST(Doctor, IdentifiesBothBoardsWithoutTheirDescriptions) {
    for (const std::string board : {"snowball", "tc2"}) {
        WM_NEEDS_CORPUS("ptm/" + board);
        const TemporaryFolder folder;
        const fs::path from = support::corpus_path("ptm/" + board);
        const fs::path bare = folder.path() / "dump.bin";
        fs::copy_file(from / "cstrace.bin", bare);
        const ExaminationReport report = examine_bare(bare, {(from / "kernel_dump.bin").string() + "@0xC0008000"});
        expect_sound(report);
        ASSERT_EQ(report.buffers.size(), 1U);
        EXPECT_EQ(report.buffers.front().format, capture::Buffer::Format::coresight);
        auto described = capture::read_snapshot(from);
        ASSERT_TRUE(described.has_value());
        const auto session = pipeline::make_session(std::move(*described), {});
        ASSERT_TRUE(session.has_value());
        unsigned checked = 0;
        for (const pipeline::Source& s : session->sources) {
            const ExaminedSource* found = s.trace_id ? source(report, s.trace_id->value) : nullptr;
            if (found == nullptr) continue;
            const bool pft = s.protocol == &pft::row();
            EXPECT_EQ(found->identity.protocol == &pft::row(), pft) << board << " " << s.label();
            if (!pft || found->identity.protocol != &pft::row()) continue;
            const pft::Config &is = pft::config_of(*found->configuration), &was = pft::config_of(*s.configuration);
            ++checked;
            EXPECT_EQ(is.cycle_accurate, was.cycle_accurate) << s.label();
            EXPECT_EQ(is.context_id_bytes, was.context_id_bytes) << s.label();
            EXPECT_EQ(is.timestamp_bytes, was.timestamp_bytes) << s.label();
            EXPECT_EQ(is.gray_timestamps, was.gray_timestamps) << s.label();
            if (found->head)
                std::printf("%s %s: head of %llu bytes, %llu recovered, confidence %.4f: %s\n", board.c_str(),
                            s.label().c_str(), static_cast<unsigned long long>(found->head->sync.value),
                            static_cast<unsigned long long>(found->head->bytes()), found->head->confidence,
                            std::string(name(found->head->outcome)).c_str());
        }
        EXPECT_GE(checked, 1U) << board;
        const fs::path out = folder.path() / "snapshot";
        ASSERT_TRUE(write_inferred(report, out).has_value());
        const auto was = decode(from), is = decode(out);
        for (const auto& [id, totals] : is) {
            ASSERT_TRUE(was.contains(id)) << id;
            EXPECT_EQ(totals.hash, was.at(id).hash) << board << " " << id;
        }
    }
}

TEST(Doctor, EndsOnAnythingAndSaysSo) {
    const TemporaryFolder folder;
    const std::vector<std::uint8_t> sound = support::read_file(sort_folder / "capture" / "trace.bin");
    const std::string elf = (sort_folder / "sort.elf").string();
    std::mt19937_64 random(7);
    for (unsigned i = 0; i < sized(24U, 9U); ++i) {
        std::vector<std::uint8_t> bytes = sound;
        if (i % 3 == 0) {
            bytes.resize(1 + random() % 6000);
            for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(random());
        } else {
            for (unsigned k = 0; k < 1 + i; ++k)
                bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1U << random() % 8);
            if (i % 3 == 2)
                bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(random() % bytes.size()));
        }
        const fs::path file = folder.path() / ("damaged" + std::to_string(i));
        std::ofstream(file, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        expect_sound(examine_bare(file, {elf}));
    }
}

TEST(Doctor, MissesNoCutAmidAFrame) {
    const TemporaryFolder folder;
    fs::copy(sort_folder / "capture", folder.path(), fs::copy_options::recursive);
    const fs::path trace = folder.path() / "trace.bin";
    fs::permissions(trace, fs::perms::owner_write, fs::perm_options::add);
    const std::uint64_t whole = fs::file_size(trace);
    EXPECT_FALSE(examine_folder(folder.path()).cut);
    for (const std::uint64_t cut : {1U, 15U, 16U, 17U, 31U, 32U, 1000U}) {
        SCOPED_TRACE(cut);
        fs::resize_file(trace, (whole & ~std::uint64_t{15}) - cut);
        const ExaminationReport report = examine_folder(folder.path());
        expect_sound(report);
        EXPECT_EQ(report.cut, cut % 16 != 0);
        EXPECT_EQ(find(report, "cut") != nullptr, cut % 16 != 0);
        EXPECT_TRUE(report.recognised);
    }
    fs::resize_file(trace, 0);
    EXPECT_TRUE(examine_folder(folder.path()).cut);
}

TEST(Doctor, SaysDecodesOnlyWhereSomethingDecodes) {
    const TemporaryFolder folder;
    fs::copy(sort_folder / "capture", folder.path(), fs::copy_options::recursive);
    fs::remove(folder.path() / "memory0.bin");
    const ExaminationReport report = examine_folder(folder.path());
    expect_sound(report);
    const CaptureFinding* missing = find(report, "image-missing");
    ASSERT_NE(missing, nullptr);
    EXPECT_EQ(missing->severity, Severity::error);
    EXPECT_NE(missing->found.find("memory0.bin is not there"), std::string::npos) << missing->found;
    EXPECT_EQ(report.verdict.find("decodes"), std::string::npos) << report.verdict;
    EXPECT_FALSE(report.cut);
    // If the program is given in another way, it replaces the program of the capture.
    const ExaminationReport delivered = examine_folder(folder.path(), {(sort_folder / "sort.elf").string()});
    ASSERT_NE(find(delivered, "image-missing"), nullptr);
    EXPECT_EQ(find(delivered, "image-missing")->severity, Severity::note);
    EXPECT_EQ(delivered.count(Severity::error), 0U);
    // A bare file without a program.
    EXPECT_NE(examine_bare(sort_folder / "capture" / "trace.bin").verdict.find("not decoded without"),
              std::string::npos);
}

TEST(Doctor, MissesNoCutOfAProfile) {
    const TemporaryFolder folder;
    support::SpeFile made;
    for (unsigned i = 0; i < 40; ++i) made.samples.push_back({.time = i + 1, .pc = 0x400000 + 4 * i, .total = 9});
    const std::vector<std::uint8_t> whole = made.build();
    const auto sound = examine_perf(open::identify(folder.write("whole", whole).string()));
    ASSERT_TRUE(sound.has_value()) << sound.error().message;
    EXPECT_FALSE(sound->cut);
    EXPECT_TRUE(sound->recognised);
    EXPECT_EQ(sound->count(Severity::error) + sound->count(Severity::warning), 0U) << sound->findings.front().found;
    for (std::size_t size = 8; size < whole.size(); size += 1 + size / 40) {
        SCOPED_TRACE(size);
        const std::vector part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
        const auto cut = examine_perf(open::identify(folder.write("cut", part).string()));
        if (!cut) continue;  // too little for a file: an error
        expect_sound(*cut);
        EXPECT_TRUE(cut->cut);
        EXPECT_NE(cut->count(Severity::error), 0U);
        EXPECT_EQ(cut->verdict.find("decodes"), std::string::npos) << cut->verdict;
    }
}

/// The words of a .hex file of tests/cli/fixtures: little-endian, comments from #.
std::vector<std::uint8_t> read_hex(const fs::path& file) {
    std::vector<std::uint8_t> out;
    std::ifstream in(file);
    for (std::string line; std::getline(in, line);) {
        std::istringstream tokens(line.substr(0, line.find('#')));
        for (std::string token; tokens >> token;)
            for (std::size_t at = token.size(); at >= 2; at -= 2)
                out.push_back(static_cast<std::uint8_t>(std::stoul(token.substr(at - 2, 2), nullptr, 16)));
    }
    return out;
}

TEST(Doctor, MissesNoCutOfADpuBuffer) {
    const fs::path fixture = fs::path(WAYMARK_SOURCE_DIR) / "tests" / "cli" / "fixtures" / "dpu";
    const TemporaryFolder folder;
    fs::copy(fixture / "dpu.ini", folder.path());
    const std::vector<std::uint8_t> whole = read_hex(fixture / "vtb.bin.hex");
    ASSERT_EQ(whole.size(), 128U);
    folder.write("vtb.bin", whole);
    const auto sound = examine_dpu(folder.path());
    ASSERT_TRUE(sound.has_value()) << sound.error().message;
    EXPECT_EQ(sound->count(Severity::error) + sound->count(Severity::warning), 0U) << sound->findings.front().found;
    EXPECT_TRUE(sound->recognised);
    for (std::size_t size = 1; size < whole.size(); ++size) {
        SCOPED_TRACE(size);
        folder.write("vtb.bin", std::vector(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
        const auto cut = examine_dpu(folder.path());
        ASSERT_TRUE(cut.has_value()) << cut.error().message;
        expect_sound(*cut);
        EXPECT_TRUE(cut->cut);
        EXPECT_NE(find(*cut, "cut"), nullptr);
        EXPECT_EQ(cut->verdict.find("decodes"), std::string::npos) << cut->verdict;
    }
}

TEST(Doctor, FindsEntriesOfADpuThatDoNotAddUp) {
    const fs::path fixture = fs::path(WAYMARK_SOURCE_DIR) / "tests" / "cli" / "fixtures" / "dpu";
    const TemporaryFolder folder;
    std::ifstream in(fixture / "dpu.ini");
    std::string ini{std::istreambuf_iterator<char>(in), {}};
    const std::string final = "A0=0x7fffe7bd", other = "A0=0x7fffe000";
    ASSERT_NE(ini.find(final), std::string::npos);
    // The final value is different, and the program is missing too.
    ini.replace(ini.find(final), final.size(), other);
    folder.write("dpu.ini", ini + "\n[images]\nimage0=program.elf\n");
    std::vector<std::uint8_t> bytes = read_hex(fixture / "vtb.bin.hex");
    bytes[9] = 0x10;  // an impossible reading
    folder.write("vtb.bin", bytes);
    const auto report = examine_dpu(folder.path());
    ASSERT_TRUE(report.has_value()) << report.error().message;
    expect_sound(*report);
    EXPECT_FALSE(report->cut);
    EXPECT_NE(find(*report, "image-missing"), nullptr);
    EXPECT_NE(find(*report, "doubtful-readings"), nullptr);
}

TEST(Doctor, TakesNeitherTextNorNoiseForFrames) {
    const TemporaryFolder folder;
    const fs::path noise = folder.path() / "noise.bin";
    std::mt19937 random(5);
    std::ofstream(noise, std::ios::binary) << [&] {
        std::string bytes(50000, ' ');
        for (char& byte : bytes) byte = static_cast<char>(random());
        return bytes;
    }();
    for (const fs::path& file : {noise, fs::path(WAYMARK_SOURCE_DIR) / "README.md"}) {
        const ExaminationReport report = examine_bare(file);
        SCOPED_TRACE(file.string());
        ASSERT_EQ(report.buffers.size(), 1U);
        EXPECT_NE(report.buffers.front().format, capture::Buffer::Format::coresight);
        EXPECT_EQ(report.sources.size(), file == noise ? 1U : 0U);
        EXPECT_FALSE(report.recognised);
        EXPECT_EQ(find(report, "text") != nullptr, file != noise);
        EXPECT_EQ(report.count(Severity::warning), 0U);
        expect_sound(report);
    }
}

// Both protocols can read these bytes; ETMv3 gives fewer places that are far apart.
TEST(Doctor, ADescribedSourceIsAnotherProtocolOnlyIfItsOwnFails) {
    const auto stretches = [](bool fails) {
        const etm3::Config config{.context_id_bytes = 1};
        protocol::Stretch out;
        for (std::uint32_t n = 0; n < 8; ++n) {
            etm3::encode(out.bytes, etm3::ASync{}, config);
            etm3::ISync sync;
            sync.address = 0x10000 + 0x134 * n;
            sync.context_id = 0x10;
            etm3::encode(out.bytes, sync, config);
            for (unsigned i = 0; i < 4; ++i) etm3::encode(out.bytes, etm3::PHeader{0x84}, config);
            if (fails && n == 2) out.bytes.push_back(0x7e);  // the entry of an exception, which a PTM does not have
        }
        out.head = true;
        out.offsets.add({0}, {0});
        return std::vector{out};
    };
    EXPECT_EQ(identify(stretches(false)).protocol, &etm3::row());
    EXPECT_EQ(identify(stretches(false), false, &pft::row()).protocol, &pft::row());
    EXPECT_EQ(identify(stretches(true), false, &pft::row()).protocol, &etm3::row());
    EXPECT_EQ(identify(stretches(false), false, &etm3::row()).protocol, &etm3::row());
}

/// Program Flow Trace of a unit whose ETMCR is 0: A-sync, I-sync and a thousand atoms, again and again.
std::vector<std::uint8_t> atoms(unsigned thousands) {
    const pft::Config config;
    std::vector<std::uint8_t> out;
    for (unsigned i = 0; i < thousands; ++i) {
        pft::encode(out, pft::ASync{}, config);
        pft::ISync isync;
        isync.address_31_1 = 0x8000 >> 1;
        isync.reason = i == 0 ? pft::ISyncReason::trace_enabled : pft::ISyncReason::periodic;
        pft::encode(out, isync, config);
        for (unsigned k = 0; k < 1000; ++k)
            pft::encode(out, pft::Atom{.outcome = {.atoms = {5, 0}, .cycles = 0}}, config);
    }
    return out;
}

capture::Capture described(const fs::path& file, capture::Buffer::Format format, std::uint64_t etmcr,
                           const std::vector<std::uint8_t>& ids) {
    capture::RawOptions raw;
    raw.format = format;
    raw.source_type = "PTM1.1";
    raw.registers = {{"ETMCR", etmcr}, {"ETMCCER", 0}, {"ETMIDR", 0x411cf312}, {"ETMTRACEIDR", ids.front()}};
    capture::Capture out = capture::raw_capture(file, raw);
    for (std::size_t i = 1; i < ids.size(); ++i) {
        capture::Source source = out.sources.front();
        source.name += std::to_string(i);
        source.registers.back().value = ids[i];
        out.buffers.front().sources.push_back(source.name);
        out.sources.push_back(source);
    }
    return out;
}

// Zeros with a few other bytes look like frames of a source. Findings about the file remain.
TEST(Doctor, KeepsFindingsOfFilesWhereItForgetsSources) {
    const TemporaryFolder folder;
    std::string bytes(16384, '\0');
    for (const std::size_t at : {0x1000U, 0x1800U, 0x2400U}) bytes[at] = 0x21, bytes[at + 1] = 0x55;
    capture::Capture capture =
        described(folder.write("zeros.bin", bytes), capture::Buffer::Format::coresight, 0, {0x40});
    capture.buffers.front().length = bytes.size() + 64;
    capture.buffers.front().other_sources = true;
    capture.problems.push_back({"trace.ini", 3, "A line is not known.", {}, capture::Problem::Kind::names});
    auto session = pipeline::make_session(std::move(capture), {});
    ASSERT_TRUE(session.has_value());
    const ExaminationReport report = examine(*session, true, {});
    EXPECT_TRUE(report.sources.empty());
    EXPECT_NE(find(report, "hardly-written"), nullptr);
    EXPECT_NE(find(report, "cut"), nullptr);
    EXPECT_TRUE(std::any_of(report.findings.begin(), report.findings.end(), [](const CaptureFinding& f) {
        return f.found.find("A line is not known.") != std::string::npos;
    }));
    for (const CaptureFinding& f : report.findings) EXPECT_NE(f.source, "source_10") << f.kind << ": " << f.found;
}

pipeline::Report count_packets(const pipeline::Session& session) {
    const auto selected = session.select({});
    return pipeline::run(session, *selected, [](const pipeline::StreamInfo& stream) {
        return std::make_unique<pipeline::PacketCounter>(stream);
    });
}

// Sentences on damaged frames come from the pipeline; flow, info and report print them too.
TEST(Doctor, SaysOfDamagedFramesWhatThePipelineSays) {
    const TemporaryFolder folder;
    const std::vector<std::uint8_t> a = atoms(sized(12U, 4U)), b = atoms(sized(3U, 1U));
    std::vector<std::uint8_t> frames;
    coresight::Formatter formatter(frames);
    for (std::size_t i = 0; 3 * i < b.size(); ++i) {
        formatter.add(coresight::TraceId{0x10}, Bytes(a).subspan(12 * i, std::min<std::size_t>(12, a.size() - 12 * i)));
        formatter.add(coresight::TraceId{0x11}, Bytes(b).subspan(3 * i, std::min<std::size_t>(3, b.size() - 3 * i)));
    }
    formatter.flush();
    std::vector<std::size_t> id_bytes;
    for (std::size_t at = 0; at < frames.size(); at += 2)
        if (at % 16 != 15 && (frames[at] & 1) != 0) id_bytes.push_back(at);
    const std::size_t at = id_bytes[id_bytes.size() / 2];
    for (const auto& [id, kind] : {std::pair{0x70U, "reserved-id"},
                                   {0x7cU, "reserved-id"},
                                   {0x00U, "stray-bytes"},
                                   {0x7dU, "stray-bytes"},
                                   {0x33U, "damaged-id"}}) {
        SCOPED_TRACE(id);
        std::vector<std::uint8_t> damaged = frames;
        damaged[at] = static_cast<std::uint8_t>(id << 1 | 1);
        const fs::path file = folder.write("damaged.bin", damaged);
        const auto session =
            pipeline::make_session(described(file, capture::Buffer::Format::coresight, 0, {0x10, 0x11}), {});
        ASSERT_TRUE(session.has_value());
        const pipeline::Report pipeline = count_packets(*session);
        const auto damage = pipeline::stray_damage(pipeline.buffers.front());
        ASSERT_EQ(damage.size(), 1U);
        const ExaminationReport report = examine(*session, true);
        expect_sound(report);
        const CaptureFinding* finding = find(report, kind);
        ASSERT_NE(finding, nullptr);
        EXPECT_EQ(finding->offset, damage.front().first);
        EXPECT_EQ(finding->found, damage.front().found);
        EXPECT_GT(finding->offset->value, at);
        EXPECT_LE(finding->offset->value, at + 16);
        EXPECT_EQ(find(report, "unknown-id"), nullptr);
        // Neither a description nor its absence makes frames whole.
        if (id != 0x33) {
            const ExaminationReport bare = examine_bare(file);
            ASSERT_NE(find(bare, kind), nullptr);
            EXPECT_EQ(find(bare, kind)->found, finding->found);
            EXPECT_EQ(find(bare, kind)->offset, finding->offset);
        }
    }
    const auto whole = pipeline::make_session(
        described(folder.write("whole.bin", frames), capture::Buffer::Format::coresight, 0, {0x10, 0x11}), {});
    const ExaminationReport report = examine(*whole, true);
    for (const char* kind : {"reserved-id", "stray-bytes", "damaged-id", "silence", "packets-cut-in-two"})
        EXPECT_EQ(find(report, kind), nullptr) << kind;
}

// Pieces of a large buffer are examined one by one, but common problems are one finding.
TEST(Doctor, CutPacketsOfSampledPiecesAreOneFinding) {
    const TemporaryFolder folder;
    std::vector<std::uint8_t> trace;
    for (unsigned i = 0; i < 400; ++i) {
        trace.insert(trace.end(), {0, 0, 0, 0, 0, 0x80});
        for (unsigned k = 0; k < 40; ++k) trace.insert(trace.end(), {0x08, 0x00, 0x80, 0x00, 0x00, 0x01});
    }
    std::vector<std::uint8_t> frames;
    coresight::Formatter formatter(frames);
    formatter.add(coresight::TraceId{0x10}, trace);
    formatter.flush();
    constexpr std::uint64_t most = 16 << 10;
    ASSERT_GT(frames.size(), 4 * most);
    // Two frames are lost, in the first piece and in the last.
    const std::size_t lost[] = {512, frames.size() / 16 * 16 - 512};
    for (const std::size_t at : lost)
        for (std::size_t i = 0; i < 16; i += 4) {
            constexpr std::uint8_t full_sync[] = {0xff, 0xff, 0xff, 0x7f};
            std::copy(std::begin(full_sync), std::end(full_sync), frames.begin() + static_cast<std::ptrdiff_t>(at + i));
        }
    const fs::path file = folder.write("large.bin", frames);
    const auto session = pipeline::make_session(described(file, capture::Buffer::Format::coresight, 0, {0x10}), {});
    ASSERT_TRUE(session.has_value());
    const ExaminationReport report = examine(*session, true, {{}, most});
    const auto is_cut = [](const CaptureFinding& f) { return f.kind == "packets-cut-in-two"; };
    ASSERT_EQ(std::count_if(report.findings.begin(), report.findings.end(), is_cut), 1);
    const CaptureFinding* finding = find(report, "packets-cut-in-two");
    ASSERT_TRUE(finding->offset.has_value());
    EXPECT_LE(finding->offset->value, lost[0]);
    EXPECT_GT(finding->offset->value, lost[0] - 16);
}

TEST(Doctor, FindsASourceThatFallsSilentInsideAPacket) {
    const TemporaryFolder folder;
    std::vector<std::uint8_t> a = atoms(1);
    const std::vector<std::uint8_t> b = atoms(4);
    a.push_back(0x08);  // an I-sync that is cut
    for (const std::size_t rest : {2000U, 20U}) {
        std::vector<std::uint8_t> frames;
        coresight::Formatter formatter(frames);
        formatter.add(coresight::TraceId{0x11}, Bytes(b).first(b.size() - rest));
        formatter.add(coresight::TraceId{0x10}, a);
        formatter.add(coresight::TraceId{0x11}, Bytes(b).last(rest));
        formatter.flush();
        const fs::path file = folder.write("silent.bin", frames);
        const auto session =
            pipeline::make_session(described(file, capture::Buffer::Format::coresight, 0, {0x10, 0x11}), {});
        ASSERT_TRUE(session.has_value());
        const pipeline::Report pipeline = count_packets(*session);
        const auto silence = pipeline::silence_of(pipeline.streams.front());
        ASSERT_EQ(silence.has_value(), rest == 2000);
        for (const ExaminationReport& report : {examine(*session, true), examine_bare(file)}) {
            expect_sound(report);
            const CaptureFinding* finding = find(report, "silence");
            ASSERT_EQ(finding != nullptr, rest == 2000);
            // Where recording stops, a cut packet is normal.
            EXPECT_EQ(find(report, "cut-packet") != nullptr, rest != 2000);
            if (finding == nullptr) continue;
            EXPECT_EQ(finding->offset, silence->first);
            EXPECT_EQ(finding->found, silence->found);
        }
    }
}

// The rule of RunTest.TheLastPacketKeepsABytePutForAnEndMark, here for doctor.
TEST(Doctor, TheLastPacketKeepsABytePutForAnEndMark) {
    struct Case {
        std::vector<std::uint8_t> end;
        std::uint64_t etmcr, padding;
    };
    const Case cases[] = {
        {{0x3c, 0x01}, 1U << 30, 0},                                // VMID 1
        {{0x3c, 0x01, 0x01, 0x00}, 1U << 30, 2},                    // and an end mark
        {{0x6e, 0x01}, 1U << 14, 0},                                // Context ID 1
        {{0x6e, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00}, 3U << 14, 2},  // of four bytes, and an end mark
        {{0xc0, 0x01}, 1U << 12, 0},                                // an atom with 16 cycles
        {{0x84, 0x01, 0x00}, 0, 2},
    };
    const TemporaryFolder folder;
    for (const Case& c : cases) {
        SCOPED_TRACE(c.end.size());
        std::vector<std::uint8_t> bytes{0, 0, 0, 0, 0, 0x80, 0x08, 0x00, 0x80, 0x00, 0x00, 0x01};
        if (c.etmcr == 1U << 14) bytes.push_back(0x07);
        if (c.etmcr == 3U << 14) bytes.insert(bytes.end(), 4, 0x07);
        bytes.insert(bytes.end(), c.end.begin(), c.end.end());
        const auto session = pipeline::make_session(
            described(folder.write("bare.bin", bytes), capture::Buffer::Format::source_data, c.etmcr, {0x10}), {});
        ASSERT_TRUE(session.has_value());
        ASSERT_EQ(count_packets(*session).streams.front().padding, c.padding);
        const ExaminationReport report = examine(*session, true);
        ASSERT_EQ(report.sources.size(), 1U);
        EXPECT_EQ(report.sources.front().bytes, bytes.size() - c.padding);
        EXPECT_EQ(find(report, "cut-packet"), nullptr);
    }
}

TEST(Doctor, LooksAtABoundedPartOfALargeDump) {
    const TemporaryFolder folder;
    const fs::path file = folder.path() / "large.bin";
    { std::ofstream(file, std::ios::binary).put(0); }
    fs::resize_file(file, std::uint64_t{5} << 30);  // sparse
    const auto sample = take_sample(std::vector{file}, std::uint64_t{1} << 20);
    ASSERT_TRUE(sample.has_value());
    EXPECT_LE(sample->bytes(), std::uint64_t{1} << 20);
    EXPECT_EQ(sample->size_bytes, std::uint64_t{5} << 30);
    EXPECT_EQ(sample->pieces.size(), sample_pieces);
    EXPECT_EQ(sample->pieces.back().first.value + sample->pieces.back().bytes.size(), std::uint64_t{5} << 30);
    EXPECT_FALSE(sample->whole());
}

}  // namespace
}  // namespace waymark::doctor
