/// For reading programs: their memory, symbols, source lines and instructions. Begin with image::MemoryMap and
/// image::Symbols.
#pragma once

#include "waymark/core/result.h"
#include "waymark/image/debug_info.h"
#include "waymark/image/disassembly.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/program_file.h"
#include "waymark/image/symbols.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/isa/isa.h"
