/// Where the trace of the units beside a core goes: into a file for each unit, or through a funnel into CoreSight
/// frames in one file.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/core/byte_sink.h"
#include "waymark/core/result.h"
#include "waymark/coresight/sinks.h"

namespace waymark::record {

class TraceOutput {
public:
    /// `joined`: the units share a funnel.
    TraceOutput(std::filesystem::path folder, bool joined) : folder_(std::move(folder)), joined_(joined) {}

    /// The end of a unit's trace, and the ID of the unit there: 0 without a funnel.
    struct Input {
        ByteSink& trace;
        coresight::TraceId id;
    };
    /// `id`: of the unit in the funnel. `buffer`: the name of the buffer that holds its trace alone. Errors:
    /// `unreadable`: the file cannot be created.
    [[nodiscard]] Result<Input> add(std::string_view source, std::string_view buffer, coresight::TraceId id);
    /// Completes the files, and describes the buffers.
    [[nodiscard]] Status finish(capture::Capture& capture);

private:
    class File final : public ByteSink {
    public:
        File(std::filesystem::path at, std::string_view name)
            : path(std::move(at)), buffer(name), out(path, std::ios::binary) {}
        void write(Bytes bytes) override {
            out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        }
        const std::filesystem::path path;
        const std::string buffer;
        std::ofstream out;
        std::vector<std::string> sources{};
    };
    [[nodiscard]] Result<File*> open(const std::string& name, std::string_view buffer);

    const std::filesystem::path folder_;
    const bool joined_;
    std::vector<std::unique_ptr<File>> files_;
    std::unique_ptr<coresight::FrameSink> frames_;
    std::unique_ptr<coresight::Funnel> funnel_;
};

}  // namespace waymark::record
