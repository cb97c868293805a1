/* cookies.c - a jar that several loops share: libcurl's cookie engine (RFC
 * 6265, with the list of public suffixes if libcurl has it), behind a lock. A
 * loop without a jar has no engine and no cost. */
#include "curl/compat.h"
#include "curl/jar.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

/* The loop then keeps the lock until libcurl has returned. */
static bool keeps_lock(const ferry_jar *jar, curl_lock_data what) {
  return what == CURL_LOCK_DATA_COOKIE && ferry__current &&
         ferry__current->options.jar == jar && ferry__reads_unlocked_jar();
}

static void lock(CURL *easy, curl_lock_data what, curl_lock_access access,
                 void *data) {
  ferry_jar *jar = data;
  (void)easy, (void)access;
  if (!keeps_lock(jar, what) || !ferry__current->curl->jar_held)
    pthread_mutex_lock(&jar->locks[what]);
}

static void unlock(CURL *easy, curl_lock_data what, void *data) {
  ferry_jar *jar = data;
  (void)easy;
  if (keeps_lock(jar, what))
    ferry__current->curl->jar_held = true;
  else
    pthread_mutex_unlock(&jar->locks[what]);
}

void ferry__jar_unlock(ferry_loop *loop) {
  loop->curl->jar_held = false;
  pthread_mutex_unlock(&loop->options.jar->locks[CURL_LOCK_DATA_COOKIE]);
}

int ferry_jar_make(ferry_jar **out) {
  ferry_jar *jar = calloc(1, sizeof *jar);
  *out = NULL;
  if (!jar)
    return FERRY_E_MEMORY;
  ferry__initialise();
  for (int i = 0; i < CURL_LOCK_DATA_LAST; i++)
    pthread_mutex_init(&jar->locks[i], NULL);
  pthread_mutex_init(&jar->lock, NULL);
  pthread_mutex_init(&jar->witness_lock, NULL);
  atomic_store(&jar->owners, 1);
  jar->share = curl_share_init();
  if (!jar->share ||
      curl_share_setopt(jar->share, CURLSHOPT_USERDATA, jar) ||
      curl_share_setopt(jar->share, CURLSHOPT_LOCKFUNC, lock) ||
      curl_share_setopt(jar->share, CURLSHOPT_UNLOCKFUNC, unlock) ||
      curl_share_setopt(jar->share, CURLSHOPT_SHARE, CURL_LOCK_DATA_COOKIE)) {
    ferry_jar_free(jar);
    return FERRY_E_MEMORY;
  }
  *out = jar;
  return FERRY_OK;
}

ferry_jar *ferry__jar_hold(ferry_jar *jar) {
  if (jar)
    atomic_fetch_add(&jar->owners, 1);
  return jar;
}

void ferry_jar_free(ferry_jar *jar) {
  if (atomic_fetch_sub(&jar->owners, 1) != 1)
    return;
  if (jar->share)
    curl_share_cleanup(jar->share);
  for (int i = 0; i < CURL_LOCK_DATA_LAST; i++)
    pthread_mutex_destroy(&jar->locks[i]);
  pthread_mutex_destroy(&jar->lock);
  pthread_mutex_destroy(&jar->witness_lock);
  ferry__domains_free(jar->domains);
  free(jar->witness);
  free(jar);
}

CURL *ferry__jar_open(ferry_jar *jar) {
  CURL *easy = curl_easy_init();
  if (easy && curl_easy_setopt(easy, CURLOPT_SHARE, jar->share)) {
    curl_easy_cleanup(easy);
    return NULL;
  }
  return easy;
}

void ferry__jar_close(CURL *easy) {
  curl_easy_cleanup(easy);
  if (ferry__current) /* perhaps in a callback, after which it would sleep */
    ferry__jar_release(ferry__current);
}

static int put(ferry_jar *jar, const char *what) {
  CURL *easy = ferry__jar_open(jar);
  int code = easy ? FERRY_OK : FERRY_E_MEMORY;
  if (easy && curl_easy_setopt(easy, CURLOPT_COOKIELIST, what))
    code = FERRY_E_INTERNAL;
  ferry__jar_close(easy);
  return code;
}

int ferry_jar_set(ferry_jar *jar, const char *line) {
  if (strpbrk(line, "\r\n"))
    return FERRY_E_INVALID_REQUEST;
  int code = put(jar, line);
  atomic_fetch_add(&jar->additions, 1);
  ferry__jar_changed(jar);
  ferry__jar_count(jar, 1);
  return code;
}

int ferry_jar_clear(ferry_jar *jar) {
  int code = put(jar, "ALL");
  ferry__jar_changed(jar);
  return code;
}

