"""M1-M3, L1 and L2 accuse images, topics and runs that are not as they should be, and nobody else."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from simulation.checkers import l1_converged, l2_no_trouble, m1_images, m2_topic_lives, m3_admin_changes
from simulation.checkers.proof.handmade import PLACE, accuses, acquits, batch, final, history, poll, seen, send
from simulation.history import AdminChange, ImageSeen, Place, TopicsSeen, Trouble

LATER = Place("t", "id-2", 0)


def change(kind: Any, s: float, *, outcome: Any = "ok", topic: str = "t", **others: Any) -> AdminChange:
    return AdminChange(process="admin", invoked_s=s, ended_s=s + 0.1, outcome=outcome, kind=kind, topic=topic, **others)


def told(s: float, **topics: tuple[str, int]) -> TopicsSeen:
    return TopicsSeen(process="c1", invoked_s=s, ended_s=s + 0.1, outcome="ok", topics=topics)


# --- M1


def image(at_s: float, revision: int, life: int = 0, digest: str = "d") -> ImageSeen:
    return ImageSeen(at_s, "b1", life, revision, digest, "d")


def test_m1_acquits_images_that_grow_within_a_life() -> None:
    acquits(m1_images.check, history(images_seen=[image(1.0, 3), image(2.0, 3), image(3.0, 5), image(4.0, 1, life=1)]))


def test_m1_accuses_an_image_that_goes_back_or_is_not_the_stores() -> None:
    back = history(images_seen=[image(1.0, 3), image(2.0, 2)])
    accuses(m1_images.check, back, r"b1 \(life 0\) was at revision 3 at 1.000 s, and at 2 at 2.000 s")
    other = history(images_seen=[image(1.0, 3, digest="e")])
    accuses(m1_images.check, other, "b1 .* at revision 3 was not the store's at 1.000 s: e where d was due")


# --- M2


def test_m2_acquits_lives_with_ids_and_values_of_their_own() -> None:
    lives = history(
        change("create", 1.0, topic_id="id-1"),
        send(b"a", 0, s=2.0),
        poll(0, 1, seen(0, b"a"), s=3.0),
        change("delete", 4.0),
        change("create", 5.0, topic_id="id-2"),
        send(b"b", 0, s=6.0),
        told(3.0, t=("id-1", 1)),
        told(7.0, t=("id-2", 1)),
        logs=[final(batch(seen(0, b"b")), place=LATER)],
    )
    acquits(m2_topic_lives.check, lives)


def test_m2_accuses_a_topic_id_that_is_used_twice() -> None:
    twice = history(change("create", 1.0, topic_id="id-1"), change("create", 5.0, topic_id="id-1"))
    accuses(m2_topic_lives.check, twice, "topic id id-1 was given to t .* and to t")
    named = history(told(1.0, t=("id-1", 1)), told(2.0, u=("id-1", 1)))
    accuses(m2_topic_lives.check, named, r"topic id id-1 is that of t and that of u \(2.000 s")


def test_m2_accuses_a_new_topic_that_has_records_of_the_old_one() -> None:
    old = send(b"a", 0, s=2.0)
    log = final(batch(seen(0, b"a")), place=LATER, on_disk=())
    exposed = history(old, change("delete", 4.0), change("create", 5.0, topic_id="id-2"), logs=[log])
    accuses(m2_topic_lives.check, exposed, "'a' was acknowledged .* before t was created with id id-2 at 5.000 s")
    both = history(old, poll(0, 1, seen(0, b"a")), logs=[log])
    accuses(m2_topic_lives.check, both, "'a' is at t-0 offset 0 under the topic id id-2, and was read under id-1")


def test_m2_allows_a_send_that_overlaps_with_the_deletion_to_reach_both() -> None:
    log = final(batch(seen(0, b"a")), place=LATER)
    for slow in (send(b"a", 0, s=2.0, took_s=9.0), send(b"a", s=2.0, outcome="unknown")):
        creation = change("create", 5.0, topic_id="id-2")
        acquits(
            m2_topic_lives.check, history(slow, change("delete", 4.0), creation, poll(0, 1, seen(0, b"a")), logs=[log])
        )


# --- M3


def test_m3_acquits_answers_that_tell_of_the_last_change() -> None:
    created = change("create", 1.0, topic_id="id-1", partitions=2)
    grown = change("partitions", 3.0, partitions=4)
    answers = told(0.5), told(2.0, t=("id-1", 2)), told(4.0, t=("id-1", 4)), told(6.0)
    acquits(m3_admin_changes.check, history(created, grown, change("delete", 5.0), *answers))


def test_m3_acquits_answers_about_which_nothing_is_sure() -> None:
    created = change("create", 1.0, topic_id="id-1", partitions=2)
    acquits(m3_admin_changes.check, history(created, told(1.05)))
    acquits(m3_admin_changes.check, history(created, change("delete", 2.0, outcome="unknown"), told(3.0)))
    acquits(m3_admin_changes.check, history(change("delete", 0.5, outcome="unknown"), created, told(3.0)))
    acquits(m3_admin_changes.check, history(replace(created, outcome="failed"), told(3.0)))


def test_m3_accuses_answers_without_an_acknowledged_change() -> None:
    created = change("create", 1.0, topic_id="id-1", partitions=2)
    accuses(m3_admin_changes.check, history(created, told(2.0)), r"c1 \(2.000 s.*told of topic t that it is not there")
    accuses(m3_admin_changes.check, history(created, told(2.0, t=("id-0", 2))), "that its id is id-0, after .* id-1")
    accuses(m3_admin_changes.check, history(created, told(2.0, t=("id-1", 1))), "has 1 partitions, .* given 2")
    gone = history(created, change("delete", 2.0), told(3.0, t=("id-1", 2)))
    accuses(m3_admin_changes.check, gone, "that it is there with id id-1, after it was deleted by admin")


# --- L1, L2


def test_l1_and_l2_acquit_a_run_that_healed_without_trouble() -> None:
    acquits(l1_converged.check, history(logs=[final(place=PLACE)]))
    acquits(l2_no_trouble.check, history())


def test_l1_accuses_what_did_not_come_about() -> None:
    late = history(unconverged=["group g is not stable"], healed_s=30.0)
    accuses(l1_converged.check, late, "faults ended at 30.000 s, and yet: group g is not stable")


def test_l2_accuses_every_trouble() -> None:
    accuses(l2_no_trouble.check, history(troubles=[Trouble(3.0, "b1", "a task died")]), "b1 at 3.000 s: a task died")
