#include "perf_contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "perf_code.h"
#include "waymark/capture/branch_entry.h"

namespace waymark::capture::perf {
namespace {

constexpr std::uint64_t max_split_bytes = std::uint64_t{64} << 20;

/// Reads a u32 length and a text of that many bytes, which a zero ends.
std::string counted_text(const RecordFields& f, std::uint64_t& at) {
    const std::uint64_t bytes = f.u32(at);
    const std::vector<std::uint8_t> raw = f.copy(at + 4, bytes);
    at += 4 + bytes;
    return RecordFields(raw).text(0);
}

}  // namespace

Attr attr_of(Bytes bytes) {
    const RecordFields all(bytes);
    const RecordFields f(bytes.first(std::min<std::size_t>(bytes.size(), std::max<std::uint32_t>(all.u32(4), 64))));
    Attr a;
    a.type = f.u32(0);
    a.config = f.u64(8);
    a.sample_period = f.u64(16);
    a.sample_type = f.u64(24);
    a.read_format = f.u64(32);
    a.flags = f.u64(40);
    a.config1 = f.u64(56);
    a.config2 = f.u64(64);
    a.branch_sample_type = f.u64(72);
    a.clock = f.u32(92);
    a.config3 = f.u64(128);
    a.config4 = f.u64(136);
    return a;
}

void PerfContents::lose(std::uint64_t first, std::uint64_t end, std::string message) {
    data.lost_bytes += end - first;
    if (cut_ && data.losses[*cut_].end.value == end) {
        Loss& whole = data.losses[*cut_];
        whole.first = std::min(whole.first, Offset{first});
        whole.message += "; " + message;
        return;
    }
    ++data.loss_count;
    if (data.losses.size() < PerfData::max_losses) data.losses.push_back({{first}, {end}, std::move(message)});
}

void PerfContents::cut(std::uint64_t end, std::string message) {
    const std::size_t before = data.losses.size();
    lose(end, end, std::move(message));
    if (data.losses.size() > before) cut_ = before;
}

void PerfContents::add_attr(Attr attr) {
    for (const std::uint64_t id : attr.ids) attr_by_id_.emplace(id, data.attrs.size());
    data.attrs.push_back(std::move(attr));
}

void PerfContents::take_feature(std::uint64_t feature, Bytes bytes) {
    const RecordFields f(bytes);
    std::uint64_t at = 0;
    switch (feature) {
        case 2:
            while (at + record_header_bytes <= bytes.size()) {
                const RecordHeader h = header_of(f.from(at));
                if (h.size < record_header_bytes) break;
                take_build_id(h, Bytes(f.copy(at, h.size)));
                at += h.size;
            }
            break;
        case 3: data.hostname = counted_text(f, at); break;
        case 4: data.release = counted_text(f, at); break;
        case 5: data.version = counted_text(f, at); break;
        case 6: data.architecture = counted_text(f, at); break;
        case 7:
            data.cpus_online = f.u32(0);
            data.cpus_available = f.u32(4);
            break;
        case 8: data.cpu_description = counted_text(f, at); break;
        case 9: data.cpu_id = counted_text(f, at); break;
        case 11: {
            const std::uint32_t count = f.u32(0);
            at = 4;
            for (std::uint32_t i = 0; i < count && at < bytes.size(); ++i) {
                if (i != 0) data.command_line += ' ';
                data.command_line += counted_text(f, at);
            }
            break;
        }
        case 12: take_event_descriptions(f); break;
        case 16: {
            const std::uint32_t count = f.u32(0);
            at = 4;
            for (std::uint32_t i = 0; i < count && at < bytes.size(); ++i) {
                const std::uint32_t type = f.u32(at);
                at += 4;
                data.pmus[type] = counted_text(f, at);
            }
            break;
        }
        case 18:
            // A count and pairs of words; older simpleperf writes the pairs alone.
            data.indexed = true;
            data.index_without_count = bytes.size() / 8 % 2 == 0 && bytes.size() >= 16;
            for (at = data.index_without_count ? 0 : 8; at + 16 <= bytes.size(); at += 16) index.push_back(f.u64(at));
            std::sort(index.begin(), index.end());
            break;
        case 25: data.bpf_functions = bpf_functions(bytes); break;
        case 129:
            while (at < bytes.size()) {
                const std::string key = f.text(at);
                at += key.size() + 1;
                if (key.empty()) break;
                std::string value = f.text(at);
                at += value.size() + 1;
                data.meta_info[key] = std::move(value);
            }
            break;
        case 132: take_file_descriptions(bytes); break;
        case 133: data.branch_lists.assign(bytes.begin(), bytes.end()); break;
        case 134:
            // Reads maps and names from before the recording began.
            while (at + record_header_bytes <= bytes.size()) {
                const RecordHeader h = header_of(f.from(at));
                if (!h.possible() || h.size > bytes.size() - at || h.kind() == Type::auxtrace) {
                    lose(0, 0, fmt::format("the list of first maps (feature 134) has no record at its byte {}", at));
                    break;
                }
                if (h.kind() == Type::compressed || h.kind() == Type::compressed2)
                    lose(0, 0, "the list of first maps (feature 134) is compressed, which is not read");
                else
                    take(0, h, Bytes(f.copy(at, h.size)));
                at += h.size;
            }
            break;
        default: break;
    }
}

/// Reads feature 132 (docs/spec/perf-cs-etm.md, section 3.1): messages of protobuf, each preceded by its length.
void PerfContents::take_file_descriptions(Bytes bytes) {
    const RecordFields f(bytes);
    struct Message {
        Bytes rest;
        std::uint64_t number() {
            std::uint64_t value = 0;
            for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
                const std::uint8_t b = rest.front();
                rest = rest.subspan(1);
                value |= std::uint64_t{b & 0x7fU} << shift;
                if ((b & 0x80U) == 0) break;
            }
            return value;
        }
        /// The contents of a field with a length; empty if there are none.
        Bytes contents() {
            const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(number(), rest.size()));
            const Bytes out = rest.first(length);
            rest = rest.subspan(length);
            return out;
        }
        /// Skips a field of that type.
        void skip(std::uint64_t type) {
            if (type == 0)
                (void)number();
            else if (type == 2)
                (void)contents();
            else
                rest = rest.subspan(std::min<std::size_t>(type == 1 ? 8 : type == 5 ? 4 : rest.size(), rest.size()));
        }
    };
    for (std::uint64_t at = 0; at + 4 <= bytes.size();) {
        const std::uint64_t length = f.u32(at);
        at += 4;
        if (length > bytes.size() - at) break;
        Message file{bytes.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(length))};
        at += length;
        std::string path;
        std::optional<std::uint64_t> offset;
        while (!file.rest.empty()) {
            const std::uint64_t tag = file.number(), type = tag & 7U;
            if (tag >> 3 == 1 && type == 2) {
                const Bytes text = file.contents();
                path.assign(text.begin(), text.end());
            } else if (tag >> 3 == 7 && type == 2) {
                Message module{file.contents()};
                offset = 0;
                while (!module.rest.empty())
                    if (const std::uint64_t inner = module.number(); inner == (1U << 3))
                        offset = module.number();
                    else
                        module.skip(inner & 7U);
            } else {
                file.skip(type);
            }
        }
        if (offset) data.code_offsets.emplace(std::move(path), *offset);
    }
}

