//! Which vector a member voted for last, in as few words as tell the order of votes.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use kernel::id::{Component, Member, Seq, Vector};

/// A vector in brief: enough to tell whether another one may come after it. Beside each number are the digits of its ledger, and
/// those of its nonce, if it has one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Brief(BTreeMap<Member, Place>);

type Place = (Seq, String);

/// Digits of a ledger in a [`Place`].
const ORIGIN_DIGITS: usize = 4;

fn place(component: &Component) -> Place {
    (component.seq, component.origin.brief() + &component.nonce.brief())
}

/// How two places of one member relate; `None` if that says nothing of the order: one is of another ledger, or they are different
/// rollouts that were given one number.
fn order((seq, digits): &Place, (other, others): &Place) -> Option<Ordering> {
    let is_one_rollout = digits == others;
    Some(seq.cmp(other)).filter(|order| is_one_ledger(digits, others) && (order.is_ne() || is_one_rollout))
}

fn is_one_ledger(digits: &str, others: &str) -> bool {
    digits.get(..ORIGIN_DIGITS) == others.get(..ORIGIN_DIGITS)
}

impl Brief {
    pub fn of(vector: &Vector) -> Self {
        Self(vector.0.iter().map(|(member, component)| (member.clone(), place(component))).collect())
    }

    /// Remembers where a member was that the vector leaves out, because its cluster does not have the workload.
    pub fn leave_out(&mut self, member: &Member, component: &Component) {
        self.0.insert(member.clone(), place(component));
    }

    /// Whether a vote for `next` may follow one for this: nothing in it is older, and something is other. Members and ledgers
    /// that only one of the two has say nothing of the order.
    pub fn precedes(&self, next: &Self) -> bool {
        let order = |(member, here): (&Member, &Place)| order(here, next.0.get(member)?);
        next != self && self.0.iter().filter_map(order).all(Ordering::is_le)
    }

    /// Whether this is empty: nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds where `before` has members under other ledgers than `now` does, which follows it.
    pub fn add_lives(&mut self, before: &Self, now: &Self) {
        let is_other = |member: &Member, (_, digits): &Place| {
            now.0.get(member).is_some_and(|(_, others)| !is_one_ledger(digits, others))
        };
        self.0.extend(
            before.0.iter().filter(|(member, place)| is_other(member, place)).map(|(m, p)| (m.clone(), p.clone())),
        );
        self.0.retain(|member, place| is_other(member, place));
    }

    /// Whether all of `next` was reached before: each member by this, or by one of these `lives`.
    pub fn has_had(&self, lives: &Self, next: &Self) -> bool {
        let reached = |(member, there): (&Member, &Place)| {
            let known = [self.0.get(member), lives.0.get(member)].into_iter().flatten();
            known.filter_map(|here| order(here, there)).any(Ordering::is_ge)
        };
        next.0.iter().all(reached)
    }

    /// Whether this is about more members than `other`, and not behind it in any of its own.
    pub fn contains(&self, other: &Self) -> bool {
        let reached = |(member, there): (&Member, &Place)| {
            self.0.get(member).and_then(|here| order(here, there)).is_some_and(Ordering::is_ge)
        };
        self.0.len() > other.0.len() && other.0.iter().all(reached)
    }

    /// Whether this is as far in one member as the component; `None` where it knows another ledger of it, or another rollout of that
    /// number.
    pub fn reaches(&self, member: &Member, component: &Component) -> Option<bool> {
        order(self.0.get(member)?, &place(component)).map(Ordering::is_ge)
    }

    /// Whether any number in it has a nonce.
    pub(crate) fn has_nonces(&self) -> bool {
        self.0.values().any(|(_, digits)| digits.len() > ORIGIN_DIGITS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernel::id::Nonce;

    fn vector(components: &[(&str, u64, u64)]) -> Vector {
        let component = |(member, seq, nonce): &(&str, u64, u64)| {
            ((*member).into(), Component { nonce: Nonce(nonce << 48), ..Component::bare("o".into(), Seq(*seq)) })
        };
        Vector(components.iter().map(component).collect())
    }

    fn brief(components: &[(&str, u64, u64)]) -> Brief {
        Brief::of(&vector(components))
    }

    #[test]
    fn without_nonces_it_is_what_it_always_was() {
        let text = serde_json::to_string(&brief(&[("a", 5, 0)])).unwrap();
        assert_eq!(text.len(), r#"{"a":[5,"0123"]}"#.len(), "{text}");
        assert!(!brief(&[("a", 5, 0)]).has_nonces() && brief(&[("a", 5, 0), ("b", 1, 1)]).has_nonces());
    }

    #[test]
    fn two_rollouts_of_one_number_are_in_no_order() {
        let (before, after) = (brief(&[("a", 5, 1), ("b", 3, 1)]), brief(&[("a", 5, 2), ("b", 3, 1)]));
        assert!(before.precedes(&after) && after.precedes(&before) && !before.precedes(&before));
        assert!(!before.precedes(&brief(&[("a", 5, 2), ("b", 2, 1)])), "the other member went back");
        assert!(!before.precedes(&brief(&[("a", 4, 2), ("b", 3, 1)])), "a lower number is an older one");
        let reaches = |seq, nonce| before.reaches(&"a".into(), &vector(&[("a", seq, nonce)]).0[&"a".into()]);
        assert_eq!(
            [reaches(4, 2), reaches(5, 1), reaches(5, 2), reaches(6, 1)],
            [Some(true), Some(true), None, Some(false)]
        );
        assert!(before.contains(&brief(&[("a", 5, 1)])) && !before.contains(&brief(&[("a", 5, 2)])));
    }

    /// Goal: a copy from before a member's ledger was lost, which comes after one from the present, leads to one vote and never back.
    #[test]
    fn a_vector_of_ledgers_that_were_voted_for_before_is_not_voted_for_again() {
        let of = |ledger: &str, a: u64, b: u64| {
            let component =
                |origin: &str, seq| Component { nonce: Nonce(1 << 48), ..Component::bare(origin.into(), Seq(seq)) };
            Brief::of(&Vector([("a".into(), component(ledger, a)), ("b".into(), component("o", b))].into()))
        };
        let (present, old) = (of("new", 1, 5), of("lost", 7, 5));
        let mut lives = Brief::default();
        assert!(present.precedes(&old) && !present.has_had(&lives, &old) && present.has_had(&lives, &present));
        lives.add_lives(&present, &old);
        assert!(old.precedes(&present) && old.has_had(&lives, &present), "the last vote alone does not tell");
        assert!(!old.has_had(&lives, &of("new", 2, 5)), "the member went on");
        assert!(!old.has_had(&lives, &of("new", 1, 6)), "the other one did");
        assert!(!old.has_had(&lives, &of("newer", 1, 5)), "its ledger was lost once more");
        lives.add_lives(&old, &of("new", 2, 5));
        assert_eq!(lives, Brief([("a".into(), old.0[&"a".into()].clone())].into()));
        lives.add_lives(&of("new", 2, 5), &of("new", 3, 5));
        assert!(of("new", 3, 5).has_had(&lives, &old), "nor after more votes");
    }
}
