/// `waymark spe records`: one line per sample, from perf.data or from the bare bytes of a profiling buffer.
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "commands.h"
#include "output.h"
#include "waymark/capture/byte_file.h"
#include "waymark/capture/perf_data.h"
#include "waymark/capture/perf_spe.h"
#include "waymark/core/wire.h"
#include "waymark/spe/decoder.h"

namespace waymark::cli {

namespace {

namespace perf = capture::perf;
using spe::Column;
using spe::OperationClass;
using Kind = spe::Operation::Kind;

struct RecordOptions {
    std::string capture, format = "text", kind = "all", output, midr;
    bool mid_record = false, strict = false;
};

/// Where the records of a stream come from, and what is known of its CPU.
struct StreamContext {
    std::uint32_t cpu = perf::nobody, tid = perf::nobody, midr{};
    struct Part {
        std::uint64_t stream{}, file{};  // offsets of its first byte
    };
    std::vector<Part> parts;

    [[nodiscard]] std::uint64_t file_offset(Offset at) const {
        auto part = std::upper_bound(parts.begin(), parts.end(), at.value,
                                     [](std::uint64_t offset, const Part& p) { return offset < p.stream; });
        if (part == parts.begin()) return at.value;
        --part;
        return part->file + (at.value - part->stream);
    }
};

/// A record with all that can be said about it.
struct Row {
    const spe::Record& record;
    std::uint64_t offset{};
    spe::Operation operation;
    std::optional<std::uint64_t> time_ns;
    perf::Tasks::Thread thread;
    const perf::Mapping* mapping = nullptr;
    spe::ProgramAddress pc;

