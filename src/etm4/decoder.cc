#include "waymark/etm4/decoder.h"

#include "decoder_machine.h"

namespace waymark::etm4 {

class Decoder::Core {
public:
    virtual ~Core() = default;
    virtual void feed(Bytes bytes) = 0;
    virtual void reset() = 0;
    virtual void finish() = 0;
    [[nodiscard]] virtual std::uint64_t packets() const = 0;
    [[nodiscard]] virtual std::array<Offset, 2> pending() const = 0;
    [[nodiscard]] virtual bool amid_packet() const = 0;
};

template <class Out>
class Decoder::CoreTo final : public Core {
public:
    CoreTo(const Config& config, const isa::CodeReader& code, Out& out) : machine_(config, code, out) {}
    void feed(Bytes bytes) override { machine_.feed(bytes); }
    void reset() override { machine_.reset(); }
    void finish() override { machine_.finish(); }
    [[nodiscard]] std::uint64_t packets() const override { return machine_.packets(); }
    [[nodiscard]] std::array<Offset, 2> pending() const override { return machine_.pending(); }
    [[nodiscard]] bool amid_packet() const override { return machine_.amid_packet(); }

private:
    Machine<Out> machine_;
};

Decoder::Decoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out)
    : core_(std::make_unique<CoreTo<flow::BatchWriter>>(config, code, out)) {}
Decoder::Decoder(const Config& config, const isa::CodeReader& code, flow::CountWriter& out)
    : core_(std::make_unique<CoreTo<flow::CountWriter>>(config, code, out)) {}
Decoder::~Decoder() = default;
void Decoder::feed(Bytes bytes) { core_->feed(bytes); }
void Decoder::reset() { core_->reset(); }
void Decoder::finish() { core_->finish(); }
std::uint64_t Decoder::packets() const { return core_->packets(); }
std::array<Offset, 2> Decoder::pending() const { return core_->pending(); }
bool Decoder::amid_packet() const { return core_->amid_packet(); }

}  // namespace waymark::etm4
