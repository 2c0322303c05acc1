/// Registers described once: a plain struct whose function `fields` names its fields from the highest bit down, as
/// packets are described (core/wire.h). Values, fields, and lists of fields walk that function. A register has
///
///     static constexpr std::string_view name;       // as the architecture publishes it
///     static constexpr unsigned bytes = 8;          // only of 64-bit registers; others have 32 bits
///     static void fields(auto& w, auto& r);         // one `word` or `doubleword` of wire::bits that tile it
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "waymark/core/register_value.h"
#include "waymark/core/wire.h"

namespace waymark {

template <class Register>
inline constexpr unsigned register_bytes = [] {
    if constexpr (requires { Register::bytes; })
        return Register::bytes;
    else
        return 4U;
}();
/// The type of a register's value.
template <class Register>
using RegisterNumber = std::conditional_t<register_bytes<Register> == 8, std::uint64_t, std::uint32_t>;

namespace wire {

/// Splits the bits of a value into fields: a walker of core/wire.h.
class ValueReader {
public:
    explicit constexpr ValueReader(std::uint64_t value) : value_(value) {}
    template <class... Parts>
    constexpr void word(Parts... parts) {
        check_tiling<32, Parts...>();
        (take(parts), ...);
    }
    template <class... Parts>
    constexpr void doubleword(Parts... parts) {
        check_tiling<64, Parts...>();
        (take(parts), ...);
    }

private:
    template <unsigned Hi, unsigned Lo, class T>
    constexpr void take(Bits<Hi, Lo, T> part) {
        part.value = static_cast<T>(value_ >> Lo & mask_of<Hi - Lo + 1>);
    }
    std::uint64_t value_;
};

/// Joins fields to the bits of a value: the inverse.
class ValueWriter {
public:
    template <class... Parts>
    constexpr void word(Parts... parts) {
        check_tiling<32, Parts...>();
        value = (put(parts) | ...);
    }
    template <class... Parts>
    constexpr void doubleword(Parts... parts) {
        check_tiling<64, Parts...>();
        value = (put(parts) | ...);
    }
    std::uint64_t value = 0;

private:
    template <unsigned Hi, unsigned Lo, class T>
    static constexpr std::uint64_t put(Bits<Hi, Lo, T> part) {
        return (static_cast<std::uint64_t>(part.value) & mask_of<Hi - Lo + 1>) << Lo;
    }
};

}  // namespace wire

/// Converts a value to a register's fields.
template <class Register>
[[nodiscard]] constexpr Register from_value(RegisterNumber<Register> value) {
    Register r;
    wire::ValueReader reader(value);
    Register::fields(reader, r);
    return r;
}

/// Converts a register's fields to its value.
template <class Register>
[[nodiscard]] constexpr RegisterNumber<Register> to_value(const Register& r) {
    wire::ValueWriter writer;
    Register::fields(writer, r);
    return static_cast<RegisterNumber<Register>>(writer.value);
}

/// A register in a capture's form, with its number if registers of the unit have numbers.
template <class Register>
[[nodiscard]] RegisterValue register_value(const Register& r) {
    RegisterValue out{std::string(Register::name), to_value(r), {}, 8 * register_bytes<Register>};
    if constexpr (requires { Register::number; }) out.id = Register::number;
    return out;
}

/// A field of a register with its position. Reserved bits have names too, `reserved[31:30]` or `RES0[63:11]`; bits with
/// a meaning that is not used here are `other[…]`.
struct RegisterField {
    std::string_view name;
    unsigned hi = 0, lo = 0;
    std::uint64_t value = 0;
    [[nodiscard]] unsigned width() const { return hi - lo + 1; }
    [[nodiscard]] bool reserved() const { return name.starts_with("reserved[") || name.starts_with("RES0["); }
    bool operator==(const RegisterField&) const = default;
};

namespace wire {

/// Lists the fields of a register: a walker of core/wire.h.
class FieldLister {
public:
    template <class... Parts>
    void word(Parts... parts) {
        (add(parts), ...);
    }
    template <class... Parts>
    void doubleword(Parts... parts) {
        (add(parts), ...);
    }
    [[nodiscard]] std::vector<RegisterField> take() { return std::move(fields_); }

private:
    template <unsigned Hi, unsigned Lo, class T>
    void add(Bits<Hi, Lo, T> part) {
        fields_.push_back({part.name, Hi, Lo, static_cast<std::uint64_t>(part.value)});
    }
    std::vector<RegisterField> fields_;
};

}  // namespace wire

/// The fields of a register, from the highest bit down.
template <class Register>
[[nodiscard]] std::vector<RegisterField> fields_of(const Register& r) {
    wire::FieldLister lister;
    Register::fields(lister, r);
    return lister.take();
}

/// Calls `f(register)` for each register of a file that `wanted(register)` accepts; false if it accepts none. A file is
/// a struct of registers with `static void for_each(auto& self, auto&& f)`.
template <class File>
bool visit_registers(File& file, auto&& wanted, auto&& f) {
    bool found = false;
    std::remove_const_t<File>::for_each(file, [&](auto& r) {
        if (!wanted(std::as_const(r))) return;
        found = true;
        f(r);
    });
    return found;
}

}  // namespace waymark