    [[nodiscard]] bool has(Column column) const { return record.has(column); }
};

std::string_view operation_word(const Row& row) {
    if (!row.has(Column::operation)) return "";
    switch (row.record.operation_class) {
        case OperationClass::load_store: return row.operation.store ? "ST" : "LD";
        case OperationClass::branch: return "B";
        default: return "OTHER";
    }
}
std::string_view subclass(Kind kind) {
    switch (kind) {
        case Kind::sve:
        case Kind::sve_memory: return "SVE";
        case Kind::sme: return "SME";
        case Kind::general: return "GP-REG";
        case Kind::simd_fp: return "SIMD-FP";
        case Kind::unspecified: return "UNSPEC-REG";
        case Kind::allocation_tag: return "MTE-TAG";
        case Kind::system_register: return "NV-SYSREG";
        case Kind::memory_copy: return "MEMCPY";
        case Kind::memory_set: return "MEMSET";
        case Kind::control_stack: return "GCS";
        case Kind::extended: return "EXTENDED";
        case Kind::reserved: return "RESERVED";
        case Kind::other:
        case Kind::branch: return "";
    }
    return "";
}
std::string defects_text(const spe::Record& r) {
    std::string out;
    for (unsigned d = 0; d < spe::defect_count; ++d)
        if (r.has(static_cast<spe::Defect>(d)))
            out += (out.empty() ? "" : ":") + std::string(name(static_cast<spe::Defect>(d)));
    return out;
}
std::string hex(std::uint64_t value) { return fmt::format("{:#x}", value); }

/// One value of a row: nothing where the record does not tell.
struct Cell {
    enum class Form : std::uint8_t { none, number, flag, text } form = Form::none;
    std::string text;  // as tsv shows it
};
Cell number(bool known, std::uint64_t value) {
    return known ? Cell{Cell::Form::number, std::to_string(value)} : Cell{};
}
Cell flag(bool known, bool value) { return known ? Cell{Cell::Form::flag, value ? "1" : "0"} : Cell{}; }
Cell text(bool known, std::string value) {
    return known && !value.empty() ? Cell{Cell::Form::text, std::move(value)} : Cell{};
}

/// The columns Arm's spe_parser gives (docs/spec/spe.md, 6.2), all in one table, then those it lacks.
struct ColumnOf {
    const char* name;
    Cell (*value)(const Row& row, const StreamContext& stream);
};
using R = const Row&;
using S = const StreamContext&;
bool memory(R r) { return r.has(Column::operation) && r.record.operation_class == OperationClass::load_store; }
bool branch(R r) { return r.has(Column::operation) && r.record.operation_class == OperationClass::branch; }
bool other(R r) { return r.has(Column::operation) && r.record.operation_class == OperationClass::other; }
bool vector(R r) { return r.operation.kind == Kind::sve || r.operation.kind == Kind::sve_memory; }

const ColumnOf table[] = {
    {"cpu", [](R, S s) { return number(s.cpu != perf::nobody, s.cpu); }},
    {"op", [](R r, S) { return text(true, std::string(operation_word(r))); }},
    {"pc", [](R r, S) { return text(r.has(Column::pc), hex(r.pc.address.value)); }},
    {"el", [](R r, S) { return number(r.has(Column::pc), r.pc.exception_level); }},
    {"atomic", [](R r, S) { return flag(memory(r), r.operation.atomic); }},
    {"excl", [](R r, S) { return flag(memory(r), r.operation.exclusive); }},
    {"ar", [](R r, S) { return flag(memory(r), r.operation.acquire_release); }},
    {"subclass", [](R r, S) { return text(r.has(Column::operation), std::string(subclass(r.operation.kind))); }},
    {"sve_evl", [](R r, S) { return number(vector(r) && r.operation.length_bits() != 0, r.operation.length_bits()); }},
    {"sve_pred", [](R r, S) { return flag(vector(r), r.operation.predicated); }},
    {"sve_sg", [](R r, S) { return flag(r.operation.kind == Kind::sve_memory, r.operation.gather_scatter); }},
    {"sve_fp", [](R r, S) { return flag(r.operation.kind == Kind::sve, r.operation.floating_point); }},
    {"condition", [](R r, S) { return flag(branch(r) || r.operation.kind == Kind::other, r.operation.conditional); }},
    {"indirect", [](R r, S) { return flag(branch(r), r.operation.indirect); }},
    {"event", [](R r, S) { return text(r.has(Column::events), spe::events_text(r.record.events)); }},
    {"issue_lat", [](R r, S) { return number(r.has(Column::issue_latency), r.record.issue_latency); }},
    {"total_lat", [](R r, S) { return number(r.has(Column::total_latency), r.record.total_latency); }},
    {"vaddr",
     [](R r, S) {
         return text(r.has(Column::data_virtual), hex(spe::data_address(r.record.data_virtual).address.value));
     }},
    {"xlat_lat", [](R r, S) { return number(r.has(Column::translation_latency), r.record.translation_latency); }},
    {"paddr",
     [](R r, S) {
         return text(r.has(Column::data_physical), hex(spe::physical_address(r.record.data_physical).address.value));
     }},
    {"data_source",
     [](R r, S s) {
         const std::uint32_t code = r.record.data_source;
         const std::string_view known = spe::data_source_name(s.midr, code);
         return text(r.has(Column::data_source),
                     known.empty() ? fmt::format("unknown({:#x})", code) : std::string(known));
     }},
    {"br_tgt",
     [](R r, S) {
         return text(r.has(Column::branch_target), hex(spe::program_address(r.record.branch_target).address.value));
     }},
    {"br_tgt_lvl",
     [](R r, S) {
         return number(r.has(Column::branch_target), spe::program_address(r.record.branch_target).exception_level);
     }},
    {"pbt",
     [](R r, S) {
         return text(r.has(Column::previous_target), hex(spe::program_address(r.record.previous_target).address.value));
     }},
    {"pbt_lvl",
     [](R r, S) {
         return number(r.has(Column::previous_target), spe::program_address(r.record.previous_target).exception_level);
     }},
    {"context",
     [](R r, S) {
         const bool el2 = r.has(Column::context_el2);
         return text(el2 || r.has(Column::context_el1), hex(el2 ? r.record.context_el2 : r.record.context_el1));
     }},
    {"ts", [](R r, S) { return number(r.has(Column::timestamp), r.record.timestamp); }},

    {"offset", [](R r, S) { return text(true, hex(r.offset)); }},
    {"bytes", [](R r, S) { return number(true, r.record.bytes); }},
    {"time_ns", [](R r, S) { return number(r.time_ns.has_value(), r.time_ns.value_or(0)); }},
    {"pid", [](R r, S) { return number(r.thread.pid != perf::nobody, r.thread.pid); }},
    {"tid", [](R r, S) { return number(r.thread.tid != perf::nobody, r.thread.tid); }},
    {"comm", [](R r, S) { return text(true, std::string(r.thread.name)); }},
    {"dso", [](R r, S) { return text(r.mapping != nullptr, r.mapping == nullptr ? "" : r.mapping->file); }},
    {"dso_offset",
     [](R r, S) {
         return text(
             r.mapping != nullptr,
             r.mapping == nullptr ? "" : hex(r.pc.address.value - r.mapping->address.value + r.mapping->file_offset));
     }},
    {"security", [](R r, S) { return text(r.has(Column::pc), std::string(name(r.pc.security))); }},
    {"exec_lat",
     [](R r, S) {
         const bool both = r.has(Column::total_latency) && r.has(Column::issue_latency) &&
                           r.record.total_latency >= r.record.issue_latency;
         return number(both, static_cast<std::uint64_t>(r.record.total_latency - r.record.issue_latency));
     }},
    {"alt_issue_lat",
     [](R r, S) { return number(r.has(Column::alternate_issue_latency), r.record.alternate_issue_latency); }},
    {"event_bits", [](R r, S) { return text(r.has(Column::events), hex(r.record.events)); }},
    {"op_type", [](R r, S) { return text(r.has(Column::operation), hex(r.record.operation_type)); }},
    {"operation", [](R r, S) { return text(r.has(Column::operation), spe::operation_text(r.operation)); }},
    {"call",
     [](R r, S) {
         constexpr const char* names[] = {"", "call", "return", "neither"};
         return text(branch(r), names[static_cast<std::size_t>(r.operation.call)]);
     }},
    {"tag", [](R r, S) { return text(r.has(Column::data_virtual), hex(r.record.data_virtual >> 56)); }},
    {"paddr_security",
     [](R r, S) {
         return text(r.has(Column::data_physical),
                     std::string(name(spe::physical_address(r.record.data_physical).security)));
     }},
    {"paddr_tag",
     [](R r, S) { return number(r.has(Column::data_physical), spe::physical_address(r.record.data_physical).tag); }},
    {"tag_checked",
     [](R r, S) {
         return flag(r.has(Column::data_physical), spe::physical_address(r.record.data_physical).tag_checked);
     }},
    {"data_source_code", [](R r, S) { return number(r.has(Column::data_source), r.record.data_source); }},
    {"context_el1", [](R r, S) { return number(r.has(Column::context_el1), r.record.context_el1); }},
    {"context_el2", [](R r, S) { return number(r.has(Column::context_el2), r.record.context_el2); }},
    {"defects", [](R r, S) { return text(true, defects_text(r.record)); }},
};

bool selected(const std::string& kind, R row) {
    return kind == "all" || (kind == "ldst" && memory(row)) || (kind == "br" && branch(row)) ||
           (kind == "other" && other(row));
}

/// Prints what a decoder delivers.
class Printer final : public spe::RecordSink {
public:
    Printer(Output& out, const RecordOptions& options) : out_(out), options_(options) {
        if (options_.format != "tsv") return;
        for (const ColumnOf& c : table) out_.print("{}{}", c.name, &c == std::end(table) - 1 ? "\n" : "\t");
    }

