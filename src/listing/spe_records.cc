#include "waymark/listing/spe_records.h"

#include <oneapi/tbb/concurrent_queue.h>
#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "spe_record_row.h"

namespace waymark::listing {

namespace {

/// Records of one stream, decoded and not yet printed.
struct Piece {
    const StreamContext* stream = nullptr;
    bool first = false;  ///< of its stream
    spe::RecordBatch batch;
};

/// Formats pieces as text. One for each thread.
class Printer {
public:
    Printer(const analysis::SampleCapture& capture, const RecordListingOptions& options)
        : capture_(capture), options_(options), attribution_(*capture.data) {
        const auto& conversion = capture.data->time_conversion;
        if (conversion && conversion->valid()) conversion_ = &*conversion;
    }

    /// Writes the names of the columns.
    void header(RowText& out) {
        static constexpr spe::RecordColumns none{};
        write_row(HeaderRow(out), {none, 0}, {});
    }

    void print(const Piece& piece, RowText& out) {
        if (stream_ != piece.stream) {
            stream_ = piece.stream;
            attribution_.start(*stream_->stream);
            same_.clear();
            part_ = nullptr;
        }
        const spe::RecordColumns& c = piece.batch.records;
        if (options_.format == LineFormat::text) {
            fmt::memory_buffer text;
            if (piece.first) heading(text);
            std::size_t i = 0;
            spe::in_order(
                piece.batch,
                [&](const spe::Record& record) {
                    if (selected(c, i)) {
                        show(row_of(c, i), record, text);
                        ++shown_;
                    }
                    ++i;
                },
                [&](const spe::RecordGap& gap) { show(gap, text); });
            out.put({text.data(), text.size()});
            return;
        }
        const bool tsv = options_.format == LineFormat::tsv;
        for (std::size_t i = 0; i < c.size; ++i) {
            if (!selected(c, i)) continue;
            ++shown_;
            const RecordRow row = row_of(c, i);
            SameTexts::Text& same = same_.find(same_key(row));
            if (tsv)
                write_row(TsvRow(out, &numbers_, same), row, *stream_);
            else
                write_row(JsonRow(out, same), row, *stream_);
        }
    }

    /// Number of requested records so far.
    [[nodiscard]] std::uint64_t shown() const { return shown_; }

private:
    [[nodiscard]] bool selected(const spe::RecordColumns& c, std::size_t i) const {
        return !options_.kind || ((c.present[i] >> static_cast<unsigned>(SpeColumn::operation) & 1U) != 0 &&
                                  static_cast<OperationClass>(c.operation_class[i]) == *options_.kind);
    }
    [[nodiscard]] RecordRow row_of(const spe::RecordColumns& c, std::size_t i) {
        RecordRow row{c, i, stream_->file_offset({c.first[i]}, part_)};
        if (conversion_ != nullptr && row.has(SpeColumn::timestamp)) row.time_ns = conversion_->to_ns(c.timestamp[i]);
        if (capture_.bare) return row;
        row.who = attribution_.of(c, i);
        if (row.who.mapping != 0) row.mapping = &capture_.data->mappings[row.who.mapping - 1];
        return row;
    }

