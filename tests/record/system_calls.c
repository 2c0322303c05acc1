// Makes system calls in known numbers: by functions of the C library, and one whose number is not a constant.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char** argv) {
    char text[64];
    struct stat status;
    long sum = 0;
    for (int i = 0; i < 7; ++i) {
        const int file = open(argv[0], O_RDONLY);
        sum += fstat(file, &status);
        for (int j = 0; j < 3; ++j) sum += read(file, text, sizeof text);
        sum += lseek(file, 4, SEEK_SET);
        close(file);
    }
    for (int i = 0; i < 5; ++i) sum += getppid() > 0;
    for (int i = 0; i < 4; ++i) sum += syscall(argc > 9 ? SYS_gettid : SYS_getuid) >= 0;
    kill(getpid(), 0);
    printf("%ld\n", sum);
    return 0;
}
