#include "waymark/analysis/spe_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "waymark/answers/parts.h"
#include "waymark/core/numbers.h"

namespace waymark::analysis {

using namespace answers;

namespace perf = capture::perf;

// ---- when

void SampleTimes::make_room(std::uint64_t first, std::uint64_t last) {
    if (!empty_) {
        first = std::min(first, first_ticks_);
        last = std::max(last, last_ticks_);
    }
    unsigned shift = shift_;
    while ((last >> shift) - (first >> shift) >= most_bins) ++shift;
    if (shift != shift_ && !empty_) {
        const auto coarser = [&](Bins& bins) {
            Bins sums{};
            for (std::uint64_t bin = first_ticks_ >> shift_; bin <= last_ticks_ >> shift_; ++bin)
                sums[(bin >> (shift - shift_)) % most_bins] += bins[bin % most_bins];
            bins = sums;
        };
        for (auto& [cpu, bins] : cpus_) coarser(bins);
        for (auto& [thread, bins] : threads_) coarser(bins);
    }
    shift_ = shift;
    first_ticks_ = first;
    last_ticks_ = last;
    empty_ = false;
}

SampleTimes::Bins& SampleTimes::of(const Profile::Thread& thread) {
    const auto found = threads_.find(thread);
    if (found != threads_.end()) return found->second;
    return threads_[threads_.size() < most_threads ? thread : Profile::Thread{perf::nobody, perf::nobody}];
}

void SampleTimes::consume(const SampleBatch& batch) {
    const spe::RecordColumns& c = batch.records;
    constexpr unsigned time_bit = static_cast<unsigned>(spe::RecordColumn::timestamp);
    Bins* cpu = nullptr;
    Bins* bins = nullptr;
    Profile::Thread thread;
    for (const std::uint16_t i : batch.rows) {
        if ((c.present[i] >> time_bit & 1U) == 0 || c.defects[i] != 0) continue;
        const std::uint64_t ticks = c.timestamp[i];
        if (empty_ || ticks < first_ticks_ || ticks > last_ticks_) make_room(ticks, ticks);
        if (cpu == nullptr) cpu = &cpus_[batch.stream.cpu];
        const Profile::Thread whose{batch.pid[i], batch.tid[i]};
        if (bins == nullptr || whose != thread) bins = &of(thread = whose);
        const std::size_t bin = (ticks >> shift_) % most_bins;
        ++(*cpu)[bin];
        ++(*bins)[bin];
    }
}

void SampleTimes::join(SampleSink& fork) {
    auto& other = static_cast<SampleTimes&>(fork);
    if (other.empty_) return;
    make_room(other.first_ticks_, other.last_ticks_);
    other.make_room(first_ticks_, last_ticks_);
    const auto add = [](Bins& to, const Bins& bins) {
        for (unsigned i = 0; i < most_bins; ++i) to[i] += bins[i];
    };
    for (const auto& [cpu, bins] : other.cpus_) add(cpus_[cpu], bins);
    for (const auto& [thread, bins] : other.threads_) add(of(thread), bins);
}

// ---- one pass

GatheredSamples::GatheredSamples(Wanted wanted) : wanted_(wanted) {
    if (wanted.times) times.emplace();
    if (wanted.line_bytes != 0) candidates.emplace(wanted.line_bytes);
}
void GatheredSamples::consume(const SampleBatch& batch) {
    profile.consume(batch);
    branches.consume(batch);
    if (times) times->consume(batch);
    if (candidates) candidates->consume(batch);
}
void GatheredSamples::join(SampleSink& fork) {
    auto& other = static_cast<GatheredSamples&>(fork);
    profile.join(other.profile);
    branches.join(other.branches);
    if (times) times->join(*other.times);
    if (candidates) candidates->join(*other.candidates);
}

namespace {

using Severity = Finding::Severity;

constexpr std::size_t cost_count = 5;
Costs costs_of(const Measures& m) { return {m.samples, m.total, m.translation, m.llc_misses, m.mispredicts}; }

Branch::Kind kind_of(std::uint8_t operation_type) {
    const spe::Operation o = spe::operation(spe::OperationClass::branch, operation_type);
    using Call = spe::Operation::Call;
    if (o.call == Call::procedure_return) return Branch::Kind::function_return;
    if (o.call == Call::call) return o.indirect ? Branch::Kind::indirect_call : Branch::Kind::call;
    if (o.indirect) return Branch::Kind::indirect;
    return o.conditional ? Branch::Kind::conditional : Branch::Kind::unconditional;
}

std::string bytes_text(std::uint64_t n) { return counted(n, "byte", "bytes"); }

class SpeProducer {
public:
    SpeProducer(const SampleCapture& capture, const SampleTotals& totals, const GatheredSamples& gathered,
                const Sharing* sharing, Program& program, const SampleAnswersOptions& options)
        : capture_(capture),
          gathered_(gathered),
          sharing_(sharing),
          program_(program),
          options_(options),
          quality_(quality_of(capture, totals)),
          totals_(totals),
          tasks_(*capture.data),
          sources_(out_),
          synthetic_(out_) {}

