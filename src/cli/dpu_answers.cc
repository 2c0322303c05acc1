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

#include "trouble.h"
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
    out.counters_ = doctor::counters_of(out.capture_);
    if (out.trace_.nexus) {
        WM_ASSIGN_OR_RETURN(out.messages_, FileBytes::open(out.capture_.nexus.string()));
    }
    if (!out.capture_.buffer.empty()) {
        WM_ASSIGN_OR_RETURN(out.dump_, FileBytes::open(out.capture_.buffer.string()));
    }
    return out;
}

std::uint64_t DpuInput::missing_bytes() const { return doctor::missing_bytes(capture_, trace_, dump().size()); }

bool DpuInput::tells(const dpu::Totals& totals) { return doctor::tells(totals); }

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

std::optional<dpu::TraceMode> DpuInput::mode() const { return doctor::mode_of(trace_); }

std::string DpuInput::mode_text() const { return doctor::mode_text(trace_); }

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
    for (const doctor::DpuImageProblem& problem : doctor::name_code(capture_, trace_, trace_bytes().size(), code))
        out.push_back(problem.what + "; " + doctor::cost_and_remedy(problem));
    out = gathered(out);
    if (std::string turns = doctor::turns_not_known(capture_, code); !turns.empty()) out.push_back(std::move(turns));
    return out;
}

std::vector<std::string> DpuInput::counter_rules() const {
    std::vector<std::string> out;
    for (const doctor::DpuCounter& counter : counters_)
        if (!counter.rule.empty()) out.push_back(counter.rule);
    return out;
}

analysis::DpuSetup DpuInput::setup() const { return doctor::setup_of(capture_, trace_); }

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
    for (const std::string& sentence : gathered(input.capture().problems)) say("warning", sentence);
}

std::vector<std::string> doubts_of(const DpuInput& input, const doctor::DpuSums& sums,
                                   const std::vector<unsigned>& counters, unsigned sorted_by) {
    std::vector<std::string> out;
    if (const analysis::DpuDoubted& doubted = sums.costs->doubted(); doubted.readings != 0) {
        const bool one = doubted.readings == 1;
        std::string text =
            fmt::format("{} of counters cannot be true: the trace is damaged {}, and {} left out",
                        counted(doubted.readings, "reading"),
                        one ? fmt::format("at offset {:#x}", doubted.first->value)
                            : fmt::format("from offset {:#x} to {:#x}", doubted.first->value, doubted.last->value),
                        one ? "it is" : "they are");
        if (doubted.intervals != 0)
            text += fmt::format("; the time around {}, {}in {}, is <unattributed>", one ? "it" : "them",
                                counters.empty() ? std::string()
                                                 : fmt::format("{} {} ", grouped(doubted.counts[sorted_by]),
                                                               input.event_name(sorted_by)),
                                counted(doubted.intervals, "stretch", "stretches"));
        out.push_back(std::move(text));
    }
    if (const analysis::DpuWide& wide = sums.costs->wide(); wide.intervals != 0) {
        std::string names;
        for (unsigned c = 0; c < dpu::counter_count; ++c)
            if ((wide.counters >> c & 1U) != 0)
                names += fmt::format("{}{}", names.empty() ? "" : ", ", dpu::counter_name(c));
        out.push_back(fmt::format(
            "{} in which a counter ({}) went down by 2^30 or more{}: {}{}. What is said of {} is not "
            "to be trusted",
            counted(wide.intervals, "interval"), names,
            wide.first ? fmt::format(", the first up to offset {:#x}", wide.first->value)
                       : std::string(", up to the final values"),
            analysis::wide_means,
            wide.lossy == 0 ? std::string() : fmt::format("; entries are missing in {} of them", grouped(wide.lossy)),
            wide.intervals == 1 ? "it" : "them"));
    }
    if (const std::uint64_t n = sums.costs->wide().beyond; n != 0)
        out.push_back(
            fmt::format("{} in which WAIT or a stall counted more than CYCLES: a damaged word. What is said of "
                        "{} is not to be trusted",
                        counted(n, "interval"), n == 1 ? "it" : "them"));
    for (unsigned c = 0; c < dpu::counter_count; ++c)
        if (input.counters()[c].rewritten)
            out.push_back(
                fmt::format("the value of counter {} was written while tracing was on: differences across that "
                            "are no counts",
                            dpu::counter_name(c)));
    if (const std::uint64_t n = sums.decoded.totals.doubtful; n != 0)
        out.push_back(fmt::format("{} next to damage, left out", counted(n, "entry", "entries")));
    const auto all = sums.costs->reconciled(sums.costs->total());
    if (sums.costs->readings() != 0 && !counters.empty() &&
        std::all_of(counters.begin(), counters.end(), [&](unsigned c) { return all[c].sum == 0; }))
        out.emplace_back(
            "no counter moved: was one enabled (TENM of DP_TAC and DP_TBC), and did what it counts "
            "happen?");
    return out;
}

}  // namespace waymark::cli
