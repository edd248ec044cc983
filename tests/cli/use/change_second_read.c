/* Loaded before the C library: files of tensors that change between two reads of one opening. The first read
 * of a place gives what is there, each later one a number in every four bytes that differs a little and is
 * finite.
 *
 * CHANGE_FILE names the files, "parameters.safetensors"; each changed read adds a byte to the file
 * CHANGE_LOG.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PLACES_MOST 4096

static struct place {
    int descriptor;
    off_t offset;
} places[PLACES_MOST];
static int place_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static bool is_meant(int descriptor)
{
    char link[64], path[PATH_MAX];
    const char *name = getenv("CHANGE_FILE");
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = name ? readlink(link, path, sizeof path - 1) : -1;
    if (length < 0) return false;
    path[length] = '\0';
    const char *last = strrchr(path, '/');
    return last && strcmp(last + 1, name) == 0;
}

/* Whether this place was read before, under this descriptor; notes it. */
static bool is_known(int descriptor, off_t offset)
{
    pthread_mutex_lock(&lock);
    bool known = false;
    for (int i = 0; i < place_count; i++)
        known |= places[i].descriptor == descriptor && places[i].offset == offset;
    if (!known && place_count < PLACES_MOST) places[place_count++] = (struct place){descriptor, offset};
    pthread_mutex_unlock(&lock);
    return known;
}

static void note_change(void)
{
    const char *path = getenv("CHANGE_LOG");
    int log = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : -1;
    if (log < 0 || write(log, "x", 1) != 1) abort();
    close(log);
}

static ssize_t read_changed(const char *call, int descriptor, void *to, size_t size, off_t offset)
{
    ssize_t (*real)(int, void *, size_t, off_t);
    *(void **)&real = dlsym(RTLD_NEXT, call);
    ssize_t got = real(descriptor, to, size, offset);
    /* At the beginning is the header, which opening reads twice. */
    if (got <= 0 || offset == 0 || !is_meant(descriptor) || !is_known(descriptor, offset)) return got;
    for (ssize_t i = 1; i < got; i += 4) ((unsigned char *)to)[i] ^= 0x55;
    note_change();
    return got;
}

ssize_t pread(int descriptor, void *to, size_t size, off_t offset)
{
    return read_changed("pread", descriptor, to, size, offset);
}

/* The name under which a program with large files calls it. */
ssize_t pread64(int descriptor, void *to, size_t size, off_t offset)
{
    return read_changed("pread64", descriptor, to, size, offset);
}

int close(int descriptor)
{
    int (*real)(int);
    *(void **)&real = dlsym(RTLD_NEXT, "close");
    pthread_mutex_lock(&lock);
    for (int i = place_count - 1; i >= 0; i--)
        if (places[i].descriptor == descriptor) places[i] = places[--place_count];
    pthread_mutex_unlock(&lock);
    return real(descriptor);
}
