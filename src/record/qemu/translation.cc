#include "translation.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "execution.h"
#include "mapped_code.h"
#include "options.h"
#include "signals.h"
#include "system_log.h"
#include "waymark/record/checks.h"

namespace waymark::record::plugin {

std::deque<Block>* blocks = nullptr;

namespace {

std::uint32_t next_block = 1;

/// A block that is being translated.
class Translation {
public:
    explicit Translation(qemu_plugin_tb* tb)
        : tb_(tb), count_(qemu_plugin_tb_n_insns(tb)), address_(qemu_plugin_tb_vaddr(tb)) {
        // The bytes of the block, without gaps; the reported size of an instruction before the end of a page may be too
        // large.
        thumb_ = (address_ & 3) != 0;
        for (std::size_t i = 0; i < count_; ++i) {
            const std::uint64_t offset = qemu_plugin_insn_vaddr(at(i)) - address_;
            const std::size_t bytes = qemu_plugin_insn_size(at(i));
            code_.resize(offset);
            code_.append(static_cast<const char*>(qemu_plugin_insn_data(at(i))), bytes);
            thumb_ |= !options.a64 && ((offset & 3) != 0 || bytes == 2);
        }
    }

    /// Reports the block and its code.
    void define(std::uint32_t id) const {
        BlockPart part;
        part.id = id;
        part.instructions = static_cast<std::uint32_t>(count_);
        part.address = address_;
        if (count_ > 1) part.second = qemu_plugin_insn_vaddr(at(1));
        char* const text = code_.empty() || options.a64 ? nullptr : qemu_plugin_insn_disas(at(0));
        part.code_bytes = static_cast<std::uint32_t>(code_.size());
        part.text_bytes = text == nullptr ? 0 : static_cast<std::uint32_t>(std::strlen(text));
        part.words = static_cast<std::uint32_t>((sizeof part + part.code_bytes + part.text_bytes + 3) / 4);
        if (!code_.empty() && !options.system_mode) define_map_locked(address_, qemu_plugin_insn_haddr(at(0)));
        if (!code_.empty() && !options.memory_mode) {
            define_page_locked(address_, qemu_plugin_insn_haddr(at(0)));
            const qemu_plugin_insn* const last = at(count_ - 1);
            if (((qemu_plugin_insn_vaddr(last) ^ address_) & ~std::uint64_t{page_bytes - 1}) != 0)
                define_page_locked(qemu_plugin_insn_vaddr(last), qemu_plugin_insn_haddr(last));
        }
        append(&part, sizeof part, code_.data(), code_.size(), text, part.text_bytes);
        std::free(text);
    }

    /// Sets the members of the block that callbacks need.
    void describe(Block& block) const {
        block.address = address_;
        block.end = address_ + code_.size();
        block.watched = std::any_of(options.watched->begin(), options.watched->end(), [&](const Watched& w) {
            return block.address >= w.first && block.address < w.end;
        });
        if (is_a64_system() && count_ != 0) {
            const A64Register written = a64_register_written(word_at(count_ - 1));
            if (options.memory_mode || !is_of_profiling_only(written)) block.written = written;
            block.source = static_cast<std::uint8_t>(a64_register_source(word_at(count_ - 1)));
        }
        if (options.signal_folder != nullptr) {
            // A block without instructions is a helper of the kernel, which QEMU emulates.
            if (count_ != 0) see_code(address_, qemu_plugin_insn_haddr(at(0)));
            block.is_handler = is_handler_locked(block.address);
        }
    }

    /// Requests the callbacks for each access to memory.
    void report_accesses() const {
        for (std::size_t i = 0; i < count_ && i <= words::access_index_mask; ++i)
            on_accesses(i,
                        options.sized     ? on_sized_memory
                        : is_a64_system() ? on_system_memory
                                          : on_memory,
                        reinterpret_cast<void*>(
                            std::uintptr_t{words::access | static_cast<std::uint32_t>(i) << words::access_index_bit}));
    }

    /// Requests the callback on entry.
    void report_entry(qemu_plugin_vcpu_udata_cb_t on_entry, Block& block) const {
        qemu_plugin_register_vcpu_tb_exec_cb(tb_, on_entry, QEMU_PLUGIN_CB_NO_REGS, &block);
    }

