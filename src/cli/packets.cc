/// `waymark packets`: what was on the wire.
#include <algorithm>
#include <memory>
#include <set>

#include "commands.h"
#include "dpu/listing.h"
#include "json_fields.h"
#include "listing.h"
#include "options.h"
#include "spe/packets.h"
#include "trouble.h"
#include "unit_answers.h"
#include "waymark/capture/dpu_folder.h"
#include "waymark/core/utf8.h"
#include "waymark/pipeline/diagnosis.h"
#include "waymark/pipeline/protocols.h"

namespace waymark::cli {

namespace {

struct PacketOptions {
    InputOptions input;
    std::string format = "text";
    std::vector<std::string> types;
};

struct Shared {
    Output& out;
    Format format;
    std::set<std::string> types;  ///< empty: all
    const pipeline::Source* last_source = nullptr;
    std::uint64_t packets = 0;
    std::set<std::string> found{};  ///< of `types`
};

/// Prints one source's packets as they come.
class PacketPrinter final : public pipeline::Consumer, private protocol::PacketListener {
public:
    PacketPrinter(Shared& shared, const pipeline::StreamInfo& stream)
        : shared_(shared), stream_(stream), reader_(stream.source.configuration->list(*this)) {}

    void feed(Bytes bytes) override {
        recent_.insert(recent_.end(), bytes.begin(), bytes.end());
        reader_->feed(bytes);
        // What is still unfinished will be shown with its bytes; a long gap's are not shown.
        const std::uint64_t keep = std::max(reader_->pending()[0].value,
                                            recent_first_ + recent_.size() - std::min<std::size_t>(recent_.size(), 64));
        recent_.erase(recent_.begin(), recent_.begin() + static_cast<std::ptrdiff_t>(keep - recent_first_));
        recent_first_ = keep;
    }
    void reset() override { reader_->reset(); }
    void finish() override { reader_->finish(); }
    void flush() override {}
    [[nodiscard]] std::array<Offset, 2> pending() const override { return reader_->pending(); }
    [[nodiscard]] bool amid_packet() override { return reader_->amid_packet(); }

private:
    void packet(const protocol::PacketView& packet, protocol::Extent at) override {
        ++shared_.packets;
        const std::string& meaning = packet.meaning();
        if (!shared_.types.empty()) {
            if (!shared_.types.contains(std::string(packet.name()))) return;
            shared_.found.emplace(packet.name());
        }
        const std::uint64_t offset = stream_.offsets.capture(at.first).value;
        const std::string bytes = bytes_text(at);
        switch (shared_.format) {
            case Format::text: {
                heading();
                const std::string fields = packet.fields_text();
                std::string line = fmt::format("{:>#10x}  {:<32} {:<16} {}{}{}", offset, bytes, packet.name(), meaning,
                                               meaning.empty() || fields.empty() ? "" : "; ", fields);
                line.erase(line.find_last_not_of(' ') + 1);
                shared_.out.print("{}\n", line);
                break;
            }
            case Format::tsv:
                shared_.out.print("{}\t{:#x}\t{}\t{}\t{}\t{}\t{}\t{}\n", stream_.source.id_text(), offset, at.bytes,
                                  packet.name(), packet.fields_text(), meaning, bytes, stream_.buffer.name);
                break;
            case Format::json: {
                JsonFields fields;
                packet.visit(fields);
                shared_.out.print(
                    "{{\"source\":{},\"buffer\":{},\"offset\":{},\"bytes\":\"{}\",\"packet\":\"{}\",\"fields\":{{{}}},"
                    "\"meaning\":{}}}\n",
                    json_string(stream_.source.id_text()), json_string(stream_.buffer.name), offset, bytes,
                    packet.name(), fields.json(), json_string(meaning));
                break;
            }
        }
    }
    void gap(const Gap& gap) override {
        if (!shared_.types.empty()) return;
        const std::uint64_t offset = stream_.offsets.capture(gap.first).value;
        switch (shared_.format) {
            case Format::text:
                heading();
                shared_.out.print("{:>#10x}  {:<32} {:<16} {}: {}\n", offset, bytes_text({gap.first, gap.bytes()}),
                                  "(gap)", counted(gap.bytes(), "byte"), name(gap.reason));
                break;
            case Format::tsv:
                shared_.out.print("{}\t{:#x}\t{}\tGAP\t\t{}\t\t{}\n", stream_.source.id_text(), offset, gap.bytes(),
                                  name(gap.reason), stream_.buffer.name);
                break;
            case Format::json:
                shared_.out.print("{{\"source\":{},\"buffer\":{},\"offset\":{},\"gap\":\"{}\",\"length\":{}}}\n",
                                  json_string(stream_.source.id_text()), json_string(stream_.buffer.name), offset,
                                  name(gap.reason), gap.bytes());
                break;
        }
    }

    void heading() {
        if (shared_.last_source == &stream_.source) return;
        if (shared_.last_source != nullptr) shared_.out.write("\n");
        shared_.out.print("# source {} ({}{}{}), buffer {}\n# {:>8}  {:<32} {:<16} meaning; fields\n",
                          stream_.source.label(), stream_.source.type, stream_.source.core_type.empty() ? "" : ", ",
                          stream_.source.core_type, stream_.buffer.name, "offset", "bytes", "packet");
        shared_.last_source = &stream_.source;
    }
    /// At most 16 of the bytes there.
    [[nodiscard]] std::string bytes_text(protocol::Extent at) const {
        std::string out;
        if (at.first.value < recent_first_) return "…";
        const std::size_t from = at.first.value - recent_first_;
        const std::size_t shown = std::min<std::size_t>(at.bytes, 16);
        for (std::size_t i = from; i < from + shown && i < recent_.size(); ++i)
            out += fmt::format("{}{:02x}", i == from ? "" : " ", recent_[i]);
        if (shown < at.bytes) out += " …";
        return out;
    }

