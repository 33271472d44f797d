"""The four span-labelling tasks of the chapter, made of our own sentences."""

from __future__ import annotations

from ..stimuli import Fact, coreference, entities, facts, role_examples, treebank
from .tasks import SpanTask, coreference_task, entity_task, relation_task, role_task

#: two by two, these relations hold between names of the same types
RELATIONS = (
    "capital", "country_city",  # country, city
    "capital_country", "city_country",  # city, country
    "author", "composer",  # work, person
    "language", "demonym",  # country, word for its language or people
)  # fmt: skip


def semantic_tasks(n: int = 250, *, seed: int = 0) -> list[SpanTask]:
    """Entity types, semantic roles, coreference and relations, each with parts that do not overlap.

    What the test part holds back: names (entity types), all content words (roles), sentences
    (coreference), subjects and wordings (relations). After the tasks that Tenney et al. (2019) took
    from annotated corpora; their proto-roles have no counterpart here.

    Args:
        n: training sentences; the test part of each task has half as many. Relations have as many
            as there are facts, at most ``n // 6`` for each relation.
        seed: of the sentences.
    """
    half = max(2, n // 2)
    people = coreference(n + half, seed)
    roles = [
        role_examples(treebank(size, seed, split, max_words=14))
        for split, size in (("train", n), ("test", half))
    ]
    parts = held_out_subjects(max(2, n // 6))
    return [
        entity_task(entities(n, seed, "train"), entities(half, seed, "test")),
        role_task(*roles),
        coreference_task(people[:n], people[n:]),
        relation_task(*parts),
    ]


def held_out_subjects(most: int) -> tuple[list[Fact], list[Fact]]:
    """At most ``most`` facts of each of :data:`RELATIONS`; every third subject is for testing."""
    found = [fact for relation in RELATIONS for fact in facts(relation)[:most]]
    subjects = sorted({fact.subject for fact in found})
    held = set(subjects[2::3])
    return (
        [fact for fact in found if fact.subject not in held],
        [fact for fact in found if fact.subject in held],
    )
