"""The ledger: what was spent on one dataset, kept durably and added up exactly."""

from matrixdp.ledger.database import SQLITE, Account, Connection, Driver, in_words
from matrixdp.ledger.ledger import STATES, Entry, Ledger, LedgerEntry, Reservation, parameters, report

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
