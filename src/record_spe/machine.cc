#include "waymark/record_spe/machine.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>

#include "waymark/spe/model.h"

namespace waymark::record {

namespace {

/// Data source codes of the common table (docs/spec/spe.md, section 4.7).
constexpr std::uint16_t from_l1 = 0x0, from_l2 = 0x8, from_peer = 0x9, from_system_cache = 0xb, from_peer_cluster = 0xc,
                        from_memory = 0xe;

std::uint32_t lines(const MachineModel& model, const MachineModel::Cache& cache) {
    return static_cast<std::uint32_t>(std::uint64_t{cache.kib} * 1024 / model.line_bytes);
}

Status set_all(MachineModel& model, const std::string& prefix, const nlohmann::json& object) {
    for (const auto& [name, value] : object.items()) {
        const std::string full = prefix + name;
        if (value.is_object()) {
            WM_RETURN_IF_ERROR(set_all(model, full + ".", value));
        } else if (value.is_number_unsigned()) {
            WM_RETURN_IF_ERROR(set(model, full, value.get<std::uint64_t>()));
        } else {
            return Error{Errc::usage, fmt::format("{}: expected a number of 0 or more, found {}", full, value.dump())};
        }
    }
    return Nothing{};
}

}  // namespace

Status set(MachineModel& model, std::string_view name, std::uint64_t value) {
    bool found = false, fits = true;
    MachineModel::for_each(model, [&](std::string_view each, auto& number, const char*) {
        if (each != name) return;
        found = true;
        fits = value <= std::numeric_limits<std::remove_reference_t<decltype(number)>>::max();
        if (fits) number = static_cast<std::remove_reference_t<decltype(number)>>(value);
    });
    if (!found)
        return Error{Errc::usage,
                     fmt::format("{} is not a number of the modelled machine; --machine-help lists them", name)};
    if (!fits) return Error{Errc::usage, fmt::format("{} = {} is too large", name, value)};
    return Nothing{};
}

Status set_from_json(MachineModel& model, const std::string& json) {
    const auto object = nlohmann::json::parse(json, nullptr, false);
    if (!object.is_object())
        return Error{Errc::usage,
                     "expected a JSON object with numbers of the modelled machine; --machine-help lists them"};
    return set_all(model, "", object);
}

std::string to_text(const MachineModel& model) {
    std::string text;
    MachineModel::for_each(model, [&](std::string_view name, const auto& number, std::string_view what) {
        text += name == "midr" ? fmt::format("{:24} {:<#12x} {}\n", name, number, what)
                               : fmt::format("{:24} {:<12}{}{}\n", name, number, what.empty() ? "" : " ", what);
    });
    return text;
}

Status check(const MachineModel& m) {
    const auto wrong = [](std::string message) { return Error{Errc::usage, std::move(message)}; };
    const auto power = [&](std::string_view name, std::uint64_t value, std::uint64_t least,
                           std::uint64_t most) -> Status {
        if (std::has_single_bit(value) && value >= least && value <= most) return Nothing{};
        return wrong(fmt::format("{} = {}: a power of two from {} to {}", name, value, least, most));
    };
    const auto range = [&](std::string_view name, std::uint64_t value, std::uint64_t least,
                           std::uint64_t most) -> Status {
        if (value >= least && value <= most) return Nothing{};
        return wrong(fmt::format("{} = {}: from {} to {}", name, value, least, most));
    };
    WM_RETURN_IF_ERROR(range("cpus", m.cpus, 1, 1024));
    WM_RETURN_IF_ERROR(range("cpus_per_cluster", m.cpus_per_cluster, 1, 1024));
    WM_RETURN_IF_ERROR(range("midr", m.midr, 1, 0xffffffff));
    WM_RETURN_IF_ERROR(range("hz", m.hz, 1'000'000, 100'000'000'000));
    WM_RETURN_IF_ERROR(range("counter_hz", m.counter_hz, 1'000'000, 4'000'000'000));
    WM_RETURN_IF_ERROR(range("dispatch_width", m.dispatch_width, 1, 64));
    WM_RETURN_IF_ERROR(range("window", m.window, 1, 65536));
    WM_RETURN_IF_ERROR(power("line_bytes", m.line_bytes, 16, 4096));
    WM_RETURN_IF_ERROR(power("page_bytes", m.page_bytes, 4096, 1U << 30));
    for (const auto& [name, c] : {std::pair{"l1d", m.l1d}, {"l2", m.l2}, {"llc", m.llc}}) {
        WM_RETURN_IF_ERROR(range(fmt::format("{}.kib", name), c.kib, 1, 1U << 20));
        WM_RETURN_IF_ERROR(range(fmt::format("{}.ways", name), c.ways, 1, 64));
        if (lines(m, c) % c.ways != 0 || !std::has_single_bit(lines(m, c) / c.ways))
            return wrong(fmt::format("{}: {} KiB in {} ways of {} bytes give {} sets; a power of two is needed", name,
                                     c.kib, c.ways, m.line_bytes, lines(m, c) / c.ways));
    }
    for (const auto& [name, t] : {std::pair{"dtlb", m.dtlb}, {"l2_tlb", m.l2_tlb}}) {
        WM_RETURN_IF_ERROR(range(fmt::format("{}.entries", name), t.entries, 1, 1U << 20));
        WM_RETURN_IF_ERROR(range(fmt::format("{}.ways", name), t.ways, 1, 1024));
        if (t.entries % t.ways != 0 || !std::has_single_bit(t.entries / t.ways))
            return wrong(
                fmt::format("{}: {} entries in {} ways give no power of two of sets", name, t.entries, t.ways));
    }
    WM_RETURN_IF_ERROR(range("predictor_bits", m.predictor_bits, 1, 24));
    WM_RETURN_IF_ERROR(range("history_bits", m.history_bits, 0, 32));
    WM_RETURN_IF_ERROR(range("targets_bits", m.targets_bits, 1, 24));
    WM_RETURN_IF_ERROR(range("return_stack", m.return_stack, 1, 4096));
    Status checked = Nothing{};
    MachineModel::for_each(m, [&](std::string_view name, const auto& number, const char*) {
        const bool is_time = name.ends_with("cycles") || name.ends_with(".issue") || name.ends_with(".execute");
        if (is_time && checked) checked = range(name, number, 0, 1'000'000);
    });
    return checked;
}

// ---- the machine

MachineSimulation::Cpu::Cpu(const MachineModel& m)
    : l1d(lines(m, m.l1d), m.l1d.ways),
      l2(lines(m, m.l2), m.l2.ways),
      dtlb(m.dtlb.entries, m.dtlb.ways),
      l2_tlb(m.l2_tlb.entries, m.l2_tlb.ways),
      counters(std::size_t{1} << m.predictor_bits, 1),
      targets(std::size_t{1} << m.targets_bits),
      returns(m.return_stack) {}

MachineSimulation::MachineSimulation(const MachineModel& model)
    : model_(model),
      llc_(lines(model, model.llc), model.llc.ways),
      line_bits_(static_cast<unsigned>(std::countr_zero(model.line_bytes))),
      page_bits_(static_cast<unsigned>(std::countr_zero(model.page_bytes))),
      stores_are_short_(model.execute[static_cast<std::size_t>(isa::A64Work::memory)] <= model.l1d.cycles) {
    for (std::uint32_t i = 0; i < model.cpus; ++i) cpus_.emplace_back(model);
}

void MachineSimulation::wait(std::uint32_t cpu, std::uint64_t cycle) {
    cpus_[cpu].slots = std::max(cpus_[cpu].slots, cycle * model_.dispatch_width);
}

void MachineSimulation::full_window(Cpu& c) {
    while (!c.waiting.empty() && c.operations >= c.waiting.front().operation) {
        // The result is the same as if each operation had been dispatched alone: operations after the full window come
        // after the wait.
        const std::uint64_t behind = c.operations - c.waiting.front().operation;
        c.slots = std::max(c.slots - behind, c.waiting.front().slots) + behind;
        c.waiting.pop_front();
    }
}

std::uint32_t MachineSimulation::translate(Cpu& c, std::uint64_t page, std::uint64_t& events) {
    events |= spe::event::tlb_access;
    if (page == c.last_page) return 0;
    c.last_page = page;
    if (c.dtlb.find(page) != nullptr) return 0;
    c.dtlb.insert(page, 1);
    if (c.l2_tlb.find(page) != nullptr) return model_.l2_tlb_cycles;
    c.l2_tlb.insert(page, 1);
    events |= spe::event::tlb_walk;
    return model_.walk_cycles;
}

/// Takes a line from the other CPUs: a store takes the line itself, a load a copy. `found`: one CPU had it exclusively.
void MachineSimulation::take_from_peers(std::uint32_t cpu, std::uint64_t line, bool all, Accessed& to, bool& found,
                                        bool& sharers) {
    for (std::uint32_t other = 0; other < cpus_.size(); ++other) {
        Cpu& peer = cpus_[other];
        if (other == cpu || !peer.used) continue;
        std::uint8_t* const held = peer.l2.peek(line);
        if (held == nullptr) continue;
        if (*held == exclusive || *held == modified) {
            found = true;
            to.events |= spe::event::snooped | (*held == modified ? spe::event::data_modified : 0);
            const bool near = other / model_.cpus_per_cluster == cpu / model_.cpus_per_cluster;
            to.source = near ? from_peer : from_peer_cluster;
            to.cycles = near ? model_.peer_cycles : model_.peer_cluster_cycles;
        } else {
            sharers = true;
        }
        *held = all ? invalid : shared;
        if (std::uint8_t* const first = peer.l1d.peek(line); first != nullptr) *first = *held;
    }
}

void MachineSimulation::line(std::uint32_t cpu, std::uint64_t line, Kind kind, Accessed& to) {
    Cpu& c = cpus_[cpu];
    const bool writes = kind != Kind::load;
    to.events |= spe::event::l1d_access;
    if (std::uint8_t* const state = c.l1d.find(line); state != nullptr) {
        to.cycles = model_.l1d.cycles;
        to.source = from_l1;
        if (!writes || *state == modified) return;
        bool found = false, sharers = false;
        if (*state == shared) {
            take_from_peers(cpu, line, true, to, found, sharers);
            // The data was in this cache; the time is spent until the others give up their copies.
            if (sharers) to.cycles = model_.peer_cycles;
            to.from_peers = found || sharers;
        }
        *state = modified;
        if (std::uint8_t* const below = c.l2.peek(line); below != nullptr) *below = modified;
        return;
    }
    to.events |= spe::event::l1d_refill | spe::event::l2d_access;
    std::uint8_t* const second = c.l2.find(line);
    std::uint8_t state = second == nullptr ? std::uint8_t{invalid} : *second;
    bool found = false, sharers = false;
    if (second != nullptr) {
        to.cycles = model_.l2.cycles;
        to.source = from_l2;
        if (writes && state == shared) {
            take_from_peers(cpu, line, true, to, found, sharers);
            if (sharers) to.cycles = model_.peer_cycles;
            to.from_peers = found || sharers;
        }
        if (writes) *second = state = modified;
    } else {
        to.events |= spe::event::l2d_miss | spe::event::llc_access;
        take_from_peers(cpu, line, writes, to, found, sharers);
        to.from_peers = found;
        if (!found) {
            if (llc_.find(line) != nullptr) {
                to.cycles = model_.llc.cycles;
                to.source = from_system_cache;
            } else {
                to.events |= spe::event::llc_miss;
                to.cycles = model_.memory_cycles;
                to.source = from_memory;
                llc_.insert(line, 1);
            }
        }
        state = writes ? modified : found || sharers ? shared : exclusive;
        const SetAssociative::Evicted evicted = c.l2.insert(line, state);
        if (evicted.state != 0) {
            if (std::uint8_t* const first = c.l1d.peek(evicted.tag); first != nullptr) *first = invalid;
            if (llc_.find(evicted.tag) == nullptr) llc_.insert(evicted.tag, 1);
        }
    }
    c.l1d.insert(line, state);
}

Accessed MachineSimulation::access(std::uint32_t cpu, Address address, std::uint32_t bytes, Kind kind) {
    Cpu& c = cpus_[cpu];
    c.used = true;
    Accessed to;
    const std::uint64_t last = address.value + (bytes == 0 ? 0 : bytes - 1);
    to.translation = translate(c, address.value >> page_bits_, to.events);
    if (address.value >> page_bits_ != last >> page_bits_)
        to.translation += translate(c, last >> page_bits_, to.events);
    line(cpu, address.value >> line_bits_, kind, to);
    if (address.value >> line_bits_ != last >> line_bits_) {
        Accessed second;
        for (std::uint64_t l = (address.value >> line_bits_) + 1; l <= last >> line_bits_; ++l)
            line(cpu, l, kind, second);
        to.events |= second.events | spe::event::misaligned;
        to.from_peers |= second.from_peers;
        if (second.cycles > to.cycles) {
            to.cycles = second.cycles;
            to.source = second.source;
        }
        to.cycles += model_.split_cycles;
    }
    to.cycles += to.translation;
    // Effects on the window: a store's own latency ends when its address is known. But if another CPU has the line,
    // later operations wait until it arrives.
    const std::uint32_t from_peers = to.from_peers ? to.cycles : 0;
    if (kind == Kind::store) {
        // A store completes when its address is known; the caches receive it later.
        to.cycles = model_.execute[static_cast<std::size_t>(isa::A64Work::memory)] + to.translation;
        constexpr std::uint64_t known = spe::event::l1d_access | spe::event::l1d_refill | spe::event::tlb_access |
                                        spe::event::tlb_walk | spe::event::misaligned;
        to.events &= known;
    }
    if (const std::uint32_t waits = std::max(to.cycles, from_peers); waits > model_.l1d.cycles) {
        const std::uint32_t issue = model_.issue[static_cast<std::size_t>(isa::A64Work::memory)];
        c.waiting.push_back(
            {c.operations + model_.window, c.slots + std::uint64_t{waits + issue} * model_.dispatch_width});
    }
    return to;
}

bool MachineSimulation::branch(std::uint32_t cpu, Address pc, const isa::A64Instruction& instruction, bool taken,
                               Address next) {
    Cpu& c = cpus_[cpu];
    const std::uint64_t place = pc.value >> 2;
    bool wrong = false;
    if (instruction.function_return) {
        wrong = c.calls == 0 || c.returns[--c.calls % c.returns.size()] != next.value;
    } else if (instruction.indirect) {
        std::uint64_t& target = c.targets[(place ^ c.history) & (c.targets.size() - 1)];
        wrong = target != next.value;
        target = next.value;
    } else if (instruction.conditional) {
        std::uint8_t& counter = c.counters[(place ^ c.history) & (c.counters.size() - 1)];
        wrong = (counter >= 2) != taken;
        counter = static_cast<std::uint8_t>(taken ? std::min(counter + 1, 3) : std::max(counter - 1, 0));
        c.history = (c.history << 1 | (taken ? 1 : 0)) & ((std::uint64_t{1} << model_.history_bits) - 1);
    }
    if (instruction.link) c.returns[c.calls++ % c.returns.size()] = pc.value + 4;
    if (wrong) {
        const auto work = static_cast<std::size_t>(isa::A64Work::branch);
        c.slots +=
            std::uint64_t{model_.issue[work] + model_.execute[work] + model_.mispredict_cycles} * model_.dispatch_width;
    }
    return wrong;
}

Address MachineSimulation::physical(Address address) {
    constexpr std::uint64_t first_frame = 0x8000'0000;
    const std::uint64_t frame = frames_.try_emplace(address.value >> page_bits_, frames_.size()).first->second;
    return {first_frame + (frame << page_bits_) + (address.value & (model_.page_bytes - 1))};
}

}  // namespace waymark::record
