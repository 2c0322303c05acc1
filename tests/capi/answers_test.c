/* Answers and their tables. */
#define _DEFAULT_SOURCE
#include "check.h"

static wm_answers* answers_of(const char* path, unsigned parts) {
    wm_options* options = wm_options_new();
    if (strstr(path, "answers") == NULL) OK(wm_options_set(options, "symbols", at("examples/sort/sort.elf"), error));
    wm_capture* capture = NULL;
    wm_answers* answers = NULL;
    OK(wm_open(path, options, &capture, error));
    wm_options_free(options);
    OK(wm_answers_of(capture, parts, 2, NULL, NULL, &answers, error));
    wm_close(capture);
    return answers;
}

static uint64_t sum_of(const wm_answers* answers, const char* name, const char* column) {
    wm_table* table = NULL;
    OK(wm_answers_table(answers, name, &table, error));
    const int at_column = wm_table_find_column(table, column);
    CHECK(at_column >= 0);
    const uint64_t* values = wm_table_integers(table, (size_t)at_column);
    uint64_t sum = 0;
    for (size_t row = 0; row < wm_table_rows(table); ++row) sum += values[row];
    wm_table_free(table);
    return sum;
}

/* Functions with their costs: sort.elf has these names, and truth.txt states how many instructions QEMU executed. */
static void functions_have_costs(const wm_answers* answers) {
    wm_table* table = NULL;
    OK(wm_answers_table(answers, "functions", &table, error));
    const size_t name = (size_t)wm_table_find_column(table, "name"), self = (size_t)wm_table_find_column(table, "self");
    CHECK(wm_table_column_type(table, name) == WM_COLUMN_TEXT && wm_table_texts(table, self) == NULL);
    CHECK(wm_table_column_type(table, self) == WM_COLUMN_INTEGER && wm_table_integers(table, name) == NULL);
    CHECK(wm_table_reals(table, self) == NULL && wm_table_find_column(table, "no such column") == -1);
    CHECK(wm_table_column_name(table, 100) == NULL && wm_table_known(table, 100) == NULL);
    const char* const* names = wm_table_texts(table, name);
    int has_quicksort = 0;
    for (size_t row = 0; row < wm_table_rows(table); ++row) has_quicksort |= strcmp(names[row], "quicksort") == 0;
    CHECK(has_quicksort);
    wm_table_free(table);
    CHECK(sum_of(answers, "functions", "self") == 5602);
    CHECK(sum_of(answers, "instructions", "times") == 5602);
}

/* Every table can be had, and its columns agree with their types. */
static void all_tables_are_whole(const wm_answers* answers) {
    CHECK(wm_answers_table_count() > 20 && wm_answers_table_name(wm_answers_table_count()) == NULL);
    for (size_t i = 0; i < wm_answers_table_count(); ++i) {
        wm_table* table = NULL;
        OK(wm_answers_table(answers, wm_answers_table_name(i), &table, error));
        CHECK(wm_table_columns(table) > 0);
        for (size_t column = 0; column < wm_table_columns(table); ++column) {
            CHECK(wm_table_column_name(table, column)[0] != '\0' && wm_table_column_meaning(table, column) != NULL);
            CHECK(wm_table_column_refers(table, column) != NULL);
            if (wm_table_rows(table) == 0) continue;
            const int arrays = (wm_table_integers(table, column) != NULL) + (wm_table_reals(table, column) != NULL) +
                               (wm_table_texts(table, column) != NULL);
            CHECK(arrays == 1);
            const char* const* texts = wm_table_texts(table, column);
            const uint8_t* known = wm_table_known(table, column);
            for (size_t row = 0; row < wm_table_rows(table); ++row) {
                CHECK(known[row] <= 1);
                if (texts != NULL) CHECK((texts[row] != NULL) == (known[row] == 1));
            }
        }
        wm_table_free(table);
    }
    wm_table* none = NULL;
    FAILS(WM_NOT_FOUND, "functions", wm_answers_table(answers, "no_table", &none, error));
}

static int cancel_at_once(uint64_t bytes, uint64_t of, void* user) {
    ++*(int*)user;
    return bytes <= of || of == 0;
}

void answers_suite(void) {
    wm_answers* answers =
        answers_of(at("examples/sort/capture"), WM_ANSWERS_CALLS | WM_ANSWERS_INSTRUCTIONS | WM_ANSWERS_TIMELINE);
    functions_have_costs(answers);
    all_tables_are_whole(answers);

    const char* const folder = getenv("TMPDIR");
    char path[4096];
    snprintf(path, sizeof path, "%s/waymark-capi-XXXXXX.answers", folder ? folder : "/tmp");
    const int file = mkstemps(path, 8);
    CHECK(file >= 0);
    OK(wm_answers_save(answers, path, error));
    wm_answers* again = answers_of(path, WM_ANSWERS_ALL & ~(unsigned)WM_ANSWERS_SOURCES);
    functions_have_costs(again);
    FAILS(WM_USAGE, "is the input", wm_answers_export(again, "folded", path, error));
    wm_answers_free(again);
    again = answers_of(at("examples/sort/capture"), WM_ANSWERS_CALLS);
    OK(wm_answers_export(again, "folded", path, error));
    size_t size = 0;
    char* folded = (char*)read_file(path, &size);
    CHECK(size > 20);
    free(folded);
    FAILS(WM_NOT_FOUND, "perfetto", wm_answers_export(again, "no-format", path, error));
    FAILS(WM_UNREADABLE, "/no/such", wm_answers_export(again, "folded", "/no/such/folder/file", error));
    remove(path);
    wm_answers_free(again);
    wm_answers_free(answers);

    wm_capture* capture = NULL;
    int calls = 0;
    OK(wm_open(at("examples/sort/capture"), NULL, &capture, error));
    FAILS(WM_CANCELLED, "cancelled",
          wm_answers_of(capture, WM_ANSWERS_CALLS, 1, cancel_at_once, &calls, &answers, error));
    CHECK(calls == 1);
    wm_close(capture);
}