    Answers make() {
        out_.unit = "SPE";
        for (const StreamQuality& s : quality_.streams) out_.trace_bytes += s.bytes;
        metrics();
        health();
        out_.trust.push_back({"functions", "how many samples were taken where",
                              "shares of all that ran: with the interval each lies in",
                              "calls, and what ran between samples"});
        summary();
        program();
        timeline();
        charts();
        if (sharing_ != nullptr) shared_lines();
        threads();
        if (options_.sources) read_sources(out_, options_.symfs);
        sort_findings(out_);
        return std::move(out_);
    }

private:
    void say(Severity severity, std::string what, std::string todo = {}) {
        out_.health.push_back({severity, std::move(what), std::move(todo), {}});
    }

    /// `1,025 to 1,152.5 operations`; empty: not known.
    [[nodiscard]] std::string scale_text() const {
        if (quality_.sampling.empty()) return {};
        const Sampling& s = quality_.sampling.front();
        return s.scale_low() == s.scale_high() ? fmt::format("{:.0f}", s.scale_low())
                                               : fmt::format("{:.0f} to {:.1f}", s.scale_low(), s.scale_high());
    }

    void metrics() {
        const std::string scale = scale_text();
        std::string note = "how many operations a sample represents is not known";
        if (!scale.empty())
            note = fmt::format("a sample represents about {} operations{}", scale,
                               quality_.sampling.front().filters.empty() ? "" : " of those the filters let pass");
        if (quality_.sampling.size() > 1) note += "; samples of several events, this is the first's interval";
        out_.metrics.push_back({"samples", "samples", false, note});
        out_.metrics.push_back({"latency cycles", "cycles", false, "sum of the samples' total latencies"});
        out_.metrics.push_back({"translation cycles", "cycles", false, "sum of what samples waited for the MMU"});
        out_.metrics.push_back({"last-level misses", "samples", false, "loads and stores that missed the last cache"});
        out_.metrics.push_back({"mispredictions", "samples", false, "branches that were predicted wrongly"});
    }

    // ---- how far it can be trusted

