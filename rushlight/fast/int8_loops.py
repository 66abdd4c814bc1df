"""stub"""


def linear_by_tensor(x, weight, most):
    return None


def linear_by_rows(x, weight, symmetric):
    return None


def linear_of_floats(x, weight):
    return None
