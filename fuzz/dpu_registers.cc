/// Register programs from hostile files: reading ends, a program that was read reads the same again, and no program,
/// whatever happens around it, crashes the unit or makes it write a trace that its own reader does not understand.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dpu/unit_driver.h"
#include "waymark/core/result.h"
#include "waymark/dpu/model.h"
#include "waymark/dpu/register_program.h"

namespace {

using namespace waymark;

/// Execution made of the input's own bytes.
class Execution {
public:
    Execution(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
    std::uint8_t byte() { return size_ == 0 ? 0 : data_[at_++ % size_]; }
    dpu::CoreContext context() {
        const std::uint8_t b = byte();
        return {(b & 1U) != 0, static_cast<std::uint8_t>(b >> 1 & 3U), static_cast<std::uint8_t>(b >> 3 & 3U)};
    }
    void next(dpu::CycleInput& in) {
        items_.clear();
        for (unsigned n = byte() % 4U; n != 0; --n) {
            dpu::EonceItem item;
            item.kind = static_cast<dpu::ItemKind>(byte() % 12U);
            item.channel = byte();
            item.cause = static_cast<dpu::InterruptCause>(byte() % 3U);
            item.src = (byte() % 16U == 0 ? 0xfff0a000U : 0x00400000U) + byte();
            item.dst = 0x00400000U + byte();
            item.after = context();
            items_.push_back(item);
        }
        in.items = items_;
        in.ctx = context();
        const std::uint8_t b = byte();
        in.in_debug = (b & 1U) != 0;
        in.bus_others = (b & 2U) != 0;
        in.eonce_irq = (b & 4U) != 0;
        in.debug_ext = (b & 8U) != 0;
        in.debug_nexus = (b & 16U) != 0;
        in.dpue = b != 0xff;
        in.wire.fill(b & 7U);
    }

private:
    const std::uint8_t* data_;
    std::size_t size_, at_ = 0;
    std::vector<dpu::EonceItem> items_;
};

dpu::ModelConfig config_from(std::uint8_t b) {
    dpu::ModelConfig config;
    config.eonce = dpu::EonceSetup::for_mode(static_cast<dpu::TraceMode>(b & 7U));
    config.eonce.tmark = (b & 8U) != 0;
    config.choices.full = (b & 16U) != 0 ? dpu::ModelChoices::Full::stall : dpu::ModelChoices::Full::drop;
    config.choices.high = (b & 32U) != 0 ? dpu::ModelChoices::Grant::when_idle : dpu::ModelChoices::Grant::always;
    config.choices.drain_words_per_cycle = b >> 6;
    config.choices.nexus_queue_bytes = b;
    config.choices.nexus_bytes_per_cycle = b >> 4;
    return config;
}

void check_output(const dpu::CycleOutput& out) {
    for (const dpu::Burst& burst : out.bursts) WM_CHECK(burst.lines >= 1 && burst.lines <= 8);
    for (const dpu::ProgrammingError& error : out.errors) WM_CHECK(!error.message.empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const auto program = dpu::read_program({reinterpret_cast<const char*>(data), size});
    if (!program) {
        WM_CHECK(!program.error().message.empty());
        return 0;
    }
    const auto again = dpu::read_program(dpu::to_text(*program));
    WM_CHECK(again && *again == *program);
    const dpu::ModelConfig config = config_from(size == 0 ? 0 : data[size - 1]);
    for (const dpu::Diagnosis& d : dpu::diagnose(*program, config)) WM_CHECK(!d.message.empty());

    dpu::Model model(config);
    dpu::test::PeriodCheck trace;
    Execution execution(data, size);
    dpu::CycleInput in;
    for (const dpu::RegisterWrite& write : *program) {
        model.write(write.offset, write.value);
        const std::uint32_t waiting = model.read(write.offset);
        execution.next(in);
        const dpu::CycleOutput& cycle = model.step(in);
        check_output(cycle);
        trace.take(model, cycle);
        in.items = {};
        if (const dpu::CycleOutput* out = model.run(in, execution.byte())) {
            check_output(*out);
            trace.take(model, *out);
        }
        WM_CHECK(model.counts().lines_written * 8 <= model.counts().words);
        if (!dpu::Registers::find(write.offset)) WM_CHECK(waiting == 0);
    }
    WM_CHECK(trace.misunderstood(model) == 0);
    return 0;
}
