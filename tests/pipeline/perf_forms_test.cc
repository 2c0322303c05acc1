// One recording, in every form in which perf and simpleperf store it, gives the same flow (docs/spec/perf-cs-etm.md,
// section 1.8): folders of `perf record --threads`, pipes, compressed records, compressed trace, copies of /proc/kcore.
#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "support/perf_capture.h"
#include "support/perf_clones.h"
#include "support/perf_file.h"

namespace waymark::pipeline {
namespace {

using Form = PerfWriter::Form;

std::vector<std::uint8_t> zstd(const std::vector<std::uint8_t>& bytes) {
    std::vector<std::uint8_t> out(ZSTD_compressBound(bytes.size()));
    out.resize(ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), 1));
    return out;
}

class PerfForms : public PerfCapture {
protected:
    explicit PerfForms(Form form = Form::file) : PerfCapture(cs_etm_attrs(), form) {}
    /// Two processes on two CPUs, with maps that change.
    void record() {
        const std::string a = program("a", 1), b = program("b", 2);
        process(10);
        process(20);
        map(10, 0x500040, a, 50);
        map(20, 0x500040, b, 50);
        range(0, once(0x500040, 10) + once(0x500040, 20), 0, 100);
        marks_.push_back(w_.size());
        map(20, 0x900040, a, 110);
        range(1, once(0x900040, 20), 0x100, 120);
        marks_.push_back(w_.size());
        map(10, 0x500040, b, 130);
        range(0, once(0x500040, 10) + once(0x500040, 20), 0, 200);
        w_.finished_round();
        marks_.push_back(w_.size());
    }
    static void expect_all(const Session& session) {
        const Ran ran = run(session, Addresses::as_they_were);
        ASSERT_EQ(ran.delivered.size(), 2U);
        EXPECT_EQ(ran.delivered.at("cpu0 aux_cpu0").ranges,
                  (Ranges{"0x500040+2", "0x500040+3", "0x500040+3", "0x500040+3"}));
        EXPECT_EQ(ran.delivered.at("cpu1 aux_cpu1").ranges, Ranges{"0x900040+2"});
        EXPECT_TRUE(ran.missing.empty());
        for (const BufferReport& buffer : ran.report.buffers) EXPECT_FALSE(buffer.error.has_value());
        EXPECT_FALSE(says(session, "could not be read"));
    }
    std::vector<std::uint64_t> marks_;
};

TEST_F(PerfForms, File) {
    record();
    expect_all(open());
}

TEST_F(PerfForms, CompressedFile) {
    record();
    write("perf.data.zst", zstd(finished()));
    expect_all(open(folder_.path() / "perf.data.zst"));
}

/// The files of `perf record --threads`: the records of each reader in a separate file, without a header.
TEST_F(PerfForms, FolderOfThreads) {
    record();
    const std::vector<std::uint8_t> whole = finished();
    const auto part = [&](std::uint64_t from, std::uint64_t to) {
        return std::vector<std::uint8_t>(whole.begin() + static_cast<std::ptrdiff_t>(from),
                                         whole.begin() + static_cast<std::ptrdiff_t>(to));
    };
    std::vector<std::uint8_t> data = part(0, marks_[0]);
    const std::uint64_t begin = marks_[0];
    // The header states the length of the data; features are omitted.
    std::uint64_t data_at = 0;
    std::memcpy(&data_at, &data[40], 8);
    const std::uint64_t bytes = begin - data_at;
    std::memcpy(&data[48], &bytes, 8);
    std::fill(data.begin() + 72, data.begin() + 104, std::uint8_t{0});
    std::filesystem::create_directory(folder_.path() / "perf.dir");
    write("perf.dir/data", data);
    write("perf.dir/data.0", part(marks_[0], marks_[1]));
    write("perf.dir/data.1", {});
    write("perf.dir/data.2", part(marks_[1], marks_[2]));
    ASSERT_TRUE(capture::perf::is_perf_folder(folder_.path() / "perf.dir"));
    expect_all(open(folder_.path() / "perf.dir"));

    // A missing file of a thread is reported, and all other data are there.
    std::filesystem::remove(folder_.path() / "perf.dir/data.2");
    const Ran ran = run(open(folder_.path() / "perf.dir"), Addresses::as_they_were);
    EXPECT_EQ(ran.delivered.at("cpu0 aux_cpu0").ranges, (Ranges{"0x500040+2", "0x500040+3"}));
}

