/* Runs a program, and lets one of its accesses to files below a folder fail, or kills it there.
 *
 * usage: faults FOLDER KIND N REPORT PROGRAM ARGUMENT…
 *
 * KIND kill: SIGKILL before the N-th system call that changes a file or folder. full: from the N-th on, those that need room
 * fail with ENOSPC. forbidden: from the N-th on, those that change a folder fail with EACCES. unreadable: from the N-th on, reads fail with EIO. N from 1; 0: nothing fails. REPORT: a file that gets
 * the number of such calls. The threads of the program count, the programs that it starts do not; the run ends when they
 * have ended. x86-64 only. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>

#ifndef __x86_64__
int main(void) {
    puts("only x86-64 is supported");
    return 77;
}
#else

enum takes { NO_ROOM, ROOM, READS };
enum at { FD, PATH, AT_PATH, AT_PATH_2, SECOND_FD };
static const struct {
    long number;
    enum takes takes;
    enum at at;
} calls[] = {
    {SYS_write, ROOM, FD},          {SYS_pwrite64, ROOM, FD},       {SYS_writev, ROOM, FD},
    {SYS_pwritev, ROOM, FD},        {SYS_sendfile, ROOM, FD},       {SYS_copy_file_range, ROOM, SECOND_FD},
    {SYS_ftruncate, NO_ROOM, FD},   {SYS_fsync, ROOM, FD},          {SYS_fdatasync, ROOM, FD},
    {SYS_fallocate, ROOM, FD},      {SYS_open, ROOM, PATH},         {SYS_openat, ROOM, AT_PATH},
    {SYS_creat, ROOM, PATH},        {SYS_mkdir, ROOM, PATH},        {SYS_mkdirat, ROOM, AT_PATH},
    {SYS_rename, NO_ROOM, PATH},    {SYS_renameat, NO_ROOM, AT_PATH}, {SYS_renameat2, NO_ROOM, AT_PATH},
    {SYS_unlink, NO_ROOM, PATH},    {SYS_unlinkat, NO_ROOM, AT_PATH}, {SYS_rmdir, NO_ROOM, PATH},
    {SYS_linkat, ROOM, AT_PATH_2},  {SYS_symlink, ROOM, AT_PATH},   {SYS_symlinkat, ROOM, AT_PATH_2},
    {SYS_read, READS, FD},          {SYS_pread64, READS, FD},       {SYS_readv, READS, FD},
};
enum { count = sizeof calls / sizeof *calls };

static const char* folder;

static int below(const char* path) { return strncmp(path, folder, strlen(folder)) == 0; }

/* The name that a descriptor's file has or had. */
static int descriptor_below(pid_t thread, long long number) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)thread, (int)number);
    const ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 0) return 0;
    path[n] = 0;
    return below(path);
}

static int path_below(pid_t thread, unsigned long long address, int at) {
    char path[PATH_MAX], link[64];
    size_t n = 0;
    while (n + sizeof(long) < sizeof path) {
        errno = 0;
        const long word = ptrace(PTRACE_PEEKDATA, thread, address + n, 0);
        if (errno != 0) return 0;
        memcpy(path + n, &word, sizeof word);
        if (memchr(&word, 0, sizeof word) != NULL) break;
        n += sizeof word;
    }
    path[sizeof path - 1] = 0;
    if (path[0] == '/') return below(path);
    if (at != AT_FDCWD) return descriptor_below(thread, at);
    char current[PATH_MAX];
    snprintf(link, sizeof link, "/proc/%d/cwd", (int)thread);
    const ssize_t m = readlink(link, current, sizeof current - 2);
    if (m < 0) return 0;
    current[m] = '/';
    current[m + 1] = 0;
    return below(current);
}

