import gymnasium as gym
import numpy as np
from stable_baselines3 import A2C, DQN, PPO, SAC


class Walk(gym.Env):
    """A point goes left or right, and is paid for being near 0."""

    def __init__(self, discrete=True):
        self.observation_space = gym.spaces.Box(-5, 5, (2,), np.float32)
        self.action_space = gym.spaces.Discrete(3) if discrete else gym.spaces.Box(-1, 1, (1,), np.float32)
        self.discrete = discrete

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.x, self.t = float(self.np_random.uniform(-2, 2)), 0
        return self.seen(), {}

    def seen(self):
        return np.array([self.x, self.t / 20], np.float32)

    def step(self, action):
        self.x += 0.3 * (int(action) - 1) if self.discrete else 0.3 * float(action[0])
        self.x, self.t = min(max(self.x, -5), 5), self.t + 1
        return self.seen(), -abs(self.x), False, self.t >= 20, {}


def small():
    return {"policy_kwargs": {"net_arch": [16]}, "seed": 0, "device": "cpu"}


probe = np.array([0.5, 0.1], np.float32)
for model in (
    PPO("MlpPolicy", Walk(), n_steps=64, batch_size=32, n_epochs=3, **small()),
    A2C("MlpPolicy", Walk(), **small()),
    DQN("MlpPolicy", Walk(), learning_starts=20, train_freq=4, target_update_interval=40, **small()),
    SAC("MlpPolicy", Walk(discrete=False), learning_starts=20, batch_size=16, **small()),
):
    model.learn(128 if not isinstance(model, SAC) else 50)
    print(type(model).__name__, [p.norm().item() for p in model.policy.parameters()])
    print(np.asarray(model.predict(probe, deterministic=True)[0]).tolist())
    model.save("/tmp/rushlight_policy")
    print(sum(p.sum().item() for p in type(model).load("/tmp/rushlight_policy", device="cpu").policy.parameters()))
