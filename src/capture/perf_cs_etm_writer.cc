#include "waymark/capture/perf_cs_etm_writer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace waymark::capture::perf {

namespace {

struct Term {
    bool CsEtmTerms::*set;
    std::string_view name;     ///< the name that perf uses
    unsigned config;           ///< bit in attr.config, the same as in ETMCR
    std::uint64_t trcconfigr;  ///< bits
};
constexpr std::array<Term, 6> terms{{
    {&CsEtmTerms::branch_broadcast, "branch_broadcast", 8, 1U << 3},
    {&CsEtmTerms::cycle_accurate, "cycacc", 12, 1U << 4},
    {&CsEtmTerms::context_id, "contextid", 14, 1U << 6},
    {&CsEtmTerms::context_id2, "contextid2", 15, 1U << 7 | 1U << 15},
    {&CsEtmTerms::timestamps, "timestamp", 28, 1U << 11},
    {&CsEtmTerms::return_stack, "retstack", 29, 1U << 12},
}};

constexpr std::string_view autofdo = "autofdo";
constexpr std::string_view ts_source = "TS_SOURCE", auth_status = "TRCAUTHSTATUS";
/// TRCAUTHSTATUS: non-invasive debug is implemented and enabled in both security states.
constexpr std::uint64_t all_enabled = 0xcc;
/// TRFCR_ELx.TS: the virtual counter.
constexpr std::uint64_t virtual_counter = 1;

constexpr std::array<std::string_view, 9> ete_registers{"TRCCONFIGR", "TRCTRACEIDR", "TRCIDR0",    "TRCIDR1", "TRCIDR2",
                                                        "TRCIDR8",    auth_status,   "TRCDEVARCH", ts_source};
constexpr std::array<std::string_view, 8> etmv4_registers{"TRCCONFIGR", "TRCTRACEIDR", "TRCIDR0",   "TRCIDR1",
                                                          "TRCIDR2",    "TRCIDR8",     auth_status, ts_source};
constexpr std::array<std::string_view, 4> ptm_registers{"ETMCR", "ETMTRACEIDR", "ETMCCER", "ETMIDR"};
constexpr std::array<CsEtmBlock, 3> blocks{{
    {ete_magic, ete_registers, 0, {}},
    {etmv4_magic, etmv4_registers, 7, {}},
    {etmv3_magic, ptm_registers, 4, "ETMCR"},
}};

bool may_lack(std::string_view name) { return name == ts_source || name == auth_status; }

std::uint64_t value_of(const CsEtmUnit& unit, std::string_view name, const CsEtmBlock& block, const CsEtmTerms& asked) {
    if (name == block.event_word) return asked.config();
    if (name == "TRCCONFIGR") return asked.trcconfigr();
    if (const RegisterValue* const found = find_register(unit.registers, name)) return found->value;
    return name == ts_source ? virtual_counter : all_enabled;
}

}  // namespace

std::uint64_t CsEtmTerms::config() const {
    std::uint64_t out = 0;
    for (const Term& term : terms)
        if (this->*term.set) out |= std::uint64_t{1} << term.config;
    return out;
}

std::uint64_t CsEtmTerms::trcconfigr() const {
    std::uint64_t out = 0;
    for (const Term& term : terms)
        if (this->*term.set) out |= term.trcconfigr;
    return out;
}

std::uint64_t CsEtmTerms::other_trcconfigr_bits() {
    // Bit 0 reads as 1, and bit 15 (VMIDOPT) only says what bit 7 (VMID) would trace.
    std::uint64_t out = 0xffff7ffe;
    for (const Term& term : terms) out &= ~term.trcconfigr;
    return out;
}

std::uint64_t CsEtmTerms::config2() const {
    // Linux uses a hash of the configuration's name. Readers accept any number other than 0.
    constexpr std::uint64_t autofdo_id = 0x6175746f;
    return window == 0 ? 0 : autofdo_id << 32;
}

