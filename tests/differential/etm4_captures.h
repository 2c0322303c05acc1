/// Real captures of ETMv4 and ETE, and OpenCSD 1.8.0's results for them (the goldens), for the tests that compare.
#pragma once

#include <gtest/gtest.h>
#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support/corpus.h"
#include "waymark/capture/snapshot.h"
#include "waymark/core/wire.h"
#include "waymark/coresight/deformatter.h"
#include "waymark/etm4/config.h"

namespace waymark::etm4 {

/// A packet in OpenCSD's terms: its columns by name, numbers in decimal; columns that do not apply are absent.
using Row = std::map<std::string, std::string>;
/// The bytes of one source in one buffer, and OpenCSD's offset for each byte.
struct Stream {
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint64_t> offsets;
};

/// Collects the deformatter's output.
struct Demultiplexer {
    std::map<unsigned, Stream> streams;
    void data(coresight::TraceId id, Bytes bytes, Offset first) {
        Stream& stream = streams[id.value];
        stream.bytes.insert(stream.bytes.end(), bytes.begin(), bytes.end());
        for (std::size_t i = 0; i < bytes.size(); ++i) stream.offsets.push_back(first.value + i);
    }
    void trigger(coresight::TraceId, Offset, std::uint8_t) {}
    void gap(const Gap& gap) { ADD_FAILURE() << "frames damaged at " << gap.first.value; }
    void reset(Offset) {}
};

/// OpenCSD counts adjacent bytes of one source in a frame from the pair in which the ID changed, or from the start of
/// the frame, as if no ID or flag bytes were among them (quirk): those offsets, by source.
inline std::map<unsigned, std::vector<std::uint64_t>> opencsd_offsets(Bytes frames) {
    std::map<unsigned, std::vector<std::uint64_t>> out;
    unsigned id = 0;
    for (std::size_t frame = 0; frame + 16 <= frames.size(); frame += 16) {
        std::uint64_t next = frame;
        bool any = false;  // data of the current block
        const auto data = [&] { out[id].push_back(next++), any = true; };
        for (unsigned pair = 0; pair < 8; ++pair) {
            const unsigned first = frames[frame + 2 * pair];
            const bool delayed = (frames[frame + 15] >> pair & 1U) != 0, has_second = pair != 7;
            if ((first & 1U) == 0) {
                data();
                if (has_second) data();
                continue;
            }
            const bool change = first >> 1 != id;
            if (change && delayed && has_second) data();
            if (change && any) next = frame + 2 * pair, any = false;
            id = first >> 1;
            if (has_second && !(change && delayed)) data();
        }
    }
    return out;
}

inline RegisterValues registers_of(const capture::Source& source) {
    const auto value = [&](const char* name) -> std::optional<std::uint32_t> {
        const capture::Register* r = source.find_register(name);
        if (r == nullptr) return {};
        return static_cast<std::uint32_t>(r->value);
    };
    RegisterValues out;
    out.configr = value("TRCCONFIGR");
    out.traceidr = value("TRCTRACEIDR");
    out.idr0 = value("TRCIDR0");
    out.idr1 = value("TRCIDR1");
    out.idr2 = value("TRCIDR2");
    out.idr8 = value("TRCIDR8");
    out.devarch = value("TRCDEVARCH");
    return out;
}

/// What one source sent into one buffer, and its configuration; no configuration if something was missing, which fails
/// the test.
struct Source {
    std::optional<Config> config;
    Stream stream;
    std::string core{};  ///< that it traces
};

inline Source read_source(const std::filesystem::path& folder, unsigned id, const std::string& buffer_name) {
    Source out;
    const auto capture = capture::read_snapshot(folder);
    EXPECT_TRUE(capture.has_value()) << capture.error().message;
    if (!capture.has_value()) return out;
    for (const capture::Buffer& buffer : capture->buffers) {
        if (buffer.name != buffer_name) continue;
        Demultiplexer streams;
        EXPECT_EQ(buffer.files.size(), 1U);
        const auto bytes = support::read_file(buffer.files.front());
        const bool bare = buffer.format == capture::Buffer::Format::source_data;
        if (bare) {
            streams.data({static_cast<std::uint8_t>(id)}, bytes, {});
        } else {
            coresight::Deformatter deformatter;
            deformatter.feed(bytes, streams);
            deformatter.finish(streams);
            std::vector<std::uint64_t>& offsets = streams.streams[id].offsets;
            const std::size_t before = offsets.size();
            offsets = opencsd_offsets(bytes)[id];
            EXPECT_EQ(offsets.size(), before);
        }
        out.stream = streams.streams[id];
        for (const std::string& source_name : buffer.sources)
            for (const capture::Source& source : capture->sources) {
                if (source.name != source_name) continue;
                const ReadConfig read = read_config(registers_of(source), CoreProfile::a);
                EXPECT_TRUE(read.notes.empty()) << source.name << ": " << read.notes.front();
                if (!bare && read.config.trace_id != id) continue;
                out.config = read.config;
                out.core = source.core;
            }
    }
    EXPECT_TRUE(out.config.has_value()) << folder << ' ' << buffer_name << ' ' << id;
    return out;
}

/// A golden: rows by source and buffer. Rows of bytes that were no packets have only packet, offset and length.
using Golden = std::map<std::pair<unsigned, std::string>, std::vector<Row>>;

inline std::string read_text(const std::filesystem::path& path) {
    const auto bytes = support::read_file(path);
    if (path.extension() != ".zst") return {bytes.begin(), bytes.end()};
    const unsigned long long size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
    if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR) {
        std::string out;
        ZSTD_DStream* const stream = ZSTD_createDStream();
        std::vector<char> piece(std::size_t{1} << 17);
        ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
        while (in.pos < in.size) {
            ZSTD_outBuffer to{piece.data(), piece.size(), 0};
            if (ZSTD_isError(ZSTD_decompressStream(stream, &to, &in)) != 0) break;
            out.append(piece.data(), to.pos);
        }
        ZSTD_freeDStream(stream);
        return out;
    }
    std::string out(size, '\0');
    EXPECT_EQ(ZSTD_decompress(out.data(), out.size(), bytes.data(), bytes.size()), size) << path;
    return out;
}

