#include "waymark/listing/spe_records.h"

#include <oneapi/tbb/concurrent_queue.h>
#include <oneapi/tbb/enumerable_thread_specific.h>
#include <oneapi/tbb/parallel_pipeline.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "line.h"
#include "row.h"
#include "waymark/analysis/attribution.h"
#include "waymark/analysis/spe_tables.h"
#include "waymark/spe/decoder.h"

namespace waymark::listing {

namespace {

namespace perf = capture::perf;
using SpeColumn = spe::RecordColumn;
using spe::OperationClass;
using OperationKind = spe::Operation::Kind;

/// Where the records of a stream come from, and what is known of its CPU.
struct StreamContext {
    const perf::Stream* stream = nullptr;
    bool first = false;  ///< of the capture
    std::uint32_t cpu = perf::nobody, tid = perf::nobody, midr{};
    spe::Totals totals{};  ///< when it has been decoded
    struct Part {
        std::uint64_t stream{}, file{}, bytes{};  // offsets of its first byte
    };
    std::vector<Part> parts{};

    /// `near`: the part of another offset, or null; becomes that of this one.
    [[nodiscard]] std::uint64_t file_offset(Offset at, const Part*& near) const {
        if (near == nullptr || at.value - near->stream >= near->bytes) {
            const auto next = std::upper_bound(parts.begin(), parts.end(), at.value,
                                               [](std::uint64_t offset, const Part& p) { return offset < p.stream; });
            if (next == parts.begin()) return at.value;
            near = &*(next - 1);
        }
        return near->file + (at.value - near->stream);
    }
};

/// A record, its place in its columns, and what the capture says about it.
struct RecordRow {
    const spe::RecordColumns& c;
    std::size_t i;
    std::uint64_t offset{};
    std::optional<std::uint64_t> time_ns{};
    analysis::Attribution::Answer who{};
    const perf::Mapping* mapping = nullptr;

