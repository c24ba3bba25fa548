/* Devices and what is known about them. Conventions: see mlx.h. */
#ifndef MLX_DEVICE_H
#define MLX_DEVICE_H

#include <stdbool.h>
#include <stddef.h>

#include "mlx/c/string.h"
#include "mlx/c/vector.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A device: its kind and its index. ctx == NULL is the empty handle. */
typedef struct mlx_device_ {
    void *ctx;
} mlx_device;

/* MLX_GPU is a Vulkan device, in hardware or in software. */
typedef enum mlx_device_type_ {
    MLX_CPU = 0,
    MLX_GPU = 1,
} mlx_device_type;

/* The empty handle. Cannot fail. */
mlx_device mlx_device_new(void);

/* A handle on device number index of a kind. The device need not exist: see
 * mlx_device_is_available. The empty handle on failure. */
mlx_device mlx_device_new_type(mlx_device_type type, int index);

/* Releases the handle; the empty handle is allowed. */
int mlx_device_free(mlx_device dev);

/* Makes *dev name the same device as src. */
int mlx_device_set(mlx_device *dev, const mlx_device src);

/* A text such as "Device(gpu, 0)". */
int mlx_device_tostring(mlx_string *str, mlx_device dev);

/* Whether both handles name the same device. False if one of them is empty. */
bool mlx_device_equal(mlx_device lhs, mlx_device rhs);

/* Index and kind of the device. */
int mlx_device_get_index(int *index, mlx_device dev);
int mlx_device_get_type(mlx_device_type *type, mlx_device dev);

/* The device that ops use when they are given an empty stream. Without a setting: the GPU if a
 * hardware Vulkan device is there, else the CPU. */
int mlx_get_default_device(mlx_device *dev);

/* Sets the default device. An error if the device does not exist. */
int mlx_set_default_device(mlx_device dev);

/* Whether the device exists and can be used. */
int mlx_device_is_available(bool *avail, mlx_device dev);

/* Number of devices of a kind, 0 where there is none. */
int mlx_device_count(int *count, mlx_device_type type);

/* ---- properties: a table of names with text or size values ---- */

/* The properties of a device. ctx == NULL is the empty handle. */
typedef struct mlx_device_info_ {
    void *ctx;
} mlx_device_info;

/* The empty handle. Cannot fail. */
mlx_device_info mlx_device_info_new(void);

/* Fills *info with the properties of dev, as they are now. */
int mlx_device_info_get(mlx_device_info *info, mlx_device dev);

/* Releases the table; the empty handle is allowed. */
int mlx_device_info_free(mlx_device_info info);

/* Whether there is a property of that name. */
int mlx_device_info_has_key(bool *exists, mlx_device_info info, const char *key);

/* Whether the property is a text (else it is a size). 2 if there is none of that name. */
int mlx_device_info_is_string(bool *is_string, mlx_device_info info, const char *key);

/* The value of a text property, borrowed from info. 2 if there is none of that name and kind. */
int mlx_device_info_get_string(const char **value, mlx_device_info info, const char *key);

/* The value of a size property. 2 if there is none of that name and kind. */
int mlx_device_info_get_size(size_t *value, mlx_device_info info, const char *key);

/* All names, in no particular order. */
int mlx_device_info_get_keys(mlx_vector_string *keys, mlx_device_info info);

#ifdef __cplusplus
}
#endif

#endif
