"""What other reports cite: the findings of the measurements that come with the repository."""

from pathlib import Path

from studies.lab import measurements
from studies.lab.jobs import Job
from studies.lab.measurements import Measurement
from studies.lab.statistics import Finding
from studies.population import design
from studies.population.analysis import Networks, comparisons, explained, relations
from studies.population.findings import findings

SHIPPED = Path(__file__).parent / "shipped"


def measured(wanted: list[Job], folders) -> list[Measurement]:
    """The measurements there are, in the order of the design."""
    return [one for job in wanted if (one := measurements.find(job, folders)) is not None]


def shipped_findings(folder: Path = SHIPPED) -> tuple[int, list[Finding]]:
    """(how many networks, what they say); (0, []) where no measurement is shipped."""
    networks = Networks.of(measured(design.queue(), (folder,)))
    if not len(networks):
        return 0, []
    explanations = {reading: explained(networks, reading) for reading in networks.tns}
    return len(networks), findings(relations(networks), comparisons(networks), explanations)
