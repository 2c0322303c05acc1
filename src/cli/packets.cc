/// `waymark packets`: what was on the wire.
#include <algorithm>
#include <memory>
#include <set>

#include "commands.h"
#include "dpu_listing.h"
#include "json_fields.h"
#include "listing.h"
#include "options.h"
#include "spe_packets.h"
#include "trouble.h"
#include "unit_answers.h"
#include "waymark/capture/dpu_folder.h"
#include "waymark/core/utf8.h"
#include "waymark/pft/encoder.h"
#include "waymark/pft/parser.h"
#include "waymark/pft/text.h"

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
    std::uint64_t packets = 0, bytes = 0;
    std::set<std::string> found{};  ///< of `types`
};

/// Prints one source's packets as they come.
class PacketPrinter final : public pipeline::Consumer {
public:
    PacketPrinter(Shared& shared, const pipeline::StreamInfo& stream)
        : shared_(shared), stream_(stream), config_(stream.source.config), explain_(config_), parser_(config_, *this) {}

    void feed(Bytes bytes) override {
        recent_.insert(recent_.end(), bytes.begin(), bytes.end());
        shared_.bytes += bytes.size();
        parser_.feed(bytes);
        // What is still unfinished will be shown with its bytes; a long gap's are not shown.
        const std::uint64_t keep = std::max(parser_.pending().value,
                                            recent_first_ + recent_.size() - std::min<std::size_t>(recent_.size(), 64));
        recent_.erase(recent_.begin(), recent_.begin() + static_cast<std::ptrdiff_t>(keep - recent_first_));
        recent_first_ = keep;
    }
    void reset() override { parser_.reset(); }
    void finish() override { parser_.finish(); }
    void flush() override {}
    [[nodiscard]] std::array<Offset, 2> pending() const override { return {parser_.pending(), parser_.pending()}; }
    [[nodiscard]] bool amid_packet() override { return parser_.progress().amid_packet(); }

    template <class P>
    void operator()(const P& packet, pft::Extent at) {
        ++shared_.packets;
        const std::string meaning = explain_(packet);
        if (!shared_.types.empty()) {
            if (!shared_.types.contains(std::string(P::info.name))) return;
            shared_.found.emplace(P::info.name);
        }
        const std::uint64_t offset = stream_.offsets.capture(at.first).value;
        const std::string bytes = bytes_text(at);
        switch (shared_.format) {
            case Format::text: {
                heading();
                const std::string fields = pft::fields_text(packet, config_);
                std::string line = fmt::format("{:>#10x}  {:<32} {:<16} {}{}{}", offset, bytes, P::info.name, meaning,
                                               meaning.empty() || fields.empty() ? "" : "; ", fields);
                line.erase(line.find_last_not_of(' ') + 1);
                shared_.out.print("{}\n", line);
                break;
            }
            case Format::tsv:
                shared_.out.print("{}\t{:#x}\t{}\t{}\t{}\t{}\t{}\t{}\n", stream_.source.id_text(), offset, at.bytes,
                                  P::info.name, pft::fields_text(packet, config_), meaning, bytes, stream_.buffer.name);
                break;
            case Format::json:
                shared_.out.print(
                    "{{\"source\":{},\"buffer\":{},\"offset\":{},\"bytes\":\"{}\",\"packet\":\"{}\",\"fields\":{{{}}},"
                    "\"meaning\":{}}}\n",
                    json_string(stream_.source.id_text()), json_string(stream_.buffer.name), offset, bytes,
                    P::info.name, json_fields(packet, config_), json_string(meaning));
                break;
        }
    }
    void operator()(const Gap& gap) {
        explain_(gap);
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

private:
    void heading() {
        if (shared_.last_source == &stream_.source) return;
        if (shared_.last_source != nullptr) shared_.out.write("\n");
        shared_.out.print("# source {} ({}{}{}), buffer {}\n# {:>8}  {:<32} {:<16} meaning; fields\n",
                          stream_.source.label(), stream_.source.type, stream_.source.core_type.empty() ? "" : ", ",
                          stream_.source.core_type, stream_.buffer.name, "offset", "bytes", "packet");
        shared_.last_source = &stream_.source;
    }
    /// At most 16 bytes of what stood there.
    [[nodiscard]] std::string bytes_text(pft::Extent at) const {
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
    const pft::Config config_;
    pft::Explainer explain_;
    pft::Parser<PacketPrinter> parser_;
    std::vector<std::uint8_t> recent_;
    std::uint64_t recent_first_ = 0;
};

std::vector<std::string> pft_packet_names() {
    std::vector<std::string> out;
    pft::Packets::for_each([&]<class P>() { out.emplace_back(P::info.name); });
    return out;
}

/// Each unit has packets of its own. `usage`: one of the types asked for is of another.
waymark::Status check_types(const PacketOptions& options, std::string_view unit,
                            const std::vector<std::string>& known) {
    for (const std::string& type : options.types)
        if (std::find(known.begin(), known.end(), type) == known.end())
            return Error{Errc::usage,
                         fmt::format("--type {}: {} is a capture of a {}, which has no such packets; it has "
                                     "{}. See waymark packets --help",
                                     type, options.input.capture, unit, fmt::join(known, ", "))};
    return Nothing{};
}

Status run_packets(const PacketOptions& options) {
    if (capture::is_dpu_folder(options.input.capture)) {
        if (const auto known = check_types(options, "Debug and Profiling Unit", dpu_entry_names()); !known)
            return fail(known.error());
        return run_dpu_packets(options.input, options.format, options.types);
    }
    if (is_profile(options.input.capture)) {
        if (const auto known = check_types(options, "Statistical Profiling unit", spe_packet_names()); !known)
            return fail(known.error());
        return run_spe_packets(options.input, options.format, options.types);
    }
    auto opened = open_session(options.input);
    if (!opened) return fail(opened.error());
    const pipeline::Session session = std::move(*opened);
    warn(session);
    const auto selected = session.select(options.input.sources);
    if (!selected) return fail(selected.error());
    if (const auto known = check_types(options, "Program Trace Macrocell", pft_packet_names()); !known)
        return fail(known.error());
    const std::vector<const pipeline::Source*> sources = decodable(*selected);
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
        say("error", "nothing decoded: " +
                         (shared.bytes == 0 ? why_no_bytes(session, *selected, report) : no_async(shared.bytes)));
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
    std::vector<std::string> types = pft_packet_names();
    const std::string pft_types = fmt::format("{}", fmt::join(types, ", "));
    for (const std::string& name : dpu_entry_names())
        if (std::find(types.begin(), types.end(), name) == types.end()) types.push_back(name);
    for (const std::string& name : spe_packet_names())
        if (std::find(types.begin(), types.end(), name) == types.end()) types.push_back(name);
    command
        .add_option("--type", options->types,
                    fmt::format("Only packets of this type: {}; of a DPU: {}; of a perf.data file: {}. May be repeated",
                                pft_types, fmt::join(dpu_entry_names(), ", "), fmt::join(spe_packet_names(), ", ")))
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
