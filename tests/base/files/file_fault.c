#include "base/files/file_fault.h"

#include <unistd.h>

/* Whether the call that is about to be made fails. */
static bool due(struct fault_files *fault)
{
    int64_t call = ++fault->calls;
    bool hit = fault->fail_at > 0 && (call == fault->fail_at || (fault->persistent && call > fault->fail_at));
    if (hit && fault->kind == FAULT_KILL) _exit(FAULT_EXIT_CODE);
    return hit;
}

static int fault_open(void *context, const char *path, enum tr_file_create create)
{
    struct fault_files *fault = context;
    return due(fault) ? -fault->error : tr_file_ops_posix.open(NULL, path, create);
}

static int64_t fault_write(void *context, int descriptor, const void *data, size_t size)
{
    struct fault_files *fault = context;
    if (fault->fail_at > 0 && fault->calls + 1 == fault->fail_at && fault->kind != FAULT_ERROR && size > 1) {
        int64_t half = tr_file_ops_posix.write(NULL, descriptor, data, size / 2);
        if (fault->kind == FAULT_KILL) _exit(FAULT_EXIT_CODE);
        fault->calls++;
        fault->fail_at++;
        fault->kind = FAULT_ERROR;
        return half;
    }
    return due(fault) ? -fault->error : tr_file_ops_posix.write(NULL, descriptor, data, size);
}

static int fault_sync(void *context, int descriptor)
{
    struct fault_files *fault = context;
    return due(fault) ? -fault->error : tr_file_ops_posix.sync(NULL, descriptor);
}

static int fault_close(void *context, int descriptor)
{
    struct fault_files *fault = context;
    bool hit = due(fault);
    int result = tr_file_ops_posix.close(NULL, descriptor);
    return hit ? -fault->error : result;
}

static int fault_rename(void *context, const char *from, const char *to)
{
    struct fault_files *fault = context;
    return due(fault) ? -fault->error : tr_file_ops_posix.rename(NULL, from, to);
}

static int fault_make_directory(void *context, const char *path)
{
    struct fault_files *fault = context;
    return due(fault) ? -fault->error : tr_file_ops_posix.make_directory(NULL, path);
}

static int fault_remove_file(void *context, const char *path)
{
    struct fault_files *fault = context;
    return due(fault) ? -fault->error : tr_file_ops_posix.remove_file(NULL, path);
}

static int fault_remove_directory(void *context, const char *path)
{
    struct fault_files *fault = context;
    return due(fault) ? -fault->error : tr_file_ops_posix.remove_directory(NULL, path);
}

static int fault_sync_directory(void *context, const char *path)
{
    struct fault_files *fault = context;
    return due(fault) ? -fault->error : tr_file_ops_posix.sync_directory(NULL, path);
}

static int fault_list(void *context, const char *path, int (*visit)(void *user, const char *name), void *user)
{
    struct fault_files *fault = context;
    return due(fault) ? -fault->error : tr_file_ops_posix.list(NULL, path, visit, user);
}

static int fault_make_link(void *context, const char *text, const char *path)
{
    struct fault_files *fault = context;
    return due(fault) ? -fault->error : tr_file_ops_posix.make_link(NULL, text, path);
}

static int fault_read_link(void *context, const char *path, char *text, size_t size)
{
    struct fault_files *fault = context;
    return due(fault) ? -fault->error : tr_file_ops_posix.read_link(NULL, path, text, size);
}

void fault_files_init(struct fault_files *fault, enum fault_kind kind, int error, int64_t fail_at,
                      bool persistent)
{
    static const struct tr_file_ops ops = {
        .name = "fault",
        .version = TR_FILE_OPS_VERSION,
        .open = fault_open,
        .write = fault_write,
        .sync = fault_sync,
        .close = fault_close,
        .rename = fault_rename,
        .make_directory = fault_make_directory,
        .remove_file = fault_remove_file,
        .remove_directory = fault_remove_directory,
        .sync_directory = fault_sync_directory,
        .list = fault_list,
        .make_link = fault_make_link,
        .read_link = fault_read_link,
    };
    *fault = (struct fault_files){{&ops, fault}, kind, error, fail_at, persistent, 0};
}