    [[nodiscard]] bool has(SpeColumn column) const { return (c.present[i] >> static_cast<unsigned>(column) & 1U) != 0; }
    [[nodiscard]] OperationClass operation_class() const { return static_cast<OperationClass>(c.operation_class[i]); }
    [[nodiscard]] spe::Operation operation() const { return spe::operation(operation_class(), c.operation_type[i]); }
    [[nodiscard]] spe::ProgramAddress pc() const { return spe::program_address(c.pc[i]); }
};

std::string_view operation_word(const RecordRow& row) {
    if (!row.has(SpeColumn::operation)) return "";
    switch (row.operation_class()) {
        case OperationClass::load_store: return row.operation().store ? "ST" : "LD";
        case OperationClass::branch: return "B";
        default: return "OTHER";
    }
}
std::string_view subclass(OperationKind kind) {
    switch (kind) {
        case OperationKind::sve:
        case OperationKind::sve_memory: return "SVE";
        case OperationKind::sme: return "SME";
        case OperationKind::general: return "GP-REG";
        case OperationKind::simd_fp: return "SIMD-FP";
        case OperationKind::unspecified: return "UNSPEC-REG";
        case OperationKind::allocation_tag: return "MTE-TAG";
        case OperationKind::system_register: return "NV-SYSREG";
        case OperationKind::memory_copy: return "MEMCPY";
        case OperationKind::memory_set: return "MEMSET";
        case OperationKind::control_stack: return "GCS";
        case OperationKind::extended: return "EXTENDED";
        case OperationKind::reserved: return "RESERVED";
        case OperationKind::other:
        case OperationKind::branch: return "";
    }
    return "";
}
std::string defects_text(unsigned defects) {
    std::string out;
    for (unsigned d = 0; d < spe::defect_count; ++d)
        if ((defects >> d & 1U) != 0) out += (out.empty() ? "" : ":") + std::string(name(static_cast<spe::Defect>(d)));
    return out;
}
std::string plain_hex(std::uint64_t value) { return fmt::format("{:#x}", value); }

/// What all cells of a row that are written with same() depend on, beside the stream.
SameKey same_key(const RecordRow& r) {
    const auto pair = [](std::uint64_t high, std::uint32_t low) { return high << 32 | low; };
    const spe::RecordColumns& c = r.c;
    const std::size_t i = r.i;
    return {c.pc[i],
            c.events[i],
            c.branch_target[i],
            c.previous_target[i],
            pair(c.context_el1[i], c.context_el2[i]),
            pair(r.who.pid, r.who.tid),
            pair(r.who.mapping, static_cast<std::uint32_t>(c.present[i]) << 16 | c.data_source[i]),
            (c.data_virtual[i] >> 56) << 32 | (c.data_physical[i] >> 56) << 24 |
                static_cast<std::uint32_t>(c.operation_class[i] << 16 | c.operation_type[i] << 8 | c.defects[i]),
            reinterpret_cast<std::uintptr_t>(r.who.name.data())};
}

/// The columns Arm's spe_parser gives (docs/spec/spe.md, 6.2), all in one table, then those it lacks. Cells inside
/// same() are the same for rows with the same same_key().
template <class Writer>
WM_INLINE void write_row(Writer out, const RecordRow& r, const StreamContext& s) {
    const spe::RecordColumns& c = r.c;
    const std::size_t i = r.i;
    const bool has_pc = r.has(SpeColumn::pc), has_operation = r.has(SpeColumn::operation),
               has_events = r.has(SpeColumn::events);
    const bool has_virtual = r.has(SpeColumn::data_virtual), has_physical = r.has(SpeColumn::data_physical);
    const bool is_branch = has_operation && r.operation_class() == OperationClass::branch;
    out.same(0, [&](auto& w) {
        const spe::Operation o = r.operation();
        const bool is_memory = has_operation && r.operation_class() == OperationClass::load_store;
        const bool is_vector = o.kind == OperationKind::sve || o.kind == OperationKind::sve_memory;
        w.number("cpu", s.cpu != perf::nobody, s.cpu);
        w.word("op", true, operation_word(r));
        w.hex("pc", has_pc, r.pc().address.value);
        w.number("el", has_pc, r.pc().exception_level);
        w.flag("atomic", is_memory, o.atomic);
        w.flag("excl", is_memory, o.exclusive);
        w.flag("ar", is_memory, o.acquire_release);
        w.word("subclass", has_operation, subclass(o.kind));
        w.number("sve_evl", is_vector && o.length_bits() != 0, o.length_bits());
        w.flag("sve_pred", is_vector, o.predicated);
        w.flag("sve_sg", o.kind == OperationKind::sve_memory, o.gather_scatter);
        w.flag("sve_fp", o.kind == OperationKind::sve, o.floating_point);
        w.flag("condition", is_branch || o.kind == OperationKind::other, o.conditional);
        w.flag("indirect", is_branch, o.indirect);
        w.word("event", has_events, spe::events_text(c.events[i]));
    });
    out.number("issue_lat", r.has(SpeColumn::issue_latency), c.issue_latency[i]);
    out.number("total_lat", r.has(SpeColumn::total_latency), c.total_latency[i]);
    out.hex("vaddr", has_virtual, spe::data_address(c.data_virtual[i]).address.value);
    out.number("xlat_lat", r.has(SpeColumn::translation_latency), c.translation_latency[i]);
    out.hex("paddr", has_physical, spe::physical_address(c.data_physical[i]).address.value);
    out.same(1, [&](auto& w) {
        const spe::ProgramAddress target = spe::program_address(c.branch_target[i]);
        const spe::ProgramAddress previous = spe::program_address(c.previous_target[i]);
        const bool el2 = r.has(SpeColumn::context_el2);
        w.word("data_source", r.has(SpeColumn::data_source), analysis::source_text(s.midr, c.data_source[i]));
        w.hex("br_tgt", r.has(SpeColumn::branch_target), target.address.value);
        w.number("br_tgt_lvl", r.has(SpeColumn::branch_target), target.exception_level);
        w.hex("pbt", r.has(SpeColumn::previous_target), previous.address.value);
        w.number("pbt_lvl", r.has(SpeColumn::previous_target), previous.exception_level);
        w.hex("context", el2 || r.has(SpeColumn::context_el1), el2 ? c.context_el2[i] : c.context_el1[i]);
    });
    out.rising("ts", r.has(SpeColumn::timestamp), c.timestamp[i]);

    out.hex("offset", true, r.offset);
    out.number("bytes", true, c.bytes[i]);
    out.rising("time_ns", r.time_ns.has_value(), r.time_ns.value_or(0));
    out.same(2, [&](auto& w) {
        const perf::Mapping* const m = r.mapping;
        w.number("pid", r.who.pid != perf::nobody, r.who.pid);
        w.number("tid", r.who.tid != perf::nobody, r.who.tid);
        w.text("comm", true, r.who.name);
        w.text("dso", m != nullptr, m == nullptr ? std::string_view() : m->file);
        w.hex("dso_offset", m != nullptr, m == nullptr ? 0 : r.pc().address.value - m->address.value + m->file_offset);
        w.word("security", has_pc, name(r.pc().security));
    });
    const bool both =
        r.has(SpeColumn::total_latency) && r.has(SpeColumn::issue_latency) && c.total_latency[i] >= c.issue_latency[i];
    out.number("exec_lat", both, static_cast<std::uint64_t>(c.total_latency[i] - c.issue_latency[i]));
    out.number("alt_issue_lat", r.has(SpeColumn::alternate_issue_latency), c.alternate_issue_latency[i]);
    out.same(3, [&](auto& w) {
        constexpr std::array<std::string_view, 4> calls{"", "call", "return", "neither"};
        const spe::Operation o = r.operation();
        const spe::PhysicalAddress physical = spe::physical_address(c.data_physical[i]);
        w.hex("event_bits", has_events, c.events[i]);
        w.hex("op_type", has_operation, c.operation_type[i]);
        w.word("operation", has_operation, spe::operation_text(o));
        w.word("call", is_branch, calls[static_cast<std::size_t>(o.call)]);
        w.hex("tag", has_virtual, c.data_virtual[i] >> 56);
        w.word("paddr_security", has_physical, name(physical.security));
        w.number("paddr_tag", has_physical, physical.tag);
        w.flag("tag_checked", has_physical, physical.tag_checked);
        w.number("data_source_code", r.has(SpeColumn::data_source), c.data_source[i]);
        w.number("context_el1", r.has(SpeColumn::context_el1), c.context_el1[i]);
        w.number("context_el2", r.has(SpeColumn::context_el2), c.context_el2[i]);
        w.word("defects", c.defects[i] != 0, defects_text(c.defects[i]));
    });
    out.end();
}

/// Records of one stream, decoded and not yet printed.
struct Piece {
    const StreamContext* stream = nullptr;
    bool first = false;  ///< of its stream
    spe::RecordBatch batch;
};

/// Makes text of pieces. One for each thread.
class Printer {
public:
    Printer(const analysis::SampleCapture& capture, const RecordListingOptions& options)
        : capture_(capture), options_(options), attribution_(*capture.data) {
        const auto& conversion = capture.data->time_conversion;
        if (conversion && conversion->valid()) conversion_ = &*conversion;
    }

