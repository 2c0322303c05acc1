#include "waymark/analysis/source_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/image/source_folders.h"

namespace waymark::analysis {

namespace fs = std::filesystem;

namespace {

constexpr std::uintmax_t most_source_bytes = 16 << 20;

bool is_below_folder(const fs::path& path, const fs::path& folder) {
    const auto [end, rest] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
    return end == folder.end() && rest != path.end();
}

/// Files of the system's packages, which are no secret.
const fs::path& installed_sources() {
    static const fs::path folder = "/usr";
    return folder;
}

bool has_name_of_source(const fs::path& path) {
    static constexpr auto ends = std::to_array<std::string_view>(
        {".C",     ".F",   ".F90", ".H",    ".S",  ".ada",   ".adb", ".ads",  ".asm", ".c",   ".c++", ".cc",
         ".cl",    ".cpp", ".cr",  ".cs",   ".cu", ".cuh",   ".cxx", ".d",    ".def", ".di",  ".f",   ".f03",
         ".f08",   ".f77", ".f90", ".f95",  ".fs", ".go",    ".h",   ".h++",  ".hh",  ".hpp", ".hs",  ".hxx",
         ".inc",   ".inl", ".ipp", ".java", ".jl", ".js",    ".kt",  ".l",    ".ll",  ".lua", ".m",   ".ml",
         ".mm",    ".nim", ".p",   ".pas",  ".pp", ".proto", ".py",  ".pyx",  ".rl",  ".rs",  ".s",   ".scala",
         ".swift", ".sx",  ".tcc", ".tpp",  ".ts", ".txx",   ".v",   ".vala", ".y",   ".yy",  ".zig"});
    const std::string end = path.extension().string();
    if (std::find(ends.begin(), ends.end(), end) != ends.end()) return true;
    // <vector>
    const bool header = end.empty() && is_below_folder(path, installed_sources());
    return header && std::any_of(path.begin(), path.end(), [](const fs::path& part) { return part == "include"; });
}

class SourceTextReader {
public:
    SourceTextReader(answers::Answers& answers, const SourceSearch& search) : answers_(answers) {
        std::error_code error;
        for (const fs::path& root : search.roots)
            if (fs::path real = fs::canonical(root, error); !error) roots_.push_back({root, std::move(real)});
        for (const answers::Image& image : answers.images) {
            if (image.path.empty()) continue;
            for (const fs::path& folder : image::source_folders(image.path, search.debug_folders))
                if (const fs::path real = fs::canonical(folder, error); !error) folders_.insert(real);
        }
        folders_.insert(installed_sources());
    }

    ReadSources read() {
        for (answers::SourceFile& source : answers_.sources) {
            if (auto why = read(source)) out_.refused.push_back({source.path, std::move(*why)});
            out_.files += source.lines.empty() ? 0 : 1;
        }
        out_.folders.assign(read_below_.begin(), read_below_.end());
        report();
        return std::move(out_);
    }

private:
    struct Root {
        fs::path given, real;
    };

    /// Reads the file; returns the reason if it exists and cannot be shown.
    std::optional<std::string> read(answers::SourceFile& source) {
        const fs::path path = fs::path(source.path).lexically_normal();
        std::optional<std::string> why;
        const auto taken = [&](const fs::path& place, const auto& allowed) {
            auto refusal = refused(place, allowed);
            if (!refusal) refusal = load(source, place);
            if (!refusal) return true;
            if (!refusal->empty() && !why) why = std::move(refusal);
            return false;
        };
        for (const Root& root : roots_) {
            const std::array<fs::path, 1> allowed{root.real};
            if (is_below_folder(path, root.real) && taken(path, allowed)) return std::nullopt;
            fs::path rest = path.relative_path();
            while (!rest.empty()) {
                if (taken(root.given / rest, allowed)) return std::nullopt;
                auto second = rest.begin();
                fs::path shorter;
                for (++second; second != rest.end(); ++second) shorter /= *second;
                rest = std::move(shorter);
            }
        }
        if (taken(path, folders_)) return std::nullopt;
        return why;
    }

    /// Returns nullopt if the file may be read, an empty string if it does not exist, or the reason for refusing it.
    static std::optional<std::string> refused(const fs::path& place, const auto& allowed) {
        std::error_code error;
        const fs::file_status status = fs::status(place, error);
        if (!fs::exists(status)) return std::string();
        const fs::path real = fs::canonical(place, error);
        if (error) return std::string();
        if (!fs::is_regular_file(status)) return "no regular file";
        if (!has_name_of_source(place) || !has_name_of_source(real)) return "its name is not the name of a source file";
        if (std::none_of(allowed.begin(), allowed.end(), [&](const fs::path& f) { return is_below_folder(real, f); }))
            return "not below a folder in which the program was compiled";
        if (fs::file_size(real, error) > most_source_bytes) return "larger than 16 MiB";
        return std::nullopt;
    }

    /// Returns the reason if the file is not text; empty if the file is empty.
    std::optional<std::string> load(answers::SourceFile& source, const fs::path& place) {
        std::ifstream in(place);
        for (std::string line; std::getline(in, line);) {
            if (line.find('\0') != line.npos) {
                source.lines.clear();
                return "it has a NUL byte, so it is not text";
            }
            source.lines.push_back(std::move(line));
        }
        if (source.lines.empty()) return std::string();
        std::error_code error;
        read_below_.insert(fs::canonical(place, error).parent_path().string());
        return std::nullopt;
    }

    void report() {
        using Severity = answers::Finding::Severity;
        static constexpr std::size_t most = 10;
        const auto some = [](const auto& items, auto&& text) {
            std::string list;
            for (std::size_t i = 0; i < std::min(items.size(), most); ++i)
                list += (i == 0 ? "" : ", ") + text(items[i]);
            return items.size() > most ? list + fmt::format(" and {} more", items.size() - most) : list;
        };
        if (out_.files != 0)
            answers_.health.push_back(
                {Severity::note, fmt::format("The text of {} is included, of {}.", counted(out_.files, "source file"),
                                             some(out_.folders, [](const std::string& f) { return f; }))});
        if (!out_.refused.empty())
            answers_.health.push_back(
                {Severity::note,
                 fmt::format("{} that debug information names {} not read: {}.", counted(out_.refused.size(), "file"),
                             out_.refused.size() == 1 ? "was" : "were",
                             some(out_.refused, [](const RefusedSource& r) { return r.path + " (" + r.why + ")"; })),
                 "If these are sources of the program, name their folder with --source-root."});
    }

    answers::Answers& answers_;
    std::vector<Root> roots_;
    std::set<fs::path> folders_;
    std::set<std::string> read_below_;
    ReadSources out_;
};

}  // namespace

ReadSources read_sources(answers::Answers& answers, const SourceSearch& search) {
    ReadSources out = SourceTextReader(answers, search).read();
    std::stable_sort(answers.health.begin(), answers.health.end(),
                     [](const auto& a, const auto& b) { return a.severity > b.severity; });
    return out;
}

}  // namespace waymark::analysis
