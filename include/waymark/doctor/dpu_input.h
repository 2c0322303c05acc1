/// An opened capture folder of a Debug and Profiling Unit: its buffer, its registers, and the setup for decoding.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/analysis/dpu.h"
#include "waymark/analysis/dpu_answers.h"
#include "waymark/capture/dpu_folder.h"
#include "waymark/doctor/dpu.h"
#include "waymark/dpu/events.h"
#include "waymark/pipeline/dpu.h"

namespace waymark::doctor {

/// A file mapped into memory: only pages that are read cost anything.
class FileBytes {
public:
    /// Errors: `unreadable`.
    [[nodiscard]] static Result<FileBytes> open(const std::string& path);
    FileBytes() = default;
    FileBytes(FileBytes&& other) noexcept;
    FileBytes& operator=(FileBytes&& other) noexcept;
    ~FileBytes();
    [[nodiscard]] Bytes bytes() const { return {data_, size_}; }

private:
    const std::uint8_t* data_ = nullptr;
    std::size_t size_ = 0;
};

/// A capture folder with its buffer and its registers.
class DpuInput {
public:
    /// Errors: the errors of reading the folder; `bad_format`: impossible registers.
    [[nodiscard]] static Result<DpuInput> open(const std::string& path);

    [[nodiscard]] const capture::DpuCapture& capture() const { return capture_; }
    [[nodiscard]] const pipeline::DpuTrace& trace() const { return trace_; }
    [[nodiscard]] Bytes dump() const { return dump_.bytes(); }
    /// The bytes of pipeline::trace_file.
    [[nodiscard]] Bytes trace_bytes() const { return trace_.nexus ? messages_.bytes() : dump_.bytes(); }
    /// Number of bytes that the unit wrote (lines_written, at most the whole buffer) but that are missing from the
    /// buffer's file.
    [[nodiscard]] std::uint64_t missing_bytes() const;
    /// Whether the buffer's file lacks trace, according to decoding or to lines_written.
    [[nodiscard]] bool is_cut(const pipeline::DpuDecoded& decoded) const;
    [[nodiscard]] std::string cut_text() const;
    /// Whether there is anything other than padding.
    [[nodiscard]] static bool has_content(const dpu::Totals& totals);
    /// The reason why there is nothing to show, and what to do.
    [[nodiscard]] std::string why_nothing() const;
    [[nodiscard]] std::optional<std::uint32_t> value(std::string_view name) const;
    /// The trace mode, if one mode applies to the whole trace.
    [[nodiscard]] std::optional<dpu::TraceMode> mode() const;
    /// All trace modes in order of use.
    [[nodiscard]] std::string mode_text() const;

    /// The event of a counter; nullopt if the registers do not tell.
    [[nodiscard]] std::optional<dpu::EventWire> event(unsigned counter) const { return counters_[counter].event; }
    /// The event's name in every view: DpuCounter::name.
    [[nodiscard]] const std::string& event_name(unsigned counter) const { return counters_[counter].name; }
    /// Whether the event input of the counter was connected (7.5, events.driven).
    [[nodiscard]] bool is_driven(unsigned counter) const { return doctor::is_driven(capture_, counters_[counter]); }
    [[nodiscard]] std::string parameter(std::string_view name) const { return doctor::parameter(capture_, name); }
    /// Adds programs and names of the capture; returns sentences about files that could not be read.
    [[nodiscard]] std::vector<std::string> name_code(analysis::DpuCode& code) const;
    /// The setup for adding up the counters.
    [[nodiscard]] analysis::DpuSetup setup() const;
    /// The capture's statements and the results of decoding, without `problems`.
    [[nodiscard]] analysis::DpuSaid said(const analysis::DpuSetup& setup, const pipeline::DpuDecoded& decoded) const;

private:
    DpuInput() = default;
    capture::DpuCapture capture_;
    pipeline::DpuTrace trace_;
    std::array<DpuCounter, dpu::counter_count> counters_;
    FileBytes dump_, messages_;
};

}  // namespace waymark::doctor
