#include "answers.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "../info_others.h"
#include "../options.h"
#include "../trouble.h"
#include "../views.h"
#include "commands.h"
#include "waymark/analysis/kallsyms.h"
#include "waymark/analysis/profile.h"
#include "waymark/analysis/spe_answers.h"
#include "waymark/core/numbers.h"
#include "waymark/core/wire.h"

namespace waymark::cli {

namespace {

namespace perf = capture::perf;
using analysis::Flagged;
using analysis::StreamQuality;
using nlohmann::ordered_json;

/// The name of a stream: `CPU 3`, `thread 1234`, `the buffer`.
std::string stream_text(const StreamQuality& s) {
    if (s.cpu != perf::nobody) return fmt::format("CPU {}", s.cpu);
    return s.tid != perf::nobody ? fmt::format("thread {}", s.tid) : "the buffer";
}

std::string flagged_text(const Flagged& f) {
    return fmt::format("{} ({})", counted(f.stretches, "stretch", "stretches"), counted(f.bytes, "byte"));
}

}  // namespace

void ProfileInput::add_capture_to(const Command& command) { command.option("CAPTURE", capture); }

void ProfileInput::add_reading_to(const Command& command) {
    command.option("--midr", midr);
    command.option("--jobs", jobs);
    command.flag("--mid-record", mid_record);
    command.flag("--strict", strict);
    command.option("--output", output);
}

void AnswerOptions::add_to(const Command& command, std::vector<std::string> formats) {
    add_capture_to(command);
    std::vector<std::string> all{"text", "tsv", "json"};
    std::string list = "text: for reading; tsv, json: for programs";
    for (const std::string& extra : formats) {
        list += "; " + extra;
        all.push_back(extra.substr(0, extra.find(':')));
    }
    command.add_option("--format", format, list)->type_name("FORMAT")->transform(one_of(all))->capture_default_str();
    command.option("--cpu", cpus);
    command.option("--thread", threads);
    command.option("--function", functions);
    names.add_folders_to(command);
    command.option("--kallsyms", kallsyms);
    add_reading_to(command);
}

Result<Answer> Answer::open(const AnswerOptions& options) {
    Answer out;
    std::uint32_t midr = 0;
    if (!options.midr.empty()) {
        WM_ASSIGN_OR_RETURN(const std::uint64_t value, read_number(options.midr, "--midr", 0xffffffff));
        midr = static_cast<std::uint32_t>(value);
    }
    for (const std::string& cpu : options.cpus) {
        WM_ASSIGN_OR_RETURN(const std::uint64_t value, read_number(cpu, "--cpu", 0xfffffffe));
        out.selection_.cpus.push_back(static_cast<std::uint32_t>(value));
    }
    for (const std::string& thread : options.threads) {
        std::uint64_t tid = 0;
        if (wire::scan_number(thread, tid) && tid < perf::nobody)
            out.selection_.threads.push_back(static_cast<std::uint32_t>(tid));
        else
            out.selection_.thread_names.push_back(thread);
    }
    WM_ASSIGN_OR_RETURN(image::FileSearch files, options.names.file_search());
    if (!options.kallsyms.empty()) WM_RETURN_IF_ERROR(analysis::check_kallsyms(options.kallsyms));
    const open::Container& container = options.names.lookup.of(options.capture);
    if (auto error = open::no_samples(container)) return std::move(*error);
    ShowProgress progress;
    WM_ASSIGN_OR_RETURN(auto opened, open::open_samples(container, midr, &progress));
    out.capture_ = std::make_unique<analysis::SampleCapture>(std::move(opened));
    if (options.mid_record)
        for (perf::Stream& stream : out.capture_->streams) stream.overwrite = true;
    analysis::ProgramOptions program{std::move(files), options.kallsyms};
    out.program_ = std::make_unique<analysis::Program>(*out.capture_, std::move(program));
    out.tasks_ = std::make_unique<perf::Tasks>(*out.capture_->data);
    if (!options.functions.empty())
        out.selection_.place = [functions = options.functions, &names = *out.program_](std::uint32_t mapping,
                                                                                       std::uint64_t pc) {
            const std::string name = names.function_text(names.find(mapping, pc).function);
            return std::find(functions.begin(), functions.end(), name) != functions.end();
        };
    out.jobs_ = workers(options.jobs);
    return out;
}

void Answer::run(analysis::SampleSink& sink) {
    ShowProgress progress;
    totals_ = analysis::run_samples(*capture_, selection_, sink, jobs_, &progress);
    quality_ = analysis::quality_of(*capture_, totals_);
}

std::string Answer::thread_name(std::uint32_t tid) const {
    return tid == perf::nobody ? std::string() : std::string(tasks_->thread(tid, ~std::uint64_t{0}).name);
}

std::string Answer::thread_text(std::uint32_t pid, std::uint32_t tid) const {
    if (tid == perf::nobody) return "unknown";
    const std::string name = thread_name(tid);
    return fmt::format("{}{}{}{}", name, name.empty() ? "" : " ", tid,
                       pid != perf::nobody && pid != tid ? fmt::format(" of {}", pid) : "");
}

std::string Answer::why_nothing() const { return analysis::why_no_samples(*capture_, quality_); }

bool say_file_damage(const analysis::SampleCapture& capture) {
    const perf::PerfData& data = *capture.data;
    std::vector<std::string> damage;
    for (const Error& error : capture.damage) damage.push_back(error.message);
    for (const perf::Loss& loss : data.losses) {
        const std::uint64_t bytes = loss.end - loss.first;
        damage.push_back(fmt::format("{}, offset {:#x}: {}{}", capture.file->name(), loss.first.value, loss.message,
                                     bytes == 0 ? "" : fmt::format("; {} skipped", counted(bytes, "byte"))));
    }
    say_gathered("error", damage);
    if (data.loss_count > data.losses.size())
        say("error", fmt::format("{}: {} more places are damaged", capture.file->name(),
                                 grouped(data.loss_count - data.losses.size())));
    return !damage.empty();
}

bool Answer::say_damage() const {
    const bool any = say_file_damage(*capture_);
    std::vector<std::string> unread;
    for (const Error& error : totals_.errors) unread.push_back(error.message);
    say_gathered("error", unread);
    return any || !unread.empty();
}

ExitStatus Answer::finish(const AnswerOptions& options, Output& out, bool names_used) {
    if (out.close() != decoded) return unreadable;
    const bool cut = say_damage();
    const analysis::Quality& q = quality_;
    if (q.unfinished) say("warning", "the recorder was ended before it had finished the file");
    if (q.lost_bytes() != 0)
        say("warning",
            fmt::format("{} of trace in no record; waymark spe quality shows where", counted(q.lost_bytes(), "byte")));
    if (q.damaged_bytes() != 0)
        say("warning", fmt::format("{} inside records {}; the records were kept", counted(q.damaged_bytes(), "byte"),
                                   q.damaged_bytes() == 1 ? "is no packet" : "are no packets"));
    if (names_used) {
        std::vector<std::string> unnamed;
        for (std::uint32_t i = 1; i < program_->files(); ++i)
            if (const auto& file = program_->file(i); !file.symbols && !file.problem.empty())
                unnamed.push_back(fmt::format("no names for {}: {}", file.name, file.problem));
        say_gathered("note", unnamed);
    }
    if (q.selected == 0) {
        say("error", fmt::format("{}: no SPE samples: {}", options.capture, why_nothing()));
        return cut ? unreadable : nothing;
    }
    // A file with missing parts was not read to its end, even if the other parts gave results.
    if (cut) return unreadable;
    std::uint64_t doubtful = 0;
    for (const StreamQuality& s : q.streams) doubtful += s.damaged + s.no_pc;
    if (capture_->bare && doubtful > q.records / 2) {
        say("error", hardly_a_buffer(options.capture, std::min(doubtful, q.records), q.records));
        return nothing;
    }
    answers::Answers run;
    run.account = account();
    if (options.format != "text" && options.format != "json") say_head(run);
    if (!options.strict || !answers::completeness(run.account).strict) return decoded;
    say("error", "--strict: " + answers::account_sentence(run.account));
    return nothing;
}

void Answer::print_quality(Output& out, bool all) const {
    const analysis::Quality& q = quality_;
    const std::uint64_t no_pc = [&] {
        std::uint64_t sum = 0;
        for (const StreamQuality& s : q.streams) sum += s.no_pc;
        return sum;
    }();
    out.print("capture   {}\n", capture_->file->name());
    out.print("samples   {}{}{}{}\n", grouped(q.selected),
              q.selected == q.records - no_pc ? "" : fmt::format(" asked for, of {} records", grouped(q.records)),
              no_pc == 0 ? "" : fmt::format("; {} without a PC are left out", counted(no_pc, "record")),
              q.streams.size() < 2 ? "" : fmt::format("; {} streams", q.streams.size()));
    std::set<std::uint32_t> midrs;
    for (const StreamQuality& s : q.streams)
        if (s.records != 0) midrs.insert(s.midr);
    std::string cores;
    for (const std::uint32_t midr : midrs) cores += (cores.empty() ? "" : ", ") + analysis::core_name(midr, q.modelled);
    if (!cores.empty())
        out.print(
            "cores     {}{}{}\n", cores,
            q.modelled ? ": latencies, data sources and events of caches, TLBs and prediction are the model's" : "",
            midrs.contains(0) ? ": data sources have no names; --midr VALUE says which core it was" : "");
    print_account(out, account(), 10);
    if (q.sampling.empty() && !capture_->bare) out.print("interval  not in the file\n");
    if (capture_->bare) out.print("interval  not known, nor filters and threads: bare bytes of a buffer\n");
    for (const analysis::Sampling& s : q.sampling) {
        const std::string scale =
            s.scale_low() == s.scale_high()
                ? fmt::format("{:.0f}", s.scale_low())
                : fmt::format("{} to {}", quantity_text(s.scale_low()), quantity_text(s.scale_high()));
        out.print(
            "interval  {}{}: a sample represents about {} operations{}\n", analysis::interval_text(s),
            s.asked == s.interval || s.longest != s.interval ? "" : fmt::format(" (asked for {})", grouped(s.asked)),
            scale, s.filters.empty() ? "" : " among those the filters let pass");
        std::string filters;
        for (const std::string& f : s.filters) filters += (filters.empty() ? "" : "; ") + f;
        out.print("filters   {}\n", filters.empty() ? "none" : filters);
    }
    if (q.collided.stretches != 0)
        out.print("collided  {}: samples were dropped there, mostly of long operations\n", flagged_text(q.collided));
    if (q.truncated.stretches != 0 || q.partial.stretches != 0)
        out.print("cut short {}, {} of them inside a record: the buffer was full or could not be written\n",
                  flagged_text(q.truncated), grouped(q.partial.stretches));
    if (q.lost_bytes() + q.damaged_bytes() + q.container_losses != 0)
        out.print("lost      {} in no record, {} damaged inside records, {} of the file's own structure\n",
                  counted(q.lost_bytes(), "byte"), grouped(q.damaged_bytes()), counted(q.container_lost_bytes, "byte"));
    else
        out.print("lost      {}{}\n",
                  capture_->bare ? "nothing in these bytes; whether the buffer was full is not known" : "nothing",
                  q.collided.stretches != 0 ? " but the samples that collided" : "");
    if (q.lost_events != 0)
        out.print("          perf lost {} about threads and mappings\n", counted(q.lost_events, "record"));
    if (q.without_address != 0) {
        const std::string why = analysis::why_no_address(q);
        out.print("addresses not known of {} of loads and stores{}; they are in no cache line and have no data page\n",
                  counted(q.without_address, "sample"), why.empty() ? "" : fmt::format(" ({})", why));
    }
    if (!capture_->bare) {
        if (q.without_thread != 0)
            out.print("threads   not known of {} ({}): record with context packets (as root) or with switch events\n",
                      counted(q.without_thread, "sample"), Cell::share(q.without_thread, q.selected).shown);
        if (q.without_mapping != 0)
            out.print("code      {} ({}) outside every known mapping\n", counted(q.without_mapping, "sample"),
                      Cell::share(q.without_mapping, q.selected).shown);
        if (!q.clock)
            out.print("clock     not in the file: samples are counted as if every mapping had existed all the time\n");
    }
    for (const auto& [midr, erratum] : q.errata)
        out.print("erratum   {}: {} ({})\n", erratum.number, erratum.text, analysis::core_name(midr));
    if (!all) return;
    out.print("\n");
    print_text(out, streams_table());
    out.print(
        "collided, cut short: stretches of the buffer so marked. damaged: records with bytes that are no packet.\n"
        "odd: records with packets their operation cannot have.\n");
}

answers::Account Answer::account() const { return analysis::samples_account(*capture_, totals_, quality_); }

Table Answer::streams_table() const {
    const auto known = [](std::uint32_t v) { return v == perf::nobody ? answers::Value() : answers::Value(v); };
    Table table{.columns = {Column::text("cpu", "CPU"), Column::count("tid", ""), Column::text("core", "core"),
                            Column::count("records", "records"), Column::count("selected", "asked for"),
                            Column::count("bytes", "bytes"), Column::real("mean_ns", "mean gap"),
                            Column::count("min_interval", "least interval"), Column::count("collided", "collided"),
                            Column::count("truncated", "cut short"), Column::count("lost_bytes", "lost bytes"),
                            Column::count("damaged", "damaged"), Column::count("inconsistent", "odd"),
                            Column::count("no_pc", "no PC")}};
    for (const StreamQuality& s : quality_.streams)
        table.add({Cell(stream_text(s), known(s.cpu)), Cell("", known(s.tid)),
                   Cell(analysis::core_name(s.midr, quality_.modelled)), Cell(s.records), Cell(s.selected),
                   Cell(s.bytes), s.mean_ns ? Cell(duration_text(*s.mean_ns), *s.mean_ns) : Cell::none(),
                   s.min_interval == 0 ? Cell::none() : Cell(s.min_interval), Cell(s.collided.stretches),
                   Cell(s.truncated.stretches), Cell(s.lost_bytes), Cell(s.damaged), Cell(s.inconsistent),
                   Cell(s.no_pc)});
    return table;
}

ordered_json Answer::quality_json() const {
    const analysis::Quality& q = quality_;
    const auto flagged = [](const Flagged& f) { return ordered_json{{"stretches", f.stretches}, {"bytes", f.bytes}}; };
    const auto known = [](std::uint32_t v) { return v == perf::nobody ? ordered_json() : ordered_json(v); };
    ordered_json streams = ordered_json::array(), sampling = ordered_json::array(), errata = ordered_json::array();
    for (const StreamQuality& s : q.streams)
        streams.push_back({{"cpu", known(s.cpu)},
                           {"tid", known(s.tid)},
                           {"midr", s.midr},
                           {"core", analysis::core_name(s.midr, q.modelled)},
                           {"bytes", s.bytes},
                           {"records", s.records},
                           {"selected", s.selected},
                           {"no_pc", s.no_pc},
                           {"damaged", s.damaged},
                           {"inconsistent", s.inconsistent},
                           {"lost_bytes", s.lost_bytes},
                           {"damaged_bytes", s.damaged_bytes},
                           {"collided", flagged(s.collided)},
                           {"truncated", flagged(s.truncated)},
                           {"partial", flagged(s.partial)},
                           {"overwritten", flagged(s.overwritten)},
                           {"mean_ns", s.mean_ns ? ordered_json(*s.mean_ns) : ordered_json()},
                           {"min_interval", s.min_interval}});
    for (const analysis::Sampling& s : q.sampling)
        sampling.push_back({{"asked", s.asked},
                            {"interval", s.interval},
                            {"longest_interval", s.longest},
                            {"jitter", s.jitter},
                            {"timestamps", s.timestamps},
                            {"physical_addresses", s.physical_addresses},
                            {"scale_low", s.scale_low()},
                            {"scale_high", s.scale_high()},
                            {"filters", s.filters}});
    for (const auto& [midr, erratum] : q.errata)
        errata.push_back({{"midr", midr}, {"number", erratum.number}, {"text", erratum.text}});
    return {{"run", answers::account_sentence(account())},
            {"samples", q.selected},
            {"records", q.records},
            {"without_thread", q.without_thread},
            {"with_context", q.with_context},
            {"without_mapping", q.without_mapping},
            {"without_address", q.without_address},
            {"sve_without_address", q.sve_without_address},
            {"clock", q.clock},
            {"unfinished", q.unfinished},
            {"lost_bytes", q.lost_bytes()},
            {"damaged_bytes", q.damaged_bytes()},
            {"file_lost_bytes", q.container_lost_bytes},
            {"lost_events", q.lost_events},
            {"collided", flagged(q.collided)},
            {"truncated", flagged(q.truncated)},
            {"partial", flagged(q.partial)},
            {"sampling", sampling},
            {"modelled", q.modelled},
            {"errata", errata},
            {"streams", streams}};
}

std::string hardly_a_buffer(const std::string& capture, std::uint64_t doubtful, std::uint64_t records) {
    return fmt::format("{}: {} of {} records are damaged or hold no PC: this is probably no profiling buffer", capture,
                       grouped(doubtful), grouped(records));
}

}  // namespace waymark::cli
