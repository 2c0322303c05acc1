/// Captures of a Debug and Profiling Unit from hostile descriptions: reading dpu.ini and decoding by its settings must
/// end, and neither crash nor lose its way. The input is dpu.ini, and behind a line `==> ` the bytes of the buffer.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "waymark/capture/dpu_folder.h"
#include "waymark/core/result.h"
#include "waymark/pipeline/dpu.h"

namespace {

using namespace waymark;

class OneText final : public capture::FileAccess {
public:
    explicit OneText(std::string_view ini) : ini_(ini) {}
    [[nodiscard]] Result<std::string> text(const std::filesystem::path& path, std::uint64_t limit) const override {
        if (path != capture::dpu_ini) return Error{Errc::not_found, "there is no such file"};
        if (ini_.size() > limit) return Error{Errc::unsupported, "too long"};
        return std::string(ini_);
    }
    [[nodiscard]] Result<std::uint64_t> size(const std::filesystem::path& path) const override {
        // Any answer will do, as long as it is always the same.
        const std::uint64_t bytes = std::hash<std::string>()(path.string()) % 65536;
        if (bytes % 8 == 1) return Error{Errc::not_found, "there is no such file"};
        return bytes;
    }

private:
    std::string_view ini_;
};

struct Elements final : dpu::ElementSink {
    void consume(const dpu::Batch& batch) override {
        for (const dpu::Element& e : batch.elements) WM_CHECK(!e.has_reading() || e.value < batch.readings.size());
        count += batch.elements.size();
    }
    std::uint64_t count = 0;
};

/// A written capture can be read, and is the same.
void check_capture(const capture::DpuCapture& capture) {
    WM_CHECK(!capture.layout.empty() && capture.dpu_base % 4096 == 0);
    WM_CHECK(!capture.buffer.empty() || !capture.nexus.empty());
    for (const capture::Problem& problem : capture.problems) WM_CHECK(!capture::to_string(problem).empty());
    for (const capture::Register& reg : capture.registers) WM_CHECK(reg.value <= 0xffffffff);
    for (const auto& values : {capture.initial, capture.final})
        if (values)
            for (const std::uint32_t value : *values) WM_CHECK(value <= 0x7fffffff);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::string_view mark = "\n==> ";
    std::string_view text(reinterpret_cast<const char*>(data), size);
    Bytes dump;
    if (const std::size_t at = text.find(mark); at != text.npos) {
        dump = Bytes(data + at + mark.size(), size - at - mark.size());
        text = text.substr(0, at);
    }
    const OneText files(text);
    const auto capture = capture::read_dpu_folder(std::filesystem::path(capture::dpu_ini), files);
    if (!capture) {
        WM_CHECK(!capture.error().message.empty());
        return 0;
    }
    check_capture(*capture);
    WM_CHECK(capture::read_dpu_folder(std::filesystem::path(capture::dpu_ini), files).value() == *capture);
    const auto trace = pipeline::dpu_trace(*capture);
    if (!trace) return 0;
    Elements elements;
    const auto decoded = pipeline::decode_dpu(*trace, dump, elements);
    if (!decoded) {
        WM_CHECK(!decoded.error().message.empty());
        return 0;
    }
    WM_CHECK(decoded->totals.bytes <= dump.size());
    std::uint64_t gaps = 0;
    for (const std::uint64_t bytes : decoded->totals.gap_bytes) gaps += bytes;
    WM_CHECK(decoded->totals.entry_bytes + gaps == decoded->totals.bytes);
    return 0;
}
