#include "seekable.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace waymark::serve {

namespace {

class FromPlace final : public capture::ByteStream {
public:
    FromPlace(std::vector<std::filesystem::path> files, std::uint64_t skip, std::vector<std::uint8_t> first)
        : files_(std::move(files)), skip_(skip), first_(std::move(first)) {}

    Result<std::size_t> read(std::span<std::uint8_t> into) override {
        if (given_ < first_.size()) {
            const std::size_t count = std::min(into.size(), first_.size() - given_);
            std::copy_n(first_.begin() + static_cast<std::ptrdiff_t>(given_), count, into.begin());
            given_ += count;
            return count;
        }
        for (;;) {
            if (!input_.is_open()) {
                if (next_ == files_.size()) return std::size_t{0};
                if (auto opened = open(files_[next_++]); !opened) return std::move(opened.error());
                continue;
            }
            input_.read(reinterpret_cast<char*>(into.data()), static_cast<std::streamsize>(into.size()));
            const auto count = static_cast<std::size_t>(input_.gcount());
            if (count != 0) return count;
            input_.close();
            input_.clear();
        }
    }

private:
    Status open(const std::filesystem::path& file) {
        std::error_code none;
        const std::uint64_t bytes = std::filesystem::file_size(file, none);
        if (none) return Error{Errc::unreadable, file.string() + ": " + none.message()};
        if (skip_ >= bytes) {
            skip_ -= bytes;
            return Nothing{};
        }
        input_.open(file, std::ios::binary);
        if (!input_) return Error{Errc::unreadable, file.string() + ": cannot be opened"};
        input_.seekg(static_cast<std::streamoff>(std::exchange(skip_, 0)));
        return Nothing{};
    }

    const std::vector<std::filesystem::path> files_;
    std::uint64_t skip_;
    const std::vector<std::uint8_t> first_;
    std::size_t given_ = 0, next_ = 0;
    std::ifstream input_;
};

class First final : public capture::ByteStream {
public:
    First(std::unique_ptr<capture::ByteStream> of, std::uint64_t most, const std::atomic<bool>& stop)
        : of_(std::move(of)), left_(most), stop_(stop) {}
    Result<std::size_t> read(std::span<std::uint8_t> into) override {
        if (left_ == 0 || stop_) return std::size_t{0};
        auto count = of_->read(into.first(static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left_))));
        if (count) left_ -= *count;
        return count;
    }

private:
    const std::unique_ptr<capture::ByteStream> of_;
    std::uint64_t left_;
    const std::atomic<bool>& stop_;
};

}  // namespace

std::unique_ptr<follow::Cutting> cutting_decoder(const pipeline::Source& source, flow::BatchWriter& out) {
    const auto* const cuttable = dynamic_cast<const follow::Cuttable*>(source.configuration.get());
    return cuttable == nullptr ? nullptr : cuttable->cutting(*source.memory, out);
}

bool is_seekable(const capture::Buffer& buffer) {
    return std::all_of(buffer.files.begin(), buffer.files.end(), [](const std::filesystem::path& file) {
        std::error_code none;
        if (!std::filesystem::is_regular_file(file, none)) return false;
        const auto opened = capture::open_bytes(file);
        // The size of a compressed file is not known.
        return opened.has_value() ? (*opened)->size().has_value() : opened.error().code == Errc::bad_format;
    });
}

Result<std::unique_ptr<capture::ByteStream>> open_at(const capture::Buffer& buffer, const Point& point,
                                                     std::optional<coresight::TraceId> id) {
    std::vector<std::uint8_t> first;
    if (point.amid_source && id) {
        // docs/spec/pft.md, 6.1: padding, and then the trace ID of the following bytes.
        first.resize(16);
        first[0] = 1;
        first[14] = static_cast<std::uint8_t>(id->value << 1 | 1);
    }
    return std::unique_ptr<capture::ByteStream>(
        std::make_unique<FromPlace>(buffer.files, point.read_from, std::move(first)));
}

Result<std::unique_ptr<capture::ByteStream>> open_first(const capture::Buffer& buffer, std::uint64_t most,
                                                        const std::atomic<bool>& stop) {
    WM_ASSIGN_OR_RETURN(std::unique_ptr<capture::ByteStream> all, capture::open_buffer(buffer));
    return std::unique_ptr<capture::ByteStream>(std::make_unique<First>(std::move(all), most, stop));
}

}  // namespace waymark::serve
