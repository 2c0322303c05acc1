/// Tests of perf.data with CoreSight trace, from the file to program flow: a file made record by record, programs for
/// it, and the decoded flow.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/perf_cs_etm_file.h"
#include "support/temporary_folder.h"
#include "support/tiny_elf.h"
#include "waymark/capture/perf_file.h"
#include "waymark/pipeline/run.h"

namespace waymark::pipeline {

using capture::perf::AuxRange;
using capture::perf::Chunk;
using capture::perf::Mapping;
using capture::perf::PerfWriter;
using capture::perf::TaskEvent;
using support::cs_etm_attrs;
using support::cs_etm_info;
using support::etmv4_block;
using support::etmv4_not_taken;
using support::etmv4_start;
using support::etmv4_taken;

inline constexpr std::uint32_t nop = 0xd503201f;
inline constexpr std::uint64_t code_offset = 64, code_address = 0x1040;  // of the segment, in the file and in memory

/// The input of a sink, as text: `0x1040+2` is a block of two instructions.
class PerfFlow final : public flow::Sink {
public:
    void consume(const flow::Batch& batch) override {
        flow::in_order(
            batch,
            [&](const flow::Block& block, const flow::Range&) {
                ranges.push_back(fmt::format("{:#x}+{}", block.start, block.instructions));
                sections[block.start].insert(block.section);
            },
            [&](const flow::Event& event) {
                if (const auto* none = std::get_if<flow::NoMemory>(&event.what))
                    ranges.push_back(fmt::format("none at {:#x}", none->address.value));
            });
    }
    std::vector<std::string> ranges;
    std::map<std::uint64_t, std::set<std::uint32_t>> sections;
};

/// Two CPUs with an ETMv4 each.
class PerfCapture : public testing::Test {
protected:
    explicit PerfCapture(std::vector<capture::perf::Attr> attrs = cs_etm_attrs(),
                         PerfWriter::Form form = PerfWriter::Form::file)
        : w_(bytes_, std::move(attrs), form) {
        w_.auxtrace_info(cs_etm_info({etmv4_block(0), etmv4_block(1)}));
    }

    /// An ELF file with this code, followed by `last`: by default a branch to the code's own beginning.
    std::string program(const std::string& name, unsigned nops, std::uint32_t last = 0) {
        TinyElf elf;
        elf.is_64 = true;
        elf.machine = EM_AARCH64;
        elf.type = ET_DYN;
        TinyElf::Segment segment;
        segment.address = code_address;
        const auto add = [&](std::uint32_t word) {
            for (unsigned i = 0; i < 32; i += 8) segment.bytes.push_back(static_cast<std::uint8_t>(word >> i));
        };
        for (unsigned i = 0; i < nops; ++i) add(nop);
        add(last != 0 ? last : 0x14000000 | ((0U - nops) & 0x3ffffff));
        elf.segments.push_back(segment);
        elf.symbols.push_back({"loop_of_" + name, code_address, 4 * (nops + 1)});
        const auto contents = elf.build();
        const auto path = folder_.path() / name;
        std::ofstream(path, std::ios::binary)
            .write(reinterpret_cast<const char*>(contents.data()), static_cast<std::streamsize>(contents.size()));
        return path.string();
    }
    void process(std::uint32_t pid) { w_.task({TaskEvent::Kind::comm, pid, pid, 0, 0, 0, "task"}, {}); }
    void map(std::uint32_t pid, std::uint64_t address, const std::string& file, std::uint64_t time) {
        Mapping m;
        m.pid = m.tid = pid;
        m.address = {address};
        m.bytes = 0x800;
        m.file_offset = code_offset;
        m.protection = 5;
        m.file = file;
        w_.mapping(m, {pid, pid, 0, time, 1});
    }
    void range(std::uint32_t cpu, std::vector<std::uint8_t> trace, std::uint64_t flags, std::uint64_t time) {
        if (flags == 0) trace = support::frames(static_cast<std::uint8_t>(0x10 + 2 * cpu), trace);
        w_.aux({ring_[cpu], trace.size(), flags, {}}, {1, 1, cpu, time, 0});
        Chunk c;
        c.cpu = cpu;
        c.ring = ring_[cpu];
        w_.auxtrace(c, trace);
        ring_[cpu] += trace.size();
    }
    std::vector<std::uint8_t> finished() {
        const auto head = w_.finish();
        std::vector<std::uint8_t> bytes = bytes_.take();
        std::copy(head.begin(), head.end(), bytes.begin());
        return bytes;
    }
    /// The file, in memory.
    Session open(SessionOptions options = {}) {
        const std::shared_ptr<const capture::ByteFile> file = capture::byte_file_from_memory(finished());
        return open_as("perf.data", {file, {}}, std::move(options));
    }
    /// A file or folder.
    static Session open(const std::filesystem::path& path, SessionOptions options = {}) {
        auto file = capture::perf::open_perf_file(path);
        EXPECT_TRUE(file.has_value()) << file.error().message;
        return open_as(path, *file, std::move(options));
    }
    static Session open_as(const std::filesystem::path& path, const capture::perf::PerfFile& file,
                           SessionOptions options) {
        auto data = capture::perf::read_perf_data(file);
        EXPECT_TRUE(data.has_value()) << data.error().message;
        auto capture = capture::perf::cs_etm_capture(path, file.file, std::move(*data));
        EXPECT_TRUE(capture.has_value()) << capture.error().message;
        auto session = make_session(std::move(*capture), options);
        EXPECT_TRUE(session.has_value()) << session.error().message;
        return std::move(*session);
    }
    void write(const std::string& name, const std::vector<std::uint8_t>& bytes) const {
        std::ofstream(folder_.path() / name, std::ios::binary)
            .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    /// Whether a problem of the session contains the text.
    static bool says(const Session& session, const std::string& words) {
        return std::any_of(session.problems.begin(), session.problems.end(),
                           [&](const capture::Problem& p) { return p.message.find(words) != std::string::npos; });
    }
    struct Ran {
        std::map<std::string, PerfFlow> delivered;  // by source and buffer
        std::vector<MissingCode> missing;
        Report report;
    };
    static Ran run(const Session& session, Addresses addresses, DecoderKind kind = DecoderKind::fast,
                   unsigned jobs = 1) {
        Ran out;
        std::vector<const Source*> sources;
        for (const Source& source : session.sources) sources.push_back(&source);
        out.report = pipeline::run(session, sources, [&](const StreamInfo& stream) {
            return flow_consumer(stream, out.delivered[stream.source.name + " " + stream.buffer.name], kind, jobs,
                                 addresses);
        });
        for (const StreamReport& stream : out.report.streams)
            for (const MissingCode& code : dynamic_cast<const FlowConsumer&>(*stream.consumer).missing())
                out.missing.push_back(code);
        return out;
    }

    TemporaryFolder folder_;
    ByteCollector bytes_;
    PerfWriter w_;
    std::map<std::uint32_t, std::uint64_t> ring_;
};

inline std::vector<std::uint8_t> operator+(std::vector<std::uint8_t> a, const std::vector<std::uint8_t>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}
inline std::vector<std::uint8_t> once(std::uint64_t address, std::uint32_t thread) {
    return etmv4_start(address, thread) + std::vector<std::uint8_t>{etmv4_taken};
}

using Ranges = std::vector<std::string>;

}  // namespace waymark::pipeline
