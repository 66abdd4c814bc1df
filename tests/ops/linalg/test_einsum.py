"""einsum: what is refused."""

from __future__ import annotations

from tests.support.programs import Programs

program = Programs()


@program.found_in("torch tests")
def what_einsum_refuses(torch):
    a, v = torch.ones(3, 3), torch.ones(3)

    def said(*args):
        try:
            return torch.einsum(*args)
        except (RuntimeError, ValueError) as error:
            words = (
                "not match the number of dimensions",
                "operands were provided",
                "subscripts must be in [a-zA-Z]",
                "not part of any ellipsis",
                "more than once in the output",
                "any input operand",
                "does not broadcast",
                "valid range [0, 52)",
                "at least one operand",
            )
            return [type(error).__name__, *[w for w in words if w in str(error)]]

    return [
        said(*args)
        for args in (
            ("i1->i", a),
            ("i.j->ij", a),
            ("ij", v),
            ("i,j", v),
            ("i", v, v),
            ("i->ii", v),
            ("ij->k", a),
            ("i", a),
            ("",),
            ("i,i->", v, v[:2]),
            (a, [0, 60], v, [60]),
            ("...i,i...", v, v),
            (a, [0, 51], v, [51]),
        )
    ]


test_program = program.test()
