"""Recording a run: traces, syntax trees, graph breaks."""
