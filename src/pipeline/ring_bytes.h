/// The bytes of a ring of memory (protocol::RingSource), whose parts were put into the order in which they were
/// written.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "waymark/capture/byte_file.h"

namespace waymark::pipeline {

/// The container of a buffer that is itself a ring, so that the offsets of its parts are offsets in the ring.
class RingBytes final : public capture::ByteFile {
public:
    explicit RingBytes(std::unique_ptr<capture::ByteFile> bytes) : bytes_(std::move(bytes)) {}
    [[nodiscard]] Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> into) const override {
        return bytes_->read_at(offset, into);
    }
    [[nodiscard]] std::uint64_t size() const override { return bytes_->size(); }
    [[nodiscard]] const std::string& name() const override { return bytes_->name(); }

private:
    std::unique_ptr<capture::ByteFile> bytes_;
};

}  // namespace waymark::pipeline
