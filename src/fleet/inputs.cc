#include "waymark/fleet/inputs.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "waymark/capture/byte_file.h"
#include "waymark/capture/perf_data.h"
#include "waymark/core/utf8.h"
#include "waymark/open/container.h"

namespace waymark::fleet {

namespace fs = std::filesystem;

namespace {

/// Whether a folder search accepts it as a capture: a folder, or perf.data. Files of other kinds must be named.
bool is_found(const open::Container& container) {
    return container.is_perf() || (container.is_folder && container.kind != open::Kind::folder);
}

/// Checks the first bytes: a compressed file is not unpacked for this.
bool is_perf_file(const fs::path& path) {
    constexpr std::size_t enough = 4096;
    const auto head = capture::open_head(path, enough);
    return head && capture::perf::is_perf_data(head->bytes);
}

class CaptureFinder {
public:
    Status add(const std::string& input) {
        if (input.size() > 1 && input[0] == '@') return add_list(input.substr(1));
        std::error_code none;
        if (fs::exists(fs::status(input, none))) return add_path(input);
        const bool several = input.find(',') != input.npos;
        if (input.find_first_of("*?[") != input.npos)
            if (Status added = add_pattern(input); added || !several) return added;
        if (several) return add_each(input);
        return Error{Errc::not_found, fmt::format("{}: no such file or folder", input)};
    }
    [[nodiscard]] FoundCaptures take() {
        for (auto& [real, name] : paths_) out_.paths.push_back(std::move(name));
        std::sort(out_.paths.begin(), out_.paths.end());
        return std::move(out_);
    }

private:
    /// Adds A,B,C: each may be a folder or a pattern.
    Status add_each(const std::string& inputs) {
        for (std::size_t at = 0; at <= inputs.size();) {
            const std::size_t end = std::min(inputs.find(',', at), inputs.size());
            if (end != at) WM_RETURN_IF_ERROR(add(inputs.substr(at, end - at)));
            at = end + 1;
        }
        return Nothing{};
    }

    Status add_list(const std::string& list) {
        std::ifstream in(list);
        if (!in) return Error{Errc::unreadable, fmt::format("cannot read the list {}: {}", list, std::strerror(errno))};
        std::string line;
        for (std::uint64_t number = 1; std::getline(in, line); ++number) {
            if (line.ends_with('\r')) line.pop_back();
            if (line.empty() || line[0] == '#') continue;
            if (line[0] == '@')
                return Error{Errc::usage, fmt::format("{}, line {}: a list may not name another list", list, number)};
            if (Status added = add(line); !added)
                return Error{added.error().code, fmt::format("{}, line {}: {}", list, number, added.error().message)};
        }
        if (in.bad()) return Error{Errc::unreadable, fmt::format("cannot read the list {} to its end", list)};
        return Nothing{};
    }

    Status add_pattern(const std::string& pattern) {
        glob_t found{};
        const int status = ::glob(pattern.c_str(), 0, nullptr, &found);
        std::vector<std::string> names(found.gl_pathv, found.gl_pathv + found.gl_pathc);
        ::globfree(&found);
        if (status != 0) return Error{Errc::not_found, fmt::format("{}: no file fits this pattern", pattern)};
        for (const std::string& name : names) WM_RETURN_IF_ERROR(add_path(name));
        return Nothing{};
    }

    Status add_path(const fs::path& path) {
        std::error_code error;
        if (!fs::is_directory(path, error) || is_found(open::identify(path.string()))) return take_path(path);
        const std::size_t before = paths_.size() + out_.repeated;
        WM_RETURN_IF_ERROR(search(path));
        if (paths_.size() + out_.repeated == before) out_.barren.push_back(path.string());
        return Nothing{};
    }

    Status search(const fs::path& folder) {
        std::error_code error;
        std::vector<fs::path> folders;
        for (auto at = fs::directory_iterator(folder, error); !error && at != fs::directory_iterator();
             at.increment(error)) {
            std::error_code none;
            if (at->is_directory(none)) {
                // A link to a folder may form a cycle.
                if (is_found(open::identify(at->path().string())))
                    WM_RETURN_IF_ERROR(take_path(at->path()));
                else if (!at->is_symlink(none))
                    folders.push_back(at->path());
            } else if (at->is_regular_file(none) && is_perf_file(at->path())) {
                WM_RETURN_IF_ERROR(take_path(at->path()));
            }
        }
        if (error)
            return Error{Errc::unreadable,
                         fmt::format("cannot read the folder {}: {}", folder.string(), error.message())};
        for (const fs::path& inner : folders) WM_RETURN_IF_ERROR(search(inner));
        return Nothing{};
    }

    Status take_path(const fs::path& path) {
        std::error_code error;
        const fs::path real = fs::canonical(path, error);
        if (error) return Error{Errc::unreadable, fmt::format("{}: {}", path.string(), error.message())};
        // Other machines may reach it through other links, so links in the given name are kept.
        fs::path name = fs::absolute(path);
        const bool goes_up = std::find(name.begin(), name.end(), "..") != name.end();
        std::string text = (goes_up ? real : name.lexically_normal()).string();
        if (text.size() > 1 && text.ends_with('/')) text.pop_back();
        if (utf8(text) != text)
            return Error{Errc::usage,
                         fmt::format("{}: the name is not UTF-8, so no plan can contain it; rename the file", text)};
        const auto [at, fresh] = paths_.try_emplace(real.string(), text);
        if (fresh) return Nothing{};
        ++out_.repeated;
        at->second = std::min(at->second, text);
        return Nothing{};
    }

    std::map<std::string, std::string> paths_;  // given names by real path
    FoundCaptures out_;
};

}  // namespace

Result<FoundCaptures> find_captures(const std::vector<std::string>& inputs) {
    CaptureFinder finder;
    for (const std::string& input : inputs) WM_RETURN_IF_ERROR(finder.add(input));
    return finder.take();
}

}  // namespace waymark::fleet