    void heading(fmt::memory_buffer& out) const {
        const auto to = std::back_inserter(out);
        if (!stream_->first) fmt::format_to(to, "\n");
        if (stream_->cpu != perf::nobody)
            fmt::format_to(to, "# CPU {}\n", stream_->cpu);
        else if (stream_->tid != perf::nobody)
            fmt::format_to(to, "# thread {}\n", stream_->tid);
        fmt::format_to(to, "# {:>8}  {:<22} {:<30} {:>16}  {:<44} {}\n", "offset", "pc", "operation",
                       "total/issue/xlat", "data address or branch target; source", "who; events; defects");
    }
    void show(const RecordRow& row, const spe::Record& r, fmt::memory_buffer& out) const {
        const auto latency = [&](SpeColumn column, unsigned value) {
            return r.has(column) ? std::to_string(value) : std::string("-");
        };
        std::string where, more;
        const auto add = [](std::string& to, const std::string& what) {
            if (!what.empty()) to += (to.empty() ? "" : "; ") + what;
        };
        if (r.has(SpeColumn::data_virtual)) add(where, plain_hex(spe::data_address(r.data_virtual).address.value));
        if (r.has(SpeColumn::data_physical))
            add(where, "physical " + plain_hex(spe::physical_address(r.data_physical).address.value));
        if (r.has(SpeColumn::branch_target))
            add(where, "to " + plain_hex(spe::program_address(r.branch_target).address.value));
        if (r.has(SpeColumn::data_source)) {
            const std::string_view known = spe::data_source_name(stream_->midr, r.data_source);
            add(where, known.empty() ? fmt::format("unknown (code {})", r.data_source) : std::string(known));
        }
        if (row.who.tid != perf::nobody)
            add(more, fmt::format("{}{}{}", row.who.name, row.who.name.empty() ? "" : " ", row.who.tid));
        add(more, spe::events_text(r.events));
        if (const std::string defects = defects_text(r.defects); !defects.empty()) add(more, "! " + defects);
        std::string line = fmt::format("{:>#10x}  {:<22} {:<30} {:>16}  {:<44} {}", row.offset,
                                       r.has(SpeColumn::pc)
                                           ? fmt::format("{:#x} EL{}", row.pc().address.value, row.pc().exception_level)
                                           : "no pc",
                                       r.has(SpeColumn::operation) ? spe::operation_text(row.operation()) : "",
                                       latency(SpeColumn::total_latency, r.total_latency) + "/" +
                                           latency(SpeColumn::issue_latency, r.issue_latency) + "/" +
                                           latency(SpeColumn::translation_latency, r.translation_latency),
                                       where, more);
        line.erase(line.find_last_not_of(' ') + 1);
        fmt::format_to(std::back_inserter(out), "{}\n", one_line(line));
    }
    void show(const spe::RecordGap& gap, fmt::memory_buffer& out) {
        if (gap.gap.bytes() == 0) return;
        fmt::format_to(std::back_inserter(out), "{:>#10x}  ({}: {}{})\n", stream_->file_offset(gap.gap.first, part_),
                       name(gap.gap.reason), counted(gap.gap.bytes(), "byte"),
                       gap.inside ? ", inside the next record" : "");
    }

    const analysis::SampleCapture& capture_;
    const RecordListingOptions& options_;
    analysis::Attribution attribution_;
    std::uint64_t shown_ = 0;
    const StreamContext* stream_ = nullptr;
    const StreamContext::Part* part_ = nullptr;  // of the latest record
    const perf::TimeConversion* conversion_ = nullptr;
    SameTexts same_;
    TsvNumbers numbers_;
};

/// Decodes a capture, piece by piece.
class Source final : public spe::RecordSink {
public:
    using Take = std::function<void(const Piece&)>;
    /// `streams`: one for each stream of the capture.
    Source(const analysis::SampleCapture& capture, bool mid_record, std::span<StreamContext> streams,
           perf::Progress* progress)
        : capture_(capture), mid_record_(mid_record), streams_(streams), progress_(progress) {
        for (const perf::Stream& s : capture.streams) all_ += s.bytes();
    }

