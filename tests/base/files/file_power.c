#include "base/files/file_power.h"

#include "mutate.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NAME_SIZE   128
#define NODES_MAX   4096
#define ENTRIES_MAX 64
#define PENDING_MAX 256
#define CONTENT_MAX 8192
#define RECORDS_MAX 16384
#define DESCRIPTOR_0                                                                                         \
    1000 /* descriptors are node numbers above this, so that mixing them up with real ones shows */

#define REQUIRE(condition)                                                                                   \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "%s:%d: the simulated disk is too small or misused: %s\n", __FILE__, __LINE__,   \
                    #condition);                                                                             \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

/* ---- the model of a disk ---- */

struct entry {
    char name[NAME_SIZE];
    int node;
};

struct entries {
    struct entry entry[ENTRIES_MAX];
    int count;
};

/* A change of a directory that has not been synced: a new name, a removed one, or both at once. */
struct change {
    char removed[NAME_SIZE], added[NAME_SIZE]; /* "": none */
    int node;
};

struct extent {
    size_t begin, end;
};

struct node {
    bool directory, link; /* of a link, `content` is the text, which is there as soon as its name is */
    /* of a directory */
    struct entries live, durable;
    struct change change[PENDING_MAX];
    /* of a file: bytes [0, synced) last */
    char content[CONTENT_MAX];
    size_t size, synced;
    struct extent pending[PENDING_MAX];
    int pending_count; /* changes or extents */
};

struct disk {
    struct node *node[NODES_MAX];
    int count;
};

static int new_node(struct disk *disk, bool directory)
{
    REQUIRE(disk->count < NODES_MAX);
    struct node *node = calloc(1, sizeof *node);
    REQUIRE(node);
    node->directory = directory;
    disk->node[disk->count] = node;
    return disk->count++;
}

static void empty_disk(struct disk *disk)
{
    for (int i = 0; i < disk->count; i++) free(disk->node[i]);
    disk->count = 0;
}

static int find_entry(const struct entries *entries, const char *name)
{
    for (int i = 0; i < entries->count; i++)
        if (strcmp(entries->entry[i].name, name) == 0) return i;
    return -1;
}

static void remove_entry(struct entries *entries, const char *name)
{
    int at = find_entry(entries, name);
    if (at >= 0) entries->entry[at] = entries->entry[--entries->count];
}

static void add_entry(struct entries *entries, const char *name, int node)
{
    remove_entry(entries, name);
    REQUIRE(entries->count < ENTRIES_MAX && strlen(name) < NAME_SIZE);
    struct entry *entry = &entries->entry[entries->count++];
    strcpy(entry->name, name);
    entry->node = node;
}

/* Finds the directory of `path` (a node) and its last component; a negative errno value if the directory is
 * missing. */
static int find_parent(const struct disk *disk, const char *path, char name[NAME_SIZE])
{
    int at = 0;
    REQUIRE(path[0] == '/');
    for (;;) {
        while (*path == '/') path++;
        size_t length = strcspn(path, "/");
        REQUIRE(length < NAME_SIZE);
        memcpy(name, path, length);
        name[length] = '\0';
        path += length;
        while (*path == '/') path++;
        if (*path == '\0') return at;
        int found = find_entry(&disk->node[at]->live, name);
        if (found < 0) return -ENOENT;
        at = disk->node[at]->live.entry[found].node;
        if (!disk->node[at]->directory) return -ENOTDIR;
    }
}

/* The node of `path`, or a negative errno value. */
static int find_node(const struct disk *disk, const char *path)
{
    char name[NAME_SIZE];
    int parent = find_parent(disk, path, name);
    if (parent < 0 || name[0] == '\0') return parent;
    int found = find_entry(&disk->node[parent]->live, name);
    return found < 0 ? -ENOENT : disk->node[parent]->live.entry[found].node;
}

