#include "waymark/syst/describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "waymark/core/numbers.h"
#include "waymark/core/wire.h"
#include "waymark/syst/printf.h"

namespace waymark::syst {

std::string_view name(Layout layout) {
    constexpr std::array<std::string_view, layouts> names{"sys-t", "basic", "ost", "ftrace"};
    return names[static_cast<std::size_t>(layout)];
}

namespace {

std::string hex_of(Bytes bytes) {
    std::string out;
    for (const std::uint8_t byte : bytes) out += fmt::format("{:02x}", byte);
    return out;
}

/// Text up to the first zero.
std::string text_of(Bytes bytes) { return {bytes.begin(), std::find(bytes.begin(), bytes.end(), std::uint8_t{0})}; }

void add_problem(protocol::Record& out, const std::string& problem) {
    if (!problem.empty()) out.problem += (out.problem.empty() ? "" : "; ") + problem;
}

std::string_view severity_name(unsigned severity) {
    constexpr std::array<std::string_view, 8> names{"MAX",  "FATAL", "ERROR", "WARNING",
                                                    "INFO", "USER1", "USER2", "DEBUG"};
    return names[severity & 7U];
}

std::string string_type(unsigned subtype) {
    switch (subtype) {
        case 1: return "STRING:GENERIC";
        case 2: return "STRING:FUNCTIONENTER";
        case 3: return "STRING:FUNCTIONEXIT";
        case 5: return "STRING:INVALIDPARAM";
        case 7: return "STRING:ASSERT";
        case 11: return "STRING:PRINTF32";
        case 12: return "STRING:PRINTF64";
        default: return fmt::format("STRING:{}", subtype);
    }
}

/// Formats a value with the format of an item; only the bits of the mask are used.
std::string with_value(const Item& item, std::uint64_t value, unsigned size) {
    std::array<std::uint8_t, 8> bytes{};
    const std::uint64_t rest = value & ~item.mask;
    for (unsigned i = 0; i < size; ++i) bytes[i] = static_cast<std::uint8_t>(rest >> 8 * i);
    Formatted out = format_packed(item.text, Bytes(bytes.data(), size), size);
    return std::move(out.text);
}

/// The meaning of an attribute File: a number of SourceFiles, or a name.
std::string file_name(const Client& client, const std::string& file) {
    std::uint64_t number = 0;
    const Item* const named = wire::scan_number(file, number) ? client.files.find(number) : nullptr;
    return named != nullptr ? named->text : file;
}

std::string location_text(const SystMessage& m, const Client* client) {
    if (!m.location) return {};
    if (m.location->is_address) return fmt::format("{:#x}", m.location->file_or_address);
    const Item* const file = client == nullptr ? nullptr : client->files.find(m.location->file_or_address);
    return fmt::format("{}:{}", file != nullptr ? file->text : std::to_string(m.location->file_or_address),
                       m.location->line);
}

/// A record of ftrace: an entry of its ring buffer.
void ftrace(protocol::Record& out, Bytes bytes) {
    if (bytes.size() < 8) return add_problem(out, counted(bytes.size(), "byte") + "; a record of ftrace has 8");
    const auto type = static_cast<unsigned>(number_in(bytes, 0, 2));
    const auto pid = static_cast<std::int32_t>(number_in(bytes, 4, 4));
    if (type == 1 && bytes.size() >= 24) {
        out.type = "ftrace:function";
        out.text = fmt::format("pid {}: {:#x} called by {:#x}", pid, number_in(bytes, 8, 8), number_in(bytes, 16, 8));
    } else {
        out.type = fmt::format("ftrace:{}", type);
        out.text = fmt::format("pid {}: {}", pid, hex_of(bytes.subspan(8)));
    }
}

/// The text if every byte is text, otherwise the bytes as digits.
void basic(protocol::Record& out, Bytes bytes) {
    const bool is_text = std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t c) {
        return c >= 0x20 ? c != 0x7f : c == '\t' || c == '\n' || c == '\r';
    });
    out.text = is_text ? std::string(bytes.begin(), bytes.end()) : hex_of(bytes);
    out.type = is_text ? "text" : "bytes";
}

