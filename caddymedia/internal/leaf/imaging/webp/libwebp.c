//go:build cgo && linux

#include "libwebp.h"

#include <malloc.h>

#include "libwebp_abi.h"

int cm_version(void) {
  if (WebPGetEncoderVersion == NULL || WebPEncode == NULL || WebPAnimEncoderAdd == NULL) return 0;
  return WebPGetEncoderVersion();
}

int cm_accepts(int encoder_abi, int mux_abi) {
  struct WebPConfig config;
  struct WebPPicture picture;
  struct WebPAnimEncoderOptions options;
  if (!WebPConfigInitInternal(&config, PRESET_DEFAULT, 42, encoder_abi)) return 0;
  if (!WebPPictureInitInternal(&picture, encoder_abi)) return 0;
  if (!WebPAnimEncoderOptionsInitInternal(&options, mux_abi)) return 0;
  return config.quality == 42 && config.method == 4 && config.alpha_quality == 100 &&
         config.qmin == 0 && config.qmax == 100;
}

static int configure(struct WebPConfig *config, cm_options options) {
  if (!WebPConfigInitInternal(config, PRESET_DEFAULT, options.quality, CM_ENCODER_ABI)) return 0;
  config->lossless = options.lossless;
  config->method = options.method;
  config->partition_limit = options.partition_limit;
  return WebPValidateConfig(config);
}

static int unless_stopped(int percent, const struct WebPPicture *picture) {
  (void)percent;
  return !__atomic_load_n((const int32_t *)picture->user_data, __ATOMIC_RELAXED);
}

static int prepare(struct WebPPicture *picture, cm_shape shape, const int32_t *stop) {
  if (!WebPPictureInitInternal(picture, CM_ENCODER_ABI)) return 0;
  picture->width = shape.width;
  picture->height = shape.height;
  picture->progress_hook = unless_stopped;
  picture->user_data = (void *)stop;
  return 1;
}

/* Returns a non-zero error code. */
static int error_of(const struct WebPPicture *picture) {
  return picture->error_code ? picture->error_code : CM_UNUSABLE;
}

static cm_file encode(struct WebPPicture *picture, cm_options options) {
  cm_file file = {0};
  struct WebPConfig config;
  struct WebPMemoryWriter writer;
  if (!configure(&config, options)) {
    file.error = CM_UNUSABLE;
    return file;
  }
  WebPMemoryWriterInit(&writer);
  picture->writer = WebPMemoryWrite;
  picture->custom_ptr = &writer;
  if (WebPEncode(&config, picture)) {
    file.data = writer.mem;
    file.size = writer.size;
  } else {
    file.error = error_of(picture);
    WebPMemoryWriterClear(&writer);
  }
  return file;
}

/* ITU-T T.871 has samples of 0 to 255, WebP has those of ITU-R BT.601: luma of 16 to 235,
 * chroma of 16 to 240. Both are (sample * scale + offset) / 255, rounded. Every value is
 * below 65,535, where the shifts divide by 255 exactly. */
enum { LUMA_SCALE = 219, LUMA_OFFSET = 16 * 255, CHROMA_SCALE = 224, CHROMA_OFFSET = 128 * 31 };

static inline uint8_t limited(uint8_t sample, uint16_t scale, uint16_t offset) {
  uint16_t x = (uint16_t)(sample * scale + offset + 127);
  return (uint8_t)((uint16_t)(x + 1 + (x >> 8)) >> 8);
}

/* A constant count lets the compiler use vectors at -O2. */
enum { BLOCK = 32 };

static inline void limit_plane(uint8_t *row, int width, int height, int stride, uint16_t scale,
                               uint16_t offset) {
  for (; height > 0; height--, row += stride) {
    int x = 0;
    for (; x + BLOCK <= width; x += BLOCK) {
      for (int i = 0; i < BLOCK; i++) row[x + i] = limited(row[x + i], scale, offset);
    }
    for (; x < width; x++) row[x] = limited(row[x], scale, offset);
  }
}

