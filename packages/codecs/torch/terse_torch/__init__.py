"""
Communication hooks for PyTorch's DistributedDataParallel that send fewer bits, and the optimizer Lion Cub.

    state = terse_torch.CompensatedMean(model)  # model: DistributedDataParallel
    model.register_comm_hook(state, terse_torch.hook)
"""

from ._one_owner import refuse_second_owner

refuse_second_owner()

from ._compensated_mean import CompensatedMean
from ._hook import hook
from ._lion_cub import LionCub
from ._messages import StepRefusedError
from ._named import four_bits, int8
from ._terngrad import TernGrad
from ._vote import Vote

__all__ = ["CompensatedMean", "LionCub", "StepRefusedError", "TernGrad", "Vote", "four_bits", "hook", "int8"]
