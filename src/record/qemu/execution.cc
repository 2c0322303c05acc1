#include "execution.h"

#include "signals.h"
#include "vcpu.h"

namespace waymark::record::plugin {

void on_block(unsigned vcpu, void* data) {
    Vcpu& v = vcpus[vcpu];
    const auto* block = static_cast<const Block*>(data);
    if (block->is_handler.load(std::memory_order_relaxed)) [[unlikely]] {
        enter_handler(v, block);
        return;
    }
    put(v, block->id);
}

namespace {

/// on_exact_block() for blocks that need more work than recording a word.
[[gnu::noinline]] void on_unusual_block(Vcpu& v, const Block* block) {
    if (block->is_handler.load(std::memory_order_relaxed)) {
        enter_handler(v, block);
        return;
    }
    settle(v, block->address);
    enter(v, block);
}

}  // namespace

void on_exact_block(unsigned vcpu, void* data) {
    Vcpu& v = vcpus[vcpu];
    const auto* block = static_cast<const Block*>(data);
    if (v.reached != completed || v.at == v.end || block->is_handler.load(std::memory_order_relaxed)) [[unlikely]] {
        on_unusual_block(v, block);
        return;
    }
    *v.at++ = block->id;
    opened(v, block);
}

void on_check(unsigned vcpu, void* data) {
    vcpus[vcpu].reached = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(data));
}
void on_access(unsigned vcpu, std::uint32_t, std::uint64_t, void*) { ++vcpus[vcpu].accesses; }
void on_atomic_access(unsigned, std::uint32_t, std::uint64_t, void*) {}

void on_memory(unsigned vcpu, std::uint32_t, std::uint64_t address, void* data) {
    Vcpu& v = vcpus[vcpu];
    if (v.end - v.at < 2) [[unlikely]] {
        if (detached) return;
        refill(v);
    }
    const auto high = static_cast<std::uint32_t>(address >> 32) & words::access_high_mask;
    v.at[0] = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(data)) | high;
    v.at[1] = static_cast<std::uint32_t>(address);
    v.at += 2;
}

void on_system_memory(unsigned vcpu, std::uint32_t info, std::uint64_t address, void* data) {
    Vcpu& v = vcpus[vcpu];
    if (v.pages == nullptr) v.pages = new Vcpu::Page[Vcpu::known_pages];
    constexpr unsigned page_bits = 12;
    const std::uint64_t page = address >> page_bits;
    const std::uint64_t physical = qemu_plugin_hwaddr_phys_addr(qemu_plugin_get_hwaddr(info, address)) >> page_bits;
    Vcpu::Page& known = v.pages[page % Vcpu::known_pages];
    if (known.page != page || known.physical != physical) [[unlikely]] {
        known = {page, physical};
        put(v, words::page);
        put_wide(v, page);
        put_wide(v, physical);
    }
    on_memory(vcpu, info, address, data);
}

void on_sized_memory(unsigned vcpu, std::uint32_t info, std::uint64_t address, void* data) {
    const std::uint64_t size = qemu_plugin_mem_size_shift(info) << words::access_size_bit;
    const std::uint64_t store = qemu_plugin_mem_is_store(info) ? words::access_store : 0;
    on_memory(vcpu, info, (address & 0xffffffff) | (size | store) << 32, data);
}

}  // namespace waymark::record::plugin
