"""Node classification with graph convolution and attention: messages gathered by index, summed by index_add and
scatter."""

import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(12345)
classes, per_class = 3, 20
N = classes * per_class
y = torch.arange(classes).repeat_interleave(per_class)
same = y[:, None] == y[None, :]
prob = torch.where(same, 0.25, 0.02)
adjacency = torch.triu(torch.rand(N, N) < prob, diagonal=1)
src, dst = adjacency.nonzero(as_tuple=True)
edge_index = torch.stack([torch.cat([src, dst]), torch.cat([dst, src])])
x = F.one_hot(y, classes).float() * 0.5 + torch.randn(N, classes)
x = torch.cat([x, torch.randn(N, 5)], dim=1)
train_mask = torch.zeros(N, dtype=torch.bool)
train_mask[torch.randperm(N)[:18]] = True
print(
    f"Graph(x={list(x.shape)}, edge_index={list(edge_index.shape)}, y={list(y.shape)}, train_mask={train_mask.sum()})"
)
print(edge_index[:, :8], torch.unique(edge_index).numel())


class GCNConv(nn.Module):
    def __init__(self, cin, cout):
        super().__init__()
        self.lin = nn.Linear(cin, cout, bias=False)
        self.bias = nn.Parameter(torch.zeros(cout))

    def forward(self, x, edge_index):
        loops = torch.arange(x.size(0))
        row, col = torch.cat([edge_index, loops.expand(2, -1)], dim=1)
        deg = torch.bincount(col, minlength=x.size(0)).to(x.dtype)
        norm = deg.pow(-0.5)[row] * deg.pow(-0.5)[col]
        h = self.lin(x)
        out = torch.zeros_like(h).index_add(0, col, h.index_select(0, row) * norm.unsqueeze(-1))
        return out + self.bias


class GATConv(nn.Module):
    def __init__(self, cin, cout, heads=2):
        super().__init__()
        self.heads, self.cout = heads, cout
        self.lin = nn.Linear(cin, heads * cout, bias=False)
        self.att = nn.Parameter(torch.empty(2, heads, cout))
        nn.init.xavier_uniform_(self.att)

    def forward(self, x, edge_index):
        row, col = edge_index
        h = self.lin(x).view(-1, self.heads, self.cout)
        score = F.leaky_relu((h * self.att[0]).sum(-1)[row] + (h * self.att[1]).sum(-1)[col], 0.2)
        index = col.unsqueeze(-1).expand_as(score)
        top = torch.full((x.size(0), self.heads), float("-inf")).scatter_reduce(0, index, score.detach(), "amax")
        e = (score - top[col]).exp()
        total = torch.zeros(x.size(0), self.heads).scatter_add(0, index, e)
        alpha = e / (total[col] + 1e-16)
        out = torch.zeros_like(h)
        out.index_add_(0, col, h[row] * alpha.unsqueeze(-1))
        return out.flatten(1)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = GCNConv(8, 16), GATConv(16, 8)
        self.out = nn.Linear(16, classes)

    def forward(self, x, edge_index):
        x = F.dropout(F.relu(self.conv1(x, edge_index)), p=0.2, training=self.training)
        return F.log_softmax(self.out(F.elu(self.conv2(x, edge_index))), dim=1)


model = Net()
print(model)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02, weight_decay=5e-4)
for epoch in range(1, 41):
    model.train()
    optimizer.zero_grad()
    out = model(x, edge_index)
    loss = F.nll_loss(out[train_mask], y[train_mask])
    loss.backward()
    optimizer.step()
    if epoch % 8 == 0:
        model.eval()
        pred = model(x, edge_index).argmax(dim=1)
        train, test = ((pred[m] == y[m]).float().mean() for m in (train_mask, ~train_mask))
        print(f"Epoch: {epoch:03d}, Loss: {loss:.5f}, Train: {train:.4f}, Test: {test:.4f}")
with torch.no_grad():
    out = model(x, edge_index).exp()
pooled = torch.zeros(classes, classes).index_add_(0, y, out) / torch.bincount(y).unsqueeze(1)
print(pooled)
A = torch.zeros(N, N).index_put_((edge_index[0], edge_index[1]), torch.ones(edge_index.size(1)))
print(torch.equal(A, A.T), A.sum(1)[:10], (A @ A).diagonal()[:10])