inline std::vector<std::string> split(const std::string& line, char separator) {
    std::vector<std::string> out;
    std::istringstream in(line);
    for (std::string part; std::getline(in, part, separator);) out.push_back(part);
    return out;
}

inline Golden read_golden(const std::filesystem::path& path) {
    Golden out;
    std::istringstream in(read_text(path));
    std::string line;
    std::getline(in, line);
    const std::vector<std::string> columns = split(line, '\t');
    while (std::getline(in, line)) {
        const std::vector<std::string> values = split(line, '\t');
        Row row;
        std::string source, buffer;
        for (std::size_t i = 0; i < std::min(columns.size(), values.size()); ++i) {
            const std::string& column = columns[i];
            std::uint64_t number = 0;
            if (values[i].empty()) continue;
            if (column == "source")
                source = values[i];
            else if (column == "buffer")
                buffer = values[i];
            else if (column == "flags")
                for (const std::string& flag : split(values[i], ',')) {
                    const std::size_t equals = flag.find('=');
                    if (flag == "return_address")
                        row["E"] = "1";
                    else if (flag == "previous_target")
                        row["E"] = "2";
                    else if (equals != std::string::npos)
                        row[flag.substr(0, equals)] = flag.substr(equals + 1);
                    else if (flag != "first")  // contains the result of OpenCSD's decoder
                        row[flag] = "1";
                }
            else
                row[column] =
                    column != "bytes" && wire::scan_number(values[i], number) ? std::to_string(number) : values[i];
        }
        std::uint64_t id = 0;
        EXPECT_TRUE(wire::scan_number(source, id)) << line;
        out[{static_cast<unsigned>(id), buffer}].push_back(std::move(row));
    }
    return out;
}

/// The captures that have goldens, and the names of their tests.
inline constexpr const char* capture_names[] = {"etmv4-a57_single_step",
                                                "etmv4-init-short-addr",
                                                "etmv4-juno-uname-001",
                                                "etmv4-juno-uname-002",
                                                "etmv4-juno_r1_1",
                                                "etmv4-ricsec-fib-1-program",
                                                "etmv4-simpleperf-etm_test_loop",
                                                "etmv4-test-file-mem-offsets",
                                                "ete-001-ack_test",
                                                "ete-002-ack_test_scr",
                                                "ete-ete-ite-instr",
                                                "ete-ete_ip",
                                                "ete-ete_spec_1",
                                                "ete-ete_spec_2",
                                                "ete-event_test",
                                                "ete-feat_cmpbr",
                                                "ete-maxspec0_commopt1",
                                                "ete-maxspec78_commopt0",
                                                "ete-pauth_lr",
                                                "ete-q_elem",
                                                "ete-rme_test",
                                                "ete-s_9001",
                                                "ete-tme_simple",
                                                "ete-tme_tcancel",
                                                "ete-trace_file_cid_vmid",
                                                "ete-ts_marker"};
[[nodiscard]] inline auto captures() { return testing::ValuesIn(capture_names); }
[[nodiscard]] inline std::string capture_test_name(const testing::TestParamInfo<const char*>& which) {
    std::string out = which.param;
    std::replace_if(
        out.begin(), out.end(), [](char c) { return c == '-' || c == '.'; }, '_');
    return out;
}

/// A test of one of these captures.
class CaptureTest : public testing::TestWithParam<const char*> {
protected:
    /// `endings`: of the golden's name, the best first.
    void find(const std::vector<const char*>& endings) {
        std::string folder = GetParam();
        folder.replace(folder.find('-'), 1, "/");
        folder_ = support::corpus_path(folder);
        const std::string golden = "../conformance/golden/" + std::string(GetParam());
        for (const char* end : endings)
            if (golden_.empty() && std::filesystem::exists(support::corpus_path(golden + end)))
                golden_ = support::corpus_path(golden + end);
        WM_NEEDS_CORPUS(folder);
        WM_NEEDS_CORPUS("../conformance/golden");
        if (golden_.empty())
            GTEST_SKIP() << "no " << golden << endings.back()
                         << ": set WAYMARK_CORPUS to the folder of the real captures";
    }
    std::filesystem::path folder_, golden_;
};

}  // namespace waymark::etm4
