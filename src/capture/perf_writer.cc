#include "waymark/capture/perf_writer.h"

#include <algorithm>

#include "waymark/core/result.h"

namespace waymark::capture::perf {
namespace {

constexpr std::uint64_t header_bytes = 104;
constexpr std::uint16_t misc_13 = 1U << 13, misc_14 = 1U << 14, misc_15 = 1U << 15;
constexpr std::uint16_t from_kernel = 1, from_user = 2;

class Out {
public:
    Out& u8(std::uint8_t v) {
        bytes_.push_back(v);
        return *this;
    }
    Out& u16(std::uint16_t v) { return number(v, 2); }
    Out& u32(std::uint32_t v) { return number(v, 4); }
    Out& u64(std::uint64_t v) { return number(v, 8); }
    /// Writes a text with its zero byte, padded to a multiple of `unit`.
    Out& text(std::string_view v, std::size_t unit = 8) {
        const std::size_t end = bytes_.size() + (v.size() + unit) / unit * unit;
        bytes_.insert(bytes_.end(), v.begin(), v.end());
        bytes_.resize(end);
        return *this;
    }
    Out& raw(Bytes v, std::size_t size) {
        const std::size_t end = bytes_.size() + size;
        bytes_.insert(bytes_.end(), v.begin(), v.begin() + static_cast<std::ptrdiff_t>(std::min(size, v.size())));
        bytes_.resize(end);
        return *this;
    }
    [[nodiscard]] std::vector<std::uint8_t> take() { return std::move(bytes_); }
    [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }

private:
    Out& number(std::uint64_t v, unsigned size) {
        for (unsigned i = 0; i < size; ++i) bytes_.push_back(static_cast<std::uint8_t>(v >> (8 * i)));
        return *this;
    }
    std::vector<std::uint8_t> bytes_;
};

/// The smallest attribute size that contains the fields: perf refuses files with an unknown larger size.
std::uint32_t attr_bytes(const Attr& a) { return a.config4 != 0 ? 144 : a.config3 != 0 ? 136 : 128; }

void put(Out& out, const Attr& a, std::uint32_t bytes) {
    out.u32(a.type).u32(bytes).u64(a.config).u64(a.sample_period).u64(a.sample_type).u64(a.read_format).u64(a.flags);
    out.u64(0).u64(a.config1).u64(a.config2);
    for (unsigned at = 72; at < 128; at += 8) out.u64(at == 88 ? std::uint64_t{a.clock} << 32 : 0);
    if (bytes > 128) out.u64(a.config3);
    if (bytes > 136) out.u64(a.config4);
}

std::vector<std::uint8_t> counted_text(std::string_view text) {
    const std::size_t bytes = (text.size() + 64) / 64 * 64;
    Out out;
    return out.u32(static_cast<std::uint32_t>(bytes)).text(text, 64).take();
}

std::uint16_t mode(std::uint32_t pid) { return pid == nobody ? from_kernel : from_user; }

/// The kind of file that HEADER_BUILD_ID states in its misc field.
std::vector<std::uint8_t> build_id_body(const BuildId& id) {
    Out body;
    body.u32(id.pid).raw(id.id, 20).u8(static_cast<std::uint8_t>(std::min<std::size_t>(id.id.size(), 20))).raw({}, 3);
    return body.text(id.file, 64).take();
}

}  // namespace

PerfWriter::PerfWriter(ByteSink& out, std::vector<Attr> attrs, Form form)
    : out_(out), attrs_(std::move(attrs)), form_(form) {
    if (form_ == Form::pipe) {
        Out magic;
        write(magic.raw(Bytes(reinterpret_cast<const std::uint8_t*>("PERFILE2"), 8), 8).u64(16).bytes());
        for (const Attr& a : attrs_) {
            Out body;
            put(body, a, attr_bytes(a));
            for (const std::uint64_t id : a.ids) body.u64(id);
            record(Type::header_attr, 0, body.bytes());
        }
        return;
    }
    write(front(0));
    data_at_ = size_;
}

void PerfWriter::change_attr(std::size_t attr, const Attr& to) {
    WM_CHECK(form_ == Form::file && to.ids == attrs_[attr].ids && attr_bytes(to) <= attrs_bytes());
    attrs_[attr] = to;
}

std::uint32_t PerfWriter::attrs_bytes() const {
    std::uint32_t bytes = least_attrs_bytes_;
    for (const Attr& a : attrs_) bytes = std::max(bytes, attr_bytes(a));
    return bytes;
}

void PerfWriter::write(Bytes bytes) {
    if (!bytes.empty()) out_.write(bytes);
    size_ += bytes.size();
}

std::vector<std::uint8_t> PerfWriter::front(std::uint64_t data_bytes) {
    const std::uint32_t bytes = attrs_bytes();
    least_attrs_bytes_ = bytes;  // the attributes keep their size when they change
    Out ids, entries;
    for (const Attr& a : attrs_) {
        put(entries, a, bytes);
        entries.u64(header_bytes + ids.bytes().size()).u64(8 * a.ids.size());
        for (const std::uint64_t id : a.ids) ids.u64(id);
    }
    const std::uint64_t attrs_at = header_bytes + ids.bytes().size();
    std::array<std::uint64_t, 4> set{};
    for (const auto& [feature, contents] : features_) set[feature / 64] |= std::uint64_t{1} << feature % 64;
    Out out;
    out.raw(Bytes(reinterpret_cast<const std::uint8_t*>("PERFILE2"), 8), 8).u64(header_bytes).u64(bytes + 16);
    out.u64(attrs_at).u64(attrs_.size() * (std::uint64_t{bytes} + 16)).u64(attrs_at + entries.bytes().size());
    out.u64(data_bytes).u64(0).u64(0);
    for (const std::uint64_t word : set) out.u64(word);
    out.raw(ids.bytes(), ids.bytes().size()).raw(entries.bytes(), entries.bytes().size());
    return out.take();
}

void PerfWriter::record(Type type, std::uint16_t misc, Bytes body, const At* at) {
    Out trailer;
    if (at != nullptr && at->attr < attrs_.size() && attrs_[at->attr].sample_id_all()) {
        const Attr& a = attrs_[at->attr];
        const bool made_up = at->time == 0 && at->cpu == 0 && at->tid == 0;
        const std::uint64_t id = made_up || a.ids.empty() ? 0 : a.ids[std::min<std::size_t>(at->cpu, a.ids.size() - 1)];
        if ((a.sample_type & sample::tid) != 0) trailer.u32(at->pid).u32(at->tid);
        if ((a.sample_type & sample::time) != 0) trailer.u64(at->time);
        if ((a.sample_type & sample::id) != 0) trailer.u64(id);
        if ((a.sample_type & sample::stream_id) != 0) trailer.u64(id);
        if ((a.sample_type & sample::cpu) != 0) trailer.u32(at->cpu).u32(0);
        if ((a.sample_type & sample::identifier) != 0) trailer.u64(id);
    }
    const std::size_t bytes = 8 + body.size() + trailer.bytes().size();
    WM_CHECK(bytes <= 0xffff);
    Out head;
    head.u32(static_cast<std::uint32_t>(type)).u16(misc).u16(static_cast<std::uint16_t>(bytes));
    write(head.bytes());
    write(body);
    write(trailer.bytes());
}

void PerfWriter::time_conversion(const TimeConversion& t) {
    Out body;
    body.u64(t.shift).u64(t.multiplier).u64(t.zero).u64(t.cycles).u64(t.mask).u8(1).u8(t.short_counter ? 1 : 0);
    record(Type::time_conv, 0, body.raw({}, 6).bytes());
}

void PerfWriter::auxtrace_info(const AuxtraceInfo& info) {
    Out body;
    body.u32(info.type).u32(0);
    for (const std::uint64_t word : info.words) body.u64(word);
    record(Type::auxtrace_info, 0, body.bytes());
}

void PerfWriter::mapping(const Mapping& m, const At& at) {
    Out body;
    body.u32(m.pid).u32(m.tid).u64(m.address.value).u64(m.bytes).u64(m.file_offset);
    if (m.pid == nobody) {
        body.text(m.file);
        return record(Type::mmap, static_cast<std::uint16_t>(mode(m.pid) | (m.data ? misc_13 : 0)), body.bytes(), &at);
    }
    std::uint16_t misc = mode(m.pid);
    if (m.build_id.empty()) {
        body.u32(0).u32(0).u64(0).u64(0);
    } else {
        misc = static_cast<std::uint16_t>(misc | misc_14);
        body.u8(static_cast<std::uint8_t>(std::min<std::size_t>(m.build_id.size(), 20))).u8(0).u16(0);
        body.raw(m.build_id, 20);
    }
    body.u32(m.protection).u32(m.flags).text(m.file);
    record(Type::mmap2, misc, body.bytes(), &at);
}

void PerfWriter::task(const TaskEvent& e, const At& at) {
    Out body;
    switch (e.kind) {
        case TaskEvent::Kind::comm:
        case TaskEvent::Kind::exec:
            body.u32(e.pid).u32(e.tid).text(e.name);
            return record(Type::comm, e.kind == TaskEvent::Kind::exec ? misc_13 : std::uint16_t{0}, body.bytes(), &at);
        case TaskEvent::Kind::fork:
        case TaskEvent::Kind::exit:
            body.u32(e.pid).u32(e.parent_pid).u32(e.tid).u32(e.parent_tid).u64(e.time);
            return record(e.kind == TaskEvent::Kind::fork ? Type::fork : Type::exit, 0, body.bytes(), &at);
    }
}

void PerfWriter::switch_to(std::uint32_t pid, std::uint32_t tid, const At& at) {
    Out body;
    record(Type::context_switch_cpu_wide, misc_13, body.u32(pid).u32(tid).bytes(), &at);
}
void PerfWriter::switched(bool out, const At& at) {
    record(Type::context_switch, out ? misc_13 : std::uint16_t{0}, {}, &at);
}
void PerfWriter::itrace_start(std::uint32_t pid, std::uint32_t tid, const At& at) {
    Out body;
    record(Type::itrace_start, 0, body.u32(pid).u32(tid).bytes(), &at);
}
void PerfWriter::kernel_symbol(const KernelSymbol& s, const At& at) {
    Out body;
    body.u64(s.address.value).u32(s.bytes).u16(1).u16(s.unregistered ? 1 : 0).text(s.name);
    record(Type::ksymbol, 0, body.bytes(), &at);
}
void PerfWriter::text_poke(const TextPoke& poke, const At& at) {
    Out body;
    body.u64(poke.address.value).u16(static_cast<std::uint16_t>(poke.before.size()));
    body.u16(static_cast<std::uint16_t>(poke.after.size())).raw(poke.before, poke.before.size());
    body.raw(poke.after, poke.after.size());
    std::vector<std::uint8_t> bytes = body.take();
    bytes.resize((bytes.size() + 7) / 8 * 8);
    record(Type::text_poke, 0, bytes, &at);
}
void PerfWriter::build_id(const BuildId& id) {
    record(Type::header_build_id, static_cast<std::uint16_t>(mode(id.pid) | misc_15), build_id_body(id));
}
void PerfWriter::hardware_id(std::uint64_t id, const At& at) {
    Out body;
    record(Type::aux_output_hw_id, 0, body.u64(id).bytes(), &at);
}
void PerfWriter::lost(std::uint64_t id, std::uint64_t count, const At& at) {
    Out body;
    record(Type::lost, 0, body.u64(id).u64(count).bytes(), &at);
}
void PerfWriter::aux(const AuxRange& range, const At& at) {
    Out body;
    record(Type::aux, 0, body.u64(range.offset).u64(range.bytes).u64(range.flags).bytes(), &at);
}
void PerfWriter::auxtrace(const Chunk& c, Bytes trace) {
    const std::uint64_t padded = (trace.size() + 7) / 8 * 8;
    index_.push_back(size_);
    Out body;
    body.u64(padded).u64(c.ring).u64(c.reference).u32(c.index).u32(c.tid).u32(c.cpu).u32(0);
    record(Type::auxtrace, 0, body.bytes());
    write(trace);
    constexpr std::array<std::uint8_t, 8> zeros{};
    write(Bytes(zeros).first(static_cast<std::size_t>(padded - trace.size())));
}
void PerfWriter::finished_round() { record(Type::finished_round, 0, {}); }

void PerfWriter::feature(Feature number, std::vector<std::uint8_t> bytes) {
    if (form_ == Form::file) {
        features_[static_cast<std::uint8_t>(number)] = std::move(bytes);
        return;
    }
    Out body;
    body.u64(static_cast<std::uint8_t>(number)).raw(bytes, (bytes.size() + 7) / 8 * 8);
    record(Type::header_feature, 0, body.bytes());
}
void PerfWriter::feature_text(Feature number, std::string_view text) { feature(number, counted_text(text)); }
void PerfWriter::pmus(const std::map<std::uint32_t, std::string>& pmus) {
    Out out;
    out.u32(static_cast<std::uint32_t>(pmus.size()));
    for (const auto& [type, pmu] : pmus) {
        const auto text = counted_text(pmu);
        out.u32(type).raw(text, text.size());
    }
    feature(Feature::pmu_mappings, out.take());
}
void PerfWriter::cpus(std::uint32_t online, std::uint32_t available) {
    Out out;
    feature(Feature::cpus, out.u32(online).u32(available).take());
}
void PerfWriter::command_line(std::span<const std::string> words) {
    Out out;
    out.u32(static_cast<std::uint32_t>(words.size()));
    for (const std::string& word : words) {
        const auto text = counted_text(word);
        out.raw(text, text.size());
    }
    feature(Feature::command_line, out.take());
}

void PerfWriter::build_ids(std::span<const BuildId> ids) {
    if (ids.empty()) return;
    // In the feature these records have type 0, and files of programs have no process.
    constexpr std::uint16_t misc = from_user | misc_15;
    Out out;
    for (const BuildId& id : ids) {
        const std::vector<std::uint8_t> body = build_id_body(id);
        out.u32(0).u16(misc).u16(static_cast<std::uint16_t>(8 + body.size())).raw(body, body.size());
    }
    feature(Feature::build_id, out.take());
}

std::vector<std::uint8_t> PerfWriter::finish(bool index) {
    if (form_ == Form::pipe) return {};
    const std::uint64_t data_end = size_;
    if (index && !index_.empty()) {
        Out out;
        out.u64(index_.size());
        for (const std::uint64_t at : index_) out.u64(at).u64(48);
        feature(Feature::auxtrace_index, out.take());
    }
    bool named = false;
    for (const Attr& a : attrs_) named |= !a.name.empty();
    if (named) {
        const std::uint32_t bytes = attrs_bytes();
        Out out;
        out.u32(static_cast<std::uint32_t>(attrs_.size())).u32(bytes);
        for (const Attr& a : attrs_) {
            put(out, a, bytes);
            const auto text = counted_text(a.name);
            out.u32(static_cast<std::uint32_t>(a.ids.size())).raw(text, text.size());
            for (const std::uint64_t id : a.ids) out.u64(id);
        }
        feature(Feature::event_description, out.take());
    }
    std::uint64_t at = data_end + 16 * features_.size();
    Out table;
    for (const auto& [feature, bytes] : features_) {
        table.u64(at).u64(bytes.size());
        at += bytes.size();
    }
    write(table.bytes());
    for (const auto& [feature, bytes] : features_) write(bytes);
    return front(data_end - data_at_);
}

}  // namespace waymark::capture::perf
