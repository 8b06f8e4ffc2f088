/* The activity feed as a simulation: rounds that open, are guessed at and settle; each step is an event in a heap ordered by time. */
#include "feed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "die.h"
#include "feed_priv.h"

enum {
    PLAYERS = 20000,
    ROUNDS_OPEN = 20,
    ROUND_PLAYERS_MAX = 600,
    POINTS = 31,
    BURST = 4500, /* more than a millisecond's 4096 */
    RUN_MAX = 40,
    FEED_NODE = 11,
    GAME_NODE = 7 /* mints GAM, JOB, GES and ROM */
};
#define START_MS 1767225600000ULL /* 2026-01-01T00:00:00Z */
#define DAY_MS 86400000.0

struct player {
    uint64_t id;
    char name[64];
};

struct seat {
    uint32_t player;
    uint32_t best; /* points */
};

struct round {
    bool open;
    bool settling;
    bool blind;
    uint64_t game;
    uint64_t room;
    uint32_t target; /* guesses it will get */
    uint32_t guesses;
    uint32_t waiting; /* guessed, not yet scored */
    uint32_t pool;
    bool cracked;
    uint32_t seats;
    uint32_t last_seat;
    struct seat seat[ROUND_PLAYERS_MAX];
};

enum event_kind { ARRIVAL, GUESSED, SCORED, JOINED, OPENED, SETTLED, REVEALED };

struct event {
    double at_ms;
    uint64_t order; /* ties: first made, first served */
    enum event_kind kind;
    uint32_t round;
    uint32_t seat;
    uint64_t job;
};

struct mint_cell {
    uint64_t last; /* ms << 12 | seq, since the epoch */
    uint32_t node;
};

struct activity {
    struct test_feed base;
    double now_ms;
    double clock_shift_ms;
    struct mint_cell feed_cell;
    struct mint_cell game_cell;
    struct player *players;
    double *rank_sum; /* running sum of the ranks' weights */
    struct round rounds[ROUNDS_OPEN];
    struct event *heap;
    size_t heap_count;
    size_t heap_cap;
    uint64_t order;
    unsigned deploys;
    unsigned bursts;
    bool stepped;
};

static struct activity *activity_of(struct test_feed *feed)
{
    return (struct activity *)(void *)feed;
}

/* ---- numbers ---- */

static double unit(struct test_rng *rng) /* (0, 1) */
{
    return ((double)(test_rng_next(rng) >> 11) + 0.5) / 9007199254740992.0;
}

static double exponential(struct test_rng *rng, double mean)
{
    return -mean * log(unit(rng));
}

static double log_normal(struct test_rng *rng, double median, double sigma)
{
    double normal = sqrt(-2 * log(unit(rng))) * cos(6.283185307179586 * unit(rng));
    return median * exp(sigma * normal);
}

static uint64_t mint(struct mint_cell *cell, double wall_ms)
{
    uint64_t now = ((uint64_t)wall_ms - SILT_EPOCH_MS) << 12;
    cell->last = now > cell->last ? now : cell->last + 1;
    return cell->last >> 12 << 22 | (uint64_t)cell->node << 12 | (cell->last & 0xFFF);
}

/* Points of one guess in steps of 20; shares in hundredths of a percent. 600 is drawn apart. */
static uint32_t draw_points(struct test_rng *rng)
{
    static const uint16_t share[POINTS - 1] = {1250, 230, 360, 560, 940, 860, 410, 520, 590, 620,
                                               500,  310, 330, 360, 330, 280, 220, 230, 240, 230,
                                               160,  130, 130, 100, 54,  32,  18,  18,  6,   3};
    uint32_t total = 0, at = 0;
    if (test_rng_below(rng, 18000) == 0) return 600;
    for (int i = 0; i < POINTS - 1; i++)
        total += share[i];
    uint64_t draw = test_rng_below(rng, total);
    while (draw >= share[at])
        draw -= share[at++];
    return at * 20;
}

/* How busy the hour is: 0.3 at 03:00, 2.5 at 19:00 UTC, cosine between. */
static double day_factor(double ms)
{
    double hour = fmod(ms, DAY_MS) / 3600000.0;
    double since = fmod(hour - 3 + 24, 24);
    double share = since < 16 ? since / 16 : 1 - (since - 16) / 8;
    return 0.3 + 2.2 * (1 - cos(3.141592653589793 * share)) / 2;
}