    void health() {
        const Quality& q = quality_;
        out_.cut = !capture_.damage.empty() || !totals_.errors.empty() || q.container_losses != 0;
        for (const Error& error : capture_.damage) say(Severity::bad, error.message, "Copy the file again");
        for (const Error& error : totals_.errors) say(Severity::bad, error.message, "Copy the file again");
        if (q.container_losses != 0)
            say(Severity::bad,
                fmt::format("{} of the file's own structure are damaged, {} lost",
                            counted(q.container_losses, "place", "places"), bytes_text(q.container_lost_bytes)),
                "Copy the file again; answers are of what could be read");
        if (q.unfinished)
            say(Severity::warning, "The recorder was ended before it had finished the file",
                "End perf record with Ctrl-C, and wait for it");
        if (q.lost_bytes() != 0)
            say(Severity::bad, fmt::format("{} of trace in no record", bytes_text(q.lost_bytes())),
                "waymark spe quality shows on which CPU");
        if (q.damaged_bytes() != 0)
            say(Severity::warning,
                fmt::format("{} inside records {}; the records were kept", bytes_text(q.damaged_bytes()),
                            q.damaged_bytes() == 1 ? "is no packet" : "are no packets"));
        if (q.truncated.stretches != 0 || q.partial.stretches != 0)
            say(Severity::warning,
                fmt::format("The buffer was full in {}: samples are missing after them",
                            counted(q.truncated.stretches, "stretch", "stretches")),
                "Record with a larger buffer (perf record -m ,16M) or a longer interval (-c)");
        if (q.collided.stretches != 0)
            say(Severity::warning,
                fmt::format("Samples collided in {}: the unit was still busy with the one before, so operations that "
                            "take long are sampled too seldom",
                            counted(q.collided.stretches, "stretch", "stretches")),
                "Record with a longer interval (perf record -c)");
        constexpr std::uint32_t throttle = 5;
        if (const auto found = capture_.data->counts.find(throttle); found != capture_.data->counts.end())
            say(Severity::warning,
                fmt::format("The kernel stopped sampling {} for a while: it took too much time",
                            counted(found->second, "time", "times")),
                "Record with a longer interval, or raise kernel.perf_event_max_sample_rate");
        if (q.lost_events != 0)
            say(Severity::warning,
                fmt::format("perf lost {} about threads and mappings: names may be wrong",
                            counted(q.lost_events, "record", "records")),
                "Record with a larger ring (perf record -m)");
        if (q.modelled)
            say(Severity::note,
                "Modelled, no silicon: operations, their order, addresses and branches are the program's; latencies, "
                "data "
                "sources and events of caches, TLBs and prediction are those of the modelled machine");
        for (const auto& [midr, erratum] : q.errata)
            say(Severity::note, fmt::format("Erratum {} of {}: {}", erratum.number, core_name(midr), erratum.text));
        if (q.without_address != 0) {
            const std::string why = why_no_address(q);
            say(Severity::note, fmt::format("No address of {} of loads and stores is known{}",
                                            counted(q.without_address, "sample", "samples"),
                                            why.empty() ? "" : fmt::format(" ({})", why)));
        }
        if (!capture_.bare && q.without_thread != 0)
            say(Severity::note,
                fmt::format("The thread is not known of {}", counted(q.without_thread, "sample", "samples")),
                "Record with context packets (as root), or with switch events");
        if (!capture_.bare && q.without_mapping != 0)
            say(Severity::note, fmt::format("{} in nothing that is known to be mapped",
                                            counted(q.without_mapping, "sample lies", "samples lie")));
        if (!capture_.bare && !q.clock)
            say(Severity::note,
                "The file does not contain its clock: samples count as if every mapping had been there "
                "all the time");
        if (capture_.bare)
            say(Severity::note, "Bare bytes of a buffer: neither threads nor programs nor the interval are known",
                "perf record writes them all into its perf.data");
        if (gathered_.profile.rest().samples != 0)
            say(Severity::note, fmt::format("{} at further addresses are only in the sum",
                                            counted(gathered_.profile.rest().samples, "sample", "samples")));
        if (gathered_.branches.rest().samples != 0)
            say(Severity::note, fmt::format("{} had no room and are not among the branches",
                                            counted(gathered_.branches.rest().samples, "sample", "samples")));
        if (!q.anything_lost() && q.collided.stretches == 0) say(Severity::good, "No sample was lost");
        if (q.selected != 0 && q.selected < few_samples)
            say(Severity::warning, fmt::format("{} say little", counted(q.selected, "sample", "samples")),
                "Record longer, or with a shorter interval (perf record -c)");
    }

    void summary() {
        const Quality& q = quality_;
        const auto figure = [&](const char* name, std::string value, std::string note = {}) {
            out_.summary.push_back({name, std::move(value), std::move(note)});
        };
        figure("samples", grouped(q.selected),
               q.selected == q.records ? "" : fmt::format("of {} records", grouped(q.records)));
        figure("latency cycles", grouped(gathered_.profile.all().total), "of the samples, not of the program");
        if (const std::string scale = scale_text(); !scale.empty())
            figure("operations per sample", scale,
                   fmt::format("interval {}", grouped(quality_.sampling.front().interval)));
        if (!q.sampling.empty()) {
            std::string filters;
            for (const std::string& f : q.sampling.front().filters) filters += (filters.empty() ? "" : "; ") + f;
            figure("filters", filters.empty() ? "none" : filters);
        }
        std::set<std::uint32_t> midrs;
        for (const StreamQuality& s : q.streams)
            if (s.records != 0) midrs.insert(s.midr);
        std::string cores;
        for (const std::uint32_t midr : midrs) cores += (cores.empty() ? "" : ", ") + core_name(midr, q.modelled);
        figure("cores", cores,
               q.modelled ? "latencies, data sources and events of caches, TLBs and prediction are the model's" : "");
        figure("threads", grouped(gathered_.profile.threads().size()));
    }