void ost(protocol::Record& out, Bytes bytes) {
    constexpr std::size_t header = 28;
    if (bytes.size() < header)
        return add_problem(out, fmt::format("{}; a header has {}", counted(bytes.size(), "byte"), header));
    // Early revisions swapped the first byte and the last one.
    const bool swapped = bytes[0] != 0x10 && bytes[3] == 0x10;
    const unsigned start = swapped ? bytes[3] : bytes[0], entity = swapped ? bytes[0] : bytes[2];
    if (start != 0x10 || bytes[1] != (swapped ? 0 : 0x10) || number_in(bytes, 6, 2) != 0x5953)
        return add_problem(out, "it has no header of p_ost (10 10 .. .., then 53 59)");
    out.unit = static_cast<std::uint32_t>(number_in(bytes, 8, 4));
    out.time = number_in(bytes, 12, 8);
    const Bytes payload = bytes.subspan(header);
    if (entity == 0x01 || (swapped && entity == 0x11)) return ftrace(out, payload);
    basic(out, payload);
    out.type = entity == 0x02 ? "console" : entity == 0xee ? "diag" : fmt::format("entity {:#04x}", entity);
}

}  // namespace

protocol::Record Describer::operator()(Bytes bytes, std::uint32_t master, std::uint32_t channel) {
    protocol::Record out;
    out.layout = name(layout_);
    out.bytes = bytes.size();
    switch (layout_) {
        case Layout::sys_t: sys_t(out, bytes, master, channel); break;
        case Layout::basic: basic(out, bytes); break;
        case Layout::ost: ost(out, bytes); break;
        case Layout::ftrace: ftrace(out, bytes); break;
    }
    return out;
}

const Client* Describer::client_of(const SystMessage& m, const Guid& guid) const {
    if (collateral_ == nullptr) return nullptr;
    const auto build = builds_.find(guid);
    const Client* const found =
        collateral_->find(guid, build == builds_.end() ? std::nullopt : std::optional(build->second));
    return found == nullptr && !m.guid ? client_ : found;
}