    /// Requests the checks that show how far the block came (plugin.cc, exactness).
    void report_checks(Block& block) {
        // Without a 16-bit instruction as proof, these instructions may still be Thumb. Then checks for both
        // interpretations are installed, and the recorder ignores a cut at an instruction that cannot cause one.
        bool unsure = !thumb_ && !options.a64;
        for (std::size_t i = 0; i < count_ && unsure; ++i) unsure = is_thumb_32_word(word_at(i));
        std::size_t last_check = 0;
        for (std::size_t i = 0; i < count_; ++i) {
            const std::uint32_t word = word_at(i);
            if ((options.a64 ? may_be_atomic_a64(word) : may_be_atomic(word, thumb_)) ||
                (unsure && may_be_atomic(word, true)))
                on_accesses(i, on_atomic_access);
            const bool stops = options.a64 ? may_stop_a64(word)
                               : thumb_    ? may_stop_thumb(word)
                                           : may_stop_arm(word) || (unsure && may_stop_thumb(word));
            if (!stops) continue;
            last_check = i;
            if (block.first_check == Block::no_check) {
                block.first_check = static_cast<std::uint32_t>(i);
                block.reached_at_entry = 0;
                continue;
            }
            check_at(i, static_cast<std::uint32_t>(i));
        }
        if (block.first_check == Block::no_check) return;
        if (last_check + 1 < count_) return check_at(last_check + 1, completed);
        const std::uint32_t word = word_at(last_check);
        block.last_check = static_cast<std::uint32_t>(last_check);
        // A64 cannot load the pc, so the next instruction follows such an instruction.
        block.last_accesses = options.a64 ? 0xffffffff : unsure ? 1 : accesses_of(word, thumb_);
        block.end = qemu_plugin_insn_vaddr(at(last_check)) + (thumb_ && !is_thumb_32_word(word) ? 2 : 4);
        count_accesses(last_check);
    }

private:
    [[nodiscard]] qemu_plugin_insn* at(std::size_t i) const { return qemu_plugin_tb_get_insn(tb_, i); }
    [[nodiscard]] std::uint32_t word_at(std::size_t i) const {
        const std::size_t offset = qemu_plugin_insn_vaddr(at(i)) - address_;
        std::uint32_t word = 0;
        if (offset < code_.size())
            std::memcpy(&word, code_.data() + offset, std::min<std::size_t>(4, code_.size() - offset));
        return word;
    }
    void on_accesses(std::size_t i, qemu_plugin_vcpu_mem_cb_t callback, void* data = nullptr) const {
        qemu_plugin_register_vcpu_mem_cb(at(i), callback, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, data);
    }
    /// Everything before instruction `i` completed: the block came as far as `reached`.
    void check_at(std::size_t i, std::uint32_t reached) {
        if (adds_)
            qemu_plugin_register_vcpu_insn_exec_inline(at(i), QEMU_PLUGIN_INLINE_ADD_U64, &vcpus[0].reached,
                                                       std::uint64_t{reached} - reached_);
        else
            qemu_plugin_register_vcpu_insn_exec_cb(at(i), on_check, QEMU_PLUGIN_CB_NO_REGS,
                                                   reinterpret_cast<void*>(std::uintptr_t{reached}));
        reached_ = reached;
    }
    /// Counts the accesses of instruction `i`.
    void count_accesses(std::size_t i) const {
        if (adds_)
            qemu_plugin_register_vcpu_mem_inline(at(i), QEMU_PLUGIN_MEM_RW, QEMU_PLUGIN_INLINE_ADD_U64,
                                                 &vcpus[0].accesses, 1);
        else
            on_accesses(i, on_access);
    }

    qemu_plugin_tb* tb_;
    std::size_t count_;
    std::uint64_t address_;
    std::string code_;
    bool thumb_ = false;
    const bool adds_ = only_one;  ///< checks are additions
    std::uint32_t reached_ = 0;   ///< position of the previous check
};

}  // namespace

void on_translate(qemu_plugin_id_t, qemu_plugin_tb* tb) {
    if (detached) return;
    const std::lock_guard held(lock);
    if (next_block > words::max_block) return;
    Translation translation(tb);
    Block& block = blocks->emplace_back();
    block.id = next_block++;
    translation.define(block.id);
    translation.describe(block);
    if (options.memory_mode) {
        if (!options.sized) translation.report_entry(is_a64_system() ? on_a64_system_block : on_block, block);
        translation.report_accesses();
        if (!options.sized) return;
    }
    translation.report_entry(is_a64_system() ? on_a64_system_block
                             : block.watched ? on_watched_block
                             : options.exact ? on_exact_block
                                             : on_block,
                             block);
    if (options.exact) translation.report_checks(block);
}

}  // namespace waymark::record::plugin