/* Seconds since 1970; INT64_MAX if it does not expire. A line without the
 * field, which libcurl always writes, counts as expired. */
static int64_t expires(const char *line) {
  for (int tabs = 0; tabs < 4; tabs++) {
    line = strchr(line, '\t');
    if (!line)
      return 0;
    line++;
  }
  long long at = strtoll(line, NULL, 10);
  return at ? at : INT64_MAX;
}

int ferry_jar_list(ferry_jar *jar, void *context,
                   void (*visit)(void *context, const char *line)) {
  struct curl_slist *lines = NULL;
  int64_t now = (int64_t)time(NULL);
  CURL *easy = ferry__jar_open(jar);
  if (!easy)
    return FERRY_E_MEMORY;
  /* Includes cookies that a server has removed: libcurl drops them later. */
  curl_easy_getinfo(easy, CURLINFO_COOKIELIST, &lines);
  for (struct curl_slist *at = lines; at; at = at->next)
    if (expires(at->data) >= now)
      visit(context, at->data);
  curl_slist_free_all(lines);
  ferry__jar_close(easy);
  return FERRY_OK;
}

/* ---- Whether the jar has cookies ----------------------------------------- */

void ferry__jar_changed(ferry_jar *jar) {
  pthread_mutex_lock(&jar->witness_lock);
  jar->changes++;
  atomic_store(&jar->expires, FERRY__JAR_UNKNOWN);
  pthread_mutex_unlock(&jar->witness_lock);
}

/* Whether Max-Age or Expires, in the way that libcurl reads them, says that the
 * cookie is removed (RFC 6265, 5.2.1 and 5.2.2). */
static bool is_over(const char *value, size_t length, bool is_age) {
  char text[80];
  if (length >= sizeof text)
    return false;
  memcpy(text, value, length);
  text[length] = 0;
  if (!is_age) {
    time_t end = curl_getdate(text, NULL);
    return end >= 0 && end < time(NULL); /* before 1970: never, for libcurl */
  }
  const char *digits = text + (*text == '"');
  bool is_negative = *digits == '-';
  digits += is_negative;
  size_t count = strspn(digits, "0123456789");
  return count && (is_negative || strspn(digits, "0") == count);
}

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Whether a cookie only removes another one. In doubt it does not. */
static bool is_removal(const char *cookie, size_t length) {
  const char *end = cookie + length, *at = memchr(cookie, ';', length);
  int ages = 0, ages_over = 0, dates = 0, dates_over = 0;
  while (at) {
    const char *name = at + 1;
    while (name < end && is_blank(*name))
      name++;
    at = memchr(name, ';', (size_t)(end - name));
    const char *stop = at ? at : end;
    const char *sign = memchr(name, '=', (size_t)(stop - name));
    if (!sign)
      continue;
    const char *value = sign + 1;
    while (value < stop && is_blank(*value))
      value++;
    while (stop > value && is_blank(stop[-1]))
      stop--;
    while (sign > name && is_blank(sign[-1]))
      sign--;
    size_t rest = (size_t)(stop - value);
    if (sign - name == 7 && !strncasecmp(name, "max-age", 7)) {
      ages++;
      ages_over += is_over(value, rest, true);
    } else if (sign - name == 7 && !strncasecmp(name, "expires", 7)) {
      dates++;
      dates_over += is_over(value, rest, false);
    }
  }
  /* Max-Age overrides Expires (RFC 6265, 5.3). */
  return ages ? ages_over == ages : dates && dates_over == dates;
}

void ferry__jar_line(ferry_jar *jar, const char *line, size_t length) {
  static const char field[] = "Set-Cookie:";
  size_t at = sizeof field - 1;
  if (length <= at || strncasecmp(line, field, at))
    return;
  while (at < length && (line[at] == ' ' || line[at] == '\t'))
    at++;
  if (!is_removal(line + at, length - at))
    atomic_fetch_add(&jar->additions, 1);
  pthread_mutex_lock(&jar->witness_lock);
  jar->changes++;
  /* domain, subdomains, path, TLS, end, name, value */
  const char *name = jar->witness;
  for (int tabs = 0; name && tabs < 5; tabs++)
    name = (name = strchr(name, '\t')) ? name + 1 : NULL;
  size_t n = name ? strcspn(name, "\t") : 0;
  /* Matches any cookie whose name begins so, of any host. */
  if (!n || (length - at >= n && !strncmp(line + at, name, n)))
    atomic_store(&jar->expires, FERRY__JAR_UNKNOWN);
  pthread_mutex_unlock(&jar->witness_lock);
}

