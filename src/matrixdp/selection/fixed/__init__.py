"""Strategies that are fixed by a rule, such as cells, trees and wavelets: what mechanisms are compared to."""
