#include "waymark/analysis/samples.h"

#include <fmt/format.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <limits>
#include <mutex>
#include <numeric>

#include "waymark/analysis/attribution.h"
#include "waymark/analysis/key_index.h"
#include "waymark/spe/decoder.h"

namespace waymark::analysis {

namespace perf = capture::perf;

namespace {

constexpr std::size_t read_bytes = 1 << 18;
constexpr std::uint32_t data_address = std::uint32_t{1} << static_cast<unsigned>(spe::RecordColumn::data_virtual) |
                                       std::uint32_t{1} << static_cast<unsigned>(spe::RecordColumn::data_physical);

struct PlaceKey {
    std::uint32_t mapping{};
    std::uint64_t pc{};
    [[nodiscard]] std::uint64_t hash() const { return mix(pc, mapping); }
    bool operator==(const PlaceKey&) const = default;
};

/// Part of a stream that is decoded by a decoder of its own.
struct Segment {
    std::size_t stream{}, first{}, last{};  // stretches [first, last)
    std::uint64_t bytes{};
};

/// Decodes segments, one after another, into one sink.
class Worker final : public spe::RecordSink {
public:
    Worker(const SampleCapture& capture, const Selection& selection, SampleSink& sink, std::mutex& asking)
        : capture_(capture), selection_(selection), sink_(sink), asking_(asking), attribution_(*capture.data) {
        totals.streams.resize(capture.streams.size());
        std::sort(selection_.cpus.begin(), selection_.cpus.end());
        std::sort(selection_.threads.begin(), selection_.threads.end());
    }

    SampleTotals totals;

    void decode(const Segment& segment, const std::function<void(std::uint64_t)>& done) {
        const perf::Stream& stream = capture_.streams[segment.stream];
        now_ = &totals.streams[segment.stream];
        facts_ = {stream.cpu, capture_.midr_of(stream.cpu)};
        // A CPU that was not selected is decoded too, because its losses are part of the answer.
        wanted_ =
            selection_.cpus.empty() || std::binary_search(selection_.cpus.begin(), selection_.cpus.end(), stream.cpu);
        attribution_.start(stream);
        gap_end_ = 0;
        const bool first_of_snapshot = stream.overwrite && segment.first == 0;
        spe::Decoder decoder(*this, first_of_snapshot ? spe::Start::mid_record : spe::Start::record);
        for (std::size_t i = segment.first; i < segment.last; ++i) {
            const perf::Stretch& stretch = stream.stretches[i];
            for (std::uint64_t at = 0; at < stretch.bytes;) {
                const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(read_bytes, stretch.bytes - at));
                const auto got = capture_.file->read_at(stretch.payload + at, std::span(buffer_).first(want));
                if (!got || *got == 0) {
                    now_->unread_bytes += stretch.bytes - at;
                    if (!got) totals.errors.push_back(got.error());
                    decoder.reset();
                    break;
                }
                decoder.feed(Bytes(buffer_).first(*got));
                at += *got;
                done(*got);
            }
        }
        decoder.finish();
        add(now_->totals, decoder.totals());
        // A record that ends here for another reason was whole.
        if (gap_end_ == decoder.totals().bytes && gap_end_ != 0) cut_at_end = true;
    }
    /// A segment ended inside a record.
    bool cut_at_end = false;

    void consume(const spe::RecordBatch& batch) override {
        const spe::RecordColumns& c = batch.records;
        if (!batch.gaps.empty()) gap_end_ = batch.gaps.back().gap.end.value;
        std::size_t count = 0;
        for (std::size_t i = 0; i < c.size; ++i) {
            if ((c.present[i] >> static_cast<unsigned>(spe::RecordColumn::timestamp) & 1U) != 0 && c.defects[i] == 0)
                see(c.timestamp[i]);
            if ((c.present[i] >> static_cast<unsigned>(spe::RecordColumn::pc) & 1U) == 0) {
                ++now_->no_pc;
                continue;
            }
            if (!wanted_) continue;
            const Attribution::Answer& answer = attribution_.of(c, i);
            if (!asked_for(answer, c.pc[i])) continue;
            mapping_[i] = answer.mapping;
            pid_[i] = answer.pid;
            tid_[i] = answer.tid;
            rows_[count++] = static_cast<std::uint16_t>(i);
            totals.without_thread += answer.tid == perf::nobody;
            totals.with_context += answer.by_context;
            totals.without_mapping += answer.mapping == 0;
            const auto kind = static_cast<spe::OperationClass>(c.operation_class[i]);
            if (kind == spe::OperationClass::load_store && (c.present[i] & data_address) == 0) {
                ++totals.without_address;
                totals.sve_without_address +=
                    spe::operation(kind, c.operation_type[i]).kind == spe::Operation::Kind::sve_memory;
            }
        }
        now_->selected += count;
        if (count != 0) sink_.consume({c, std::span(rows_).first(count), mapping_, pid_, tid_, facts_});
    }

