import torch
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GCNConv, SAGEConv, global_mean_pool

edges = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 1, 0]])
graph = Data(x=torch.randn(4, 3), edge_index=edges)
batch = Batch.from_data_list([graph, graph])
for layer in (GCNConv(3, 2), GATConv(3, 2), SAGEConv(3, 2)):
    y = layer(batch.x, batch.edge_index)
    y.sum().backward()
    print(global_mean_pool(y, batch.batch).tolist(), [p.grad.sum().item() for p in layer.parameters()])
