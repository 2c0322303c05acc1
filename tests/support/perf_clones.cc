#include "support/perf_clones.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <type_traits>
#include <utility>

#include "waymark/capture/capture.h"
#include "waymark/capture/perf_cs_etm.h"
#include "waymark/capture/perf_writer.h"
#include "waymark/coresight/deformatter.h"
#include "waymark/etm4/config.h"
#include "waymark/etm4/parser.h"

namespace waymark::support {

namespace {

using namespace capture::perf;

/// The bytes of each trace ID.
struct ById {
    std::map<std::uint8_t, std::vector<std::uint8_t>> bytes;
    void data(coresight::TraceId id, Bytes more, Offset) {
        auto& to = bytes[id.value];
        to.insert(to.end(), more.begin(), more.end());
    }
    void stray(coresight::TraceId, Bytes, Offset) {}
    void trigger(coresight::TraceId, Offset, std::uint8_t) {}
    void gap(const Gap&) {}
    void reset(Offset) {}
};

/// Places of a stream's context IDs, which come last in their packets.
struct ContextIds {
    explicit ContextIds(const etm4::Config& c) : config(c) {}
    void operator()(const Gap&) {}
    template <class P>
    void operator()(const P& p, wire::Extent at) {
        if constexpr (std::is_base_of_v<etm4::ContextFields, P>)
            if (p.has_context_id) ends.emplace_back(at.end().value, p.context_id);
    }
    const etm4::Config& config;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> ends;
};

class Cloner {
public:
    Cloner(const PerfData& data, const capture::ByteFile& file, const PerfClones& clones, ByteSink& out)
        : data_(data), file_(file), clones_(clones), writer_(out, data.attrs) {}

    Result<std::vector<std::uint8_t>> run() {
        if (!data_.auxtrace_info) return Error{Errc::unsupported, "no AUXTRACE_INFO"};
        WM_ASSIGN_OR_RETURN(info_, cs_info(*data_.auxtrace_info));
        if (data_.time_conversion) writer_.time_conversion(*data_.time_conversion);
        writer_.auxtrace_info(*data_.auxtrace_info);
        find_stride();
        for (unsigned k = 0; k < clones_.processes; ++k) write_process(k);
        const CsRings rings = cs_rings(data_);
        for (unsigned i = 0; i < clones_.times; ++i)
            for (const CsRing& ring : rings.rings)
                for (const CsRange& range : ring.ranges) WM_RETURN_IF_ERROR(write_range(ring, range, i));
        writer_.finished_round();
        return writer_.finish();
    }

private:
    void find_stride() {
        std::uint32_t least = nobody, most = 0;
        const auto see = [&](std::uint32_t id) {
            if (id == 0 || id == nobody) return;
            ids_.insert(id);
            least = std::min(least, id);
            most = std::max(most, id);
        };
        for (const TaskEvent& e : data_.tasks) {
            see(e.pid);
            see(e.tid);
        }
        for (const Mapping& m : data_.mappings) see(m.pid);
        stride_ = most < least ? 1 : most - least + 1;
        for (const AuxRange& aux : data_.aux) span_ = std::max(span_, aux.id.time.value_or(0));
    }
    /// The number that the k-th clone has for a process or thread.
    [[nodiscard]] std::uint32_t clone(std::uint32_t id, unsigned k) const {
        return ids_.contains(id) ? id + k * stride_ : id;
    }
    void write_process(unsigned k) {
        const std::size_t dummy = data_.attrs.size() - 1;
        for (TaskEvent e : data_.tasks) {
            for (std::uint32_t* id : {&e.pid, &e.tid, &e.parent_pid, &e.parent_tid}) *id = clone(*id, k);
            writer_.task(e, {e.pid, e.tid, 0, e.time, dummy});
        }
        for (Mapping m : data_.mappings) {
            if (m.pid == nobody && k != 0) continue;
            m.pid = clone(m.pid, k);
            m.tid = clone(m.tid, k);
            writer_.mapping(m, {m.pid, m.tid, 0, m.time, dummy});
        }
        const auto first = std::find_if(data_.mappings.begin(), data_.mappings.end(),
                                        [](const Mapping& m) { return m.pid != nobody; });
        for (unsigned i = 0; first != data_.mappings.end() && i < clones_.more_maps; ++i) {
            Mapping m = *first;
            m.pid = clone(m.pid, k);
            m.tid = clone(m.tid, k);
            constexpr std::uint64_t free_space = 0x7000'0000'0000, apart = 1 << 28;
            m.address = {free_space + apart * (std::uint64_t{k} * clones_.more_maps + i)};
            writer_.mapping(m, {m.pid, m.tid, 0, m.time, dummy});
        }
    }