    // ---- where

    /// A place in a file.
    struct PlaceRow {
        std::uint32_t file{}, function{};
        std::uint64_t address{};
        Index source = none;
        std::uint32_t line{}, discriminator{};
        std::vector<InlinedCall> chain{};  // the outermost first; its parents and function are still to come
        [[nodiscard]] auto key() const { return std::tuple(file, address, function); }
    };

    [[nodiscard]] std::vector<InlinedCall> chain(std::uint32_t mapping, std::uint64_t pc) {
        std::vector<InlinedCall> out;
        for (image::InlinedCall& call : program_.inlined(mapping, pc)) {
            InlinedCall& one =
                out.emplace_back(InlinedCall{none, none, std::move(call.function), std::move(call.linkage_name)});
            one.declared_line = call.declared_line;
            if (!call.at) continue;
            one.source = sources_.of(call.at->file);
            one.line = call.at->line;
            one.discriminator = call.at->discriminator;
        }
        return out;
    }

    [[nodiscard]] PlaceRow place(std::uint32_t mapping, std::uint64_t pc) {
        const Program::Code code = program_.find(mapping, pc);
        PlaceRow out{code.file, code.function, code.address ? code.address->value : pc, none, 0};
        if (const auto line = program_.line(mapping, pc)) {
            out.source = sources_.of(line->file);
            out.line = line->line;
            out.discriminator = line->discriminator;
        }
        const auto [at, fresh] = found_.try_emplace(code.function);
        if (fresh && code.address && !program_.function(code.function).name.empty()) {
            const std::uint64_t begin = pc - (code.address->value - program_.function(code.function).address.value);
            // The first instruction may be of a function that was inlined there, so that its line is in other code.
            const auto declared = program_.declared(code.function);
            if (const auto line = declared ? std::optional(declared->at) : program_.line(mapping, begin)) {
                at->second.source = sources_.of(line->file);
                at->second.line = line->line;
            }
        }
        return out;
    }

