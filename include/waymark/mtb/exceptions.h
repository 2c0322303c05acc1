/// Numbers of the exceptions of the M profile, and the exception that belongs to each handler (docs/spec/mtb.md, 1).
#pragma once

#include <cstdint>
#include <map>
#include <optional>

#include "waymark/core/types.h"
#include "waymark/flow/exception.h"
#include "waymark/isa/isa.h"

namespace waymark::mtb {

/// Maximum number of vectors in a table, including the initial stack pointer.
inline constexpr std::uint32_t most_vectors = 496;

/// The exception with the core's number. Precondition: number < most_vectors.
[[nodiscard]] const flow::ExceptionType& exception_type(std::uint32_t number);
/// The exception of a handler to which several vectors lead.
[[nodiscard]] const flow::ExceptionType& one_of_several_exceptions();
/// The exception of a handler without a vector, or with an unknown table: any exception, or a debugger that moved the
/// PC.
[[nodiscard]] const flow::ExceptionType& exception_or_debugger();
[[nodiscard]] const flow::ExceptionType& lockup();

/// The vector table of a program.
class Vectors {
public:
    /// `code` is borrowed.
    Vectors(const isa::CodeReader& code, std::uint32_t table) : code_(code), table_(table) {}
    /// The exception whose handler begins there; null if no vector leads there.
    [[nodiscard]] const flow::ExceptionType* find(std::uint32_t handler) {
        if (!read_) read();
        const auto found = types_.find(handler);
        return found == types_.end() ? nullptr : found->second;
    }

private:
    void read();

    const isa::CodeReader& code_;
    std::uint32_t table_;
    bool read_ = false;
    std::map<std::uint32_t, const flow::ExceptionType*> types_;
};

}  // namespace waymark::mtb
