#include "waymark/pipeline/id_register.h"

#include <fmt/format.h>

#include "waymark/pipeline/protocols.h"

namespace waymark::pipeline {

std::string_view id_register(const Source& source) { return trace_id_register(source.registers, source.type); }

std::string id_setting(const Source& source, coresight::TraceId id) {
    const protocol::TraceIdField field = trace_id_field(source.registers, source.type);
    return field.lowest_bit != 0
               ? fmt::format("{}={:#010x}", field.register_name, std::uint32_t{id.value} << field.lowest_bit)
               : fmt::format("{}={:#04x}", field.register_name, id.value);
}

}  // namespace waymark::pipeline