    void begin(StreamContext stream, const perf::PerfData* data, perf::Tasks* tasks) {
        stream_ = std::move(stream);
        tasks_ = tasks;
        conversion_ = data != nullptr && data->time_conversion && data->time_conversion->valid()
                          ? &*data->time_conversion
                          : nullptr;
        if (options_.format != "text") return;
        if (streams_++ != 0) out_.write("\n");
        if (stream_.cpu != perf::nobody)
            out_.print("# CPU {}\n", stream_.cpu);
        else if (stream_.tid != perf::nobody)
            out_.print("# thread {}\n", stream_.tid);
        out_.print("# {:>8}  {:<22} {:<30} {:>16}  {:<44} {}\n", "offset", "pc", "operation", "total/issue/xlat",
                   "data address or branch target; source", "who; events; defects");
    }

    void consume(const spe::RecordBatch& batch) override {
        spe::in_order(
            batch, [&](const spe::Record& record) { show(record); }, [&](const spe::RecordGap& gap) { show(gap); });
    }

    [[nodiscard]] const StreamContext& stream() const { return stream_; }

private:
    [[nodiscard]] Row row_of(const spe::Record& r) {
        Row row{r,       stream_.file_offset(r.first), spe::operation(r.operation_class, r.operation_type), {}, {},
                nullptr, spe::program_address(r.pc)};
        if (conversion_ != nullptr && r.has(Column::timestamp)) row.time_ns = conversion_->to_ns(r.timestamp);
        if (tasks_ == nullptr) return row;
        // Without a time: as it was in the end.
        const std::uint64_t time = row.time_ns.value_or(~std::uint64_t{0});
        if (r.has(Column::context_el2))
            row.thread = tasks_->thread(r.context_el2, time);
        else if (r.has(Column::context_el1))
            row.thread = tasks_->thread(r.context_el1, time);
        else if (stream_.tid != perf::nobody)
            row.thread = tasks_->thread(stream_.tid, time);
        else if (row.time_ns)
            row.thread = tasks_->running(stream_.cpu, time);
        if (r.has(Column::pc)) {
            const bool user = row.pc.exception_level == 0;
            if (!user || row.thread.pid != perf::nobody)
                row.mapping = tasks_->mapping(user ? row.thread.pid : perf::nobody, row.pc.address, time);
        }
        return row;
    }

