/// Names of the most common Linux system calls on 32-bit Arm.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>

namespace waymark::record {

[[nodiscard]] inline std::string system_call_name(std::uint32_t number) {
    static constexpr std::array<std::pair<std::uint32_t, const char*>, 78> names{{
        {1, "exit"},
        {2, "fork"},
        {3, "read"},
        {4, "write"},
        {5, "open"},
        {6, "close"},
        {11, "execve"},
        {19, "lseek"},
        {20, "getpid"},
        {33, "access"},
        {37, "kill"},
        {45, "brk"},
        {54, "ioctl"},
        {67, "sigaction"},
        {77, "getrusage"},
        {78, "gettimeofday"},
        {85, "readlink"},
        {91, "munmap"},
        {104, "setitimer"},
        {114, "wait4"},
        {119, "sigreturn"},
        {120, "clone"},
        {122, "uname"},
        {125, "mprotect"},
        {140, "llseek"},
        {142, "select"},
        {144, "msync"},
        {145, "readv"},
        {146, "writev"},
        {158, "sched_yield"},
        {162, "nanosleep"},
        {163, "mremap"},
        {168, "poll"},
        {172, "prctl"},
        {173, "rt_sigreturn"},
        {174, "rt_sigaction"},
        {175, "rt_sigprocmask"},
        {180, "pread64"},
        {181, "pwrite64"},
        {190, "vfork"},
        {191, "getrlimit"},
        {192, "mmap2"},
        {195, "stat64"},
        {197, "fstat64"},
        {199, "getuid32"},
        {217, "getdents64"},
        {220, "madvise"},
        {221, "fcntl64"},
        {224, "gettid"},
        {238, "tkill"},
        {240, "futex"},
        {241, "sched_setaffinity"},
        {242, "sched_getaffinity"},
        {248, "exit_group"},
        {250, "epoll_ctl"},
        {252, "epoll_wait"},
        {256, "set_tid_address"},
        {263, "clock_gettime"},
        {265, "clock_nanosleep"},
        {268, "tgkill"},
        {281, "socket"},
        {290, "sendto"},
        {292, "recvfrom"},
        {322, "openat"},
        {327, "fstatat64"},
        {332, "readlinkat"},
        {338, "set_robust_list"},
        {345, "getcpu"},
        {369, "prlimit64"},
        {384, "getrandom"},
        {397, "statx"},
        {398, "rseq"},
        {403, "clock_gettime64"},
        {407, "clock_nanosleep_time64"},
        {422, "futex_time64"},
        {434, "pidfd_open"},
        {435, "clone3"},
        {439, "faccessat2"},
    }};
    const auto found = std::find_if(names.begin(), names.end(), [&](const auto& n) { return n.first == number; });
    return found == names.end() ? std::to_string(number) : found->second;
}

}  // namespace waymark::record