    void program() {
        std::vector<std::pair<PlaceRow, Measures>> places;
        for (std::size_t i = 0; i < gathered_.profile.places().size(); ++i) {
            const SampledPlace& p = gathered_.profile.places()[i];
            places.emplace_back(place(p.mapping, p.pc), gathered_.profile.measures()[i]);
            if (options_.inlined) places.back().first.chain = chain(p.mapping, p.pc);
        }
        struct Pair {
            PlaceRow from, to;
            bool has_target{};
            std::uint8_t type{};
            BranchSum sum;
        };
        std::vector<Pair> pairs;
        for (std::size_t i = 0; i < gathered_.branches.pairs().size(); ++i) {
            const BranchPair& p = gathered_.branches.pairs()[i];
            Pair pair{place(p.mapping, p.from), {}, p.has_target, p.operation_type, gathered_.branches.sums()[i]};
            if (p.has_target) pair.to = place(program_.mapping_beside(p.mapping, p.to), p.to);
            pairs.push_back(pair);
        }
        number_functions();
        sort_sources(places, pairs);

        std::map<std::tuple<std::uint64_t, Index, Index>, Instruction> instructions;
        std::map<std::tuple<std::uint64_t, Index, Index>, std::vector<InlinedCall>> chains;
        for (auto& [p, m] : places) {
            const Index function = function_[p.function];
            Instruction& at = instructions[{p.address, image_[p.file], function}];
            at.address = p.address;
            at.bytes = 4;
            at.isa = isa::Isa::a64;
            at.function = function;
            at.source = p.source;
            at.line = p.line;
            at.discriminator = p.discriminator;
            add(at.costs, costs_of(m));
            if (!p.chain.empty()) chains[{p.address, image_[p.file], function}] = std::move(p.chain);
        }
        InlinedTable inlined(out_);
        for (auto& [key, calls] : chains) {
            Instruction& at = instructions[key];
            for (InlinedCall& call : calls) {
                call.parent = at.inlined;
                call.function = at.function;
                at.inlined = inlined.of(std::move(call));
            }
        }
        if (gathered_.profile.rest().samples != 0) {
            Instruction rest;
            rest.isa = isa::Isa::a64;
            rest.function = synthetic_.of("[further addresses]");
            rest.costs = costs_of(gathered_.profile.rest());
            instructions[{~std::uint64_t{0}, none, rest.function}] = rest;
        }
        std::map<std::pair<Index, std::uint32_t>, Line> lines;
        for (auto& [key, instruction] : instructions) {
            if (instruction.source != none) {
                Line& line = lines[{instruction.source, instruction.line}];
                if (line.function == none) line.function = instruction.function;
                line.source = instruction.source;
                line.line = instruction.line;
                add(line.costs, instruction.costs);
            }
            out_.instructions.push_back(std::move(instruction));
        }
        for (auto& [key, line] : lines) out_.lines.push_back(std::move(line));

        std::map<std::tuple<std::uint64_t, Index, Index>, Branch> branches;
        std::map<std::tuple<std::uint64_t, std::uint64_t, Index, Index>, Edge> edges;
        std::sort(pairs.begin(), pairs.end(), [](const Pair& a, const Pair& b) {
            return std::tuple(a.from.key(), a.type, a.to.key()) < std::tuple(b.from.key(), b.type, b.to.key());
        });
        for (const Pair& p : pairs) {
            const Index function = function_[p.from.function];
            const auto [at, fresh] = branches.try_emplace({p.from.address, image_[p.from.file], function});
            Branch& b = at->second;
            if (fresh) {
                b.address = p.from.address;
                b.kind = kind_of(p.type);
                b.function = function;
                b.source = p.from.source;
                b.line = p.from.line;
                b.mispredicted = 0;
                b.seen_taken = b.seen_not_taken = Seen::not_observed;
            }
            b.taken += p.sum.taken();
            b.not_taken += p.sum.not_taken;
            *b.mispredicted += p.sum.mispredicts;
            if (p.sum.taken() != 0) b.seen_taken = Seen::executed;
            if (p.sum.not_taken != 0) b.seen_not_taken = Seen::executed;
            if (!p.has_target) continue;
            const bool direct = b.kind == Branch::Kind::conditional || b.kind == Branch::Kind::unconditional ||
                                b.kind == Branch::Kind::call;
            if (direct && p.sum.taken() != 0) b.target = p.to.address;
            const Index to = function_[p.to.function];
            Edge& e = edges[{p.from.address, p.to.address, function, to}];
            e.from = p.from.address;
            e.to = p.to.address;
            e.from_function = function;
            e.to_function = to;
            e.kind = b.kind;
            e.times += p.sum.samples;
        }
        for (auto& [key, branch] : branches) out_.branches.push_back(branch);
        for (auto& [key, edge] : edges) out_.edges.push_back(std::move(edge));
    }

    static void add(Costs& to, const Costs& costs) {
        to.resize(cost_count);
        for (std::size_t i = 0; i < cost_count; ++i) to[i] += costs[i];
    }

    /// Images and functions by name and address: numbers of Program are those of first sight, which differs from run to
    /// run.
    void number_functions() {
        std::vector<std::uint32_t> files;
        for (const auto& [number, where] : found_) files.push_back(program_.function(number).file);
        std::sort(files.begin(), files.end(), [&](std::uint32_t a, std::uint32_t b) {
            const auto key = [&](std::uint32_t f) {
                return std::tie(program_.file(f).name, program_.file(f).build_id);
            };
            return key(a) < key(b);
        });
        files.erase(std::unique(files.begin(), files.end()), files.end());
        for (const std::uint32_t f : files) {
            const Program::File& file = program_.file(f);
            image_[f] = static_cast<Index>(out_.images.size());
            std::string id;
            for (const std::uint8_t byte : file.build_id) id += fmt::format("{:02x}", byte);
            out_.images.push_back({std::string(Program::short_name(file.name)), file.path, id});
            if (!file.symbols && !file.problem.empty())
                say(Severity::note, fmt::format("No names for {}: {}", file.name, file.problem));
        }
        std::vector<std::uint32_t> functions;
        for (const auto& [number, where] : found_) functions.push_back(number);
        std::sort(functions.begin(), functions.end(), [&](std::uint32_t a, std::uint32_t b) {
            const auto key = [&](std::uint32_t n) {
                const Program::Function& f = program_.function(n);
                return std::tuple(image_[f.file], f.address.value, std::string_view(f.name));
            };
            return key(a) < key(b);
        });
        for (const std::uint32_t n : functions) {
            const Program::Function& f = program_.function(n);
            function_[n] = static_cast<Index>(out_.functions.size());
            Function function;
            function.name = program_.function_text(n);
            function.linkage_name = f.linkage_name;
            function.image = image_[f.file];
            function.address = f.address.value;
            function.source = found_[n].source;
            function.line = found_[n].line;
            if (options_.inlined)
                if (auto declared = program_.declared(n)) {
                    function.declared_name = std::move(declared->linkage_name);
                    function.declared_source = sources_.of(declared->at.file);
                    function.declared_line = declared->at.line;
                    function.by_llvm = declared->by_llvm;
                }
            out_.functions.push_back(std::move(function));
        }
    }

