from musa_runtime.random import *