/* ---- players ---- */

static void make_name(struct test_rng *rng, char ret[64])
{
    static const char *const latin[] = {"a", "e", "i", "o", "l", "n", "r", "s", "t", "m",
                                        "k", "d", "v", "x", "y", "z", "b", "g", "j", "u"};
    static const char *const cyrillic[] = {"а", "е", "и", "о", "л", "н", "р", "с", "т", "м",
                                           "к", "д", "в", "я", "ы", "з", "б", "г", "й", "у"};
    static const char *const faces[] = {"🎲", "🔥", "🐙", "⭐", "🦊", "💎"};
    bool north = test_rng_chance(rng, 30);
    size_t letters = 3 + test_rng_below(rng, 11), len = 0;
    for (size_t i = 0; i < letters; i++) {
        const char *letter = (north ? cyrillic : latin)[test_rng_below(rng, 20)];
        memcpy(ret + len, letter, strlen(letter));
        len += strlen(letter);
    }
    if (test_rng_chance(rng, 6)) {
        const char *face = faces[test_rng_below(rng, 6)];
        memcpy(ret + len, face, strlen(face));
        len += strlen(face);
    }
    ret[len] = 0;
}

static void make_players(struct activity *self)
{
    struct test_rng *rng = &self->base.rng;
    double sum = 0;
    for (int i = 0; i < PLAYERS; i++) {
        uint64_t ms = START_MS - SILT_EPOCH_MS - test_rng_below(rng, 400ULL * 86400000);
        self->players[i].id = ms << 22 | (1 + test_rng_below(rng, 4)) << 12 |
                              (test_rng_chance(rng, 5) ? test_rng_below(rng, 8) : 0);
        make_name(rng, self->players[i].name);
        sum += pow(i + 1, -0.9);
        self->rank_sum[i] = sum;
    }
}

static uint32_t draw_player(struct activity *self)
{
    double draw = unit(&self->base.rng) * self->rank_sum[PLAYERS - 1];
    uint32_t low = 0, high = PLAYERS - 1;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (self->rank_sum[middle] < draw)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* ---- events ---- */

static bool before(const struct event *a, const struct event *b)
{
    return a->at_ms < b->at_ms || (a->at_ms <= b->at_ms && a->order < b->order);
}

static void push(struct activity *self, struct event event)
{
    if (self->heap_count == self->heap_cap) {
        self->heap_cap = self->heap_cap ? 2 * self->heap_cap : 1024;
        self->heap = realloc(self->heap, self->heap_cap * sizeof *self->heap);
        if (!self->heap) test_die("feed: out of memory");
    }
    event.order = self->order++;
    size_t at = self->heap_count++;
    while (at > 0 && before(&event, &self->heap[(at - 1) / 2])) {
        self->heap[at] = self->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    self->heap[at] = event;
}

static struct event pop(struct activity *self)
{
    struct event top = self->heap[0], last = self->heap[--self->heap_count];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child >= self->heap_count) break;
        if (child + 1 < self->heap_count && before(&self->heap[child + 1], &self->heap[child]))
            child++;
        if (!before(&self->heap[child], &last)) break;
        self->heap[at] = self->heap[child];
        at = child;
    }
    self->heap[at] = last;
    return top;
}

static void push_at(struct activity *self, double at_ms, enum event_kind kind, uint32_t round)
{
    push(self, (struct event){.at_ms = at_ms, .kind = kind, .round = round});
}

/* A round takes more of the guesses when it nears its end. */
static uint32_t draw_round(struct activity *self)
{
    uint32_t weight[ROUNDS_OPEN], total = 0;
    for (int i = 0; i < ROUNDS_OPEN; i++) {
        const struct round *round = &self->rounds[i];
        uint32_t left = round->target - round->guesses;
        weight[i] = !round->open || left == 0 ? 0 : left < 60 && left < round->target / 2 ? 8 : 1;
        total += weight[i];
    }
    if (total == 0) return ROUNDS_OPEN;
    uint64_t draw = test_rng_below(&self->base.rng, total);
    uint32_t at = 0;
    while (draw >= weight[at])
        draw -= weight[at++];
    return at;
}

static bool is_seated(const struct round *round, uint32_t player)
{
    for (uint32_t s = 0; s < round->seats; s++)
        if (round->seat[s].player == player) return true;
    return false;
}

