#include "waymark/doctor/dpu_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <utility>

#include "waymark/analysis/dpu_findings.h"
#include "waymark/capture/dpu_folder.h"
#include "waymark/core/numbers.h"
#include "waymark/core/wire.h"
#include "waymark/doctor/dpu.h"
#include "waymark/image/agreement.h"
#include "waymark/pipeline/gathered.h"

namespace waymark::doctor {

using analysis::DpuCode;
using analysis::DpuTable;

namespace {

std::vector<std::string> sentences(const std::vector<analysis::DpuFinding>& findings) {
    std::vector<std::string> out;
    for (const analysis::DpuFinding& each : findings) out.push_back(each.what);
    return out;
}

}  // namespace

Status add_image(DpuCode& code, const std::string& text) {
    std::string path = text;
    std::uint64_t bias = 0;
    // The name of a file may itself contain the sign.
    if (const auto at = text.rfind('@'); at != text.npos && !std::filesystem::exists(text)) {
        if (!wire::scan_number(text.substr(at + 1), bias))
            return Error{Errc::usage,
                         fmt::format("--image {}: '{}' is not a load bias, and there is no file of that name; "
                                     "write FILE or FILE@0x10000",
                                     text, text.substr(at + 1))};
        path = text.substr(0, at);
    }
    if (bias > 0xffffffff) return Error{Errc::usage, fmt::format("--image {}: a load bias has 32 bits", text)};
    if (const auto found = image::agreement(path, 0, {}); found && found->machine != image::ElfMachine::arm)
        return Error{Errc::unsupported,
                     fmt::format("--image {}: it is a program for {}, but programs for {} stand in for the unit's core",
                                 text, image::name(found->machine), image::name(image::ElfMachine::arm))};
    if (std::string problem = code.add_image(path, static_cast<std::uint32_t>(bias)); !problem.empty())
        return Error{Errc::unreadable, "--image " + text + ": " + problem};
    return Nothing{};
}

Result<answers::Answers> answers_of(const DpuInput& input, const CaptureInput& options, const std::string& name,
                                    const analysis::DpuAnswersOptions& wanted, bool timeline, Errc if_cut) {
    DpuCode code;
    WM_ASSIGN_OR_RETURN(image::FileSearch files, options.file_search());
    code.look_in(std::move(files));
    std::vector<std::string> problems = input.name_code(code);
    for (const std::string& image : options.images) WM_RETURN_IF_ERROR(add_image(code, image));
    for (std::string& sentence : pipeline::gathered(input.capture().problems)) problems.push_back(std::move(sentence));
    analysis::DpuSetup setup = input.setup();
    std::optional<analysis::DpuTimes> times;
    const auto beside = [&](const analysis::DpuSetup& with) { return timeline ? &times.emplace(with) : nullptr; };
    WM_ASSIGN_OR_RETURN(const DpuSums sums, add_up(input.trace(), input.trace_bytes(), setup, code, beside));
    if (times) times->finish();
    if (!DpuInput::has_content(sums.decoded.totals))
        return Error{input.is_cut(sums.decoded) ? if_cut : Errc::not_found,
                     fmt::format("{}: nothing was decoded: {}", name, input.why_nothing())};
    analysis::DpuSaid said = input.said(setup, sums.decoded);
    said.problems = std::move(problems);
    return analysis::answers_of_dpu(*sums.costs, times ? &*times : nullptr, code, said, wanted);
}

Result<std::unique_ptr<DpuView>> DpuView::make(const DpuViewOptions& options, std::string_view view) {
    WM_ASSIGN_OR_RETURN(DpuInput input, DpuInput::open(options.input.capture));
    std::unique_ptr<DpuView> out(new DpuView(std::move(input), view));
    WM_RETURN_IF_ERROR(out->prepare(options));
    const DpuInput& in = out->input_;
    WM_ASSIGN_OR_RETURN(DpuSums sums, add_up(in.trace(), in.trace_bytes(), out->setup_, out->code_));
    out->sums_ = std::move(sums);
    out->said_ = in.said(out->setup_, out->sums_.decoded);
    out->tables_.emplace(*out->sums_.costs, out->code_, out->said_, out->sorted_by_);
    out->trust_ = analysis::trust_in(view == "ratios" ? "report" : view, out->said_, *out->sums_.costs);
    return out;
}

std::vector<std::string> DpuView::doubts() const { return sentences(analysis::dpu_doubts(costs(), said_, sorted_by_)); }

std::vector<std::string> DpuView::losses() const { return sentences(analysis::dpu_losses(said_)); }

std::string DpuView::left_out() const { return analysis::dpu_left_out(said_); }

bool DpuView::reconciles(const analysis::DpuCounts& rows) const {
    const auto all = costs().reconciled(rows);
    return std::all_of(all.begin(), all.end(), [](const auto& r) { return r.residual() == 0; });
}

Status DpuView::prepare(const DpuViewOptions& options) {
    WM_ASSIGN_OR_RETURN(image::FileSearch files, options.input.file_search());
    code_.look_in(std::move(files));
    problems_ = input_.name_code(code_);
    for (const std::string& text : options.input.images) WM_RETURN_IF_ERROR(add_image(code_, text));
    setup_ = input_.setup();
    for (unsigned c = 0; c < dpu::counter_count; ++c)
        if (input_.event(c) != dpu::EventWire::none) counters_.push_back(c);
    WM_RETURN_IF_ERROR(choose_counter(options.counter));
    for (const std::string& text : options.ranges) WM_RETURN_IF_ERROR(add_range(text));
    return Nothing{};
}

Status DpuView::choose_counter(const std::string& counter) {
    if (!counters_.empty()) sorted_by_ = counters_.front();
    if (counter.empty()) return Nothing{};
    const auto same = [&](std::string_view name) {
        return std::equal(name.begin(), name.end(), counter.begin(), counter.end(),
                          [](unsigned char a, unsigned char b) { return std::toupper(a) == std::toupper(b); });
    };
    std::vector<std::string> names, alike;
    unsigned only_alike = 0;
    for (const unsigned c : counters_) {
        const std::string full = input_.event_name(c);
        const auto wire = input_.event(c);
        if (same(dpu::counter_name(c)) || same(full)) {
            sorted_by_ = c;
            return Nothing{};
        }
        if (wire && same(name(*wire))) {
            alike.emplace_back(dpu::counter_name(c));
            only_alike = c;
        }
        names.push_back(full.starts_with(dpu::counter_name(c)) ? full
                                                               : fmt::format("{} {}", dpu::counter_name(c), full));
    }
    if (alike.size() == 1) {
        sorted_by_ = only_alike;
        return Nothing{};
    }
    if (!alike.empty())
        return Error{Errc::usage,
                     fmt::format("--counter {}: {} count that; name one of them", counter, fmt::join(alike, " and "))};
    return Error{Errc::usage, fmt::format("--counter {}: no counter counts that; there are {}", counter,
                                          names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")))};
}

Status DpuView::add_range(const std::string& text) {
    const auto dash = text.find('-');
    std::uint64_t from = 0, to = 0;
    if (dash != text.npos && wire::scan_number(text.substr(0, dash), from) &&
        wire::scan_number(text.substr(dash + 1), to)) {
        if (to <= from || to > 0xffffffff)
            return Error{Errc::usage, fmt::format("--range {}: the second address is not after the first", text)};
    } else if (const auto places = code_.places_of(text); !places.empty()) {
        // Several libraries may have a function of this name, at the same address one after the other: each is a range.
        for (const DpuCode::Place& place : places) {
            const auto whole = code_.function(place);
            constexpr std::uint32_t longest = 1 << 20;
            std::uint32_t end = place.address + 2;
            while (end < place.address + longest && code_.function(DpuCode::Place{end, place.layer}) == whole) end += 2;
            const std::size_t image = places.size() == 1 && place.layer == 0 ? DpuCode::no_image : whole.image;
            setup_.ranges.push_back({place.address, end, image});
            range_names_.push_back(text);
            if (places.size() > 1 && whole.image != DpuCode::no_image)
                range_names_.back() += fmt::format(" in {}", code_.images()[whole.image].name);
        }
        return Nothing{};
    } else {
        return Error{Errc::usage, fmt::format("--range {}: expected addresses such as 0x8000-0x9000, or a function of "
                                              "the program",
                                              text)};
    }
    range_names_.push_back(text);
    setup_.ranges.push_back({static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(to)});
    return Nothing{};
}

std::vector<DpuTable> DpuView::parts(std::uint64_t limit, std::vector<std::string>& notes) const {
    const std::string_view view = view_;
    const analysis::DpuTables& tables = *tables_;
    const auto most = static_cast<std::size_t>(limit);
    const bool report = view == "report", flow = input_.mode() == dpu::TraceMode::flow;
    std::vector<DpuTable> out;
    if (report || view == "tasks") out.push_back(tables.tasks(most));
    if (report || view == "functions") {
        out.push_back(tables.functions(most));
        if (flow && !report && costs().returns_without_call() != 0)
            notes.push_back(fmt::format("{} led to places that no open call returns to",
                                        counted(costs().returns_without_call(), "return")));
    }
    if (view == "paths") out.push_back(tables.paths(most));
    if (report || view == "interrupts") out.push_back(tables.interrupts(most));
    if (view == "ranges") {
        out.push_back(tables.ranges(range_names_, setup_.ranges));
        if (range_names_.empty()) notes.emplace_back("no range given: --range 0x8000-0x9000 or --range FUNCTION");
        if (!out.back().sum) notes.emplace_back("ranges overlap, and counts in two of them are in both rows");
        if (!costs().knows_stays()) notes.push_back(tables.needs("FLOW", "flow"));
    }
    if (view == "timeline") {
        out.push_back(tables.timeline(most));
        if (!out.back().sum && costs().knows_stays())
            notes.emplace_back(
                "the rows do not contain all counts: 'waymark dpu tasks' shows the rest in angle brackets");
    }
    if (report || view == "loops") {
        out.push_back(tables.loops(most));
        if (view == "loops" && !trust_.not_known.empty()) out.back().empty = trust_.not_known;
    }
    if (view == "ratios") {
        out.push_back(tables.ratios(false));
        if (flow) out.push_back(tables.ratios(true));
    }
    if (report || view == "data") out.push_back(tables.data(most));
    if (view == "health") out.push_back(tables.health());
    return out;
}

}  // namespace waymark::doctor
