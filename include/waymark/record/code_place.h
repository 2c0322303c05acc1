/// A place in the code of a program, by address or by symbol. The address of a position-independent program or a
/// library is known only when it is mapped.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "waymark/core/types.h"

namespace waymark::record {

class CodePlace {
public:
    CodePlace(Address address) : address_(address) {}
    /// A symbol whose address is known.
    CodePlace(Address address, std::string symbol) : address_(address), name_(std::move(symbol)) {}
    /// A symbol of `file`, a canonical path; if that is empty, of the first mapped file that has a symbol of this name.
    CodePlace(std::string symbol, std::filesystem::path file) : symbol_(std::move(symbol)), file_(std::move(file)) {}

    /// nullopt as long as no file with the symbol is mapped; otherwise the address by the latest report.
    [[nodiscard]] std::optional<Address> address() const { return address_; }
    /// Size of the symbol's function; 0 if it is not known, or if an address was given.
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    void set_bytes(std::uint64_t bytes) { bytes_ = bytes; }
    /// The symbol, or the address in hexadecimal: `main`, `0x10424`.
    [[nodiscard]] std::string text() const;
    /// Bytes [offset, offset + bytes) of `file`, a path, are mapped at `at`.
    void mapped(const std::string& file, Address at, std::uint64_t offset, std::uint64_t bytes);

private:
    std::optional<Address> address_;
    std::uint64_t bytes_ = 0;
    std::string name_;    ///< the symbol that has the given address; empty: the user gave none
    std::string symbol_;  ///< the symbol to look for; empty: the address is known
    std::filesystem::path file_;
    /// For each file: the symbol's address in it, without load bias, and its size.
    std::map<std::string, std::optional<std::pair<Address, std::uint64_t>>> found_;
};

}  // namespace waymark::record
