"""The ledger: what was spent on one dataset, kept durably and added up exactly."""

from matrixdp.ledger.accounting import Account, in_words
from matrixdp.ledger.database import SQLITE, Connection, Driver
from matrixdp.ledger.entries import STATES, Entry, LedgerEntry
from matrixdp.ledger.ledger import Ledger, Reservation
from matrixdp.ledger.report import parameters, report

__all__ = [
    "SQLITE",
    "STATES",
    "Account",
    "Connection",
    "Driver",
    "Entry",
    "Ledger",
    "LedgerEntry",
    "Reservation",
    "in_words",
    "parameters",
    "report",
]
