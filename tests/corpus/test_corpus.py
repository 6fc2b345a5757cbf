"""Workflows as people have them go through plan, deployment, export, backup, restore and drawing on the simulator."""

from __future__ import annotations

import json

import pytest

from tests.corpus.__main__ import travel
from tests.corpus.workflows import FAULTS, SHAPES, corpus


def test_the_same_seed_makes_the_same_files_and_another_makes_others():
    first, again, other = (json.dumps(corpus(20, seed)) for seed in (1, 1, 2))
    assert first == again != other


def test_every_shape_occurs_as_often_as_its_table_says():
    samples = corpus()
    for shape, (percent, _) in SHAPES.items():
        assert sum(shape in sample.shapes for sample in samples) == max(1, round(3 * percent)), shape
    for fault, (percent, _) in FAULTS.items():
        assert sum(sample.fault == fault for sample in samples) == max(1, round(3 * percent)), fault


def test_a_sample_of_the_corpus_stays_what_it_is_on_its_whole_way(tmp_path):
    samples = corpus()[::30]
    journey = travel(samples, tmp_path)
    assert journey.differences == []
    faultless = sum(sample.fault is None for sample in samples)
    for step in ("created", "unchanged the second time", "exported equal", "restored equal", "drawn"):
        assert journey.counts[step] == faultless
    assert 0 < journey.counts["activated"] < faultless


@pytest.mark.slow
def test_the_whole_corpus_stays_what_it_is_on_its_whole_way(tmp_path):
    assert travel(corpus(), tmp_path).differences == []
