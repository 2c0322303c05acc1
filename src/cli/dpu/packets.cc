/// `waymark packets` of a DPU: entries of the buffer and messages of the Nexus interface.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "../json_fields.h"
#include "../listing.h"
#include "../trouble.h"
#include "input.h"
#include "listing.h"
#include "waymark/dpu/nexus.h"
#include "waymark/dpu/parser.h"
#include "waymark/dpu/registers.h"
#include "waymark/dpu/text.h"

namespace waymark::cli {

namespace {

using nlohmann::ordered_json;

/// Entries of a buffer in reading order.
template <class Handler>
class EntryReader {
public:
    EntryReader(const DpuInput& input, Handler& handler) : input_(input), handler_(handler) {}
    waymark::Status read() {
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
        bytes = at;
        return Nothing{};
    }
    bool cut = false;
    std::uint64_t bytes = 0;

private:
    const DpuInput& input_;
    Handler& handler_;
};

/// Where a piece of the trace lies in the file.
struct FilePlace {
    std::uint64_t trace, file, bytes;
};

/// An entry or message as a line.
struct PacketLine {
    std::uint64_t offset{}, bytes{};  ///< in the file
    std::string_view id, name;
    std::string fields, json;  ///< for reading; the same as a JSON object
    std::string meaning, words;
    bool doubtful = false;
};

/// Writes lines of one stream, `buffer` or `nexus`, for those types that were asked for.
class LinePrinter {
public:
    LinePrinter(Output& out, const std::string& form, std::string_view stream, const std::vector<std::string>& types)
        : out_(out), form_(form), stream_(stream), types_(types.begin(), types.end()) {}

    /// Counts it; false: it is of no type that was asked for.
    [[nodiscard]] bool is_wanted(std::string_view name) {
        ++count;
        if (types_.empty()) return true;
        if (!types_.contains(name)) return false;
        found.emplace(name);
        return true;
    }
    [[nodiscard]] bool is_json() const { return form_ == "json"; }
    void print(const PacketLine& p) {
        const std::string_view doubt = p.doubtful ? "doubtful: next to damage" : "";
        if (form_ == "text") {
            std::string line =
                fmt::format("{:>#10x}  {:<44} {:<3} {:<16} {}{}{}{}{}", p.offset, p.words, p.id, p.name, p.meaning,
                            p.meaning.empty() || p.fields.empty() ? "" : "; ", p.fields, p.doubtful ? "; " : "", doubt);
            line.erase(line.find_last_not_of(' ') + 1);
            out_.print("{}\n", line);
        } else if (form_ == "tsv") {
            out_.print("{:#x}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", p.offset, p.bytes, p.id, p.name, p.fields, p.meaning,
                       p.words, doubt, stream_);
        } else {
            out_.print(
                "{{\"offset\":{},\"words\":{},\"id\":\"{}\",\"entry\":\"{}\",\"fields\":{},\"meaning\":{},"
                "\"doubtful\":{},\"stream\":\"{}\"}}\n",
                p.offset, json_string(p.words), p.id, p.name, p.json, json_string(p.meaning), p.doubtful, stream_);
        }
    }
    void print_gap(const Gap& gap, std::uint64_t offset, const std::string& words) {
        if (!types_.empty()) return;
        if (form_ == "text")
            out_.print("{:>#10x}  {:<44} {:<3} {:<16} {}: {}\n", offset, words, "", "(gap)",
                       counted(gap.bytes(), "byte"), name(gap.reason));
        else if (form_ == "tsv")
            out_.print("{:#x}\t{}\t\t(gap)\t\t{}\t{}\t\t{}\n", offset, gap.bytes(), name(gap.reason), words, stream_);
        else
            out_.print("{{\"offset\":{},\"gap\":\"{}\",\"length\":{},\"stream\":\"{}\"}}\n", offset, name(gap.reason),
                       gap.bytes(), stream_);
    }
    std::uint64_t count = 0;
    std::set<std::string> found{};  ///< of the types asked for

private:
    Output& out_;
    const std::string& form_;
    std::string_view stream_;
    std::set<std::string, std::less<>> types_;
};

class EntryPrinter {
public:
    EntryPrinter(const DpuInput& input, LinePrinter& lines) : input_(input), lines_(lines) {}

    template <class P>
    void operator()(const P& entry, const dpu::EntryExtent& at) {
        if (lines_.is_wanted(P::info.name))
            lines_.print({file_offset(at.first), at.bytes, P::info.id, P::info.name, fields_text(entry, format),
                          lines_.is_json() ? "{" + json_fields(entry, format) + "}" : std::string(),
                          explain(dpu::Entry(entry)), words(at.first, at.bytes), at.doubtful});
    }
    void operator()(const Gap& gap) { lines_.print_gap(gap, file_offset(gap.first), words(gap.first, gap.bytes())); }

