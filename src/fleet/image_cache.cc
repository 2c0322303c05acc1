#include "waymark/fleet/image_cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <system_error>

#include "durable_file.h"
#include "waymark/capture/module_map.h"
#include "waymark/fleet/survey.h"
#include "waymark/image/debug_info.h"

namespace waymark::fleet {

namespace fs = std::filesystem;

namespace {

/// Paths at which a folder may have the files of a build.
std::vector<fs::path> places(const std::string& build_id) {
    const fs::path group = fs::path(".build-id") / build_id.substr(0, 2);
    return {group / build_id.substr(2) / "elf", group / (build_id.substr(2) + ".debug")};
}

bool has_build_id(const fs::path& file, const std::string& build_id) {
    const auto info = image::DebugInfo::open(file);
    return info && capture::hex_text(info->build_id()) == build_id;
}

/// Whether a copy has the right build ID, and its original is unchanged. The build ID is in the first bytes, so even a
/// truncated file has it.
bool is_sound(const fs::path& copy, const fs::path& place, const std::string& build_id,
              const std::vector<fs::path>& sources) {
    if (!has_build_id(copy, build_id)) return false;
    std::error_code none;
    for (const fs::path& source : sources) {
        if (!fs::is_regular_file(source / place, none)) continue;
        const auto original = file_state((source / place).string()), own = file_state(copy.string());
        return !original || (own && own->bytes == original->bytes && own->sample == original->sample);
    }
    return true;
}

/// Sets the modification time, which records the last use.
void mark_used(const fs::path& file) { static_cast<void>(::utimensat(AT_FDCWD, file.c_str(), nullptr, 0)); }

bool copy_durably(const fs::path& from, const fs::path& to) {
    std::ifstream in(from, std::ios::binary);
    std::error_code error;
    fs::create_directories(to.parent_path(), error);
    if (!in || error) return false;
    bool whole = true;
    const auto written = write_durably(to, [&](ByteSink& sink) {
        std::vector<char> buffer(1 << 18);
        while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || in.gcount() > 0)
            sink.write({reinterpret_cast<const std::uint8_t*>(buffer.data()), static_cast<std::size_t>(in.gcount())});
        whole = !in.bad();
    });
    if (written && !whole) fs::remove(to, error);
    return written && whole;
}

}  // namespace

void ImageCache::fetch(const std::vector<RanFile>& files, const std::vector<fs::path>& sources) const {
    std::set<std::string> builds;
    constexpr std::size_t least_digits = 4;
    for (const RanFile& f : files)
        if (f.build_id.size() >= least_digits) builds.insert(f.build_id);
    bool copied = false;
    for (const std::string& build : builds)
        for (const fs::path& place : places(build)) {
            const fs::path own = folder_ / place;
            std::error_code none;
            if (fs::exists(own, none)) {
                if (is_sound(own, place, build, sources)) {
                    mark_used(own);
                    continue;
                }
                fs::remove(own, none);
            }
            for (const fs::path& source : sources)
                if (fs::is_regular_file(source / place, none) && copy_durably(source / place, own)) {
                    copied = true;
                    break;
                }
        }
    if (copied) trim();
}

void ImageCache::trim() const {
    struct Entry {
        fs::path path;
        fs::file_time_type used;
        std::uint64_t bytes;
    };
    std::vector<Entry> entries;
    std::uint64_t sum = 0;
    std::error_code error;
    for (auto at = fs::recursive_directory_iterator(folder_, error); !error && at != fs::recursive_directory_iterator();
         at.increment(error)) {
        std::error_code none;
        if (!at->is_regular_file(none)) continue;
        Entry e{at->path(), at->last_write_time(none), at->file_size(none)};
        if (none) continue;
        sum += e.bytes;
        entries.push_back(std::move(e));
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
    for (const Entry& e : entries) {
        if (sum <= most_) break;
        // Another task may have removed it.
        if (fs::remove(e.path, error)) sum -= std::min(sum, e.bytes);
    }
}

}  // namespace waymark::fleet
