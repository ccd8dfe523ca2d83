"""
Communication hooks for PyTorch's DistributedDataParallel that send fewer bits.

    state = terse_torch.CompensatedMean(model)  # model: DistributedDataParallel
    model.register_comm_hook(state, terse_torch.hook)
"""
from ._compensated_mean import CompensatedMean
from ._hook import hook
from ._messages import StepRefusedError
from ._named import four_bits, int8
from ._terngrad import TernGrad
from ._vote import Vote

__all__ = ["CompensatedMean", "StepRefusedError", "TernGrad", "Vote", "four_bits", "hook", "int8"]
