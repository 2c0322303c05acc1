/// Profiles of real AArch64 programs: built with the cross compiler, run by `waymark record --unit spe`, read with
/// Waymark's own reader. Each program is slow for one reason in one function (tests/data/spe), and its records must
/// show that function.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/shell.h"
#include "support/temporary_folder.h"
#include "waymark/capture/byte_file.h"
#include "waymark/capture/perf_data.h"
#include "waymark/capture/perf_spe.h"
#include "waymark/image/symbols.h"
#include "waymark/spe/decoder.h"
#include "waymark/spe/model.h"

namespace waymark {
namespace {

namespace fs = std::filesystem;

constexpr const char* compiler = "aarch64-linux-gnu-gcc";

bool has(const std::string& program) {
    return std::system(("command -v " + program + " > /dev/null 2>&1").c_str()) == 0;
}

struct Records final : spe::RecordSink {
    void consume(const spe::RecordBatch& batch) override {
        gaps += batch.gaps.size();
        for (std::size_t i = 0; i < batch.records.size; ++i) all.push_back(batch.records.row(i));
    }
    std::vector<spe::Record> all;
    std::size_t gaps = 0;
};

class SpeRecording : public testing::Test {
protected:
    void SetUp() override {
        if (!has(compiler))
            GTEST_SKIP() << "NOT RUN: no " << compiler << " (gcc-aarch64-linux-gnu, libc6-dev-arm64-cross)";
        if (!has("qemu-aarch64")) GTEST_SKIP() << "NOT RUN: no qemu-aarch64 (qemu-user)";
    }

    void build(const std::string& name, const std::string& options = "-static -no-pie") {
        program_ = folder_ / name;
        const std::string command = std::string(compiler) + " -O1 -fno-stack-protector " + options + " -pthread -o " +
                                    shell_word(program_) + " " + shell_word(WAYMARK_TEST_DATA "/spe/" + name + ".c");
        ASSERT_EQ(std::system(command.c_str()), 0) << command;
        ASSERT_TRUE(symbols_.add_elf(program_).has_value());
    }

    void record(const std::string& options) {
        file_ = folder_ / "perf.data";
        const std::string command = shell_word(WAYMARK_PROGRAM) + " record --unit spe -q " + options + " -o " +
                                    shell_word(file_) + " -- " + shell_word(program_);
        ASSERT_EQ(std::system(command.c_str()), 0) << command;
        auto file = capture::open_byte_file(file_);
        ASSERT_TRUE(file.has_value());
        auto data = capture::perf::read_perf_data(**file);
        ASSERT_TRUE(data.has_value()) << data.error().message;
        data_ = *data;
        EXPECT_EQ(data_.loss_count, 0U);
        EXPECT_FALSE(data_.unfinished);
        records_ = {};
        for (const capture::perf::Stream& stream : capture::perf::streams(data_)) {
            spe::Decoder decoder(records_);
            for (const capture::perf::Stretch& stretch : stream.stretches) {
                std::vector<std::uint8_t> bytes(stretch.bytes);
                ASSERT_EQ((*file)->read_at(stretch.payload, bytes).value(), bytes.size());
                if (!stretch.follows && &stretch != &stream.stretches.front()) decoder.reset();
                decoder.feed(bytes);
            }
            decoder.finish();
        }
        EXPECT_EQ(records_.gaps, 0U);
        std::ifstream in(file_.string() + ".truth.txt");
        std::string line;
        while (std::getline(in, line)) {
            const auto space = line.find(' ');
            truth_[line.substr(0, space)] = std::strtoull(line.c_str() + space, nullptr, 10);
        }
        EXPECT_EQ(records_.all.size(), truth_["samples.written"]);
        for (const spe::Record& record : records_.all) EXPECT_EQ(record.defects, 0);
    }

    std::string function(const spe::Record& record) {
        const auto found = symbols_.find(spe::program_address(record.pc).address);
        return found ? std::string(found->name) : "?";
    }

    /// Sums of `weight(record)` by function, and the function with the largest.
    template <class Weight>
    std::map<std::string, std::uint64_t> by_function(Weight&& weight) {
        std::map<std::string, std::uint64_t> sums;
        for (const spe::Record& record : records_.all)
            if (const std::uint64_t w = weight(record); w != 0) sums[function(record)] += w;
        return sums;
    }
    static std::string largest(const std::map<std::string, std::uint64_t>& sums) {
        const auto most = std::max_element(sums.begin(), sums.end(),
                                           [](const auto& a, const auto& b) { return a.second < b.second; });
        return most == sums.end() ? "none" : most->first;
    }

