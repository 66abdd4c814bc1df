"""The step page and `explain` say what the program says: its functions, its variables, its modules."""

import json
import re
import sys

import pytest

import rushlight as torch
from rushlight import nn, viz

F = nn.functional
pytestmark = [
    pytest.mark.skipif(sys.version_info < (3, 11), reason="an instruction has no column"),
    pytest.mark.origin("newcomers"),
]


def data_of(page):
    return json.loads(page.split('id="data">')[1].split("</script>")[0])


def forward(page):
    """The sentences of the forward steps."""
    data = data_of(page)
    return [data["nodes"][i]["said"] for i in data["forward"]]


def backward(page):
    return [a["said"] for step in data_of(page)["steps"] for a in step["arrivals"]]


# -- explain


def test_the_rules_of_explain_are_in_the_names_of_the_graph():
    x, W = torch.ones(2, 3), torch.ones(3, 3, requires_grad=True)
    y = x @ W
    out = y @ W
    told = str(torch.explain(out.sum(), wrt=W))
    assert "∂out/∂y  sends g @ W.T" in told
    assert "∂out/∂W  sends y.T @ g" in told
    assert "dy/dW    sends x.T @ g" in told
    net = nn.Linear(3, 2)
    out = net(x)
    loss = F.cross_entropy(out, torch.tensor([0, 1]))
    told = str(torch.explain(loss, wrt=net.weight))
    assert re.search(r"da/dout +sends g - exp\(a\) \* sum\(g, 1, True\)", told)
    assert "sends g * exp(out - a)" in str(torch.explain(out.logsumexp(1).sum(), wrt=net.weight))


def test_explain_names_a_parameter_by_the_module_that_holds_it():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc1 = nn.Linear(2, 1)

        def forward(self, x):
            return self.fc1(x)

    model, x = Net(), torch.ones(3, 2)
    loss = model(x).sum()
    told = str(torch.explain(loss, wrt=model.fc1.weight))
    assert told.startswith("dloss/dmodel.fc1.weight by the chain rule")
    assert "linear(x, model.fc1.weight, model.fc1.bias)" in told
    chain = nn.Sequential(nn.Linear(2, 1))
    loss = chain(x).sum()
    assert "dloss/dchain[0].weight" in str(torch.explain(loss, wrt=chain[0].weight))


def test_a_leaf_that_nobody_holds_is_no_variable_of_the_user():
    x, leaves = "taken", [torch.ones(2, requires_grad=True)]
    loss = (leaves[0] * 2).sum()
    head = str(torch.explain(loss, wrt=leaves[0])).split(" ")[0]
    assert head not in ("dloss/dx", "dloss/dinput")
    assert x == "taken"


def test_the_letters_of_explain_are_defined():
    w = torch.ones(2, requires_grad=True)
    loss = (w * torch.ones(2)).exp().sum()
    told = torch.explain(loss, wrt=w)
    (sentence,) = told.constants
    assert re.fullmatch(r"(\w) is a constant of the program, shape \(2,\)\.", sentence)
    assert f"= w * {sentence[0]}" in str(told)
    assert sentence in str(told)


def test_errors_of_explain_say_what_to_give():
    w, v = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True)
    loss = (w * 2).sum()
    for wrong in ("w", [w]):
        with pytest.raises(TypeError, match=r"wrt must be a tensor(.|\n)*wrt=w"):
            torch.explain(loss, wrt=wrong)
    with pytest.raises(RuntimeError, match="not have been used") as info:
        torch.explain(loss, wrt=v)
    assert "allow_unused" not in str(info.value)
    with pytest.raises(RuntimeError, match=r"scalar outputs(.|\n)*output\.sum\(\)") as info:
        torch.explain(w * 2, wrt=w)
    assert "backward(viz.html(gradient))" not in str(info.value)


def test_html_takes_the_model_by_this_name():
    model = nn.Linear(2, 1)
    loss = model(torch.ones(1, 2)).sum()
    assert viz.html(loss, model=model) == viz.html(loss, params=model)
    with pytest.raises(TypeError, match="module"):
        viz.html(loss, module=model)


