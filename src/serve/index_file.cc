// An index in a file: a header, the streams, and a hash of both. Numbers are LEB128.

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <mutex>
#include <set>
#include <system_error>

#include "waymark/capture/placed_file.h"
#include "waymark/core/file_error.h"
#include "waymark/serve/index.h"

namespace waymark::serve {

namespace {

namespace fs = std::filesystem;
using analysis::CodeFunction;
using analysis::KeptFrame;

constexpr std::string_view magic = "waymark index 2\n";
/// The beginning of the file in all versions.
constexpr std::string_view magic_begins = "waymark index ";
/// No index is larger, and no list in an index has more elements than bytes.
constexpr std::uint64_t most_file_bytes = std::uint64_t{1} << 31;

/// Both directions of a format that is described once: `Writer` appends what `Reader` reads.
class Writer {
public:
    explicit Writer(std::vector<std::uint8_t>& to) : to_(to) {}
    void number(std::uint64_t value) {
        for (; value >= 0x80; value >>= 7) to_.push_back(static_cast<std::uint8_t>(value | 0x80));
        to_.push_back(static_cast<std::uint8_t>(value));
    }
    template <class T>
    void value(const T& value) {
        number(static_cast<std::uint64_t>(value));
    }
    void text(const std::string& text) {
        number(text.size());
        to_.insert(to_.end(), text.begin(), text.end());
    }
    template <class T, class Each>
    void list(const std::vector<T>& all, Each&& each) {
        number(all.size());
        for (const T& one : all) each(one);
    }
    template <class T, class Each>
    void maybe(const std::optional<T>& what, Each&& each) {
        number(what ? 1 : 0);
        if (what) each(*what);
    }
    void exception(const flow::ExceptionType& type) {
        number(type.number);
        value(type.kind);
        text(std::string(type.name));
    }

private:
    std::vector<std::uint8_t>& to_;
};

/// Names of exceptions, which live as long as the program.
std::string_view lasting(const std::string& name) {
    static std::mutex mutex;
    static std::set<std::string> names;
    const std::scoped_lock lock(mutex);
    return *names.insert(name).first;
}

class Reader {
public:
    explicit Reader(Bytes& from) : from_(from) {}
    [[nodiscard]] bool ok() const { return ok_; }
    std::uint64_t number() {
        std::uint64_t out = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            if (from_.empty()) break;
            const std::uint8_t byte = from_.front();
            from_ = from_.subspan(1);
            out |= std::uint64_t{byte & 0x7fU} << shift;
            if ((byte & 0x80) == 0) return out;
        }
        ok_ = false;
        return 0;
    }
    template <class T>
    void value(T& value) {
        value = static_cast<T>(number());
    }
    void text(std::string& text) {
        const std::uint64_t size = number();
        if (size > from_.size()) {
            ok_ = false;
            return;
        }
        text.assign(reinterpret_cast<const char*>(from_.data()), static_cast<std::size_t>(size));
        from_ = from_.subspan(static_cast<std::size_t>(size));
    }
    template <class T, class Each>
    void list(std::vector<T>& all, Each&& each) {
        const std::uint64_t size = number();
        // Each element takes at least a byte.
        if (size > from_.size()) ok_ = false;
        for (std::uint64_t i = 0; ok_ && i < size; ++i) each(all.emplace_back());
    }
    template <class T, class Each>
    void maybe(std::optional<T>& what, Each&& each) {
        if (number() != 0) each(what.emplace());
    }
    void exception(flow::ExceptionType& type) {
        std::string name;
        value(type.number);
        value(type.kind);
        text(name);
        type.name = lasting(name);
    }

private:
    Bytes& from_;
    bool ok_ = true;
};

// Each function takes a Writer and a const object, or a Reader and an object that is not const.

void describe(auto& io, auto& number) requires std::is_arithmetic_v<std::remove_cvref_t<decltype(number)>> ||
    std::is_enum_v<std::remove_cvref_t<decltype(number)>> {
    io.value(number);
}
template <class Io>
void each_number(Io& io, auto&... numbers) {
    (describe(io, numbers), ...);
}
void describe_function(auto& io, auto& f) {
    each_number(io, f.kind, f.value);
    if (f.kind == CodeFunction::Kind::exception) io.exception(f.exception);
}
void describe_frame(auto& io, auto& f) {
    // Names all members, so that a new one is not left out.
    auto& [function, entry, how, waits_for, entered, to, again, named, returns_twice, unwinds, tail, falls, nameless,
           exception] = f;
    describe_function(io, function);
    describe_function(io, entry);
    each_number(io, how, waits_for, entered, to, again, named, returns_twice, unwinds, tail, falls, nameless);
    io.maybe(exception, [&](auto& e) { io.exception(e); });
}
void describe_id(auto& io, auto& id) {
    io.maybe(id, [&](auto& n) { describe(io, n); });
}
void describe_key(auto& io, auto& key) {
    describe_id(io, key.context_id);
    describe_id(io, key.vmid);
}
void describe_calls(auto& io, auto& calls) {
    auto& stacks = calls.stacks;
    describe_key(io, stacks.key);
    each_number(io, stacks.now.instructions, stacks.now.cycles);
    io.list(stacks.stacks, [&](auto& s) {
        describe_key(io, s.key);
        io.list(s.frames, [&](auto& f) { describe_frame(io, f); });
        io.list(s.aside, [&](auto& frames) { io.list(frames, [&](auto& f) { describe_frame(io, f); }); });
        each_number(io, s.above, s.cut, s.aside_given_up);
    });
    io.maybe(calls.last, [&](auto& b) {
        each_number(io, b.start, b.target, b.bytes, b.instructions, b.section, b.isa, b.end, b.last_bytes, b.flags);
    });
    each_number(io, calls.taken);
}
void describe_point(auto& io, auto& p) {
    each_number(io, p.from, p.length, p.read_from, p.skip, p.amid_source);
    describe_id(io, p.memory.context_id);
    describe_id(io, p.memory.vmid);
    each_number(io, p.memory.timestamp, p.memory.timestamp_known, p.memory.latest, p.ran);
    io.list(p.timeline.tracks, [&](auto& track) { describe_id(io, track); });
    io.list(p.timeline.anchors, [&](auto& a) { each_number(io, a.at, a.ticks); });
    describe_calls(io, p.calls);
}

/// Whether all enumerators exist: a damaged file may contain others.
bool is_valid(const Point& p) {
    const auto function = [](const CodeFunction& f) {
        return f.kind <= CodeFunction::Kind::exception &&
               static_cast<unsigned>(f.exception.kind) < flow::exception_classes;
    };
    const auto frame = [&](const KeptFrame& f) {
        return function(f.function) && function(f.entry) && f.how <= analysis::Entered::by_signal &&
               (!f.exception || static_cast<unsigned>(f.exception->kind) < flow::exception_classes);
    };
    for (const analysis::KeptStack& s : p.calls.stacks.stacks) {
        if (!std::all_of(s.frames.begin(), s.frames.end(), frame)) return false;
        for (const auto& frames : s.aside)
            if (frames.empty() || !std::all_of(frames.begin(), frames.end(), frame)) return false;
    }
    const std::optional<flow::Block>& last = p.calls.last;
    return !last || (last->isa <= flow::Isa::a64 && last->end <= flow::End::barrier);
}

class Hash {
public:
    Hash() { XXH3_128bits_reset(&state_); }
    void add(Bytes bytes) { XXH3_128bits_update(&state_, bytes.data(), bytes.size()); }
    void add(std::uint64_t number) { XXH3_128bits_update(&state_, &number, sizeof number); }
    void add(std::string_view text) {
        add(std::uint64_t{text.size()});
        XXH3_128bits_update(&state_, text.data(), text.size());
    }
    [[nodiscard]] std::string text() const {
        const XXH128_hash_t hash = XXH3_128bits_digest(&state_);
        return fmt::format("{:016x}{:016x}", hash.high64, hash.low64);
    }

private:
    XXH3_state_t state_;
};

/// A file's size, time, first and last bytes.
Status add_file(Hash& hash, const fs::path& path) {
    std::error_code none;
    const fs::path full = fs::absolute(path, none);
    const std::uint64_t size = fs::file_size(path, none);
    if (none) return Error{Errc::unreadable, path.string() + ": " + none.message()};
    const auto time = fs::last_write_time(path, none);
    if (none) return Error{Errc::unreadable, path.string() + ": " + none.message()};
    hash.add(full.string());
    hash.add(size);
    hash.add(static_cast<std::uint64_t>(time.time_since_epoch().count()));
    std::ifstream in(path, std::ios::binary);
    if (!in) return Error{Errc::unreadable, path.string() + ": cannot be opened"};
    constexpr std::uint64_t part = std::uint64_t{1} << 16;
    std::vector<std::uint8_t> bytes(part);
    for (const std::uint64_t at : {std::uint64_t{0}, size > part ? size - part : 0}) {
        in.clear();
        in.seekg(static_cast<std::streamoff>(at));
        in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
        hash.add(Bytes(bytes).first(static_cast<std::size_t>(in.gcount())));
    }
    return Nothing{};
}

}  // namespace

