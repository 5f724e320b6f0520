"""The solvers as optax transformations.

Each is a ``GradientTransformationExtraArgs`` over any pytree of real floating arrays; every leaf
is one weight vector, run by the solver of that name, and a norm or a ball is that of a leaf. The
updates are the new weights minus the params, so it stands LAST in a chain: what scales updates
would scale exact zeros away. What comes before it (clipping, ``optax.add_decayed_weights``) acts
on the gradients.

What reproduces the updates of other packages, exactly but for rounding, with ``G0`` for
``initial_accumulator`` and ``net = js.regularizers.ElasticNet(l1, l2)``:

| package | here |
|---|---|
| ``optax.adagrad(lr)``, Keras | ``adagrad_fobos(lr, G0=0.1 + 1e-7)``: eps is under their root |
| PyTorch ``Adagrad(lr)`` | ``adagrad_fobos(lr, delta=1e-10)`` |
| its ``lr_decay`` | the schedule ``lambda count: lr / (1 + count * lr_decay)`` |
| its ``weight_decay`` | ``optax.add_decayed_weights`` before it in the chain |
| TensorFlow v1 ``Adagrad`` | ``adagrad_fobos(lr, G0=0.1)`` |
| TensorFlow ``AdagradV2`` | ``adagrad_fobos(lr, delta=epsilon, G0=0.1)`` |
| TensorFlow ``ProximalAdagrad`` | ``adagrad_fobos(lr, regularizer=net, G0=0.1)`` |
| TensorFlow ``AdagradDA`` | ``adagrad_rda(lr, regularizer=net, G0=0.1)``, params starting at 0 |
"""

from jaxsolvers.transforms.adagrad import adagrad_fobos, adagrad_rda
from jaxsolvers.transforms.full import full_adagrad
from jaxsolvers.transforms.pegasos import pegasos
from jaxsolvers.transforms.proximal import fobos, rda

__all__ = ["adagrad_fobos", "adagrad_rda", "fobos", "full_adagrad", "pegasos", "rda"]