def test_cat_of_rows_and_a_vector_hints_at_unsqueeze():
    with pytest.raises(RuntimeError, match=r"number 1 a new dimension first: t\.unsqueeze"):
        torch.cat([torch.ones(2, 3), torch.ones(2)], dim=1)


# -- sentences


def test_a_masked_softmax_may_hold_zeros():
    scores, mask = torch.ones(3, requires_grad=True), torch.tensor([False, False, True])
    said = forward(viz.html(scores.masked_fill(mask, float("-inf")).softmax(0).max()))
    assert "Numbers from 0 to 1 that sum to 1." in " ".join(said)


def test_the_part_of_a_loss_is_not_the_loss():
    p, y = torch.tensor([0.2, 0.9], requires_grad=True), torch.tensor([0.0, 1.0])
    assert "= (p - y)². " in forward(viz.html(F.mse_loss(p, y)))[0]
    assert "(p, y, delta=0.5, reduction='none')" in forward(viz.html(F.huber_loss(p, y, delta=0.5)))[0]
    said = forward(viz.html(F.smooth_l1_loss(p, y)))
    said += forward(viz.html(F.binary_cross_entropy(p, y)))
    said += forward(viz.html(F.binary_cross_entropy_with_logits(p, y)))
    for loss in ("smooth_l1_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits"):
        assert f"a = {loss}(p, y, reduction='none'). Result: 2 numbers." in said
    labels = [n["label"] for n in data_of(viz.html(F.smooth_l1_loss(p, y)))["nodes"]]
    assert [label for label in labels if label.endswith("smooth_l1_loss (elements)")]


def test_a_function_has_the_name_by_which_it_was_called():
    x = torch.tensor([-1.0, 2.0], requires_grad=True)
    assert "= selu(x)" in forward(viz.html(F.selu(x).sum()))[0]
    assert "= relu6(x)" in forward(viz.html(F.relu6(x).sum()))[0]
    assert "= elu(x)" in forward(viz.html(F.elu(x).sum()))[0]
    module = nn.ReLU6()
    assert "= hardtanh(x, min_val=0, max_val=6)" in forward(viz.html(module(x).sum()))[0]
    assert "= norm(x)" in forward(viz.html(x.norm()))[0]
    square = torch.eye(2, requires_grad=True)
    assert "= inv(square)" in forward(viz.html(torch.linalg.inv(square).sum()))[0]
    assert "= cdist(square, square)" in forward(viz.html(torch.cdist(square, square).sum()))[0]
    weight = torch.tensor([0.1], requires_grad=True)
    assert "= prelu(x, " in " ".join(forward(viz.html(F.prelu(x, weight).sum())))


def test_a_bag_of_embeddings():
    bag = nn.EmbeddingBag(5, 2, mode="sum")
    said = " ".join(forward(viz.html(bag(torch.tensor([[0, 1], [2, 2]])).sum(), None, bag)))
    assert "embedding_bag(weight, …, mode='sum')" in said
    assert "rows_summed" not in said


def test_running_statistics_have_their_names():
    norm = nn.BatchNorm1d(2).eval()
    said = forward(viz.html(norm(torch.ones(3, 2)).sum(), None, norm))[0]
    assert "running_mean, running_var" in said


def test_the_median_is_one_element():
    m = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    said = " ".join(backward(viz.html(m.median())))
    assert "Only the chosen element of m" in said
    assert "largest" not in said


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 2, batch_first=True)

    def forward(self, e):
        out, (_h, _c) = self.lstm(e)
        return out[:, -1].sum()


def test_the_outputs_of_an_lstm_that_reads_batches_first():
    model = Reader()
    data = data_of(viz.html(model(torch.ones(4, 5, 3)), None, model))
    nodes = {node["name"]: node for node in data["nodes"]}
    assert nodes["out"]["shape"] == [4, 5, 2]
    assert "lstm" not in nodes  # neither the product inside nor another part is the module's result
    (layer,) = [node for node in data["nodes"] if "One step after the other" in node["said"]]
    values = dict(layer["inputs"])
    assert values["lstm.weight_hh_l0"] is not None  # a parameter's value is known


