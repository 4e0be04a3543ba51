#ifndef CADDYMEDIA_LIBWEBP_H
#define CADDYMEDIA_LIBWEBP_H

#include <stddef.h>
#include <stdint.h>

/* The required ABI versions of libwebp: major << 8 | minor. */
enum { CM_ENCODER_ABI = 0x020f, CM_MUX_ABI = 0x0109 };

/* Results of an encoding besides libwebp's own error codes, which are positive. */
enum { CM_OK = 0, CM_UNUSABLE = -1, CM_MUX = -2 };

typedef struct {
  int lossless;
  float quality;
  int method;
  int partition_limit;
} cm_options;

/* A file, to be released by cm_free, or an error. */
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

/* Returns the version of libwebp, 0 if it is not linked. */
int cm_version(void);

/* Reports whether libwebp supports callers of these ABIs and has the fields of a configuration
 * at the expected offsets. */
int cm_accepts(int encoder_abi, int mux_abi);

/* The encoders stop when *stop is not 0. They keep none of their arguments, except that an
 * animation keeps stop. */

/* Converts the planes from full to limited range in place and encodes them. */
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

/* Returns free memory to the system. */
void cm_trim(void);

#endif