/// A thread whose maps were lost runs the files given with an address; where a file is mapped, the mapped file ran.
TEST_F(PerfForms, WhatIsGivenWithAnAddressIsWhereNothingIsMapped) {
    const std::string a = program("a", 1), b = program("b", 2);
    process(10);
    process(20);
    map(10, 0x500040, a, 50);
    range(0, once(0x500040, 10) + once(0x700040, 10) + once(0x500040, 20) + once(0x700040, 20), 0, 100);
    write("perf.data", finished());
    const auto ranges = [&](std::vector<std::string> images) {
        SessionOptions options;
        options.images = std::move(images);
        const Session session = open(folder_.path() / "perf.data", options);
        return run(session, Addresses::as_they_were).delivered.at("cpu0 aux_cpu0").ranges;
    };
    const Ranges nothing{"0x500040+2", "none at 0x700040", "none at 0x500040", "none at 0x700040"};
    EXPECT_EQ(ranges({}), nothing);
    EXPECT_EQ(ranges({b}), nothing);
    EXPECT_EQ(ranges({b + "@0x6ff000"}), (Ranges{"0x500040+2", "0x700040+3", "none at 0x500040", "0x700040+3"}));
}

class PerfPipe : public PerfForms {
protected:
    PerfPipe() : PerfForms(Form::pipe) {}
};

TEST_F(PerfPipe, Pipe) {
    record();
    const std::vector<std::uint8_t> bytes = finished();
    ASSERT_EQ(bytes[8], 16) << "the header of a pipe";
    write("pipe.data", bytes);
    expect_all(open(folder_.path() / "pipe.data"));
}

TEST_F(PerfPipe, CompressedRecords) {
    record();
    const std::vector<std::uint8_t> bytes = finished();
    for (const auto type : {capture::perf::Type::compressed, capture::perf::Type::compressed2})
        for (const std::size_t piece : {1U, 50U, 10000U}) {
            SCOPED_TRACE(testing::Message() << static_cast<unsigned>(type) << " by " << piece);
            write("packed.data", support::compress_records(bytes, type, piece));
            expect_all(open(folder_.path() / "packed.data"));
        }
}

/// simpleperf -z: the trace of each AUXTRACE record is compressed, and no field states it.
TEST_F(PerfForms, CompressedTrace) {
    const std::string a = program("a", 1), b = program("b", 2);
    // By its features, the file comes from simpleperf.
    constexpr auto meta_info = static_cast<capture::perf::Feature>(129);
    w_.feature(meta_info, {'k', 0, 'v', 0});
    process(10);
    map(10, 0x500040, a, 50);
    std::uint64_t at = 0;
    for (const std::uint64_t time : {100U, 200U}) {
        // An AUX range in two AUXTRACE records.
        const std::vector<std::uint8_t> trace = support::frames(0x10, once(0x500040, 10));
        const auto middle = trace.begin() + 16;
        w_.aux({at, trace.size(), 0, {}}, {1, 1, 0, time, 0});
        for (const auto& [piece, first] : {std::pair{std::vector<std::uint8_t>(trace.begin(), middle), at},
                                           std::pair{std::vector<std::uint8_t>(middle, trace.end()), at + 16}}) {
            Chunk c;
            c.cpu = 0;
            c.ring = first;
            w_.auxtrace(c, zstd(piece));
        }
        at += trace.size();
        map(10, 0x500040, b, time + 50);
    }
    const Ran ran = run(open(), Addresses::as_they_were);
    EXPECT_EQ(ran.delivered.at("cpu0 aux_cpu0").ranges, (Ranges{"0x500040+2", "0x500040+3"}));
    for (const BufferReport& buffer : ran.report.buffers) EXPECT_FALSE(buffer.error.has_value());
}

