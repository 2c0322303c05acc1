/* A filter of packets. Each rule is a function behind a pointer, as a program that loads its rules has them: a compiler
 * does not know which rule is met, how long the way there is, or that most packets are short. A profile does. */
#include <stdio.h>
#include <stdlib.h>

struct packet {
    unsigned kind, length, bytes[16];
};
typedef long (*rule)(const struct packet*);

static long accept_data(const struct packet* p) { return p->bytes[0] + p->bytes[1] * 3L + p->length; }
static long accept_control(const struct packet* p) { return (long)p->bytes[2] << (p->length & 7); }

/* Long, and rarely met. */
static long accept_malformed(const struct packet* p) {
    unsigned long sum = 0;
    for (unsigned i = 0; i < 16; ++i) {
        sum = sum << 5 ^ sum >> 3 ^ p->bytes[i];
        if (sum % 7 == 3) sum += p->kind;
        if (sum % 11 == 5) sum -= p->length;
    }
    return (long)(sum & 0xffff);
}

static rule rules[8];

__attribute__((noinline)) static void load_rules(int first) {
    for (unsigned i = 0; i < 8; ++i) rules[i] = i < 5 ? accept_data : i < 7 ? accept_control : accept_malformed;
    if (first > 1000000000) rules[0] = accept_malformed;
}

/* Nearly all packets are of the first five kinds, and none is longer than it says. */
static long filter(const struct packet* p) {
    if (p->length > 16) {
        fprintf(stderr, "a packet of %u words\n", p->length);
        return accept_malformed(p);
    }
    return rules[p->kind & 7](p);
}

int main(int argc, char** argv) {
    const int packets = argc > 1 ? atoi(argv[1]) : 20000;
    unsigned state = 1;
    long sum = 0;
    struct packet p = {0};
    load_rules(packets);
    for (int i = 0; i < packets; ++i) {
        state = state * 1664525 + 1013904223;
        p.kind = state >> 24 < 250 ? (state >> 20) % 5 : 5 + (state >> 20) % 3;
        p.length = state >> 28;
        p.bytes[state >> 12 & 15] = state;
        sum += filter(&p);
    }
    printf("%ld\n", sum);
    return 0;
}
