#include <algorithm>
#include <nlohmann/json.hpp>

#include "packet_lines.h"
#include "waymark/dpu/nexus.h"
#include "waymark/dpu/parser.h"
#include "waymark/dpu/registers.h"
#include "waymark/dpu/text.h"

namespace waymark::listing {

namespace {

using doctor::DpuInput;
using nlohmann::ordered_json;

/// Entries of a buffer in reading order.
template <class Handler>
class EntryReader {
public:
    EntryReader(const DpuInput& input, Handler& handler) : input_(input), handler_(handler) {}
    Status read() {
        const pipeline::DpuTrace& trace = input_.trace();
        Bytes dump = input_.dump();
        dpu::ReadingOrder order;
        if (trace.ring_known || trace.vtb.single_address) {
            WM_ASSIGN_OR_RETURN(order, dpu::reading_order(trace.vtb, dump.size()));
        } else {
            dump = dpu::without_unwritten(dump);
            if (!dump.empty()) order.stretches.push_back({0, dump.size()});
        }
        cut = order.cut;
        const auto starts = trace.ring_known ? dpu::period_starts(trace.vtb, order, trace.later_starts)
                                             : std::vector<std::optional<std::uint64_t>>(trace.later_starts.size());
        std::size_t period = 0;
        while (trace.ring_known && period < starts.size() && !starts[period]) ++period;
        handler_.format = trace.periods[period].format;
        dpu::Parser<Handler> parser(handler_.format, trace.order, handler_);
        std::uint64_t at = 0;
        std::size_t overrun = 0;
        for (const dpu::Stretch& stretch : order.stretches) {
            if (stretch.jump) parser.reset();
            for (std::uint64_t done = 0; done < stretch.bytes;) {
                if (period < starts.size() && starts[period] && *starts[period] <= at) {
                    parser.finish(true);
                    handler_.format = trace.periods[++period].format;
                    parser.set_format(handler_.format);
                }
                std::uint64_t size = stretch.bytes - done;
                for (; overrun < trace.overruns.size() && trace.overruns[overrun] <= at; ++overrun) parser.reset();
                if (overrun < trace.overruns.size()) size = std::min(size, trace.overruns[overrun] - at);
                if (period < starts.size() && starts[period]) size = std::min(size, *starts[period] - at);
                handler_.places.push_back({at, stretch.offset + done, size});
                parser.feed(
                    dump.subspan(static_cast<std::size_t>(stretch.offset + done), static_cast<std::size_t>(size)));
                done += size;
                at += size;
            }
        }
        parser.finish(trace.complete && !order.cut);
        return Nothing{};
    }
    bool cut = false;

private:
    const DpuInput& input_;
    Handler& handler_;
};

/// Offset of a piece of the trace in the file.
struct FilePlace {
    std::uint64_t trace, file, bytes;
};

class EntryPrinter {
public:
    EntryPrinter(const DpuInput& input, PacketLines& lines) : input_(input), lines_(lines) {}

    template <class P>
    void operator()(const P& entry, const dpu::EntryExtent& at) {
        if (!lines_.is_wanted(P::info.name)) return;
        const std::string fields = fields_text(entry, format), meaning = explain(dpu::Entry(entry)),
                          json = lines_.format() == LineFormat::json ? json_fields(entry, format) : std::string(),
                          there = words(at.first, at.bytes);
        lines_.put(
            {file_offset(at.first), at.bytes, P::info.id, P::info.name, fields, json, meaning, there, at.doubtful});
    }
    void operator()(const Gap& gap) {
        lines_.met(gap, file_offset(gap.first));
        lines_.put_gap(gap, file_offset(gap.first), words(gap.first, gap.bytes()));
    }

    dpu::TraceFormat format;
    std::vector<FilePlace> places;

private:
    [[nodiscard]] std::uint64_t file_offset(Offset at) {
        while (place_ + 1 < places.size() && at.value >= places[place_].trace + places[place_].bytes) ++place_;
        // An entry may begin before the bytes that were fed last, and so may a gap at its end.
        std::size_t p = place_;
        while (p > 0 && at.value < places[p].trace) --p;
        return places.empty() ? at.value : places[p].file + (at.value - places[p].trace);
    }
    [[nodiscard]] std::string words(Offset at, std::uint64_t bytes) {
        std::string out;
        const Bytes dump = input_.dump();
        constexpr std::uint64_t most = 5;
        for (std::uint64_t i = 0; i + 4 <= bytes && i < 4 * most; i += 4) {
            const std::uint64_t place = file_offset(at + i);
            if (place + 4 > dump.size()) break;
            out +=
                fmt::format("{}{:08x}", i == 0 ? "" : " ", dpu::load_word(dump.data() + place, input_.trace().order));
        }
        return out + (bytes > 4 * most ? " …" : "");
    }

