#include "waymark/doctor/profile_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "waymark/analysis/kallsyms.h"
#include "waymark/analysis/sharing.h"
#include "waymark/core/numbers.h"
#include "waymark/core/wire.h"
#include "waymark/pipeline/gathered.h"

namespace waymark::doctor {

namespace perf = capture::perf;

namespace {

class NoSamples final : public analysis::SampleSink {
public:
    void consume(const analysis::SampleBatch&) override {}
    [[nodiscard]] std::unique_ptr<SampleSink> fork() const override { return std::make_unique<NoSamples>(); }
    void join(SampleSink&) override {}
};

}  // namespace

Result<ProfileView> ProfileView::open(const ProfileViewOptions& options, perf::Progress* progress) {
    ProfileView out;
    for (const std::string& cpu : options.cpus) {
        WM_ASSIGN_OR_RETURN(const std::uint64_t value, read_number(cpu, "--cpu", perf::nobody - 1));
        out.selection_.cpus.push_back(static_cast<std::uint32_t>(value));
    }
    for (const std::string& thread : options.threads) {
        std::uint64_t tid = 0;
        if (wire::scan_number(thread, tid) && tid < perf::nobody)
            out.selection_.threads.push_back(static_cast<std::uint32_t>(tid));
        else
            out.selection_.thread_names.push_back(thread);
    }
    const CaptureInput& input = options.input;
    WM_ASSIGN_OR_RETURN(image::FileSearch files, input.file_search());
    if (!input.kallsyms.empty()) WM_RETURN_IF_ERROR(analysis::check_kallsyms(input.kallsyms));
    const open::Container& container = input.lookup.of(input.capture);
    if (auto error = open::no_samples(container)) return std::move(*error);
    WM_ASSIGN_OR_RETURN(auto opened, open::open_samples(container, options.midr, progress));
    out.capture_ = std::make_unique<analysis::SampleCapture>(std::move(opened));
    if (options.mid_record)
        for (perf::Stream& stream : out.capture_->streams) stream.overwrite = true;
    out.program_ =
        std::make_unique<analysis::Program>(*out.capture_, analysis::ProgramOptions{std::move(files), input.kallsyms});
    out.tasks_ = std::make_unique<perf::Tasks>(*out.capture_->data);
    if (!options.functions.empty())
        out.selection_.place = [functions = options.functions, &names = *out.program_](std::uint32_t mapping,
                                                                                       std::uint64_t pc) {
            const std::string name = names.function_text(names.find(mapping, pc).function);
            return std::find(functions.begin(), functions.end(), name) != functions.end();
        };
    out.workers_ = options.workers;
    return out;
}

void ProfileView::run(analysis::SampleSink& sink, perf::Progress* progress) {
    totals_ = analysis::run_samples(*capture_, selection_, sink, workers_, progress);
    quality_ = analysis::quality_of(*capture_, totals_);
}

void ProfileView::run(perf::Progress* progress) {
    NoSamples sink;
    run(sink, progress);
}

answers::Account ProfileView::account() const { return analysis::samples_account(*capture_, totals_, quality_); }

std::string ProfileView::thread_text(std::uint32_t pid, std::uint32_t tid) const {
    if (tid == perf::nobody) return "unknown";
    const std::string_view name = tasks_->thread(tid, ~std::uint64_t{0}).name;
    return fmt::format("{}{}{}{}", name, name.empty() ? "" : " ", tid,
                       pid != perf::nobody && pid != tid ? fmt::format(" of {}", pid) : "");
}

std::vector<std::string> file_damage(const analysis::SampleCapture& capture) {
    const perf::PerfData& data = *capture.data;
    std::vector<std::string> damage;
    for (const Error& error : capture.damage) damage.push_back(error.message);
    for (const perf::Loss& loss : data.losses) {
        const std::uint64_t bytes = loss.end - loss.first;
        damage.push_back(fmt::format("{}, offset {:#x}: {}{}", capture.file->name(), loss.first.value, loss.message,
                                     bytes == 0 ? "" : fmt::format("; {} skipped", counted(bytes, "byte"))));
    }
    damage = pipeline::gathered(damage);
    if (data.loss_count > data.losses.size())
        damage.push_back(fmt::format("{}: {} more places are damaged", capture.file->name(),
                                     grouped(data.loss_count - data.losses.size())));
    return damage;
}

std::vector<std::string> ProfileView::damage() const {
    std::vector<std::string> out = file_damage(*capture_), unread;
    for (const Error& error : totals_.errors) unread.push_back(error.message);
    for (std::string& sentence : pipeline::gathered(unread)) out.push_back(std::move(sentence));
    return out;
}

std::vector<std::string> ProfileView::losses() const {
    std::vector<std::string> out;
    if (quality_.unfinished) out.emplace_back("the recorder was ended before it had finished the file");
    if (const std::uint64_t lost = quality_.lost_bytes(); lost != 0)
        out.push_back(fmt::format("{} of trace in no record; waymark spe quality shows where", counted(lost, "byte")));
    if (const std::uint64_t damaged = quality_.damaged_bytes(); damaged != 0)
        out.push_back(fmt::format("{} inside records {}; the records were kept", counted(damaged, "byte"),
                                  damaged == 1 ? "is no packet" : "are no packets"));
    return out;
}

std::vector<std::string> ProfileView::unnamed() const {
    std::vector<std::string> out;
    for (std::uint32_t i = 1; i < program_->files(); ++i)
        if (const auto& file = program_->file(i); !file.symbols && !file.problem.empty())
            out.push_back(fmt::format("no names for {}: {}", file.name, file.problem));
    return pipeline::gathered(out);
}

Result<answers::Answers> answers_of(ProfileView& view, const std::string& name,
                                    const analysis::SampleAnswersOptions& wanted, bool timeline,
                                    perf::Progress* progress) {
    analysis::GatheredSamples gathered({timeline, timeline ? wanted.line_bytes : 0});
    view.run(gathered, progress);
    if (view.quality().selected == 0)
        return Error{Errc::not_found, fmt::format("{}: no SPE samples: {}", name, view.why_nothing())};
    std::optional<analysis::Sharing> sharing;
    const analysis::SampleTotals totals = view.totals();
    if (gathered.candidates) {
        sharing.emplace(*gathered.candidates);
        view.run(*sharing, progress);
    }
    return analysis::answers_of_samples(view.capture(), totals, gathered, sharing ? &*sharing : nullptr, view.program(),
                                        wanted);
}

std::optional<std::string> hardly_a_buffer(const analysis::SampleCapture& capture, const std::string& name,
                                           std::uint64_t doubtful, std::uint64_t records) {
    doubtful = std::min(doubtful, records);
    if (!capture.bare || doubtful <= records / 2) return std::nullopt;
    return fmt::format("{}: {} of {} records are damaged or hold no PC: this is probably no profiling buffer", name,
                       grouped(doubtful), grouped(records));
}

}  // namespace waymark::doctor