    /// Sources by path, for the same reason.
    template <class Places, class Pairs>
    void sort_sources(Places& places, Pairs& pairs) {
        std::vector<Index> order(out_.sources.size()), number(out_.sources.size());
        for (Index i = 0; i < order.size(); ++i) order[i] = i;
        std::sort(order.begin(), order.end(),
                  [&](Index a, Index b) { return out_.sources[a].path < out_.sources[b].path; });
        std::vector<SourceFile> sorted;
        for (Index i = 0; i < order.size(); ++i) {
            number[order[i]] = i;
            sorted.push_back(std::move(out_.sources[order[i]]));
        }
        out_.sources = std::move(sorted);
        const auto renumber = [&](Index& source) {
            if (source != none) source = number[source];
        };
        for (auto& [p, m] : places) {
            renumber(p.source);
            for (InlinedCall& call : p.chain) renumber(call.source);
        }
        for (auto& pair : pairs) {
            renumber(pair.from.source);
            renumber(pair.to.source);
        }
        for (Function& f : out_.functions) {
            renumber(f.source);
            renumber(f.declared_source);
        }
    }

    // ---- when

    [[nodiscard]] std::string thread_text(const Profile::Thread& t) const {
        if (t.tid == perf::nobody) return "unknown thread";
        const std::string_view name = tasks_.thread(t.tid, ~std::uint64_t{0}).name;
        return fmt::format("{}{}{}", name, name.empty() ? "" : " ", t.tid);
    }

