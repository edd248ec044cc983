/* Two libraries, one of which needs the other; the other is not in a folder that the loader searches. */
#ifdef ABSENT
__attribute__((visibility("default"))) int tr_test_absent(void);
int tr_test_absent(void)
{
    return 1;
}
#else
int tr_test_absent(void);
__attribute__((visibility("default"))) int clGetPlatformIDs(void);
int clGetPlatformIDs(void)
{
    return tr_test_absent();
}
#endif
