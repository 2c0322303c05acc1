#include "recorded_images.h"

#include <fmt/format.h>

#include <algorithm>

#include "waymark/record/files.h"
#include "waymark/record/mapped_file.h"

namespace waymark::record {

namespace fs = std::filesystem;

namespace {

/// Distance of a mapped file from its link addresses; nullopt if it is not an ELF file.
std::optional<std::uint32_t> load_bias(const MappedFile& file, const MapPart& map) {
    const MappedPiece piece = executable_pieces(file, map).front();
    for (const MappedFile::Part& part : file.executable)
        if (piece.file_offset >= part.offset && piece.file_offset - part.offset < part.bytes)
            return static_cast<std::uint32_t>(piece.address - (part.address + (piece.file_offset - part.offset)));
    return std::nullopt;
}

}  // namespace

RecordedImages::RecordedImages(fs::path folder, bool by_message) : folder_(std::move(folder)) {
    if (by_message) modules_by_message_.emplace();
}

/// Calls f for each mapping of a file, with the present offset in the trace, which is the offset of the next event.
void RecordedImages::each_map(const DrivenUnit& unit, auto&& f) {
    constexpr std::uint64_t word_bytes = 4;
    f(modules_, unit.model().counts().words * word_bytes);
    if (modules_by_message_) f(*modules_by_message_, unit.model().counts().nexus_bytes);
}

void RecordedImages::mapped(const MapPart& part, std::string_view name, const DrivenUnit& unit) {
    each_map(unit, [&](Modules& modules, std::uint64_t now) { modules.mapped(part, name, now); });
    if (name.empty()) return;
    const std::string file(name);
    const MappedFile mapped = read_mapped_file(file);
    const auto bias = load_bias(mapped, part);
    if (!bias) return;
    const std::size_t index = image(part, file, *bias);
    for (const MappedPiece& piece : executable_pieces(mapped, part))
        if (const std::uint32_t module = modules_.at({piece.address}); module != Modules::none)
            image_of_[module] = index;
}

void RecordedImages::unmapped(const UnmapPart& part, const DrivenUnit& unit) {
    each_map(unit, [&](Modules& modules, std::uint64_t now) { modules.unmapped(part, now); });
}

void RecordedImages::still_mapped(const StillMappedPart& part, const DrivenUnit& unit) {
    each_map(unit, [&](Modules& modules, std::uint64_t) { modules.still_mapped(part); });
}

void RecordedImages::ran(std::uint32_t module, const DrivenUnit& unit) {
    each_map(unit, [&](Modules& modules, std::uint64_t now) {
        if (modules.conflicts(module)) modules.new_epoch();
        modules.run(module, now);
    });
}

/// Index of the image for a mapped file. A new file is copied at once, since the program may be rebuilt before the copy
/// is needed.
std::size_t RecordedImages::image(const MapPart& part, const std::string& name, std::uint32_t load_bias) {
    std::error_code error;
    MappedProgram fresh{name, part.inode, fs::file_size(name, error), fs::last_write_time(name, error), load_bias,
                        {},   {}};
    for (std::size_t i = images_.size(); i-- > 0;) {
        const MappedProgram& known = images_[i];
        if (known.file != name || known.inode != fresh.inode || known.bytes != fresh.bytes ||
            known.changed != fresh.changed)
            continue;
        if (known.load_bias == load_bias) return i;
        fresh.copy = known.copy;
        fresh.build_id = known.build_id;
    }
    if (fresh.copy.empty()) {
        // An existing file with this name was not made by this recorder.
        do fresh.copy = folder_ / fmt::format("{}{}.elf", dpu_image_prefix, copies_++);
        while (fs::exists(fresh.copy, error));
        fs::copy_file(name, fresh.copy, error);
        if (error) fresh.copy = name;
        fresh.build_id = read_mapped_file(fresh.copy.string()).build_id;
    }
    images_.push_back(std::move(fresh));
    return images_.size() - 1;
}

const MappedProgram* RecordedImages::image_of(std::uint32_t module) const {
    const auto found = image_of_.find(module);
    return found == image_of_.end() ? nullptr : &images_[found->second];
}

void RecordedImages::describe(capture::DpuCapture& c, bool by_message, const DrivenUnit& unit) const {
    c.modules = by_message ? modules_by_message_->map() : modules_.map();
    c.modules.clock = capture::trace_bytes_clock;
    for (capture::Module& m : c.modules.modules) {
        if (by_message) break;
        m.from = unit.place_in_file(m.from);
        if (m.to) m.to = unit.place_in_file(*m.to);
    }
    for (const MappedProgram& image : images_) {
        c.images.push_back({image.copy, image.load_bias});
        capture::CopiedFile copied{image.copy.filename().string(), image.build_id, image.file};
        if (image.copy.parent_path() == folder_ &&
            std::find(c.modules.copies.begin(), c.modules.copies.end(), copied) == c.modules.copies.end())
            c.modules.copies.push_back(std::move(copied));
    }
}

}  // namespace waymark::record
