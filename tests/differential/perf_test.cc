/// The `perf` tool of Linux as the witness: it must read the perf.data files Waymark writes, split the same bytes into
/// the same packets, and give the same samples.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "spe/support.h"
#include "support/corpus.h"
#include "support/perf_file.h"
#include "support/shell.h"
#include "support/temporary_folder.h"
#include "waymark/capture/byte_file.h"

namespace waymark {
namespace {

std::string run(const std::string& command) {
    std::string out;
    std::FILE* const pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
    if (pipe == nullptr) return out;
    char buffer[4096];
    while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, got);
    ::pclose(pipe);
    return out;
}

#define WM_NEEDS_PERF()                                     \
    if (!run("perf --version").starts_with("perf version")) \
    GTEST_SKIP() << "no perf program: install linux-perf to have it read what Waymark writes"

std::vector<std::string> lines(const std::string& text) {
    std::vector<std::string> out;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        out.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return out;
}

using namespace capture::perf;

/// A session whose one AUXTRACE record holds `trace`.
std::vector<std::uint8_t> session(Bytes trace, PerfWriter::Form form) {
    ByteCollector collector;
    PerfWriter w(collector, support::spe_attrs(), form);
    w.feature_text(Feature::arch, "aarch64");
    w.feature_text(Feature::cpu_id, "0x00000000410fd0c0");
    w.pmus({{1, "software"}, {8, "arm_spe_0"}});
    w.time_conversion({20, 41943040, 0, 0, ~std::uint64_t{0}, false});
    w.auxtrace_info({AuxtraceInfo::arm_spe, {8, 1}});
    w.task({TaskEvent::Kind::comm, 77, 77, nobody, nobody, 0, "prog"}, {});
    w.switch_to(77, 77, {0, 0, 0, 1, 1});
    Chunk c;
    c.cpu = 0;
    w.auxtrace(c, trace);
    w.aux({0, trace.size(), 0, {}}, {77, 77, 0, 2'000'000'000'000, 0});
    w.finished_round();
    const auto header = w.finish();
    auto bytes = collector.take();
    std::copy(header.begin(), header.end(), bytes.begin());
    return bytes;
}

/// perf's text for a packet, where that is the same in every version; else `…`.
struct PerfText {
    std::string operator()(const spe::AddressPacket& p) const {
        const std::uint64_t low = p.address & 0x00ff'ffff'ffff'ffffU;
        const auto el = static_cast<unsigned>(p.address >> 61 & 3U), ns = static_cast<unsigned>(p.address >> 63);
        if (p.index.value < 2)
            return fmt::format("{} {:#x} el{} ns={}", p.index.value == 0 ? "PC" : "TGT", low, el, ns);
        if (p.index.value == 2) return fmt::format("VA {:#x}", p.address);
        if (p.index.value == 3)
            return fmt::format("PA {:#x} ns={} ch={} pat={:x}", low, ns, p.address >> 62 & 1U, p.address >> 56 & 0xfU);
        return "…";
    }
    std::string operator()(const spe::Counter& p) const {
        constexpr const char* names[] = {"TOT", "ISSUE", "XLAT"};
        return p.index.value < 3 ? fmt::format("LAT {} {}", p.cycles, names[p.index.value]) : "…";
    }
    std::string operator()(const spe::Events& p) const {
        // perf versions later than 6.1 leave out only some of the bits that perf 6.1 does not print.
        constexpr const char* names[] = {"EXCEPTION-GEN", "RETIRED",    "L1D-ACCESS",   "L1D-REFILL",
                                         "TLB-ACCESS",    "TLB-REFILL", "NOT-TAKEN",    "MISPRED",
                                         "LLC-ACCESS",    "LLC-REFILL", "REMOTE-ACCESS"};
        if (p.events.value >> 11 != 0) return "…";
        std::string out = "EV";
        for (unsigned bit = 0; bit < 11; ++bit)
            if ((p.events.value >> bit & 1U) != 0) out += std::string(" ") + names[bit];
        return out;
    }
    std::string operator()(const spe::OperationType& p) const {
        if (p.kind == spe::OperationClass::branch && p.type < 4)
            return std::string("B") + ((p.type & 1U) != 0 ? " COND" : "") + ((p.type & 2U) != 0 ? " IND" : "");
        if (p.kind == spe::OperationClass::load_store && p.type < 2) return p.type == 0 ? "LD GP-REG" : "ST GP-REG";
        return "…";
    }
    std::string operator()(const spe::DataSource& p) const { return fmt::format("DATA-SOURCE {}", p.source.value); }
    std::string operator()(const spe::Context& p) const {
        return fmt::format("CONTEXT {:#x} el{}", p.context, p.index + 1);
    }
    std::string operator()(const spe::Timestamp& p) const {
        return fmt::format("TS {}", static_cast<std::int64_t>(p.timestamp));
    }
    std::string operator()(const spe::End&) const { return "END"; }
    std::string operator()(const auto&) const { return "…"; }
};

struct Line {
    std::uint64_t offset{};
    std::string text;
};

/// `.  00000009:  99 04 00     LAT 4 ISSUE`, without padding.
std::vector<Line> dump(const std::string& text) {
    std::vector<Line> out;
    bool inside = false;
    for (const std::string& line : lines(text)) {
        if (line.find("ARM SPE data") != std::string::npos) {
            inside = true;
            continue;
        }
        if (!line.starts_with(".  ") || line.size() < 62) inside = false;
        if (!inside) continue;
        std::string what = line.substr(62);
        if (!what.empty() && what.front() == ' ') what.erase(0, 1);
        if (what.starts_with("PAD")) continue;
        out.push_back({std::strtoull(line.substr(3, 8).c_str(), nullptr, 16), what});
    }
    return out;
}

void expect_agreement(Bytes trace, const std::filesystem::path& folder, PerfWriter::Form form) {
    const auto path = folder / "perf.data";
    const auto bytes = session(trace, form);
    {
        std::ofstream file(path, std::ios::binary);
        file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    }
    const auto read = read_perf_data(*capture::byte_file_from_memory(bytes));
    ASSERT_TRUE(read.has_value()) << read.error().message;
    ASSERT_EQ(read->chunks.size(), 1U);
    const Bytes payload = Bytes(bytes).subspan(read->chunks[0].payload, read->chunks[0].bytes);

    // Through a pipe, in the form for pipes: in a file, perf 6.1 looks for the trace at another place.
    const auto perf = [&](const std::string& options) {
        return form == PerfWriter::Form::pipe ? run("cat " + shell_word(path) + " | perf script " + options + " -i -")
                                              : run("perf script " + options + " -i " + shell_word(path));
    };
    const spe::test::Collected packets = spe::test::collect(payload);
    const std::vector<Line> theirs = dump(perf("-D"));
    std::size_t n = 0;
    for (std::size_t i = 0; i < packets.items.size(); ++i) {
        if (std::holds_alternative<spe::Padding>(packets.packets[i])) continue;
        ASSERT_LT(n, theirs.size());
        EXPECT_EQ(theirs[n].offset, packets.items[i].first.value);
        if (const std::string ours = std::visit(PerfText{}, packets.packets[i]); ours != "…") {
            std::string text = theirs[n].text;
            while (!text.empty() && text.back() == ' ') text.pop_back();
            EXPECT_EQ(text, ours) << "at " << theirs[n].offset;
        }
        ++n;
    }
    EXPECT_EQ(n, theirs.size());

    // Each record once, with what becomes of it in a sample.
    const spe::test::Decoded records = spe::test::decode<spe::Decoder>(payload);
    const auto samples = lines(perf("--itrace=i1i -F ip,addr,weight,event"));
    ASSERT_EQ(samples.size(), records.records.size());
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const spe::Record& r = records.records[i];
        // instructions: ADDR WEIGHT IP
        const std::string rest = samples[i].substr(samples[i].find(':') + 1);
        unsigned long long address = 0, weight = 0, ip = 0;
        ASSERT_EQ(std::sscanf(rest.c_str(), "%llx %llu %llx", &address, &weight, &ip), 3) << samples[i];
        EXPECT_EQ(weight, r.total_latency);
        // perf's own rules for the top byte (docs/spec/spe.md, 4.2) touch nothing below it.
        EXPECT_EQ(ip & 0x00ff'ffff'ffff'ffffU, r.pc & 0x00ff'ffff'ffff'ffffU);
        if (r.has(spe::RecordColumn::data_virtual)) {
            EXPECT_EQ(address & 0x00ff'ffff'ffff'ffffU, r.data_virtual & 0x00ff'ffff'ffff'ffffU);
        }
    }
}