    TemporaryFolder temporary_;
    fs::path folder_ = temporary_.path();
    fs::path program_, file_;
    image::Symbols symbols_;
    capture::perf::PerfData data_;
    Records records_;
    std::map<std::string, std::uint64_t> truth_;
};

TEST_F(SpeRecording, MissesStandWhereTheChaseIs) {
    build("chase");
    record("-c 512");
    const auto slow = by_function([](const spe::Record& r) {
        return r.has(spe::RecordColumn::data_source) && r.data_source == 0xe ? std::uint64_t{r.total_latency} : 0;
    });
    EXPECT_EQ(largest(slow), "chase");
    // The number of records is the number of operations divided by the interval; jitter does not change the mean.
    const double expected = static_cast<double>(truth_["operations"]) / (512 + 1);
    EXPECT_NEAR(static_cast<double>(records_.all.size()), expected, expected / 100 + 2);
    // Kinds of operations have the same shares as in the run, within 5 standard deviations.
    const auto share = [&](std::uint64_t all, auto&& is) {
        const double p = static_cast<double>(all) / static_cast<double>(truth_["operations"]);
        const double n = static_cast<double>(records_.all.size());
        const auto found = std::count_if(records_.all.begin(), records_.all.end(), is);
        EXPECT_NEAR(static_cast<double>(found), p * n, 5 * std::sqrt(n * p * (1 - p)) + 2);
    };
    share(truth_["operations.branches"],
          [](const spe::Record& r) { return r.operation_class == spe::OperationClass::branch; });
    share(truth_["operations.loads"],
          [](const spe::Record& r) { return spe::operation(r.operation_class, r.operation_type).load; });
}

TEST_F(SpeRecording, MispredictionsStandWhereTheGuessIs) {
    build("branch");
    record("-c 256 -e arm_spe/branch_filter=1/");
    for (const spe::Record& r : records_.all) ASSERT_EQ(r.operation_class, spe::OperationClass::branch);
    const auto wrong =
        by_function([](const spe::Record& r) { return (r.events & spe::event::mispredict) != 0 ? 1U : 0U; });
    EXPECT_EQ(largest(wrong), "guess");
    const auto all = by_function([](const spe::Record&) { return 1U; });
    ASSERT_TRUE(all.contains("know") && wrong.contains("guess"));
    EXPECT_LT(wrong.contains("know") ? wrong.at("know") : 0, all.at("know") / 20);
    EXPECT_GT(truth_["samples.filtered"], 0U);
}

TEST_F(SpeRecording, WalksStandWhereThePagesAre) {
    build("pages");
    record("-c 256 -e arm_spe/load_filter=1,pa_enable=1/");
    const auto walks =
        by_function([](const spe::Record& r) { return (r.events & spe::event::tlb_walk) != 0 ? 1U : 0U; });
    EXPECT_EQ(largest(walks), "wide");
    EXPECT_LT(walks.contains("narrow") ? walks.at("narrow") : 0, walks.at("wide") / 20);
    for (const spe::Record& r : records_.all) ASSERT_TRUE(r.has(spe::RecordColumn::data_physical));
}

TEST_F(SpeRecording, PeersStandWhereALineIsShared) {
    build("share");
    record("-c 256 -e arm_spe/load_filter=1/");
    const auto peers =
        by_function([](const spe::Record& r) { return r.data_source == 0x9 || r.data_source == 0xc ? 1U : 0U; });
    EXPECT_EQ(largest(peers), "shared");
    // The line comes from the other core once in every turn, however the threads are scheduled.
    ASSERT_TRUE(peers.contains("shared"));
    EXPECT_GT(peers.at("shared"), 100U);
    EXPECT_LT(peers.contains("alone") ? peers.at("alone") : 0, peers.at("shared") / 20);
    std::set<std::uint32_t> threads;
    for (const spe::Record& r : records_.all) threads.insert(r.context_el2);
    EXPECT_EQ(threads.size(), 2U);
    EXPECT_EQ(truth_["threads"], 2U);
}

TEST_F(SpeRecording, LibrariesAreMapped) {
    build("chase", "-pie -fpie");
    record("-c 512");
    capture::perf::Tasks tasks(data_);
    std::size_t found = 0, named = 0;
    std::set<std::string> files;
    for (const spe::Record& r : records_.all) {
        const std::uint64_t time = data_.time_conversion->to_ns(r.timestamp);
        const auto thread = tasks.thread(r.context_el2, time);
        const Address pc = spe::program_address(r.pc).address;
        const capture::perf::Mapping* const mapping = tasks.mapping(thread.pid, pc, time);
        if (mapping == nullptr) continue;
        ++found;
        files.insert(fs::path(mapping->file).filename().string());
        named += mapping->build_id.size() == 20 ? 1 : 0;
    }
    EXPECT_EQ(found, records_.all.size());
    EXPECT_EQ(named, found) << "mapped files without their build id";
    EXPECT_TRUE(files.contains("chase"));
    EXPECT_GE(files.size(), 2U) << "the dynamic linker is missing";
}

// QEMU's own log of single steps, which shares nothing with the plugin: every 257th instruction is the sampled one.
TEST_F(SpeRecording, QemusLogHasTheSameInstructions) {
    build("hello");
    record("-c 256 -e arm_spe/jitter=0/ > /dev/null");
    const fs::path log = folder_ / "log";
    const std::string command = "qemu-aarch64 -cpu neoverse-n1 -singlestep -d exec,nochain -D " + shell_word(log) +
                                ' ' + shell_word(program_) + " > /dev/null";
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
    std::vector<std::uint64_t> executed;
    std::ifstream in(log);
    for (std::string line; std::getline(in, line);) {
        // `Trace 0: 0x7f… [0000000000001001/0000000000400580/…] _start`
        const auto slash = line.find('/');
        if (line.starts_with("Trace") && slash != line.npos)
            executed.push_back(std::strtoull(line.c_str() + slash + 1, nullptr, 16));
    }
    EXPECT_EQ(executed.size(), truth_["operations"]);
    EXPECT_EQ(records_.all.size(), executed.size() / 257);
    ASSERT_GT(records_.all.size(), 20U);
    for (std::size_t i = 0; i < records_.all.size(); ++i)
        ASSERT_EQ(spe::program_address(records_.all[i].pc).address.value, executed.at((i + 1) * 257 - 1)) << i;
}

TEST_F(SpeRecording, PerfReadsTheSame) {
    if (!has("perf")) GTEST_SKIP() << "NOT COMPARED: no perf (linux-perf)";
    build("share");
    for (const std::string options : {"-c 256", "-c 2048 -e arm_spe/jitter=0,min_latency=5/ --aux-buffer 8"}) {
        record(options);
        const std::string command =
            "perf script -i " + shell_word(file_) + " --itrace=i1i -F cpu,tid,addr,ip 2> /dev/null";
        FILE* const pipe = popen(command.c_str(), "r");
        ASSERT_NE(pipe, nullptr);
        using Row = std::array<std::uint64_t, 3>;
        std::vector<Row> theirs, ours;
        std::array<char, 512> line;
        while (std::fgets(line.data(), line.size(), pipe) != nullptr) {
            unsigned tid = 0, cpu = 0;
            unsigned long long address = 0, ip = 0;
            ASSERT_EQ(std::sscanf(line.data(), "%u [%u] %llx %llx", &tid, &cpu, &address, &ip), 4) << line.data();
            theirs.push_back({tid, address, ip});
        }
        pclose(pipe);
        // perf 6.1 shows addresses of data here; newer ones may show targets of branches too.
        std::set<std::uint64_t> branches;
        for (const spe::Record& r : records_.all)
            if (r.operation_class == spe::OperationClass::branch)
                branches.insert(spe::program_address(r.pc).address.value);
        for (Row& row : theirs)
            if (branches.contains(row[2])) row[1] = 0;
        for (const spe::Record& r : records_.all)
            ours.push_back(
                {r.context_el2,
                 r.has(spe::RecordColumn::data_virtual) ? spe::data_address(r.data_virtual).address.value : 0,
                 spe::program_address(r.pc).address.value});
        std::sort(theirs.begin(), theirs.end());
        std::sort(ours.begin(), ours.end());
        EXPECT_EQ(ours.size(), theirs.size());
        EXPECT_TRUE(ours == theirs);
    }
}

}  // namespace
}  // namespace waymark
