/// made_etm4 PROGRAM SETTING…: reads an execution from standard input, and writes the trace that an ETMv4 or ETE with
/// these settings sends for it. The recorder does not make trace of an ETMv4 of an M-profile core, nor Q elements.
///
///     range START END E|N|-            code from START to END; its last instruction's outcome, if it has one
///     exception TYPE BACK HANDLER      with the number of the packet (docs/spec/etm4.md, 9)
///     return                           the last instruction of the preceding range returned from an exception
///
/// Settings: m (of the M profile; else AArch64), ete, cycles=THRESHOLD, timestamps, context-id, return-stack,
/// broadcast, speculation=MAXSPEC, sync=BYTES, q=ONE_IN, seed=N.
#include <charconv>
#include <cstdio>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "waymark/core/numbers.h"
#include "waymark/etm4/model.h"
#include "waymark/image/memory_map.h"

namespace {

using namespace waymark;
using namespace waymark::etm4;

struct Output final : ByteSink {
    void write(Bytes bytes) override { std::fwrite(bytes.data(), 1, bytes.size(), stdout); }
};

class Maker {
public:
    Maker(const image::MemoryMap& code, const ModelConfig& config, bool m, ByteSink& out)
        : code_(code), isa_(m ? isa::Isa::t32 : isa::Isa::a64), m_(m), model_(config, out) {}

    bool take(const std::string& line) {
        std::istringstream in(line);
        std::string what;
        in >> what >> std::hex;
        if (what == "return") {
            returns_ = true;
        } else if (what == "exception") {
            std::uint32_t type = 0;
            std::uint64_t back = 0, handler = 0;
            in >> type >> back >> handler;
            // The value that stands for no address; it belongs to an exception that is chained to the one that ended.
            constexpr std::uint64_t exc_return = 0xff000000, no_address = 0xfffffffe;
            if (m_ && back >= exc_return) back = no_address;
            arrive(back);
            ++handlers_;
            set_context();
            model_.exception({.type = type,
                              .back = isa::Place{{back}, isa_},
                              .handler = isa::Place{{handler}, isa_},
                              .cycle = ++cycle_});
        } else {
            std::uint64_t start = 0, end = 0;
            std::string outcome;
            in >> start >> end >> outcome;
            arrive(start);
            walk(start, end, outcome);
        }
        return !in.fail();
    }
    void finish() { model_.finish(); }

private:
    /// Execution continues here, so the waypoint before is complete.
    void arrive(std::uint64_t at) {
        const bool begins = !begun_;
        if (begins) {
            begun_ = true;
            set_context();
            model_.start({{{at}, isa_}, cycle_});
        }
        if (!waits_) return;
        Retired done = *std::exchange(waits_, std::nullopt);
        if (std::exchange(returns_, false)) {
            done.instruction.exception_return = true;
            --handlers_;
            set_context();
        }
        if (done.passed) done.next = {{at}, isa_};
        model_.retire_block(done);
    }
    void set_context() {
        flow::Context context;
        context.ns = true;
        context.aarch64 = !m_;
        context.context_id = 1234;
        context.el = static_cast<std::uint8_t>(!m_ || handlers_ <= 0 ? 0 : 3);
        model_.set_context(context);
    }
    void walk(std::uint64_t at, std::uint64_t end, const std::string& outcome) {
        while (at < end) {
            const auto i = isa::decode_at(code_, {.ns = true}, {at}, isa_, {});
            if (!i) return;
            ++cycle_;
            const bool last = at + i->bytes >= end;
            if (last && outcome != "-" && i->waypoint != isa::Waypoint::none) {
                waits_ = Retired{.address = {at},
                                 .isa = isa_,
                                 .instruction = *i,
                                 .passed = outcome == "E",
                                 .next = {{at + i->bytes}, isa_},
                                 .cycle = cycle_};
            } else {
                model_.run(i->bytes, cycle_);
            }
            at += i->bytes;
        }
    }

    const image::MemoryMap& code_;
    const isa::Isa isa_;
    const bool m_;
    Model model_;
    std::optional<Retired> waits_{};
    bool begun_ = false, returns_ = false;
    int handlers_ = 0;
    std::uint64_t cycle_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 2) return 2;
    image::MemoryMap code;
    if (!code.add_elf(argv[1])) return 3;
    Config c;
    ModelChoices choices{.timestamp_first = 1};
    unsigned threshold = 0, sync = 1024;
    c.version = 0x42;
    for (int i = 2; i < argc; ++i) {
        const std::string_view setting = argv[i];
        const std::size_t mark = setting.find('=');
        std::uint32_t value = 0;
        if (mark != setting.npos) std::from_chars(setting.data() + mark + 1, setting.data() + setting.size(), value);
        const std::string_view name = setting.substr(0, mark);
        if (name == "m")
            c.profile = CoreProfile::m, c.address_bytes = 4, c.context_id_bytes = c.vmid_bytes = 0;
        else if (name == "ete")
            c.version = 0x50, c.vmid_bytes = 4;
        else if (name == "cycles")
            c.cycle_counting = true, threshold = value;
        else if (name == "timestamps")
            c.timestamps = true;
        else if (name == "context-id")
            c.context_id_trace = true;
        else if (name == "return-stack")
            c.return_stack = true;
        else if (name == "broadcast")
            c.branch_broadcast = true;
        else if (name == "speculation")
            c.max_speculation = value, choices.mispredict_one_in = 16;
        else if (name == "sync")
            sync = value;
        else if (name == "q")
            c.q_elements = true, choices.q_one_in = value;
        else if (name == "seed")
            choices.seed = value;
        else
            return 2;
    }
    c.commit_mode_1 = c.max_speculation == 0;
    ModelConfig config{.registers = tracing_registers(c), .profile = c.profile, .choices = choices};
    config.registers.syncpr.period = sync == 0 ? 0 : static_cast<std::uint8_t>(std::bit_width(sync) - 1);
    if (threshold != 0) config.registers.ccctlr.threshold = static_cast<std::uint16_t>(threshold);
    Output out;
    Maker maker(code, config, c.profile == CoreProfile::m, out);
    for (std::string line; std::getline(std::cin, line);)
        if (!maker.take(line)) return 4;
    maker.finish();
    return 0;
}
