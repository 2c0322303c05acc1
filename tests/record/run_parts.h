/// What a recorder gets, as a program's run: definitions and words of execution in the plugin's format (record/ring.h);
/// and a recorded folder as text.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/record/a64_registers.h"
#include "waymark/record/ring.h"

namespace waymark::support {

using Words = std::vector<std::uint32_t>;

/// A chunk of definitions.
class Parts {
public:
    /// `text`: QEMU's disassembly of the first instruction.
    Parts& block(std::uint32_t id, std::uint64_t address, const Words& code, std::string_view text = {}) {
        record::BlockPart part;
        part.id = id;
        part.address = address;
        part.instructions = static_cast<std::uint32_t>(code.size());
        part.code_bytes = part.instructions * 4;
        part.text_bytes = static_cast<std::uint32_t>(text.size());
        part.second = code.size() > 1 ? address + 4 : 0;
        std::string more(part.code_bytes, '\0');
        if (!code.empty()) std::memcpy(more.data(), code.data(), part.code_bytes);
        return put(part, more + std::string(text));
    }
    /// Thumb code, in halfwords; the first instruction has `first_bytes`.
    Parts& thumb(std::uint32_t id, std::uint64_t address, std::uint32_t instructions,
                 const std::vector<std::uint16_t>& code, std::uint32_t first_bytes = 2) {
        record::BlockPart part;
        part.id = id;
        part.address = address;
        part.instructions = instructions;
        part.code_bytes = static_cast<std::uint32_t>(code.size() * 2);
        part.second = instructions > 1 ? address + first_bytes : 0;
        std::string more(part.code_bytes, '\0');
        std::memcpy(more.data(), code.data(), part.code_bytes);
        return put(part, more);
    }
    Parts& page(std::uint64_t address, char fill) {
        record::PagePart part;
        part.address = address;
        return put(part, std::string(record::page_bytes, fill));
    }
    Parts& map(std::uint64_t address, std::uint64_t bytes, std::string_view name = {}, std::uint64_t offset = 0,
               std::uint64_t inode = 1) {
        record::MapPart part;
        part.address = address;
        part.bytes = bytes;
        part.file_offset = offset;
        part.inode = inode;
        part.name_bytes = static_cast<std::uint32_t>(name.size());
        return put(part, name);
    }
    Parts& unmap(std::uint64_t address, std::uint64_t bytes, std::uint64_t number) {
        record::UnmapPart part;
        part.address = address;
        part.bytes = bytes;
        part.number = number;
        return put(part);
    }
    Parts& still_mapped(std::uint64_t number) {
        record::StillMappedPart part;
        part.number = number;
        return put(part);
    }
    Parts& thread(std::uint32_t number, std::uint32_t pid, std::uint32_t tid, std::string_view name = {}) {
        record::ThreadPart part;
        part.thread = number;
        part.pid = pid;
        part.tid = tid;
        part.name_bytes = static_cast<std::uint32_t>(name.size());
        return put(part, name);
    }
    Parts& process(std::uint32_t number, std::uint32_t parent, std::uint32_t pid, std::uint32_t parent_pid,
                   std::uint32_t parent_tid) {
        record::ProcessPart part;
        part.process = number;
        part.parent = parent;
        part.pid = pid;
        part.parent_pid = parent_pid;
        part.parent_tid = parent_tid;
        return put(part);
    }
    Words words;

private:
    template <class Part>
    Parts& put(Part part, std::string_view more = {}) {
        part.words = static_cast<std::uint32_t>((sizeof part + more.size() + 3) / 4);
        const std::size_t at = words.size();
        words.resize(at + part.words);
        auto* const to = reinterpret_cast<char*>(words.data() + at);
        std::memcpy(to, &part, sizeof part);
        if (!more.empty()) std::memcpy(to + sizeof part, more.data(), more.size());
        return *this;
    }
};

/// The words of execution one after the other.
inline Words joined(std::initializer_list<Words> all) {
    Words out;
    for (const Words& words : all) out.insert(out.end(), words.begin(), words.end());
    return out;
}
inline void add_halves(Words& to, std::uint64_t value, unsigned count) {
    for (unsigned i = 0; i < count; ++i)
        to.push_back(record::words::half | (static_cast<std::uint32_t>(value >> 16 * i) & 0xffff));
}
inline Words exception_32(std::uint32_t number, std::uint32_t link, std::uint32_t vector, std::uint32_t state) {
    Words out{record::words::exception | number};
    add_halves(out, link, 2);
    add_halves(out, vector, 2);
    add_halves(out, state, 1);
    return out;
}
inline Words exception_64(std::uint32_t number, std::uint64_t back, std::uint64_t vector, std::uint32_t state,
                          std::uint32_t syndrome) {
    Words out{record::words::exception | number};
    add_halves(out, back, 4);
    add_halves(out, vector, 4);
    add_halves(out, state, 1);
    add_halves(out, syndrome, 1);
    return out;
}
inline Words signal_32(std::uint32_t number, std::uint32_t back, std::uint32_t state) {
    Words out{record::words::signal | number};
    add_halves(out, back, 2);
    add_halves(out, state, 1);
    return out;
}
inline Words signal_64(std::uint32_t number, std::uint64_t back) {
    Words out{record::words::signal | number};
    add_halves(out, back, 4);
    add_halves(out, 0, 1);
    return out;
}
inline Words written_64(std::uint32_t which, std::uint64_t value) {
    Words out{record::words::written | which};
    add_halves(out, value, 4);
    return out;
}

/// Bytes in lines of 16; equal lines after the first are one `*`.
inline std::string as_hex(std::string_view bytes) {
    std::string out, before;
    bool skipped = false;
    for (std::size_t at = 0; at < bytes.size(); at += 16) {
        std::string line;
        for (const char c : bytes.substr(at, 16)) line += fmt::format(" {:02x}", static_cast<unsigned char>(c));
        if (line == before) {
            if (!skipped) out += "*\n";
            skipped = true;
            continue;
        }
        out += fmt::format("{:04x}:{}\n", at, line);
        before = line;
        skipped = false;
    }
    return out;
}

inline std::string contents(const std::filesystem::path& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream out;
    out << in.rdbuf();
    return out.str();
}

/// All files of a folder, by name, as text; its own path as FOLDER.
inline std::string as_text(const std::filesystem::path& folder, const std::filesystem::path& named = {}) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    std::string out;
    for (const auto& file : files) {
        const std::string bytes = contents(file);
        const bool is_text =
            std::all_of(bytes.begin(), bytes.end(), [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); });
        out += fmt::format("---- {}\n{}", file.filename().string(), is_text ? bytes : as_hex(bytes));
        if (is_text && !bytes.ends_with('\n')) out += "\n";
    }
    const std::string path = (named.empty() ? folder : named).string();
    for (std::size_t at; (at = out.find(path)) != out.npos;) out.replace(at, path.size(), "FOLDER");
    return out;
}

}  // namespace waymark::support