    static void add(spe::Totals& to, const spe::Totals& from) {
        to.bytes += from.bytes;
        to.record_bytes += from.record_bytes;
        to.padding_bytes += from.padding_bytes;
        to.alignment_bytes += from.alignment_bytes;
        to.lost_bytes += from.lost_bytes;
        to.damaged_bytes += from.damaged_bytes;
        to.records += from.records;
        to.empty += from.empty;
        for (std::size_t i = 0; i < to.defects.size(); ++i) to.defects[i] += from.defects[i];
        for (std::size_t i = 0; i < to.gaps.size(); ++i) to.gaps[i] += from.gaps[i];
    }

private:
    void see(std::uint64_t ticks) {
        ++now_->timed;
        if (now_->first_ticks == 0 && now_->last_ticks == 0) {
            now_->first_ticks = now_->last_ticks = ticks;
            return;
        }
        now_->first_ticks = std::min(now_->first_ticks, ticks);
        now_->last_ticks = std::max(now_->last_ticks, ticks);
    }
    bool asked_for(const Attribution::Answer& answer, std::uint64_t pc) {
        if (!selection_.threads.empty() &&
            !std::binary_search(selection_.threads.begin(), selection_.threads.end(), answer.tid))
            return false;
        if (!selection_.place) return true;
        const PlaceKey key{answer.mapping, spe::program_address(pc).address.value};
        const std::uint32_t place = places_.find_or_add(key);
        const auto ask = [&] {
            const std::lock_guard lock(asking_);
            return selection_.place(key.mapping, key.pc);
        };
        if (place == KeyIndex<PlaceKey>::full) return ask();
        if (place == place_asked_for_.size()) place_asked_for_.push_back(ask());
        return place_asked_for_[place];
    }

