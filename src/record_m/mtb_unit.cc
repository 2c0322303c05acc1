#include "mtb_unit.h"

#include <fmt/format.h>

#include <bit>
#include <fstream>
#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/mtb/registers.h"
#include "waymark/record/files.h"

namespace waymark::record {

namespace {
constexpr const char *mtb_name = "MTB_0", *mtb_file = "trace_MTB_0.bin", *mtb_truth = "truth_MTB_0.bin";
// A range without a taken branch is as long as the code, and one packet shows the code since the previous packet.
constexpr std::size_t most_waiting = std::size_t{1} << 20;
}  // namespace

Result<std::unique_ptr<CoreUnit>> MtbUnit::create(const std::filesystem::path& folder, std::uint64_t bytes,
                                                  std::optional<std::uint64_t> watermark) {
    mtb::ModelConfig config;
    config.mask = static_cast<unsigned>(std::countr_zero(bytes)) - 4;
    if (watermark) config.stop_at = static_cast<std::uint32_t>(*watermark % bytes);
    WM_ASSIGN_OR_RETURN(auto ranges, RangeWriter::create(folder / mtb_truth));
    return std::unique_ptr<CoreUnit>(new MtbUnit(folder, config, std::move(ranges)));
}

void MtbUnit::enable(bool on) {
    forget();
    wanted_ = on;
    placed_ = false;
    model_.enable(on);
}

void MtbUnit::step(const CoreInstruction& i) {
    if (open_.instructions == 0) open_.start = i.address;
    ++open_.instructions;
    open_.end = i.address + i.bytes;
    if (i.decoded.waypoint != isa::Waypoint::none) close_range();
}

void MtbUnit::close_range() {
    if (open_.instructions != 0) waiting_.push_back(std::exchange(open_, {}));
    if (waiting_.size() <= most_waiting) return;
    truth_.unfinished_instructions += waiting_.front().instructions;
    waiting_.erase(waiting_.begin());
}

void MtbUnit::forget() {
    close_range();
    for (const TruthRange& range : waiting_) {
        const bool stopped = wanted_ && !model_.enabled();
        if (stopped) ++truth_.filtered_ranges;
        (stopped ? truth_.filtered_instructions : truth_.unfinished_instructions) += range.instructions;
    }
    waiting_.clear();
}

void MtbUnit::settle(std::uint64_t packets_before) {
    if (model_.packets() == packets_before) {
        // After the watermark stops tracing, no packet shows this code any more.
        if (!model_.enabled() && open_.instructions == 0) forget();
        return;
    }
    close_range();
    if (!std::exchange(placed_, true)) return forget();
    for (const TruthRange& range : waiting_) {
        truth_.add(range);
        ranges_->add(range);
    }
    waiting_.clear();
}

void MtbUnit::instruction(const CoreInstruction& i, std::uint32_t next, std::uint64_t) {
    if (!wanted_) return;
    step(i);
    if (next != i.address + i.bytes) close_range();
    // Two packets show a return by FNC_RETURN: the branch there, and where that leads (docs/spec/mtb.md, 3).
    constexpr std::uint32_t fnc_return = 0xfefffffe;
    const std::uint64_t before = model_.packets();
    model_.instruction(i.address, i.bytes, i.function_return ? fnc_return : next);
    settle(before);
    if (i.function_return) returned(fnc_return, next, 0, 0);
}

void MtbUnit::lost(const CoreInstruction& i, std::uint64_t) {
    if (!wanted_) return;
    step(i);
    forget();
    // The packets of the branch and of the exception are not known: trace begins again in the handler.
    placed_ = false;
    if (!model_.enabled()) return;
    model_.enable(false);
    model_.enable(true);
}

void MtbUnit::exception(std::uint32_t, std::optional<std::uint32_t> back, std::uint32_t handler, std::uint64_t) {
    if (!wanted_) return;
    close_range();
    if (!back) {
        forget();
        placed_ = false;
        return;
    }
    const std::uint64_t before = model_.packets();
    model_.exception(*back, handler);
    settle(before);
}

void MtbUnit::returned(std::uint32_t exc_return, std::uint32_t to, std::uint32_t, std::uint64_t) {
    if (!wanted_) return;
    const std::uint64_t before = model_.packets();
    model_.returned(exc_return, to);
    settle(before);
}

Status MtbUnit::finish(const std::string& core, const std::string& core_type, std::uint32_t vectors,
                       capture::Capture& capture, Truth& truth) {
    forget();
    const std::filesystem::path file = folder_ / mtb_file;
    std::ofstream out(file, std::ios::binary);
    const std::vector<std::uint8_t>& bytes = model_.buffer();
    if (!out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size())).flush())
        return cannot("write", file);
    if (!ranges_->flush()) return cannot("write", folder_ / mtb_truth);
    // Software stops tracing before it reads the memory.
    model_.enable(false);
    std::vector<RegisterValue> registers = model_.registers();
    registers.push_back(register_value(mtb::Vtor{vectors}));
    capture.sources.push_back(
        {.name = mtb_name, .type = "MTB", .core = core, .core_type = core_type, .registers = std::move(registers)});
    capture.buffers.push_back(
        {"MTB", capture::Buffer::Format::source_data, "source_data", {file}, {std::string(mtb_name)}});
    truth_.source = mtb_name;
    truth_.file = mtb_truth;
    truth_.wrapped = model_.packets() * 8 > bytes.size();
    truth.sources.push_back(truth_);
    return Nothing{};
}

std::string MtbUnit::summary() const {
    const std::uint64_t kept = model_.buffer().size() / 8;
    return fmt::format("{} of the MTB{}", counted(model_.packets(), "packet"),
                       model_.packets() > kept ? fmt::format(" (the buffer keeps the last {})", kept) : std::string());
}

}  // namespace waymark::record
