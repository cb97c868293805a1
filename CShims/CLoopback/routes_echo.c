/* routes_echo.c - routes that return what they received. */
#include "internal.h"

#include <openssl/evp.h>
#include <string.h>

static void member(lb_buf *out, const char *name, lb_slice value) {
  lb__buf_format(out, "\"%s\":", name);
  lb__json_string(out, value);
  lb__buf_text(out, ",");
}

/* [["Name","value"],…], in order and with duplicates. */
static void add_fields(lb_buf *out, const lb_head *head) {
  lb__buf_text(out, "\"headers\":[");
  for (size_t i = 0; i < head->count; i++) {
    lb__buf_text(out, i ? ",[" : "[");
    lb__json_string(out, head->fields[i].name);
    lb__buf_text(out, ",");
    lb__json_string(out, head->fields[i].value);
    lb__buf_text(out, "]");
  }
  lb__buf_text(out, "]");
}

static void reply_json(lb_conn *c, lb_buf *text) {
  lb__reply_bytes(c, 200, "application/json", NULL, lb__buf_data(text),
                  lb__buf_size(text));
  lb__buf_free(text);
}

void lb__route_headers(lb_conn *c, const lb_head *head, lb_slice rest) {
  lb_buf text = {0};
  (void)rest;
  lb__buf_text(&text, "{");
  add_fields(&text, head);
  lb__buf_text(&text, "}");
  reply_json(c, &text);
}

void lb__route_echo(lb_conn *c, const lb_head *head, lb_slice rest) {
  lb_slice body = {lb__buf_size(&c->body) ? lb__buf_data(&c->body) : "",
                   lb__buf_size(&c->body)};
  lb_buf text = {0};
  (void)rest;
  lb__buf_text(&text, "{");
  member(&text, "method", head->method);
  member(&text, "target", head->target);
  member(&text, "path", head->path);
  member(&text, "query", head->query);
  add_fields(&text, head);
  lb__buf_text(&text, ",");
  if (lb__is_utf8(body)) {
    member(&text, "body", body);
  } else {
    size_t size = 4 * (body.length / 3 + 1) + 1;
    lb__buf_text(&text, "\"bodyBase64\":\"");
    text.end += (size_t)EVP_EncodeBlock(
        (unsigned char *)lb__buf_room(&text, size),
        (const unsigned char *)body.base, (int)body.length);
    lb__buf_text(&text, "\",");
  }
  lb__buf_format(&text, "\"bytes\":%llu}", (unsigned long long)c->body_total);
  reply_json(c, &text);
}

/* Starts when the head has been read; the body is sent back as it arrives. A
 * request without a body gets an empty response. */
void lb__route_echo_body(lb_conn *c, const lb_head *head, lb_slice rest) {
  lb_slice type = {"application/octet-stream", 24};
  (void)rest;
  lb__head_field(head, "Content-Type", &type);
  lb__reply_begin(c, 200, NULL);
  lb__buf_text(&c->out, "Content-Type: ");
  lb__buf_add(&c->out, type.base, type.length);
  lb__buf_text(&c->out, "\r\n");
  if (head->chunked) {
    lb__reply_chunked(c);
    return;
  }
  lb__reply_length(c, head->content_length);
  if (!head->content_length) lb__reply_end(c);
}

void lb__route_upload(lb_conn *c, const lb_head *head, lb_slice rest) {
  unsigned char digest[32];
  lb_buf text = {0};
  (void)rest;
  /* Without a body nothing was started. */
  if (!head->chunked && !head->content_length)
    EVP_Digest("", 0, digest, NULL, EVP_sha256(), NULL);
  else
    EVP_DigestFinal_ex(c->hash, digest, NULL);
  lb__buf_format(&text, "{\"bytes\":%llu,\"sha256\":\"",
                 (unsigned long long)c->body_total);
  for (size_t i = 0; i < sizeof(digest); i++)
    lb__buf_format(&text, "%02x", digest[i]);
  lb__buf_text(&text, "\"}");
  reply_json(c, &text);
}
