#include "waymark/image/program_file.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "elf_file.h"
#include "waymark/image/debuginfod.h"
#include "waymark/image/package.h"

namespace waymark::image {

namespace fs = std::filesystem;

namespace {

std::string id_text(const std::vector<std::uint8_t>& id) { return fmt::format("{:02x}", fmt::join(id, "")); }

/// Zeros at the end of a short build ID come from the record that contained it.
bool same_build(std::vector<std::uint8_t> a, std::vector<std::uint8_t> b) {
    for (auto* id : {&a, &b})
        while (!id->empty() && id->back() == 0) id->pop_back();
    return a == b;
}

/// perf's name, also in its cache, for the code that the kernel maps into each process.
constexpr std::string_view vdso = "[vdso]";

/// The debuginfod client of elfutils, if it is installed.
struct Debuginfod {
    void* (*begin)() = nullptr;
    void (*end)(void*) = nullptr;
    int (*find)(void*, const unsigned char*, int, char**) = nullptr;
    void (*watch)(void*, int (*)(void*, long, long)) = nullptr;

    Debuginfod() {
        void* const library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
        if (library == nullptr) return;
        get(library, begin, "debuginfod_begin");
        get(library, end, "debuginfod_end");
        get(library, find, "debuginfod_find_executable");
        get(library, watch, "debuginfod_set_progressfn");
    }
    [[nodiscard]] bool is_there() const {
        return begin != nullptr && end != nullptr && find != nullptr && watch != nullptr;
    }

private:
    template <class F>
    static void get(void* library, F*& function, const char* name) {
        function = reinterpret_cast<F*>(dlsym(library, name));
    }
};

/// How long to wait for a silent server: the timeout in the client's documentation.
std::chrono::seconds patience() {
    const char* const set = std::getenv("DEBUGINFOD_TIMEOUT");
    const long seconds = set == nullptr ? 0 : std::strtol(set, nullptr, 10);
    return std::chrono::seconds(seconds > 0 ? std::min(seconds, 3600L) : 10L);
}
/// A server did not answer, so no server is asked again: each file would wait for the whole timeout.
std::atomic<bool> servers_silent = false;

/// One request to the servers.
struct Question {
    std::chrono::steady_clock::time_point heard = std::chrono::steady_clock::now();
    long last = 0;

