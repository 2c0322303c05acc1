#include "support/wmt.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>

#include "waymark/core/wire.h"
#include "waymark/pft/encoder.h"
#include "waymark/pft/text.h"

namespace waymark::test {
namespace {

std::string hex(std::uint64_t value) {
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value, 16).ptr;
    return "0x" + std::string(digits.data(), end);
}

bool scan_hex(std::string_view text, std::uint64_t& value) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    return error == std::errc{} && end == text.data() + text.size();
}

/// Reads a file line by line; every error names the line.
class Reader {
public:
    explicit Reader(Wmt& wmt) : wmt_(wmt) {}

    Status read() {
        for (; line_ < wmt_.lines.size(); ++line_) WM_RETURN_IF_ERROR(take(wmt_.lines[line_]));
        if (wmt_.flow_line == 0) return error("the file has no [flow]");
        if (has_raw_) wmt_.packets.clear();
        return Nothing{};
    }

private:
    enum class Part : std::uint8_t { head, config, code, packets, flow };

    Error error(const std::string& what) const {
        return {Errc::bad_format, wmt_.file + ":" + std::to_string(line_ + 1) + ": " + what};
    }

    Status take(const std::string& line) {
        constexpr std::string_view rule = "# section ";
        if (line.starts_with(rule)) wmt_.rules.push_back(joined(words(line.substr(rule.size()))));
        const std::string text = without_comment(line);
        if (text.empty()) return Nothing{};
        if (text.front() == '[') return begin(text);
        switch (part_) {
            case Part::head: return error("'" + text + "' stands before the first [part]");
            case Part::config: return take_config(text);
            case Part::code: return take_code(line);
            case Part::packets: return take_packet(text);
            case Part::flow: return take_flow(text);
        }
        return Nothing{};
    }

    Status begin(const std::string& text) {
        if (text.back() != ']') return error("'" + text + "' has no ]");
        const std::vector<std::string> parts = words(std::string_view(text).substr(1, text.size() - 2));
        const std::string name = parts.empty() ? "" : parts[0];
        if (part_ == Part::flow) return error("[flow] must be the last part");
        if (name == "code") return begin_code(parts);
        if (parts.size() != 1) return error("unknown part " + text);
        if (name == "config") {
            part_ = Part::config;
        } else if (name == "packets") {
            part_ = Part::packets;
            wmt_.stream.emplace_back();
        } else if (name == "flow") {
            if (wmt_.stream.empty()) return error("[packets] must come before [flow]");
            part_ = Part::flow;
            wmt_.flow_line = line_ + 1;
        } else {
            return error("unknown part " + text);
        }
        return Nothing{};
    }

    Status take_config(const std::string& text) {
        for (const std::string& word : words(text)) {
            const auto [key, value] = key_value(word);
            std::uint64_t n = 0;
            if (!wire::scan_number(value, n) || n > 0xffffffffU) return error("'" + word + "' gives no number");
            if (key == "ETMCR" || key == "ETMCCER" || key == "ETMIDR") {
                take_register(key, static_cast<std::uint32_t>(n));
            } else if (!take_member(key, static_cast<std::uint32_t>(n))) {
                return error("no configuration is called '" + key + "'");
            }
        }
        return Nothing{};
    }

    void take_register(const std::string& key, std::uint32_t value) {
        (key == "ETMCR" ? etmcr_ : key == "ETMCCER" ? etmccer_ : etmidr_) = value;
        wmt_.config = pft::Config::from_registers(from_value<pft::Etmcr>(etmcr_), from_value<pft::Etmccer>(etmccer_),
                                                  from_value<pft::Etmidr>(etmidr_));
    }

