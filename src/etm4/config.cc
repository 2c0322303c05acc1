#include "waymark/etm4/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

namespace waymark::etm4 {
namespace {

// The values of a Cortex-A53, which are assumed if a capture does not have the register.
constexpr std::uint32_t assumed_idr0 = 0x28000ea1, assumed_idr1 = 0x4100f403, assumed_idr2 = 0x00000488;
constexpr std::uint32_t assumed_ete_devarch = 0x47705a13;
constexpr unsigned arch_part = 0xa13;  // TRCDEVARCH.ARCHPART of a trace unit

class ConfigReader {
public:
    ConfigReader(const RegisterValues& registers, CoreProfile profile) : registers_(registers) {
        out_.config.profile = profile;
    }

    ReadConfig read() {
        Config& c = out_.config;
        c.version = version();
        const auto configr = from_value<Trcconfigr>(value("TRCCONFIGR", registers_.configr, 1));
        const auto traceidr = from_value<Trctraceidr>(value("TRCTRACEIDR", registers_.traceidr, 0));
        const auto idr0 = from_value<Trcidr0>(value("TRCIDR0", registers_.idr0, assumed_idr0));
        const auto idr2 = from_value<Trcidr2>(value("TRCIDR2", registers_.idr2, assumed_idr2));
        c.max_speculation = value("TRCIDR8", registers_.idr8, 0);

        c.trace_id = traceidr.trace_id;
        take_programming(configr, idr0);
        take_implementation(configr, idr0);
        take_sizes(configr, idr2);
        take_keys();
        if (!missing_.empty()) out_.notes.insert(out_.notes.begin(), missing());
        return std::move(out_);
    }

private:
    void note(std::string text) { out_.notes.push_back(std::move(text)); }

    std::uint32_t value(const char* name, const std::optional<std::uint32_t>& given, std::uint32_t assumed) {
        if (given) return *given;
        missing_.emplace_back(name, assumed);
        return assumed;
    }

    /// One sentence about all missing registers.
    [[nodiscard]] std::string missing() const {
        if (missing_.size() == 1)
            return fmt::format("{} is missing; assumed {:#x}", missing_.front().first, missing_.front().second);
        std::string names, values;
        for (std::size_t i = 0; i < missing_.size(); ++i) {
            const std::string_view between = i == 0 ? "" : i + 1 == missing_.size() ? " and " : ", ";
            names += fmt::format("{}{}", between, missing_[i].first);
            values += fmt::format("{}{:#x}", between, missing_[i].second);
        }
        return fmt::format("{} are missing; assumed {}", names, values);
    }

    /// Section 1: ARCHVER of TRCDEVARCH decides whether it is an ETE; TRCIDR1 has the version of an ETMv4.
    std::uint8_t version() {
        if (registers_.devarch) {
            const auto devarch = from_value<Trcdevarch>(*registers_.devarch);
            if (devarch.archpart == arch_part && devarch.archver == 5) {
                if (devarch.revision > 3)
                    note(fmt::format("TRCDEVARCH={:#x} is ETE 1.{}, which is not known; read as ETE 1.3",
                                     *registers_.devarch, devarch.revision));
                return static_cast<std::uint8_t>(0x50 + std::min<unsigned>(devarch.revision, 3));
            }
            if (devarch.archpart != arch_part || devarch.archver != 4)
                note(
                    fmt::format("TRCDEVARCH={:#x} is not that of an ETMv4 or ETE (ARCHPART {:#x}, ARCHVER {}); ignored",
                                *registers_.devarch, devarch.archpart, devarch.archver));
            else if (!registers_.idr1)
                return etmv4("TRCDEVARCH", *registers_.devarch, devarch.revision);
        }
        const auto of_devarch = registers_.devarch ? from_value<Trcdevarch>(*registers_.devarch) : Trcdevarch{};
        const std::uint32_t idr1_value = value("TRCIDR1", registers_.idr1, assumed_idr1);
        const auto idr1 = from_value<Trcidr1>(idr1_value);
        if (idr1.archmaj == 15) {
            note(
                fmt::format("TRCIDR1={:#x} leaves the version to TRCDEVARCH, which is missing; assumed {:#x} (ETE 1.0)",
                            idr1_value, assumed_ete_devarch));
            return 0x50;
        }
        if (idr1.archmaj == 4) {
            if (of_devarch.archpart == arch_part && of_devarch.archver == 4 && of_devarch.revision != idr1.archmin)
                note(fmt::format("TRCDEVARCH={:#x} is ETMv4.{}, but TRCIDR1={:#x} is ETMv4.{}; TRCIDR1 was believed",
                                 *registers_.devarch, of_devarch.revision, idr1_value, idr1.archmin));
            return etmv4("TRCIDR1", idr1_value, idr1.archmin);
        }
        note(fmt::format("TRCIDR1={:#x} has major version {}, which is neither ETMv4 nor ETE; read as ETMv4.0",
                         idr1_value, idr1.archmaj));
        return 0x40;
    }
    std::uint8_t etmv4(const char* name, std::uint32_t value, unsigned minor) {
        if (minor > 6)
            note(fmt::format("{}={:#x} is ETMv4.{}, which is not known; read as ETMv4.6", name, value, minor));
        return static_cast<std::uint8_t>(0x40 + std::min(minor, 6U));
    }

