// Virtual calls, exceptions thrown through ten frames, and threads, as in typical C++ programs. See README.md.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

struct Shape {
    virtual ~Shape() = default;
    [[nodiscard]] virtual std::uint32_t area() const = 0;
};
struct Square final : Shape {
    explicit Square(std::uint32_t s) : side(s) {}
    [[nodiscard]] __attribute__((noinline)) std::uint32_t area() const override { return side * side; }
    std::uint32_t side;
};
struct Rectangle final : Shape {
    Rectangle(std::uint32_t a, std::uint32_t b) : width(a), height(b) {}
    [[nodiscard]] __attribute__((noinline)) std::uint32_t area() const override { return width * height; }
    std::uint32_t width, height;
};

/// Throws from the tenth frame.
__attribute__((noinline)) std::uint32_t descend(std::uint32_t depth, std::uint32_t value) {
    if (depth == 0) throw std::runtime_error("value " + std::to_string(value));
    return descend(depth - 1, value) + 1;
}

__attribute__((noinline)) bool survives(std::uint32_t value) {
    try {
        return descend(10, value) == 0;
    } catch (const std::runtime_error&) {
        return true;
    }
}

__attribute__((noinline)) std::uint32_t sum_of(const std::vector<std::unique_ptr<Shape>>& shapes) {
    std::uint32_t sum = 0;
    for (const auto& shape : shapes) sum += shape->area();
    return sum;
}

__attribute__((noinline)) void work(std::uint32_t rounds, std::uint32_t* sum, std::uint32_t* caught) {
    std::vector<std::unique_ptr<Shape>> shapes;
    for (std::uint32_t i = 0; i < rounds; ++i) {
        if (i % 2 == 0)
            shapes.push_back(std::make_unique<Square>(i));
        else
            shapes.push_back(std::make_unique<Rectangle>(i, i + 1));
    }
    *sum = sum_of(shapes);
    for (std::uint32_t i = 0; i < rounds; i += 4) *caught += survives(i) ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    const auto rounds = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 20);
    std::uint32_t sums[2]{}, caught[2]{};
    std::thread other(work, rounds, &sums[1], &caught[1]);
    work(rounds, &sums[0], &caught[0]);
    other.join();
    std::printf("%u areas, sum %u, %u exceptions caught\n", 2 * rounds, sums[0] + sums[1], caught[0] + caught[1]);
    return sums[0] == sums[1] ? 0 : 1;
}
