/* The part of libwebp's binary interface that is used here, as of encoder ABI 2.15 and mux
 * ABI 1.9. libwebp's own headers are in an internal folder of the module with its sources. Each
 * function is weak, because cgo first links this package without that module, to list the
 * imports. */
#ifndef CADDYMEDIA_LIBWEBP_ABI_H
#define CADDYMEDIA_LIBWEBP_ABI_H

#include <stddef.h>
#include <stdint.h>

enum { PRESET_DEFAULT = 0 };
enum { CSP_YUV420 = 0 };

struct WebPConfig {
  int lossless;
  float quality;
  int method;
  int image_hint;
  int target_size;
  float target_psnr;
  int segments;
  int sns_strength;
  int filter_strength;
  int filter_sharpness;
  int filter_type;
  int autofilter;
  int alpha_compression;
  int alpha_filtering;
  int alpha_quality;
  int pass;
  int show_compressed;
  int preprocessing;
  int partitions;
  int partition_limit;
  int emulate_jpeg_size;
  int thread_level;
  int low_memory;
  int near_lossless;
  int exact;
  int use_delta_palette;
  int use_sharp_yuv;
  int qmin;
  int qmax;
};

struct WebPPicture {
  int use_argb;
  int colorspace;
  int width, height;
  uint8_t *y, *u, *v;
  int y_stride, uv_stride;
  uint8_t *a;
  int a_stride;
  uint32_t pad1[2];
  uint32_t *argb;
  int argb_stride;
  uint32_t pad2[3];
  int (*writer)(const uint8_t *, size_t, const struct WebPPicture *);
  void *custom_ptr;
  int extra_info_type;
  uint8_t *extra_info;
  void *stats;
  int error_code;
  int (*progress_hook)(int, const struct WebPPicture *);
  void *user_data;
  uint32_t pad3[3];
  uint8_t *pad4, *pad5;
  uint32_t pad6[8];
  void *memory, *memory_argb;
  void *pad7[2];
};

struct WebPMemoryWriter {
  uint8_t *mem;
  size_t size;
  size_t max_size;
  uint32_t pad[1];
};

struct WebPData {
  const uint8_t *bytes;
  size_t size;
};

struct WebPAnimEncoderOptions {
  struct {
    uint32_t bgcolor;
    int loop_count;
  } anim_params;
  int minimize_size;
  int kmin;
  int kmax;
  int allow_mixed;
  int verbose;
  uint32_t padding[4];
};

struct WebPAnimEncoder;

#pragma weak WebPGetEncoderVersion
#pragma weak WebPConfigInitInternal
#pragma weak WebPValidateConfig
#pragma weak WebPPictureInitInternal
#pragma weak WebPPictureImportRGBA
#pragma weak WebPPictureFree
#pragma weak WebPMemoryWriterInit
#pragma weak WebPMemoryWriterClear
#pragma weak WebPMemoryWrite
#pragma weak WebPEncode
#pragma weak WebPFree
#pragma weak WebPAnimEncoderOptionsInitInternal
#pragma weak WebPAnimEncoderNewInternal
#pragma weak WebPAnimEncoderAdd
#pragma weak WebPAnimEncoderAssemble
#pragma weak WebPAnimEncoderGetError
#pragma weak WebPAnimEncoderDelete

extern int WebPGetEncoderVersion(void);
extern int WebPConfigInitInternal(struct WebPConfig *, int preset, float quality, int abi);
extern int WebPValidateConfig(const struct WebPConfig *);
extern int WebPPictureInitInternal(struct WebPPicture *, int abi);
extern int WebPPictureImportRGBA(struct WebPPicture *, const uint8_t *, int stride);
extern void WebPPictureFree(struct WebPPicture *);
extern void WebPMemoryWriterInit(struct WebPMemoryWriter *);
extern void WebPMemoryWriterClear(struct WebPMemoryWriter *);
extern int WebPMemoryWrite(const uint8_t *, size_t, const struct WebPPicture *);
extern int WebPEncode(const struct WebPConfig *, struct WebPPicture *);
extern void WebPFree(void *);
extern int WebPAnimEncoderOptionsInitInternal(struct WebPAnimEncoderOptions *, int abi);
extern struct WebPAnimEncoder *WebPAnimEncoderNewInternal(int width, int height,
                                                          const struct WebPAnimEncoderOptions *,
                                                          int abi);
extern int WebPAnimEncoderAdd(struct WebPAnimEncoder *, struct WebPPicture *, int timestamp,
                              const struct WebPConfig *);
extern int WebPAnimEncoderAssemble(struct WebPAnimEncoder *, struct WebPData *);
extern const char *WebPAnimEncoderGetError(struct WebPAnimEncoder *);
extern void WebPAnimEncoderDelete(struct WebPAnimEncoder *);

#endif
