import torch
from linear_operator.operators import DiagLinearOperator, ToeplitzLinearOperator

operator = ToeplitzLinearOperator(torch.tensor([4.0, 1.0, 0.5])) + DiagLinearOperator(torch.ones(3))
x = torch.tensor([[1.0], [2.0], [3.0]])
print((operator @ x).tolist(), operator.solve(x).tolist(), operator.logdet().item())
print(torch.matmul(operator, x).sum().item(), operator.to_dense().tolist())
