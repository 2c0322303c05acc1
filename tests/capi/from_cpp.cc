/// waymark.h is a header of C++ too.
#include <waymark.h>

#include <cstdio>
#include <type_traits>

static_assert(std::is_standard_layout_v<wm_event> && sizeof(wm_event) == 64 && sizeof(wm_range) == 16);

int main() {
    wm_error* error = nullptr;
    wm_capture* capture = nullptr;
    const wm_status status = wm_open("no/such/capture", nullptr, &capture, &error);
    std::printf("%s: %s\n", wm_version(), wm_error_message(error));
    wm_error_free(error);
    return status == WM_NOT_FOUND ? 0 : 1;
}
