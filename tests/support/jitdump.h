/// Jitdump files made by hand.
#pragma once

#include <cstdint>
#include <string>

namespace waymark {

/// Writes a jitdump file of either byte order.
class JitDump {
public:
    explicit JitDump(bool big = false) : big_(big) {
        number(4, 0x4a695444).number(4, 1).number(4, 40).number(4, 40).number(4, 0).number(4, 17).number(8, 0);
        number(8, 0);
    }
    JitDump& number(unsigned count, std::uint64_t value) {
        for (unsigned i = 0; i < count; ++i)
            bytes.push_back(static_cast<char>(value >> 8 * (big_ ? count - 1 - i : i)));
        return *this;
    }
    JitDump& load(std::uint64_t index, std::uint64_t address, const std::string& name, const std::string& code,
                  std::uint64_t time = 5) {
        number(4, 0).number(4, 56 + name.size() + 1 + code.size()).number(8, time);
        number(4, 17).number(4, 17).number(8, address).number(8, address).number(8, code.size()).number(8, index);
        bytes += name + '\0' + code;
        return *this;
    }
    JitDump& move(std::uint64_t index, std::uint64_t from, std::uint64_t to, std::uint64_t size) {
        number(4, 1).number(4, 64).number(8, 6).number(4, 17).number(4, 17).number(8, to);
        return number(8, from).number(8, to).number(8, size).number(8, index);
    }
    std::string bytes;

private:
    bool big_;
};

}  // namespace waymark
