// A program with C++ names and inlined calls whose branches clang weighs, for tests/exports/autofdo_test.py.
extern "C" int printf(const char*, ...);
namespace shapes {
__attribute__((noinline)) int choose(int slot, int round) {
    if (slot > 1000) printf("no slot has %d\n", slot);  // never runs
    return (slot + round) % 5;
}
struct Shape {
    int kind, size;
};
template <typename T>
T area(const T& of, int kind, int size) {
    T sum = of;
    for (int i = 0; i < size; ++i) {
        if (kind == 0)
            sum += i;
        else if (kind == 1)
            sum += i * i;
        else
            sum ^= i;
        if (sum % 7 == 3) sum += size;
    }
    return sum;
}
class Table {
public:
    Table() { slots[63] = 92; }
    void put(int key) {
        for (int i = 0; i < 64; ++i)
            if (slots[(key + i) % 64] == 0) {
                slots[(key + i) % 64] = key;
                return;
            } else if (slots[(key + i) % 64] == key) {
                ++twice;
                return;
            }
    }
    __attribute__((noinline)) long operator()(int round);
    int slots[64] = {}, twice = 0;
};
long Table::operator()(int round) {
    long out = 0;
    for (int i = 0; i < 64; ++i) {
        if (slots[i] == 0) continue;
        switch (choose(slots[i], round)) {
            case 0: out += area<long>(1, 0, i); break;
            case 1: out += area<long>(2, 1, i); break;
            case 2: out -= area<int>(3, 2, i); break;
            default: ++out;
        }
    }
    return out;
}
}  // namespace shapes
int main() {
    shapes::Table table;
    for (int i = 1; i < 300; ++i) table.put(i * 37 % 91 + 1);
    long out = 0;
    for (int round = 0; round < 50; ++round) out += table(round);
    printf("%ld\n", out);
}