void append(std::vector<std::uint8_t>& to, const Point& point) {
    Writer writer(to);
    describe_point(writer, point);
}

std::optional<Point> take_point(Bytes& from) {
    Reader reader(from);
    Point point;
    describe_point(reader, point);
    if (!reader.ok() || !is_valid(point)) return {};
    return point;
}

Result<std::string> identity_of(const pipeline::Session& session, const std::vector<const pipeline::Source*>& selected,
                                std::string_view version, const IndexOptions& options) {
    Hash hash;
    hash.add(version);
    hash.add(options.spacing);
    hash.add(options.one_part_of);
    for (const capture::Buffer& buffer : session.capture.buffers) {
        hash.add(buffer.name);
        hash.add(static_cast<std::uint64_t>(buffer.format));
        hash.add(std::uint64_t{buffer.sources.size()});
        for (const std::string& source : buffer.sources) hash.add(source);
        for (const fs::path& file : buffer.files) WM_RETURN_IF_ERROR(add_file(hash, file));
    }
    for (const capture::MemoryDump& dump : session.capture.dumps) {
        hash.add(dump.address.value);
        WM_RETURN_IF_ERROR(add_file(hash, dump.file));
    }
    for (const pipeline::Source* source : selected) {
        hash.add(source->name);
        hash.add(source->type);
        hash.add(source->core_type);
        hash.add(source->trace_id ? source->trace_id->value + std::uint64_t{1} : std::uint64_t{0});
        for (const capture::Register& r : source->registers) {
            hash.add(r.name);
            hash.add(r.value);
        }
        for (const image::Section& section : source->memory->sections()) {
            hash.add(section.address.value);
            hash.add(section.bytes);
            hash.add(section.name);
        }
        for (const image::LoadedFile& file : source->names->files) {
            hash.add(file.load_bias);
            std::error_code none;
            if (fs::is_regular_file(file.path, none)) WM_RETURN_IF_ERROR(add_file(hash, file.path));
        }
        for (const image::Symbol& symbol : source->names->symbols.all()) {
            hash.add(symbol.address.value);
            hash.add(symbol.bytes);
            hash.add(symbol.linkage_name);
        }
    }
    return hash.text();
}