    void show(const spe::Record& record) {
        const Row row = row_of(record);
        if (!selected(options_.kind, row)) return;
        if (options_.format == "text") return show_text(row);
        if (options_.format == "tsv") {
            for (const ColumnOf& c : table) {
                std::string cell = c.value(row, stream_).text;
                std::replace_if(
                    cell.begin(), cell.end(), [](char ch) { return ch == '\t' || ch == '\n'; }, ' ');
                out_.print("{}{}", cell, &c == std::end(table) - 1 ? "\n" : "\t");
            }
            return;
        }
        char before = '{';
        for (const ColumnOf& c : table) {
            const Cell cell = c.value(row, stream_);
            if (cell.form == Cell::Form::none) continue;
            out_.print("{}\"{}\":{}", before, c.name,
                       cell.form == Cell::Form::number ? cell.text
                       : cell.form == Cell::Form::flag ? (cell.text == "1" ? "true" : "false")
                                                       : json_string(cell.text));
            before = ',';
        }
        out_.write("}\n");
    }

    void show_text(const Row& row) {
        const spe::Record& r = row.record;
        const auto latency = [&](Column column, unsigned value) {
            return r.has(column) ? std::to_string(value) : std::string("-");
        };
        std::string where, more;
        const auto add = [](std::string& to, const std::string& what) {
            if (!what.empty()) to += (to.empty() ? "" : "; ") + what;
        };
        if (r.has(Column::data_virtual)) add(where, hex(spe::data_address(r.data_virtual).address.value));
        if (r.has(Column::data_physical))
            add(where, "physical " + hex(spe::physical_address(r.data_physical).address.value));
        if (r.has(Column::branch_target)) add(where, "to " + hex(spe::program_address(r.branch_target).address.value));
        if (r.has(Column::data_source)) {
            const std::string_view known = spe::data_source_name(stream_.midr, r.data_source);
            add(where, known.empty() ? fmt::format("source {:#x}", r.data_source) : std::string(known));
        }
        if (row.thread.tid != perf::nobody)
            add(more, fmt::format("{}{}{}", row.thread.name, row.thread.name.empty() ? "" : " ", row.thread.tid));
        add(more, spe::events_text(r.events));
        if (const std::string defects = defects_text(r); !defects.empty()) add(more, "! " + defects);
        std::string line = fmt::format(
            "{:>#10x}  {:<22} {:<30} {:>16}  {:<44} {}", row.offset,
            r.has(Column::pc) ? fmt::format("{:#x} EL{}", row.pc.address.value, row.pc.exception_level) : "no pc",
            r.has(Column::operation) ? spe::operation_text(row.operation) : "",
            latency(Column::total_latency, r.total_latency) + "/" + latency(Column::issue_latency, r.issue_latency) +
                "/" + latency(Column::translation_latency, r.translation_latency),
            where, more);
        line.erase(line.find_last_not_of(' ') + 1);
        out_.print("{}\n", line);
    }
    void show(const spe::RecordGap& gap) {
        if (options_.format != "text" || gap.gap.bytes() == 0) return;
        out_.print("{:>#10x}  ({}: {}{})\n", stream_.file_offset(gap.gap.first), name(gap.gap.reason),
                   counted(gap.gap.bytes(), "byte"), gap.inside ? ", inside the next record" : "");
    }

