#include "report/pages.h"

#include "scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

void expect(const char *html, const char *part)
{
    if (!strstr(html, part)) fail_msg("no %s in\n%s", part, html);
}

void expect_none(const char *html, const char *part)
{
    const char *at = strstr(html, part);
    if (at) fail_msg("%s is in %.200s", part, at);
}

int count_of(const char *html, const char *part)
{
    int count = 0;
    for (; (html = strstr(html, part)) != NULL; html += strlen(part)) count++;
    return count;
}

void put_file(const char *place, const char *run, const char *name, const char *text)
{
    char directory[SCRATCH_PATH], path[SCRATCH_PATH];
    scratch_join(directory, place, run);
    mkdir(directory, 0777);
    scratch_join(path, directory, name);
    if (tr_file_write_atomic(NULL, path, text, strlen(text)) != TR_OK) fail_msg("%s is not written", path);
}