    bool take_member(const std::string& key, std::uint32_t value) {
        pft::Config& c = wmt_.config;
        const std::pair<std::string_view, bool*> flags[] = {
            {"cycle_accurate", &c.cycle_accurate},
            {"return_stack", &c.return_stack},
            {"branch_broadcast", &c.branch_broadcast},
            {"vmid_trace", &c.vmid_trace},
            {"timestamps", &c.timestamps},
            {"barrier_waypoints", &c.barrier_waypoints},
            {"gray_timestamps", &c.gray_timestamps},
            {"update_is_compression_base", &c.update_is_compression_base},
            {"hyp_kept_without_info_1", &c.hyp_kept_without_info_1},
            {"offsets", &wmt_.offsets},
        };
        for (const auto& [name, flag] : flags)
            if (name == key && value <= 1) return *flag = value != 0, true;
        const std::pair<std::string_view, std::uint8_t*> numbers[] = {
            {"context_id_bytes", &c.context_id_bytes},
            {"timestamp_bytes", &c.timestamp_bytes},
            {"minor_version", &c.minor_version},
        };
        for (const auto& [name, number] : numbers)
            if (name == key && value <= 9) return *number = static_cast<std::uint8_t>(value), true;
        if (key == "max_walk_bytes") return c.max_walk_bytes = value, true;
        return false;
    }

    Status begin_code(const std::vector<std::string>& parts) {
        WmtCode::Section section;
        std::uint64_t start = 0;
        if (parts.size() < 3 || !wire::scan_number(parts[2], start) || start > 0xffffffffU)
            return error("[code] needs an instruction set and an address");
        section.start = start;
        if (parts[1] == "A32")
            section.isa = isa::Isa::a32;
        else if (parts[1] == "T32")
            section.isa = isa::Isa::t32;
        else if (parts[1] == "TEE")
            section.isa = isa::Isa::tee;
        else
            return error("no instruction set for [code] is called '" + parts[1] + "'");
        for (std::size_t i = 3; i < parts.size(); ++i) {
            const auto [key, value] = key_value(parts[i]);
            std::uint64_t n = 0;
            const bool is_number = wire::scan_number(value, n) && n <= 0xffffffffU;
            if (key == "section" && !value.empty()) {
                section.name = value;
            } else if (key == "space" && (value == "S" || value == "N" || value == "H")) {
                section.ns = value != "S";
                if (value == "H") section.hyp = true;
            } else if (key == "context_id" && is_number) {
                section.context_id = static_cast<std::uint32_t>(n);
            } else if (key == "vmid" && is_number) {
                section.vmid = static_cast<std::uint32_t>(n);
            } else {
                return error("[code] cannot have '" + parts[i] + "'");
            }
        }
        wmt_.code.sections.push_back(section);
        part_ = Part::code;
        return Nothing{};
    }

    /// `8000: eb000001  bl 0x800c`, `8000: f000 f802  bl 0x8008`, `8000: e1a00000*16  nop`.
    Status take_code(const std::string& line) {
        WmtCode::Section& section = wmt_.code.sections.back();
        const std::vector<std::string> parts = words(line.substr(0, line.find("  ", line.find_first_not_of(' '))));
        std::uint64_t address = 0;
        if (parts.size() < 2 || !parts[0].ends_with(':') ||
            !scan_hex(std::string_view(parts[0]).substr(0, parts[0].size() - 1), address))
            return error("a line of [code] is 'address: opcode  text', with two blanks before the text");
        const std::uint64_t here = section.start + section.bytes.size();
        if (address != here) return error("the next instruction is at " + hex(here) + ", not " + hex(address));
        std::vector<std::uint8_t> bytes;
        std::uint64_t times = 1;
        for (std::size_t i = 1; i < parts.size(); ++i) {
            std::string_view digits = parts[i];
            if (const std::size_t star = digits.find('*'); star != std::string_view::npos) {
                if (!wire::scan_number(digits.substr(star + 1), times) || times > 0x100000)
                    return error("'" + parts[i] + "' does not say how many times");
                digits = digits.substr(0, star);
            }
            std::uint64_t opcode = 0;
            const unsigned size = section.isa == isa::Isa::a32 ? 4 : 2;
            if (digits.size() != 2 * size || !scan_hex(digits, opcode))
                return error("'" + parts[i] + "' is no opcode of " + std::string(name(section.isa)));
            for (unsigned k = 0; k < size; ++k) bytes.push_back(static_cast<std::uint8_t>(opcode >> (8 * k)));
        }
        for (; times != 0; --times) section.bytes.insert(section.bytes.end(), bytes.begin(), bytes.end());
        return Nothing{};
    }