void PerfContents::take_event_descriptions(const RecordFields& f) {
    const std::uint32_t count = f.u32(0);
    const std::uint64_t attr_bytes = f.u32(4);
    std::uint64_t at = 8;
    for (std::uint32_t i = 0; i < count && at < f.size(); ++i) {
        at += attr_bytes;
        const std::uint32_t ids = f.u32(at);
        at += 4;
        const std::string event = counted_text(f, at);
        for (std::uint32_t k = 0; k < ids && at + 8 <= f.size(); ++k, at += 8) event_names_[f.u64(at)] = event;
    }
}

void PerfContents::take_build_id(const RecordHeader& h, Bytes record) {
    const RecordFields f(record);
    BuildId b;
    b.pid = f.u32(8);
    const std::uint64_t bytes = h.misc_bit(15) ? std::min<std::uint64_t>(f.u8(12 + 20), 20) : 20;
    b.id = f.copy(12, bytes);
    // Records without the size bit pad a shorter build ID with zeros.
    if (!h.misc_bit(15))
        for (const std::size_t shorter : {std::size_t{16}, std::size_t{8}})
            if (b.id.size() > shorter && std::all_of(b.id.begin() + static_cast<std::ptrdiff_t>(shorter), b.id.end(),
                                                     [](std::uint8_t x) { return x == 0; }))
                b.id.resize(shorter);
    b.file = f.text(36);
    data.build_ids.push_back(std::move(b));
}