/* Whose guess it is: about one in thirteen comes from a new player, who joins first; half of the others follow their own last one. */
static uint32_t draw_seat(struct activity *self, uint32_t number, double at_ms)
{
    struct round *round = &self->rounds[number];
    struct test_rng *rng = &self->base.rng;
    if (round->seats == 0 || (test_rng_below(rng, 1000) < 74 && round->seats < ROUND_PLAYERS_MAX)) {
        uint32_t player = draw_player(self);
        if (!is_seated(round, player)) {
            round->seat[round->seats] = (struct seat){player, 0};
            round->last_seat = round->seats++;
            push(self, (struct event){.at_ms = at_ms - 1,
                                      .kind = JOINED,
                                      .round = number,
                                      .seat = round->last_seat});
            return round->last_seat;
        }
    }
    if (!test_rng_chance(rng, 50)) round->last_seat = (uint32_t)test_rng_below(rng, round->seats);
    return round->last_seat;
}

static void make_guess(struct activity *self, double at_ms)
{
    uint32_t number = draw_round(self);
    if (number == ROUNDS_OPEN) return;
    struct round *round = &self->rounds[number];
    uint32_t seat = draw_seat(self, number, at_ms);
    round->guesses++;
    round->waiting++;
    push(self, (struct event){.at_ms = at_ms, .kind = GUESSED, .round = number, .seat = seat});
}

static void next_arrival(struct activity *self, double after_ms)
{
    /* The day curve's mean is near 1.4; two of three entries follow from another. */
    double gap = exponential(&self->base.rng, 1420.0 / day_factor(self->now_ms));
    push_at(self, after_ms + gap, ARRIVAL, 0);
}

static void on_arrival(struct activity *self, double at_ms)
{
    struct test_rng *rng = &self->base.rng;
    uint64_t burst = 1;
    if (test_rng_below(rng, 1000) < 6) burst = 2 + test_rng_below(rng, RUN_MAX / 4);
    if (test_rng_below(rng, 20000) == 0) burst = RUN_MAX;
    if (self->base.count >= 50000 && self->bursts < 2 &&
        self->base.given * 3 >= self->base.count * (self->bursts + 1)) {
        burst = BURST;
        self->bursts++;
        for (int i = 0; i < ROUNDS_OPEN; i++) /* the open rounds take it all */
            if (self->rounds[i].open) self->rounds[i].target += BURST / ROUNDS_OPEN * 2;
    }
    while (burst-- > 0)
        make_guess(self, at_ms);
    next_arrival(self, at_ms);
}

/* ---- entries ---- */

static void start_entry(struct activity *self, const char *event)
{
    uint64_t snowflake = mint(&self->feed_cell, self->now_ms + self->clock_shift_ms);
    feed_entry_start(&self->base.entry, silt_snowflake_to_wire(snowflake));
    feed_put_branded(&self->base.entry, "id", "EVT", snowflake);
    feed_put_text(&self->base.entry, "event", event);
}

static void put_game(struct activity *self, const struct round *round)
{
    feed_put_branded(&self->base.entry, "game", "GAM", round->game);
}

static void put_player(struct activity *self, const char *name, const struct round *round,
                       uint32_t seat)
{
    feed_put_branded(&self->base.entry, name, "PLR", self->players[round->seat[seat].player].id);
}

/* A value's id is minted where the thing happened, now and then a millisecond before the feed hears of it. */
static uint64_t mint_value(struct activity *self)
{
    return mint(&self->game_cell, self->now_ms - (test_rng_chance(&self->base.rng, 20) ? 1 : 0));
}

static void put_guessed(struct activity *self, const struct event *event)
{
    struct round *round = &self->rounds[event->round];
    struct event scored = *event;
    scored.job = mint_value(self);
    scored.kind = SCORED;
    scored.at_ms = self->now_ms + log_normal(&self->base.rng, 13, 0.7237);
    start_entry(self, "guessed");
    put_game(self, round);
    put_player(self, "player", round, event->seat);
    feed_put_branded(&self->base.entry, "job", "JOB", scored.job);
    feed_put_text(&self->base.entry, "pay", test_rng_chance(&self->base.rng, 85) ? "key" : "clip");
    feed_put_number(&self->base.entry, "fee", 1);
    push(self, scored);
}

