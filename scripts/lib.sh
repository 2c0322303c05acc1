# Shared by scripts/*: the working folder, the Debian packages they need, and steps that print output only on failure.
# To be sourced by scripts with set -e, not run.
# shellcheck shell=bash disable=SC2034,SC2164

cd "$(dirname "${BASH_SOURCE[0]}")/.."

build_packages=(
    g++ cmake ninja-build pkg-config ccache
    libfmt-dev libcli11-dev nlohmann-json3-dev zlib1g-dev libzstd-dev libelf-dev libdw-dev liblzma-dev libminizip-dev libexpat1-dev libcapstone-dev libtbb-dev
    libsqlite3-dev libprotozero-dev libxxhash-dev libcpp-httplib-dev
)
# The Python module (WAYMARK_PYTHON).
python_packages=(python3 python3-dev python3-numpy pybind11-dev)
# These build the page of `waymark report`. Everything else builds without them.
web_packages=(nodejs npm)
# The Arm cross compilers build the examples, QEMU runs them.
example_packages=(
    gcc-arm-linux-gnueabihf g++-arm-linux-gnueabihf libc6-dev-armhf-cross
    gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross
)
record_packages=(qemu-user)
# Packages for scripts/package, beyond the packages of the build and of the page.
package_packages=(debhelper dpkg-dev fakeroot lintian)
# clang and its runtime are for the sanitizers and fuzz targets, lld links them; clang-format checks the format of sources; OpenCSD, the Arm binutils and perf are witnesses the tests compare with;
# QEMU runs the programs that are recorded; lcov, llvm, llvm-19 (llvm-profgen for AArch64), bolt-16, autofdo, diff-cover, golang-go (pprof), protobuf-compiler, sqlite3
# and valgrind (callgrind_annotate) read what is exported; Chromium shows reports; zsh and fish try completion, mandoc and man-db
# check man pages, less pages output; tclsh runs programs for OpenOCD; sigrok-cli reads what logic analysers recorded; python3-venv, setuptools and wheel build and install the Python package; strace counts opened files; Slurm runs fleets; matplotlib and pandas take what the Python module gives.
test_packages=(
    clang clang-format lld libclang-rt-dev libgtest-dev python3 zstd
    libopencsd-bin libopencsd-dev binutils-arm-linux-gnueabihf binutils-aarch64-linux-gnu
    linux-perf
    lcov llvm llvm-19 bolt-16 autofdo diff-cover git golang-go protobuf-compiler sqlite3 valgrind chromium-headless-shell
    "${example_packages[@]}" "${record_packages[@]}" "${python_packages[@]}" python3-matplotlib python3-pandas qemu-system-arm
    slurmctld slurmd slurm-client munge parallel
    zsh fish mandoc man-db groff-base less tcl sigrok-cli python3-venv python3-setuptools python3-wheel strace
)
# What scripts/docs needs.
docs_packages=(doxygen python3)
# Packages for `scripts/test --long`, beyond these; debootstrap makes the system in which packages are installed.
long_packages=(clang-tidy debootstrap faketime libcapture-tiny-perl libdatetime-perl libtimedate-perl libjson-perl "${package_packages[@]}" "${docs_packages[@]}")

die() {
    printf '%s: %s\n' "${0##*/}" "$*" >&2
    exit 1
}

# shown_progress <description> <log> <process>: on a terminal, shows how far ninja is by the last line of its log,
# `[31/88]`.
shown_progress() {
    [ -t 1 ] || return 0
    local at
    while sleep 1 && kill -0 "$3" 2>/dev/null; do
        at=$(tail -n 1 "$2" 2>/dev/null | grep -o '^\[[0-9]*/[0-9]*\]') && printf '\r%s … %s ' "$1" "$at"
    done
    printf '\r%s … ' "$1"
}

# step <log> <description> <command…>: the output goes to build/log/<log>.log and is printed only on failure.
step() {
    local log="build/log/$1.log" what=$2 began=$SECONDS process
    shift 2
    mkdir -p build/log
    printf '%s … ' "$what"
    "$@" >"$log" 2>&1 </dev/null &
    process=$!
    shown_progress "$what" "$log" "$process"
    if wait "$process"; then
        printf 'done, %d s\n' $((SECONDS - began))
    else
        printf 'FAILED after %d s. The end of %s:\n\n' $((SECONDS - began)) "$log"
        tail -n 60 "$log" | sed 's/^/    /'
        printf '\n'
        return 1
    fi
}

# need_packages <package…>: installs missing packages. Uses the network only if a package is missing.
need_packages() {
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        printf 'This is not Debian, so nothing is installed. These Debian 12 packages, or their equivalents, are needed:\n    %s\n' "$*"
        return 0
    fi
    local package missing=()
    for package in "$@"; do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0

    as_root=()
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null ||
            die "packages are missing; as root: apt-get install --no-install-recommends ${missing[*]}"
        sudo -v || die "packages are missing, and sudo did not allow installing them: ${missing[*]}"
        as_root=(sudo)
    fi
    step packages "installing ${missing[*]}" install_packages "${missing[@]}" ||
        die "apt-get could not install the packages; solve the problem shown above, then run this script again"
}

# want_web_packages: installs Node.js and npm if they are missing; continues without them if that fails.
want_web_packages() {
    if command -v node >/dev/null && command -v npm >/dev/null; then return 0; fi
    (need_packages "${web_packages[@]}") ||
        printf 'Continuing without Node.js and npm: waymark report will not be available.\n'
}

install_packages() {
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300)
    local try
    for try in 1 2 3 4; do
        "${apt[@]}" update || true
        if "${apt[@]}" install --no-install-recommends "$@"; then return 0; fi
        [ "$try" = 4 ] || sleep $((5 * try))
    done
    return 1
}

# build_preset <preset> [cmake options…]: configures a preset of CMakePresets.json, and builds all targets, or $build_targets.
build_targets=()
build_preset() {
    local preset=$1
    step "$preset-configure" "configuring $preset" cmake --preset "$@" &&
        step "$preset-build" "building $preset" cmake --build --preset "$preset" ${build_targets:+--target "${build_targets[@]}"}
}
