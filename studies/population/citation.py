"""What other reports cite: the findings of the measurements that come with the repository."""

from pathlib import Path

from studies.lab import measurements
from studies.lab.stiffness import READINGS
from studies.lab.verdicts import Finding
from studies.population import design
from studies.population.analysis import Networks, comparisons, explain_accuracy, relations
from studies.population.findings import findings

SHIPPED = Path(__file__).parent / "shipped"


def shipped_findings(folder: Path = SHIPPED) -> tuple[int, list[Finding]]:
    """(how many networks, what they say); (0, []) where no measurement is shipped."""
    networks = Networks.of(measurements.find_all(design.queue(), (folder,)))
    if not len(networks):
        return 0, []
    explanations = {reading: explain_accuracy(networks, reading) for reading in READINGS}
    return len(networks), findings(relations(networks), comparisons(networks), explanations)
