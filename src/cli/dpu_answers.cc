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

#include "waymark/analysis/dpu_doubts.h"
#include "waymark/core/wire.h"
#include "waymark/dpu/registers.h"
#include "waymark/dpu/vtb.h"

namespace waymark::cli {

// ---- FileBytes

Result<FileBytes> FileBytes::open(const std::string& path) {
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

std::uint64_t DpuInput::missing_bytes() const {
    if (!capture_.lines_written || capture_.buffer.empty()) return 0;
    std::uint64_t lines = *capture_.lines_written;
    if (!trace_.vtb.single_address) {
        if (!trace_.ring_known || trace_.vtb.tea < trace_.vtb.tsa) return 0;
        lines = std::min((std::uint64_t{trace_.vtb.tea} - trace_.vtb.tsa) / dpu::line_bytes + 1, lines);
    }
    // More than a file can be: the number is damaged.
    if (lines > std::uint64_t{1} << 58) return 0;
    return lines * dpu::line_bytes - std::min<std::uint64_t>(lines * dpu::line_bytes, dump().size());
}

bool DpuInput::tells(const dpu::Totals& totals) {
    std::uint64_t entries = 0;
    for (const std::uint64_t n : totals.entries) entries += n;
    return entries != totals.count<dpu::Pad>() + totals.count<dpu::Closed>();
}

std::string DpuInput::why_nothing() const {
    const std::string parent = capture_.path.parent_path().string(), folder = parent.empty() ? "." : parent;
    const auto messages = [&](std::string_view before) {
        return fmt::format("{}; 'waymark packets {}' lists its messages, and --nexus mirror records both", before,
                           folder);
    };
    if (capture_.buffer.empty()) return messages("the capture has no buffer, only what the Nexus interface sent");
    const std::string file = capture_.buffer.filename().string();
    const auto tc = dpu::from_value<dpu::DpTc>(value("DP_TC").value_or(0));
    if (value("DP_TC") && tc.nxmode == static_cast<std::uint8_t>(dpu::NexusMode::only))
        return messages("DP_TC.NXMODE sends everything to the Nexus interface and nothing to the buffer");
    if (const std::uint64_t missing = missing_bytes(); missing != 0)
        return fmt::format("{} has {} and lacks {} that were written; copy the whole of it", file,
                           counted(dump().size(), "byte"), counted(missing, "byte"));
    if (capture_.lines_written.value_or(1) != 0) {
        if (dump().empty()) return fmt::format("{} is empty; copy the whole of the buffer into it", file);
        const Bytes bytes = dump();
        if (std::any_of(bytes.begin(), bytes.end(), [](std::uint8_t b) { return b != 0; }))
            return fmt::format(
                "the words in {} are no entries of mode {}; check DP_TC, dpu_base and byte_order in "
                "dpu.ini, and that the buffer is of this capture",
                file, mode() ? mode_text() : "any");
    }
    if (!capture_.initial && capture_.lines_written == std::uint64_t{0})
        return "tracing was never turned on: nothing wrote 1 to EN of DP_TC";
    const std::string none = "nothing was written to the buffer";
    if (!mode()) return none + ", and without DP_TC it is not known what would have been";
    using enum dpu::TraceMode;
    switch (*mode()) {
        case sw_sample:
            return none + ": mode SWSAMPLE writes when SAMPLE is asked for; record with --sample-every CYCLES";
        case edca5:
            return none +
                   ": mode EDCA5 writes when EDCA5 hits; let it watch what the program executes or accesses, "
                   "with --edca 5=SYMBOL";
        case user:
        case user_raw:
            return none +
                   ": modes USER and USERRAW hold what the program writes to DP_TD, with waymark_dp_td() of "
                   "waymark_dpu.h";
        case task:
        case flow:
        case eonce_raw:
        case eonce_comp: return none + ": nothing that this mode traces happened while tracing was on";
    }
    return none;
}

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

std::optional<dpu::TraceMode> DpuInput::mode() const {
    const auto first = trace_.periods.front().format.mode;
    for (const pipeline::DpuPeriod& period : trace_.periods) {
        if (period.format.mode == first) continue;
        // Where modes change, only what all of them tell is told.
        const auto changes = [](std::optional<dpu::TraceMode> m) {
            return m == dpu::TraceMode::task || m == dpu::TraceMode::flow;
        };
        const bool all = std::all_of(trace_.periods.begin(), trace_.periods.end(),
                                     [&](const pipeline::DpuPeriod& p) { return changes(p.format.mode); });
        return all ? dpu::TraceMode::task : dpu::TraceMode::sw_sample;
    }
    return first;
}

std::string DpuInput::mode_text() const {
    std::string out;
    for (const pipeline::DpuPeriod& period : trace_.periods) {
        const std::string each(period.format.mode ? name(*period.format.mode) : "not known");
        if (!out.ends_with(each)) out += (out.empty() ? "" : ", then ") + each;
    }
    return out;
}

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
    for (const capture::DpuImage& image : capture_.images)
        if (std::string problem = code.add_image(image.path.string(), image.load_bias); !problem.empty())
            out.push_back(
                fmt::format("{}; its functions are shown by their addresses, and returns are told from calls "
                            "by where they lead. Give a whole copy of the program with --image FILE{}",
                            problem, image.load_bias == 0 ? std::string() : fmt::format("@{:#x}", image.load_bias)));
    for (const capture::DpuSymbol& symbol : capture_.symbols) code.add_name(symbol.address, symbol.name);
    return out;
}

analysis::DpuSetup DpuInput::setup() const {
    analysis::DpuSetup out;
    out.mode = mode();
    out.complete = trace_.complete;
    out.initial_context = trace_.periods.front().start.context;
    out.initial = trace_.periods.front().start.counters;
    // What was true when tracing began says nothing of where an overwritten buffer begins.
    constexpr std::uint64_t whole = std::uint64_t{1} << 32;
    if (const auto order = dpu::reading_order(trace_.vtb, whole); trace_.ring_known && order && order->overwritten) {
        out.initial_context.reset();
        out.initial.reset();
    }
    if (capture_.final) {
        dpu::Counters& final = out.final.emplace();
        std::copy(capture_.final->begin(), capture_.final->end(), final.begin());
    }
    const auto tc = dpu::from_value<dpu::DpTc>(value("DP_TC").value_or(0));
    const auto cr = dpu::from_value<dpu::DpCr>(value("DP_CR").value_or(0));
    const auto reference = value(tc.tids ? "DP_RDID" : "DP_RPID");
    if (tc.idflt && cr.tidcm != 0 && reference) out.filter = static_cast<std::uint8_t>(*reference);
    for (unsigned c = 0; c < dpu::counter_count; ++c)
        if (event(c) == dpu::EventWire::cycles && wraps(c) && !out.cycles) out.cycles = c;
    return out;
}

Result<std::vector<std::uint64_t>> DpuInput::doubtful(const analysis::DpuSetup& setup) const {
    analysis::DpuDoubts doubts(setup);
    WM_ASSIGN_OR_RETURN(const pipeline::DpuDecoded decoded, pipeline::decode_dpu(trace_, dump(), doubts));
    static_cast<void>(decoded);
    doubts.finish();
    return doubts.readings();
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
    if (std::string problem = code.add_image(path, static_cast<std::uint32_t>(bias)); !problem.empty())
        return Error{Errc::unreadable, "--image " + text + ": " + problem};
    return Nothing{};
}

void warn(const DpuInput& input) {
    for (const capture::Problem& problem : input.capture().problems) say("warning", capture::to_string(problem));
}

}  // namespace waymark::cli
