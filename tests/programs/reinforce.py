"""REINFORCE with a baseline on a walk along a corridor, written here: policies, log-probabilities, discounted
returns."""

from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.distributions import Categorical

torch.manual_seed(543)
torch.set_printoptions(precision=5, sci_mode=False)


class Corridor:
    """Walk from the middle of `n` cells to the right end; each step costs, the left end ends it badly."""

    def __init__(self, n=7, limit=30):
        self.n, self.limit = n, limit

    def reset(self):
        self.at, self.steps = self.n // 2, 0
        return self.state()

    def state(self):
        return [self.at / self.n, 1 - self.at / self.n, self.steps / self.limit]

    def step(self, action):
        self.at += 1 if action == 1 else -1
        self.steps += 1
        done = self.at in (0, self.n - 1) or self.steps >= self.limit
        reward = 1.0 if self.at == self.n - 1 else -1.0 if self.at == 0 else -0.02
        return self.state(), reward, done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(3, 16)
        self.action_head = nn.Linear(16, 2)
        self.value_head = nn.Linear(16, 1)

    def forward(self, x):
        x = torch.tanh(self.affine1(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


def returns_of(rewards, gamma):
    returns, R = deque(), 0.0
    for r in rewards[::-1]:
        R = r + gamma * R
        returns.appendleft(R)
    return torch.tensor(returns)


env, policy = Corridor(), Policy()
optimizer = optim.Adam(policy.parameters(), lr=3e-2)
running = 0.0
for episode in range(40):
    state, log_probs, values, entropies, rewards, done = env.reset(), [], [], [], [], False
    while not done:
        probs, value = policy(torch.tensor(state).unsqueeze(0))
        m = Categorical(probs)
        action = m.sample()
        log_probs.append(m.log_prob(action))
        entropies.append(m.entropy())
        values.append(value.squeeze())
        state, reward, done = env.step(action.item())
        rewards.append(reward)
    returns = returns_of(rewards, 0.97)
    values = torch.stack(values)
    advantage = returns - values.detach()
    policy_loss = -(torch.cat(log_probs) * advantage).sum()
    value_loss = F.smooth_l1_loss(values, returns, reduction="sum")
    optimizer.zero_grad()
    loss = policy_loss + value_loss - 0.01 * torch.cat(entropies).mean()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
    optimizer.step()
    running = 0.05 * sum(rewards) + (1 - 0.05) * running
    if episode % 5 == 0:
        print(
            f"Episode {episode}\tlength: {len(rewards)}\treward: {sum(rewards):.2f}\tAverage: {running:.4f}\tloss: "
            f"{loss.item():.5f}\tgrad norm: {norm:.4f}"
        )
with torch.no_grad():
    states = torch.tensor([[i / 7, 1 - i / 7, 0.0] for i in range(7)])
    probs, values = policy(states)
print(probs, values.squeeze(), Categorical(probs), sep="\n")
