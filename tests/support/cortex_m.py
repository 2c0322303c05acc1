"""Programs for a Cortex-M without an operating system: their addresses in each machine, and how they are built. from
cortex_m import BOARDS, COMPILER, build

    from cortex_m import BOARDS, COMPILER, build
"""
import subprocess

COMPILER = "arm-linux-gnueabihf-gcc"
# Core, and addresses of the code and of the variables: the machines microbit, mps2-an385, mps2-an500, mps2-an505 and
# mps3-an547.
BOARDS = {"m0": ("cortex-m0", "0x0", "0x20000000"), "m3": ("cortex-m3", "0x0", "0x20000000"), "m7": ("cortex-m7", "0x0", "0x20000000"), "m33": ("cortex-m33", "0x10000000", "0x38000000"),
          "m55": ("cortex-m55", "0x0", "0x21000000")}
LINKER = """MEMORY { FLASH (rx) : ORIGIN = %s, LENGTH = 64K
 RAM (rwx) : ORIGIN = %s, LENGTH = 16K }
ENTRY(reset)
SECTIONS {
 .text : { KEEP(*(.vectors)) *(.text*) *(.rodata*) } > FLASH
 .bss (NOLOAD) : { *(.data*) *(.bss*) *(COMMON) } > RAM
 stack_top = ORIGIN(RAM) + LENGTH(RAM);
}
"""


def build(folder, board, name, program, *options):
    """The text of a program in C, whose section .vectors has its vector table → the path of its ELF file."""
    cpu, flash, ram = BOARDS[board]
    source, script, out = (folder / f"{name}-{board}{end}" for end in (".c", ".ld", ".elf"))
    source.write_text(program)
    script.write_text(LINKER % (flash, ram))
    subprocess.run([COMPILER, f"-mcpu={cpu}", "-mthumb", "-mfloat-abi=soft", "-O1", "-g", "-nostdlib", "-static",
                    "-ffreestanding", "-fno-pic", "-no-pie", *options, "-Wl,--no-warn-rwx-segments",
                    "-Wl,--build-id=none", "-T", script, "-o", out, source], check=True)
    return out
