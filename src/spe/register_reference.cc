#include "waymark/spe/register_reference.h"

#include "waymark/spe/registers.h"

namespace waymark::spe {

namespace {

/// What each field means (docs/spec/spe.md, section 2).
constexpr RegisterMeaning meanings[] = {
    {"PMSCR_EL1", "Where samples are taken and what their records have, as EL1 asks for it."},
    {"PMSCR_EL1.KE", "1: a profiling exception is taken at EL1 while PSTATE.PM is 0"},
    {"PMSCR_EL1.EE", "profiling exceptions at EL1: 0 off; 3 on"},
    {"PMSCR_EL1.PCT",
     "the counter that timestamps show, while EL1 owns the buffer: 0 virtual; 1 physical; 3 physical "
     "less CNTPOFF_EL2"},
    {"PMSCR_EL1.TS", "1: records have a timestamp, while EL1 owns the buffer"},
    {"PMSCR_EL1.PA", "1: records have physical addresses of data, if PMSCR_EL2.PA allows it"},
    {"PMSCR_EL1.CX", "1: records have CONTEXTIDR_EL1"},
    {"PMSCR_EL1.E1SPE", "1: operations at EL1 are sampled; not used while HCR_EL2.TGE is 1"},
    {"PMSCR_EL1.E0SPE", "1: operations at EL0 are sampled, while HCR_EL2.TGE is 0"},
    {"PMSCR_EL2", "The same as EL2 asks for it."},
    {"PMSCR_EL2.EnVM", "1: the buffer may be given by physical addresses (PMBLIMITR_EL1.nVM)"},
    {"PMSCR_EL2.KE", "1: a profiling exception is taken at EL2 while PSTATE.PM is 0"},
    {"PMSCR_EL2.EE", "profiling exceptions: 0 off; 1 EL1 decides; 2 only the events of EL2; 3 all go to EL2"},
    {"PMSCR_EL2.PCT",
     "the counter that timestamps show: as PMSCR_EL1.PCT; with 1, while EL1 owns the buffer, "
     "PMSCR_EL1.PCT decides"},
    {"PMSCR_EL2.TS", "1: records have a timestamp, while EL2 owns the buffer"},
    {"PMSCR_EL2.PA", "1: physical addresses of data are allowed"},
    {"PMSCR_EL2.CX", "1: records have CONTEXTIDR_EL2"},
    {"PMSCR_EL2.E2SPE", "1: operations at EL2 are sampled"},
    {"PMSCR_EL2.E0HSPE", "1: operations at EL0 are sampled, while HCR_EL2.TGE is 1"},
    {"PMSFCR_EL1", "Which samples are kept. Those that are not kept leave no record: they are not lost."},
    {"PMSFCR_EL1.SIMDm", "1: SIMD operations must match exactly; 0: they are one of the kept types"},
    {"PMSFCR_EL1.FPm", "1: floating-point operations must match exactly; 0: they are one of the kept types"},
    {"PMSFCR_EL1.STm", "1: stores must match exactly; 0: they are one of the kept types"},
    {"PMSFCR_EL1.LDm", "1: loads must match exactly; 0: they are one of the kept types"},
    {"PMSFCR_EL1.Bm", "1: branches must match exactly; 0: they are one of the kept types"},
    {"PMSFCR_EL1.SIMD", "with FT: 1: Advanced SIMD, SVE and SME operations"},
    {"PMSFCR_EL1.FP", "with FT: 1: floating-point operations"},
    {"PMSFCR_EL1.ST", "with FT: 1: stores, vector stores and all atomic operations"},
    {"PMSFCR_EL1.LD", "with FT: 1: loads, vector loads and atomic operations that return a value"},
    {"PMSFCR_EL1.B", "with FT: 1: branches and exception returns"},
    {"PMSFCR_EL1.FDS", "1: filter by data source (PMSDSFR_EL1)"},
    {"PMSFCR_EL1.FnE", "1: filter by events that must not have happened (PMSNEVFR_EL1)"},
    {"PMSFCR_EL1.FL", "1: filter by latency (PMSLATFR_EL1)"},
    {"PMSFCR_EL1.FT", "1: filter by type of operation"},
    {"PMSFCR_EL1.FE", "1: filter by events that must have happened (PMSEVFR_EL1)"},
    {"PMSEVFR_EL1.E",
     "bit n is 1: a sample without event n is dropped. Bits of events that cannot be filtered read as 0"},
    {"PMSNEVFR_EL1.E", "bit n is 1: a sample with event n is dropped"},
    {"PMSLATFR_EL1.MINLAT", "samples whose total latency is less are dropped, in cycles"},
    {"PMSDSFR_EL1.S",
     "bit n is 1: loads whose data source modulo 64 is n are kept; at 0 they are dropped. Other "
     "operations are kept"},
    {"PMSIRR_EL1", "How often a sample is taken."},
    {"PMSIRR_EL1.INTERVAL", "operations between samples, divided by 256; not below what PMSIDR_EL1.Interval says"},
    {"PMSIRR_EL1.RND", "1: a random number is added to each interval, so that loops do not fall into step with it"},
    {"PMSICR_EL1", "Where the count to the next sample stands; write 0 before profiling is turned on."},
    {"PMSICR_EL1.ECOUNT", "the random part, if PMSIDR_EL1.ERnd is 1"},
    {"PMSICR_EL1.COUNT", "operations until the next sample"},
    {"PMSIDR_EL1", "Read-only: what is implemented."},
    {"PMSIDR_EL1.SME", "1: records tell SME operations"},
    {"PMSIDR_EL1.ALTCLK",
     "latencies of some operations count another clock: 0 none; 1 that of the SMCU; 15 defined by "
     "the implementation"},
    {"PMSIDR_EL1.FPF", "1: records of other operations tell floating-point and SIMD"},
    {"PMSIDR_EL1.EFT", "1: the extended type filter of PMSFCR_EL1 is there"},
    {"PMSIDR_EL1.CRR", "1: records of branches tell calls and returns"},
    {"PMSIDR_EL1.PBT", "1: records have the target of the branch before"},
    {"PMSIDR_EL1.Format", "0: the only format of records that is defined"},
    {"PMSIDR_EL1.CountSize", "counters in records: 2 of 12 bits; 3 of 16 bits; both stay at their greatest value"},
    {"PMSIDR_EL1.MaxSize", "the largest record has 2 to the power of this bytes: 6 to 11"},
    {"PMSIDR_EL1.Interval", "least recommended interval: 0 256; 2 512; 3 768; 4 1024; 5 1536; 6 2048; 7 3072; 8 4096"},
    {"PMSIDR_EL1.FDS", "1: the data source filter is there"},
    {"PMSIDR_EL1.FnE", "1: the inverted event filter is there"},
    {"PMSIDR_EL1.ERnd", "1: the random number is added behind the interval; 0: before"},
    {"PMSIDR_EL1.LDS", "1: records of loads have the data source"},
    {"PMSIDR_EL1.ArchInst", "1: instructions are sampled; 0: micro-operations"},
    {"PMSIDR_EL1.FL", "1: the latency filter is there"},
    {"PMSIDR_EL1.FT", "1: the type filter is there"},
    {"PMSIDR_EL1.FE", "1: the event filter is there"},
    {"PMBLIMITR_EL1", "Where the buffer ends, and whether there is one."},
    {"PMBLIMITR_EL1.LIMIT", "first address behind the buffer, in units of 4 KB"},
    {"PMBLIMITR_EL1.nVM", "1: the buffer is given by physical addresses"},
    {"PMBLIMITR_EL1.PMFZ", "1: performance counters freeze when profiling stops"},
    {"PMBLIMITR_EL1.FM", "0: fill the buffer and stop; 2: discard all records"},
    {"PMBLIMITR_EL1.E", "1: the buffer is on; at 0, as after reset, nothing is sampled"},
    {"PMBPTR_EL1.PTR",
     "where the next record goes; set it to the start of the buffer, aligned as PMBIDR_EL1.Align says"},
    {"PMBSR_EL1", "Why the buffer stopped. Write 0 before profiling is turned on: it is unknown after reset."},
    {"PMBSR_EL2", "As PMBSR_EL1, for profiling exceptions taken to EL2."},
    {"PMBSR_EL3", "As PMBSR_EL1, for profiling exceptions taken to EL3."},
    {".MSS2", "of an abort: bit 40 top level; 39 assured only; 38 overlay; 37 dirty bit"},
    {".EC", "why: 0 other (MSS says); 0x1e granule protection check; 0x24 abort of stage 1; 0x25 abort of stage 2"},
    {".DL", "1: the last record is not complete, and PMBPTR_EL1 may not stand behind a record"},
    {".EA", "1: an external abort was seen"},
    {".S", "1: profiling has stopped, and an interrupt is due; nothing is sampled until software writes 0"},
    {".COLL", "1: at least one sample was lost because the one before was not finished"},
    {".MSS", "with EC 0: 1 the buffer is full; 4 the asked size is too large; of an abort: the fault status code"},
    {"PMBMAR_EL1", "Memory attributes of a buffer given by physical addresses."},
    {"PMBMAR_EL1.SH", "shareability"},
    {"PMBMAR_EL1.Attr", "memory type, coded as in MAIR_ELx"},
    {"PMBIDR_EL1", "Read-only: what the buffer can do at this exception level."},
    {"PMBIDR_EL1.MaxBuffSize", "largest buffer: mantissa in bits 8:0, exponent E in bits 13:9; 0: no limit is given"},
    {"PMBIDR_EL1.EA", "external aborts: 0 not described; 1 ignored; 2 SError"},
    {"PMBIDR_EL1.AddrMode", "whether buffers may be given by physical addresses"},
    {"PMBIDR_EL1.F", "1: access flag and dirty state are updated as for other accesses"},
    {"PMBIDR_EL1.P", "1: a higher exception level owns the buffer, so writes here do not count"},
    {"PMBIDR_EL1.Align", "PMBPTR_EL1 must be a multiple of 2 to the power of this: 0 to 11"},
    {"MDCR_EL2", "Only the fields that decide who may profile."},
    {"MDCR_EL2.HPMFZS", "1: the upper performance counters freeze when profiling stops"},
    {"MDCR_EL2.TPMS", "1: accesses of EL1 to the PMS registers trap to EL2"},
    {"MDCR_EL2.E2PB", "0: EL2 owns the buffer and EL1's accesses trap; 2: EL1 owns it, accesses trap; 3: EL1 owns it"},
    {"MDCR_EL3", "Only the fields that decide who may profile."},
    {"MDCR_EL3.EnPMS4", "0: accesses to PMBMAR_EL1 trap to EL3"},
    {"MDCR_EL3.PMSEE", "profiling exceptions: 0 off at EL3; 2 and 3 go to EL3"},
    {"MDCR_EL3.EnPMS3", "0: accesses to PMSDSFR_EL1 trap to EL3"},
    {"MDCR_EL3.EnPMSN", "0: accesses to PMSNEVFR_EL1 trap to EL3"},
    {"MDCR_EL3.NSPB",
     "who owns the buffer: 0 Secure state, accesses trap to EL3; 1 Secure; 2 Non-secure, accesses trap; "
     "3 Non-secure. With NSPBE 1: 2 and 3 Realm"},
    {"MDCR_EL3.NSPBE", "high bit of the owner, see NSPB"},
    {"SCR_EL3", "Only the fields that give the security state below EL3."},
    {"SCR_EL3.NSE", "with NS: 0 Secure or Non-secure; 1 with NS 1: Realm"},
    {"SCR_EL3.EEL2", "1: Secure EL2 is on"},
    {"SCR_EL3.NS", "1: Non-secure state below EL3, or Realm with NSE 1"},
    {"HCR_EL2", "Only the fields that make the hypervisor a host."},
    {"HCR_EL2.E2H", "1: EL2 hosts an operating system"},
    {"HCR_EL2.TGE", "1: EL0 belongs to EL2, so PMSCR_EL2.E0HSPE counts for it"},
    {"PMCR_EL0", "Only the fields that freeze performance counters."},
    {"PMCR_EL0.FZS", "1: they freeze when profiling stops, with PMBLIMITR_EL1.PMFZ"},
    {"PMCR_EL0.FZO", "1: they freeze when one of them overflows"},
    {"PSTATE", "The state of the processing element; no register of the extension."},
    {"PSTATE.SM", "1: streaming mode"},
    {"PSTATE.nRW", "1: AArch32, where nothing is sampled"},
    {"PSTATE.EL", "the exception level"},
};

}  // namespace

UnitReference register_reference() {
    UnitReference out{"Statistical Profiling Extension (SPE)", "spe", "spe", {}};
    const Registers all;
    Registers::for_each(all, [&]<class Register>(const Register&) {
        std::string place = Register::name == Pstate::name ? std::string() : to_text(Register::encoding);
        out.registers.push_back(reference_of<Register>(std::move(place), meanings));
    });
    return out;
}

}  // namespace waymark::spe