static int concerned(pid_t thread, const struct user_regs_struct* r, enum at at) {
    switch (at) {
        case FD: return descriptor_below(thread, (int)r->rdi);
        case SECOND_FD: return descriptor_below(thread, (int)r->rdx);
        case PATH: return path_below(thread, r->rdi, AT_FDCWD);
        case AT_PATH: return path_below(thread, r->rsi, r->orig_rax == SYS_symlink ? AT_FDCWD : (int)r->rdi);
        case AT_PATH_2:
            return r->orig_rax == SYS_symlinkat ? path_below(thread, r->rdx, (int)r->rsi)
                                                : path_below(thread, r->r10, (int)r->rdx);
    }
    return 0;
}

static int makes(const struct user_regs_struct* r) {
    const unsigned long long flags = r->orig_rax == SYS_open ? r->rsi : r->orig_rax == SYS_openat ? r->rdx : O_CREAT;
    return (flags & (O_CREAT | O_TRUNC)) != 0 || (flags & O_TMPFILE) == O_TMPFILE;
}

static void run(char** arguments) {
    struct sock_filter filter[count + 4];
    int n = 0;
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0);
    for (int i = 0; i < count; ++i)
        filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)calls[i].number, (unsigned char)(count - i), 0);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
    struct sock_fprog program = {(unsigned short)n, filter};
    if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) _exit(126);
    raise(SIGSTOP);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(126);
    execvp(arguments[0], arguments);
    _exit(127);
}

int main(int argc, char** argv) {
    if (argc < 6) return 2;
    folder = argv[1];
    const int kill_it = strcmp(argv[2], "kill") == 0, unreadable = strcmp(argv[2], "unreadable") == 0;
    const int forbidden = strcmp(argv[2], "forbidden") == 0;
    const int error = unreadable ? EIO : forbidden ? EACCES : ENOSPC;
    const long fails = atol(argv[3]);
    long done = 0;
    const pid_t child = fork();
    if (child == 0) run(argv + 5);
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFSTOPPED(status)) {
        puts("ptrace is forbidden here");
        return 77;
    }
    ptrace(PTRACE_SETOPTIONS, child, 0, 
           PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_EXITKILL);
    ptrace(PTRACE_CONT, child, 0, 0);
    int ended = 0;
    for (;;) {
        const pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0) break;
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (thread == child) ended = status;
            continue;
        }
        int pass = 0;
        if (status >> 8 == (SIGTRAP | PTRACE_EVENT_SECCOMP << 8)) {
            struct user_regs_struct r;
            ptrace(PTRACE_GETREGS, thread, 0, &r);
            int i = 0;
            while (i < count && calls[i].number != (long)r.orig_rax) ++i;
            const int opens = r.orig_rax == SYS_open || r.orig_rax == SYS_openat;
            const int own = syscall(SYS_tgkill, child, thread, 0) == 0;
            if (own && i < count && (calls[i].takes == READS) == unreadable && (!opens || makes(&r)) &&
                concerned(thread, &r, calls[i].at)) {
                ++done;
                if (kill_it && done == fails) {
                    kill(child, SIGKILL);
                    continue;
                }
                const int of_file = calls[i].at == FD || calls[i].at == SECOND_FD;
                const int can_fail = forbidden ? !of_file : calls[i].takes != NO_ROOM;
                if (!kill_it && fails != 0 && done >= fails && can_fail) {
                    r.orig_rax = (unsigned long long)-1;
                    r.rax = (unsigned long long)-(long long)error;
                    ptrace(PTRACE_SETREGS, thread, 0, &r);
                }
            }
        } else if (status >> 16 == 0 && WSTOPSIG(status) != SIGSTOP && WSTOPSIG(status) != SIGTRAP) {
            pass = WSTOPSIG(status);
        }
        ptrace(PTRACE_CONT, thread, 0, pass);
    }
    FILE* const report = fopen(argv[4], "w");
    if (report == NULL || fprintf(report, "%ld\n", done) < 0 || fclose(report) != 0) return 2;
    if (WIFSIGNALED(ended)) raise(WTERMSIG(ended));
    return WEXITSTATUS(ended);
}
#endif
