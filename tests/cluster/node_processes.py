"""Ray's provider of nodes that are processes of this machine, which gives them no memory to say."""

from typing import Any

from ray.autoscaler._private.fake_multi_node.node_provider import FakeMultiNodeProvider


class NodeProcesses(FakeMultiNodeProvider):  # type: ignore[misc]
    """Starts nodes that find out how much memory they have: it is refused as a custom resource."""

    def create_node_with_resources_and_labels(
        self, node_config: Any, tags: Any, count: int, resources: dict[str, Any], labels: Any
    ) -> None:
        """Start nodes with the other resources."""
        others = {name: value for name, value in resources.items() if name != "memory"}
        super().create_node_with_resources_and_labels(node_config, tags, count, others, labels)
