#include "waymark/protocol/protocol.h"

#include <algorithm>
#include <cstdlib>

#include "waymark/core/result.h"
#include "waymark/flow/summary.h"
#include "waymark/protocol/adapters.h"

namespace waymark::protocol {

namespace {

/// A layer above asked a protocol for what it says it does not have.
[[noreturn]] void not_there() {
    WM_CHECK(false);
    std::abort();
}

}  // namespace

std::unique_ptr<Decoder> Configuration::decoder(const isa::CodeReader&, flow::BatchWriter&,
                                                const DecoderOptions&) const {
    not_there();
}
std::unique_ptr<follow::Parallel> Configuration::parallel_decoder(const isa::CodeReader&, flow::BlockTable&,
                                                                  flow::Sink&, const follow::ParallelOptions&) const {
    not_there();
}
bool Configuration::has_sync(Bytes) const { not_there(); }
follow::HeadRecovery Configuration::recover_head(const isa::CodeReader&, std::span<const follow::CodeExtent>,
                                                 Bytes) const {
    not_there();
}
void Configuration::decode_head(const follow::HeadRecovery&, const isa::CodeReader&, Bytes, flow::BatchWriter&) const {
    not_there();
}
std::vector<CaptureFinding> Configuration::differences(const Configuration&, std::string_view) const { return {}; }
void Configuration::named_addresses(Bytes, const std::function<void(const follow::Place&)>&) const {}

bool Protocol::is_type(std::string_view source_type) const {
    const std::string name = upper(source_type.substr(0, source_type.find('.')));
    const auto& names = words().type_names;
    return !name.empty() && std::find(names.begin(), names.end(), name) != names.end();
}
std::string Protocol::type_of_option(std::string_view) const { return {}; }
void Protocol::visit_register(const RegisterValue&, FieldVisitor&) const {}
Configured Protocol::configure(const Description&) const { not_there(); }
Settled Protocol::settle(const Identity& identity, const Configuration&, const std::vector<Stretch>&,
                         std::string_view) const {
    return {identity.configuration, {}};
}
std::vector<CaptureFinding> Protocol::health(const Identity&, const Configuration*, const std::vector<Stretch>&,
                                             std::string_view) const {
    return {};
}
std::string Protocol::sentence(const flow::Inconsistency& what) const { return std::string(flow::name(what.conflict)); }

}  // namespace waymark::protocol