void PerfContents::take(std::uint64_t at, const RecordHeader& h, Bytes record) {
    ++data.counts[h.type];
    const RecordFields f(record);
    switch (h.kind()) {
        case Type::mmap:
        case Type::mmap2: return take_mapping(h, record);
        case Type::comm: {
            const SampleId id = sample_id(record);
            data.tasks.push_back({h.misc_bit(13) ? TaskEvent::Kind::exec : TaskEvent::Kind::comm, f.u32(8), f.u32(12),
                                  nobody, nobody, id.time.value_or(0), f.text(16)});
            return;
        }
        case Type::fork:
        case Type::exit:
            data.tasks.push_back({h.kind() == Type::fork ? TaskEvent::Kind::fork : TaskEvent::Kind::exit,
                                  f.u32(8),
                                  f.u32(16),
                                  f.u32(12),
                                  f.u32(20),
                                  f.u64(24),
                                  {}});
            return;
        case Type::aux: data.aux.push_back({f.u64(8), f.u64(16), f.u64(24), sample_id(record)}); return;
        case Type::itrace_start: {
            const SampleId id = sample_id(record);
            add_switch(id, f.u32(8), f.u32(12));
            return;
        }
        case Type::context_switch: {
            const SampleId id = sample_id(record);
            if (h.misc_bit(13))
                add_switch(id, nobody, nobody);
            else
                add_switch(id, id.pid.value_or(nobody), id.tid.value_or(nobody));
            return;
        }
        case Type::context_switch_cpu_wide: {
            const SampleId id = sample_id(record);
            if (h.misc_bit(13))
                add_switch(id, f.u32(8), f.u32(12));
            else
                add_switch(id, id.pid.value_or(nobody), id.tid.value_or(nobody));
            return;
        }
        case Type::sample: return take_sample(at, h, record);
        case Type::lost: data.lost_records += f.u64(16); return;
        case Type::lost_samples: data.lost_records += f.u64(8); return;
        case Type::ksymbol:
            data.kernel_symbols.push_back(
                {{f.u64(8)}, f.u32(16), sample_id(record).time.value_or(0), (f.u16(22) & 1U) != 0, f.text(24)});
            return;
        case Type::text_poke: {
            TextPoke poke{{f.u64(8)}, sample_id(record).time.value_or(0), {}, {}};
            const std::uint64_t before = f.u16(16), after = f.u16(18);
            poke.before = f.copy(20, before);
            poke.after = f.copy(20 + before, after);
            data.text_pokes.push_back(std::move(poke));
            return;
        }
        case Type::simpleperf_split:
            if (split_.size() + record.size() > max_split_bytes) {
                lose(at, at, fmt::format("a split record of more than {} bytes", max_split_bytes));
                split_.clear();
                return;
            }
            split_.insert(split_.end(), record.begin() + record_header_bytes, record.end());
            return;
        case Type::simpleperf_split_end: {
            const std::vector<std::uint8_t> whole = std::exchange(split_, {});
            ++data.split_records;
            const RecordHeader inner = header_of(whole);
            if (whole.size() < record_header_bytes || inner.kind() == Type::simpleperf_split ||
                inner.kind() == Type::simpleperf_split_end || inner.kind() == Type::auxtrace)
                return lose(at, at, "the parts of a split record do not form a valid record");
            const bool before = std::exchange(unpacked, true);
            take(at, inner, whole);
            unpacked = before;
            return;
        }
        case Type::aux_output_hw_id: data.hardware_ids.push_back({f.u64(8), sample_id(record)}); return;
        case Type::header_attr: {
            const std::uint64_t bytes = std::max<std::uint32_t>(f.u32(12), 64);
            Attr attr = attr_of(Bytes(f.copy(8, bytes)));
            for (std::uint64_t i = 8 + bytes; i + 8 <= record.size(); i += 8) attr.ids.push_back(f.u64(i));
            return add_attr(std::move(attr));
        }
        case Type::header_feature: return take_feature(f.u64(8), f.from(16));
        case Type::header_build_id: return take_build_id(h, record);
        case Type::event_update:
            if (constexpr std::uint64_t event_name = 2; f.u64(8) == event_name) event_names_[f.u64(16)] = f.text(24);
            return;
        case Type::auxtrace_info: {
            AuxtraceInfo info;
            info.type = f.u32(8);
            for (std::uint64_t i = 16; i + 8 <= record.size(); i += 8) info.words.push_back(f.u64(i));
            if (!data.auxtrace_info)
                data.auxtrace_info = std::move(info);
            else
                lose(at, at + h.size, "a second AUXTRACE_INFO record; the first is used");
            return;
        }
        case Type::time_conv: {
            TimeConversion t;
            t.shift = f.u64(8);
            t.multiplier = f.u64(16);
            t.zero = f.u64(24);
            if (h.size >= 56) {
                t.cycles = f.u64(32);
                t.mask = f.u64(40);
                t.short_counter = f.u8(49) != 0;
            }
            data.time_conversion = t;
            data.late_time_conversion |= data.auxtrace_info.has_value();
            return;
        }
        default: return;
    }
}