    void timeline() {
        if (!gathered_.times) return;
        const SampleTimes& times = *gathered_.times;
        Timeline& t = out_.timeline;
        const auto& conversion = capture_.data->time_conversion;
        const bool clock = conversion && conversion->valid();
        const auto time_of = [&](std::uint64_t ticks) { return clock ? conversion->to_ns(ticks) : ticks; };
        t.axis.unit = clock ? "ns" : "ticks";
        if (!times.empty()) {
            t.axis.begin = time_of(times.first_ticks());
            t.axis.end = time_of(times.last_ticks());
        }
        std::string note = times.empty() ? "no sample has a timestamp" : "by the samples' timestamps";
        note += clock ? ", in nanoseconds of perf's clock" : "; the file does not say how ticks become nanoseconds";
        if (times.empty() && !capture_.bare) note += "; perf record -e arm_spe/ts_enable=1/ records them";
        t.axis.note = note;
        // Switches are in nanoseconds: without a clock they do not fit beside samples.
        std::vector<perf::Switch> switches;
        if (clock || times.empty()) switches = capture_.data->switches;
        if (times.empty() && switches.empty()) return;
        if (times.empty()) t.axis.unit = "ns";
        std::stable_sort(switches.begin(), switches.end(), [](const perf::Switch& a, const perf::Switch& b) {
            return std::pair(a.cpu, a.time) < std::pair(b.cpu, b.time);
        });
        for (const perf::Switch& s : switches) {
            if (s.time == 0) continue;
            t.axis.begin = t.axis.begin == 0 ? s.time : std::min(t.axis.begin, s.time);
            t.axis.end = std::max(t.axis.end, s.time);
        }

        std::set<std::uint32_t> cpus;
        for (const auto& [cpu, bins] : times.cpus()) cpus.insert(cpu);
        for (const perf::Switch& s : switches) cpus.insert(s.cpu);
        const auto on_cpu = [](std::uint32_t cpu) {
            return cpu == perf::nobody ? std::string("samples without CPU") : fmt::format("CPU {}", cpu);
        };
        std::map<std::uint32_t, Index> cpu_track;
        for (const std::uint32_t cpu : cpus) {
            cpu_track[cpu] = static_cast<Index>(t.tracks.size());
            t.tracks.push_back({on_cpu(cpu), none});
            if (const auto bins = times.cpus().find(cpu); bins != times.cpus().end())
                series(times, bins->second, cpu_track[cpu], time_of);
        }
        // Threads with the most samples, then by ID.
        std::vector<std::pair<std::uint64_t, Profile::Thread>> order;
        for (const auto& [thread, bins] : times.threads()) {
            std::uint64_t sum = 0;
            for (const std::uint64_t n : bins) sum += n;
            order.emplace_back(~sum, thread);
        }
        std::sort(order.begin(), order.end());
        if (order.size() > options_.most_thread_rows) order.resize(options_.most_thread_rows);
        std::map<std::uint32_t, Index> thread_track;
        for (const auto& [less, thread] : order) {
            const auto track = static_cast<Index>(t.tracks.size());
            if (thread.tid != perf::nobody) thread_track[thread.tid] = track;
            t.tracks.push_back({thread_text(thread), none});
            series(times, times.threads().at(thread), track, time_of);
        }
        for (std::size_t i = 0; i < switches.size(); ++i) {
            const perf::Switch& s = switches[i];
            const bool last = i + 1 == switches.size() || switches[i + 1].cpu != s.cpu;
            const std::uint64_t begin = std::max(s.time, t.axis.begin), end = last ? t.axis.end : switches[i + 1].time;
            // 0 is the idle task.
            if (s.tid == perf::nobody || s.tid == 0 || end <= begin) continue;
            t.slices.push_back({begin, end, cpu_track[s.cpu], synthetic_.of(thread_text({s.pid, s.tid})), 0, 1});
            if (const auto track = thread_track.find(s.tid); track != thread_track.end())
                t.slices.push_back({begin, end, track->second, synthetic_.of(on_cpu(s.cpu)), 0, 1});
        }
        std::stable_sort(t.slices.begin(), t.slices.end(), [](const Slice& a, const Slice& b) {
            return std::tie(a.track, a.begin) < std::tie(b.track, b.begin);
        });
        bound_slices(t, options_.most_slices);
    }

    void series(const SampleTimes& times, const SampleTimes::Bins& bins, Index track, const auto& time_of) {
        Series s;
        s.name = "samples of " + out_.timeline.tracks[track].name;
        s.unit = fmt::format("samples in {} {}",
                             time_of(std::uint64_t{2} << times.shift()) - time_of(std::uint64_t{1} << times.shift()),
                             out_.timeline.axis.unit);
        s.track = track;
        for (std::uint64_t bin = times.first_ticks() >> times.shift(); bin <= times.last_ticks() >> times.shift();
             ++bin)
            s.points.push_back({std::max(time_of(bin << times.shift()), out_.timeline.axis.begin),
                                static_cast<double>(SampleTimes::count(bins, bin))});
        out_.timeline.series.push_back(std::move(s));
    }

    // ---- charts and tables

    void charts() {
        constexpr std::array<const char*, Profile::kinds> names{"loads", "stores", "branches", "other operations"};
        const auto& latency = gathered_.profile.latency();
        for (unsigned kind = 0; kind < Profile::kinds; ++kind) {
            Chart chart{Chart::Kind::histogram, fmt::format("latency of {}", names[kind]), "cycles", "samples", {}, {}};
            unsigned first = 0, last = Profile::buckets;
            while (first < last && latency[kind][first] == 0) ++first;
            while (last > first && latency[kind][last - 1] == 0) --last;
            for (unsigned b = first; b < last; ++b)
                chart.bars.push_back({b < 2 ? std::to_string(b) : fmt::format("{}-{}", 1U << (b - 1), (1U << b) - 1),
                                      latency[kind][b],
                                      {}});
            if (chart.bars.empty()) continue;
            if (gathered_.profile.saturated() != 0)
                chart.note = fmt::format("counters stopped at {} cycles", grouped(gathered_.profile.all().longest));
            out_.charts.push_back(std::move(chart));
        }
        std::map<std::string, Profile::SourceSum> sums;
        for (std::size_t i = 0; i < gathered_.profile.sources().size(); ++i) {
            const Profile::SourceKey& key = gathered_.profile.sources()[i];
            const std::string_view name = spe::data_source_name(key.midr, key.code);
            Profile::SourceSum& sum =
                sums[name.empty() ? fmt::format("unknown (code {})", key.code) : std::string(name)];
            sum.samples += gathered_.profile.source_sums()[i].samples;
            sum.total += gathered_.profile.source_sums()[i].total;
        }
        if (gathered_.profile.rest_sources() != 0)
            sums["at further addresses"].samples = gathered_.profile.rest_sources();
        if (sums.empty()) return;
        std::vector<std::pair<std::string, Profile::SourceSum>> order(sums.begin(), sums.end());
        std::stable_sort(order.begin(), order.end(),
                         [](const auto& a, const auto& b) { return a.second.samples > b.second.samples; });
        Chart chart{Chart::Kind::shares, "where loads got their data", "", "samples", "loads with a data source", {}};
        for (const auto& [name, sum] : order)
            chart.bars.push_back({name, sum.samples, fmt::format("{} cycles", grouped(sum.total))});
        out_.charts.push_back(std::move(chart));
    }