    Output& out_;
    const RecordOptions& options_;
    StreamContext stream_;
    perf::Tasks* tasks_ = nullptr;
    const perf::TimeConversion* conversion_ = nullptr;
    unsigned streams_ = 0;
};

/// Feeds bytes [from, from + bytes) of a file.
waymark::Status feed(const capture::ByteFile& file, std::uint64_t from, std::uint64_t bytes, spe::Decoder& decoder,
                     ProgressLine& progress, std::uint64_t& done, std::uint64_t of) {
    std::vector<std::uint8_t> piece(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, std::uint64_t{1} << 20)));
    while (bytes != 0) {
        const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, piece.size()));
        WM_ASSIGN_OR_RETURN(const std::size_t got, file.read_at(from, std::span(piece).first(want)));
        if (got == 0)
            return Error{Errc::unreadable,
                         fmt::format("{}: offset {:#x}: the file became shorter while it was read", file.name(), from)};
        decoder.feed(Bytes(piece).first(got));
        from += got;
        bytes -= got;
        done += got;
        progress.show(done, of);
    }
    return Nothing{};
}

struct Sums {
    std::uint64_t records = 0, lost = 0, damaged = 0, no_pc = 0;
};

/// What a stream lost, as warnings.
void account(const StreamContext& stream, const spe::Totals& t, Sums& sums) {
    const std::string where = stream.cpu != perf::nobody   ? fmt::format("CPU {}: ", stream.cpu)
                              : stream.tid != perf::nobody ? fmt::format("thread {}: ", stream.tid)
                                                           : "";
    sums.records += t.records;
    sums.lost += t.lost_bytes;
    sums.damaged += t.with(spe::Defect::damaged);
    sums.no_pc += t.with(spe::Defect::no_pc);
    const auto gap = [&](GapReason reason) { return t.gaps[static_cast<std::size_t>(reason)]; };
    if (gap(GapReason::unsynchronised) != 0)
        say("note", where + "what stood before the first whole record was left out");
    if (gap(GapReason::incomplete_packet) != 0)
        say("warning", where + "the last record is not whole, and was left out");
    if (const std::uint64_t n = gap(GapReason::framing); n != 0)
        say("warning", fmt::format("{}{} cut by holes in the trace {} left out", where, counted(n, "record"),
                                   n == 1 ? "was" : "were"));
    const auto defect = [&](spe::Defect d, std::string_view meaning) {
        if (const std::uint64_t n = t.with(d); n != 0)
            say("warning", fmt::format("{}{} {}", where, counted(n, "record"), meaning));
    };
    defect(spe::Defect::damaged, "with bytes that are no packet (damaged)");
    if (const std::uint64_t n = t.with(spe::Defect::no_pc) - t.empty; n != 0)
        say("warning", fmt::format("{}{} without a PC (no_pc)", where, counted(n, "record")));
    defect(spe::Defect::inconsistent, "with packets that do not fit the operation (inconsistent)");
    defect(spe::Defect::aligned, "with an obsolete alignment packet (aligned)");
    defect(spe::Defect::oversized, "longer than any record can be (oversized)");
    if (t.empty != 0) say("note", fmt::format("{}{} held nothing but an end", where, counted(t.empty, "record")));
}

