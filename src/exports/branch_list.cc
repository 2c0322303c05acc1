#include "waymark/exports/branch_list.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <protozero/pbf_builder.hpp>
#include <protozero/pbf_message.hpp>
#include <string>
#include <utility>

#include "look_up.h"
#include "waymark/answers/build_id.h"
#include "waymark/exports/image_profile.h"
#include "writer.h"

namespace waymark::exports {

namespace {

using answers::BranchListImage;
using answers::BranchLists;

constexpr std::string_view list_magic = "simpleperf:EtmBranchList";
constexpr std::uint32_t latest_version = 1;

// Numbers of fields.
enum class List : protozero::pbf_tag_type { magic = 1, binaries = 2 };
enum class Binary : protozero::pbf_tag_type { path = 1, build_id = 2, addresses = 3, type = 4, kernel = 5, module = 6 };
enum class Kernel : protozero::pbf_tag_type { start = 1 };
enum class Module : protozero::pbf_tag_type { first = 1, end = 2, symbol = 3, address = 4, bytes = 5 };
enum class PlaceField : protozero::pbf_tag_type { address = 1, branches = 2 };
enum class Run : protozero::pbf_tag_type { bits = 1, count = 2, times = 3 };

std::string_view text_of(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

/// The next field with one of these types of values; fields with other types mean something else.
bool next_field(auto& message, std::initializer_list<std::pair<unsigned, protozero::pbf_wire_type>> known) {
    while (message.next()) {
        const auto tag = static_cast<unsigned>(message.tag());
        const auto found = std::find_if(known.begin(), known.end(), [&](const auto& k) { return k.first == tag; });
        if (found != known.end() && found->second == message.wire_type()) return true;
        message.skip();
    }
    return false;
}
constexpr auto a_number = protozero::pbf_wire_type::varint, some_bytes = protozero::pbf_wire_type::length_delimited;

/// Returns false if the file is not a branch list.
bool add_place(BranchListImage& image, protozero::pbf_message<PlaceField> place) {
    std::uint64_t address = 0;
    std::vector<std::pair<answers::Outcomes, std::uint64_t>> runs;
    while (next_field(place, {{1, a_number}, {2, some_bytes}})) switch (place.tag()) {
            case PlaceField::address: address = place.get_uint64(); break;
            case PlaceField::branches: {
                protozero::pbf_message<Run> run(place.get_message());
                auto& [outcomes, times] = runs.emplace_back();
                while (next_field(run, {{1, some_bytes}, {2, a_number}, {3, a_number}})) switch (run.tag()) {
                        case Run::bits: {
                            const auto bits = run.get_view();
                            outcomes.bytes.assign(bits.data(), bits.data() + bits.size());
                            break;
                        }
                        case Run::count: outcomes.count = run.get_uint32(); break;
                        case Run::times: times = run.get_uint64(); break;
                        default: run.skip();
                    }
                if (outcomes.count > std::uint64_t{8} * outcomes.bytes.size()) return false;
                // The bits after the last outcome have no meaning.
                outcomes.bytes.resize((outcomes.count + 7) / 8);
                if (outcomes.count % 8 != 0)
                    outcomes.bytes.back() &= static_cast<std::uint8_t>((1U << outcomes.count % 8) - 1);
                break;
            }
            default: place.skip();
        }
    for (auto& [outcomes, times] : runs) {
        std::uint64_t& sum = image.lists[{address, std::move(outcomes)}];
        sum = saturating(sum, times);
    }
    return true;
}

bool add_binary(BranchLists& lists, protozero::pbf_message<Binary> binary) {
    BranchListImage image;
    while (next_field(
        binary, {{1, some_bytes}, {2, some_bytes}, {3, some_bytes}, {4, a_number}, {5, some_bytes}, {6, some_bytes}}))
        switch (binary.tag()) {
            case Binary::path: image.path = binary.get_string(); break;
            case Binary::build_id: image.build_id = binary.get_string(); break;
            case Binary::addresses:
                if (!add_place(image, protozero::pbf_message<PlaceField>(binary.get_message()))) return false;
                break;
            case Binary::type: image.type = static_cast<std::uint32_t>(binary.get_enum()); break;
            case Binary::kernel: {
                protozero::pbf_message<Kernel> kernel(binary.get_message());
                while (next_field(kernel, {{1, a_number}})) image.kernel_start = kernel.get_uint64();
                break;
            }
            case Binary::module: {
                protozero::pbf_message<Module> module(binary.get_message());
                answers::ModulePlace& at = image.module;
                while (
                    next_field(module, {{1, a_number}, {2, a_number}, {3, some_bytes}, {4, a_number}, {5, a_number}}))
                    switch (module.tag()) {
                        case Module::first: at.first = module.get_uint64(); break;
                        case Module::end: at.end = module.get_uint64(); break;
                        case Module::symbol: at.symbol = module.get_string(); break;
                        case Module::address: at.address = module.get_uint64(); break;
                        case Module::bytes: at.bytes = module.get_uint64(); break;
                        default: module.skip();
                    }
                break;
            }
            default: binary.skip();
        }
    if (!answers::is_build_id(image.build_id) || image.path.find('\0') != image.path.npos) return false;
    answers::add_image(lists, std::move(image));
    return true;
}

bool add_message(BranchLists& lists, std::string_view bytes) {
    // protozero reports a malformed message by an exception.
    try {
        protozero::pbf_message<List> message(bytes.data(), bytes.size());
        while (next_field(message, {{2, some_bytes}}))
            if (!add_binary(lists, protozero::pbf_message<Binary>(message.get_message()))) return false;
    } catch (const protozero::exception&) {
        return false;
    }
    return true;
}

/// Decompresses a message of a compressed list (zstd); nullopt if it is damaged, or far larger than in any real list.
std::optional<std::string> unpack_message(std::string_view packed) {
    constexpr std::size_t piece = std::size_t{1} << 17, most = std::size_t{1} << 28;
    const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(), ZSTD_freeDStream);
    std::string out;
    ZSTD_inBuffer in{packed.data(), packed.size(), 0};
    for (;;) {
        const std::size_t had = out.size();
        if (had > most) return std::nullopt;
        out.resize(had + piece);
        ZSTD_outBuffer into{out.data(), out.size(), had};
        const std::size_t status = ZSTD_decompressStream(stream.get(), &into, &in);
        out.resize(into.pos);
        if (ZSTD_isError(status) != 0) return std::nullopt;
        if (status == 0 && in.pos == in.size) return out;
        // The decompressor has no more output.
        if (in.pos == in.size && into.pos < into.size) return std::nullopt;
    }
}

void put(protozero::pbf_builder<List>& message, const BranchListImage& image) {
    std::string text;
    protozero::pbf_builder<Binary> binary(text);
    binary.add_string(Binary::path, image.path);
    binary.add_string(Binary::build_id, image.build_id);
    for (auto at = image.lists.begin(); at != image.lists.end();) {
        const std::uint64_t address = at->first.first;
        std::string one;
        protozero::pbf_builder<PlaceField> place(one);
        place.add_uint64(PlaceField::address, address);
        for (; at != image.lists.end() && at->first.first == address; ++at) {
            const answers::Outcomes& outcomes = at->first.second;
            protozero::pbf_builder<Run> run(place, PlaceField::branches);
            run.add_bytes(Run::bits, reinterpret_cast<const char*>(outcomes.bytes.data()), outcomes.bytes.size());
            run.add_uint32(Run::count, outcomes.count);
            run.add_uint64(Run::times, at->second);
        }
        binary.add_message(Binary::addresses, one);
    }
    binary.add_enum(Binary::type, static_cast<std::int32_t>(image.type));
    if (image.kernel_start != 0) {
        protozero::pbf_builder<Kernel> kernel(binary, Binary::kernel);
        kernel.add_uint64(Kernel::start, image.kernel_start);
    }
    if (image.module != answers::ModulePlace{}) {
        protozero::pbf_builder<Module> module(binary, Binary::module);
        module.add_uint64(Module::first, image.module.first);
        module.add_uint64(Module::end, image.module.end);
        module.add_string(Module::symbol, image.module.symbol);
        module.add_uint64(Module::address, image.module.address);
        module.add_uint64(Module::bytes, image.module.bytes);
    }
    message.add_message(List::binaries, text);
}

}  // namespace

bool is_branch_list(Bytes head) {
    // The older form is a message whose first field is the magic.
    const std::string old = std::string("\x0a\x18") + std::string(list_magic);
    const std::string_view text = text_of(head);
    return text.size() >= 8 && (list_magic.starts_with(text.substr(0, list_magic.size())) ||
                                std::string_view(old).starts_with(text.substr(0, old.size())));
}

Status add_branch_lists(BranchLists& lists, Bytes file, std::string_view name) {
    std::string_view text = text_of(file);
    const auto bad = [&](std::string_view what) { return Error{Errc::bad_format, fmt::format("{}: {}", name, what)}; };
    if (!is_branch_list(file)) return bad("it is not a branch list");
    if (text.front() == '\x0a') {
        if (!add_message(lists, text)) return bad("the branch list is damaged or cut");
        return Nothing{};
    }
    const auto le = [&](unsigned bytes) -> std::optional<std::uint64_t> {
        if (text.size() < bytes) return std::nullopt;
        std::uint64_t value = 0;
        for (unsigned i = 0; i < bytes; ++i) value |= std::uint64_t{static_cast<std::uint8_t>(text[i])} << (8 * i);
        text.remove_prefix(bytes);
        return value;
    };
    text.remove_prefix(std::min(list_magic.size(), text.size()));
    const auto version = le(4), compressed = le(1);
    if (!compressed) return bad("it is cut short");
    if (*version == 0 || *version > latest_version)
        return Error{Errc::unsupported,
                     fmt::format("{}: a branch list of version {}; this Waymark reads versions up to {}", name,
                                 *version, latest_version)};
    if (*compressed > 1)
        return bad(fmt::format("its messages are compressed in a way ({}) that is not known", *compressed));
    while (!text.empty()) {
        const auto size = le(4);
        if (!size || *size > text.size()) return bad("it is cut short");
        std::string_view message = text.substr(0, static_cast<std::size_t>(*size));
        std::optional<std::string> unpacked;
        if (*compressed != 0) {
            unpacked = unpack_message(message);
            if (!unpacked) return bad("a compressed message of the branch list is damaged, or unpacks without end");
            message = *unpacked;
        }
        if (!add_message(lists, message)) return bad("the branch list is damaged");
        text.remove_prefix(static_cast<std::size_t>(*size));
    }
    return Nothing{};
}

Result<ExportReport> write_branch_lists(const BranchLists& lists, BranchListVersion version, ByteSink& sink) {
    std::uint64_t written = 0;
    std::string text;
    protozero::pbf_builder<List> message(text);
    message.add_string(List::magic, list_magic.data(), list_magic.size());
    for (const auto& [key, image] : lists) {
        if (image.lists.empty()) continue;
        put(message, image);
        written += image.lists.size();
    }
    if (written == 0) return Error{Errc::not_found, "there is no branch"};
    Writer out(sink);
    if (version == BranchListVersion::compressed) {
        std::string packed(ZSTD_compressBound(text.size()), '\0');
        const std::size_t size =
            ZSTD_compress(packed.data(), packed.size(), text.data(), text.size(), ZSTD_CLEVEL_DEFAULT);
        if (ZSTD_isError(size) != 0) return Error{Errc::unsupported, "the branch list cannot be compressed"};
        packed.resize(size);
        text = std::move(packed);
    }
    if (version != BranchListVersion::old) {
        if (text.size() > std::numeric_limits<std::uint32_t>::max())
            return Error{Errc::unsupported, "there are more branches than a branch list can contain"};
        out.write(list_magic);
        const auto le = [&](std::uint64_t value, unsigned bytes) {
            for (unsigned i = 0; i < bytes; ++i) {
                const char byte = static_cast<char>(value >> (8 * i));
                out.write({&byte, 1});
            }
        };
        le(latest_version, 4);
        le(version == BranchListVersion::compressed ? 1 : 0, 1);
        le(text.size(), 4);
    }
    out.write(text);
    ExportReport report;
    report.bytes = out.finish();
    report.notes.push_back(fmt::format("{} of {}", counted(written, "list of branches", "lists of branches"),
                                       counted(lists.size(), "file")));
    return report;
}

Result<ExportReport> write_branch_list(const answers::Answers& answers, BranchListVersion version, ByteSink& sink,
                                       const std::string& of_image) {
    if (answers.ranges.empty()) return Error{Errc::not_found, lacks(answers, "exact ranges of code that ran")};
    std::optional<answers::Index> only;
    if (!of_image.empty()) {
        WM_ASSIGN_OR_RETURN(only, profile_image(answers, of_image));
    }
    std::map<answers::Index, BranchListImage> by_image;
    std::uint64_t left_out = 0;
    for (const answers::ImageRange& r : answers.ranges) {
        if (r.image >= answers.images.size() || (only && r.image != *only)) continue;
        if (r.taken == 0 && r.not_taken == 0) {
            ++left_out;
            continue;
        }
        const answers::Image& of = answers.images[r.image];
        BranchListImage& image = by_image[r.image];
        image.path = !of.recorded.empty() ? of.recorded : of.path.empty() ? of.name : of.path;
        image.build_id = of.build_id;
        image.type = of.name.starts_with("[kernel") ? 1 : 0;
        const std::uint64_t address = r.first | (r.isa == isa::Isa::t32 ? 1U : 0U);
        for (const auto& [bit, times] : {std::pair(0, r.not_taken), std::pair(1, r.taken)}) {
            if (times == 0) continue;
            std::uint64_t& sum = image.lists[{address, {{static_cast<std::uint8_t>(bit)}, 1}}];
            sum = saturating(sum, times);
        }
    }
    BranchLists lists;
    for (auto& [index, image] : by_image) answers::add_image(lists, std::move(image));
    auto report = write_branch_lists(lists, version, sink);
    if (report && left_out != 0)
        report->notes.push_back(
            fmt::format("left out: {} not end with a branch, since a branch list contains only branches",
                        counted(left_out, "range that does", "ranges that do")));
    return report;
}

}  // namespace waymark::exports