    Status take_packet(const std::string& text) {
        if (text == "reset") {
            has_raw_ = true;
            wmt_.stream.emplace_back();
            return Nothing{};
        }
        if (text.starts_with("raw ")) {
            has_raw_ = true;
            for (const std::string& word : words(std::string_view(text).substr(4))) {
                std::uint64_t byte = 0;
                if (word.size() != 2 || !scan_hex(word, byte)) return error("'" + word + "' is no byte");
                wmt_.stream.back().push_back(static_cast<std::uint8_t>(byte));
            }
            return Nothing{};
        }
        const auto packet = pft::from_text(text, wmt_.config);
        if (!packet) return error(packet.error().message);
        pft::encode(wmt_.stream.back(), *packet, wmt_.config);
        wmt_.packets.push_back(text);
        return Nothing{};
    }

    Status take_flow(const std::string& text) {
        constexpr std::string_view elements[] = {"trace_on",         "context",   "range",         "exception",
                                                 "exception_return", "no_memory", "timestamp",     "trigger",
                                                 "cycles",           "gap",       "inconsistency", "atoms",
                                                 "reached"};
        const std::string word = text.substr(0, text.find(' '));
        if (std::find(std::begin(elements), std::end(elements), word) == std::end(elements))
            return error("no flow element is called '" + word + "'");
        wmt_.flow.push_back(text);
        return Nothing{};
    }

    Wmt& wmt_;
    std::size_t line_ = 0;
    Part part_ = Part::head;
    bool has_raw_ = false;
    std::uint32_t etmcr_ = 0, etmccer_ = 0, etmidr_ = 0x4100f310;
};

std::string cycles_text(std::uint32_t cycles) {
    return cycles == flow::no_cycles ? "" : " cycles=" + std::to_string(cycles);
}

std::string range_text(const Wmt& wmt, const flow::Block& block, const flow::Range& range) {
    constexpr std::string_view ends[] = {"none", "direct", "indirect", "barrier"};
    std::string out = "range " + hex(block.start) + ".." + hex(block.start + block.bytes) + " " +
                      std::to_string(block.instructions) + " " + std::string(name(block.isa));
    const bool waypoint = block.end != flow::End::not_a_waypoint;
    out += range.taken() ? " E " : waypoint ? " N " : " - ";
    out += ends[static_cast<std::size_t>(block.end)];
    constexpr std::pair<std::uint8_t, std::string_view> flags[] = {
        {flow::Block::link, " link"},
        {flow::Block::conditional, " conditional"},
        {flow::Block::function_return, " return"},
        {flow::Block::exception_return, " exception_return"},
        {flow::Block::undefined, " undefined"},
    };
    for (const auto& [flag, text] : flags)
        if ((block.flags & flag) != 0) out += text;
    if (block.end == flow::End::direct || block.end == flow::End::barrier) out += " -> " + hex(block.target);
    if (block.section < wmt.code.sections.size() && !wmt.code.sections[block.section].name.empty())
        out += " section=" + wmt.code.sections[block.section].name;
    if (range.times != 1) out += " times=" + std::to_string(range.times);
    return out + cycles_text(range.cycles);
}

