/* docs/reference/command.md says what the program says: exit codes and the help of every command.
 *
 * Called with --update, it writes that part of the page.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/files/file.h"
#include "base/text/text.h"
#include "cli/program/exit_codes.h"
#include "cli/session.h"

static const char page_path[] = TRIREME_SOURCE_DIR "/docs/reference/command.md";
static const char marker[] = "`test_cli_manual --update` writes it. -->\n\n";

static const char *const commands[][3] = {{"train"},
                                          {"launch"},
                                          {"compare"},
                                          {"plan"},
                                          {"sweep"},
                                          {"eval"},
                                          {"predict"},
                                          {"generate"},
                                          {"inspect"},
                                          {"export"},
                                          {"import"},
                                          {"report"},
                                          {"diff"},
                                          {"verify"},
                                          {"dispute"},
                                          {"receipt"},
                                          {"data", "list"},
                                          {"data", "verify"},
                                          {"data", "show"},
                                          {"data", "convert"},
                                          {"data", "fetch"},
                                          {"data", "cache"},
                                          {"data", "tokenizer"},
                                          {"data", "tokens"},
                                          {"models"},
                                          {"devices"},
                                          {"completion"},
                                          {"version"},
                                          {"help"}};

/* What the generated part should be. Free with tr_free(). */
static char *reference(void)
{
    struct tr_text text = TR_TEXT_INIT;
    char *all;
    tr_text_add(&text, "## Exit codes\n\n| code | meaning |\n|---|---|\n");
#define ADD_CODE(name, code, meaning) tr_text_addf(&text, "| %d | %s |\n", code, meaning);
    CLI_EXIT_CODES(ADD_CODE)
#undef ADD_CODE
    tr_text_add(&text, "\n## Commands\n");
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        const char *const *words = commands[i];
        struct session session;
        if (run(&session, words[0], words[1] ? words[1] : "--help", words[1] ? "--help" : NULL, NULL) != 0)
            abort();
        tr_text_addf(&text, "\n### trireme %s%s%s\n\n```text\n%s```\n", words[0], words[1] ? " " : "",
                     words[1] ? words[1] : "", session.text[0]);
        session_release(&session);
    }
    if (tr_text_finish(&text, &all) != TR_OK) abort();
    return all;
}

/* The page; *generated is where that part begins. Free with tr_file_content_free(). */
static struct tr_file_content read_page(char **generated)
{
    struct tr_file_content page;
    if (tr_file_read(page_path, 1 << 20, &page) != TR_OK) fail_msg("%s", tr_error_message());
    *generated = strstr(page.data, marker);
    if (!*generated) fail_msg("%s has lost the line that ends in %s", page_path, marker);
    *generated += strlen(marker);
    return page;
}

static void the_page_is_what_the_program_says(void **state)
{
    (void)state;
    char *generated, *expected = reference();
    struct tr_file_content page = read_page(&generated);
    size_t at = 0;
    while (generated[at] && generated[at] == expected[at]) at++;
    if (generated[at] != expected[at]) {
        while (at > 0 && expected[at - 1] != '\n') at--;
        fail_msg("%s differs from the program; run test_cli_manual --update\npage:    %.*s\nprogram: %.*s",
                 page_path, (int)strcspn(generated + at, "\n"), generated + at,
                 (int)strcspn(expected + at, "\n"), expected + at);
    }
    tr_free(expected);
    tr_file_content_free(&page);
}

static int update(void)
{
    char *generated, *expected = reference();
    struct tr_file_content page = read_page(&generated);
    char *text = tr_format("%.*s%s", (int)(generated - page.data), page.data, expected);
    bool written = text && tr_file_write_atomic(NULL, page_path, text, strlen(text)) == TR_OK;
    if (!written) print_error("%s\n", tr_error_message());
    tr_free(text);
    tr_free(expected);
    tr_file_content_free(&page);
    return !written;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--update") == 0) return update();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_is_what_the_program_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