void PerfContents::take_sample(std::uint64_t at, const RecordHeader& h, Bytes record) {
    if (data.attrs.empty() || !data.has_branch_stacks()) return;
    const RecordFields f(record);
    std::size_t event = 0;
    if (data.attrs.size() > 1 && (data.attrs.front().sample_type & sample::identifier) != 0) {
        if (const auto found = attr_by_id_.find(f.u64(record_header_bytes)); found != attr_by_id_.end())
            event = found->second;
        else
            ++data.unknown_ids;
    }
    const Attr& attr = data.attrs[event];
    const std::uint64_t type = attr.sample_type;
    if ((type & sample::branch_stack) == 0) return;
    BranchSample out;
    out.event = static_cast<std::uint32_t>(event);
    // The fields come in this order, which is not the order of the bits of sample_type.
    std::uint64_t place = record_header_bytes;
    const auto skip = [&](std::uint64_t bit) {
        const std::uint64_t here = place;
        if ((type & bit) == 0) return std::optional<std::uint64_t>();
        place += 8;
        return std::optional(here);
    };
    skip(sample::identifier);
    skip(sample::ip);
    if (const auto here = skip(sample::tid)) out.pid = f.u32(*here), out.tid = f.u32(*here + 4);
    if (const auto here = skip(sample::time)) out.time = f.u64(*here);
    skip(sample::addr);
    skip(sample::id);
    skip(sample::stream_id);
    if (const auto here = skip(sample::cpu)) out.cpu = f.u32(*here);
    skip(sample::period);
    constexpr std::uint64_t most_words = max_record_bytes / 8;
    if ((type & sample::read) != 0) {
        constexpr std::uint64_t group = 8, each = 4 | 16, once = 1 | 2;
        const auto words = [&](std::uint64_t mask) {
            std::uint64_t n = 0;
            for (std::uint64_t bit = 1; bit <= 16; bit <<= 1U) n += (attr.read_format & mask & bit) != 0 ? 1 : 0;
            return n;
        };
        const std::uint64_t values = (attr.read_format & group) == 0 ? 1 : std::min(f.u64(place), most_words);
        place += 8 * (((attr.read_format & group) == 0 ? 0 : 1) + words(once) + values * (1 + words(each)));
    }
    if ((type & sample::callchain) != 0) place += 8 * (1 + std::min(f.u64(place), most_words));
    if ((type & sample::raw) != 0) place += (std::uint64_t{f.u32(place)} + 4 + 7) & ~std::uint64_t{7};
    const std::uint64_t count = f.u64(place);
    place += 8;
    constexpr std::uint64_t hardware_index = 1U << 17;
    if ((attr.branch_sample_type & hardware_index) != 0) place += 8;
    if (place > record.size() || count > (record.size() - place) / branch_entry_bytes)
        return lose(at, at + h.size,
                    fmt::format("a sample whose branch stack has {} entries, but {} bytes are left in the record",
                                count, place > record.size() ? 0 : record.size() - place));
    if (count == 0) {
        ++data.empty_branch_samples;
        return;
    }
    out.entries = static_cast<std::uint32_t>(count);
    out.unpacked = unpacked;
    out.offset = at + place;
    if (unpacked) {
        const Bytes entries = f.from(place).first(static_cast<std::size_t>(count * branch_entry_bytes));
        out.offset = data.unpacked_branches.size();
        data.unpacked_branches.insert(data.unpacked_branches.end(), entries.begin(), entries.end());
    }
    data.branch_samples.push_back(out);
}

