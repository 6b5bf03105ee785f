from musa_runtime.flex_attention import *
