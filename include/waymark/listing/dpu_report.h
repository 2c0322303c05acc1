/// Views of a Debug and Profiling Unit's trace as text, TSV and JSON: costs by task, function and code, and what
/// register programs do.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/analysis/dpu_tables.h"
#include "waymark/doctor/dpu_view.h"
#include "waymark/dpu/register_program.h"
#include "waymark/listing/text.h"

namespace waymark::listing {

/// The tables of a view, and remarks on them.
struct DpuReport {
    std::string view;
    std::vector<analysis::DpuTable> parts;
    std::vector<std::string> notes;

    /// Whether the costs of the rows add up to the total of each table.
    [[nodiscard]] bool adds_up(const doctor::DpuView& of) const;
    /// Whether the view shows data that the program or the unit itself reports: without rows there is nothing to show.
    [[nodiscard]] bool has_only_rows() const;
};
/// `view`: as of DpuView::make; `limit`: maximum rows of text; 0: all; nullopt: as is usual for the view.
[[nodiscard]] DpuReport dpu_report(const doctor::DpuView& of, const std::string& view, LineFormat format,
                                   std::optional<std::uint64_t> limit);
/// In TSV the first table alone.
void print_dpu_report(TextSink& out, const doctor::DpuView& of, const DpuReport& report, LineFormat format);
/// Prints a line for each path: names from the root, and the count.
void print_dpu_paths(TextSink& out, const doctor::DpuView& of);

/// Prints a register program, what it does, and what is wrong with it. `format`: text or json.
void print_dpu_program(TextSink& out, const dpu::RegisterProgram& program, const std::vector<dpu::Diagnosis>& wrong,
                       LineFormat format);

}  // namespace waymark::listing