waymark::Status read_perf(const capture::ByteFile& file, const RecordOptions& options, std::uint32_t midr,
                          Printer& printer, Sums& sums) {
    ProgressLine progress;
    WM_ASSIGN_OR_RETURN(const perf::PerfData data, perf::read_perf_data(file));
    for (const perf::Loss& loss : data.losses) {
        const std::uint64_t bytes = loss.end - loss.first;
        say("warning", fmt::format("{}: offset {:#x}: {}{}", file.name(), loss.first.value, loss.message,
                                   bytes == 0 ? "" : fmt::format("; {} passed over", counted(bytes, "byte"))));
    }
    if (data.loss_count > data.losses.size())
        say("warning", fmt::format("{}: {} more places like this", file.name(), data.loss_count - data.losses.size()));
    sums.lost += data.lost_bytes + (data.loss_count != 0 && data.lost_bytes == 0 ? 1 : 0);
    if (!data.auxtrace_info)
        return Error{Errc::bad_format,
                     fmt::format("{}: holds no AUXTRACE_INFO record, so no trace: was it recorded with -e arm_spe//?",
                                 file.name())};
    if (data.chunks.empty())
        return Error{Errc::bad_format, fmt::format("{}: holds no AUXTRACE record, so no trace", file.name())};
    auto info = perf::spe_info(*data.auxtrace_info);
    if (!info) return Error{info.error().code, fmt::format("{}: {}", file.name(), info.error().message)};
    perf::Tasks tasks(data);
    const auto streams = perf::streams(data);
    std::uint64_t all = 0, done = 0;
    for (const perf::Stream& s : streams) all += s.bytes();
    std::uint64_t truncated = 0, collisions = 0;
    for (const perf::AuxRange& aux : data.aux) {
        truncated += (aux.flags & (perf::AuxRange::truncated | perf::AuxRange::partial)) != 0;
        collisions += (aux.flags & perf::AuxRange::collision) != 0;
    }
    bool known = true;
    for (const perf::Stream& s : streams) {
        StreamContext context;
        context.cpu = s.cpu;
        context.tid = s.tid;
        context.midr = midr != 0 ? midr : perf::spe_midr(data, *info, s.cpu);
        known &= context.midr != 0;
        std::uint64_t at = 0;
        for (const perf::Stretch& part : s.stretches) {
            context.parts.push_back({at, part.payload});
            at += part.bytes;
        }
        const bool mid = s.overwrite || options.mid_record;
        printer.begin(std::move(context), &data, &tasks);
        spe::Decoder decoder(printer, mid ? spe::Start::mid_record : spe::Start::record);
        for (const perf::Stretch& part : s.stretches) {
            if (!part.follows && &part != &s.stretches.front())
                decoder.reset(mid ? spe::Start::mid_record : spe::Start::record);
            WM_RETURN_IF_ERROR(feed(file, part.payload, part.bytes, decoder, progress, done, all));
        }
        decoder.finish();
        account(printer.stream(), decoder.totals(), sums);
    }
    if (!known && !streams.empty())
        say("note", "the core is not known, so data sources are numbers; name it with --midr");
    if (truncated != 0)
        say("warning", fmt::format("the buffer overflowed {}: samples are missing there", times(truncated)));
    if (collisions != 0)
        say("note",
            fmt::format("samples collided in {}: the interval is short for this load", counted(collisions, "buffer")));
    return Nothing{};
}

