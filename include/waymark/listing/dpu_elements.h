/// Lists elements of a DPU's trace, line by line.
#pragma once

#include <array>
#include <string>

#include "waymark/analysis/dpu.h"
#include "waymark/doctor/dpu_input.h"
#include "waymark/dpu/decoder.h"
#include "waymark/listing/text.h"

namespace waymark::listing {

class DpuListing final : public dpu::ElementSink {
public:
    /// All arguments are borrowed. The heading is written at once: the names of the columns, or in text the file, the
    /// layout of its words and the column heads. `code` names the functions of addresses.
    DpuListing(TextSink& out, LineFormat format, const doctor::DpuInput& input, const analysis::DpuCode& code);
    void consume(const dpu::Batch& batch) override;

private:
    TextSink& out_;
    const LineFormat format_;
    const analysis::DpuCode& code_;
    std::array<std::string, dpu::counter_count> names_;
};

}  // namespace waymark::listing