    /// Names of the columns.
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

    /// How many records were asked for so far.
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
    /// `streams` as those of the capture.
    Source(const analysis::SampleCapture& capture, bool mid_record, std::span<StreamContext> streams,
           perf::Progress* progress)
        : capture_(capture), mid_record_(mid_record), streams_(streams), progress_(progress) {
        for (const perf::Stream& s : capture.streams) all_ += s.bytes();
    }

    /// Decodes a little further and gives `take` what became ready, if anything; false: that was all, or the file
    /// cannot be read.
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
            if (first_) {  // nothing came: it has a heading all the same
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
            // What came before is good.
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

/// A piece that outlives the decoder's next step.
struct KeptPiece {
    explicit KeptPiece(const Piece& p)
        : stream(p.stream), first(p.first), records(p.batch.records), gaps(p.batch.gaps.begin(), p.batch.gaps.end()) {}
    [[nodiscard]] Piece piece() const { return {stream, first, {records, gaps}}; }

    const StreamContext* stream;
    bool first;
    spe::RecordColumns records;
    std::vector<spe::RecordGap> gaps;
};

/// Prints everything, in order, and gives the number of records that were asked for.
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
    tbb::concurrent_queue<std::shared_ptr<RowText>> used;  // their memory is taken again
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

/// Adds what a stream lost.
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