waymark::Status read_raw(const capture::ByteFile& file, const RecordOptions& options, std::uint32_t midr,
                         Printer& printer, Sums& sums) {
    ProgressLine progress;
    StreamContext context;
    context.midr = midr;
    printer.begin(std::move(context), nullptr, nullptr);
    spe::Decoder decoder(printer, options.mid_record ? spe::Start::mid_record : spe::Start::record);
    std::uint64_t done = 0;
    WM_RETURN_IF_ERROR(feed(file, 0, file.size(), decoder, progress, done, file.size()));
    decoder.finish();
    account(printer.stream(), decoder.totals(), sums);
    return Nothing{};
}

Status fail(const Error& error) {
    say("error", error.message);
    return error.code == Errc::usage ? usage : unreadable;
}

Status run_records(const RecordOptions& options) {
    std::uint64_t midr = 0;
    if (!options.midr.empty() && (!wire::scan_number(options.midr, midr) || midr > 0xffffffff))
        return fail(
            {Errc::usage, fmt::format("--midr takes the core's MIDR_EL1, such as 0x410fd0c0, not '{}'", options.midr)});
    std::vector<Error> damage;
    const auto file = capture::open_byte_file(options.capture, &damage);
    if (!file) return fail(file.error());
    for (const Error& error : damage) say("warning", error.message);
    std::array<std::uint8_t, 8> head{};
    const auto got = (*file)->read_at(0, head);
    if (!got) return fail(got.error());
    auto out = Output::open(options.output);
    if (!out) return fail(out.error());
    Printer printer(*out, options);
    Sums sums;
    const auto read = perf::is_perf_data(Bytes(head).first(*got)) ? read_perf : read_raw;
    const waymark::Status done = read(**file, options, static_cast<std::uint32_t>(midr), printer, sums);
    std::string why;
    if (out->close(why) != decoded) {
        say("error", why);
        return unreadable;
    }
    if (!done) return fail(done.error());
    if (!damage.empty()) return unreadable;
    if (sums.records == sums.no_pc) {
        say("error", "no record with a PC: this does not look like an SPE buffer, or it is empty");
        return nothing;
    }
    return options.strict && sums.lost + sums.damaged + sums.no_pc != 0 ? nothing : decoded;
}

}  // namespace

Run add_spe_records(CLI::App& app) {
    auto options = std::make_shared<RecordOptions>();
    CLI::App& command = *app.add_subcommand("records", "Every sample, with its latencies, addresses and events");
    command
        .add_option("CAPTURE", options->capture,
                    "A perf.data file, or the bare bytes of a profiling buffer; .gz and .zst too; - is standard input")
        ->required();
    command
        .add_option("--format", options->format, "text: for reading; tsv, json (a JSON object per line): for programs")
        ->type_name("FORMAT")
        ->check(one_of({"text", "tsv", "json"}))
        ->capture_default_str();
    command.add_option("--kind", options->kind, "Only loads and stores (ldst), branches (br) or others (other)")
        ->type_name("KIND")
        ->check(one_of({"all", "ldst", "br", "other"}))
        ->capture_default_str();
    command
        .add_option("--midr", options->midr,
                    "The core's MIDR_EL1, where the file does not tell it: data sources are named by it")
        ->type_name("VALUE");
    command.add_flag("--mid-record", options->mid_record,
                     "The buffer may begin inside a record, as a snapshot does: start behind the first end of one");
    command.add_flag("--strict", options->strict, "Exit with status 1 if anything was lost or damaged");
    command.add_option("-o,--output", options->output, "Write there instead of to standard output")->type_name("FILE");
    command.footer(
        "Samples come CPU by CPU, in the order they were taken.\n"
        "Examples:\n"
        "  waymark spe records perf.data | less\n"
        "  waymark spe records perf.data --kind ldst --format tsv -o loads.tsv\n"
        "  waymark spe records buffer.bin --midr 0x410fd0c0\n");
    return [options] { return run_records(*options); };
}

}  // namespace waymark::cli
