#include "waymark/doctor/dpu_input.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "waymark/core/regular_file.h"
#include "waymark/doctor/finding.h"

namespace waymark::doctor {

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
    out.counters_ = counters_of(out.capture_);
    if (out.trace_.nexus) {
        WM_ASSIGN_OR_RETURN(out.messages_, FileBytes::open(out.capture_.nexus.string()));
    }
    if (!out.capture_.buffer.empty()) {
        WM_ASSIGN_OR_RETURN(out.dump_, FileBytes::open(out.capture_.buffer.string()));
    }
    return out;
}

std::uint64_t DpuInput::missing_bytes() const { return doctor::missing_bytes(capture_, trace_, dump().size()); }

bool DpuInput::has_content(const dpu::Totals& totals) { return doctor::has_content(totals); }

bool DpuInput::is_cut(const pipeline::DpuDecoded& decoded) const {
    return !trace_.nexus && !capture_.buffer.empty() && (decoded.cut || missing_bytes() != 0);
}
std::string DpuInput::cut_text() const {
    return fmt::format("{} is cut; give the whole file to see the rest", capture_.buffer.string());
}
std::string DpuInput::why_nothing() const { return doctor::why_nothing(capture_, trace_, dump()); }

std::optional<std::uint32_t> DpuInput::value(std::string_view name) const {
    const capture::Register* found = capture_.find_register(name);
    return found == nullptr ? std::nullopt : std::optional(static_cast<std::uint32_t>(found->value));
}

std::optional<dpu::TraceMode> DpuInput::mode() const { return mode_of(trace_); }

std::string DpuInput::mode_text() const { return doctor::mode_text(trace_); }

std::vector<std::string> DpuInput::name_code(analysis::DpuCode& code) const {
    std::vector<std::string> out;
    for (const DpuImageProblem& problem : doctor::name_code(capture_, trace_, trace_bytes().size(), code))
        out.push_back(problem.what + "; " + cost_and_remedy(problem));
    out = gathered(out);
    if (std::string turns = turns_not_known(capture_, code); !turns.empty()) out.push_back(std::move(turns));
    return out;
}

analysis::DpuSetup DpuInput::setup() const { return setup_of(capture_, trace_); }

analysis::DpuSaid DpuInput::said(const analysis::DpuSetup& setup, const pipeline::DpuDecoded& decoded) const {
    return said_of(capture_, trace_, setup, decoded, dump().size());
}

}  // namespace waymark::doctor
