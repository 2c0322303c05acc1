/* capi_test SUITE ROOT */
#include "check.h"

const char* root = "";

void answers_suite(void);
void decode_suite(void);
void errors_suite(void);
void live_suite(void);
void model_suite(void);
void threads_suite(void);
void unit_suite(void);

const char* at(const char* path) {
    static char texts[8][1024];
    static unsigned next = 0;
    char* text = texts[next++ % 8];
    snprintf(text, sizeof texts[0], "%s/%s", root, path);
    return text;
}

unsigned char* read_file(const char* path, size_t* size) {
    FILE* file = fopen(path, "rb");
    CHECK(file != NULL);
    CHECK(fseek(file, 0, SEEK_END) == 0);
    const long end = ftell(file);
    CHECK(end > 0 && fseek(file, 0, SEEK_SET) == 0);
    unsigned char* bytes = malloc((size_t)end);
    CHECK(bytes != NULL && fread(bytes, 1, (size_t)end, file) == (size_t)end);
    fclose(file);
    *size = (size_t)end;
    return bytes;
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        void (*run)(void);
    } suites[] = {{"answers", answers_suite}, {"decode", decode_suite}, {"errors", errors_suite},
                  {"live", live_suite},       {"model", model_suite},   {"threads", threads_suite},
                  {"unit", unit_suite}};
    if (argc != 3) return fprintf(stderr, "usage: capi_test SUITE ROOT\n"), 2;
    root = argv[2];
    for (size_t i = 0; i < sizeof suites / sizeof suites[0]; ++i)
        if (strcmp(suites[i].name, argv[1]) == 0) return suites[i].run(), 0;
    return fprintf(stderr, "there is no suite %s\n", argv[1]), 2;
}
