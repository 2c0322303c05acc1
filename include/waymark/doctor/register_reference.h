/// The purpose of the registers of all units: the reference in docs/registers/, and single registers by their names.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/register_reference.h"
#include "waymark/core/result.h"

namespace waymark::doctor {

/// The references of all units: the protocols in the order of the registry, then SPE, DPU and trace buffers.
[[nodiscard]] std::vector<UnitReference> register_references();

/// A register that the user named, and its unit.
struct NamedRegister {
    UnitReference unit;                    ///< with this one register
    std::vector<FieldReference> fields{};  ///< the requested fields: all, or the named one
    std::optional<unsigned> index{};       ///< of the one of a group that was named, in its places
};
/// The registers with the name `name`, in any case of letters: `TRCCONFIGR`, `TRCCONFIGR.BB`, `TRCVICTLR.EVENT` for the
/// fields EVENT.TYPE and EVENT.SEL, without the last R as in Linux's sysfs (`trcconfig`), with the number of one
/// register of a group (`TRCACVR3`). Several units can have registers with one name (ETMCR). Errors: `not_found`: no
/// unit has a register with that name, or the register has no such field; the message lists its fields.
[[nodiscard]] Result<std::vector<NamedRegister>> registers_called(std::string_view name);

/// The document of a unit, in docs/registers/, as Markdown.
[[nodiscard]] std::string document_of(const UnitReference& unit);
/// docs/registers/README.md: the units, with links to their documents.
[[nodiscard]] std::string index_of(const std::vector<UnitReference>& units);

}  // namespace waymark::doctor