struct EventText {
    std::string operator()(const Gap& gap) const {
        std::string reason(name(gap.reason));
        std::replace(reason.begin(), reason.end(), ' ', '_');
        return "gap " + std::to_string(gap.first.value) + ".." + std::to_string(gap.end.value) + " " + reason;
    }
    std::string operator()(const flow::TraceOn& on) const {
        constexpr std::string_view reasons[] = {"begin", "enabled", "overflow", "debug_restart"};
        return "trace_on " + std::string(reasons[static_cast<std::size_t>(on.reason)]) + cycles_text(on.cycles);
    }
    std::string operator()(const flow::Context& context) const {
        std::string out = context.ns ? "context NS" : "context S";
        if (context.hyp) out += " HYP";
        if (context.context_id) out += " context_id=" + hex(*context.context_id);
        if (context.vmid) out += " vmid=" + hex(*context.vmid);
        return out;
    }
    std::string operator()(const flow::Timestamp& timestamp) const {
        return "timestamp " + hex(timestamp.value) + (timestamp.known ? "" : " partial") +
               (timestamp.frequency_changed ? " frequency_changed" : "") + cycles_text(timestamp.cycles);
    }
    std::string operator()(const flow::Exception& exception) const {
        std::string out = "exception " + std::to_string(exception.type->number);
        if (exception.preferred_return) out += " return=" + hex(exception.preferred_return->value);
        if (exception.vector) out += " vector=" + hex(exception.vector->value);
        return out + cycles_text(exception.cycles);
    }
    std::string operator()(const flow::ExceptionReturn&) const { return "exception_return"; }
    std::string operator()(const flow::NoMemory& where) const { return "no_memory " + hex(where.address.value); }
    std::string operator()(const flow::Trigger&) const { return "trigger"; }
    std::string operator()(const flow::Cycles& cycles) const {
        return std::string("cycles ") + (cycles.cycles ? std::to_string(*cycles.cycles) : "unknown");
    }
    std::string operator()(const flow::Atoms& atoms) const {
        return "atoms E=" + std::to_string(atoms.taken) + " N=" + std::to_string(atoms.not_taken);
    }
    std::string operator()(const flow::Reached& reached) const { return "reached " + hex(reached.address.value); }
    std::string operator()(const flow::Untraced& untraced) const {
        return "untraced " + hex(untraced.from.value) + " to=" + hex(untraced.to.value) +
               " instructions=" + std::to_string(untraced.instructions);
    }
    std::string operator()(const flow::Mark& mark) const {
        return "mark " + std::to_string(static_cast<unsigned>(mark.kind)) + " " + hex(mark.value);
    }
    std::string operator()(const flow::Inconsistency& what) const {
        constexpr std::string_view kinds[] = {"sync_disagrees",    "branch_disagrees",    "update_behind",
                                              "no_return_address", "undefined_reached",   "runaway_walk",
                                              "update_disagrees",  "vmid_missing",        "always_taken",
                                              "address_disagrees", "no_exception_return", "time_goes_back"};
        return "inconsistency " + std::string(kinds[static_cast<std::size_t>(what.conflict)]) +
               " found=" + hex(what.found.value) + " expected=" + hex(what.expected.value);
    }
};

}  // namespace

isa::Code WmtCode::at(Address address, const isa::Space& space) const {
    const auto seen = [&](const Section& s) {
        return (!s.ns || *s.ns == space.ns) && (!s.hyp || *s.hyp == space.hyp) &&
               (!s.context_id || s.context_id == space.context_id) && (!s.vmid || s.vmid == space.vmid);
    };
    std::uint64_t end = ~std::uint64_t{0};  // where a section that hides earlier ones begins
    for (std::size_t i = sections.size(); i-- > 0;) {
        const Section& s = sections[i];
        if (!seen(s)) continue;
        if (address.value >= s.start && address.value < s.start + s.bytes.size()) {
            const std::uint64_t length = std::min(s.start + s.bytes.size(), end) - address.value;
            return {Bytes(s.bytes).subspan(address.value - s.start, length), static_cast<std::uint32_t>(i)};
        }
        if (s.start > address.value) end = std::min(end, s.start);
    }
    return {};
}

isa::Space WmtCode::view(const isa::Space& space) const {
    isa::Space out;
    for (const Section& s : sections) {
        if (s.ns) out.ns = space.ns;
        if (s.hyp) out.hyp = space.hyp;
        if (s.context_id) out.context_id = space.context_id;
        if (s.vmid) out.vmid = space.vmid;
    }
    return out;
}

Result<Wmt> parse_wmt(std::string_view text, const std::string& file) {
    Wmt wmt;
    wmt.file = file;
    std::istringstream in{std::string(text)};
    for (std::string line; std::getline(in, line);) wmt.lines.push_back(line);
    WM_RETURN_IF_ERROR(Reader(wmt).read());
    return wmt;
}

Result<Wmt> read_wmt(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in) return Error{Errc::unreadable, path.string() + ": cannot be read"};
    return parse_wmt(text.str(), path.string());
}

void FlowText::add(std::string line, Offset offset) {
    if (offsets_) line += " @" + std::to_string(offset.value);
    lines.push_back(std::move(line));
}

void FlowText::consume(const flow::Batch& batch) {
    flow::in_order(
        batch,
        [&](const flow::Block& block, const flow::Range& range) {
            add(range_text(wmt_, block, range), batch.base + range.offset);
        },
        [&](const flow::Event& event) { add(std::visit(EventText{}, event.what), event.offset); });
}

std::string with_flow(const Wmt& wmt, const std::vector<std::string>& found) {
    return with_part(wmt.lines, wmt.flow_line, wmt.flow, found);
}

}  // namespace waymark::test
