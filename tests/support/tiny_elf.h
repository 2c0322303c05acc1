/// Small handmade ELF files, so that tests need no compiler and damage can be placed exactly.
#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace waymark {

struct TinyElf {
    struct Segment {
        std::uint32_t type = PT_LOAD;
        std::uint64_t address{};
        std::vector<std::uint8_t> bytes{};
        std::uint64_t memory_bytes{};    // 0: as many as there are bytes
        std::uint64_t declared_bytes{};  // p_filesz; 0: as many as there are bytes
    };
    struct Section {
        std::string name;
        std::uint32_t type = SHT_PROGBITS;
        std::uint64_t flags = SHF_ALLOC | SHF_EXECINSTR;
        std::uint64_t address{};
        std::vector<std::uint8_t> bytes{};
        std::uint64_t alignment = 4;
        std::uint64_t declared_bytes{};
        std::uint32_t relocates{};  // the section to which its relocations apply, an index into `sections`, from 1
    };
    static constexpr std::uint16_t elsewhere = 0xfe00;  // a section the file does not have
    struct Symbol {
        std::string name;
        std::uint64_t value{}, bytes{};
        unsigned type = STT_FUNC, binding = STB_GLOBAL;
        std::uint16_t section = elsewhere;  // index into `sections`, from 1, or SHN_…
    };

    bool is_64 = false;
    std::uint16_t machine = EM_ARM, type = ET_EXEC;
    unsigned char data = ELFDATA2LSB;
    std::vector<Segment> segments{};
    std::vector<Section> sections{};
    std::vector<Symbol> symbols{};
    std::uint32_t symbol_table = SHT_SYMTAB;

    [[nodiscard]] std::vector<std::uint8_t> build() const {
        return is_64 ? make<Elf64_Ehdr, Elf64_Phdr, Elf64_Shdr, Elf64_Sym>()
                     : make<Elf32_Ehdr, Elf32_Phdr, Elf32_Shdr, Elf32_Sym>();
    }

private:
    template <class T>
    static void put(std::vector<std::uint8_t>& out, const T& value) {
        const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
        out.insert(out.end(), bytes, bytes + sizeof value);
    }
    template <class To, class From>
    static void set(To& to, From from) {
        to = static_cast<To>(from);
    }
    static std::uint32_t add_string(std::vector<std::uint8_t>& table, const std::string& text) {
        const auto at = static_cast<std::uint32_t>(table.size());
        table.insert(table.end(), text.begin(), text.end());
        table.push_back(0);
        return at;
    }

    template <class Ehdr, class Phdr, class Shdr, class Sym>
    [[nodiscard]] std::vector<std::uint8_t> make() const {
        std::vector<std::uint8_t> out(sizeof(Ehdr)), names{0}, strings{0}, table(sizeof(Sym));
        std::vector<Phdr> program;
        std::vector<Shdr> headers(1);
        for (const Segment& segment : segments) {
            Phdr h{};
            set(h.p_type, segment.type);
            set(h.p_offset, out.size());
            set(h.p_vaddr, segment.address);
            set(h.p_filesz, segment.declared_bytes != 0 ? segment.declared_bytes : segment.bytes.size());
            set(h.p_memsz, segment.memory_bytes != 0 ? segment.memory_bytes : h.p_filesz);
            set(h.p_flags, PF_R | PF_X);
            set(h.p_align, 1);
            program.push_back(h);
            out.insert(out.end(), segment.bytes.begin(), segment.bytes.end());
        }
        const auto add_section = [&](const Section& section, std::uint32_t link, std::uint64_t entry_bytes) {
            out.resize((out.size() + 7) & ~std::size_t{7});
            Shdr h{};
            set(h.sh_name, add_string(names, section.name));
            set(h.sh_type, section.type);
            set(h.sh_flags, section.flags);
            set(h.sh_addr, section.address);
            set(h.sh_offset, out.size());
            set(h.sh_size, section.declared_bytes != 0 ? section.declared_bytes : section.bytes.size());
            set(h.sh_addralign, section.alignment);
            set(h.sh_link, link);
            set(h.sh_entsize, entry_bytes);
            if (section.relocates != 0) {
                set(h.sh_link, sections.size() + 1);  // the symbol table
                set(h.sh_info, section.relocates);
                set(h.sh_entsize, (section.type == SHT_RELA ? 3 : 2) * sizeof h.sh_size);
            }
            headers.push_back(h);
            out.insert(out.end(), section.bytes.begin(), section.bytes.end());
        };
        for (const Section& section : sections) add_section(section, 0, 0);
        for (const Symbol& symbol : symbols) {
            Sym s{};
            set(s.st_name, add_string(strings, symbol.name));
            set(s.st_value, symbol.value);
            set(s.st_size, symbol.bytes);
            set(s.st_info, (symbol.binding << 4) | symbol.type);
            set(s.st_shndx, symbol.section);
            put(table, s);
        }
        const auto strings_index = static_cast<std::uint32_t>(headers.size() + 1);
        if (!symbols.empty()) {
            add_section({".symtab", symbol_table, 0, 0, table, 8}, strings_index, sizeof(Sym));
            add_section({".strtab", SHT_STRTAB, 0, 0, strings, 1}, 0, 0);
        }
        const auto names_index = headers.size();
        const std::uint32_t own_name = add_string(names, ".shstrtab");
        add_section({"", SHT_STRTAB, 0, 0, names, 1}, 0, 0);
        set(headers.back().sh_name, own_name);

        Ehdr e{};
        std::memcpy(e.e_ident, ELFMAG, SELFMAG);
        e.e_ident[EI_CLASS] = is_64 ? ELFCLASS64 : ELFCLASS32;
        e.e_ident[EI_DATA] = data;
        e.e_ident[EI_VERSION] = EV_CURRENT;
        set(e.e_type, type);
        set(e.e_machine, machine);
        set(e.e_version, EV_CURRENT);
        set(e.e_ehsize, sizeof(Ehdr));
        set(e.e_phentsize, sizeof(Phdr));
        set(e.e_shentsize, sizeof(Shdr));
        out.resize((out.size() + 7) & ~std::size_t{7});
        set(e.e_phoff, program.empty() ? 0 : out.size());
        set(e.e_phnum, program.size());
        for (const Phdr& h : program) put(out, h);
        out.resize((out.size() + 7) & ~std::size_t{7});
        set(e.e_shoff, out.size());
        set(e.e_shnum, headers.size());
        set(e.e_shstrndx, names_index);
        for (const Shdr& h : headers) put(out, h);
        std::memcpy(out.data(), &e, sizeof e);
        return out;
    }
};

}  // namespace waymark
