/// Snapshot folders from hostile texts: reading must end, and neither crash nor lose its way. The input is the files of
/// a folder one after another, each after the first headed by a line `==> NAME`; the first is snapshot.ini.
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "waymark/capture/snapshot.h"
#include "waymark/core/result.h"

namespace {

using namespace waymark;

class Texts final : public capture::FileAccess {
public:
    explicit Texts(std::string_view input) {
        constexpr std::string_view mark = "\n==> ";
        std::string name = "snapshot.ini";
        while (true) {
            const std::size_t next = input.find(mark);
            texts_[name] = std::string(input.substr(0, next));
            if (next == input.npos) return;
            input.remove_prefix(next + mark.size());
            const std::size_t end = input.find('\n');
            name = std::string(input.substr(0, end));
            input.remove_prefix(end == input.npos ? input.size() : end + 1);
        }
    }

    [[nodiscard]] Result<std::string> text(const std::filesystem::path& path, std::uint64_t limit) const override {
        const auto found = texts_.find(path.string());
        if (found == texts_.end()) return Error{Errc::not_found, "there is no such file"};
        if (found->second.size() > limit) return Error{Errc::unsupported, "too long"};
        return found->second;
    }
    [[nodiscard]] Result<std::uint64_t> size(const std::filesystem::path& path) const override {
        // Any answer will do, as long as it is always the same.
        const std::uint64_t bytes = std::hash<std::string>()(path.string()) % 65536;
        if (bytes % 4 == 1) return Error{Errc::not_found, "there is no such file"};
        return bytes;
    }

private:
    std::map<std::string, std::string> texts_;
};

/// All files and ranges to which a capture refers are there.
void check_links(const capture::Capture& capture) {
    for (const capture::Source& source : capture.sources) {
        WM_CHECK(!source.name.empty());
        if (source.core.empty()) continue;
        const capture::Core* core = capture.find_core(source.core);
        WM_CHECK(core != nullptr && core->type == source.core_type);
    }
    for (const capture::Buffer& buffer : capture.buffers)
        for (const std::string& source : buffer.sources) WM_CHECK(capture.find_source(source) != nullptr);
    for (const capture::MemoryDump& dump : capture.dumps)
        WM_CHECK(dump.core.empty() || capture.find_core(dump.core) != nullptr);
    for (const capture::Problem& problem : capture.problems) WM_CHECK(!capture::to_string(problem).empty());
    for (const capture::Core& core : capture.cores)
        for (const capture::Register& reg : core.registers)
            WM_CHECK(reg.bits >= 1 && reg.bits <= 64 && (reg.bits == 64 || (reg.value >> reg.bits) == 0));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const Texts files(std::string_view(reinterpret_cast<const char*>(data), size));
    const auto capture = capture::read_snapshot("snapshot.ini", files);
    if (capture) {
        check_links(*capture);
        WM_CHECK(capture::read_snapshot("snapshot.ini", files).value() == *capture);
    } else {
        WM_CHECK(!capture.error().message.empty());
    }
    return 0;
}