    dpu::Format format;
    std::vector<FilePlace> places;

private:
    [[nodiscard]] std::uint64_t file_offset(Offset at) {
        while (place_ + 1 < places.size() && at.value >= places[place_].trace + places[place_].bytes) ++place_;
        // An entry may begin before what was fed last, and a gap at its end.
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
    LinePrinter& lines_;
    std::size_t place_ = 0;
};

/// The fields of a Nexus message as the inside of a JSON object.
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
        else  // CDATA, as often as CDF says
            field = ordered_json::array({field, value});
    }
};

/// What a message means, for readers.
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
    MessagePrinter(Bytes bytes, LinePrinter& lines) : bytes_(bytes), lines_(lines) {}

    void operator()(const dpu::nexus::Message& message, dpu::nexus::Extent at) {
        const auto meaning = reader_.read(message);
        const auto& about = std::visit([](const auto& m) -> const dpu::nexus::MessageInfo& { return m.info; }, message);
        if (!lines_.is_wanted(about.name)) return;
        const std::string whole = to_text(message), id = fmt::format("N{}", about.tcode);
        MessageFields walker;
        if (lines_.is_json()) std::visit([&](const auto& m) { m.fields(walker, m); }, message);
        lines_.print({at.first.value, at.bytes, id, about.name,
                      whole.substr(std::min(whole.size(), about.name.size() + 1)), walker.json.dump(),
                      meaning ? meaning_text(*meaning) : std::string(), hex(at.first, at.bytes)});
    }
    void operator()(const Gap& gap) { lines_.print_gap(gap, gap.first.value, hex(gap.first, gap.bytes())); }

private:
    [[nodiscard]] std::string hex(Offset at, std::uint64_t bytes) const {
        constexpr std::uint64_t most = 14;
        std::string out;
        for (std::uint64_t i = 0; i < std::min(bytes, most) && at.value + i < bytes_.size(); ++i)
            out += fmt::format("{}{:02x}", i == 0 ? "" : " ", bytes_[static_cast<std::size_t>(at.value + i)]);
        return out + (bytes > most ? " …" : "");
    }

    Bytes bytes_;
    LinePrinter& lines_;
    dpu::nexus::Reader reader_;
};

}  // namespace

Status run_dpu_packets(const InputOptions& input, const std::string& format, const std::vector<std::string>& types) {
    if (!not_for_dpu(input).empty()) return refuse(input);
    const auto opened = DpuInput::open(input.capture);
    if (!opened) return fail(opened.error());
    warn(*opened);
    auto out = Output::open(input.output, input.files());
    if (!out) return fail(out.error());
    say_layout(format);
    if (format == "text") out->print("# {}\n", dpu::layout_note);
    if (format == "text" && !opened->capture().buffer.empty())
        out->print("# {}\n# {:>8}  {:<44} {:<3} {:<16} meaning; fields\n", opened->capture().buffer.string(), "offset",
                   "words", "", "entry");
    if (format == "tsv") out->write("offset\tlength\tid\tentry\tfields\tmeaning\twords\tdoubt\tstream\n");
    LinePrinter entries(*out, format, "buffer", types), messages(*out, format, "nexus", types);
    EntryPrinter printer(*opened, entries);
    EntryReader<EntryPrinter> reader(*opened, printer);
    if (const auto status = reader.read(); !status) return fail(status.error());
    const auto nexus = nexus_bytes(*opened);
    if (!nexus) return fail(nexus.error());
    MessagePrinter message_printer(nexus->bytes(), messages);
    if (!opened->capture().nexus.empty()) {
        if (format == "text")
            out->print("# {}\n# {:>8}  {:<44} {:<3} {:<16} meaning; fields\n", opened->capture().nexus.string(),
                       "offset", "bytes", "", "message");
        dpu::nexus::Parser<MessagePrinter> parser(message_printer);
        parser.feed(nexus->bytes());
        parser.finish();
    }
    if (const Status status = out->close(); status != decoded) return status;
    const bool cut = !opened->capture().buffer.empty() && (reader.cut || opened->missing_bytes() != 0);
    if (cut) say("error", opened->cut_text());
    const bool any = entries.count + messages.count != 0;
    if (!any) say("error", "nothing decoded: " + opened->why_nothing());
    std::set<std::string> found = std::move(entries.found);
    found.merge(messages.found);
    if (any)
        say_types_not_found({types.begin(), types.end()}, found, entries.count + messages.count, "entry", "entries");
    return cut ? unreadable : any ? decoded : nothing;
}

}  // namespace waymark::cli
