#ifndef CADDYMEDIA_LIBWEBP_H
#define CADDYMEDIA_LIBWEBP_H

#include <stddef.h>
#include <stdint.h>

/* The interfaces of libwebp that this is written for: major << 8 | minor. */
enum { CM_ENCODER_ABI = 0x020f, CM_MUX_ABI = 0x0109 };

/* What an encoding ends with beside libwebp's own error codes, which are positive. */
enum { CM_OK = 0, CM_UNUSABLE = -1, CM_MUX = -2 };

typedef struct {
  int lossless;
  float quality;
  int method;
  int partition_limit;
} cm_options;

/* A file, to be given to cm_free, or an error. */
typedef struct {
  uint8_t *data;
  size_t size;
  int error;
} cm_file;

typedef struct {
  int width, height;
  int stride, chroma_stride;
} cm_shape;

struct WebPAnimEncoder;

/* The version as libwebp gives it, 0 where libwebp is not linked. */
int cm_version(void);

/* Tells whether libwebp works with callers of these ABIs, and has the fields of a
 * configuration where they are thought to be. */
int cm_accepts(int encoder_abi, int mux_abi);

/* The encoders stop when *stop is not 0. Nothing they are given is kept, except that an
 * animation keeps stop. */

/* Brings the planes from full to limited range in place and encodes them. */
cm_file cm_encode_planes(uint8_t *y, uint8_t *cb, uint8_t *cr, cm_shape shape, cm_options options,
                         const int32_t *stop);
cm_file cm_encode_pixels(const uint8_t *rgba, cm_shape shape, cm_options options,
                         const int32_t *stop);

struct WebPAnimEncoder *cm_anim_new(cm_shape shape, int loops, cm_options options);
int cm_anim_add(struct WebPAnimEncoder *anim, const uint8_t *rgba, cm_shape shape, int timestamp,
                cm_options options, const int32_t *stop);
cm_file cm_anim_finish(struct WebPAnimEncoder *anim, int timestamp);
const char *cm_anim_error(struct WebPAnimEncoder *anim);
void cm_anim_free(struct WebPAnimEncoder *anim);

void cm_free(void *data);

/* Gives the system back what is free. */
void cm_trim(void);

#endif
