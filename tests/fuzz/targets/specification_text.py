"""Files of specifications: any bytes, read as ``validate`` reads them."""

from pathlib import Path

from matrixdp.cli.forecast import forecast
from matrixdp.noise import GAUSSIAN, LAPLACE
from matrixdp.specification import load_specification
from tests.fuzz.documents import SPECIFICATIONS, write_arrays
from tests.fuzz.oracle import Case


def seeds() -> list[bytes]:
    """Return specifications with every form of entry."""
    return [text.encode() for text in SPECIFICATIONS]


def opened(folder: Path) -> Case:
    """Return what reads one."""
    write_arrays(folder)
    path = folder / "specification.yaml"

    def case(data: bytes) -> None:
        path.write_bytes(data)
        written = load_specification(path)
        forecast(written.workload, 10**6, (GAUSSIAN, LAPLACE))

    return case
