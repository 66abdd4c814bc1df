"""Parameters of the user's own classes."""

from __future__ import annotations

from tests.support.programs import Programs, outcome

program = Programs()


@program.found_in("libraries")
def parameters_of_classes_whose_new_takes_more(torch):
    class Marked(torch.nn.Parameter):
        def __new__(cls, data, mark=None, requires_grad=True):
            made = super().__new__(cls, data, requires_grad)
            made.mark = mark
            return made

    class Same(torch.nn.Parameter):
        def __new__(cls, data, mark=None, requires_grad=True):
            made = torch.Tensor._make_subclass(cls, data, requires_grad)
            made.mark = mark
            return made

    made = [
        Marked(torch.ones(2), "a"),
        Marked(torch.ones(2), mark="b", requires_grad=False),
        Same(torch.ones(2), "c"),
        Same(torch.ones(2), mark="d"),
    ]
    return [[p.detach(), p.mark, p.requires_grad, type(p).__name__] for p in made] + [
        outcome(torch.nn.Parameter, torch.ones(2), True, 3),
        isinstance(made[0], torch.nn.Parameter),
    ]


test_program = program.test()