std::string CsEtmTerms::event() const {
    std::string out;
    if (window != 0) out = fmt::format("{},window={},period={}", autofdo, window, period);
    for (const Term& term : terms)
        if (this->*term.set) out += fmt::format("{}{}", out.empty() ? "" : ",", term.name);
    return fmt::format("cs_etm/{}/u", out);
}

namespace {

/// The terms of the `cs_etm` event in a text: `contextid`, `preset=3`.
std::vector<std::string_view> event_terms(std::string_view text) {
    constexpr std::string_view event = "cs_etm/";
    std::vector<std::string_view> out;
    const std::size_t begin = text.find(event);
    if (begin == text.npos) return out;
    text.remove_prefix(begin + event.size());
    text = text.substr(0, text.find('/'));
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(','), text.size());
        out.push_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return out;
}

std::uint64_t number_in(std::string_view text) {
    std::uint64_t out = 0;
    static_cast<void>(std::from_chars(text.data(), text.data() + text.size(), out));
    return out;
}

}  // namespace

std::optional<Strobing> strobing_of(const PerfData& data, std::uint32_t pmu_type) {
    const auto event =
        std::find_if(data.attrs.begin(), data.attrs.end(), [&](const Attr& attr) { return attr.type == pmu_type; });
    if (event == data.attrs.end()) return std::nullopt;
    Strobing out;
    bool known = event->config2 >> 32 != 0;
    std::uint64_t preset = event->config & 0xf;
    for (const std::string* text : {&event->name, &data.command_line})
        for (const std::string_view term : event_terms(*text)) {
            if (term == autofdo || term.find("strob") != term.npos) {
                known = true;
                out.configuration = term;
            }
            if (term.starts_with("preset=")) preset = number_in(term.substr(7));
            if (term.starts_with("window=")) out.window = number_in(term.substr(7));
            if (term.starts_with("period=")) out.period = number_in(term.substr(7));
        }
    if (!known) return std::nullopt;
    if (out.configuration != autofdo || (out.window != 0 && out.period != 0)) return out;
    // Linux numbers its strobing presets from 1; without a preset it uses the defaults.
    constexpr std::array<std::uint64_t, 9> presets{2, 4, 8, 16, 64, 128, 512, 1024, 4096};
    out.window = 5000;
    out.period = preset == 0 ? 10000 : preset <= presets.size() ? presets[preset - 1] : 0;
    return out;
}

std::span<const CsEtmBlock> cs_etm_blocks() { return blocks; }

const CsEtmBlock* cs_etm_block_for(const std::vector<RegisterValue>& registers) {
    for (const CsEtmBlock& block : blocks) {
        bool all = true;
        for (const std::string_view name : block.registers)
            all &= may_lack(name) || find_register(registers, name) != nullptr;
        if (all) return &block;
    }
    return nullptr;
}

Result<AuxtraceInfo> cs_etm_info(unsigned version, std::uint32_t pmu_type, bool snapshot, const CsEtmTerms& asked,
                                 std::span<const CsEtmUnit> units) {
    AuxtraceInfo info{.type = AuxtraceInfo::cs_etm};
    info.words = {version, std::uint64_t{pmu_type} << 32 | units.size(), snapshot ? 1U : 0U};
    for (const CsEtmUnit& unit : units) {
        const CsEtmBlock* const block = cs_etm_block_for(unit.registers);
        if (block == nullptr || (version == 0 && block->version_0 == 0))
            return Error{Errc::usage, fmt::format("AUXTRACE_INFO of version {} has no form for the unit of CPU {}",
                                                  version, unit.cpu)};
        std::size_t count = block->registers.size();
        if (version == 0)
            count = block->version_0;
        else if (version == 1 && block->registers.back() == ts_source)
            --count;
        info.words.insert(info.words.end(), {block->magic, unit.cpu});
        if (version != 0) info.words.push_back(count);
        for (const std::string_view name : block->registers.first(count))
            info.words.push_back(value_of(unit, name, *block, asked));
    }
    return info;
}

}  // namespace waymark::capture::perf