Result<std::shared_ptr<Index>> read_index(const fs::path& file, const std::string& identity) {
    std::error_code none;
    const std::uint64_t size = fs::is_regular_file(file, none) ? fs::file_size(file, none) : 0;
    if (size == 0) return Error{Errc::not_found, file.string() + ": there is no index yet"};
    const Error damaged{Errc::bad_format, file.string() + ": this index is damaged, and is made anew"};
    if (size > most_file_bytes) return damaged;
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(size));
    std::ifstream in(file, std::ios::binary);
    in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    constexpr std::size_t hash_bytes = 8;
    if (!in || size < magic.size() + hash_bytes) return damaged;
    Bytes from = Bytes(bytes).first(bytes.size() - hash_bytes);
    std::uint64_t hash = 0;
    std::memcpy(&hash, bytes.data() + from.size(), hash_bytes);
    if (XXH3_64bits(from.data(), from.size()) != hash) return damaged;
    if (std::memcmp(from.data(), magic.data(), magic.size()) != 0) return damaged;
    from = from.subspan(magic.size());
    Reader reader(from);
    std::string of;
    reader.text(of);
    if (of != identity)
        return Error{Errc::bad_format, file.string() +
                                           ": this index is of another capture, program or version of "
                                           "Waymark, and is made anew"};
    std::vector<StreamPoints> streams;
    bool valid = true;
    reader.list(streams, [&](StreamPoints& s) {
        reader.text(s.buffer);
        reader.text(s.source);
        each_number(reader, s.instructions, s.bytes);
        const std::uint64_t count = reader.number();
        for (std::uint64_t i = 0; valid && reader.ok() && i < count; ++i) {
            std::optional<Point> point = take_point(from);
            valid = point && (s.points.empty() || s.points.back()->now().instructions <= point->now().instructions);
            if (valid) s.points.push_back(std::make_shared<const Point>(std::move(*point)));
        }
    });
    if (!valid || !reader.ok() || !from.empty()) return damaged;
    auto index = std::make_shared<Index>(std::move(streams));
    index->finish();
    return index;
}