static void put_scored(struct activity *self, const struct event *event, uint32_t points)
{
    struct round *round = &self->rounds[event->round];
    struct seat *seat = &round->seat[event->seat];
    struct player *player = &self->players[seat->player];
    if (test_rng_below(&self->base.rng, 1000) == 0) make_name(&self->base.rng, player->name);
    uint64_t guess = mint_value(self);
    start_entry(self, "scored");
    put_game(self, round);
    put_player(self, "player", round, event->seat);
    feed_put_text(&self->base.entry, "name", player->name);
    feed_put_branded(&self->base.entry, "job", "JOB", event->job);
    feed_put_branded(&self->base.entry, "guess", "GES", guess);
    feed_put_number(&self->base.entry, "pct", (points + 3) / 6);
    feed_put_number(&self->base.entry, "eff", seat->best);
}

/* A blind round says nothing of its scores. false: no entry. */
static bool on_scored(struct activity *self, const struct event *event)
{
    struct round *round = &self->rounds[event->round];
    struct seat *seat = &round->seat[event->seat];
    uint32_t points = draw_points(&self->base.rng);
    if (points > seat->best) seat->best = points;
    if (points == 600) {
        round->cracked = true;
        round->target = round->guesses;
    }
    round->waiting--;
    if (!round->blind) put_scored(self, event, points);
    if (round->waiting == 0 && round->guesses == round->target && !round->settling) {
        round->settling = true;
        push_at(self, self->now_ms + 1, SETTLED, event->round);
    }
    return !round->blind;
}

static void put_joined(struct activity *self, const struct event *event)
{
    const struct round *round = &self->rounds[event->round];
    start_entry(self, "joined");
    put_game(self, round);
    put_player(self, "player", round, event->seat);
    feed_put_text(&self->base.entry, "name", self->players[round->seat[event->seat].player].name);
}

static void put_opened(struct activity *self, uint32_t number)
{
    static const uint32_t pools[] = {0, 500, 1000, 2500}, cells[] = {24, 36, 48};
    struct test_rng *rng = &self->base.rng;
    struct round *round = &self->rounds[number];
    uint64_t room = round->room;
    double target = test_rng_below(rng, 100) < 2 ? 300 + (double)test_rng_below(rng, 700)
                                                 : log_normal(rng, 108, 0.42);
    *round = (struct round){.open = true, .room = room, .pool = pools[test_rng_below(rng, 4)]};
    round->target = target < 4 ? 4 : target > 1000 ? 1000 : (uint32_t)target;
    round->blind = test_rng_chance(rng, 6);
    round->game = mint_value(self);
    start_entry(self, "opened");
    feed_put_branded(&self->base.entry, "room", "ROM", room);
    put_game(self, round);
    feed_put_text(&self->base.entry, "type", test_rng_chance(rng, 80) ? "classic" : "golden");
    feed_put_branded(&self->base.entry, "set", "EMS",
                     (1000 + test_rng_below(rng, 12)) << 32 | 2 << 12);
    feed_put_number(&self->base.entry, "cells", cells[test_rng_below(rng, 3)]);
    feed_put_number(&self->base.entry, "fee", 1 + test_rng_below(rng, 3));
    feed_put_number(&self->base.entry, "free", test_rng_below(rng, 2));
    feed_put_number(&self->base.entry, "pool", round->pool);
    feed_put_number(&self->base.entry, "ends_ms", (uint64_t)self->now_ms + 35 * 3600000);
}

static void put_settled(struct activity *self, uint32_t number)
{
    struct round *round = &self->rounds[number];
    uint32_t winner = 0;
    for (uint32_t s = 1; s < round->seats; s++)
        if (round->seat[s].best > round->seat[winner].best) winner = s;
    start_entry(self, "settled");
    put_game(self, round);
    put_player(self, "winner", round, winner);
    feed_put_number(&self->base.entry, "diamonds", round->pool);
    feed_put_text(&self->base.entry, "reason", round->cracked ? "crack" : "timer");
    feed_put_number(&self->base.entry, "guesses", round->guesses);
    feed_put_number(&self->base.entry, "players", round->seats);
    push_at(self, self->now_ms + (round->blind ? 2 : 900), round->blind ? REVEALED : OPENED,
            number);
    round->open = false;
}