    void take_programming(const Trcconfigr& configr, const Trcidr0& idr0) {
        Config& c = out_.config;
        c.context_id_trace = configr.cid;
        c.vmid_trace = configr.vmid;
        c.cycle_counting = configr.cci;
        c.timestamps = configr.ts;
        c.return_stack = configr.rs;
        c.branch_broadcast = configr.bb;
        if (configr.rs && !idr0.retstack)
            note("TRCCONFIGR.RS=1 enables a return stack, but TRCIDR0.RETSTACK=0; read as TRCCONFIGR has it");
        if (configr.bb && !idr0.trcbb)
            note("TRCCONFIGR.BB=1 enables branch broadcast, but TRCIDR0.TRCBB=0; read as TRCCONFIGR has it");
        if (c.ete()) {
            // An ETE has none of these features, even if registers have the bits.
            if (configr.instp0 != 0 || configr.cond != 0 || configr.da || configr.dv)
                note("TRCCONFIGR enables data or conditional trace, which an ETE does not have; ignored");
            return;
        }
        c.p0_loads = (configr.instp0 & 1U) != 0;
        c.p0_stores = (configr.instp0 & 2U) != 0;
        if (configr.instp0 != 0 && idr0.instp0 != 3)
            note(
                fmt::format("TRCCONFIGR.INSTP0={} makes loads or stores P0 instructions, but TRCIDR0.INSTP0={} does "
                            "not support it; read as TRCCONFIGR has it",
                            configr.instp0, idr0.instp0));
        if (idr0.instp0 == 1 || idr0.instp0 == 2)
            note(fmt::format("TRCIDR0.INSTP0={} is reserved; assumed 0 (loads and stores are no P0 instructions)",
                             idr0.instp0));
        if (idr0.trcdata == 1 || idr0.trcdata == 2)
            note(fmt::format("TRCIDR0.TRCDATA={} is reserved; assumed 0 (no data trace)", idr0.trcdata));
        if (configr.cond != 0 && !idr0.trccond)
            note(fmt::format("TRCCONFIGR.COND={} enables conditional trace, but TRCIDR0.TRCCOND=0; treated as off",
                             configr.cond));
        else
            c.conditional = configr.cond;
        if (c.conditional >= 4 && c.conditional <= 6)
            note(fmt::format("TRCCONFIGR.COND={} is reserved; conditional packets are read nevertheless",
                             c.conditional));
        if (c.conditional != 0 && idr0.condtype > 1)
            note(fmt::format("TRCIDR0.CONDTYPE={} is reserved; assumed 0 (results are pass or fail)", idr0.condtype));
        c.data_trace = idr0.trcdata == 3 && configr.instp0 != 0 && (configr.da || configr.dv);
        if ((configr.da || configr.dv) && !c.data_trace)
            note("TRCCONFIGR enables data trace, but TRCIDR0.TRCDATA or TRCCONFIGR.INSTP0 excludes it; treated as off");
    }

