// Two tasks with unequal work: one filters samples, the other sums blocks. Both write user data into the trace at the end of
// each block.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <waymark_dpu.h>

enum { samples = 512, taps = 8, block = 4096 };

static int blocks;
static unsigned filter_calls, checksum_calls;
static short input[samples], output[samples];
static unsigned char bytes[block];

// Straight multiplication and addition: hits in the cache.
__attribute__((noinline)) static int filter(const short* in, short* out)
{
    static const short coefficients[taps] = {3, -9, 21, 49, 49, 21, -9, 3};
    int peak = 0;
    ++filter_calls;
    for (int i = 0; i + taps <= samples; ++i) {
        int sum = 0;
        for (int t = 0; t < taps; ++t) sum += in[i + t] * coefficients[t];
        out[i] = (short)(sum >> 7);
        if (out[i] > peak) peak = out[i];
    }
    return peak;
}

// A step of 64 bytes: each access another line of the cache.
__attribute__((noinline)) static unsigned checksum(const unsigned char* from)
{
    unsigned sum = 0;
    ++checksum_calls;
    for (int start = 0; start < 64; ++start)
        for (int i = start; i < block; i += 64) sum = (sum << 1 ^ sum >> 31) + from[i];
    return sum;
}

static void* filtering(void* unused)
{
    for (int i = 0; i < blocks; ++i) {
        for (int s = 0; s < samples; ++s) input[s] = (short)((s * 37 + i * 11) & 1023);
        waymark_dp_td(0xf1000000u | (unsigned)filter(input, output));
    }
    return unused;
}

static void* summing(void* unused)
{
    for (int i = 0; i < blocks; ++i) {
        for (int b = 0; b < block; ++b) bytes[b] = (unsigned char)(b * 13 + i);
        waymark_dp_td(0xc5000000u | (checksum(bytes) & 0xffffff));
    }
    return unused;
}

int main(int argc, char** argv)
{
    pthread_t threads[2];
    blocks = argc > 1 ? atoi(argv[1]) : 20;
    if (pthread_create(&threads[0], NULL, filtering, NULL) != 0 || pthread_create(&threads[1], NULL, summing, NULL) != 0) {
        perror("pthread_create");
        return 1;
    }
    for (int i = 0; i < 2; ++i) pthread_join(threads[i], NULL);
    // The same calculation once more, to print the written values.
    for (int i = 0; i < blocks; ++i) {
        for (int s = 0; s < samples; ++s) input[s] = (short)((s * 37 + i * 11) & 1023);
        for (int b = 0; b < block; ++b) bytes[b] = (unsigned char)(b * 13 + i);
        printf("wrote 0x%08x\n", 0xf1000000u | (unsigned)filter(input, output));
        printf("wrote 0x%08x\n", 0xc5000000u | (checksum(bytes) & 0xffffff));
    }
    printf("filter was called %u times\nchecksum was called %u times\n", filter_calls, checksum_calls);
    return 0;
}
