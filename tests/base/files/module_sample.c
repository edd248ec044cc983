/* A module for tests. */
struct tr_sample_module {
    int version;
};

extern const struct tr_sample_module tr_sample_module;
__attribute__((visibility("default"))) const struct tr_sample_module tr_sample_module = {.version = 7};