static void change_directory(struct node *directory, const char *removed, const char *added, int node)
{
    REQUIRE(directory->pending_count < PENDING_MAX);
    struct change *change = &directory->change[directory->pending_count++];
    snprintf(change->removed, NAME_SIZE, "%s", removed);
    snprintf(change->added, NAME_SIZE, "%s", added);
    change->node = node;
    if (removed[0]) remove_entry(&directory->live, removed);
    if (added[0]) add_entry(&directory->live, added, node);
}

/* ---- operations, each recorded so that it can be repeated on another disk ---- */

enum kind {
    MAKE_FILE,
    MAKE_DIRECTORY,
    MAKE_LINK,
    WRITE,
    SYNC,
    SYNC_DIRECTORY,
    RENAME,
    REMOVE_FILE,
    REMOVE_DIRECTORY
};

struct record {
    enum kind kind;
    char *path, *to; /* of a write: `to` holds the data; of a link: its text */
    int node;
    size_t size;
};

struct power_files {
    struct disk disk;
    struct record *records;
    int64_t count;
};

static int64_t make(struct disk *disk, const char *path, bool directory)
{
    char name[NAME_SIZE];
    int parent = find_parent(disk, path, name);
    if (parent < 0) return parent;
    if (name[0] == '\0' || find_entry(&disk->node[parent]->live, name) >= 0) return -EEXIST;
    int node = new_node(disk, directory);
    change_directory(disk->node[parent], "", name, node);
    return directory ? 0 : node;
}

static int64_t make_link(struct disk *disk, const char *text, const char *path)
{
    int64_t node = make(disk, path, false);
    if (node < 0) return node;
    REQUIRE(strlen(text) < CONTENT_MAX);
    strcpy(disk->node[node]->content, text);
    disk->node[node]->link = true;
    return 0;
}

static int64_t append(struct node *file, const char *data, size_t size)
{
    REQUIRE(file->size + size <= CONTENT_MAX && file->pending_count < PENDING_MAX);
    memcpy(file->content + file->size, data, size);
    file->pending[file->pending_count++] = (struct extent){file->size, file->size + size};
    file->size += size;
    return (int64_t)size;
}

static int64_t sync_node(struct node *node)
{
    if (node->directory)
        node->durable = node->live;
    else
        node->synced = node->size;
    node->pending_count = 0;
    return 0;
}

static int64_t move(struct disk *disk, const char *from, const char *to)
{
    char from_name[NAME_SIZE], to_name[NAME_SIZE];
    int parent = find_parent(disk, from, from_name), to_parent = find_parent(disk, to, to_name);
    if (parent < 0 || to_parent < 0) return parent < 0 ? parent : to_parent;
    REQUIRE(parent == to_parent);
    int node = find_node(disk, from), replaced = find_node(disk, to);
    if (node < 0) return node;
    if (replaced >= 0 && disk->node[replaced]->directory && disk->node[replaced]->live.count > 0)
        return -ENOTEMPTY;
    change_directory(disk->node[parent], from_name, to_name, node);
    return 0;
}

static int64_t take_away(struct disk *disk, const char *path, bool directory)
{
    char name[NAME_SIZE];
    int parent = find_parent(disk, path, name), node = find_node(disk, path);
    if (node < 0) return node;
    if (disk->node[node]->directory != directory) return directory ? -ENOTDIR : -EISDIR;
    if (directory && disk->node[node]->live.count > 0) return -ENOTEMPTY;
    change_directory(disk->node[parent], name, "", 0);
    return 0;
}

static int64_t perform(struct disk *disk, const struct record *record)
{
    int node;
    switch (record->kind) {
    case MAKE_FILE:
        return make(disk, record->path, false);
    case MAKE_DIRECTORY:
        return make(disk, record->path, true);
    case MAKE_LINK:
        return make_link(disk, record->to, record->path);
    case WRITE:
        return append(disk->node[record->node], record->to, record->size);
    case SYNC:
        return sync_node(disk->node[record->node]);
    case SYNC_DIRECTORY:
        node = find_node(disk, record->path);
        return node < 0 ? node : sync_node(disk->node[node]);
    case RENAME:
        return move(disk, record->path, record->to);
    case REMOVE_FILE:
        return take_away(disk, record->path, false);
    default:
        return take_away(disk, record->path, true);
    }
}

