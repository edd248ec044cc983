/* Sums in a fixed order. For lane sums and maxima, 16 neighbouring threads have a row; thread LANE() of them has the
   elements LANE(), LANE() + 16, ... . Follows common.h. */
#define LANES      16
#define LANE()     (D_THREAD() % LANES)
#define LANE_ROW() ((int64_t)D_GROUP(0) * (D_THREADS / LANES) + D_THREAD() / LANES)

/* The end of a lane sum, in the order of device/ops.h, from each thread's lane. `place` [D_THREADS] is scratch, and
   may be used again at once. All threads of the group call it together. */
static inline float lanes_total(float own, D_SHARED_POINTER float *place)
{
    float lane[LANES];
    D_BARRIER();
    place[D_THREAD()] = own;
    D_BARRIER();
    D_SHARED_POINTER const float *row = place + (D_THREAD() - LANE());
    D_UNROLL for (int j = 0; j < 8; j++) lane[j] = row[j] + row[j + 8];
    D_UNROLL for (int j = 0; j < 4; j++) lane[j] = lane[j] + lane[j + 4];
    return (lane[0] + lane[2]) + (lane[1] + lane[3]);
}

/* The maximum of x [width] and its position; each thread of a row gets both. With width 0 (a thread without a row)
   the result is meaningless. As lanes_total() otherwise. */
static inline float greatest_of_row(D_GLOBAL const float *x, int width, D_SHARED_POINTER float *values,
                                    D_SHARED_POINTER int *places, int *where)
{
    int best = LANE() < width ? LANE() : -1;
    float greatest = best < 0 ? 0.0f : x[best];
    D_ROLLED for (int k = LANE() + LANES; k < width; k += LANES)
    {
        if (replaces(x[k], greatest)) {
            greatest = x[k];
            best = k;
        }
    }
    D_BARRIER();
    values[D_THREAD()] = greatest;
    places[D_THREAD()] = best;
    D_BARRIER();
    int row = D_THREAD() - LANE();
    greatest = values[row];
    best = places[row];
    D_ROLLED for (int j = 1; j < LANES; j++)
    {
        float value = values[row + j];
        int place = places[row + j];
        /* Of equal values, and of NaNs, the first; lanes are not in the order of the elements. */
        if (place >= 0 && (replaces(value, greatest) || (!replaces(greatest, value) && place < best))) {
            greatest = value;
            best = place;
        }
    }
    *where = best;
    return greatest;
}

/* The sum chain of x[begin] up to x[end - 1], for thread 0: it adds numbers that the group has loaded. `place` has
   room for FETCHED. All threads of the group call it together. */
#define FETCHED 2048

static inline float chain_of(D_GLOBAL const float *x, int64_t begin, int64_t end, D_SHARED_POINTER float *place)
{
    float sum = 0.0f;
    for (int64_t tile = begin; tile < end; tile += FETCHED) {
        int deep = (int)D_LEAST(end - tile, (int64_t)FETCHED);
        D_BARRIER();
        for (int i = D_THREAD(); i < deep; i += D_THREADS) place[i] = x[tile + i];
        D_BARRIER();
        if (D_THREAD() == 0)
            for (int i = 0; i < deep; i++) sum = sum + place[i];
    }
    return sum;
}

/* Chains over the rows of a microbatch, one for each column. Group (g, m) has COLUMNS columns of microbatch m. A
   chain is serial, so the first COLUMNS threads do nothing but compute the chains, from shared memory, while the
   others load the next rows. */
#define COLUMNS 32
#define FETCHERS (D_THREADS - COLUMNS)

/* Over the places [begin, end) of column `column`: advances two chains, sum by P and products by P * Q, which are
   expressions of the place `at` and the column. `p` and `q` are [2][DEEP * COLUMNS] in shared memory; the same where
   P and Q are. Threads from COLUMNS on get no result in `sum` and `products`. Every thread must call it. */
#define CHAINS(begin, end, exists, DEEP, p, q, P, Q, sum, products)                                          \
    for (int64_t tile = (begin) - (DEEP), turn = 1; tile < (end); tile += (DEEP), turn ^= 1) {               \
        int lane = D_THREAD() % COLUMNS;                                                                     \
        if (D_THREAD() >= COLUMNS && (exists)) {                                                             \
            int64_t stop = D_LEAST(tile + 2 * (DEEP), end);                                                  \
            int place = (int)(turn ^ 1) * (DEEP)*COLUMNS + D_THREAD() - COLUMNS;                             \
            D_UNROLL_MANY for (int64_t at = tile + (DEEP) + (D_THREAD() - COLUMNS) / COLUMNS; at < stop;     \
                               at += FETCHERS / COLUMNS, place += FETCHERS) {                                \
                p[place] = (P);                                                                              \
                if (p != q) q[place] = (Q);                                                                  \
            }                                                                                                \
        } else if (D_THREAD() < COLUMNS && tile >= (begin)) {                                                \
            int deep = (int)D_LEAST(end - tile, (int64_t)(DEEP)), place = (int)turn * (DEEP)*COLUMNS + lane; \
            D_UNROLL_MANY for (int i = 0; i < deep; i++, place += COLUMNS) {                                 \
                sum = sum + p[place];                                                                        \
                products = D_FMA(p[place], q[place], products);                                              \
            }                                                                                                \
        }                                                                                                    \
        D_BARRIER();                                                                                         \
    }

#define DEEP_ONE 96 /* places at a time, of one value; */
#define DEEP_TWO 48 /* and of two */

#define COLUMN() (D_GROUP(0) * COLUMNS + D_THREAD() % COLUMNS)

/* The tree of base/numbers/tree.h, as a binary counter: while leaves come in, a sum waits at level l if bit l of
   their number is set. `waiting` has TREE_LEVELS places; loops over it are unrolled, so that it lies in registers. */
#define TREE_LEVELS 20

/* The sum of 2^first leaves from number `leaf` on, a multiple of their number. */
static inline void tree_push(float *waiting, int first, int leaf, float value)
{
    int carrying = 1;
    D_UNROLL for (int level = first; level < TREE_LEVELS; level++)
    {
        if (carrying) { /* not a break, which would prevent unrolling */
            if (leaf >> level & 1) {
                value = waiting[level] + value;
            } else {
                waiting[level] = value;
                carrying = 0;
            }
        }
    }
}

static inline float tree_total(const float *waiting, int leaves)
{
    float total = 0.0f;
    int any = 0;
    D_UNROLL for (int level = 0; level < TREE_LEVELS; level++)
    {
        if (leaves >> level & 1) {
            total = any ? waiting[level] + total : waiting[level];
            any = 1;
        }
    }
    return total;
}
