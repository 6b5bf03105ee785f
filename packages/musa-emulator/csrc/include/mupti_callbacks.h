// SPDX-License-Identifier: BSD-3-Clause
// Copyright (c) torch_musa contributors
// Callbacks at the start and end of each call. The call's parameters are not available: functionParams is null.
#ifndef MUPTI_CALLBACKS_H
#define MUPTI_CALLBACKS_H

#include <stdint.h>

#include "musa.h"
#include "mupti_result.h"

typedef enum { MUPTI_API_ENTER = 0, MUPTI_API_EXIT = 1, MUPTI_API_CBSITE_FORCE_INT = 0x7fffffff } MUpti_ApiCallbackSite;

typedef enum {
  MUPTI_CB_DOMAIN_INVALID = 0,
  MUPTI_CB_DOMAIN_DRIVER_API = 1,
  MUPTI_CB_DOMAIN_RUNTIME_API = 2,
  MUPTI_CB_DOMAIN_FORCE_INT = 0x7fffffff
} MUpti_CallbackDomain;

typedef uint32_t MUpti_CallbackId;

typedef struct {
  MUpti_ApiCallbackSite callbackSite;
  const char* functionName;
  const void* functionParams;
  void* functionReturnValue; /* musaError_t or MUresult; valid at MUPTI_API_EXIT */
  const char* symbolName;    /* null */
  MUcontext context;         /* null */
  uint32_t contextUid;
  uint64_t* correlationData; /* the same word at the start and end of a call */
  uint32_t correlationId;
} MUpti_CallbackData;

typedef void (*MUpti_CallbackFunc)(
    void* userdata, MUpti_CallbackDomain domain, MUpti_CallbackId callback, const void* data);

struct MUpti_Subscriber_st;
typedef struct MUpti_Subscriber_st* MUpti_SubscriberHandle;

MUSA_EXTERN_C_BEGIN
/* Only one subscriber at a time. A callback must not unsubscribe. */
MUSA_PUBLIC MUptiResult muptiSubscribe(MUpti_SubscriberHandle* subscriber, MUpti_CallbackFunc callback, void* userdata);
MUSA_PUBLIC MUptiResult muptiUnsubscribe(MUpti_SubscriberHandle subscriber);
MUSA_PUBLIC MUptiResult muptiEnableCallback(
    uint32_t enable, MUpti_SubscriberHandle subscriber, MUpti_CallbackDomain domain, MUpti_CallbackId callback);
MUSA_PUBLIC MUptiResult
muptiEnableDomain(uint32_t enable, MUpti_SubscriberHandle subscriber, MUpti_CallbackDomain domain);
MUSA_EXTERN_C_END

#endif