/* If the jar changes meanwhile, nothing is remembered. */
static int look_for_one(ferry_jar *jar, int64_t now) {
  struct curl_slist *lines = NULL;
  const char *last = NULL;
  CURL *easy = ferry__jar_open(jar);
  if (!easy)
    return FERRY_E_MEMORY;
  pthread_mutex_lock(&jar->witness_lock);
  uint64_t before = jar->changes;
  pthread_mutex_unlock(&jar->witness_lock);
  curl_easy_getinfo(easy, CURLINFO_COOKIELIST, &lines);
  for (struct curl_slist *at = lines; at; at = at->next)
    if (!last || expires(at->data) > expires(last))
      last = at->data;
  int64_t until = last && expires(last) >= now ? expires(last)
                                               : FERRY__JAR_EMPTY;
  pthread_mutex_lock(&jar->witness_lock);
  if (jar->changes == before) {
    free(jar->witness);
    jar->witness = until ? strdup(last) : NULL; /* NULL: any change counts */
    atomic_store(&jar->expires, until);
  }
  pthread_mutex_unlock(&jar->witness_lock);
  curl_slist_free_all(lines);
  ferry__jar_close(easy);
  return until != FERRY__JAR_EMPTY;
}

int ferry_jar_filled(ferry_jar *jar) {
  int64_t now = (int64_t)time(NULL), until = atomic_load(&jar->expires);
  /* libcurl sends a cookie until its expiry is before the current time. */
  if (until == FERRY__JAR_EMPTY || until >= now)
    return until != FERRY__JAR_EMPTY;
  return look_for_one(jar, now);
}

uint64_t ferry_jar_additions(ferry_jar *jar) {
  return atomic_load(&jar->additions);
}

/* ---- Cookies of a handle ------------------------------------------------- */

bool ferry__jar_constants(ferry__handle *handle) {
  ferry_jar *jar = handle->loop->options.jar;
  return !jar ||
         (!curl_easy_setopt(handle->easy, CURLOPT_SHARE, jar->share) &&
          /* enables the engine */
          !curl_easy_setopt(handle->easy, CURLOPT_COOKIEFILE, ""));
}

/* 7.88 loses this list at a reset, without freeing it. */
void ferry__jar_reset(ferry__handle *handle) {
  if (handle->loop->options.jar)
    curl_easy_setopt(handle->easy, CURLOPT_COOKIEFILE, NULL);
}

/* «Cookie: a=b», or «Cookie;» without a value. */
static bool is_cookie(const struct curl_slist *field) {
  return !strncasecmp(field->data, "Cookie", 6) &&
         (field->data[6] == ':' || field->data[6] == ';');
}

/* Moves the caller's own cookies out of the list into one text. Returns false
 * without memory. */
static bool take_own(ferry__transfer *t) {
  size_t size = 0;
  for (const struct curl_slist *at = t->headers; at; at = at->next)
    size += is_cookie(at) ? strlen(at->data) : 0;
  if (!size)
    return true; /* none, or already taken out for an earlier attempt */
  t->curl.cookie = malloc(size);
  if (!t->curl.cookie)
    return false;
  char *end = t->curl.cookie;
  *end = 0;
  for (struct curl_slist **at = &t->headers; *at;) {
    if (!is_cookie(*at)) {
      at = &(*at)->next;
      continue;
    }
    if ((*at)->data[6] == ':') {
      end = stpcpy(end, end == t->curl.cookie ? "" : "; ");
      end = stpcpy(end, (*at)->data + 8);
    }
    *at = (*at)->next;
  }
  return true;
}

/* A request has one Cookie field (RFC 6265, 5.4): the caller's cookies follow
 * those of the jar in it. */
bool ferry__jar_prepare(ferry__handle *handle, ferry__transfer *t) {
  if (!handle->loop->options.jar)
    return true;
  ferry__jar_use(handle->loop->options.jar, t->host->name);
  return take_own(t) &&
         (!t->curl.cookie || !*t->curl.cookie ||
          !curl_easy_setopt(handle->easy, CURLOPT_COOKIE, t->curl.cookie));
}

/* The cookies that the response set are in the jar by now. */
void ferry__jar_check(ferry_loop *loop, const ferry__transfer *t) {
  const ferry__head *head = t->head;
  unsigned fresh = 0;
  if (!loop->options.jar)
    return;
  for (uint32_t i = 0; i < head->count; i++)
    fresh += head->fields[i].name_length == 10 &&
             !strncasecmp(head->bytes + head->fields[i].name, "Set-Cookie", 10);
  ferry__jar_count(loop->options.jar, fresh);
}
