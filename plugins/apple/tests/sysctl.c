/* macOS's sysctlbyname for tests elsewhere: values come from the lines "name value" of a file. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int give(const void *value, size_t size, void *out, size_t *length) {
    if (out != NULL) {
        if (*length < size) { errno = ENOMEM; return -1; }
        memcpy(out, value, size);
    }
    *length = size;
    return 0;
}

int sysctlbyname(const char *name, void *out, size_t *length, void *new, size_t new_length) {
    char line[512];
    FILE *file = fopen(getenv("FAKE_SYSCTLS"), "r");
    (void)new_length;
    if (file == NULL || new != NULL) { errno = EPERM; return -1; }
    while (fgets(line, sizeof line, file)) {
        char *value = strchr(line, ' ');
        line[strcspn(line, "\n")] = 0;
        if (value == NULL) continue;
        *value++ = 0;
        if (strcmp(line, name) != 0) continue;
        fclose(file);
        if (strspn(value, "0123456789") != strlen(value))
            return give(value, strlen(value) + 1, out, length);
        /* hw.memsize is 64 bits wide, the others that are asked for 32. */
        int64_t wide = strtoll(value, NULL, 10);
        int32_t narrow = (int32_t)wide;
        if (strcmp(name, "hw.memsize") == 0) return give(&wide, 8, out, length);
        return give(&narrow, 4, out, length);
    }
    fclose(file);
    errno = ENOENT;
    return -1;
}