    const SampleCapture& capture_;
    Selection selection_;
    SampleSink& sink_;
    std::mutex& asking_;
    Attribution attribution_;
    KeyIndex<PlaceKey> places_{1 << 20};
    std::vector<bool> place_asked_for_;
    StreamTotals* now_ = nullptr;
    StreamFacts facts_;
    bool wanted_ = true;
    std::uint64_t gap_end_ = 0;  // end of the last gap in the segment
    std::vector<std::uint8_t> buffer_ = std::vector<std::uint8_t>(read_bytes);
    std::array<std::uint16_t, spe::RecordColumns::capacity> rows_;
    std::array<std::uint32_t, spe::RecordColumns::capacity> mapping_, pid_, tid_;
};

/// Splits streams into parts of `part_bytes` or more. A part ends where a stretch ends, although the stream may
/// continue.
std::vector<Segment> segments(const SampleCapture& capture, std::uint64_t part_bytes) {
    std::vector<Segment> out;
    for (std::size_t s = 0; s < capture.streams.size(); ++s) {
        const auto& stretches = capture.streams[s].stretches;
        for (std::size_t i = 0; i < stretches.size(); ++i) {
            if (i == 0 || !stretches[i].follows || out.back().bytes >= part_bytes) out.push_back({s, i, i, 0});
            out.back().last = i + 1;
            out.back().bytes += stretches[i].bytes;
        }
    }
    // The longest come first, so that no worker is left with a long one at the end.
    std::stable_sort(out.begin(), out.end(), [](const Segment& a, const Segment& b) { return a.bytes > b.bytes; });
    return out;
}

/// Thread IDs of all threads that had one of these names at any time.
std::vector<std::uint32_t> threads_called(const perf::PerfData& data, const std::vector<std::string>& names) {
    std::vector<std::uint32_t> out;
    for (const perf::TaskEvent& e : data.tasks)
        if (std::find(names.begin(), names.end(), e.name) != names.end() && !e.name.empty()) out.push_back(e.tid);
    // A forked thread has its parent's name until it sets another.
    const perf::Tasks tasks(data);
    for (const perf::TaskEvent& e : data.tasks)
        if (e.kind == perf::TaskEvent::Kind::fork)
            if (const auto name = tasks.thread(e.tid, e.time).name;
                std::find(names.begin(), names.end(), name) != names.end())
                out.push_back(e.tid);
    std::sort(out.begin(), out.end());
    out.erase(std::unique(out.begin(), out.end()), out.end());
    return out;
}

void merge(SampleTotals& to, const SampleTotals& from) {
    for (std::size_t i = 0; i < to.streams.size(); ++i) {
        StreamTotals& a = to.streams[i];
        const StreamTotals& b = from.streams[i];
        Worker::add(a.totals, b.totals);
        a.selected += b.selected;
        a.no_pc += b.no_pc;
        a.timed += b.timed;
        a.unread_bytes += b.unread_bytes;
        if (b.last_ticks == 0) continue;
        a.first_ticks = a.last_ticks == 0 ? b.first_ticks : std::min(a.first_ticks, b.first_ticks);
        a.last_ticks = std::max(a.last_ticks, b.last_ticks);
    }
    to.without_thread += from.without_thread;
    to.with_context += from.with_context;
    to.without_mapping += from.without_mapping;
    to.without_address += from.without_address;
    to.sve_without_address += from.sve_without_address;
    to.errors.insert(to.errors.end(), from.errors.begin(), from.errors.end());
}

/// Returns false if a split was in the wrong place; then nothing was given to `sink`.
bool decode_all(const SampleCapture& capture, const Selection& selection, SampleSink& sink, unsigned jobs,
                std::uint64_t part_bytes, perf::Progress* progress, SampleTotals& out) {
    const std::vector<Segment> all = segments(capture, part_bytes);
    const std::uint64_t bytes = std::accumulate(all.begin(), all.end(), std::uint64_t{0},
                                                [](std::uint64_t sum, const Segment& s) { return sum + s.bytes; });
    const std::size_t count = std::clamp<std::size_t>(jobs, 1, std::max<std::size_t>(1, all.size()));
    std::mutex asking, telling;
    std::atomic<std::size_t> next = 0;
    std::atomic<std::uint64_t> done = 0;
    std::atomic<bool> wrong = false;
    std::vector<std::unique_ptr<SampleSink>> forks;
    std::vector<std::unique_ptr<Worker>> workers;
    for (std::size_t i = 0; i < count; ++i) {
        forks.push_back(sink.fork());
        workers.push_back(std::make_unique<Worker>(capture, selection, *forks[i], asking));
    }
    const auto work = [&](Worker& worker) {
        for (std::size_t i; !wrong && (i = next++) < all.size();) {
            worker.decode(all[i], [&](std::uint64_t more) {
                const std::uint64_t now = done += more;
                if (progress == nullptr) return;
                const std::lock_guard lock(telling);
                progress->at(now, bytes);
            });
            const auto& stretches = capture.streams[all[i].stream].stretches;
            const bool goes_on = all[i].last < stretches.size() && stretches[all[i].last].follows;
            if (worker.cut_at_end && goes_on) wrong = true;
            worker.cut_at_end = false;
        }
    };
    if (count == 1) {
        work(*workers[0]);
    } else {
        tbb::task_arena arena(static_cast<int>(count));
        arena.execute([&] { tbb::parallel_for(std::size_t{0}, count, [&](std::size_t i) { work(*workers[i]); }); });
    }
    if (wrong) return false;
    out = std::move(workers[0]->totals);
    sink.join(*forks[0]);
    for (std::size_t i = 1; i < count; ++i) {
        merge(out, workers[i]->totals);
        sink.join(*forks[i]);
    }
    return true;
}

}  // namespace

bool from_another_core(std::uint64_t events, std::uint32_t midr, std::optional<std::uint16_t> source) {
    constexpr unsigned snooped = 23;
    if ((events >> snooped & 1U) != 0) return true;
    if (!source) return false;
    const std::string_view name = spe::data_source_name(midr, *source);
    return name.starts_with("peer") || name == "local_cluster" || name == "remote" || name.starts_with("remote_socket");
}

std::uint32_t SampleCapture::midr_of(std::uint32_t cpu) const {
    return midr != 0 || bare ? midr : perf::spe_midr(*data, info, cpu);
}

std::vector<const perf::Attr*> SampleCapture::attrs() const {
    std::vector<const perf::Attr*> out;
    for (const perf::Attr& attr : data->attrs) {
        const auto pmu = data->pmus.find(attr.type);
        const bool named = pmu != data->pmus.end() && pmu->second.starts_with("arm_spe");
        const bool of_a_cpu = std::any_of(info.cpus.begin(), info.cpus.end(),
                                          [&](const auto& cpu) { return cpu.second.pmu_type == attr.type; });
        if (!bare && (named || of_a_cpu || attr.type == info.pmu_type)) out.push_back(&attr);
    }
    return out;
}

