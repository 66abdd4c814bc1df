"""A program of the tests: 200 steps with workers, shuffling, dropout and a compiled step.

python training.py record FOLDER [STEP]    dies of SIGKILL at this step
python training.py replay FOLDER STEP      prints the losses from this step on

It prints "step loss" with all bits of the loss."""

import os
import random
import signal
import sys

import numpy as np

import rushlight
from rushlight import nn
from rushlight.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    """Samples with noise from three random generators: in workers, or in the main process."""

    def __init__(self):
        generator = rushlight.Generator().manual_seed(1)
        self.x = rushlight.randn(400, 8, generator=generator)
        self.y = (self.x @ rushlight.randn(8, 3, generator=generator)).argmax(1)

    def __len__(self):
        return 400

    def __getitem__(self, i):
        noise = rushlight.rand(8) + np.random.rand() + random.random()
        return self.x[i] + 0.1 * noise, self.y[i]


def parts(workers):
    model = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Dropout(0.3), nn.BatchNorm1d(32), nn.Linear(32, 3))
    optimizer = rushlight.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = rushlight.optim.lr_scheduler.CosineAnnealingLR(optimizer, 200)
    loader = DataLoader(Noisy(), batch_size=16, shuffle=True, num_workers=workers)
    return loader, {"model": model, "optimizer": optimizer, "scheduler": scheduler}


def step_of(model, optimizer, scheduler, compiled):
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    run = rushlight.compile(step) if compiled else step

    def body(batch):
        loss = run(*batch).item()
        scheduler.step()
        return loss

    return body


def losses(steps, body, death=None):
    for step, batch in steps:
        if step == death:
            os.kill(os.getpid(), signal.SIGKILL)
        yield step, body(batch)


def main(action, folder, number=None, workers=2, compiled=True):
    rushlight.manual_seed(3 if action == "record" else 4)  # a replay does not need the seed
    loader, objects = parts(workers)
    body = step_of(**objects, compiled=compiled)
    if action == "record":
        steps = rushlight.record(folder, loader, every=40, epochs=8, **objects)
        return losses(steps, body, number)
    resume = {"resume": True, "every": 40} if action == "resume" else {"step": number, "body": body}
    again = rushlight.record if action == "resume" else rushlight.replay
    return losses(again(folder, loader, epochs=8, **resume, **objects), body)


if __name__ == "__main__":
    for step, loss in main(*sys.argv[1:3], *map(int, sys.argv[3:4])):
        print(step, loss.hex(), flush=True)