// ---- the kernel

constexpr std::uint64_t kernel_address = 0xffff'8000'0801'0000, linked_address = 0xffff'8000'0800'0000;

class PerfKernel : public PerfForms {
protected:
    /// A vmlinux whose code begins at _text: `nops`, and a branch to the first one. The running kernel is elsewhere.
    std::vector<std::uint8_t> vmlinux(unsigned nops) {
        TinyElf elf;
        elf.is_64 = true;
        elf.machine = EM_AARCH64;
        TinyElf::Segment segment;
        segment.address = linked_address;
        segment.bytes = code_of(nops);
        elf.segments.push_back(segment);
        elf.symbols.push_back({"_text", linked_address, 0});
        elf.symbols.push_back({"loop_of_the_kernel", linked_address, 4 * (nops + 1)});
        return elf.build();
    }
    /// A copy of /proc/kcore: the kernel's real memory.
    std::vector<std::uint8_t> kcore(unsigned nops) {
        TinyElf elf;
        elf.is_64 = true;
        elf.machine = EM_AARCH64;
        elf.type = ET_CORE;
        TinyElf::Segment segment;
        segment.address = kernel_address;
        segment.bytes = code_of(nops);
        elf.segments.push_back(segment);
        return elf.build();
    }
    static std::vector<std::uint8_t> code_of(unsigned nops) {
        std::vector<std::uint8_t> out;
        for (unsigned i = 0; i <= nops; ++i) {
            const std::uint32_t word = i < nops ? nop : 0x14000000 | ((0U - nops) & 0x3ffffff);
            for (unsigned k = 0; k < 32; k += 8) out.push_back(static_cast<std::uint8_t>(word >> k));
        }
        return out;
    }
    void record() {
        Mapping kernel;
        kernel.pid = capture::perf::nobody;
        kernel.address = {kernel_address};
        kernel.bytes = 0x10000;
        kernel.file_offset = kernel_address;
        kernel.file = "[kernel.kallsyms]_text";
        w_.mapping(kernel, {capture::perf::nobody, 0, 0, 0, 1});
        process(10);
        range(0, once(kernel_address, 10), 0, 100);
    }
    static Ranges ranges(const Session& session) {
        return run(session, Addresses::as_they_were).delivered.at("cpu0 aux_cpu0").ranges;
    }
};

TEST_F(PerfKernel, VmlinuxBelowARoot) {
    record();
    write("perf.data", finished());
    for (const char* place : {"vmlinux", "boot/vmlinux", "usr/lib/debug/vmlinux"}) {
        SCOPED_TRACE(place);
        const auto root = folder_.path() / "root";
        std::filesystem::create_directories((root / place).parent_path());
        write(std::string("root/") + place, vmlinux(2));
        SessionOptions options;
        options.files.symfs = root;
        EXPECT_EQ(ranges(open(folder_.path() / "perf.data", options)), Ranges{"0xffff800008010000+3"});
        std::filesystem::remove_all(root);
    }
    EXPECT_EQ(ranges(open(folder_.path() / "perf.data")), Ranges{"none at 0xffff800008010000"});
}

TEST_F(PerfKernel, VmlinuxByOption) {
    record();
    write("perf.data", finished());
    write("vmlinux", vmlinux(2));
    SessionOptions options;
    options.images = {(folder_.path() / "vmlinux").string()};
    const Session session = open(folder_.path() / "perf.data", options);
    EXPECT_EQ(ranges(session), Ranges{"0xffff800008010000+3"});
    EXPECT_TRUE(session.sources[0].names->symbols.find({kernel_address}).has_value());
}