static void put_hex(struct activity *self, const char *name, size_t digits)
{
    char text[65];
    for (size_t i = 0; i < digits; i++)
        text[i] = "0123456789abcdef"[test_rng_below(&self->base.rng, 16)];
    feed_put(&self->base.entry, name, text, digits);
}

static void put_scores(struct activity *self, const char *name, const struct round *round,
                       uint32_t divisor)
{
    static char text[ROUND_PLAYERS_MAX * 32];
    size_t len = 0;
    for (uint32_t s = 0; s < round->seats; s++) {
        uint8_t id[11];
        silt_base62_encode(self->players[round->seat[s].player].id, id);
        len += (size_t)snprintf(text + len, sizeof text - len, "%sPLR%.11s:%u", s ? "," : "",
                                (const char *)id, round->seat[s].best / divisor);
    }
    feed_put(&self->base.entry, name, text, len);
}

static void put_revealed(struct activity *self, uint32_t number)
{
    struct round *round = &self->rounds[number];
    char secret[32];
    size_t len = 0;
    for (int i = 0; i < 6; i++)
        len += (size_t)snprintf(secret + len, sizeof secret - len, "%s%04llx", i ? "-" : "",
                                (unsigned long long)test_rng_below(&self->base.rng, 65536));
    start_entry(self, "revealed");
    put_game(self, round);
    feed_put(&self->base.entry, "secret", secret, len);
    put_hex(self, "nonce", 32);
    put_hex(self, "commitment", 64);
    put_scores(self, "board", round, 1);
    put_scores(self, "payouts", round, 20);
    push_at(self, self->now_ms + 900, OPENED, number);
}

/* ---- the walk ---- */

/* Three deploys, each a pause of 2 s and another node, whose cell begins at the wall clock; one step back of the clock. */
static void disturb(struct activity *self)
{
    uint64_t given = self->base.given, count = self->base.count;
    if (self->deploys < 3 && count >= 1000 && given * 4 >= count * (self->deploys + 1)) {
        self->deploys++;
        for (size_t i = 0; i < self->heap_count; i++)
            self->heap[i].at_ms += 2000; /* all alike, so the heap stays one */
        self->now_ms += 2000;
        self->feed_cell.node = FEED_NODE + self->deploys;
        self->feed_cell.last = 0;
    }
    if (!self->stepped && count >= 1000 && given * 8 >= count * 5) {
        self->stepped = true;
        self->clock_shift_ms = -300;
    }
}

static bool activity_next(struct test_feed *feed)
{
    struct activity *self = activity_of(feed);
    disturb(self);
    for (;;) {
        struct event event = pop(self);
        if (event.at_ms > self->now_ms) self->now_ms = event.at_ms;
        switch (event.kind) {
        case ARRIVAL: on_arrival(self, event.at_ms); continue;
        case GUESSED: put_guessed(self, &event); return true;
        case SCORED:
            if (on_scored(self, &event)) return true;
            continue;
        case JOINED: put_joined(self, &event); return true;
        case OPENED: put_opened(self, event.round); return true;
        case SETTLED: put_settled(self, event.round); return true;
        case REVEALED: put_revealed(self, event.round); return true;
        }
    }
}

static void activity_free(struct test_feed *feed)
{
    struct activity *self = activity_of(feed);
    free(self->players);
    free(self->rank_sum);
    free(self->heap);
    free(self);
}

struct test_feed *test_feed_new(uint64_t seed, uint64_t count)
{
    struct activity *self = feed_alloc(1, sizeof *self);
    self->base.next = activity_next;
    self->base.free = activity_free;
    self->base.rng = test_rng_fixed(seed ^ 0x5eed);
    self->base.count = count;
    self->now_ms = START_MS;
    self->feed_cell.node = FEED_NODE;
    self->game_cell.node = GAME_NODE;
    self->players = feed_alloc(PLAYERS, sizeof *self->players);
    self->rank_sum = feed_alloc(PLAYERS, sizeof *self->rank_sum);
    make_players(self);
    for (uint32_t i = 0; i < ROUNDS_OPEN; i++) {
        self->rounds[i].room = (uint64_t)(1 + i) << 40 | 3 << 12;
        push_at(self, START_MS + 1000.0 * i, OPENED, i);
    }
    next_arrival(self, START_MS + 100.0);
    return &self->base;
}
