#include "waymark/doctor/dpu_dump.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <system_error>

#include "waymark/capture/dpu_folder.h"
#include "waymark/capture/text_file.h"
#include "waymark/core/numbers.h"
#include "waymark/doctor/dpu_input.h"
#include "waymark/dpu/registers.h"
#include "waymark/dpu/vtb.h"
#include "waymark/flow/unit_program.h"
#include "waymark/pipeline/protocols.h"

namespace waymark::doctor {

bool is_dpu_registers(const std::string& path) {
    const auto text = capture::read_text_file(path, capture::most_settings_bytes);
    if (!text || text->find('\0') != text->npos) return false;
    const auto settings = flow::read_register_settings(*text, path);
    return settings && !settings->empty() && dpu::Registers::find(settings->front().name).has_value();
}

Result<std::vector<std::string>> write_dpu_dump(const std::string& registers, const std::string& dump,
                                                const std::filesystem::path& folder) {
    WM_ASSIGN_OR_RETURN(const std::string text, capture::read_text_file(registers, capture::most_settings_bytes));
    WM_ASSIGN_OR_RETURN(const auto settings, flow::read_register_settings(text, registers));
    WM_ASSIGN_OR_RETURN(const FileBytes file, FileBytes::open(dump));
    const Bytes bytes = file.bytes();
    std::vector<std::string> out;
    capture::DpuCapture c;
    c.layout = std::string(dpu::layout_name);
    std::map<std::uint32_t, std::uint32_t> values;
    std::string others;
    for (const flow::RegisterSetting& s : settings) {
        const auto about = dpu::Registers::find(s.name);
        if (!about) {
            others += (others.empty() ? "" : ", ") + s.name;
            continue;
        }
        const dpu::Registers empty;
        const flow::SettableRegister it{std::string(about->name), values[about->offset], 0xffffffff, 4,
                                        empty.fields(about->offset)};
        WM_ASSIGN_OR_RETURN(const std::uint64_t value, flow::value_after(s, it));
        values[about->offset] = static_cast<std::uint32_t>(value);
    }
    for (const auto& [offset, value] : values)
        if (offset < dpu::DpTd::offset)
            c.registers.push_back({std::string(dpu::Registers::find(offset)->name), value, {}});
    if (!others.empty()) out.push_back(fmt::format("not registers of a DPU, so omitted: {}", others));
    if (!values.contains(dpu::DpTc::offset))
        return Error{
            Errc::usage,
            fmt::format("{}: there is no DP_TC, which contains the mode in which the words were written; dump it too",
                        registers)};
    const auto tc = from_value<dpu::DpTc>(values[dpu::DpTc::offset]);
    const bool ring = values.contains(dpu::DpTsa::offset) && values.contains(dpu::DpTea::offset);
    if (ring && tc.vtb_mode() != dpu::VtbMode::single_address) {
        const std::uint64_t first = values[dpu::DpTsa::offset] & ~(dpu::line_bytes - 1),
                            last = values[dpu::DpTea::offset] & ~(dpu::line_bytes - 1);
        if (last < first || bytes.size() != last - first + dpu::line_bytes)
            return Error{Errc::usage,
                         fmt::format("{}: it has {}, but DP_TSA {:#x} and DP_TEA {:#x} give a buffer of {}; dump the "
                                     "memory from DP_TSA to DP_TEA + 31, and its registers at the same time",
                                     dump, counted(bytes.size(), "byte"), first, last,
                                     last < first ? "no size" : counted(last - first + dpu::line_bytes, "byte"))};
        if (!values.contains(dpu::DpTw::offset))
            out.emplace_back(
                "DP_TW is not given, so the place of the oldest word is not known; the buffer is read from its first "
                "byte");
    } else if (!ring) {
        out.emplace_back("DP_TSA and DP_TEA are not both given: the dump is read from its first byte");
    }
    // The flags show the order of the bytes in a word.
    protocol::Identity identity;
    protocol::Stretch stretch;
    stretch.bytes.assign(bytes.begin(), bytes.end());
    std::vector<protocol::Stretch> stretches;
    stretches.push_back(std::move(stretch));
    const bool recognised = pipeline::protocol_of_unit("DPU")->identify(stretches, identity);
    const auto order = std::find_if(identity.facts.begin(), identity.facts.end(),
                                    [](const auto& fact) { return fact.what == "byte order"; });
    c.little_endian = order != identity.facts.end() && order->value == "little-endian";
    out.push_back(order != identity.facts.end() ? fmt::format("byte order: {} ({})", order->value, order->proof)
                  : recognised                  ? "byte order: big-endian is assumed"
                               : "byte order: big-endian is assumed, for the dump has too few flags to show it");
    std::error_code error;
    if (std::filesystem::exists(folder, error) && !std::filesystem::is_empty(folder, error))
        return Error{Errc::usage, fmt::format("{} exists and is not empty; name another folder", folder.string())};
    std::filesystem::create_directories(folder, error);
    c.buffer = folder / "vtb.bin";
    std::ofstream copy(c.buffer, std::ios::binary);
    copy.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!copy.flush()) return Error{Errc::unreadable, fmt::format("cannot write {}", c.buffer.string())};
    WM_RETURN_IF_ERROR(capture::write_dpu_folder(c, folder));
    return out;
}

}  // namespace waymark::doctor
