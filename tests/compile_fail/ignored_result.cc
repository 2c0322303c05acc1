// A Result that nobody looks at.
#include "waymark/core/result.h"

waymark::Result<int> open();

int main() {
#ifdef WM_MISTAKE
    open();
#else
    return open().has_value() ? 0 : 1;
#endif
}