    /// Decodes a further part and passes finished rows to `take`; false if there is nothing left, or the file cannot be
    /// read.
    [[nodiscard]] bool more(const Take& take) {
        take_ = &take;
        if (error_ || at_ == streams_.size()) return false;
        const perf::Stream& stream = capture_.streams[at_];
        const spe::Start start = stream.overwrite || mid_record_ ? spe::Start::mid_record : spe::Start::record;
        if (!decoder_) {
            decoder_.emplace(*this, start);
            first_ = true;
            stretch_ = 0;
            read_ = 0;
        }
        if (stretch_ == stream.stretches.size()) {
            decoder_->finish();
            streams_[at_].totals = decoder_->totals();
            if (first_) {  // without any record, the heading is still printed
                consume({empty_, {}});
            }
            decoder_.reset();
            ++at_;
            return true;
        }
        const perf::Stretch& part = stream.stretches[stretch_];
        if (read_ == 0 && stretch_ != 0 && !part.follows) decoder_->reset(start);
        const auto got = capture_.read(part, read_, buffer_);
        if (!got) {
            error_ = got.error();
            // Records up to here are valid.
            decoder_->finish();
            streams_[at_].totals = decoder_->totals();
            return true;
        }
        decoder_->feed(Bytes(buffer_).first(*got));
        read_ += *got;
        done_ += *got;
        if (progress_ != nullptr) progress_->at(done_, all_);
        if (read_ == part.bytes) {
            ++stretch_;
            read_ = 0;
        }
        return true;
    }
    [[nodiscard]] const std::optional<Error>& error() const { return error_; }

    void consume(const spe::RecordBatch& batch) override {
        const bool first = std::exchange(first_, false);
        (*take_)({&streams_[at_], first, batch});
    }

private:
    const analysis::SampleCapture& capture_;
    bool mid_record_;
    std::span<StreamContext> streams_;
    std::size_t at_ = 0, stretch_ = 0;
    std::uint64_t read_ = 0, done_ = 0, all_ = 0;
    bool first_ = true;
    std::optional<spe::Decoder> decoder_;
    const Take* take_ = nullptr;
    std::vector<std::uint8_t> buffer_ = std::vector<std::uint8_t>(1 << 16);
    spe::RecordColumns empty_{};
    perf::Progress* progress_;
    std::optional<Error> error_;
};

/// A copy of a piece that outlives the decoder's next step.
struct KeptPiece {
    explicit KeptPiece(const Piece& p)
        : stream(p.stream), first(p.first), records(p.batch.records), gaps(p.batch.gaps.begin(), p.batch.gaps.end()) {}
    [[nodiscard]] Piece piece() const { return {stream, first, {records, gaps}}; }