cm_file cm_encode_planes(uint8_t *y, uint8_t *cb, uint8_t *cr, cm_shape shape, cm_options options,
                         const int32_t *stop) {
  cm_file file = {0};
  struct WebPPicture picture;
  int width = (shape.width + 1) / 2, height = (shape.height + 1) / 2;
  if (!prepare(&picture, shape, stop)) {
    file.error = CM_UNUSABLE;
    return file;
  }
  limit_plane(y, shape.width, shape.height, shape.stride, LUMA_SCALE, LUMA_OFFSET);
  limit_plane(cb, width, height, shape.chroma_stride, CHROMA_SCALE, CHROMA_OFFSET);
  limit_plane(cr, width, height, shape.chroma_stride, CHROMA_SCALE, CHROMA_OFFSET);
  picture.colorspace = CSP_YUV420;
  picture.y = y;
  picture.u = cb;
  picture.v = cr;
  picture.y_stride = shape.stride;
  picture.uv_stride = shape.chroma_stride;
  file = encode(&picture, options);
  WebPPictureFree(&picture);
  return file;
}

cm_file cm_encode_pixels(const uint8_t *rgba, cm_shape shape, cm_options options,
                         const int32_t *stop) {
  cm_file file = {0};
  struct WebPPicture picture;
  if (!prepare(&picture, shape, stop)) {
    file.error = CM_UNUSABLE;
    return file;
  }
  picture.use_argb = options.lossless;
  if (WebPPictureImportRGBA(&picture, rgba, shape.stride)) {
    file = encode(&picture, options);
  } else {
    file.error = error_of(&picture);
  }
  WebPPictureFree(&picture);
  return file;
}

/* The key frame distances are those of gif2webp. */
struct WebPAnimEncoder *cm_anim_new(cm_shape shape, int loops, cm_options options) {
  struct WebPAnimEncoderOptions anim;
  if (!WebPAnimEncoderOptionsInitInternal(&anim, CM_MUX_ABI)) return NULL;
  anim.anim_params.bgcolor = 0;
  anim.anim_params.loop_count = loops;
  anim.kmin = options.lossless ? 9 : 3;
  anim.kmax = options.lossless ? 17 : 5;
  return WebPAnimEncoderNewInternal(shape.width, shape.height, &anim, CM_MUX_ABI);
}

int cm_anim_add(struct WebPAnimEncoder *anim, const uint8_t *rgba, cm_shape shape, int timestamp,
                cm_options options, const int32_t *stop) {
  struct WebPConfig config;
  struct WebPPicture picture;
  int error = CM_OK;
  if (!configure(&config, options) || !prepare(&picture, shape, stop)) return CM_UNUSABLE;
  picture.use_argb = 1;
  if (!WebPPictureImportRGBA(&picture, rgba, shape.stride)) {
    error = error_of(&picture);
  } else if (!WebPAnimEncoderAdd(anim, &picture, timestamp, &config)) {
    error = picture.error_code ? picture.error_code : CM_MUX;
  }
  WebPPictureFree(&picture);
  return error;
}

cm_file cm_anim_finish(struct WebPAnimEncoder *anim, int timestamp) {
  cm_file file = {0};
  struct WebPData data = {0};
  if (!WebPAnimEncoderAdd(anim, NULL, timestamp, NULL) || !WebPAnimEncoderAssemble(anim, &data)) {
    file.error = CM_MUX;
    return file;
  }
  file.data = (uint8_t *)data.bytes;
  file.size = data.size;
  return file;
}

const char *cm_anim_error(struct WebPAnimEncoder *anim) { return WebPAnimEncoderGetError(anim); }

void cm_anim_free(struct WebPAnimEncoder *anim) { WebPAnimEncoderDelete(anim); }

void cm_free(void *data) { WebPFree(data); }

void cm_trim(void) {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}
