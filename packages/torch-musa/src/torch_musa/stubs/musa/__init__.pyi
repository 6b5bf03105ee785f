# Types of `torch.musa`. `python -m torch_musa stubs` installs them.

from torch_musa.musa import *
from musa_runtime.legacy_types import (
    BFloat16Storage as BFloat16Storage,
    BFloat16Tensor as BFloat16Tensor,
    BoolStorage as BoolStorage,
    BoolTensor as BoolTensor,
    ByteStorage as ByteStorage,
    ByteTensor as ByteTensor,
    CharStorage as CharStorage,
    CharTensor as CharTensor,
    ComplexDoubleStorage as ComplexDoubleStorage,
    ComplexFloatStorage as ComplexFloatStorage,
    DoubleStorage as DoubleStorage,
    DoubleTensor as DoubleTensor,
    FloatStorage as FloatStorage,
    FloatTensor as FloatTensor,
    HalfStorage as HalfStorage,
    HalfTensor as HalfTensor,
    IntStorage as IntStorage,
    IntTensor as IntTensor,
    LongStorage as LongStorage,
    LongTensor as LongTensor,
    ShortStorage as ShortStorage,
    ShortTensor as ShortTensor,
)
