/// The texts of a recording of a DPU: its description, and the truth.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "dpu_wires.h"
#include "driven_unit.h"
#include "recorded_images.h"
#include "waymark/dpu/vtb.h"
#include "waymark/image/symbols.h"
#include "waymark/record/files.h"
#include "waymark/record_dpu/dpu.h"

namespace waymark::record {

using namespace happened;
using dpu::EventWire;

std::vector<std::string> class_names(const dpu::EonceSetup& setup) {
    std::vector<std::string> out;
    for (const auto& [on, name] : {std::pair{setup.tchof, "TCHOF"},
                                   {setup.tint, "TINT"},
                                   {setup.texec, "TEXEC"},
                                   {setup.tmark, "TMARK"},
                                   {setup.tloop, "TLOOP"},
                                   {setup.tsub, "TSUB"},
                                   {setup.trte, "TRTE"}})
        if (on) out.emplace_back(name);
    return out;
}

Status DpuRecorder::describe() {
    capture::DpuCapture c;
    c.layout = std::string(dpu::layout_name);
    c.buffer = options_.folder / dpu_buffer_file;
    if (nexus_file_ >= 0) c.nexus = options_.folder / dpu_nexus_file;
    unit_->describe(c);
    c.eonce_classes = class_names(options_.eonce);
    c.eonce_counters = 0;
    std::vector<std::string>& driven = c.driven.emplace();
    for (const EventWire wire : driven_wires()) driven.emplace_back(dpu::name(wire));
    // If nothing went to the buffer, readers use the messages.
    images_->describe(c, images_->by_message() && unit_->model().registers().tc.nexus_mode() == dpu::NexusMode::only,
                      *unit_);
    for (const auto& [address, name] : os_symbols_) {
        c.symbols.push_back({address, name});
        c.symbols.push_back({address + os_exit, name + " exit"});
    }
    c.parameters.emplace_back("program", ini_text(fmt::format("{}", fmt::join(options_.command, " "))));
    c.parameters.emplace_back("ended", ini_text(ended_));
    c.parameters.emplace_back("cycles", "modelled, as are caches and stalls");
    c.parameters.emplace_back("pid_and_did", "equal");
    for (const auto& [id, numbers] : threads_of_id_)
        c.parameters.emplace_back(fmt::format("task{}", id), fmt::format("thread {}", fmt::join(numbers, " and ")));
    CoreModel::for_each(options_.core, [&](const char* name, std::uint32_t value, const char*) {
        c.parameters.emplace_back(name, std::to_string(value));
    });
    return capture::write_dpu_folder(c, options_.folder);
}

std::string DpuRecorder::truth_text() const {
    std::string out = "# What truly happened, counted beside the unit. Cycles, stalls and caches are modelled.\n";
    out += fmt::format("complete {}\nended {}\n", ended_ == whole_run ? "yes" : "no", ini_text(ended_));
    out += unit_->truth_text();
    // Each block gets names from the file from which it ran, even if others were mapped there before or after.
    std::map<const MappedProgram*, image::Symbols> symbols;
    const auto symbol_at = [&](const Block& block) -> std::optional<image::SymbolOffset> {
        const MappedProgram* const image = images_->image_of(block.module);
        if (image == nullptr) return std::nullopt;
        const auto [at, fresh] = symbols.try_emplace(image);
        if (fresh) (void)at->second.add_elf(image->copy, image->load_bias);
        return at->second.find(block.code.address);
    };
    std::map<std::pair<std::uint64_t, std::string>, Happened> functions;
    for (const Block& block : blocks_) {
        if (block.happened.count[cycles] == 0) continue;
        const auto found = symbol_at(block);
        const auto key = found && found->symbol.kind == image::SymbolKind::function
                             ? std::pair(found->symbol.address.value, std::string(found->symbol.linkage_name))
                             : std::pair(block.code.address.value, std::string("?"));
        functions[key] += block.happened;
    }
    out += "# by where the instructions lie: address, name\n";
    for (const auto& [key, sum] : functions)
        out += fmt::format("code {:#010x} {} {}\n", key.first, key.second, counts_text(sum));
    for (const auto& [id, datum] : user_data_) out += fmt::format("user-data {} {:#010x}\n", id, datum);
    return out;
}

}  // namespace waymark::record