    Shared& shared_;
    const pipeline::StreamInfo stream_;
    std::unique_ptr<protocol::Reader> reader_;
    std::vector<std::uint8_t> recent_;
    std::uint64_t recent_first_ = 0;
};

/// Each unit has packets of its own. `usage`: one of the types asked for is of none of these.
waymark::Status check_types(const PacketOptions& options, const std::vector<const pipeline::Protocol*>& protocols) {
    if (protocols.empty()) return Nothing{};
    std::vector<std::string> known, units;
    for (const pipeline::Protocol* protocol : protocols) {
        for (std::string& name : protocol->packet_names()) known.push_back(std::move(name));
        units.emplace_back(protocol->words().unit_title);
    }
    for (const std::string& type : options.types)
        if (std::find(known.begin(), known.end(), type) == known.end())
            return Error{Errc::usage,
                         fmt::format("--type {}: {} is a capture of a {}, which has no such packets; it has "
                                     "{}. See waymark packets --help",
                                     type, options.input.capture, fmt::join(units, " and a "), fmt::join(known, ", "))};
    return Nothing{};
}

/// Those of the sources, each once.
std::vector<const pipeline::Protocol*> protocols_of(const std::vector<const pipeline::Source*>& sources) {
    std::vector<const pipeline::Protocol*> out;
    for (const pipeline::Source* source : sources)
        if (source->has_packets() && std::find(out.begin(), out.end(), source->protocol) == out.end())
            out.push_back(source->protocol);
    return out;
}

Status run_packets(const PacketOptions& options) {
    if (capture::is_dpu_folder(options.input.capture)) {
        if (const auto known = check_types(options, {pipeline::protocol_of_unit("DPU")}); !known)
            return fail(known.error());
        return run_dpu_packets(options.input, options.format, options.types);
    }
    if (is_profile(options.input.capture)) {
        if (const auto known = check_types(options, {pipeline::protocol_of_unit("SPE")}); !known)
            return fail(known.error());
        return run_spe_packets(options.input, options.format, options.types);
    }
    auto opened = open_session(options.input);
    if (!opened) return fail(opened.error());
    const pipeline::Session session = std::move(*opened);
    warn(session);
    const auto selected = session.select(options.input.sources);
    if (!selected) return fail(selected.error());
    if (const auto known = check_types(options, protocols_of(*selected)); !known) return fail(known.error());
    const std::vector<const pipeline::Source*> sources = listable(*selected);
    auto out = Output::open(options.input.output, options.input.files());
    if (!out) return fail(out.error());
    Shared shared{*out,
                  options.format == "tsv"    ? Format::tsv
                  : options.format == "json" ? Format::json
                                             : Format::text,
                  {}};
    shared.types.insert(options.types.begin(), options.types.end());
    if (shared.format == Format::tsv) out->write("source\toffset\tlength\tpacket\tfields\tmeaning\tbytes\tbuffer\n");
    const auto make = [&](const pipeline::StreamInfo& stream) {
        return std::make_unique<PacketPrinter>(shared, stream);
    };
    ProgressLine progress;
    const pipeline::Report report = pipeline::run(
        session, sources, make,
        progress.active() ? pipeline::Progress([&](std::uint64_t bytes, auto of) { progress.show(bytes, of); })
                          : nullptr);
    if (out->close() != decoded) return unreadable;
    const bool read_errors = report_read_errors(report);
    if (shared.packets == 0)
        say("error", "nothing decoded: " + pipeline::why_nothing(session, *selected, report, {}));
    else
        say_types_not_found(shared.types, shared.found, shared.packets, "packet");
    return read_errors ? unreadable : shared.packets == 0 ? nothing : decoded;
}

}  // namespace

Run add_packets(CLI::App& app) {
    auto options = std::make_shared<PacketOptions>();
    CLI::App& command =
        *app.add_subcommand("packets", "The packets of each source, with their bytes and what they mean");
    options->input.add_to(command);
    command
        .add_option("--format", options->format, "text: for reading; tsv, json (a JSON object per line): for programs")
        ->type_name("FORMAT")
        ->transform(one_of({"text", "tsv", "json"}))
        ->capture_default_str();
    std::vector<std::string> types;
    std::string of_units;
    for (const pipeline::Protocol* protocol : pipeline::protocols()) {
        const std::vector<std::string> names = protocol->packet_names();
        of_units +=
            fmt::format("{}{}: {}", of_units.empty() ? "" : "; ", protocol->words().unit, fmt::join(names, ", "));
        for (const std::string& name : names)
            if (std::find(types.begin(), types.end(), name) == types.end()) types.push_back(name);
    }
    command
        .add_option("--type", options->types, fmt::format("Only packets of this type. {}. May be repeated", of_units))
        ->type_name("TYPE")
        ->take_all()
        ->transform(one_of(types));
    command.footer(
        "Examples:\n"
        "  waymark packets CAPTURE --source 0x13 | less\n"
        "  waymark packets CAPTURE --type i-sync --type timestamp --format tsv\n");
    return [options] { return run_packets(*options); };
}

}  // namespace waymark::cli