    void take_implementation(const Trcconfigr& configr, const Trcidr0& idr0) {
        Config& c = out_.config;
        c.q_elements = configr.qe != 0 && idr0.qsupp != 0;
        if (configr.qe == 2)
            note(fmt::format("TRCCONFIGR.QE=2 is reserved; Q packets are read {}",
                             c.q_elements ? "all the same" : "as damage, since TRCIDR0.QSUPP=0"));
        else if (configr.qe != 0 && !c.q_elements)
            note(fmt::format("TRCCONFIGR.QE={} enables Q elements, but TRCIDR0.QSUPP=0; treated as off", configr.qe));
        c.conditional_apsr = idr0.condtype == 1;
        c.commit_mode_1 = idr0.commopt && idr0.trccci;
        c.transaction_start_p0 = !idr0.commtrans;
        c.timestamp_markers = idr0.tsmark && c.version >= 0x46;
        if (idr0.tsmark && !c.timestamp_markers)
            note(fmt::format(
                "TRCIDR0.TSMARK=1 means that timestamps have markers, which ETMv4.{} does not have; treated as 0",
                c.version & 0xfU));
        if (c.cycle_counting && !idr0.trccci)
            note("TRCCONFIGR.CCI=1 enables cycle counts, but TRCIDR0.TRCCCI=0; read as TRCCONFIGR has it");
        switch (idr0.tssize) {
            case 0: c.timestamp_bits = 0; break;
            case 6: c.timestamp_bits = 48; break;
            case 8: c.timestamp_bits = 64; break;
            default: note(fmt::format("TRCIDR0.TSSIZE={} is reserved; assumed 8 (64-bit timestamps)", idr0.tssize));
        }
        if (c.timestamps && c.timestamp_bits == 0) {
            note("TRCCONFIGR.TS=1 enables timestamps, but TRCIDR0.TSSIZE=0; assumed 8 (64-bit timestamps)");
            c.timestamp_bits = 64;
        }
    }

    void take_sizes(const Trcconfigr& configr, const Trcidr2& idr2) {
        Config& c = out_.config;
        switch (idr2.iasize) {
            case 4: c.address_bytes = 4; break;
            case 8: c.address_bytes = 8; break;
            default: note(fmt::format("TRCIDR2.IASIZE={} is reserved; assumed 8 (64-bit addresses)", idr2.iasize));
        }
        switch (idr2.cidsize) {
            case 0: c.context_id_bytes = 0; break;
            case 4: c.context_id_bytes = 4; break;
            default:
                c.context_id_bytes = 0;
                note(fmt::format("TRCIDR2.CIDSIZE={} is reserved; assumed 0 (no Context ID)", idr2.cidsize));
        }
        switch (idr2.vmidsize) {
            case 0: c.vmid_bytes = 0; break;
            case 1: c.vmid_bytes = 1; break;
            case 2:
            case 4:
                c.vmid_bytes = idr2.vmidsize;
                if (c.version > 0x40) break;
                [[fallthrough]];
            default:
                c.vmid_bytes = 0;
                note(fmt::format("TRCIDR2.VMIDSIZE={} is {}; assumed 0 (no VMID)", idr2.vmidsize,
                                 c.version > 0x40 ? "reserved" : "none that ETMv4.0 has"));
        }
        if (c.context_id_trace && c.context_id_bytes == 0)
            note("TRCCONFIGR.CID=1 enables Context IDs, but TRCIDR2.CIDSIZE gives none");
        if (c.vmid_trace && c.vmid_bytes == 0) note("TRCCONFIGR.VMID=1 enables VMIDs, but TRCIDR2.VMIDSIZE gives none");
        if (idr2.ccsize > 8)
            note(fmt::format("TRCIDR2.CCSIZE={} is reserved; assumed 8 (20-bit cycle counts)", idr2.ccsize));
        c.cycle_count_bits = static_cast<std::uint8_t>(12 + std::min<unsigned>(idr2.ccsize, 8));
        c.wfx_p0 = idr2.wfxmode && c.version >= 0x43;
        // Bit 0 of the field shows whether TRCCONFIGR.VMIDOPT can be written; otherwise bit 1 is its fixed value.
        c.vmid_is_contextidr = (idr2.vmidopt & 1U) != 0 ? configr.vmidopt : (idr2.vmidopt & 2U) != 0;
    }