    const DpuInput& input_;
    PacketLines& lines_;
    std::size_t place_ = 0;
};

/// Writes the fields of a Nexus message as members of a JSON object.
class MessageFields {
public:
    void fixed(std::string_view name, const auto& value, unsigned) { add(name, static_cast<std::uint64_t>(value)); }
    void variable(std::string_view name, const auto& value) { add(name, value); }
    void list(std::string_view name, unsigned count, const auto& values) {
        json[std::string(name)] = ordered_json::array();
        for (unsigned i = 0; i < count; ++i) json[std::string(name)].push_back(values[i]);
    }
    ordered_json json = ordered_json::object();

private:
    void add(std::string_view name, std::uint64_t value) {
        ordered_json& field = json[std::string(name)];
        if (field.is_null())
            field = value;
        else  // CDATA occurs as often as CDF states
            field = ordered_json::array({field, value});
    }
};

/// The meaning of a message, as text.
std::string meaning_text(const dpu::nexus::Meaning& t) {
    using Kind = dpu::nexus::Meaning::Kind;
    const auto process = dpu::nexus::Process::of(t.value);
    switch (t.kind) {
        case Kind::owner:
            return fmt::format("{} PID {} DID {} runs", process.supervisor ? "supervisor" : "user", process.pid,
                               process.did);
        case Kind::branch:
            return (t.from_known ? fmt::format("{:#010x} → {:#010x}", t.from, t.to) : fmt::format("→ {:#010x}", t.to)) +
                   (t.type == dpu::nexus::BranchType::exception       ? ", exception"
                    : t.type == dpu::nexus::BranchType::hardware_loop ? ", hardware loop"
                                                                      : "");
        case Kind::pc: return fmt::format("at {:#010x}", t.to);
        case Kind::counters: {
            std::string out = t.tag == dpu::nexus::Tag::first_counters ? "counters are" : "counters went down by";
            for (unsigned c = 0; c < dpu::counter_count; ++c)
                out += fmt::format("{} {} {}", c == 0 ? "" : ",", dpu::counter_name(c), t.data[c]);
            return out;
        }
        case Kind::loop: return fmt::format("loop up to {:#010x}, jumped back {}", t.from, times(t.value));
        case Kind::repeat: return fmt::format("the branch before, {} more", times(t.value));
        case Kind::user_data: return fmt::format("user data {:#010x}", t.value);
        case Kind::watchpoint: return fmt::format("EDCA channels {:#x} hit", t.value);
        case Kind::lost: return "messages were lost";
        case Kind::disabled: return "tracing was turned off";
        case Kind::unknown: return {};
    }
    return {};
}

class MessagePrinter {
public:
    MessagePrinter(Bytes bytes, PacketLines& lines) : bytes_(bytes), lines_(lines) {}

    void operator()(const dpu::nexus::Message& message, dpu::nexus::Extent at) {
        const auto known = reader_.read(message);
        const auto& about = std::visit([](const auto& m) -> const dpu::nexus::MessageInfo& { return m.info; }, message);
        if (!lines_.is_wanted(about.name)) return;
        const std::string whole = to_text(message), id = fmt::format("N{}", about.tcode),
                          meaning = known ? meaning_text(*known) : std::string(), there = hex(at.first, at.bytes);
        std::string json;
        if (lines_.format() == LineFormat::json) {
            MessageFields walker;
            std::visit([&](const auto& m) { m.fields(walker, m); }, message);
            json = walker.json.dump();
        }
        const std::string_view fields = std::string_view(whole).substr(std::min(whole.size(), about.name.size() + 1));
        lines_.put({at.first.value, at.bytes, id, about.name, fields, json, meaning, there});
    }
    void operator()(const Gap& gap) {
        lines_.met(gap, gap.first.value);
        lines_.put_gap(gap, gap.first.value, hex(gap.first, gap.bytes()));
    }

private:
    [[nodiscard]] std::string hex(Offset at, std::uint64_t bytes) const {
        constexpr std::size_t most = 14;
        return bytes_text(bytes_.subspan(std::min<std::size_t>(at.value, bytes_.size())), bytes,
                          std::min<std::size_t>(bytes, most));
    }

    Bytes bytes_;
    PacketLines& lines_;
    dpu::nexus::Reader reader_;
};

constexpr PacketColumns columns_of_entries{.packet = "entry",
                                           .wire = "words",
                                           .gap = "(gap)",
                                           .ids = true,
                                           .doubts = true,
                                           .gap_bytes = true,
                                           .wire_width = 44};

}  // namespace

Result<PacketsListed> list_dpu_packets(const DpuInput& input, Bytes nexus, TextSink& out, LineFormat format,
                                       const PacketTypes& types) {
    const capture::DpuCapture& capture = input.capture();
    if (format == LineFormat::text) put_line(out, "# {}", dpu::layout_note);
    PacketLines lines(out, format, columns_of_entries, types);
    lines.buffer = "buffer";
    if (!capture.buffer.empty()) lines.put_heads(capture.buffer.string(), "words", "entry");
    EntryPrinter entries(input, lines);
    EntryReader<EntryPrinter> reader(input, entries);
    WM_RETURN_IF_ERROR(reader.read());
    if (!capture.nexus.empty()) {
        lines.buffer = "nexus";
        lines.put_heads(capture.nexus.string(), "bytes", "message");
        MessagePrinter messages(nexus, lines);
        dpu::nexus::Parser<MessagePrinter> parser(messages);
        parser.feed(nexus);
        parser.finish();
    }
    lines.listed.cut = !capture.buffer.empty() && (reader.cut || input.missing_bytes() != 0);
    return lines.listed;
}

}  // namespace waymark::listing