Status check_index_file(const fs::path& file) {
    std::error_code none;
    const fs::file_status there = fs::status(file, none);
    if (there.type() == fs::file_type::not_found) return Nothing{};
    const Error other{Errc::usage, file.string() + ": is not an index of waymark serve, and is not replaced"};
    if (!fs::is_regular_file(there)) return other;
    std::ifstream in(file, std::ios::binary);
    std::string begin(magic_begins.size(), ' ');
    in.read(begin.data(), static_cast<std::streamsize>(begin.size()));
    const auto count = static_cast<std::size_t>(in.gcount());
    if (!in.is_open() || in.bad() || (count != 0 && begin != magic_begins)) return other;
    return Nothing{};
}

Status write_index(const fs::path& file, const std::string& identity, const Index& index) {
    // Another file may have been created meanwhile.
    WM_RETURN_IF_ERROR(check_index_file(file));
    std::vector<std::uint8_t> bytes(magic.begin(), magic.end());
    Writer writer(bytes);
    writer.text(identity);
    writer.list(index.streams(), [&](const StreamPoints& s) {
        writer.text(s.buffer);
        writer.text(s.source);
        each_number(writer, s.instructions, s.bytes);
        writer.list(s.points, [&](const std::shared_ptr<const Point>& p) { append(bytes, *p); });
    });
    const std::uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
    for (unsigned i = 0; i < 8; ++i) bytes.push_back(reinterpret_cast<const std::uint8_t*>(&hash)[i]);
    if (bytes.size() > most_file_bytes)
        return Error{Errc::unsupported,
                     file.string() + ": the index is too large to be stored; --index-every makes it smaller"};

    std::error_code none;
    if (file.has_parent_path()) fs::create_directories(file.parent_path(), none);
    // A file with the name "-" is an ordinary file here.
    const fs::path place = file.has_parent_path() ? file : "." / file;
    WM_ASSIGN_OR_RETURN(const std::unique_ptr<capture::PlacedFile> out,
                        capture::PlacedFile::open(place.string(), {}, {.synced = true}));
    const bool written = std::fwrite(bytes.data(), 1, bytes.size(), out->file()) == bytes.size();
    if (const int error = out->commit(written ? 0 : errno); error != 0)
        return Error{Errc::unreadable, "cannot write " + file.string() + ": " + reason(error)};
    return Nothing{};
}

fs::path usual_index_file(const std::string& identity) {
    const auto given = [](const char* name) -> fs::path {
        const char* const value = std::getenv(name);
        return value == nullptr ? "" : value;
    };
    fs::path folder = given("XDG_CACHE_HOME");
    // The specification of these folders ignores relative paths.
    if (!folder.is_absolute()) folder = given("HOME").empty() ? fs::path() : given("HOME") / ".cache";
    if (!folder.is_absolute()) return {};
    return folder / "waymark" / "index" / identity;
}

}  // namespace waymark::serve
