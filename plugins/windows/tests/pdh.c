/* A stand-in for pdh.dll: counters from the file that FAKE_PDH names, lines `PATH|INSTANCE|VALUE`. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#define API __attribute__((visibility("default"))) int
enum { MORE_DATA = (int)0x800007D2, NO_OBJECT = (int)0xC0000BB8 };

struct item {
    wchar_t *name;
    unsigned status;
    double value;
};
struct counter {
    char path[128];
};
static int collected;

API PdhOpenQueryW(void *source, size_t user, void **query)
{
    (void)source, (void)user;
    *query = &collected;
    return getenv("FAKE_PDH") ? 0 : NO_OBJECT;
}

API PdhAddEnglishCounterW(void *query, const wchar_t *path, size_t user, void **out)
{
    struct counter *counter = calloc(1, sizeof *counter);
    (void)query, (void)user;
    wcstombs(counter->path, path, sizeof counter->path - 1);
    *out = counter;
    return 0;
}

API PdhCollectQueryData(void *query)
{
    (void)query;
    collected++;
    return 0;
}

API PdhGetFormattedCounterArrayW(struct counter *counter, unsigned format, unsigned *size,
                                 unsigned *count, struct item *items)
{
    char line[512], path[128], name[256];
    unsigned n = 0, need = 0;
    double value;
    FILE *file = fopen(getenv("FAKE_PDH"), "r");
    char *texts = (char *)items + *size;
    (void)format;
    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "%127[^|]|%255[^|]|%lf", path, name, &value) != 3 ||
            strcmp(path, counter->path))
            continue;
        need += sizeof *items + (strlen(name) + 1) * sizeof(wchar_t);
        if (items && need <= *size) {
            texts -= (strlen(name) + 1) * sizeof(wchar_t);
            mbstowcs((wchar_t *)texts, name, strlen(name) + 1);
            items[n] = (struct item){(wchar_t *)texts, 0, value};
        }
        n++;
    }
    if (file)
        fclose(file);
    *count = n;
    if (!items || need > *size) {
        *size = need;
        return need ? MORE_DATA : 0;
    }
    return 0;
}
