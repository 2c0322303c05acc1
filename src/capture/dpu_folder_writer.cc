#include <fmt/format.h>
#include <fmt/ranges.h>

#include <system_error>

#include "disk_access.h"
#include "dpu_counters.h"
#include "ini.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/capture/dpu_folder.h"

namespace waymark::capture {
namespace {

namespace fs = std::filesystem;

std::string context_text(const DpuContext& c) {
    return fmt::format("{},{},{}", c.supervisor ? "supervisor" : "user", c.pid, c.did);
}

class DpuFolderWriter {
public:
    DpuFolderWriter(const DpuCapture& capture, fs::path folder) : capture_(capture), folder_(std::move(folder)) {}

    Result<std::string> text() const {
        const DpuCapture& c = capture_;
        WM_RETURN_IF_ERROR(check_value(dpu_ini, "layout", c.layout));
        std::string out = fmt::format("[dpu]\nversion=1\nlayout={}\ndpu_base={:#010x}\nbyte_order={}\n", c.layout,
                                      c.dpu_base, c.little_endian ? "little" : "big");
        for (const auto& [key, file] : {std::pair("buffer", &c.buffer), std::pair("nexus", &c.nexus)}) {
            if (file->empty()) continue;
            WM_ASSIGN_OR_RETURN(const std::string name, relative(*file));
            out += fmt::format("{}={}\n", key, name);
        }
        if (c.lines_written) out += fmt::format("lines_written={}\n", *c.lines_written);
        if (c.readout) out += "readout=1\n";
        if (!c.overruns.empty()) out += fmt::format("overruns={:#x}\n", fmt::join(c.overruns, ","));
        if (!c.registers.empty()) out += "\n[registers]\n";
        for (const Register& r : c.registers) {
            WM_RETURN_IF_ERROR(check_value(dpu_ini, "register", r.name, "=["));
            out += fmt::format("{}={:#010x}\n", r.name, r.value);
        }
        if (c.initial || c.initial_context) out += "\n[initial]\n" + values(c.initial);
        if (c.initial_context) out += fmt::format("context={}\n", context_text(*c.initial_context));
        if (c.final) out += "\n[final]\n" + values(c.final);
        if (c.eonce_classes || c.eonce_counters) out += "\n[eonce]\n";
        if (c.eonce_classes) {
            WM_ASSIGN_OR_RETURN(const std::string classes, list("EOnCE class", *c.eonce_classes));
            out += fmt::format("classes={}\n", classes);
        }
        if (c.eonce_counters) out += fmt::format("counters={}\n", *c.eonce_counters);
        if (c.driven) {
            WM_ASSIGN_OR_RETURN(const std::string driven, list("event", *c.driven));
            out += fmt::format("\n[events]\ndriven={}\n", driven);
        }
        if (c.history) {
            out += "\n[counters]\n";
            for (const auto& [key, mask] : {std::pair("partial", c.history->partial),
                                            {"changed", c.history->changed},
                                            {"rewritten", c.history->rewritten}}) {
                std::vector<std::string_view> names;
                for (std::size_t i = 0; i < dpu_counters.size(); ++i)
                    if ((mask >> i & 1U) != 0) names.push_back(dpu_counters[i]);
                if (!names.empty()) out += fmt::format("{}={}\n", key, fmt::join(names, ","));
            }
        }
        for (std::size_t i = 0; i < c.filters.size(); ++i) {
            const DpuFilter& f = c.filters[i];
            out += fmt::format("\n[filter{}]\nwords={}\nDP_TC={:#010x}\nDP_CR={:#010x}\nDP_RPID={:#x}\nDP_RDID={:#x}\n",
                               i, f.words, (f.idflt ? 1U << 11 : 0U) | (f.tids ? 1U << 5 : 0U),
                               std::uint32_t{f.tidcm} << 28, f.rpid, f.rdid);
            if (f.message_bytes) out += fmt::format("message_bytes={}\n", *f.message_bytes);
        }
        for (std::size_t i = 0; i < c.periods.size(); ++i) {
            const DpuPeriod& p = c.periods[i];
            out += fmt::format("\n[period{}]\nDP_TW={:#010x}\nDP_TC={:#010x}\n", i, p.dp_tw, p.dp_tc);
            if (p.context) out += fmt::format("context={}\n", context_text(*p.context));
            if (p.lines_written) out += fmt::format("lines_written={}\n", *p.lines_written);
        }
        WM_ASSIGN_OR_RETURN(const std::string rest, programs());
        return out + rest;
    }

private:
    static std::string values(const std::optional<DpuCapture::Values>& values) {
        std::string out;
        for (std::size_t i = 0; values && i < dpu_counters.size(); ++i)
            out += fmt::format("{}={:#010x}\n", dpu_counters[i], (*values)[i]);
        return out;
    }
    static Result<std::string> list(std::string_view what, const std::vector<std::string>& parts) {
        std::string out;
        for (const std::string& part : parts) {
            WM_RETURN_IF_ERROR(check_value(dpu_ini, what, part, ",()"));
            if (!out.empty()) out += ',';
            out += part;
        }
        return out;
    }
    Result<std::string> programs() const {
        std::string out;
        if (!capture_.images.empty()) out += "\n[images]\n";
        for (std::size_t i = 0; i < capture_.images.size(); ++i) {
            WM_ASSIGN_OR_RETURN(const std::string name, relative(capture_.images[i].path));
            out += fmt::format("image{}={}\n", i, name);
            if (const std::uint32_t bias = capture_.images[i].load_bias; bias != 0)
                out += fmt::format("image{}.load_bias={:#010x}\n", i, bias);
        }
        if (!capture_.windows.empty()) out += "\n[address_map]\n";
        for (const DpuWindow& w : capture_.windows)
            out += fmt::format("{:#x}={:#x},{:#010x}\n", w.guest, w.bytes, w.window);
        if (!capture_.symbols.empty()) out += "\n[symbols]\n";
        for (const DpuSymbol& s : capture_.symbols) {
            WM_RETURN_IF_ERROR(check_value(dpu_ini, "symbol", s.name));
            out += fmt::format("{:#010x}={}\n", s.address, s.name);
        }
        if (!capture_.parameters.empty()) out += "\n[parameters]\n";
        for (const auto& [key, value] : capture_.parameters) {
            WM_RETURN_IF_ERROR(check_value(dpu_ini, "parameter", key, "=["));
            WM_RETURN_IF_ERROR(check_value(dpu_ini, "value", value));
            out += fmt::format("{}={}\n", key, value);
        }
        return out;
    }
    [[nodiscard]] Result<std::string> relative(const fs::path& file) const {
        std::error_code ignored;
        const fs::path from = fs::absolute(folder_, ignored).lexically_normal();
        const fs::path to = fs::absolute(file, ignored).lexically_normal();
        std::string result = to.lexically_relative(from.has_filename() ? from : from.parent_path()).generic_string();
        WM_RETURN_IF_ERROR(check_value(dpu_ini, "file name", result));
        return result;
    }

    const DpuCapture& capture_;
    fs::path folder_;
};

}  // namespace

Status write_dpu_folder(const DpuCapture& capture, const fs::path& folder) {
    WM_ASSIGN_OR_RETURN(const std::string text, DpuFolderWriter(capture, folder).text());
    std::error_code failure;
    fs::create_directories(folder, failure);
    if (failure)
        return Error{Errc::unreadable,
                     fmt::format("{}: the folder cannot be made: {}", folder.string(), failure.message())};
    if (capture.modules.says_something())
        WM_RETURN_IF_ERROR(save_text(folder / module_map_file, to_text(capture.modules)));
    return save_text(folder / dpu_ini, text);
}

}  // namespace waymark::capture