    void shared_lines() {
        const std::vector<SharedLine> lines = sharing_->lines();
        Table table;
        table.title = "cache lines that threads share";
        table.note = fmt::format(
            "lines of {} bytes that several threads use and one writes; false: nobody touches what "
            "another writes",
            options_.line_bytes);
        table.columns = {Column::text("line"),    Column::text("sharing"),  Column::count("samples"),
                         Column::count("loads"),  Column::count("stores"),  Column::count("from other"),
                         Column::count("apart"),  Column::count("threads"), Column::count("writers"),
                         Column::count("cycles"), Column::text("where")};
        for (const SharedLine& line : lines) {
            if (table.rows.size() == options_.most_shared) {
                table.note += fmt::format("; {} more lines are left out", grouped(lines.size() - table.rows.size()));
                break;
            }
            std::set<std::string> where;
            for (const LineAccess& access : line.accesses)
                where.insert(program_.function_text(program_.find(access.mapping, access.pc).function));
            std::string text;
            for (const std::string& name : where) text += (text.empty() ? "" : ", ") + name;
            table.rows.push_back({fmt::format("{:#x}{}", line.key.line, line.key.physical ? " physical" : ""),
                                  name(line.kind), line.samples(), line.loads, line.stores, line.from_other, line.apart,
                                  line.accessors, line.writers, line.total, text});
        }
        if (!table.rows.empty()) out_.tables.push_back(std::move(table));
    }

    void threads() {
        Table table;
        table.title = "threads";
        table.columns = {Column::text("thread"),          Column::text("process"), Column::count("samples"),
                         Column::count("latency cycles"), Column::count("loads"),  Column::count("stores"),
                         Column::count("branches")};
        std::vector<std::pair<Profile::Thread, Measures>> rows(gathered_.profile.threads().begin(),
                                                               gathered_.profile.threads().end());
        std::stable_sort(rows.begin(), rows.end(),
                         [](const auto& a, const auto& b) { return a.second.samples > b.second.samples; });
        for (const auto& [thread, m] : rows)
            table.rows.push_back({thread_text(thread),
                                  thread.pid == perf::nobody ? Cell() : Cell(std::to_string(thread.pid)), m.samples,
                                  m.total, m.loads, m.stores, m.branches});
        if (!table.rows.empty()) out_.tables.push_back(std::move(table));
    }

    struct Begin {
        Index source = none;
        std::uint32_t line{};
    };
    const SampleCapture& capture_;
    const GatheredSamples& gathered_;
    const Sharing* sharing_;
    Program& program_;
    const SampleAnswersOptions& options_;
    Quality quality_;
    const SampleTotals& totals_;
    perf::Tasks tasks_;
    Answers out_;
    SourceTable sources_;
    std::map<std::uint32_t, Begin> found_;             // functions of Program with samples, or gone to
    std::map<std::uint32_t, Index> function_, image_;  // of Program's numbers
    SyntheticTable synthetic_;
};

}  // namespace

Answers answers_of_samples(const SampleCapture& capture, const SampleTotals& totals, const GatheredSamples& gathered,
                           const Sharing* sharing, Program& program, const SampleAnswersOptions& options) {
    return SpeProducer(capture, totals, gathered, sharing, program, options).make();
}

}  // namespace waymark::analysis