Result<std::size_t> SampleCapture::read(const perf::Stretch& stretch, std::uint64_t from,
                                        std::span<std::uint8_t> into) const {
    const std::uint64_t at = stretch.payload + from;
    const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(stretch.bytes - from, into.size()));
    WM_ASSIGN_OR_RETURN(const std::size_t got, file->read_at(at, into.first(want)));
    if (got != 0) return got;
    return Error{Errc::unreadable,
                 fmt::format("{}: offset {:#x}: the file became shorter while it was read", file->name(), at)};
}

Result<SampleCapture> open_samples(const std::filesystem::path& path, std::uint32_t midr, perf::Progress* progress) {
    perf::PerfFile file;
    WM_ASSIGN_OR_RETURN(file.file, capture::open_byte_file(path, &file.damage));
    return open_samples(path, std::move(file), midr, progress);
}

Result<SampleCapture> open_samples(const std::filesystem::path& path, perf::PerfFile file, std::uint32_t midr,
                                   perf::Progress* progress) {
    SampleCapture out;
    out.midr = midr;
    out.file = file.file;
    out.damage = std::move(file.damage);
    std::array<std::uint8_t, 16> head{};
    WM_ASSIGN_OR_RETURN(const std::size_t have, out.file->read_at(0, head));
    if (!perf::is_perf_data(Bytes(head).first(have))) {
        if (have >= 4 && std::memcmp(head.data(), "\177ELF", 4) == 0)
            return Error{Errc::bad_format,
                         path.string() + ": is a program or library (ELF), and no capture; name a perf.data file"};
        out.bare = true;
        out.data = std::make_unique<perf::PerfData>();
        if (out.file->size() != 0)
            out.streams.push_back({perf::nobody, perf::nobody, 0, false, {{0, out.file->size(), 0, 0, false}}});
        return out;
    }
    WM_ASSIGN_OR_RETURN(auto data, perf::read_perf_data(file, progress));
    out.data = std::make_unique<perf::PerfData>(std::move(data));
    if (!out.data->auxtrace_info) {
        if (!out.data->chunks.empty())
            return Error{Errc::bad_format,
                         path.string() +
                             ": contains trace, but no AUXTRACE_INFO record, which describes the unit, so it cannot be "
                             "decoded; the file is damaged: copy the whole file again, or record again"};
        return out;
    }
    WM_ASSIGN_OR_RETURN(out.info, perf::spe_info(*out.data->auxtrace_info));
    out.streams = perf::streams(*out.data);
    return out;
}

std::uint64_t SampleTotals::records() const {
    return std::accumulate(streams.begin(), streams.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const StreamTotals& s) { return sum + s.totals.records; });
}
std::uint64_t SampleTotals::selected() const {
    return std::accumulate(streams.begin(), streams.end(), std::uint64_t{0},
                           [](std::uint64_t sum, const StreamTotals& s) { return sum + s.selected; });
}

SampleTotals run_samples(const SampleCapture& capture, const Selection& selection, SampleSink& sink, unsigned workers,
                         perf::Progress* progress, std::uint64_t part_bytes) {
    Selection selected = selection;
    if (!selection.thread_names.empty()) {
        const auto threads = threads_called(*capture.data, selection.thread_names);
        selected.threads.insert(selected.threads.end(), threads.begin(), threads.end());
        // No thread has the name: select nothing. An empty list would select everything.
        if (selected.threads.empty()) selected.place = [](std::uint32_t, std::uint64_t) { return false; };
    }
    SampleTotals out;
    // If a split turns out not to be the beginning of a record, decode again, each stream from its beginning.
    constexpr std::uint64_t whole = std::numeric_limits<std::uint64_t>::max();
    if (workers < 2 || !decode_all(capture, selected, sink, workers, part_bytes, progress, out))
        decode_all(capture, selected, sink, workers, whole, progress, out);
    for (std::size_t i = 0; i < capture.streams.size(); ++i) {
        const perf::Stream& stream = capture.streams[i];
        out.streams[i].facts = {stream.cpu, capture.midr_of(stream.cpu)};
        out.streams[i].tid = stream.tid;
        for (std::size_t s = 0; s < stream.stretches.size(); ++s)
            if (s == 0 || stream.stretches[s].chunk != stream.stretches[s - 1].chunk)
                out.streams[i].missing_bytes +=
                    capture.data->chunks.empty() ? 0 : capture.data->chunks[stream.stretches[s].chunk].missing;
    }
    return out;
}

}  // namespace waymark::analysis
