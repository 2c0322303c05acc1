/// The parts of QEMU's plugin API, version 1, that are used here. Debian's QEMU 7.2 has no header for it.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
using qemu_plugin_id_t = std::uint64_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_CB_R_REGS, QEMU_PLUGIN_CB_RW_REGS };
enum qemu_plugin_op { QEMU_PLUGIN_INLINE_ADD_U64 };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };
using qemu_plugin_vcpu_udata_cb_t = void (*)(unsigned, void*);
using qemu_plugin_vcpu_mem_cb_t = void (*)(unsigned, std::uint32_t, std::uint64_t, void*);
unsigned qemu_plugin_mem_size_shift(std::uint32_t);
bool qemu_plugin_mem_is_store(std::uint32_t);
struct qemu_plugin_hwaddr;
qemu_plugin_hwaddr* qemu_plugin_get_hwaddr(std::uint32_t, std::uint64_t);
std::uint64_t qemu_plugin_hwaddr_phys_addr(const qemu_plugin_hwaddr*);

std::size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb*);
std::uint64_t qemu_plugin_tb_vaddr(const qemu_plugin_tb*);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb*, std::size_t);
const void* qemu_plugin_insn_data(const qemu_plugin_insn*);
std::size_t qemu_plugin_insn_size(const qemu_plugin_insn*);
std::uint64_t qemu_plugin_insn_vaddr(const qemu_plugin_insn*);
void* qemu_plugin_insn_haddr(const qemu_plugin_insn*);
char* qemu_plugin_insn_disas(const qemu_plugin_insn*);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, qemu_plugin_tb*));
void qemu_plugin_register_vcpu_tb_exec_cb(qemu_plugin_tb*, qemu_plugin_vcpu_udata_cb_t, qemu_plugin_cb_flags, void*);
void qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_insn*, qemu_plugin_vcpu_udata_cb_t, qemu_plugin_cb_flags,
                                            void*);
void qemu_plugin_register_vcpu_insn_exec_inline(qemu_plugin_insn*, qemu_plugin_op, void*, std::uint64_t);
void qemu_plugin_register_vcpu_mem_inline(qemu_plugin_insn*, qemu_plugin_mem_rw, qemu_plugin_op, void*, std::uint64_t);
void qemu_plugin_register_vcpu_mem_cb(qemu_plugin_insn*, qemu_plugin_vcpu_mem_cb_t, qemu_plugin_cb_flags,
                                      qemu_plugin_mem_rw, void*);
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, unsigned));
void qemu_plugin_register_vcpu_exit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, unsigned));
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t,
                                          void (*)(qemu_plugin_id_t, unsigned, std::int64_t, std::uint64_t,
                                                   std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                                                   std::uint64_t, std::uint64_t, std::uint64_t));
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t,
                                              void (*)(qemu_plugin_id_t, unsigned, std::int64_t, std::int64_t));
void qemu_plugin_reset(qemu_plugin_id_t, void (*)(qemu_plugin_id_t));
}
