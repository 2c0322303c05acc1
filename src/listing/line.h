/// Private to this layer: lines for reading, and fields of packets as JSON.
#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "row.h"
#include "waymark/core/numbers.h"
#include "waymark/pipeline/run.h"
#include "waymark/protocol/adapters.h"
#include "waymark/protocol/packets.h"

namespace waymark::listing {

/// `0x00008010`
[[nodiscard]] inline std::string hex(Address address) { return fmt::format("{:#010x}", address.value); }

/// Removes blanks at the end.
[[nodiscard]] inline std::string trimmed(std::string line) {
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
}

/// Formats a line for reading: line breaks in names from files are replaced, so that it stays one line.
template <class... Args>
void put_line(TextSink& out, fmt::format_string<Args...> format, Args&&... args) {
    std::string line = fmt::format(format, std::forward<Args>(args)...);
    if (!is_plain(line)) line = one_line(line);
    line += '\n';
    out.write(line);
}

/// The heading above the lines of a source in a buffer.
[[nodiscard]] inline std::string source_title(const pipeline::StreamInfo& stream) {
    const pipeline::Source& source = stream.source;
    return fmt::format("source {} ({}{}{}), buffer {}", source.label(), source.type,
                       source.core_type.empty() ? "" : ", ", source.core_type, stream.buffer.name);
}

/// The names of the columns, collected from `write(row)`, which writes a row.
template <class Write>
void put_header(TextSink& out, Write&& write) {
    RowText text;
    write(HeaderRow(text));
    out.write(text.view());
}

/// The fields of a packet as a JSON object.
class JsonFields final : public protocol::FieldVisitor {
public:
    void number(std::string_view name, std::uint64_t value) override { row_.number(name, true, value); }
    void text(std::string_view name, std::string_view value) override { row_.always(name, value); }
    [[nodiscard]] std::string json() const { return out_.view().empty() ? "{}" : std::string(out_.view()) + "}"; }

private:
    RowText out_;
    NoSame same_;
    JsonRow<NoSame> row_{out_, same_};
};

/// `config`: the configuration that the packet's description needs, if any.
template <class P, class... Config>
[[nodiscard]] std::string json_fields(const P& packet, const Config&... config) {
    JsonFields out;
    protocol::VisitFields walker(out);
    P::fields(walker, packet, config...);
    return out.json();
}

}  // namespace waymark::listing
