"""split: a function whose results require grad becomes a forward and a backward, which computes again what is cheap."""

import rushlight as torch
from tests.support.passes import agree, compiled, numbers

X, Y = numbers(0, (6, 4), (6, 5))
(W,) = numbers(1, (4, 5))


def gradients(f, *args):
    """What f gives, and the gradients of its tensors, run by the caller."""
    given = [a.clone().requires_grad_() for a in args]
    out = f(*given)
    (out * out).sum().backward()
    return [out.detach(), *[a.grad for a in given]]


def both(f, *args, **options):
    """(forward, backward) of the program of f; its results and gradients are eager's."""
    given = [a.clone().requires_grad_() for a in args]
    program, _, _ = compiled(f, *given, **options)
    agree(gradients(lambda *a: program.run([*a]), *args), gradients(f, *args), rtol=1e-4, atol=1e-5)
    return program.parts


def handed_over(back):
    """What the backward reads of what only the forward has computed."""
    return [what for name, what in back.inputs if name.startswith("back_s")]


def computed(part):
    return [op for item in part.items for op in item.ops]


def test_the_backward_is_a_program_of_its_own():
    forward, back = both(lambda x, w: (x @ w).exp(), X, W)
    assert "mm" in computed(forward)
    assert computed(back).count("mm") == 2  # g w^T and x^T g
    assert [what for name, what in back.inputs if name.startswith("back_g")] == ["float32[6, 5]"]


def test_products_are_handed_over_and_elements_computed_again():
    forward, back = both(lambda x, w: ((x @ w).sin().sigmoid() * 3).tanh(), X, W)
    result, *handed = forward.made
    assert len({*handed} - {result}) == 1  # x @ w, neither of the three between it and the result
    assert handed_over(back) == ["float32[6, 5]"] * 2
    assert {"sin", "cos", "sigmoid"} <= set(computed(back))
    assert "tanh" not in computed(back)  # that is the result


def test_arguments_are_not_handed_over():
    forward, back = both(lambda x, y: torch.sin(x.sum(1, keepdim=True)) * y, X, Y)
    assert "float32[6, 4]" not in handed_over(back)
    assert len(forward.made) == 1 + len(handed_over(back))


def test_a_mask_is_drawn_once():
    torch.manual_seed(0)
    f = lambda x: torch.nn.functional.dropout(x, 0.5) * x
    x = X.clone().requires_grad_()
    program, _, _ = compiled(f, x)
    forward, back = program.parts
    assert "dropout_mask" in computed(forward)
    assert "dropout_mask" not in computed(back)
    got = []
    for run in (lambda: program.run([x]), lambda: f(x)):
        torch.manual_seed(3)
        x.grad = None
        out = run()
        out.sum().backward()
        got.append([out.detach(), x.grad])
    agree(*got)


def test_without_a_gradient_to_ask_for_there_is_no_backward():
    program, _, _ = compiled(lambda x, w: x @ w, X, W)
    assert program.backward is None
    assert len(program.parts) == 1