    /// Settings that do not change the form of packets, but that decoders of data or conditional trace need.
    void take_keys() {
        Config& c = out_.config;
        if (c.data_trace) {
            c.p0_keys = std::max(value("TRCIDR9", registers_.idr9, 1), 1U);
            c.p1_keys = value("TRCIDR10", registers_.idr10, 0);
            c.p1_special_keys = value("TRCIDR11", registers_.idr11, 0);
        }
        if (c.conditional != 0) {
            c.conditional_keys = value("TRCIDR12", registers_.idr12, 1);
            c.conditional_special_keys = value("TRCIDR13", registers_.idr13, 0);
        }
    }

    const RegisterValues& registers_;
    ReadConfig out_;
    std::vector<std::pair<const char*, std::uint32_t>> missing_;  ///< missing registers, and their assumed values
};

}  // namespace

ReadConfig read_config(const RegisterValues& registers, CoreProfile profile) {
    return ConfigReader(registers, profile).read();
}

RegisterValues to_registers(const Config& c) {
    Trcconfigr configr;
    configr.one = true;
    configr.instp0 = static_cast<std::uint8_t>((c.p0_loads ? 1U : 0U) | (c.p0_stores ? 2U : 0U));
    configr.bb = c.branch_broadcast;
    configr.cci = c.cycle_counting;
    configr.cid = c.context_id_trace;
    configr.vmid = c.vmid_trace;
    configr.cond = c.conditional;
    configr.ts = c.timestamps;
    configr.rs = c.return_stack;
    configr.qe = c.q_elements ? 3 : 0;
    configr.vmidopt = c.vmid_is_contextidr;
    configr.da = c.data_trace;

    Trcidr0 idr0;
    idr0.one = true;
    idr0.instp0 = c.p0_loads || c.p0_stores ? 3 : 0;
    idr0.trcdata = c.data_trace ? 3 : 0;
    idr0.trcbb = true;
    idr0.trccond = c.conditional != 0;
    idr0.trccci = c.cycle_counting || c.commit_mode_1;
    idr0.retstack = c.return_stack;
    idr0.condtype = c.conditional_apsr ? 1 : 0;
    idr0.qsupp = c.q_elements ? 3 : 0;
    idr0.ite = c.version >= 0x53;
    idr0.tsmark = c.timestamp_markers;
    idr0.tssize = c.timestamp_bits == 64 ? 8 : c.timestamp_bits == 48 ? 6 : 0;
    idr0.commopt = c.commit_mode_1;
    idr0.commtrans = !c.transaction_start_p0;

    Trcidr1 idr1;
    idr1.designer = 0x41;
    idr1.unused_23_12 = 0xf;  // as in every known unit
    idr1.archmaj = c.ete() ? 15 : 4;
    idr1.archmin = c.ete() ? 15 : c.version & 0xfU;

    Trcidr2 idr2;
    idr2.iasize = c.address_bytes;
    idr2.cidsize = c.context_id_bytes;
    idr2.vmidsize = c.vmid_bytes;
    idr2.ccsize = static_cast<std::uint8_t>(c.cycle_count_bits - 12);
    idr2.wfxmode = c.wfx_p0;
    idr2.vmidopt = c.vmid_is_contextidr ? 2 : 0;

    Trcdevarch devarch;
    devarch.architect = 0x23b;
    devarch.present = true;
    devarch.revision = c.version & 0xfU;
    devarch.archver = c.ete() ? 5 : 4;
    devarch.archpart = arch_part;

    RegisterValues out;
    out.configr = to_value(configr);
    out.traceidr = c.trace_id;
    out.idr0 = to_value(idr0);
    out.idr1 = to_value(idr1);
    out.idr2 = to_value(idr2);
    out.idr8 = c.max_speculation;
    out.idr9 = c.p0_keys;
    out.idr10 = c.p1_keys;
    out.idr11 = c.p1_special_keys;
    out.idr12 = c.conditional_keys;
    out.idr13 = c.conditional_special_keys;
    out.devarch = to_value(devarch);
    return out;
}

std::optional<std::uint8_t> data_trace_id(const Config& config) {
    if (!config.data_trace) return {};
    return static_cast<std::uint8_t>(config.trace_id | 1U);
}

}  // namespace waymark::etm4
