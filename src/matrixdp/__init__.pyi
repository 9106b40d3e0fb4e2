"""The public names of matrixdp and the packages that they come from, which ``__init__.py`` reads."""

from matrixdp.answers.cross_table import CrossTable as CrossTable
from matrixdp.answers.result_table import ResultTable as ResultTable
from matrixdp.domain import Domain as Domain
from matrixdp.domain import OutOfDomain as OutOfDomain
from matrixdp.errors import DomainError as DomainError
from matrixdp.errors import MatrixDPError as MatrixDPError
from matrixdp.errors import NumericalError as NumericalError
from matrixdp.errors import PrivacyError as PrivacyError
from matrixdp.errors import SignatureError as SignatureError
from matrixdp.errors import SourceError as SourceError
from matrixdp.errors import SpecificationError as SpecificationError
from matrixdp.errors import StorageError as StorageError
from matrixdp.errors import TooLargeError as TooLargeError
from matrixdp.errors import UnsupportedQueryError as UnsupportedQueryError
from matrixdp.errors import WorkloadError as WorkloadError
from matrixdp.language import cells as cells
from matrixdp.language import dense as dense
from matrixdp.language import disjunction as disjunction
from matrixdp.language import kway as kway
from matrixdp.language import marginals as marginals
from matrixdp.language import pairwise as pairwise
from matrixdp.language import product as product
from matrixdp.ledger import Ledger as Ledger
from matrixdp.model import Model as Model
from matrixdp.privacy import Budget as Budget
from matrixdp.privacy import Unit as Unit
from matrixdp.queries import Workload as Workload
from matrixdp.releases import PublicKey as PublicKey
from matrixdp.releases import Release as Release
from matrixdp.releases import SigningKey as SigningKey
from matrixdp.releases import check_signature as check_signature
from matrixdp.releases import load_release as load_release
from matrixdp.releases import make_keys as make_keys
from matrixdp.releases import recover_ledger as recover_ledger
from matrixdp.releases import recover_release as recover_release
from matrixdp.releases import save_release as save_release
from matrixdp.releases import sign_release as sign_release
from matrixdp.report import report_release as report_release
from matrixdp.specification import Specification as Specification
from matrixdp.specification import load_specification as load_specification
from matrixdp.statements import sql as sql
from matrixdp.statistics import ask as ask
from matrixdp.strategy import MeasuredStrategy as MeasuredStrategy
from matrixdp.strategy import Strategy as Strategy
from matrixdp.strategy import explain_choice as explain_choice
from matrixdp.strategy import select as select
from matrixdp.strategy.pipeline import release as release
from matrixdp.texts import Publication as Publication
from matrixdp.texts import Text as Text
from matrixdp.verification import Verification as Verification
from matrixdp.verification import explain_release as explain_release
from matrixdp.verification import verify_model as verify_model
from matrixdp.verification import verify_release as verify_release

__all__: list[str]
__version__: str