    const StreamContext* stream;
    bool first;
    spe::RecordColumns records;
    std::vector<spe::RecordGap> gaps;
};

/// Prints everything in order, and returns the number of requested records.
std::uint64_t print_all(Source& source, const analysis::SampleCapture& capture, const RecordListingOptions& options,
                        TextSink& out) {
    Printer first(capture, options);
    RowText text;
    if (options.format == LineFormat::tsv) {
        first.header(text);
        out.write(text.view());
    }
    const unsigned jobs = options.workers;
    if (jobs == 1) {
        const Source::Take print = [&](const Piece& piece) {
            text.clear();
            first.print(piece, text);
            out.write(text.view());
        };
        while (source.more(print)) {
        }
        return first.shown();
    }
    std::deque<std::shared_ptr<KeptPiece>> ready;
    const Source::Take keep = [&](const Piece& piece) { ready.push_back(std::make_shared<KeptPiece>(piece)); };
    tbb::task_arena arena(static_cast<int>(jobs));
    tbb::enumerable_thread_specific<std::unique_ptr<Printer>> printers(
        [&] { return std::make_unique<Printer>(capture, options); });
    tbb::concurrent_queue<std::shared_ptr<RowText>> used;  // their memory is used again
    arena.execute([&] {
        tbb::parallel_pipeline(std::size_t{4} * jobs,
                               tbb::make_filter<void, std::shared_ptr<KeptPiece>>(
                                   tbb::filter_mode::serial_in_order,
                                   [&](tbb::flow_control& flow) -> std::shared_ptr<KeptPiece> {
                                       while (ready.empty() && source.more(keep)) {
                                       }
                                       if (ready.empty()) {
                                           flow.stop();
                                           return nullptr;
                                       }
                                       auto piece = std::move(ready.front());
                                       ready.pop_front();
                                       return piece;
                                   }) &
                                   tbb::make_filter<std::shared_ptr<KeptPiece>, std::shared_ptr<RowText>>(
                                       tbb::filter_mode::parallel,
                                       [&](const std::shared_ptr<KeptPiece>& piece) {
                                           std::shared_ptr<RowText> made;
                                           if (!used.try_pop(made)) made = std::make_shared<RowText>();
                                           made->clear();
                                           printers.local()->print(piece->piece(), *made);
                                           return made;
                                       }) &
                                   tbb::make_filter<std::shared_ptr<RowText>, void>(
                                       tbb::filter_mode::serial_in_order, [&](const std::shared_ptr<RowText>& made) {
                                           out.write(made->view());
                                           used.push(made);
                                       }));
    });
    std::uint64_t shown = 0;
    for (const auto& printer : printers) shown += printer->shown();
    return shown;
}

/// Adds the losses of a stream.
void account(const StreamContext& stream, RecordsListed& sums) {
    const spe::Totals& t = stream.totals;
    const auto warn = [&](std::string text) { sums.warnings.push_back(std::move(text)); };
    const std::string where = stream.cpu != perf::nobody   ? fmt::format("CPU {}: ", stream.cpu)
                              : stream.tid != perf::nobody ? fmt::format("thread {}: ", stream.tid)
                                                           : "";
    sums.records += t.records;
    sums.lost_bytes += t.lost_bytes;
    sums.damaged += t.with(spe::Defect::damaged);
    sums.no_pc += t.with(spe::Defect::no_pc);
    const auto gap = [&](GapReason reason) { return t.gaps[static_cast<std::size_t>(reason)]; };
    if (gap(GapReason::unsynchronised) != 0)
        sums.notes.push_back(where + "bytes before the first whole record were left out");
    if (gap(GapReason::incomplete_packet) != 0) warn(where + "the last record is not whole, and was left out");
    if (const std::uint64_t n = gap(GapReason::framing); n != 0)
        warn(fmt::format("{}{} cut by holes in the trace {} left out", where, counted(n, "record"),
                         n == 1 ? "was" : "were"));
    const auto defect = [&](spe::Defect d, std::string_view meaning) {
        if (const std::uint64_t n = t.with(d); n != 0)
            warn(fmt::format("{}{} {}", where, counted(n, "record"), meaning));
    };
    defect(spe::Defect::damaged, "with bytes that are no packet (damaged)");
    if (const std::uint64_t n = t.with(spe::Defect::no_pc) - t.empty; n != 0)
        warn(fmt::format("{}{} without a PC (no_pc)", where, counted(n, "record")));
    defect(spe::Defect::inconsistent, "with packets that do not fit the operation (inconsistent)");
    defect(spe::Defect::aligned, "with an obsolete alignment packet (aligned)");
    defect(spe::Defect::oversized, "longer than any record can be (oversized)");
    if (t.empty != 0)
        sums.notes.push_back(fmt::format("{}{} held nothing but an end packet", where, counted(t.empty, "record")));
}

}  // namespace

RecordsListed list_spe_records(const analysis::SampleCapture& capture, const RecordListingOptions& options,
                               TextSink& out, perf::Progress* progress) {
    std::vector<StreamContext> streams;
    for (const perf::Stream& s : capture.streams) {
        StreamContext& context = streams.emplace_back();
        context.stream = &s;
        context.first = streams.size() == 1;
        context.cpu = s.cpu;
        context.tid = s.tid;
        context.midr = capture.midr_of(s.cpu);
        std::uint64_t at = 0;
        for (const perf::Stretch& part : s.stretches) {
            context.parts.push_back({at, part.payload, part.bytes});
            at += part.bytes;
        }
    }
    Source source(capture, options.mid_record, streams, progress);
    RecordsListed listed;
    listed.shown = print_all(source, capture, options, out);
    listed.error = source.error();
    for (const StreamContext& stream : streams) account(stream, listed);
    return listed;
}

}  // namespace waymark::listing
