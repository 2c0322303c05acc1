// Code in perf.data that no file has as it ran: changed by the kernel (TEXT_POKE), compiled by it (BPF), or generated
// by programs (jitdump), each from its time on (docs/spec/perf-cs-etm.md, section 2).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "support/jitdump.h"
#include "support/perf_capture.h"
#include "waymark/answers/costs.h"
#include "waymark/pipeline/flow_answers.h"

namespace waymark::pipeline {
namespace {

using capture::perf::KernelSymbol;
using capture::perf::TextPoke;

constexpr std::uint64_t poked_address = 0xffff'8000'0050'0040;
constexpr std::uint32_t to_itself = 0x14000000;  // b .

std::vector<std::uint8_t> code(const std::vector<std::uint32_t>& words) {
    std::vector<std::uint8_t> out;
    for (const std::uint32_t word : words)
        for (unsigned i = 0; i < 32; i += 8) out.push_back(static_cast<std::uint8_t>(word >> i));
    return out;
}
std::string text(const std::vector<std::uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }
/// nop, and a branch back to it.
std::vector<std::uint8_t> two() { return code({nop, to_itself | 0x3ffffff}); }

class PerfCode : public PerfCapture {
protected:
    explicit PerfCode(std::vector<capture::perf::Attr> attrs = cs_etm_attrs()) : PerfCapture(std::move(attrs)) {
        process(10);
    }
    void kernel_map(const std::string& file) {
        Mapping m;
        m.pid = capture::perf::nobody;
        m.address = {poked_address};
        m.bytes = 0x800;
        m.file_offset = code_offset;
        m.file = file;
        w_.mapping(m, {capture::perf::nobody, 0, 0, 0, 1});
    }
    static Ranges ranges(const Session& session, Addresses addresses = Addresses::as_they_were) {
        return run(session, addresses).delivered.at("cpu0 aux_cpu0").ranges;
    }
    /// Instructions that ran, by function.
    static std::map<std::string, std::uint64_t> costs(const Session& session) {
        std::vector<const Source*> sources;
        for (const Source& source : session.sources) sources.push_back(&source);
        FlowAnswersOptions options;
        options.calls = true;
        const auto answers = flow_answers(session, sources, options, {}, [](const Report&) {});
        EXPECT_TRUE(answers.has_value());
        std::map<std::string, std::uint64_t> out;
        const auto all = answers::function_costs(*answers);
        for (std::size_t i = 0; i < all.size(); ++i)
            if (all[i].self.at(0) != 0) out[answers->functions[i].name] += all[i].self.at(0);
        return out;
    }
};

TEST_F(PerfCode, TextPokesHoldFromTheirTimesOn) {
    const std::string a = program("a", 2);
    kernel_map(a);
    range(0, once(poked_address, 10), 0, 100);
    // The code before differs from the file too: the kernel had changed itself when it started.
    w_.text_poke({{poked_address}, 150, code({to_itself}), code({nop})}, {0, 0, 0, 150, 1});
    range(0, once(poked_address, 10), 0, 200);
    w_.text_poke({{poked_address + 4}, 250, code({nop}), code({to_itself})}, {0, 0, 0, 250, 1});
    range(0, once(poked_address, 10), 0, 300);
    const Session session = open();
    EXPECT_EQ(ranges(session), (Ranges{"0xffff800000500040+1", "0xffff800000500040+3", "0xffff800000500040+2"}));
    EXPECT_EQ(costs(session), (std::map<std::string, std::uint64_t>{{"loop_of_a", 6}}));
    EXPECT_EQ(ranges(session, Addresses::placed), ranges(session)) << "changed code has its place with the rest";
}

TEST_F(PerfCode, NewTextHasTheNameOfItsSymbol) {
    w_.kernel_symbol({{poked_address}, 64, 0, false, "kprobe_insn_slot"}, {0, 0, 0, 140, 1});
    w_.text_poke({{poked_address}, 150, {}, two()}, {0, 0, 0, 150, 1});
    range(0, once(poked_address, 10), 0, 200);
    w_.text_poke({{poked_address}, 250, two(), {}}, {0, 0, 0, 250, 1});
    range(0, once(poked_address, 10), 0, 300);
    range(0, once(poked_address, 10), 0, 400);
    const Session session = open();
    EXPECT_EQ(ranges(session), (Ranges{"0xffff800000500040+2", "0xffff800000500040+2", "none at 0xffff800000500040"}))
        << "in the range in which it was removed it may have run";
    EXPECT_EQ(costs(session), (std::map<std::string, std::uint64_t>{{"kprobe_insn_slot", 4}}));
}

/// Feature 25 with one program of two functions.
std::vector<std::uint8_t> bpf_feature(std::uint64_t first, std::uint64_t second) {
    std::vector<std::uint8_t> info(128), data, out;
    const auto put = [](std::vector<std::uint8_t>& to, std::size_t at, std::uint64_t value, unsigned bytes) {
        if (to.size() < at + bytes) to.resize(at + bytes);
        for (unsigned i = 0; i < bytes; ++i) to[at + i] = static_cast<std::uint8_t>(value >> 8 * i);
    };
    std::vector<std::uint8_t> insns = two();
    const std::vector<std::uint8_t> more = code({to_itself});
    insns.insert(insns.end(), more.begin(), more.end());
    data.resize(8);  // other arrays
    put(info, 8, 0x8877665544332211, 8);
    put(info, 16, insns.size(), 4);
    put(info, 24, data.size(), 8);
    data.insert(data.end(), insns.begin(), insns.end());
    for (std::size_t i = 0; i < 6; ++i) info[64 + i] = static_cast<std::uint8_t>("filter"[i]);
    put(info, 104, 2, 4);
    put(info, 108, 2, 4);
    put(info, 112, data.size(), 8);
    put(data, data.size(), first, 8);
    put(data, data.size(), second, 8);
    put(info, 120, data.size(), 8);
    put(data, data.size(), 8, 4);
    put(data, data.size(), 4, 4);
    put(out, 0, 1, 4);
    put(out, 4, info.size(), 4);
    put(out, 8, data.size(), 4);
    put(out, 12, 0, 8);
    out.insert(out.end(), info.begin(), info.end());
    out.insert(out.end(), data.begin(), data.end());
    return out;
}

TEST_F(PerfCode, BpfProgramsRunFromKsymbolToKsymbol) {
    const std::uint64_t second = poked_address + 0x1000;
    w_.feature(static_cast<capture::perf::Feature>(25), bpf_feature(poked_address, second));
    range(0, once(poked_address, 10) + once(second, 10), 0, 100);
    w_.kernel_symbol({{poked_address}, 8, 0, false, "bpf_prog_1122_filter"}, {0, 0, 0, 150, 1});
    range(0, once(poked_address, 10), 0, 200);
    w_.kernel_symbol({{poked_address}, 8, 0, true, "bpf_prog_1122_filter"}, {0, 0, 0, 250, 1});
    range(0, once(poked_address, 10), 0, 300);
    range(0, once(poked_address, 10) + once(second, 10), 0, 400);
    const Session session = open();
    EXPECT_EQ(ranges(session), (Ranges{"none at 0xffff800000500040", "0xffff800000501040+1", "0xffff800000500040+2",
                                       "0xffff800000500040+2", "none at 0xffff800000500040", "0xffff800000501040+1"}));
    EXPECT_EQ(costs(session),
              (std::map<std::string, std::uint64_t>{{"bpf_prog_1122_filter", 4}, {"bpf_prog_1122334455667788", 2}}));
}

TEST_F(PerfCode, BpfProgramsThatAreCutAreLeftOut) {
    const std::vector<std::uint8_t> whole = bpf_feature(poked_address, poked_address + 0x1000);
    for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
        ByteCollector out;
        PerfWriter w(out, cs_etm_attrs());
        w.auxtrace_info(cs_etm_info({etmv4_block(0)}));
        w.feature(static_cast<capture::perf::Feature>(25), {whole.begin(), whole.begin() + static_cast<int>(bytes)});
        const auto head = w.finish();
        std::vector<std::uint8_t> file = out.take();
        std::copy(head.begin(), head.end(), file.begin());
        const auto data = capture::perf::read_perf_data(*capture::byte_file_from_memory(std::move(file)));
        ASSERT_TRUE(data.has_value()) << bytes;
        EXPECT_TRUE(data->bpf_functions.empty()) << bytes;
    }
}

std::vector<capture::perf::Attr> monotonic() {
    auto attrs = cs_etm_attrs();
    for (capture::perf::Attr& a : attrs) {
        a.flags |= std::uint64_t{1} << 25;
        a.clock = capture::perf::Attr::monotonic;
    }
    return attrs;
}

/// `perf record -k 1`.
class PerfJit : public PerfCode {
protected:
    explicit PerfJit(std::vector<capture::perf::Attr> attrs = monotonic()) : PerfCode(std::move(attrs)) {}
    static constexpr std::uint64_t address = 0x700040;
    /// A function that becomes another one.
    void generate(const std::string& recorded_as) {
        map(10, 0x60000000, recorded_as, 50);
        const JitDump dump = JitDump()
                                 .load(1, address, "first", text(two()), 150)
                                 .load(2, address, "second", text(code({to_itself})), 250);
        std::ofstream(folder_.path() / "jit-10.dump", std::ios::binary) << dump.bytes;
        for (const std::uint64_t time : {100U, 200U, 300U}) range(0, once(address, 10) + once(address, 20), 0, time);
        process(20);
        map(20, 0x60000000, "/bin/other", 50);
    }
};

TEST_F(PerfJit, CodeHoldsFromItsTimeOn) {
    generate((folder_.path() / "jit-10.dump").string());
    const Session session = open();
    EXPECT_EQ(ranges(session), (Ranges{"none at 0x700040", "none at 0x700040", "0x700040+2", "none at 0x700040",
                                       "0x700040+1", "none at 0x700040"}))
        << "the other process has no such code";
    EXPECT_EQ(costs(session), (std::map<std::string, std::uint64_t>{{"first", 2}, {"second", 1}}));
    EXPECT_FALSE(says(session, "jit-10.dump")) << "no program has that file as its code";
}

TEST_F(PerfJit, FilesAreFoundBesideTheCaptureAndBelowARoot) {
    generate("/tmp/of/another/machine/jit-10.dump");
    const auto data = folder_.path() / "perf.data";
    write("perf.data", finished());
    EXPECT_EQ(ranges(open(data))[2], "0x700040+2");
    const auto root = folder_.path() / "root", deep = root / "tmp/of/another/machine";
    std::filesystem::create_directories(deep);
    std::filesystem::rename(folder_.path() / "jit-10.dump", deep / "jit-10.dump");
    SessionOptions options;
    options.files.symfs = root;
    EXPECT_EQ(ranges(open(data, options))[2], "0x700040+2");
    EXPECT_TRUE(says(open(data), "--jitdump")) << "it is not found";
    options = {};
    options.jitdumps = {(deep / "jit-10.dump").string()};
    // The file says that process 17 wrote it.
    EXPECT_EQ(ranges(open(data, options))[2], "none at 0x700040");
    EXPECT_FALSE(says(open(data, options), "was not found: such code"));
}

class PerfJitOfAnotherClock : public PerfJit {
protected:
    PerfJitOfAnotherClock() : PerfJit(cs_etm_attrs()) {}
};
TEST_F(PerfJitOfAnotherClock, TheLastCodeHoldsAllTheTime) {
    generate((folder_.path() / "jit-10.dump").string());
    const Session session = open();
    EXPECT_EQ(ranges(session)[0], "0x700040+1");
    EXPECT_EQ(ranges(session)[2], "0x700040+1");
    EXPECT_TRUE(says(session, "perf record -k 1"));
}

}  // namespace
}  // namespace waymark::pipeline