/* Performs an operation and, if it succeeds, records it. Strings and data are copied. */
static int64_t operate(struct power_files *power, struct record record)
{
    int64_t result = perform(&power->disk, &record);
    if (result < 0) return result;
    REQUIRE(power->count < RECORDS_MAX);
    if (record.path) record.path = strdup(record.path);
    if (record.kind == WRITE)
        record.to = memcpy(malloc(record.size + 1), record.to, record.size);
    else if (record.to)
        record.to = strdup(record.to);
    power->records[power->count++] = record;
    return result;
}

static int power_open(void *context, const char *path, enum tr_file_create create)
{
    REQUIRE(create == TR_FILE_NEW);
    int64_t node = operate(context, (struct record){.kind = MAKE_FILE, .path = (char *)path});
    return (int)(node < 0 ? node : node + DESCRIPTOR_0);
}

static int64_t power_write(void *context, int descriptor, const void *data, size_t size)
{
    return operate(context, (struct record){WRITE, NULL, (char *)data, descriptor - DESCRIPTOR_0, size});
}

static int power_sync(void *context, int descriptor)
{
    return (int)operate(context, (struct record){.kind = SYNC, .node = descriptor - DESCRIPTOR_0});
}

static int power_close(void *context, int descriptor)
{
    (void)context;
    REQUIRE(descriptor >= DESCRIPTOR_0);
    return 0;
}

static int power_rename(void *context, const char *from, const char *to)
{
    return (int)operate(context, (struct record){.kind = RENAME, .path = (char *)from, .to = (char *)to});
}

static int power_make_directory(void *context, const char *path)
{
    return (int)operate(context, (struct record){.kind = MAKE_DIRECTORY, .path = (char *)path});
}

static int power_remove_file(void *context, const char *path)
{
    return (int)operate(context, (struct record){.kind = REMOVE_FILE, .path = (char *)path});
}

static int power_remove_directory(void *context, const char *path)
{
    return (int)operate(context, (struct record){.kind = REMOVE_DIRECTORY, .path = (char *)path});
}

static int power_sync_directory(void *context, const char *path)
{
    return (int)operate(context, (struct record){.kind = SYNC_DIRECTORY, .path = (char *)path});
}

static int power_list(void *context, const char *path, int (*visit)(void *user, const char *name), void *user)
{
    struct power_files *power = context;
    int node = find_node(&power->disk, path), result = 0;
    if (node < 0) return node;
    const struct entries *live = &power->disk.node[node]->live;
    for (int i = 0; i < live->count && result == 0; i++) result = visit(user, live->entry[i].name);
    return result;
}

static int power_make_link(void *context, const char *text, const char *path)
{
    return (int)operate(context,
                        (struct record){.kind = MAKE_LINK, .path = (char *)path, .to = (char *)text});
}

static int power_read_link(void *context, const char *path, char *text, size_t size)
{
    struct power_files *power = context;
    int node = find_node(&power->disk, path);
    if (node < 0) return node;
    if (!power->disk.node[node]->link) return -EINVAL;
    REQUIRE(strlen(power->disk.node[node]->content) < size);
    strcpy(text, power->disk.node[node]->content);
    return 0;
}

struct power_files *power_create(void)
{
    struct power_files *power = calloc(1, sizeof *power);
    REQUIRE(power);
    power->records = calloc(RECORDS_MAX, sizeof *power->records);
    REQUIRE(power->records);
    new_node(&power->disk, true);
    return power;
}

void power_destroy(struct power_files *power)
{
    empty_disk(&power->disk);
    for (int64_t i = 0; i < power->count; i++) {
        free(power->records[i].path);
        free(power->records[i].to);
    }
    free(power->records);
    free(power);
}

tr_file_system power_system(struct power_files *power)
{
    static const struct tr_file_ops ops = {
        .name = "power",
        .version = TR_FILE_OPS_VERSION,
        .open = power_open,
        .write = power_write,
        .sync = power_sync,
        .close = power_close,
        .rename = power_rename,
        .make_directory = power_make_directory,
        .remove_file = power_remove_file,
        .remove_directory = power_remove_directory,
        .sync_directory = power_sync_directory,
        .list = power_list,
        .make_link = power_make_link,
        .read_link = power_read_link,
    };
    return (tr_file_system){&ops, power};
}

