/* trireme data cache: shows the contents of the data cache, and empties it. */
#include "cli/data/cache.h"

#include "cli/data/data.h"
#include "cli/terminal/output.h"

#include "base/alloc.h"
#include "base/fail.h"
#include "base/files/file.h"
#include "base/text/json.h"
#include "base/text/table.h"
#include "base/text/text.h"

#include <stdlib.h>
#include <time.h>

#define MIB ((int64_t)1 << 20)

/* The base directory specification of freedesktop.org: a variable that is no absolute path counts as none. */
tr_status cli_data_cache_directory(const struct cli_data_cache *cache, char **out)
{
    const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    *out = NULL;
    if (!cache->use) return TR_OK;
    if (cache->directory)
        *out = tr_strdup(cache->directory);
    else if (base && base[0] == '/')
        *out = tr_path_join(base, "trireme");
    else if (home && home[0] == '/')
        *out = tr_path_join(home, ".cache/trireme");
    else
        return TR_OK;
    return *out ? TR_OK : TR_ENOMEM;
}

tr_status cli_program_cache_directory(const char *directory, char **out)
{
    *out = directory ? tr_path_join(directory, "programs") : NULL;
    return *out || !directory ? TR_OK : TR_ENOMEM;
}

int64_t cli_data_cache_bytes(const struct cli_data_cache *cache)
{
    return cache->megabytes * MIB;
}

/* ---- the command ---- */

struct options {
    struct cli_common common;
    struct cli_data_cache cache;
    bool clear, json;
};

static const struct tr_option table[] = {
    {.key = "clear",
     .type = TR_OPTION_BOOL,
     .offset = offsetof(struct options, clear),
     .fallback = "false",
     .help = "remove all entries; runs that use them go on"},
    CLI_OPTION_CACHE_DIRECTORY(struct options),
    CLI_OPTION_JSON(struct options),
    CLI_OPTION_HELP(struct options),
};

struct listing {
    struct tr_table table;
    int64_t entries, bytes;
    bool json, failed;
};

/* "2026-03-01 14:05" in local time. */
static const char *when(int64_t seconds, char text[32])
{
    struct tm parts;
    time_t at = (time_t)seconds;
    if (!localtime_r(&at, &parts) || strftime(text, 32, "%Y-%m-%d %H:%M", &parts) == 0) return "?";
    return text;
}

static void list_json(struct listing *listing, const struct tr_data_cache_entry *entry)
{
    struct tr_json_writer json;
    tr_json_begin(&json, false);
    tr_json_text(&json, "path", entry->path);
    tr_json_integer(&json, "bytes", entry->bytes);
    tr_json_integer(&json, "used", entry->used);
    tr_json_text(&json, "examples", entry->examples);
    tr_json_bool(&json, "good", entry->good);
    listing->failed |= cli_print_json(&json) != TR_OK;
}

static void list_entry(void *user, const struct tr_data_cache_entry *entry)
{
    struct listing *listing = user;
    char size[TR_TEXT_NUMBER_SIZE], date[32];
    listing->entries++;
    listing->bytes += entry->bytes;
    if (listing->json) {
        list_json(listing, entry);
        return;
    }
    tr_table_cell(&listing->table, "%s", entry->good ? "good" : "damaged");
    tr_table_cell(&listing->table, "%s", tr_text_from_bytes(entry->bytes, size));
    tr_table_cell(&listing->table, "%s", when(entry->used, date));
    tr_table_cell(&listing->table, "%s", entry->examples);
    tr_table_cell(&listing->table, "%.12s", tr_path_name(entry->path));
}

static tr_status list(const char *directory, bool json)
{
    struct listing listing = {.json = json};
    struct tr_text text = TR_TEXT_INIT;
    char size[TR_TEXT_NUMBER_SIZE], *all;
    tr_table_begin(&listing.table, "lrlll");
    tr_status status = tr_data_cache_list(directory, list_entry, &listing);
    tr_table_finish(&listing.table, &text);
    if (!json)
        tr_text_addf(&text, "%lld entr%s, %s in %s\n", (long long)listing.entries,
                     listing.entries == 1 ? "y" : "ies", tr_text_from_bytes(listing.bytes, size), directory);
    if (status == TR_OK && listing.failed) status = TR_ENOMEM;
    if (status == TR_OK && !json) {
        status = tr_text_finish(&text, &all);
        if (status == TR_OK) cli_print_lines(all);
    }
    tr_text_release(&text);
    return status;
}

static tr_status clear(const char *directory, bool json)
{
    int64_t bytes;
    int entries;
    char size[TR_TEXT_NUMBER_SIZE];
    TR_TRY(tr_data_cache_clear(directory, &entries, &bytes));
    if (json)
        cli_printf("{\"removed\": %d, \"bytes\": %lld}\n", entries, (long long)bytes);
    else
        cli_printf("removed %d entr%s, %s, from %s\n", entries, entries == 1 ? "y" : "ies",
                   tr_text_from_bytes(bytes, size), directory);
    return TR_OK;
}

static tr_status run_cache(const void *options_)
{
    const struct options *options = options_;
    struct cli_data_cache cache = {.use = true, .directory = options->cache.directory};
    char *directory;
    TR_TRY(cli_data_cache_directory(&cache, &directory));
    if (!directory)
        return tr_fail(TR_ENOTFOUND,
                       "there is no data cache without a home directory; give --data-cache-dir");
    tr_status status = options->clear ? clear(directory, options->json) : list(directory, options->json);
    tr_free(directory);
    return status;
}

const struct cli_command cli_data_cache = {
    .name = "data cache",
    .summary = "list or clear the cache of unpacked data",
    .about = "Lists the entries of the data cache: state, size, last use, and content. A run finds there the "
             "unpacked data of an earlier one, if the files are the same. Entries may be removed at any "
             "time. With --json an object a line.",
    CLI_OPTIONS(table, struct options),
    .run = run_cache,
};
