from musa_runtime.comm import *