TEST(Perf, AgreesOnTheCorpus) {
    WM_NEEDS_PERF();
    WM_NEEDS_CORPUS("spe");
    const TemporaryFolder folder;
    for (const char* file : {"quipper-two-records", "hiperf-unit-a", "wperf-branch-end", "wperf-branch-ts"})
        for (const auto form : {PerfWriter::Form::file, PerfWriter::Form::pipe}) {
            SCOPED_TRACE(file);
            expect_agreement(support::read_file(support::corpus_path(std::string("spe/") + file + ".bin")),
                             folder.path(), form);
        }
}

TEST(Perf, AgreesOnRandomRecords) {
    WM_NEEDS_PERF();
    const TemporaryFolder folder;
    wire::Random random(7);
    std::vector<std::uint8_t> trace;
    unsigned count = 0;
    while (count < 3000) {
        const auto record = spe::test::random_record(random);
        const auto decoded = spe::test::decode<spe::Decoder>(record);
        // perf calls unknown packets bad, and keeps either of two packets that describe the same thing.
        if (decoded.records.size() != 1 || (decoded.records[0].defects & ~16U) != 0) continue;
        trace.insert(trace.end(), record.begin(), record.end());
        ++count;
    }
    expect_agreement(trace, folder.path(), PerfWriter::Form::file);
}

}  // namespace
}  // namespace waymark
