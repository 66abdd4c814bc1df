import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.metrics import Accuracy, Loss

model = torch.nn.Linear(4, 2)
data = [(torch.randn(8, 4), torch.randint(2, (8,))) for _ in range(3)]
loss = torch.nn.CrossEntropyLoss()
trainer = create_supervised_trainer(model, torch.optim.SGD(model.parameters(), 0.1), loss)
trainer.add_event_handler(Events.ITERATION_COMPLETED, lambda engine: print(engine.state.output))
trainer.run(data, max_epochs=2)
evaluator = create_supervised_evaluator(model, {"accuracy": Accuracy(), "loss": Loss(loss)})
print(evaluator.run(data).metrics)
