/* A function of another file, that is inlined into those of inlines.c. */
static inline __attribute__((always_inline)) unsigned mix(unsigned value, unsigned by) {
    value ^= by;
    if (value & 1) value = value * 2654435761u + by;
    return value ^ (value >> 7);
}