void PerfContents::take_mapping(const RecordHeader& h, Bytes record) {
    const RecordFields f(record);
    Mapping m;
    m.pid = f.u32(8);
    m.tid = f.u32(12);
    m.address = {f.u64(16)};
    m.bytes = f.u64(24);
    m.file_offset = f.u64(32);
    m.time = sample_id(record).time.value_or(0);
    if (h.kind() == Type::mmap) {
        m.data = h.misc_bit(13);
        m.protection = m.data ? 0 : 4;
        m.file = f.text(40);
    } else {
        if (h.misc_bit(14)) m.build_id = f.copy(44, std::min<std::uint64_t>(f.u8(40), 20));
        m.protection = f.u32(64);
        m.flags = f.u32(68);
        m.data = (m.protection & 4U) == 0;
        m.file = f.text(72);
    }
    data.mappings.push_back(std::move(m));
}

void PerfContents::add_switch(const SampleId& id, std::uint32_t pid, std::uint32_t tid) {
    if (!id.cpu || !id.time) return;
    data.switches.push_back({*id.cpu, pid, tid, *id.time});
}

SampleId PerfContents::sample_id(Bytes record) {
    SampleId out;
    if (data.attrs.empty()) return out;
    const RecordFields f(record);
    const Attr* attr = &data.attrs.front();
    if (data.attrs.size() > 1 && (attr->sample_type & sample::identifier) != 0 && record.size() >= 16)
        if (const std::uint64_t id = f.u64(record.size() - 8); id != 0) {
            if (const auto found = attr_by_id_.find(id); found != attr_by_id_.end())
                attr = &data.attrs[found->second];
            else
                ++data.unknown_ids;
        }
    if (!attr->sample_id_all()) return out;
    // The fields have this order, so they are read backwards from the end.
    constexpr std::uint64_t order[] = {sample::tid,       sample::time, sample::id,
                                       sample::stream_id, sample::cpu,  sample::identifier};
    std::uint64_t at = record.size();
    for (const std::uint64_t bit : order)
        if ((attr->sample_type & bit) != 0) at -= std::min<std::uint64_t>(at, 8);
    if (at < record_header_bytes) return out;
    for (const std::uint64_t bit : order) {
        if ((attr->sample_type & bit) == 0) continue;
        if (bit == sample::tid) {
            out.pid = f.u32(at);
            out.tid = f.u32(at + 4);
        } else if (bit == sample::time) {
            out.time = f.u64(at);
        } else if (bit == sample::cpu) {
            out.cpu = f.u32(at);
        }
        at += 8;
    }
    return out;
}

void PerfContents::next_file() {
    cut_.reset();
    index.clear();
    split_.clear();
}

void PerfContents::finish() {
    for (auto& [id, name] : event_names_)
        if (const auto found = attr_by_id_.find(id); found != attr_by_id_.end()) data.attrs[found->second].name = name;
}

}  // namespace waymark::capture::perf
