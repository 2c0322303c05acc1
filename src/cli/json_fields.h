/// The fields of a packet as the inside of a JSON object: one more walker of core/wire.h.
#pragma once

#include <string>
#include <string_view>

#include "output.h"
#include "waymark/core/wire.h"

namespace waymark::cli {

class JsonFields {
public:
    explicit JsonFields(std::string& out) : out_(out) {}

    template <class... Parts>
    void byte(Parts... parts) {
        (print(parts), ...);
    }
    template <class... Parts>
    void word(Parts... parts) {
        (print(parts), ...);
    }
    template <class... Parts>
    void doubleword(Parts... parts) {
        (print(parts), ...);
    }
    template <class T, class Codec>
    void field(std::string_view name, const T& value, const Codec& codec) {
        std::string text;
        codec.print(text, value);
        add(name, json_string(text));
    }
    template <class T>
    void le(std::string_view name, const T& value, unsigned bytes) {
        if (bytes != 0) add(name, std::to_string(value));
    }
    void impossible() {}

private:
    void add(std::string_view name, const std::string& value) {
        out_ += fmt::format("{}{}:{}", out_.empty() ? "" : ",", json_string(name), value);
    }
    template <unsigned Hi, unsigned Lo, class T>
    void print(wire::Bits<Hi, Lo, T> part) {
        add(part.name, std::to_string(static_cast<std::uint64_t>(part.value)));
    }
    template <unsigned Hi, unsigned Lo>
    void print(wire::Fixed<Hi, Lo>) {}
    template <unsigned Hi, unsigned Lo>
    void print(wire::ShouldBe<Hi, Lo>) {}

    std::string& out_;
};

template <class P, class Config>
[[nodiscard]] std::string json_fields(const P& packet, const Config& config) {
    std::string out;
    JsonFields walker(out);
    P::fields(walker, packet, config);
    return out;
}

}  // namespace waymark::cli