    /// The client calls it repeatedly: with the bytes received and the total, or, if the total is not known, with the
    /// number of calls. A result other than 0 ends the request.
    static int goes_on(void*, long count, long all) {
        Question& q = asked;
        const bool received = all != 0 ? count != q.last : count != q.last && count != q.last + 1;
        q.last = count;
        const auto now = std::chrono::steady_clock::now();
        if (received) q.heard = now;
        if (now - q.heard < patience()) return 0;
        servers_silent = true;
        return 1;
    }
    static thread_local Question asked;
};
thread_local Question Question::asked;

/// The executable of this build from a debuginfod server, stored in the user's cache. nullopt if no server has it, none
/// is configured (DEBUGINFOD_URLS), or the client is not installed.
std::optional<fs::path> from_server(const std::vector<std::uint8_t>& build_id) {
    const char* const urls = std::getenv("DEBUGINFOD_URLS");
    if (build_id.empty() || urls == nullptr || *urls == '\0' || servers_silent) return std::nullopt;
    static const Debuginfod library;
    if (!library.is_there()) return std::nullopt;
    const std::unique_ptr<void, void (*)(void*)> client(library.begin(), library.end);
    if (!client) return std::nullopt;
    Question::asked = {};
    library.watch(client.get(), Question::goes_on);
    char* path = nullptr;
    const int file = library.find(client.get(), build_id.data(), static_cast<int>(build_id.size()), &path);
    const std::unique_ptr<char, void (*)(void*)> owner(path, std::free);
    if (file < 0) return std::nullopt;
    close(file);
    return path == nullptr ? std::nullopt : std::optional<fs::path>(path);
}

}  // namespace

fs::path place_below(const fs::path& folder, const fs::path& recorded) {
    return folder / ("/" / recorded).lexically_normal().relative_path();
}

std::vector<fs::path> FileSearch::debug_path() const {
    std::vector<fs::path> out = debug_folders;
    if (!symfs.empty()) out.push_back(symfs / "usr/lib/debug");
    return out;
}

std::vector<fs::path> FileSearch::build_id_folders() const {
    std::vector<fs::path> out = debug_path();
    if (const char* home = std::getenv("HOME"); home != nullptr) out.push_back(fs::path(home) / ".debug");
    out.emplace_back("/usr/lib/debug");
    return out;
}

std::vector<fs::path> FileSearch::places(std::string_view file, const std::vector<std::uint8_t>& build_id) const {
    std::vector<fs::path> out, with_symbols;
    if (symbol_files) {
        const auto [first, last] = symbol_files->equal_range(fs::path(file).filename().string());
        for (auto at = first; at != last; ++at) with_symbols.push_back(at->second);
    }
    if (!build_id.empty()) out = std::exchange(with_symbols, {});
    if (symfs.empty()) {
        out.emplace_back(file);
    } else {
        out.push_back(place_below(symfs, file));
        // For a file in a package, also the package.
        if (const std::size_t in = file.find(in_package); in != file.npos)
            out.push_back(
                place_below(symfs, fs::path(file.substr(0, in)).filename().string() + std::string(file.substr(in))));
        out.push_back(place_below(symfs, fs::path(file).filename()));
    }
    const std::string id = id_text(build_id);
    if (id.size() > 2)
        for (const fs::path& folder : build_id_folders()) {
            out.push_back(folder / ".build-id" / id.substr(0, 2) / id.substr(2) / (file == vdso ? "vdso" : "elf"));
            out.push_back(folder / ".build-id" / id.substr(0, 2) / (id.substr(2) + ".debug"));
        }
    out.insert(out.end(), with_symbols.begin(), with_symbols.end());
    return out;
}

Status FileSearch::add_symbol_folders(const std::vector<fs::path>& folders) {
    if (folders.empty()) return Nothing{};
    constexpr std::size_t most = 1'000'000;
    auto found = std::make_shared<ByName>();
    for (const fs::path& folder : folders) {
        std::error_code error, none;
        const auto below = fs::directory_options::skip_permission_denied;
        for (auto at = fs::recursive_directory_iterator(folder, below, error);
             !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
            if (!at->is_regular_file(none)) continue;
            if (found->size() == most)
                return Error{
                    Errc::unsupported,
                    fmt::format(
                        "{}: there are more than {} files in it; name a folder with fewer files besides symbols",
                        folder.string(), most)};
            found->emplace(at->path().filename().string(), at->path());
        }
        if (error)
            return Error{Errc::unreadable, fmt::format("{}: cannot be read: {}", folder.string(), error.message())};
    }
    symbol_files = std::move(found);
    return Nothing{};
}

Result<FoundFile> open_first(const std::vector<fs::path>& places, const std::vector<std::uint8_t>& build_id,
                             const FileSearch& search) {
    Error refused{Errc::not_found, {}};
    for (const fs::path& path : places) {
        const auto place = openable(path);
        if (!place) {
            if (place.error().code != Errc::not_found) refused = {Errc::bad_format, place.error().message};
            continue;
        }
        std::error_code error;
        if (!fs::is_regular_file(place->path, error)) continue;
        auto info = DebugInfo::open(path, search.debug_path());
        if (!info) {
            refused = {Errc::bad_format, info.error().message};
            continue;
        }
        if (!build_id.empty() && !info->build_id().empty() && !same_build(build_id, info->build_id())) {
            refused = {Errc::bad_format, fmt::format("{} is another build: its build ID is {}, recorded was {}",
                                                     path.string(), id_text(info->build_id()), id_text(build_id))};
            continue;
        }
        return FoundFile{path, std::move(*info)};
    }
    return refused;
}

std::string silent_servers() {
    return servers_silent
               ? fmt::format(
                     "the debuginfod servers sent nothing for {} s (DEBUGINFOD_TIMEOUT) and are not asked again",
                     patience().count())
               : std::string();
}

Result<FoundFile> find_file(std::string_view file, const std::vector<std::uint8_t>& build_id,
                            const FileSearch& search) {
    auto found = open_first(search.places(file, build_id), build_id, search);
    if (!found)
        if (const auto path = from_server(build_id))
            if (auto served = open_first({*path}, build_id, search)) return served;
    if (!found && found.error().message.empty())
        return Error{Errc::not_found,
                     fmt::format("{} was not found{}{}{}", file,
                                 search.symfs.empty() ? " on this machine" : " in " + search.symfs.string(),
                                 build_id.empty() ? "" : ", nor a file with its build ID " + id_text(build_id),
                                 silent_servers().empty() ? "" : "; " + silent_servers())};
    return found;
}

Result<std::size_t> add_all_symbols(Symbols& symbols, const fs::path& path, DebugInfo& info, std::uint64_t load_bias) {
    WM_ASSIGN_OR_RETURN(std::size_t count, symbols.add_elf(path, load_bias));
    // A stripped file has .dynsym; the other symbols are in the debug file.
    if (const fs::path debug = info.debug_file(); !debug.empty() && debug != path) {
        const auto more = symbols.add_elf(debug, load_bias);
        if (more) count += *more;
    }
    return count;
}

bool has_symbol_table(const fs::path& path, DebugInfo& info) {
    for (const fs::path& file : {path, info.debug_file()}) {
        if (file.empty()) continue;
        auto bytes = map_file(file.string());
        if (!bytes) continue;
        const auto elf = ElfFile::open(std::move(*bytes), file.string(), Machines::arm_and_x86_64);
        if (elf && elf->has_symbol_table()) return true;
    }
    return false;
}

}  // namespace waymark::image
