// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Numbers of the driver's entry points in records and callbacks. Written by number_callbacks.py.
#ifndef MUPTI_DRIVER_CBID_H
#define MUPTI_DRIVER_CBID_H

typedef enum {
  MUPTI_DRIVER_TRACE_CBID_INVALID = 0,
  MUPTI_DRIVER_TRACE_CBID_muCtxGetCurrent = 1,
  MUPTI_DRIVER_TRACE_CBID_muCtxGetDevice = 2,
  MUPTI_DRIVER_TRACE_CBID_muCtxSetCurrent = 3,
  MUPTI_DRIVER_TRACE_CBID_muCtxSynchronize = 4,
  MUPTI_DRIVER_TRACE_CBID_muDeviceGet = 5,
  MUPTI_DRIVER_TRACE_CBID_muDeviceGetAttribute = 6,
  MUPTI_DRIVER_TRACE_CBID_muDeviceGetCount = 7,
  MUPTI_DRIVER_TRACE_CBID_muDeviceGetName = 8,
  MUPTI_DRIVER_TRACE_CBID_muDevicePrimaryCtxGetState = 9,
  MUPTI_DRIVER_TRACE_CBID_muDevicePrimaryCtxRelease = 10,
  MUPTI_DRIVER_TRACE_CBID_muDevicePrimaryCtxRetain = 11,
  MUPTI_DRIVER_TRACE_CBID_muDeviceTotalMem = 12,
  MUPTI_DRIVER_TRACE_CBID_muDriverGetVersion = 13,
  MUPTI_DRIVER_TRACE_CBID_muEventCreate = 14,
  MUPTI_DRIVER_TRACE_CBID_muEventDestroy = 15,
  MUPTI_DRIVER_TRACE_CBID_muEventElapsedTime = 16,
  MUPTI_DRIVER_TRACE_CBID_muEventQuery = 17,
  MUPTI_DRIVER_TRACE_CBID_muEventRecord = 18,
  MUPTI_DRIVER_TRACE_CBID_muEventSynchronize = 19,
  MUPTI_DRIVER_TRACE_CBID_muInit = 20,
  MUPTI_DRIVER_TRACE_CBID_muLaunchHostFunc = 21,
  MUPTI_DRIVER_TRACE_CBID_muMemAlloc = 22,
  MUPTI_DRIVER_TRACE_CBID_muMemFree = 23,
  MUPTI_DRIVER_TRACE_CBID_muMemGetAddressRange = 24,
  MUPTI_DRIVER_TRACE_CBID_muMemGetInfo = 25,
  MUPTI_DRIVER_TRACE_CBID_muMemcpyDtoD = 26,
  MUPTI_DRIVER_TRACE_CBID_muMemcpyDtoDAsync = 27,
  MUPTI_DRIVER_TRACE_CBID_muMemcpyDtoH = 28,
  MUPTI_DRIVER_TRACE_CBID_muMemcpyDtoHAsync = 29,
  MUPTI_DRIVER_TRACE_CBID_muMemcpyHtoD = 30,
  MUPTI_DRIVER_TRACE_CBID_muMemcpyHtoDAsync = 31,
  MUPTI_DRIVER_TRACE_CBID_muMemsetD32 = 32,
  MUPTI_DRIVER_TRACE_CBID_muMemsetD32Async = 33,
  MUPTI_DRIVER_TRACE_CBID_muMemsetD8 = 34,
  MUPTI_DRIVER_TRACE_CBID_muMemsetD8Async = 35,
  MUPTI_DRIVER_TRACE_CBID_muPointerGetAttribute = 36,
  MUPTI_DRIVER_TRACE_CBID_muStreamCreate = 37,
  MUPTI_DRIVER_TRACE_CBID_muStreamDestroy = 38,
  MUPTI_DRIVER_TRACE_CBID_muStreamQuery = 39,
  MUPTI_DRIVER_TRACE_CBID_muStreamSynchronize = 40,
  MUPTI_DRIVER_TRACE_CBID_muStreamWaitEvent = 41,
  MUPTI_DRIVER_TRACE_CBID_SIZE,
  MUPTI_DRIVER_TRACE_CBID_FORCE_INT = 0x7fffffff
} MUpti_driver_api_trace_cbid;

#endif
