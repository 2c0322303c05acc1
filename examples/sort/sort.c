/* Sorts an array twice by recursive quicksort, comparing through a function pointer. Freestanding: no library. */

typedef int (*Before)(int, int);

int ascending(int a, int b); /* start.S, ARM state */
long write_text(const char* text, unsigned bytes);

enum { count = 24 };
static int values[count];

static int descending(int a, int b) {
    return a > b;
}

static void fill(unsigned seed) {
    for (int i = 0; i < count; ++i) {
        seed = seed * 1103515245u + 12345u;
        values[i] = (int)(seed >> 16) % 1000;
    }
}

static void quicksort(int* first, int* last, Before before) {
    if (last - first < 2) return;
    const int pivot = first[(last - first) / 2];
    int* left = first;
    int* right = last - 1;
    while (left <= right) {
        while (before(*left, pivot)) ++left;
        while (before(pivot, *right)) --right;
        if (left > right) break;
        const int swapped = *left;
        *left++ = *right;
        *right-- = swapped;
    }
    quicksort(first, right + 1, before);
    quicksort(left, last, before);
}

static int sorted(Before before) {
    for (int i = 1; i < count; ++i)
        if (before(values[i], values[i - 1])) return 0;
    return 1;
}

int run(void) {
    fill(1);
    quicksort(values, values + count, ascending);
    if (!sorted(ascending)) return 1;
    write_text("ascending\n", 10);
    quicksort(values, values + count, descending);
    if (!sorted(descending)) return 2;
    write_text("descending\n", 11);
    return 0;
}
