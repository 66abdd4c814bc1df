"""The statement `class` under compat: classes with `__torch_function__` are found, and no Python frame is added."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import rushlight.compat; rushlight.compat.install()
import sys, torch

class Meta(type):
    def __new__(meta, name, bases, body):
        frame = sys._getframe(1)
        print(frame.f_code.co_name, frame.f_back.f_code.co_name)
        return super().__new__(meta, name, bases, body)

def inner():
    class Plain(metaclass=Meta): pass
    class Operator(metaclass=Meta):
        @classmethod
        def __torch_function__(cls, f, types, args=(), kwargs=None): return f.__name__
    return Operator()

def outer():
    return inner()

operator = outer()
print(torch.ones(2).matmul(operator), torch.ones(2) == operator, torch.add(operator, 1))
"""


def test_a_metaclass_sees_the_frame_of_the_class_statement():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout.split() == [*("inner outer inner outer matmul eq add".split())], done.stderr
