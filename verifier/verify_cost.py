#!/usr/bin/env python3
"""Check what a release of matrixdp says that it cost, with nothing but Python's standard library.

    python verify_cost.py RELEASE_FOLDER

The folder holds release.json and measurement.mdp. Exit status: 0 when nothing is false, else 1.

THE MATHEMATICS. The table is a vector x of counts, one for each combination of attribute values; one record
more or less changes one entry by 1. Part k of the release is B_k x + noise: B_k is a matrix of integers, the
noise of every row is independent and has the scale b_k (Gaussian: the standard deviation; Laplace: the
parameter b). One record moves the answers of part k by one column of B_k. With p = 2 for Gaussian noise and
p = 1 for Laplace noise, let

    s_k  = the largest, over the columns of B_k, of the sum of |entry|^p         an integer
    cost = sum over k of s_k / b_k^p                                             a rational number.

Gaussian: a record moves the mean by at most sqrt(cost) standard deviations, which is sqrt(cost)-GDP and
(cost / 2)-zCDP. Laplace: it moves the log-likelihood by at most cost, which is epsilon-DP, epsilon = cost.
Laplace noise may also lie on the multiples of an integer g alone, k g with a probability in proportion to
exp(-|k| g / b_k). It costs as much if every answer is a multiple of g, which is checked: so is every entry of
B_k, and no record is divided among cells, as it is for amounts.
A block may be a *walk*: the prefix sums P_k of n values in their order, whose noise is not independent. Row
k is P_k + u_(k-1) + p_k, u_k = u_(k-1) + soft(p_k, w_k), where p_k is an integer, in lattice steps, with a
probability in proportion to exp(-max(0, |p_k| - w_k) / s), s = b_k in steps. Then u_k is the point within w_k
of the noise of row k that is nearest to u_(k-1), and no path from 0 within w_1, w_2, .. of the noise has less
total variation than u. A record moves the noise by 1 from its value on; the path that moves with it varies by
at most 1 more. So the log-likelihood moves by at most 1 / b_k, whatever the widths: s_k counts such a block
as 1, and a replacement as 2, a record that comes and another that goes. That holds for a part with one such
block, Laplace noise and answers on the lattice: without row factors, amounts, a lattice step above 1, or a
series. All else is refused. The noise of other parts is independent of it. A block may also be a walk inside
each block of values, times a weight, and another over the totals of these blocks, times a second. A record is
in one block of values, so that it moves one walk of the first and that of the second, each by the weight: it
counts as the sum of both weights.
Rows may also be nodes of trees. Row k is then the sum, over node k and all below it, of the rows of a matrix
of integers, and u_(k-1) is the sum of u over the nodes right below k. Then no v within w_k of the noise of
each row k has a smaller sum over k of |v_k - sum of v right below k| than u. A record moves the noise by its
own column, summed likewise; v moves with it, and the sum by at most the L1 norm of the column in the matrix:
it counts as that.
Parts may share *one radius*: part k then has a width w_k and measures centred tables (blocks n I - 11'), at
most one of more than two cells, so that its answers are signs times the centred cells of n counts, or, for no
attribute, one count (n = 2). Their noise is that of integers z_k up to a common summand, drawn together, with
a probability in proportion to exp(-max(0, max over k of |z_k| - w_k) / b), |z| = min over t of sum |z_i - t|.
A record moves one cell of each z_k by 1, hence every |z_k| and the maximum by at most 1, and the
log-likelihood by at most 1 / b: all of them together count as one part with s = 1, and a replacement as 2.
A table may also be n - 1 values beside one that nothing is in (`range`: the columns of n I - 11' without the
first), with |z| = max z - min z: a record moves it by 1, too. And all parts may have one and the same
identity over some attributes: each of its cells has noise of its own, and a record lies in one of them.
That holds in a plan of one part for each marginal, for Laplace noise of one scale b on one lattice that the
answers are on, for whole records, without row factors or a series. All else is refused.
A block may be a *tree*: for each level, coarse to fine, the node that each value lies in and an integer
weight of each node; a row is the sum over the values of a node, times its weight. Families of areas that cut
across these levels are more of such rows: what follows needs no nesting, only that a value lies in one node
of each level and in one area of each family. Rows over further attributes may be summed over nodes with
weights of their own, each over a tree (`row-trees`): the values are then cells of all these attributes, and a
row of the matrix is such a row at the values of a node, times its weight there. How much a record costs
there depends on its value l. So where parts measure trees over one and the same attributes, each in one block
and without row factors, they count together: with s_k(l) the sum of the p-th powers of the entries of
column l, such as the weights of the nodes that l lies in, times the largest sums of the other blocks,

    cost = largest over l of the sum over k of s_k(l) / b_k^p,

s_k(l) = s_k for the parts without trees. A record has one value l, so it costs at most that, for Gaussian and
for Laplace noise; where trees are over different attributes the cost is as above. In a series records could
change their values from row to row, so that such parts are refused there, unless it is charged by periods.
If m records of a person can be added or removed, the answers move at most m times as far, which costs m^p
times as much. Rounding noisy answers, and all that is computed from them, reveals nothing more.
docs/privacy.md of matrixdp has the proofs.

Where neighbours replace a record by another, the answers of part k move by the difference of two columns, or
by one column if one of the two records is out of domain. So one replacement costs the largest, over all pairs
of records, of the sum over k of |difference|^p / b_k^p. It is at most 2^p times the above, and "the cost" of
a release is a 2^p-th of it: the two records that are exchanged count as two that move. For columns u, v let

    overlap = (|u|^p + |v|^p - |u - v|^p) / 2, summed over the rows;  |u - v|^p = |u|^p + |v|^p - 2 overlap.

With p = 2 it is the inner product, and that of two columns of a Kronecker product is the product of those of
its blocks; with p = 1 it is not less than that. Pairs that are alike in all these numbers are counted once.
Where too many are left, every part is bounded by itself: its largest column, a lower bound of its overlaps.

B_k is a Kronecker product of blocks, with an optional positive integer factor on each row. A column of it is
a product of columns of the blocks; so without row factors s_k is the product of the blocks' largest sums.

Counts of records out of domain are rows of their own. A record in the domain moves the parts and no such
count; one out of it moves at most all n such counts by 1 each, and no part. So the cost is the larger of the
above and n / b^p, b being their scale.

A release in two rounds plans the second, which measures some of the same marginals again, from noisy answers
to the first; its cost is bounded before. The costs of such rounds, each as above, add up.

A series measures its rows one period after another. Its cost is the above, however a record comes, changes or
vanishes meanwhile, if its period stays, neighbours add or remove records, and four conditions hold, which are
checked: every part has one block over the periods alone; that block is lower triangular; the row factors do
not change along it; and the rows of periods that are not measured yet are 0. docs/privacy.md has the proof.

A unit may say more of the k records of a person than their number: they lie in at most K values t of one
attribute, or of the combinations of several, "per", with at most m in each; and the attributes "constant" are
the same in all of them. With Gaussian noise two records u, v cost 2 <B e_u, B e_v> / b^2 together beside what
each costs alone, summed over the parts, so that a person with z_t records in value t costs at most z'hz,

    h_ts = the largest sum over k of the overlap of two records in values t and s in part k, over b_k^2,

where t is not s, whatever attributes they may differ in, the same in all parts; h_tt sums the largest of
each part. z'hz is convex where z can move, so that it is largest at a vertex: floor(k / m) values with m
records, at most K, and one more with the rest if there is one; or fewer. Where these are too many a bound is
taken: the least of those from the largest entries, from the largest sums of entries in rows, and from a proof
in the file, by multipliers.
The cost is that over k^2, so that k records cost the charge. For a block over "per" and other attributes, and
where more is not known, the largest overlap is taken; if it is negative, 1 / b^2 is rounded down.
With Laplace noise k records cost k times one, but for one radius whose tables are all ranges over "per",
beside signs and cells of constant attributes: her records are then in one cell, with one sign, between 0 and
m in each value, and move max z - min z by m at most, that of the first value being 0. So they cost m / b
there: it counts as m / k over b.
Under `replace` a person who goes and another who comes cost at most four times as much, with Laplace noise
twice as much. Rounds and counts of records out of domain have no such unit. In a series "per" is the
attribute of the periods, and the cost is a sum over periods: of the most that the rows which end there cost,
whichever records of a person count then. So records may come late, change, also their period, or vanish.

All arithmetic is on integers and fractions. No number is rounded, unless it is said to which side.
"""

import ast
import hashlib
import json
import math
import re
import struct
import sys
import zipfile
from collections import Counter
from fractions import Fraction
from itertools import accumulate, combinations, product
from operator import lt, mul
from pathlib import Path

MOST_WORK = 10**9  # multiplications that a part with row factors may take: about ten minutes
MOST_OVERLAPS = 2**30  # the same of all overlaps of the columns of a block
MOST_PAIRS = 2**22  # numbers that tell pairs of records apart: more are not listed
MOST_VALUES = 512  # values that a person's records may have and that are told apart
MOST_SETS = 2**20  # sets of such values, each of which is looked at
MOST_PROVED, PROOF_BITS = 512, 26  # values that a proof is for, and binary places of its multipliers
PLACES, SLACK = 40, 24  # binary places of a factor, and of what is left on the diagonal for its rounding
MOST_PATTERNS = 2**18  # sets of attributes that records may differ in, times parts
BITS = 1500  # binary places of what is enclosed between bounds
DISORDER = (
    KeyError,
    IndexError,
    TypeError,
    ValueError,
    AttributeError,
    ArithmeticError,
    OSError,
    SyntaxError,
)
DISORDER += (RecursionError, RuntimeError, EOFError, struct.error, zipfile.BadZipFile)

# ---- reading the files


