/* compat.h - the differences between the versions of libcurl, 7.88 to 8.x. */
#ifndef FERRY_COMPAT_H
#define FERRY_COMPAT_H

#include "curl/libcurl.h"

/* The weight of a stream may be set before the stream is open. */
bool ferry__weighs_streams(void);
/* Without TLS libcurl starts HTTP/2 again at every request, also on a kept
 * connection, and fails. */
bool ferry__begins_http2_anew(void);

/* Over HTTP/2 the end of a request's body can mix up the bytes of responses
 * that share its connection (compat.c). */
bool ferry__mixes_streams(void);
/* Once it knows a connection of HTTP/2 to a host, it takes those of HTTP/1.1 to
 * the same host for free while others use them. */
bool ferry__offers_busy(void);

/* A first field line that begins with a blank is appended to the last field of
 * the handle's previous response, which is freed (curl/curl#11101). */
bool ferry__uses_freed_fields(void);

/* The transfer of an easy handle; NULL for one of libcurl's own handles. */
ferry__transfer *ferry__transfer_of(CURL *easy);

/* Whether libcurl has closed a socket without reporting it. */
bool ferry__closed_silently(int fd);
/* libcurl waits for a socket with a handle of its own. */
void ferry__used_by_libcurl(const ferry__socket *socket, int what);

/* The bytes of the request's head and body that libcurl has sent. For
 * information only: libcurl 8.7 does not count the head. ferry__on_request()
 * notes whether the server may have seen the request. */
void ferry__read_sent(const ferry__transfer *transfer, ferry_result *result);

/* Whether libcurl walks through shared cookies after it has unlocked them. */
bool ferry__reads_unlocked_jar(void);

/* CURLOPT_DEBUGFUNCTION for loops with HTTP/2, and for transfers that are
 * watched for their last chunk. */
int ferry__on_line(CURL *easy, curl_infotype type, char *line, size_t size,
                   void *handle);
/* The stream that is sent again was certainly not processed. */
bool ferry__was_refused(const ferry__handle *handle);

/* What libcurl's message for CURLE_RECV_ERROR means. */
enum {
  FERRY__WORDS_OTHER = 0, /* for example the system's message for a reset */
  FERRY__WORDS_CLOSED,
  FERRY__WORDS_CHUNK,
  FERRY__WORDS_CHUNK_MEMORY,
  FERRY__WORDS_HEAD_TOO_LARGE,
  FERRY__WORDS_HTTP2,
};
int ferry__received_words(const char *words);

/* What its messages for other codes mean. */
bool ferry__says_too_large(const char *words); /* the response to CONNECT */
bool ferry__says_hostname(const char *words);  /* the certificate is for another
                                                * name */
bool ferry__says_expired(const char *words);   /* the certificate has, or is not
                                                * valid yet */
bool ferry__says_alert(const char *words);     /* about our certificate */
bool ferry__says_length(const char *words);    /* Content-Length is invalid */
bool ferry__says_stream_end(const char *words);
bool ferry__says_no_head(const char *words); /* the stream ended before a
                                              * head */

#endif