/// `perf record --kcore`: the copy contains the bytes that ran; vmlinux contains the bytes before the kernel changed
/// itself.
TEST_F(PerfKernel, CopyOfKcore) {
    record();
    std::filesystem::create_directories(folder_.path() / "perf.dir/kcore_dir");
    write("perf.dir/data", finished());
    write("perf.dir/kcore_dir/kcore", kcore(1));
    write("perf.dir/kcore_dir/kallsyms", {});
    const Session alone = open(folder_.path() / "perf.dir");
    EXPECT_EQ(ranges(alone), Ranges{"0xffff800008010000+2"});
    EXPECT_FALSE(alone.sources[0].names->symbols.find({kernel_address}).has_value());
    const auto kallsyms = [&](const std::string& file, const std::string& name) {
        const std::string text = "ffff800008010000 T " + name + "\nffff800009000000 t other\t[module]\n";
        write(file, {text.begin(), text.end()});
    };
    kallsyms("perf.dir/kcore_dir/kallsyms", "copied_function");
    const auto function = [](const Session& session) {
        return session.sources[0].names->symbols.text({kernel_address});
    };
    EXPECT_EQ(function(open(folder_.path() / "perf.dir")), "copied_function");
    kallsyms("kallsyms", "given_function");
    SessionOptions given;
    given.kallsyms = folder_.path() / "kallsyms";
    EXPECT_EQ(function(open(folder_.path() / "perf.dir", given)), "given_function");
    write("vmlinux", vmlinux(2));
    SessionOptions options;
    options.images = {(folder_.path() / "vmlinux").string()};
    const Session both = open(folder_.path() / "perf.dir", options);
    EXPECT_EQ(ranges(both), Ranges{"0xffff800008010000+2"}) << "its bytes, and the names of vmlinux";
    EXPECT_TRUE(both.sources[0].names->symbols.find({kernel_address}).has_value());

    write("perf.dir/kcore_dir/kcore", {1, 2, 3});
    EXPECT_TRUE(says(open(folder_.path() / "perf.dir"), "kcore"));
}

// ---- many processes

/// A thousand clones run the same code as one process, and each has its own maps: the counts are a thousand times as
/// large.
TEST_F(PerfForms, ManyProcessesAreManyTimesOne) {
    constexpr unsigned clones = 1000;
    const std::string a = program("a", 1), b = program("b", 2);
    process(10);
    map(10, 0x500040, a, 50);
    map(10, 0x600040, b, 50);
    for (const std::uint64_t time : {100U, 200U, 300U})
        range(0, once(0x500040, 10) + once(0x600040, 10) + once(0x500040, 10), 0, time);
    const std::shared_ptr<const capture::ByteFile> file = capture::byte_file_from_memory(finished());
    const auto data = capture::perf::read_perf_data(*file);
    ASSERT_TRUE(data.has_value());
    ByteCollector out;
    const auto head = support::write_clones(*data, *file, {.processes = clones, .more_maps = 4, .times = 1}, out);
    ASSERT_TRUE(head.has_value()) << head.error().message;
    std::vector<std::uint8_t> bytes = out.take();
    std::copy(head->begin(), head->end(), bytes.begin());
    write("many.data", bytes);
    const Session session = open(folder_.path() / "many.data");
    for (const unsigned jobs : {1U, 2U}) {
        const Ran ran = run(session, Addresses::placed, DecoderKind::fast, jobs);
        EXPECT_TRUE(ran.missing.empty());
        std::map<std::string, std::uint64_t> times;
        for (const std::string& range : ran.delivered.at("cpu0 aux_cpu0").ranges) ++times[range];
        EXPECT_EQ(times,
                  (std::map<std::string, std::uint64_t>{{"0x500040+2", 6 * clones}, {"0x600040+3", 3 * clones}}));
    }
}

}  // namespace
}  // namespace waymark::pipeline
