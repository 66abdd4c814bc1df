"""`gym` is `gymnasium` under its old name; the first reset gets a seed, so that runs repeat."""

import gymnasium
from gymnasium import Env, Wrapper, error, spaces, vector, wrappers  # noqa: F401

__version__ = gymnasium.__version__


class _Seeded(Wrapper):
    _fresh = True

    def reset(self, *, seed=None, options=None):
        if self._fresh and seed is None:
            seed = 0
        self._fresh = False
        return self.env.reset(seed=seed, options=options)


def make(*args, **kw):
    env = _Seeded(gymnasium.make(*args, **kw))
    env.action_space.seed(0)
    return env
