/// The fields of a packet as the inside of a JSON object.
#pragma once

#include <string>
#include <string_view>

#include "output.h"
#include "waymark/protocol/adapters.h"
#include "waymark/protocol/packets.h"

namespace waymark::cli {

class JsonFields final : public protocol::FieldVisitor {
public:
    void number(std::string_view name, std::uint64_t value) override { add(name, std::to_string(value)); }
    void text(std::string_view name, std::string_view value) override { add(name, json_string(value)); }
    [[nodiscard]] const std::string& json() const { return out_; }

private:
    void add(std::string_view name, const std::string& value) {
        out_ += fmt::format("{}{}:{}", out_.empty() ? "" : ",", json_string(name), value);
    }
    std::string out_;
};

/// `config`: what the description of the packet asks for, which may be nothing.
template <class P, class... Config>
[[nodiscard]] std::string json_fields(const P& packet, const Config&... config) {
    JsonFields out;
    protocol::VisitFields walker(out);
    P::fields(walker, packet, config...);
    return out.json();
}

}  // namespace waymark::cli