    Status write_range(const CsRing& ring, const CsRange& range, unsigned again) {
        std::vector<std::uint8_t> bytes;
        for (const capture::BufferPart& part : range.parts) {
            const auto stream = capture::open_part(file_, part);
            std::vector<std::uint8_t> piece(static_cast<std::size_t>(part.bytes));
            for (std::size_t done = 0; done < piece.size();) {
                WM_ASSIGN_OR_RETURN(const std::size_t got, stream->read(std::span(piece).subspan(done)));
                if (got == 0) break;
                done += got;
            }
            bytes.insert(bytes.end(), piece.begin(), piece.end());
        }
        if (range.aux == CsRange::no_aux) return Error{Errc::unsupported, "a file without AUX records"};
        AuxRange aux = data_.aux[range.aux];
        aux.id.time = aux.id.time.value_or(0) + again * span_;
        if (clones_.processes == 1) {
            put(ring, aux, bytes, 0, ring.cpu);
            return Nothing{};
        }
        if (range.raw) return put_clones(ring, aux, bytes, ring.cpu);
        ById by_id;
        coresight::Deformatter deformatter({.framing = coresight::Framing::aligned});
        deformatter.feed(bytes, by_id);
        deformatter.finish(by_id);
        for (const CsUnit& unit : info_.units)
            if (const auto found = by_id.bytes.find(unit.trace_id); found != by_id.bytes.end())
                WM_RETURN_IF_ERROR(put_clones(ring, aux, found->second, unit.cpu));
        return Nothing{};
    }
    Status put_clones(const CsRing& ring, const AuxRange& aux, std::vector<std::uint8_t> bytes, std::uint32_t cpu) {
        const CsUnit* const unit = info_.unit(cpu);
        if (unit == nullptr || (unit->kind != CsUnit::Kind::etmv4 && unit->kind != CsUnit::Kind::ete))
            return Error{Errc::unsupported, "trace of another unit than ETMv4 or ETE"};
        const etm4::Config config = config_of(*unit);
        ContextIds ids(config);
        etm4::Parser<ContextIds> parser(config, ids);
        parser.feed(bytes);
        parser.finish();
        AuxRange raw = aux;
        raw.flags = (raw.flags & 0xff) | 0x100;
        for (unsigned k = 0; k < clones_.processes; ++k) {
            for (const auto& [end, id] : ids.ends)
                for (unsigned i = 0; i < 4; ++i)
                    bytes[static_cast<std::size_t>(end) - 4 + i] = static_cast<std::uint8_t>(clone(id, k) >> 8 * i);
            put(ring, raw, bytes, k, ring.cpu == nobody ? nobody : cpu);
        }
        return Nothing{};
    }
    void put(const CsRing& ring, AuxRange aux, Bytes bytes, unsigned k, std::uint32_t cpu) {
        const std::uint32_t tid = ring.tid == nobody ? nobody : clone(ring.tid, k);
        std::uint64_t& at = ring_at_[{cpu, tid}];
        aux.offset = at;
        aux.bytes = bytes.size();
        aux.flags &= ~AuxRange::overwrite;
        writer_.aux(
            aux, {clone(aux.id.pid.value_or(0), k), clone(aux.id.tid.value_or(0), k), cpu, aux.id.time.value_or(0), 0});
        Chunk chunk;
        chunk.cpu = cpu;
        chunk.tid = tid;
        chunk.ring = at;
        writer_.auxtrace(chunk, bytes);
        at += (bytes.size() + 15) / 16 * 16;
    }
    static etm4::Config config_of(const CsUnit& unit) {
        etm4::RegisterValues values;
        const std::pair<std::string_view, std::optional<std::uint32_t>*> known[] = {
            {"TRCCONFIGR", &values.configr}, {"TRCIDR0", &values.idr0}, {"TRCIDR1", &values.idr1},
            {"TRCIDR2", &values.idr2},       {"TRCIDR8", &values.idr8}, {"TRCDEVARCH", &values.devarch}};
        for (const auto& [name, value] : known)
            if (const capture::Register* r = capture::find_register(unit.registers, name))
                *value = static_cast<std::uint32_t>(r->value);
        return etm4::read_config(values, etm4::CoreProfile::a).config;
    }

    const PerfData& data_;
    const capture::ByteFile& file_;
    const PerfClones& clones_;
    PerfWriter writer_;
    CsInfo info_;
    std::set<std::uint32_t> ids_;
    std::uint32_t stride_ = 1;
    std::uint64_t span_ = 0;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> ring_at_;
};

}  // namespace

Result<std::vector<std::uint8_t>> write_clones(const PerfData& data, const capture::ByteFile& file,
                                               const PerfClones& clones, ByteSink& out) {
    return Cloner(data, file, clones, out).run();
}

}  // namespace waymark::support