int64_t power_operations(const struct power_files *power)
{
    return power->count;
}

/* ---- what is left ---- */

struct chance {
    uint32_t stream, next;
};

/* A number below `bound`. */
static uint32_t draw(struct chance *chance, size_t bound)
{
    return (uint32_t)(mutate_number(chance->stream, chance->next++) % bound);
}

/* How much of what was pending is kept, for one file or directory. */
enum keeping { KEEP_NOTHING, KEEP_PREFIX, KEEP_SOME, KEEP_ALL, KEEPINGS };

/* For each of `count` pending things whether it is kept. */
static void choose(struct chance *chance, int count, bool *kept)
{
    enum keeping keeping = (enum keeping)draw(chance, KEEPINGS);
    int prefix = (int)draw(chance, (size_t)count + 1);
    for (int i = 0; i < count; i++)
        kept[i] = keeping == KEEP_ALL || (keeping == KEEP_PREFIX && i < prefix) ||
                  (keeping == KEEP_SOME && draw(chance, 2));
}

static void write_real_file(const char *path, const char *data, size_t size)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
    REQUIRE(descriptor >= 0 && write(descriptor, data, size) == (ssize_t)size);
    close(descriptor);
}

static void leave_file(const struct node *file, struct chance *chance, const char *path)
{
    static char left[CONTENT_MAX];
    bool kept[PENDING_MAX];
    size_t size = file->synced;
    memset(left, 0, sizeof left); /* lost data below a length that was kept read as zeros */
    memcpy(left, file->content, file->synced);
    choose(chance, file->pending_count, kept);
    for (int i = 0; i < file->pending_count; i++) {
        struct extent extent = file->pending[i];
        if (!kept[i]) continue;
        if (draw(chance, 4) == 0)
            extent.end = extent.begin + draw(chance, extent.end - extent.begin + 1); /* torn */
        memcpy(left + extent.begin, file->content + extent.begin, extent.end - extent.begin);
        if (extent.end > size) size = extent.end;
    }
    if (size < file->size && draw(chance, 4) == 0) size = file->size; /* the length came before the data */
    write_real_file(path, left, size);
}

static void leave_directory(const struct disk *disk, int number, struct chance *chance, const char *path)
{
    const struct node *directory = disk->node[number];
    struct entries left = directory->durable;
    bool kept[PENDING_MAX];
    choose(chance, directory->pending_count, kept);
    for (int i = 0; i < directory->pending_count; i++) {
        const struct change *change = &directory->change[i];
        if (!kept[i]) continue;
        if (change->removed[0]) remove_entry(&left, change->removed);
        if (change->added[0]) add_entry(&left, change->added, change->node);
    }
    for (int i = 0; i < left.count; i++) {
        char inner[1024];
        int length = snprintf(inner, sizeof inner, "%s/%s", path, left.entry[i].name);
        REQUIRE(length > 0 && (size_t)length < sizeof inner);
        if (disk->node[left.entry[i].node]->directory) {
            REQUIRE(mkdir(inner, 0700) == 0);
            leave_directory(disk, left.entry[i].node, chance, inner);
        } else if (disk->node[left.entry[i].node]->link) {
            REQUIRE(symlink(disk->node[left.entry[i].node]->content, inner) == 0);
        } else {
            leave_file(disk->node[left.entry[i].node], chance, inner);
        }
    }
}

void power_write_image(const struct power_files *power, int64_t operations, uint32_t seed,
                       const char *directory)
{
    struct disk disk = {.count = 0};
    struct chance chance = {seed, 0};
    new_node(&disk, true);
    for (int64_t i = 0; i < operations; i++) REQUIRE(perform(&disk, &power->records[i]) >= 0);
    leave_directory(&disk, 0, &chance, directory);
    empty_disk(&disk);
}
