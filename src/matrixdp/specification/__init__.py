"""Specification files: a domain, a workload and a budget as YAML, and one clear error if any is wrong."""

from matrixdp.specification.advice import advice as advice
from matrixdp.specification.discovery import FoundDomain as FoundDomain
from matrixdp.specification.discovery import WrittenDiscovery as WrittenDiscovery
from matrixdp.specification.discovery import found_yaml as found_yaml
from matrixdp.specification.discovery import is_discovery as is_discovery
from matrixdp.specification.load import Specification as Specification
from matrixdp.specification.load import discovery_schema as discovery_schema
from matrixdp.specification.load import entry_from_spec as entry_from_spec
from matrixdp.specification.load import json_schema as json_schema
from matrixdp.specification.load import load_discovery as load_discovery
from matrixdp.specification.load import load_given as load_given
from matrixdp.specification.load import load_specification as load_specification
from matrixdp.specification.load import parse_yaml as parse_yaml
from matrixdp.specification.load import read_document as read_document
from matrixdp.specification.load import strategy_schema as strategy_schema
