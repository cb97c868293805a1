/* compat.h - what differs between the versions of libcurl, 7.88 to 8.x. */
#ifndef FERRY_COMPAT_H
#define FERRY_COMPAT_H

#include "curl/libcurl.h"

/* The weight of a stream may be set before the stream is open. */
bool ferry__weighs_streams(void);
/* Without TLS it begins HTTP/2 anew at every request, on a kept connection
 * too, and fails. */
bool ferry__begins_http2_anew(void);

/* A first field line that begins with a blank is added to the last field of
 * the handle's response before, which is freed (curl/curl#11101). */
bool ferry__uses_freed_fields(void);

/* The transfer of an easy handle; NULL for a handle that is libcurl's own. */
ferry__transfer *ferry__transfer_of(CURL *easy);

/* Whether libcurl has closed a socket without telling. */
bool ferry__closed_silently(int fd);
/* libcurl waits for a socket with a handle of its own. */
void ferry__used_by_libcurl(const ferry__socket *socket, int what);

/* Bytes of the request's head and body that libcurl has sent. These are
 * figures for people: libcurl 8.7 does not count the head. Whether the server
 * may have seen the request is noted in ferry__on_request(). */
void ferry__read_sent(const ferry__transfer *transfer, ferry_result *result);

/* Whether libcurl goes through cookies that others share after it has unlocked
 * them. */
bool ferry__reads_unlocked_jar(void);

/* CURLOPT_DEBUGFUNCTION of loops with HTTP/2, and of transfers that are watched
 * for their last chunk. */
int ferry__on_line(CURL *easy, curl_infotype type, char *line, size_t size,
                   void *handle);
/* The stream that is sent again was certainly not looked at. */
bool ferry__was_refused(const ferry__handle *handle);

/* What libcurl's message for CURLE_RECV_ERROR says. */
enum {
  FERRY__WORDS_OTHER = 0, /* such as the system's word for a reset */
  FERRY__WORDS_CLOSED,
  FERRY__WORDS_CHUNK,
  FERRY__WORDS_HEAD_TOO_LARGE,
  FERRY__WORDS_HTTP2,
};
int ferry__received_words(const char *words);

/* What its messages for other codes say. */
bool ferry__says_too_large(const char *words); /* the answer to CONNECT */
bool ferry__says_hostname(const char *words);  /* the certificate has another */
bool ferry__says_expired(const char *words);   /* the certificate, or it is not
                                                * valid yet */
bool ferry__says_alert(const char *words);     /* of our certificate */
bool ferry__says_length(const char *words);    /* Content-Length is none */
bool ferry__says_stream_end(const char *words);
bool ferry__says_no_head(const char *words); /* the stream ended before one */

#endif
