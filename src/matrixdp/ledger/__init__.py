"""The ledger: what was spent on one dataset, kept durably and added up exactly."""

from matrixdp.ledger.database import SQLITE as SQLITE
from matrixdp.ledger.database import Account as Account
from matrixdp.ledger.database import Connection as Connection
from matrixdp.ledger.database import Driver as Driver
from matrixdp.ledger.database import in_words as in_words
from matrixdp.ledger.ledger import STATES as STATES
from matrixdp.ledger.ledger import Entry as Entry
from matrixdp.ledger.ledger import Ledger as Ledger
from matrixdp.ledger.ledger import LedgerEntry as LedgerEntry
from matrixdp.ledger.ledger import Reservation as Reservation
from matrixdp.ledger.ledger import report as report