def unique(pairs):
    """Refuse a JSON object that gives a key twice: two readers could read two different things."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is given twice")
    return dict(pairs)


def figure(text):
    """Read a figure: its shortest decimal text or the float64 that it stands for, whichever claims less."""
    value = float(text)
    return max(Fraction(value), Fraction(repr(value)))  # neither takes infinity


def read_json(text):
    """Read JSON with exact numbers."""
    return json.loads(text, parse_float=figure, parse_constant=Fraction, object_pairs_hook=unique)


def exact(text):
    """Read an exact number: "3" or "1/3"."""
    numerator, _, denominator = text.partition("/")
    return Fraction(int(numerator), int(denominator or 1))


def read_archive(path):
    """Return the header of a measurement and its arrays, {name: (shape, type, bytes)}; compare checksums."""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        stored = all(member.compress_type == zipfile.ZIP_STORED for member in archive.infolist())
        text = archive.read("header.json")
        header = read_json(text)
        sums = header["checksums"]
        if not stored or sorted(names) != sorted(["header.json", "header.sha256", *sums]):
            raise ValueError("its members are not those that its header lists, or compressed")
        if archive.read("header.sha256").decode() != hashlib.sha256(text).hexdigest():
            raise ValueError("the checksum of its header is wrong")
        arrays = {}
        for name, digest in sums.items():
            with archive.open(name) as member:
                whole = name != header.get("values") or checks_answers(header)
                found, data, size = read(member, whole)
            if found != digest:
                raise ValueError("the checksum of an array is wrong")
            shape, kind, data = read_npy(data, size)
            arrays[name] = shape, kind, data if whole else None
    if header["format"] != "matrixdp measurement" or header["format_version"] != 3:
        raise ValueError("it is not a measurement of format version 3")
    return header, arrays


def read(stream, whole=False):
    """Return the SHA-256 of a file, its bytes, or the first of them, and how many there are."""
    digest, data, size = hashlib.sha256(), bytearray(), 0
    while piece := stream.read(2**20):
        digest.update(piece)
        if whole or not size:
            data += piece
        size += len(piece)
    return digest.hexdigest(), data, size


def checks_answers(header):
    """Whether the noisy answers themselves are checked; else they need not be held."""
    odd = any("width" in part for part in header["plan"]["parts"]) or header.get("series") is not None
    return odd or any(form[2:] not in ([], [1]) for form in header["noise"])


def read_npy(data, stored):
    """Return shape, type and bytes of an array in NumPy's format 1.0: a Python literal, then the numbers."""
    if data[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError("an array is not in the format 1.0 of NumPy")
    start = 10 + struct.unpack("<H", data[8:10])[0]
    form = ast.literal_eval(data[10:start].decode("latin-1"))
    kind, shape = form["descr"], form["shape"]
    size = math.prod(shape) * {"<f8": 8, "<i8": 8, "<i4": 4}[kind]
    if form["fortran_order"] or stored - start != size:
        raise ValueError("an array does not have the size that it says")
    return shape, kind, data[start:]


def integers(array):
    """Return the entries of an array of integers, row by row."""
    _, kind, data = array
    return [value for (value,) in struct.iter_unpack({"<i8": "<q", "<i4": "<i"}[kind], data)]


def apart(header, arrays):
    """Return the places of noisy answers that are apart, and these."""
    return [integers(arrays[name]) for name in header.get("beyond", [])] or ([], [])


def answers(header, arrays):
    """Return the noisy answers; those that 32 bits do not hold may be apart, and 0 in their places."""
    values = integers(arrays[header["values"]])
    for place, value in zip(*apart(header, arrays)):
        values[place] = value
    return values


# ---- sensitivities


#: Kinds of matrices that sum over the nodes of trees of values.
TREES = ("tree", "row-trees")


class Block:
    """A matrix of integers.

    It is identity, `centered` (n - 1 on the diagonal, -1 elsewhere), `range`: the same without its
    first column, its entries, `merged`: one of these over the products of groups of values of some
    attributes (below them, where groups of one attribute have weights, the rows of k times such a
    centered matrix for the values of each group with a weight k), `walk`: the prefix sums of values in
    their order, with the noise of a walk; `block-walk`: those inside blocks of values and those of the
    blocks, each times a weight; `tree-walk`: the sums of a matrix over the nodes of trees and those
    below them, with walks up to the roots; `grid-tree`: the sums over the rectangles of each level
    of a tree over a grid of two attributes, times its weight; `tree`: the sums over the nodes of
    each level of a tree of values, and over areas beside it, each times its weight; or `row-trees`: rows
    of integers over other attributes, each times the sums over the nodes of a tree with weights of its own.
    """

    def __init__(self, form, arrays):
        self.kind, self.within, self.walk, self.cost = form["kind"], [], False, 1
        self.inner = self.kind  # the kind of what is measured of groups
        if self.kind in ("identity", "centered"):
            self.rows = self.columns = form["size"]
        elif self.kind == "range":
            self.rows, self.columns = form["size"] + 1, form["size"]
        elif self.kind in ("walk", "block-walk"):
            self.read_walk(form)
        elif self.kind == "tree-walk":
            self.read_trees(form, arrays)
        elif self.kind == "tree":
            self.read_levels(form, arrays)
        elif self.kind == "row-trees":
            self.read_row_trees(form, arrays)
        elif self.kind in ("integer", "deficient"):  # the columns of the second are linearly dependent
            self.read_entries(form, arrays)
        elif self.kind == "merged":  # every cell has the column of the product of groups that it lies in
            inner = Block(form["matrix"], arrays)
            if inner.kind in ("merged", "grid-tree"):
                raise ValueError("a matrix over groups of values is over groups of groups")
            self.rows, self.columns, self.walk, self.cost = inner.rows, inner.columns, inner.walk, inner.cost
            self.entries = [] if self.walk else inner.written()
            self.inner = "" if "within" in form else inner.kind
            self.groups = groups = [integers(arrays.pop(name)) for name in form["groups"]]
            if any(max(group) >= len(group) or set(group) != set(range(max(group) + 1)) for group in groups):
                raise ValueError("groups of values of which one is empty")
            if math.prod(max(group) + 1 for group in groups) != self.columns:
                raise ValueError("groups of values that are not those of their matrix")
            self.columns = math.prod(len(group) for group in groups)
            self.sizes = [groups[0].count(group) for group in range(max(groups[0]) + 1)]
            if "within" in form:
                self.within = integers(arrays.pop(form["within"]))
                if (
                    self.walk
                    or len(groups) > 1
                    or len(self.within) != len(self.sizes)
                    or min(self.within) < 0
                ):
                    raise ValueError("weights within groups that are not those of one attribute")
                self.rows += sum(self.within[group] > 0 for group in groups[0])
        elif self.kind == "grid-tree":
            self.sizes, self.weights = form["sizes"], form["weights"]
            numbers = (*self.sizes, form["branching"], *self.weights)
            if len(self.sizes) != 2 or any(type(n) is not int or n < 0 for n in numbers):
                raise ValueError("a tree over a grid does not consist of integers")
            if not 0 < len(self.weights) <= 64 or self.weights[-1] < 1 or not 2 <= form["branching"] <= 2**62:
                raise ValueError("a tree over a grid does not measure its cells")
            # from the whole grid to its cells; every cell lies in one rectangle of each level
            self.widths = [form["branching"] ** (len(self.weights) - 1 - k) for k in range(len(self.weights))]
            if self.widths[0] < max(self.sizes):
                raise ValueError("a tree over a grid does not reach its ends")
            levels = [width for width, weight in zip(self.widths, self.weights) if weight]
            self.rows = sum(math.prod(-(-size // width) for size in self.sizes) for width in levels)
            self.columns = math.prod(self.sizes)
        else:
            raise ValueError("a matrix is of an unknown kind")
        if {type(self.rows), type(self.columns)} != {int} or min(self.rows, self.columns) < 1:
            raise ValueError("a matrix has no proper size")

    def read_walk(self, form):
        """Read a walk along all values, or walks inside blocks of them and one over the blocks."""
        self.walk, several = True, self.kind == "block-walk"
        levels = [form["within"], form["between"]] if several else [form["widths"]]
        if any(type(width) is not int or width < 0 for widths in levels for width in widths):
            raise ValueError("a walk has a width that is none")
        self.rows = self.columns = len(levels[0])
        if several:
            length, self.columns, weights = len(levels[0]), form["size"], form["weights"]
            if any(type(n) is not int or n < 1 for n in (self.columns, *weights)) or len(weights) != 2:
                raise ValueError("walks on two levels without proper weights")
            if length < 1 or -(-self.columns // length) != len(levels[1]):
                raise ValueError("walks in blocks that are not those of the values")
            self.rows, self.cost = self.columns + len(levels[1]), sum(weights)

    def read_trees(self, form, arrays):
        """Read walks from nodes of trees up to their roots: a record costs that of the nodes' own parts."""
        inner = Block(form["matrix"], arrays)
        if inner.kind not in ("identity", "integer"):
            raise ValueError("trees count what is no matrix of integers")
        self.walk, self.rows, self.columns, self.cost = True, inner.rows, inner.columns, inner.largest_sum(1)
        parents, widths = form["above"], form["widths"]
        if not self.rows == len(parents) == len(widths):
            raise ValueError("trees without a parent and a width for each node")
        if any(type(width) is not int or width < 0 for width in widths):
            raise ValueError("a walk has a width that is none")
        if any(type(own) is not int or not row < own <= self.rows for row, own in enumerate(parents)):
            raise ValueError("the parent of a node does not come after it")

    def read_levels(self, form, arrays):
        """Read for each level of a tree of values the node of each value and the weight of each node.

        After them come families of areas beside the tree: their areas and weights.
        """
        groups, weights = (
            [integers(arrays.pop(name)) for own in (key, beside) for name in form.get(own, [])]
            for key, beside in (("groups", "beside"), ("weights", "beside_weights"))
        )
        self.levels, self.columns = [*zip(groups, weights)], len(groups[0])
        if len(groups) != len(weights) or any(
            len(group) != self.columns or set(group) != set(range(len(own))) or min(own) < 0
            for group, own in self.levels
        ):
            raise ValueError("a tree of values without a node for each value and a weight for each node")
        self.rows = sum(weight > 0 for own in weights for weight in own)

    def read_row_trees(self, form, arrays):
        """Read rows of integers over other attributes, and for each the weights of the nodes of a tree."""
        (count, self.cells), _, _ = array = arrays.pop(form["entries"])
        flat = integers(array)
        self.entries = [flat[place : place + self.cells] for place in range(0, len(flat), self.cells)]
        groups, weights = ([arrays.pop(name) for name in form[key]] for key in ("groups", "weights"))
        if len(groups) != len(weights) or not groups or any(own[0][1:] != (count,) for own in weights):
            raise ValueError("trees of rows without a weight of each row for each node")
        self.groups, self.weights = [*map(integers, groups)], []
        for group, flat in zip(self.groups, map(integers, weights)):
            nodes = [flat[place : place + count] for place in range(0, len(flat), count)]
            if len(group) != len(self.groups[0]) or set(group) != set(range(len(nodes))) or min(flat) < 0:
                raise ValueError("trees of rows without a node for each value")
            self.weights.append(nodes)
        self.columns = len(self.groups[0]) * self.cells
        self.rows = sum(weight > 0 for nodes in self.weights for node in nodes for weight in node)

    def column_sums(self, p):
        """Return for each cell the sum of |entry|^p over the nodes of trees that it lies in."""
        if self.kind == "tree":
            return [sum(own[group[cell]] ** p for group, own in self.levels) for cell in range(self.columns)]
        known, found = {}, []
        for value in zip(*self.groups):
            path = [nodes[node] for nodes, node in zip(self.weights, value)]
            sums = tuple(sum(weight**p for weight in own) for own in zip(*path))
            if sums not in known:
                pairs = [*zip(sums, self.entries)]
                known[sums] = [sum(own * abs(row[j]) ** p for own, row in pairs) for j in range(self.cells)]
            found += known[sums]
        return found

    def read_entries(self, form, arrays):
        """Read a matrix that is written out; each has arrays of its own, so that none is read twice."""
        array = (self.rows, self.columns), _, _ = arrays.pop(form["entries"])
        if "unsupported" in form:
            del arrays[form["unsupported"]]
        flat = iter(integers(array))
        self.entries = [[next(flat) for _ in range(self.columns)] for _ in range(self.rows)]

    def largest_sum(self, p):
        """Return the largest over the columns of the sum of |entry|^p; of a walk what a record costs."""
        if self.walk and p != 1:
            raise ValueError("a walk under noise that is not Laplace noise")
        if self.kind == "identity" or self.walk:
            return self.cost
        if self.kind in ("centered", "range"):  # each column holds n - 1 once, and -1 the other n - 1 times
            return (self.rows - 1) ** p + self.rows - 1
        if self.kind == "grid-tree":
            return sum(weight**p for weight in self.weights)
        if self.kind in TREES:
            return max(self.column_sums(p))
        sums = [0] * len(self.entries[0])
        for row in self.entries:
            sums = [total + abs(entry) ** p for total, entry in zip(sums, row)]
        if self.within:
            sums = [s + k**p * ((n - 1) ** p + n - 1) for s, k, n in zip(sums, self.within, self.sizes)]
        return max(sums)

    def written(self):
        """Return the rows of the matrix over all of its cells."""
        if self.walk:
            raise ValueError("a walk costs no sum over its rows")
        if self.kind in ("identity", "centered", "range"):
            n, own, other = self.rows, *((1, 0) if self.kind == "identity" else (self.rows - 1, -1))
            return [[own if i == j else other for j in range(n - self.columns, n)] for i in range(n)]
        if self.kind == "merged":
            places = [0]  # of each cell, the column that it has
            for group in self.groups:
                places = [place * (max(group) + 1) + value for place in places for value in group]
            rows, values = [[row[place] for place in places] for row in self.entries], self.groups[0]
            for value, group in enumerate(values if self.within else []):
                k, n = self.within[group], self.sizes[group]
                own = [
                    k * ((n if i == value else 0) - 1) if other == group else 0
                    for i, other in enumerate(values)
                ]
                rows += [own] if k else []
            return rows
        if self.kind == "tree":
            return [
                [weight * (node == own) for own in group]
                for group, weights in self.levels
                for node, weight in enumerate(weights)
                if weight
            ]
        if self.kind == "row-trees":
            return [
                [own[node][place] * (node == other) * entry for other in group for entry in row]
                for place, row in enumerate(self.entries)
                for group, own in zip(self.groups, self.weights)
                for node in range(len(own))
                if own[node][place]
            ]
        if self.kind != "grid-tree":
            return self.entries
        cells, rows = list(product(range(self.sizes[0]), range(self.sizes[1]))), []
        for width, weight in zip(self.widths, self.weights):
            inside = [(i // width, j // width) for i, j in cells]
            rows += [[weight * (one == box) for one in inside] for box in sorted(set(inside)) if weight]
        return rows

    def overlaps(self, p):
        """Return the number of each column, equal ones alike, and the overlaps by number; None if too long.

        Where all columns overlap alike there are no numbers, and the overlaps are those of two columns.
        """
        if self.kind in ("identity", "centered", "range"):
            own, n = self.largest_sum(p), self.rows
            other = 0 if self.kind == "identity" else {2: -n, 1: n - 2}[p]
            return None, [[own, other], [other, own]]
        if self.kind in ("walk", "block-walk", "tree-walk"):
            return None, [[self.largest_sum(p), 0], [0, self.largest_sum(p)]]
        if self.rows * self.columns**2 > MOST_OVERLAPS:
            return None
        if self.walk:  # two records of one group move it alike, others apart
            places = [0]
            for group in self.groups:
                places = [place * (max(group) + 1) + value for place in places for value in group]
            count = max(places) + 1
            return places, [[self.largest_sum(p) * (a == b) for b in range(count)] for a in range(count)]
        return overlaps_of(self.written(), p)

    def contract(self, vectors, p):
        """Return for each column the sum over the rows i of |entry_i|^p vector_i; equal columns once."""
        if self.walk:
            raise ValueError("a walk with row factors")
        if self.kind == "identity":
            return vectors
        if self.kind in ("centered", "range"):  # the sum of all, but (n - 1)^p in place of 1 at one of them
            total, more = [sum(values) for values in zip(*vectors)], (self.rows - 1) ** p - 1
            own = vectors[self.rows - self.columns :]
            return [[t + more * v for t, v in zip(total, vector)] for vector in own]
        if self.kind == "grid-tree":
            return self.contract_tree(vectors, p)
        if self.kind == "tree":
            return self.contract_levels(vectors, p)
        if self.kind == "row-trees" and self.rows * self.columns > MOST_WORK:
            raise MemoryError
        entries = self.written() if self.kind == "row-trees" else self.entries
        columns, found = [*zip(*entries)] if self.within else sorted(set(zip(*entries))), []
        if len(columns) * self.rows * len(vectors[0]) > MOST_WORK:
            raise MemoryError
        for column in columns:
            total = [0] * len(vectors[0])
            for entry, vector in zip(column, vectors):
                if entry:
                    total = [t + abs(entry) ** p * v for t, v in zip(total, vector)]
            found.append(total)
        return self.contract_within(found, vectors, p) if self.within else found

    def contract_within(self, found, vectors, p):
        """Return the same of all rows, given that of the entries of each group."""
        own = [group for group in self.groups[0] if self.within[group]]
        told = [*zip(own, vectors[len(self.entries) :])]
        for group, vector in told:
            found[group] = [t + self.within[group] ** p * v for t, v in zip(found[group], vector)]
        cells = [total for total, k in zip(found, self.within) if not k]
        for group, vector in told:
            more = self.within[group] ** p * ((self.sizes[group] - 1) ** p - 1)
            cells.append([t + more * v for t, v in zip(found[group], vector)])
        return cells

    def contract_tree(self, vectors, p):
        """Return the same for a tree: of every cell, the rows of the rectangles that it lies in."""
        if self.columns * len(self.weights) * len(vectors[0]) > MOST_WORK:
            raise MemoryError
        found = []
        for cell in product(range(self.sizes[0]), range(self.sizes[1])):
            total, first = [0] * len(vectors[0]), 0
            for width, weight in zip(self.widths, self.weights):
                if weight:
                    high, wide = (-(-size // width) for size in self.sizes)
                    vector = vectors[first + cell[0] // width * wide + cell[1] // width]
                    total = [t + weight**p * v for t, v in zip(total, vector)]
                    first += high * wide
            found.append(total)
        return found

    def contract_levels(self, vectors, p):
        """Return the same for a tree of values: of every value, the rows of the nodes that it lies in."""
        if self.columns * len(self.levels) * len(vectors[0]) > MOST_WORK:
            raise MemoryError
        found, first = [[0] * len(vectors[0]) for _ in range(self.columns)], 0
        for group, weights in self.levels:
            rows = [*accumulate((weight > 0 for weight in weights), initial=first)]
            for total, node in zip(found, group):
                if weights[node]:
                    own = zip(total, vectors[rows[node]])
                    total[:] = [t + weights[node] ** p * v for t, v in own]
            first = rows[-1]
        return found


def overlaps_of(rows, p):
    """Return the number of each column, equal ones alike, and the overlap of every two numbers."""
    columns = list(zip(*rows))
    distinct = sorted(set(columns))
    place = {column: number for number, column in enumerate(distinct)}
    if p == 2:
        table = inner_products(distinct)
    else:
        table = [
            [sum(abs(x) + abs(y) - abs(x - y) for x, y in zip(u, v)) // 2 for v in distinct] for u in distinct
        ]
    return [place[column] for column in columns], table


def inner_products(columns):
    """Return the inner products of every two vectors, those of one with all by one sum of long integers.

    An integer holds a number for each vector, in enough bytes that no inner product reaches into the next.
    """
    width = max(sum(x * x for x in column) for column in columns).bit_length() // 8 + 1
    half, count, order = 1 << 8 * width - 1, len(columns), "little"
    halves = int.from_bytes(half.to_bytes(width, order) * count, order)
    rows = [
        int.from_bytes(b"".join((x + half).to_bytes(width, order) for x in row), order) - halves
        for row in zip(*columns)
    ]
    table = []
    for column in columns:
        held = (sum(map(mul, column, rows)) + halves).to_bytes(width * count, order)
        starts = range(0, width * count, width)
        table.append([int.from_bytes(held[at : at + width], order) - half for at in starts])
    return table


def sensitivity(blocks, factors, p):
    """Return s_k, the largest over the columns of a part of the sum of |entry|^p."""
    if factors is None:
        return math.prod(block.largest_sum(p) for block in blocks)
    if len(factors) != math.prod(block.rows for block in blocks) or min(factors) < 1:
        raise ValueError("there is not one positive factor for each row of a part")
    # With a factor f[i, i', ..] on row (i, i', ..) the sum at column (j, j', ..) is
    #     sum over i of |B[i, j]|^p  sum over i' of |B'[i', j']|^p ..  f[i, i', ..]^p.
    # Block by block, the first axis of the table f^p is summed over and then becomes the last.
    table = [factor**p for factor in factors]
    for block in blocks:
        length = len(table) // block.rows
        summed = block.contract([table[i * length : (i + 1) * length] for i in range(block.rows)], p)
        table = [value for values in zip(*summed) for value in values]
    return max(table)


def divisor(blocks, factors):
    """Return an integer that divides every entry of a part."""
    found = 1 if factors is None else math.gcd(*integers(factors))
    for block in blocks:
        if block.kind in ("integer", "deficient"):
            found *= math.gcd(*(entry for row in block.entries for entry in row))
        if block.kind == "tree":
            found *= math.gcd(*(weight for _, weights in block.levels for weight in weights))
    return found


def on_multiples(multiple, power, divides):
    """Refuse noise on the multiples of an integer, if it is such, where answers are no such multiples."""
    if multiple and (
        len(multiple) > 1 or type(multiple[0]) is not int or not multiple[0] > 0 == power or not divides
    ):
        raise ValueError("noise on the multiples of a number that is none, or for answers that are divided")
    if multiple and divides % multiple[0]:
        raise ValueError("noise on the multiples of a number of which answers are not")


def one_radius(header, matrices, p):
    """Return what parts under one radius cost together, as `measured` does; nothing if there are none."""
    pairs = [pair for pair in zip(header["plan"]["parts"], header["noise"]) if "width" in pair[0]]
    attributes = [form for _, form in header["workload"]["domain"]]
    marginals = [sorted(i for at, _ in part["blocks"] for i in at) for part in header["plan"]["parts"]]
    for part, form in pairs:
        blocks = [matrices[place] for _, place in part["blocks"]]
        table = [block for block in blocks if block.inner != "identity"]
        own = [attributes[i] for at, _ in part["blocks"] for i in at]
        whole = not any(isinstance(one, dict) and "amount" in one for one in own)
        if (
            header["plan"]["kind"] != "split"
            or len({*map(tuple, marginals)}) < len(marginals)
            or header.get("series") is not None
            or p != 1
            or form != pairs[0][1]
            or len(form) != 2
            or type(form[1]) is not int
            or not -1000 <= form[1] <= 0
            or type(part["width"]) is not int
            or part["width"] < 0
            or part.get("multipliers") is not None
            or copied(part, matrices) != copied(pairs[0][0], matrices)
            or any(block.inner not in ("centered", "range") or block.rows < 2 for block in table)
            or sum(block.rows > 2 for block in table) > 1
            or not whole
        ):
            raise ValueError("one radius where its proof does not hold")
        if exact(form[0]) <= 0:
            raise ValueError("a part is measured without noise, or measures nothing")
    return {(1, exact(pairs[0][1][0]) * Fraction(2) ** pairs[0][1][1]): 1} if pairs else {}


def copied(part, matrices):
    """Return the attributes and matrices of a part of which each cell has noise of its own under a radius."""
    return [(at, place) for at, place in part["blocks"] if matrices[place].inner == "identity"]


def share_of_radius(header, matrices):
    """Return what the records of a person cost in one radius, over the cost of one and their number."""
    unit, names = (
        header["authorization"]["budget"]["unit"],
        [name for name, _ in header["workload"]["domain"]],
    )
    per, constant = ([names.index(name) for name in unit.get(key, [])] for key in ("per", "constant"))
    if not per:
        return 1
    for part in header["plan"]["parts"]:
        ranges = [at for at, place in part["blocks"] if matrices[place].kind == "range"]
        others = [i for at, _ in part["blocks"] for i in at if at not in ranges]
        if "width" in part and (
            [sorted(at) for at in ranges] != [sorted(per)] or set(others) - set(constant)
        ):
            return 1
    if type(unit["max_records_each"]) is not int or unit["max_records_each"] < 1:
        raise ValueError("a unit whose numbers are none")
    return Fraction(unit["max_records_each"], unit["records"])


def possible(header, matrices, arrays):
    """Whether the noise that is said can leave these answers: multiples of its number, or centred tables.

    Rows of a table under one radius are signs times n z_i - sum of z, for integers z; independent noise would
    not leave them so. Answers of 2^53 steps and more were rounded, and tell nothing.
    """
    both = [*zip(header["plan"]["parts"], header["noise"])]
    if not any("width" in part or form[2:] not in ([], [1]) for part, form in both):
        return True
    values, start = answers(header, arrays), 0
    for part, (_, _, *multiple) in both:
        shape = [matrices[place].rows for _, place in part["blocks"]]
        own, start = values[start : start + math.prod(shape)], start + math.prod(shape)
        if max(map(abs, own), default=0) >= 2**53:
            continue
        if multiple and any(value % multiple[0] for value in own):
            return False
        moved = [k for k, (_, place) in enumerate(part["blocks"]) if matrices[place].inner != "identity"]
        if "width" not in part or not moved:
            continue
        long = max(moved, key=lambda k: shape[k])
        n, apart = shape[long], [math.prod(shape[k + 1 :]) for k in range(len(shape))]
        for cell in product(*(range(1 if k in moved else size) for k, size in enumerate(shape))):
            first = sum(map(mul, cell, apart))  # with the first of the two values of every other attribute
            table = [own[first + i * apart[long]] for i in range(n)]
            z = [(value - table[0]) // n for value in table]
            total = sum(z)
            for at in product(*(range(shape[k] if k in moved else 1) for k in range(len(shape)))):
                sign = (-1) ** (sum(at) - at[long])
                if own[first + sum(map(mul, at, apart))] != sign * (n * z[at[long]] - total):
                    return False
    return True


def measured(header, matrices, arrays, p):
    """Return how many parts there are of each (s_k, b_k), and the number of rows of all."""
    parts, noise = header["plan"]["parts"], header["noise"]
    known, found, rows = {}, Counter(one_radius(header, matrices, p)), 0
    attributes = [form for _, form in header["workload"]["domain"]]
    amounts = {i for i, form in enumerate(attributes) if isinstance(form, dict) and "amount" in form}
    if not parts or len(parts) != len(noise):
        raise ValueError("there is not one scale of noise for each part")
    for part, form in zip(parts, noise):
        steps, power, *multiple = form
        key = places, factors = tuple(place for _, place in part["blocks"]), part.get("multipliers")
        if (
            any(type(place) is not int or place < 0 for place in places)
            or abs(power) > 1000
            or type(power) is not int
        ):
            raise ValueError("a part names a matrix that there is not, or noise out of range")
        blocks = [matrices[place] for place in places]
        if factors is not None and arrays[factors][1] != "<i8":
            raise ValueError("row multipliers are not integers")
        if "width" in part:  # of one radius, counted once
            rows += math.prod(block.rows for block in blocks)
            continue
        if key not in known:  # many parts are alike
            known[key] = sensitivity(blocks, None if factors is None else integers(arrays[factors]), p)
        whole = not any(positions and amounts & set(positions) for positions, _ in part["blocks"])
        walks = sum(block.walk for block in blocks)
        ended = header.get("series") is None
        if walks and (walks > 1 or not (ended and whole) or factors is not None or power > 0 or multiple):
            raise ValueError("a walk where its proof does not hold")
        on_multiples(multiple, power, divisor(blocks, factors and arrays[factors]) if whole else 0)
        scale = exact(steps) * Fraction(2) ** power
        if known[key] < 1 or scale <= 0:
            raise ValueError("a part is measured without noise, or measures nothing")
        found[known[key], scale] += 1
        rows += math.prod(block.rows for block in blocks)
    return found, rows


# ---- trees: how far a record moves the answers depends on its value


def by_value(header, matrices, p):
    """Return how far records move the parts with trees over the same values: {part: s_k(l)} by kinds of l."""
    trees = {}
    for place, part in enumerate(header["plan"]["parts"]):
        blocks = [(tuple(at), matrices[i]) for at, i in part["blocks"]]
        own = [block for block in blocks if block[1].kind in TREES]
        if len(own) == 1 and part.get("multipliers") is None:
            others = math.prod(block.largest_sum(p) for _, block in blocks if block.kind not in TREES)
            trees[place] = own[0][0], [others * own for own in own[0][1].column_sums(p)]
    if len({at for at, _ in trees.values()}) != 1:
        return []
    sizes = header["plan"]["sizes"]
    if any(len(sums) != math.prod(sizes[i] for i in at) for at, sums in trees.values()):
        raise ValueError("a tree does not have a column for each combination of values")
    return [dict(zip(trees, row)) for row in set(zip(*(sums for _, sums in trees.values())))]


def less(kinds, cost):
    """Return how much less a record costs than the most that it does in each of those parts, negative."""
    if not kinds:
        return 0
    alone = sum(max(cost(k, kind[k]) for kind in kinds) for k in kinds[0])
    return max(sum(cost(k, own) for k, own in kind.items()) for kind in kinds) - alone


# ---- what a replacement moves


def factors_in(part, arrays):
    """Return the row factors of a part, or None."""
    return None if part.get("multipliers") is None else integers(arrays[part["multipliers"]])


def columns_of(part, matrices, multipliers, p, known):
    """Return the factors of a part: positions of attributes, overlaps of columns, largest sum."""
    factors = []
    for positions, place in part["blocks"]:
        if place not in known:
            known[place] = matrices[place].overlaps(p), matrices[place].largest_sum(p)
        factors.append((tuple(positions), *known[place]))
    if multipliers is None:
        return factors
    blocks = [matrices[place] for _, place in part["blocks"]]
    largest = sensitivity(blocks, multipliers, p)
    overlaps = None
    cells = math.prod(block.columns for block in blocks)
    most = MOST_OVERLAPS if largest < 2**60 else MOST_OVERLAPS // 16
    if math.prod(block.rows for block in blocks) * cells**2 <= most:
        rows = [[1]]
        for block in blocks:
            rows = [[x * y for x in row for y in more] for row in rows for more in block.written()]
        overlaps = overlaps_of([[m * x for x in row] for m, row in zip(multipliers, rows)], p)
    return [(tuple(i for positions, _, _ in factors for i in positions), overlaps, largest)]


def least_overlap(factors, p):
    """Return a lower bound of the overlap of two columns of a part: products of the ends of intervals."""
    low = high = 1
    for _, overlaps, largest in factors:
        least = (-largest if p == 2 else 0) if overlaps is None else min(map(min, overlaps[1]))
        ends = [x * y for x in (low, high) for y in (least, largest)]
        low, high = min(ends), max(ends)
    return low


def kinds_of_pairs(parts, sizes):
    """Return for each kind of pairs of records three numbers a part; None where there are too many kinds.

    They are the sums of |entry|^p over the columns of the two records, and the overlap of these.
    """
    axes = []  # sets of attributes such that every block lies in one
    for positions in {positions for factors in parts for positions, _, _ in factors}:
        joined = set(positions).union(*(axis for axis in axes if axis & set(positions)))
        axes = [axis for axis in axes if not axis & joined] + [joined] * bool(joined)
    constant = [math.prod(largest for at, _, largest in factors if not at) for factors in parts]
    kinds = {tuple(value for value in constant for _ in range(3))}
    for axis in axes:
        listed = sorted(axis)
        used = {name(factor): factor for factors in parts for factor in factors if axis & set(factor[0])}
        ranges = [range(sizes[i]) for i in listed]
        if any(overlaps is None for _, overlaps, _ in used.values()):
            return None
        if all(overlaps[0] is None and set(at) == axis for at, overlaps, _ in used.values()):
            # two cells stand for all
            ranges = [range(min(2, math.prod(map(len, ranges))))] + [range(1)] * (len(listed) - 1)
        count = math.prod(map(len, ranges))
        if count**2 * len(used) * 3 > MOST_PAIRS:
            return None
        columns = []  # of each factor, for each cell the number of its column
        for at, (numbers, _), _ in used.values():
            cells = []
            for cell in product(*ranges):
                index = 0
                for i in at:
                    index = index * len(ranges[listed.index(i)]) + cell[listed.index(i)]
                cells.append(index if numbers is None else numbers[index])
            columns.append(cells)
        there = set()
        for j, k in product(range(count), repeat=2):
            found = []
            for cells, (_, (numbers, table), _) in zip(columns, used.values()):
                a, b = (cells[j], cells[k]) if numbers is not None else (0, int(cells[j] != cells[k]))
                found.append((table[a][a], table[b][b], table[a][b]))
            there.add(tuple(found))
        if len(kinds) * len(there) * len(parts) * 3 > MOST_PAIRS:
            return None
        places = {key: place for place, key in enumerate(used)}
        own = [[places[name(factor)] for factor in factors if name(factor) in places] for factors in parts]
        more = [
            tuple(math.prod(one[place][i] for place in few) for few in own for i in range(3)) for one in there
        ]
        kinds = {tuple(map(mul, kind, one)) for kind in kinds for one in more}
    return kinds


def name(factor):
    """Return what tells a factor from others: its attributes and its matrix."""
    return factor[0], id(factor[1])


def replacement(header, matrices, arrays, p):
    """Yield bounds, in units of 2^-160, of what one record costs and of what replacing one by another does.

    First by parts, then exact where pairs are few enough.
    """
    sizes = header["plan"]["sizes"]
    known, parts, weights = {}, [], []
    listed = [part for part in header["plan"]["parts"] if "width" in part]
    joint = tuple(sorted({i for part in listed for positions, _ in part["blocks"] for i in positions}))
    apart = joint, (None, [[1, 0], [0, 1]]), 1  # any two different records, of all parts under one radius
    for part, (steps, power, *_) in zip(header["plan"]["parts"], header["noise"]):
        at = [i for positions, _ in part["blocks"] for i in positions]
        if any(type(i) is not int or i < 0 for i in at) or len(set(at)) != len(at):
            raise ValueError("a part measures an attribute twice, or one that there is not")
        for positions, place in part["blocks"]:
            if math.prod(sizes[i] for i in positions) != matrices[place].columns:
                raise ValueError("a matrix does not have a column for each combination of values")
        if "width" in part:
            if part is not listed[0]:
                continue
            parts.append([apart])
        else:
            parts.append(columns_of(part, matrices, factors_in(part, arrays), p, known))
        weights.append(math.ceil(2**160 / (exact(steps) * Fraction(2) ** power) ** p))
    largest = [math.prod(own for _, _, own in factors) for factors in parts]
    apart = [2 * own - 2 * least_overlap(factors, p) for own, factors in zip(largest, parts)]
    places = [k for k, own in enumerate(header["plan"]["parts"]) if "width" not in own or own is listed[0]]
    weight = dict(zip(places, weights))
    together = less(by_value(header, matrices, p), lambda k, own: own * weight[k])
    yield sum(map(mul, weights, largest)) + together, sum(map(mul, weights, apart))
    kinds = kinds_of_pairs(parts, sizes)
    if kinds is not None:
        yield (
            max(sum(map(mul, weights, kind[::3])) for kind in kinds),
            max(
                sum(w * (a + b - 2 * c) for w, a, b, c in zip(weights, kind[::3], kind[1::3], kind[2::3]))
                for kind in kinds
            ),
        )


# ---- what all records of a person cost, where they are in several values


def times(one, other):
    """Return bounds of the products of numbers from two intervals."""
    ends = [x * y for x in one for y in other]
    return min(ends), max(ends)


def positive(matrix):
    """Return whether a symmetric matrix of integers is positive semidefinite; False where that is not proved.

    Rows and columns are multiplied by powers of two that bring the diagonal near 2^80. A triangular
    factor of integers leaves a rest in which each entry on the diagonal is at least the sum of the sizes of
    the others in its row: then product and rest are positive semidefinite, however the factor was found.
    """
    n, diagonal = len(matrix), [matrix[i][i] for i in range(len(matrix))]
    if min(diagonal) <= 0:
        return False
    shifts = [PLACES - (own.bit_length() + 1) // 2 for own in diagonal]
    if min(shifts) < 0:
        return False
    whole = [[own << (a + b) for own, b in zip(row, shifts)] for row, a in zip(matrix, shifts)]
    places = []
    for i in range(n):
        row = []
        for j in range(i):
            left = whole[i][j] - sum(map(mul, row, places[j]))
            row.append((2 * left + places[j][j]) // (2 * places[j][j]))
        left = whole[i][i] - (whole[i][i] >> SLACK) - sum(x * x for x in row)
        if left <= 0:
            return False
        places.append([*row, max(math.isqrt(left), 1)])
    rests = [[0] * n for _ in range(n)]
    for i in range(n):
        for j in range(i + 1):
            rests[i][j] = rests[j][i] = whole[i][j] - sum(map(mul, places[i], places[j]))
    return all(row[i] >= 0 and 2 * row[i] >= sum(map(abs, row)) for i, row in enumerate(rests))


class Person:
    """What two records of a person have in common, by their values t and s of some attributes, `per`."""

    def __init__(self, header, matrices, arrays):
        unit, domain = header["authorization"]["budget"]["unit"], header["workload"]["domain"]
        names, self.all = [name for name, _ in domain], header["plan"]["sizes"]
        self.per = [names.index(name) for name in unit["per"]]
        self.constant = {names.index(name) for name in unit.get("constant", [])}
        amounts = [isinstance(form, dict) and "amount" in form for _, form in domain]
        divided = {i for i, amount in enumerate(amounts) if amount}
        numbers = [unit[name] for name in ("records", "max_values", "max_records_each")]
        if (
            any(type(number) is not int or number < 1 for number in numbers)
            or not self.per
            or len(set(self.per)) < len(self.per)
            or (divided | set(self.per)) & self.constant
            or divided & set(self.per)
        ):
            raise ValueError("a unit whose numbers or attributes are none")
        self.size = math.prod(self.all[i] for i in self.per)
        self.records, values, self.each = numbers
        self.values = min(values, self.size)
        self.most = min(self.records, self.values * self.each)
        self.known, self.tables = {}, {}
        name = header["plan"].get("proof")
        self.proof = None if name is None else arrays[name]
        if name is not None and self.proof[1] != "<i8":
            raise ValueError("multipliers of a proof are not integers")
        self.parts, self.over, weights = [], [], []
        by_period = header["plan"].get("by_period") is True
        for part, (steps, power, *_) in zip(header["plan"]["parts"], header["noise"]):
            at = [i for positions, _ in part["blocks"] for i in positions]
            if any(type(i) is not int or i < 0 for i in at) or len(set(at)) != len(at):
                raise ValueError("a part measures an attribute twice, or one that there is not")
            for positions, place in part["blocks"]:
                if math.prod(self.all[i] for i in positions) != matrices[place].columns:
                    raise ValueError("a matrix does not have a column for each combination of values")
            factors = factors_in(part, arrays)
            if by_period:
                part, factors, over = self.beside(part, factors, matrices)
                self.over.append(over)
            self.parts.append(columns_of(part, matrices, factors, 2, self.known))
            weights.append(2**160 / (exact(steps) * Fraction(2) ** power) ** 2)
        self.weights = [(math.floor(own), math.ceil(own)) for own in weights]
        over = [factor for factors in self.parts for factor in factors if set(self.per) & set(factor[0])]
        self.alike = self.size > MOST_VALUES or all(
            set(at) == set(self.per) and self.two(factor) for factor in over for at in [factor[0]]
        )

    def beside(self, part, factors, matrices):
        """Return a part and its row factors without the periods, and the number of the matrix over these."""
        axes = [axis for axis, (positions, _) in enumerate(part["blocks"]) if positions == self.per]
        if len(axes) != 1:
            raise ValueError("a part of a series without one block over the periods alone")
        axis, blocks = axes[0], part["blocks"]
        rows, inner = (
            math.prod(matrices[place].rows for _, place in few)
            for few in (blocks[axis : axis + 1], blocks[axis + 1 :])
        )
        if factors is not None:
            first = [factor for row, factor in enumerate(factors) if row // inner % rows == 0]
            if any(
                own != first[row // (inner * rows) * inner + row % inner] for row, own in enumerate(factors)
            ):
                raise ValueError("row factors that change over the periods")
            factors = first
        return {**part, "blocks": blocks[:axis] + blocks[axis + 1 :]}, factors, blocks[axis][1]

    def by_period(self, matrices):
        """Return what the records of a person cost in a series, over k^2.

        The rows that end at a period have one row c over the periods. Entries of c that records lie at add up
        to P above 0 and to -N below it. Pairs on one side have at most G in common beside the periods, and
        pairs on both sides at least g, |g| <= G: at most G P^2 + G N^2 - 2 g P N, convex in P and in N.
        """
        free = sorted({i for at in self.listed() for i in at if self.all[i] > 1} - self.constant)
        few = len(self.parts) * 2 ** len(free) <= MOST_PATTERNS
        sets = [set(own) for n in range(len(free) + 1) for own in combinations(free, n)] if few else [None]
        ends = [[self.terms(factors, own)[1:] for factors in self.parts] for own in sets]
        highest = [self.terms(factors, set())[2] for factors in self.parts]
        full, rest = divmod(self.most, self.each)
        full, rest = (self.values, 0) if full >= self.values else (full, rest)
        total = 0
        for over in sorted(set(self.over)):
            places = [place for place, own in enumerate(self.over) if own == over]
            most = sum(self.weights[place][1] * highest[place] for place in places)
            least = min(sum(own[i][0] * self.weights[i][own[i][0] <= 0] for i in places) for own in ends)
            for row in matrices[over].written():
                sides = [[*sorted((max(sign * x, 0) for x in row), reverse=True), 0] for sign in (1, -1)]
                sums = [[self.each * x for x in [0, *accumulate(side)]] for side in sides]
                # with n full values, and with the rest in one more
                up, down = ([x + rest * y for x, y in zip(*own)] for own in zip(sums, sides))
                pairs = [(up[full], 0), (0, down[full])]
                pairs += ((up[n], sums[1][full - n]) for n in range(full + 1))
                pairs += ((sums[0][n], down[full - n]) for n in range(full + 1))
                total += max(most * (x * x + y * y) - 2 * least * x * y for x, y in pairs)
        return Fraction(-(-total // self.records**2), 2**160)

    def listed(self):
        """Yield the attributes of each factor."""
        return (at for factors in self.parts for at, _, _ in factors)

    def two(self, factor):
        """Whether the overlaps of two cells are those of all."""
        at, overlaps, _ = factor
        cells = math.prod(self.all[i] for i in at)
        return overlaps is not None and (overlaps[0] is None or cells == 1)

    def same(self, at, changed):
        """Return whether two records are the same in some attributes but `per`; None where they may be."""
        others = set(at) - set(self.per)
        if changed is None:
            free = any(self.all[i] > 1 for i in others - self.constant)
            return None if free else True
        return not others & changed

    def alone(self, factor, same):
        """Return bounds of the overlap of two records in a factor without attributes of `per`."""
        at, overlaps, most = factor
        if not at:
            return most, most
        if overlaps is None:
            return (0 if same else -most), most
        numbers, table = overlaps
        if numbers is None:
            own, other, cells = table[0][0], table[0][1], math.prod(self.all[i] for i in at)
            if same or cells == 1:
                return own, most
            return (min(own, other), most) if same is None else (other, other)
        every = [table[a][b] for i, a in enumerate(numbers) for j, b in enumerate(numbers) if i != j]
        own = [table[a][a] for a in numbers]
        if same or len(numbers) == 1:
            return min(own), most
        return (min(own + every), most) if same is None else (min(every), max(every))

    def table(self, factor, same):
        """Return bounds of the overlaps in a factor for every two values, or for two that stand for all."""
        key = factor[0], id(factor[1]), factor[2], same
        if key not in self.tables:
            self.tables[key] = self.by_values(factor, same)
        return self.tables[key]

    def by_values(self, factor, same):
        """Return what `table` does."""
        at, overlaps, most = factor
        size = 2 if self.alike else self.size
        if overlaps is None:
            return [[(-most, most)] * size for _ in range(size)]
        numbers, table = overlaps
        own = [i for i in self.per if i in at]
        if self.alike and set(at) == set(self.per) and self.two(factor):
            x, y = table[0][0], (table[0][1] if numbers is None and self.size > 1 else table[0][0])
            return [[(x, x), (y, y)], [(y, y), (x, x)]]
        count = math.prod(self.all[i] for i in own)
        cells, others = math.prod(self.all[i] for i in at), [i for i in at if i not in own]
        if numbers is None and cells > 1:
            x, y = table[0][0], table[0][1]
            ends = (min(x, y), max(x, y)) if same is None else (x, x) if same else (y, y)
            found = [[ends if a == b else (y, y) for b in range(count)] for a in range(count)]
        else:
            found = self.written(at, own, others, numbers or [0] * cells, table, same)
        if self.alike:
            diagonal = [found[a][a] for a in range(count)]
            apart = [found[a][b] for a in range(count) for b in range(count) if a != b]
            apart = diagonal + apart if len(own) < len(self.per) or count == 1 else apart
            x, y = ((min(low for low, _ in few), max(high for _, high in few)) for few in (diagonal, apart))
            return [[x, y], [y, x]]
        place, step = [0] * self.size, 1
        for i in reversed(own):
            inner = math.prod(self.all[j] for j in self.per[self.per.index(i) + 1 :])
            place = [p + step * (t // inner % self.all[i]) for t, p in enumerate(place)]
            step *= self.all[i]
        return [[found[a][b] for b in place] for a in place]

    def written(self, at, own, others, numbers, table, same):
        """Return bounds by the values of the attributes `own`, from the overlaps of all cells."""
        lists = [{}, {}]
        for cell, number in zip(product(*(range(self.all[i]) for i in at)), numbers):
            value, rest = (tuple(cell[at.index(i)] for i in few) for few in (own, others))
            lists[0].setdefault(value, []).append((rest, number))
        values = [lists[0][value] for value in product(*(range(self.all[i]) for i in own))]
        found = []
        for mine in values:
            row = []
            for theirs in values:
                few = [
                    table[a][b]
                    for one, a in mine
                    for other, b in theirs
                    if same is None or not others or (one == other) == same
                ]
                row.append((min(few), max(few)))
            found.append(row)
        return found

    def terms(self, factors, changed):
        """Return the tables of a part, by what tells them apart, and the interval that they are times."""
        over, ends = [], (1, 1)
        for factor in factors:
            same = self.same(factor[0], changed)
            if set(self.per) & set(factor[0]):
                over.append((factor, same))
            else:
                ends = times(ends, self.alone(factor, same))
        key = tuple((factor[0], id(factor[1]), factor[2], same) for factor, same in over)
        if key not in self.tables:
            size = 2 if self.alike else self.size
            found = [[(1, 1)] * size for _ in range(size)]
            for factor, same in over:
                own = self.table(factor, same)
                found = [[times(x, y) for x, y in zip(*rows)] for rows in zip(found, own)]
            self.tables[key] = found
        return key, *ends

    def h(self):
        """Return the table h of all values, or of two that stand for all, in units of 2^-160."""
        fixed = set(self.per) | self.constant
        free = sorted(i for i in {i for at in self.listed() for i in at} - fixed if self.all[i] > 1)
        few = len(self.parts) * 2 ** len(free) <= MOST_PATTERNS
        sets = [set(own) for n in range(len(free) + 1) for own in combinations(free, n)] if few else [None]
        size, found = (2 if self.alike else self.size), None
        for pattern in {tuple(self.terms(factors, own) for factors in self.parts) for own in sets}:
            sums = {}
            for (key, low, high), (least, most) in zip(pattern, self.weights):
                before = sums.get(key, (0, 0))
                low, high = low * (least if low > 0 else most), high * (most if high > 0 else least)
                sums[key] = before[0] + low, before[1] + high
            for t in range(size) if found else []:
                for s in range(size):
                    found[t][s] = max(found[t][s], self.sum_at(sums, t, s))
            found = found or [[self.sum_at(sums, t, s) for s in range(size)] for t in range(size)]
        own = [self.terms(factors, set()) for factors in self.parts]
        for t in range(size):
            largest = (self.tables[key][t][t][1] * high for key, _, high in own)
            found[t][t] = sum(w * x for (_, w), x in zip(self.weights, largest))
        return found

    def sum_at(self, sums, t, s):
        """Return the sum over the tables of the largest product of an entry and a number of an interval."""
        return sum(times(self.tables[key][t][s], ends)[1] for key, ends in sums.items())

    def charge(self):
        """Return what the records of a person cost, over k^2."""
        h, (full, rest) = self.h(), divmod(self.most, self.each)
        if full >= self.values:
            full, rest = self.values, 0
        sets = sum(math.comb(self.size, n) for n in range(full + 1))
        if not self.alike and full == self.size and min(map(min, h)) >= 0:
            found = self.each**2 * sum(map(sum, h))
        elif not self.alike and sets * (self.size if rest else 1) <= MOST_SETS:
            found = self.enumerated(h, full, rest)
        else:
            found = self.by_largest(h, full, rest)
            found = found if self.alike else min(found, self.by_rows(h, full, rest))
        proof = None if self.alike or self.size > MOST_PROVED else self.proof
        proved = (
            None if proof is None else self.proved(h, min(-(-self.most // self.each), self.values), proof)
        )
        found = found if proved is None else min(found, self.each**2 * proved)
        return Fraction(-(-found // self.records**2), 2**160)

    def proved(self, h, most, proof):
        """Return a bound of z'hz for z of 0 and 1 with at most `most` ones, by multipliers, or None.

        For nu, kappa, N, L >= 0, N and L with zeros on the diagonal, and any u, add to z'hz what is not below
        0, nu (most - 1'z) + sum kappa_t z_t (most - 1'z) + z'Nz + sum L_ts z_t (1 - z_s), and what is 0,
        sum u_t (z_t - z_t^2). That is nu most + l'z - z'Fz, at most nu most + beta if the matrix of beta,
        l / 2 and F is positive semidefinite (`positive`).
        """
        n, top = len(h), max(h[t][t] for t in range(len(h)))
        (rows, columns), _, _ = proof
        flat = iter(integers(proof))
        table = [[next(flat) for _ in range(columns)] for _ in range(rows)]
        signed = [row for place, row in enumerate(table) if place != 2]
        if (rows, columns) != (2 * n + 3, n) or any(min(row) < 0 for row in signed) or any(table[0][2:]):
            return None
        if n < 2:
            return None
        beta, nu, kappa, u, below, above = (
            table[0][1],
            table[0][0],
            table[1],
            table[2],
            table[3 : n + 3],
            table[n + 3 :],
        )
        if any(below[t][t] or above[t][t] for t in range(n)):
            return None
        form = [
            [
                kappa[t] + kappa[s] + above[t][s] + above[s][t] - below[t][s] - below[s][t]
                - 2 * -(-h[t][s] * 2**PROOF_BITS // top) + (2 * u[t] if s == t else 0)
                for s in range(n)
            ]
            for t in range(n)
        ]  # fmt: skip
        linear = [u[t] + most * kappa[t] - nu + sum(above[t]) for t in range(n)]
        if not positive([[2 * beta, *linear], *([last, *row] for last, row in zip(linear, form))]):
            return None
        return -(-(nu * most + beta) * top // 2**PROOF_BITS)

    def enumerated(self, h, full, rest):
        """Return the largest z'hz, every vertex looked at."""
        size, each, stack = len(h), self.each, [((), 0, [0] * len(h))]
        best = rest**2 * max(h[t][t] for t in range(size))
        while full and stack:
            chosen, value, sums = stack.pop()
            for t in range(chosen[-1] + 1 if chosen else 0, size):
                now, total = (*chosen, t), value + h[t][t] + 2 * sums[t]
                best = max(best, each**2 * total)
                if not rest and len(now) == full:
                    continue
                more = [x + y for x, y in zip(sums, h[t])]
                for s in range(size) if rest else []:
                    if s not in now:
                        last = 2 * each * rest * more[s] + rest**2 * h[s][s]
                        best = max(best, each**2 * total + last)
                if len(now) < full:
                    stack.append((now, total, more))
        return best

    def by_largest(self, h, full, rest):
        """Return a bound from the largest entries, which is exact if all values are alike."""
        own = max(h[t][t] for t in range(len(h)))
        other = max((h[t][s] for t in range(len(h)) for s in range(len(h)) if s != t), default=0)
        each = self.each
        return max(
            each**2 * (n * own + n * (n - 1) * other) + max(2 * each * rest * n * other + rest**2 * own, 0)
            for n in range(full + 1)
        )

    def by_rows(self, h, full, rest):
        """Return a bound from the largest sums of entries of each row."""
        size, each, filled, last = len(h), self.each, [], []
        for t in range(size):
            others = sorted((max(h[t][s], 0) for s in range(size) if s != t), reverse=True)
            sums = [0, *accumulate(others)]
            more = others[full - 1] if 0 < full < size else 0
            filled.append(each * (h[t][t] + sums[max(full - 1, 0)]) + rest * more)
            last.append(rest * h[t][t] + each * sums[min(full, size - 1)])
        return each * sum(sorted(filled, reverse=True)[:full]) + rest * max(last)


# ---- what a series measures by and by


def over_time(header, matrices, arrays):
    """Yield whether a series costs what its rows cost if they are measured at once."""
    name, published = header["series"]["attribute"], header["series"]["published"]
    at = [attribute[0] for attribute in header["workload"]["domain"]].index(name)
    parts = header["plan"]["parts"]
    alone = [[own for own, _ in part["blocks"] if at in own] == [[at]] for part in parts]
    yield all(alone), f"a series: every part has one block over {name} alone"
    if not all(alone):
        return
    ordered = alike = True
    values, later, through = iter(answers(header, arrays)), 0, [0, *published][-1]
    for part in parts:
        blocks = [matrices[place] for _, place in part["blocks"]]
        place = [positions for positions, _ in part["blocks"]].index([at])
        over = blocks[place]
        inner = math.prod(block.rows for block in blocks[place + 1 :])
        length = math.prod(block.rows for block in blocks)
        ordered &= over.rows == over.columns and not any(
            any(row[period + 1 :]) for period, row in enumerate(over.written())
        )
        if published != sorted(set(published)) or not 0 <= through <= over.columns:
            raise ValueError("a series whose numbers of periods do not increase")
        period = [row // inner % over.rows for row in range(length)]
        later += sum(next(values) != 0 and period[row] >= through for row in range(length))
        if part.get("multipliers") is not None:
            factors = integers(arrays[part["multipliers"]])
            alike &= all(factors[row] == factors[row - period[row] * inner] for row in range(length))
    yield ordered, f"a series: every block over {name} is lower triangular"
    yield alike, f"a series: no row factor changes over {name}"
    yield (
        not later,
        f"a series: {later} rows hold what is not measured yet, after {len(published)} publications",
    )
    add_remove = header["authorization"]["budget"]["neighbours"] == "add_remove"
    yield add_remove, "a series: neighbours add or remove a record"


# ---- proved bounds of exponentials and of the normal tail


def series(first, ratio, up):
    """Return first (1 + r(1) + r(1) r(2) + ..), rounded up or down; r(k) <= 1/2 from some k on, and stays so.

    Every term is rounded to that side. Once r <= 1/2, all terms after one are together at most that one.
    """
    total = term = math.ceil(first) if up else math.floor(first)
    k = 1
    while term > 1 or ratio(k) > Fraction(1, 2):
        over, under = term * ratio(k).numerator, ratio(k).denominator
        term = -(-over // under) if up else over // under
        total, k = total + term, k + 1
    return Fraction(total + (term if up else 0), 2**BITS)


def exp(y, up):
    """Return e^y = 1 + y + y^2 / 2 + y^3 / (2 3) + .., rounded up or down, for y >= 0."""
    return series(Fraction(2**BITS), lambda k: y / k, up)


def root(y, bits, up):
    """Return the square root, rounded up or down to a multiple of 2^-bits."""
    below = math.isqrt(math.floor(y * 4**bits))
    return Fraction(below + (up and Fraction(below, 2**bits) ** 2 < y), 2**bits)


def tail(x, up):
    """Return Q(x) = P(Z > x) of a normal variable, rounded up or down.

    Q(x) = 1/2 - exp(-x^2 / 2) / sqrt(2 pi) (x + x^3 / 3 + x^5 / (3 5) + ..) for x >= 0, and
    pi = 2 (1 + 1 / 3 + 1 2 / (3 5) + 1 2 3 / (3 5 7) + ..). What is subtracted is rounded to the other side.
    """
    if x < 0:
        return 1 - tail(-x, not up)
    pi = series(Fraction(2 * 2**BITS), lambda k: Fraction(k, 2 * k + 1), up)
    density = 1 / (exp(x * x / 2, up) * root(2 * pi, BITS, up))
    return Fraction(1, 2) - density * series(x * 2**BITS, lambda k: x * x / (2 * k + 1), not up)


def gaussian_keeps(between, epsilon, delta):
    """Whether Q(epsilon / mu - mu / 2) - e^epsilon Q(epsilon / mu + mu / 2) <= delta, mu = sqrt(between)."""
    mu = root(between, 200, up=True)  # the left side increases in mu
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if epsilon > 300 or far > 30:
        return None  # BITS would not be enough
    return tail(near, up=True) - exp(epsilon, up=False) * tail(far, up=False) <= delta


def pure_is_gdp(epsilon, mu):
    """Whether epsilon-DP implies mu-GDP: (1 + e^epsilon) Q(mu / 2) <= 1."""
    return None if epsilon > 300 or mu > 60 else (1 + exp(epsilon, up=True)) * tail(mu / 2, up=True) <= 1


# ---- what is checked: every check yields (True, False, or None where it is not decided here; words)

PARAMETERS = {
    "pure DP": ["epsilon"],
    "approximate DP": ["delta", "epsilon"],
    "zero-concentrated DP": ["rho"],
    "Gaussian DP": ["mu"],
}


def within(gaussian, between, rho=None, mu=None, epsilon=None, delta=None):
    """Whether a cost between neighbours keeps to rho, to mu, to epsilon and delta, or to epsilon alone."""
    if [rho, mu, epsilon].count(None) != 2 or (delta is not None and epsilon is None):
        return False
    if epsilon is not None and gaussian:  # with delta = 0 Gaussian noise keeps to no epsilon
        return delta is not None and gaussian_keeps(between, epsilon, delta)
    if epsilon is not None:
        return between <= epsilon
    if rho is not None:
        return (between if gaussian else between**2) <= 2 * rho
    return between <= mu**2 if gaussian else pure_is_gdp(between, mu)


def guarantees(listed, gaussian, between):
    """Check every guarantee of the privacy statement: it holds, and what is shown claims no more."""
    for row in listed:
        parameters = {name: exact(text) for name, text in row["exact"].items()}
        told = all(row["parameters"][name] >= value for name, value in parameters.items())
        if not (
            sorted(row["parameters"]) == sorted(parameters) == PARAMETERS.get(row["definition"]) and told
        ):
            yield False, f"release.json: {row['definition']} as shown is what is meant"
        words = ", ".join(f"{name} {float(value):.9g}" for name, value in parameters.items())
        yield within(gaussian, between, **parameters), f"release.json: {row['definition']}, {words}"


def parts_of(release, p):
    """Return how many parts release.json lists of each (s_k, b_k), those of one radius as one; and widths."""
    found, under, widths = Counter(), set(), Counter()
    for row in release["strategy"]["parts"]:
        scale = row["scale"]["numerator"] / Fraction(2) ** row["scale"]["exponent"]
        if scale == exact(row["scale"]["text"]):
            key = int(row["squared_sensitivity" if p == 2 else "sensitivity"]), scale
            if "radius_width" in row:
                under.add(key)
                widths[row["radius_width"]] += len(row["attributes"])
            else:
                found[key] += len(row["attributes"])
    found.update(under)
    return found, widths


def counted(header, p):
    """Return what counts of records out of domain cost a record that is in all of them, and their scale.

    A record is in the domain, and then in the parts above, or in these counts, and never in both: so the cost
    of all is the larger of the two.
    """
    counts = header.get("out_of_domain_counts")
    if counts is None:
        return Fraction(0), None
    steps, power, *multiple = counts["noise"]
    on_multiples(multiple, power, 1)
    names, scale = counts["attributes"], exact(steps) * Fraction(2) ** power
    replaced = set(header["out_of_domain"]) & set(names)
    if abs(power) > 1000 or scale <= 0 or len(set(names)) != len(names) or replaced or not names:
        raise ValueError("counts of records out of domain without noise, or of records that are not dropped")
    if len(counts["values"]) != len(names) or any(type(value) is not int for value in counts["values"]):
        raise ValueError("there is not one noisy integer for each count of records out of domain")
    return len(names) * Fraction(math.ceil(2**160 / scale**p), 2**160), scale


def rounds(header):
    """Return the header with the parts of the first round alone, one on each marginal, and of the second."""
    parts, noise = header["plan"]["parts"], header["noise"]
    marginals = [tuple(sorted(i for positions, _ in part["blocks"] for i in positions)) for part in parts]
    begun = len(set(marginals))
    again = marginals[begun:]
    if len(set(marginals[:begun])) != begun or len(set(again)) != len(again) or not again:
        raise ValueError("a round measures a marginal twice, or the second measures none")
    for mine in (slice(begun), slice(begun, None)):
        yield {**header, "plan": {**header["plan"], "parts": parts[mine]}, "noise": noise[mine]}


def bounds(header, matrices, arrays, p, outside):
    """Return bounds of what a record costs that is added, removed or replaced, the last one the least."""
    parts, _ = measured(header, matrices, arrays, p)
    # every s_k / b_k^p is rounded up to a multiple of 2^-160
    total = sum(count * math.ceil(largest / scale**p * 2**160) for (largest, scale), count in parts.items())
    for _, scale in one_radius(header, matrices, p):
        total += math.ceil(share_of_radius(header, matrices) / scale * 2**160) - math.ceil(2**160 / scale)
    over = [2**160 / (exact(steps) * Fraction(2) ** power) ** p for steps, power, *_ in header["noise"]]
    kinds = by_value(header, matrices, p)
    if len(kinds) > 1 and header.get("series") is not None and header["plan"].get("by_period") is not True:
        raise ValueError("a series of which records could change their values in trees")
    total += less(kinds, lambda k, own: -(-own * over[k].numerator // over[k].denominator))
    removed = max(Fraction(total, 2**160), outside)
    if p == 2 and header["plan"].get("by_period") is True:  # other records may count at each period
        return [Person(header, matrices, arrays).by_period(matrices)]
    if p == 2 and "per" in header["authorization"]["budget"]["unit"]:
        return [min(Person(header, matrices, arrays).charge(), removed)]
    if header["authorization"]["budget"]["neighbours"] != "replace":
        return [removed]
    # by one out of domain, or by another
    pairs = [
        max(Fraction(one, 2**160) + outside, Fraction(two, 2**160))
        for one, two in replacement(header, matrices, arrays, p)
    ]
    return [min(between / 2**p, removed) for between in pairs]


def checks(folder):
    """Check a release, one line for each fact."""
    header, arrays = read_archive(folder / "measurement.mdp")
    record, noise = header["authorization"], header["plan"]["noise"]
    p = {"gaussian": 2, "laplace": 1}[noise]
    matrices = [Block(form, arrays) for form in header["plan"]["matrices"]]
    parts, rows = measured(header, matrices, arrays, p)
    if len({place for part in header["plan"]["parts"] for _, place in part["blocks"]}) < len(matrices):
        raise ValueError("no part measures one of the matrices")
    outside, scale_outside = counted(header, p)
    if header["plan"]["kind"] == "rounds":  # the whole budget is authorized before the second is planned
        first, second = rounds(header)
        one = bounds(first, matrices, arrays, p, outside)[-1]
        two = bounds(second, matrices, arrays, p, Fraction(0))[-1]
        cost = exact(record["cost"])
        words = f"the rounds cost {float(one):.9g} and {float(two):.9g}"
        yield one + two <= cost, f"{words}, together at most {float(cost):.9g} = {cost}"
    else:
        costs = bounds(header, matrices, arrays, p, outside)
        cost = exact(record["cost"]) if exact(record["cost"]) in costs else costs[-1]
        yield cost == exact(record["cost"]), f"cost from the matrices and scales: {float(cost):.9g} = {cost}"
    places, beyond = apart(header, arrays)
    once = len(places) == len(beyond) and all(map(lt, [-1, *places], [*places, rows]))
    whole = arrays[header["values"]][0] == (rows,) and once
    yield whole, f"{rows} noisy answers, one for each row and no more"
    yield possible(header, matrices, arrays), "they are such as the noise of their parts leaves"
    if header.get("series") is not None:
        yield from over_time(header, matrices, arrays)
    written = dict(record["budget"])
    about = {name: written.pop(name) for name in ("neighbours", "unit")}
    budget = {name: exact(text) for name, text in written.items()}
    unit, alone = about["unit"], header["plan"]["kind"] != "rounds" and scale_outside is None
    by_period, series = header["plan"].get("by_period") is True, header.get("series")
    if by_period and (p != 2 or len(unit.get("per", [])) != 1):
        raise ValueError("charged by periods without a unit that says what they are, or with Laplace noise")
    alone &= series is None or (by_period and unit["per"] == [series["attribute"]])
    records, bounded = unit["records"], {"per", "max_values", "max_records_each"}
    keys = unit.keys() - {"id"} - ({"constant"} if "id" in unit and "per" in unit else set())
    if type(records) is not int or records < 1 or keys not in ({"records"}, {"records"} | bounded):
        raise ValueError("the unit of privacy is not a number of records, of those with an id or of all")
    if header["plan"].get("persons") != (unit if "per" in unit else None) or not (alone or "per" not in unit):
        raise ValueError("a plan for another unit of privacy, or for one that it cannot have")
    moved = records * {"add_remove": 1, "replace": 2}[about["neighbours"]]
    between = cost * moved**p
    words = " ".join(f"{name} = {value}" for name, value in budget.items())
    who = "the record that moves costs" if moved == 1 else f"{moved} records that move cost"
    yield within(p == 2, between, **budget), f"{who} {float(between):.9g}: {words}"

    release = read_json((folder / "release.json").read_bytes())
    said, authorization = release["privacy"], release["authorization"]
    alike = {exact(said["cost"]), exact(authorization["cost"])} == {cost}
    yield alike, "release.json: that cost, twice"
    yield {noise} == {record["noise"], said["noise"], authorization["noise"]}, f"{noise} noise everywhere"
    number = sum(parts.values())
    words = f"release.json: the sensitivities and scales of {number} part{'s' * (number > 1)}"
    listed, widths = parts_of(release, p)
    yield listed == parts, words
    under = Counter(part["width"] for part in header["plan"]["parts"] if "width" in part)
    if widths or under:
        yield widths == under, f"release.json: the widths of {sum(under.values())} parts under one radius"
    shown = {name: said["budget"]["exact"][name] for name in written} == written
    for given in (said["budget"], authorization["budget"]):
        shown &= all(given[name] == value for name, value in about.items())
        shown &= given.keys() - {"exact"} == record["budget"].keys()
        shown &= all(abs(given[name] - value) <= value / 2**50 for name, value in budget.items())
    shown &= {name: said[name] for name in about} == about
    yield shown, f"release.json: that budget, twice, for {about['unit']} and {about['neighbours']} neighbours"
    yield from guarantees(said["guarantees"], p == 2, between)
    told = release.get("out_of_domain_counts")
    if scale_outside is not None or told is not None:
        names = [row["attribute"] for row in told["counts"]]
        same = exact(told["cost"]) == outside and exact(told["scale"]["text"]) == scale_outside
        same &= told["scale"]["numerator"] / Fraction(2) ** told["scale"]["exponent"] == scale_outside
        same &= names == header["out_of_domain_counts"]["attributes"]
        yield same, f"release.json: {len(names)} counts of records out of domain cost {float(outside):.9g}"
    flags = {header["private"], release["private"], said["private"], "warning" not in release}
    yield len(flags) == 1, f"private is {header['private']} everywhere"
    parts = [path for path in folder.glob("answers/**/*") if path.is_symlink() or not path.is_dir()]
    there = {path.relative_to(folder).as_posix(): {} for path in sorted(parts)}
    for name, listed in {"measurement.mdp": {}, **there, **release["files"]}.items():
        known = re.fullmatch("(answers/level=[^/]+/)?[^/]+", name)
        found = known and (folder / name).is_file() and digest_of(folder / name)
        yield found and found == listed.get("sha256"), f"release.json: the SHA-256 of {name}"
    digest = release["files"]["measurement.mdp"]["sha256"]
    yield said["measurement"]["sha256"] == digest, "release.json: that of the measurement, in the statement"


def digest_of(path):
    """Return the SHA-256 of a file, a piece of which is in memory."""
    with path.open("rb") as file:
        return read(file)[0]


def plain(words):
    """Return words on one line, without what would control a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(words))


def main(arguments):
    """Print every check of the folder named, and the verdict."""
    if len(arguments) != 1 or not Path(arguments[0]).is_dir():
        print(__doc__, file=sys.stderr)
        return 2
    failed, undecided = False, 0
    try:
        for holds, words in checks(Path(arguments[0])):
            failed, undecided = failed | (holds is False), undecided + (holds is None)
            print(f"{ {True: 'ok', False: 'FAILED', None: 'not checked'}[holds]:<12}{plain(words)}")
    except MemoryError:
        failed = True
        print(f"FAILED      a part takes more than {MOST_WORK} multiplications: too large for this program")
    except DISORDER as error:
        failed = True
        print(f"FAILED      the files are not those of a release: {type(error).__name__}: {plain(error)}")
    print("not checked that the noise was random: without a signature only the publisher knows")
    print("not checked that the answers follow from the measurement: `matrixdp verify` does that")
    but = f" But {undecided} of the lines above could not be decided here." if undecided else ""
    print("FAILED: the cost is not what is said" if failed else f"The cost is what is said.{but}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
