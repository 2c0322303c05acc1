// make_capture ELF LOG FOLDER: turns the addresses a program executed under `qemu-arm -singlestep -d exec,nochain` into
// a capture folder, as if a Cortex-A15 with a Program Trace Macrocell had run it. The execution is that of QEMU;
// tests/support/trace_writer.h generates the trace; each instruction takes one cycle, since QEMU has no cycle counts.
// The kernel is not traced: a system call shows as its exception, and trace continues after it.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "support/executed_hash.h"
#include "support/trace_writer.h"
#include "waymark/capture/snapshot.h"
#include "waymark/core/result.h"
#include "waymark/coresight/formatter.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/symbols.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/pft/config.h"

namespace waymark {
namespace {

constexpr coresight::TraceId trace_id{0x10};
constexpr std::uint64_t svc_vector = 0xffff0008;  // high vectors, where an ARM kernel has them

/// One executed instruction.
struct Step {
    std::uint64_t address{};
    isa::Isa isa{};
    isa::Instruction instruction;
    bool svc{};
};

/// The addresses of a log: lines `Trace 0: 0x7fa7840000c0 [00000480/00010094/00000000/00000201] _start`.
std::vector<std::uint64_t> read_log(const std::filesystem::path& path) {
    std::vector<std::uint64_t> addresses;
    std::ifstream in(path);
    for (std::string line; std::getline(in, line);) {
        const std::size_t slash = line.find('/');
        if (line.starts_with("Trace ") && slash != std::string::npos)
            addresses.push_back(std::stoull(line.substr(slash + 1), nullptr, 16));
    }
    return addresses;
}

Result<std::vector<Step>> understand(const std::vector<std::uint64_t>& addresses, const image::MemoryMap& memory,
                                     const image::Symbols& symbols) {
    std::vector<Step> steps;
    for (const std::uint64_t address : addresses) {
        Step step;
        step.address = address;
        // The mapping symbols give the instruction set.
        const auto contents = symbols.contents({address});
        if (!contents || *contents == image::Contents::data)
            return Error{Errc::bad_format, "no code at an executed address; does the log belong to the program?"};
        step.isa = *contents == image::Contents::a32 ? isa::Isa::a32 : isa::Isa::t32;
        const isa::Fetched fetched = isa::fetch(memory, {}, {address}, step.isa);
        step.instruction = isa::decode_instr({address}, step.isa, fetched.opcode, fetched.bytes == 4, {});
        step.svc = step.isa == isa::Isa::a32 ? (fetched.opcode & 0x0f000000) == 0x0f000000
                                             : fetched.bytes == 2 && (fetched.opcode & 0xff00) == 0xdf00;
        steps.push_back(step);
    }
    return steps;
}

flow::End end_of(isa::Waypoint waypoint) {
    return waypoint == isa::Waypoint::direct     ? flow::End::direct
           : waypoint == isa::Waypoint::indirect ? flow::End::indirect
           : waypoint == isa::Waypoint::barrier  ? flow::End::barrier
                                                 : flow::End::not_a_waypoint;
}

void trace(const std::vector<Step>& steps, synthetic::TraceWriter& writer) {
    std::uint64_t cycle = 1000;
    flow::Block block;
    std::uint8_t before_last = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const Step& step = steps[i];
        const isa::Instruction& instruction = step.instruction;
        ++cycle;
        if (block.instructions == 0) block = {.start = step.address, .isa = step.isa};
        ++block.instructions;
        block.bytes += instruction.bytes;
        before_last = block.last_bytes;
        block.last_bytes = instruction.bytes;
        const std::uint64_t after = step.address + instruction.bytes;
        const bool last = i + 1 == steps.size();
        const pft::Place next =
            last ? pft::Place{{after}, step.isa} : pft::Place{{steps[i + 1].address}, steps[i + 1].isa};
        if (step.svc) {
            writer.exception({.block = block,
                              .update = true,
                              .number = 10,
                              .vector = {{svc_vector}, isa::Isa::a32},
                              .ns = true,
                              .hyp = false,
                              .cycle = cycle});
            // The kernel, as far as it matters here: one block that returns.
            cycle += 400;
            synthetic::Executed kernel;
            kernel.block = {.start = svc_vector,
                            .bytes = 4,
                            .instructions = 1,
                            .isa = isa::Isa::a32,
                            .end = flow::End::indirect,
                            .last_bytes = 4};
            kernel.to = next;
            kernel.ns = true;
            kernel.cycle = cycle;
            writer.waypoint(kernel);
            block = {};
        } else if (instruction.waypoint != isa::Waypoint::none) {
            synthetic::Executed w;
            block.end = end_of(instruction.waypoint);
            block.target = instruction.target.value;
            w.block = block;
            w.block.flags = static_cast<std::uint8_t>((instruction.link ? flow::Block::link : 0) |
                                                      (instruction.conditional ? flow::Block::conditional : 0) |
                                                      (instruction.function_return ? flow::Block::function_return : 0));
            w.before_last_bytes = before_last;
            w.passed = instruction.waypoint == isa::Waypoint::barrier || next.address.value != after ||
                       (instruction.waypoint == isa::Waypoint::direct && instruction.target.value == after);
            w.to = next;
            w.ns = true;
            cycle += w.passed ? 2 : 0;
            w.cycle = cycle;
            writer.waypoint(w);
            block = {};
        }
    }
    writer.finish();
}

void write_file(const std::filesystem::path& path, Bytes bytes) {
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

Status make(const std::filesystem::path& elf, const std::filesystem::path& log, const std::filesystem::path& folder) {
    image::MemoryMap memory;
    image::Symbols symbols;
    WM_ASSIGN_OR_RETURN(const image::Added added, memory.add_elf(elf));
    WM_ASSIGN_OR_RETURN(const std::size_t taken, symbols.add_elf(elf));
    static_cast<void>(added);
    static_cast<void>(taken);
    WM_ASSIGN_OR_RETURN(const std::vector<Step> steps, understand(read_log(log), memory, symbols));
    if (steps.empty()) return Error{Errc::bad_format, log.string() + ": no executed address"};

    pft::Etmcr cr;
    cr.cycle_accurate = cr.timestamps = cr.return_stack = true;
    pft::Etmccer ccer;
    ccer.one = 1;
    ccer.timestamp_64 = ccer.timestamp_binary = ccer.virtualization = ccer.return_stack = ccer.timestamps = true;
    pft::Etmidr idr;
    idr.implementer = 0x41;
    idr.one_20 = idr.security = idr.thumb_32_as_one = 1;
    idr.family = 0xf;
    idr.major = 3;
    idr.minor = 1;
    idr.revision = 2;
    pft::Etmtraceidr id;
    id.trace_id = trace_id.value;

    // Only the program is traced.
    synthetic::TraceWriterOptions options;
    options.sync_bytes = 1024;
    options.ranges = {{0x10000, 0x20000}};
    synthetic::TraceWriter writer(pft::Config::from_registers(cr, ccer, idr), options);
    // User mode of a core with TrustZone runs Non-secure; an untraced block before the first one sets this state.
    synthetic::Executed before;
    before.block = {.start = svc_vector,
                    .bytes = 4,
                    .instructions = 1,
                    .isa = isa::Isa::a32,
                    .end = flow::End::indirect,
                    .last_bytes = 4};
    before.to = {{steps.front().address}, steps.front().isa};
    before.ns = true;
    before.cycle = 1000;
    writer.waypoint(before);
    trace(steps, writer);

    capture::Capture capture;
    capture.description = "a program that sorts, executed by QEMU, traced by a model";
    const auto reg = [](const auto& r, std::optional<unsigned> number) {
        using Register = std::remove_cvref_t<decltype(r)>;
        return capture::Register{std::string(Register::name), to_value(r), number};
    };
    capture.cores.push_back(
        {.name = "cpu0", .type = "Cortex-A15", .registers = {{"PC", steps.back().address}, {"CPSR", 0x10}}});
    capture.sources.push_back({.name = "PTM_0",
                               .type = "PTM1.1",
                               .core = "cpu0",
                               .core_type = "Cortex-A15",
                               .registers = {reg(cr, 0x00), reg(idr, 0x79), reg(ccer, 0x7a), reg(id, 0x80)}});
    capture.buffers.push_back({.name = "ETB_0",
                               .format = capture::Buffer::Format::coresight,
                               .format_name = "coresight",
                               .files = {folder / "trace.bin"},
                               .sources = {"PTM_0"}});
    std::filesystem::create_directories(folder);
    for (const image::Section& section : memory.sections()) {
        const Bytes bytes = memory.at(section.address, {}).bytes;
        if (bytes.empty()) continue;
        const std::filesystem::path file = folder / ("memory" + std::to_string(section.id) + ".bin");
        write_file(file, bytes);
        capture.dumps.push_back({.core = "cpu0", .file = file, .address = section.address});
    }
    std::vector<std::uint8_t> frames;
    coresight::Formatter formatter(frames);
    formatter.add(trace_id, writer.bytes());
    formatter.flush();
    write_file(folder / "trace.bin", frames);
    WM_RETURN_IF_ERROR(capture::write_snapshot(capture, folder));

    // The truth: QEMU's addresses in order, and the ranges that a decoder must deliver.
    synthetic::ExecutedHash addresses, ranges;
    for (const Step& step : steps) addresses.add(step.address);
    std::uint64_t instructions = 0, range_count = 0;
    for (const synthetic::Element& e : writer.truth()) {
        if (e.kind != synthetic::Kind::range) continue;
        ranges.add(e.block.start);
        ranges.add(e.block.start + e.block.bytes);
        instructions += e.block.instructions;
        ++range_count;
    }
    std::ofstream truth(folder / "truth.txt");
    truth << "# h = 1469598103934665603, then for each number h = (h xor number) * 1099511628211 modulo 2^64\n"
          << "executed " << steps.size() << "\naddress_hash " << addresses.value() << "\nranges " << range_count
          << "\nrange_instructions " << instructions << "\nrange_hash " << ranges.value() << "\n";
    std::printf("%zu instructions, %zu bytes of trace, %zu of frames\n", steps.size(), writer.bytes().size(),
                frames.size());
    return Nothing{};
}

}  // namespace
}  // namespace waymark

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: make_capture ELF LOG FOLDER\n");
        return 2;
    }
    const waymark::Status status = waymark::make(argv[1], argv[2], argv[3]);
    if (status.has_value()) return 0;
    std::fprintf(stderr, "make_capture: %s\n", status.error().message.c_str());
    return 1;
}
