from musa_runtime.streams import *
