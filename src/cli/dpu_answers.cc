#include "dpu_answers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "waymark/core/regular_file.h"
#include "waymark/core/wire.h"
#include "waymark/doctor/dpu.h"
#include "waymark/dpu/registers.h"
#include "waymark/image/agreement.h"

namespace waymark::cli {

// ---- FileBytes

Result<FileBytes> FileBytes::open(const std::string& path) {
    if (const auto error = no_regular_file(path)) return *error;
    const auto cannot = [&] {
        return Error{Errc::unreadable, fmt::format("cannot read {}: {}", path, std::strerror(errno))};
    };
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return cannot();
    struct stat about {};
    if (fstat(file, &about) != 0) {
        const Error error = cannot();
        close(file);
        return error;
    }
    FileBytes out;
    if (about.st_size != 0) {
        void* const memory = mmap(nullptr, static_cast<std::size_t>(about.st_size), PROT_READ, MAP_PRIVATE, file, 0);
        if (memory == MAP_FAILED) {
            const Error error = cannot();
            close(file);
            return error;
        }
        out.data_ = static_cast<const std::uint8_t*>(memory);
        out.size_ = static_cast<std::size_t>(about.st_size);
    }
    close(file);
    return out;
}
FileBytes::FileBytes(FileBytes&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
FileBytes& FileBytes::operator=(FileBytes&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
}
FileBytes::~FileBytes() {
    if (data_ != nullptr) munmap(const_cast<std::uint8_t*>(data_), size_);
}

// ---- DpuInput

Result<DpuInput> DpuInput::open(const std::string& path) {
    DpuInput out;
    WM_ASSIGN_OR_RETURN(out.capture_, capture::read_dpu_folder(path));
    WM_ASSIGN_OR_RETURN(out.trace_, pipeline::dpu_trace(out.capture_));
    if (!out.capture_.buffer.empty()) {
        WM_ASSIGN_OR_RETURN(out.dump_, FileBytes::open(out.capture_.buffer.string()));
    }
    return out;
}

std::uint64_t DpuInput::missing_bytes() const { return doctor::missing_bytes(capture_, trace_, dump().size()); }

bool DpuInput::tells(const dpu::Totals& totals) { return doctor::tells(totals); }

bool DpuInput::is_cut(const pipeline::DpuDecoded& decoded) const {
    return !capture_.buffer.empty() && (decoded.cut || missing_bytes() != 0);
}
std::string DpuInput::cut_text() const {
    return fmt::format("{} is cut; give the whole file to see the rest", capture_.buffer.string());
}
std::string DpuInput::why_nothing() const { return doctor::why_nothing(capture_, trace_, dump()); }

std::optional<std::uint32_t> DpuInput::value(std::string_view name) const {
    const capture::Register* found = capture_.find_register(name);
    return found == nullptr ? std::nullopt : std::optional(static_cast<std::uint32_t>(found->value));
}

std::optional<dpu::EventWire> DpuInput::event(unsigned counter) const {
    const unsigned place = counter % dpu::counters_per_triad;
    const auto triad = value(counter < dpu::counters_per_triad ? "DP_TAC" : "DP_TBC");
    if (!triad) return std::nullopt;
    dpu::DpTac control = dpu::from_value<dpu::DpTac>(*triad);
    if (!control.tcen) {
        const auto own = value(fmt::format("DP_C{}C", dpu::counter_name(counter)));
        if (!own) return std::nullopt;
        control = dpu::from_value<dpu::DpTac>(*own);
    }
    return control.ceg < dpu::event_sets ? dpu::event_set(control.ceg)[place] : dpu::EventWire::none;
}

bool DpuInput::wraps(unsigned counter) const {
    const auto triad =
        dpu::from_value<dpu::DpTac>(value(counter < dpu::counters_per_triad ? "DP_TAC" : "DP_TBC").value_or(0));
    if (triad.tcen) return triad.cmode == static_cast<std::uint8_t>(dpu::CounterMode::trace);
    const auto own = value(fmt::format("DP_C{}C", dpu::counter_name(counter)));
    return dpu::from_value<dpu::DpTac>(own.value_or(0)).cmode == static_cast<std::uint8_t>(dpu::CounterMode::trace);
}

std::optional<dpu::TraceMode> DpuInput::mode() const { return doctor::mode_of(trace_); }

std::string DpuInput::mode_text() const { return doctor::mode_text(trace_); }

std::string DpuInput::event_name(unsigned counter) const {
    const auto wire = event(counter);
    if (!wire) return std::string(dpu::counter_name(counter));
    if (wire == dpu::EventWire::none) return std::string(name(*wire));
    unsigned same = 0;
    for (unsigned i = 0; i < dpu::counter_count; ++i) same += event(i) == wire ? 1U : 0U;
    return (same > 1 ? std::string(dpu::counter_name(counter)) + " " : std::string()) + std::string(name(*wire));
}

bool DpuInput::is_driven(unsigned counter) const {
    const auto wire = event(counter);
    if (!wire || !capture_.driven || dpu::is_own(*wire)) return true;
    return std::find(capture_.driven->begin(), capture_.driven->end(), name(*wire)) != capture_.driven->end();
}

std::string DpuInput::parameter(std::string_view name) const {
    for (const auto& [key, value] : capture_.parameters)
        if (key == name) return value;
    return {};
}

std::vector<std::string> DpuInput::name_code(analysis::DpuCode& code) const {
    std::vector<std::string> out;
    for (const doctor::DpuImageProblem& problem : doctor::name_code(capture_, code))
        out.push_back(problem.what + "; " + doctor::cost_and_remedy(problem));
    return out;
}

analysis::DpuSetup DpuInput::setup() const {
    analysis::DpuSetup out = doctor::setup_of(capture_, trace_);
    for (unsigned c = 0; c < dpu::counter_count; ++c)
        if (event(c) == dpu::EventWire::cycles && wraps(c) && !out.cycles) out.cycles = c;
    return out;
}

waymark::Status add_image(analysis::DpuCode& code, const std::string& text) {
    std::string path = text;
    std::uint64_t bias = 0;
    // A file may have the sign in its name.
    if (const auto at = text.rfind('@'); at != text.npos && !std::filesystem::exists(text)) {
        if (!wire::scan_number(text.substr(at + 1), bias))
            return Error{Errc::usage,
                         fmt::format("--image {}: '{}' is no load bias, and there is no file of that name; "
                                     "write FILE or FILE@0x10000",
                                     text, text.substr(at + 1))};
        path = text.substr(0, at);
    }
    if (bias > 0xffffffff) return Error{Errc::usage, fmt::format("--image {}: a load bias has 32 bits", text)};
    if (const auto found = image::agreement(path, 0, {}); found && found->machine != image::Machine::arm)
        return Error{Errc::unsupported,
                     fmt::format("--image {}: it is a program for {}, but programs for {} stand in for the unit's core",
                                 text, image::name(found->machine), image::name(image::Machine::arm))};
    if (std::string problem = code.add_image(path, static_cast<std::uint32_t>(bias)); !problem.empty())
        return Error{Errc::unreadable, "--image " + text + ": " + problem};
    return Nothing{};
}

void warn(const DpuInput& input) {
    for (const capture::Problem& problem : input.capture().problems) say("warning", capture::to_string(problem));
}

}  // namespace waymark::cli