def test_a_product_inside_attention_is_not_the_module():
    layer = nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)
    nodes = data_of(viz.html(layer(torch.ones(1, 3, 4)).sum(), None, layer))["nodes"]
    names = {node["name"] for node in nodes}
    assert "self_attn" not in names
    assert {"linear1", "linear2", "norm1"} <= names


def test_a_regularizer_is_in_no_module():
    model = nn.Sequential(nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 1))
    x = torch.ones(4, 2)
    out = model(x).mean()
    l2 = sum(p.pow(2).sum() for p in model.parameters())
    loss = out + 0.01 * l2 + model[0].weight.norm()
    nodes = data_of(viz.html(loss, None, model))["nodes"]
    inside = {node["name"] for node in nodes if node["home"] and node["kind"] == "op"}
    assert inside == {"linear0", "linear2"}
    assert [n["name"] for n in nodes if n["name"].startswith("l2")] == ["l2"]  # no partial sum
    with viz.module_calls(model):
        loss = model(x).mean() + (model[0].weight * model[0].weight).sum()
    nodes = data_of(viz.html(loss, None, model))["nodes"]
    homes = {n["home"] for n in nodes if "weight * " in (n["forward"] or "")}
    assert homes == {""}


def test_constants_that_get_new_values_have_subscripts():
    w, x = torch.ones(2, requires_grad=True), torch.ones(2)
    first = (w + x).sum()
    x = torch.zeros(2)
    said = " ".join(forward(viz.html(first + (w + x).sum())))
    assert "w + x₁." in said
    assert "w + x₂." in said
    h = w
    for xt in [torch.ones(2), torch.zeros(2)]:
        h = torch.tanh(h + xt)
    said = " ".join(forward(viz.html(h.sum())))
    assert "w + xt₁." in said
    assert "h₁ + xt₂." in said
    shift, kept = torch.ones(2), w
    for _ in range(3):
        kept = (kept + shift).tanh()
    assert "shift₁" not in " ".join(forward(viz.html(kept.sum())))  # one value in all passes


def test_the_start_of_a_recurrence_is_its_first_value():
    Wh, h = torch.ones(2, 2, requires_grad=True), torch.zeros(2)
    for xt in [torch.ones(2), torch.zeros(2)]:
        h = torch.tanh(Wh @ h + xt)
    page = viz.html(h.sum())
    assert "mv(Wh, h₀)" in " ".join(forward(viz.html(h.sum())))
    (start,) = [n for n in data_of(page)["nodes"] if n["name"] == "h₀"]
    assert "the first value of h" in start["title"]


def test_the_mask_of_dropout_is_named():
    model = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5))
    torch.manual_seed(0)
    data = data_of(viz.html(model(torch.ones(4, 2)).sum(), None, model))
    (mask,) = [n for n in data["nodes"] if n["name"] == "dropout_mask"]
    assert "the mask of dropout" in mask["title"]


def test_letters_of_constants_are_defined():
    w = torch.ones(2, requires_grad=True)
    said = forward(viz.html((w * torch.ones(2)).sum()))[0]
    letter = said.split("w * ")[1][0]
    assert f"{letter} is a constant of the program, shape (2,)." in said


def test_writes_into_parts_read_as_assignments():
    w = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    h = w * 2
    h += 1
    h[0] = 10.0
    h[1:] *= 3
    h[h > 20] = 0.0
    said, gets = forward(viz.html(h.sum())), " ".join(backward(viz.html(h.sum())))
    assert "h₂ = h₁ + 1. Result: 3 numbers." in said
    assert "= h₂ after h[0] = 10.0. " in " ".join(said)
    assert "after h[h > 20] = 0.0. " in " ".join(said)
    assert "the overwritten places get 0" in gets
    for word in ("CopySlices", "write_at", "overwrite("):
        assert word not in " ".join([*said, gets])