void Describer::sys_t(protocol::Record& out, Bytes bytes, std::uint32_t master, std::uint32_t channel) {
    const SystMessage m = parse(bytes);
    out.problem = m.problem;
    if (!m.complete) {
        out.text = hex_of(bytes);
        return;
    }
    out.severity = severity_name(m.severity);
    out.checksum = m.checksum;
    if (m.checksum == false) add_problem(out, "its checksum is wrong");
    out.time = m.time;
    if (!m.is_short) out.unit = m.unit;
    Guid guid;
    if (m.guid) {
        guid = *m.guid;
        out.guid = to_text(guid);
    } else {
        guid.bytes[4] = static_cast<std::uint8_t>(master >> 8);
        guid.bytes[5] = static_cast<std::uint8_t>(master);
        guid.bytes[6] = static_cast<std::uint8_t>(channel >> 8);
        guid.bytes[7] = static_cast<std::uint8_t>(channel);
        guid.bytes[8] = static_cast<std::uint8_t>(m.origin.value_or(0));
    }
    if (m.type == MessageType::build && m.problem.empty() && m.checksum != false &&
        (m.is_short || m.payload.size() >= 8) && (builds_.size() < most_builds || builds_.contains(guid)))
        builds_[guid] = m.is_short ? m.value : number_in(m.payload, 0, 8);
    const Client* const client = client_of(m, guid);
    if (client != nullptr) out.client = client->name;
    if (m.origin) {
        const Item* const module = client == nullptr ? nullptr : client->modules.find(*m.origin);
        out.origin = module != nullptr ? module->text : std::to_string(*m.origin);
    }
    out.location = location_text(m, client);
    const unsigned word =
        m.subtype == 5 || m.subtype == 6 || (m.type == MessageType::string && m.subtype == 12) ? 8 : 4;
    switch (m.type) {
        case MessageType::build:
            if (m.is_short) {
                out.type = m.subtype == 0 ? "BUILD:COMPACT32" : "BUILD:COMPACT64";
                out.text = fmt::format("{:#x}", m.value);
            } else {
                out.type = "BUILD:LONG";
                if (m.payload.size() < 8) {
                    add_problem(out, "a build number has 8 bytes");
                    out.text = hex_of(m.payload);
                    break;
                }
                const std::string text = text_of(m.payload.subspan(8));
                out.text = fmt::format("{:#018x}{}{}", number_in(m.payload, 0, 8), text.empty() ? "" : " ", text);
            }
            break;
        case MessageType::short32:
        case MessageType::short64: {
            const bool wide = m.type == MessageType::short64;
            out.type = wide ? "SHORT64" : "SHORT32";
            const Item* const item =
                client == nullptr ? nullptr : (wide ? client->short64 : client->short32).find(m.value);
            out.text = item != nullptr ? with_value(*item, m.value, wide ? 8 : 4) : fmt::format("{:#x}", m.value);
            break;
        }
        case MessageType::string: {
            out.type = string_type(m.subtype);
            if (m.subtype != 11 && m.subtype != 12) {
                out.text = text_of(m.payload);
                break;
            }
            const auto end = std::find(m.payload.begin(), m.payload.end(), std::uint8_t{0});
            const auto size = static_cast<std::size_t>(end - m.payload.begin());
            const std::string format(m.payload.begin(), end);
            if (end == m.payload.end()) {
                add_problem(out, "its format has no end");
                out.text = format;
                break;
            }
            Formatted formatted = format_packed(format, m.payload.subspan(size + 1), word);
            out.text = std::move(formatted.text);
            add_problem(out, formatted.problem);
            break;
        }
        case MessageType::catalog: {
            const bool wide = m.subtype == 2 || m.subtype == 6;
            const unsigned size = wide ? 8 : 4;
            out.type = fmt::format("CATALOG:ID{}P{}", 8 * size, 8 * word);
            if (m.payload.size() < size) {
                add_problem(out, fmt::format("its number has {} bytes", size));
                out.text = hex_of(m.payload);
                break;
            }
            const std::uint64_t id = number_in(m.payload, 0, size);
            const Item* const item =
                client == nullptr ? nullptr : (wide ? client->catalog64 : client->catalog32).find(id);
            if (item == nullptr) {
                out.text =
                    fmt::format("{:#x}{}{}", id, m.payload.size() == size ? "" : " ", hex_of(m.payload.subspan(size)));
                add_problem(
                    out, client != nullptr ? "the catalogue does not have its number" : "no catalogue of its client");
                break;
            }
            Formatted formatted = format_packed(item->text, m.payload.subspan(size), word);
            out.text = std::move(formatted.text);
            add_problem(out, formatted.problem);
            if (out.location.empty() && !item->file.empty())
                out.location = file_name(*client, item->file) + (item->line.empty() ? "" : ":" + item->line);
            break;
        }
        case MessageType::raw: {
            const Item* const item = client == nullptr ? nullptr : client->protocols.find(m.subtype);
            out.type = "RAW:" + (item != nullptr ? with_value(*item, m.subtype, 4) : std::to_string(m.subtype));
            out.text = hex_of(m.payload);
            break;
        }
        case MessageType::clock:
            out.type = m.subtype == 1 ? "CLOCK:TRANSPORT_SYNC" : fmt::format("CLOCK:{}", m.subtype);
            if (m.payload.size() == 16) {
                out.text = fmt::format("{} at {} Hz", number_in(m.payload, 0, 8), number_in(m.payload, 8, 8));
            } else {
                add_problem(out, "its value and frequency have 16 bytes");
                out.text = hex_of(m.payload);
            }
            break;
        case MessageType::structured: {
            const unsigned size = (m.subtype & 1U) != 0 ? 8 : 4;
            const unsigned address = std::array<unsigned, 4>{0, 2, 4, 8}[m.subtype >> 2 & 3U];
            out.type = fmt::format("SBD:ID{}", 8 * size);
            if (m.payload.size() < size + address) {
                add_problem(out, fmt::format("its number and address have {} bytes", size + address));
                out.text = hex_of(m.payload);
                break;
            }
            out.text = fmt::format("{:#x}", number_in(m.payload, 0, size));
            if (address != 0) out.text += fmt::format(" at {:#x}", number_in(m.payload, size, address));
            Bytes rest = m.payload.subspan(size + address);
            if ((m.subtype & 2U) != 0) {
                const std::string text = text_of(rest);
                if (text.size() == rest.size()) add_problem(out, "its name has no end");
                out.text += " " + text;
                rest = rest.subspan(std::min(rest.size(), text.size() + 1));
            }
            out.text += (rest.empty() ? "" : " ") + hex_of(rest);
            break;
        }
        default:
            out.type = fmt::format("TYPE{}", static_cast<unsigned>(m.type));
            out.text = hex_of(bytes);
            add_problem(out, "its type is reserved");
    }
}

}  // namespace waymark::syst
